//! Probes about what may run.

mod arbiters;
mod calibration;
mod clearing;
mod contained;
mod grades;
mod holds;
mod inputs;
mod ladder;
mod own;
mod policy;
mod push;

use serde_json::Value;

use crate::probe::{Outcome, Probe, hold};
use crate::world::{Called, Record, ServerScript, ToolScript};

pub(super) fn probes() -> Vec<Probe> {
    [
        ladder::probes(),
        policy::probes(),
        grades::probes(),
        holds::probes(),
        push::probes(),
        own::probes(),
        contained::probes(),
        arbiters::probes(),
        calibration::probes(),
        inputs::probes(),
        clearing::probes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A server with these tools, each with its arguments and their types.
fn server(name: &str, tools: &[(&str, &[(&str, &str)])]) -> ServerScript {
    let tool = |(name, input): &(&str, &[(&str, &str)])| ToolScript {
        name: (*name).to_owned(),
        input: input
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned()))
            .collect(),
        ..ToolScript::default()
    };
    ServerScript {
        name: name.to_owned(),
        tools: tools.iter().map(tool).collect(),
        ..ServerScript::default()
    }
}

/// A call came back as this kind of refusal.
fn refused_as(answer: &Called, kind: &str) -> Outcome {
    hold(answer.kind() == Some(kind), || {
        format!("a call came back as {:?} and not as {kind}", answer.kind())
    })
}

/// How many verdicts of a session are this one.
fn verdicts(record: &Record, verdict: &str) -> usize {
    let judged = record.of("action.judged@");
    judged
        .filter(|one| one.payload["verdict"] == verdict)
        .count()
}

/// A destination is one, by the operator's word.
const TO: &str = "arg_roles = { to = \"destination\" }";

/// A path is one.
const PATH: &str = "arg_roles = { path = \"path\" }";

/// Whether a list of calls holds one with this value.
fn has(done: &[Value], name: &str, value: &str) -> bool {
    done.iter().any(|arguments| arguments[name] == value)
}
