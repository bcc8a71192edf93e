//! The ladder: L4 waits for a person, whatever the policy says.

use serde_json::json;

use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::{Project, ServerScript, ToolScript};

pub(super) fn probes() -> Vec<Probe> {
    vec![probe! {
        name: "l4-action-requires-approval",
        pack: CORE,
        section: Gate,
        scenario: "An agent calls a tool that is graded L4 through the real proxy, three times, under a policy \
                   that lets everything up to L3 run unasked. Nobody approves.",
        asserts: "The tool never ran, by its server's own count, each call came back as a refusal that says \
                  approval is needed, and the log holds a verdict of hold for each.",
        does_not_claim: "That the tool's grade is right: the operator grades.",
        class: "ASI02 AML.T0053",
        defence: LadderFloor,
        run: l4_requires_approval,
    }]
}

fn l4_requires_approval(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    project.person("alice", "")?;
    project.server(&ServerScript {
        name: "post".to_owned(),
        tools: vec![ToolScript {
            name: "send".to_owned(),
            input: [("to".to_owned(), "string".to_owned())].into(),
            ..ToolScript::default()
        }],
        ..ServerScript::default()
    })?;
    project.grade(
        "mcp.post.send",
        "L4",
        "arg_roles = { to = \"destination\" }",
    );
    let mut agent = project.agent()?;
    let mut answers = Vec::new();
    for to in ["a@example.org", "b@example.org", "a@example.org"] {
        answers.push(agent.call("post__send", json!({"to": to}))?);
    }
    agent.leave()?;
    let record = project.record()?;
    settle(
        record.count("action.proposed@") == 3,
        || "not every call was proposed",
    )?;
    let ran = project.ran("post", "send")?;
    hold(ran == 0, || {
        format!("the tool ran {ran} times without an approval")
    })?;
    for answer in &answers {
        hold(answer.kind() == Some("approval_required"), || {
            format!("a call came back as {:?}", answer.kind())
        })?;
    }
    let held = record
        .of("action.judged@")
        .filter(|one| one.payload["verdict"] == "hold");
    hold(held.count() == 3, || "not every verdict is a hold")
}
