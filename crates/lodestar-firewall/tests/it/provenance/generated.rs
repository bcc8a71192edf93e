//! More than a hundred thousand generated cases, and the figures that the documentation quotes.

use std::collections::BTreeMap;

use lodestar_core::id::ObservationId;
use lodestar_core::provenance::{GivenSource, Label};
use lodestar_firewall::provenance::ProvenanceIndex;

use super::generator::{Case, Expected, World};
use super::{observation, small_index};

const WORLDS: u64 = 1_300;

#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    right: usize,
    /// Called given or measured, and neither.
    trusted: usize,
    example: Option<String>,
}

fn index(world: &World) -> ProvenanceIndex {
    let mut index = small_index();
    index.give_task(&world.task, GivenSource::Task).unwrap();
    for (at, document) in world.documents.iter().enumerate() {
        index.read(observation(at), document);
    }
    index
}

fn is_right(label: &Label, expected: &Expected) -> bool {
    let ids = |documents: &[usize]| -> Vec<ObservationId> {
        documents.iter().copied().map(observation).collect()
    };
    match (expected, label) {
        (Expected::Given, label) => label.is_trusted(),
        (Expected::Untrusted, label) => !label.is_trusted(),
        (Expected::Unknown, label) => *label == Label::Unknown,
        (Expected::Read(documents), Label::Read { observations, .. }) => {
            let right = ids(documents);
            observations.iter().all(|id| right.contains(id))
        }
        (Expected::Joined([first, second]), Label::Read { observations, .. }) => {
            let (first, second) = (ids(first), ids(second));
            let either = |id| first.contains(id) || second.contains(id);
            let both = [&first, &second].map(|ids| ids.iter().any(|id| observations.contains(id)));
            observations.iter().all(either) && both == [true, true]
        }
        (Expected::Read(_) | Expected::Joined(_), _) => false,
    }
}

#[test]
fn generated_cases_are_labelled_as_they_were_made() {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let (mut given, mut untrusted, mut read) =
        (Tally::default(), Tally::default(), Tally::default());
    let mut made_up = Tally::default();
    for seed in 0..WORLDS {
        let world = World::new(seed);
        let index = index(&world);
        for case in &world.cases {
            let label = index.explain(&case.argument).remove(0).label;
            let sum = match case.expected {
                Expected::Given => &mut given,
                Expected::Untrusted => &mut untrusted,
                Expected::Unknown => &mut made_up,
                Expected::Read(_) | Expected::Joined(_) => &mut read,
            };
            count(sum, case, &label);
            count(tallies.entry(case.group).or_default(), case, &label);
        }
    }
    for (group, tally) in &tallies {
        println!("{:>7} of {:>7}  {group}", tally.right, tally.cases);
        if let Some(example) = &tally.example {
            println!("                     such as {example}");
        }
    }
    let total = given.cases + untrusted.cases + read.cases + made_up.cases;
    let wrongly_trusted = untrusted.trusted + read.trusted + made_up.trusted;
    let share = |tally: &Tally| tally.right as f64 / tally.cases as f64;
    println!("{total} generated cases");
    println!("untrusted values called given: {wrongly_trusted}");
    println!("given values recognised: {:.4}", share(&given));
    println!("source of a read value right: {:.4}", share(&read));
    println!("made-up values called unknown: {:.4}", share(&made_up));
    assert!(total >= 100_000, "{total}");
    assert_eq!(wrongly_trusted, 0);
    assert!(share(&given) >= 0.98);
    assert!(share(&read) >= 0.95);
}

fn count(tally: &mut Tally, case: &Case, label: &Label) {
    let right = is_right(label, &case.expected);
    tally.cases += 1;
    tally.right += usize::from(right);
    tally.trusted += usize::from(case.expected != Expected::Given && label.is_trusted());
    if !right && tally.example.is_none() {
        tally.example = Some(format!(
            "{:?}: {label:?}, not {:?}",
            case.argument, case.expected
        ));
    }
}
