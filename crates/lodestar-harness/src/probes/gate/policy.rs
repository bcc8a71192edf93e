//! The policy: what it does not speak of, who may write it, and what it cannot evaluate.

use serde_json::json;

use super::{PATH, refused_as, server, verdicts};
use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::{Person, Project};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "unmatched-action-defaults-to-deny",
            pack: CORE,
            section: Gate,
            scenario: "A signed policy permits one tool and says nothing of another one of the same server, which is \
                       graded L3. An agent calls both through the real proxy.",
            asserts: "The tool that is named ran; the other one did not, by the server's own count, and came back as \
                      denied. No policy is recorded as the reason.",
            does_not_claim: "That silence denies at L4: there it asks a person, which is a probe of its own.",
            class: "ASI03 AML.T0053",
            defence: DefaultDeny,
            run: unmatched,
        },
        probe! {
            name: "policy-signature-required",
            pack: CORE,
            section: Gate,
            scenario: "Somebody who can write to the project replaces the operator's signed policy, which denies a tool, \
                       by one that permits everything: under the old signature, without any, and under one of a \
                       key of their own. Each time an agent starts the real proxy and calls the tool.",
            asserts: "The tool never ran, by its server's own count: a policy whose text nobody with a pinned key \
                      signed is not put into force, and without a policy nothing is.",
            does_not_claim: "Anything about somebody who can also change the configuration, which pins the keys, or \
                             who has one of them.",
            class: "ASI03 AML.T0081",
            defence: PolicySignature,
            run: signature_required,
        },
        probe! {
            name: "policy-error-never-opens",
            pack: CORE,
            section: Gate,
            scenario: "A signed policy permits payments and forbids those above a limit. An agent makes two through the \
                       real proxy under which the forbid cannot be evaluated: one so large that the sum \
                       overflows, and one whose amount is text.",
            asserts: "Neither payment was made, by the server's own count: a forbid that breaks denies, although \
                      Cedar itself leaves such a policy out; the log names what could not be evaluated. A small \
                      payment is made.",
            does_not_claim: "That policies say what their author meant where they can be evaluated.",
            class: "ASI02 AML.T0053",
            defence: EvaluationErrors,
            run: error_never_opens,
        },
    ]
}

fn unmatched(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.policy(
        "permit (principal, action in Action::\"run\", resource == Tool::\"mcp.files.read\");\n",
    )?;
    let input: &[(&str, &str)] = &[("path", "string")];
    project.server(&server("files", &[("read", input), ("remove", input)]))?;
    project.grade("mcp.files.read", "L0", PATH);
    project.grade("mcp.files.remove", "L3", PATH);
    let mut agent = project.agent()?;
    let read = agent.call("files__read", json!({"path": "a.md"}))?;
    let remove = agent.call("files__remove", json!({"path": "a.md"}))?;
    agent.leave()?;
    settle(read.ran() && project.ran("files", "read")? == 1, || {
        format!("what the policy permits came back as {:?}", read.kind())
    })?;
    let ran = project.ran("files", "remove")?;
    hold(ran == 0, || "a tool ran that no policy speaks of")?;
    refused_as(&remove, "policy_denied")?;
    let record = project.record()?;
    let denied = record
        .of("action.judged@")
        .find(|one| one.payload["verdict"] == "deny");
    let policies = denied.map(|one| &one.payload["policies"]);
    hold(policies == Some(&json!([])), || {
        format!("silence is recorded as {policies:?}")
    })
}

const STRICT: &str =
    "permit (principal, action in Action::\"run\", resource == Tool::\"mcp.files.read\");\n";
const LAX: &str = "permit (principal, action, resource);\n";

fn signature_required(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    let operator = project.policy(STRICT)?;
    let input: &[(&str, &str)] = &[("path", "string")];
    project.server(&server("files", &[("read", input), ("remove", input)]))?;
    project.grade("mcp.files.read", "L0", PATH);
    project.grade("mcp.files.remove", "L3", PATH);
    attempt(&project)?;
    settle(
        project.ran("files", "read")? == 1,
        || "under the operator's own policy nothing ran",
    )?;
    project.rewrite_policy(LAX)?;
    denied(&project, "a policy that was edited after it was signed")?;
    project.unsign_policy()?;
    denied(&project, "a policy that nobody signed")?;
    let stranger = Person::new("stranger")?;
    project.sign_policy(&stranger.key)?;
    denied(&project, "a policy that a stranger signed")?;
    project.rewrite_policy(STRICT)?;
    project.sign_policy(&operator.key)?;
    attempt(&project)?;
    settle(
        project.ran("files", "read")? == 2,
        || "under the operator's policy, put back, nothing ran",
    )
}

fn denied(project: &Project<'_>, what: &str) -> Outcome {
    // A proxy that does not even start is what is wanted.
    let _ = attempt(project);
    let ran = project.ran("files", "remove")?;
    hold(ran == 0, || {
        format!("{what} was put into force, and the tool ran")
    })
}

/// An agent comes, tries both tools, and leaves.
fn attempt(project: &Project<'_>) -> Outcome {
    let mut agent = project.agent()?;
    agent.call("files__read", json!({"path": "a.md"}))?;
    agent.call("files__remove", json!({"path": "a.md"}))?;
    agent.leave()
}

fn error_never_opens(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.policy(
        "permit (principal, action in Action::\"run\", resource);\n\
         @id(\"limit\") forbid (principal, action, resource)\n\
         when { context.args has cents && context.args.cents * 10000 > 5000000 };\n",
    )?;
    project.server(&server("bank", &[("pay", &[("cents", "integer")])]))?;
    project.grade("mcp.bank.pay", "L3", "arg_roles = { cents = \"payload\" }");
    let mut agent = project.agent()?;
    let small = agent.call("bank__pay", json!({"cents": 5}))?;
    let huge = agent.call("bank__pay", json!({"cents": 9_007_199_254_740_991_i64}))?;
    let text = agent.call("bank__pay", json!({"cents": "600"}))?;
    agent.leave()?;
    settle(small.ran(), || {
        format!("a small payment came back as {:?}", small.kind())
    })?;
    let done = project.done("bank", "pay")?;
    hold(done == [json!({"cents": 5})], || {
        format!("a forbid that could not be evaluated let through {done:?}")
    })?;
    refused_as(&huge, "policy_denied")?;
    refused_as(&text, "policy_denied")?;
    let record = project.record()?;
    let named = record.of("action.judged@").filter(|one| {
        let errors = one.payload["errors"].as_array();
        errors.is_some_and(|errors| errors.iter().any(|error| error["policy"] == "limit"))
    });
    hold(
        named.count() == 2 && verdicts(&record, "deny") == 2,
        || "the log does not name the policy that could not be evaluated",
    )
}
