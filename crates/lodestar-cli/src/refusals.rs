//! Why a command about beliefs could not do its work, as exit codes and words of help.

use lodestar_firewall::FirewallError;
use lodestar_firewall::fold::FoldError;
use lodestar_firewall::store::StoreError;
use lodestar_guard::GuardError;
use lodestar_replay::ReplayError;

use crate::failure::Failure;

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
            ReplayError::Live { .. } | ReplayError::Changed => Self::usage(text),
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
        match error {
            GuardError::Open(error) => error.into(),
            GuardError::Append(error) => Self::usage(error.to_string()),
            GuardError::Replay(error) => error.into(),
            GuardError::Firewall(error) => error.into(),
        }
    }
}
