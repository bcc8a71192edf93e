//! One client over HTTP: its conversation, and the streams over which it hears.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::Response;
use lodestar_core::digest::Digest;
use lodestar_kernel::stop::Stop;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use super::body::{EventId, UNASKED, Written, events, json};
use super::resume::{Answers, Beginning};
use crate::conversation::{Called, Conversation, Settings};
use crate::streams::{Outbox, WeakOutbox};
use crate::wire::{IdKey, Message};

/// How many messages that belong to no request are kept for whoever comes back for them, and how many bytes
/// they may take.
const KEPT: usize = 256;
const KEPT_BYTES: usize = 4 << 20;

/// By what a client is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The id it was given.
    Session(String),
    /// Its token and what it says it is.
    Identity(Digest),
}

/// One client.
#[derive(Debug)]
pub(super) struct Attended {
    /// Whose it is.
    pub(super) owner: Digest,
    pub(super) key: Key,
    pub(super) conversation: Arc<Conversation>,
    agent: Outbox,
    stream: Arc<Mutex<Stream>>,
    answers: Mutex<Answers>,
    life: Mutex<Life>,
    over: watch::Sender<bool>,
    /// Its place among the clients; given back when its servers are gone.
    room: tokio::sync::Mutex<Option<OwnedSemaphorePermit>>,
}

#[derive(Debug)]
struct Life {
    busy: usize,
    used: Instant,
}

/// What belongs to no request, in its order.
#[derive(Debug, Default)]
struct Stream {
    next: u64,
    kept: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    /// Up to which message everything went out.
    given: u64,
    attached: Option<mpsc::Sender<Written>>,
    /// Answers that are being written: another way to a client that does not listen.
    answers: Vec<(u64, WeakOutbox)>,
}

/// A request is being answered.
#[derive(Debug)]
pub(super) struct Busy {
    attended: Arc<Attended>,
    answer: u64,
    /// Thrown when whoever asked is gone.
    stop: Option<Stop>,
}

/// An id that nobody guesses.
pub(super) fn random_id() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|problem| format!("no randomness: {problem}"))?;
    let mut id = String::with_capacity(32);
    for byte in bytes {
        let _ = write!(id, "{byte:02x}");
    }
    Ok(id)
}

impl Attended {
    /// Begins a conversation.
    pub(super) fn begin(
        settings: Settings,
        owner: Digest,
        key: Key,
        room: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        let (agent, mut written) = Outbox::new();
        let stream = Arc::new(Mutex::new(Stream::default()));
        let pumped = Arc::clone(&stream);
        // Always emptied: a client that does not listen holds up no server.
        tokio::spawn(async move {
            while let Some(message) = written.recv().await {
                lock(&pumped).give(message);
            }
        });
        Arc::new(Self {
            owner,
            key,
            conversation: Conversation::begin(settings, agent.clone()),
            agent,
            stream,
            answers: Mutex::default(),
            life: Mutex::new(Life {
                busy: 0,
                used: Instant::now(),
            }),
            over: watch::Sender::new(false),
            room: tokio::sync::Mutex::new(Some(room)),
        })
    }

    /// Takes a message that wants no answer.
    pub(super) async fn take(&self, message: &Bytes) {
        lock(&self.life).used = Instant::now();
        self.conversation.take(message, &self.agent).await;
    }

    /// Takes a request and gives its answer: as events that can be taken up again where the client knows how,
    /// otherwise as JSON where it is all there is to say.
    pub(super) async fn answer(self: &Arc<Self>, message: &Bytes, takes_events: bool) -> Response {
        let (back, mut written) = Outbox::new();
        let busy = self.busy(&back, None);
        // The handshake itself is before anything was agreed on.
        let resumes = takes_events && self.conversation.agent_resumes();
        self.conversation.take(message, &back).await;
        drop(back);
        let beginning = match resumes {
            true => Beginning::Named,
            false => match begun(&mut written, takes_events).await {
                Begun::Whole(message) => return json(StatusCode::OK, message),
                Begun::Part(first) => Beginning::Message(first),
            },
        };
        let stream = busy.answer;
        events(lock(&self.answers).follow(stream, beginning, written, busy))
    }

    /// Takes an answer up again, behind the event that was heard last; none where nothing of it is kept.
    pub(super) fn resume(&self, last: EventId) -> Option<mpsc::Receiver<Written>> {
        lock(&self.life).used = Instant::now();
        match last.stream {
            UNASKED => Some(self.listen(Some(last.number))),
            _ => lock(&self.answers).resume(last),
        }
    }

    /// As [`answer`](Self::answer), for a client whose ids may be those of another, and who has no other way
    /// to cancel than to go. A single message is left to whoever gives it a status.
    pub(super) async fn answer_stateless(
        self: &Arc<Self>,
        message: &Bytes,
        takes_events: bool,
    ) -> Result<Response, Vec<u8>> {
        let (back, written) = Outbox::new();
        let stop = Stop::new();
        let busy = self.busy(&back, Some(stop.clone()));
        let called = Called {
            key: Some(IdKey::Text(format!("request {}", busy.answer))),
            stop,
        };
        self.conversation.take_called(message, &back, called).await;
        drop(back);
        given(written, takes_events, busy).await
    }

    fn busy(self: &Arc<Self>, back: &Outbox, stop: Option<Stop>) -> Busy {
        lock(&self.life).busy += 1;
        let mut stream = lock(&self.stream);
        let answer = stream.next_id();
        stream.answers.push((answer, back.downgrade()));
        Busy {
            attended: Arc::clone(self),
            answer,
            stop,
        }
    }

    /// A stream of what belongs to no request: behind the message that was heard last, or what nobody heard.
    pub(super) fn listen(&self, last: Option<u64>) -> mpsc::Receiver<Written> {
        lock(&self.life).used = Instant::now();
        // Room for all that is kept, so that nothing of it is lost on the way.
        let (sender, receiver) = mpsc::channel(2 * KEPT);
        let mut stream = lock(&self.stream);
        let from = last.unwrap_or(stream.given);
        let newest = stream.kept.back().map_or(stream.given, |(id, _)| *id);
        for (id, message) in stream.kept.iter().filter(|(id, _)| *id > from) {
            let _ = sender.try_send(unasked(*id, message));
        }
        stream.given = newest.max(stream.given);
        // Whoever comes back has lost the old one, whether it is noticed here or not.
        stream.attached = Some(sender);
        receiver
    }

    /// Whether nothing was heard for so long.
    pub(super) fn is_idle(&self, limit: Duration) -> bool {
        let attached = lock(&self.stream).is_attached();
        let life = lock(&self.life);
        life.busy == 0 && !attached && life.used.elapsed() > limit
    }

    /// Resolves when it cannot go on, or has ended.
    pub(super) async fn broken(&self) {
        let mut over = self.over.subscribe();
        tokio::select! {
            _ = self.conversation.broken() => {}
            _ = over.wait_for(|over| *over) => {}
        }
    }

    /// Ends it. Who asks second waits until it is done.
    pub(super) async fn end(&self, reason: &str) {
        let mut room = self.room.lock().await;
        if room.is_none() {
            return;
        }
        self.over.send_replace(true);
        if let Err(problem) = self.conversation.close(reason).await {
            eprintln!("lodestar: {problem}");
        }
        lock(&self.stream).attached = None;
        lock(&self.answers).forget();
        room.take();
    }
}

/// How an answer begins.
enum Begun {
    /// It is one message.
    Whole(Vec<u8>),
    /// More follows, or it was cancelled.
    Part(Option<Vec<u8>>),
}

async fn begun(written: &mut mpsc::Receiver<Vec<u8>>, takes_events: bool) -> Begun {
    loop {
        match written.recv().await {
            Some(message) if is_last(&message) => return Begun::Whole(message),
            Some(message) if takes_events => return Begun::Part(Some(message)),
            Some(_) => {}
            // It was cancelled: there is no answer.
            None => return Begun::Part(None),
        }
    }
}

/// The answer: the one message that it is, or events for as long as somebody reads them.
async fn given(
    mut written: mpsc::Receiver<Vec<u8>>,
    takes_events: bool,
    busy: Busy,
) -> Result<Response, Vec<u8>> {
    let first = match begun(&mut written, takes_events).await {
        Begun::Whole(message) => return Err(message),
        Begun::Part(first) => first,
    };
    let (out, body) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut next = first;
        while let Some(message) = next {
            let is_last = is_last(&message);
            let message = Written::Message {
                id: None,
                message: message.into(),
            };
            let sent = out.send(message).await;
            if is_last || sent.is_err() {
                break;
            }
            next = tokio::select! {
                next = written.recv() => next,
                () = out.closed() => break,
            };
        }
        drop(busy);
    });
    Ok(events(body))
}

fn unasked(number: u64, message: &[u8]) -> Written {
    Written::Message {
        id: Some(EventId {
            stream: UNASKED,
            number,
        }),
        message: Bytes::copy_from_slice(message),
    }
}

/// Whether this is what a request came to.
pub(super) fn is_last(message: &[u8]) -> bool {
    matches!(
        Message::read(message),
        Ok(Message::Answer { .. } | Message::Failure { .. })
    )
}

impl Stream {
    fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn is_attached(&self) -> bool {
        self.attached
            .as_ref()
            .is_some_and(|attached| !attached.is_closed())
    }

    /// Gives a message to whoever listens, or with an answer that is being written, or keeps it.
    fn give(&mut self, message: Vec<u8>) {
        let id = self.next_id();
        if let Some(attached) = &self.attached {
            match attached.try_send(unasked(id, &message)) {
                Ok(()) => self.given = id,
                // Gone, or too slow: it comes back and says what it heard last.
                Err(_) => self.attached = None,
            }
        }
        if self.given != id {
            self.answers.retain(|(_, answer)| answer.is_open());
            let mut answers = self.answers.iter().rev();
            if answers.any(|(_, answer)| answer.offer(&message)) {
                self.given = id;
            }
        }
        self.bytes += message.len();
        self.kept.push_back((id, message));
        while self.kept.len() > KEPT || self.bytes > KEPT_BYTES {
            match self.kept.pop_front() {
                Some((_, gone)) => self.bytes -= gone.len(),
                None => break,
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(stop) = &self.stop {
            stop.stop();
        }
        let attended = &self.attended;
        {
            let mut life = lock(&attended.life);
            life.busy -= 1;
            life.used = Instant::now();
        }
        let mut stream = lock(&attended.stream);
        stream.answers.retain(|(id, _)| *id != self.answer);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
