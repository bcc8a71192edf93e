//! Revision: what changed on which link, why, and triggered by what.
//!
//! Links are never edited: a revision stands beside the link it is about, and the log has both.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use super::transition::AxisMove;
use crate::digest::Digest;
use crate::id::{
    ActionId, BeliefId, ClaimId, DecisionId, EvidenceSetId, IdError, ObservationId, OutcomeId,
    RevisionId,
};
use crate::name::{Excerpt, PolicyId, deserialize_str};
use crate::time::Timestamp;

/// A change to a link of the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// Its id.
    pub id: RevisionId,
    /// The link.
    pub link: LinkRef,
    /// What changed.
    pub change: Change,
    /// Why, in words.
    pub reason: String,
    /// What triggered it.
    pub cause: RevisionCause,
    /// When.
    pub made_at: Timestamp,
}

/// What changed on a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// A belief moved along an axis.
    Axis(AxisMove),
    /// Something depends on what no longer holds, and wants to be looked at.
    Flagged {
        /// What it depends on.
        depends_on: LinkRef,
    },
    /// A member of the link has another value.
    Field {
        /// The member.
        field: String,
        /// Its value before.
        before: Value,
        /// Its value now.
        after: Value,
    },
}

/// What triggered a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevisionCause {
    /// Another link: new evidence, a contradicted belief.
    Link(LinkRef),
    /// A signed statement, by the digest of its payload.
    Statement(Digest),
    /// A policy.
    Policy(PolicyId),
    /// The passing of time.
    Clock,
}

macro_rules! link_ref {
    ($($(#[$doc:meta])* $variant:ident($id:ident),)+) => {
        /// Any link of the chain, by its id; the prefix tells which.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LinkRef {
            $($(#[$doc])* $variant($id),)+
        }

        impl fmt::Display for LinkRef {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant(id) => id.fmt(f),)+
                }
            }
        }

        impl FromStr for LinkRef {
            type Err = UnknownLink;

            fn from_str(text: &str) -> Result<Self, UnknownLink> {
                match text.split_once('_').map_or(text, |(prefix, _)| prefix) {
                    $($id::PREFIX => Ok(Self::$variant(text.parse()?)),)+
                    prefix => Err(UnknownLink::Prefix(Excerpt::of(prefix))),
                }
            }
        }

        $(
            impl From<$id> for LinkRef {
                fn from(id: $id) -> Self {
                    Self::$variant(id)
                }
            }
        )+
    };
}

link_ref! {
    /// An observation.
    Observation(ObservationId),
    /// A claim.
    Claim(ClaimId),
    /// A set of evidence.
    EvidenceSet(EvidenceSetId),
    /// A belief.
    Belief(BeliefId),
    /// A decision.
    Decision(DecisionId),
    /// An action.
    Action(ActionId),
    /// An outcome.
    Outcome(OutcomeId),
    /// Another revision.
    Revision(RevisionId),
}

/// Why text names no link.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnknownLink {
    /// No link has ids of that prefix.
    #[error("no link of the chain has ids that start with `{0}`")]
    Prefix(Excerpt),
    /// The id itself is malformed.
    #[error(transparent)]
    Id(#[from] IdError),
}

impl Serialize for LinkRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LinkRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_str(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Truth, samples};
    use super::*;

    #[test]
    fn revisions_read_back() {
        let belief = BeliefId::from_parts(1, [1; 10]);
        let step = AxisMove::new(Truth::Supported, Truth::Superseded).unwrap();
        let changes = [
            Change::Axis(step),
            Change::Flagged {
                depends_on: belief.into(),
            },
            Change::Field {
                field: "scope".into(),
                before: "global".into(),
                after: "project:web".into(),
            },
        ];
        for change in changes {
            let revision = Revision {
                id: RevisionId::from_parts(1, [3; 10]),
                link: belief.into(),
                change,
                reason: "a newer measurement".into(),
                cause: RevisionCause::Link(samples::observation_id(4).into()),
                made_at: samples::at(0),
            };
            let json = serde_json::to_string(&revision).unwrap();
            assert_eq!(
                serde_json::from_str::<Revision>(&json).unwrap(),
                revision,
                "{json}"
            );
        }
    }

    #[test]
    fn a_link_is_told_by_its_prefix() {
        let id = ClaimId::from_parts(5, [5; 10]);
        assert_eq!(id.to_string().parse::<LinkRef>(), Ok(LinkRef::Claim(id)));
        let request = crate::id::RequestId::from_parts(5, [5; 10]).to_string();
        assert!(matches!(
            request.parse::<LinkRef>(),
            Err(UnknownLink::Prefix(_))
        ));
        assert!(matches!(
            "clm_x".parse::<LinkRef>(),
            Err(UnknownLink::Id(IdError::NotUuid { .. }))
        ));
    }
}
