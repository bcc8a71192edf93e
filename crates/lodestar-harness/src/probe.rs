//! A probe: a header, and a scenario that plays on a stage.

use std::fmt;
use std::sync::Arc;

use crate::header::Header;
use crate::stage::Stage;

/// Why a scenario did not end as it must.
///
/// Any error converts into [`Failed`](Self::Failed): only what a scenario itself finds out is a breach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The attack succeeded.
    Breached(String),
    /// Something that it needs is not here.
    Skipped(String),
    /// The scenario could not be played, so that nothing is known.
    Failed(String),
}

impl<E: std::error::Error> From<E> for Broken {
    fn from(problem: E) -> Self {
        let mut text = problem.to_string();
        let mut source = problem.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self::Failed(text)
    }
}

/// What came of playing a scenario.
pub type Outcome<T = ()> = Result<T, Broken>;

/// What the probe asserts: if it is not so, the attack succeeded.
pub fn hold<M: Into<String>>(is_so: bool, otherwise: impl FnOnce() -> M) -> Outcome {
    match is_so {
        true => Ok(()),
        false => Err(Broken::Breached(otherwise().into())),
    }
}

/// What the scenario rests on, with and without the defence: if it is not so, nothing was shown.
pub fn settle<M: Into<String>>(is_so: bool, otherwise: impl FnOnce() -> M) -> Outcome {
    match is_so {
        true => Ok(()),
        false => Err(Broken::Failed(otherwise().into())),
    }
}

/// Something is missing on this machine.
pub fn skip<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Broken::Skipped(reason.into()))
}

type Scenario = dyn Fn(&Stage) -> Outcome + Send + Sync;

/// One adversarial scenario.
#[derive(Clone)]
pub struct Probe {
    /// What it says of itself.
    pub header: Header,
    scenario: Arc<Scenario>,
}

impl Probe {
    /// A scenario under its header.
    pub fn new(
        header: Header,
        scenario: impl Fn(&Stage) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        Self {
            header,
            scenario: Arc::new(scenario),
        }
    }

    /// Plays it.
    pub fn play(&self, stage: &Stage) -> Outcome {
        (self.scenario)(stage)
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// A probe that comes with the program. Every field but the last two is needed: a probe says what it shows
/// and what it does not.
macro_rules! probe {
    (
        name: $name:literal,
        pack: $pack:ident,
        section: $section:ident,
        scenario: $scenario:expr,
        asserts: $asserts:expr,
        does_not_claim: $not:expr,
        class: $class:literal,
        defence: $defence:ident,
        $(needs: $needs:ident,)?
        $(deadline_s: $deadline:literal,)?
        run: $run:expr $(,)?
    ) => {
        $crate::probe::Probe::new(
            $crate::header::Header {
                name: ::std::borrow::Cow::Borrowed($name),
                pack: $crate::header::Pack::$pack,
                section: $crate::header::Section::$section,
                scenario: ::std::borrow::Cow::Borrowed($scenario),
                asserts: ::std::borrow::Cow::Borrowed($asserts),
                does_not_claim: ::std::borrow::Cow::Borrowed($not),
                class: $crate::class::AttackClass::parse($class)
                    .expect("INVARIANT: a test reads the class of every probe"),
                defence: ::lodestar_core::defence::Defence::$defence,
                needs: {
                    let _needs = $crate::header::Needs::Nothing;
                    $(let _needs = $crate::header::Needs::$needs;)?
                    _needs
                },
                deadline: {
                    let _seconds = $crate::stage::DEADLINE_S;
                    $(let _seconds = $deadline;)?
                    ::std::time::Duration::from_secs(_seconds)
                },
            },
            $run,
        )
    };
}
pub(crate) use probe;
