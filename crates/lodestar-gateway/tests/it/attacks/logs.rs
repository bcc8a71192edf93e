//! Bundles that are not what they say, and logs of runs that were not what they had to be.

use std::collections::BTreeMap;

use lodestar_core::digest::sha256;
use lodestar_core::execution::ExecutionLevel;
use lodestar_core::statement::Order;
use lodestar_gateway::bundle::Packed;
use lodestar_gateway::code::Code;
use serde_json::{Value, json};

use super::Scene;
use lodestar_harness::world::fleet::{
    Claims, Job, Line, Machine, Made, Ran, SCRIPT, Work, fresh_key, of_kind,
};

pub(super) async fn attack(scene: &Scene) {
    bundles(scene).await;
    terms(scene).await;
    forged(scene).await;
    checkpoints(scene).await;
}

/// A run that is over, and nothing of it handed in.
async fn done(scene: &Scene) -> (Job, Ran) {
    let job = scene.machine.register(scene.made).await.unwrap();
    let ran = scene.machine.work(&job).await.unwrap();
    (job, ran)
}

async fn bundles(scene: &Scene) {
    let what = "tampered, truncated and swapped bundles";
    let (owner, tally, machine) = (&scene.owner, &scene.tally, &scene.machine);
    let (job, ran) = done(scene).await;
    let (bytes, packed) = ran.packed().unwrap();
    let (other, other_ran) = done(scene).await;
    let (swapped, _) = other_ran.packed().unwrap();
    machine
        .client
        .checkpoint(job.run, &ran.note().unwrap())
        .await
        .unwrap();
    machine
        .client
        .checkpoint(other.run, &other_ran.note().unwrap())
        .await
        .unwrap();
    // On its way: other bytes than the statement tells of.
    let mut changed = Vec::new();
    for part in 0..32 {
        let mut flipped = bytes.clone();
        flipped[bytes.len() * part / 32] ^= 1 << (part % 8);
        changed.push(flipped);
        changed.push(bytes[..bytes.len() * part / 32].to_vec());
    }
    changed.push([&bytes[..], b"\n"].concat());
    changed.push(swapped.clone());
    for bytes in &changed {
        let answer = machine.send(&job, bytes, &packed).await;
        tally.refused(what, answer, &[Code::BundleMismatch]);
    }
    // Another run's statement, for this one.
    let statement = machine.says(machine.bundled(&other, &packed)).unwrap();
    let answer = machine.client.bundle(job.run, &statement, &bytes).await;
    tally.refused(what, answer, &[Code::StatementMismatch]);
    let statement = scene.rogue.says(machine.bundled(&job, &packed)).unwrap();
    let answer = machine.client.bundle(job.run, &statement, &bytes).await;
    tally.refused(what, answer, &[Code::SignatureInvalid]);
    // And nothing is attested that is not there.
    let word = machine.word(&job, &ran, &packed).unwrap();
    let answer = machine.vouch(job.run, &word, Claims::default()).await;
    tally.refused(what, answer, &[Code::BundleMissing]);
    // With the device's own signature under them, they are taken for what they are.
    let mut signed = BTreeMap::new();
    for (n, bytes) in changed.iter().step_by(13).chain([&swapped]).enumerate() {
        let (job, ran) = done(scene).await;
        let told = Packed {
            bundle: sha256(bytes),
            bytes: bytes.len() as u64,
            ..packed
        };
        machine
            .client
            .checkpoint(job.run, &ran.note().unwrap())
            .await
            .unwrap();
        machine.send(&job, bytes, &told).await.unwrap();
        let word = machine.word(&job, &ran, &told).unwrap();
        let attested = machine
            .vouch(job.run, &word, Claims(Some(true)))
            .await
            .unwrap();
        assert!(
            !attested.found.gateway_verified && !attested.found.policy_passed,
            "{n}"
        );
        assert!(
            attested.level <= ExecutionLevel::RunnerVerified,
            "{n}: {attested:?}"
        );
        *signed
            .entry(attested.found.reason.unwrap_or_default())
            .or_insert(0) += 1;
        tally.taken(what);
    }
    // The log of one run, whole and right, as that of another.
    machine.send(&other, &bytes, &packed).await.unwrap();
    let mut word = machine.word(&other, &ran, &packed).unwrap();
    let answer = machine.vouch(other.run, &word, Claims::default()).await;
    tally.refused(what, answer, &[Code::StatementMismatch]);
    word.session = other_ran.dir.session().clone();
    word.predicate.nonce = lodestar_harness::world::fleet::fresh_nonce().unwrap();
    let attested = machine
        .vouch(other.run, &word, Claims::default())
        .await
        .unwrap();
    assert!(!attested.found.gateway_verified, "{attested:?}");
    tally.taken(what);
    assert_eq!(scene.level(owner, &job).await, None);
}

/// Terms that nobody signed, or that say something else.
async fn terms(scene: &Scene) {
    let what = "unsigned and altered terms";
    let (owner, tally) = (&scene.owner, &scene.tally);
    let terms = scene.fleet.workplace.terms().await.unwrap();
    let whole = serde_json::to_value(&terms).unwrap();
    let hand = |document: Value, digest| async move {
        let order = owner
            .ordered(Order::RegisterTerms { terms: digest })
            .unwrap();
        owner.hand_in(order, Some(document)).await
    };
    let canonical = |value: &Value| sha256(&lodestar_core::canonical::to_vec(value).unwrap());
    let codes = [
        Code::TermsMalformed,
        Code::PolicyUnsigned,
        Code::StatementMismatch,
    ];
    let lax = "permit (principal, action, resource);";
    let changes: [fn(&mut Value, &str); 8] = [
        |terms, lax| {
            terms["policy"] = json!({"kind": "signed", "text": lax, "signature": {}, "keys": []});
        },
        |terms, _| terms["policy"] = json!({"kind": "unsigned"}),
        |terms, _| terms["policy"] = json!({"kind": "preset", "ceiling": 5}),
        |terms, _| terms["policy"]["ceiling"] = json!("3"),
        |terms, _| terms["agents"] = json!([]),
        |terms, _| terms["format"] = json!("lodestar.terms/2"),
        |terms, _| terms["more"] = json!(1),
        |terms, _| {
            let first = terms["tools"][0].clone();
            terms["tools"].as_array_mut().unwrap().push(first);
        },
    ];
    for change in changes {
        let mut changed = whole.clone();
        change(&mut changed, lax);
        let digest = canonical(&changed);
        tally.refused(what, hand(changed, digest).await, &codes);
    }
    // A policy that somebody signed whose word does not count.
    let (stranger, known) = (fresh_key().unwrap(), fresh_key().unwrap().public());
    let (nonce, now) = (
        lodestar_harness::world::fleet::fresh_nonce().unwrap(),
        scene.machine.now(),
    );
    let signature = lodestar_policy::sign(lax.as_bytes(), &stranger, nonce, now, None).unwrap();
    let mut signed = whole.clone();
    signed["policy"] =
        json!({"kind": "signed", "text": lax, "signature": signature, "keys": [known]});
    let digest = canonical(&signed);
    tally.refused(what, hand(signed, digest).await, &[Code::PolicyUnsigned]);
    // A document that the order does not name.
    let mut laxer = whole.clone();
    laxer["policy"]["ceiling"] = json!(2);
    let answer = hand(laxer, terms.digest().unwrap()).await;
    tally.refused(what, answer, &[Code::StatementMismatch]);
    let order = owner
        .ordered(Order::RegisterTerms {
            terms: terms.digest().unwrap(),
        })
        .unwrap();
    tally.refused(
        what,
        owner.hand_in(order, None).await,
        &[Code::TermsMissing],
    );
}

/// What a device makes of its log that has the key to it.
async fn forged(scene: &Scene) {
    let what = "logs that a device wrote anew with its own key";
    type Change = fn(&mut Vec<Line>);
    let changes: [(&str, Change); 8] = [
        ("an L4 call that nobody approved", |lines| {
            let granted = of_kind(lines, "approval.granted@1").unwrap();
            lines[granted]["head"]["type"] = json!("agent.note@1");
        }),
        ("a policy that nobody signed", |lines| {
            lines[0]["payload"]["policy"]["signature"] = json!({"state": "unsigned"});
        }),
        ("the bundle's own policy", |lines| {
            let lax = "permit (principal, action, resource);";
            lines[0]["payload"]["policy"]["text"] = json!(lax);
            lines[0]["payload"]["policy"]["digest"] = json!(sha256(lax.as_bytes()));
        }),
        ("the bundle's own keys", |lines| {
            let key = fresh_key().unwrap().public();
            lines[0]["payload"]["approvers"][0]["public_key"] = json!(key);
        }),
        ("the bundle's own grades", |lines| {
            let tools = lines[0]["payload"]["tools"].as_array_mut().unwrap();
            let send = tools.iter_mut().find(|tool| tool["name"] == "box.send");
            send.unwrap()["contract"]["required_level"] = json!("L1");
        }),
        ("defences off", |lines| {
            lines[0]["payload"]["defences_off"] = json!(["gate"]);
        }),
        ("a verdict that was another", |lines| {
            let judged = lines
                .iter()
                .rposition(|line| line["head"]["type"] == "action.judged@1");
            lines[judged.unwrap()]["payload"]["verdict"] = json!("allow");
        }),
        ("a log of last year", |lines| {
            for line in lines {
                let time = line["head"]["time"].as_str().unwrap().to_owned();
                let year: u16 = time[..4].parse().unwrap();
                line["head"]["time"] = json!(format!("{}{}", year - 1, &time[4..]));
            }
        }),
    ];
    let (tally, mallory) = (&scene.tally, &scene.mallory);
    for (n, (change, forge)) in changes.into_iter().enumerate() {
        // Each on a machine of its own: what breaks a policy makes it unhealthy.
        let name = format!("forger-{n}");
        let machine = mallory.approved(&name).await.unwrap();
        let (job, ran) = run_on(scene, &machine, scene.hers, &SCRIPT.into()).await;
        ran.forge(forge).unwrap();
        let attested = machine.hand_over(&job, &ran).await.unwrap();
        assert!(!attested.found.policy_passed, "{change}: {attested:?}");
        assert!(
            attested.level <= ExecutionLevel::AgentVerified,
            "{change}: {attested:?}"
        );
        tally.taken(what);
    }
    // What was done, and never forged: approved by somebody else, free above the ceiling, graded lower.
    let others = [
        Work {
            approver: Some(fresh_key().unwrap().into()),
            ..SCRIPT.into()
        },
        Work {
            ceiling: 2,
            ..SCRIPT.into()
        },
        Work {
            sending: "L2",
            ..SCRIPT.into()
        },
    ];
    for work in others {
        let (job, ran) = run_on(scene, &scene.machine, scene.made, &work).await;
        let attested = scene.machine.hand_over(&job, &ran).await.unwrap();
        assert!(!attested.found.policy_passed, "{work:?}: {attested:?}");
        assert!(
            attested.level <= ExecutionLevel::ExecutionVerified,
            "{attested:?}"
        );
        tally.taken(what);
    }
    // Without a ticket, and with that of a run from before.
    let before = scene.machine.register(scene.made).await.unwrap();
    for ticket in [None, Some(before.ticket())] {
        let job = scene.machine.register(scene.made).await.unwrap();
        let key = &scene.machine.log_key;
        let ran = scene
            .fleet
            .workplace
            .run(ticket, key, &SCRIPT.into())
            .await
            .unwrap();
        let attested = scene.machine.hand_over(&job, &ran).await.unwrap();
        assert!(!attested.found.gateway_verified, "{attested:?}");
        tally.taken("a log made before the run was registered");
    }
}

async fn run_on(scene: &Scene, machine: &Machine, made: Made, work: &Work) -> (Job, Ran) {
    let job = machine.register(made).await.unwrap();
    let ticket = Some(job.ticket());
    let ran = scene
        .fleet
        .workplace
        .run(ticket, &machine.log_key, work)
        .await
        .unwrap();
    (job, ran)
}

async fn checkpoints(scene: &Scene) {
    let what = "checkpoints of others, behind, too late, or none";
    let (tally, machine) = (&scene.tally, &scene.machine);
    let (job, ran) = done(scene).await;
    let (bytes, packed) = ran.packed().unwrap();
    tally.refused(
        what,
        machine.send(&job, &bytes, &packed).await,
        &[Code::CheckpointMissing],
    );
    let key = std::sync::Arc::clone(&scene.rogue.log_key);
    let others = scene
        .fleet
        .workplace
        .run(Some(job.ticket()), &key, &SCRIPT.into())
        .await
        .unwrap();
    for note in [
        &*others.note().unwrap(),
        "x",
        "\u{2014} lodestar-log AAAA\n",
        &ran.note().unwrap()[1..],
    ] {
        let answer = machine.client.checkpoint(job.run, note).await;
        tally.refused(what, answer, &[Code::CheckpointInvalid]);
    }
    let answer = machine.client.checkpoint(job.run, &"x".repeat(5000)).await;
    tally.refused(what, answer, &[Code::InvalidBody]);
    machine
        .client
        .checkpoint(job.run, &ran.note_at(4).unwrap())
        .await
        .unwrap();
    for size in [0, 1, 4] {
        let answer = machine
            .client
            .checkpoint(job.run, &ran.note_at(size).unwrap())
            .await;
        tally.refused(what, answer, &[Code::CheckpointBehind]);
    }
    let (_, elsewhere) = done(scene).await;
    let answer = machine
        .client
        .checkpoint(job.run, &elsewhere.note().unwrap())
        .await;
    tally.refused(what, answer, &[Code::CheckpointBehind]);
    // The same session, and what people approved in it, for a second run.
    let second = machine.register(scene.made).await.unwrap();
    let answer = machine
        .client
        .checkpoint(second.run, &ran.note_at(5).unwrap())
        .await;
    tally.refused(what, answer, &[Code::SessionTaken]);
    // Rewritten since its checkpoint.
    ran.forge(|lines| lines[1]["payload"]["note"] = json!("rewritten"))
        .unwrap();
    let (bytes, packed) = ran.packed().unwrap();
    machine.send(&job, &bytes, &packed).await.unwrap();
    let answer = machine
        .client
        .checkpoint(job.run, &ran.note().unwrap())
        .await;
    tally.refused(what, answer, &[Code::CheckpointAfterBundle]);
    let word = machine.word(&job, &ran, &packed).unwrap();
    let attested = machine
        .vouch(job.run, &word, Claims::default())
        .await
        .unwrap();
    assert!(!attested.found.gateway_verified, "{attested:?}");
    tally.taken(what);
}
