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
    let read = || json!({"path": "readme.md"});
    let mut first = project.agent()?;
    first.call("files__send", json!({"text": "hello"}))?;
    // A process that does not come up is told from one that breaks by what it says.
    let mut second = project.agent().ok();
    let mut calls = || {
        let called = second.as_mut()?.call("files__read", read()).ok()?;
        called.ran().then_some(())
    };
    let both = calls().is_some();
    let went_on = first.call("files__read", read())?;
    settle(went_on.ran(), || "the first process does not go on")?;
    calls();
    first.call("files__read", read())?;
    first.kill()?;
    if let Some(second) = second {
        second.kill()?;
    }
    let report = project.verified()?;
    let ran = project.ran("files", "read")?;
    hold(!both && ran == 2, || {
        let found = codes(&report);
        format!("two processes wrote one session, and what is found in its log is {found:?}")
    })?;
    let told = std::fs::read_to_string(stage.folder().join("proxy.stderr"))?;
    hold(
        told.contains("already being written by another process"),
        || format!("the second process says: {told}"),
    )?;
    hold(report.is_intact(), || {
        format!("the log of the first does not verify: {:?}", codes(&report))
    })
}
