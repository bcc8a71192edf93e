//! Signing and the one way to a [`Verified`] statement.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::envelope::{EnvelopeSignature, pae};
use super::{Envelope, Issued, Statement, StatementError, StatementKind};
use crate::canonical;
use crate::digest::Digest;
use crate::key::{KeyError, KeyId, PublicKey, SecretKey};
use crate::time::Timestamp;

/// How far the signer's clock may be ahead of ours: machines that keep time differ by less.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5);

/// What stands under a signature: an [`Issued`] statement, or a form that others defined.
pub(super) trait Payload: Serialize + DeserializeOwned {
    /// The kind, and with it the payload type that is signed.
    const KIND: StatementKind;

    /// The key that it says it is by.
    fn key_id(&self) -> &KeyId;
}

impl<T: Statement> Payload for Issued<T> {
    const KIND: StatementKind = T::KIND;

    fn key_id(&self) -> &KeyId {
        &self.key_id
    }
}

/// A payload of which everything but the dates was checked, and the key it is by.
pub(super) struct Opened<P> {
    pub(super) payload: P,
    pub(super) key: PublicKey,
}

/// A statement whose kind, signature, form and dates were checked.
///
/// ```compile_fail
/// // Only `Envelope::verify` makes one.
/// # use lodestar_core::statement::{Issued, Redaction, Verified};
/// fn forge(issued: Issued<Redaction>) -> Verified<Redaction> {
///     Verified { issued, key: todo!(), digest: todo!() }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified<T> {
    issued: Issued<T>,
    key: PublicKey,
    digest: Digest,
}

impl<T> Verified<T> {
    /// The whole payload.
    pub const fn issued(&self) -> &Issued<T> {
        &self.issued
    }

    /// What is stated.
    pub const fn subject(&self) -> &T {
        &self.issued.subject
    }

    /// The trusted key that signed.
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The digest of the envelope.
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

/// A statement of which everything but the dates was checked: for whoever has to ask something else
/// before those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undated<T>(Verified<T>);

impl<T> Undated<T> {
    /// The whole payload.
    pub const fn issued(&self) -> &Issued<T> {
        &self.0.issued
    }

    /// What is stated.
    pub const fn subject(&self) -> &T {
        &self.0.issued.subject
    }

    /// The trusted key that signed.
    pub const fn key(&self) -> &PublicKey {
        &self.0.key
    }

    /// Checks the dates: issued before `now`, give or take [`CLOCK_SKEW`], and not expired.
    pub fn at(self, now: Timestamp) -> Result<Verified<T>, StatementError> {
        self.0.issued.check_dates(now)?;
        Ok(self.0)
    }

    /// Checks the dates of a statement that is meant for this moment: issued no further from `now` than
    /// `window`, either way, and not expired.
    pub fn within(self, now: Timestamp, window: Duration) -> Result<Verified<T>, StatementError> {
        check_window(self.0.issued.issued_at, now, window)?;
        self.0.issued.check_expiry(now)?;
        Ok(self.0)
    }
}

/// Whether `issued_at` is no further from `now` than `window`, either way.
pub(super) fn check_window(
    issued_at: Timestamp,
    now: Timestamp,
    window: Duration,
) -> Result<(), StatementError> {
    if issued_at.since(now).is_some_and(|ahead| ahead > window) {
        return Err(StatementError::NotYetIssued(issued_at));
    }
    match now.since(issued_at) {
        Some(age) if age > window => Err(StatementError::TooOld(issued_at)),
        _ => Ok(()),
    }
}

impl Envelope {
    /// Signs a statement with the key it names.
    pub fn sign<T: Statement>(issued: &Issued<T>, key: &SecretKey) -> Result<Self, StatementError> {
        Self::sign_payload(issued, &[key])
    }

    /// Signs a statement with several keys, of which it names one.
    pub fn sign_all<T: Statement>(
        issued: &Issued<T>,
        keys: &[&SecretKey],
    ) -> Result<Self, StatementError> {
        Self::sign_payload(issued, keys)
    }

    /// Signs a statement that another key issues, for that key to be added with [`Envelope::cosign`]. Nobody
    /// verifies it before.
    pub fn sign_beforehand<T: Statement>(
        issued: &Issued<T>,
        keys: &[&SecretKey],
    ) -> Result<Self, StatementError> {
        let payload_type = T::KIND.payload_type();
        let bytes = canonical::to_vec(issued).map_err(StatementError::Unwritable)?;
        let message = pae(payload_type, &bytes);
        let signatures = keys.iter().map(|key| signature(key, &message)).collect();
        Self::new(payload_type.to_owned(), bytes, signatures)
    }

    pub(super) fn sign_payload<P: Payload>(
        payload: &P,
        keys: &[&SecretKey],
    ) -> Result<Self, StatementError> {
        let payload_type = P::KIND.payload_type();
        let bytes = canonical::to_vec(payload).map_err(StatementError::Unwritable)?;
        let message = pae(payload_type, &bytes);
        let signatures: Vec<_> = keys.iter().map(|key| signature(key, &message)).collect();
        if !signatures.iter().any(|s| s.key_id == *payload.key_id()) {
            return Err(StatementError::KeyMismatch(payload.key_id().clone()));
        }
        Self::new(payload_type.to_owned(), bytes, signatures)
    }

    /// Adds a signature by another key. Whoever signs says what they read: it has to be what stands there.
    pub fn cosign<T: Statement>(
        &self,
        read: &Issued<T>,
        key: &SecretKey,
    ) -> Result<Self, StatementError> {
        self.check_kind(T::KIND)?;
        if canonical::to_vec(read).as_ref() != Ok(&self.payload) {
            return Err(StatementError::OtherPayload);
        }
        let mut signatures = self.signatures.clone();
        signatures.push(signature(key, &pae(&self.payload_type, &self.payload)));
        Self::new(self.payload_type.clone(), self.payload.clone(), signatures)
    }

    /// Checks everything that can be checked without knowing what the statement is used for.
    ///
    /// In this order, each with an error of its own: the payload type is that of `T`; there is a
    /// signature that names one of `keys`; every such signature is right; the payload is canonical
    /// JSON; it is an [`Issued<T>`] with no field more or less; it names the key that signed; it was
    /// issued before `now`, give or take [`CLOCK_SKEW`]; it has not expired.
    pub fn verify<T: Statement>(
        &self,
        keys: &[PublicKey],
        now: Timestamp,
    ) -> Result<Verified<T>, StatementError> {
        self.verify_undated(keys)?.at(now)
    }

    /// The same without the dates.
    pub fn verify_undated<T: Statement>(
        &self,
        keys: &[PublicKey],
    ) -> Result<Undated<T>, StatementError> {
        let Opened { payload, key } = self.open::<Issued<T>>(keys)?;
        Ok(self.undated(payload, key))
    }

    /// The same, and every one of `keys` has to have signed.
    pub fn verify_all_undated<T: Statement>(
        &self,
        keys: &[PublicKey],
    ) -> Result<Undated<T>, StatementError> {
        let Opened { payload, key } = self.open::<Issued<T>>(keys)?;
        let signed = |key: &KeyId| self.signatures.iter().any(|s| s.key_id == *key);
        // Whatever is there by one of them was checked above; here it only has to be there.
        if let Some(missing) = keys.iter().map(PublicKey::key_id).find(|key| !signed(key)) {
            return Err(StatementError::MissingSignature(missing));
        }
        Ok(self.undated(payload, key))
    }

    /// What a statement says, unverified: to find out whose key to ask, to show it, or to sign it too.
    pub fn unverified<T: Statement>(&self) -> Result<Issued<T>, StatementError> {
        self.read_payload()
    }

    fn undated<T>(&self, issued: Issued<T>, key: PublicKey) -> Undated<T> {
        Undated(Verified {
            issued,
            key,
            digest: self.digest(),
        })
    }

    pub(super) fn open<P: Payload>(&self, keys: &[PublicKey]) -> Result<Opened<P>, StatementError> {
        self.check_kind(P::KIND)?;
        let signers = self.verify_signatures(keys)?;
        let payload: P = self.read_payload()?;
        let key = *signers
            .into_iter()
            .find(|key| key.key_id() == *payload.key_id())
            .ok_or_else(|| StatementError::KeyMismatch(payload.key_id().clone()))?;
        Ok(Opened { payload, key })
    }

    fn check_kind(&self, expected: StatementKind) -> Result<(), StatementError> {
        if self.payload_type == expected.payload_type() {
            return Ok(());
        }
        Err(StatementError::WrongKind {
            expected,
            found: self.payload_type.clone(),
        })
    }

    /// The trusted keys that signed. A wrong signature in a trusted key's name refuses the whole
    /// statement, even if another is right: somebody tampered with it.
    fn verify_signatures<'k>(
        &self,
        keys: &'k [PublicKey],
    ) -> Result<Vec<&'k PublicKey>, StatementError> {
        let message = pae(&self.payload_type, &self.payload);
        let mut signers = Vec::new();
        for signature in &self.signatures {
            let Some(key) = keys.iter().find(|key| key.key_id() == signature.key_id) else {
                continue;
            };
            key.verify(&message, &signature.bytes)
                .map_err(|_: KeyError| StatementError::BadSignature(signature.key_id.clone()))?;
            signers.push(key);
        }
        if signers.is_empty() {
            return Err(StatementError::Untrusted);
        }
        Ok(signers)
    }

    pub(super) fn read_payload<P: Payload>(&self) -> Result<P, StatementError> {
        self.check_kind(P::KIND)?;
        let wrong = |problem: String| StatementError::WrongPayload {
            kind: P::KIND,
            problem,
        };
        let value = canonical::parse(&self.payload).map_err(|_| StatementError::NotCanonical)?;
        if canonical::to_vec(&value).as_ref() != Ok(&self.payload) {
            return Err(StatementError::NotCanonical);
        }
        let payload = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        // What was read must say all that was signed, and nothing else: this also finds unknown
        // and left-out fields of types that would quietly pass over them.
        if canonical::to_vec(&payload).as_ref() != Ok(&self.payload) {
            return Err(wrong("it has a field too many or too few".to_owned()));
        }
        Ok(payload)
    }
}

fn signature(key: &SecretKey, message: &[u8]) -> EnvelopeSignature {
    EnvelopeSignature {
        key_id: key.public().key_id(),
        bytes: key.sign(message),
    }
}

impl<T> Issued<T> {
    /// Whether its time is now: issued before `now`, give or take [`CLOCK_SKEW`], and not expired.
    pub fn check_dates(&self, now: Timestamp) -> Result<(), StatementError> {
        let latest = now.checked_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX);
        if self.issued_at > latest {
            return Err(StatementError::NotYetIssued(self.issued_at));
        }
        self.check_expiry(now)
    }

    fn check_expiry(&self, now: Timestamp) -> Result<(), StatementError> {
        match self.expires_at {
            Some(end) if now >= end => Err(StatementError::Expired(end)),
            _ => Ok(()),
        }
    }
}
