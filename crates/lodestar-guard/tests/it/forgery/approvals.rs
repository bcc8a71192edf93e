//! Answers in the drop directory.

use lodestar_core::digest::sha256;
use lodestar_core::id::RequestId;
use lodestar_core::statement::{Approval, Envelope, Issued, Nonce};
use lodestar_core::time::Timestamp;
use lodestar_log::Clock;
use lodestar_policy::ApprovalRequest;
use serde_json::json;

use super::mutants::{Change, Mutants};
use super::{Scene, reasons_of};
use crate::governed::{GRADES, count};
use crate::people::{GRANT, key, said, times_out};

/// Persons 1 and 2 may approve; 3 to 6 lack role, clearance, scope, and a key that counts.
fn config() -> String {
    let person = |seed: u8, more: &str| {
        format!(
            "[[approvals.authorized_keys]]\nactor_id = \"person-{seed}\"\n\
             public_key = \"{}\"\n{more}\n",
            key(seed).public()
        )
    };
    let people = [
        person(1, "roles = [\"dev\"]"),
        person(2, "roles = [\"dev\"]"),
        person(3, "roles = [\"ops\"]"),
        person(4, "roles = [\"dev\"]\nclearance = \"L3\""),
        person(5, "roles = [\"dev\"]\nscope = \"project:other\""),
        person(
            6,
            "roles = [\"dev\"]\nrevoked_at = \"2026-01-01T00:00:00.000000Z\"",
        ),
    ];
    format!(
        "approval_timeout_ms = 20\n{GRADES}\n[approvals.default]\nroles = [\"dev\"]\n{}",
        people.concat()
    )
}

fn arguments() -> serde_json::Value {
    json!({"to": "anna@corp.example", "text": "hello", "count": 1})
}

fn issued(envelope: &[u8]) -> Issued<Approval> {
    let envelope = Envelope::from_json(envelope).unwrap();
    serde_json::from_slice(envelope.unverified_payload()).unwrap()
}

fn seconds(by: i64) -> Timestamp {
    let now = Clock::system().now().unix_micros();
    Timestamp::from_unix_micros(now + by * 1_000_000).unwrap()
}

fn forgeries(request: &ApprovalRequest) -> Mutants {
    let mut mutants = Mutants::default();
    let genuine = said(request, 1, GRANT);
    mutants.of_envelope(&genuine, &key(1));
    mutants.of_text(&genuine);
    let honest = issued(&genuine);
    let other_act = sha256(b"another act").to_string().parse().unwrap();
    let mut changes: Vec<Change<'_, Approval>> = vec![
        ("not_yet_issued", &|it| it.issued_at = seconds(3600)),
        ("expired", &|it| it.expires_at = Some(seconds(-1))),
        ("expired", &|it| it.expires_at = Some(it.issued_at)),
        ("other_session", &|it| {
            it.subject.session = "s-other".parse().unwrap()
        }),
        ("other_request", &|it| {
            it.subject.request = RequestId::from_parts(1, [7; 10])
        }),
        ("other_card", &|it| {
            it.subject.card = sha256(b"another card")
        }),
        ("other_policy", &|it| {
            it.subject.policy = sha256(b"another policy")
        }),
        ("other_approver", &|it| {
            it.subject.approver = "person-2".parse().unwrap()
        }),
        ("other_approver", &|it| {
            it.subject.approver = "root".parse().unwrap()
        }),
    ];
    let fingerprint = |it: &mut Issued<Approval>| it.subject.fingerprint = other_act;
    changes.push(("other_fingerprint", &fingerprint));
    // Each with other nonces and reasons, as somebody who tries again and again would.
    for again in 0..30_u8 {
        let mut honest = honest.clone();
        honest.nonce = Nonce::from_bytes([again; 16]);
        honest.subject.reason = format!("attempt {again}");
        mutants.changed(&honest, &key(1), &changes);
    }
    mutants.by_strangers(&honest);
    for (seed, lacks) in [
        (3, "no_role"),
        (4, "no_clearance"),
        (5, "other_scope"),
        (6, "revoked_key"),
    ] {
        for _ in 0..20 {
            mutants.add(
                "by whoever lacks something",
                lacks,
                said(request, seed, GRANT),
            );
        }
    }
    mutants
}

/// Answers to requests of other sessions, other projects and other acts, all of them genuine.
async fn genuine_elsewhere(mutants: &mut Mutants, scene: &Scene) {
    let elsewhere = Scene::held(&config(), arguments()).await;
    mutants.add(
        "another project's",
        "other_session",
        said(&elsewhere.request, 1, GRANT),
    );
    elsewhere.session.close("done").await.unwrap();
    for other in [
        json!({"to": "anna@corp.example", "text": "hello", "count": 2}),
        json!({"to": "eve@evil.example", "text": "hello", "count": 1}),
        json!({"to": "anna@corp.example", "text": "hello"}),
    ] {
        let id = times_out(&scene.session, other).await;
        let mut of_another = scene.request.clone();
        of_another.id = id;
        mutants.add(
            "another request's",
            "other_request",
            said(&of_another, 1, GRANT),
        );
    }
}

#[tokio::test]
async fn matrix_forged_answers_in_the_drop_directory_run_nothing() {
    let scene = Scene::held(&config(), arguments()).await;
    let mut mutants = forgeries(&scene.request);
    genuine_elsewhere(&mut mutants, &scene).await;
    for (number, mutant) in mutants.all.iter().enumerate() {
        scene.drop_answer(&mutant.bytes);
        // The call is made again and again meanwhile, as by an agent that has time.
        if number % 400 == 0 {
            times_out(&scene.session, arguments()).await;
        }
    }
    scene.heard().await;
    assert_eq!(
        times_out(&scene.session, arguments()).await,
        scene.request.id
    );
    assert!(!scene.traces().exists(), "it has run");

    // The genuine word opens it, once; its copies and the same arguments spelt otherwise find it so.
    let genuine = said(&scene.request, 1, GRANT);
    scene.drop_answer(&genuine);
    scene.heard().await;
    let spelt =
        serde_json::from_str(r#"{"count": 1.0, "text": "hell\u006f", "to": "anna@corp.example"}"#);
    let reply = scene
        .session
        .call("box.send", spelt.unwrap())
        .await
        .unwrap();
    assert!(reply.ran(), "{:?}", reply.outcome);
    for _ in 0..20 {
        scene.drop_answer(&genuine);
        mutants.add("replayed", "closed", genuine.clone());
    }
    scene.heard().await;
    assert_ne!(
        times_out(&scene.session, arguments()).await,
        scene.request.id
    );
    assert_eq!(scene.ran(), 1);

    let events = scene.over().await;
    let found = reasons_of(&events, "approval.refused@1");
    assert_eq!(count(&events, "approval.granted"), 1);
    assert_eq!(count(&events, "approval.denied"), 0);
    let (wanted, of_form) = mutants.wanted();
    let mut spare = 0;
    for (reason, times) in &found {
        let wanted = wanted.get(reason).copied().unwrap_or(0);
        let may_be_of_form = ["malformed", "statement", "unknown_key", "bad_signature"];
        assert!(*times >= wanted, "{reason}: {times} of {wanted}");
        if !may_be_of_form.contains(&reason.as_str()) {
            assert_eq!(*times, wanted, "{reason}");
        }
        spare += times - wanted;
    }
    assert!(wanted.keys().all(|reason| found.contains_key(reason)));
    assert_eq!(spare, of_form, "each is in the log, once");
    assert_eq!(found.values().sum::<usize>(), mutants.all.len());
    mutants.print("answers through a session and its drop directory");
    println!("reasons: {found:?}");
    assert!(mutants.all.len() >= 2_000);
}
