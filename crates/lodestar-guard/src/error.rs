//! Why a session cannot go on.

use lodestar_core::canonical::CanonicalError;
use lodestar_core::event::EventType;
use lodestar_core::id::{BeliefId, DecisionId};
use lodestar_core::name::LabelError;
use lodestar_firewall::FirewallError;
use lodestar_firewall::provenance::GivenFull;
use lodestar_firewall::store::StoreError;
use lodestar_log::{AppendError, OpenError};
use lodestar_replay::ReplayError;
use thiserror::Error;

/// Why a session could not be opened or go on. A call that is refused is none of these.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The log refused.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log refused an event.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The store could not follow the logs.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The firewall refused.
    #[error(transparent)]
    Firewall(#[from] FirewallError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no room for more given values.
    #[error(transparent)]
    GivenFull(#[from] GivenFull),
    /// A name that is none.
    #[error(transparent)]
    Name(LabelError),
    /// Content under a name that is Lodestar's own.
    #[error("`lodestar.assert` is what a signed statement is observed as; name another source")]
    OwnSource,
    /// A decision that this session did not make.
    #[error("decision `{0}` was not made in this session")]
    UnknownDecision(DecisionId),
    /// A belief that is gone.
    #[error("belief `{0}`, on which the decision rests, is not there any more or does not count")]
    UnknownBelief(BeliefId),
    /// Something that has no canonical form.
    #[error(transparent)]
    Canonical(CanonicalError),
    /// A card that cannot be written.
    #[error("the card cannot be written: {0}")]
    Card(serde_json::Error),
    /// An assertion that gave no belief.
    #[error("the assertion gave no belief")]
    NoBelief,
    /// A permit for another action.
    #[error("the permit is for another action")]
    OtherAction,
    /// An event that a proxy does not write.
    #[error("`{0}` is not a proxy's to write")]
    NotAProxys(EventType),
    /// A log that cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// What tools returned could not be taken in.
    #[error(
        "what tools returned earlier could not be taken in: {0}; end the session, and the next one takes it in"
    )]
    NotTakenIn(String),
    /// The system gives no further thread.
    #[error("no thread could be started for what is believed: {0}")]
    NoThread(std::io::Error),
    /// The session is closed.
    #[error("the session is over")]
    Over,
    /// A part of the session panicked.
    #[error("a part of the session panicked; the log says how far it came")]
    Panicked,
}
