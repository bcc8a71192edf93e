//! One test per reason to refuse a statement, and the forms on the wire.

mod attestations;
mod devices;
mod several_keys;
mod verification;
mod wire;

use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::canonical;
use crate::digest::sha256;
use crate::key::{PublicKey, SecretKey};

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn now() -> Timestamp {
    "2026-11-15T21:50:00.123456Z".parse().unwrap()
}

fn issued() -> Issued<Redaction> {
    Issued {
        expires_at: now().checked_add(Duration::from_secs(60)),
        issued_at: now(),
        key_id: key(1).public().key_id(),
        nonce: Nonce::from_bytes([0xab; 16]),
        subject: Redaction {
            blobs: vec![sha256(b"blob")],
            events: vec![RedactedEvent {
                leaf_hash: sha256(b"leaf"),
                seq: 7,
            }],
            project: "demo".to_owned(),
            reason: "a password was pasted".to_owned(),
            recovered: Vec::new(),
            session: "s-1".to_owned(),
        },
    }
}

fn trusted() -> Vec<PublicKey> {
    vec![key(9).public(), key(1).public()]
}

/// An envelope as anyone with a key could make it, with any payload under any type.
fn envelope(payload_type: &str, payload: &[u8], signers: &[SecretKey]) -> Envelope {
    let message = pae(payload_type, payload);
    let signatures = signers
        .iter()
        .map(|key| EnvelopeSignature {
            key_id: key.public().key_id(),
            bytes: key.sign(&message),
        })
        .collect();
    Envelope::new(payload_type.to_owned(), payload.to_vec(), signatures).unwrap()
}

fn redaction_type() -> &'static str {
    StatementKind::Redaction.payload_type()
}

fn payload_value() -> Value {
    serde_json::to_value(issued()).unwrap()
}

fn verify(envelope: &Envelope) -> Result<Verified<Redaction>, StatementError> {
    envelope.verify(&trusted(), now())
}

/// What verification says of a payload that the right key signed.
fn verdict(payload: &Value) -> Result<Verified<Redaction>, StatementError> {
    let payload = canonical::to_vec(payload).unwrap();
    verify(&envelope(redaction_type(), &payload, &[key(1)]))
}
