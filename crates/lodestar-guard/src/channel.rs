//! Channels: the ways by which people outside of this process are asked, and answer.
//!
//! No channel is trusted. What it delivers is bytes, which count only if they are a statement that
//! somebody in the operator's registry signed for exactly the request that is open; what it is told is
//! only what people need to see. It cannot run anything, and it never writes the log.

pub mod drop;
pub mod http;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lodestar_core::id::RequestId;
use lodestar_core::name::{ActorId, ProjectId, SessionId};
use lodestar_core::time::Timestamp;
use lodestar_policy::ApprovalRequest;
pub use lodestar_policy::Closing;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::Config;

/// What people are told of an open request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Announcement {
    /// The project whose session waits.
    pub project: ProjectId,
    /// The request, with its card: what an answer is signed for.
    pub request: ApprovalRequest,
    /// Who has said yes so far. This is news, and nobody signs for it: what passes it on can change it.
    #[serde(default)]
    pub granted_by: Vec<ActorId>,
    /// How many people are missing still. News, too.
    pub missing: u32,
}

/// What people are told of an action that ran without being held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The session.
    pub session: SessionId,
    /// When.
    pub at: Timestamp,
    /// In words, inert.
    pub what: String,
}

/// Something that came in. Nobody has looked at it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The request that it says it answers.
    pub request: RequestId,
    /// What was sent, as it came, at most [`MAX_DELIVERED`] bytes of it.
    pub bytes: Vec<u8>,
}

/// Most that one answer may take; a longer one is cut there, and therefore refused.
pub const MAX_DELIVERED: usize = 64 << 10;

/// The last byte of an answer that was cut. It stands in no statement: without it, one that was only
/// followed by blanks would be whole again.
const CUT: u8 = 0;

impl Delivered {
    /// Something that came in, cut where it is too long. Of what came, one byte more than
    /// [`MAX_DELIVERED`] is enough.
    pub fn of(request: RequestId, mut bytes: Vec<u8>) -> Self {
        if bytes.len() > MAX_DELIVERED {
            bytes.truncate(MAX_DELIVERED - 1);
            bytes.push(CUT);
        }
        Self { request, bytes }
    }
}

/// Why a channel is of no use at the moment.
#[derive(Debug, Error)]
#[error("the {channel} cannot be used: {problem}")]
pub struct ChannelError {
    /// Which, as people call it.
    pub channel: &'static str,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// The channels of a configuration: the drop directory, and the server that it names.
pub fn configured(config: &Config) -> Result<Vec<Arc<dyn Channel>>, ChannelError> {
    let mut channels: Vec<Arc<dyn Channel>> =
        vec![Arc::new(drop::DropDirectory::below(config.root()))];
    if let Some(channel) = http::HttpChannel::configured(config)? {
        channels.push(Arc::new(channel));
    }
    Ok(channels)
}

/// Something that a channel does, and may fail at.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, ChannelError>> + Send + 'a>>;

/// A way by which people are asked and answer.
///
/// One session uses it at a time: announcements may come from several calls at once, [`next`](Self::next)
/// is waited for by one task. An error of `announce`, `withdraw` or `notify` is told and changes nothing;
/// after one of `next` the session waits a little before it asks again.
pub trait Channel: Send + Sync {
    /// Tells people of a request, or that more of them have agreed.
    fn announce<'a>(&'a self, announcement: &'a Announcement) -> Doing<'a, ()>;

    /// Tells them that a request is over.
    fn withdraw<'a>(&'a self, request: RequestId, closing: Closing) -> Doing<'a, ()>;

    /// Tells them that a request of another session, one that is over for good, is over too.
    fn clear_away<'a>(
        &'a self,
        session: &'a SessionId,
        request: RequestId,
        closing: Closing,
    ) -> Doing<'a, ()>;

    /// Tells them of something that ran.
    fn notify<'a>(&'a self, notice: &'a Notice) -> Doing<'a, ()>;

    /// Waits until something comes in, without looking again and again. Dropping the future loses
    /// nothing.
    fn next(&self) -> Doing<'_, Delivered>;

    /// Whether what came already is at hand: [`next`](Self::next) gives it as soon as it is asked. One that
    /// has to ask elsewhere says no, and is not interrupted while it does.
    fn is_at_hand(&self) -> bool;

    /// Tells the channel that what it delivered is in the log, whatever came of it: it need not be
    /// delivered again.
    fn recorded<'a>(&'a self, delivered: &'a Delivered) -> Doing<'a, ()>;
}

/// The session that a channel serves: the first one that it is told of.
fn serve<'a>(
    served: &'a OnceLock<SessionId>,
    session: &SessionId,
) -> Result<&'a SessionId, String> {
    let served = served.get_or_init(|| session.clone());
    match served == session {
        true => Ok(served),
        false => Err(format!(
            "it serves session `{served}` already; give session `{session}` one of its own"
        )),
    }
}

/// Most things of a kind that a channel remembers: more than are ever on their way at once.
const MOST_REMEMBERED: usize = 4096;

fn remember<T>(things: &mut VecDeque<T>, thing: T) {
    if things.len() == MOST_REMEMBERED {
        things.pop_front();
    }
    things.push_back(thing);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_no_json_any_more_whatever_it_was() {
        let request = RequestId::from_parts(1, [0; 10]);
        for (length, is_whole) in [(MAX_DELIVERED, true), (MAX_DELIVERED + 1, false)] {
            let mut bytes = b"{}".to_vec();
            bytes.resize(length, b' ');
            let delivered = Delivered::of(request, bytes);
            assert_eq!(delivered.bytes.len(), MAX_DELIVERED);
            let read = serde_json::from_slice::<serde_json::Value>(&delivered.bytes);
            assert_eq!(read.is_ok(), is_whole);
        }
    }
}
