//! Why a signed statement is not believed, as a code.

use lodestar_core::id::DeviceId;
use lodestar_core::statement::StatementError;

use crate::code::{Code, Refusal};

/// The refusal of a statement. A bad signature counts against the device in whose name it was made, if it was
/// made in one's.
pub(super) fn refusal_of(problem: StatementError, device: Option<DeviceId>) -> Refusal {
    let code = match &problem {
        StatementError::TooLong(_)
        | StatementError::Json(_)
        | StatementError::Malformed(_)
        | StatementError::NoSignatures
        | StatementError::TooManySignatures
        | StatementError::DuplicateSignature(_)
        | StatementError::MalformedNonce
        | StatementError::NotCanonical
        | StatementError::WrongPayload { .. }
        | StatementError::OtherPayload
        | StatementError::Unwritable(_) => Code::EnvelopeMalformed,
        StatementError::WrongKind { .. } => Code::StatementKind,
        StatementError::Untrusted
        | StatementError::BadSignature(_)
        | StatementError::MissingSignature(_)
        | StatementError::KeyMismatch(_) => Code::SignatureInvalid,
        StatementError::SameKey(_) => Code::KeyInUse,
        StatementError::NotYetIssued(_) | StatementError::TooOld(_) => Code::ClockSkew,
        StatementError::Expired(_) => Code::StatementExpired,
    };
    let mut refusal = Refusal::saying(code, problem.to_string());
    if code == Code::SignatureInvalid {
        refusal.strike = device;
    }
    refusal
}
