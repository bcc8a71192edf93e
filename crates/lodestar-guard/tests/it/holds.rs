//! Held calls, and the resolver inside the process: only a signed word of a registered person counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{ApprovalDecision, Envelope, Nonce};
use lodestar_core::time::Timestamp;
use lodestar_guard::{Holds, Resolver, Resolving, Session};
use lodestar_kernel::record::Rejection;
use lodestar_log::Clock;
use lodestar_policy::{ApprovalRequest, Signed};
use serde_json::json;

use crate::governed::{CountingTool, GRADES, Project, count};

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn config(approvals: &str) -> String {
    format!("approval_timeout_ms = 2000\n{GRADES}\n{approvals}")
}

fn approver(name: &str, seed: u8, more: &str) -> String {
    format!(
        "[[approvals.authorized_keys]]\nactor_id = \"{name}\"\npublic_key = \"{}\"\n{more}\n",
        key(seed).public()
    )
}

static NONCE: AtomicU8 = AtomicU8::new(0);

fn say(
    request: &ApprovalRequest,
    name: &str,
    seed: u8,
    decision: ApprovalDecision,
    at: Timestamp,
) -> Envelope {
    let nonce = Nonce::from_bytes([NONCE.fetch_add(1, Ordering::SeqCst); 16]);
    let key = key(seed);
    let signed = Signed {
        key: &key,
        at,
        nonce,
    };
    let name = ActorId::new(name).unwrap();
    request
        .answer(&name, decision, "looked at it", signed)
        .unwrap()
}

fn now() -> Timestamp {
    Clock::system().now()
}

struct Answering<F>(F);

impl<F: Fn(&ApprovalRequest) -> Vec<Envelope> + Send + Sync> Resolver for Answering<F> {
    fn resolve<'a>(&'a self, request: &'a ApprovalRequest) -> Resolving<'a> {
        Box::pin(async move { (self.0)(request) })
    }
}

async fn open(
    project: &Project,
    config: &str,
    tool: &CountingTool,
    answer: impl Fn(&ApprovalRequest) -> Vec<Envelope> + Send + Sync + 'static,
) -> Session {
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let setup = project.setup(config, &others).tool(tool.clone());
    let setup = setup.holds(Holds::Ask(Arc::new(Answering(answer))));
    setup.open().await.unwrap()
}

fn send() -> serde_json::Value {
    json!({"to": "anna@corp.example", "text": "hello"})
}

#[tokio::test]
async fn a_signed_grant_of_a_registered_person_lets_exactly_this_run_once() {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let config = config(&approver("anna", 1, ""));
    let session = open(&project, &config, &tool, |request| {
        vec![say(request, "anna", 1, ApprovalDecision::Grant, now())]
    })
    .await;
    assert!(session.call("box.send", send()).await.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert_eq!(count(&events, "approval.granted"), 1);
    let cleared = &events
        .iter()
        .find(|(kind, _)| kind == "action.cleared@1")
        .unwrap()
        .1;
    assert_eq!(cleared["grants"].as_array().unwrap().len(), 1);
    let replay = project.assert_sound(session.id());
    assert_eq!(replay.answers, 1);
}

#[tokio::test]
async fn words_that_do_not_count_are_refused_by_name_and_a_genuine_one_still_works() {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let config = config(&format!(
        "{}{}{}",
        approver("anna", 1, ""),
        approver("low", 2, "clearance = \"L3\""),
        approver("gone", 3, "revoked_at = \"2020-01-01T00:00:00.000000Z\"")
    ));
    let session = open(&project, &config, &tool, |request| {
        let grant = ApprovalDecision::Grant;
        let mut other_act = request.clone();
        other_act.card.action.fingerprint = {
            let mut text = other_act.card.action.fingerprint.to_string();
            let last = text.pop().unwrap();
            text.push(if last == '0' { '1' } else { '0' });
            text.parse().unwrap()
        };
        let mut other_card = request.clone();
        other_card.card_digest = request.policy;
        let mut other_policy = request.clone();
        other_policy.policy = request.card_digest;
        let mut other_session = request.clone();
        other_session.session = lodestar_core::name::SessionId::new("other").unwrap();
        let mut other_request = request.clone();
        other_request.id = lodestar_core::id::RequestId::from_parts(1, [0; 10]);
        let hour = std::time::Duration::from_secs(3600);
        vec![
            say(request, "stranger", 9, grant, now()),
            say(request, "gone", 3, grant, now()),
            say(request, "anna", 1, grant, now().checked_add(hour).unwrap()),
            say(&other_session, "anna", 1, grant, now()),
            say(&other_request, "anna", 1, grant, now()),
            say(&other_act, "anna", 1, grant, now()),
            say(&other_card, "anna", 1, grant, now()),
            say(&other_policy, "anna", 1, grant, now()),
            say(request, "low", 1, grant, now()),
            say(request, "low", 2, grant, now()),
            say(request, "anna", 1, grant, now()),
        ]
    })
    .await;
    assert!(session.call("box.send", send()).await.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    let reasons: Vec<_> = events
        .iter()
        .filter(|(kind, _)| kind == "approval.refused@1")
        .map(|(_, payload)| payload["reason"]["refused"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        reasons,
        [
            "unknown_key",
            "revoked_key",
            "not_yet_issued",
            "other_session",
            "other_request",
            "other_fingerprint",
            "other_card",
            "other_policy",
            "other_approver",
            "no_clearance",
        ]
    );
    project.assert_sound(session.id());
}

#[tokio::test]
async fn one_no_ends_it_and_a_quorum_needs_different_people() {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let people = format!("{}{}", approver("anna", 1, ""), approver("ben", 2, ""));
    let quorum = format!("[approvals.default]\nquorum = 2\n{people}");
    let twice = open(&project, &config(&quorum), &tool, |request| {
        let grant = ApprovalDecision::Grant;
        vec![
            say(request, "anna", 1, grant, now()),
            say(request, "anna", 1, grant, now()),
        ]
    })
    .await;
    let reply = twice.call("box.send", send()).await.unwrap();
    assert!(matches!(
        reply.refusal(),
        Some(Rejection::ApprovalRequired { .. })
    ));
    twice.close("done").await.unwrap();
    project.assert_sound(twice.id());
    let both = open(&project, &config(&quorum), &tool, |request| {
        let grant = ApprovalDecision::Grant;
        vec![
            say(request, "anna", 1, grant, now()),
            say(request, "ben", 2, grant, now()),
        ]
    })
    .await;
    assert!(both.call("box.send", send()).await.unwrap().ran());
    both.close("done").await.unwrap();
    project.assert_sound(both.id());
    let denied = open(&project, &config(&quorum), &tool, |request| {
        vec![
            say(request, "anna", 1, ApprovalDecision::Grant, now()),
            say(request, "ben", 2, ApprovalDecision::Deny, now()),
            say(request, "ben", 2, ApprovalDecision::Grant, now()),
        ]
    })
    .await;
    let reply = denied.call("box.send", send()).await.unwrap();
    assert!(matches!(
        reply.refusal(),
        Some(Rejection::ApprovalDenied { .. })
    ));
    denied.close("done").await.unwrap();
    project.assert_sound(denied.id());
    assert_eq!(tool.ran(), 1);
}

#[tokio::test]
async fn nobody_answers_in_time() {
    struct Silent;
    impl Resolver for Silent {
        fn resolve<'a>(&'a self, _: &'a ApprovalRequest) -> Resolving<'a> {
            Box::pin(std::future::pending())
        }
    }
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let config = config("").replace("= 2000", "= 30");
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let setup = project.setup(&config, &others).tool(tool.clone());
    let session = setup
        .holds(Holds::Ask(Arc::new(Silent)))
        .open()
        .await
        .unwrap();
    let reply = session.call("box.send", send()).await.unwrap();
    assert!(matches!(
        reply.refusal(),
        Some(Rejection::ApprovalTimeout { .. })
    ));
    assert_eq!(tool.ran(), 0);
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}
