//! The kinds of statements and the payload types that tell them apart.

use std::fmt;

/// What a signed statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementKind {
    /// A person approves one action.
    Approval,
    /// Somebody confirms that an effect is wanted or took place.
    Confirmation,
    /// A policy is put into force.
    Policy,
    /// A belief is raised to a higher standing.
    Promotion,
    /// An operator states a fact.
    Assertion,
    /// Payloads are taken out of a log.
    Redaction,
    /// A tool's definition was looked at.
    ToolReview,
    /// A pack of probes is published.
    Pack,
    /// A device answers a challenge.
    ChallengeResponse,
    /// A device or run is alive.
    Heartbeat,
    /// The owner of a device orders something.
    OwnerOrder,
    /// A key is replaced by another.
    KeyRotation,
    /// What a run consisted of.
    RunBundle,
    /// What a gateway said of a run.
    RunGrade,
    /// An in-toto attestation.
    Attestation,
}

impl StatementKind {
    /// Every kind.
    pub const ALL: [Self; 15] = [
        Self::Approval,
        Self::Confirmation,
        Self::Policy,
        Self::Promotion,
        Self::Assertion,
        Self::Redaction,
        Self::ToolReview,
        Self::Pack,
        Self::ChallengeResponse,
        Self::Heartbeat,
        Self::OwnerOrder,
        Self::KeyRotation,
        Self::RunBundle,
        Self::RunGrade,
        Self::Attestation,
    ];

    /// The DSSE payload type, which the signature covers.
    pub const fn payload_type(self) -> &'static str {
        match self {
            Self::Approval => "application/vnd.lodestar.approval.v1+json",
            Self::Confirmation => "application/vnd.lodestar.confirmation.v1+json",
            Self::Policy => "application/vnd.lodestar.policy.v1+json",
            Self::Promotion => "application/vnd.lodestar.promotion.v1+json",
            Self::Assertion => "application/vnd.lodestar.assertion.v1+json",
            Self::Redaction => "application/vnd.lodestar.redaction.v1+json",
            Self::ToolReview => "application/vnd.lodestar.tool-review.v1+json",
            Self::Pack => "application/vnd.lodestar.pack.v1+json",
            Self::ChallengeResponse => "application/vnd.lodestar.challenge-response.v1+json",
            Self::Heartbeat => "application/vnd.lodestar.heartbeat.v1+json",
            Self::OwnerOrder => "application/vnd.lodestar.owner-order.v1+json",
            Self::KeyRotation => "application/vnd.lodestar.key-rotation.v1+json",
            Self::RunBundle => "application/vnd.lodestar.run-bundle.v1+json",
            Self::RunGrade => "application/vnd.lodestar.run-grade.v1+json",
            Self::Attestation => "application/vnd.in-toto+json",
        }
    }

    /// The kind with this payload type.
    pub fn from_payload_type(payload_type: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.payload_type() == payload_type)
    }

    /// The name used in text: `approval`, `tool-review`, …
    pub fn name(self) -> &'static str {
        self.payload_type()
            .strip_prefix("application/vnd.lodestar.")
            .and_then(|rest| rest.strip_suffix(".v1+json"))
            .unwrap_or("attestation")
    }
}

impl fmt::Display for StatementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
