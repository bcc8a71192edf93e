//! Calibration: what settles a belief, what does not, and what a gate makes of a flag.

use std::sync::Arc;

use lodestar_core::calibration::{CalibrationReport, Came, Sample, measure as measured};
use lodestar_core::chain::Confidence;
use lodestar_core::defence::Defence;
use lodestar_core::ladder::Verdict;
use lodestar_core::name::{ActorId, CalibrationClass, SessionId};
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::SqliteStore;
use lodestar_guard::{Holds, OpenError, Operator, OperatorSession, Session};
use lodestar_kernel::tool::Output;
use lodestar_log::Trust;
use lodestar_replay::calibration::{
    CALIBRATION_PURPOSE, CALIBRATION_SESSIONS, Collected, Computed, latest, samples,
};
use serde_json::{Value, json};

use crate::governed::{CountingTool, GRADES, Project, count, log_key, three};
use crate::people::{Pigeon, config, gone, open, times_out};
use crate::replay::edit;
use crate::world::{World, measure, promote, read};

fn collect(world: &World) -> Collected {
    samples(&world.keyring(), &world.log, &world.trust(), &mut |_| ()).unwrap()
}

fn came(collected: &Collected) -> Vec<Came> {
    let mut came: Vec<_> = collected.samples.iter().map(|one| one.came).collect();
    came.sort();
    came
}

#[test]
fn what_is_read_settles_nothing_however_often_and_whatever_it_says() {
    let world = World::new();
    let mut session = world.open();
    for at in 0..100 {
        let text = format!("build: ok\nThis is verified, supported, and was confirmed {at} times.");
        read(&mut session, &format!("notes-{}.md", at % 3), &text);
    }
    session.close("done").unwrap();
    let collected = collect(&world);
    assert_eq!(collected.samples, []);
    assert_eq!(collected.sessions, 1);
}

#[test]
fn a_measurement_that_was_made_again_came_true_if_it_was_the_same() {
    let world = World::new();
    let mut session = world.open();
    measure(&mut session, "a.txt", "size", json!(1));
    assert_eq!(collect(&world).samples, [], "what nobody looked at again");
    measure(&mut session, "a.txt", "size", json!(1));
    assert_eq!(came(&collect(&world)), [Came::True]);
    measure(&mut session, "a.txt", "size", json!(2));
    assert_eq!(came(&collect(&world)), [Came::True, Came::False]);
    session.close("done").unwrap();
    assert_eq!(came(&collect(&world)), [Came::True, Came::False]);
}

#[test]
fn what_a_person_promotes_came_true_once() {
    let world = World::new();
    let mut session = world.open();
    let outcome = read(&mut session, "notes.md", "the port is 8080");
    let rumour = outcome
        .beliefs()
        .iter()
        .find(|belief| belief.axes.truth == lodestar_core::chain::Truth::Unverified);
    let rumour = rumour.unwrap().clone();
    promote(&mut session, rumour.id);
    session.close("done").unwrap();
    let collected = collect(&world);
    let expected = Sample {
        class: rumour.calibration_class,
        confidence: rumour.confidence,
        came: Came::True,
    };
    assert_eq!(collected.samples, [expected]);
}

#[test]
fn direct_evidence_for_a_rumour_settles_it() {
    let world = World::new();
    let mut session = world.open();
    let outcome = read(&mut session, "notes.md", "the port is 8080");
    let claims = outcome.adopted.claims.iter().zip(outcome.beliefs());
    let mut rumours = claims.filter(|(claim, belief)| {
        belief.axes.truth == lodestar_core::chain::Truth::Unverified
            && claim.predicate.subject == "file:notes.md"
    });
    let (claim, _) = rumours.next().unwrap();
    let (relation, object) = (&claim.predicate.relation, &claim.predicate.object);
    measure(&mut session, "notes.md", relation, object.clone());
    session.close("done").unwrap();
    assert_eq!(came(&collect(&world)), [Came::True]);
}

#[test]
fn a_session_that_was_edited_gives_no_samples_and_is_named() {
    let world = World::new();
    let mut session = world.open();
    measure(&mut session, "a.txt", "size", json!(1));
    measure(&mut session, "a.txt", "size", json!(2));
    let id = session.id().clone();
    session.close("done").unwrap();
    let path = world.log.session(&id).events_path();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("file:a.txt", "file:b.txt")).unwrap();
    let collected = collect(&world);
    assert_eq!(collected.samples, []);
    assert_eq!(collected.refused[0].session, id.to_string());
}

// ---- outcomes of actions ----

const BOXED: &str = r#"
project_id = "notes"
actor_id = "agent"
auto_approve_ceiling = 3

[tools."fs.read"]
root = "."
"#;

fn of_project(project: &Project) -> Collected {
    let keys = Keyring::new(Arc::new(log_key()));
    let trust = Trust::only(log_key().public());
    samples(&keys, &project.log(), &trust, &mut |_| ()).unwrap()
}

/// Reads a list of files, then files that are named in it.
async fn follow_list(project: &Project, without: Option<Defence>) -> SessionId {
    std::fs::write(
        project.root.join("list.txt"),
        "chapter-one.txt\nchapter-two.txt\n",
    )
    .unwrap();
    std::fs::write(project.root.join("chapter-one.txt"), "once upon a time").unwrap();
    let setup = project.setup(BOXED, &[]).holds(Holds::Leave);
    let session = setup.without(without).open().await.unwrap();
    for path in [
        "list.txt",
        "chapter-one.txt",
        "chapter-two.txt",
        "chapter-one.txt",
    ] {
        session
            .call("fs.read", json!({"path": path}))
            .await
            .unwrap();
    }
    session.close("done").await.unwrap();
    session.id().clone()
}

#[tokio::test]
async fn what_came_of_an_action_counts_for_the_beliefs_behind_it_once_each() {
    let project = Project::new();
    let session = follow_list(&project, None).await;
    project.assert_sound(&session);
    let collected = of_project(&project);
    let failed = collected
        .samples
        .iter()
        .filter(|one| one.came == Came::False);
    assert!(
        failed.count() > 0,
        "one of the files was not there: {collected:?}"
    );
    // Reading the same file once more adds nothing.
    let before = collected.samples.len();
    assert!(before <= 4, "{collected:?}");
}

#[tokio::test]
async fn a_session_without_a_defence_never_counts() {
    let project = Project::new();
    follow_list(&project, Some(Defence::ContentSplit)).await;
    let collected = of_project(&project);
    assert_eq!(collected.samples, []);
    assert_eq!(collected.sessions, 0);
    assert!(collected.refused[0].reason.contains("defences_off"));
}

#[tokio::test]
async fn a_foreign_tool_cannot_say_that_it_succeeded() {
    let project = Project::new();
    let session = project.open(GRADES, &three()).await;
    session
        .call(
            "box.read",
            json!({"path": "a.md", "text": "x@corp.example"}),
        )
        .await
        .unwrap();
    for _ in 0..6 {
        session
            .call("box.read", json!({"text": "x@corp.example"}))
            .await
            .unwrap();
    }
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    let resting = events.iter().filter(|(kind, payload)| {
        kind == "action.proposed@1" && !payload["dependencies"].is_null()
    });
    assert!(resting.count() > 0, "some of them rest on what was read");
    assert_eq!(of_project(&project).samples, []);
}

// ---- flags at the gate ----

fn computed(classes: &[&str]) -> Computed {
    let samples = classes.iter().flat_map(|class| {
        let one = Sample {
            class: CalibrationClass::new(*class).unwrap(),
            confidence: Confidence::EXTRACTED,
            came: Came::False,
        };
        vec![one; 5]
    });
    Computed {
        report: measured(samples),
        sessions: 1,
        refused: Vec::new(),
    }
}

/// What a person at a command line records.
fn record(project: &Project, computed: &Computed) -> SessionId {
    let dir = project.root.join(".lodestar");
    std::fs::create_dir_all(&dir).unwrap();
    let operator = Operator {
        log: project.log(),
        key: Arc::new(log_key()),
        trust: Trust::only(log_key().public()),
        keyring: Keyring::new(Arc::new(log_key())),
        store: Box::new(SqliteStore::open(&dir.join("state.db")).unwrap()),
        actor: ActorId::new("tester").unwrap(),
        purpose: CALIBRATION_PURPOSE,
    };
    let mut session = OperatorSession::open_as(operator, CALIBRATION_SESSIONS).unwrap();
    session.calibrated(computed).unwrap();
    let id = session.id().clone();
    session.close("done").unwrap();
    id
}

fn flagged(more: &str) -> String {
    let graded = GRADES.replace(
        "required_trust_level = \"L4\"",
        "required_trust_level = \"L3\"",
    );
    format!("sentinels = [\"calibration-flag\"{more}]\n{graded}")
}

fn page() -> [CountingTool; 3] {
    let [_, write, send] = three();
    let read = CountingTool::answering("box.read", |_| Output::text("mail anna@corp.example"));
    [read, write, send]
}

/// Reads an address and writes to it.
async fn mail(session: &Session) -> Option<Verdict> {
    session
        .call("box.read", json!({"path": "a.md"}))
        .await
        .unwrap();
    let to = json!({"to": "anna@corp.example", "text": "hello"});
    session.call("box.send", to).await.unwrap().verdict
}

#[tokio::test]
async fn a_flagged_class_holds_what_rests_on_it_and_replay_says_the_same() {
    let project = Project::new();
    let session = project.open(&flagged(""), &page()).await;
    assert_eq!(
        session.calibration().unwrap().computed,
        None,
        "nobody measured"
    );
    assert_eq!(mail(&session).await, Some(Verdict::Allow));
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
    let proposals = project.events(session.id());
    let class = proposals.iter().find_map(|(_, payload)| {
        let class = payload.pointer("/dependencies/0/class")?;
        class.as_str().map(str::to_owned)
    });
    let class = class.expect("the proposal names the class of what it rests on");

    let cal = record(&project, &computed(&[&class]));
    let session = project.open(&flagged(""), &page()).await;
    let calibration = session.calibration().unwrap();
    assert_eq!(calibration.computed.as_ref().unwrap().session, cal);
    assert_eq!(mail(&session).await, Some(Verdict::Hold));
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
    let events = project.events(session.id());
    assert_eq!(events[0].1["calibration"]["flagged"], json!([class]));
    assert_eq!(count(&events, "sentinel.alerted"), 1);
    // The opening is what the verdict follows from.
    let seq = edit(&project, session.id(), "session.opened@1", 0, |opening| {
        opening["calibration"]["flagged"] = json!([]);
    });
    assert_eq!(seq, 0);
    assert!(!project.replay(session.id()).agrees());
}

#[tokio::test]
async fn another_class_or_no_sentinel_changes_nothing() {
    let project = Project::new();
    record(&project, &computed(&["extract/nothing"]));
    let session = project.open(&flagged(""), &page()).await;
    assert_eq!(mail(&session).await, Some(Verdict::Allow));
    session.close("done").await.unwrap();
    project.assert_sound(session.id());

    record(&project, &computed(&["extract/content", "extract/text"]));
    let plain = flagged("").replace("sentinels = [\"calibration-flag\"]\n", "");
    let session = project.open(&plain, &page()).await;
    assert_eq!(session.calibration(), None);
    assert_eq!(mail(&session).await, Some(Verdict::Allow));
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert_eq!(events[0].1.get("calibration"), None);
    let classes = events
        .iter()
        .filter(|(_, payload)| payload.pointer("/dependencies/0/class").is_some());
    assert_eq!(
        classes.count(),
        0,
        "nobody looks at them, so nobody writes them"
    );
}

/// Tries to open a session that goes by calibrations, which must fail and name this one.
async fn refused(project: &Project, calibration: &SessionId) {
    let setup = project.setup(&flagged(""), &page());
    let refused = setup.holds(Holds::Leave).open().await.map(|_| ());
    match refused {
        Err(OpenError::Calibration { session, .. }) => {
            assert_eq!(session.to_string(), calibration.to_string());
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn under_a_calibration_that_was_edited_or_is_gone_no_session_opens_until_one_measures_again()
{
    for gone in [false, true] {
        let project = Project::new();
        project.will_be_edited();
        let older = record(&project, &computed(&["extract/other"]));
        let newer = record(&project, &computed(&["extract/content"]));
        if gone {
            std::fs::remove_dir_all(project.log().session(&newer).dir()).unwrap();
        } else {
            edit(&project, &newer, "calibration.computed@1", 0, |payload| {
                *payload = json!({"classes": [], "sessions": 1});
            });
        }
        let trust = Trust::only(log_key().public());
        let found = latest(&project.log(), &trust).unwrap();
        assert_eq!(found.measured.unwrap().session, older);
        assert_eq!(found.ignored[0].session, newer.to_string());
        // Going by the older one would lose the flag.
        refused(&project, &newer).await;
        // Without the sentinel nobody looks at it.
        let plain = flagged("").replace("sentinels = [\"calibration-flag\"]\n", "");
        let session = project.open(&plain, &page()).await;
        session.close("done").await.unwrap();
        // The only one there was is no exception.
        let alone = Project::new();
        alone.will_be_edited();
        let only = record(&alone, &computed(&["extract/content"]));
        let path = alone.log().session(&only).events_path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        refused(&alone, &only).await;

        let again = record(&project, &computed(&["extract/content"]));
        let session = project.open(&flagged(""), &page()).await;
        let calibration = session.calibration().unwrap();
        assert_eq!(calibration.computed.as_ref().unwrap().session, again);
        assert_eq!(mail(&session).await, Some(Verdict::Hold));
        session.close("done").await.unwrap();
        assert!(project.replay(session.id()).agrees());
    }
}

#[tokio::test]
async fn the_session_of_an_agent_does_not_pass_for_a_measurement() {
    let project = Project::new();
    let session = project
        .open(&format!("session_id = \"cal-1\"\n{GRADES}"), &three())
        .await;
    session.close("done").await.unwrap();
    let trust = Trust::only(log_key().public());
    let found = latest(&project.log(), &trust).unwrap();
    assert_eq!((found.measured, found.ignored), (None, Vec::new()));
}

#[tokio::test]
async fn a_calibration_of_another_key_does_not_count() {
    let project = Project::new();
    record(&project, &computed(&["extract/content"]));
    let stranger = lodestar_core::key::SecretKey::from_seed([99; 32]);
    let found = latest(&project.log(), &Trust::only(stranger.public()));
    assert!(found.is_err(), "{found:?}");
}

#[tokio::test]
async fn a_session_goes_on_under_the_same_flags_and_not_under_others() {
    for (again, goes_on) in [("extract/content", true), ("extract/other", false)] {
        let project = Project::new();
        record(&project, &computed(&["extract/content"]));
        let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
        let config = format!("sentinels = [\"calibration-flag\"]\n{}", config(30, ""));
        let first = open(&project, &config, &tool, &pigeon).await;
        times_out(&first, crate::people::send()).await;
        let id = first.id().clone();
        gone(&project, first).await;
        record(&project, &computed(&[again]));
        let session = open(&project, &config, &tool, &pigeon).await;
        assert_eq!(*session.id() == id, goes_on, "{again}");
        session.close("done").await.unwrap();
        project.assert_sound(session.id());
        project.assert_sound(&id);
    }
}

#[test]
fn a_report_is_recorded_as_it_was_measured() {
    let computed = computed(&["extract/content"]);
    let written: Value = serde_json::to_value(&computed).unwrap();
    assert_eq!(written["classes"][0]["class"], "extract/content");
    assert_eq!(written["classes"][0]["flagged"], true);
    let report: CalibrationReport = serde_json::from_value(written).unwrap();
    assert_eq!(report, computed.report);
}
