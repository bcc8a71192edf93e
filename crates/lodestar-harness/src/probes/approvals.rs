//! Probes about people's word.

mod bound;
mod confirmed;
mod confirming;
mod forged;
mod lasting;
mod people;

use lodestar_core::statement::Envelope;
use lodestar_guard::{Holds, Session};
use lodestar_policy::ApprovalRequest;
use serde_json::{Value, json};

use crate::probe::{Outcome, Probe};
use crate::stage::Stage;
use crate::world::{CountingTool, Project, Record, answering};

pub(super) fn probes() -> Vec<Probe> {
    [
        forged::probes(),
        bound::probes(),
        people::probes(),
        lasting::probes(),
        confirmed::probes(),
        confirming::probes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The tool of these scenarios: what is sent cannot be taken back.
const SEND: &str = "box.send";

/// A project in which sending waits for people.
fn project(stage: &Stage) -> Outcome<Project<'_>> {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    project.set("approval_timeout_ms = 10000");
    project.grade(SEND, "L4", "arg_roles = { to = \"destination\" }");
    Ok(project)
}

fn letter(text: &str) -> Value {
    json!({"to": "anna@corp.example", "text": text})
}

/// A session whose held calls are answered by a function of the request, in the order in which it gives
/// its answers.
async fn asking(
    project: &Project<'_>,
    tool: &CountingTool,
    answers: impl Fn(&ApprovalRequest) -> Outcome<Vec<Envelope>> + Send + Sync + 'static,
) -> Outcome<Session> {
    // What cannot be made is not sent, and the scenario settles that everything was heard.
    let holds = answering(move |request| answers(request).unwrap_or_default());
    open(project, tool, holds).await
}

async fn open(project: &Project<'_>, tool: &CountingTool, holds: Holds) -> Outcome<Session> {
    let setup = project.setup()?.tool(tool.clone()).holds(holds);
    Ok(setup.open().await?)
}

/// How often a reason for refusing an answer stands in the log.
fn refused(record: &Record, reason: &str) -> usize {
    record
        .of("approval.refused@")
        .filter(|event| event.payload["reason"]["refused"] == reason)
        .count()
}
