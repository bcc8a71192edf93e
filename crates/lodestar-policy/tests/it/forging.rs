//! What somebody without the key can do to a signed statement, and what somebody with it can.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::canonical;
use lodestar_core::key::SecretKey;
use lodestar_core::statement::pae;
use serde_json::{Value, json};

/// Everything is tried with `LODESTAR_MATRIX=full`, a fixed sample otherwise.
pub(crate) fn is_full() -> bool {
    std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full")
}

/// Changes every byte of an envelope, one at a time: to three others by default, else to all others.
pub(crate) fn every_byte_changed(honest: &[u8], mut look: impl FnMut(usize, &[u8])) {
    let mut seed = 0x9E37_79B9_u32;
    for at in 0..honest.len() {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let sample = [1 << (seed >> 29), 0x20, (seed >> 16) as u8 | 1];
        let masks: Vec<u8> = match is_full() {
            true => (1..=255).collect(),
            false => sample.to_vec(),
        };
        for mask in masks {
            let mut forged = honest.to_vec();
            forged[at] ^= mask;
            look(at, &forged);
        }
    }
}

/// Cut after every byte, sent twice in one, and with something behind.
pub(crate) fn cut_and_doubled(honest: &[u8]) -> Vec<Vec<u8>> {
    let mut forged: Vec<Vec<u8>> = (0..honest.len())
        .map(|end| honest[..end].to_vec())
        .collect();
    forged.push([honest, honest].concat());
    forged.push([honest, b"{}"].concat());
    forged.push([honest, b"\0"].concat());
    forged
}

/// The payload of one envelope under the signatures of another.
pub(crate) fn with_signatures_of(honest: &[u8], forged: &[u8]) -> Vec<u8> {
    let honest: Value = serde_json::from_slice(honest).unwrap();
    let mut forged: Value = serde_json::from_slice(forged).unwrap();
    forged["signatures"] = honest["signatures"].clone();
    serde_json::to_vec(&forged).unwrap()
}

/// An envelope over any payload of any type, rightly signed: no type of this code is asked.
pub(crate) fn signed_raw(payload_type: &str, payload: &Value, keys: &[&SecretKey]) -> Vec<u8> {
    signed_bytes(payload_type, &canonical::to_vec(payload).unwrap(), keys)
}

/// The same over bytes that may be no JSON at all.
pub(crate) fn signed_bytes(payload_type: &str, payload: &[u8], keys: &[&SecretKey]) -> Vec<u8> {
    let signature = |key: &&SecretKey| {
        let bytes = key.sign(&pae(payload_type, payload));
        json!({"keyid": key.public().key_id(), "sig": BASE64.encode(bytes)})
    };
    let envelope = json!({
        "payload": BASE64.encode(payload),
        "payloadType": payload_type,
        "signatures": keys.iter().map(signature).collect::<Vec<_>>(),
    });
    canonical::to_vec(&envelope).unwrap()
}
