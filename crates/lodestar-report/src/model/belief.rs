//! Beliefs and decisions.

use lodestar_core::chain::transition::AxisMove;
use lodestar_core::chain::{
    Axes, BeliefAuthority, Confidence, DecisionOrigin, Directness, EvidenceQuality, Freshness,
    Retrieval, Security, Truth,
};
use lodestar_core::id::{BeliefId, DecisionId};
use lodestar_core::name::SessionId;
use lodestar_core::sensitivity::Sensitivity;
use serde::Serialize;

use super::Events;

/// What the session came to believe.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Beliefs {
    /// How many stand where, on all four axes.
    pub tally: Vec<Tally>,
    /// All of them, in the order in which they were adopted.
    pub list: Vec<Belief>,
}

/// How many beliefs stand at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Truth.
    pub truth: Truth,
    /// Retrieval.
    pub retrieval: Retrieval,
    /// Security.
    pub security: Security,
    /// Freshness.
    pub freshness: Freshness,
    /// How many.
    pub beliefs: u64,
}

/// One belief, where it stands now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Belief {
    /// Its id.
    pub id: BeliefId,
    /// The event that adopted it.
    pub seq: u64,
    /// What is believed; none above the ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// The strength that was assigned.
    pub confidence: Confidence,
    /// On whose word.
    pub authority: BeliefAuthority,
    /// The weakest of what it goes back to.
    pub quality: EvidenceQuality,
    /// How sensitive it is.
    pub sensitivity: Sensitivity,
    /// Where it stands now.
    #[serde(flatten)]
    pub axes: Axes,
    /// The events with the observations that it came of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Events,
    /// What moved it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
}

/// One change of a belief.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The event.
    pub seq: u64,
    /// The session that it is of; none for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Along which axis.
    #[serde(flatten)]
    pub step: AxisMove,
    /// Who.
    pub authority: String,
    /// What caused it, in words.
    pub cause: String,
}

/// A decision, and what it stood on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Its id.
    pub id: DecisionId,
    /// The event that made it.
    pub seq: u64,
    /// What was asked; none above the ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// What was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// Whether somebody declared it.
    pub origin: DecisionOrigin,
    /// Who made it.
    pub made_by: String,
    /// What it stood on.
    pub rests_on: Vec<Ground>,
    /// The proposals that carry it out.
    pub actions: Events,
}

/// A belief that a decision stood on, where it stood then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ground {
    /// The belief.
    pub belief: BeliefId,
    /// The event that adopted it; none for one of another session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<u64>,
    /// Truth, then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
    /// Security, then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// Whether it goes back to something that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests_on_reading: Option<bool>,
}

impl Belief {
    /// Whether it goes back to something that was read, or only concluded.
    pub fn was_read(&self) -> bool {
        self.quality.directness() != Directness::Direct
    }
}

impl Tally {
    /// How many of these beliefs stand where, most first.
    pub fn of(beliefs: &[Belief]) -> Vec<Self> {
        let mut tally: Vec<Self> = Vec::new();
        for belief in beliefs {
            let axes = belief.axes;
            let same = |one: &&mut Self| {
                (one.truth, one.retrieval, one.security, one.freshness)
                    == (axes.truth, axes.retrieval, axes.security, axes.freshness)
            };
            match tally.iter_mut().find(same) {
                Some(one) => one.beliefs += 1,
                None => tally.push(Self {
                    truth: axes.truth,
                    retrieval: axes.retrieval,
                    security: axes.security,
                    freshness: axes.freshness,
                    beliefs: 1,
                }),
            }
        }
        tally.sort_by_key(|one| std::cmp::Reverse(one.beliefs));
        tally
    }
}
