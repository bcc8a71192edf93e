//! One content claim per block of every kind: what was read, by digest and length.
//!
//! The words themselves stay in the observation. A claim says which bytes stood at the thing that the
//! arguments name, so that two reads of it can agree or differ.

use lodestar_core::chain::{ContentBlock, Observation};
use serde_json::{Value, json};

use super::ToolCall;
use super::block::{self, BlockKind};
use super::draft::ContentDraft;
use super::inert::Statement;
use super::subject::Reading;

/// The content claims of a result, one per block and in order.
pub(super) fn content(call: &ToolCall<'_>, observation: &Observation) -> Vec<ContentDraft> {
    let reading = Reading::of(call);
    let blocks = observation.content.iter().enumerate();
    blocks
        .map(|(index, block)| one(&reading, index, block))
        .collect()
}

fn one(reading: &Reading, index: usize, block: &ContentBlock) -> ContentDraft {
    let kind = BlockKind::of(block);
    let sum = block::content(block);
    let mut object = json!({
        "digest": sum.digest,
        "kind": kind.as_str(),
        "length": sum.length,
    });
    let claimed = block::claimed(block);
    if !claimed.is_empty() {
        object["claimed"] = Value::Object(claimed);
    }
    if let Some(extra) = block::extra(block) {
        object["extra"] = json!(extra.digest);
    }
    let statement = Statement::new()
        .subject(&reading.subject)
        .say(", read as block ")
        .number(index as u64)
        .say(" of a result: ")
        .say(kind.as_str())
        .say(" of ")
        .number(sum.length)
        .say(" bytes, ")
        .digest(&sum.digest);
    let relation = reading.relation("content", index);
    ContentDraft::new(reading.subject.clone(), &relation, object, statement)
}
