//! The HTTP channel: people elsewhere are asked through a server that the operator names.
//!
//! ```text
//! PUT    v1/<project>/<session>/requests/<request>   an announcement
//! DELETE v1/<project>/<session>/requests/<request>   it is over
//! POST   v1/<project>/<session>/notices              something ran without being held
//! GET    v1/<project>/<session>/answers              waits for a signed answer, and brings one
//! DELETE v1/<project>/<session>/answers/<answer>     it is in the log, and need not come again
//! ```
//!
//! Nobody trusts the server. It learns what the operator's ceiling lets leave; what it brings counts only
//! if it is signed; and however slow, wrong or rude it is, nobody waits for it longer than a moment:
//! announcements go out behind the session's back, and answers are waited for by one task of their own.

mod answer;
mod line;
mod outbox;
mod outward;
mod pace;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_kernel::native::http::client::{Client, ClientConfig};
use lodestar_kernel::native::net::resolve::SystemResolver;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use answer::{AnswerId, Brought, NotAnAnswer};
pub use outward::{Limit, Told, ToldNotice, Withheld};

use super::{
    Announcement, Channel, ChannelError, Closing, Delivered, Doing, Notice, lock, remember, serve,
};
use crate::config::Config;
use line::{Line, NotDone};
use outbox::{Letter, Outbox, Receipt};
use outward::Outward;
use pace::{Errors, Pace};

/// How long a call waits until the server has heard of something. It goes on without that.
const PATIENCE: Duration = Duration::from_secs(2);

/// The session's side of a server through which people elsewhere are asked.
///
/// It serves the session whose request or notice it is told first.
pub struct HttpChannel {
    shared: Arc<Shared>,
    limit: Limit,
    /// The requests that can be answered: while there are none, nobody is asked for answers.
    open: watch::Sender<BTreeSet<RequestId>>,
    /// Those that are over, the latest last. No late announcement opens one again.
    over: Mutex<VecDeque<RequestId>>,
    taken: Mutex<VecDeque<Taken>>,
    pace: Mutex<Pace>,
    carrier: OnceLock<AbortHandle>,
}

/// What the carrier and the channel have in common.
#[derive(Debug)]
struct Shared {
    line: Line,
    session: OnceLock<SessionId>,
    outbox: Outbox,
    /// The server answered something.
    reached: Notify,
}

/// An answer that was handed on.
#[derive(Debug)]
struct Taken {
    id: AnswerId,
    request: RequestId,
    digest: Digest,
}

impl std::fmt::Debug for HttpChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpChannel")
            .field("line", &self.shared.line)
            .finish_non_exhaustive()
    }
}

impl HttpChannel {
    /// The channel of a configuration, if it names a server; the token is read now, from the environment.
    pub fn configured(config: &Config) -> Result<Option<Self>, ChannelError> {
        let Some(http) = &config.approvals.http else {
            return Ok(None);
        };
        let client = ClientConfig {
            url: http.url.clone(),
            token_env: http.token_env.clone(),
            ca_file: http.ca_file.clone(),
            connect_timeout_ms: http.connect_timeout_ms,
        };
        let client = Client::new(client, Arc::new(SystemResolver)).map_err(unusable)?;
        let line = Line {
            client,
            project: config.project_id.clone(),
            timeout: http.timeout,
            wait: http.wait,
        };
        Ok(Some(Self {
            shared: Arc::new(Shared {
                line,
                session: OnceLock::new(),
                outbox: Outbox::default(),
                reached: Notify::new(),
            }),
            limit: Limit {
                ceiling: http.ceiling,
                session: config.default_sensitivity,
            },
            open: watch::Sender::default(),
            over: Mutex::default(),
            taken: Mutex::default(),
            pace: Mutex::default(),
            carrier: OnceLock::new(),
        }))
    }

    fn serve(&self, session: &SessionId) -> Result<(), ChannelError> {
        let served = serve(&self.shared.session, session);
        served.map(|_| ()).map_err(unusable)
    }

    /// Has something brought to the server.
    fn post(&self, letter: Letter) -> Result<Receipt, ChannelError> {
        self.carrier.get_or_init(|| {
            let carrying = carry(Arc::clone(&self.shared));
            tokio::spawn(carrying).abort_handle()
        });
        self.shared.outbox.put(letter).map_err(unusable)
    }

    /// Waits a little until it is there.
    async fn arrived(&self, receipt: Receipt) -> Result<(), ChannelError> {
        match tokio::time::timeout(PATIENCE, receipt).await {
            Ok(Ok(came)) => came.map_err(unusable),
            // A later word on the same thing is on its way.
            Ok(Err(_)) => Ok(()),
            Err(_) => {
                let problem = format!(
                    "the server did not answer within {} ms; it is told as soon as it does",
                    PATIENCE.as_millis()
                );
                self.shared.outbox.is_slow(problem.clone());
                Err(unusable(problem))
            }
        }
    }

    /// Opens a request and announces it, unless it is over: then a late announcement says nothing new.
    fn opened(&self, id: RequestId, text: Outward) -> Result<Option<Receipt>, ChannelError> {
        let over = lock(&self.over);
        if over.contains(&id) {
            return Ok(None);
        }
        self.open.send_if_modified(|open| open.insert(id));
        self.post(Letter::Announce(id, text)).map(Some)
    }

    /// Ends a request. Whatever is said of it from now on comes after this.
    fn ended(&self, id: RequestId, closing: Closing) -> Result<Option<Receipt>, ChannelError> {
        let mut over = lock(&self.over);
        remember(&mut over, id);
        self.open.send_if_modified(|open| open.remove(&id));
        if self.shared.session.get().is_none() {
            return Ok(None);
        }
        self.post(Letter::Withdraw(id, closing)).map(Some)
    }

    async fn wait(&self) -> Result<Delivered, String> {
        let mut open = self.open.subscribe();
        loop {
            let not_before = lock(&self.pace).not_before();
            if let Some(then) = not_before {
                tokio::time::sleep_until(then).await;
            }
            // INVARIANT: the sender is `self`.
            let _ = open.wait_for(|open| !open.is_empty()).await;
            let Some(session) = self.shared.session.get() else {
                return Err("it was told of a request without a session".into());
            };
            let asked = Instant::now();
            let fetched = tokio::select! {
                fetched = self.shared.line.fetch(session) => fetched,
                _ = open.wait_for(BTreeSet::is_empty) => continue,
            };
            let mut pace = lock(&self.pace);
            match fetched {
                Ok(None) => {
                    self.shared.reached.notify_one();
                    pace.nothing(asked);
                }
                Ok(Some(brought)) => {
                    self.shared.reached.notify_one();
                    if let Some(delivered) = self.take(brought) {
                        pace.answer(Instant::now());
                        return Ok(delivered);
                    }
                    pace.error(Instant::now());
                    return Err("it brought an answer again that was consumed already".into());
                }
                Err(problem) => {
                    pace.error(Instant::now());
                    return Err(problem);
                }
            }
        }
    }

    /// Hands an answer on, unless that was done: then the server is told once more that it is consumed.
    fn take(&self, brought: Brought) -> Option<Delivered> {
        let Brought { id, request, bytes } = brought;
        let delivered = Delivered::of(request, bytes);
        let digest = sha256(&delivered.bytes);
        let mut taken = lock(&self.taken);
        let is_known = taken
            .iter()
            .any(|known| known.request == request && known.digest == digest);
        if is_known {
            // Nobody waits for it.
            let _ = self.shared.outbox.put(Letter::Consume(id));
            return None;
        }
        let it = Taken {
            id,
            request,
            digest,
        };
        remember(&mut taken, it);
        Some(delivered)
    }
}

impl Drop for HttpChannel {
    fn drop(&mut self) {
        if let Some(carrier) = self.carrier.get() {
            carrier.abort();
        }
    }
}

/// Brings one thing after another to the server, as long as the channel is there.
async fn carry(shared: Arc<Shared>) {
    let mut errors = Errors::default();
    loop {
        let sending = shared.outbox.first().await;
        let other = sending.letter.other_session();
        let Some(session) = other.or_else(|| shared.session.get()) else {
            let problem = "it was told of something without a session";
            shared.outbox.done(sending, Err(problem.into()));
            continue;
        };
        match shared.line.send(session, &sending.letter).await {
            Ok(()) => {
                errors.over();
                shared.outbox.done(sending, Ok(()));
            }
            Err(NotDone::Ever(problem)) => {
                errors.over();
                shared.outbox.done(sending, Err(problem));
            }
            Err(NotDone::Yet(problem)) => {
                shared.outbox.failed(&sending, problem);
                let rest = tokio::time::sleep(errors.one_more());
                tokio::select! {
                    () = rest => {}
                    () = shared.reached.notified() => {}
                }
            }
        }
    }
}

impl Channel for HttpChannel {
    fn announce<'a>(&'a self, announcement: &'a Announcement) -> Doing<'a, ()> {
        Box::pin(async move {
            let request = &announcement.request;
            self.serve(&request.session)?;
            let text = Outward::request(announcement, self.limit).map_err(unusable)?;
            match self.opened(request.id, text)? {
                Some(receipt) => self.arrived(receipt).await,
                None => Ok(()),
            }
        })
    }

    fn withdraw<'a>(&'a self, request: RequestId, closing: Closing) -> Doing<'a, ()> {
        Box::pin(async move {
            match self.ended(request, closing)? {
                Some(receipt) => self.arrived(receipt).await,
                None => Ok(()),
            }
        })
    }

    fn clear_away<'a>(
        &'a self,
        session: &'a SessionId,
        request: RequestId,
        closing: Closing,
    ) -> Doing<'a, ()> {
        Box::pin(async move {
            // Nobody waits for it: it is brought when there is time.
            let letter = Letter::ClearAway(session.clone(), request, closing);
            self.post(letter).map(|_| ())
        })
    }

    fn notify<'a>(&'a self, notice: &'a Notice) -> Doing<'a, ()> {
        Box::pin(async move {
            self.serve(&notice.session)?;
            let text = Outward::notice(notice, self.limit).map_err(unusable)?;
            let receipt = self.post(Letter::Notice(text))?;
            self.arrived(receipt).await
        })
    }

    fn next(&self) -> Doing<'_, Delivered> {
        Box::pin(async move { self.wait().await.map_err(unusable) })
    }

    fn is_at_hand(&self) -> bool {
        false
    }

    fn recorded<'a>(&'a self, delivered: &'a Delivered) -> Doing<'a, ()> {
        Box::pin(async move {
            let digest = sha256(&delivered.bytes);
            let id = {
                let taken = lock(&self.taken);
                let mut known = taken.iter();
                let it = known.find(|it| it.request == delivered.request && it.digest == digest);
                it.map(|it| it.id.clone())
            };
            match id {
                Some(id) => self.arrived(self.post(Letter::Consume(id))?).await,
                None => Ok(()),
            }
        })
    }
}

fn unusable(problem: impl ToString) -> ChannelError {
    ChannelError {
        channel: "HTTP channel",
        problem: problem.to_string(),
    }
}
