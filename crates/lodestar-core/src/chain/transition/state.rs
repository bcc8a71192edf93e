//! A position on any of the four axes, and a move between two positions of one axis.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chain::belief::{Axes, Freshness, Retrieval, Security, Truth};
use crate::name::{UnknownWord, words};

words! {
    /// One of the four axes.
    pub enum Axis: "axis" {
        /// What the evidence says.
        Truth = "truth",
        /// Into which contexts it may go.
        Retrieval = "retrieval",
        /// Whether it is an attack.
        Security = "security",
        /// How old it is.
        Freshness = "freshness",
    }
}

/// A position on one of the axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// On truth.
    Truth(Truth),
    /// On retrieval.
    Retrieval(Retrieval),
    /// On security.
    Security(Security),
    /// On freshness.
    Freshness(Freshness),
}

impl State {
    /// All positions on an axis.
    pub fn all(axis: Axis) -> impl Iterator<Item = Self> {
        let states: Vec<Self> = match axis {
            Axis::Truth => Truth::ALL.iter().copied().map(Self::Truth).collect(),
            Axis::Retrieval => Retrieval::ALL
                .iter()
                .copied()
                .map(Self::Retrieval)
                .collect(),
            Axis::Security => Security::ALL.iter().copied().map(Self::Security).collect(),
            Axis::Freshness => Freshness::ALL
                .iter()
                .copied()
                .map(Self::Freshness)
                .collect(),
        };
        states.into_iter()
    }

    /// Reads a position on the given axis.
    pub fn parse(axis: Axis, word: &str) -> Result<Self, UnknownWord> {
        match axis {
            Axis::Truth => word.parse().map(Self::Truth),
            Axis::Retrieval => word.parse().map(Self::Retrieval),
            Axis::Security => word.parse().map(Self::Security),
            Axis::Freshness => word.parse().map(Self::Freshness),
        }
    }

    /// Which axis it is on.
    pub const fn axis(self) -> Axis {
        match self {
            Self::Truth(_) => Axis::Truth,
            Self::Retrieval(_) => Axis::Retrieval,
            Self::Security(_) => Axis::Security,
            Self::Freshness(_) => Axis::Freshness,
        }
    }

    /// The position in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Truth(state) => state.as_str(),
            Self::Retrieval(state) => state.as_str(),
            Self::Security(state) => state.as_str(),
            Self::Freshness(state) => state.as_str(),
        }
    }
}

impl From<Truth> for State {
    fn from(state: Truth) -> Self {
        Self::Truth(state)
    }
}

impl From<Retrieval> for State {
    fn from(state: Retrieval) -> Self {
        Self::Retrieval(state)
    }
}

impl From<Security> for State {
    fn from(state: Security) -> Self {
        Self::Security(state)
    }
}

impl From<Freshness> for State {
    fn from(state: Freshness) -> Self {
        Self::Freshness(state)
    }
}

impl Axes {
    /// Where it stands on one axis.
    pub const fn on(&self, axis: Axis) -> State {
        match axis {
            Axis::Truth => State::Truth(self.truth),
            Axis::Retrieval => State::Retrieval(self.retrieval),
            Axis::Security => State::Security(self.security),
            Axis::Freshness => State::Freshness(self.freshness),
        }
    }

    /// The same, but for one axis.
    pub const fn with(mut self, state: State) -> Self {
        match state {
            State::Truth(truth) => self.truth = truth,
            State::Retrieval(retrieval) => self.retrieval = retrieval,
            State::Security(security) => self.security = security,
            State::Freshness(freshness) => self.freshness = freshness,
        }
        self
    }
}

/// A move along one axis, as data: `{"axis":"truth","from":"unverified","to":"supported"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct AxisMove {
    // INVARIANT: both are on the same axis; every way in goes through `new` or `Written`.
    from: State,
    to: State,
}

impl AxisMove {
    /// A move between two positions of one axis.
    pub fn new<S: Into<State>>(from: S, to: S) -> Result<Self, StateError> {
        let (from, to) = (from.into(), to.into());
        if from.axis() == to.axis() {
            Ok(Self { from, to })
        } else {
            Err(StateError::TwoAxes(from.axis(), to.axis()))
        }
    }

    /// The axis.
    pub const fn axis(self) -> Axis {
        self.from.axis()
    }

    /// Where it starts.
    pub const fn from(self) -> State {
        self.from
    }

    /// Where it ends.
    pub const fn to(self) -> State {
        self.to
    }
}

/// Why a move makes no sense, whoever wants to make it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateError {
    /// From one axis to another.
    #[error("a move stays on one axis; this one leads from {0} to {1}")]
    TwoAxes(Axis, Axis),
    /// The axis has no such position.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
}

#[derive(Serialize, Deserialize)]
struct Written {
    axis: Axis,
    from: String,
    to: String,
}

impl TryFrom<Written> for AxisMove {
    type Error = StateError;

    fn try_from(written: Written) -> Result<Self, StateError> {
        Self::new(
            State::parse(written.axis, &written.from)?,
            State::parse(written.axis, &written.to)?,
        )
    }
}

impl From<AxisMove> for Written {
    fn from(step: AxisMove) -> Self {
        Self {
            axis: step.axis(),
            from: step.from.word().to_owned(),
            to: step.to.word().to_owned(),
        }
    }
}
