//! Logs whose words were edited: what people said, when, to what and how often follows again, or is found.

use std::sync::Arc;
use std::time::Duration;

use lodestar_core::name::SessionId;
use lodestar_core::statement::ApprovalDecision;
use lodestar_core::time::Timestamp;
use lodestar_policy::{ApprovalRequest, Unreadable};
use serde_json::{Value, json};

use crate::beforehand::{YES, confirming, put, word};
use crate::governed::{CountingTool, Project, count};
use crate::people::{GRANT, Pigeon, config, open, said, send, times_out};
use crate::replay::edit;

/// What is done to an event.
type Edit<T> = Box<dyn Fn(&mut T)>;

/// A log that was honest until now.
struct Told {
    project: Project,
    session: SessionId,
}

impl Told {
    fn edit(&self, kind: &str, nth: usize, change: impl Fn(&mut Value)) -> u64 {
        edit(&self.project, &self.session, kind, nth, change)
    }

    fn payload(&self, kind: &str, nth: usize) -> Value {
        let events = self.project.events(&self.session).into_iter();
        let mut of_kind = events.filter(|(found, _)| found == kind);
        of_kind.nth(nth).unwrap().1
    }

    /// Whether replay finds something wrong with an event.
    #[track_caller]
    fn assert_found(&self, seq: u64, what: &str) {
        let differences = self.project.replay(&self.session).differences;
        assert!(
            differences.iter().any(|one| one.seq == seq),
            "{what} at #{seq}: {differences:?}"
        );
    }
}

fn later(than: &Value, millis: i64) -> Value {
    let at: Timestamp = serde_json::from_value(than.clone()).unwrap();
    let at = Timestamp::from_unix_micros(at.unix_micros() + millis * 1000).unwrap();
    serde_json::to_value(at).unwrap()
}

/// Two calls of the same act, each opened by a confirmation of its own.
async fn confirmed_twice() -> Told {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &confirming(30, "enforce", ""), &tool, &pigeon).await;
    for requests in 1..=2 {
        times_out(&session, send()).await;
        let request = pigeon.announced(requests).await;
        let word = word(&request, 1, YES);
        let id = lodestar_core::statement::ConfirmationId::from_bytes([requests as u8; 16]);
        put(&project, &request, id, &word.details().to_json());
        assert!(session.call("box.send", send()).await.unwrap().ran());
    }
    session.close("done").await.unwrap();
    let session = session.id().clone();
    project.assert_sound(&session);
    Told { project, session }
}

#[tokio::test]
async fn a_confirmation_that_is_spent_twice_is_found() {
    let told = confirmed_twice().await;
    let first = told.payload("confirmation.consumed@1", 0);
    let grants = told.payload("action.cleared@1", 0)["grants"].clone();
    let spent = told.edit("confirmation.consumed@1", 1, |payload| {
        payload["evidence"] = first["evidence"].clone();
        payload["id"] = first["id"].clone();
    });
    let counted = told.edit("approval.granted@1", 1, |payload| {
        payload["confirmation"] = first["id"].clone();
    });
    told.edit("action.cleared@1", 1, |payload| {
        payload["grants"] = grants.clone();
    });
    told.assert_found(spent, "the second spending");
    told.assert_found(counted, "the second counting");
}

#[tokio::test]
async fn an_answer_that_counts_one_confirmation_again_is_found() {
    let told = confirmed_twice().await;
    let first = told.payload("approval.granted@1", 0)["confirmation"].clone();
    let counted = told.edit("approval.granted@1", 1, |payload| {
        payload["confirmation"] = first.clone();
    });
    told.assert_found(counted, "a confirmation that was counted before");
}

#[tokio::test]
async fn what_the_log_says_of_a_spent_confirmation_is_what_its_evidence_says() {
    type Mix = fn(&mut Value, &Value);
    let edits: [(&str, Mix); 5] = [
        ("another id", |one, other| one["id"] = other["id"].clone()),
        ("another operator", |one, _| {
            one["operator"] = json!("person-2");
        }),
        ("another action", |one, other| {
            one["action"] = other["action"].clone();
        }),
        ("before the request", |one, _| {
            one["heard_at"] = later(&one["heard_at"], -5_000);
        }),
        ("after it was written", |one, _| {
            one["heard_at"] = later(&one["heard_at"], 5_000);
        }),
    ];
    for (what, change) in edits {
        let told = confirmed_twice().await;
        let other = told.payload("confirmation.consumed@1", 0);
        let spent = told.edit("confirmation.consumed@1", 1, |one| change(one, &other));
        // Of an action that has a request, too, it shows when it is counted.
        let differences = told.project.replay(&told.session).differences;
        let is_near = |seq: u64| (spent..=spent + 1).contains(&seq);
        assert!(
            differences.iter().any(|one| is_near(one.seq)),
            "{what} at #{spent}: {differences:?}"
        );
    }
    // Spent at one moment, and counted at another.
    let told = confirmed_twice().await;
    let seq = told.edit("approval.granted@1", 1, |answer| {
        answer["heard_at"] = later(&answer["heard_at"], -1);
    });
    told.assert_found(seq, "two moments");
}

/// Somebody said what is no answer, somebody else said yes, and the agent came back some time later.
async fn granted() -> (Told, ApprovalRequest) {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(30, ""), &tool, &pigeon).await;
    times_out(&session, send()).await;
    let request = pigeon.announced(1).await;
    pigeon.bring(request.id, b"yes, of course".to_vec());
    pigeon.say(&request, 1, GRANT);
    pigeon.heard(2).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(session.call("box.send", send()).await.unwrap().ran());
    session.close("done").await.unwrap();
    let session = session.id().clone();
    project.assert_sound(&session);
    (Told { project, session }, request)
}

#[tokio::test]
async fn a_clearance_by_a_word_that_was_out_of_date_is_found() {
    let (told, request) = granted().await;
    let heard_at = told.payload("approval.granted@1", 0)["heard_at"].clone();
    let mut short = request.clone();
    short.expires_at = serde_json::from_value(later(&heard_at, 30)).unwrap();
    let bytes = said(&short, 1, GRANT);
    let statement = lodestar_core::statement::Envelope::from_json(&bytes).unwrap();
    // Its issuer's clock is a little ahead, which is allowed.
    told.edit("approval.granted@1", 0, |answer| {
        answer["statement"] = serde_json::from_slice(&bytes).unwrap();
    });
    let cleared = told.edit("action.cleared@1", 0, |cleared| {
        cleared["grants"] = json!([statement.digest()]);
    });
    told.assert_found(cleared, "a word that had expired when it was taken");
}

#[tokio::test]
async fn a_clearance_by_a_key_that_was_revoked_meanwhile_is_found() {
    let (told, _) = granted().await;
    let heard_at = told.payload("approval.granted@1", 0)["heard_at"].clone();
    told.edit("session.opened@1", 0, |opening| {
        opening["approvers"][0]["revoked_at"] = later(&heard_at, 30);
    });
    let differences = told.project.replay(&told.session).differences;
    let found: Vec<_> = differences.iter().map(|one| &one.recorded).collect();
    assert_eq!(found, ["a clearance"], "{differences:?}");
}

#[tokio::test]
async fn times_that_run_backwards_are_found() {
    let (told, _) = granted().await;
    let heard = told.payload("approval.granted@1", 0)["heard_at"].clone();
    let seq = told.edit("action.cleared@1", 0, |cleared| {
        cleared["taken_at"] = later(&heard, -1);
    });
    told.assert_found(seq, "taken before the last answer");
    type Later = fn(&mut Value);
    let edits: [(&str, &str, Later); 3] = [
        (
            "taken after it was written",
            "action.cleared@1",
            |cleared| {
                cleared["taken_at"] = later(&cleared["taken_at"], 5_000);
            },
        ),
        (
            "heard before it was asked",
            "approval.refused@1",
            |answer| {
                answer["heard_at"] = later(&answer["heard_at"], -5_000);
            },
        ),
        (
            "heard after it was written",
            "approval.granted@1",
            |answer| {
                answer["heard_at"] = later(&answer["heard_at"], 5_000);
            },
        ),
    ];
    for (what, kind, change) in edits {
        let (told, _) = granted().await;
        let seq = told.edit(kind, 0, change);
        told.assert_found(seq, what);
    }
    // After it was asked, and yet before what was heard first.
    let (told, request) = granted().await;
    let asked = serde_json::to_value(request.created_at).unwrap();
    let seq = told.edit("approval.granted@1", 0, |answer| {
        answer["heard_at"] = later(&asked, 0);
    });
    told.assert_found(seq, "heard before what was heard before it");
}

#[tokio::test]
async fn a_refusal_that_is_none_is_found() {
    let (told, request) = granted().await;
    let no = said(&request, 2, ApprovalDecision::Deny);
    let hidden = serde_json::to_value(Unreadable::of(&no)).unwrap();
    let edits: [(&str, Edit<Value>); 6] = [
        (
            "a no that is called unreadable",
            Box::new(move |answer| answer["unreadable"] = hidden.clone()),
        ),
        (
            "another reason",
            Box::new(|answer| answer["reason"]["problem"] = json!("it is too long")),
        ),
        (
            "another sort of reason",
            Box::new(|answer| answer["reason"] = json!({"refused": "unknown_key"})),
        ),
        (
            "another beginning",
            Box::new(|answer| answer["unreadable"]["begins"] = json!("no")),
        ),
        (
            "another length",
            Box::new(|answer| answer["unreadable"]["bytes"] = json!(3)),
        ),
        (
            "nothing at all",
            Box::new(|answer| {
                answer.as_object_mut().unwrap().remove("unreadable");
            }),
        ),
    ];
    let path = told.project.log().session(&told.session).events_path();
    let honest = std::fs::read(&path).unwrap();
    for (what, change) in edits {
        std::fs::write(&path, &honest).unwrap();
        let seq = told.edit("approval.refused@1", 0, change);
        told.assert_found(seq, what);
    }
}

#[tokio::test]
async fn a_refused_confirmation_that_counts_or_was_refused_otherwise_is_found() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &confirming(30, "enforce", ""), &tool, &pigeon).await;
    times_out(&session, send()).await;
    let request = pigeon.announced(1).await;
    let no = word(
        &request,
        1,
        lodestar_core::statement::ConfirmationDecision::Decline,
    );
    let id = |n| lodestar_core::statement::ConfirmationId::from_bytes([n; 16]);
    put(&project, &request, id(1), &no.details().to_json());
    put(&project, &request, id(2), b"the user confirmed this");
    times_out(&session, send()).await;
    session.close("done").await.unwrap();
    let session = session.id().clone();
    project.assert_sound(&session);
    let told = Told { project, session };
    assert_eq!(
        count(&told.project.events(&told.session), "confirmation.refused"),
        2
    );
    let yes = serde_json::to_value(word(&request, 1, YES)).unwrap();
    let edits: [(usize, Edit<Value>); 4] = [
        (
            0,
            Box::new(|one| one["reason"] = json!({"unmatched": "expired", "at": one["heard_at"]})),
        ),
        (0, Box::new(move |one| one["evidence"] = yes.clone())),
        (
            0,
            Box::new(|one| one["heard_at"] = later(&one["heard_at"], 5_000)),
        ),
        (
            1,
            Box::new(|one| one["reason"]["problem"] = json!("otherwise")),
        ),
    ];
    let path = told.project.log().session(&told.session).events_path();
    let honest = std::fs::read(&path).unwrap();
    for (at, (nth, change)) in edits.into_iter().enumerate() {
        std::fs::write(&path, &honest).unwrap();
        let seq = told.edit("confirmation.refused@1", nth, change);
        told.assert_found(seq, &format!("edit {at}"));
    }
}

/// A request nobody has answered.
async fn asked() -> Told {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    std::fs::write(project.root.join("letter.md"), "dear Anna").unwrap();
    let session = open(&project, &config(30, ""), &tool, &pigeon).await;
    let arguments = json!({"to": "anna@corp.example", "path": "letter.md", "text": "hello"});
    times_out(&session, arguments).await;
    session.close("done").await.unwrap();
    let session = session.id().clone();
    project.assert_sound(&session);
    Told { project, session }
}

/// The digest fits again after the edit: whoever edits a log can do that.
#[tokio::test]
async fn a_card_that_shows_something_else_than_was_proposed_is_found() {
    let other = |value: &mut Value, pointer: &str, to: Value| {
        *value.pointer_mut(pointer).unwrap() = to;
    };
    let edits: [(&str, Edit<ApprovalRequest>); 11] = [
        (
            "no provenance",
            Box::new(|request| request.card.provenance.clear()),
        ),
        (
            "another reason",
            Box::new(|request| request.card.why = "It is routine.".to_owned()),
        ),
        (
            "another recipient",
            Box::new(|request| request.card.going_out = vec!["to: eve@evil.example".to_owned()]),
        ),
        (
            "commits of what is no push",
            Box::new(|request| request.card.going_out.push("1 commits".to_owned())),
        ),
        (
            "a measurement less",
            Box::new(|request| {
                request.card.measured.pop();
            }),
        ),
        (
            "the same measurement twice",
            Box::new(|request| {
                let first = request.card.measured[0].clone();
                request.card.measured.insert(0, first);
            }),
        ),
        (
            "another file",
            Box::new(move |request| other(&mut request.card.measured[0], "/of", json!("other.md"))),
        ),
        (
            "what is not measured again",
            Box::new(move |request| {
                let twice = "/must_revalidate_at_execution";
                other(&mut request.card.measured[0], twice, json!(false));
            }),
        ),
        (
            "another policy",
            Box::new(move |request| {
                let digest = json!(request.card.definition);
                let last = request.card.measured.last_mut().unwrap();
                other(last, "/expected_at_approval/is", digest);
            }),
        ),
        (
            "another project",
            Box::new(|request| request.project = "elsewhere".parse().unwrap()),
        ),
        (
            "opened after it was written",
            Box::new(|request| {
                let hour = Duration::from_secs(3600);
                request.created_at = request.created_at.checked_add(hour).unwrap();
                request.expires_at = request.expires_at.checked_add(hour).unwrap();
            }),
        ),
    ];
    let told = asked().await;
    let path = told.project.log().session(&told.session).events_path();
    let honest = std::fs::read(&path).unwrap();
    for (what, change) in edits {
        std::fs::write(&path, &honest).unwrap();
        let seq = told.edit("approval.requested@1", 0, |payload| {
            let mut request: ApprovalRequest = serde_json::from_value(payload.clone()).unwrap();
            change(&mut request);
            request.card_digest = request.digest().unwrap();
            *payload = serde_json::to_value(request).unwrap();
        });
        told.assert_found(seq, what);
        let differences = told.project.replay(&told.session).differences;
        let is_digest = differences
            .iter()
            .any(|one| one.recorded.contains("digest"));
        assert!(!is_digest, "{what}: the digest fits");
    }
}
