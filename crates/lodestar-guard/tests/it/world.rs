//! A project on disk with a store beside it, and sessions that read, measure and promote.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::chain::transition::AxisMove;
use lodestar_core::chain::{ContentBlock, Observation, ObservationTrust, Retrieval, Truth};
use lodestar_core::digest::sha256;
use lodestar_core::id::{BeliefId, InvocationId, ObservationId};
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, ProjectId, ServerIdentity, ToolName};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::statement::{Envelope, Issued, Nonce, Promotion};
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::Surroundings as _;
use lodestar_firewall::extract::ToolCall;
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{SqliteStore, Store};
use lodestar_firewall::{Intake, Measurement, Outcome, claim_digest};
use lodestar_guard::{Operator, OperatorSession, SystemSurroundings};
use lodestar_log::{LogRoot, ProjectLog, Trust};
use lodestar_replay::{Followed, StoreReport, examine, rebuild};
use serde_json::{Map, Value, json};

pub(crate) struct World {
    pub(crate) folder: PathBuf,
    pub(crate) log: ProjectLog,
    _scratch: Option<tempfile::TempDir>,
}

pub(crate) fn key() -> Arc<SecretKey> {
    Arc::new(SecretKey::from_seed([1; 32]))
}

fn person() -> SecretKey {
    SecretKey::from_seed([9; 32])
}

impl World {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mut world = Self::at(scratch.path());
        world._scratch = Some(scratch);
        world
    }

    pub(crate) fn at(folder: &Path) -> Self {
        let project = ProjectId::new("web").unwrap();
        std::fs::create_dir_all(folder.join(".lodestar")).unwrap();
        Self {
            folder: folder.to_owned(),
            log: LogRoot::in_folder(folder).project(&project),
            _scratch: None,
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join(".lodestar/state.db")
    }

    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.database()).unwrap()
    }

    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::new(key()).with_operators([person().public()])
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::only(key().public())
    }

    pub(crate) fn open(&self) -> OperatorSession {
        OperatorSession::open(Operator {
            log: self.log.clone(),
            key: key(),
            trust: self.trust(),
            keyring: self.keyring(),
            store: Box::new(self.store()),
            actor: ActorId::new("tester").unwrap(),
            purpose: "a test",
        })
        .unwrap()
    }

    pub(crate) fn rebuild_into(&self, store: &mut dyn Store) -> Followed {
        rebuild(
            store,
            &self.keyring(),
            &self.log,
            &self.trust(),
            &mut |_| (),
        )
        .unwrap()
    }

    pub(crate) fn examine(&self) -> StoreReport {
        let store = &mut self.store();
        examine(
            store,
            &self.keyring(),
            &self.log,
            &self.trust(),
            &mut |_| (),
        )
        .unwrap()
    }
}

pub(crate) fn rows(store: &mut dyn Store) -> Vec<StoredRow> {
    store.scan(None, 1_000_000).unwrap()
}

pub(crate) fn scope() -> lodestar_core::scope::Scope {
    "project:web".parse().unwrap()
}

fn observation(tool: &str, text: &str) -> Observation {
    let mut surroundings = SystemSurroundings::default();
    let now: Timestamp = surroundings.now();
    let millis = u64::try_from(now.unix_micros() / 1000).unwrap();
    Observation {
        id: ObservationId::from_parts(millis, surroundings.random()),
        tool: ToolName::new(tool).unwrap(),
        invocation_id: InvocationId::from_parts(millis, surroundings.random()),
        captured_at: now,
        session: "s".parse().unwrap(),
        project: "web".parse().unwrap(),
        actor: "tester".parse().unwrap(),
        trust: ObservationTrust::Raw,
        sensitivity: Sensitivity::Internal,
        rest: Default::default(),
        content: vec![ContentBlock::Text {
            text: text.to_owned(),
            rest: Map::new(),
        }],
    }
}

pub(crate) fn read(session: &mut OperatorSession, path: &str, text: &str) -> Outcome {
    let observation = observation("read_file", text);
    session.observe(&observation).unwrap();
    let server = ServerIdentity::new("files").unwrap();
    let arguments = json!({"path": path});
    let intake = Intake {
        call: ToolCall {
            invocation: observation.invocation_id,
            server: &server,
            tool: &observation.tool,
            arguments: &arguments,
            definition: sha256(b"definition"),
            reviewed: true,
            is_error: false,
        },
        observation: &observation,
        scope: &scope(),
        recorded: None,
    };
    let (firewall, _, recorder) = session.parts();
    firewall.observe(intake, recorder).unwrap()
}

pub(crate) fn measure(
    session: &mut OperatorSession,
    path: &str,
    relation: &str,
    object: Value,
) -> BeliefId {
    let observation = observation("fs", "");
    session.observe(&observation).unwrap();
    let measurement = Measurement {
        observation: &observation,
        scope: &scope(),
        subject: &format!("file:{path}"),
        relation,
        object,
    };
    let (firewall, seats, recorder) = session.parts();
    let outcome = firewall.measure(&seats.measuring, measurement, recorder);
    outcome.unwrap().beliefs()[0].id
}

pub(crate) fn promote(session: &mut OperatorSession, id: BeliefId) {
    let (firewall, _, recorder) = session.parts();
    let (belief, _) = firewall.look_up(id).unwrap().unwrap();
    let mut surroundings = SystemSurroundings::default();
    let mut nonce = [0; 16];
    nonce[..10].copy_from_slice(&surroundings.random());
    let issued = Issued {
        expires_at: None,
        issued_at: surroundings.now(),
        key_id: person().public().key_id(),
        nonce: Nonce::from_bytes(nonce),
        subject: Promotion {
            belief: id,
            claim: claim_digest(&belief.claim),
            moves: vec![
                AxisMove::new(Truth::Unverified, Truth::Supported).unwrap(),
                AxisMove::new(Retrieval::Restricted, Retrieval::Normal).unwrap(),
            ],
            project: "web".to_owned(),
            reason: "looked at it".to_owned(),
            revision: belief.revision,
        },
    };
    let envelope = Envelope::sign(&issued, &person()).unwrap();
    firewall
        .follow_order(&"web".parse().unwrap(), &envelope, recorder)
        .unwrap();
}
