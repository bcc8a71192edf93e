//! A session derived again from its log is the one that ran.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use lodestar_core::defence::Defence;
use lodestar_core::event::EventType;
use lodestar_core::name::ActorId;
use lodestar_core::statement::ApprovalDecision::{Deny, Grant};
use lodestar_core::time::Timestamp;
use lodestar_log::verify::{VerifyOptions, verify_project};
use lodestar_log::{
    Clock, Event, LogRoot, LogWriter, ProjectLog, Reader, SessionDir, Trust, WriterOptions,
};
use lodestar_replay::SessionReplay;
use serde_json::{Value, json};

use super::{last, work, workshop};
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::Project;

pub(super) fn probes() -> Vec<Probe> {
    vec![probe! {
        name: "replay-equals-live",
        pack: CORE,
        section: Log,
        scenario: "A session runs through the real proxy: calls that run, calls that are held, granted and denied by people, an \
                   answer that is refused. Then somebody who has the log key writes the session anew with one verdict \
                   changed, signs it, and enters it in a ledger: every hash and every signature is right.",
        asserts: "Derived again from its log alone, the live session has the same verdicts, answers and clearances. So has the \
                  one that was written anew as it was. The one with the edited verdict verifies, and its replay names the \
                  event.",
        does_not_claim: "That the facts in the log are true: whoever has the log key can invent a session that never was.",
        class: "ASI10 AML.T0048",
        defence: ReplayDerivation,
        run: replay_equals_live,
    }]
}

fn live(project: &mut Project<'_>) -> Outcome<SessionDir> {
    let alice = project.person("alice", "")?;
    let mut agent = project.agent()?;
    work(&mut agent)?;
    for (text, decision) in [("granted", Grant), ("denied", Deny)] {
        let send = json!({"text": text});
        agent.call("files__send", send.clone())?;
        let open = project.requested()?.pop();
        let open = open.ok_or_else(|| Broken::Failed("nothing was held".to_owned()))?;
        project.drop_answer(&open, b"decision=match")?;
        let (answer, _) = alice.answer(&open, decision)?;
        project.drop_answer(&open, &answer.to_json())?;
        agent.call("files__send", send)?;
    }
    agent.leave()?;
    let ran = project.ran("files", "send")?;
    settle(ran == 1, || format!("of two calls {ran} ran"))?;
    last(project)
}

fn replay_equals_live(stage: &Stage) -> Outcome {
    let mut project = workshop(stage)?;
    let dir = live(&mut project)?;
    let replay = project.replay(dir.session())?;
    let many = (replay.verdicts, replay.answers, replay.clearances);
    settle(
        replay.verdicts >= 6 && replay.answers == 4 && replay.clearances == 4,
        || format!("verdicts, answers and clearances are {many:?}"),
    )?;
    hold(replay.agrees(), || {
        format!(
            "the live session does not follow from its log: {}",
            told(&replay)
        )
    })?;

    let copied = written_anew(&project, &dir, "copied", |_, payload| payload)?;
    let replay = derived(&project, &copied, &dir)?;
    hold(replay.agrees(), || {
        format!("a copy of the session does not follow: {}", told(&replay))
    })?;

    let mut edited = None;
    let forged = written_anew(&project, &dir, "forged", |event, mut payload| {
        let is_hold = event.kind.starts_with("action.judged@") && payload["verdict"] == "hold";
        if is_hold && edited.is_none() {
            payload["verdict"] = json!("deny");
            edited = Some(event.seq);
        }
        payload
    })?;
    let edited = edited.ok_or_else(|| Broken::Failed("there is no verdict to edit".to_owned()))?;
    let replay = derived(&project, &forged, &dir)?;
    let is_named = replay.differences.iter().any(|one| one.seq == edited);
    hold(is_named, || {
        format!(
            "a verdict was edited under a valid chain, and nobody sees it: {}",
            told(&replay)
        )
    })
}

fn told(replay: &SessionReplay) -> String {
    let all = replay.differences.iter().map(ToString::to_string);
    all.collect::<Vec<_>>().join("; ")
}

/// What somebody with the log key makes of a session: the same events at the same times, but for what they
/// change, in a log of its own with a ledger of its own.
pub(super) fn written_anew(
    project: &Project<'_>,
    dir: &SessionDir,
    name: &str,
    mut change: impl FnMut(&Event, Value) -> Value,
) -> Outcome<ProjectLog> {
    let root = LogRoot::in_folder(project.stage().folder().join(name));
    let log = root.project(dir.project());
    let shown = Arc::new(AtomicI64::new(0));
    let clock = {
        let shown = Arc::clone(&shown);
        Clock::new(move || {
            Timestamp::from_unix_micros(shown.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
        })
    };
    let options = WriterOptions {
        clock,
        ..WriterOptions::new(project.keys()?.log)
    };
    let mut writer: Option<LogWriter> = None;
    for event in Reader::open(dir)? {
        let event = event?;
        shown.store(event.time.unix_micros(), Ordering::SeqCst);
        let payload = event.whole(dir)?.unwrap_or_default();
        let payload = change(&event, payload);
        let actor = ActorId::new(&event.actor)?;
        let kind = EventType::parse(event.kind.as_bytes());
        let kind = kind.ok_or_else(|| Broken::Failed(format!("`{}` is unknown", event.kind)))?;
        match &writer {
            None => {
                let first = LogWriter::create(&log, dir.session(), &actor, &payload, &options)?;
                writer = Some(first);
            }
            Some(writer) if kind == EventType::SESSION_CLOSED => {
                writer.close(&actor, &payload)?;
            }
            Some(writer) => {
                writer.append(kind, &actor, &event.parents, &payload)?;
            }
        }
    }
    drop(writer);
    let trust = Trust::only(project.keys()?.log.public());
    let report = verify_project(&log, &trust, &VerifyOptions::default(), &|_| ())?;
    settle(report.is_intact(), || {
        let first = report.all_problems().next().map(ToString::to_string);
        format!(
            "what was written anew does not verify: {}",
            first.unwrap_or_default()
        )
    })?;
    Ok(log)
}

fn derived(project: &Project<'_>, log: &ProjectLog, dir: &SessionDir) -> Outcome<SessionReplay> {
    let operators = project.keys()?.operators;
    let replay = lodestar_replay::derive(log, dir.session(), &operators, None)?;
    Ok(match project.stage().lacks(Defence::ReplayDerivation) {
        true => replay.taken_at_its_word(),
        false => replay,
    })
}
