//! The DSSE envelope: its JSON form, and the bytes that are signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{StatementError, StatementKind};
use crate::canonical;
use crate::digest::{Digest, sha256};
use crate::key::KeyId;

/// The longest envelope, as JSON. The largest statements, run bundles and policies, stay far below.
pub const MAX_ENVELOPE_LEN: usize = 1 << 20;

/// The most signatures of an envelope: each that names a trusted key costs a verification.
pub const MAX_ENVELOPE_SIGNATURES: usize = 16;

/// A signed statement as it travels. Having one proves nothing yet: [`Envelope::verify`] does.
///
/// The JSON is DSSE's, narrowed to one spelling: standard base64 with padding, Ed25519 signatures
/// under Lodestar's key ids, and no other fields. DSSE lets readers ignore unknown fields; here they
/// are refused, because nothing signs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub(super) payload_type: String,
    pub(super) payload: Vec<u8>,
    /// INVARIANT: 1 to [`MAX_ENVELOPE_SIGNATURES`], no two by the same key.
    pub(super) signatures: Vec<EnvelopeSignature>,
}

/// One signature of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeSignature {
    /// The key it claims to be by.
    pub key_id: KeyId,
    /// The Ed25519 signature.
    pub bytes: [u8; 64],
}

/// DSSE's pre-authentication encoding, version 1: what a signature covers.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let (type_len, len) = (payload_type.len(), payload.len());
    let mut encoded = format!("DSSEv1 {type_len} {payload_type} {len} ").into_bytes();
    encoded.extend_from_slice(payload);
    encoded
}

impl Envelope {
    pub(super) fn new(
        payload_type: String,
        payload: Vec<u8>,
        signatures: Vec<EnvelopeSignature>,
    ) -> Result<Self, StatementError> {
        if signatures.is_empty() {
            return Err(StatementError::NoSignatures);
        }
        if signatures.len() > MAX_ENVELOPE_SIGNATURES {
            return Err(StatementError::TooManySignatures);
        }
        for (at, signature) in signatures.iter().enumerate() {
            if signatures[..at]
                .iter()
                .any(|s| s.key_id == signature.key_id)
            {
                return Err(StatementError::DuplicateSignature(signature.key_id.clone()));
            }
        }
        let envelope = Self {
            payload_type,
            payload,
            signatures,
        };
        let len = envelope.to_json().len();
        if len > MAX_ENVELOPE_LEN {
            return Err(StatementError::TooLong(len));
        }
        Ok(envelope)
    }

    /// Reads the JSON form.
    pub fn from_json(json: &[u8]) -> Result<Self, StatementError> {
        if json.len() > MAX_ENVELOPE_LEN {
            return Err(StatementError::TooLong(json.len()));
        }
        let value = canonical::parse(json).map_err(StatementError::Json)?;
        let wire = Wire::deserialize(value)
            .map_err(|error| StatementError::Malformed(error.to_string()))?;
        wire.try_into()
    }

    /// The JSON form, canonical.
    pub fn to_json(&self) -> Vec<u8> {
        canonical::to_vec(self).expect("strings always have a canonical form")
    }

    /// The hash of the canonical JSON. It covers the signatures too, which anyone can add to or
    /// remove from: to recognise a repeated statement, look at its nonce.
    pub fn digest(&self) -> Digest {
        sha256(&self.to_json())
    }

    /// The hash of the payload: the same for every envelope around it, whoever signed.
    pub fn payload_digest(&self) -> Digest {
        sha256(&self.payload)
    }

    /// What kind of statement it claims to be; `None` for a payload type not known here.
    pub fn kind(&self) -> Option<StatementKind> {
        StatementKind::from_payload_type(&self.payload_type)
    }

    /// The payload type, as claimed.
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// The payload, unverified: for display only.
    pub fn unverified_payload(&self) -> &[u8] {
        &self.payload
    }

    /// The signatures, unverified.
    pub fn signatures(&self) -> &[EnvelopeSignature] {
        &self.signatures
    }
}

/// The JSON form as serde sees it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Wire {
    payload: String,
    payload_type: String,
    signatures: Vec<WireSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSignature {
    keyid: KeyId,
    sig: String,
}

impl TryFrom<Wire> for Envelope {
    type Error = StatementError;

    fn try_from(wire: Wire) -> Result<Self, StatementError> {
        let decode = |what: &str, text: &str| {
            BASE64
                .decode(text)
                .map_err(|_| StatementError::Malformed(format!("{what} is not strict base64")))
        };
        // Before the signatures are decoded: there could be a great many.
        if wire.signatures.len() > MAX_ENVELOPE_SIGNATURES {
            return Err(StatementError::TooManySignatures);
        }
        let payload = decode("the payload", &wire.payload)?;
        let signatures = wire
            .signatures
            .into_iter()
            .map(|signature| {
                let bytes = decode("a signature", &signature.sig)?;
                Ok(EnvelopeSignature {
                    key_id: signature.keyid,
                    bytes: bytes.try_into().map_err(|_| {
                        StatementError::Malformed("a signature does not have 64 bytes".to_owned())
                    })?,
                })
            })
            .collect::<Result<_, StatementError>>()?;
        Self::new(wire.payload_type, payload, signatures)
    }
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let signatures = self.signatures.iter().map(|signature| WireSignature {
            keyid: signature.key_id.clone(),
            sig: BASE64.encode(signature.bytes),
        });
        Wire {
            payload: BASE64.encode(&self.payload),
            payload_type: self.payload_type.clone(),
            signatures: signatures.collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Wire::deserialize(deserializer)?
            .try_into()
            .map_err(de::Error::custom)
    }
}
