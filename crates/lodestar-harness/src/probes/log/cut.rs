//! What is missing from the end of a log: cut off by somebody, or torn by a crash.

use std::fs;
use std::io::Write as _;

use lodestar_core::note::{Checkpoint, Note};
use serde_json::json;

use super::{closed, codes, crashed, last, work, workshop};
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::Record;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "truncation-detected",
            pack: CORE,
            section: Log,
            scenario: "Somebody cuts events off the end of a session: of one that was closed, at the ends of lines and in \
                       the middle of them; of one whose process was killed, behind each line that its last checkpoint \
                       covers, so that what is left is a flawless chain.",
            asserts: "Verification finds every cut.",
            does_not_claim: "That what was written after the last checkpoint of a killed process cannot be cut off: the \
                             report marks it as unproven.",
            class: "ASI10 AML.T0048",
            defence: Checkpoints,
            run: truncation,
        },
        probe! {
            name: "torn-tail-recovers",
            pack: CORE,
            section: Log,
            scenario: "The real proxy is killed while a call is held, and its last write is torn: half a line stands at the \
                       end of the log. It is started again, takes up the session, and the agent goes on.",
            asserts: "Every line that was whole is there still, byte for byte; the torn part is kept aside and recorded; \
                      what was held is held; what the agent does afterwards is in the log, and the log verifies.",
            does_not_claim: "That a disk which loses what it said it had written keeps anything.",
            class: "ASI08 AML.T0029",
            defence: TornTailRecovery,
            run: torn_tail,
        },
    ]
}

fn truncation(stage: &Stage) -> Outcome {
    let project = workshop(stage)?;
    let dir = closed(&project)?;
    settle(project.verified()?.is_intact(), || "the log is not intact")?;
    let events = fs::read(dir.events_path())?;
    for part in 0..12 {
        let mut length = events.len() * part / 12;
        if part % 2 == 0 {
            let whole = events[..length].iter().rposition(|byte| *byte == b'\n');
            length = whole.map_or(0, |at| at + 1);
        }
        fs::write(dir.events_path(), &events[..length])?;
        hold(!project.verified()?.is_intact(), || {
            format!("a closed session was cut after {length} bytes, and nobody sees it")
        })?;
    }
    fs::write(dir.events_path(), &events)?;

    let dir = crashed(&project)?;
    settle(project.verified()?.is_intact(), || "the log is not intact")?;
    let note = Note::parse(&fs::read(dir.checkpoint_path())?)?;
    let proven = usize::try_from(Checkpoint::parse_body(note.text())?.size)?;
    settle(proven > 3, || {
        format!("a checkpoint covers {proven} events")
    })?;
    let events = fs::read(dir.events_path())?;
    let ends = events
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n');
    let ends: Vec<usize> = ends.map(|(at, _)| at + 1).take(proven - 1).collect();
    for end in ends {
        fs::write(dir.events_path(), &events[..end])?;
        let report = project.verified()?;
        hold(codes(&report).contains(&"truncated"), || {
            format!("a session was cut after {end} bytes, below its checkpoint, and nobody sees it")
        })?;
    }
    Ok(())
}

fn torn_tail(stage: &Stage) -> Outcome {
    let project = workshop(stage)?;
    let mut agent = project.agent()?;
    work(&mut agent)?;
    let held = agent.call("files__send", json!({"text": "hello"}))?;
    settle(held.kind() == Some("approval_required"), || {
        format!("sending came back as {:?}", held.kind())
    })?;
    agent.kill()?;
    let dir = last(&project)?;
    let whole = fs::read(dir.events_path())?;
    settle(whole.ends_with(b"\n"), || "the log is torn already")?;
    let line = whole.split_inclusive(|byte| *byte == b'\n').next_back();
    let line = line.unwrap_or_default();
    let torn = &line[..line.len() / 2];
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(dir.events_path())?;
    file.write_all(torn)?;
    drop(file);

    let broken = |what: &str| format!("after a torn line {what}");
    // What broke for another reason says nothing of the log.
    let mended = |problem: Broken| match fs::read(dir.events_path()) {
        Ok(events) if !events.ends_with(torn) => problem,
        _ => Broken::Breached(broken("the session does not go on")),
    };
    let mut agent = project.agent().map_err(mended)?;
    let read = agent.call("files__read", json!({"path": "readme.md"}))?;
    hold(read.ran(), || broken("the log does not go on"))?;
    let held = agent.call("files__send", json!({"text": "hello"}))?;
    hold(!held.ran(), || broken("what was held is not held any more"))?;
    agent.leave()?;

    let after = fs::read(dir.events_path())?;
    hold(after.starts_with(&whole), || {
        broken("something that was written is not there")
    })?;
    let report = project.verified()?;
    hold(report.is_intact(), || {
        broken(&format!("the log does not verify: {:?}", codes(&report)))
    })?;
    let sessions = project.sessions()?.len();
    hold(sessions == 1, || broken("the session was not taken up"))?;
    let record = Record::read(&dir)?;
    hold(record.count("log.recovered@") == 1, || {
        broken("nothing is said of it")
    })?;
    let kept = super::files_below(&dir.recovered_dir())?;
    let is_kept = match &kept[..] {
        [one] => fs::read(one)? == torn,
        _ => false,
    };
    hold(is_kept, || broken("it is not kept aside"))
}
