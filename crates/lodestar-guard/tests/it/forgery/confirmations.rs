//! Confirmations in their folder.

use std::time::Duration;

use lodestar_core::digest::sha256;
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Envelope, Issued, Nonce,
};
use lodestar_core::time::Timestamp;
use lodestar_log::Clock;
use serde_json::json;

use super::mutants::{Change, Mutants};
use super::{Scene, reasons_of};
use crate::beforehand::{YES, confirming, folder, put, word};
use crate::governed::count;
use crate::people::{key, random, send, times_out};

/// Most that a session looks at for one call.
const AT_ONCE: usize = 64;

fn seconds(by: i64) -> Timestamp {
    let now = Clock::system().now().unix_micros();
    Timestamp::from_unix_micros(now + by * 1_000_000).unwrap()
}

fn forgeries(scene: &Scene) -> Mutants {
    let mut mutants = Mutants::default();
    let genuine = word(&scene.request, 1, YES).details().to_json();
    mutants.of_envelope(&genuine, &key(1));
    mutants.of_text(&genuine);
    let envelope = Envelope::from_json(&genuine).unwrap();
    let honest: Issued<Confirmation> =
        serde_json::from_slice(envelope.unverified_payload()).unwrap();
    let changes: [Change<'_, Confirmation>; 14] = [
        ("other_origin", &|it| {
            it.subject.origin = ConfirmationOrigin::OperatorContractReview;
        }),
        ("other_operator", &|it| {
            it.subject.operator = "person-2".parse().unwrap()
        }),
        ("expired", &|it| it.expires_at = Some(seconds(-1))),
        ("overlong", &|it| it.expires_at = None),
        ("overlong", &|it| it.expires_at = Some(seconds(3600))),
        ("mismatch", &|it| {
            it.subject.act.tool = "box.write".parse().unwrap()
        }),
        ("mismatch", &|it| {
            it.subject.act.server = "mail".parse().unwrap()
        }),
        ("mismatch", &|it| {
            it.subject.act.tool_definition = sha256(b"another")
        }),
        ("mismatch", &|it| {
            it.subject.act.contract = sha256(b"another")
        }),
        ("mismatch", &|it| {
            it.subject.act.paths = vec!["a.md".to_owned()]
        }),
        ("mismatch", &|it| {
            it.subject.act.scope = "project:other".parse().unwrap();
        }),
        ("mismatch", &|it| {
            let arguments = &mut it.subject.act.arguments;
            arguments.insert("to".to_owned(), json!("eve@evil.example"));
        }),
        ("mismatch", &|it| {
            it.subject.session = "s-other".parse().unwrap()
        }),
        ("declined", &|it| {
            it.subject.decision = ConfirmationDecision::Decline
        }),
    ];
    for again in 0..5_u8 {
        let mut honest = honest.clone();
        honest.nonce = Nonce::from_bytes([again; 16]);
        honest.subject.id = ConfirmationId::from_bytes(random());
        honest.expires_at = honest.issued_at.checked_add(Duration::from_secs(600));
        mutants.changed(&honest, &key(1), &changes);
    }
    mutants.by_strangers(&honest);
    mutants
}

/// Whether all that lies there was really signed, for another session.
fn are_for_another(scene: &Scene) -> bool {
    let files = std::fs::read_dir(folder(&scene.project)).unwrap();
    let mut files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.all(|bytes| {
        let envelope = Envelope::from_json(&bytes).unwrap();
        String::from_utf8_lossy(envelope.unverified_payload()).contains("\"s-other\"")
    })
}

#[tokio::test]
async fn matrix_forged_confirmations_in_their_folder_run_nothing() {
    let scene = Scene::held(&confirming(5, "enforce", ""), send()).await;
    let mut mutants = forgeries(&scene);
    for some in mutants.all.chunks(AT_ONCE) {
        for mutant in some {
            let id = ConfirmationId::from_bytes(random());
            put(&scene.project, &scene.request, id, &mutant.bytes);
        }
        times_out(&scene.session, send()).await;
        assert!(are_for_another(&scene), "all others of them are dealt with");
    }
    assert!(!scene.traces().exists(), "it has run");

    let genuine = word(&scene.request, 1, YES).details().to_json();
    let drop_genuine = || {
        let id = ConfirmationId::from_bytes(random());
        put(&scene.project, &scene.request, id, &genuine);
    };
    drop_genuine();
    let reply = scene.session.call("box.send", send()).await.unwrap();
    assert!(reply.ran(), "{:?}", reply.outcome);
    for _ in 0..20 {
        drop_genuine();
        mutants.add("replayed", "consumed", genuine.clone());
    }
    times_out(&scene.session, send()).await;
    assert_eq!(scene.ran(), 1);

    let events = scene.over().await;
    let found = reasons_of(&events, "confirmation.refused@1");
    assert_eq!(count(&events, "confirmation.consumed"), 1);
    assert_eq!(count(&events, "approval.granted"), 1);
    assert_eq!(
        count(&events, "confirmation.recorded"),
        mutants.all.len() + 1
    );
    let (wanted, _) = mutants.wanted();
    for (reason, wanted) in &wanted {
        let times = found.get(reason).copied().unwrap_or(0);
        let of_form = ["malformed", "unknown_key", "bad_signature"].contains(&reason.as_str());
        assert!(
            times == *wanted || of_form && times > *wanted,
            "{reason}: {times}"
        );
    }
    assert_eq!(found.values().sum::<usize>(), mutants.all.len());
    mutants.print("confirmations through a session and their folder");
    println!("reasons: {found:?}");
}
