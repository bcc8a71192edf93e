//! Words that nobody gave: statements that were changed, signed by somebody else or as something else.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::canonical;
use lodestar_core::key::{KeyId, PublicKey, SecretKey};
use lodestar_core::name::ActorId;
use lodestar_core::statement::{
    Approval, ApprovalDecision, Envelope, Issued, Nonce, Statement, StatementKind, pae,
};
use lodestar_core::time::Timestamp;
use lodestar_guard::channel::drop::DropDirectory;
use lodestar_log::Clock;
use lodestar_policy::ApprovalRequest;
use serde::Serialize;
use serde_json::{Value, json};

use super::people::Person;
pub(crate) use super::people::nonce;
use super::project::Project;
use crate::probe::Outcome;

/// What somebody would say if they granted a request: everything in it is right.
pub(crate) fn grant(request: &ApprovalRequest, by: &Person) -> Outcome<Issued<Approval>> {
    granted(request, &by.name, by.key.public().key_id())
}

fn granted(request: &ApprovalRequest, by: &ActorId, key: KeyId) -> Outcome<Issued<Approval>> {
    Ok(Issued {
        expires_at: Some(request.expires_at),
        issued_at: Clock::system().now(),
        key_id: key,
        nonce: nonce()?,
        subject: Approval {
            approver: by.clone(),
            card: request.card_digest,
            decision: ApprovalDecision::Grant,
            fingerprint: request.card.action.fingerprint,
            policy: request.policy,
            reason: "seen".to_owned(),
            request: request.id,
            session: request.session.clone(),
        },
    })
}

/// A yes in an approver's name, and the number that makes its file's name: everything in it is right, but for the
/// signature, which is by another key or, without one, nobody's.
pub fn forged_grant(
    request: &ApprovalRequest,
    (approver, public): (&ActorId, &PublicKey),
    key: Option<&SecretKey>,
) -> Outcome<(Envelope, Nonce)> {
    let mut said = granted(request, approver, public.key_id())?;
    said.subject.reason = "approved, as the document says".to_owned();
    let payload = canonical::to_vec(&said)?;
    let signature = match key {
        Some(key) => key.sign(&pae(Approval::KIND.payload_type(), &payload)),
        None => [0; 64],
    };
    let envelope = enveloped(&payload, Approval::KIND, &public.key_id(), &signature)?;
    Ok((envelope, said.nonce))
}

/// So many seconds from now.
pub(crate) fn later(by_seconds: i64) -> Outcome<Timestamp> {
    let now = Clock::system().now().unix_micros();
    let at = now.saturating_add(by_seconds.saturating_mul(1_000_000));
    Ok(Timestamp::from_unix_micros(at)?)
}

/// A statement, signed by whoever has the key that it names.
pub(crate) fn signed<T: Statement>(said: &Issued<T>, key: &SecretKey) -> Outcome<Envelope> {
    Ok(Envelope::sign(said, key)?)
}

/// What a key really signs, in the name of a key, as a statement of some kind: whether these fit is not
/// asked.
pub(crate) fn forged(
    said: &impl Serialize,
    kind: StatementKind,
    (named, key): (&KeyId, &SecretKey),
) -> Outcome<Envelope> {
    let payload = canonical::to_vec(said)?;
    let signature = key.sign(&pae(kind.payload_type(), &payload));
    enveloped(&payload, kind, named, &signature)
}

fn enveloped(
    payload: &[u8],
    kind: StatementKind,
    named: &KeyId,
    signature: &[u8],
) -> Outcome<Envelope> {
    let envelope = json!({
        "payload": BASE64.encode(payload),
        "payloadType": kind.payload_type(),
        "signatures": [{"keyid": named, "sig": BASE64.encode(signature)}],
    });
    Ok(Envelope::from_json(envelope.to_string().as_bytes())?)
}

/// The payload of one under the signature of the other.
pub(crate) fn relabelled(payload_of: &Envelope, signature_of: &Envelope) -> Outcome<Vec<u8>> {
    let mut made: Value = serde_json::from_slice(&payload_of.to_json())?;
    let other: Value = serde_json::from_slice(&signature_of.to_json())?;
    made["signatures"] = other["signatures"].clone();
    Ok(made.to_string().into_bytes())
}

impl Project<'_> {
    /// Puts something where an answer to a request is looked for.
    pub(crate) fn drop_answer(&self, request: &ApprovalRequest, bytes: &[u8]) -> Outcome {
        let folder = DropDirectory::path_below(self.root()).join(request.session.as_str());
        let nonce = nonce()?;
        let half = folder.join(format!("{nonce}.new"));
        fs::write(&half, bytes)?;
        let name = format!("{}.{nonce}.answer.json", request.id);
        Ok(fs::rename(half, folder.join(name))?)
    }

    /// The requests of the last session, in the order in which they were opened, from its log.
    pub(crate) fn requested(&self) -> Outcome<Vec<ApprovalRequest>> {
        let record = self.record()?;
        let requests = record.of("approval.requested@");
        let read = requests.map(|event| serde_json::from_value(event.payload.clone()));
        Ok(read.collect::<Result<_, _>>()?)
    }
}
