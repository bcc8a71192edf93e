//! What operators say of an act before it is asked for: evidence that a session finds in a folder,
//! weighs when it holds the act, and spends once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Nonce,
};
use lodestar_guard::Session;
use lodestar_guard::confirmations::file_name;
use lodestar_log::Clock;
use lodestar_policy::ApprovalRequest;
use lodestar_policy::confirmation::Evidence;
use serde_json::Value;

use crate::governed::{CountingTool, Project, count, log_key, without_each};
use crate::people::{GRANT, Pigeon, config, gone, key, open, random, send, times_out};

/// Keys 1 and 5 may confirm in dialogs, 1 as person-1 who may also approve, 5 as somebody who may not.
pub(crate) fn confirming(timeout: u64, mode: &str, more: &str) -> String {
    let key_of = |seed: u8| {
        format!(
            "[[confirmations.keys]]\npublic_key = \"{}\"\norigins = [\"runtime-ui-confirm\"]\n\
             operators = [\"person-{seed}\"]\n",
            key(seed).public()
        )
    };
    let keys = key_of(1) + &key_of(5);
    let more = format!("[confirmations]\nmode = \"{mode}\"\n{keys}\n{more}");
    config(timeout, &more)
}

pub(crate) fn folder(project: &Project) -> PathBuf {
    project.root.join(".lodestar/confirmations")
}

/// What lies in the folder.
pub(crate) fn left(project: &Project) -> usize {
    std::fs::read_dir(folder(project)).map_or(0, |entries| entries.count())
}

pub(crate) fn put(project: &Project, request: &ApprovalRequest, id: ConfirmationId, bytes: &[u8]) {
    std::fs::create_dir_all(folder(project)).unwrap();
    let name = file_name(request.card.action.fingerprint, id);
    std::fs::write(folder(project).join(name), bytes).unwrap();
}

pub(crate) fn word(
    request: &ApprovalRequest,
    seed: u8,
    decision: ConfirmationDecision,
) -> Evidence {
    let (id, now) = (ConfirmationId::from_bytes(random()), Clock::system().now());
    let confirmation = Confirmation {
        act: (&request.card.fields().unwrap()).into(),
        decision,
        id,
        operator: format!("person-{seed}").parse().unwrap(),
        origin: ConfirmationOrigin::RuntimeUiConfirm,
        session: request.session.clone(),
    };
    let until = now.checked_add(Duration::from_secs(30)).unwrap();
    let nonce = Nonce::from_bytes(random());
    Evidence::sign(confirmation, &key(seed), nonce, now, until).unwrap()
}

/// An operator of this number says something of the act that a request asks for.
fn says(project: &Project, request: &ApprovalRequest, seed: u8, decision: ConfirmationDecision) {
    let word = word(request, seed, decision).details().to_json();
    put(
        project,
        request,
        ConfirmationId::from_bytes(random()),
        &word,
    );
}

pub(crate) const YES: ConfirmationDecision = ConfirmationDecision::Confirm;
const NO: ConfirmationDecision = ConfirmationDecision::Decline;

struct Held {
    project: Project,
    tool: CountingTool,
    pigeon: Arc<Pigeon>,
    session: Session,
    request: ApprovalRequest,
}

async fn held(config: &str) -> Held {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, config, &tool, &pigeon).await;
    times_out(&session, send()).await;
    let request = pigeon.requests().pop().unwrap();
    Held {
        project,
        tool,
        pigeon,
        session,
        request,
    }
}

impl Held {
    async fn calls(&self) -> bool {
        self.session.call("box.send", send()).await.unwrap().ran()
    }

    /// The session is sound; its events are given back.
    async fn over(&self) -> Vec<(String, Value)> {
        self.session.close("done").await.unwrap();
        self.project.assert_sound(self.session.id());
        self.project.events(self.session.id())
    }
}

pub(crate) fn reasons(events: &[(String, Value)]) -> Vec<String> {
    let refused = events
        .iter()
        .filter(|(kind, _)| kind == "confirmation.refused@1");
    let named = refused.map(|(_, payload)| {
        let reason = &payload["reason"];
        let why = reason["distrust"].as_str().or(reason["unmatched"].as_str());
        why.unwrap_or_default().to_owned()
    });
    named.collect()
}

#[tokio::test]
async fn a_confirmation_opens_exactly_the_act_that_it_names_once() {
    let held = held(&confirming(30, "enforce", "")).await;
    says(&held.project, &held.request, 1, YES);
    assert!(held.calls().await);
    assert_eq!(left(&held.project), 0, "what is spent is put away");
    assert!(!held.calls().await, "spent");
    assert_eq!(held.tool.ran(), 1);
    let events = held.over().await;
    assert_eq!(count(&events, "confirmation.recorded"), 1);
    assert_eq!(count(&events, "confirmation.consumed"), 1);
    let granted = events.iter().find(|(kind, _)| kind == "approval.granted@1");
    assert!(granted.unwrap().1["confirmation"].is_string());
}

#[tokio::test]
async fn a_confirmation_that_comes_while_the_call_waits_opens_it() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let config = confirming(20_000, "enforce", "");
    let session = open(&project, &config, &tool, &pigeon).await;
    let call = tokio::spawn({
        let session = session.clone();
        async move { session.call("box.send", send()).await.unwrap() }
    });
    let request = pigeon.announced(1).await;
    says(&project, &request, 1, YES);
    assert!(call.await.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn report_only_records_what_would_have_matched_and_grants_nothing() {
    let held = held(&confirming(30, "report-only", "")).await;
    says(&held.project, &held.request, 1, YES);
    assert!(!held.calls().await);
    assert_eq!(held.tool.ran(), 0);
    let events = held.over().await;
    assert_eq!(count(&events, "confirmation.matched"), 1);
    assert_eq!(count(&events, "confirmation.consumed"), 0);
    assert_eq!(count(&events, "approval.granted"), 0);
}

#[tokio::test]
async fn a_copy_of_a_spent_envelope_is_worth_nothing_also_after_a_restart() {
    let config = confirming(30, "enforce", "");
    let held = held(&config).await;
    let bytes = word(&held.request, 1, YES).details().to_json();
    let id = || ConfirmationId::from_bytes(random());
    put(&held.project, &held.request, id(), &bytes);
    put(&held.project, &held.request, id(), &bytes);
    assert!(held.calls().await);
    put(&held.project, &held.request, id(), &bytes);
    assert!(!held.calls().await);
    // The request of the last call is open, so that the session goes on.
    held.session.close("done").await.unwrap();
    let Held {
        project,
        tool,
        pigeon,
        session,
        request,
    } = held;
    let before = session.id().clone();
    gone(&project, session).await;
    let again = open(&project, &config, &tool, &pigeon).await;
    assert_eq!(*again.id(), before);
    put(&project, &request, id(), &bytes);
    times_out(&again, send()).await;
    assert_eq!(tool.ran(), 1);
    again.close("done").await.unwrap();
    project.assert_sound(again.id());
    let reasons = reasons(&project.events(again.id()));
    assert_eq!(reasons, ["consumed"; 3]);
}

#[tokio::test]
async fn what_the_log_says_was_spent_stays_spent_whatever_becomes_of_the_store() {
    for backend in ["memory", "sqlite"] {
        let more = format!("[persistence]\nbackend = \"{backend}\"\n");
        let config = confirming(30, "enforce", &more);
        let held = held(&config).await;
        let bytes = word(&held.request, 1, YES).details().to_json();
        let id = || ConfirmationId::from_bytes(random());
        put(&held.project, &held.request, id(), &bytes);
        assert!(held.calls().await);
        // The request of this call is open, so that the session goes on.
        assert!(!held.calls().await);
        let Held {
            project,
            tool,
            pigeon,
            session,
            request,
        } = held;
        let before = session.id().clone();
        gone(&project, session).await;
        for file in ["state.db", "state.db-wal", "state.db-shm"] {
            let _ = std::fs::remove_file(project.root.join(".lodestar").join(file));
        }
        let again = open(&project, &config, &tool, &pigeon).await;
        assert_eq!(*again.id(), before);
        put(&project, &request, id(), &bytes);
        times_out(&again, send()).await;
        assert_eq!(tool.ran(), 1, "{backend}");
        again.close("done").await.unwrap();
        project.assert_sound(again.id());
        let events = project.events(again.id());
        assert_eq!(reasons(&events), ["consumed"], "{backend}");
    }
}

#[tokio::test]
async fn a_confirmation_counted_before_a_crash_is_not_lost_and_not_counted_twice() {
    let config = confirming(30, "enforce", "[approvals.default]\nquorum = 2\n");
    let held = held(&config).await;
    says(&held.project, &held.request, 1, YES);
    assert!(!held.calls().await, "one word of two");
    let Held {
        project,
        tool,
        pigeon,
        session,
        request,
    } = held;
    let id = session.id().clone();
    gone(&project, session).await;
    let again = open(&project, &config, &tool, &pigeon).await;
    assert_eq!(*again.id(), id);
    times_out(&again, send()).await;
    pigeon.say(&request, 1, GRANT);
    pigeon.heard(1).await;
    times_out(&again, send()).await;
    assert_eq!(tool.ran(), 0, "the same person is one person");
    pigeon.say(&request, 2, GRANT);
    pigeon.heard(2).await;
    assert!(again.call("box.send", send()).await.unwrap().ran());
    again.close("done").await.unwrap();
    project.assert_sound(&id);
}

#[tokio::test]
async fn who_is_no_approver_confirms_in_vain_and_a_decline_is_recorded() {
    let held = held(&confirming(30, "enforce", "")).await;
    says(&held.project, &held.request, 5, YES);
    says(&held.project, &held.request, 1, NO);
    assert!(!held.calls().await);
    assert_eq!(held.tool.ran(), 0);
    let events = held.over().await;
    assert_eq!(reasons(&events), ["declined"]);
    let refused = events.iter().find(|(kind, _)| kind == "approval.refused@1");
    assert_eq!(refused.unwrap().1["reason"]["refused"], "not_an_approver");
}

#[tokio::test]
async fn what_only_looks_like_a_confirmation_is_recorded_and_a_genuine_one_still_works() {
    let held = held(&confirming(30, "enforce", "")).await;
    let genuine = word(&held.request, 1, YES).details().to_json();
    let text = String::from_utf8(genuine.clone()).unwrap();
    let named =
        format!(r#"{{"name":"operator-confirmation-evidence","display":false,"details":{text}}}"#);
    let other = word(&held.request, 7, YES).details().to_json();
    let mut flipped = genuine.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let sent: [&[u8]; 7] = [
        b"decision=match",
        b"{\"decision\":\"match\",\"operator\":\"person-1\"}",
        b"I confirm this.",
        &[0xff; 100],
        named.as_bytes(),
        &other,
        &flipped,
    ];
    for bytes in sent {
        let id = ConfirmationId::from_bytes(random());
        put(&held.project, &held.request, id, bytes);
    }
    assert!(!held.calls().await);
    assert_eq!((held.tool.ran(), left(&held.project)), (0, 0));
    let id = ConfirmationId::from_bytes(random());
    put(&held.project, &held.request, id, &genuine);
    assert!(held.calls().await);
    let events = held.over().await;
    assert_eq!(count(&events, "confirmation.recorded"), 8);
    assert_eq!(reasons(&events).len(), 7);
}

#[tokio::test]
async fn a_confirmation_of_another_session_or_other_arguments_does_not_match() {
    let held = held(&confirming(30, "enforce", "")).await;
    let mut other_session = held.request.clone();
    other_session.session = "s-other".parse().unwrap();
    let mut other_arguments = held.request.clone();
    let arguments = &mut other_arguments.card.action.arguments;
    arguments.insert("text".to_owned(), "hello!".into());
    for other in [&other_session, &other_arguments] {
        let bytes = word(other, 1, YES).details().to_json();
        let id = ConfirmationId::from_bytes(random());
        put(&held.project, &held.request, id, &bytes);
    }
    assert!(!held.calls().await);
    assert_eq!(held.tool.ran(), 0);
    assert_eq!(left(&held.project), 1, "the other session's stays for it");
    assert_eq!(reasons(&held.over().await), ["mismatch"; 2]);
}

#[tokio::test]
async fn forged_ones_in_front_do_not_keep_a_genuine_one_from_counting() {
    let held = held(&confirming(30, "enforce", "")).await;
    let forged = word(&held.request, 7, YES).details().to_json();
    for number in 0..200_u8 {
        let mut id = [0; 16];
        id[0] = number / 4;
        id[1] = number;
        put(
            &held.project,
            &held.request,
            ConfirmationId::from_bytes(id),
            &forged,
        );
    }
    let genuine = word(&held.request, 1, YES).details().to_json();
    let last = ConfirmationId::from_bytes([0xff; 16]);
    put(&held.project, &held.request, last, &genuine);
    assert!(held.calls().await);
    let events = held.over().await;
    assert_eq!(reasons(&events).len(), 200);
}

#[tokio::test]
async fn one_that_is_early_is_recorded_once_however_often_it_is_looked_at() {
    let held = held(&confirming(30, "enforce", "")).await;
    let confirmation = Confirmation {
        act: (&held.request.card.fields().unwrap()).into(),
        decision: YES,
        id: ConfirmationId::from_bytes(random()),
        operator: "person-1".parse().unwrap(),
        origin: ConfirmationOrigin::RuntimeUiConfirm,
        session: held.request.session.clone(),
    };
    let after = |seconds| {
        let now = Clock::system().now();
        now.checked_add(Duration::from_secs(seconds)).unwrap()
    };
    let nonce = Nonce::from_bytes(random());
    let early = Evidence::sign(confirmation, &key(1), nonce, after(60), after(90)).unwrap();
    let id = ConfirmationId::from_bytes(random());
    put(&held.project, &held.request, id, &early.details().to_json());
    for _ in 0..5 {
        assert!(!held.calls().await);
    }
    assert_eq!(left(&held.project), 1, "its time is yet to come");
    let events = held.over().await;
    assert_eq!(count(&events, "confirmation.recorded"), 1);
    assert_eq!(reasons(&events).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redaction_of_what_anybody_said_accuses_nobody() {
    let held = held(&confirming(150, "enforce", "")).await;
    says(&held.project, &held.request, 5, YES);
    says(&held.project, &held.request, 1, YES);
    assert!(held.calls().await);
    held.over().await;
    let (project, session) = (&held.project, held.session.id());
    let mut kinds = std::collections::BTreeSet::new();
    let place = (&project.log(), session);
    without_each(&project.root, place, log_key, &mut |log, seq, kind| {
        let replay = lodestar_replay::derive(log, session, &[], None).unwrap();
        assert!(replay.agrees(), "{kind} #{seq}: {:?}", replay.differences);
        kinds.insert(kind.to_owned());
    });
    for kind in [
        "confirmation.consumed@1",
        "approval.granted@1",
        "approval.requested@1",
    ] {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
}
