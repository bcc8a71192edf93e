//! A session has one writer.

use serde_json::json;

use super::{codes, workshop};
use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;

pub(super) fn probes() -> Vec<Probe> {
    vec![probe! {
        name: "second-writer-refused",
        pack: CORE,
        section: Log,
        scenario: "A proxy writes a session and holds a call in it. A second process of the same project, with the same \
                   configuration and the same name for its session, is started beside it, and both agents go on.",
        asserts: "No call of the second agent runs, and it is told why; the first goes on, and the log that it leaves verifies.",
        does_not_claim: "Anything against a process that writes the file without asking for the lock: that is tampering, and \
                         verification finds it.",
        class: "ASI10 AML.T0048",
        defence: WriterLock,
        run: second_writer,
    }]
}

fn second_writer(stage: &Stage) -> Outcome {
    let mut project = workshop(stage)?;
    project.set("session_id = \"shared\"");
    // What is written to the project is on disk before it is done, in the log too.
    let write = |by: &str| json!({"path": by, "content": by});
    let mut first = project.agent()?;
    first.call("files__send", json!({"text": "hello"}))?;
    // A process that does not come up is told from one that breaks by what it says.
    let mut second = project.agent().ok();
    let mut ran = 0;
    for _ in 0..2 {
        if let Some(second) = &mut second {
            let called = second.call("files__write", write("second"));
            ran += usize::from(called.is_ok_and(|called| called.ran()));
        }
        let called = first.call("files__write", write("first"))?;
        settle(called.ran(), || "the first process does not go on")?;
    }
    first.kill()?;
    if let Some(second) = second {
        second.kill()?;
    }
    let report = project.verified()?;
    hold(report.is_intact(), || {
        let found = codes(&report);
        format!("two processes wrote one session, of which is left: {found:?}")
    })?;
    let done = project.ran("files", "write")?;
    hold(ran == 0 && done == 2, || {
        format!("{ran} calls of the second agent ran, {done} in all")
    })?;
    let told = std::fs::read_to_string(stage.folder().join("proxy.stderr"))?;
    hold(
        told.contains("already being written by another process"),
        || format!("the second process says: {told}"),
    )
}
