//! A firewall with a log in memory, a clock that tests set, and people who sign.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use lodestar_core::chain::transition::AxisMove;
use lodestar_core::chain::{
    Axes, BeliefRecord, ContentBlock, Observation, ObservationTrust, Predicate, Retrieval, Truth,
};
use lodestar_core::defence::Defence;
use lodestar_core::digest::{leaf_hash, sha256};
use lodestar_core::id::{BeliefId, InvocationId, ObservationId};
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ProjectId, ServerIdentity, SessionId, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::statement::{Assertion, Envelope, Issued, Nonce, Promotion, Statement};
use lodestar_core::time::Timestamp;
use lodestar_firewall::authority::Seats;
use lodestar_firewall::event::{
    FirewallEvent, LogName, LogPosition, NotRecorded, Recorder, Surroundings,
};
use lodestar_firewall::extract::{
    ContentDraft, Extractor, Extractors, Statement as Said, Subject, ToolCall,
};
use lodestar_firewall::row::StoredBelief;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{MemoryStore, Store};
use lodestar_firewall::{
    Context, ContextPolicy, Derivation, Firewall, FirewallError, Intake, Measurement, Outcome,
    claim_digest,
};
use serde_json::{Map, Value, json};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// The clock and the chance of a test: set, and repeatable.
#[derive(Clone)]
pub(crate) struct Weather {
    micros: Arc<AtomicI64>,
    counter: Arc<AtomicU64>,
}

impl Weather {
    fn new() -> Self {
        Self {
            micros: Arc::new(AtomicI64::new(1_790_000_000_000_000)),
            counter: Arc::default(),
        }
    }

    pub(crate) fn pass(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap();
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn set_back(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap();
        self.micros.fetch_sub(micros, Ordering::Relaxed);
    }

    pub(crate) fn now_is(&self) -> Timestamp {
        Timestamp::from_unix_micros(self.micros.load(Ordering::Relaxed)).unwrap()
    }

    fn number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }
}

impl Surroundings for Weather {
    fn now(&mut self) -> Timestamp {
        self.now_is()
    }

    fn random(&mut self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.number().to_be_bytes());
        bytes
    }
}

/// A log in memory.
pub(crate) struct Tape {
    pub(crate) log: LogName,
    pub(crate) events: Vec<(FirewallEvent, LogPosition)>,
    pub(crate) broken: bool,
}

impl Tape {
    pub(crate) fn new(session: &str) -> Self {
        Self {
            log: LogName {
                project: project(),
                session: SessionId::new(session).unwrap(),
            },
            events: Vec::new(),
            broken: false,
        }
    }
}

impl Recorder for Tape {
    fn record(&mut self, event: &FirewallEvent) -> Result<LogPosition, NotRecorded> {
        if self.broken {
            return Err(NotRecorded("the disk is full".into()));
        }
        // Through text and back: what the log keeps is all that there is.
        let text = serde_json::to_string(event).unwrap();
        let read = FirewallEvent::read(event.event_type(), serde_json::from_str(&text).unwrap());
        let at = LogPosition {
            log: self.log.clone(),
            seq: self.events.len() as u64,
            leaf: leaf_hash(text.as_bytes()),
        };
        self.events.push((read.unwrap().unwrap(), at.clone()));
        Ok(at)
    }
}

pub(crate) fn project() -> ProjectId {
    ProjectId::new("web").unwrap()
}

pub(crate) fn scope() -> Scope {
    "project:web".parse().unwrap()
}

/// Reads lines such as `status = done` as claims about the thing read.
pub(crate) struct Says;

impl Extractor for Says {
    fn name(&self) -> &'static str {
        "says"
    }

    fn applies(&self, _: &ToolCall<'_>, _: &Observation) -> bool {
        true
    }

    fn extract(&self, call: &ToolCall<'_>, observation: &Observation) -> Vec<ContentDraft> {
        let lines = observation
            .content
            .iter()
            .filter_map(ContentBlock::text)
            .flat_map(str::lines);
        let facts = lines.filter_map(|line| line.split_once(" = "));
        facts
            .map(|(relation, object)| {
                let subject = Subject::thing_read(call);
                let statement = Said::new().subject(&subject).say(" says ").quote(object);
                ContentDraft::new(subject, relation, json!(object), statement)
            })
            .collect()
    }
}

pub(crate) struct World {
    pub(crate) firewall: Firewall,
    pub(crate) seats: Seats,
    pub(crate) tape: Tape,
    pub(crate) weather: Weather,
    pub(crate) operator: Arc<SecretKey>,
    pub(crate) installation: Arc<SecretKey>,
}

pub(crate) fn key(seed: u8) -> Arc<SecretKey> {
    Arc::new(SecretKey::from_seed([seed; 32]))
}

impl World {
    pub(crate) fn new() -> Self {
        Self::over(Box::new(MemoryStore::new()), "s1", Weather::new())
    }

    /// One that lacks these.
    pub(crate) fn without(defences: &[Defence]) -> Self {
        let mut world = Self::new();
        let keys = world.keys().without(defences);
        let extractors = Extractors::built_in().with(Says).without(defences);
        let weather = Box::new(world.weather.clone());
        let store = Box::new(MemoryStore::new());
        (world.firewall, world.seats) = Firewall::open(store, keys, extractors, weather);
        world
    }

    /// The keys of most worlds.
    pub(crate) fn keys(&self) -> Keyring {
        Keyring::new(self.installation.clone()).with_operators([self.operator.public()])
    }

    pub(crate) fn over(store: Box<dyn Store>, session: &str, weather: Weather) -> Self {
        Self::with_keys(store, session, weather, key(1), Vec::new())
    }

    pub(crate) fn with_keys(
        store: Box<dyn Store>,
        session: &str,
        weather: Weather,
        installation: Arc<SecretKey>,
        trusted: Vec<Arc<SecretKey>>,
    ) -> Self {
        let operator = key(9);
        let keys = Keyring::new(installation.clone())
            .trusting(trusted.iter().map(|key| key.public()))
            .with_operators([operator.public()]);
        let extractors = Extractors::built_in().with(Says);
        let (firewall, seats) = Firewall::open(store, keys, extractors, Box::new(weather.clone()));
        Self {
            firewall,
            seats,
            tape: Tape::new(session),
            weather,
            operator,
            installation,
        }
    }

    pub(crate) fn observation(&self, tool: &str, text: &str) -> Observation {
        let number = self.weather.number();
        let mut random = [0; 10];
        random[2..].copy_from_slice(&number.to_be_bytes());
        let now = self.weather.now_is();
        let millis = u64::try_from(now.unix_micros() / 1000).unwrap();
        Observation {
            id: ObservationId::from_parts(millis, random),
            tool: ToolName::new(tool).unwrap(),
            invocation_id: InvocationId::from_parts(millis, random),
            captured_at: now,
            session: self.tape.log.session.clone(),
            project: project(),
            actor: "agent".parse().unwrap(),
            trust: ObservationTrust::Raw,
            sensitivity: Sensitivity::Internal,
            rest: Default::default(),
            content: vec![ContentBlock::Text {
                text: text.to_owned(),
                rest: Map::new(),
            }],
        }
    }

    /// A tool reads a file.
    pub(crate) fn read(&mut self, path: &str, text: &str) -> Outcome {
        self.call("files", "read_file", &json!({"path": path}), text)
    }

    pub(crate) fn call(
        &mut self,
        server: &str,
        tool: &str,
        arguments: &Value,
        text: &str,
    ) -> Outcome {
        let observation = self.observation(tool, text);
        self.take_in(server, &observation, arguments).unwrap()
    }

    pub(crate) fn take_in(
        &mut self,
        server: &str,
        observation: &Observation,
        arguments: &Value,
    ) -> Result<Outcome, FirewallError> {
        let server = ServerIdentity::new(server).unwrap();
        let intake = Intake {
            call: ToolCall {
                invocation: observation.invocation_id,
                server: &server,
                tool: &observation.tool,
                arguments,
                definition: sha256(b"definition"),
                reviewed: true,
                is_error: false,
            },
            observation,
            scope: &scope(),
            recorded: None,
        };
        self.firewall.observe(intake, &mut self.tape)
    }

    /// Lodestar itself measures a property of a file.
    pub(crate) fn measure(
        &mut self,
        tool: &str,
        path: &str,
        relation: &str,
        object: Value,
    ) -> BeliefRecord {
        let observation = self.observation(tool, "");
        let measurement = Measurement {
            observation: &observation,
            scope: &scope(),
            subject: &format!("file:{path}"),
            relation,
            object,
        };
        let seat = &self.seats.measuring;
        let outcome = self.firewall.measure(seat, measurement, &mut self.tape);
        outcome.unwrap().beliefs()[0].clone()
    }

    pub(crate) fn derive(
        &mut self,
        sources: &[BeliefId],
        subject: &str,
        relation: &str,
        object: Value,
    ) -> Result<BeliefRecord, FirewallError> {
        let observation = self.observation("agent.note", "a conclusion");
        let derivation = Derivation {
            observation: &observation,
            sources,
            scope: &scope(),
            subject,
            relation,
            object,
        };
        let outcome = self.firewall.derive(derivation, &mut self.tape)?;
        Ok(outcome.beliefs()[0].clone())
    }

    pub(crate) fn belief(&mut self, id: BeliefId) -> StoredBelief {
        self.firewall.look_up(id).unwrap().unwrap().0
    }

    pub(crate) fn axes(&mut self, id: BeliefId) -> Axes {
        self.belief(id).record.axes
    }

    pub(crate) fn truth(&mut self, id: BeliefId) -> Truth {
        self.axes(id).truth
    }

    pub(crate) fn context(&mut self, text: Option<&str>) -> Context {
        let policy = ContextPolicy::default();
        self.firewall
            .context(&policy, &scope(), text, 1000)
            .unwrap()
    }

    pub(crate) fn sign<T: Statement>(&self, subject: T, key: &SecretKey) -> Envelope {
        let number = self.weather.number();
        let mut nonce = [0; 16];
        nonce[8..].copy_from_slice(&number.to_be_bytes());
        let issued = Issued {
            expires_at: None,
            issued_at: self.weather.now_is(),
            key_id: key.public().key_id(),
            nonce: Nonce::from_bytes(nonce),
            subject,
        };
        Envelope::sign(&issued, key).unwrap()
    }

    /// The order that a person would sign to promote a belief as it stands.
    pub(crate) fn order(&mut self, id: BeliefId, moves: Vec<AxisMove>) -> Promotion {
        let belief = self.belief(id);
        Promotion {
            belief: id,
            claim: claim_digest(&belief.claim),
            moves,
            project: project().to_string(),
            reason: "checked by hand".to_owned(),
            revision: belief.revision,
        }
    }

    pub(crate) fn promotion(&mut self, id: BeliefId) -> Promotion {
        self.order(
            id,
            vec![
                AxisMove::new(Truth::Unverified, Truth::Supported).unwrap(),
                AxisMove::new(Retrieval::Restricted, Retrieval::Normal).unwrap(),
            ],
        )
    }

    pub(crate) fn follow(&mut self, envelope: &Envelope) -> Result<(), FirewallError> {
        let done = self
            .firewall
            .follow_order(&project(), envelope, &mut self.tape);
        done.map(drop)
    }

    pub(crate) fn promote(&mut self, id: BeliefId) -> Result<(), FirewallError> {
        let order = self.promotion(id);
        let envelope = self.sign(order, &self.operator);
        self.follow(&envelope)
    }

    pub(crate) fn assertion(&self, subject: &str, relation: &str, object: Value) -> Assertion {
        Assertion {
            predicate: Predicate {
                subject: subject.to_owned(),
                relation: relation.to_owned(),
                object,
            },
            project: project().to_string(),
            scope: scope(),
            statement: "I looked".to_owned(),
        }
    }

    pub(crate) fn assert(&mut self, assertion: Assertion) -> BeliefRecord {
        let envelope = self.sign(assertion, &self.operator);
        let observation = self.observation("operator/assert", "");
        let outcome = self
            .firewall
            .assert(&project(), &envelope, &observation, &mut self.tape);
        outcome.unwrap().beliefs()[0].clone()
    }
}

/// The belief of an outcome with this relation.
pub(crate) fn about(outcome: &Outcome, relation: &str) -> BeliefId {
    let mut claims = outcome.adopted.claims.iter();
    let place = claims.position(|claim| claim.predicate.relation == relation);
    outcome.beliefs()[place.expect("there is one")].id
}
