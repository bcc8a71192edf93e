//! A connection to one server: requests go out under numbers of one's own, and each answer finds its call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lodestar_core::name::Excerpt;
use lodestar_kernel::tool::Progress;
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};

use crate::lines::{Line, Lines, TooLong};
use crate::members::Members;
use crate::streams::Outbox;
use crate::wire::{self, IdKey, Message};

/// What a server answered.
#[derive(Debug)]
pub(crate) enum Answered {
    /// A result.
    Result(Box<RawValue>),
    /// An error of the protocol.
    Error(Box<RawValue>),
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum NoAnswer {
    /// It did not go out.
    #[error("the server is not there: {0}")]
    NotSent(String),
    /// It went out, and the connection ended before an answer.
    #[error("the server ended before it answered: {0}")]
    Gone(String),
    /// What came cannot be read as an answer.
    #[error("the server's answer cannot be taken: {0}")]
    Unreadable(String),
}

/// What a server says on its own account.
#[derive(Debug)]
pub(crate) enum Said {
    /// It wants an answer.
    Request {
        /// Its id, as it was written.
        id: Box<str>,
        /// What it wants.
        method: Box<str>,
        /// With what.
        params: Option<Box<RawValue>>,
    },
    /// It wants none.
    Notification {
        /// What happened.
        method: Box<str>,
        /// With what.
        params: Option<Box<RawValue>>,
    },
    /// Bytes that are no message, inert and bounded.
    Noise(String),
}

/// What the server says on its own account, in its order, until it is gone.
pub(crate) type Hearing = mpsc::Receiver<Said>;

/// A handle on a connection. Clones are the same connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    out: Outbox,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    /// What every request says of itself, where there is no handshake.
    meta: OnceLock<Box<str>>,
}

#[derive(Debug, Default)]
struct Waiting {
    calls: HashMap<u64, Waiter>,
    /// Why there is nobody any more who could answer.
    gone: Option<String>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Result<Answered, NoAnswer>>,
    progress: Option<Arc<dyn Progress>>,
}

/// A request that is out. Dropping it forgets it; what is answered later finds nobody.
#[derive(Debug)]
pub(crate) struct Asked {
    peer: Peer,
    id: u64,
    answer: oneshot::Receiver<Result<Answered, NoAnswer>>,
}

/// What a server says at once on its own account, before somebody has to listen.
const UNHEARD: usize = 64;

impl Peer {
    /// A connection that writes to this outbox.
    pub(crate) fn new(out: Outbox) -> Self {
        Self {
            inner: Arc::new(Inner {
                out,
                next: AtomicU64::new(1),
                waiting: Mutex::default(),
                meta: OnceLock::new(),
            }),
        }
    }

    /// From now on every request says this of itself.
    pub(crate) fn speaks_for_itself(&self, meta: Box<str>) {
        let _ = self.inner.meta.set(meta);
    }

    /// Asks something. With a progress sink, the request says under which token to report.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: Option<&RawValue>,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<Asked, NoAnswer> {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if let Some(why) = &waiting.gone {
                return Err(NoAnswer::NotSent(why.clone()));
            }
            let waiter = Waiter {
                answer: sender,
                progress: progress.clone(),
            };
            waiting.calls.insert(id, waiter);
        }
        let asked = Asked {
            peer: self.clone(),
            id,
            answer,
        };
        let own = self
            .inner
            .meta
            .get()
            .map(|meta| crate::inline::with_meta(params, meta));
        let params = own.as_deref().or(params);
        let mut message = Vec::with_capacity(params.map_or(64, |params| params.get().len() + 96));
        match progress {
            None => wire::request(&mut message, id, method, params),
            Some(_) => {
                let params = with_token(params, id);
                wire::request(&mut message, id, method, Some(&params));
            }
        }
        match self.inner.out.put(message).await {
            Ok(()) => Ok(asked),
            Err(_) => Err(NoAnswer::NotSent("its input is closed".to_owned())),
        }
    }

    /// Tells something.
    pub(crate) async fn tell(&self, method: &str, params: Option<&RawValue>) {
        let mut message = Vec::new();
        wire::notification(&mut message, method, params);
        // Whoever is gone need not hear it.
        let _ = self.inner.out.put(message).await;
    }

    /// Tells something, if there is room: nobody waits for a server that does not read.
    pub(crate) fn tell_if_room(&self, method: &str, params: Option<&RawValue>) {
        let mut message = Vec::new();
        wire::notification(&mut message, method, params);
        self.inner.out.offer(message);
    }

    /// Answers something that the server asked; the id as it wrote it.
    pub(crate) async fn answer(&self, id: &str, answered: &Answered) {
        let mut message = Vec::new();
        match answered {
            Answered::Result(result) => wire::answer(&mut message, id, result.get()),
            Answered::Error(error) => wire::error(&mut message, id, error.get()),
        }
        let _ = self.inner.out.put(message).await;
    }

    /// Answers that it does not do what the server asked.
    pub(crate) async fn decline(&self, id: &str, code: i64, why: &str) {
        let mut message = Vec::new();
        wire::failure(&mut message, Some(id), code, why);
        let _ = self.inner.out.put(message).await;
    }

    /// Nobody answers any more: every call ends, and no new one begins.
    pub(crate) fn end(&self, why: &str) {
        let mut waiting = self.waiting();
        waiting.gone.get_or_insert_with(|| why.to_owned());
        for (_, waiter) in waiting.calls.drain() {
            let _ = waiter.answer.send(Err(NoAnswer::Gone(why.to_owned())));
        }
    }

    /// Ends one call without an answer.
    pub(crate) fn fail(&self, id: u64, why: NoAnswer) {
        if let Some(waiter) = self.waiting().calls.remove(&id) {
            let _ = waiter.answer.send(Err(why));
        }
    }

    /// Whether a call still has no answer, and somebody who wants it.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.waiting().calls.contains_key(&id)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        let waiting = self.inner.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what comes until the stream ends; gives the reason.
    pub(crate) async fn read(
        &self,
        from: impl AsyncRead + Unpin,
        limit: usize,
        heard: mpsc::Sender<Said>,
    ) -> String {
        let mut lines = Lines::new(from, limit);
        loop {
            let said = match lines.next().await {
                Ok(Some(Line::Whole(line))) => self.take(line),
                Ok(Some(Line::TooLong(gone))) => Some(self.too_long(&gone, limit)),
                Ok(None) => return "its output is closed".to_owned(),
                Err(problem) => return format!("its output cannot be read: {problem}"),
            };
            // Back-pressure: who floods waits for itself alone.
            if let Some(said) = said
                && heard.send(said).await.is_err()
            {
                return "nobody listens".to_owned();
            }
        }
    }

    /// Takes one message; gives what is not an answer.
    pub(crate) fn take(&self, line: &[u8]) -> Option<Said> {
        match Message::read(line) {
            Ok(Message::Answer { id, result }) => {
                self.answered(&id.key(), Ok(Answered::Result(result.to_owned())))
            }
            Ok(Message::Failure {
                id: Some(id),
                error,
            }) => self.answered(&id.key(), Ok(Answered::Error(error.to_owned()))),
            Ok(Message::Failure { id: None, .. }) => Some(noise(line)),
            Ok(Message::Request { id, method, params }) => Some(Said::Request {
                id: id.text().into(),
                method: method.into(),
                params: params.map(ToOwned::to_owned),
            }),
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/progress" && self.reported(params) {
                    return None;
                }
                Some(Said::Notification {
                    method: method.into(),
                    params: params.map(ToOwned::to_owned),
                })
            }
            Err(refused) => {
                let id = refused.id.map(|id| id.key()).or_else(|| guess(line, line));
                self.unreadable(id, &refused.why.to_string());
                Some(noise(line))
            }
        }
    }

    fn too_long(&self, gone: &TooLong, limit: usize) -> Said {
        let why = format!("it takes {} bytes; the limit is {limit}", gone.bytes);
        self.unreadable(guess(&gone.head, &gone.tail), &why);
        let head = String::from_utf8_lossy(&gone.head);
        Said::Noise(format!(
            "a message of {} bytes: {}",
            gone.bytes,
            Excerpt::of(&head)
        ))
    }

    /// Ends the call whose answer this seems to be. Whoever sends such things harms its own calls alone.
    fn unreadable(&self, id: Option<IdKey>, why: &str) {
        let only = {
            let waiting = self.waiting();
            match waiting.calls.len() {
                1 => waiting.calls.keys().next().copied(),
                _ => None,
            }
        };
        let only = only
            .and_then(|id| i64::try_from(id).ok())
            .map(IdKey::Number);
        if let Some(id) = id.or(only) {
            self.answered(&id, Err(NoAnswer::Unreadable(why.to_owned())));
        }
    }

    /// Gives an answer to whoever waits for it.
    fn answered(&self, id: &IdKey, answer: Result<Answered, NoAnswer>) -> Option<Said> {
        let waiter = match id {
            IdKey::Number(id) => u64::try_from(*id)
                .ok()
                .and_then(|id| self.waiting().calls.remove(&id)),
            IdKey::Text(_) => None,
        };
        match waiter {
            Some(waiter) => {
                let _ = waiter.answer.send(answer);
                None
            }
            None => Some(Said::Noise(format!(
                "an answer to nothing that was asked, id {id:?}"
            ))),
        }
    }

    /// Whether this was progress of a call that is out.
    fn reported(&self, params: Option<&RawValue>) -> bool {
        let Ok(members) = Members::of_some(params) else {
            return false;
        };
        let token = members
            .get("progressToken")
            .and_then(|raw| raw.get().parse().ok());
        let sink = token.and_then(|token: u64| {
            let waiting = self.waiting();
            waiting.calls.get(&token)?.progress.clone()
        });
        match sink {
            Some(sink) => {
                sink.made(params.map_or("{}", RawValue::get));
                true
            }
            None => false,
        }
    }

    /// A channel for what a server says on its own account.
    pub(crate) fn hearing() -> (mpsc::Sender<Said>, Hearing) {
        mpsc::channel(UNHEARD)
    }
}

impl Asked {
    /// The answer.
    pub(crate) async fn answer(&mut self) -> Result<Answered, NoAnswer> {
        let answer = (&mut self.answer).await;
        answer.unwrap_or_else(|_| Err(NoAnswer::Gone("the connection is closed".to_owned())))
    }

    /// Tells the server that nobody waits for it any more.
    pub(crate) async fn cancel(self, reason: &str) {
        let params = serde_json::json!({"requestId": self.id, "reason": reason}).to_string();
        if let Ok(params) = RawValue::from_string(params) {
            self.peer
                .tell("notifications/cancelled", Some(&params))
                .await;
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.peer.waiting().calls.remove(&self.id);
    }
}

/// The parameters, with the request's number as token of its progress.
pub(crate) fn with_token(params: Option<&RawValue>, id: u64) -> Box<RawValue> {
    let members = Members::of_some(params).unwrap_or_default();
    let meta = members.get("_meta");
    let meta = Members::of_some(meta).unwrap_or_default();
    let meta = meta.write_with(&[("progressToken", &id.to_string())]);
    let params = members.write_with(&[("_meta", &meta)]);
    RawValue::from_string(params).expect("INVARIANT: an object is written")
}

/// The id that something unreadable seems to have: before its result, or behind it.
fn guess(head: &[u8], tail: &[u8]) -> Option<IdKey> {
    const NAME: &[u8] = b"\"id\"";
    let number = |after: &[u8]| {
        let text = std::str::from_utf8(&after[..after.len().min(40)]).unwrap_or_default();
        let text = text.trim_start().strip_prefix(':')?.trim_start();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        text[..digits].parse().ok().map(IdKey::Number)
    };
    let head = &head[..head.len().min(64)];
    let first = memchr::memmem::find(head, NAME).and_then(|at| number(&head[at + NAME.len()..]));
    first.or_else(|| {
        let tail = &tail[tail.len().saturating_sub(64)..];
        memchr::memmem::rfind(tail, NAME).and_then(|at| number(&tail[at + NAME.len()..]))
    })
}

fn noise(line: &[u8]) -> Said {
    let text = String::from_utf8_lossy(&line[..line.len().min(1024)]);
    Said::Noise(Excerpt::of(&text).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_answer_is_told_apart_by_its_ends() {
        let guessed = |head: &str, tail: &str| guess(head.as_bytes(), tail.as_bytes());
        assert_eq!(
            guessed(r#"{"jsonrpc":"2.0","id": 7,"result":"#, "x"),
            Some(IdKey::Number(7))
        );
        assert_eq!(
            guessed(r#"{"result":{"#, r#"},"jsonrpc":"2.0","id":12}"#),
            Some(IdKey::Number(12))
        );
        assert_eq!(guessed("nothing", "at all"), None);
    }

    #[tokio::test]
    async fn an_answer_finds_its_call_and_a_second_one_nobody() {
        let (out, mut written) = Outbox::new();
        let peer = Peer::new(out);
        let mut first = peer.ask("a", None, None).await.unwrap();
        let mut second = peer.ask("b", None, None).await.unwrap();
        assert_eq!(
            written.recv().await.unwrap(),
            br#"{"jsonrpc":"2.0","id":1,"method":"a"}"#
        );
        assert!(
            peer.take(br#"{"jsonrpc":"2.0","id":2,"result":{"x":1.0}}"#)
                .is_none()
        );
        assert!(
            peer.take(br#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#)
                .is_none()
        );
        let Ok(Answered::Result(result)) = second.answer().await else {
            panic!("a result")
        };
        assert_eq!(result.get(), r#"{"x":1.0}"#);
        assert!(matches!(first.answer().await, Ok(Answered::Error(_))));
        let again = peer.take(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        assert!(matches!(again, Some(Said::Noise(_))));
    }

    #[tokio::test]
    async fn who_is_gone_answers_everything_and_is_asked_nothing() {
        let (out, _written) = Outbox::new();
        let peer = Peer::new(out);
        let mut asked = peer.ask("a", None, None).await.unwrap();
        peer.end("it crashed");
        assert_eq!(
            asked.answer().await.unwrap_err(),
            NoAnswer::Gone("it crashed".to_owned())
        );
        let next = peer.ask("b", None, None).await.unwrap_err();
        assert_eq!(next, NoAnswer::NotSent("it crashed".to_owned()));
    }
}
