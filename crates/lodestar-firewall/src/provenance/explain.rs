//! Walks the arguments of an action and labels each value.

use serde_json::Value;

use super::kind::{ValueKind, canonical_number, classify, host_range};
use super::reading::Reading;
use super::task::groups;
use super::token::{Token, tokens};
use super::trace::{Probes, trace};
use super::trusted::Trusted;
use lodestar_core::provenance::{
    ArgumentProvenance, GivenSource, InsideValue, Label, Likeness, Place,
};

/// Most values listed inside one argument; the rest is counted. A card with more is not read.
const MAX_INSIDE: usize = 64;

/// What separates addresses in a list that has no spaces.
const LIST_SEPARATORS: &[char] = &[
    ',', ';', '|', '<', '>', '(', ')', '[', ']', '{', '}', '"', '\'', '=',
];

/// What explains: the two sides of the index, and a count of what asking them cost.
pub(super) struct Explainer<'a> {
    pub(super) trusted: &'a Trusted,
    pub(super) reading: &'a Reading,
    pub(super) unproved: Unproved,
    pub(super) probes: Probes,
}

/// What a value is that nobody gave and nobody measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unproved {
    /// Untrusted, wherever it comes from.
    Untrusted,
    /// Trusted, unless it is a copy of what was read: without the defence.
    TrustedUnlessCopied,
}

/// A step of the walk: into a value, or back out of one.
enum Step<'a> {
    Enter(Segment<'a>, &'a Value),
    Leave(usize),
}

enum Segment<'a> {
    Root,
    Name(&'a str),
    Index(usize),
}

impl Explainer<'_> {
    /// Labels every leaf, in the order of the arguments. The walk keeps its own stack: how deep the
    /// arguments nest is up to whoever sends them.
    pub(super) fn arguments(&mut self, arguments: &Value) -> Vec<ArgumentProvenance> {
        let mut labelled = Vec::new();
        let mut pointer = String::new();
        let mut steps = vec![Step::Enter(Segment::Root, arguments)];
        while let Some(step) = steps.pop() {
            let (segment, value) = match step {
                Step::Leave(len) => {
                    pointer.truncate(len);
                    continue;
                }
                Step::Enter(segment, value) => (segment, value),
            };
            steps.push(Step::Leave(pointer.len()));
            push_segment(&mut pointer, &segment);
            if let Segment::Name(name) = segment {
                labelled.extend(self.name(name, &pointer));
            }
            match value {
                Value::Null => {}
                Value::Array(items) => steps.extend(
                    items
                        .iter()
                        .enumerate()
                        .rev()
                        .map(|(at, item)| Step::Enter(Segment::Index(at), item)),
                ),
                Value::Object(members) => steps.extend(
                    members
                        .iter()
                        .rev()
                        .map(|(name, value)| Step::Enter(Segment::Name(name), value)),
                ),
                Value::String(text) => labelled.push(self.text(text, &pointer, Place::Value)),
                Value::Number(number) => labelled.push(self.number(number, &pointer)),
                Value::Bool(_) => labelled.push(bare(
                    &pointer,
                    Place::Value,
                    ValueKind::Boolean,
                    Label::Unknown,
                )),
            }
        }
        labelled
    }

    fn name(&mut self, name: &str, pointer: &str) -> Option<ArgumentProvenance> {
        is_plain_address(name, classify(name).kind).then(|| self.text(name, pointer, Place::Name))
    }

    fn number(&mut self, number: &serde_json::Number, pointer: &str) -> ArgumentProvenance {
        let written = canonical_number(number).unwrap_or_else(|| number.to_string());
        let label = self.label(ValueKind::Number, &written, &written);
        let mut labelled = bare(pointer, Place::Value, ValueKind::Number, label);
        self.hint(&mut labelled, &written);
        labelled
    }

    fn text(&mut self, text: &str, pointer: &str, place: Place) -> ArgumentProvenance {
        let normal = classify(text);
        let label = self.label(normal.kind, &normal.text, text);
        let mut labelled = bare(pointer, place, normal.kind, label);
        self.hint(&mut labelled, text);
        for (range, kind) in insides(text, normal.kind) {
            if labelled.inside.len() == MAX_INSIDE {
                labelled.inside_omitted += 1;
                continue;
            }
            let value = &text[range.clone()];
            let normal = classify(value);
            let label = self.label(normal.kind, &normal.text, value);
            labelled.inside.push(InsideValue { range, kind, label });
        }
        labelled
    }

    /// INVARIANT: the only place where a value becomes trusted, and only by the trusted side, unless a
    /// harness has taken that rule out.
    fn label(&mut self, kind: ValueKind, normal: &str, text: &str) -> Label {
        self.probes.0 += 1;
        if let Some(trusted) = self.trusted.find(kind, normal) {
            return trusted;
        }
        let traced = trace(self.reading, text, &mut self.probes);
        let is_copy = matches!(
            &traced,
            Label::Read {
                how: Likeness::Copy,
                ..
            }
        );
        match self.unproved {
            Unproved::TrustedUnlessCopied if !is_copy => Label::Given {
                source: GivenSource::Task,
            },
            Unproved::TrustedUnlessCopied | Unproved::Untrusted => traced,
        }
    }

    fn hint(&mut self, labelled: &mut ArgumentProvenance, text: &str) {
        if !labelled.label.is_trusted() {
            self.probes.0 += 1;
            labelled.resembles = self.trusted.resembled(text);
        }
    }
}

fn bare(pointer: &str, place: Place, kind: ValueKind, label: Label) -> ArgumentProvenance {
    ArgumentProvenance {
        pointer: pointer.to_owned(),
        place,
        kind,
        label,
        resembles: None,
        inside: Vec::new(),
        inside_omitted: 0,
    }
}

fn push_segment(pointer: &mut String, segment: &Segment<'_>) {
    match segment {
        Segment::Root => {}
        Segment::Index(at) => pointer.push_str(&format!("/{at}")),
        Segment::Name(name) => {
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        }
    }
}

/// An address beyond doubt: `user.name` has the form of a file name and is none.
fn is_plain_address(text: &str, kind: ValueKind) -> bool {
    kind.is_address() && (kind != ValueKind::Path || text.contains('/'))
}

type Inside = (std::ops::Range<usize>, ValueKind);

/// The addresses inside a value: the host of a URL or an e-mail address, or whatever stands in a
/// longer text.
fn insides(text: &str, kind: ValueKind) -> Vec<Inside> {
    match kind {
        ValueKind::Url => host_range(text)
            .map(|range| (range, ValueKind::Host))
            .into_iter()
            .collect(),
        ValueKind::Email => text
            .find('@')
            .map(|at| (at + 1..text.len(), ValueKind::Host))
            .into_iter()
            .collect(),
        ValueKind::Text | ValueKind::Id => addresses(text),
        _ => Vec::new(),
    }
}

fn addresses(text: &str) -> Vec<Inside> {
    let words: Vec<Token<'_>> = tokens(text).collect();
    let mut grouped = vec![false; words.len()];
    let mut found = Vec::new();
    for group in groups(text, &words) {
        let Some(range) = group.range else {
            continue;
        };
        let kind = classify(&text[range.clone()]).kind;
        if kind.is_address() {
            grouped[group.tokens].fill(true);
            found.push((range, kind));
        }
    }
    for (word, _) in words.iter().zip(grouped).filter(|(_, grouped)| !grouped) {
        let kind = classify(word.core).kind;
        if is_plain_address(word.core, kind) && word.core.len() < text.len() {
            found.push((word.range.clone(), kind));
        } else if word.core.contains("://") {
            // Looks like a URL and is none by the grammar: one value, and never an innocent prefix.
            found.push((word.range.clone(), ValueKind::Url));
        } else if !kind.is_address() {
            pieces(word, &mut found);
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// Addresses in a list without spaces, and behind a name such as `cc:`.
fn pieces(word: &Token<'_>, found: &mut Vec<Inside>) {
    let mut start = word.range.start;
    for piece in word.core.split(LIST_SEPARATORS) {
        let named = piece.split_once(':').map_or(0, |(name, _)| name.len() + 1);
        for from in [0, named] {
            let kind = classify(&piece[from..]).kind;
            if kind.is_address() && kind != ValueKind::Path {
                found.push((start + from..start + piece.len(), kind));
                break;
            }
        }
        start += piece.len() + 1;
    }
}
