//! What the log says of an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::RequestId;
use lodestar_core::name::Excerpt;
use lodestar_core::statement::{ConfirmationId, Envelope};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Refusal;

/// `approval.granted@1`, `approval.denied@1` and `approval.refused@1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The request.
    pub request: RequestId,
    /// The statement, whole; none where what came is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<Envelope>,
    /// What came instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<Unreadable>,
    /// The confirmation that was spent on it: the statement stands in `confirmation.consumed@1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<ConfirmationId>,
    /// The moment at which it was checked.
    pub heard_at: Timestamp,
    /// The first check that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Refusal>,
    /// How many people are still missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u32>,
}

/// Something that is no statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Its beginning, inert.
    pub begins: String,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// All of it, by digest.
    pub digest: Digest,
    /// All of it, in base64: so that whoever reads the log can see for themselves that it is none.
    pub whole: String,
}

impl Unreadable {
    /// Something that came, whatever it is.
    pub fn of(sent: &[u8]) -> Self {
        Self {
            begins: Excerpt::of(&String::from_utf8_lossy(sent)).to_string(),
            bytes: sent.len() as u64,
            digest: sha256(sent),
            whole: BASE64.encode(sent),
        }
    }

    /// What came; none where this says of it what is not so.
    pub fn sent(&self) -> Option<Vec<u8>> {
        let sent = BASE64.decode(&self.whole).ok()?;
        (Self::of(&sent) == *self).then_some(sent)
    }
}

/// Reads what is to be an answer.
pub(super) fn read(sent: &[u8]) -> Result<Envelope, Refusal> {
    Envelope::from_json(sent).map_err(|problem| Refusal::Malformed {
        problem: problem.to_string(),
    })
}

impl Answer {
    pub(super) fn new(request: RequestId, statement: &Envelope, heard_at: Timestamp) -> Self {
        Self {
            statement: Some(statement.clone()),
            ..Self::to(request, heard_at)
        }
    }

    pub(super) fn confirmed(
        request: RequestId,
        confirmation: ConfirmationId,
        heard_at: Timestamp,
    ) -> Self {
        Self {
            confirmation: Some(confirmation),
            ..Self::to(request, heard_at)
        }
    }

    pub(super) fn unreadable(request: RequestId, sent: &[u8], heard_at: Timestamp) -> Self {
        Self {
            unreadable: Some(Unreadable::of(sent)),
            ..Self::to(request, heard_at)
        }
    }

    fn to(request: RequestId, heard_at: Timestamp) -> Self {
        Self {
            request,
            statement: None,
            unreadable: None,
            confirmation: None,
            heard_at,
            reason: None,
            missing: None,
        }
    }

    /// Why what came instead of a statement is none, found out once more. None where it is one, or
    /// where nothing came.
    pub fn malformed(&self) -> Option<Refusal> {
        let sent = self.unreadable.as_ref()?.sent()?;
        read(&sent).err()
    }
}
