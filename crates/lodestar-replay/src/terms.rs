//! What an owner registers before runs are made, and whether a run kept to it.
//!
//! A log carries the policy, the keys and the grades that its verdicts follow from, and whoever wrote it chose
//! them. So whoever grades a run believes none of that: [`Terms`] are what the owner registered before, and
//! [`judge`] holds a session against them, then derives it again.

mod judge;
mod reason;

pub use judge::{CLOCK_WINDOW, Judgement, Moments, judge};
pub use reason::{Part, Reason};

use std::collections::BTreeSet;

use lodestar_core::canonical::{self, CanonicalError};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::key::PublicKey;
use lodestar_core::name::Excerpt;
use lodestar_core::statement::Envelope;
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::registry::ToolRecord;
use lodestar_policy::confirmation::Confirmations;
use lodestar_policy::{
    Agent, Approvers, ArbiterRules, Gate, GateError, Policy, PolicyError, Requirement,
    SignatureState, Unsigned,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a document of terms says it is.
pub const TERMS_FORMAT: &str = "lodestar.terms/1";

/// The longest document, in bytes: a policy of the longest kind, and thousands of tools with their schemas.
pub const MAX_TERMS_LEN: usize = 8 << 20;

/// The ceilings that Lodestar has presets for.
const PRESETS: std::ops::RangeInclusive<u8> = 0..=3;

/// By what an owner's runs are judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// [`TERMS_FORMAT`].
    format: String,
    /// The policy.
    pub policy: TermsPolicy,
    /// Who may act, as policies see them.
    pub agents: Vec<Agent>,
    /// Whose approval counts.
    pub approvers: Approvers,
    /// Whose confirmations count, and for what.
    pub confirmations: Confirmations,
    /// What an approval needs where no policy says.
    pub approvals_default: Requirement,
    /// The arbiters.
    pub arbiters: ArbiterRules,
    /// The tools, as they were reviewed and graded. A run may have fewer.
    pub tools: Vec<ToolRecord>,
    /// Whose orders about beliefs and redactions count.
    pub operators: Vec<PublicKey>,
}

/// The policy of terms: nobody's word but the owner's puts one into force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TermsPolicy {
    /// One of Lodestar's own.
    Preset {
        /// Up to which rung calls run unasked.
        ceiling: u8,
    },
    /// One of the owner's.
    Signed {
        /// Its Cedar text.
        text: String,
        /// The signature that puts it into force.
        signature: Envelope,
        /// Whose signature counts.
        keys: Vec<PublicKey>,
    },
}

/// Why terms are none.
#[derive(Debug, Error)]
pub enum TermsError {
    /// Longer than [`MAX_TERMS_LEN`].
    #[error("the terms are {0} bytes long; at most {MAX_TERMS_LEN} are taken")]
    TooLong(usize),
    /// No JSON, or JSON with more than one meaning.
    #[error("the terms cannot be read: {0}")]
    Json(#[from] CanonicalError),
    /// JSON that is no terms.
    #[error("the terms cannot be read: {0}")]
    Shape(String),
    /// There is something in them that nobody reads, or something is left to be guessed.
    #[error(
        "the terms have members that are not known, or lack some that are: write them out whole"
    )]
    NotWhole,
    /// Another version's.
    #[error("this is `{0}`, not `{TERMS_FORMAT}`")]
    Format(Excerpt),
    /// The policy does not load: unreadable, or not signed by one of the terms' own keys.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Nobody signed the policy, and it is no preset.
    #[error("the policy is neither signed nor one of Lodestar's presets; sign it first")]
    Unsigned,
    /// The policy does not fit the tools.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// Nobody could act under them.
    #[error("the terms name no agent")]
    NoAgent,
    /// One name for two tools.
    #[error("the terms have two tools named `{0}`; a name means one tool")]
    SameTool(Excerpt),
}

impl Terms {
    /// The terms that a reviewed session was opened under. A policy that is no preset needs its signature, and
    /// the keys that it is to be verified with.
    pub fn of_opening(
        opening: &Opening,
        signed: Option<(Envelope, Vec<PublicKey>)>,
        operators: Vec<PublicKey>,
    ) -> Result<Self, TermsError> {
        let policy = match (signed, &opening.policy.signature) {
            (Some((signature, keys)), _) => TermsPolicy::Signed {
                text: opening.policy.text.clone(),
                signature,
                keys,
            },
            (None, SignatureState::Preset) => {
                let digest = sha256(opening.policy.text.as_bytes());
                let is_it = |ceiling: &u8| {
                    Policy::preset(*ceiling).is_ok_and(|preset| preset.digest() == digest)
                };
                let ceiling = PRESETS.into_iter().find(is_it);
                let ceiling = ceiling.ok_or(TermsError::Unsigned)?;
                TermsPolicy::Preset { ceiling }
            }
            (None, SignatureState::Signed { .. } | SignatureState::Unsigned) => {
                return Err(TermsError::Unsigned);
            }
        };
        Ok(Self {
            format: TERMS_FORMAT.to_owned(),
            policy,
            agents: vec![opening.agent.clone()],
            approvers: opening.approvers.clone(),
            confirmations: opening.confirmations.clone(),
            approvals_default: opening.approvals_default.clone(),
            arbiters: opening.arbiters.clone(),
            tools: opening.tools.clone(),
            operators,
        })
    }

    /// Reads a document. What it says is not checked yet: [`Self::check`] does.
    pub fn parse(document: &[u8]) -> Result<Self, TermsError> {
        if document.len() > MAX_TERMS_LEN {
            return Err(TermsError::TooLong(document.len()));
        }
        let value = canonical::parse(document)?;
        let whole = canonical::to_vec(&value)?;
        let terms: Self = serde_json::from_value(value)
            .map_err(|problem| TermsError::Shape(problem.to_string()))?;
        if terms.format != TERMS_FORMAT {
            return Err(TermsError::Format(Excerpt::of(&terms.format)));
        }
        // Some parts leave out or pass over what they do not know; what is registered means what it says.
        match canonical::to_vec(&terms)? == whole {
            true => Ok(terms),
            false => Err(TermsError::NotWhole),
        }
    }

    /// The document: canonical JSON.
    pub fn document(&self) -> Result<Vec<u8>, CanonicalError> {
        canonical::to_vec(self)
    }

    /// SHA-256 of the document: what an owner's order names.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Ok(sha256(&self.document()?))
    }

    /// Whether runs can be judged by them at this moment: the policy's signature verifies with the terms' own
    /// keys, it fits the tools, and somebody could act. Gives the policy.
    pub fn check(&self, now: Timestamp) -> Result<Policy, TermsError> {
        if self.agents.is_empty() {
            return Err(TermsError::NoAgent);
        }
        let mut names = BTreeSet::new();
        for name in self.tools.iter().map(|tool| &tool.shape.name) {
            if !names.insert(name) {
                return Err(TermsError::SameTool(name.shown()));
            }
        }
        let policy = self.policy.load(now)?;
        let shapes = self.tools.iter().map(|tool| tool.shape.clone());
        Gate::new(
            policy.clone(),
            shapes.collect(),
            self.arbiters.clone(),
            self.approvals_default.clone(),
        )?;
        Ok(policy)
    }
}

impl TermsPolicy {
    /// The policy as it was in force at a moment.
    fn load(&self, at: Timestamp) -> Result<Policy, PolicyError> {
        match self {
            Self::Preset { ceiling } => Policy::preset(*ceiling),
            Self::Signed {
                text,
                signature,
                keys,
            } => Policy::load(
                text.as_bytes(),
                Some(signature),
                keys,
                Unsigned::Refused,
                at,
            ),
        }
    }

    /// The policy by its digest: what a run's attestation names.
    pub fn digest(&self) -> Result<Digest, PolicyError> {
        match self {
            Self::Preset { ceiling } => Ok(Policy::preset(*ceiling)?.digest()),
            Self::Signed { text, .. } => Ok(sha256(text.as_bytes())),
        }
    }
}
