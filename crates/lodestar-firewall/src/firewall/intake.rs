//! What comes in from tools, and what Lodestar measures itself.

use lodestar_core::canonical;
use lodestar_core::chain::{
    BeliefAuthority, Claim, EvidenceFreshness, EvidenceQuality, EvidenceSource, ExtractionMethod,
    Lineage, NonEmpty, Observation, ObservationTrust, Predicate,
};
use lodestar_core::id::ClaimId;
use lodestar_core::name::{CalibrationClass, IndependenceGroup};
use lodestar_core::scope::Scope;
use serde_json::Value;

use super::adopt::{Draft, Ids, Lot, Names, Outcome};
use super::plain::IdsOf;
use super::{Firewall, FirewallError};
use crate::authority::MeasuringSeat;
use crate::event::{Recorder, Source};
use crate::extract::inert::{MAX_ATTRIBUTE, MAX_SUBJECT, Statement, bounded, label};
use crate::extract::{ClaimDraft, Extractors, MAX_OBJECT, OtherCall, ToolCall};

/// What a tool returned, and where it is to hold.
#[derive(Debug, Clone, Copy)]
pub struct Intake<'a> {
    /// The call.
    pub call: ToolCall<'a>,
    /// What came back.
    pub observation: &'a Observation,
    /// Where the claims hold.
    pub scope: &'a Scope,
    /// The event that recorded the observation, if the log that is written to has it, the call's proposal
    /// and end, and the opening that scope and review came from, and the extractors are those that
    /// readers of the log use: then adopting it need not be written down in full.
    pub recorded: Option<u64>,
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
    /// store. Those that say nothing beyond themselves share an event.
    pub fn observe_all(
        &mut self,
        intakes: &[Intake<'_>],
        recorder: &mut dyn Recorder,
    ) -> Result<Vec<Outcome>, FirewallError> {
        let now = self.now();
        let lots = intakes.iter().map(|one| drawn(&self.extractors, one));
        let lots: Result<Vec<_>, _> = lots.collect();
        self.adopt_all(lots?, now, recorder)
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
        let mut ids = Ids::new(self.surroundings.as_mut(), now);
        let draft = Draft {
            names: Names::drawn(&mut ids),
            project: observation.project.clone(),
            claim: Claim {
                id: ids.next(ClaimId::from_parts),
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

/// What a result says, with ids that follow from it.
pub(super) fn drawn(extractors: &Extractors, intake: &Intake<'_>) -> Result<Lot, OtherCall> {
    let Intake {
        call,
        observation,
        recorded,
        ..
    } = intake;
    let found = extractors.extract(call, observation)?;
    let ids = IdsOf::new(observation.id);
    let server = group("server", call.server.as_str());
    let own_call = group("call", &call.invocation.to_string());
    let drafts = (0..).zip(found).map(|(place, draft)| {
        let envelope = draft.quality() == EvidenceQuality::ToolResult;
        let group = if envelope { &own_call } else { &server };
        of_tool(draft, intake, group.clone(), &ids, place)
    });
    Ok(Lot {
        observation: observation.id,
        recorded: *recorded,
        source: Some(Source {
            server: call.server.clone(),
            tool: call.tool.clone(),
        }),
        drafts: drafts.collect(),
    })
}

fn of_tool(
    draft: ClaimDraft,
    intake: &Intake<'_>,
    group: IndependenceGroup,
    ids: &IdsOf,
    place: u32,
) -> Draft {
    let (observation, scope) = (intake.observation, intake.scope);
    let quality = draft.quality();
    let freshness = draft.freshness();
    let class = draft.calibration_class().clone();
    Draft {
        names: ids.names(place),
        project: observation.project.clone(),
        claim: draft.into_claim(ids.claim(place), scope.clone()),
        source: EvidenceSource::Observation(observation.id),
        quality,
        group,
        freshness,
        class,
        authority: authority(quality),
        observed_at: observation.captured_at,
    }
}
