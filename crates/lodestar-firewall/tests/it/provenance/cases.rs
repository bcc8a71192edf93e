//! Cases made by hand, one file per way of changing a value.
//!
//! A case says what the operator gave (`task`, `known`), what was `measured`, what was `read` (the
//! first document is observation 1), the `arg`uments, and what to `expect`: a label, or a label per
//! pointer; `["read", 1, 2]` names the observations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lodestar_core::id::ObservationId;
use lodestar_core::provenance::{GivenSource, Label, Place};
use lodestar_firewall::provenance::ProvenanceIndex;
use serde::Deserialize;
use serde_json::Value;

use super::{contacts, observation, small_index};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    why: String,
    #[serde(default)]
    task: String,
    #[serde(default)]
    known: Vec<String>,
    #[serde(default)]
    measured: Vec<Value>,
    #[serde(default)]
    read: Vec<String>,
    arg: Value,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expected {
    Word(String),
    Read(Vec<Value>),
    Each(BTreeMap<String, Expected>),
}

impl Case {
    fn index(&self) -> ProvenanceIndex {
        let mut index = small_index();
        index.give_task(&self.task, GivenSource::Task).unwrap();
        for value in &self.known {
            index.give_value(value, contacts()).unwrap();
        }
        for value in &self.measured {
            index.measure(value, "a test").unwrap();
        }
        for (at, text) in self.read.iter().enumerate() {
            index.read(observation(at + 1), text);
        }
        index
    }
}

/// Figures over all cases.
#[derive(Debug, Default)]
struct Figures {
    values: usize,
    given: usize,
    recognised: usize,
    wrongly_trusted: usize,
    read: usize,
    source_right: usize,
}

impl Figures {
    /// Counts one value and says whether it is labelled as expected.
    fn count(&mut self, label: &Label, expected: &Expected) -> bool {
        self.values += 1;
        match expected {
            Expected::Word(word) if word == "unknown" => {
                self.wrongly_trusted += usize::from(label.is_trusted());
                matches!(label, Label::Unknown)
            }
            Expected::Word(word) => {
                self.given += 1;
                let right = match label {
                    Label::Given { .. } => word == "given",
                    Label::Measured { .. } => word == "measured",
                    _ => false,
                };
                self.recognised += usize::from(right);
                right
            }
            Expected::Read(numbers) => {
                self.read += 1;
                self.wrongly_trusted += usize::from(label.is_trusted());
                let right = matches!(label, Label::Read { observations, .. }
                    if *observations == named(numbers));
                self.source_right += usize::from(right);
                right
            }
            Expected::Each(_) => panic!("labels per pointer do not nest"),
        }
    }
}

fn named(expected: &[Value]) -> Vec<ObservationId> {
    assert_eq!(expected[0], "read");
    expected[1..]
        .iter()
        .map(|number| observation(number.as_u64().unwrap() as usize))
        .collect()
}

#[test]
fn hand_made_cases_are_labelled_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/provenance");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut figures = Figures::default();
    let mut misses = Vec::new();
    let mut cases = 0;
    for file in files {
        let group = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        for (at, line) in text.lines().enumerate() {
            let case: Case =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{group}:{}: {e}", at + 1));
            cases += 1;
            check(&case, &mut figures, |label| {
                misses.push(format!("{group}:{}: {}: {label}", at + 1, case.why));
            });
        }
    }
    println!("{cases} hand-made cases: {figures:?}");
    assert!(misses.is_empty(), "{}", misses.join("\n"));
    assert!(cases >= 300);
    assert_eq!(figures.wrongly_trusted, 0);
    assert!(figures.recognised * 100 >= figures.given * 98);
    assert!(figures.source_right * 100 >= figures.read * 95);
}

fn check(case: &Case, figures: &mut Figures, mut miss: impl FnMut(String)) {
    let mut labels: BTreeMap<String, Label> = case
        .index()
        .explain(&case.arg)
        .into_iter()
        .filter(|argument| argument.place == Place::Value)
        .map(|argument| (argument.pointer, argument.label))
        .collect();
    let mut one = |pointer: &str, expected: &Expected| {
        let label = labels.remove(pointer);
        let label = label.unwrap_or_else(|| panic!("no label for `{pointer}`: {}", case.why));
        if !figures.count(&label, expected) {
            miss(format!("{pointer} {label:?}"));
        }
    };
    match &case.expect {
        Expected::Each(each) => each.iter().for_each(|(pointer, e)| one(pointer, e)),
        expected => one("", expected),
    }
    assert!(labels.is_empty(), "{}: {labels:?}", case.why);
}
