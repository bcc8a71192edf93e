//! Devices, from their registration to their end, under a clock that the tests set.

use lodestar_core::device::DeviceLevel;
use lodestar_core::statement::{Envelope, Order};
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;

use crate::world::{
    HOUR, MINUTE, Machine, Owner, World, issued, key, name, on_both, signed, stated,
};

/// Beats for so long, often enough.
async fn beats(world: &World, machine: &Machine, minutes: u64) -> DeviceLevel {
    let mut level = None;
    for _ in 0..minutes.div_ceil(14) {
        world.hands.forward(14 * MINUTE);
        level = Some(machine.heartbeat(&[]).await.unwrap().level);
    }
    level.unwrap()
}

async fn level(owner: &Owner, machine: &Machine) -> DeviceLevel {
    owner.client.device(machine.id).await.unwrap().level
}

#[tokio::test]
async fn a_device_is_approved_once_it_answered_its_challenge_and_by_its_owner_only() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let machine = owner.device(&world, "laptop", 20).await;
        assert_eq!(level(&owner, &machine).await, DeviceLevel::Pending);
        assert_eq!(
            owner.approve(&machine).await,
            Err(Some(Code::ChallengeNotPassed))
        );
        // A wrong answer leaves it where it is, and is on record.
        let other = machine.answering(crate::world::nonce());
        let wrong = signed(other, &machine.key, world.now());
        let refused = machine.client.answer_challenge(machine.id, &wrong).await;
        assert_eq!(refused.unwrap_err().code(), Some(Code::ChallengeWrong));
        machine.answer().await.unwrap();
        assert_eq!(machine.answer().await, Err(Some(Code::NoChallenge)));
        // The order names the keys that the owner saw.
        let other = owner.order(Order::Approve {
            device: machine.id,
            key: key(99).public(),
            log_key: machine.log_key.public(),
        });
        assert_eq!(other.await, Err(Some(Code::StatementMismatch)));
        let done = owner.approve(&machine).await.unwrap();
        assert_eq!(done.level, Some(DeviceLevel::Approved));
        assert_eq!(
            owner.approve(&machine).await,
            Err(Some(Code::DeviceNotPending))
        );
    })
    .await;
}

#[tokio::test]
async fn a_device_without_a_key_has_no_challenge_until_it_has_one() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let asked = wire::RegisterDevice {
            name: name("laptop"),
            key: None,
            log_key: None,
        };
        let registered = owner.client.register_device(&asked).await.unwrap();
        assert_eq!(registered.challenge, None);
        let id = registered.device;
        let none = owner.client.challenge(id).await.unwrap_err();
        assert_eq!(none.code(), Some(Code::DeviceWithoutKey));
        let again = owner.client.register_device(&asked).await.unwrap_err();
        assert_eq!(again.code(), Some(Code::DeviceNameTaken));
        let keys = wire::SetKeys {
            key: key(20).public(),
            log_key: key(21).public(),
        };
        // The device's own token may not.
        let own = world.client(Some(&registered.token));
        let refused = own.set_keys(id, &keys).await.unwrap_err();
        assert_eq!(refused.code(), Some(Code::TokenKind));
        owner.client.set_keys(id, &keys).await.unwrap();
        let twice = owner.client.set_keys(id, &keys).await.unwrap_err();
        assert_eq!(twice.code(), Some(Code::DeviceHasKey));
        // Reissued, the old one is worth nothing; too old, neither is the new one.
        let machine = Machine {
            challenge: Some(own.challenge(id).await.unwrap().challenge.nonce),
            ..owner.device(&world, "other", 20).await
        };
        let first = machine.answering(crate::world::nonce());
        let first = signed(first, &machine.key, world.now());
        assert!(own.answer_challenge(id, &first).await.is_err());
        world.hands.forward(24 * HOUR);
        let late = Machine {
            id,
            client: own,
            ..machine
        };
        assert_eq!(late.answer().await, Err(Some(Code::ChallengeExpired)));
        let fresh = late.client.challenge(id).await.unwrap().challenge.nonce;
        let late = Machine {
            challenge: Some(fresh),
            ..late
        };
        late.answer().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_token_to_enrol_registers_one_device_and_is_used_up() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let enrol = wire::MakeToken {
            kind: wire::TokenKind::Enrol,
            device: None,
        };
        let made = owner.client.make_token(&enrol).await.unwrap();
        let enroller = world.client(Some(&made.token));
        assert_eq!(
            enroller.devices(None).await.unwrap_err().code(),
            Some(Code::TokenKind)
        );
        let asked = |called: &str| wire::RegisterDevice {
            name: name(called),
            key: Some(key(20).public()),
            log_key: Some(key(21).public()),
        };
        let registered = enroller.register_device(&asked("one")).await.unwrap();
        assert!(registered.challenge.is_some());
        let again = enroller.register_device(&asked("two")).await.unwrap_err();
        assert_eq!(again.code(), Some(Code::TokenInvalid));
        let late = owner.client.make_token(&enrol).await.unwrap();
        world.hands.forward(HOUR);
        let late = world.client(Some(&late.token));
        let late = late.register_device(&asked("two")).await.unwrap_err();
        assert_eq!(late.code(), Some(Code::TokenInvalid));
        // Taken back, a token opens nothing; and the service knows it at once.
        let token = owner.client.make_token(&enrol).await.unwrap();
        owner.client.revoke_token(token.id).await.unwrap();
        let gone = world.client(Some(&token.token));
        let gone = gone.register_device(&asked("two")).await.unwrap_err();
        assert_eq!(gone.code(), Some(Code::TokenInvalid));
        let listed = owner.client.tokens(None).await.unwrap().items;
        let spent = listed.iter().filter(|token| token.used_at.is_some());
        assert_eq!((listed.len(), spent.count()), (5, 1));
    })
    .await;
}

#[tokio::test]
async fn a_device_goes_offline_comes_back_falls_ill_and_recovers() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let machine = owner.approved(&world, "laptop", 20).await;
        assert_eq!(beats(&world, &machine, 60).await, DeviceLevel::Approved);
        // A day of silence.
        world.hands.forward(24 * HOUR);
        assert_eq!(level(&owner, &machine).await, DeviceLevel::Offline);
        let beaten = machine.heartbeat(&[]).await.unwrap();
        assert_eq!(beaten.level, DeviceLevel::Approved);
        // Five gaps within a day; the return was one.
        for gap in 2..=5 {
            world.hands.forward(16 * MINUTE);
            let beaten = machine.heartbeat(&[]).await.unwrap();
            let expected = match gap {
                5 => DeviceLevel::Unhealthy,
                _ => DeviceLevel::Approved,
            };
            assert_eq!(beaten.level, expected, "after gap {gap}");
        }
        // The cooldown alone does not cure it while the limit still holds; after a day of beats it does.
        assert_eq!(beats(&world, &machine, 120).await, DeviceLevel::Unhealthy);
        let cured = beats(&world, &machine, 24 * 60).await;
        assert_eq!(cured, DeviceLevel::Approved);
    })
    .await;
}

#[tokio::test]
async fn three_bad_signatures_make_a_device_unhealthy_and_nobody_else_can_cause_them() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let (anna, mallory) = (
            world.owner("anna", 10).await,
            world.owner("mallory", 12).await,
        );
        let machine = anna.approved(&world, "laptop", 20).await;
        let other = mallory.approved(&world, "laptop", 30).await;
        let path = format!("/v1/devices/{}/heartbeats", machine.id);
        let forged = signed(machine.beating(&[]), &key(66), world.now());
        // With another account's tokens, and with none: nothing counts.
        for _ in 0..4 {
            let answer = world.post(&path, &other.token, &stated(&forged)).await;
            assert_eq!(answer.code(), Some(Code::OtherDevice));
            let answer = world.post(&path, "lsgw_no", &stated(&forged)).await;
            assert_eq!(answer.code(), Some(Code::TokenInvalid));
        }
        assert_eq!(level(&anna, &machine).await, DeviceLevel::Approved);
        for _ in 0..2 {
            let answer = world.post(&path, &machine.token, &stated(&forged)).await;
            assert_eq!(answer.code(), Some(Code::SignatureInvalid));
            assert_eq!(level(&anna, &machine).await, DeviceLevel::Approved);
        }
        world.post(&path, &machine.token, &stated(&forged)).await;
        assert_eq!(level(&anna, &machine).await, DeviceLevel::Unhealthy);
        assert_eq!(level(&mallory, &other).await, DeviceLevel::Approved);
        // An hour later, and with a beat, it is well again.
        assert_eq!(beats(&world, &machine, 50).await, DeviceLevel::Unhealthy);
        assert_eq!(beats(&world, &machine, 20).await, DeviceLevel::Approved);
    })
    .await;
}

#[tokio::test]
async fn what_is_revoked_or_blocked_is_so_for_good() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let revoked = owner.approved(&world, "one", 20).await;
        let blocked = owner.approved(&world, "two", 30).await;
        let revoke = |device| Order::Revoke {
            compromised_since: None,
            device,
            reason: "sold".to_owned(),
        };
        let done = owner.order(revoke(revoked.id)).await.unwrap();
        assert_eq!(done.level, Some(DeviceLevel::Revoked));
        let done = world.platform().block(blocked.id, "abuse").await.unwrap();
        assert_eq!(done.level, DeviceLevel::Blocked);
        for (machine, code) in [
            (&revoked, Code::DeviceRevoked),
            (&blocked, Code::DeviceBlocked),
        ] {
            assert_eq!(machine.heartbeat(&[]).await, Err(Some(code)));
            assert_eq!(owner.approve(machine).await, Err(Some(code)));
            assert_eq!(owner.order(revoke(machine.id)).await, Err(Some(code)));
            let resume = Order::Resume { device: machine.id };
            assert_eq!(owner.order(resume).await, Err(Some(code)));
            let block = world.platform().block(machine.id, "again").await;
            assert_eq!(block.unwrap_err().code(), Some(code));
            let token = wire::MakeToken {
                kind: wire::TokenKind::Device,
                device: Some(machine.id),
            };
            let token = owner.client.make_token(&token).await.unwrap_err();
            assert_eq!(token.code(), Some(code));
            let told = machine.client.directives(machine.id).await.unwrap_err();
            assert_eq!(told.code(), Some(code));
        }
    })
    .await;
}

#[tokio::test]
async fn a_rotation_takes_three_signatures_and_continuity_begins_anew() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let machine = owner.approved(&world, "laptop", 20).await;
        let (new, new_log) = (key(40), key(41));
        let rotation = || issued(machine.rotating(&new, &new_log), &owner.key, world.now());
        let rotate = async |signers: &[&lodestar_core::key::SecretKey]| {
            let envelope = Envelope::sign_all(&rotation(), signers).unwrap();
            let done = owner.client.rotate(machine.id, &envelope).await;
            done.map_err(|problem| problem.code())
        };
        for short in [
            vec![&owner.key],
            vec![&owner.key, &machine.key],
            vec![&owner.key, &new],
        ] {
            let refused = rotate(&short).await;
            assert_eq!(refused, Err(Some(Code::SignatureInvalid)));
        }
        let done = rotate(&[&owner.key, &machine.key, &new]).await.unwrap();
        assert_eq!((done.level, done.challenge), (DeviceLevel::Approved, None));
        // The old key is nobody's now.
        assert_eq!(
            machine.heartbeat(&[]).await,
            Err(Some(Code::SignatureInvalid))
        );
        let renewed = Machine {
            key: new,
            ..machine
        };
        renewed.heartbeat(&[]).await.unwrap();
        // Back to a key that it had: no.
        let back = issued(
            renewed.rotating(&key(20), &key(42)),
            &owner.key,
            world.now(),
        );
        let back = Envelope::sign_all(&back, &[&owner.key, &renewed.key, &key(20)]).unwrap();
        let back = owner.client.rotate(renewed.id, &back).await.unwrap_err();
        assert_eq!(back.code(), Some(Code::KeyInUse));
        // From offline the level stays, and a challenge opens.
        world.hands.forward(25 * HOUR);
        assert_eq!(level(&owner, &renewed).await, DeviceLevel::Offline);
        let third = key(50);
        let again = issued(renewed.rotating(&third, &key(51)), &owner.key, world.now());
        let again = Envelope::sign_all(&again, &[&owner.key, &renewed.key, &third]).unwrap();
        let done = owner.client.rotate(renewed.id, &again).await.unwrap();
        assert_eq!(done.level, DeviceLevel::Offline);
        let renewed = Machine {
            key: third,
            challenge: done.challenge.map(|challenge| challenge.nonce),
            ..renewed
        };
        let beaten = renewed.heartbeat(&[]).await.unwrap();
        assert_eq!(beaten.level, DeviceLevel::Offline, "until it answered");
        let standing = renewed.answer().await.unwrap();
        assert_eq!(standing.level, DeviceLevel::Approved);
    })
    .await;
}

#[tokio::test]
async fn the_kill_switch_and_a_pause_are_told_and_stop_runs() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let machine = owner.approved(&world, "laptop", 20).await;
        let told = async || machine.client.directives(machine.id).await.unwrap();
        assert!(!told().await.kill_switch && !told().await.paused);
        let platform = world.platform();
        platform.set_kill_switch(true, "an exercise").await.unwrap();
        assert!(told().await.kill_switch);
        assert!(machine.heartbeat(&[]).await.unwrap().directives.kill_switch);
        platform.set_kill_switch(false, "it is over").await.unwrap();
        assert!(!platform.kill_switch().await.unwrap().on);
        let stopped = platform.pause(machine.id, true, "looking into it").await;
        assert!(stopped.unwrap().paused && told().await.paused);
        platform
            .pause(machine.id, false, "it is well")
            .await
            .unwrap();
        assert!(!told().await.paused);
        let pause = Order::Pause {
            device: machine.id,
            reason: "holidays".to_owned(),
        };
        let envelope = owner.signed(pause);
        let asked = wire::HandInOrder {
            envelope: envelope.clone(),
            terms: None,
        };
        owner.client.order(&asked).await.unwrap();
        assert!(told().await.paused);
        let resume = Order::Resume { device: machine.id };
        owner.order(resume).await.unwrap();
        assert!(!told().await.paused);
        // An order is obeyed once.
        let again = owner.client.order(&asked).await.unwrap_err();
        assert_eq!(again.code(), Some(Code::NonceReused));
        assert!(!told().await.paused);
    })
    .await;
}

#[tokio::test]
async fn the_service_looks_at_devices_without_their_asking() {
    on_both(|place| async move {
        let mut world = World::with(place, |config| config.sweep_seconds = 1).await;
        let owner = world.owner("anna", 10).await;
        let machine = owner.approved(&world, "laptop", 20).await;
        machine.heartbeat(&[]).await.unwrap();
        world.hands.forward(25 * HOUR);
        tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        let events = world.events().await;
        let offline = events
            .iter()
            .find(|(kind, _)| kind == "device.went_offline@1");
        let (_, payload) = offline.unwrap();
        assert_eq!(payload["device"], machine.id.to_string());
        assert_eq!(payload["from"], "approved");
    })
    .await;
}

#[tokio::test]
async fn lists_go_on_where_they_stopped() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        for number in 0..7 {
            let asked = wire::RegisterDevice {
                name: name(&format!("device-{number}")),
                key: None,
                log_key: None,
            };
            owner.client.register_device(&asked).await.unwrap();
        }
        let mut seen = Vec::new();
        let mut path = "/v1/devices?limit=3".to_owned();
        loop {
            let answer = world.raw("GET", &path, Some(&owner.token), None, "").await;
            let items = answer.body["items"].as_array().unwrap();
            assert!(items.len() <= 3);
            seen.extend(items.iter().map(|item| item["name"].to_string()));
            match answer.body["next"].as_str() {
                Some(next) => path = format!("/v1/devices?limit=3&after={next}"),
                None => break,
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 7);
    })
    .await;
}
