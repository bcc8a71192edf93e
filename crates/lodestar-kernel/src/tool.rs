//! Tools: what can be called, and the only form in which it is called.
//!
//! A tool says what it is ([`Definition`]) and does what it is told ([`Tool::call`]). A [`Call`] is
//! made by the kernel alone, out of a clearance that it consumes, so code that holds a tool cannot
//! run it:
//!
//! ```compile_fail,E0451
//! use lodestar_kernel::tool::{Call, Tool};
//!
//! async fn bypass(tool: &dyn Tool) {
//!     let arguments = serde_json::Map::new();
//!     let _ = tool.call(Call { arguments: &arguments, stop: todo!(), deadline: todo!(), progress: None, beside: None, out_of_reach: todo!(), hosting: todo!() }).await;
//! }
//! ```

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestar_core::canonical::{self, CanonicalError};
use lodestar_core::chain::ContentBlock;
use lodestar_core::contract::{ArgumentRole, Contract};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::name::{ServerIdentity, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::contain::{Host, Hosting, OutOfReach};
use crate::stop::Stop;

/// The server identity of the tools in the box.
pub const NATIVE_SERVER: &str = "lodestar";

/// What a tool is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Its name, such as `fs.read`.
    pub name: ToolName,
    /// Whose tool it is.
    pub server: ServerIdentity,
    /// What it does, for the agent.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// What its arguments are to it, by name. A tool in the box names all of them.
    pub roles: BTreeMap<String, ArgumentRole>,
    /// What it promises at least, whatever the operator says.
    pub minimum: Contract,
    /// How its server declares it, whole, by digest; none for what is declared here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Digest>,
}

impl Definition {
    /// SHA-256 over its canonical JSON: another definition is another tool.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        canonical::to_vec(self).map(|bytes| sha256(&bytes))
    }
}

/// One cleared call: what the tool is to do, and until when.
///
/// Only the kernel makes one; there is no way to a second call with it.
#[derive(Debug)]
pub struct Call<'a> {
    arguments: &'a Map<String, Value>,
    stop: Stop,
    deadline: Instant,
    progress: Option<Arc<dyn Progress>>,
    beside: Option<Beside>,
    out_of_reach: Arc<OutOfReach>,
    hosting: Hosting,
}

/// What a caller tells its own kind of tool beside the arguments; never content.
pub type Beside = Arc<dyn Any + Send + Sync>;

impl<'a> Call<'a> {
    pub(crate) fn new(arguments: &'a Map<String, Value>, stop: &Stop, deadline: Instant) -> Self {
        Self {
            arguments,
            stop: stop.clone(),
            deadline,
            progress: None,
            beside: None,
            out_of_reach: Arc::default(),
            hosting: Host::here,
        }
    }

    /// What the children of the call cannot reach, and what sees to that.
    pub(crate) fn keeping(mut self, out_of_reach: &Arc<OutOfReach>, hosting: Hosting) -> Self {
        self.out_of_reach = Arc::clone(out_of_reach);
        self.hosting = hosting;
        self
    }

    pub(crate) fn hosting(&self) -> Hosting {
        self.hosting
    }

    pub(crate) fn out_of_reach(&self) -> &Arc<OutOfReach> {
        &self.out_of_reach
    }

    pub(crate) fn with(
        mut self,
        progress: Option<Arc<dyn Progress>>,
        beside: Option<Beside>,
    ) -> Self {
        (self.progress, self.beside) = (progress, beside);
        self
    }

    /// What the caller tells tools of this kind beside the arguments.
    pub fn beside<T: 'static>(&self) -> Option<&T> {
        self.beside.as_deref()?.downcast_ref()
    }

    /// Whoever wants to know how far it is.
    pub fn progress(&self) -> Option<Arc<dyn Progress>> {
        self.progress.clone()
    }

    /// The arguments: exactly those that were hashed, shown, approved and logged.
    pub fn arguments(&self) -> &'a Map<String, Value> {
        self.arguments
    }

    /// The text of an argument that must be there.
    pub fn text(&self, name: &str) -> Result<&'a str, ToolError> {
        match self.arguments.get(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(ToolError::invalid(format!("`{name}` must be a string"))),
            None => Err(ToolError::invalid(format!("`{name}` is missing"))),
        }
    }

    /// When it has to be over. The kernel enforces it too; a tool that started something that
    /// outlives its future (a process, a thread) has to stop that itself.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long that is from now.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Resolves when the call is to stop early: cancelled, or the session was halted.
    pub async fn stopped(&self) {
        self.stop.stopped().await;
    }
}

/// Whoever is told how far a call is. What is told is the tool's own word, and nothing rests on it.
pub trait Progress: Send + Sync + fmt::Debug {
    /// So far: an object, as the tool wrote it.
    fn made(&self, so_far: &str);
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// What came back, block by block, verbatim. It enters as content, unverified.
    pub content: Vec<ContentBlock>,
    /// Whether the tool itself calls it an error; the call is completed all the same.
    pub is_error: bool,
    /// What came beside the blocks: recorded with them.
    pub rest: Map<String, Value>,
    /// All of it as it came, for whoever passes it on.
    pub verbatim: Option<Verbatim>,
}

/// The bytes of an answer, as a server elsewhere wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verbatim {
    /// A result.
    Result(Box<str>),
    /// An error of the protocol.
    Error(Box<str>),
}

impl Verbatim {
    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        let (Self::Result(raw) | Self::Error(raw)) = self;
        raw.len()
    }
}

impl Output {
    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::Text {
                text: text.into(),
                rest: Map::new(),
            }],
            ..Self::default()
        }
    }

    /// One structured block.
    pub fn structured(value: Value) -> Self {
        Self {
            content: vec![ContentBlock::Structured { value }],
            ..Self::default()
        }
    }
}

/// What is known of the effect of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It certainly had none.
    None,
    /// It may have had some: the request went out, the process ran.
    Unknown,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct ToolError {
    /// What sort of failure.
    pub kind: ToolErrorKind,
    /// What happened, where, and what to do, in words; without secrets.
    pub message: String,
    /// What is known of its effect.
    pub effect: Effect,
}

/// What sort of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    /// The arguments are not what the tool takes.
    InvalidArguments,
    /// One of the tool's own invariants forbids it: outside its root, not on its list, too large.
    Refused,
    /// It did not work.
    Failed,
    /// It was not over in time.
    DeadlinePassed,
    /// It was told to stop.
    Stopped,
}

impl ToolError {
    /// The arguments are not what the tool takes.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidArguments, Effect::None, message)
    }

    /// An invariant of the tool forbids it.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Refused, Effect::None, message)
    }

    /// It did not work.
    pub fn failed(effect: Effect, message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Failed, effect, message)
    }

    /// It was not over in time.
    pub fn deadline(effect: Effect) -> Self {
        Self::new(
            ToolErrorKind::DeadlinePassed,
            effect,
            "the call was not over before its deadline",
        )
    }

    /// It was told to stop.
    pub fn stopped(effect: Effect) -> Self {
        Self::new(ToolErrorKind::Stopped, effect, "the call was told to stop")
    }

    fn new(kind: ToolErrorKind, effect: Effect, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            effect,
        }
    }
}

/// The result of a call, some time later.
pub type Calling<'a> = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + 'a>>;

/// What a tool does with a symbolic link at the end of a path that it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLinks {
    /// It writes to what the link leads to, or may.
    Follows,
    /// It puts something in the link's place, or refuses; never through it.
    Replaces,
}

/// Something that can be called.
pub trait Tool: Send + Sync {
    /// What it is. Always the same answer: a change of it is a change of the tool.
    fn definition(&self) -> &Definition;

    /// The folder that its relative paths start from, where it is not the project's root. What the
    /// kernel measures and protects, it measures and protects from there.
    fn root(&self) -> Option<&Path> {
        None
    }

    /// The files that a call with these arguments may write, make or remove; relative ones start from
    /// [`root`](Self::root). Before an act of L3 or above runs, the kernel keeps what stands there, so that
    /// it can be undone. None where that is not known, or where the arguments are not what it takes.
    fn writes(&self, arguments: &Map<String, Value>) -> Vec<PathBuf> {
        let _ = arguments;
        Vec::new()
    }

    /// What becomes of a link at the end of such a path. Where in doubt, it is followed: then what it leads to
    /// is kept too, and has to lie below the root.
    fn at_links(&self) -> AtLinks {
        AtLinks::Follows
    }

    /// Does it. Dropping the future must stop whatever it started.
    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a>;
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool")
            .field(&self.definition().name)
            .finish()
    }
}
