use proptest::prelude::*;
use serde_json::json;

use super::*;

fn sample(class: &str, confidence: f64, came: Came) -> Sample {
    Sample {
        class: CalibrationClass::new(class).unwrap(),
        confidence: Confidence::new(confidence).unwrap(),
        came,
    }
}

fn samples(class: &str, said: &[(f64, Came)]) -> Vec<Sample> {
    said.iter()
        .map(|(confidence, came)| sample(class, *confidence, *came))
        .collect()
}

fn near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-12,
        "{found} is not {expected}"
    );
}

use Came::{False, True};

#[test]
fn the_numbers_are_those_that_one_gets_by_hand() {
    // Two bins: [0.9, 1] with 0.9, 0.9, 0.95 of which one came true; [0.2, 0.3) with 0.2, 0.25, none.
    let report = measure(samples(
        "a",
        &[
            (0.9, True),
            (0.9, False),
            (0.95, False),
            (0.2, False),
            (0.25, False),
        ],
    ));
    let [class] = &report.classes[..] else {
        panic!()
    };
    assert_eq!(class.n, 5);
    near(class.confidence.get(), 3.2 / 5.0);
    near(class.accuracy.get(), 0.2);
    near(class.gap.get(), 0.44);
    // |2.75 − 1| + |0.45 − 0|, over five.
    near(class.ece.get(), (1.75 + 0.45) / 5.0);
    // 0.01 + 0.81 + 0.9025 + 0.04 + 0.0625, over five.
    near(class.brier.get(), 1.825 / 5.0);
    assert!(class.flagged);
    assert_eq!(
        class.bins.iter().map(|bin| bin.n).collect::<Vec<_>>(),
        [0, 0, 2, 0, 0, 0, 0, 0, 0, 3]
    );
    near(class.bins[9].confidence.unwrap().get(), 2.75 / 3.0);
    near(class.bins[9].accuracy.unwrap().get(), 1.0 / 3.0);
    assert_eq!(class.bins[0].accuracy, None);
}

#[test]
fn errors_that_cancel_out_in_the_gap_are_seen_by_the_error() {
    let said = [
        (1.0, True),
        (1.0, False),
        (0.0, True),
        (0.0, False),
        (0.5, True),
        (0.5, False),
    ];
    let report = measure(samples("a", &said));
    let class = &report.classes[0];
    near(class.gap.get(), 0.0);
    near(class.ece.get(), 2.0 / 6.0);
    assert!(class.flagged);
}

#[test]
fn four_samples_say_nothing_and_five_do() {
    let wrong = |n: usize| measure(samples("a", &vec![(0.95, False); n]));
    assert!(!wrong(4).classes[0].flagged);
    assert!(wrong(5).classes[0].flagged);
    assert_eq!(
        wrong(5)
            .flagged()
            .map(CalibrationClass::as_str)
            .collect::<Vec<_>>(),
        ["a"]
    );
    assert!(!measure(samples("a", &[(0.95, True); 40])).classes[0].flagged);
    assert_eq!(measure([]), CalibrationReport::default());
}

#[test]
fn a_tenth_off_is_off() {
    let mut said = vec![(0.95, True); 17];
    said.extend([(0.95, False); 3]);
    // 0.95 − 0.85.
    let class = &measure(samples("a", &said)).classes[0];
    near(class.gap.get(), 0.1);
    assert!(class.flagged);
    said.push((0.95, True));
    assert!(!measure(samples("a", &said)).classes[0].flagged);
}

#[test]
fn the_ends_of_the_bins_are_where_they_are_said_to_be() {
    for (confidence, bin) in [
        (0.0, 0),
        (0.0999, 0),
        (0.1, 1),
        (0.3, 3),
        (0.7, 7),
        (0.9, 9),
        (1.0, 9),
    ] {
        assert_eq!(
            bin_of(Confidence::new(confidence).unwrap()),
            bin,
            "{confidence}"
        );
    }
}

#[test]
fn what_contradicts_itself_is_not_read() {
    let report = measure(samples("a", &[(0.95, False); 6]));
    let good = serde_json::to_value(&report).unwrap();
    assert_eq!(
        serde_json::from_value::<CalibrationReport>(good.clone()).unwrap(),
        report
    );
    for (pointer, value, says) in [
        (
            "/classes/0/flagged",
            json!(false),
            "does not follow from its numbers",
        ),
        ("/classes/0/n", json!(0), "no samples"),
        ("/classes/0/n", json!(7), "do not hold its samples"),
        (
            "/classes/0/bins/9/n",
            json!(u64::MAX),
            "do not hold its samples",
        ),
        ("/classes/0/bins", json!([]), "do not hold its samples"),
        ("/classes/0/ece", json!(1.5), "out of range"),
        ("/classes/0/gap", json!(-1.5), "out of range"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        let said = serde_json::from_value::<CalibrationReport>(bad)
            .unwrap_err()
            .to_string();
        assert!(said.contains(says), "{pointer}: {said}");
    }
    assert!(Share::try_from(f64::NAN).is_err() && Gap::try_from(f64::NAN).is_err());
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let confidence = prop_oneof![Just(0.95), Just(0.0), Just(1.0), 0.0..=1.0f64];
    let class = prop::sample::select(&["a", "b", "c"]);
    (class, confidence, prop::sample::select(&[True, False]))
        .prop_map(|(class, confidence, came)| sample(class, confidence, came))
}

proptest! {
    #[test]
    fn every_number_is_in_its_range_and_every_sample_in_one_bin(
        all in prop::collection::vec(any_sample(), 0..80)
    ) {
        let report = measure(all.clone());
        prop_assert_eq!(report.samples(), all.len() as u64);
        for class in &report.classes {
            for share in [class.ece, class.brier, class.accuracy, class.confidence] {
                prop_assert!((0.0..=1.0).contains(&share.get()));
            }
            prop_assert!(class.gap.get().abs() <= class.ece.get() + 1e-9);
            prop_assert_eq!(class.bins.len(), BINS);
            prop_assert_eq!(class.bins.iter().map(|bin| bin.n).sum::<u64>(), class.n);
            prop_assert!(!class.flagged || class.n >= MIN_SAMPLES);
        }
        let json = serde_json::to_string(&report).unwrap();
        prop_assert_eq!(serde_json::from_str::<CalibrationReport>(&json).unwrap(), report);
    }

    #[test]
    fn the_order_of_samples_changes_no_bit(
        all in prop::collection::vec(any_sample(), 0..60).prop_flat_map(|all| {
            (Just(all.clone()), Just(all).prop_shuffle())
        })
    ) {
        let (one, other) = all;
        prop_assert_eq!(measure(one), measure(other));
    }
}

#[test]
fn a_report_with_a_class_twice_or_too_many_samples_is_none() {
    let one = measure([sample("a", 0.9, Came::True)]);
    let mut json = serde_json::to_value(&one).unwrap();
    let again = json["classes"][0].clone();
    json["classes"].as_array_mut().unwrap().push(again);
    let problem = serde_json::from_value::<CalibrationReport>(json.clone()).unwrap_err();
    assert!(
        problem.to_string().contains("more than one report"),
        "{problem}"
    );
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        json["classes"][at]["class"] = name.into();
        json["classes"][at]["n"] = u64::MAX.into();
        let bins = json["classes"][at]["bins"].as_array_mut().unwrap();
        let full = bins.iter_mut().find(|bin| bin["n"] != 0).unwrap();
        full["n"] = u64::MAX.into();
        json["classes"][at]["flagged"] = true.into();
    }
    let problem = serde_json::from_value::<CalibrationReport>(json).unwrap_err();
    assert!(problem.to_string().contains("more samples"), "{problem}");
}
