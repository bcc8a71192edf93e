//! What whoever runs the service has to know at once: where it says so.

use std::fmt;
use std::sync::Arc;

/// Takes lines for whoever runs the service.
#[derive(Clone)]
pub struct Report(Arc<dyn Fn(&str) + Send + Sync>);

impl Report {
    /// Says it to somebody.
    pub fn to(somebody: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(somebody))
    }

    /// Says it on the error stream.
    pub fn stderr() -> Self {
        Self::to(|line| eprintln!("lodestar gateway: {line}"))
    }

    /// Says a line.
    pub fn say(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}
