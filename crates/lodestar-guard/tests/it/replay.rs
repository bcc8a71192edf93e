//! Replay: a log that was written honestly follows from itself; one that was edited does not.

use lodestar_core::name::SessionId;
use lodestar_replay::Difference;
use serde_json::{Value, json};

use crate::governed::{CountingTool, GRADES, Project};

async fn recorded() -> (Project, SessionId) {
    let project = Project::new();
    let tools = ["box.read", "box.write", "box.send"].map(CountingTool::new);
    let session = project.open(GRADES, &tools).await;
    for (tool, arguments) in [
        ("box.read", json!({"path": "a.md"})),
        ("box.write", json!({"path": "a.md", "text": "x"})),
        ("box.send", json!({"to": "eve@evil.example"})),
        ("box.write", json!({"path": ".lodestar/x"})),
    ] {
        session.call(tool, arguments).await.unwrap();
    }
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
    (project, session.id().clone())
}

/// Edits one event of the log in place, without mending any hash.
pub(crate) fn edit(
    project: &Project,
    session: &SessionId,
    kind: &str,
    nth: usize,
    change: impl Fn(&mut Value),
) -> u64 {
    project.will_be_edited();
    let path = project.log().session(session).events_path();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut seen = 0;
    let mut edited = None;
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            if value["head"]["type"] == kind {
                seen += 1;
                if seen == nth + 1 {
                    change(&mut value["payload"]);
                    edited = value["head"]["seq"].as_u64();
                    return String::from_utf8(lodestar_core::canonical::to_vec(&value).unwrap())
                        .unwrap();
                }
            }
            line.to_owned()
        })
        .collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    edited.unwrap()
}

#[tokio::test]
async fn every_edit_of_what_a_verdict_rests_on_is_found_with_its_event() {
    type Edit = fn(&mut Value);
    let edits: [(&str, usize, Edit); 12] = [
        ("action.judged@1", 0, |p| {
            p["verdict"] = json!("deny");
            p["answer"] = json!({"ask": "silent", "run": "permit"});
        }),
        ("action.judged@1", 2, |p| p["verdict"] = json!("allow")),
        ("action.judged@1", 3, |p| p["verdict"] = json!("allow")),
        ("action.judged@1", 0, |p| p["policies"] = json!(["other"])),
        ("action.judged@1", 2, |p| {
            p["requirement"]["quorum"] = json!(0)
        }),
        ("action.judged@1", 2, |p| {
            p["answer"]["ask"] = json!("permit")
        }),
        ("action.proposed@1", 2, |p| {
            p["contract"] = json!({
                "blast_radius": "self", "data_sensitivity": "public", "permissions": [], "preconditions": [],
                "required_level": "L0", "reversibility": "reversible", "sandbox": "read", "scope": "global",
            });
        }),
        ("action.proposed@1", 2, |p| {
            p["arguments"]["to"] = json!("anna@corp.example");
        }),
        ("action.proposed@1", 3, |p| {
            p.as_object_mut().unwrap().remove("reaches");
        }),
        ("action.cleared@1", 0, |p| p["judged"] = json!(0)),
        ("approval.requested@1", 0, |p| {
            p["card"]["why"] = json!("nothing to see");
        }),
        ("belief.adopted@2", 0, |p| p["results"][0] = json!(0)),
    ];
    for (kind, nth, change) in edits {
        let (project, session) = recorded().await;
        let seq = edit(&project, &session, kind, nth, change);
        let replay = project.replay(&session);
        let found: Vec<_> = replay
            .differences
            .iter()
            .filter(|one| one.seq == seq)
            .collect();
        assert!(
            !found.is_empty(),
            "{kind} {nth} at #{seq}: {:?}",
            replay.differences
        );
        let is_of_form = |one: &&&Difference| one.recorded.starts_with("what cannot be read");
        assert_eq!(
            found.iter().filter(is_of_form).count(),
            0,
            "{kind} {nth}: {found:?}"
        );
    }
}

#[tokio::test]
async fn a_clearance_of_what_was_held_or_denied_is_found() {
    let (project, session) = recorded().await;
    let held = project
        .events(&session)
        .iter()
        .filter(|(kind, _)| kind == "action.proposed@1")
        .map(|(_, payload)| payload["id"].clone())
        .nth(2)
        .unwrap();
    let seq = edit(&project, &session, "action.cleared@1", 1, |payload| {
        payload["action"] = held.clone();
    });
    let replay = project.replay(&session);
    assert!(replay.differences.iter().any(|one| one.seq == seq));
}
