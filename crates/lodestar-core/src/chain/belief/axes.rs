//! The four axes of a belief. They are independent: a belief can be supported, and hidden, and stale.

use serde::{Deserialize, Serialize};

use crate::name::words;

words! {
    /// What the evidence says.
    pub enum Truth: "truth" {
        /// Nothing that counts speaks for it, or not enough.
        Unverified = "unverified",
        /// Direct evidence carries it.
        Supported = "supported",
        /// It turned out wrong.
        Contradicted = "contradicted",
        /// Something newer took its place.
        Superseded = "superseded",
    }
}

words! {
    /// Into which contexts it may go.
    pub enum Retrieval: "retrieval" {
        /// Into none, for now.
        Hidden = "hidden",
        /// Into none by default; it can be asked for.
        Restricted = "restricted",
        /// Into the planner's default context.
        Normal = "normal",
        /// Into audits only.
        PrivilegedOnly = "privileged_only",
        /// Into none.
        Blocked = "blocked",
    }
}

words! {
    /// Whether it is an attack.
    pub enum Security: "security" {
        /// Nothing points to it.
        Clean = "clean",
        /// Something does.
        Suspicious = "suspicious",
        /// Set apart.
        Quarantined = "quarantined",
        /// It is.
        Malicious = "malicious",
    }
}

words! {
    /// How old it is, for what it says.
    pub enum Freshness: "freshness" {
        /// Recent enough.
        Fresh = "fresh",
        /// Due to be looked at again.
        Stale = "stale",
        /// Too old to use.
        Expired = "expired",
    }
}

/// Where a belief stands on each axis: one of 240 states.
///
/// Plain data; writing one down makes no belief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Axes {
    /// What the evidence says.
    pub truth: Truth,
    /// Into which contexts it may go.
    pub retrieval: Retrieval,
    /// Whether it is an attack.
    pub security: Security,
    /// How old it is.
    pub freshness: Freshness,
}
