//! What the firewall writes to the log, and where in the log it stands.
//!
//! The firewall itself writes nothing: a [`Recorder`] does, and what it has recorded the [fold]
//! applies to the store. From these payloads, and from the results that `belief.adopted@2` names, the
//! store follows, in the order of each belief's revisions, live and rebuilt alike.
//!
//! [fold]: crate::fold

use lodestar_core::chain::transition::{AuthorityKind, AxisMove};
use lodestar_core::chain::{BeliefRecord, Claim, EvidenceItem, EvidenceSet, Revision};
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::id::{BeliefId, ClaimId, DecisionId, ObservationId};
use lodestar_core::name::{PolicyId, ProjectId, ServerIdentity, SessionId, ToolName};
use lodestar_core::statement::Envelope;
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use crate::rule::PromotionRule;

/// The log of one session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LogName {
    /// The project.
    pub project: ProjectId,
    /// The session.
    pub session: SessionId,
}

/// Where an event stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LogPosition {
    /// In which log.
    #[serde(flatten)]
    pub log: LogName,
    /// Where in it.
    pub seq: u64,
    /// The leaf hash of the event.
    pub leaf: Digest,
}

/// Whose tool a claim came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The server.
    pub server: ServerIdentity,
    /// The tool.
    pub tool: ToolName,
}

/// `belief.adopted@1`: all that one observation gave, and what followed from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adopted {
    /// The observation.
    pub observation: ObservationId,
    /// Whose tool returned it; a measurement or a person's word has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The claims.
    pub claims: Vec<Claim>,
    /// What is known of each, in the order of the claims.
    pub evidence: Vec<EvidenceSet>,
    /// What is believed of each, in the order of the claims.
    pub beliefs: Vec<BeliefRecord>,
    /// What followed for older beliefs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// What speaks against each other, for readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<Contradiction>,
}

/// `belief.adopted@2`: results of tools whose adoption says nothing beyond itself. What is believed of
/// each follows from the observation, the call that it came of and the moment: see
/// [`Plain`](crate::Plain).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultsAdopted {
    /// When.
    pub adopted_at: Timestamp,
    /// The events of the same log that recorded the observations, in the order of adoption.
    pub results: Vec<u64>,
}

/// What became of one belief.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The belief.
    pub belief: BeliefId,
    /// Which of its changes this is, counted from 1: changes of one belief have an order of their own,
    /// whichever sessions made them.
    pub revision: u64,
    /// Along which axes, in their order.
    pub moves: Vec<AxisMove>,
    /// Who moved it.
    pub authority: AuthorityKind,
    /// What caused it.
    pub cause: Cause,
    /// When.
    pub at: Timestamp,
    /// What was added to its evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceItem>,
}

/// What caused a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A direct claim.
    Claim(ClaimId),
    /// A direct belief that says otherwise.
    Belief(BeliefId),
    /// A person's signed statement, by the digest of its envelope.
    Statement(Digest),
    /// A rule of the operator.
    Rule(PolicyId),
    /// A sentinel, a probe or the operator's policy saw something, in words.
    Finding(String),
    /// The passing of time.
    Clock,
}

/// Two beliefs about one thing that cannot both be so. It changes neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Contradiction {
    /// The one that stands.
    pub belief: BeliefId,
    /// The one that speaks against it.
    pub against: BeliefId,
}

/// `belief.moved@1`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// What became of each.
    pub changes: Vec<Change>,
}

/// `belief.promoted@1`: also every other move that a person signs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promoted {
    /// What became of the belief.
    pub change: Change,
    /// On what ground.
    pub ground: PromotionGround,
}

/// On what ground a belief was promoted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromotionGround {
    /// A person's signed statement, whole.
    Statement(Envelope),
    /// A rule of the operator, with what it says, and the evidence that was there.
    Rule {
        /// The rule.
        rule: PromotionRule,
        /// All that was known of the claim.
        evidence: Vec<EvidenceItem>,
    },
}

/// `belief.read_privileged@1`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPrivileged {
    /// Why, in words.
    pub reason: String,
    /// What was asked for.
    pub query: Value,
    /// How many beliefs were handed out.
    pub found: u64,
}

/// `reflection.completed@1`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reflected {
    /// The session that was looked at.
    pub log: LogName,
    /// From which event on.
    pub from: u64,
    /// Up to, and without, which event.
    pub until: u64,
    /// What it proposes.
    pub proposals: Vec<Proposal>,
}

/// What a reflection proposes. It does nothing by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "propose", rename_all = "snake_case")]
pub enum Proposal {
    /// Look at a decision again: it rests on a belief that turned out wrong.
    FlagDecision {
        /// The decision.
        decision: DecisionId,
        /// The event that recorded it.
        made_at: u64,
        /// The belief.
        belief: BeliefId,
    },
    /// Two supported beliefs with one key say different things: the newer takes the older's place.
    Supersede {
        /// The older.
        older: BeliefId,
        /// The newer.
        newer: BeliefId,
    },
}

/// Anything that the firewall writes.
#[derive(Debug, Clone, PartialEq)]
pub enum FirewallEvent {
    /// `belief.adopted@1`
    Adopted(Adopted),
    /// `belief.adopted@2`
    ResultsAdopted(ResultsAdopted),
    /// `belief.moved@1`
    Moved(Moved),
    /// `belief.promoted@1`
    Promoted(Promoted),
    /// `belief.read_privileged@1`
    ReadPrivileged(ReadPrivileged),
    /// `reflection.completed@1`
    Reflected(Reflected),
    /// `revision.made@1`
    Revised(Revision),
}

impl FirewallEvent {
    /// Its type.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::Adopted(_) => EventType::BELIEF_ADOPTED,
            Self::ResultsAdopted(_) => EventType::RESULTS_ADOPTED,
            Self::Moved(_) => EventType::BELIEF_MOVED,
            Self::Promoted(_) => EventType::BELIEF_PROMOTED,
            Self::ReadPrivileged(_) => EventType::BELIEF_READ_PRIVILEGED,
            Self::Reflected(_) => EventType::REFLECTION_COMPLETED,
            Self::Revised(_) => EventType::REVISION_MADE,
        }
    }

    /// Reads an event out of a log; `None` for a type that is not the firewall's.
    pub fn read(kind: EventType, payload: Value) -> Option<Result<Self, serde_json::Error>> {
        fn parse<T: for<'de> Deserialize<'de>>(
            payload: Value,
            wrap: impl FnOnce(T) -> FirewallEvent,
        ) -> Option<Result<FirewallEvent, serde_json::Error>> {
            Some(serde_json::from_value(payload).map(wrap))
        }
        match kind {
            EventType::BELIEF_ADOPTED => parse(payload, Self::Adopted),
            EventType::RESULTS_ADOPTED => parse(payload, Self::ResultsAdopted),
            EventType::BELIEF_MOVED => parse(payload, Self::Moved),
            EventType::BELIEF_PROMOTED => parse(payload, Self::Promoted),
            EventType::BELIEF_READ_PRIVILEGED => parse(payload, Self::ReadPrivileged),
            EventType::REFLECTION_COMPLETED => parse(payload, Self::Reflected),
            EventType::REVISION_MADE => parse(payload, Self::Revised),
            _ => None,
        }
    }
}

/// As its payload.
impl Serialize for FirewallEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Adopted(payload) => payload.serialize(serializer),
            Self::ResultsAdopted(payload) => payload.serialize(serializer),
            Self::Moved(payload) => payload.serialize(serializer),
            Self::Promoted(payload) => payload.serialize(serializer),
            Self::ReadPrivileged(payload) => payload.serialize(serializer),
            Self::Reflected(payload) => payload.serialize(serializer),
            Self::Revised(payload) => payload.serialize(serializer),
        }
    }
}

/// An event was not recorded, so what it says did not happen.
#[derive(Debug, Error)]
#[error("the event was not recorded: {0}")]
pub struct NotRecorded(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Writes events to the log of the running session.
pub trait Recorder {
    /// Appends the event and says where it stands. When this returns, the event is in the log.
    fn record(&mut self, event: &FirewallEvent) -> Result<LogPosition, NotRecorded>;

    /// Makes sure that what was recorded outlives this process. It is asked to before a store keeps
    /// what follows from it, so that no store knows more than its log.
    fn hand_over(&mut self) -> Result<(), NotRecorded> {
        Ok(())
    }
}

/// Where time and randomness come from.
pub trait Surroundings: Send {
    /// Now.
    fn now(&mut self) -> Timestamp;
    /// Ten bytes that nobody can foresee.
    fn random(&mut self) -> [u8; 10];
}
