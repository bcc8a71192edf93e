//! One content claim per block of every kind: what was read, by digest and length.
//!
//! The words themselves stay in the observation. A claim says which bytes stood at the thing that the
//! arguments name, so that two reads of it can agree or differ.

use lodestar_core::chain::{ContentBlock, Observation};
use lodestar_core::digest::Hasher;
use serde_json::{Value, json};

use super::ToolCall;
use super::block::{self, BlockKind};
use super::draft::ContentDraft;
use super::inert::Statement;
use super::subject::Reading;

/// Most blocks with a claim of their own; no tool that people use returns more. The rest share one,
/// so that a claim never weighs more than the block it is about.
pub(super) const MAX_BLOCKS: usize = 256;

/// The content claims of a result, one per block and in order, and one for all that are too many.
pub(super) fn content(call: &ToolCall<'_>, observation: &Observation) -> Vec<ContentDraft> {
    let reading = Reading::of(call);
    let blocks = observation.content.iter().enumerate();
    let mut drafts: Vec<_> = blocks
        .take(MAX_BLOCKS)
        .map(|(index, block)| one(&reading, index, block))
        .collect();
    drafts.extend(rest(&reading, observation));
    drafts
}

/// The blocks that have no claim of their own, by their number and one digest over all.
fn rest(reading: &Reading, observation: &Observation) -> Option<ContentDraft> {
    let rest = observation.content.get(MAX_BLOCKS..)?;
    if rest.is_empty() {
        return None;
    }
    let mut hasher = Hasher::new();
    for block in rest {
        hasher.update(block::content(block).digest.as_bytes());
    }
    let digest = hasher.finish();
    let statement = Statement::new()
        .subject(&reading.subject)
        .say(", and ")
        .number(rest.len() as u64)
        .say(" more blocks of a result, ")
        .digest(&digest);
    let object = json!({"blocks": rest.len(), "digest": digest});
    let relation = reading.relation("content", MAX_BLOCKS);
    Some(ContentDraft::new(
        reading.subject.clone(),
        &relation,
        object,
        statement,
    ))
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
