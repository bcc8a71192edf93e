//! Hooks: the built-in tools of clients that one does not own, as governed tools.
//!
//! A client runs `lodestar hook <client>` before and after each of its own tools. What it says is read into
//! [`Incoming`] ([`protocol`]), which is the same for every client; what Lodestar answers is an [`Answer`],
//! which the protocol writes in that client's format. Between both stands a session for each conversation
//! ([`daemon`]), in which the client's tools are governed tools ([`tools`]).

pub mod daemon;
pub mod protocol;
pub mod settings;
mod tools;

pub(crate) use tools::is_one as is_built_in;
pub use tools::{Governed, governed, registry};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A client whose hooks are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Gemini CLI.
    Gemini,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Cursor, Self::Gemini];

    /// The name: on the command line, and in the names of its tools and sessions.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
        }
    }

    /// Where the client keeps its hooks, below a project's folder and below the user's home alike.
    pub fn settings(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude/settings.json",
            Self::Codex => ".codex/hooks.json",
            Self::Cursor => ".cursor/hooks.json",
            Self::Gemini => ".gemini/settings.json",
        }
    }
}

/// One thing that a client says through a hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incoming {
    /// Who says it.
    pub client: Client,
    /// The client's own name for the conversation.
    pub conversation: String,
    /// Where the conversation works.
    pub cwd: Option<PathBuf>,
    /// What it says.
    pub event: Event,
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A conversation begins, or goes on.
    Started,
    /// It ends.
    Ended {
        /// Why, in the client's word.
        reason: String,
    },
    /// The user says what is to be done.
    Prompt {
        /// In these words.
        text: String,
    },
    /// A tool is about to be used.
    Before {
        /// Which, and how.
        r#use: Use,
    },
    /// A tool was used.
    After {
        /// Which, and how.
        r#use: Use,
        /// What came back, as the client tells it.
        result: Value,
        /// Whether the client calls it a failure.
        failed: bool,
    },
}

/// One use of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// The client's own name of the tool.
    pub tool: String,
    /// What sort of tool it is.
    pub kind: Kind,
    /// The client's number for this use, the same before and after; none where the client has none.
    pub id: Option<String>,
    /// The arguments, as the client has them.
    pub input: Map<String, Value>,
}

/// What sort of tool a client has built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Reads a file.
    Read,
    /// Lists or searches files.
    Find,
    /// Changes a part of a file.
    Edit,
    /// Writes a whole file.
    Write,
    /// Runs a command line.
    Shell,
    /// Fetches a page.
    Fetch,
    /// Searches the web.
    Search,
    /// Starts an agent of its own.
    Agent,
    /// Keeps notes of its own and has no effect outside the client: plans, lists of what is to be done.
    Note,
    /// Calls a tool of an MCP server.
    Mcp,
    /// Anything else.
    Other,
}

/// What Lodestar answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Nothing stands against it; the client's own rules still apply.
    Proceed,
    /// It must not happen.
    Refuse {
        /// Why, and what the agent may do, in words for the agent.
        reason: String,
    },
}
