//! Operator confirmations: what somebody said of an act before it was asked for.
//!
//! [`Evidence`] is what arrives, by whatever channel. It says something and can do nothing. An action
//! that is held is laid beside it by [`settle`], in a fixed order of checks: whether there is any,
//! whether it is to be [trusted](Evidence::trusted), whether it was spent, whether its time is now,
//! and whether it is about exactly this act. A match grants nothing while the [`Mode`] is
//! report-only; otherwise it is spent in a ledger, and only then becomes a [`Confirmed`], which
//! [`Hearing::confirm`](crate::Hearing::confirm) counts as the word of one approver.
//!
//! Nothing here runs anything, and no match is a permission by itself:
//!
//! ```compile_fail,E0599
//! # use lodestar_policy::confirmation::Evidence;
//! fn run(evidence: Evidence) {
//!     evidence.execute();
//! }
//! ```
//! ```compile_fail,E0599
//! # use lodestar_policy::confirmation::Evidence;
//! # use lodestar_policy::{Held, Permit};
//! fn grant(evidence: &Evidence, held: Held) -> Permit {
//!     evidence.grant(held)
//! }
//! ```
//! ```compile_fail,E0308
//! # use lodestar_core::time::Timestamp;
//! # use lodestar_policy::{Approvers, Hearing};
//! # use lodestar_policy::confirmation::Matching;
//! fn count(hearing: &mut Hearing, matching: &Matching, approvers: &Approvers, now: Timestamp) {
//!     let _ = hearing.confirm(matching, approvers, now);
//! }
//! ```
//! ```compile_fail,E0451
//! # use lodestar_policy::confirmation::{Confirmed, Matching};
//! fn forge(matching: Matching) -> Confirmed {
//!     Confirmed { matching }
//! }
//! ```

mod act;
mod keys;
mod record;
mod settle;
mod unbound;
mod weigh;

pub use act::{HeldAct, found_by};
pub use keys::{ConfirmationKey, ConfirmationKeys, ConfirmationKeysError};
pub use record::{
    Consumed, Operation, Recorded, Refused, RolesOf, Sent, SpentBefore, Uncounted, Under,
    WouldMatch,
};
pub use settle::{Confirmed, Settled, settle};
pub use weigh::{Distrust, Matching, Trusted, Unmatched};

use std::fmt;

use lodestar_core::key::SecretKey;
use lodestar_core::statement::{Confirmation, Envelope, Issued, Nonce, StatementError};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The name under which evidence travels and stands in the log.
pub const ENVELOPE_NAME: &str = "operator-confirmation-evidence";

/// The longest evidence that is looked at, in bytes.
pub const MAX_EVIDENCE_LEN: usize = 64 << 10;

/// What a match is worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing: what would have matched is recorded.
    #[default]
    ReportOnly,
    /// The word of one approver, once.
    Enforce,
}

/// What the operator configures of confirmations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmations {
    /// What a match is worth.
    #[serde(default)]
    pub mode: Mode,
    /// Which keys may sign what.
    #[serde(default)]
    pub keys: ConfirmationKeys,
}

/// A confirmation as it arrived. Having it proves and permits nothing.
///
/// It is kept whole and never shown: in the log it stands under [`ENVELOPE_NAME`], and its `Debug`
/// tells only which it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Evidence {
    details: Envelope,
}

impl Evidence {
    /// Reads what a channel brought.
    pub fn read(sent: &[u8]) -> Result<Self, Distrust> {
        if sent.len() > MAX_EVIDENCE_LEN {
            return Err(Distrust::Malformed {
                problem: format!("{} bytes are more than {MAX_EVIDENCE_LEN}", sent.len()),
            });
        }
        let details = Envelope::from_json(sent).map_err(|problem| Distrust::Malformed {
            problem: problem.to_string(),
        })?;
        Ok(Self { details })
    }

    /// Signs what an operator says of an act.
    pub fn sign(
        confirmation: Confirmation,
        key: &SecretKey,
        nonce: Nonce,
        issued_at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<Self, StatementError> {
        let issued = Issued {
            expires_at: Some(expires_at),
            issued_at,
            key_id: key.public().key_id(),
            nonce,
            subject: confirmation,
        };
        Envelope::sign(&issued, key).map(|details| Self { details })
    }

    /// The signed statement, whole.
    pub fn details(&self) -> &Envelope {
        &self.details
    }
}

impl fmt::Debug for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ENVELOPE_NAME} {}", self.details.digest())
    }
}

/// The named envelope, as it stands in the log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    display: bool,
    details: Envelope,
}

impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Named {
            name: ENVELOPE_NAME.to_owned(),
            display: false,
            details: self.details.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Evidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = Named::deserialize(deserializer)?;
        if named.name != ENVELOPE_NAME || named.display {
            return Err(de::Error::custom(format!(
                "evidence stands under the name `{ENVELOPE_NAME}`, hidden from display"
            )));
        }
        Ok(Self {
            details: named.details,
        })
    }
}
