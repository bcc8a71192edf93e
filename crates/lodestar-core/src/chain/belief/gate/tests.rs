mod exhaustive;

use proptest::prelude::*;

use super::*;
use crate::chain::evidence::Directness;
use crate::chain::samples;

use EvidenceFreshness::{Fresh, Stale, Unknown};
use EvidenceQuality::{
    DirectObservation, ExternalDocument, HumanAssertion, ModelInference, SyntheticProbe, ToolResult,
};
use EvidenceRelation::{Contextualizes, Contradicts, Supports};

fn weigh_items(items: Vec<EvidenceItem>) -> Weighing {
    weigh(&samples::evidence(&samples::claim(0, ToolResult), items))
}

fn supports(quality: EvidenceQuality, freshness: EvidenceFreshness, group: &str) -> EvidenceItem {
    samples::item(1, Supports, quality, freshness, group)
}

fn contradicts(
    quality: EvidenceQuality,
    freshness: EvidenceFreshness,
    group: &str,
) -> EvidenceItem {
    samples::item(2, Contradicts, quality, freshness, group)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

#[test]
fn one_item_alone_weighs_quality_times_freshness() {
    let table = [
        (DirectObservation, [1.0, 0.5, 0.6], [true, false, true]),
        (ToolResult, [0.85, 0.425, 0.51], [true, false, false]),
        (HumanAssertion, [0.7, 0.35, 0.42], [true, false, false]),
        (ModelInference, [0.0; 3], [false; 3]),
        (ExternalDocument, [0.0; 3], [false; 3]),
        (SyntheticProbe, [0.0; 3], [false; 3]),
    ];
    for (quality, strengths, supported) in table {
        for (i, freshness) in [Fresh, Stale, Unknown].into_iter().enumerate() {
            let weighing = weigh_items(vec![supports(quality, freshness, "g")]);
            assert!(
                close(weighing.strength, strengths[i]),
                "{quality} {freshness}: {weighing:?}"
            );
            assert_eq!(
                weighing.truth == Truth::Supported,
                supported[i],
                "{quality} {freshness}"
            );
        }
    }
}

#[test]
fn no_evidence_supports_nothing() {
    let weighing = weigh_items(vec![]);
    assert_eq!(
        (weighing.support, weighing.contradiction, weighing.strength),
        (0.0, 0.0, 0.0)
    );
    assert_eq!(weighing.truth, Truth::Unverified);
}

#[test]
fn a_hundred_agreeing_documents_count_as_zero() {
    let documents = (0..100)
        .map(|n| supports(ExternalDocument, Fresh, &format!("site {n}")))
        .collect();
    let weighing = weigh_items(documents);
    assert_eq!((weighing.support, weighing.truth), (0.0, Truth::Unverified));
}

#[test]
fn poison_before_and_after_one_direct_observation_leaves_it_supported() {
    for count in [1, 4, 100] {
        let poison =
            || (0..count).map(|n| contradicts(ExternalDocument, Fresh, &format!("poison {n}")));
        let direct = supports(DirectObservation, Fresh, "measured");
        let before: Vec<_> = poison().chain([direct.clone()]).collect();
        let after: Vec<_> = [direct].into_iter().chain(poison()).collect();
        for items in [before, after] {
            let weighing = weigh_items(items);
            assert_eq!(
                (weighing.strength, weighing.truth),
                (1.0, Truth::Supported),
                "{count}"
            );
        }
    }
}

#[test]
fn one_origin_counts_once_and_by_its_strongest_item() {
    let many = (0..50)
        .map(|_| supports(HumanAssertion, Unknown, "ann"))
        .collect();
    assert!(close(weigh_items(many).strength, 0.42));
    let mixed = vec![
        supports(HumanAssertion, Stale, "ann"),
        supports(ToolResult, Fresh, "ann"),
    ];
    assert!(close(weigh_items(mixed).strength, 0.85));
}

#[test]
fn independent_origins_add_up() {
    let two = vec![
        supports(HumanAssertion, Unknown, "ann"),
        supports(HumanAssertion, Unknown, "bob"),
    ];
    let weighing = weigh_items(two);
    assert!(close(weighing.strength, 1.0 - 0.58 * 0.58));
    assert_eq!(weighing.truth, Truth::Supported);
}

#[test]
fn direct_contradiction_discounts_support() {
    let weighing = weigh_items(vec![
        supports(ToolResult, Fresh, "a"),
        contradicts(HumanAssertion, Fresh, "b"),
    ]);
    assert!(close(weighing.strength, 0.85 * 0.3));
    assert_eq!(weighing.truth, Truth::Unverified);
    let weighing = weigh_items(vec![
        supports(DirectObservation, Fresh, "a"),
        contradicts(DirectObservation, Fresh, "b"),
    ]);
    assert_eq!(
        (weighing.strength, weighing.truth),
        (0.0, Truth::Unverified)
    );
    // A weak direct doubt does not undo a fresh measurement.
    let weighing = weigh_items(vec![
        supports(DirectObservation, Fresh, "a"),
        contradicts(HumanAssertion, Stale, "b"),
    ]);
    assert!(close(weighing.strength, 0.65));
    assert_eq!(weighing.truth, Truth::Supported);
}

#[test]
fn one_origin_on_both_sides_counts_on_both() {
    let weighing = weigh_items(vec![
        supports(DirectObservation, Fresh, "a"),
        contradicts(ToolResult, Fresh, "a"),
    ]);
    assert!(close(weighing.support, 1.0) && close(weighing.contradiction, 0.85));
}

#[test]
fn context_weighs_nothing() {
    let weighing = weigh_items(vec![samples::item(
        1,
        Contextualizes,
        DirectObservation,
        Fresh,
        "a",
    )]);
    assert_eq!((weighing.support, weighing.contradiction), (0.0, 0.0));
}

fn any_item() -> impl Strategy<Value = EvidenceItem> {
    (
        any::<u8>(),
        prop::sample::select(EvidenceRelation::ALL),
        prop::sample::select(EvidenceQuality::ALL),
        prop::sample::select(EvidenceFreshness::ALL),
        "[a-f]",
    )
        .prop_map(|(n, relation, quality, freshness, group)| {
            samples::item(n, relation, quality, freshness, &group)
        })
}

fn any_items() -> impl Strategy<Value = Vec<EvidenceItem>> {
    prop::collection::vec(any_item(), 0..24)
}

fn bits(weighing: Weighing) -> [u64; 3] {
    [weighing.support, weighing.contradiction, weighing.strength].map(f64::to_bits)
}

proptest! {
    #[test]
    fn order_changes_no_bit((items, shuffled) in any_items().prop_flat_map(|items| {
        (Just(items.clone()), Just(items).prop_shuffle())
    })) {
        prop_assert_eq!(bits(weigh_items(items)), bits(weigh_items(shuffled)));
    }

    #[test]
    fn what_groups_are_called_changes_no_bit(items in any_items()) {
        let renamed = items.iter().cloned().map(|mut item| {
            let letter = item.independence_group.as_str().as_bytes()[0];
            let mirrored = char::from(b'z' - (letter - b'a')).to_string();
            item.independence_group = crate::name::IndependenceGroup::new(mirrored).unwrap();
            item
        }).collect();
        prop_assert_eq!(bits(weigh_items(items)), bits(weigh_items(renamed)));
    }

    #[test]
    fn repeating_changes_no_bit(items in any_items()) {
        let twice = items.iter().chain(&items).cloned().collect();
        prop_assert_eq!(bits(weigh_items(items)), bits(weigh_items(twice)));
    }

    #[test]
    fn what_is_not_direct_changes_no_bit(items in any_items()) {
        let direct = items.iter().filter(|i| i.quality.directness() == Directness::Direct).cloned().collect();
        prop_assert_eq!(bits(weigh_items(items)), bits(weigh_items(direct)));
    }

    #[test]
    fn more_support_never_weakens_and_more_contradiction_never_strengthens(items in any_items(), more in any_item()) {
        let before = weigh_items(items.clone());
        let with = |relation| {
            let mut items = items.clone();
            items.push(EvidenceItem { relation, ..more.clone() });
            weigh_items(items)
        };
        prop_assert!(with(Supports).strength >= before.strength);
        prop_assert!(with(Contradicts).strength <= before.strength);
    }

    #[test]
    fn weights_stay_between_zero_and_one_and_truth_follows_strength(items in any_items()) {
        let weighing = weigh_items(items);
        for value in [weighing.support, weighing.contradiction, weighing.strength] {
            prop_assert!((0.0..=1.0).contains(&value));
        }
        let expected = if weighing.strength >= 0.6 { Truth::Supported } else { Truth::Unverified };
        prop_assert_eq!(weighing.truth, expected);
    }
}

/// Whether the evidence carries its claim for a harness that takes one defence out.
fn carries_without(defence: Defence, items: &[EvidenceItem]) -> bool {
    let evidence = samples::evidence(&samples::claim(0, ToolResult), items.to_vec());
    weigh_by(&evidence, Rigour::without(&[defence])).truth == Truth::Supported
}

#[test]
fn each_rule_that_a_harness_takes_out_is_missed_and_no_other() {
    let document = [supports(ExternalDocument, Fresh, "g")];
    let inference = [supports(ModelInference, Unknown, "g")];
    let probe = [supports(SyntheticProbe, Fresh, "g")];
    let beside = [samples::item(
        1,
        Contextualizes,
        ExternalDocument,
        Fresh,
        "g",
    )];
    let veto = [
        supports(DirectObservation, Fresh, "a"),
        contradicts(ExternalDocument, Fresh, "b"),
    ];
    let twice = [
        supports(DirectObservation, Stale, "g"),
        samples::item(2, Supports, DirectObservation, Stale, "g"),
    ];
    for &defence in Defence::ALL {
        let reading_carries = defence == Defence::IndirectWeighsNothing;
        assert_eq!(carries_without(defence, &document), reading_carries);
        assert_eq!(carries_without(defence, &inference), reading_carries);
        assert!(!carries_without(defence, &probe));
        assert!(!carries_without(defence, &beside));
        let vetoed = defence == Defence::NoVetoByReading;
        assert_eq!(carries_without(defence, &veto), !vetoed);
        let counted_twice = defence == Defence::IndependentOrigins;
        assert_eq!(carries_without(defence, &twice), counted_twice);
    }
}
