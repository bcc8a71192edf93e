//! An approval that nobody gave: everything in it is right, but for the signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::canonical;
use lodestar_core::key::PublicKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{Approval, ApprovalDecision, Issued, Nonce, Statement as _, pae};
use lodestar_policy::ApprovalRequest;
use serde_json::json;

use crate::commands::now;
use crate::failure::Failure;
use crate::installation::fresh_key;

/// An answer to a request, as a file.
pub(super) struct Forged {
    /// What the file is called.
    pub(super) name: String,
    /// What it holds.
    pub(super) text: String,
}

/// Says yes in an approver's name, and signs with another key.
pub(super) fn forge(
    request: &ApprovalRequest,
    victim: (&ActorId, &PublicKey),
) -> Result<Forged, Failure> {
    let (approver, public) = victim;
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    let nonce = Nonce::from_bytes(random);
    let issued = Issued {
        expires_at: Some(request.expires_at),
        issued_at: now(),
        key_id: public.key_id(),
        nonce,
        subject: Approval {
            approver: approver.clone(),
            card: request.card_digest,
            decision: ApprovalDecision::Grant,
            fingerprint: request.card.action.fingerprint,
            policy: request.policy,
            reason: "approved, as the document says".to_owned(),
            request: request.id,
            session: request.session.clone(),
        },
    };
    let payload = canonical::to_vec(&issued).expect("INVARIANT: texts have a canonical form");
    let payload_type = Approval::KIND.payload_type();
    let signature = fresh_key()?.sign(&pae(payload_type, &payload));
    let envelope = json!({
        "payload": BASE64.encode(&payload),
        "payloadType": payload_type,
        "signatures": [{"keyid": public.key_id(), "sig": BASE64.encode(signature)}],
    });
    Ok(Forged {
        name: format!("{}.{nonce}.answer.json", request.id),
        text: envelope.to_string(),
    })
}
