//! Why an export or one of its records was not read.

use lodestar_core::name::Excerpt;
use thiserror::Error;

use super::{
    ExportFormat, MAX_ATTRIBUTES, MAX_DEPTH, MAX_EXPORT, MAX_RECORD, MAX_RECORDS, MAX_TEXT,
};

/// Why an export cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExportError {
    /// More bytes than [`MAX_EXPORT`].
    #[error("the export has {bytes} bytes, more than {MAX_EXPORT}; export it in parts")]
    TooLarge {
        /// How many there are.
        bytes: usize,
    },
    /// A zip or gzip archive.
    #[error("the export is a packed archive; unpack it and import the JSON file inside")]
    Archive,
    /// Not text.
    #[error("the export is not UTF-8 at byte {offset}; save it as UTF-8")]
    NotUtf8 {
        /// Up to where it is, counted from 0.
        offset: usize,
    },
    /// Not JSON.
    #[error("the export is not JSON at line {line}, column {column}; export it again")]
    NotJson {
        /// The line, counted from 1.
        line: usize,
        /// How many bytes of that line could still be read, give or take one.
        column: usize,
    },
    /// More records than [`MAX_RECORDS`].
    #[error("the export has more than {MAX_RECORDS} records; export it in parts")]
    TooManyRecords,
    /// JSON, but nothing in it stands where this system puts its records.
    #[error("no list of records found; {}{}", expected(*.format), hint(*.looks_like))]
    WrongShape {
        /// As what it was read.
        format: ExportFormat,
        /// As what it could be read.
        looks_like: Option<ExportFormat>,
    },
}

fn expected(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Mem0 => {
            "a mem0 export has `results` or `memories`, or is a list of memories; \
             an export with a schema of one's own has to keep one of them"
        }
        ExportFormat::Letta => {
            "a letta export has `agents`, `blocks`, `passages` or `messages`, is one agent, or is a \
             list of these"
        }
        ExportFormat::Zep => {
            "a zep export has `edges`, `nodes`, `episodes`, `facts`, `messages`, `sessions` or \
             `threads`, or is a list of these"
        }
    }
}

fn hint(looks_like: Option<ExportFormat>) -> String {
    match looks_like {
        Some(other) => format!(". It can be read as `{other}`"),
        None => String::new(),
    }
}

/// Why a record was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SkipReason {
    /// Neither an object nor, where that will do, a text.
    #[error("a record was expected here, as an object; this is something else")]
    NotARecord,
    /// A list of records should stand here.
    #[error("a list of records was expected here; this is something else")]
    NotAList,
    /// A line of an export of lines is not JSON.
    #[error("the line is not JSON at column {column}; export it again")]
    NotJson {
        /// How many bytes of it could still be read, give or take one.
        column: usize,
    },
    /// More bytes than [`MAX_RECORD`].
    #[error("the record has {bytes} bytes, more than {MAX_RECORD}; shorten it in the export")]
    RecordTooLarge {
        /// How many there are.
        bytes: usize,
    },
    /// More levels than [`MAX_DEPTH`].
    #[error("the record nests deeper than {MAX_DEPTH} levels; flatten it in the export")]
    TooDeep,
    /// Two values under one key: readers disagree on which one counts.
    #[error("the key `{key}` appears twice; keep one of them in the export")]
    DuplicateKey {
        /// The key.
        key: Excerpt,
    },
    /// Half of a surrogate pair: no Unicode character.
    #[error("a text holds half a character (a lone surrogate); repair it in the export")]
    LoneSurrogate,
    /// Nothing under the keys where a text should be.
    #[error("the record has no text; it should stand under {}", .expected.join(" or "))]
    NoText {
        /// Those keys, in backticks.
        expected: &'static [&'static str],
    },
    /// Something other than a text under such a key.
    #[error("what stands under {key} is not a text; make it a string in the export")]
    NotText {
        /// The key, in backticks.
        key: &'static str,
    },
    /// A text of nothing, or of spaces.
    #[error("the text of the record is empty; there is nothing to import")]
    EmptyText,
    /// More bytes than [`MAX_TEXT`].
    #[error("the text has {bytes} bytes, more than {MAX_TEXT}; split it in the export")]
    TextTooLarge {
        /// How many there are.
        bytes: usize,
    },
    /// More bytes than [`MAX_ATTRIBUTES`].
    #[error(
        "the rest of the record has {bytes} bytes, more than {MAX_ATTRIBUTES}; shorten its metadata"
    )]
    AttributesTooLarge {
        /// How many there are.
        bytes: usize,
    },
    /// A message that calls tools and says nothing.
    #[error("the message calls a tool and says nothing; there is nothing to import")]
    OnlyCalls,
    /// Deleted in its own system, and only kept in its database.
    #[error("the record was deleted in its own system; restore it there to import it")]
    Deleted,
    /// A record of the same kind with the same id came before.
    #[error("a record with the same id stands at `{first}`; the first one counts")]
    DuplicateId {
        /// Where the first one stands.
        first: String,
    },
}
