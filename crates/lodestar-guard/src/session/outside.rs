//! People outside of the process: they are told through channels, and what comes back is heard.

use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use lodestar_core::id::RequestId;
use lodestar_core::ladder::Rung;
use lodestar_kernel::record::Proposal;
use lodestar_kernel::step::Step;
use lodestar_kernel::stop::Stop;
use lodestar_log::{AppendError, Barrier};
use lodestar_policy::{Closing, Heard, Standing};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Inner, Session};
use crate::channel::{Announcement, Channel, ChannelError, Delivered, Notice};
use crate::error::GuardError;
use crate::recover::Ended;

/// How long a session that is closed waits for channels that are being told something.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most answers that are heard before somebody goes on who asked for all of them.
const AT_ONCE: usize = 1_000;

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
            let (asks, asked) = mpsc::channel(1);
            let listener = Listener {
                session: Arc::downgrade(&self.inner),
                channel: Arc::clone(channel),
                deaf: self.inner.deaf.clone(),
                asked,
            };
            if channel.is_at_hand() {
                self.ears().push(asks);
            }
            self.keep(tokio::spawn(listener.listen()));
        }
        self.listen_for_confirmations();
    }

    fn ears(&self) -> MutexGuard<'_, Vec<mpsc::Sender<oneshot::Sender<()>>>> {
        let ears = self.inner.ears.lock();
        ears.unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears what lies in the channels already. One no ends a request however many agreed: so nobody acts
    /// on an agreement while a no lies beside it.
    pub(super) async fn hear_all(&self) {
        let ears = self.ears().clone();
        let over = Instant::now() + PATIENCE;
        for ear in ears {
            let (done, heard) = oneshot::channel();
            let hearing = async {
                // A listener that is gone has nothing to tell any more.
                if ear.send(done).await.is_ok() {
                    let _ = heard.await;
                }
            };
            let _ = tokio::time::timeout_at(over, hearing).await;
        }
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

/// Listens to one channel, as long as the session is there.
struct Listener {
    session: Weak<Inner>,
    channel: Arc<dyn Channel>,
    deaf: Stop,
    /// Who wants to know when everything that is there was heard.
    asked: mpsc::Receiver<oneshot::Sender<()>>,
}

impl Listener {
    async fn listen(mut self) {
        loop {
            let delivered = tokio::select! {
                biased;
                () = self.deaf.stopped() => return,
                Some(done) = self.asked.recv() => {
                    if self.hear_what_is_there().await.is_none() {
                        return;
                    }
                    let _ = done.send(());
                    continue;
                }
                delivered = self.channel.next() => delivered,
            };
            let failed = delivered.is_err();
            if self.take(delivered).await.is_none() {
                return;
            }
            if failed {
                tokio::select! {
                    () = self.deaf.stopped() => return,
                    () = tokio::time::sleep(REST) => {}
                }
            }
        }
    }

    /// Until the channel has nothing at hand any more; but a flood is not waited for.
    async fn hear_what_is_there(&self) -> Option<()> {
        for _ in 0..AT_ONCE {
            let at_once = tokio::time::timeout(Duration::ZERO, self.channel.next()).await;
            let Ok(Ok(delivered)) = at_once else {
                return Some(());
            };
            self.take(Ok(delivered)).await?;
        }
        Some(())
    }

    /// Nothing when the session is gone, or its log takes nothing any more, which ends it.
    async fn take(&self, delivered: Result<Delivered, ChannelError>) -> Option<()> {
        let session = Session {
            inner: self.session.upgrade()?,
        };
        match delivered {
            Ok(delivered) => {
                let taken = session.take_delivery(self.channel.as_ref(), &delivered);
                taken.await.ok()
            }
            Err(problem) => {
                session.note(Err(problem));
                Some(())
            }
        }
    }
}
