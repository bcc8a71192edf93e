//! How the git tools are set up, and why they cannot work.

use std::io;
use std::path::PathBuf;

use lodestar_core::name::Excerpt;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::remote::RemoteError;
use crate::native::fs::{Early, RootError};
use crate::native::shell::ExecutableError;
use crate::tool::{Effect, ToolError};

/// Which repository, and by which `git`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitConfig {
    /// The top of the working tree.
    pub root: PathBuf,
    /// The `git` to run: absolute. Absent: the one in the system's usual places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<PathBuf>,
    /// Where the repository itself is, if `.git` is a file that says so (a linked worktree, a
    /// submodule). What the file says is believed only if it says this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_dir: Option<PathBuf>,
}

impl GitConfig {
    /// The defaults for a working tree.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            git: None,
            git_dir: None,
        }
    }
}

/// Why something about a repository cannot be done or said.
#[derive(Debug, Error)]
pub enum GitError {
    /// The root is none.
    #[error(transparent)]
    Root(#[from] RootError),
    /// No `git` in the usual places.
    #[error("there is no `git` in /usr/bin, /usr/local/bin, /bin or /opt/homebrew/bin; set `git`")]
    NoGit,
    /// A program that is not run.
    #[error(transparent)]
    Executable(#[from] ExecutableError),
    /// No repository.
    #[error("`{path}` is not a git repository: it has no `.git` directory")]
    NotARepository {
        /// The root, inert.
        path: Excerpt,
    },
    /// `.git` says that the repository is somewhere else.
    #[error("`.git` of `{path}` leads to `{to}`; set `git_dir` to that path to accept it")]
    Elsewhere {
        /// The root, inert.
        path: Excerpt,
        /// Where it leads, inert.
        to: Excerpt,
    },
    /// A part of the repository is a link, a device, too large, or missing.
    #[error("`{path}` is not what a repository has there: {reason}")]
    Odd {
        /// The part, inert.
        path: Excerpt,
        /// What is wrong.
        reason: &'static str,
    },
    /// A sort of repository that these tools do not know.
    #[error("the repository has `{key}` set to `{value}`, which is not supported here")]
    Unsupported {
        /// The setting.
        key: &'static str,
        /// Its value, inert.
        value: Excerpt,
    },
    /// The system refused.
    #[error("`{path}` cannot be used: {source}")]
    Io {
        /// What, inert.
        path: Excerpt,
        /// What the system says.
        source: io::Error,
    },
    /// `git` itself could not be started.
    #[error("`git` cannot be started: {0}")]
    Start(io::Error),
    /// `git` says no.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// Which command.
        command: &'static str,
        /// Its words, inert and bounded.
        message: String,
    },
    /// It said more than there is room for.
    #[error("`git {command}` had more to say than fits; there is too much in it")]
    TooMuch {
        /// Which command.
        command: &'static str,
    },
    /// It took too long.
    #[error("`git {command}` was not over in time")]
    TooLong {
        /// Which command.
        command: &'static str,
    },
    /// It was told to stop.
    #[error("`git {command}` was told to stop")]
    Stopped {
        /// Which command.
        command: &'static str,
    },
    /// A revision, branch or remote that cannot be one.
    #[error("`{name}` is not a name of a {kind}")]
    Name {
        /// What it should be.
        kind: &'static str,
        /// The name, inert.
        name: Excerpt,
    },
    /// There is no such revision.
    #[error("there is no commit `{name}` in the repository")]
    NoCommit {
        /// The name, inert.
        name: Excerpt,
    },
    /// An author that cannot stand in a commit.
    #[error("the author's {field} `{value}` is empty or has `<`, `>` or a control character")]
    Person {
        /// Name or address.
        field: &'static str,
        /// The value, inert.
        value: Excerpt,
    },
    /// A pinned remote that cannot be one.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

impl GitError {
    /// What it means for a call, whose effect so far is known.
    pub(crate) fn tool_error(self, effect: Effect) -> ToolError {
        match self {
            Self::TooLong { .. } => ToolError::deadline(effect),
            Self::Stopped { .. } => ToolError::stopped(effect),
            Self::Failed { .. } | Self::Start(_) | Self::Io { .. } | Self::TooMuch { .. } => {
                ToolError::failed(effect, self.to_string())
            }
            refused if effect == Effect::None => ToolError::refused(refused.to_string()),
            failed => ToolError::failed(effect, failed.to_string()),
        }
    }

    pub(crate) fn early(command: &'static str, early: Early) -> Self {
        match early {
            Early::Stopped => Self::Stopped { command },
            Early::Deadline => Self::TooLong { command },
        }
    }
}
