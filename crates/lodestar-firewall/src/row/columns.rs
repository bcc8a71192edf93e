//! The columns, and the ways between them and typed data.

use std::fmt::Display;
use std::str::FromStr;

use lodestar_core::chain::{
    Axes, BeliefRecord, Claim, Confidence, Directness, EvidenceQuality, EvidenceSet, Freshness,
    Lineage, NonEmpty, Predicate, Retrieval, Security, Truth,
};
use lodestar_core::digest::{Digest, Hasher, sha256_parts};
use lodestar_core::id::{BeliefId, ObservationId};
use lodestar_core::name::{Excerpt, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BadRow, StoredBelief};
use crate::event::{LogName, LogPosition, Source};

/// Facts about one call; each call has its own, so there is nothing to compare them with.
const CALL_PREFIX: &str = "call:";

/// What beliefs are compared by: scope, subject and relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// A short hash of the rest, for an index. Equal keys have equal hashes; stores compare the rest.
    pub hash: i64,
    /// Where it holds.
    pub scope: String,
    /// The thing spoken about.
    pub subject: String,
    /// Which of its properties.
    pub relation: String,
}

impl Key {
    /// The key of a predicate; `None` for a fact about one call, which is comparable with nothing.
    pub fn of(scope: &Scope, predicate: &Predicate) -> Option<Self> {
        let scope = scope.to_string();
        let hash = hash(&scope, &predicate.subject, &predicate.relation)?;
        Some(Self {
            hash,
            scope,
            subject: predicate.subject.clone(),
            relation: predicate.relation.clone(),
        })
    }

    /// Whether the row has this key.
    pub fn is_of(&self, row: &StoredRow) -> bool {
        self.scope == row.scope && self.subject == row.subject && self.relation == row.relation
    }
}

fn hash(scope: &str, subject: &str, relation: &str) -> Option<i64> {
    if subject.starts_with(CALL_PREFIX) {
        return None;
    }
    let scope_len = (scope.len() as u64).to_be_bytes();
    let thing = sha256_parts(&[&scope_len, scope.as_bytes(), subject.as_bytes()]);
    let property = sha256_parts(&[relation.as_bytes()]);
    // What is claimed of one thing stands together in an index: half of the hash is the thing's.
    let [a, b, c, d, ..] = *thing.as_bytes();
    let [e, f, g, h, ..] = *property.as_bytes();
    Some(i64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// One row of a belief store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRow {
    /// The belief's id, as text.
    pub id: String,
    /// [`Key::hash`]; none for facts about one call.
    pub key: Option<i64>,
    /// The scope, as text.
    pub scope: String,
    /// The thing spoken about.
    pub subject: String,
    /// Which of its properties.
    pub relation: String,
    /// The value claimed, as canonical JSON.
    pub object: String,
    /// The statement, for readers.
    pub statement: String,
    /// The claim's other members, as JSON.
    pub claim: String,
    /// The evidence set, as JSON.
    pub evidence: String,
    /// On whose word.
    pub authority: String,
    /// The assigned strength.
    pub confidence: f64,
    /// What it is calibrated with.
    pub class: String,
    /// 0 public, 1 internal, 2 confidential, 3 secret.
    pub sensitivity: i64,
    /// The weakest quality that the claim goes back to.
    pub quality: String,
    /// Where it stands on truth.
    pub truth: String,
    /// Where it stands on retrieval.
    pub retrieval: String,
    /// Where it stands on security.
    pub security: String,
    /// Where it stands on freshness.
    pub freshness: String,
    /// When what it says was observed, in microseconds since 1970.
    pub observed_at: i64,
    /// When it was adopted.
    pub adopted_at: i64,
    /// When its freshness changes next by the clock.
    pub due_at: Option<i64>,
    /// Whose tool.
    pub server: Option<String>,
    /// Which tool.
    pub tool: Option<String>,
    /// How often it changed.
    pub revision: i64,
    /// The event that adopted it: project, session, seq, leaf hash.
    pub project: String,
    /// Session of the adopting event.
    pub session: String,
    /// Its place.
    pub seq: i64,
    /// Its leaf hash.
    pub leaf: [u8; 32],
    /// The event that changed it last: project, session, seq, leaf hash.
    pub changed_project: String,
    /// Session of the last change.
    pub changed_session: String,
    /// Its place.
    pub changed_seq: i64,
    /// Its leaf hash.
    pub changed_leaf: [u8; 32],
    /// The installation's key id.
    pub signer: String,
    /// Its signature, and the way from this row to what was signed: see [`super::keys`].
    pub signature: Vec<u8>,
    /// What only the signer can make: lets it recognise its own rows without elliptic curves.
    pub seal: [u8; 32],
}

/// The members of a claim that have no column of their own.
#[derive(Serialize, Deserialize)]
struct ClaimRest {
    id: lodestar_core::id::ClaimId,
    extraction_method: lodestar_core::chain::ExtractionMethod,
    source_observations: NonEmpty<ObservationId>,
    lineage: Lineage,
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value)
        .expect("INVARIANT: chain types have string keys and finite numbers")
}

impl StoredRow {
    /// The row of a belief; without signature and seal until [`super::keys::Keyring::sign`] gives it both.
    pub fn of(belief: &StoredBelief) -> Self {
        let StoredBelief { record, claim, .. } = belief;
        let scope = record.scope.to_string();
        let rest = ClaimRest {
            id: claim.id,
            extraction_method: claim.extraction_method,
            source_observations: claim.source_observations.clone(),
            lineage: claim.lineage.clone(),
        };
        let axes = record.axes;
        Self {
            id: record.id.to_string(),
            key: hash(&scope, &claim.predicate.subject, &claim.predicate.relation),
            scope,
            subject: claim.predicate.subject.clone(),
            relation: claim.predicate.relation.clone(),
            object: object_text(&claim.predicate.object),
            statement: claim.statement.clone(),
            claim: json(&rest),
            evidence: json(&belief.evidence),
            authority: record.authority.as_str().to_owned(),
            confidence: record.confidence.get(),
            class: record.calibration_class.as_str().to_owned(),
            sensitivity: record.sensitivity as i64,
            quality: claim.lineage.quality().as_str().to_owned(),
            truth: axes.truth.as_str().to_owned(),
            retrieval: axes.retrieval.as_str().to_owned(),
            security: axes.security.as_str().to_owned(),
            freshness: axes.freshness.as_str().to_owned(),
            observed_at: record.observed_at.unix_micros(),
            adopted_at: record.adopted_at.unix_micros(),
            due_at: belief.due_at.map(Timestamp::unix_micros),
            server: belief.source.as_ref().map(|s| s.server.as_str().to_owned()),
            tool: belief.source.as_ref().map(|s| s.tool.as_str().to_owned()),
            revision: number(belief.revision),
            project: belief.adopted.log.project.to_string(),
            session: belief.adopted.log.session.to_string(),
            seq: number(belief.adopted.seq),
            leaf: *belief.adopted.leaf.as_bytes(),
            changed_project: belief.changed.log.project.to_string(),
            changed_session: belief.changed.log.session.to_string(),
            changed_seq: number(belief.changed.seq),
            changed_leaf: *belief.changed.leaf.as_bytes(),
            signer: String::new(),
            signature: Vec::new(),
            seal: [0; 32],
        }
    }

    /// Whether the default context may have it, by its axes alone.
    pub fn is_eligible(&self) -> bool {
        self.truth == Truth::Supported.as_str()
            && self.retrieval == Retrieval::Normal.as_str()
            && self.security == Security::Clean.as_str()
            && self.freshness != Freshness::Expired.as_str()
    }

    /// Whether the claim goes back to nothing but direct evidence.
    pub fn is_direct(&self) -> bool {
        let quality = self.quality.parse::<EvidenceQuality>();
        quality.is_ok_and(|quality| quality.directness() == Directness::Direct)
    }

    /// Whether truth was settled: supported or contradicted.
    pub fn is_settled(&self) -> bool {
        self.truth == Truth::Supported.as_str() || self.truth == Truth::Contradicted.as_str()
    }

    /// Whether nothing settled it yet.
    pub fn is_unverified(&self) -> bool {
        self.truth == Truth::Unverified.as_str()
    }

    /// The digest over every column but signer, signature and seal.
    pub fn digest(&self) -> Digest {
        const DOMAIN: &[u8] = b"lodestar belief row v1\0";
        let mut hasher = Hasher::new();
        hasher.update(DOMAIN);
        let mut text = |part: &str| {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        };
        for part in [
            &self.id,
            &self.scope,
            &self.subject,
            &self.relation,
            &self.object,
            &self.statement,
            &self.claim,
            &self.evidence,
            &self.authority,
            &self.class,
            &self.quality,
            &self.truth,
            &self.retrieval,
            &self.security,
            &self.freshness,
            &self.project,
            &self.session,
            &self.changed_project,
            &self.changed_session,
        ] {
            text(part);
        }
        for part in [&self.server, &self.tool] {
            text(part.as_deref().unwrap_or_default());
        }
        let mut fixed = [0_u8; 8 * 10];
        // Nothing and an empty text or a zero are different things.
        let present = [
            self.key.is_some(),
            self.due_at.is_some(),
            self.server.is_some(),
            self.tool.is_some(),
        ];
        let present = present
            .iter()
            .fold(0, |bits, &is_there| bits << 1 | i64::from(is_there));
        let numbers = [
            present,
            self.key.unwrap_or_default(),
            self.confidence.to_bits() as i64,
            self.sensitivity,
            self.observed_at,
            self.adopted_at,
            self.due_at.unwrap_or_default(),
            self.revision,
            self.seq,
            self.changed_seq,
        ];
        for (place, value) in fixed.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&value.to_be_bytes());
        }
        hasher.update(&fixed);
        hasher.update(&self.leaf);
        hasher.update(&self.changed_leaf);
        hasher.finish()
    }

    /// The id, typed.
    pub fn belief_id(&self) -> Result<BeliefId, BadRow> {
        self.column("id", &self.id)
    }

    /// Reads the columns. It checks their form; whether the row is genuine, [`super::keys`] tells.
    pub fn open(&self) -> Result<StoredBelief, BadRow> {
        let rest: ClaimRest = self.json_column("claim", &self.claim)?;
        let evidence: EvidenceSet = self.json_column("evidence", &self.evidence)?;
        let scope = self.read_scope()?;
        let sensitivity = usize::try_from(self.sensitivity)
            .ok()
            .and_then(|rank| Sensitivity::ALL.get(rank).copied())
            .ok_or_else(|| self.bad("sensitivity", "it is a number from 0 to 3"))?;
        let record = BeliefRecord {
            id: self.belief_id()?,
            claim: rest.id,
            evidence_set: evidence.id,
            confidence: self.read_confidence()?,
            calibration_class: self.column("class", &self.class)?,
            authority: self.column("authority", &self.authority)?,
            scope: scope.clone(),
            sensitivity,
            observed_at: self.read_observed_at()?,
            adopted_at: self.time("adopted_at", self.adopted_at)?,
            axes: self.axes()?,
        };
        let claim = Claim {
            id: rest.id,
            statement: self.statement.clone(),
            predicate: Predicate {
                subject: self.subject.clone(),
                relation: self.relation.clone(),
                object: self.read_object()?,
            },
            source_observations: rest.source_observations,
            extraction_method: rest.extraction_method,
            scope,
            sensitivity,
            lineage: rest.lineage,
        };
        Ok(StoredBelief {
            record,
            claim,
            evidence,
            source: self.source()?,
            revision: self.count("revision", self.revision)?,
            due_at: self
                .due_at
                .map(|due| self.time("due_at", due))
                .transpose()?,
            adopted: self.position(&self.project, &self.session, self.seq, self.leaf)?,
            changed: self.position(
                &self.changed_project,
                &self.changed_session,
                self.changed_seq,
                self.changed_leaf,
            )?,
        })
    }

    /// The object alone.
    pub(crate) fn read_object(&self) -> Result<Value, BadRow> {
        self.json_column("object", &self.object)
    }

    /// The scope alone.
    pub(crate) fn read_scope(&self) -> Result<Scope, BadRow> {
        self.column("scope", &self.scope)
    }

    /// The confidence alone.
    pub(crate) fn read_confidence(&self) -> Result<Confidence, BadRow> {
        Confidence::new(self.confidence).map_err(|error| self.bad("confidence", error))
    }

    /// The time of observation alone.
    pub(crate) fn read_observed_at(&self) -> Result<Timestamp, BadRow> {
        self.time("observed_at", self.observed_at)
    }

    /// Where it stands on each axis.
    pub fn axes(&self) -> Result<Axes, BadRow> {
        Ok(Axes {
            truth: self.column("truth", &self.truth)?,
            retrieval: self.column("retrieval", &self.retrieval)?,
            security: self.column("security", &self.security)?,
            freshness: self.column("freshness", &self.freshness)?,
        })
    }

    fn source(&self) -> Result<Option<Source>, BadRow> {
        match (&self.server, &self.tool) {
            (Some(server), Some(tool)) => Ok(Some(Source {
                server: self.column::<ServerIdentity>("server", server)?,
                tool: self.column::<ToolName>("tool", tool)?,
            })),
            (None, None) => Ok(None),
            _ => Err(self.bad("server", "server and tool are both there or both not")),
        }
    }

    fn position(
        &self,
        project: &str,
        session: &str,
        seq: i64,
        leaf: [u8; 32],
    ) -> Result<LogPosition, BadRow> {
        Ok(LogPosition {
            log: LogName {
                project: self.column("project", project)?,
                session: self.column("session", session)?,
            },
            seq: self.count("seq", seq)?,
            leaf: Digest::from_bytes(leaf),
        })
    }

    fn bad(&self, column: &'static str, problem: impl Display) -> BadRow {
        BadRow {
            id: Excerpt::of(&self.id),
            column,
            problem: problem.to_string(),
        }
    }

    fn column<T: FromStr<Err: Display>>(
        &self,
        column: &'static str,
        text: &str,
    ) -> Result<T, BadRow> {
        text.parse().map_err(|error| self.bad(column, error))
    }

    fn json_column<'a, T: Deserialize<'a>>(
        &self,
        column: &'static str,
        text: &'a str,
    ) -> Result<T, BadRow> {
        serde_json::from_str(text).map_err(|error| self.bad(column, error))
    }

    fn time(&self, column: &'static str, micros: i64) -> Result<Timestamp, BadRow> {
        Timestamp::from_unix_micros(micros).map_err(|error| self.bad(column, error))
    }

    fn count(&self, column: &'static str, value: i64) -> Result<u64, BadRow> {
        u64::try_from(value).map_err(|_| self.bad(column, "it is negative"))
    }
}

/// An object in its one form; where it has none (a number beyond 2^53), as serde writes it.
fn object_text(object: &Value) -> String {
    match lodestar_core::canonical::to_vec(object) {
        Ok(bytes) => String::from_utf8(bytes).expect("INVARIANT: canonical JSON is UTF-8"),
        Err(_) => object.to_string(),
    }
}

impl StoredRow {
    /// The columns in which two rows differ, but for signer, signature and seal.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        macro_rules! compare {
            ($($column:ident)+) => {
                [$((stringify!($column), self.$column == other.$column)),+]
            };
        }
        let compared = compare!(
            id key scope subject relation object statement claim evidence authority confidence class
            sensitivity quality truth retrieval security freshness observed_at adopted_at due_at server
            tool revision project session seq leaf changed_project changed_session changed_seq
            changed_leaf
        );
        let differing = compared.into_iter().filter(|(_, equal)| !equal);
        differing.map(|(column, _)| column).collect()
    }
}
