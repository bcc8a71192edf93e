//! What somebody signs for: everything that decides about a request, as the session itself wrote it.

use std::time::Duration;

use lodestar_guard::channel::Announcement;
use lodestar_guard::channel::drop::{Pile, Unusable};
use lodestar_policy::ApprovalRequest;
use serde_json::json;

use crate::forgery::{Scene, reasons_of};
use crate::people::{GRANT, config, said};

const HOUR: Duration = Duration::from_secs(3600);

type Edit = (&'static str, fn(&mut ApprovalRequest));

/// Whoever passes a request on may want it to look otherwise.
const EDITS: [Edit; 9] = [
    ("fewer people", |request| request.requirement.quorum = 1),
    ("other roles", |request| {
        request.requirement.roles = ["anybody".to_owned()].into();
    }),
    ("a longer time", |request| {
        request.requirement.expires_seconds += 1;
    }),
    ("a later end", |request| {
        request.expires_at = request.expires_at.checked_add(HOUR).unwrap();
    }),
    ("a later beginning", |request| {
        request.created_at = request.created_at.checked_add(HOUR).unwrap();
    }),
    ("another reason", |request| {
        request.card.why = "It is routine.".to_owned();
    }),
    ("nothing that goes out", |request| {
        request.card.going_out.clear();
    }),
    ("no measurements", |request| request.card.measured.clear()),
    ("another project", |request| {
        request.project = "other".parse().unwrap();
    }),
];

async fn asked() -> Scene {
    let two = "[approvals.default]\nquorum = 2\n";
    let send = json!({"to": "anna@corp.example", "text": "hello"});
    Scene::held(&config(30, two), send).await
}

#[tokio::test]
async fn an_edited_request_is_not_shown() {
    let scene = asked().await;
    let file = scene
        .drop_folder()
        .join(format!("{}.request.json", scene.request.id));
    let honest = std::fs::read(&file).unwrap();
    let found = |announcement: &Announcement| {
        std::fs::write(&file, serde_json::to_vec(announcement).unwrap()).unwrap();
        let pile = Pile::below(&scene.project.root).unwrap();
        let unusable = pile.unusable().next().map(|(_, _, why)| why.clone());
        (pile.requests().count(), unusable)
    };
    let genuine: Announcement = serde_json::from_slice(&honest).unwrap();
    assert_eq!(found(&genuine), (1, None));
    for (what, edit) in EDITS {
        let mut other = genuine.clone();
        edit(&mut other.request);
        assert_ne!(other, genuine, "{what}");
        assert_eq!(found(&other), (0, Some(Unusable::OtherCard)), "{what}");
    }
    let mut other = genuine.clone();
    other.project = "other".parse().unwrap();
    assert_eq!(found(&other), (0, Some(Unusable::OtherProject)));
    // What is only news is nobody's word, and changes nothing of what would be signed.
    let mut other = genuine.clone();
    (other.granted_by, other.missing) = (vec!["person-2".parse().unwrap()], 0);
    assert_eq!(found(&other), (1, None));
    scene.over().await;
}

#[tokio::test]
async fn a_word_for_an_edited_request_is_refused_also_where_its_digest_was_mended() {
    let scene = asked().await;
    for (what, edit) in EDITS {
        let mut other = scene.request.clone();
        edit(&mut other);
        other.card_digest = other.digest().unwrap();
        assert_ne!(other.card_digest, scene.request.card_digest, "{what}");
        scene.drop_answer(&said(&other, 1, GRANT));
    }
    scene.heard().await;
    let events = scene.over().await;
    let reasons = reasons_of(&events, "approval.refused@1");
    assert_eq!(reasons, [("other_card".to_owned(), EDITS.len())].into());
    assert_eq!(scene.ran(), 0);
}
