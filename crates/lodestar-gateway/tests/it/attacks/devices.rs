//! Challenges, heartbeats and orders: forged, replayed, out of time, by whoever must not.

use lodestar_core::device::DeviceLevel;
use lodestar_core::statement::{
    ChallengeResponse, Envelope, Heartbeat, Issued, Order, StatementKind,
};
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use serde_json::{Value, json};

use super::Scene;
use super::post::Post;
use super::statements::{dsse, fields, moment};
use lodestar_harness::world::fleet::{Account, Claims, Machine, fresh_key, fresh_nonce, signed};

pub(super) async fn attack(scene: &Scene) {
    challenges(scene).await;
    heartbeats(scene).await;
    nonces(scene).await;
    skew(scene).await;
    orders(scene).await;
}

async fn challenges(scene: &Scene) {
    let what = "forged and replayed challenges";
    let (owner, tally) = (&scene.owner, &scene.tally);
    let machine = owner.enrolled("waiting").await.unwrap();
    let send = |envelope: Value| {
        let path = format!("/v1/devices/{}/challenge/response", machine.id);
        let body = json!({"envelope": envelope}).to_string();
        let (address, token) = (scene.fleet.address(), machine.token.clone());
        async move {
            Post::new("POST", &path)
                .token(&token)
                .json(body)
                .send(address)
                .await
        }
    };
    let genuine = machine.says(machine.response()).unwrap();
    let payload: Value = serde_json::from_slice(genuine.unverified_payload()).unwrap();
    let kind = StatementKind::ChallengeResponse;
    let stranger = fresh_key().unwrap();
    for key in [
        &stranger,
        &*scene.rogue.key,
        &*machine.log_key,
        &*owner.owner,
    ] {
        let forged = signed(
            machine.response(),
            key,
            machine.now(),
            fresh_nonce().unwrap(),
        );
        let forged = serde_json::to_value(forged.unwrap()).unwrap();
        tally.refused(what, send(forged).await, &[Code::SignatureInvalid]);
    }
    // Somebody else's names, with the machine's own key; and another statement of its own.
    for (device, account) in [(scene.rogue.id, owner.id), (machine.id, scene.mallory.id)] {
        let subject = ChallengeResponse {
            account,
            device,
            ..machine.response()
        };
        let envelope = serde_json::to_value(machine.says(subject).unwrap()).unwrap();
        tally.refused(what, send(envelope).await, &[Code::StatementMismatch]);
    }
    let beat = machine.says(machine.heartbeat(&[]).unwrap()).unwrap();
    let beat = serde_json::to_value(beat).unwrap();
    tally.refused(what, send(beat).await, &[Code::StatementKind]);
    let expired = Issued {
        expires_at: Some(machine.now()),
        issued_at: machine.now(),
        key_id: machine.key.public().key_id(),
        nonce: fresh_nonce().unwrap(),
        subject: machine.response(),
    };
    let expired = Envelope::sign(&expired, &machine.key).unwrap();
    let expired = serde_json::to_value(expired).unwrap();
    tally.refused(what, send(expired).await, &[Code::StatementExpired]);
    let codes = [
        Code::StatementMismatch,
        Code::ChallengeWrong,
        Code::EnvelopeMalformed,
        Code::SignatureInvalid,
        Code::ClockSkew,
        Code::StatementExpired,
    ];
    // With the machine's own key: every field alone.
    for changed in fields(&payload) {
        let resigned = dsse(kind, &changed, &[&*machine.key]);
        if changed["nonce"] == payload["nonce"] || changed.get("nonce").is_none() {
            tally.refused(what, send(resigned).await, &codes);
        }
        // And under the signature of the statement as it was.
        let mut kept = serde_json::to_value(&genuine).unwrap();
        kept["payload"] = dsse(kind, &changed, &[&*machine.key])["payload"].clone();
        tally.refused(what, send(kept).await, &codes);
    }
    let approval = || owner.order(Account::approval(&machine));
    tally.refused(what, approval().await, &[Code::ChallengeNotPassed]);
    let shown = owner.device(machine.id).await.unwrap();
    assert_eq!(shown.level, DeviceLevel::Pending);
    assert!(shown.challenge_passed_at.is_none());
    // A new challenge takes the place of the old one, whose answer is late.
    let again = owner.client.challenge(machine.id).await.unwrap();
    let old = serde_json::to_value(machine.says(machine.response()).unwrap()).unwrap();
    tally.refused(what, send(old).await, &[Code::ChallengeWrong]);
    let answer = ChallengeResponse {
        challenge: again.challenge.nonce,
        ..machine.response()
    };
    let answer = serde_json::to_value(machine.says(answer).unwrap()).unwrap();
    send(answer.clone()).await.unwrap();
    tally.refused(what, send(answer).await, &[Code::NonceReused]);
    approval().await.unwrap();
}

async fn heartbeats(scene: &Scene) {
    let what = "forged and replayed heartbeats";
    let (owner, tally) = (&scene.owner, &scene.tally);
    let machine = owner.approved("beating").await.unwrap();
    let send = |envelope: Value, to: &Machine| {
        let path = format!("/v1/devices/{}/heartbeats", to.id);
        let body = json!({"envelope": envelope}).to_string();
        let (address, token) = (scene.fleet.address(), machine.token.clone());
        async move {
            Post::new("POST", &path)
                .token(&token)
                .json(body)
                .send(address)
                .await
        }
    };
    let genuine = machine
        .says(machine.heartbeat(&[scene.made.runner]).unwrap())
        .unwrap();
    let written = serde_json::to_value(&genuine).unwrap();
    send(written.clone(), &machine).await.unwrap();
    let heard = owner.device(machine.id).await.unwrap().last_heartbeat;
    for _ in 0..20 {
        tally.refused(
            what,
            send(written.clone(), &machine).await,
            &[Code::NonceReused],
        );
    }
    tally.refused(
        what,
        send(written.clone(), &scene.machine).await,
        &[Code::OtherDevice],
    );
    tally.refused(
        what,
        send(written.clone(), &scene.rogue).await,
        &[Code::OtherDevice],
    );
    // The same statement with one more signature on it is the same statement.
    let said = genuine.unverified::<Heartbeat>().unwrap();
    let more = genuine.cosign(&said, &fresh_key().unwrap()).unwrap();
    let more = serde_json::to_value(more).unwrap();
    tally.refused(what, send(more, &machine).await, &[Code::NonceReused]);
    let other = machine.says(machine.response()).unwrap();
    let other = serde_json::to_value(other).unwrap();
    tally.refused(what, send(other, &machine).await, &[Code::StatementKind]);
    // One device's, handed in by another as its own.
    let beat = machine.says(machine.heartbeat(&[]).unwrap()).unwrap();
    let rogue = &scene.rogue;
    let answer = rogue.client.heartbeat(rogue.id, &beat).await;
    tally.refused(what, answer, &[Code::SignatureInvalid]);
    let stranger = fresh_key().unwrap();
    for key in [
        &stranger,
        &*scene.machine.key,
        &*machine.log_key,
        &*owner.owner,
    ] {
        let beat = machine.heartbeat(&[]).unwrap();
        let forged = signed(beat, key, machine.now(), fresh_nonce().unwrap()).unwrap();
        let forged = serde_json::to_value(forged).unwrap();
        tally.refused(
            what,
            send(forged, &machine).await,
            &[Code::SignatureInvalid],
        );
    }
    let payload: Value = serde_json::from_slice(genuine.unverified_payload()).unwrap();
    for changed in fields(&payload) {
        let mut kept = written.clone();
        kept["payload"] =
            dsse(StatementKind::Heartbeat, &changed, &[&*machine.key])["payload"].clone();
        let codes = [Code::SignatureInvalid, Code::EnvelopeMalformed];
        tally.refused(what, send(kept, &machine).await, &codes);
    }
    for (field, value) in [
        ("account", json!(scene.mallory.id)),
        ("device", json!(scene.rogue.id)),
        ("gateway_status", json!("x".repeat(33))),
        ("gateway_status", json!("a\nb")),
        ("daemon_version", json!("x".repeat(65))),
        ("runners", json!(["rnr_nothing"])),
        ("level", json!("trusted")),
    ] {
        let mut changed = payload.clone();
        changed["subject"][field] = value;
        changed["nonce"] = json!(fresh_nonce().unwrap());
        let resigned = dsse(StatementKind::Heartbeat, &changed, &[&*machine.key]);
        let codes = [Code::StatementMismatch, Code::EnvelopeMalformed];
        tally.refused(what, send(resigned, &machine).await, &codes);
    }
    let shown = owner.device(machine.id).await.unwrap();
    assert_eq!(
        (shown.level, shown.last_heartbeat),
        (DeviceLevel::Approved, heard)
    );
    // It said so of a runner that is not bound to it.
    let runners = owner.client.runners(None).await.unwrap().items;
    let runner = runners
        .iter()
        .find(|runner| runner.id == scene.made.runner)
        .unwrap();
    assert_ne!(runner.last_heartbeat, heard);
}

async fn nonces(scene: &Scene) {
    let what = "nonces reused across devices and kinds";
    let (owner, tally) = (&scene.owner, &scene.tally);
    let (first, second) = (&scene.machine, owner.approved("second").await.unwrap());
    let nonce = fresh_nonce().unwrap();
    let beat = |machine: &Machine| {
        machine
            .says_at(machine.heartbeat(&[]).unwrap(), machine.now(), nonce)
            .unwrap()
    };
    // A nonce is the device's own: another may have drawn the same.
    first
        .client
        .heartbeat(first.id, &beat(first))
        .await
        .unwrap();
    second
        .client
        .heartbeat(second.id, &beat(&second))
        .await
        .unwrap();
    for machine in [first, &second] {
        let again = machine.client.heartbeat(machine.id, &beat(machine)).await;
        tally.refused(what, again, &[Code::NonceReused]);
    }
    // Whatever the device signs with it.
    let job = first.register(scene.made).await.unwrap();
    let ran = first.work(&job).await.unwrap();
    let (mut word, packed) = first.deliver(&job, &ran).await.unwrap();
    word.predicate.nonce = nonce;
    let answer = first.vouch(job.run, &word, Claims::default()).await;
    tally.refused(what, answer, &[Code::NonceReused]);
    let (bytes, _) = ran.packed().unwrap();
    let other = first.register(scene.made).await.unwrap();
    let elsewhere = first.work(&other).await.unwrap();
    first
        .client
        .checkpoint(other.run, &elsewhere.note().unwrap())
        .await
        .unwrap();
    let statement = first
        .says_at(first.bundled(&other, &packed), first.now(), nonce)
        .unwrap();
    let answer = first.client.bundle(other.run, &statement, &bytes).await;
    tally.refused(what, answer, &[Code::NonceReused]);
    assert_eq!(scene.level(owner, &job).await, None);
    // One that an attestation was given under.
    word.predicate.nonce = fresh_nonce().unwrap();
    first
        .vouch(job.run, &word, Claims::default())
        .await
        .unwrap();
    word.predicate.issued_at = moment(word.predicate.issued_at, 1);
    let again = first.vouch(job.run, &word, Claims::default()).await;
    tally.refused(what, again, &[Code::NonceReused]);
}

async fn skew(scene: &Scene) {
    let what = "clock skew on both sides";
    let (owner, tally, machine) = (&scene.owner, &scene.tally, &scene.machine);
    let waiting = owner.enrolled("late").await.unwrap();
    let job = machine.register(scene.made).await.unwrap();
    let ran = machine.work(&job).await.unwrap();
    let (word, packed) = machine.deliver(&job, &ran).await.unwrap();
    let (bytes, _) = ran.packed().unwrap();
    for seconds in [-100_000, -3600, -310, 310, 3600, 100_000] {
        let at = moment(machine.now(), seconds);
        let nonce = || fresh_nonce().unwrap();
        let only = [Code::ClockSkew];
        let beat = machine
            .says_at(machine.heartbeat(&[]).unwrap(), at, nonce())
            .unwrap();
        tally.refused(
            what,
            machine.client.heartbeat(machine.id, &beat).await,
            &only,
        );
        let answer = waiting.says_at(waiting.response(), at, nonce()).unwrap();
        tally.refused(
            what,
            waiting.client.answer_challenge(waiting.id, &answer).await,
            &only,
        );
        let bundled = machine
            .says_at(machine.bundled(&job, &packed), at, nonce())
            .unwrap();
        tally.refused(
            what,
            machine.client.bundle(job.run, &bundled, &bytes).await,
            &only,
        );
        let order = owner
            .signed(Account::approval(&waiting), &owner.owner, at)
            .unwrap();
        tally.refused(what, owner.hand_in(order, None).await, &only);
        let mut word = word.clone();
        word.predicate.issued_at = at;
        word.predicate.nonce = nonce();
        tally.refused(
            what,
            machine.vouch(job.run, &word, Claims::default()).await,
            &only,
        );
    }
    for seconds in [-290, 290] {
        let at = moment(machine.now(), seconds);
        let beat = machine.heartbeat(&[scene.made.runner]).unwrap();
        let beat = machine.says_at(beat, at, fresh_nonce().unwrap()).unwrap();
        machine.client.heartbeat(machine.id, &beat).await.unwrap();
    }
    assert_eq!(scene.level(owner, &job).await, None);
}

async fn orders(scene: &Scene) {
    let what = "device tokens and keys used to approve, bind, rotate and the rest";
    let (owner, tally, machine) = (&scene.owner, &scene.tally, &scene.machine);
    let waiting = owner.enrolled("hopeful").await.unwrap();
    waiting.answer().await.unwrap();
    let runner = owner.runner("another").await.unwrap();
    let terms = scene.fleet.workplace.terms().await.unwrap();
    let before = scene.standing(owner).await;
    let (device, own) = (machine.id, scene.made.runner);
    let orders = [
        Account::approval(&waiting),
        Order::Bind { device, runner },
        Order::Unbind {
            device,
            runner: own,
        },
        Order::Revoke {
            compromised_since: None,
            device,
            reason: "asked".to_owned(),
        },
        Order::Pause {
            device,
            reason: "asked".to_owned(),
        },
        Order::Resume { device },
        Order::RegisterTerms {
            terms: terms.digest().unwrap(),
        },
    ];
    for order in orders {
        let document = match order {
            Order::RegisterTerms { .. } => Some(serde_json::to_value(&terms).unwrap()),
            _ => None,
        };
        let handed = |envelope| wire::HandInOrder {
            envelope,
            terms: document.clone(),
        };
        // The owner's own word, in the hands of devices and of another owner.
        for client in [&machine.client, &waiting.client, &scene.rogue.client] {
            let envelope = owner.ordered(order.clone()).unwrap();
            tally.refused(
                what,
                client.order(&handed(envelope)).await,
                &[Code::TokenKind],
            );
        }
        let envelope = owner.ordered(order.clone()).unwrap();
        let answer = scene.mallory.client.order(&handed(envelope)).await;
        tally.refused(what, answer, &[Code::SignatureInvalid]);
        // Another's word, in the hands of the owner.
        for key in [
            &machine.key,
            &waiting.key,
            &machine.log_key,
            &scene.mallory.owner,
        ] {
            let envelope = owner.signed(order.clone(), key, machine.now()).unwrap();
            let answer = owner.client.order(&handed(envelope)).await;
            tally.refused(what, answer, &[Code::SignatureInvalid]);
        }
        // An order in the owner's name that Mallory signed, by herself.
        let envelope = owner.signed(order.clone(), &scene.mallory.owner, machine.now());
        let answer = scene.mallory.client.order(&handed(envelope.unwrap())).await;
        tally.refused(what, answer, &[Code::StatementMismatch]);
        // Mallory's order about what is not hers.
        let envelope = scene.mallory.ordered(order.clone()).unwrap();
        if order.device().is_some() {
            let answer = scene.mallory.client.order(&handed(envelope)).await;
            tally.refused(what, answer, &[Code::DeviceUnknown]);
        }
    }
    // Her own machine, bound to somebody else's runner.
    let order = Order::Bind {
        device: scene.rogue.id,
        runner: own,
    };
    tally.refused(
        what,
        scene.mallory.order(order).await,
        &[Code::RunnerUnknown],
    );
    let order = Order::Bind {
        device,
        runner: scene.hers.runner,
    };
    tally.refused(what, owner.order(order).await, &[Code::RunnerUnknown]);
    // A rotation needs all three, and an owner to hand it in.
    let (key, log_key) = (fresh_key().unwrap(), fresh_key().unwrap());
    let whole = owner.rotation(machine, (&key, &log_key)).unwrap();
    let payload: Value = serde_json::from_slice(whole.unverified_payload()).unwrap();
    let answer = machine.client.rotate(device, &whole).await;
    tally.refused(what, answer, &[Code::TokenKind]);
    let answer = scene.mallory.client.rotate(device, &whole).await;
    tally.refused(what, answer, &[Code::DeviceUnknown]);
    for keys in [
        &[&*owner.owner, &*machine.key][..],
        &[&*owner.owner, &key],
        &[&*machine.key, &key],
        &[&*owner.owner],
        &[&key],
        &[&*scene.mallory.owner, &*machine.key, &key],
    ] {
        let envelope = dsse(StatementKind::KeyRotation, &payload, keys);
        let path = format!("/v1/devices/{device}/rotation");
        let body = json!({"envelope": envelope}).to_string();
        let post = Post::new("POST", &path).token(&owner.token).json(body);
        let answer = post.send(scene.fleet.address()).await;
        tally.refused(what, answer, &[Code::SignatureInvalid]);
    }
    assert_eq!(scene.standing(owner).await, before);
    // An order is obeyed once.
    let order = owner.ordered(Account::approval(&waiting)).unwrap();
    owner.hand_in(order.clone(), None).await.unwrap();
    let again = owner.hand_in(order, None).await;
    tally.refused(what, again, &[Code::NonceReused, Code::DeviceNotPending]);
}

/// What devices try that are gone for good, or not well.
pub(super) async fn attack_gone(scene: &Scene) {
    let what = "revoked, blocked, unhealthy and pending devices";
    let (owner, tally) = (&scene.owner, &scene.tally);
    let revoked = owner.approved("revoked").await.unwrap();
    let blocked = owner.approved("blocked").await.unwrap();
    let mut prepared = Vec::new();
    for machine in [&revoked, &blocked] {
        let job = machine.register(scene.made).await.unwrap();
        let ran = machine.work(&job).await.unwrap();
        let (word, _) = machine.deliver(&job, &ran).await.unwrap();
        prepared.push((job, ran, word));
    }
    let order = Order::Revoke {
        compromised_since: None,
        device: revoked.id,
        reason: "lost".to_owned(),
    };
    owner.order(order).await.unwrap();
    scene
        .fleet
        .platform()
        .block(blocked.id, "abuse")
        .await
        .unwrap();
    let gone = [
        (&revoked, Code::DeviceRevoked),
        (&blocked, Code::DeviceBlocked),
    ];
    for ((machine, code), (job, ran, word)) in gone.into_iter().zip(&prepared) {
        let only = [code];
        tally.refused(
            what,
            machine.vouch(job.run, word, Claims::default()).await,
            &only,
        );
        tally.refused(what, machine.beat(&[scene.made.runner]).await, &only);
        tally.refused(what, machine.register(scene.made).await, &only);
        let note = ran.note().unwrap();
        tally.refused(what, machine.client.checkpoint(job.run, &note).await, &only);
        let (bytes, packed) = ran.packed().unwrap();
        tally.refused(what, machine.send(job, &bytes, &packed).await, &only);
        tally.refused(what, machine.client.challenge(machine.id).await, &only);
        tally.refused(what, machine.answer().await, &only);
        tally.refused(what, machine.client.directives(machine.id).await, &only);
        tally.refused(what, owner.order(Account::approval(machine)).await, &only);
        let (device, runner) = (machine.id, scene.made.runner);
        tally.refused(
            what,
            owner.order(Order::Bind { device, runner }).await,
            &only,
        );
        tally.refused(what, owner.order(Order::Resume { device }).await, &only);
        let new = (fresh_key().unwrap(), fresh_key().unwrap());
        let rotation = owner.rotation(machine, (&new.0, &new.1)).unwrap();
        tally.refused(what, owner.client.rotate(device, &rotation).await, &only);
        assert_eq!(scene.level(owner, job).await, None);
    }
    let pending = owner.enrolled("pending").await.unwrap();
    let answer = pending.register(scene.made).await;
    tally.refused(what, answer, &[Code::DeviceNotApproved]);
    unhealthy(scene, what).await;
}

/// A device that broke its terms once, and has a run at hand that did not.
async fn unhealthy(scene: &Scene, what: &'static str) {
    let (owner, tally) = (&scene.owner, &scene.tally);
    let machine = owner.approved("unhealthy").await.unwrap();
    let job = machine.register(scene.made).await.unwrap();
    let ran = machine.work(&job).await.unwrap();
    let (word, packed) = machine.deliver(&job, &ran).await.unwrap();
    let other = machine.register(scene.made).await.unwrap();
    let breaking = machine.work(&other).await.unwrap();
    breaking
        .forge(|lines| lines[0]["payload"]["defences_off"] = json!(["gate"]))
        .unwrap();
    machine.hand_over(&other, &breaking).await.unwrap();
    let level = async || owner.device(machine.id).await.unwrap().level;
    assert_eq!(level().await, DeviceLevel::Unhealthy);
    let only = [Code::DeviceUnhealthy];
    let answer = machine.vouch(job.run, &word, Claims::default()).await;
    tally.refused(what, answer, &only);
    tally.refused(what, machine.register(scene.made).await, &only);
    let (bytes, _) = ran.packed().unwrap();
    tally.refused(what, machine.send(&job, &bytes, &packed).await, &only);
    // It may say that it is there, and no word of its own makes it well: time does.
    let beaten = machine.beat(&[scene.made.runner]).await.unwrap();
    assert_eq!(beaten.level, DeviceLevel::Unhealthy);
    assert_eq!(level().await, DeviceLevel::Unhealthy);
    assert_eq!(scene.level(owner, &job).await, None);
}
