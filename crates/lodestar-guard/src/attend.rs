//! Whoever makes sessions runs of a gateway: asked before one opens, told when it is open and when it is over.
//!
//! The session does not depend on it. What the attendant cannot do it says to whoever runs it, and the log is
//! written all the same.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use lodestar_kernel::opening::RunTicket;
use lodestar_log::SessionDir;

/// Something that an attendant does.
pub type Attending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes sessions runs.
pub trait Attendant: fmt::Debug + Send + Sync {
    /// A session is about to be opened: registers a run for it. Without a ticket the session is none, and the
    /// attendant has said why.
    fn register(&self) -> Attending<'_, Option<RunTicket>>;

    /// The session is open, here.
    fn opened(&self, ticket: RunTicket, dir: &SessionDir);

    /// It is over, and its log is closed.
    fn closed(&self, ticket: RunTicket) -> Attending<'_, ()>;
}
