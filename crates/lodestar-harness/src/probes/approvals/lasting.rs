//! A request outlives the proxy, and its grant is good for one call.

use lodestar_core::statement::ApprovalDecision::Grant;
use serde_json::{Value, json};

use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::{Project, ServerScript, ToolScript};

pub(super) fn probes() -> Vec<Probe> {
    vec![probe! {
        name: "durable-resume-runs-once",
        pack: CORE,
        section: Approvals,
        scenario: "A call is held by the real proxy, whose process is then killed. It is started again, somebody grants \
                   the request, the agent makes the same call, and makes it twice more: once at once, and once after the \
                   proxy was killed and started yet again.",
        asserts: "The tool ran exactly once, by its server's own count: the request survived the first process, and its \
                  grant was spent by one call, for the second process and for the third.",
        does_not_claim: "That a tool which was called in the moment of the crash did nothing: that is recorded as unknown.",
        class: "ASI08 AML.T0053",
        defence: ApprovalOnce,
        run: resume,
    }]
}

/// A proxy in front of a server that sends.
pub(super) fn post(stage: &Stage) -> Outcome<Project<'_>> {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    project.server(&ServerScript {
        name: "post".to_owned(),
        tools: vec![ToolScript {
            name: "send".to_owned(),
            input: [("text".to_owned(), "string".to_owned())].into(),
            ..ToolScript::default()
        }],
        ..ServerScript::default()
    })?;
    project.grade("mcp.post.send", "L4", "");
    Ok(project)
}

/// What is sent.
pub(super) fn text(text: &str) -> Value {
    json!({"text": text})
}

fn resume(stage: &Stage) -> Outcome {
    let mut project = post(stage)?;
    let alice = project.person("alice", "")?;
    let mut first = project.agent()?;
    let held = first.call("post__send", text("once"))?;
    settle(held.kind() == Some("approval_required"), || {
        format!("the call came back as {:?}", held.kind())
    })?;
    first.kill()?;

    let mut second = project.agent()?;
    let answered = project.answer_all(&alice, Grant)?;
    hold(answered == 1, || {
        format!("{answered} requests are open after the proxy was killed")
    })?;
    let granted = second.call("post__send", text("once"))?;
    hold(granted.ran(), || {
        format!("after the grant the call came back as {:?}", granted.kind())
    })?;
    second.call("post__send", text("once"))?;
    let ran = project.ran("post", "send")?;
    hold(ran == 1, || format!("one grant ran the call {ran} times"))?;
    second.kill()?;

    let mut third = project.agent()?;
    third.call("post__send", text("once"))?;
    third.leave()?;
    let ran = project.ran("post", "send")?;
    hold(ran == 1, || {
        format!("one grant ran the call {ran} times, over a crash")
    })?;
    let sessions = project.sessions()?.len();
    hold(sessions == 1, || {
        format!("the three processes wrote {sessions} sessions")
    })?;
    let cleared = project.record()?.count("action.cleared@");
    hold(cleared == 1, || {
        format!("the log holds {cleared} clearances")
    })
}
