//! Signing and the one way to a [`Verified`] statement.

use std::time::Duration;

use super::envelope::{EnvelopeSignature, pae};
use super::{Envelope, Issued, Statement, StatementError};
use crate::canonical;
use crate::digest::Digest;
use crate::key::{KeyError, PublicKey, SecretKey};
use crate::time::Timestamp;

/// How far the signer's clock may be ahead of ours: machines that keep time differ by less.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5);

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
}

impl Envelope {
    /// Signs a statement with the key it names.
    pub fn sign<T: Statement>(issued: &Issued<T>, key: &SecretKey) -> Result<Self, StatementError> {
        let key_id = key.public().key_id();
        if issued.key_id != key_id {
            return Err(StatementError::KeyMismatch(issued.key_id.clone()));
        }
        let payload = canonical::to_vec(issued).map_err(StatementError::Unwritable)?;
        let payload_type = T::KIND.payload_type();
        let bytes = key.sign(&pae(payload_type, &payload));
        Self::new(
            payload_type.to_owned(),
            payload,
            vec![EnvelopeSignature { key_id, bytes }],
        )
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
        if self.payload_type != T::KIND.payload_type() {
            return Err(StatementError::WrongKind {
                expected: T::KIND,
                found: self.payload_type.clone(),
            });
        }
        let signers = self.verify_signatures(keys)?;
        let issued: Issued<T> = self.read_payload()?;
        let key = *signers
            .into_iter()
            .find(|key| key.key_id() == issued.key_id)
            .ok_or_else(|| StatementError::KeyMismatch(issued.key_id.clone()))?;
        Ok(Undated(Verified {
            issued,
            key,
            digest: self.digest(),
        }))
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

    fn read_payload<T: Statement>(&self) -> Result<Issued<T>, StatementError> {
        let wrong = |problem: String| StatementError::WrongPayload {
            kind: T::KIND,
            problem,
        };
        let value = canonical::parse(&self.payload).map_err(|_| StatementError::NotCanonical)?;
        if canonical::to_vec(&value).as_ref() != Ok(&self.payload) {
            return Err(StatementError::NotCanonical);
        }
        let issued = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        // What was read must say all that was signed, and nothing else: this also finds unknown
        // and left-out fields of types that would quietly pass over them.
        if canonical::to_vec(&issued).as_ref() != Ok(&self.payload) {
            return Err(wrong("it has a field too many or too few".to_owned()));
        }
        Ok(issued)
    }
}

impl<T> Issued<T> {
    /// Whether its time is now: issued before `now`, give or take [`CLOCK_SKEW`], and not expired.
    pub fn check_dates(&self, now: Timestamp) -> Result<(), StatementError> {
        let latest = now.checked_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX);
        if self.issued_at > latest {
            return Err(StatementError::NotYetIssued(self.issued_at));
        }
        match self.expires_at {
            Some(end) if now >= end => Err(StatementError::Expired(end)),
            _ => Ok(()),
        }
    }
}
