//! The ladder: L4 waits for a person and L5 does not run, whatever the policy says; and what the policy
//! forbids stays forbidden.

use lodestar_core::statement::ApprovalDecision;
use serde_json::json;

use super::{TO, refused_as, server, verdicts};
use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::Project;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
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
        },
        probe! {
            name: "l5-never-runs",
            pack: CORE,
            section: Gate,
            scenario: "An agent calls a tool that is graded L5 through the real proxy, again and again, under a policy \
                       that lets everything up to L3 run. Somebody whose approval counts agrees to whatever they \
                       are asked.",
            asserts: "The tool never ran, by its server's own count; nobody was asked; every call came back as \
                      denied, and every verdict in the log is a deny.",
            does_not_claim: "That the operator put on L5 what belongs there.",
            class: "ASI02 AML.T0053",
            defence: LadderFloor,
            run: l5_never_runs,
        },
        probe! {
            name: "ladder-floor-overrides-allow-rule",
            pack: CORE,
            section: Gate,
            scenario: "The operator's signed policy permits everything to run, and names an L4 tool and an L5 tool in \
                       rules of their own. An agent calls both through the real proxy. Nobody approves.",
            asserts: "Neither tool ran, by the server's own count: the first call is held, the second denied, although \
                      the log says that the policies permitted both.",
            does_not_claim: "That a policy which permits everything is harmless below L4: there it permits.",
            class: "ASI03 AML.T0053",
            defence: LadderFloor,
            run: floor_over_allow,
        },
        probe! {
            name: "l4-floor-preserves-stricter-rule",
            pack: CORE,
            section: Gate,
            scenario: "A signed policy forbids an L4 tool to send to one domain and permits the rest. An agent calls \
                       it for that domain through the real proxy, twice. In between, somebody whose approval \
                       counts agrees to whatever they are asked.",
            asserts: "The forbidden call never ran, by the server's own count, and came back as denied both times: \
                      that L4 waits for a person made no question out of a no. The same tool with another \
                      recipient is held.",
            does_not_claim: "That forbids are written so that they cover what their author meant.",
            class: "ASI03 AML.T0053",
            defence: ForbidsStand,
            run: forbid_stays,
        },
    ]
}

fn l4_requires_approval(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    project.person("alice", "")?;
    project.server(&server("post", &[("send", &[("to", "string")])]))?;
    project.grade("mcp.post.send", "L4", TO);
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
        refused_as(answer, "approval_required")?;
    }
    hold(
        verdicts(&record, "hold") == 3,
        || "not every verdict is a hold",
    )
}

fn l5_never_runs(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    let alice = project.person("alice", "")?;
    project.server(&server("disk", &[("wipe", &[("path", "string")])]))?;
    project.grade("mcp.disk.wipe", "L5", "");
    let mut agent = project.agent()?;
    let mut answers = Vec::new();
    let mut asked = 0;
    for _ in 0..3 {
        answers.push(agent.call("disk__wipe", json!({"path": "data"}))?);
        asked += project.answer_all(&alice, ApprovalDecision::Grant)?;
    }
    agent.leave()?;
    let record = project.record()?;
    settle(
        record.count("action.proposed@") == 3,
        || "not every call was proposed",
    )?;
    let ran = project.ran("disk", "wipe")?;
    hold(ran == 0, || {
        format!("a tool that is graded L5 ran {ran} times")
    })?;
    hold(asked == 0, || "somebody was asked for what is prohibited")?;
    for answer in &answers {
        refused_as(answer, "policy_denied")?;
    }
    hold(
        verdicts(&record, "deny") == 3,
        || "not every verdict is a deny",
    )
}

fn floor_over_allow(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.person("alice", "")?;
    project.policy(
        "permit (principal, action, resource);\n\
         @id(\"send\") permit (principal, action in Action::\"run\", resource == Tool::\"mcp.post.send\");\n\
         @id(\"sign\") permit (principal, action in Action::\"run\", resource == Tool::\"mcp.post.sign\");\n",
    )?;
    let input: &[(&str, &str)] = &[("to", "string")];
    project.server(&server("post", &[("send", input), ("sign", input)]))?;
    project.grade("mcp.post.send", "L4", TO);
    project.grade("mcp.post.sign", "L5", TO);
    let mut agent = project.agent()?;
    let send = agent.call("post__send", json!({"to": "a@example.org"}))?;
    let sign = agent.call("post__sign", json!({"to": "a@example.org"}))?;
    agent.leave()?;
    let record = project.record()?;
    let judged: Vec<_> = record.of("action.judged@").collect();
    let permitted = judged.iter().filter(|one| {
        one.payload["verdict"] == "allow" || one.payload["answer"]["run"] == "permit"
    });
    settle(
        judged.len() == 2 && permitted.count() == 2,
        || "the policies did not permit both calls",
    )?;
    for tool in ["send", "sign"] {
        let ran = project.ran("post", tool)?;
        hold(ran == 0, || {
            format!("a rule that permits it made `{tool}` run unasked")
        })?;
    }
    refused_as(&send, "approval_required")?;
    refused_as(&sign, "policy_denied")
}

fn forbid_stays(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    let alice = project.person("alice", "")?;
    project.policy(
        "permit (principal, action, resource);\n\
         @id(\"not-there\") forbid (principal, action, resource)\n\
         when { context.args has to && context.args.to like \"*@rival.example\" };\n",
    )?;
    project.server(&server("post", &[("send", &[("to", "string")])]))?;
    project.grade("mcp.post.send", "L4", TO);
    let mut agent = project.agent()?;
    let there = json!({"to": "sales@rival.example"});
    let other = agent.call("post__send", json!({"to": "ops@example.org"}))?;
    settle(other.kind() == Some("approval_required"), || {
        format!("what the policy permits came back as {:?}", other.kind())
    })?;
    let first = agent.call("post__send", there.clone())?;
    project.answer_all(&alice, ApprovalDecision::Grant)?;
    let second = agent.call("post__send", there.clone())?;
    agent.leave()?;
    let done = project.done("post", "send")?;
    hold(
        !done.contains(&there),
        || "what the policy forbids ran, because somebody was asked and agreed",
    )?;
    refused_as(&first, "policy_denied")?;
    refused_as(&second, "policy_denied")
}
