//! A machine: a device with its keys and its token, and all that it says.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lodestar_core::device::DeviceLevel;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::{AccountId, DeviceId, RunId, RunnerId};
use lodestar_core::key::SecretKey;
use lodestar_core::statement::{
    Attestation, ChallengeResponse, DaemonVersion, Envelope, GatewayStatus, Heartbeat, Issued,
    Nonce, RunBundle, RunPredicate, Statement,
};
use lodestar_core::time::Timestamp;
use lodestar_gateway::bundle::Packed;
use lodestar_gateway::client::{GatewayClient, GatewayError};
use lodestar_gateway::wire;
use lodestar_kernel::opening::RunTicket;

use super::account::Made;
use super::{Hands, Prepared, Ran, SCRIPT, Trouble, While, Workplace, fresh_nonce};

/// The longest that a machine of a fleet is silent on purpose.
const BETWEEN: Duration = Duration::from_secs(600);

/// A device, in its own hand.
#[derive(Debug)]
pub struct Machine {
    /// Which.
    pub id: DeviceId,
    /// Whose.
    pub account: AccountId,
    /// What it signs with.
    pub key: Arc<SecretKey>,
    /// What its logs are signed with.
    pub log_key: Arc<SecretKey>,
    /// Its token.
    pub token: String,
    /// Asks with it.
    pub client: GatewayClient,
    /// What it was challenged with.
    pub challenge: Nonce,
    pub(super) hands: Hands,
    pub(super) workplace: Arc<Workplace>,
}

/// A run that was registered.
#[derive(Debug, Clone)]
pub struct Job {
    /// Which.
    pub run: RunId,
    /// What its log opens with.
    pub nonce: Nonce,
    /// What it was registered with.
    pub asked: wire::RegisterRun,
    /// The digest of its policy.
    pub policy: Digest,
}

impl Job {
    /// What a log of it opens with.
    pub fn ticket(&self) -> RunTicket {
        RunTicket {
            id: self.run,
            nonce: self.nonce,
        }
    }
}

/// What a client says of facts that are not its to say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claims(pub Option<bool>);

impl From<GatewayError> for Trouble {
    fn from(problem: GatewayError) -> Self {
        Self::new(problem)
    }
}

fn unsent(problem: Trouble) -> GatewayError {
    GatewayError::Unreached(problem.to_string())
}

impl Machine {
    /// Goes on where the gateway listens by now.
    pub fn reach(&mut self, address: SocketAddr) -> Prepared<()> {
        self.client = super::client(address, Some(&self.token))?;
        Ok(())
    }

    /// The time that the gateway has.
    pub fn now(&self) -> Timestamp {
        self.hands.clock().now()
    }

    /// Something that it says now.
    pub fn says<T: Statement>(&self, subject: T) -> Prepared<Envelope> {
        self.says_at(subject, self.now(), fresh_nonce()?)
    }

    /// Something that it says at some time, with some nonce.
    pub fn says_at<T: Statement>(
        &self,
        subject: T,
        at: Timestamp,
        nonce: Nonce,
    ) -> Prepared<Envelope> {
        signed(subject, &self.key, at, nonce)
    }

    /// The answer to its challenge.
    pub fn response(&self) -> ChallengeResponse {
        ChallengeResponse {
            account: self.account,
            challenge: self.challenge,
            device: self.id,
        }
    }

    /// Answers its challenge.
    pub async fn answer(&self) -> Result<wire::Standing, GatewayError> {
        let envelope = self.says(self.response()).map_err(unsent)?;
        self.client.answer_challenge(self.id, &envelope).await
    }

    /// That it is there, with these runners.
    pub fn heartbeat(&self, runners: &[RunnerId]) -> Prepared<Heartbeat> {
        Ok(Heartbeat {
            account: self.account,
            daemon_version: DaemonVersion::new("lodestar/probe").while_("a version")?,
            device: self.id,
            gateway_status: GatewayStatus::connected(),
            runners: runners.iter().copied().collect::<BTreeSet<_>>(),
        })
    }

    /// Beats once.
    pub async fn beat(&self, runners: &[RunnerId]) -> Result<wire::Beaten, GatewayError> {
        let beat = self.heartbeat(runners).map_err(unsent)?;
        let envelope = self.says(beat).map_err(unsent)?;
        self.client.heartbeat(self.id, &envelope).await
    }

    /// Beats for this long, by the gateway's clock, which it sets forward.
    pub async fn beat_for(&self, time: Duration, runners: &[RunnerId]) -> Prepared<()> {
        self.beat(runners).await.while_("beating")?;
        for step in steps(time) {
            self.hands.forward(step);
            self.beat(runners).await.while_("beating")?;
        }
        Ok(())
    }

    /// Makes its first run, which is all that a steady machine lacks to be trusted.
    pub async fn earn(&self, made: Made) -> Prepared<()> {
        let job = self.register(made).await.while_("registering a run")?;
        let ran = self.work(&job).await?;
        let attested = self.hand_over(&job, &ran).await;
        attested.while_("attesting a first run")?;
        let beaten = self.beat(&[made.runner]).await;
        match beaten.while_("beating")?.level {
            DeviceLevel::Trusted => Ok(()),
            level => Err(Trouble::new(format!(
                "after its first run a device is {level}"
            ))),
        }
    }

    /// What a run is registered with, where nothing is left out.
    pub fn asking(made: Made) -> wire::RegisterRun {
        wire::RegisterRun {
            agent: made.agent,
            runner: made.runner,
            terms: made.terms,
            workflow_hash: Some(sha256(b"a workflow")),
            lens_hash: Some(sha256(b"a task and its prompts")),
        }
    }

    /// Registers a run.
    pub async fn register(&self, made: Made) -> Result<Job, GatewayError> {
        self.register_as(Self::asking(made)).await
    }

    /// Registers a run that is asked for like this.
    pub async fn register_as(&self, asked: wire::RegisterRun) -> Result<Job, GatewayError> {
        let registered = self.client.register_run(&asked).await?;
        let shown = self.client.run(registered.run).await?;
        Ok(Job {
            run: registered.run,
            nonce: registered.nonce,
            asked,
            policy: shown.policy,
        })
    }

    /// Does a run's work, with the guard.
    pub async fn work(&self, job: &Job) -> Prepared<Ran> {
        let ticket = Some(job.ticket());
        self.workplace
            .run(ticket, &self.log_key, &SCRIPT.into())
            .await
    }

    /// The statement that tells of a run's bundle.
    pub fn bundled(&self, job: &Job, packed: &Packed) -> RunBundle {
        RunBundle {
            account: self.account,
            bundle: packed.bundle,
            bytes: packed.bytes,
            device: self.id,
            root: packed.root,
            run: job.run,
            size: packed.size,
        }
    }

    /// Sends a run's bundle.
    pub async fn send(
        &self,
        job: &Job,
        bytes: &[u8],
        packed: &Packed,
    ) -> Result<wire::BundleReceived, GatewayError> {
        let statement = self.says(self.bundled(job, packed)).map_err(unsent)?;
        self.client.bundle(job.run, &statement, bytes).await
    }

    /// Its word on a run, to be signed.
    pub fn word(&self, job: &Job, ran: &Ran, packed: &Packed) -> Prepared<Attestation> {
        Ok(Attestation {
            session: ran.dir.session().clone(),
            root: packed.root,
            predicate: RunPredicate {
                account: self.account,
                agent: job.asked.agent,
                bundle: packed.bundle,
                device: self.id,
                issued_at: self.now(),
                key_id: self.key.public().key_id(),
                lens_hash: job.asked.lens_hash,
                nonce: fresh_nonce()?,
                policy: job.policy,
                run: job.run,
                run_nonce: job.nonce,
                runner: job.asked.runner,
                size: packed.size,
                workflow_hash: job.asked.workflow_hash,
            },
        })
    }

    /// Gives its word.
    pub async fn vouch(
        &self,
        run: RunId,
        word: &Attestation,
        claims: Claims,
    ) -> Result<wire::Attested, GatewayError> {
        let envelope = Envelope::attest(word, &self.key);
        let envelope = envelope.map_err(|problem| unsent(Trouble::new(problem)))?;
        self.vouch_by(run, envelope, claims).await
    }

    /// Hands in a word that is signed.
    pub async fn vouch_by(
        &self,
        run: RunId,
        envelope: Envelope,
        Claims(claim): Claims,
    ) -> Result<wire::Attested, GatewayError> {
        let asked = wire::Attest {
            envelope,
            device_trusted: claim,
            gateway_verified: claim,
            policy_passed: claim,
        };
        self.client.attest(run, &asked).await
    }

    /// Sends everything of a run: a checkpoint, the bundle, and its word.
    pub async fn hand_over(&self, job: &Job, ran: &Ran) -> Result<wire::Attested, GatewayError> {
        let (word, _) = self.deliver(job, ran).await?;
        self.vouch(job.run, &word, Claims::default()).await
    }

    /// Sends everything of a run but the word itself, which it gives back.
    pub async fn deliver(
        &self,
        job: &Job,
        ran: &Ran,
    ) -> Result<(Attestation, Packed), GatewayError> {
        let (bytes, packed) = ran.packed().map_err(unsent)?;
        let note = ran.note().map_err(unsent)?;
        self.client.checkpoint(job.run, &note).await?;
        self.send(job, &bytes, &packed).await?;
        let word = self.word(job, ran, &packed).map_err(unsent)?;
        Ok((word, packed))
    }
}

/// The time that passes between heartbeats, where they come for this long.
pub(super) fn steps(time: Duration) -> impl Iterator<Item = Duration> {
    let mut left = time;
    std::iter::from_fn(move || {
        let step = left.min(BETWEEN);
        left -= step;
        (!step.is_zero()).then_some(step)
    })
}

/// A statement that a key signs.
pub fn signed<T: Statement>(
    subject: T,
    key: &SecretKey,
    at: Timestamp,
    nonce: Nonce,
) -> Prepared<Envelope> {
    let issued = Issued {
        expires_at: None,
        issued_at: at,
        key_id: key.public().key_id(),
        nonce,
        subject,
    };
    Envelope::sign(&issued, key).while_("signing a statement")
}
