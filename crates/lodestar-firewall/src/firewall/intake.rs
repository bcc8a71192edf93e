//! What comes in from tools, and what Lodestar measures itself.

use lodestar_core::canonical;
use lodestar_core::chain::{
    BeliefAuthority, Claim, EvidenceFreshness, EvidenceQuality, EvidenceSource, ExtractionMethod,
    Lineage, NonEmpty, Observation, ObservationTrust, Predicate,
};
use lodestar_core::id::ClaimId;
use lodestar_core::name::{CalibrationClass, IndependenceGroup};
use lodestar_core::scope::Scope;
use lodestar_core::time::Timestamp;
use serde_json::Value;

use super::adopt::{Draft, Ids, Lot, Outcome};
use super::{Firewall, FirewallError};
use crate::authority::MeasuringSeat;
use crate::event::{Recorder, Source};
use crate::extract::inert::{MAX_ATTRIBUTE, MAX_SUBJECT, Statement, bounded, label};
use crate::extract::{ClaimDraft, MAX_OBJECT, ToolCall};

/// What a tool returned, and where it is to hold.
#[derive(Debug, Clone, Copy)]
pub struct Intake<'a> {
    /// The call.
    pub call: ToolCall<'a>,
    /// What came back.
    pub observation: &'a Observation,
    /// Where the claims hold.
    pub scope: &'a Scope,
}

/// What Lodestar measured itself.
#[derive(Debug, Clone)]
pub struct Measurement<'a> {
    /// The measurement, as it was recorded.
    pub observation: &'a Observation,
    /// Where it holds.
    pub scope: &'a Scope,
    /// What was measured, such as `file:notes.md`.
    pub subject: &'a str,
    /// Which of its properties.
    pub relation: &'a str,
    /// What it measured.
    pub object: Value,
}

pub(super) fn class(name: &'static str) -> CalibrationClass {
    CalibrationClass::new(name).expect("INVARIANT: a short constant")
}

pub(super) fn group(kind: &'static str, name: &str) -> IndependenceGroup {
    IndependenceGroup::new(format!("{kind}:{}", label(name)))
        .expect("INVARIANT: a label is bounded, and the kind is not empty")
}

/// A predicate whose parts are bounded and inert; the object is bounded.
pub(super) fn predicate(
    subject: &str,
    relation: &str,
    object: Value,
) -> Result<Predicate, FirewallError> {
    let length = serde_json::to_vec(&object).map_or(usize::MAX, |bytes| bytes.len());
    if length > MAX_OBJECT {
        return Err(FirewallError::BadClaim(format!(
            "the object of a claim has at most {MAX_OBJECT} bytes of JSON, this one has {length}"
        )));
    }
    if subject.is_empty() || relation.is_empty() {
        return Err(FirewallError::BadClaim(
            "a claim needs a subject and a relation".to_owned(),
        ));
    }
    // One spelling of a value: 1.0 is 1, live and read back from a row.
    let object = canonical::to_vec(&object)
        .and_then(|bytes| canonical::parse(&bytes))
        .unwrap_or(object);
    Ok(Predicate {
        subject: bounded(subject, MAX_SUBJECT),
        relation: bounded(relation, MAX_ATTRIBUTE),
        object,
    })
}

/// A statement that says exactly what the predicate says: where nobody reviewed the words, there are
/// none but these.
pub(super) fn said(predicate: &Predicate) -> String {
    Statement::new()
        .quote(&predicate.subject)
        .say(": ")
        .quote(&predicate.relation)
        .say(" is ")
        .quote(&predicate.object.to_string())
        .into_string()
}

impl Firewall {
    /// Takes in what a tool returned: one envelope claim, one content claim per block, and what the
    /// extractors read. Only the envelope can come out supported.
    pub fn observe(
        &mut self,
        intake: Intake<'_>,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, FirewallError> {
        let mut outcomes = self.observe_all(&[intake], recorder)?;
        Ok(outcomes
            .pop()
            .expect("INVARIANT: one intake has one outcome"))
    }

    /// As [`observe`](Self::observe), for several results in their order, in one transaction of the
    /// store. Each has an event of its own.
    pub fn observe_all(
        &mut self,
        intakes: &[Intake<'_>],
        recorder: &mut dyn Recorder,
    ) -> Result<Vec<Outcome>, FirewallError> {
        let now = self.now();
        let lots: Result<Vec<_>, _> = intakes.iter().map(|one| self.drawn(one, now)).collect();
        self.adopt_all(lots?, now, recorder)
    }

    fn drawn(&mut self, intake: &Intake<'_>, now: Timestamp) -> Result<Lot, FirewallError> {
        let Intake {
            call,
            observation,
            scope,
        } = intake;
        let found = self.extractors.extract(call, observation)?;
        let mut ids = Ids::new(self.surroundings.as_mut(), now);
        let server = group("server", call.server.as_str());
        let own_call = group("call", &call.invocation.to_string());
        let drafts = found
            .into_iter()
            .map(|draft| {
                let envelope = draft.quality() == EvidenceQuality::ToolResult;
                let group = if envelope { &own_call } else { &server };
                of_tool(
                    draft,
                    observation,
                    scope,
                    group.clone(),
                    ids.next(ClaimId::from_parts),
                )
            })
            .collect();
        Ok(Lot {
            observation: observation.id,
            source: Some(Source {
                server: call.server.clone(),
                tool: call.tool.clone(),
            }),
            drafts,
        })
    }

    /// Takes in what Lodestar measured itself.
    pub fn measure(
        &mut self,
        seat: &MeasuringSeat,
        measurement: Measurement<'_>,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, FirewallError> {
        self.check_seat(&seat.0)?;
        let now = self.now();
        let Measurement {
            observation, scope, ..
        } = measurement;
        let predicate = predicate(
            measurement.subject,
            measurement.relation,
            measurement.object,
        )?;
        let quality = match observation.trust {
            ObservationTrust::Raw | ObservationTrust::Validated => {
                EvidenceQuality::DirectObservation
            }
            ObservationTrust::Synthetic => EvidenceQuality::SyntheticProbe,
        };
        let id = Ids::new(self.surroundings.as_mut(), now).next(ClaimId::from_parts);
        let draft = Draft {
            id: None,
            project: observation.project.clone(),
            claim: Claim {
                id,
                statement: said(&predicate),
                predicate,
                source_observations: NonEmpty::one(observation.id),
                extraction_method: ExtractionMethod::Tool,
                scope: scope.clone(),
                sensitivity: observation.sensitivity,
                lineage: Lineage::of_observation(observation.id, quality),
            },
            source: EvidenceSource::Observation(observation.id),
            quality,
            group: group("measured", &observation.id.to_string()),
            freshness: EvidenceFreshness::Fresh,
            class: class("measured"),
            authority: authority(quality),
            observed_at: observation.captured_at,
        };
        self.adopt(observation.id, None, vec![draft], now, recorder)
    }
}

fn authority(quality: EvidenceQuality) -> BeliefAuthority {
    match quality {
        EvidenceQuality::SyntheticProbe => BeliefAuthority::Synthetic,
        _ => BeliefAuthority::Observed,
    }
}

fn of_tool(
    draft: ClaimDraft,
    observation: &Observation,
    scope: &Scope,
    group: IndependenceGroup,
    id: ClaimId,
) -> Draft {
    let quality = draft.quality();
    let freshness = draft.freshness();
    let class = draft.calibration_class().clone();
    Draft {
        id: None,
        project: observation.project.clone(),
        claim: draft.into_claim(id, scope.clone()),
        source: EvidenceSource::Observation(observation.id),
        quality,
        group,
        freshness,
        class,
        authority: authority(quality),
        observed_at: observation.captured_at,
    }
}
