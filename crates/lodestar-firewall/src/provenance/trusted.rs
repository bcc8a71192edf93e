//! The trusted side: given and measured values, kept whole.
//!
//! Nothing here is a fingerprint: a value is trusted only if its normal form equals a stored one
//! byte for byte. Nothing is forgotten either; when there is no room, adding is an error.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::kind::{ValueKind, classify, numeral};
use super::limits::GivenFull;
use super::loose::loose;
use lodestar_core::provenance::{GivenSource, Label, Resemblance, Resembled};

/// What an entry costs beside its text: the map's slot at its emptiest and the allocations.
const ENTRY_BYTES: usize = 160;

/// One part in so many of the room for values is set aside for hints, so that the prose of a long
/// task cannot crowd out a value.
const HINT_SHARE: usize = 4;

/// Longest text kept for a hint. Nobody mistakes a longer one at a glance.
const MAX_HINT_LEN: usize = 128;

/// Shortest number that a measurement makes trusted, in digits: a measured count or size must not
/// vouch for every argument that happens to be the same small number.
pub(super) const TELLING_DIGITS: usize = 6;

/// Who vouches for a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Voucher {
    Given(GivenSource),
    Measured(String),
}

impl Voucher {
    fn label(&self) -> Label {
        match self {
            Self::Given(source) => Label::Given {
                source: source.clone(),
            },
            Self::Measured(what) => Label::Measured { what: what.clone() },
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Given(GivenSource::KnownValue { list }) => list.len(),
            Self::Given(_) => 0,
            Self::Measured(what) => what.len(),
        }
    }
}

struct Hint {
    to: Resembled,
    text: Box<str>,
}

pub(super) struct Trusted {
    /// By kind and normal form, as one text; see [`key`].
    values: HashMap<Box<str>, Arc<Voucher>>,
    /// By loose form: what an untrusted value may be taken for.
    hints: HashMap<Box<str>, Hint>,
    value_bytes: usize,
    hint_bytes: usize,
    limit: usize,
}

impl Trusted {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            values: HashMap::new(),
            hints: HashMap::new(),
            value_bytes: 0,
            hint_bytes: 0,
            limit,
        }
    }

    /// The most that values of so many bytes and their hints take together.
    pub(super) fn memory_bound(limit: usize) -> usize {
        limit + limit / HINT_SHARE
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.value_bytes + self.hint_bytes
    }

    /// Trusts all of the values, or none of them if there is no room.
    pub(super) fn add<'a>(
        &mut self,
        texts: impl IntoIterator<Item = &'a str>,
        voucher: Voucher,
    ) -> Result<(), GivenFull> {
        let mut fresh: HashMap<Box<str>, &str> = HashMap::new();
        for text in texts {
            for key in keys(text) {
                let outdated = self.values.get(&key).is_none_or(|old| {
                    matches!(**old, Voucher::Measured(_)) && matches!(voucher, Voucher::Given(_))
                });
                if outdated {
                    fresh.insert(key, text);
                }
            }
        }
        let added: usize = fresh.keys().map(|key| ENTRY_BYTES + key.len()).sum();
        let needed = self.value_bytes + added + voucher.len();
        if needed > self.limit {
            return Err(GivenFull {
                needed,
                limit: self.limit,
            });
        }
        self.value_bytes = needed;
        let voucher = Arc::new(voucher);
        for (key, text) in fresh {
            self.values.insert(key, Arc::clone(&voucher));
            self.hint(text, Resembled::TrustedValue);
        }
        Ok(())
    }

    /// Remembers a word of the task's prose, for hints only; forgotten where there is no room.
    pub(super) fn mention(&mut self, word: &str) {
        self.hint(word, Resembled::WordOfTask);
    }

    fn hint(&mut self, text: &str, to: Resembled) {
        let loose = loose(text);
        let cost = ENTRY_BYTES + loose.len() + text.len();
        let room = self.hint_bytes + cost <= self.limit / HINT_SHARE;
        if loose.is_empty() || text.len() > MAX_HINT_LEN || !room {
            return;
        }
        let hint = Hint {
            to,
            text: text.into(),
        };
        match self.hints.entry(loose.into()) {
            Entry::Vacant(vacant) => {
                vacant.insert(hint);
                self.hint_bytes += cost;
            }
            Entry::Occupied(mut there) => {
                // A trusted value tells more than a word of the prose.
                if to == Resembled::TrustedValue && there.get().to == Resembled::WordOfTask {
                    self.hint_bytes += text.len();
                    self.hint_bytes -= there.insert(hint).text.len();
                }
            }
        }
    }

    /// Who vouches for exactly this value.
    pub(super) fn find(&self, kind: ValueKind, normal: &str) -> Option<Label> {
        self.values
            .get(key(kind, normal).as_str())
            .map(|voucher| voucher.label())
    }

    /// What a text that is not trusted may be taken for.
    pub(super) fn resembled(&self, text: &str) -> Option<Resemblance> {
        if text.len() > 4 * MAX_HINT_LEN {
            return None;
        }
        let hint = self.hints.get(loose(text).as_str())?;
        Some(Resemblance {
            to: hint.to,
            text: hint.text.as_ref().to_owned(),
        })
    }
}

/// The keys that a trusted text is found by: as a text, and as a JSON number if it is a numeral.
fn keys(text: &str) -> impl Iterator<Item = Box<str>> {
    let normal = classify(text);
    let number = numeral(text).map(|number| key(ValueKind::Number, &number));
    let text = (!text.is_empty()).then(|| key(normal.kind, &normal.text));
    text.into_iter().chain(number).map(String::into_boxed_str)
}

/// Kind and normal form in one text. INVARIANT: one character per kind, so that keys of two kinds
/// never meet.
fn key(kind: ValueKind, normal: &str) -> String {
    let tag = match kind {
        ValueKind::Email => 'e',
        ValueKind::Url => 'u',
        ValueKind::Host => 'h',
        ValueKind::Path => 'p',
        ValueKind::Account => 'a',
        ValueKind::Phone => 't',
        ValueKind::Id => 'i',
        ValueKind::Number => 'n',
        ValueKind::Boolean => 'b',
        ValueKind::Text => 'x',
    };
    format!("{tag}{normal}")
}

/// Whether a measured text says enough to be trusted wherever it appears.
pub(super) fn is_telling_measurement(text: &str) -> bool {
    let is_number = numeral(text).is_some() || text.bytes().all(|b| b.is_ascii_digit());
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    !text.is_empty() && (!is_number || digits >= TELLING_DIGITS)
}
