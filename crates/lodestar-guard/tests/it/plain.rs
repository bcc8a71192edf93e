//! What is believed of results is named in the log, many results to a line, and made again by readers.

use lodestar_core::defence::Defence;
use lodestar_core::key::SecretKey;
use lodestar_core::name::SessionId;
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{MemoryStore, SqliteStore, Store};
use lodestar_guard::{Holds, Session};
use lodestar_kernel::tool::Output;
use lodestar_log::{Trust, WriterOptions};
use lodestar_replay::{ReplayError, SessionReplay, StoreFinding, examine, follow_alone, rebuild};
use serde_json::{Value, json};

use crate::governed::{CountingTool, GRADES, Project, log_key, three};
use crate::replay::edit;

fn keyring() -> Keyring {
    Keyring::new(std::sync::Arc::new(log_key()))
}

fn trust() -> Trust {
    let mut trust = Trust::only(log_key().public());
    trust.operators.push(operator().public());
    trust
}

fn operator() -> SecretKey {
    SecretKey::from_seed([9; 32])
}

fn live(project: &Project) -> SqliteStore {
    SqliteStore::open(&project.root.join(".lodestar/state.db")).unwrap()
}

fn rows(store: &mut dyn Store) -> Vec<StoredRow> {
    store.scan(None, 1_000_000).unwrap()
}

/// The places of events of a type.
fn places(project: &Project, session: &SessionId, kind: &str) -> Vec<u64> {
    let events = (0..).zip(project.events(session));
    let of_kind = events.filter(|(_, (found, _))| found == kind);
    of_kind.map(|(seq, _)| seq).collect()
}

async fn read(session: &Session, path: &str) {
    let reply = session.call("box.read", json!({"path": path})).await;
    assert!(reply.unwrap().ran());
}

#[tokio::test]
async fn two_hundred_calls_share_few_lines_and_their_beliefs_follow_from_the_log() {
    let project = Project::new();
    let mut tools = three();
    tools[0] = CountingTool::answering("box.read", |call| {
        let number = call.arguments()["count"].as_u64().unwrap();
        let mut output = Output::text(format!("# Part\n\nsum {}\n", sum(number)));
        output.is_error = number.is_multiple_of(9);
        output
    });
    let session = project.open(GRADES, &tools).await;
    for number in 0..200 {
        let arguments = json!({"path": format!("f{number}.md"), "count": number});
        assert!(session.call("box.read", arguments).await.unwrap().ran());
    }
    session.close("done").await.unwrap();
    let id = session.id().clone();
    drop(session);
    let lines = places(&project, &id, "belief.adopted@2");
    assert!(lines.len() <= 200 / 16, "{} lines", lines.len());
    assert!(places(&project, &id, "belief.adopted@1").is_empty());
    let text = std::fs::read_to_string(project.log().session(&id).events_path()).unwrap();
    let named = text
        .lines()
        .filter(|line| line.contains("belief.adopted@2"));
    let bytes: usize = named.map(str::len).sum();
    println!("{} lines, {} bytes a call", lines.len(), bytes / 200);
    assert!(bytes / 200 < 64, "{bytes}");
    let (mut store, mut again) = (live(&project), MemoryStore::new());
    let made = rows(&mut store);
    assert!(made.len() >= 400, "{}", made.len());
    let (log, keys) = (project.log(), keyring());
    let followed = rebuild(&mut again, &keys, &log, &trust(), &mut |_| ()).unwrap();
    assert_eq!(followed.events, lines.len() as u64);
    assert_eq!(rows(&mut again), made);
    let report = examine(&mut store, &keys, &log, &trust(), &mut |_| ()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    project.assert_sound(&id);
}

/// Words that no later call has among its arguments.
fn sum(number: u64) -> String {
    lodestar_core::digest::sha256(&number.to_be_bytes()).to_string()
}

/// Two calls, each adopted by a line of its own.
async fn recorded() -> (Project, SessionId) {
    let project = Project::new();
    let session = project.open(GRADES, &three()).await;
    for path in ["a.md", "b.md"] {
        read(&session, path).await;
        session.context(None, 1).await.unwrap();
    }
    session.close("done").await.unwrap();
    let id = session.id().clone();
    (project, id)
}

/// Nothing of it is taken, neither by a replay nor by a store.
fn assert_refused(project: &Project, session: &SessionId, seq: u64, why: &str) -> SessionReplay {
    let replay = project.replay(session);
    let mut found = replay.differences.iter().filter(|one| one.seq == seq);
    assert!(
        found.any(|one| one.derived.contains(why)),
        "{why}: {:?}",
        replay.differences
    );
    let mut store = MemoryStore::new();
    let dir = project.log().session(session);
    let refused = follow_alone(&mut store, &keyring(), &dir);
    assert!(
        matches!(&refused, Err(ReplayError::Session { problem, .. }) if problem.contains(why)),
        "{why}: {refused:?}"
    );
    assert!(rows(&mut store).is_empty());
    replay
}

#[tokio::test]
async fn a_line_that_names_what_is_not_there_to_be_adopted_is_an_error_of_that_line() {
    let hostile: [fn(&[u64]) -> Value; 6] = [
        |_| json!([u64::from(u32::MAX)]),
        |_| json!([0]),
        |seen| json!([seen[0] - 1]),
        |seen| json!([seen[0], seen[0]]),
        |seen| json!([seen[0], seen[1]]),
        |seen| json!([seen[1]]),
    ];
    for results in hostile {
        let (project, session) = recorded().await;
        let seen = places(&project, &session, "observation.recorded@1");
        let wrong = results(&seen);
        let seq = edit(&project, &session, "belief.adopted@2", 0, |payload| {
            payload["results"] = wrong.clone();
        });
        assert_refused(&project, &session, seq, "is no result of a call");
    }
    let (project, session) = recorded().await;
    let seen = places(&project, &session, "observation.recorded@1");
    let seq = edit(&project, &session, "belief.adopted@2", 1, |payload| {
        payload["results"] = json!([seen[1], seen[0]]);
    });
    assert_refused(&project, &session, seq, "or was adopted before");
    for wrong in [json!({}), json!({"adopted_at": 1, "results": "all"})] {
        let (project, session) = recorded().await;
        let seq = edit(&project, &session, "belief.adopted@2", 0, |payload| {
            *payload = wrong.clone();
        });
        assert_refused(&project, &session, seq, "");
    }
}

/// Calls an event something else, without mending any hash.
fn rename(project: &Project, session: &SessionId, seq: u64, to: &str) {
    project.will_be_edited();
    let path = project.log().session(session).events_path();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = (0..).zip(text.lines()).map(|(place, line)| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        if place == seq {
            value["head"]["type"] = json!(to);
        }
        String::from_utf8(lodestar_core::canonical::to_vec(&value).unwrap()).unwrap() + "\n"
    });
    std::fs::write(&path, lines.collect::<String>()).unwrap();
}

#[tokio::test]
async fn what_came_of_a_call_that_did_not_complete_is_not_adopted_by_name() {
    for end in ["action.failed@1", "action.unknown@1", "agent.note@1"] {
        let (project, session) = recorded().await;
        let completed = places(&project, &session, "action.completed@1")[0];
        let adopted = places(&project, &session, "belief.adopted@2")[0];
        rename(&project, &session, completed, end);
        assert_refused(&project, &session, adopted, "is no result of a call");
    }
}

#[tokio::test]
async fn a_result_is_not_plain_when_an_older_belief_of_the_log_has_a_say() {
    let project = Project::new();
    project.will_be_edited();
    let setup = project.setup(GRADES, &three()).holds(Holds::Leave);
    // Without this defence a tool vouches for what it read, so that reading again takes its place.
    let setup = setup.without([Defence::ContentSplit]);
    let session = setup.open().await.unwrap();
    for _ in 0..2 {
        read(&session, "a.md").await;
        session.context(None, 1).await.unwrap();
    }
    session.close("done").await.unwrap();
    let id = session.id();
    let (named, whole) = (
        places(&project, id, "belief.adopted@2"),
        places(&project, id, "belief.adopted@1"),
    );
    assert_eq!((named.len(), whole.len()), (1, 1));
    assert!(project.replay(id).agrees());
    let seen = places(&project, id, "observation.recorded@1");
    let at = project.events(id)[named[0] as usize].1["adopted_at"].clone();
    edit(&project, id, "belief.adopted@1", 0, |payload| {
        *payload = json!({"adopted_at": at, "results": [seen[1]]});
    });
    rename(&project, id, whole[0], "belief.adopted@2");
    let replay = project.replay(id);
    let differences = &replay.differences;
    assert!(
        differences
            .iter()
            .any(|one| one.seq == whole[0] && one.derived.contains("has a say")),
        "{differences:?}"
    );
}

#[tokio::test]
async fn what_a_redacted_event_was_about_is_not_made_again_and_everything_else_is() {
    for kind in [
        "observation.recorded@1",
        "action.proposed@1",
        "action.completed@1",
    ] {
        let project = Project::new();
        let session = project.open(GRADES, &three()).await;
        for path in ["a.md", "b.md", "c.md"] {
            read(&session, path).await;
        }
        session.close("done").await.unwrap();
        let id = &session.id().clone();
        drop(session);
        assert_eq!(places(&project, id, "belief.adopted@2").len(), 1);
        let before = rows(&mut live(&project));
        let gone = places(&project, id, kind)[1];
        lodestar_log::redact(
            &project.log(),
            id,
            &[gone].into(),
            "a name stood in it",
            &operator(),
            &trust(),
            &WriterOptions::new(std::sync::Arc::new(log_key())),
        )
        .unwrap();
        let mut store = live(&project);
        let (log, keys) = (project.log(), keyring());
        let followed = rebuild(&mut store, &keys, &log, &trust(), &mut |_| ()).unwrap();
        assert_eq!(followed.redacted, [(id.to_string(), gone)]);
        let after = rows(&mut store);
        assert_eq!(after.len(), before.len() / 3 * 2);
        // What is signed together is another lot; what it says is the same.
        let before: Vec<_> = before.iter().map(StoredRow::digest).collect();
        assert!(
            after.iter().all(|row| before.contains(&row.digest())),
            "{kind}"
        );
        let report = examine(&mut store, &keys, &log, &trust(), &mut |_| ()).unwrap();
        let named = StoreFinding::Redacted {
            session: id.to_string(),
            seq: gone,
        };
        assert_eq!(report.findings, [named]);
        let replay = project.replay(id);
        assert!(replay.redacted.contains(&gone));
        assert!(replay.agrees(), "{kind}: {:?}", replay.differences);
    }
}

#[tokio::test]
async fn what_a_session_without_a_rule_believed_is_in_its_log_and_in_no_store() {
    let project = Project::new();
    let without = [Defence::IndirectWeighsNothing];
    let setup = project.setup(GRADES, &three()).holds(Holds::Leave);
    let session = setup.without(without).open().await.unwrap();
    read(&session, "a.md").await;
    let context = session.context(None, 100).await.unwrap();
    session.close("done").await.unwrap();
    let mut alone = MemoryStore::new();
    let dir = project.log().session(session.id());
    drop(session);
    follow_alone(&mut alone, &keyring().without(&without), &dir).unwrap();
    let of_call = |row: &StoredRow| row.subject.starts_with("call:");
    let rows_alone = rows(&mut alone);
    assert!(rows_alone.iter().any(|row| !of_call(row)));
    assert!(rows_alone.iter().all(StoredRow::is_eligible));
    assert_eq!(context.beliefs.len(), rows_alone.len());
    let mut store = live(&project);
    let followed = rebuild(
        &mut store,
        &keyring(),
        &project.log(),
        &trust(),
        &mut |_| (),
    );
    assert_eq!(followed.unwrap().refused.len(), 1);
    assert!(rows(&mut store).is_empty());
}
