//! Probes about between an agent and its servers.

mod attack;
mod downstream;
mod offers;
mod results;
mod shown;
mod values;

use crate::probe::Probe;
use crate::world::{Answer, ServerScript, ToolScript};

pub(super) fn probes() -> Vec<Probe> {
    [
        results::probes(),
        attack::probes(),
        offers::probes(),
        shown::probes(),
        downstream::probes(),
        values::probes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A server with these tools.
fn server(name: &str, tools: Vec<ToolScript>) -> ServerScript {
    ServerScript {
        name: name.to_owned(),
        tools,
        ..ServerScript::default()
    }
}

/// A tool that takes these texts and answers so.
fn tool(name: &str, texts: &[&str], answer: Answer) -> ToolScript {
    let input = texts
        .iter()
        .map(|text| ((*text).to_owned(), "string".to_owned()));
    ToolScript {
        name: name.to_owned(),
        description: format!("{name} something"),
        input: input.collect(),
        answers: vec![answer],
    }
}

/// An answer that says this.
fn says(text: &str) -> Answer {
    Answer {
        text: text.to_owned(),
        ..Answer::default()
    }
}
