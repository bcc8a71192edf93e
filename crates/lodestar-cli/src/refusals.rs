//! Why a command about beliefs, policies or sessions could not do its work, as exit codes and words of help.

use lodestar_firewall::FirewallError;
use lodestar_firewall::fold::FoldError;
use lodestar_firewall::store::StoreError;
use lodestar_guard::config::ConfigError;
use lodestar_guard::{GuardError, OpenError};
use lodestar_policy::PolicyError;
use lodestar_replay::{DeriveError, ReplayError};

use crate::failure::Failure;
use crate::inert;

const REBUILD: &str = "`lodestar store rebuild` makes the store again from the log";
const VERIFY: &str = "`lodestar log verify` lists everything that is wrong";

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::Open { .. } => Self::usage(text)
                .help("a store that is damaged can be moved away: `lodestar store rebuild` makes it again from the log"),
            StoreError::Conflict { .. } => Self::check(text).help(REBUILD),
            _ => Self::usage(text),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        let text = error.to_string();
        match error {
            ReplayError::Ledger(_) | ReplayError::Session { .. } | ReplayError::Lost { .. } => {
                Self::check(text).help(VERIFY)
            }
            ReplayError::Live { .. } | ReplayError::Changed | ReplayError::OutOfPatience => {
                Self::usage(text)
            }
            ReplayError::Store(error) | ReplayError::Fold(FoldError::Store(error)) => error.into(),
            ReplayError::Fold(_) => Self::check(text).help(REBUILD),
            ReplayError::Io(_) => Self::usage(text),
        }
    }
}

impl From<FirewallError> for Failure {
    fn from(error: FirewallError) -> Self {
        let text = error.to_string();
        match error {
            FirewallError::UnknownBelief(_) => Self::not_found(text),
            FirewallError::Statement(_) => Self::not_authorised(text),
            FirewallError::Store(error) => error.into(),
            FirewallError::NotRecorded(_) => Self::usage(text),
            FirewallError::Behind { .. }
            | FirewallError::Unfit { .. }
            | FirewallError::BadRow(_) => Self::check(text).help(REBUILD),
            _ => Self::check(text),
        }
    }
}

impl From<GuardError> for Failure {
    fn from(error: GuardError) -> Self {
        let text = error.to_string();
        match error {
            GuardError::Open(error) => error.into(),
            GuardError::Replay(error) => error.into(),
            GuardError::Firewall(error) => error.into(),
            GuardError::Store(error) => error.into(),
            GuardError::Unreadable(_) => Self::check(text).help(VERIFY),
            _ => Self::usage(text),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Read { path, problem } => Self::io(path)(problem),
            ConfigError::Parse { path, problem } => {
                let at =
                    path.map_or_else(String::new, |path| format!("`{}`: ", inert::path(&path)));
                Self::usage(format!("{at}{}", problem.trim_end()))
            }
            error => Self::usage(error.to_string()),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let text = error.to_string();
        match error {
            OpenError::Read { file, problem } => Self::io(file)(problem),
            OpenError::Policy { file, problem } => policy_refused(&inert::path(&file), &problem),
            OpenError::Gate(_) => {
                Self::usage(text).help("`lodestar policy check` shows each with the line it is on")
            }
            OpenError::Calibration { .. } => Self::check(text).help(
                "`lodestar log verify` names what is wrong; then measure again with `lodestar harness calibrate`, and that one counts",
            ),
            OpenError::Guard(error) => error.into(),
            _ => Self::usage(text),
        }
    }
}

/// A policy that does not load: signatures are a check, the rest is configuration.
pub(crate) fn policy_refused(file: &str, problem: &PolicyError) -> Failure {
    let text = format!("`{file}`: {problem}");
    match problem {
        PolicyError::Signature(_) => Failure::check(text).help(format!(
            "if whoever signed it may: put their key under `keys` in [policy] of the configuration; \
             if not, somebody who may signs it with `lodestar policy sign {file}`"
        )),
        PolicyError::Edited { .. } | PolicyError::Unsigned => {
            Failure::check(text).help(format!(
                "whoever answers for it signs it with `lodestar policy sign {file}`"
            ))
        }
        PolicyError::Unreadable(_) => Failure::usage(text).help(format!(
            "`lodestar policy check {file}` shows each with the line it is on"
        )),
        PolicyError::TooLong(_) | PolicyError::NotUtf8 { .. } | PolicyError::Ceiling(_) => {
            Failure::usage(text)
        }
    }
}

impl From<DeriveError> for Failure {
    fn from(error: DeriveError) -> Self {
        let text = error.to_string();
        match error {
            DeriveError::Replay(error) => error.into(),
            DeriveError::NoOpening(_) => Self::check(text).help(VERIFY),
            DeriveError::OpeningRedacted(_) | DeriveError::Policy { .. } => Self::check(text),
            DeriveError::Other { .. } => Self::usage(text),
        }
    }
}
