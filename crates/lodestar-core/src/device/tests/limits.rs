//! The settings: their defaults, and what is refused.

use std::time::Duration;

use serde_json::{Value, json};

use crate::device::health::LONGEST;
use crate::device::{DeviceSettings, SettingsError};
use crate::time::Timestamp;

fn read(value: &Value) -> Result<DeviceSettings, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(1_800_000_000_000_000 + micros).unwrap()
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let expected = json!({
        "attested_within_seconds": 30 * 24 * 60 * 60,
        "bad_signatures": 3,
        "bad_signatures_within_seconds": 60 * 60,
        "challenge_seconds": 24 * 60 * 60,
        "continuity_seconds": 24 * 60 * 60,
        "cooldown_seconds": 60 * 60,
        "gaps": 5,
        "gaps_within_seconds": 24 * 60 * 60,
        "heartbeat_seconds": 30,
        "issued_at_window_seconds": 300,
        "max_gap_seconds": 15 * 60,
        "nonces_kept_seconds": 600,
        "offline_after_seconds": 24 * 60 * 60,
        "runner_fresh_seconds": 5 * 60,
    });
    let defaults = DeviceSettings::default();
    assert_eq!(defaults.validate(), Ok(()));
    assert_eq!(serde_json::to_value(defaults).unwrap(), expected);
    assert_eq!(read(&expected), Ok(defaults));
    assert_eq!(read(&json!({})), Ok(defaults));
    let names = defaults.times().map(|(name, _)| name);
    let mut names: Vec<_> = names
        .chain(defaults.counts().map(|(name, _)| name))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        expected.as_object().unwrap().keys().collect::<Vec<_>>()
    );
}

#[test]
fn one_setting_can_be_changed_and_the_others_stay() {
    let settings = read(&json!({"heartbeat_seconds": 1, "gaps": 2})).unwrap();
    let expected = DeviceSettings {
        heartbeat: Duration::from_secs(1),
        gaps: 2,
        ..DeviceSettings::default()
    };
    assert_eq!(settings, expected);
}

#[test]
fn every_setting_has_to_be_something_and_within_reason() {
    let defaults = serde_json::to_value(DeviceSettings::default()).unwrap();
    let too_long = LONGEST.as_secs() + 1;
    for name in defaults.as_object().unwrap().keys() {
        let said = read(&json!({ name: 0 })).unwrap_err();
        assert_eq!(said, format!("`{name}` is 0; it has to be at least 1"));
        for value in [json!(-1), json!(1.5), json!("30"), Value::Null] {
            assert!(read(&json!({ name: value })).is_err(), "{name} {value}");
        }
        if name.ends_with("_seconds") {
            for value in [too_long, u64::MAX] {
                let said = read(&json!({ name: value })).unwrap_err();
                assert!(
                    said.starts_with(&format!("`{name}` is not a whole")),
                    "{said}"
                );
            }
        }
    }
    assert!(read(&json!({"heartbeats_seconds": 30})).is_err());
    let fraction = DeviceSettings {
        cooldown: Duration::from_millis(1500),
        ..DeviceSettings::default()
    };
    let refused = Err(SettingsError::OutOfRange("cooldown_seconds"));
    assert_eq!(fraction.validate(), refused);
}

#[test]
fn a_limit_that_nobody_could_keep_is_refused() {
    for (shorter, longer) in [
        ("heartbeat_seconds", "max_gap_seconds"),
        ("heartbeat_seconds", "runner_fresh_seconds"),
        ("max_gap_seconds", "continuity_seconds"),
        ("max_gap_seconds", "offline_after_seconds"),
    ] {
        let mut settings = serde_json::to_value(DeviceSettings::default()).unwrap();
        // Everything as long as can be, so that only this pair is out of order.
        for time in [
            "max_gap_seconds",
            "runner_fresh_seconds",
            "continuity_seconds",
            "offline_after_seconds",
        ] {
            settings[time] = json!(200_000);
        }
        settings[longer] = json!(100_000);
        settings[shorter] = json!(100_000);
        assert!(read(&settings).is_ok(), "{settings}");
        settings[shorter] = json!(100_001);
        let said = read(&settings).unwrap_err();
        assert_eq!(said, format!("`{shorter}` is longer than `{longer}`"));
    }
}

#[test]
fn nonces_are_remembered_for_as_long_as_a_statement_can_be_taken() {
    let settings = |window: u64, kept: u64| {
        read(&json!({"issued_at_window_seconds": window, "nonces_kept_seconds": kept}))
    };
    assert!(settings(300, 600).is_ok());
    assert!(settings(300, 599).unwrap_err().contains("taken twice"));

    // Seen as early as it could be, it can be taken again until the end of its window.
    let defaults = DeviceSettings::default();
    let (seen, window) = (at(0), defaults.issued_at_window);
    let issued = seen.checked_add(window).unwrap();
    let last = issued.checked_add(window).unwrap();
    assert!(!defaults.may_forget_nonce(seen, last));
    let after = last.checked_add(Duration::from_micros(1)).unwrap();
    assert!(defaults.may_forget_nonce(seen, after));
    assert!(!defaults.may_forget_nonce(after, seen));
}

#[test]
fn a_runner_is_fresh_for_five_minutes() {
    let settings = DeviceSettings::default();
    let fresh = |last, now| settings.is_runner_fresh(last, now);
    assert!(!fresh(None, at(0)));
    assert!(fresh(Some(at(0)), at(0)));
    assert!(fresh(Some(at(0)), at(300_000_000)));
    assert!(!fresh(Some(at(0)), at(300_000_001)));
}

#[test]
fn a_challenge_holds_for_a_day_and_strikes_are_kept_as_long_as_any_counts() {
    let settings = DeviceSettings::default();
    assert_eq!(settings.challenge_expires(at(0)), at(86_400_000_000));
    assert_eq!(settings.challenge_expires(Timestamp::MAX), Timestamp::MAX);
    for name in [
        "bad_signatures_within_seconds",
        "gaps_within_seconds",
        "cooldown_seconds",
    ] {
        let settings = read(&json!({ name: 100_000 })).unwrap();
        assert_eq!(settings.strikes_kept(), Duration::from_secs(100_000));
    }
}
