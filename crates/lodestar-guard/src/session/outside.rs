//! People outside of the process: they are told through channels, and what comes back is heard.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use lodestar_core::id::RequestId;
use lodestar_core::ladder::Rung;
use lodestar_kernel::record::Proposal;
use lodestar_kernel::step::Step;
use lodestar_kernel::stop::Stop;
use lodestar_log::{AppendError, Barrier};
use lodestar_policy::{Closing, Heard, Standing};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Inner, Session};
use crate::channel::{Announcement, Channel, ChannelError, Delivered, Notice};
use crate::error::GuardError;
use crate::recover::Ended;

/// How long a session that is closed waits for channels that are being told something.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a channel that failed is left alone.
pub(super) const REST: Duration = Duration::from_secs(1);

impl Session {
    /// Tells people of a request, or that more of them have agreed.
    pub(super) async fn announce(&self, request: RequestId) {
        let channels = self.inner.holds.channels();
        if channels.is_empty() {
            return;
        }
        let announcement = {
            let (mut office, now) = (self.office(), self.now());
            let requests = office.desk.requests();
            let Some(hearing) = requests.get(request) else {
                return;
            };
            if let Some(Standing::Over(_)) = requests.standing(request) {
                return;
            }
            Announcement {
                project: hearing.request().project.clone(),
                request: hearing.request().clone(),
                granted_by: hearing.granted_by(now).into_iter().cloned().collect(),
                missing: hearing.missing(now),
            }
        };
        for channel in channels {
            self.note(channel.announce(&announcement).await);
        }
        self.inner.kernel.steps().made(Step::Announced);
        // It may have ended, and been withdrawn, while it was announced.
        let standing = self.office().desk.requests().standing(request);
        if let Some(Standing::Over(closing)) = standing {
            self.withdraw(request, closing).await;
        }
    }

    /// Tells people of every request that is open: of a session that goes on.
    pub(super) async fn announce_open(&self) {
        let open: Vec<RequestId> = {
            let mut office = self.office();
            let live = office.desk.requests().live();
            live.map(|hearing| hearing.request().id).collect()
        };
        for request in open {
            self.announce(request).await;
        }
    }

    /// Tells people that a request is over.
    pub(super) async fn withdraw(&self, request: RequestId, closing: Closing) {
        for channel in self.inner.holds.channels() {
            self.note(channel.withdraw(request, closing).await);
        }
    }

    /// Tells people of requests that ended with their sessions.
    pub(super) async fn clear_away(&self, ended: &[Ended]) {
        for one in ended {
            for channel in self.inner.holds.channels() {
                let told = channel.clear_away(&one.session, one.request, one.closing);
                self.note(told.await);
            }
        }
    }

    /// Tells people of something that ran. Nobody waits for that.
    pub(super) fn tell(&self, notice: Notice) {
        for channel in self.inner.holds.channels() {
            let (session, channel, notice) = (self.clone(), Arc::clone(channel), notice.clone());
            tokio::spawn(async move { session.note(channel.notify(&notice).await) });
        }
    }

    /// Tells people of an action that ran without being held, if they are to know.
    pub(super) fn tell_of(&self, proposal: &Proposal) {
        let action = &proposal.action;
        if action.contract.required_level < Rung::L3 || self.inner.holds.channels().is_empty() {
            return;
        }
        self.tell(Notice {
            session: self.id().clone(),
            at: self.now(),
            what: proposal.in_words(),
        });
    }

    /// The last thing that was wrong with a channel.
    pub fn channel_problem(&self) -> Option<String> {
        let problem = self.inner.channel_problem.lock();
        problem.ok().and_then(|problem| problem.clone())
    }

    pub(super) fn note(&self, done: Result<(), ChannelError>) {
        if let Err(problem) = done
            && let Ok(mut last) = self.inner.channel_problem.lock()
        {
            *last = Some(problem.to_string());
        }
    }

    /// What was delivered is dealt with to the end; nothing more is.
    pub(super) async fn stop_listening(&self) {
        self.inner.deaf.stop();
        let listeners = {
            let listeners = self.inner.listeners.lock();
            std::mem::take(&mut *listeners.unwrap_or_else(PoisonError::into_inner))
        };
        let over = Instant::now() + PATIENCE;
        for mut listener in listeners {
            if tokio::time::timeout_at(over, &mut listener).await.is_err() {
                listener.abort();
            }
        }
    }

    /// Starts to listen to every channel; it ends with the session.
    pub(super) fn listen(&self) {
        for channel in self.inner.holds.channels() {
            let deaf = self.inner.deaf.clone();
            let listening = listen(Arc::downgrade(&self.inner), Arc::clone(channel), deaf);
            self.keep(tokio::spawn(listening));
        }
        self.listen_for_confirmations();
    }

    /// A listener that is waited for when the session is closed.
    pub(super) fn keep(&self, listener: JoinHandle<()>) {
        let listeners = self.inner.listeners.lock();
        let mut listeners = listeners.unwrap_or_else(PoisonError::into_inner);
        listeners.push(listener);
    }

    async fn take_delivery(
        &self,
        channel: &dyn Channel,
        delivered: &Delivered,
    ) -> Result<(), GuardError> {
        let request = delivered.request;
        let heard = self.hear(request, &delivered.bytes)?;
        // The channel forgets it now, and then only the log remembers.
        let settled = self.inner.log.settled(Barrier::Disk).await;
        settled.map_err(AppendError::from)?;
        self.note(channel.recorded(delivered).await);
        match heard {
            Heard::Counted { .. } | Heard::Granted => self.announce(request).await,
            Heard::Denied(_) => self.withdraw(request, Closing::Denied).await,
            Heard::Refused(_) => {}
        }
        Ok(())
    }
}

async fn listen(session: Weak<Inner>, channel: Arc<dyn Channel>, deaf: Stop) {
    loop {
        let delivered = tokio::select! {
            biased;
            () = deaf.stopped() => return,
            delivered = channel.next() => delivered,
        };
        match delivered {
            Ok(delivered) => {
                let Some(inner) = session.upgrade() else {
                    return;
                };
                let session = Session { inner };
                // A log that takes nothing any more ends the session, and with it this.
                if session
                    .take_delivery(channel.as_ref(), &delivered)
                    .await
                    .is_err()
                {
                    return;
                }
            }
            Err(problem) => {
                let Some(inner) = session.upgrade() else {
                    return;
                };
                Session { inner }.note(Err(problem));
                tokio::select! {
                    () = deaf.stopped() => return,
                    () = tokio::time::sleep(REST) => {}
                }
            }
        }
    }
}
