//! Telling a running call to stop.

use std::sync::Arc;

use tokio::sync::watch;

/// A switch that is thrown once; whoever has a clone of it sees that it was.
#[derive(Debug, Clone)]
pub struct Stop {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Stop {
    /// A switch that nobody has thrown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Throws it.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// Whether it was thrown.
    pub fn is_stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Resolves when it is thrown.
    pub async fn stopped(&self) {
        // The sender is alive as long as `self` is, so waiting cannot fail.
        let _ = self.sender.subscribe().wait_for(|stopped| *stopped).await;
    }
}
