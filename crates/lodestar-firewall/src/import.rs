//! Memories of other systems, read out of what those systems export.
//!
//! A pure function from bytes to records: [`read_export`]. It takes apart, bounds and reports; what the
//! records are worth is decided elsewhere, and nothing in a record has a say in that: `"verified": true`
//! is an attribute like any other.
//!
//! | format | what is accepted |
//! |---|---|
//! | mem0 | an answer of `get_all` or `search` (`results`, and `relations` where graph memory is on), a list of memories, an OpenMemory backup (`memories`) or its lines, rows of the vector store under `payload`; see `import/mem0.rs` |
//! | Letta | agent files of both generations (`agents` with `blocks` and `messages`, or one agent with `core_memory`), agents as the API gives them, lists of blocks, passages or messages; see `import/letta.rs` |
//! | Zep | a graph (`edges`, `nodes`, `episodes`), sessions or threads with `messages`, `facts` and `summary`, pages (`items`), search results, and Graphiti's nodes and edges; see `import/zep.rs` |
//!
//! One bad record never costs the others: what cannot be read is a [`Skipped`] with its place and the
//! reason. Only what makes the file as a whole unreadable is an [`ExportError`]. Numbers that canonical
//! JSON refuses become text with the same digits; vectors of embeddings are left out, since they say
//! nothing that the text does not say and are larger than all the rest.

mod draft;
mod error;
mod json;
mod letta;
mod mem0;
mod moment;
mod walk;
mod zep;

#[cfg(test)]
mod tests;

pub use error::{ExportError, SkipReason};

use std::fmt;
use std::str::FromStr;

use lodestar_core::name::{Excerpt, UnknownWord};
use lodestar_core::time::Timestamp;
use serde_json::{Map, Value};

/// Largest export in bytes. It is held in memory as a whole, several times over while it is read.
pub const MAX_EXPORT: usize = 64 << 20;

/// Most records of one export, skipped ones among them: each becomes events in the log and a row in
/// the store, and a list of a hundred thousand is already more than a person reviews.
pub const MAX_RECORDS: usize = 100_000;

/// Longest record in bytes as it stands in the file: the longest text and attributes with every
/// character escaped, and a vector of four thousand numbers.
pub const MAX_RECORD: usize = 1 << 20;

/// Longest text of a memory in bytes. Memories are sentences; a chapter is a document. Text and
/// attributes together stay far below what one event of the log can hold.
pub const MAX_TEXT: usize = 64 << 10;

/// Longest attributes of a memory in bytes of JSON.
pub const MAX_ATTRIBUTES: usize = 64 << 10;

/// How deep a record may nest. Attributes are written into events, which add levels of their own and
/// end at 128.
pub const MAX_DEPTH: usize = 64;

/// Longest [`ImportedMemory::reference`] in bytes: several times the ids that the three systems make.
pub const MAX_REFERENCE: usize = 192;

/// A system whose exports can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// mem0, its platform and OpenMemory.
    Mem0,
    /// Letta, once MemGPT.
    Letta,
    /// Zep, and Graphiti beneath it.
    Zep,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: &'static [Self] = &[Self::Mem0, Self::Letta, Self::Zep];

    /// The word on the command line and in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mem0 => "mem0",
            Self::Letta => "letta",
            Self::Zep => "zep",
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ExportFormat {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL.iter().find(|format| format.as_str() == text);
        known.copied().ok_or_else(|| UnknownWord {
            what: "export format",
            expected: &["mem0", "letta", "zep"],
            shown: Excerpt::of(text),
        })
    }
}

/// Which kind of record a memory was in its own system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aspect {
    /// mem0: a memory.
    Memory,
    /// mem0: two entities and what is between them, from graph memory.
    Relation,
    /// Letta: a block of core memory.
    Block,
    /// Letta: a passage of archival memory.
    Passage,
    /// Letta: a file that an agent was given.
    File,
    /// Letta and Zep: a message of a conversation.
    Message,
    /// Zep: a fact, which is what an edge of its graph says.
    Fact,
    /// Zep: what its graph says of a node: an entity, a community or an observation.
    NodeSummary,
    /// Zep: an episode, the data that a graph was built from.
    Episode,
    /// Zep: the summary of a session, thread or document.
    Summary,
}

impl Aspect {
    /// Every aspect.
    pub const ALL: &'static [Self] = &[
        Self::Memory,
        Self::Relation,
        Self::Block,
        Self::Passage,
        Self::File,
        Self::Message,
        Self::Fact,
        Self::NodeSummary,
        Self::Episode,
        Self::Summary,
    ];

    /// The word in logs and documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Relation => "relation",
            Self::Block => "block",
            Self::Passage => "passage",
            Self::File => "file",
            Self::Message => "message",
            Self::Fact => "fact",
            Self::NodeSummary => "node_summary",
            Self::Episode => "episode",
            Self::Summary => "summary",
        }
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One memory of another system.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedMemory {
    /// Names it within the export, once per aspect: its id, with everything but letters, digits and
    /// `._:-` percent-encoded, or `sha256=` and a digest if that is long; without an id the
    /// [`pointer`](Self::pointer), which starts with `/` as no id does.
    pub reference: String,
    /// Which kind of record it was.
    pub aspect: Aspect,
    /// What it says, verbatim: any characters, NUL and control characters too, but not only spaces.
    pub text: String,
    /// When it was made, if the record has a time that can be read. One without an offset is UTC.
    pub created_at: Option<Timestamp>,
    /// The rest of the record, which has a canonical form.
    pub attributes: Map<String, Value>,
    /// Where it stands in the file, as a JSON pointer. In an export of lines, the first line is `/0`.
    pub pointer: String,
}

/// A record that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Where it stands in the file, as a JSON pointer.
    pub pointer: String,
    /// In which line it starts, counted from 1.
    pub line: u64,
    /// Why it was not read.
    pub reason: SkipReason,
}

/// What an export holds, in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Export {
    /// The memories.
    pub memories: Vec<ImportedMemory>,
    /// The records that are no memories, and why.
    pub skipped: Vec<Skipped>,
}

/// Reads an export: all its records, as memories or as skipped.
pub fn read_export(format: ExportFormat, bytes: &[u8]) -> Result<Export, ExportError> {
    if bytes.len() > MAX_EXPORT {
        return Err(ExportError::TooLarge { bytes: bytes.len() });
    }
    // OpenMemory hands out a zip with a gzip in it; «not UTF-8» would be a poor answer to that.
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\x1f\x8b") {
        return Err(ExportError::Archive);
    }
    let text = str::from_utf8(bytes).map_err(|error| ExportError::NotUtf8 {
        offset: error.valid_up_to(),
    })?;
    // Shells of Windows put a byte order mark before what they redirect.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(export) = walk::read(shape(format), text)? {
        return Ok(export);
    }
    let has_memories = |other: &&ExportFormat| {
        let read = walk::read(shape(**other), text);
        matches!(read, Ok(Some(export)) if !export.memories.is_empty())
    };
    Err(ExportError::WrongShape {
        format,
        looks_like: ExportFormat::ALL.iter().find(has_memories).copied(),
    })
}

fn shape(format: ExportFormat) -> &'static walk::Shape {
    match format {
        ExportFormat::Mem0 => &mem0::SHAPE,
        ExportFormat::Letta => &letta::SHAPE,
        ExportFormat::Zep => &zep::SHAPE,
    }
}
