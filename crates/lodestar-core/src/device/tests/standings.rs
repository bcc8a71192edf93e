//! What a standing makes of heartbeats, strikes, attestations and time.

use std::time::Duration;

use proptest::prelude::*;

use crate::device::DeviceActor::{Owner, Platform, Server};
use crate::device::DeviceLevel::{Approved, Offline, Pending, Trusted, Unhealthy};
use crate::device::{
    Cause, DeviceEvent, DeviceLevel, DeviceSettings, RefusalReason, Standing, StrikeKind, Strikes,
};
use crate::time::Timestamp;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

fn at(seconds: u64) -> Timestamp {
    let start = Timestamp::from_unix_micros(1_800_000_000_000_000).unwrap();
    start.checked_add(Duration::from_secs(seconds)).unwrap()
}

fn a_moment_before(seconds: u64) -> Timestamp {
    Timestamp::from_unix_micros(at(seconds).unix_micros() - 1).unwrap()
}

fn settings() -> DeviceSettings {
    DeviceSettings::default()
}

fn standing(level: DeviceLevel) -> Standing {
    Standing {
        challenge_passed: true,
        continuous_since: None,
        last_attested: None,
        last_heartbeat: None,
        level,
        level_since: at(0),
    }
}

/// A device that beat at every minute, approved at the first.
fn beating(level: DeviceLevel, until: u64) -> Standing {
    Standing {
        continuous_since: Some(at(0)),
        last_heartbeat: Some(at(until)),
        ..standing(level)
    }
}

fn due(standing: &Standing, now: Timestamp) -> Option<(DeviceEvent, Cause)> {
    due_with(standing, Strikes::default(), now)
}

fn due_with(standing: &Standing, strikes: Strikes, now: Timestamp) -> Option<(DeviceEvent, Cause)> {
    let due = standing.due(&strikes, &settings(), now)?;
    Some((due.event, due.cause))
}

#[test]
fn a_device_is_registered_challenged_approved_and_earns_trust() {
    assert!(Standing::registered(Server, at(0)).is_err());
    let device = Standing::registered(Owner, at(0)).unwrap();
    assert_eq!((device.level, device.level_since), (Pending, at(0)));

    let open = device
        .apply(DeviceEvent::Approve, Owner, at(1))
        .unwrap_err();
    assert_eq!(open.reason, RefusalReason::ChallengeOpen);
    let mut device = device
        .passed()
        .apply(DeviceEvent::Approve, Owner, at(10))
        .unwrap();
    assert_eq!((device.level, device.level_since), (Approved, at(10)));

    let first = 40;
    for second in (first..=first + DAY).step_by(30) {
        assert_eq!(due(&device, at(second)), None, "{second}");
        let beat = device.beat(&settings(), at(second));
        assert_eq!(beat.gap, None);
        device = beat.standing;
    }
    assert_eq!(device.continuous_since, Some(at(first)));
    let now = at(first + DAY);
    assert_eq!(due(&device, now), None);
    assert_eq!(
        device.doubt(&settings(), now),
        Some(Cause::NotAttested { last: None })
    );
    let device = device.attested(now);
    assert_eq!(due(&device, a_moment_before(first + DAY)), None);
    assert_eq!(
        due(&device, now),
        Some((DeviceEvent::Promote, Cause::Earned))
    );
    let device = device.apply(DeviceEvent::Promote, Server, now).unwrap();
    assert_eq!(device.level, Trusted);
    assert_eq!(due(&device, now), None);
}

#[test]
fn heartbeats_before_approval_earn_nothing() {
    let pending = beating(Pending, DAY);
    let approved = pending.apply(DeviceEvent::Approve, Owner, at(DAY)).unwrap();
    let device = approved
        .attested(at(DAY))
        .beat(&settings(), at(DAY))
        .standing;
    assert_eq!(device.continuous_since, Some(at(DAY)));
    assert_eq!(due(&device, at(DAY)), None);
}

#[test]
fn fifteen_minutes_of_silence_are_no_gap_and_more_are() {
    let before = beating(Trusted, 0);
    let edge = before.beat(&settings(), at(15 * MINUTE));
    assert_eq!(edge.gap, None);
    assert_eq!(edge.standing.continuous_since, Some(at(0)));
    let now = at(15 * MINUTE + 1);
    let beyond = before.beat(&settings(), now);
    assert_eq!(beyond.gap, Some(Duration::from_secs(15 * MINUTE + 1)));
    assert_eq!(beyond.standing.continuous_since, Some(now));
    assert_eq!(beyond.standing.last_heartbeat, Some(now));
}

#[test]
fn a_gap_of_a_device_without_standing_is_no_strike() {
    for &level in DeviceLevel::ALL {
        let beat = beating(level, 0).beat(&settings(), at(HOUR));
        assert_eq!(beat.gap.is_some(), level.gathers_strikes(), "{level}");
        assert_eq!(beat.standing.continuous_since, Some(at(HOUR)), "{level}");
    }
}

#[test]
fn a_clock_that_was_set_back_makes_no_gap_and_no_heartbeat_younger() {
    let device = beating(Approved, HOUR);
    let beat = device.beat(&settings(), at(0));
    assert_eq!(beat.gap, None);
    assert_eq!(beat.standing, device);
    let device = device.attested(at(HOUR));
    assert_eq!(device.attested(at(0)), device);
}

#[test]
fn trust_ends_with_continuity_and_with_the_last_attestation() {
    let device = beating(Trusted, 40 * DAY).attested(at(10 * DAY));
    assert_eq!(due(&device, at(40 * DAY)), None);
    let last = Some(at(10 * DAY));
    let later = device.beat(&settings(), at(40 * DAY + 1)).standing;
    assert_eq!(
        due(&later, at(40 * DAY + 1)),
        Some((DeviceEvent::Demote, Cause::NotAttested { last }))
    );

    let device = beating(Trusted, 2 * DAY).attested(at(DAY));
    assert_eq!(due(&device, at(2 * DAY + 15 * MINUTE)), None);
    assert_eq!(
        due(&device, at(2 * DAY + 15 * MINUTE + 1)),
        Some((DeviceEvent::Demote, Cause::NotContinuous { since: None }))
    );
    let returned = device.beat(&settings(), at(2 * DAY + HOUR)).standing;
    let since = Some(at(2 * DAY + HOUR));
    assert_eq!(
        due(&returned, at(2 * DAY + HOUR)),
        Some((DeviceEvent::Demote, Cause::NotContinuous { since }))
    );
}

#[test]
fn a_day_of_silence_is_offline_and_a_heartbeat_ends_it() {
    for level in [Approved, Trusted] {
        let device = beating(level, HOUR).attested(at(HOUR));
        let silent = at(HOUR + DAY);
        let before = due(&device, a_moment_before(HOUR + DAY));
        assert!(!matches!(before, Some((DeviceEvent::GoOffline, _))));
        let last = Some(at(HOUR));
        assert_eq!(
            due(&device, silent),
            Some((DeviceEvent::GoOffline, Cause::Silent { last }))
        );
        let offline = device
            .apply(DeviceEvent::GoOffline, Server, silent)
            .unwrap();
        assert_eq!(due(&offline, at(9 * DAY)), None);
        let now = at(9 * DAY);
        let beat = offline.beat(&settings(), now);
        assert!(beat.gap.is_some());
        assert_eq!(
            due(&beat.standing, now),
            Some((DeviceEvent::Return, Cause::Heard { at: now }))
        );
        let returned = beat
            .standing
            .apply(DeviceEvent::Return, Server, now)
            .unwrap();
        assert_eq!(returned.level, Approved);
        assert_eq!(due(&returned, now), None, "trust is earned anew");
    }
}

#[test]
fn a_device_that_never_beat_is_silent_since_it_was_approved() {
    let device = standing(Approved);
    assert_eq!(due(&device, a_moment_before(DAY)), None);
    let silent = Some((DeviceEvent::GoOffline, Cause::Silent { last: None }));
    assert_eq!(due(&device, at(DAY)), silent);
    let offline = device
        .apply(DeviceEvent::GoOffline, Server, at(DAY))
        .unwrap();
    assert_eq!(due(&offline, at(DAY)), None);
    assert_eq!(due(&offline, at(3 * DAY)), None);
}

#[test]
fn strikes_count_for_their_time_and_no_longer() {
    let strikes = [
        (StrikeKind::BadSignature, at(0)),
        (StrikeKind::BadSignature, at(1)),
        (StrikeKind::Gap, at(0)),
        (StrikeKind::Gap, at(1)),
        (StrikeKind::Violation, at(1)),
    ];
    let count = |now| {
        let counted = Strikes::count(strikes, &settings(), now);
        (counted.bad_signatures, counted.gaps, counted.violations)
    };
    assert_eq!(count(a_moment_before(HOUR)), (2, 2, 1));
    assert_eq!(count(at(HOUR)), (1, 2, 1));
    assert_eq!(count(at(HOUR + 1)), (0, 2, 0));
    assert_eq!(count(at(DAY)), (0, 1, 0));
    assert_eq!(count(at(DAY + 1)), (0, 0, 0));
    assert_eq!(
        count(at(0)),
        (2, 2, 1),
        "whatever a clock that was set back says"
    );
}

#[test]
fn three_bad_signatures_five_gaps_or_one_violation_make_a_device_unhealthy() {
    let counts = |bad_signatures, gaps, violations| Strikes {
        bad_signatures,
        gaps,
        violations,
    };
    for level in [Approved, Trusted, Offline] {
        let device = beating(level, 2 * DAY).attested(at(DAY));
        let now = at(2 * DAY);
        let unhealthy = |strikes| match due_with(&device, strikes, now) {
            Some((DeviceEvent::GoUnhealthy, cause)) => Some(cause),
            _ => None,
        };
        assert_eq!(unhealthy(counts(2, 4, 0)), None);
        assert_eq!(
            unhealthy(counts(3, 4, 0)),
            Some(Cause::BadSignatures { count: 3 })
        );
        assert_eq!(unhealthy(counts(2, 5, 0)), Some(Cause::Gaps { count: 5 }));
        assert_eq!(unhealthy(counts(3, 5, 1)), Some(Cause::Violation));
        assert_eq!(unhealthy(counts(0, 0, 1)), Some(Cause::Violation));
    }
    for &level in DeviceLevel::ALL {
        if !matches!(level, Approved | Trusted | Offline) {
            let device = beating(level, 2 * DAY);
            let all = counts(9, 9, 9);
            assert_eq!(due_with(&device, all, at(2 * DAY)), None, "{level}");
        }
    }
}

#[test]
fn leaving_unhealthy_takes_the_cooldown_a_heartbeat_and_no_limit_that_is_passed() {
    let unhealthy = Standing {
        level_since: at(DAY),
        ..beating(Unhealthy, DAY + HOUR)
    };
    let now = at(DAY + HOUR);
    let recover = Some((DeviceEvent::Recover, Cause::Healthy));
    assert_eq!(due(&unhealthy, now), recover);
    assert_eq!(due(&unhealthy, a_moment_before(DAY + HOUR)), None);
    let silent = Standing {
        last_heartbeat: Some(at(DAY)),
        ..unhealthy
    };
    assert_eq!(due(&silent, now), None);
    let edge = Standing {
        last_heartbeat: Some(at(DAY + 45 * MINUTE)),
        ..unhealthy
    };
    assert_eq!(due(&edge, now), recover);
    let gaps = |gaps| Strikes {
        gaps,
        ..Strikes::default()
    };
    assert_eq!(due_with(&unhealthy, gaps(5), now), None);
    assert_eq!(due_with(&unhealthy, gaps(4), now), recover);
    let unanswered = Standing {
        challenge_passed: false,
        ..unhealthy
    };
    assert_eq!(due(&unanswered, now), None);

    let recovered = unhealthy
        .attested(now)
        .apply(DeviceEvent::Recover, Server, now)
        .unwrap();
    assert_eq!(recovered.level, Approved);
    assert_eq!(due(&recovered, now), None, "trust is earned anew");
    assert_eq!(recovered.continuous_since, None);
}

#[test]
fn a_violation_that_made_a_device_unhealthy_does_not_do_so_again_after_the_cooldown() {
    let violation = [(StrikeKind::Violation, at(DAY))];
    let device = beating(Trusted, DAY);
    let strikes = Strikes::count(violation, &settings(), at(DAY));
    let (event, cause) = due_with(&device, strikes, at(DAY)).unwrap();
    assert_eq!(cause, Cause::Violation);
    let device = device.apply(event, Server, at(DAY)).unwrap();
    let now = at(DAY + HOUR);
    let device = device.beat(&settings(), now).standing;
    let strikes = Strikes::count(violation, &settings(), now);
    let (event, _) = due_with(&device, strikes, now).unwrap();
    assert_eq!(event, DeviceEvent::Recover);
    let device = device.apply(event, Server, now).unwrap();
    assert_eq!(due_with(&device, strikes, now), None);
}

#[test]
fn a_new_key_leaves_good_standing_approved_and_opens_a_challenge_elsewhere() {
    for &level in DeviceLevel::ALL {
        let device = beating(level, DAY).attested(at(DAY));
        let rotated = device.apply(DeviceEvent::RotateKey, Owner, at(DAY));
        if level.is_permanent() {
            assert_eq!(rotated.unwrap_err().reason, RefusalReason::Permanent);
            continue;
        }
        let rotated = rotated.unwrap();
        let good = matches!(level, Approved | Trusted);
        assert_eq!(rotated.level, if good { Approved } else { level });
        assert_eq!(rotated.challenge_passed, good, "{level}");
        assert_eq!(rotated.continuous_since, None);
        let moved = level == Trusted;
        assert_eq!(rotated.level_since, if moved { at(DAY) } else { at(0) });
        let beat = rotated.beat(&settings(), at(DAY + HOUR)).standing;
        assert_eq!(due(&beat, at(DAY + HOUR)), None, "{level}");
        let answered = due(&beat.passed(), at(DAY + HOUR)).map(|(event, _)| event);
        let expected = match level {
            Offline => Some(DeviceEvent::Return),
            Unhealthy => Some(DeviceEvent::Recover),
            _ => None,
        };
        assert_eq!(answered, expected, "{level}");
    }
}

#[test]
fn nothing_is_approved_before_the_challenge_is_answered() {
    for (level, event, actor) in [
        (Pending, DeviceEvent::Approve, Owner),
        (Offline, DeviceEvent::Return, Server),
        (Unhealthy, DeviceEvent::Recover, Server),
    ] {
        let open = Standing {
            challenge_passed: false,
            ..standing(level)
        };
        let refused = open.apply(event, actor, at(1)).unwrap_err();
        assert_eq!(refused.reason, RefusalReason::ChallengeOpen);
        let answered = open.passed().apply(event, actor, at(1)).unwrap();
        assert_eq!((answered.level, answered.level_since), (Approved, at(1)));
    }
    let blocked = standing(Pending).apply(DeviceEvent::Block, Platform, at(1));
    assert_eq!(blocked.unwrap().level, DeviceLevel::Blocked);
}

#[test]
fn causes_say_what_it_was_and_read_back() {
    let causes = [
        (Cause::Violation, "a run did not keep to its policy"),
        (
            Cause::BadSignatures { count: 3 },
            "3 signatures did not verify",
        ),
        (Cause::Gaps { count: 5 }, "heartbeats stopped 5 times"),
        (Cause::Silent { last: None }, "nothing was ever heard"),
        (
            Cause::Healthy,
            "the cooldown is over and the health check passed",
        ),
        (
            Cause::Earned,
            "heartbeats are continuous and an attestation counted",
        ),
        (
            Cause::NotContinuous { since: None },
            "heartbeats do not come",
        ),
        (
            Cause::NotAttested { last: None },
            "no attestation ever counted",
        ),
    ];
    for (cause, words) in causes {
        assert_eq!(cause.to_string(), words);
    }
    let dated = [
        Cause::Silent { last: Some(at(0)) },
        Cause::Heard { at: at(0) },
        Cause::NotContinuous { since: Some(at(0)) },
        Cause::NotAttested { last: Some(at(0)) },
    ];
    for cause in dated {
        assert!(cause.to_string().ends_with(&at(0).to_string()), "{cause}");
    }
    for cause in causes.map(|(cause, _)| cause).into_iter().chain(dated) {
        let json = serde_json::to_value(cause).unwrap();
        assert_eq!(serde_json::from_value::<Cause>(json).unwrap(), cause);
    }
}

fn any_standing() -> impl Strategy<Value = Standing> {
    let moment = || prop::option::of((0..100 * DAY).prop_map(at));
    (
        prop::sample::select(DeviceLevel::ALL),
        any::<bool>(),
        moment(),
        moment(),
        moment(),
        (0..100 * DAY).prop_map(at),
    )
        .prop_map(
            |(level, challenge, continuous, attested, heartbeat, since)| Standing {
                challenge_passed: challenge,
                continuous_since: continuous,
                last_attested: attested,
                last_heartbeat: heartbeat,
                level,
                level_since: since,
            },
        )
}

fn any_strikes() -> impl Strategy<Value = Strikes> {
    (0..5u32, 0..7u32, 0..2u32).prop_map(|(bad_signatures, gaps, violations)| Strikes {
        bad_signatures,
        gaps,
        violations,
    })
}

proptest! {
    #[test]
    fn what_is_due_may_be_done_and_comes_to_an_end(
        mut standing in any_standing(),
        strikes in any_strikes(),
        now in (0..120 * DAY).prop_map(at),
    ) {
        let mut steps = 0;
        while let Some(due) = standing.due(&strikes, &settings(), now) {
            let after = standing.apply(due.event, Server, now);
            prop_assert!(after.is_ok(), "{:?}: {:?}", due, after);
            standing = after.unwrap();
            steps += 1;
            prop_assert!(steps <= 2, "{:?} {:?}", standing, due);
        }
        if standing.level == Trusted {
            prop_assert_eq!(standing.doubt(&settings(), now), None);
            prop_assert_eq!(strikes.limit(&settings()), None);
        }
    }

    #[test]
    fn no_heartbeat_and_no_attestation_moves_a_device_by_itself(
        standing in any_standing(),
        now in (0..120 * DAY).prop_map(at),
    ) {
        prop_assert_eq!(standing.beat(&settings(), now).standing.level, standing.level);
        prop_assert_eq!(standing.attested(now).level, standing.level);
        prop_assert_eq!(standing.passed().level, standing.level);
    }
}
