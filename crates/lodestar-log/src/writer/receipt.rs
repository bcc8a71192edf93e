//! What an append gives back: the event's place, and a way to wait for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use lodestar_core::digest::Digest;
use lodestar_core::time::Timestamp;

use super::commit::Shared;
use crate::error::Stopped;

/// How safe an event has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// It and all before it are on disk.
    Disk,
    /// And a signed checkpoint on disk covers it.
    Checkpoint,
}

/// An appended event.
#[derive(Debug, Clone)]
pub struct Receipt {
    pub(super) shared: Arc<Shared>,
    pub(super) seq: u64,
    pub(super) leaf: Digest,
    pub(super) time: Timestamp,
}

impl Receipt {
    /// Its sequence number.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Its leaf hash.
    pub fn leaf_hash(&self) -> Digest {
        self.leaf
    }

    /// The time in its head.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Blocks until the event is as safe as asked.
    pub fn wait(&self, barrier: Barrier) -> Result<(), Stopped> {
        self.shared.wait(self.seq, barrier)
    }

    /// Resolves when the event is on disk.
    pub fn durable(&self) -> Reached {
        self.reached(Barrier::Disk)
    }

    /// Resolves when the event is as safe as asked.
    pub fn reached(&self, barrier: Barrier) -> Reached {
        Reached {
            shared: Arc::clone(&self.shared),
            seq: self.seq,
            barrier,
        }
    }
}

/// A future that needs no particular runtime.
#[derive(Debug)]
#[must_use = "nothing waits until the future is polled"]
pub struct Reached {
    shared: Arc<Shared>,
    seq: u64,
    barrier: Barrier,
}

impl Reached {
    /// Of the last event so far: whatever is safe is so with all before it.
    pub(super) fn so_far(shared: &Arc<Shared>, barrier: Barrier) -> Self {
        let (size, _) = shared.head();
        Self {
            shared: Arc::clone(shared),
            seq: size.saturating_sub(1),
            barrier,
        }
    }
}

impl Future for Reached {
    type Output = Result<(), Stopped>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.shared.poll(self.seq, self.barrier, cx.waker())
    }
}
