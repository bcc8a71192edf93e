//! Devices: keys, challenges, heartbeats, nonces, strikes, bindings.

use lodestar_core::device::{DeviceActor, DeviceEvent, DeviceLevel, StrikeKind};
use lodestar_gateway::store::bindings::{self, Binding};
use lodestar_gateway::store::challenges::{self, Challenge};
use lodestar_gateway::store::devices::{self, HeartbeatSeen, NewDevice};
use lodestar_gateway::store::keys::{self, DeviceKeys};
use lodestar_gateway::store::strikes::{self, Strike};
use lodestar_gateway::store::{Sql, accounts, levels, nonces, runners};

use crate::store::world::{
    a_challenge, a_device, a_move, account, an_account, approve, at, beat, device, first_keys,
    furnish, key, nonce, ordered, refusal, runner, write,
};

fn with_accounts(sql: &mut dyn Sql) {
    write(sql, |sql| {
        for n in [1, 2] {
            assert!(accounts::add(sql, &an_account(n))?);
        }
        Ok(())
    });
}

pub(super) fn a_device_begins_with_nothing(sql: &mut dyn Sql) {
    with_accounts(sql);
    write(sql, |sql| {
        assert!(devices::add(sql, &a_device(1, 1))?);
        let found = devices::get(sql, device(1))?.unwrap();
        assert_eq!(found.level, DeviceLevel::Pending);
        assert_eq!((found.level_since, found.registered_at), (at(1), at(1)));
        assert_eq!((found.key, found.log_key), (None, None));
        assert_eq!(found.gateway_status, "disconnected");
        assert!(!found.paused && found.last_heartbeat.is_none());
        assert!(!found.standing().challenge_passed);
        let history = levels::history(sql, device(1))?;
        assert_eq!(history.len(), 1);
        assert_eq!(
            (history[0].from, history[0].to),
            (None, DeviceLevel::Pending)
        );
        assert_eq!(history[0].event, DeviceEvent::Register);
        assert_eq!(history[0].actor, DeviceActor::Owner);
        assert_eq!(devices::get(sql, device(2))?, None);
        Ok(())
    });
}

pub(super) fn names_are_told_apart_within_an_account(sql: &mut dyn Sql) {
    with_accounts(sql);
    write(sql, |sql| {
        assert!(devices::add(sql, &a_device(1, 1))?);
        assert!(!devices::add(sql, &a_device(1, 1))?);
        let same_name = |n, of| NewDevice {
            id: device(n),
            account: account(of),
            ..a_device(1, 1)
        };
        assert!(!devices::add(sql, &same_name(2, 1))?);
        assert!(devices::add(sql, &same_name(2, 2))?);
        assert_eq!(levels::history(sql, device(1))?.len(), 1);
        Ok(())
    });
    let nobody = NewDevice {
        account: account(9),
        ..a_device(9, 9)
    };
    refusal(sql, |sql| devices::add(sql, &nobody));
}

pub(super) fn devices_are_listed_page_by_page(sql: &mut dyn Sql) {
    with_accounts(sql);
    write(sql, |sql| {
        for n in [5, 3, 4] {
            assert!(devices::add(sql, &a_device(n, 1))?);
        }
        assert!(devices::add(sql, &a_device(6, 2))?);
        let ids = |found: Vec<devices::Device>| found.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(
            ids(devices::list(sql, account(1), None, 2)?),
            [device(3), device(4)]
        );
        assert_eq!(
            ids(devices::list(sql, account(1), Some(device(4)), 9)?),
            [device(5)]
        );
        let pending = DeviceLevel::Pending;
        assert_eq!(ids(devices::at_level(sql, pending, None, 3)?).len(), 3);
        assert_eq!(
            ids(devices::at_level(sql, pending, Some(device(5)), 3)?),
            [device(6)]
        );
        assert_eq!(
            ids(devices::at_level(sql, DeviceLevel::Trusted, None, 3)?),
            []
        );
        Ok(())
    });
}

pub(super) fn a_challenge_is_passed_once_and_in_time(sql: &mut dyn Sql) {
    with_accounts(sql);
    write(sql, |sql| devices::add(sql, &a_device(1, 1)));
    refusal(sql, |sql| challenges::open(sql, &a_challenge(1, 1)));
    write(sql, |sql| {
        keys::set_key(sql, &first_keys(1))?;
        assert_eq!(challenges::current(sql, device(1))?, None);
        assert!(challenges::open(sql, &a_challenge(1, 1))?);
        assert!(!challenges::open(sql, &a_challenge(1, 1))?);
        assert_eq!(
            challenges::current(sql, device(1))?,
            Some(a_challenge(1, 1))
        );
        assert!(!challenges::pass(sql, device(1), nonce(2), at(5))?);
        assert!(
            !challenges::pass(sql, device(1), nonce(1), at(1))?,
            "too early"
        );
        assert!(
            !challenges::pass(sql, device(1), nonce(1), at(2 + 86_400))?,
            "too late"
        );
        assert!(challenges::pass(sql, device(1), nonce(1), at(5))?);
        assert!(!challenges::pass(sql, device(1), nonce(1), at(6))?, "once");
        let passed = challenges::current(sql, device(1))?.unwrap();
        assert_eq!(passed.passed_at, Some(at(5)));
        let found = devices::get(sql, device(1))?.unwrap();
        assert_eq!(found.challenge_passed_at, Some(at(5)));
        assert!(found.standing().challenge_passed);
        Ok(())
    });
}

pub(super) fn only_the_last_challenge_counts(sql: &mut dyn Sql) {
    with_accounts(sql);
    write(sql, |sql| {
        assert!(devices::add(sql, &a_device(1, 1))?);
        keys::set_key(sql, &first_keys(1))?;
        assert!(challenges::open(sql, &a_challenge(1, 7))?);
        assert!(challenges::open(sql, &a_challenge(1, 3))?);
        assert!(!challenges::pass(sql, device(1), nonce(7), at(5))?);
        assert!(challenges::pass(sql, device(1), nonce(3), at(5))?);
        Ok(())
    });
}

fn rotation(sql: &mut dyn Sql, n: u64, to: u8) -> DeviceKeys {
    let order = write(sql, |sql| ordered(sql, &format!("rotate to {to}"), 1));
    DeviceKeys {
        device: device(n),
        key: key(to),
        log_key: key(to + 1),
        at: at(30),
        order: Some(order),
    }
}

pub(super) fn keys_are_given_once_and_then_rotated(sql: &mut dyn Sql) {
    furnish(sql);
    let first = DeviceKeys {
        order: None,
        key: key(66),
        ..first_keys(1)
    };
    refusal(sql, |sql| keys::set_key(sql, &first));
    let next = rotation(sql, 1, 66);
    write(sql, |sql| {
        keys::set_key(sql, &next)?;
        let found = devices::get(sql, device(1))?.unwrap();
        assert_eq!((found.key, found.log_key), (Some(key(66)), Some(key(67))));
        assert_eq!(found.level, DeviceLevel::Approved, "it was trusted");
        assert_eq!(found.level_since, at(30));
        assert_eq!(
            found.challenge_passed_at,
            Some(at(3)),
            "the new key signed the rotation"
        );
        let last = levels::history(sql, device(1))?.pop().unwrap();
        assert_eq!(
            (last.event, last.order),
            (DeviceEvent::RotateKey, next.order)
        );
        assert_eq!(
            keys::history(sql, device(1))?,
            [first_keys(1), next.clone()]
        );
        Ok(())
    });
    refusal(sql, |sql| keys::set_key(sql, &next));
    // Where it is approved, it stays approved, and since when.
    let third = DeviceKeys {
        at: at(31),
        ..rotation(sql, 1, 77)
    };
    write(sql, |sql| {
        keys::set_key(sql, &third)?;
        let found = devices::get(sql, device(1))?.unwrap();
        assert_eq!(
            (found.level, found.level_since),
            (DeviceLevel::Approved, at(30))
        );
        assert_eq!(levels::history(sql, device(1))?.len(), 5);
        Ok(())
    });
}

pub(super) fn a_rotation_out_of_good_standing_opens_the_challenge(sql: &mut dyn Sql) {
    furnish(sql);
    let (from, to) = (DeviceLevel::Trusted, DeviceLevel::Offline);
    let silent = a_move(1, from, to, DeviceEvent::GoOffline, DeviceActor::Server);
    write(sql, |sql| levels::set_level(sql, &silent));
    let next = rotation(sql, 1, 66);
    write(sql, |sql| keys::set_key(sql, &next));
    let found = write(sql, |sql| devices::get(sql, device(1))).unwrap();
    assert_eq!(
        (found.level, found.challenge_passed_at),
        (DeviceLevel::Offline, None)
    );
    let (from, to) = (DeviceLevel::Offline, DeviceLevel::Approved);
    let back = a_move(1, from, to, DeviceEvent::Return, DeviceActor::Server);
    let because = refusal(sql, |sql| levels::set_level(sql, &back));
    assert!(because.contains("passed its challenge"), "{because}");
    write(sql, |sql| {
        // The old challenge was for the old key.
        assert!(!challenges::pass(sql, device(1), nonce(1), at(32))?);
        let anew = Challenge {
            nonce: nonce(50),
            ..a_challenge(1, 1)
        };
        assert!(challenges::open(sql, &anew)?);
        assert!(challenges::pass(sql, device(1), nonce(50), at(32))?);
        levels::set_level(sql, &back)
    });
}

pub(super) fn a_heartbeat_is_noted(sql: &mut dyn Sql) {
    with_accounts(sql);
    write(sql, |sql| {
        approve(sql, 1, 1)?;
        let seen = HeartbeatSeen {
            device: device(1),
            at: at(20),
            continuous_since: Some(at(19)),
            gateway_status: "degraded",
            daemon_version: "1.2.3",
        };
        assert!(devices::note_heartbeat(sql, &seen)?);
        let found = devices::get(sql, device(1))?.unwrap();
        assert_eq!(found.last_heartbeat, Some(at(20)));
        assert_eq!(found.continuous_since, Some(at(19)));
        assert_eq!(
            (&*found.gateway_status, &*found.daemon_version),
            ("degraded", "1.2.3")
        );
        let mut standing = found.standing();
        standing.continuous_since = None;
        assert!(devices::note_standing(sql, device(1), &standing)?);
        assert!(devices::set_paused(sql, device(1), true)?);
        let found = devices::get(sql, device(1))?.unwrap();
        assert_eq!(found.standing(), standing);
        assert!(found.paused);
        for nobody in [
            devices::note_heartbeat(
                sql,
                &HeartbeatSeen {
                    device: device(9),
                    ..seen
                },
            )?,
            devices::note_standing(sql, device(9), &standing)?,
            devices::set_paused(sql, device(9), true)?,
        ] {
            assert!(!nobody);
        }
        Ok(())
    });
}

pub(super) fn a_runner_is_heard_of_through_its_device(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        assert!(runners::note_heartbeat(sql, device(1), runner(1), at(50))?);
        for (device, runner) in [
            (device(10), runner(1)),
            (device(2), runner(1)),
            (device(1), runner(2)),
            (device(1), runner(9)),
        ] {
            assert!(!runners::note_heartbeat(sql, device, runner, at(60))?);
        }
        assert!(bindings::unbind(sql, device(1), runner(1), at(55))?);
        assert!(!runners::note_heartbeat(sql, device(1), runner(1), at(60))?);
        let found = runners::get(sql, runner(1))?.unwrap();
        assert_eq!(found.last_heartbeat, Some(at(50)));
        Ok(())
    });
}

pub(super) fn nonces_are_a_device_s_own(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        assert!(nonces::spend(sql, device(1), nonce(5), at(20))?);
        assert!(!nonces::spend(sql, device(1), nonce(5), at(21))?);
        assert!(nonces::spend(sql, device(2), nonce(5), at(20))?);
        assert!(nonces::spend(sql, device(1), nonce(6), at(20))?);
        Ok(())
    });
    refusal(sql, |sql| nonces::spend(sql, device(99), nonce(5), at(20)));
}

pub(super) fn old_nonces_are_forgotten_so_many_at_a_time(sql: &mut dyn Sql) {
    with_accounts(sql);
    write(sql, |sql| {
        assert!(devices::add(sql, &a_device(1, 1))?);
        // Not in the order of their times: clocks are set back.
        for n in [9, 2, 7, 4, 5, 6, 3, 8, 1, 0] {
            assert!(nonces::spend(sql, device(1), nonce(n), at(n as i64))?);
        }
        assert_eq!(nonces::prune(sql, at(5), 3)?, 3);
        assert!(!nonces::spend(sql, device(1), nonce(3), at(50))?);
        assert_eq!(nonces::prune(sql, at(5), 3)?, 2);
        assert_eq!(nonces::prune(sql, at(5), 3)?, 0);
        assert!(!nonces::spend(sql, device(1), nonce(5), at(50))?, "not yet");
        assert!(
            nonces::spend(sql, device(1), nonce(4), at(50))?,
            "forgotten"
        );
        Ok(())
    });
}

pub(super) fn strikes_are_counted_and_forgotten(sql: &mut dyn Sql) {
    with_accounts(sql);
    write(sql, |sql| {
        for n in [1, 2] {
            assert!(devices::add(sql, &a_device(n, 1))?);
        }
        let strike = |kind, seconds| Strike {
            device: device(1),
            kind,
            at: at(seconds),
        };
        let all = [
            strike(StrikeKind::BadSignature, 10),
            strike(StrikeKind::BadSignature, 10),
            strike(StrikeKind::Gap, 15),
            strike(StrikeKind::BadSignature, 20),
            strike(StrikeKind::Violation, 30),
        ];
        for one in all {
            strikes::add(sql, one)?;
        }
        let mut count = |kind, since| strikes::count_since(sql, device(1), kind, at(since));
        assert_eq!(count(StrikeKind::BadSignature, 10)?, 3);
        assert_eq!(count(StrikeKind::BadSignature, 11)?, 1);
        assert_eq!(count(StrikeKind::Gap, 0)?, 1);
        assert_eq!(count(StrikeKind::Violation, 31)?, 0);
        assert_eq!(strikes::since(sql, device(1), at(15))?, all[2..]);
        assert_eq!(strikes::since(sql, device(2), at(0))?, []);
        assert_eq!(strikes::prune(sql, at(20), 2)?, 2);
        assert_eq!(strikes::prune(sql, at(20), 2)?, 1);
        assert_eq!(strikes::since(sql, device(1), at(0))?, all[3..]);
        Ok(())
    });
}

pub(super) fn bindings_begin_and_end(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        let first = bindings::active(sql, device(1), runner(1))?.unwrap();
        assert_eq!(first.bound_at, at(6));
        assert_eq!(bindings::active(sql, device(1), runner(2))?, None);
        let again = Binding {
            bound_at: at(40),
            order: ordered(sql, "bind again", 1)?,
            ..first.clone()
        };
        assert!(!bindings::bind(sql, &again)?, "they are bound");
        assert!(bindings::unbind(sql, device(1), runner(1), at(30))?);
        assert!(!bindings::unbind(sql, device(1), runner(1), at(31))?);
        assert_eq!(bindings::active(sql, device(1), runner(1))?, None);
        assert!(bindings::bind(sql, &again)?);
        let ended = Binding {
            unbound_at: Some(at(30)),
            ..first
        };
        assert_eq!(bindings::of_device(sql, device(1))?, [ended, again]);
        Ok(())
    });
}

pub(super) fn a_revoked_device_may_have_been_compromised(sql: &mut dyn Sql) {
    furnish(sql);
    refusal(sql, |sql| {
        devices::set_compromised_since(sql, device(1), at(5))
    });
    write(sql, |sql| {
        let (from, to) = (DeviceLevel::Trusted, DeviceLevel::Revoked);
        let mut end = a_move(1, from, to, DeviceEvent::Revoke, DeviceActor::Owner);
        end.order = Some(ordered(sql, "revoke", 1)?);
        levels::set_level(sql, &end)?;
        assert!(devices::set_compromised_since(sql, device(1), at(5))?);
        let found = devices::get(sql, device(1))?.unwrap();
        assert_eq!(found.compromised_since, Some(at(5)));
        beat(sql, 2, 99)
    });
    refusal(sql, |sql| {
        devices::set_compromised_since(sql, device(1), at(6))
    });
}
