//! Sessions from which an operator took something out: they are told with the gap, and nobody is accused.

use std::collections::BTreeSet;
use std::path::Path;

use lodestar_core::chain::Truth;
use lodestar_core::key::SecretKey;
use lodestar_core::name::SessionId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::verify::{VerifyOptions, verify_project};
use lodestar_log::{ProjectLog, Trust};
use lodestar_report::model::{Report, Standing, Word};
use lodestar_report::otel::{Unprojectable, admit, project as spans};
use lodestar_report::{Examination, Projection};
use serde_json::json;

use crate::governed::{GRADES, Project, log_key, operator, redact, three, without_each};
use crate::told::poisoned;
use crate::world::{World, measure, promote, read};

/// The report, with the operator's key known.
fn told(log: &ProjectLog, session: &SessionId, key: &SecretKey) -> Projection {
    let mut trust = Trust::only(key.public());
    trust.operators.push(operator().public());
    trust.operators.push(SecretKey::from_seed([9; 32]).public());
    let examination = Examination {
        dir: &log.session(session),
        trust: &trust,
        ceiling: Sensitivity::Internal,
    };
    examination.run(&|_| ()).unwrap()
}

fn report(log: &ProjectLog, session: &SessionId, key: &SecretKey) -> Report {
    match told(log, session, key) {
        Projection::Report(report) => *report,
        Projection::Refused(refused) => panic!("{refused:?}"),
    }
}

/// A report and a trace of the session with each of its events redacted; says which types there were.
fn each(
    root: &Path,
    log: &ProjectLog,
    session: &SessionId,
    key: impl Fn() -> SecretKey + Copy,
) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    without_each(root, (log, session), key, &mut |log, seq, kind| {
        let report = report(log, session, &key());
        assert!(report.integrity.redactions[0].events == [seq], "{kind}");
        exported(log, session, &key());
        kinds.insert(kind.to_owned());
    });
    kinds
}

fn exported(log: &ProjectLog, session: &SessionId, key: &SecretKey) {
    let mut trust = Trust::only(key.public());
    trust.operators.push(operator().public());
    trust.operators.push(SecretKey::from_seed([9; 32]).public());
    let options = VerifyOptions {
        session: Some(session.clone()),
        ..VerifyOptions::default()
    };
    let verified = verify_project(log, &trust, &options, &|_| ()).unwrap();
    let replay = lodestar_replay::derive(log, session, &trust.operators, None).unwrap();
    let admitted = admit(&log.session(session), &verified, &replay).unwrap();
    spans::<Unprojectable>(admitted, Sensitivity::Secret, |_| Ok(())).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redaction_of_any_event_of_a_session_leaves_a_report_of_the_rest() {
    let (project, session) = poisoned().await;
    let kinds = each(&project.root, &project.log(), &session, log_key);
    for kind in [
        "action.cleared@1",
        "action.completed@1",
        "action.judged@1",
        "action.proposed@1",
        "action.rejected@1",
        "approval.denied@1",
        "approval.granted@1",
        "approval.refused@1",
        "approval.requested@1",
        "belief.adopted@2",
        "observation.recorded@1",
        "session.closed@1",
        "task.stated@1",
    ] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_what_a_belief_rests_on_nobody_can_tell_whether_it_came_to_be_trusted() {
    let (project, session) = poisoned().await;
    let whole = report(&project.log(), &session, &log_key());
    let answer = whole.answers.untrusted_became_trusted.answer;
    assert_eq!(answer, Word::No);
    let mut fewer = 0;
    let place = (&project.log(), &session);
    without_each(&project.root, place, log_key, &mut |log, seq, kind| {
        let report = report(log, &session, &log_key());
        let answer = &report.answers.untrusted_became_trusted;
        if report.beliefs.list.len() < whole.beliefs.list.len() {
            fewer += 1;
            assert_eq!(answer.answer, Word::CannotTell, "{kind}");
            assert!(answer.events.contains(&seq), "{kind}: {answer:?}");
        }
    });
    assert!(fewer > 3, "{fewer}");
}

/// Reads, sends, writes three times; the writes complete a sequence.
async fn in_sequence() -> (Project, SessionId) {
    let grades = GRADES.replace(
        "required_trust_level = \"L4\"",
        "required_trust_level = \"L3\"",
    );
    let sentinel = "{ name = \"anomalous-tool-sequence\", mode = \"observe\" }";
    let config = format!("sentinels = [{sentinel}]\n{grades}");
    let project = Project::new();
    let session = project.open(&config, &three()).await;
    for (tool, arguments) in [
        ("box.read", json!({"path": "a.md"})),
        ("box.send", json!({"to": "bob@corp.example", "text": "x"})),
        ("box.write", json!({"path": "b.md", "text": "x"})),
        ("box.write", json!({"path": "c.md", "text": "x"})),
    ] {
        session.call(tool, arguments).await.unwrap();
    }
    session.halt("enough").unwrap();
    session.close("done").await.unwrap();
    (project, session.id().clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sentinel_saw_after_a_step_that_was_redacted_is_neither_derived_nor_different() {
    let (project, session) = in_sequence().await;
    let kinds = each(&project.root, &project.log(), &session, log_key);
    assert!(kinds.contains("sentinel.alerted@1") && kinds.contains("session.halted@1"));
    let proposed: Vec<u64> = (0..)
        .zip(project.events(&session))
        .filter(|(_, (kind, _))| kind == "action.proposed@1")
        .map(|(seq, _)| seq)
        .collect();
    // Who sent is not known any more, so nobody can tell whether the writes completed anything.
    redact(&project.log(), &session, &proposed[1..2], log_key());
    let replay = project.replay(&session);
    let alerts: Vec<u64> = (0..)
        .zip(project.events(&session))
        .filter(|(_, (kind, _))| kind == "sentinel.alerted@1")
        .map(|(seq, _)| seq)
        .collect();
    assert_eq!(alerts.len(), 2);
    assert!(replay.agrees(), "{:?}", replay.differences);
    assert!(alerts.iter().all(|seq| replay.redacted.contains(seq)));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_redactions_of_one_call_are_told_too_and_no_call_hides_behind_them() {
    let (project, session) = poisoned().await;
    let of = |kind: &str| -> Vec<u64> {
        let events = (0..).zip(project.events(&session));
        events
            .filter(|(_, (found, _))| found == kind)
            .map(|(seq, _)| seq)
            .collect()
    };
    let gone = [of("action.proposed@1")[3], of("action.judged@1")[3]];
    let (requested, granted) = (of("approval.requested@1")[1], of("approval.granted@1")[0]);
    redact(&project.log(), &session, &gone, log_key());
    report(&project.log(), &session, &log_key());
    redact(&project.log(), &session, &[requested, granted], log_key());
    let report = report(&project.log(), &session, &log_key());
    let answer = &report.answers.irreversible_without_approval;
    assert_eq!(answer.answer, Word::CannotTell);
    // Somebody writes the clearance of another action that goes back to the same proposal.
    project.will_be_edited();
    let cleared = of("action.cleared@1")[2];
    let path = project.log().session(&session).events_path();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut line: serde_json::Value = serde_json::from_str(&lines[cleared as usize]).unwrap();
    line["payload"]["action"] = json!("act_01arz3ndektsv4rrffq69g5fav");
    let line = lodestar_core::canonical::to_vec(&line).unwrap();
    lines[cleared as usize] = String::from_utf8(line).unwrap();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let replay = project.replay(&session);
    assert!(!replay.agrees(), "{replay:?}");
}

#[test]
fn beliefs_that_rest_on_what_was_redacted_are_told_and_accuse_nobody_here_or_elsewhere() {
    let world = World::new();
    let mut first = world.open();
    let outcome = read(&mut first, "notes.md", "the port is 8080");
    let mut rumours = outcome.beliefs().iter();
    let rumour = rumours.find(|one| one.axes.truth == Truth::Unverified);
    let rumour = rumour.unwrap().id;
    measure(&mut first, "a.txt", "exists", json!(true));
    measure(&mut first, "a.txt", "exists", json!(false));
    promote(&mut first, rumour);
    let again = read(&mut first, "other.md", "the port is 9090");
    let mut rumours = again.beliefs().iter();
    let rumour = rumours.find(|one| one.axes.truth == Truth::Unverified);
    let left = rumour.unwrap().id;
    let first_id = first.id().clone();
    first.close("done").unwrap();
    let mut second = world.open();
    promote(&mut second, left);
    let second_id = second.id().clone();
    second.close("done").unwrap();
    let key = || SecretKey::from_seed([1; 32]);
    assert_eq!(key().public(), crate::world::key().public());
    let place = (&world.log, &first_id);
    let mut kinds = BTreeSet::new();
    without_each(&world.folder, place, key, &mut |log, _, kind| {
        kinds.insert(kind.to_owned());
        report(log, &first_id, &key());
        report(log, &second_id, &key());
    });
    for kind in ["belief.adopted@1", "belief.promoted@1"] {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
}

#[test]
fn whoever_takes_the_promotion_of_another_session_away_does_not_turn_the_answer_round() {
    let world = World::new();
    let mut first = world.open();
    let outcome = read(&mut first, "notes.md", "the port is 8080");
    let mut rumours = outcome.beliefs().iter();
    let rumour = rumours.find(|one| one.axes.truth == Truth::Unverified);
    let rumour = rumour.unwrap().id;
    let first_id = first.id().clone();
    first.close("done").unwrap();
    let mut second = world.open();
    promote(&mut second, rumour);
    let second_id = second.id().clone();
    second.close("done").unwrap();
    let key = || SecretKey::from_seed([1; 32]);
    let became = |log: &ProjectLog| {
        let report = report(log, &first_id, &key());
        report.answers.untrusted_became_trusted
    };
    assert_eq!(became(&world.log).answer, Word::Yes);
    let mut promotions = 0;
    let place = (&world.log, &second_id);
    without_each(&world.folder, place, key, &mut |log, seq, kind| {
        let answer = became(log);
        if kind != "belief.promoted@1" {
            assert_eq!(answer.answer, Word::Yes, "{kind}: {answer:?}");
            return;
        }
        promotions += 1;
        assert_eq!(answer.answer, Word::CannotTell, "{answer:?}");
        let named = format!("event {seq} of session {second_id}");
        assert!(answer.because.contains(&named), "{answer:?}");
    });
    assert_eq!(promotions, 1);
}

#[test]
fn of_a_session_that_was_not_closed_nobody_can_tell_how_much_there_was() {
    let world = World::new();
    let mut first = world.open();
    read(&mut first, "notes.md", "the port is 8080");
    let id = first.id().clone();
    // A crash: nothing says that this was all.
    drop(first);
    let key = SecretKey::from_seed([1; 32]);
    let report = report(&world.log, &id, &key);
    let answers = &report.answers;
    assert_eq!(answers.log_intact.answer, Word::CannotTell);
    assert!(answers.log_intact.because.contains("was not closed"));
    let trusted = &answers.untrusted_became_trusted;
    assert_eq!(
        (trusted.answer, trusted.standing),
        (Word::No, Standing::Open)
    );
    assert!(trusted.because.contains("as far as the log goes"));
    let mut limits = report.limits.iter();
    assert!(limits.any(|one| one.limit.starts_with("The session is not closed")));
}
