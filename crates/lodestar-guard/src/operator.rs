//! What a person does from a command line, as a session of its own.

use std::sync::Arc;

use lodestar_core::chain::Observation;
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_firewall::Firewall;
use lodestar_firewall::authority::Seats;
use lodestar_firewall::extract::Extractors;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::Store;
use lodestar_log::{LogWriter, ProjectLog, Trust, WriterOptions};
use lodestar_replay::calibration::Computed;
use lodestar_replay::{Followed, catch_up};
use serde_json::json;

use crate::error::GuardError;
use crate::recorder::SessionRecorder;
use crate::surroundings::SystemSurroundings;

/// What a session of a person needs.
#[allow(missing_debug_implementations, reason = "a store is whatever it is")]
pub struct Operator {
    /// The project's log.
    pub log: ProjectLog,
    /// The installation's key, which signs the session.
    pub key: Arc<SecretKey>,
    /// Whose logs count.
    pub trust: Trust,
    /// Whose rows and orders count.
    pub keyring: Keyring,
    /// The belief store.
    pub store: Box<dyn Store>,
    /// Who it is.
    pub actor: ActorId,
    /// What for, in a few words: stands in the opening event.
    pub purpose: &'static str,
}

/// A small session, for what a person does.
#[derive(Debug)]
pub struct OperatorSession {
    firewall: Firewall,
    seats: Seats,
    recorder: SessionRecorder,
    followed: Followed,
}

impl OperatorSession {
    /// Lets the store catch up with the project's logs, opens a session, and lets beliefs grow old
    /// whose time has come.
    pub fn open(operator: Operator) -> Result<Self, GuardError> {
        Self::open_as(operator, "op")
    }

    /// As [`open`](Self::open), with a name that begins so.
    pub fn open_as(operator: Operator, prefix: &str) -> Result<Self, GuardError> {
        let Operator {
            log,
            key,
            trust,
            keyring,
            mut store,
            actor,
            purpose,
        } = operator;
        let followed = catch_up(store.as_mut(), &keyring, &log, &trust)?;
        let mut surroundings = SystemSurroundings::default();
        let session = surroundings.new_session(prefix);
        let mut opening = json!({
            "purpose": purpose,
            "versions": {"lodestar": env!("CARGO_PKG_VERSION")},
        });
        let missing: Vec<_> = keyring.rigour().missing().collect();
        if !missing.is_empty() {
            opening["defences_off"] = missing.iter().map(|one| one.as_str()).collect();
        }
        let options = WriterOptions::new(key);
        let writer = LogWriter::create(&log, &session, &actor, &opening, &options)?;
        let mut recorder = SessionRecorder::new(writer, actor);
        let (mut firewall, seats) = Firewall::open(
            store,
            keyring,
            Extractors::built_in().without(&missing),
            Box::new(surroundings),
        );
        firewall.age(log.project(), &mut recorder)?;
        Ok(Self {
            firewall,
            seats,
            recorder,
            followed,
        })
    }

    /// The firewall, the seats, and what records.
    pub fn parts(&mut self) -> (&mut Firewall, &Seats, &mut SessionRecorder) {
        (&mut self.firewall, &self.seats, &mut self.recorder)
    }

    /// Records an observation, and says where.
    pub fn observe(&mut self, observation: &Observation) -> Result<u64, GuardError> {
        let receipt = self.recorder.writer().append(
            EventType::OBSERVATION_RECORDED,
            self.recorder.actor(),
            &[],
            observation,
        )?;
        Ok(receipt.seq())
    }

    /// Records a calibration that was computed, and says where.
    pub fn calibrated(&mut self, computed: &Computed) -> Result<u64, GuardError> {
        let kind = EventType::CALIBRATION_COMPUTED;
        let actor = self.recorder.actor();
        let receipt = self.recorder.writer().append(kind, actor, &[], computed)?;
        Ok(receipt.seq())
    }

    /// Which session it is.
    pub fn id(&self) -> &SessionId {
        self.recorder.writer().dir().session()
    }

    /// What the store had to catch up with when the session was opened.
    pub fn followed(&self) -> &Followed {
        &self.followed
    }

    /// Ends the session; when this returns, all of it is on disk.
    pub fn close(mut self, reason: &str) -> Result<(), GuardError> {
        let writer = self.recorder.writer();
        let checkpoint = writer.close(self.recorder.actor(), &json!({"reason": reason}))?;
        let log = self.recorder.log().clone();
        self.firewall.session_ended(&log, checkpoint.size)?;
        Ok(())
    }
}
