//! One call on the network: how far it got, and when it has to be over.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::tool::{Call, Effect, ToolError, ToolErrorKind};

/// Whether anything that matters may have gone out.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    sent: AtomicBool,
}

impl Wire {
    /// From here on, something may have gone out.
    pub(crate) fn sending(&self) {
        self.sent.store(true, Ordering::SeqCst);
    }

    /// What can be said of the effect of a call that fails now.
    pub(crate) fn effect(&self) -> Effect {
        if self.sent.load(Ordering::SeqCst) {
            Effect::Unknown
        } else {
            Effect::None
        }
    }

    /// It did not work.
    pub(crate) fn failed(&self, message: impl Into<String>) -> ToolError {
        ToolError::failed(self.effect(), message)
    }

    /// An invariant forbids to go on.
    pub(crate) fn refused(&self, message: impl Into<String>) -> ToolError {
        ToolError {
            kind: ToolErrorKind::Refused,
            message: message.into(),
            effect: self.effect(),
        }
    }

    /// Runs the work until it is done, the call is stopped, its deadline is there, or the tool's own
    /// time cap is over. Whatever comes first, the work is dropped with its connections.
    pub(crate) async fn watch<T>(
        &self,
        call: &Call<'_>,
        cap: Duration,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let end = call.time_left().min(cap);
        tokio::select! {
            biased;
            () = call.stopped() => Err(ToolError::stopped(self.effect())),
            result = work => result,
            () = tokio::time::sleep(end) => Err(ToolError::deadline(self.effect())),
        }
    }
}
