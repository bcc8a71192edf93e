//! The six rungs of the trust ladder, and what the ladder makes of a policy's answer.
//!
//! The ladder is a floor under policy: whatever the operator's rules permit, L4 waits for a human
//! and L5 does not run. Arbiters come after it and can only [`Verdict::tighten`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::name::{Excerpt, UnknownWord, deserialize_str, words};

/// How much an action can reach, from watching to what is never done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Observe only.
    L0,
    /// Suggest only.
    L1,
    /// Isolated artifact.
    L2,
    /// Local and reversible.
    L3,
    /// External or shared.
    L4,
    /// Prohibited.
    L5,
}

/// A rung in words, for documents, cards and reports.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RungSpec {
    /// The rung.
    pub rung: Rung,
    /// Its name in logs and configuration.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What belongs on it; empty where nothing does.
    pub example: &'static str,
    /// What the gate does with it by default.
    pub gate: &'static str,
}

/// The rungs, from L0 to L5.
pub static RUNGS: [RungSpec; 6] = [
    RungSpec {
        rung: Rung::L0,
        name: "L0",
        meaning: "observe only",
        example: "read a file, list",
        gate: "policy",
    },
    RungSpec {
        rung: Rung::L1,
        name: "L1",
        meaning: "suggest only",
        example: "draft a plan",
        gate: "policy",
    },
    RungSpec {
        rung: Rung::L2,
        name: "L2",
        meaning: "isolated artifact",
        example: "scratch output",
        gate: "policy",
    },
    RungSpec {
        rung: Rung::L3,
        name: "L3",
        meaning: "local, reversible",
        example: "write a file, run tests, commit",
        gate: "policy; runs with notification",
    },
    RungSpec {
        rung: Rung::L4,
        name: "L4",
        meaning: "external or shared",
        example: "push, network, credentials, deploy, pay, publish, sign",
        gate: "held for a human, always",
    },
    RungSpec {
        rung: Rung::L5,
        name: "L5",
        meaning: "prohibited",
        example: "",
        gate: "denied, always",
    },
];

impl Rung {
    /// The rung in words.
    pub fn spec(self) -> &'static RungSpec {
        &RUNGS[self as usize]
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.spec().name)
    }
}

impl FromStr for Rung {
    type Err = UnknownWord;

    /// Reads `L3` or `3`.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text {
            "L0" | "0" => Ok(Self::L0),
            "L1" | "1" => Ok(Self::L1),
            "L2" | "2" => Ok(Self::L2),
            "L3" | "3" => Ok(Self::L3),
            "L4" | "4" => Ok(Self::L4),
            "L5" | "5" => Ok(Self::L5),
            _ => Err(UnknownWord {
                what: "rung",
                expected: &["L0", "L1", "L2", "L3", "L4", "L5"],
                shown: Excerpt::of(text),
            }),
        }
    }
}

impl Serialize for Rung {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.spec().name)
    }
}

impl<'de> Deserialize<'de> for Rung {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_str(deserializer)
    }
}

words! {
    /// What the gate answers, from open to closed.
    #[derive(PartialOrd, Ord)]
    pub enum Verdict: "verdict" {
        /// It may run.
        Allow = "allow",
        /// It waits for a human.
        Hold = "hold",
        /// It does not run.
        Deny = "deny",
    }
}

impl Verdict {
    /// Both opinions heard, the stricter one counts; nothing ever loosens a verdict.
    #[must_use]
    pub fn tighten(self, other: Self) -> Self {
        self.max(other)
    }
}

words! {
    /// How grave what an arbiter saw is.
    #[derive(PartialOrd, Ord)]
    pub enum Severity: "severity" {
        /// Worth knowing.
        Info = "info",
        /// A human should look first.
        Warning = "warning",
        /// It must not happen.
        Critical = "critical",
    }
}

impl Severity {
    /// The laxest verdict that still stands after this was seen.
    pub const fn at_least(self) -> Verdict {
        match self {
            Self::Info => Verdict::Allow,
            Self::Warning => Verdict::Hold,
            Self::Critical => Verdict::Deny,
        }
    }
}

words! {
    /// What the policies say to one of the two questions: may it `run`, may one `ask` for it.
    pub enum Say: "policy answer" {
        /// A permit matched, and no forbid.
        Permit = "permit",
        /// A forbid matched, whatever else did.
        Forbid = "forbid",
        /// Nothing matched.
        Silent = "silent",
    }
}

/// What the operator's Cedar policies say about one action: the answers to both questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CedarAnswer {
    /// May it run unasked?
    pub run: Say,
    /// May one ask for it?
    pub ask: Say,
}

impl CedarAnswer {
    /// The answer that lets a call run: a permit to run, and nothing that speaks of asking.
    pub const PERMITTED: Self = Self {
        run: Say::Permit,
        ask: Say::Silent,
    };

    /// Every answer there is.
    pub fn all() -> impl Iterator<Item = Self> {
        let both = |&run| Say::ALL.iter().map(move |&ask| Self { run, ask });
        Say::ALL.iter().flat_map(both)
    }

    /// Whether a forbid matched either question.
    pub fn is_forbidden(self) -> bool {
        self.run == Say::Forbid || self.ask == Say::Forbid
    }
}

/// What the ladder makes of the policies' answer, before any arbiter.
///
/// | rung | run permitted | else ask permitted | else |
/// |---|---|---|---|
/// | L0 to L3 | allow | hold | deny |
/// | L4 | hold, but deny if a forbid matched either question | the same | the same |
/// | L5 | deny | deny | deny |
///
/// L4 holds even when nothing matched: silence at L4 asks a human, who would otherwise never see
/// what the agent tried. It does not allow on any answer. A forbid of `run` alone means, below L4,
/// that one has to ask; at L4 one has to ask anyway, so there it can only mean no.
pub fn floor(rung: Rung, answer: CedarAnswer) -> Verdict {
    match rung {
        Rung::L5 => Verdict::Deny,
        Rung::L4 if answer.is_forbidden() => Verdict::Deny,
        Rung::L4 => Verdict::Hold,
        Rung::L0 | Rung::L1 | Rung::L2 | Rung::L3 => match (answer.run, answer.ask) {
            (Say::Permit, _) => Verdict::Allow,
            (_, Say::Permit) => Verdict::Hold,
            _ => Verdict::Deny,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_rungs() {
        for (index, spec) in RUNGS.iter().enumerate() {
            assert_eq!(spec.rung as usize, index);
            assert_eq!(spec.rung.spec(), spec);
            assert_eq!(spec.name, format!("L{index}"));
        }
        assert!(RUNGS.is_sorted_by_key(|spec| spec.rung));
    }

    #[test]
    fn rungs_read_back_in_both_spellings() {
        for spec in &RUNGS {
            let rung = spec.rung;
            assert_eq!(rung.to_string().parse::<Rung>().unwrap(), rung);
            assert_eq!(spec.name[1..].parse::<Rung>().unwrap(), rung);
            assert_eq!(serde_json::to_string(&rung).unwrap(), format!("\"{rung}\""));
            assert_eq!(
                serde_json::from_str::<Rung>(&format!("\"{rung}\"")).unwrap(),
                rung
            );
        }
        for text in ["", "L", "L6", "6", "l3", "L03", "-1", "L3 "] {
            assert!(text.parse::<Rung>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Rung>("3").is_err());
    }

    #[test]
    fn the_floor_is_the_table_of_the_specification() {
        // Columns: run permit, forbid, silent; within each: ask permit, forbid, silent.
        let table = "L0 allow allow allow  hold deny deny  hold deny deny
            L1 allow allow allow  hold deny deny  hold deny deny
            L2 allow allow allow  hold deny deny  hold deny deny
            L3 allow allow allow  hold deny deny  hold deny deny
            L4 hold  deny  hold   deny deny deny  hold deny hold
            L5 deny  deny  deny   deny deny deny  deny deny deny";
        for line in table.lines() {
            let mut words = line.split_whitespace();
            let rung: Rung = words.next().unwrap().parse().unwrap();
            let answers: Vec<_> = CedarAnswer::all().collect();
            let expected: Vec<_> = words.collect();
            assert_eq!(answers.len(), expected.len());
            for (&answer, expected) in answers.iter().zip(expected) {
                assert_eq!(floor(rung, answer).as_str(), expected, "{rung} {answer:?}");
            }
        }
    }

    #[test]
    fn nothing_above_l3_is_ever_allowed() {
        for rung in [Rung::L4, Rung::L5] {
            for answer in CedarAnswer::all() {
                assert_ne!(floor(rung, answer), Verdict::Allow);
            }
        }
    }

    #[test]
    fn tightening_never_loosens() {
        for &a in Verdict::ALL {
            assert_eq!(a.tighten(a), a);
            for &b in Verdict::ALL {
                assert!(a.tighten(b) >= a && a.tighten(b) >= b);
                assert_eq!(a.tighten(b), b.tighten(a));
                for &c in Verdict::ALL {
                    assert_eq!(a.tighten(b).tighten(c), a.tighten(b.tighten(c)));
                }
            }
        }
    }
}
