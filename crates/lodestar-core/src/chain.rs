//! The epistemic chain: observation → claim → evidence → belief → decision → action → outcome → revision.
//!
//! Each link is a type of its own with an id of its own, and names its parents. All of them are plain
//! data that serde reads and writes, but one: a [`Belief`] is made only by [`Belief::adopt`], which
//! computes its truth from the evidence; what a disk holds of it is a [`BeliefRecord`]. How the axes
//! of a belief may move afterwards is settled, as data, in [`transition`].

mod action;
pub mod belief;
mod claim;
mod confidence;
mod decision;
mod evidence;
mod non_empty;
mod observation;
mod outcome;
mod revision;
pub mod transition;

pub use action::{Action, ActionState};
pub use belief::{
    Adoption, AdoptionRefused, Axes, Belief, BeliefAuthority, BeliefRecord, Freshness, Retrieval,
    Rigour, Security, Truth,
};
pub use claim::{Claim, ExtractionMethod, Lineage, Origin, Predicate};
pub use confidence::{Confidence, ConfidenceError};
pub use decision::{Choice, ChoiceError, Decision, DecisionOrigin};
pub use evidence::{
    Directness, EvidenceFreshness, EvidenceItem, EvidenceQuality, EvidenceRelation, EvidenceSet,
    EvidenceSource,
};
pub use non_empty::{EmptyList, NonEmpty};
pub use observation::{ContentBlock, Observation, ObservationTrust};
pub use outcome::{Outcome, OutcomeResult};
pub use revision::{Change, LinkRef, Revision, RevisionCause, UnknownLink};

#[cfg(test)]
pub(crate) mod samples;
