//! What the agent makes of what it knows: summaries, conclusions, restatements.
//!
//! A derived claim carries the origins of all its sources and is only as good as the weakest of
//! them; and a model made it, so it is never direct, whatever it was made from.

use lodestar_core::chain::{
    BeliefAuthority, Claim, EvidenceFreshness, EvidenceQuality, EvidenceSource, ExtractionMethod,
    Lineage, NonEmpty, Observation, ObservationTrust, Origin,
};
use lodestar_core::defence::Defence;
use lodestar_core::id::{BeliefId, ClaimId};
use lodestar_core::scope::Scope;
use serde_json::Value;

use super::adopt::{Draft, Ids, Names, Outcome};
use super::intake::{class, group, predicate, said};
use super::{Firewall, FirewallError};
use crate::event::Recorder;
use crate::row::StoredBelief;
use crate::row::keys::Standing;

/// Most sources of one derivation: a summary of more is a summary of summaries.
const MAX_SOURCES: usize = 256;

/// Most observations that a derived claim goes back to: they are carried along from claim to claim.
const MAX_ORIGINS: usize = 1024;

/// A claim that the agent derived.
#[derive(Debug, Clone)]
pub struct Derivation<'a> {
    /// What the agent said, as it was recorded.
    pub observation: &'a Observation,
    /// The beliefs it was derived from.
    pub sources: &'a [BeliefId],
    /// Where it holds.
    pub scope: &'a Scope,
    /// What it is about.
    pub subject: &'a str,
    /// Which of its properties.
    pub relation: &'a str,
    /// What is claimed.
    pub object: Value,
}

impl Firewall {
    /// Takes in what the agent derived.
    ///
    /// The statement for readers is put together from the predicate, so that no words come in beside
    /// what is compared.
    pub fn derive(
        &mut self,
        derivation: Derivation<'_>,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, FirewallError> {
        let now = self.now();
        let observation = derivation.observation;
        if derivation.sources.len() > MAX_SOURCES {
            return Err(FirewallError::BadClaim(format!(
                "a claim is derived from at most {MAX_SOURCES} beliefs, this one from {}",
                derivation.sources.len()
            )));
        }
        let sources = self.sources(derivation.sources)?;
        if let Some(source) = sources
            .iter()
            .find(|source| !source.record.scope.contains(derivation.scope))
        {
            return Err(FirewallError::BadClaim(format!(
                "what follows from a belief of `{}` does not hold in `{}`",
                source.record.scope, derivation.scope
            )));
        }
        let origins: usize = sources
            .iter()
            .map(|source| source.claim.lineage.origins.as_slice().len())
            .sum();
        if origins > MAX_ORIGINS {
            return Err(FirewallError::BadClaim(format!(
                "a claim goes back to at most {MAX_ORIGINS} observations, this one to {origins}"
            )));
        }
        let predicate = predicate(derivation.subject, derivation.relation, derivation.object)?;
        // For a harness that takes `Lineage` out: what is derived stands for itself, as good as the best
        // of its sources.
        let best = sources
            .iter()
            .map(|source| source.claim.lineage.quality())
            .max();
        let lineage = match best.filter(|_| !self.keys.rigour().keeps(Defence::Lineage)) {
            Some(best) => Lineage::of_observation(observation.id, best),
            None => lineage(observation, &sources),
        };
        let quality = lineage.quality();
        let sensitivity = sources
            .iter()
            .map(|source| source.record.sensitivity)
            .fold(observation.sensitivity, |a, b| a.stricter(b));
        let mut ids = Ids::new(self.surroundings.as_mut(), now);
        let draft = Draft {
            names: Names::drawn(&mut ids),
            project: observation.project.clone(),
            claim: Claim {
                id: ids.next(ClaimId::from_parts),
                statement: said(&predicate),
                predicate,
                source_observations: NonEmpty::one(observation.id),
                extraction_method: ExtractionMethod::Llm,
                scope: derivation.scope.clone(),
                sensitivity,
                lineage,
            },
            source: EvidenceSource::Observation(observation.id),
            quality,
            group: group("agent", observation.actor.as_str()),
            freshness: EvidenceFreshness::Fresh,
            class: class("derived"),
            authority: BeliefAuthority::Inferred,
            observed_at: observation.captured_at,
        };
        self.adopt(observation.id, None, vec![draft], now, recorder)
    }

    fn sources(&mut self, ids: &[BeliefId]) -> Result<Vec<StoredBelief>, FirewallError> {
        let mut sources = Vec::with_capacity(ids.len());
        for &id in ids {
            match self.look_up(id)? {
                Some((belief, Standing::Genuine)) => sources.push(belief),
                Some(_) => return Err(FirewallError::NotGenuine(id)),
                None => return Err(FirewallError::UnknownBelief(id)),
            }
        }
        Ok(sources)
    }
}

/// All origins of all sources, and the agent's own word among them.
fn lineage(observation: &Observation, sources: &[StoredBelief]) -> Lineage {
    let quality = match observation.trust {
        ObservationTrust::Raw | ObservationTrust::Validated => EvidenceQuality::ModelInference,
        ObservationTrust::Synthetic => EvidenceQuality::SyntheticProbe,
    };
    let own = Origin {
        observation: observation.id,
        quality,
    };
    let mut lineage = match sources {
        [] => Lineage::of_observation(observation.id, quality),
        [first, others @ ..] => {
            let others: Vec<_> = others.iter().map(|source| &source.claim).collect();
            Lineage::derived(&first.claim, &others)
        }
    };
    if !lineage.origins.as_slice().contains(&own) {
        lineage.origins.push(own);
    }
    lineage
}
