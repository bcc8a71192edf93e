//! File read: path, lines, bytes and language of a text that was read out of a file.

use lodestar_core::chain::Observation;
use serde_json::json;

use super::inert::{MAX_ATTRIBUTE, Statement, bounded};
use super::language::{language, name_and_extension};
use super::lines::texts;
use super::subject::{Reading, Thing};
use super::sum::Sum;
use super::tool_words::may_read;
use super::{ContentDraft, Extractor, ToolCall};

/// One claim per text of a file that was read, with the relation `text`, `text/1`, …
#[derive(Debug, Clone, Copy)]
pub struct FileRead;

impl Extractor for FileRead {
    fn name(&self) -> &'static str {
        "file-read"
    }

    fn applies(&self, call: &ToolCall<'_>, observation: &Observation) -> bool {
        !call.is_error
            && may_read(call.tool.as_str())
            && matches!(Reading::of(call).thing, Thing::File(_))
            && texts(observation).next().is_some()
    }

    fn extract(&self, call: &ToolCall<'_>, observation: &Observation) -> Vec<ContentDraft> {
        let reading = Reading::of(call);
        let Thing::File(path) = &reading.thing else {
            return Vec::new();
        };
        let (_, extension) = name_and_extension(path.as_str());
        let language = extension.and_then(language);
        // A server that returns a file in many pieces gets claims for the first of them.
        texts(observation)
            .take(MAX_PIECES)
            .map(|(index, text)| {
                let sum = Sum::of_text(text);
                let lines = text.lines().count();
                let object = json!({
                    "digest": sum.digest,
                    "language": language,
                    "length": sum.length,
                    "lines": lines,
                    "path": bounded(path.as_str(), MAX_ATTRIBUTE),
                });
                let statement = Statement::new()
                    .subject(&reading.subject)
                    .say(" reads as ")
                    .number(lines as u64)
                    .say(" lines of ")
                    .say(language.unwrap_or("text in no known language"))
                    .say(", ")
                    .number(sum.length)
                    .say(" bytes, ")
                    .digest(&sum.digest);
                let relation = reading.relation("text", index);
                ContentDraft::new(reading.subject.clone(), &relation, object, statement)
            })
            .collect()
    }
}

/// Each piece has a content claim anyway; more of them than this say little about a file.
const MAX_PIECES: usize = 16;
