//! Rows for tests, each made from a small number and signed with a real key.

use std::sync::Arc;

use lodestar_core::chain::transition::{AuthorityKind, AxisMove};
use lodestar_core::chain::{
    Axes, BeliefAuthority, BeliefRecord, Claim, Confidence, EvidenceFreshness, EvidenceItem,
    EvidenceQuality, EvidenceRelation, EvidenceSet, EvidenceSource, ExtractionMethod, Freshness,
    Lineage, NonEmpty, Predicate, Retrieval, Security, Truth,
};
use lodestar_core::digest::sha256;
use lodestar_core::id::{BeliefId, ClaimId, EvidenceId, EvidenceSetId, ObservationId};
use lodestar_core::key::SecretKey;
use lodestar_core::name::{CalibrationClass, IndependenceGroup, ServerIdentity, ToolName};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::{
    Adopted, Cause, Change, Contradiction, FirewallEvent, LogName, LogPosition, Source,
};
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::row::{Key, StoredBelief, StoredRow};
use lodestar_firewall::store::HistoryRow;

/// The place that most rows are about.
pub(crate) const WEB: &str = "project:web";

/// The keys of installation `n`, which trusts nobody else.
pub(crate) fn keys(n: u8) -> Keyring {
    Keyring::new(Arc::new(SecretKey::from_seed([n; 32])))
}

pub(crate) fn at(seconds: u64) -> Timestamp {
    let micros = (1_700_000_000 + i64::try_from(seconds).unwrap()) * 1_000_000;
    Timestamp::from_unix_micros(micros).unwrap()
}

fn random(n: u64) -> [u8; 10] {
    let mut bytes = [7; 10];
    bytes[2..].copy_from_slice(&n.to_be_bytes());
    bytes
}

/// The id of belief `n`; ids order as their numbers do.
pub(crate) fn id(n: u64) -> BeliefId {
    BeliefId::from_parts(1_700_000_000_000 + n, random(n))
}

pub(crate) fn against(belief: u64, against: u64) -> Contradiction {
    Contradiction {
        belief: id(belief),
        against: id(against),
    }
}

pub(crate) fn log(project: &str, session: &str) -> LogName {
    LogName {
        project: project.parse().unwrap(),
        session: session.parse().unwrap(),
    }
}

pub(crate) fn position(log: &LogName, seq: u64) -> LogPosition {
    LogPosition {
        log: log.clone(),
        seq,
        leaf: sha256(format!("{} {} {seq}", log.project, log.session).as_bytes()),
    }
}

/// A belief to be: supported by direct evidence, unless said otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    pub(crate) number: u64,
    pub(crate) scope: String,
    pub(crate) subject: String,
    pub(crate) relation: String,
    pub(crate) statement: String,
    pub(crate) sensitivity: Sensitivity,
    pub(crate) axes: Axes,
    pub(crate) observed: u64,
    pub(crate) log: LogName,
}

impl Sketch {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            scope: WEB.to_owned(),
            subject: format!("file:{number}.md"),
            relation: "says".to_owned(),
            statement: format!("Statement {number} stands."),
            sensitivity: Sensitivity::Internal,
            axes: Axes {
                truth: Truth::Supported,
                retrieval: Retrieval::Normal,
                security: Security::Clean,
                freshness: Freshness::Fresh,
            },
            observed: number,
            log: log("web", "s-1"),
        }
    }

    /// As what was read is adopted.
    pub(crate) fn gated(mut self) -> Self {
        self.axes.truth = Truth::Unverified;
        self.axes.retrieval = Retrieval::Restricted;
        self
    }

    pub(crate) fn says(mut self, statement: impl Into<String>) -> Self {
        self.statement = statement.into();
        self
    }

    pub(crate) fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    pub(crate) fn within(mut self, scope: impl Into<String>) -> Self {
        self.scope = scope.into();
        self
    }

    pub(crate) fn observed(mut self, seconds: u64) -> Self {
        self.observed = seconds;
        self
    }

    pub(crate) fn sensitive(mut self, sensitivity: Sensitivity) -> Self {
        self.sensitivity = sensitivity;
        self
    }

    pub(crate) fn axes(mut self, change: impl FnOnce(&mut Axes)) -> Self {
        change(&mut self.axes);
        self
    }

    pub(crate) fn in_log(mut self, project: &str, session: &str) -> Self {
        self.log = log(project, session);
        self
    }

    fn quality(&self) -> EvidenceQuality {
        match self.axes.truth {
            Truth::Unverified => EvidenceQuality::ExternalDocument,
            _ => EvidenceQuality::DirectObservation,
        }
    }

    fn observation(&self) -> ObservationId {
        ObservationId::from_parts(self.number, random(self.number))
    }

    pub(crate) fn claim(&self) -> Claim {
        Claim {
            id: ClaimId::from_parts(self.number, random(self.number)),
            statement: self.statement.clone(),
            predicate: Predicate {
                subject: self.subject.clone(),
                relation: self.relation.clone(),
                object: serde_json::json!({ "number": self.number }),
            },
            source_observations: NonEmpty::one(self.observation()),
            extraction_method: ExtractionMethod::Tool,
            scope: self.scope.parse().unwrap(),
            sensitivity: self.sensitivity,
            lineage: Lineage::of_observation(self.observation(), self.quality()),
        }
    }

    pub(crate) fn evidence(&self) -> EvidenceSet {
        EvidenceSet {
            id: EvidenceSetId::from_parts(self.number, random(self.number)),
            claim: self.claim().id,
            items: vec![EvidenceItem {
                id: EvidenceId::from_parts(self.number, random(self.number)),
                source: EvidenceSource::Observation(self.observation()),
                relation: EvidenceRelation::Supports,
                quality: self.quality(),
                independence_group: IndependenceGroup::new("origin").unwrap(),
                freshness: EvidenceFreshness::Fresh,
            }],
            assembled_at: at(self.observed),
        }
    }

    pub(crate) fn record(&self) -> BeliefRecord {
        BeliefRecord {
            id: id(self.number),
            claim: self.claim().id,
            evidence_set: self.evidence().id,
            confidence: Confidence::EXTRACTED,
            calibration_class: CalibrationClass::new("files").unwrap(),
            authority: BeliefAuthority::Observed,
            scope: self.scope.parse().unwrap(),
            sensitivity: self.sensitivity,
            observed_at: at(self.observed),
            adopted_at: at(self.observed),
            axes: self.axes,
        }
    }

    /// The key that the belief is compared by.
    pub(crate) fn key(&self) -> Key {
        Key::of(&self.scope.parse().unwrap(), &self.claim().predicate).unwrap()
    }

    /// Signed by installation 1.
    pub(crate) fn row(&self) -> StoredRow {
        self.row_by(&keys(1))
    }

    pub(crate) fn row_by(&self, keys: &Keyring) -> StoredRow {
        let event = adopted(std::slice::from_ref(self));
        let at = position(&self.log, self.number);
        let belief = StoredBelief::adopted(&event, &at).next().unwrap();
        let mut rows = [StoredRow::of(&belief)];
        keys.sign(&mut rows);
        let [row] = rows;
        row
    }
}

/// One row per number.
pub(crate) fn rows(numbers: impl IntoIterator<Item = u64>) -> Vec<StoredRow> {
    numbers.into_iter().map(|n| Sketch::new(n).row()).collect()
}

/// The payload that adopts these.
pub(crate) fn adopted(sketches: &[Sketch]) -> Adopted {
    Adopted {
        observation: sketches[0].observation(),
        source: Some(Source {
            server: ServerIdentity::new("files").unwrap(),
            tool: ToolName::new("read").unwrap(),
        }),
        claims: sketches.iter().map(Sketch::claim).collect(),
        evidence: sketches.iter().map(Sketch::evidence).collect(),
        beliefs: sketches.iter().map(Sketch::record).collect(),
        changes: Vec::new(),
        contradictions: Vec::new(),
    }
}

/// The event that adopts these.
pub(crate) fn adoption(sketches: &[Sketch]) -> FirewallEvent {
    FirewallEvent::Adopted(adopted(sketches))
}

/// The next change of a row, along these moves.
pub(crate) fn change(row: &StoredRow, moves: Vec<AxisMove>) -> Change {
    let belief = row.open().unwrap();
    Change {
        belief: belief.record.id,
        revision: belief.revision + 1,
        moves,
        authority: AuthorityKind::System,
        cause: Cause::Clock,
        at: at(1_000),
        evidence: Vec::new(),
    }
}

/// The row after a change by installation 1, and its history.
pub(crate) fn changed(row: &StoredRow, moves: Vec<AxisMove>) -> (StoredRow, HistoryRow) {
    let change = change(row, moves);
    let at = position(&log("web", "s-2"), change.revision);
    let belief = row.open().unwrap().after(&change, &at);
    let mut rows = [StoredRow::of(&belief)];
    keys(1).sign(&mut rows);
    let [row] = rows;
    (row, HistoryRow { change, at })
}

/// The row with other axes, as its next revision.
pub(crate) fn moved(row: &StoredRow, to: impl FnOnce(&mut Axes)) -> StoredRow {
    let mut belief = row.open().unwrap();
    to(&mut belief.record.axes);
    belief.revision += 1;
    let mut rows = [StoredRow::of(&belief)];
    keys(1).sign(&mut rows);
    let [row] = rows;
    row
}

pub(crate) fn hide(axes: &mut Axes) {
    axes.retrieval = Retrieval::Hidden;
}

pub(crate) fn show(axes: &mut Axes) {
    axes.retrieval = Retrieval::Normal;
}

/// From fresh to stale.
pub(crate) fn ageing() -> Vec<AxisMove> {
    vec![AxisMove::new(Freshness::Fresh, Freshness::Stale).unwrap()]
}
