//! Why somebody's word does not count.

use lodestar_core::key::KeyId;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{Envelope, StatementError};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Approvers;

/// Why a statement does not count. Named in the order of the checks: the first that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
    /// It is no statement at all.
    #[error("this is no signed statement: {problem}")]
    Malformed {
        /// Why, in words.
        problem: String,
    },
    /// It answers what was never asked here.
    #[error("there is no such request in this session")]
    UnknownRequest,
    /// It is signed, and is no answer to a request.
    #[error("the statement does not hold: {problem}")]
    Statement {
        /// Why, in words.
        problem: String,
    },
    /// Nobody in the registry signed it.
    #[error("no approver's key signed the statement")]
    UnknownKey,
    /// The key counts no more.
    #[error("the key of approver `{approver}` was revoked at {at}")]
    RevokedKey {
        /// Whose.
        approver: ActorId,
        /// When.
        at: Timestamp,
    },
    /// Somebody changed it, or never had the key.
    #[error("the signature by `{key}` does not verify")]
    BadSignature {
        /// The key that it names.
        key: KeyId,
    },
    /// Its time is yet to come.
    #[error("the statement was issued at {at}, which is yet to come")]
    NotYetIssued {
        /// When.
        at: Timestamp,
    },
    /// Its time is over.
    #[error("the statement expired at {at}")]
    Expired {
        /// When.
        at: Timestamp,
    },
    /// The request is over.
    #[error("the request expired at {at}")]
    RequestExpired {
        /// When.
        at: Timestamp,
    },
    /// Another session's.
    #[error("the statement is for another session")]
    OtherSession,
    /// Another request's.
    #[error("the statement is for another request")]
    OtherRequest,
    /// The request has been answered already.
    #[error("the request is over: it was granted, denied or closed before")]
    Closed,
    /// Another act.
    #[error("the statement is for another act: its fingerprint differs")]
    OtherFingerprint,
    /// They saw something else.
    #[error("the approver saw another card")]
    OtherCard,
    /// Another policy was in force.
    #[error("the statement was made under another policy")]
    OtherPolicy,
    /// The key is somebody else's.
    #[error("the key belongs to another approver than the statement names")]
    OtherApprover,
    /// They are no approver, or not any more.
    #[error("operator `{operator}` is not registered as an approver")]
    NotAnApprover {
        /// Who.
        operator: ActorId,
    },
    /// None of the roles that are asked for.
    #[error("approver `{approver}` has none of the roles that are asked for")]
    NoRole {
        /// Who.
        approver: ActorId,
    },
    /// Not up to this rung.
    #[error("approver `{approver}` is not cleared for this rung")]
    NoClearance {
        /// Who.
        approver: ActorId,
    },
    /// Not here.
    #[error("approver `{approver}` does not answer for this scope")]
    OtherScope {
        /// Who.
        approver: ActorId,
    },
    /// It was used before.
    #[error("the statement was heard before")]
    Repeated,
}

/// Which check a statement failed before anybody looked at what it says.
pub(super) fn unverified(
    problem: StatementError,
    statement: &Envelope,
    approvers: &Approvers,
) -> Refusal {
    match problem {
        StatementError::Untrusted => match approvers.revoked(statement.signatures()) {
            Some((approver, at)) => Refusal::RevokedKey { approver, at },
            None => Refusal::UnknownKey,
        },
        StatementError::BadSignature(key) => Refusal::BadSignature { key },
        StatementError::NotYetIssued(at) => Refusal::NotYetIssued { at },
        StatementError::Expired(at) => Refusal::Expired { at },
        problem => Refusal::Statement {
            problem: problem.to_string(),
        },
    }
}
