//! What a device signs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lodestar_core::digest::Digest;
use lodestar_core::id::{ContenderId, RunId, RunnerId};
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::SessionId;
use lodestar_core::statement::{
    Attestation, ChallengeResponse, DaemonVersion, Envelope, GatewayStatus, Heartbeat, Issued,
    KeyRotation, Nonce, RunBundle, RunPredicate, Statement, StatementError,
};
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::RunTicket;
use lodestar_log::Clock;
use thiserror::Error;

use super::{DeviceIdentity, NextKey};
use crate::bundle::Packed;

/// How long the gateway's word is good for that a device may sign: a kill switch and a pause are in force within
/// ten seconds.
pub const GOOD_FOR: Duration = Duration::from_secs(10);

/// Why nothing was signed.
#[derive(Debug, Error)]
pub enum SignError {
    /// The system gives no randomness.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// The statement has no form.
    #[error("the statement cannot be signed: {0}")]
    Statement(#[from] StatementError),
    /// The gateway was asked too long ago.
    #[error(
        "the gateway said more than {} seconds ago that the device may sign; ask it again",
        GOOD_FOR.as_secs()
    )]
    Stale,
}

/// A device's key with the identity that it signs for. The gateway said just now that it may, and only
/// [`DeviceFolder::signer`](super::DeviceFolder::signer) and what it is made of give one:
///
/// ```
/// # use lodestar_gateway::{client::GatewayClient, device::{AskError, DeviceFolder, Signer}};
/// async fn asked(folder: &DeviceFolder, client: &GatewayClient) -> Result<Signer, AskError> {
///     folder.signer(client).await
/// }
/// ```
///
/// ```compile_fail
/// # use lodestar_gateway::device::{DeviceFolder, Signer};
/// fn unasked(folder: &DeviceFolder) -> Signer {
///     Signer::permitted(folder.identity().unwrap(), folder.key().unwrap(), std::time::Instant::now())
/// }
/// ```
#[derive(Debug)]
pub struct Signer {
    identity: DeviceIdentity,
    key: SecretKey,
    clock: Clock,
    asked_at: Instant,
}

/// What an attestation says beside what is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vouched {
    /// The agent in whose name the run was made.
    pub agent: ContenderId,
    /// The runner that made it.
    pub runner: RunnerId,
    /// SHA-256 of the canonical workflow file.
    pub workflow_hash: Option<Digest>,
    /// SHA-256 of the task and prompt files.
    pub lens_hash: Option<Digest>,
}

impl Signer {
    /// Signs for this device, for as long as an answer to what was asked then is good.
    pub(super) fn permitted(identity: DeviceIdentity, key: SecretKey, asked_at: Instant) -> Self {
        Self {
            identity,
            key,
            clock: Clock::system(),
            asked_at,
        }
    }

    /// The key, if the permission still holds. Everything that signs gets it here.
    fn key(&self) -> Result<&SecretKey, SignError> {
        match self.asked_at.elapsed() < GOOD_FOR {
            true => Ok(&self.key),
            false => Err(SignError::Stale),
        }
    }

    /// The same by another clock.
    #[must_use]
    pub fn by(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Whose it is.
    pub fn identity(&self) -> &DeviceIdentity {
        &self.identity
    }

    /// The key that verifies it.
    pub fn public(&self) -> PublicKey {
        self.key.public()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sign<T: Statement>(&self, subject: T) -> Result<Envelope, SignError> {
        let issued = Issued {
            expires_at: None,
            issued_at: self.now(),
            key_id: self.key.public().key_id(),
            nonce: nonce()?,
            subject,
        };
        Ok(Envelope::sign(&issued, self.key()?)?)
    }

    /// The answer to a challenge.
    pub fn answer(&self, challenge: Nonce) -> Result<Envelope, SignError> {
        self.sign(ChallengeResponse {
            account: self.identity.account,
            challenge,
            device: self.identity.device,
        })
    }

    /// That the device is there, with these runners.
    pub fn heartbeat(
        &self,
        status: GatewayStatus,
        version: DaemonVersion,
        runners: BTreeSet<RunnerId>,
    ) -> Result<Envelope, SignError> {
        self.sign(Heartbeat {
            account: self.identity.account,
            daemon_version: version,
            device: self.identity.device,
            gateway_status: status,
            runners,
        })
    }

    /// That these bytes are the log of a run.
    pub fn bundle(&self, run: RunId, packed: &Packed) -> Result<Envelope, SignError> {
        self.sign(RunBundle {
            account: self.identity.account,
            bundle: packed.bundle,
            bytes: packed.bytes,
            device: self.identity.device,
            root: packed.root,
            run,
            size: packed.size,
        })
    }

    /// The device's word on a run.
    pub fn attest(
        &self,
        session: &SessionId,
        ticket: &RunTicket,
        packed: &Packed,
        policy: Digest,
        vouched: Vouched,
    ) -> Result<Envelope, SignError> {
        let attestation = Attestation {
            session: session.clone(),
            root: packed.root,
            predicate: RunPredicate {
                account: self.identity.account,
                agent: vouched.agent,
                bundle: packed.bundle,
                device: self.identity.device,
                issued_at: self.now(),
                key_id: self.key.public().key_id(),
                lens_hash: vouched.lens_hash,
                nonce: nonce()?,
                policy,
                run: ticket.id,
                run_nonce: ticket.nonce,
                runner: vouched.runner,
                size: packed.size,
                workflow_hash: vouched.workflow_hash,
            },
        };
        Ok(Envelope::attest(&attestation, self.key()?)?)
    }

    /// That the device takes another key, for its owner to sign too. The log key stays: what it signed is
    /// continued with it.
    pub fn rotation(&self, owner: &PublicKey, next: &NextKey) -> Result<Envelope, SignError> {
        let issued = Issued {
            expires_at: None,
            issued_at: self.now(),
            key_id: owner.key_id(),
            nonce: nonce()?,
            subject: KeyRotation {
                account: self.identity.account,
                device: self.identity.device,
                new_key: next.public(),
                new_log_key: self.identity.log_key,
                old_key: self.key.public(),
            },
        };
        Ok(Envelope::sign_beforehand(&issued, &[self.key()?, &next.0])?)
    }
}

/// What makes a statement different from every other.
pub fn nonce() -> Result<Nonce, SignError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|problem| SignError::Random(problem.to_string()))?;
    Ok(Nonce::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::Whereabouts;
    use super::*;

    #[test]
    fn a_permission_that_is_too_old_signs_nothing() {
        let key = SecretKey::from_seed([1; 32]);
        let identity = DeviceIdentity {
            gateway: Whereabouts {
                url: "https://gateway.example".to_owned(),
                allow_loopback_http: false,
                ca_file: None,
            },
            account: "acc_0198c1d2-0000-7000-8000-000000000000".parse().unwrap(),
            device: "dev_0198c1d2-0000-7000-8000-000000000000".parse().unwrap(),
            name: lodestar_core::name::ActorId::new("laptop").unwrap(),
            key: key.public(),
            log_key: SecretKey::from_seed([2; 32]).public(),
        };
        let challenge = Nonce::from_bytes([3; 16]);
        let mut signer = Signer::permitted(identity, key, Instant::now());
        assert!(signer.answer(challenge).is_ok());
        signer.asked_at = Instant::now().checked_sub(GOOD_FOR).unwrap();
        assert!(matches!(signer.answer(challenge), Err(SignError::Stale)));
        let next = NextKey(SecretKey::from_seed([4; 32]));
        let owner = SecretKey::from_seed([5; 32]).public();
        assert!(matches!(
            signer.rotation(&owner, &next),
            Err(SignError::Stale)
        ));
    }
}
