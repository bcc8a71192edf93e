//! `git.status`, `git.commit`, `git.push`, and a repository as preconditions and cards see it.
//!
//! The real `git` does the work, but never under the repository's own configuration, which anybody
//! who can write into the project can write: hooks, drivers, helpers and rewritten addresses live
//! there. Each command runs in a [private directory](private) with a configuration of ours, whose
//! objects, references and index are the repository's. A push starts in an empty one that has the
//! repository's objects only, with the address and the references that the operator pinned.
//!
//! So filters do not run either: a commit of a path with one (large files, encryption) is refused.

mod command;
mod commit;
mod config;
mod outgoing;
mod private;
mod push;
mod remote;
mod repository;
mod settings;
mod status;
#[cfg(test)]
mod tests;

pub use commit::{GitCommit, GitCommitConfig, Person};
pub use config::{GitConfig, GitError};
pub use outgoing::{Commit, FileChange, MAX_COMMITS, MAX_FILES, Outgoing};
pub use push::{GitPush, GitPushConfig, PinnedRef, Update};
pub use remote::{Credentials, Protocol, RemoteError};
pub use repository::{Repository, UNBORN};
pub use status::GitStatus;
