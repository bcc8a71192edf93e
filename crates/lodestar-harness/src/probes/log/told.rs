//! A report says what the log says, or nothing.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::statement::ApprovalDecision::Grant;
use lodestar_log::{SessionDir, Trust};
use lodestar_report::Examination;
use serde_json::{Value, json};

use super::again::written_anew;
use super::{last, rewritten, work, workshop};
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::{Act, Answer, Project, Record, ServerScript, ToolScript};

pub(super) fn probes() -> Vec<Probe> {
    vec![probe! {
        name: "report-never-contradicts-log",
        pack: CORE,
        section: Log,
        scenario: "A session runs through the real proxy: calls that run, one that is held, one that is granted, one that is \
                   denied, and one in the midst of which the process is killed. Its report is made. Then somebody rewrites \
                   the log without a key, and somebody with the log key writes it anew with an edited verdict, and a \
                   report is asked for of each.",
        asserts: "The report has every action of the log and no other, each in the phase that its last event says, and counts \
                  them alike. Of the forged logs there is no report, and what they say stands nowhere in the refusal.",
        does_not_claim: "That a report tells everything that a reader would want to know.",
        class: "ASI09 AML.T0048",
        defence: ReportFromLog,
        run: never_contradicts,
    }]
}

/// A server whose one tool never answers, and whose other is never to run.
fn stubborn(project: &mut Project<'_>) -> Outcome {
    let tool = |name: &str, act: Act| ToolScript {
        name: name.to_owned(),
        answers: vec![Answer {
            act,
            ..Answer::default()
        }],
        ..ToolScript::default()
    };
    project.server(&ServerScript {
        name: "more".to_owned(),
        tools: vec![tool("hang", Act::Hang), tool("never", Act::Nothing)],
        ..ServerScript::default()
    })?;
    project.grade("mcp.more.hang", "L3", "");
    project.grade("mcp.more.never", "L5", "");
    Ok(())
}

/// How long a call may take to reach its server.
const PATIENCE: Duration = Duration::from_secs(10);

fn live(project: &mut Project<'_>) -> Outcome<SessionDir> {
    stubborn(project)?;
    let alice = project.person("alice", "")?;
    let mut agent = project.agent()?;
    work(&mut agent)?;
    agent.call("more__never", json!({}))?;
    let send = json!({"text": "granted"});
    agent.call("files__send", send.clone())?;
    project.answer_all(&alice, Grant)?;
    agent.call("files__send", send)?;
    agent.call("files__send", json!({"text": "held"}))?;
    agent.begin_call("more__hang", json!({}))?;
    let until = Instant::now() + PATIENCE;
    while project.ran("more", "hang")? == 0 {
        settle(Instant::now() < until, || "the call does not arrive")?;
        std::thread::sleep(Duration::from_millis(2));
    }
    agent.kill()?;
    // What is held is what the next process takes the session up for.
    let mut again = project.agent()?;
    again.call("files__read", json!({"path": "readme.md"}))?;
    again.leave()?;
    last(project)
}

/// The phase of every action, by its last event, from the log alone.
fn phases(record: &Record) -> Outcome<BTreeMap<String, &'static str>> {
    let mut phases = BTreeMap::new();
    for event in &record.events {
        let phase = match event.kind.split('@').next().unwrap_or_default() {
            "action.proposed" => "proposed",
            "action.judged" => "arbitrated",
            "action.cleared" => "cleared",
            "action.completed" => "completed",
            "action.failed" => "failed",
            "action.unknown" => "unknown",
            "action.rejected" => "rejected",
            _ => continue,
        };
        // A proposal is the action itself.
        let named = &event.payload["action"];
        let named = named.as_str().or(event.payload["id"].as_str());
        let Some(action) = named else {
            return Err(Broken::Failed(format!("#{} names no action", event.seq)));
        };
        phases.insert(action.to_owned(), phase);
    }
    Ok(phases)
}

fn report(project: &Project<'_>, dir: &SessionDir) -> Outcome<Value> {
    let keys = project.keys()?;
    let trust = Trust {
        operators: keys.operators.clone(),
        ..Trust::only(keys.log.public())
    };
    let examination = Examination {
        dir,
        trust: &trust,
        ceiling: Sensitivity::Secret,
    };
    let projection = examination.run_without(project.stage().without(), &|_| ())?;
    Ok(serde_json::to_value(&projection)?)
}

fn never_contradicts(stage: &Stage) -> Outcome {
    let mut project = workshop(stage)?;
    let dir = live(&mut project)?;
    let phases = phases(&Record::read(&dir)?)?;
    let many = |phase: &str| phases.values().filter(|one| **one == phase).count();
    settle(
        many("completed") >= 4 && many("rejected") >= 2 && many("unknown") == 1,
        || format!("the phases are {phases:?}"),
    )?;
    let told = report(&project, &dir)?;
    settle(told.get("refused").is_none(), || {
        format!("no report: {told}")
    })?;
    let actions = told["actions"].as_array().map_or(&[][..], Vec::as_slice);
    let shown: BTreeMap<String, &str> = actions
        .iter()
        .filter_map(|one| Some((one["id"].as_str()?.to_owned(), one["phase"].as_str()?)))
        .collect();
    hold(shown == phases && actions.len() == phases.len(), || {
        format!("the report says {shown:?}, the log {phases:?}")
    })?;
    for phase in ["completed", "failed", "unknown", "rejected"] {
        let (counted, many) = (&told["counts"][phase], many(phase));
        hold(*counted == many, || {
            format!("the report counts {counted} actions that are {phase}, the log has {many}")
        })?;
    }

    let events = fs::read_to_string(dir.events_path())?;
    let forged = rewritten(&events, "notes.md", "other.md")?;
    settle(forged != events, || "nothing was rewritten")?;
    fs::write(dir.events_path(), &forged)?;
    let told = report(&project, &dir)?;
    hold(
        told.get("refused").is_some(),
        || "there is a report of a log that somebody rewrote",
    )?;
    hold(
        !told.to_string().contains("other.md"),
        || "the refusal tells the forged story",
    )?;
    fs::write(dir.events_path(), &events)?;

    let mut edited = false;
    let log = written_anew(&project, &dir, "forged", |event, mut payload| {
        let is_hold = event.kind.starts_with("action.judged@") && payload["verdict"] == "hold";
        if is_hold && !edited {
            payload["verdict"] = json!("deny");
            edited = true;
        }
        payload
    })?;
    settle(edited, || "there is no verdict to edit")?;
    let told = report(&project, &log.session(dir.session()))?;
    hold(
        told["refused"]["because"] == "does_not_follow",
        || "there is a report of a log with an edited verdict",
    )
}
