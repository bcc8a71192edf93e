//! Bundles that are not what they say, and logs of runs that were not what they had to be.

use lodestar_core::digest::sha256;
use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use lodestar_core::statement::Order;
use lodestar_gateway::bundle::Packed;
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use serde_json::{Value, json};

use super::Scene;
use lodestar_harness::world::fleet::{
    Claims, Job, Line, Machine, Made, Ran, SCRIPT, Work, fresh_key, fresh_nonce, of_kind,
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
        let found = &attested.found;
        assert!(
            found.device_trusted && !found.gateway_verified && !found.policy_passed,
            "{n}: {attested:?}"
        );
        assert_eq!(
            attested.level,
            ExecutionLevel::RunnerVerified,
            "{n}: {attested:?}"
        );
        assert!(found.reason.is_some(), "{n}: {attested:?}");
        tally.taken(what);
    }
    // The log of one run, whole and right, as that of another.
    machine.send(&other, &bytes, &packed).await.unwrap();
    let mut word = machine.word(&other, &ran, &packed).unwrap();
    let answer = machine.vouch(other.run, &word, Claims::default()).await;
    tally.refused(what, answer, &[Code::StatementMismatch]);
    word.session = other_ran.dir.session().clone();
    word.predicate.nonce = fresh_nonce().unwrap();
    let attested = machine
        .vouch(other.run, &word, Claims::default())
        .await
        .unwrap();
    // Its checkpoint is of the run's own session, which is not the one that came.
    not_its_log(scene, &other, &attested, "bundle:other_session");
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
    // A policy that somebody signed: whose word does not count, or who signed another one.
    let (signer, stranger) = (fresh_key().unwrap(), fresh_key().unwrap());
    let (nonce, now) = (fresh_nonce().unwrap(), scene.machine.now());
    let signature = lodestar_policy::sign(lax.as_bytes(), &signer, nonce, now, None).unwrap();
    let mut signed = whole.clone();
    signed["policy"] =
        json!({"kind": "signed", "text": lax, "signature": signature, "keys": [signer.public()]});
    type Edit<'a> = (Code, &'a dyn Fn(&mut Value));
    let edited: [Edit<'_>; 4] = [
        (Code::PolicyUnsigned, &|policy| {
            policy["text"] = json!("permit (principal, action, resource); ");
        }),
        (Code::PolicyUnsigned, &|policy| {
            policy["keys"] = json!([stranger.public()]);
        }),
        (Code::PolicyUnsigned, &|policy| policy["keys"] = json!([])),
        (Code::TermsMalformed, &|policy| {
            policy.as_object_mut().unwrap().remove("signature");
        }),
    ];
    for (code, edit) in edited {
        let mut edited = signed.clone();
        edit(&mut edited["policy"]);
        let digest = canonical(&edited);
        tally.refused(what, hand(edited, digest).await, &[code]);
    }
    // Untouched it is registered, and once more is as good as once.
    let digest = canonical(&signed);
    let first = hand(signed.clone(), digest).await.unwrap().terms.unwrap();
    let again = hand(signed.clone(), digest).await.unwrap().terms;
    assert_eq!(again, Some(first));
    let kept = owner.client.terms(first).await.unwrap();
    assert_eq!(kept.document, signed);
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

/// What a device makes of its log, whose key it has; and the finding that it comes to.
type Forgery = (&'static str, fn(&mut Vec<Line>));

/// How many there are: each is made on a machine of its own.
pub(super) const FORGED: usize = FORGERIES.len();

const FORGERIES: [Forgery; 8] = [
    // An L4 call that nobody approved.
    ("terms:differs", |lines| {
        let granted = of_kind(lines, "approval.granted@1").unwrap();
        lines[granted]["head"]["type"] = json!("agent.note@1");
    }),
    // A policy that nobody signed.
    ("terms:other_policy_signature", |lines| {
        lines[0]["payload"]["policy"]["signature"] = json!({"state": "unsigned"});
    }),
    // The bundle's own policy.
    ("terms:other_policy", |lines| {
        let lax = "permit (principal, action, resource);";
        lines[0]["payload"]["policy"]["text"] = json!(lax);
        lines[0]["payload"]["policy"]["digest"] = json!(sha256(lax.as_bytes()));
    }),
    // The bundle's own keys.
    ("terms:other_approvers", |lines| {
        let key = fresh_key().unwrap().public();
        lines[0]["payload"]["approvers"][0]["public_key"] = json!(key);
    }),
    // The bundle's own grades.
    ("terms:other_tool", |lines| {
        let tools = lines[0]["payload"]["tools"].as_array_mut().unwrap();
        let send = tools.iter_mut().find(|tool| tool["name"] == "box.send");
        send.unwrap()["contract"]["required_level"] = json!("L1");
    }),
    ("terms:defences_off", |lines| {
        lines[0]["payload"]["defences_off"] = json!(["gate"]);
    }),
    // A verdict that was another.
    ("terms:differs", |lines| {
        let judged = lines
            .iter()
            .rposition(|line| line["head"]["type"] == "action.judged@1");
        lines[judged.unwrap()]["payload"]["verdict"] = json!("allow");
    }),
    // A log of last year.
    ("terms:out_of_time", |lines| {
        for line in lines {
            let time = line["head"]["time"].as_str().unwrap().to_owned();
            let year: u16 = time[..4].parse().unwrap();
            line["head"]["time"] = json!(format!("{}{}", year - 1, &time[4..]));
        }
    }),
];

/// A whole log of a trusted device, which did not keep to its terms: verified, and no further than that.
fn broke_terms(scene: &Scene, job: &Job, attested: &wire::Attested, finding: &'static str) {
    let found = &attested.found;
    assert!(found.device_trusted, "{finding}: {attested:?}");
    assert!(found.gateway_verified, "{finding}: {attested:?}");
    assert!(!found.policy_passed, "{finding}: {attested:?}");
    assert_eq!(
        (attested.level, attested.evaluation.stopped_by),
        (
            ExecutionLevel::ExecutionVerified,
            Some(ExecutionFact::PolicyPassed)
        ),
        "{finding}"
    );
    scene.tally.found(job.run, finding);
}

/// A bundle of a trusted device that is not the run's log: nothing in it counts.
fn not_its_log(scene: &Scene, job: &Job, attested: &wire::Attested, finding: &'static str) {
    let found = &attested.found;
    assert!(found.device_trusted, "{finding}: {attested:?}");
    assert!(!found.gateway_verified, "{finding}: {attested:?}");
    assert!(!found.policy_passed, "{finding}: {attested:?}");
    assert_eq!(
        (attested.level, attested.evaluation.stopped_by),
        (
            ExecutionLevel::RunnerVerified,
            Some(ExecutionFact::GatewayVerified)
        ),
        "{finding}"
    );
    scene.tally.found(job.run, finding);
}

async fn forged(scene: &Scene) {
    let what = "logs that a device wrote anew with its own key";
    let tally = &scene.tally;
    for (machine, (finding, forge)) in scene.forgers.iter().zip(FORGERIES) {
        machine.beat(&[scene.hers.runner]).await.unwrap();
        let (job, ran) = run_on(scene, machine, scene.hers, &SCRIPT.into()).await;
        ran.forge(forge).unwrap();
        let attested = machine.hand_over(&job, &ran).await.unwrap();
        broke_terms(scene, &job, &attested, finding);
        tally.taken(what);
    }
    // What was done, and never forged: approved by somebody else, free above the ceiling, graded lower.
    let others = [
        (
            "terms:other_approvers",
            Work {
                approver: Some(fresh_key().unwrap().into()),
                ..SCRIPT.into()
            },
        ),
        (
            "terms:other_policy",
            Work {
                ceiling: 2,
                ..SCRIPT.into()
            },
        ),
        (
            "terms:other_tool",
            Work {
                sending: "L2",
                ..SCRIPT.into()
            },
        ),
    ];
    for (finding, work) in others {
        let (job, ran) = run_on(scene, &scene.machine, scene.made, &work).await;
        let attested = scene.machine.hand_over(&job, &ran).await.unwrap();
        broke_terms(scene, &job, &attested, finding);
        tally.taken(what);
    }
    // Without a ticket, and with that of a run from before.
    let before = scene.machine.register(scene.made).await.unwrap();
    for (ticket, finding) in [
        (None, "bundle:no_ticket"),
        (Some(before.ticket()), "bundle:other_run"),
    ] {
        let job = scene.machine.register(scene.made).await.unwrap();
        let key = &scene.machine.log_key;
        let ran = scene
            .fleet
            .workplace
            .run(ticket, key, &SCRIPT.into())
            .await
            .unwrap();
        let attested = scene.machine.hand_over(&job, &ran).await.unwrap();
        not_its_log(scene, &job, &attested, finding);
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
    let tampered = ran.note_at(4).unwrap().replace("\n4\n", "\n5\n");
    assert_ne!(tampered, ran.note_at(4).unwrap());
    for note in [
        &*others.note().unwrap(),
        &tampered,
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
    not_its_log(scene, &job, &attested, "bundle:inconsistent");
    tally.taken(what);
}
