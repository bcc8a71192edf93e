//! The envelope: that a call happened, and the shape of what came back.
//!
//! The one claim about an MCP call that is direct, so it is a fixed template over names that were
//! reviewed, numbers and digests. No text that a server chose has a place in it: names that nobody
//! reviewed enter as digests, and so do arguments, the tool's definition and the result.

use lodestar_core::chain::{EvidenceQuality, Observation, Predicate};
use lodestar_core::digest::{Digest, Hasher};
use lodestar_core::name::CalibrationClass;
use serde_json::{Map, Value, json};

use super::ClaimDraft;
use crate::extract::ToolCall;
use crate::extract::block::BlockKind;
use crate::extract::inert::{Statement, label, label_digest};
use crate::extract::subject::Subject;
use crate::extract::sum::Sum;

/// The envelope of a call.
pub(in crate::extract) fn envelope(
    call: &ToolCall<'_>,
    observation: &Observation,
    class: &CalibrationClass,
) -> ClaimDraft {
    let name = if call.reviewed { label } else { label_digest };
    let (server, tool) = (name(call.server.as_str()), name(call.tool.as_str()));
    let arguments = Sum::of_json(call.arguments).digest;
    let result = result_digest(observation);
    let kinds = count_kinds(observation);

    let mut statement = Statement::new()
        .say("call ")
        .label(&call.invocation.to_string())
        .say(" of ")
        .label(&server)
        .say("/")
        .label(&tool)
        .say(" (definition ")
        .digest(&call.definition)
        .say(") with arguments ")
        .digest(&arguments)
        .say(if call.is_error {
            " returned an error of "
        } else {
            " returned "
        })
        .number(observation.content.len() as u64)
        .say(" blocks (");
    for (place, (kind, count)) in kinds.iter().enumerate() {
        statement = statement
            .say(if place == 0 { "" } else { ", " })
            .number(*count)
            .say(" ")
            .say(kind.as_str());
    }
    let statement = statement.say("), ").digest(&result);

    let kinds: Map<String, Value> = kinds
        .into_iter()
        .map(|(kind, count)| (kind.as_str().to_owned(), count.into()))
        .collect();
    let predicate = Predicate {
        subject: Subject::call(call).as_str().to_owned(),
        relation: "returned".to_owned(),
        object: json!({
            "arguments": arguments,
            "blocks": kinds,
            "definition": call.definition,
            "is_error": call.is_error,
            "result": result,
            "server": server,
            "tool": tool,
        }),
    };
    ClaimDraft::drawn(
        statement,
        predicate,
        EvidenceQuality::ToolResult,
        class,
        observation,
    )
}

fn count_kinds(observation: &Observation) -> Vec<(BlockKind, u64)> {
    let mut counts = BlockKind::ALL.map(|kind| (kind, 0));
    for block in &observation.content {
        let kind = BlockKind::of(block);
        if let Some((_, count)) = counts.iter_mut().find(|(other, _)| *other == kind) {
            *count += 1;
        }
    }
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Over all blocks in order, each with its kind and everything it had.
fn result_digest(observation: &Observation) -> Digest {
    let mut hasher = Hasher::new();
    for block in &observation.content {
        hasher.update(BlockKind::digest(block).as_bytes());
    }
    hasher.finish()
}
