//! Sets of facts: bits inside, sorted names outside.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use super::ExecutionFact;

/// A set of facts.
///
/// In text the names, sorted and each once, so that equal sets are equal bytes; in a database the bits, of
/// which the lowest is the first fact of [`ExecutionFact::ALL`].
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactSet(u16);

/// Why something is not a set of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadFactSet {
    /// A bit that stands for no fact.
    #[error("the bits {0:#x} stand for facts that there are not")]
    UnknownBits(u16),
    /// A name twice, or before one that sorts before it.
    #[error("`{0}` is not in its place: names are sorted, and stand once")]
    Unsorted(ExecutionFact),
}

impl FactSet {
    /// No fact.
    pub const EMPTY: Self = Self(0);
    /// Every fact.
    pub const FULL: Self = Self((1 << ExecutionFact::ALL.len()) - 1);

    /// Every set there is, in the order of bits.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..=Self::FULL.0).map(Self)
    }

    /// Reads the bits.
    pub const fn from_bits(bits: u16) -> Result<Self, BadFactSet> {
        match bits & !Self::FULL.0 {
            0 => Ok(Self(bits)),
            unknown => Err(BadFactSet::UnknownBits(unknown)),
        }
    }

    /// The bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether a fact is in it.
    pub const fn contains(self, fact: ExecutionFact) -> bool {
        self.0 & bit(fact) != 0
    }

    /// With this fact.
    #[must_use]
    pub const fn with(self, fact: ExecutionFact) -> Self {
        Self(self.0 | bit(fact))
    }

    /// Without this fact.
    #[must_use]
    pub const fn without(self, fact: ExecutionFact) -> Self {
        Self(self.0 & !bit(fact))
    }

    /// With this fact if it holds, else without.
    #[must_use]
    pub const fn set(self, fact: ExecutionFact, holds: bool) -> Self {
        if holds {
            self.with(fact)
        } else {
            self.without(fact)
        }
    }

    /// Whether every fact of `other` is in it.
    pub const fn is_superset(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// How many facts are in it.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The facts, in the order in which the ladder asks for them.
    pub fn iter(self) -> impl Iterator<Item = ExecutionFact> {
        ExecutionFact::ALL
            .iter()
            .copied()
            .filter(move |&fact| self.contains(fact))
    }

    fn names(self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.iter().map(ExecutionFact::as_str).collect();
        names.sort_unstable();
        names
    }
}

const fn bit(fact: ExecutionFact) -> u16 {
    1 << fact as u16
}

impl FromIterator<ExecutionFact> for FactSet {
    fn from_iter<I: IntoIterator<Item = ExecutionFact>>(facts: I) -> Self {
        facts.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Display for FactSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_empty() {
            true => f.pad("none"),
            false => f.pad(&self.names().join(", ")),
        }
    }
}

impl fmt::Debug for FactSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for FactSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl<'de> Deserialize<'de> for FactSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = FactSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of facts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<FactSet, A::Error> {
                let mut facts = FactSet::EMPTY;
                let mut before = "";
                while let Some(fact) = names.next_element::<ExecutionFact>()? {
                    if fact.as_str() <= before {
                        return Err(de::Error::custom(BadFactSet::Unsorted(fact)));
                    }
                    before = fact.as_str();
                    facts = facts.with(fact);
                }
                Ok(facts)
            }
        }

        deserializer.deserialize_seq(Names)
    }
}
