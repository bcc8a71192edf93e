//! Clearing: nothing clears in a halted session, and nothing runs before its clearance is safe.

use std::sync::{Arc, Mutex, PoisonError};

use lodestar_core::key::PublicKey;
use lodestar_core::note::{Checkpoint, NoteKey};
use lodestar_core::statement::ApprovalDecision;
use lodestar_kernel::tool::Output;
use lodestar_log::{ProjectLog, Reader};
use serde_json::json;

use super::{TO, server};
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::{CountingTool, Project, apart};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "halted-session-clears-nothing",
            pack: CORE,
            section: Gate,
            scenario: "An agent works through the real proxy: one call ran, and another one is held and has just been \
                       agreed to. The operator halts the session with `lodestar halt`. The agent goes on: it makes \
                       the call that was agreed to, one that runs unasked, and one that only reads.",
            asserts: "None of the three ran, by the server's own count, and no clearance stands in the log behind the \
                      halt.",
            does_not_claim: "That what a tool had begun before the halt is undone.",
            class: "ASI10 AML.T0053",
            defence: Halt,
            run: halted,
        },
        probe! {
            name: "clearance-is-durable-before-execution",
            pack: CORE,
            section: Gate,
            scenario: "A tool at L3 of a governed session looks, every time that it is called, at the session's files on \
                       disk: how many clearances stand there under a signed checkpoint.",
            asserts: "Its own clearance was among them every time: a machine that fails while the tool runs cannot \
                      leave an effect of which the log knows nothing.",
            does_not_claim: "That the disk keeps what it said it had written, or anything about L0 to L2.",
            class: "ASI10",
            defence: DurableClearance,
            run: durable,
        },
    ]
}

fn halted(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    let alice = project.person("alice", "")?;
    let input: &[(&str, &str)] = &[("to", "string")];
    let tools = [("find", input), ("note", input), ("send", input)];
    project.server(&server("post", &tools))?;
    for (tool, rung) in [("find", "L0"), ("note", "L3"), ("send", "L4")] {
        project.grade(&format!("mcp.post.{tool}"), rung, TO);
    }
    let mut agent = project.agent()?;
    let first = agent.call("post__note", json!({"to": "a@example.org"}))?;
    settle(first.ran(), || {
        format!("before the halt a call came back as {:?}", first.kind())
    })?;
    agent.call("post__send", json!({"to": "a@example.org"}))?;
    let answered = project.answer_all(&alice, ApprovalDecision::Grant)?;
    settle(answered == 1, || format!("{answered} requests were open"))?;
    let halting = apart(stage.program(), project.installation().dir())
        .args(["halt", "latest", "--reason", "it goes astray"])
        .current_dir(project.root())
        .output()?;
    settle(halting.status.success(), || {
        String::from_utf8_lossy(&halting.stderr).into_owned()
    })?;
    for tool in ["send", "note", "find"] {
        let answer = agent.call(&format!("post__{tool}"), json!({"to": "a@example.org"}))?;
        let ran = project.ran("post", tool)? - usize::from(tool == "note");
        hold(ran == 0 && !answer.ran(), || {
            format!("in a halted session `{tool}` ran")
        })?;
    }
    agent.leave()?;
    let record = project.record()?;
    let halt = record.of("session.halted@").next().map(|one| one.seq);
    let later = record
        .of("action.cleared@")
        .filter(|one| halt.is_none_or(|halt| one.seq > halt));
    hold(
        halt.is_some() && later.count() == 0,
        || "the log does not say that it was halted, or a clearance stands behind it",
    )
}

fn durable(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    project.grade("box.write", "L3", "");
    let (log, key) = (project.log()?, project.keys()?.log.public());
    let seen: Arc<Mutex<Vec<Option<usize>>>> = Arc::default();
    let sees = Arc::clone(&seen);
    let tool = CountingTool::saying("box.write", move |_| {
        let safe = safely_cleared(&log, &key);
        sees.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(safe);
        Output::text("done")
    })?;
    let setup = project.setup()?.tool(tool.clone());
    stage.block_on(async {
        let session = setup.open().await?;
        for at in 0..3 {
            let write = json!({"path": format!("{at}.md"), "text": "x"});
            session.call("box.write", write).await?;
        }
        session.close("done").await?;
        Ok::<_, Broken>(())
    })??;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    settle(seen.len() == 3 && seen.iter().all(Option::is_some), || {
        format!("what lay on disk could not be read: {seen:?}")
    })?;
    for (at, safe) in seen.iter().enumerate() {
        hold(*safe > Some(at), || {
            let safe = safe.unwrap_or_default();
            format!(
                "call {} ran while only {safe} clearances were safe on disk",
                at + 1
            )
        })?;
    }
    Ok(())
}

/// How many clearances of the only session stand on disk under its signed checkpoint at this moment.
fn safely_cleared(log: &ProjectLog, key: &PublicKey) -> Option<usize> {
    let session = log.sessions_on_disk().ok()?.pop()?;
    let dir = log.session(&session);
    let signer = NoteKey::ed25519(&dir.origin(), key).ok()?;
    let signed = std::fs::read(dir.checkpoint_path()).ok()?;
    let (checkpoint, _) = Checkpoint::open(&signed, &signer).ok()?;
    let events = Reader::open(&dir).ok()?.map_while(Result::ok);
    let proven = events.take_while(|event| event.seq < checkpoint.size);
    let cleared = proven.filter(|event| event.kind.starts_with("action.cleared@"));
    Some(cleared.count())
}
