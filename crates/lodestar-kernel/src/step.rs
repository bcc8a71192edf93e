//! The steps of an action, for tests that stop the process between any two of them.

use std::fmt;
use std::sync::Arc;

/// What has just happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The decision that is carried out is in the log.
    Decided,
    /// The proposal is in the log.
    Proposed,
    /// The verdict is in the log.
    Judged,
    /// The request to people is on disk.
    Asked,
    /// People were told of the request.
    Announced,
    /// A confirmation that lay there is in the log as it came.
    Found,
    /// A confirmation is spent, and the log does not say so yet.
    Spent,
    /// The log says that a confirmation is spent.
    Consumed,
    /// What somebody said to the request is in the log.
    Heard,
    /// Enough people agreed, and this call has their leave.
    Permitted,
    /// The preconditions were measured again.
    MeasuredAgain,
    /// The log says that the action does not run although it had leave; it makes no further step.
    Rejected,
    /// The clearance is in the log, perhaps not yet on disk.
    Cleared,
    /// The clearance is as safe as it has to be.
    Durable,
    /// The tool returned.
    Returned,
    /// What it returned is in the log.
    Observed,
    /// What is believed of it is in the log.
    Believed,
    /// The outcome is in the log.
    Finished,
}

impl Step {
    /// Those of every action, in their order.
    pub const ALL: [Self; 10] = [
        Self::Decided,
        Self::Proposed,
        Self::Judged,
        Self::MeasuredAgain,
        Self::Cleared,
        Self::Durable,
        Self::Returned,
        Self::Observed,
        Self::Believed,
        Self::Finished,
    ];

    /// Those that an action makes besides when it is held, in their order.
    pub const OF_HOLDS: [Self; 7] = [
        Self::Asked,
        Self::Announced,
        Self::Found,
        Self::Spent,
        Self::Consumed,
        Self::Heard,
        Self::Permitted,
    ];
}

/// Told of every step. It sees, and can change nothing.
#[derive(Clone, Default)]
pub struct Steps(Option<Arc<dyn Fn(Step) + Send + Sync>>);

impl Steps {
    /// Tells this.
    pub fn tell(watcher: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(watcher)))
    }

    /// A step was made.
    pub fn made(&self, step: Step) {
        if let Some(watcher) = &self.0 {
            watcher(step);
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steps")
    }
}
