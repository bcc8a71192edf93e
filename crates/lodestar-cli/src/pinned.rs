//! What servers offered when they were first seen, and how it stands now.

use std::path::Path;

use lodestar_core::digest::Digest;
use lodestar_core::key::PublicKey;
use lodestar_core::name::ProjectId;
use lodestar_core::statement::ToolReview;
use lodestar_guard::config::Config;
use lodestar_mcp::pins::{LockFile, Pin, Pins};

use crate::failure::Failure;
use crate::installation::Installation;

/// How a pinned tool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// A person whose key is pinned here accepted it as it is.
    Reviewed,
    /// Nobody looked at it yet.
    Unreviewed,
    /// Its server offers something else under its name.
    Drifted,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Reviewed => "reviewed",
            Self::Unreviewed => "unreviewed",
            Self::Drifted => "drifted",
        }
    }
}

/// The pins of a configuration's project; none where nothing was pinned.
pub(crate) fn of(config: &Config) -> Result<Pins, Failure> {
    read(config.root(), &config.project_id)
}

fn read(root: &Path, project: &ProjectId) -> Result<Pins, Failure> {
    let lock = LockFile::of(root, project);
    if lock.path().symlink_metadata().is_err() {
        return Ok(Pins::default());
    }
    let Some(key) = Installation::locate()?.log_public()? else {
        return Ok(Pins::default());
    };
    lock.read(&key).map_err(refused)
}

/// A lock file that cannot be used.
pub(crate) fn refused(problem: lodestar_mcp::pins::PinsError) -> Failure {
    use lodestar_mcp::pins::PinsError;
    match problem {
        problem @ PinsError::Forged { .. } => Failure::check(problem.to_string()),
        problem => Failure::usage(problem.to_string()),
    }
}

/// How a pin stands, by the word of these operators.
pub(crate) fn state(
    pin: &Pin,
    project: &ProjectId,
    identity: &str,
    tool: &str,
    operators: &[PublicKey],
) -> State {
    if pin.drifted.is_some() {
        return State::Drifted;
    }
    let wanted = subject(pin.digest, project, identity, Some(tool));
    let review = pin.review.as_ref();
    let verified = review.and_then(|one| one.verify_undated::<ToolReview>(operators).ok());
    match verified {
        Some(verified) if *verified.subject() == wanted => State::Reviewed,
        _ => State::Unreviewed,
    }
}

/// What a person states who accepts a definition.
pub(crate) fn subject(
    definition: Digest,
    project: &ProjectId,
    identity: &str,
    tool: Option<&str>,
) -> ToolReview {
    ToolReview::Reviewed {
        definition,
        project: project.as_str().to_owned(),
        server: identity.to_owned(),
        tool: tool.map(str::to_owned),
    }
}
