//! Attestations: every field altered, words reused, and what a client says of facts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lodestar_core::canonical;
use lodestar_core::digest::sha256;
use lodestar_core::execution::ExecutionLevel;
use lodestar_core::key::SecretKey;
use lodestar_core::statement::{Attestation, Envelope, StatementKind, pae};
use lodestar_core::time::Timestamp;
use lodestar_gateway::client::GatewayError;
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use serde_json::{Value, json};

use super::Scene;
use super::post::Post;
use lodestar_harness::world::fleet::{Claims, Job, SCRIPT, Work, fresh_key, fresh_nonce};

/// A moment so many seconds from another.
pub(super) fn moment(now: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(now.unix_micros() + seconds * 1_000_000).unwrap()
}

/// An envelope around any payload, signed by hand.
pub(super) fn dsse(kind: StatementKind, payload: &Value, keys: &[&SecretKey]) -> Value {
    dsse_bytes(
        kind.payload_type(),
        &canonical::to_vec(payload).unwrap(),
        keys,
    )
}

fn dsse_bytes(kind: &str, payload: &[u8], keys: &[&SecretKey]) -> Value {
    let message = pae(kind, payload);
    let signatures: Vec<_> = keys
        .iter()
        .map(|key| {
            let sig = STANDARD.encode(key.sign(&message));
            json!({"keyid": key.public().key_id(), "sig": sig})
        })
        .collect();
    json!({"payload": STANDARD.encode(payload), "payloadType": kind, "signatures": signatures})
}

/// The same payload with every one of its values altered, left out, or of another type; and with one more.
pub(super) fn fields(payload: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    alter(payload, &mut |changed| found.push(changed));
    found
}

fn alter(value: &Value, give: &mut dyn FnMut(Value)) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                let mut without = members.clone();
                without.remove(name);
                give(Value::Object(without));
                alter(inner, &mut |changed| {
                    let mut members = members.clone();
                    members.insert(name.clone(), changed);
                    give(Value::Object(members));
                });
            }
            let mut more = members.clone();
            more.insert("zz_more".to_owned(), json!(true));
            give(Value::Object(more));
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                alter(item, &mut |changed| {
                    let mut items = items.clone();
                    items[at] = changed;
                    give(Value::Array(items));
                });
            }
            give(json!({}));
        }
        Value::String(text) => {
            give(json!(other(text)));
            give(json!(""));
            give(json!(7));
            give(Value::Null);
        }
        Value::Number(number) => {
            give(json!(number.as_u64().unwrap_or_default() + 1));
            give(json!("7"));
            give(json!(-1));
        }
        other => give(json!({"was": other})),
    }
}

/// Another text of the same form: its last hexadecimal digit, or its last letter, is another.
fn other(text: &str) -> String {
    let mut text = text.to_owned();
    match text.pop() {
        Some('0') => text.push('1'),
        Some(digit) if digit.is_ascii_hexdigit() => text.push('0'),
        Some(letter) => {
            text.push(letter);
            text.push('x');
        }
        None => text.push('x'),
    }
    text
}

pub(super) async fn attack(scene: &Scene) {
    every_field(scene).await;
    every_name(scene).await;
    reused(scene).await;
    claims(scene).await;
}

/// Hands an envelope in, whatever it is.
async fn vouch(scene: &Scene, job: &Job, envelope: &Value) -> Result<Value, GatewayError> {
    let path = format!("/v1/runs/{}/attestations", job.run);
    let body = json!({"envelope": envelope}).to_string();
    let post = Post::new("POST", &path)
        .token(&scene.machine.token)
        .json(body);
    post.send(scene.fleet.address()).await
}

async fn every_field(scene: &Scene) {
    let what = "every field of the statement altered";
    let (owner, tally, machine) = (&scene.owner, &scene.tally, &scene.machine);
    let job = machine.register(scene.made).await.unwrap();
    let ran = machine.work(&job).await.unwrap();
    let (word, _) = machine.deliver(&job, &ran).await.unwrap();
    let genuine = Envelope::attest(&word, &machine.key).unwrap();
    let payload: Value = serde_json::from_slice(genuine.unverified_payload()).unwrap();
    let kind = StatementKind::Attestation;
    let codes = [
        Code::StatementMismatch,
        Code::EnvelopeMalformed,
        Code::SignatureInvalid,
        Code::ClockSkew,
    ];
    let (mut altered, mut untouched) = (0, 0);
    for changed in fields(&payload) {
        // A word is given when it is given, and its nonce is its own: another of those is another word.
        let mut same = changed.clone();
        for own in ["nonce", "issued_at"] {
            same["predicate"][own] = payload["predicate"][own].clone();
        }
        let parsed: Result<Attestation, _> = serde_json::from_value(changed.clone());
        if same == payload
            && parsed.is_ok_and(|word| word.predicate.key_id == machine.key.public().key_id())
        {
            untouched += 1;
        } else {
            let resigned = dsse(kind, &changed, &[&*machine.key]);
            tally.refused(what, vouch(scene, &job, &resigned).await, &codes);
            altered += 1;
        }
        let mut kept = serde_json::to_value(&genuine).unwrap();
        kept["payload"] = json!(STANDARD.encode(canonical::to_vec(&changed).unwrap()));
        let codes = [Code::SignatureInvalid, Code::EnvelopeMalformed];
        tally.refused(what, vouch(scene, &job, &kept).await, &codes);
    }
    assert!(
        altered > 60 && untouched <= 2,
        "{altered} altered, {untouched} not"
    );
    // The envelope itself.
    let pretty = serde_json::to_vec_pretty(&payload).unwrap();
    let twice = String::from_utf8(genuine.unverified_payload().to_vec()).unwrap();
    let twice = twice.replacen('{', "{\"_type\":\"x\",", 1).into_bytes();
    for bytes in [&pretty[..], &twice, b"", b"{}", b"[]", b"null", b"\xff\xfe"] {
        let resigned = dsse_bytes(kind.payload_type(), bytes, &[&*machine.key]);
        tally.refused(
            what,
            vouch(scene, &job, &resigned).await,
            &[Code::EnvelopeMalformed, Code::InvalidBody],
        );
    }
    for other in StatementKind::ALL.iter().filter(|other| **other != kind) {
        let resigned = dsse(*other, &payload, &[&*machine.key]);
        let codes = [Code::StatementKind, Code::EnvelopeMalformed];
        tally.refused(what, vouch(scene, &job, &resigned).await, &codes);
    }
    let written = serde_json::to_value(&genuine).unwrap();
    let codes = [
        Code::InvalidBody,
        Code::EnvelopeMalformed,
        Code::SignatureInvalid,
        Code::StatementKind,
    ];
    for changed in fields(&written) {
        tally.refused(what, vouch(scene, &job, &changed).await, &codes);
    }
    for key in [
        &*machine.log_key,
        &*owner.owner,
        &*scene.rogue.key,
        &fresh_key().unwrap(),
    ] {
        let mut payload = payload.clone();
        payload["predicate"]["key_id"] = json!(key.public().key_id());
        let forged = dsse(kind, &payload, &[key]);
        tally.refused(
            what,
            vouch(scene, &job, &forged).await,
            &[Code::SignatureInvalid],
        );
    }
    assert_eq!(scene.level(owner, &job).await, None, "nothing was graded");
    machine.beat(&[scene.made.runner]).await.unwrap();
    let attested = vouch(scene, &job, &written).await.unwrap();
    assert_eq!(attested["level"], "fully_trusted", "{attested}");
}

/// What is there, and somebody else's or of something else: the refusal says which field it is about.
async fn every_name(scene: &Scene) {
    let what = "fields of the statement that name something else";
    let (owner, tally, machine) = (&scene.owner, &scene.tally, &scene.machine);
    let job = machine.register(scene.made).await.unwrap();
    let ran = machine.work(&job).await.unwrap();
    let (word, _) = machine.deliver(&job, &ran).await.unwrap();
    let (hers, other) = (scene.hers, sha256(b"something else"));
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Attestation));
    let changes: [Change<'_>; 17] = [
        ("session", &|it| it.session = "another".parse().unwrap()),
        ("root", &|it| it.root = other),
        ("account", &|it| it.predicate.account = scene.mallory.id),
        ("agent", &|it| it.predicate.agent = hers.agent),
        ("bundle", &|it| it.predicate.bundle = other),
        ("device", &|it| it.predicate.device = scene.rogue.id),
        ("lens_hash", &|it| it.predicate.lens_hash = Some(other)),
        ("lens_hash", &|it| it.predicate.lens_hash = None),
        ("policy", &|it| it.predicate.policy = other),
        ("run", &|it| it.predicate.run = scene.best.run),
        ("run_nonce", &|it| it.predicate.run_nonce = scene.best.nonce),
        ("runner", &|it| it.predicate.runner = hers.runner),
        ("size", &|it| it.predicate.size += 1),
        ("size", &|it| it.predicate.size -= 1),
        ("workflow_hash", &|it| it.predicate.workflow_hash = None),
        ("workflow_hash", &|it| {
            it.predicate.workflow_hash = it.predicate.lens_hash;
        }),
        ("lens_hash", &|it| {
            it.predicate.lens_hash = it.predicate.workflow_hash;
        }),
    ];
    for (named, change) in changes {
        let mut changed = word.clone();
        change(&mut changed);
        let answer = machine.vouch(job.run, &changed, Claims::default()).await;
        match &answer {
            Err(GatewayError::Refused { field, .. }) => {
                assert_eq!(field.as_deref(), Some(named));
            }
            other => panic!("{named}: {other:?}"),
        }
        tally.refused(what, answer, &[Code::StatementMismatch]);
    }
    assert_eq!(scene.level(owner, &job).await, None);
}

async fn reused(scene: &Scene) {
    let what = "attestations reused for another run";
    let (owner, tally, machine) = (&scene.owner, &scene.tally, &scene.machine);
    let first = machine.register(scene.made).await.unwrap();
    let ran = machine.work(&first).await.unwrap();
    let (word, packed) = machine.deliver(&first, &ran).await.unwrap();
    let none = Claims::default();
    let mut others = Vec::new();
    for _ in 0..3 {
        let other = machine.register(scene.made).await.unwrap();
        tally.refused(
            what,
            machine.vouch(other.run, &word, none).await,
            &[Code::StatementMismatch],
        );
        // Nor is the session of the first that of another: what people approved in it counts once.
        let note = ran.note().unwrap();
        let answer = machine.client.checkpoint(other.run, &note).await;
        tally.refused(what, answer, &[Code::SessionTaken]);
        // The log of the first is handed in all the same, behind a checkpoint of a session of its own.
        let own = machine.work(&other).await.unwrap();
        machine
            .client
            .checkpoint(other.run, &own.note().unwrap())
            .await
            .unwrap();
        machine
            .send(&other, &ran.packed().unwrap().0, &packed)
            .await
            .unwrap();
        tally.refused(
            what,
            machine.vouch(other.run, &word, none).await,
            &[Code::StatementMismatch],
        );
        others.push((other, own));
    }
    machine.vouch(first.run, &word, none).await.unwrap();
    let jobs = others.iter().map(|(other, _)| other);
    for job in jobs.chain([&first, &scene.best]) {
        let answer = machine.vouch(job.run, &word, none).await;
        tally.refused(
            what,
            answer,
            &[Code::AttestationReused, Code::StatementMismatch],
        );
    }
    for (other, own) in &others {
        assert_eq!(scene.level(owner, other).await, None);
        // A new word over the old log names a session that is not the run's.
        let mut anew = machine.word(other, &ran, &packed).unwrap();
        tally.refused(
            what,
            machine.vouch(other.run, &anew, none).await,
            &[Code::StatementMismatch],
        );
        // One that names the run's own is taken, and the log is not of it.
        anew.session = own.dir.session().clone();
        let attested = machine.vouch(other.run, &anew, none).await.unwrap();
        assert!(!attested.found.gateway_verified && !attested.found.policy_passed);
        assert_eq!(
            attested.level,
            ExecutionLevel::RunnerVerified,
            "{attested:?}"
        );
        tally.found(other.run, "bundle:other_session");
        tally.taken(what);
    }
}

async fn claims(scene: &Scene) {
    let what = "client-set booleans";
    let (owner, tally, machine) = (&scene.owner, &scene.tally, &scene.machine);
    let job = machine.register(scene.made).await.unwrap();
    let work = Work {
        approver: Some(fresh_key().unwrap().into()),
        ..Work::from(SCRIPT)
    };
    let ran = scene
        .fleet
        .workplace
        .run(Some(job.ticket()), &machine.log_key, &work)
        .await
        .unwrap();
    let (word, _) = machine.deliver(&job, &ran).await.unwrap();
    let values = [None, Some(false), Some(true)];
    let mut sent = 0;
    for device_trusted in values {
        for gateway_verified in values {
            for policy_passed in values {
                let mut word = word.clone();
                word.predicate.nonce = fresh_nonce().unwrap();
                let asked = wire::Attest {
                    envelope: Envelope::attest(&word, &machine.key).unwrap(),
                    device_trusted,
                    gateway_verified,
                    policy_passed,
                };
                let attested = machine.client.attest(job.run, &asked).await.unwrap();
                assert_eq!(
                    attested.level,
                    ExecutionLevel::ExecutionVerified,
                    "{attested:?}"
                );
                let found = attested.found;
                assert!(found.device_trusted && found.gateway_verified && !found.policy_passed);
                tally.taken(what);
                sent += 1;
            }
        }
    }
    assert_eq!(sent, 27);
    // What is none of them is no field.
    for field in [
        "level",
        "valid",
        "runner_bound",
        "runner_fresh",
        "signature_ok",
        "fully_trusted",
    ] {
        let path = format!("/v1/runs/{}/attestations", job.run);
        let envelope = Envelope::attest(&word, &machine.key).unwrap();
        let body = json!({"envelope": envelope, field: true}).to_string();
        let post = Post::new("POST", &path).token(&machine.token).json(body);
        let answer = post.send(scene.fleet.address()).await;
        tally.refused(what, answer, &[Code::InvalidBody]);
    }
    assert_eq!(
        scene.level(owner, &job).await,
        Some(ExecutionLevel::ExecutionVerified)
    );
}
