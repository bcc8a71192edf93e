//! What is believed: a firewall over a real store and a real log, in process, for scenarios about one rule.

mod operator;
mod surroundings;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lodestar_core::chain::{
    Axes, Choice, ContentBlock, Decision, DecisionOrigin, NonEmpty, Observation, ObservationTrust,
};
use lodestar_core::digest::sha256;
use lodestar_core::event::EventType;
use lodestar_core::id::{BeliefId, DecisionId, InvocationId, ObservationId};
use lodestar_core::key::PublicKey;
use lodestar_core::name::{ActorId, ProjectId, ServerIdentity, SessionId, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_firewall::authority::Seats;
use lodestar_firewall::event::Surroundings;
use lodestar_firewall::extract::{Extractors, ToolCall};
use lodestar_firewall::import::{ExportFormat, read_export};
use lodestar_firewall::row::StoredBelief;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{SqliteStore, Store};
use lodestar_firewall::{
    Context, ContextPolicy, Derivation, Firewall, ImportBatch, Intake, Measurement,
    Outcome as TakenIn,
};
use lodestar_guard::{SessionRecorder, SystemSurroundings};
use lodestar_log::verify::{VerifyOptions, verify_project};
use lodestar_log::{LogRoot, LogWriter, ProjectLog, Trust, WriterOptions};
use serde_json::{Map, Value, json};

use self::surroundings::{Lines, Shifted};
use super::people::Person;
use super::project::{ACTOR, PROJECT};
use super::record::Record;
use crate::probe::{Broken, Outcome, settle};
use crate::stage::Stage;

/// Whose file reader most scenarios use.
pub const FILES: &str = "files";

/// One machine's firewall, with its log, its keys, and an operator whose word counts.
#[derive(Debug)]
pub struct Mind {
    /// The firewall.
    pub firewall: Firewall,
    /// Those who may move beliefs.
    pub seats: Seats,
    /// Writes to the log.
    pub recorder: SessionRecorder,
    log: ProjectLog,
    installation: Person,
    operator: Person,
    clock: Shifted,
    scope: Scope,
}

/// What somebody reads: whose tool, of which file, and what it says.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// Whose tool read it.
    pub server: &'a str,
    /// The file.
    pub path: &'a str,
    /// What it says. Lines such as `status = done` are claims about the file.
    pub says: &'a str,
}

impl Mind {
    /// One over a SQLite store of its own, with what this run lacks taken out.
    pub fn new(stage: &Stage) -> Outcome<Self> {
        let store = SqliteStore::open(&stage.folder().join("state.db"))?;
        let installation = Person::new("installation")?;
        Self::over(stage, "machine", Box::new(store), installation, &[])
    }

    /// One on a machine of this name, over this store, which trusts these other installations.
    pub fn over(
        stage: &Stage,
        machine: &str,
        store: Box<dyn Store>,
        installation: Person,
        trusted: &[PublicKey],
    ) -> Outcome<Self> {
        let operator = Person::new("operator")?;
        let keys = Keyring::new(Arc::clone(&installation.key))
            .trusting(trusted.iter().copied())
            .with_operators([operator.key.public()])
            .without(stage.without());
        let extractors = Extractors::built_in().with(Lines).without(stage.without());
        let clock = Shifted::default();
        let project = ProjectId::new(PROJECT)?;
        let log = LogRoot::in_folder(stage.folder().join(machine)).project(&project);
        let session = SystemSurroundings::default().new_session("mind");
        let mut opening = json!({"purpose": "a probe"});
        if !stage.without().is_empty() {
            let off = stage.without().iter().map(|defence| defence.as_str());
            opening["defences_off"] = off.collect();
        }
        let options = WriterOptions::new(Arc::clone(&installation.key));
        let actor = ActorId::new(ACTOR)?;
        let writer = LogWriter::create(&log, &session, &actor, &opening, &options)?;
        let (firewall, seats) = Firewall::open(store, keys, extractors, Box::new(clock.clone()));
        Ok(Self {
            firewall,
            seats,
            recorder: SessionRecorder::new(writer, actor),
            log,
            installation,
            operator,
            clock,
            scope: format!("project:{PROJECT}").parse()?,
        })
    }

    /// Time passes.
    pub fn later(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.clock.by.fetch_add(micros, Ordering::Relaxed);
    }

    /// Now, by its own clock.
    pub fn now(&self) -> Timestamp {
        self.clock.clone().now()
    }

    /// Beliefs grow old whose time has come.
    pub fn age(&mut self) -> Outcome<u64> {
        let project = self.log.project();
        Ok(self.firewall.age(project, &mut self.recorder)?)
    }

    /// An observation that nobody has recorded yet.
    pub fn observation(&self, tool: &str, text: &str) -> Outcome<Observation> {
        let mut clock = self.clock.clone();
        let now = clock.now();
        let millis = u64::try_from(now.unix_micros() / 1000).unwrap_or_default();
        Ok(Observation {
            id: ObservationId::from_parts(millis, clock.random()),
            tool: ToolName::new(tool)?,
            invocation_id: InvocationId::from_parts(millis, clock.random()),
            captured_at: now,
            session: self.session(),
            project: self.log.project().clone(),
            actor: self.recorder.actor().clone(),
            trust: ObservationTrust::Raw,
            sensitivity: Sensitivity::Internal,
            content: vec![ContentBlock::Text {
                text: text.to_owned(),
                rest: Map::new(),
            }],
            rest: Map::new(),
        })
    }

    /// Records an observation, as sessions do before anything is made of it.
    pub fn record(&self, observation: &Observation) -> Outcome {
        let writer = self.recorder.writer();
        let kind = EventType::OBSERVATION_RECORDED;
        writer.append(kind, self.recorder.actor(), &[], observation)?;
        Ok(())
    }

    /// Reads texts, in their order and at once.
    pub fn read_all(&mut self, texts: &[Text<'_>]) -> Outcome<Vec<TakenIn>> {
        let mut read = Vec::with_capacity(texts.len());
        for text in texts {
            let observation = self.observation("read_file", text.says)?;
            self.record(&observation)?;
            let arguments = json!({"path": text.path});
            read.push((observation, ServerIdentity::new(text.server)?, arguments));
        }
        let intakes: Vec<_> = read
            .iter()
            .map(|(observation, server, arguments)| Intake {
                call: ToolCall {
                    invocation: observation.invocation_id,
                    server,
                    tool: &observation.tool,
                    arguments,
                    definition: sha256(b"read_file"),
                    reviewed: true,
                    is_error: false,
                },
                observation,
                scope: &self.scope,
                recorded: None,
            })
            .collect();
        Ok(self.firewall.observe_all(&intakes, &mut self.recorder)?)
    }

    /// Reads one text.
    pub fn read(&mut self, path: &str, says: &str) -> Outcome<TakenIn> {
        let text = Text {
            server: FILES,
            path,
            says,
        };
        let read = self.read_all(&[text])?.pop();
        read.ok_or_else(|| Broken::Failed("nothing came of a reading".to_owned()))
    }

    /// Lodestar measures something itself.
    pub fn measure(&mut self, subject: &str, relation: &str, object: Value) -> Outcome<BeliefId> {
        let observation = self.observation("fs.measure", "")?;
        self.measure_as(&observation, subject, relation, object)
    }

    /// The same, with an observation that was made before.
    pub fn measure_as(
        &mut self,
        observation: &Observation,
        subject: &str,
        relation: &str,
        object: Value,
    ) -> Outcome<BeliefId> {
        self.record(observation)?;
        let measurement = Measurement {
            observation,
            scope: &self.scope,
            subject,
            relation,
            object,
        };
        let seat = &self.seats.measuring;
        let outcome = self
            .firewall
            .measure(seat, measurement, &mut self.recorder)?;
        first(&outcome)
    }

    /// The agent concludes something from beliefs.
    pub fn derive(
        &mut self,
        sources: &[BeliefId],
        subject: &str,
        relation: &str,
        object: Value,
    ) -> Outcome<BeliefId> {
        let observation = self.observation("agent.note", "a conclusion")?;
        self.record(&observation)?;
        let derivation = Derivation {
            observation: &observation,
            sources,
            scope: &self.scope,
            subject,
            relation,
            object,
        };
        first(&self.firewall.derive(derivation, &mut self.recorder)?)
    }

    /// Takes in an export of another system.
    pub fn import(&mut self, format: ExportFormat, export: &Value) -> Outcome<TakenIn> {
        let export = read_export(format, &serde_json::to_vec(export)?)?;
        settle(
            !export.memories.is_empty() && export.skipped.is_empty(),
            || format!("the export was not read: {:?}", export.skipped),
        )?;
        let text = export.memories.iter().map(|memory| memory.text.as_str());
        let text: Vec<&str> = text.collect();
        let observation = self.observation("import", &text.join("\n"))?;
        self.record(&observation)?;
        let batch = ImportBatch {
            observation: &observation,
            format,
            memories: &export.memories,
            scope: &self.scope,
        };
        Ok(self.firewall.import(batch, &mut self.recorder)?)
    }

    /// Records a decision that rests on beliefs; where it stands, and what it is.
    pub fn decide(&mut self, question: &str, beliefs: &[BeliefId]) -> Outcome<(u64, Decision)> {
        let mut clock = self.clock.clone();
        let now = clock.now();
        let millis = u64::try_from(now.unix_micros() / 1000).unwrap_or_default();
        let options = NonEmpty::try_from(vec!["yes".to_owned(), "no".to_owned()])?;
        let decision = Decision {
            id: DecisionId::from_parts(millis, clock.random()),
            question: question.to_owned(),
            choice: Choice::new(options, "yes".to_owned())?,
            belief_dependencies: beliefs.to_vec(),
            policy_dependencies: Vec::new(),
            made_by: self.recorder.actor().clone(),
            made_at: now,
            origin: DecisionOrigin::Declared,
        };
        let writer = self.recorder.writer();
        let actor = self.recorder.actor();
        let receipt = writer.append(EventType::DECISION_MADE, actor, &[], &decision)?;
        Ok((receipt.seq(), decision))
    }

    /// A belief, as the store has it.
    pub fn belief(&mut self, id: BeliefId) -> Outcome<StoredBelief> {
        let found = self.firewall.look_up(id)?;
        let found = found.ok_or_else(|| Broken::Failed(format!("belief `{id}` is gone")))?;
        Ok(found.0)
    }

    /// Where a belief stands.
    pub fn axes(&mut self, id: BeliefId) -> Outcome<Axes> {
        Ok(self.belief(id)?.record.axes)
    }

    /// What a planner gets by default.
    pub fn context(&mut self) -> Outcome<Context> {
        self.context_by(&ContextPolicy::default())
    }

    /// What a planner gets by this policy.
    pub fn context_by(&mut self, policy: &ContextPolicy) -> Outcome<Context> {
        Ok(self.firewall.context(policy, &self.scope, None, 1000)?)
    }

    /// Which session it writes.
    pub fn session(&self) -> SessionId {
        self.recorder.log().session.clone()
    }

    /// Ends the session, verifies its log, and gives what follows from that log alone.
    pub fn close(mut self) -> Outcome<Record> {
        let writer = self.recorder.writer();
        let checkpoint = writer.close(self.recorder.actor(), &json!({"reason": "done"}))?;
        let name = self.recorder.log().clone();
        self.firewall.session_ended(&name, checkpoint.size)?;
        let trust = Trust {
            operators: vec![self.operator.key.public()],
            ..Trust::only(self.installation.key.public())
        };
        let report = verify_project(&self.log, &trust, &VerifyOptions::default(), &|_| ())?;
        settle(
            report.is_intact(),
            || "the scenario's own log does not verify",
        )?;
        Record::read(&self.log.session(&name.session))
    }
}

fn first(outcome: &TakenIn) -> Outcome<BeliefId> {
    let belief = outcome.beliefs().first().map(|belief| belief.id);
    belief.ok_or_else(|| Broken::Failed("nothing was adopted".to_owned()))
}

/// The belief of an intake with this relation.
pub fn about(taken_in: &TakenIn, relation: &str) -> Outcome<BeliefId> {
    let mut claims = taken_in.adopted.claims.iter();
    let place = claims.position(|claim| claim.predicate.relation == relation);
    let belief = place.and_then(|place| taken_in.beliefs().get(place));
    let belief = belief.map(|belief| belief.id);
    belief.ok_or_else(|| Broken::Failed(format!("nothing was read of `{relation}`")))
}
