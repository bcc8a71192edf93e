//! Servers elsewhere, over Streamable HTTP: every message is a request of its own, answers come as JSON or
//! as events, and what the server says on its own account comes over a stream that is asked for.

mod exchange;
mod outgoing;
mod sse;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::in_headers::Annotated;
use crate::members::Members;
use crate::offer::MAX_ENTRIES;
use crate::peer::{NoAnswer, Peer, Said};
use crate::wire::Message;
use exchange::{Exchange, Unanswered};
use outgoing::Outgoing;
pub(crate) use outgoing::{METHOD, NAME, about, decoded};
use sse::Events;

/// The headers of the protocol.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Both forms of an answer.
const BOTH: &str = "application/json, text/event-stream";

/// Longest id of a session that is taken.
const MAX_SESSION: usize = 1024;

/// How long a server may take to take note of something: messages behind it wait.
const TELLING: Duration = Duration::from_secs(30);

/// How long leaving may take.
const LEAVING: Duration = Duration::from_secs(2);

/// How long a stream may take to end behind its answer, so that its connection can be used again.
const REST: Duration = Duration::from_millis(100);

/// How often it is looked whether anybody still waits for an answer.
const LOOK: Duration = Duration::from_secs(1);

/// The pause before a stream is asked for again, where the server names none; and the bounds of what it names.
const PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often in a row a stream may fail before the connection counts as broken.
const TRIES: u32 = 5;

/// A server elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    exchange: Exchange,
    limit: usize,
    agreed: Mutex<Agreed>,
    /// What tools want to have in headers, where there is no handshake.
    annotated: Mutex<HashMap<String, Vec<Annotated>>>,
}

/// What the handshake came to.
#[derive(Debug, Clone, Default)]
struct Agreed {
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

/// Where goes what the server says.
#[derive(Debug, Clone)]
struct To {
    peer: Peer,
    heard: mpsc::Sender<Said>,
    over: mpsc::Sender<String>,
}

/// How a stream of events ended.
#[derive(Debug, Default)]
struct Ended {
    last: Option<HeaderValue>,
    retry: Option<Duration>,
    /// It was read to its end, and its connection can be used again.
    is_whole: bool,
}

/// What an answer is written in.
enum Form {
    Json,
    Events,
    Other,
}

impl Remote {
    /// A server at this address; nothing goes there yet.
    pub(crate) fn new(
        url: &str,
        headers_env: &BTreeMap<String, String>,
        limit: usize,
    ) -> Result<Self, String> {
        Ok(Self {
            inner: Arc::new(Inner {
                exchange: Exchange::new(url, headers_env)?,
                limit,
                agreed: Mutex::default(),
                annotated: Mutex::default(),
            }),
        })
    }

    /// Sends what is written and gives what comes to the peer, until the connection cannot go on; says why.
    pub(crate) async fn run(
        self,
        mut written: mpsc::Receiver<Vec<u8>>,
        peer: Peer,
        heard: mpsc::Sender<Said>,
    ) -> String {
        let (over, mut ended) = mpsc::channel(1);
        let to = To { peer, heard, over };
        // Dropped with this future: whoever closes the connection ends what still runs.
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                Some(why) = ended.recv() => return why,
                Some(_) = running.join_next() => {}
                message = written.recv() => {
                    let Some(message) = message else {
                        return "nobody has anything to say to it".to_owned();
                    };
                    let outgoing = Outgoing::of(&message);
                    let inner = Arc::clone(&self.inner);
                    match outgoing.id {
                        Some(id) => {
                            running.spawn(inner.ask(id, outgoing, message, to.clone()));
                        }
                        // In their order: a server knows that it is greeted before it is asked.
                        None => {
                            let greeted = outgoing.is("notifications/initialized");
                            inner.tell(&outgoing, message, &to).await;
                            if greeted {
                                running.spawn(inner.listen(to.clone()));
                            }
                        }
                    }
                }
            }
        }
    }

    /// Ends the session at the server, if there is one.
    pub(crate) async fn leave(&self) {
        let headers = self.inner.agreed();
        if headers.iter().all(|(name, _)| *name != SESSION) {
            return;
        }
        let left = self
            .inner
            .exchange
            .send(Method::DELETE, &headers, Vec::new());
        let _ = tokio::time::timeout(LEAVING, left).await;
    }
}

impl Inner {
    /// Sends a request and gives its answer to whoever waits for it, or the reason why there is none.
    async fn ask(self: Arc<Self>, id: u64, outgoing: Outgoing, message: Vec<u8>, to: To) {
        tokio::select! {
            answered = self.post(id, &outgoing, message, &to) => {
                let why = match answered {
                    Ok(()) => NoAnswer::Gone("it ended its answer before there was one".to_owned()),
                    Err(why) => why,
                };
                to.peer.fail(id, why);
            }
            // Closing the connection tells the server.
            () = unwanted(&to.peer, id) => {}
        }
    }

    async fn post(
        &self,
        id: u64,
        outgoing: &Outgoing,
        message: Vec<u8>,
        to: &To,
    ) -> Result<(), NoAnswer> {
        let headers = self.headers(outgoing);
        let sent = self.exchange.send(Method::POST, &headers, message);
        let (response, sender) = sent.await.map_err(no_answer)?.into_parts();
        let (status, form) = (response.status(), form(response.headers()));
        if outgoing.is("initialize") && status.is_success() {
            self.lock().session = session(response.headers());
        }
        match form {
            // Errors of the protocol may come with a status of their own.
            Form::Json if status.is_success() || status.is_client_error() => {
                let body = self.body(response.into_body()).await?;
                self.exchange.keep(sender);
                let answers = Message::read(&body).is_ok_and(|message| is_answer(&message, id));
                if !answers && !status.is_success() {
                    return Err(self.refused(status, to).await);
                }
                self.note(outgoing, &body);
                to.take(&body).await;
                Ok(())
            }
            Form::Events if status == StatusCode::OK => {
                let is_whole = self.answers(id, outgoing, response.into_body(), to).await?;
                if is_whole {
                    self.exchange.keep(sender);
                }
                Ok(())
            }
            _ if status.is_success() => Err(NoAnswer::Unreadable(format!(
                "it answers {status}, and neither with JSON nor with events"
            ))),
            _ => Err(self.refused(status, to).await),
        }
    }

    /// Takes events until the answer is there; a stream that breaks off is taken up again where the server
    /// said how. Says whether the first one was read to its end.
    async fn answers(
        &self,
        id: u64,
        outgoing: &Outgoing,
        body: Incoming,
        to: &To,
    ) -> Result<bool, NoAnswer> {
        let mut ended = self.events(body, Some((id, outgoing)), to).await?;
        let is_whole = ended.is_whole;
        for _ in 0..TRIES {
            let (true, Some(last)) = (to.peer.is_waiting(id), &ended.last) else {
                return Ok(is_whole);
            };
            tokio::time::sleep(pause(ended.retry)).await;
            let mut headers = self.agreed();
            headers.push((ACCEPT, HeaderValue::from_static("text/event-stream")));
            headers.push((LAST_EVENT, last.clone()));
            let sent = self.exchange.send(Method::GET, &headers, Vec::new()).await;
            let Ok(answering) = sent else { continue };
            let response = answering.into_parts().0;
            let again = match (response.status(), form(response.headers())) {
                (StatusCode::OK, Form::Events) => {
                    let body = response.into_body();
                    self.events(body, Some((id, outgoing)), to).await?
                }
                (status, _) => {
                    return Err(NoAnswer::Gone(format!(
                        "its answer broke off, and it does not take it up again ({status})"
                    )));
                }
            };
            ended = Ended {
                last: again.last.or(ended.last),
                retry: again.retry.or(ended.retry),
                is_whole: false,
            };
        }
        Ok(is_whole)
    }

    /// Takes events until there are no more, or the answer is there.
    async fn events(
        &self,
        mut body: Incoming,
        asked: Option<(u64, &Outgoing)>,
        to: &To,
    ) -> Result<Ended, NoAnswer> {
        let mut events = Events::new(self.limit);
        let mut ended = Ended::default();
        loop {
            let frame = match body.frame().await {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => break,
                None => {
                    ended.is_whole = true;
                    break;
                }
            };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            let taken = events.take(data).map_err(|_| self.too_large())?;
            for event in taken {
                if let Some(last) = event.id {
                    ended.last = HeaderValue::from_str(&last).ok();
                }
                if let Some(retry) = event.retry {
                    ended.retry = Some(Duration::from_millis(retry));
                }
                if event.data.is_empty() {
                    continue;
                }
                if let Some((_, outgoing)) = asked {
                    self.note(outgoing, &event.data);
                }
                to.take(&event.data).await;
            }
            if asked.is_some_and(|(id, _)| !to.peer.is_waiting(id)) {
                let rest = tokio::time::timeout(REST, body.frame()).await;
                ended.is_whole = matches!(rest, Ok(None));
                break;
            }
        }
        Ok(ended)
    }

    /// Says something that wants no answer.
    async fn tell(&self, outgoing: &Outgoing, message: Vec<u8>, to: &To) {
        let headers = self.headers(outgoing);
        let sent = self.exchange.send(Method::POST, &headers, message);
        let Ok(Ok(answering)) = tokio::time::timeout(TELLING, sent).await else {
            // Whoever is gone need not hear it; who is asked next will be missed.
            return;
        };
        let (response, sender) = answering.into_parts();
        let status = response.status();
        let emptied = tokio::time::timeout(TELLING, self.body(response.into_body())).await;
        if matches!(emptied, Ok(Ok(_))) {
            self.exchange.keep(sender);
        }
        if !status.is_success() {
            self.refused(status, to).await;
        }
    }

    /// Listens to what the server says on its own account, if it offers that.
    async fn listen(self: Arc<Self>, to: To) {
        let mut last: Option<HeaderValue> = None;
        let mut failures = 0;
        loop {
            let mut headers = self.agreed();
            headers.push((ACCEPT, HeaderValue::from_static("text/event-stream")));
            headers.extend(last.clone().map(|last| (LAST_EVENT, last)));
            let sent = self.exchange.send(Method::GET, &headers, Vec::new()).await;
            let retry = match sent {
                Err(Unanswered::NotSent(why) | Unanswered::Gone(why)) => {
                    failures += 1;
                    if failures >= TRIES {
                        let _ = to.over.try_send(format!("its stream broke off: {why}"));
                        return;
                    }
                    None
                }
                Ok(answering) => {
                    let response = answering.into_parts().0;
                    match (response.status(), form(response.headers())) {
                        (StatusCode::OK, Form::Events) => {
                            failures = 0;
                            let events = self.events(response.into_body(), None, &to);
                            match events.await {
                                Ok(ended) => {
                                    last = ended.last.or(last);
                                    ended.retry
                                }
                                Err(why) => {
                                    let _ = to.over.try_send(why.to_string());
                                    return;
                                }
                            }
                        }
                        (status, _) => {
                            if status == StatusCode::NOT_FOUND {
                                self.refused(status, &to).await;
                            }
                            // It has nothing to say, and that is its right.
                            return;
                        }
                    }
                }
            };
            tokio::time::sleep(pause(retry)).await;
        }
    }

    /// All of a body, if it is not too large.
    async fn body(&self, mut body: Incoming) -> Result<Vec<u8>, NoAnswer> {
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|problem| NoAnswer::Gone(self.exchange.broken(&problem)))?;
            let Some(data) = frame.data_ref() else {
                continue;
            };
            if read.len() + data.len() > self.limit {
                return Err(self.too_large());
            }
            read.extend_from_slice(data);
        }
        Ok(read)
    }

    fn too_large(&self) -> NoAnswer {
        let limit = self.limit;
        NoAnswer::Unreadable(format!("it takes more than the limit of {limit} bytes"))
    }

    /// What a status means. A session that the server does not know any more ends the connection.
    async fn refused(&self, status: StatusCode, to: &To) -> NoAnswer {
        let place = self.exchange.place();
        let why = match status {
            StatusCode::NOT_FOUND if self.lock().session.is_some() => {
                self.lock().session = None;
                let why = "it does not know the session any more (404)".to_owned();
                let _ = to.over.try_send(why.clone());
                why
            }
            StatusCode::UNAUTHORIZED => format!(
                "`{place}` wants to know who asks (401); name a header with the credentials in `headers_env`"
            ),
            StatusCode::FORBIDDEN => {
                format!("`{place}` does not let us in (403); look at the values of `headers_env`")
            }
            _ if status.is_redirection() => format!(
                "`{place}` sends us elsewhere ({status}), which is not followed; write the address it means as `url`"
            ),
            _ if status.is_server_error() => format!("`{place}` has a problem ({status})"),
            _ => format!("`{place}` refuses the request ({status})"),
        };
        NoAnswer::Gone(why)
    }

    /// What an answer says of how the next requests are sent.
    fn note(&self, outgoing: &Outgoing, message: &[u8]) {
        if outgoing.is("initialize") {
            self.note_revision(message);
        } else if outgoing.is("tools/list") && outgoing.speaks_for_itself() {
            self.note_annotated(message);
        }
    }

    fn note_annotated(&self, message: &[u8]) {
        let Ok(Message::Answer { result, .. }) = Message::read(message) else {
            return;
        };
        let listed: Value = serde_json::from_str(result.get()).unwrap_or_default();
        note_listed(&mut self.annotated(), &listed);
    }

    fn annotated(&self) -> MutexGuard<'_, HashMap<String, Vec<Annotated>>> {
        let annotated = self.annotated.lock();
        annotated.unwrap_or_else(PoisonError::into_inner)
    }

    fn note_revision(&self, message: &[u8]) {
        if let Ok(Message::Answer { result, .. }) = Message::read(message)
            && let Ok(members) = Members::of(result)
            && let Some(revision) = members.text("protocolVersion")
        {
            self.lock().revision = HeaderValue::from_str(&revision).ok();
        }
    }

    /// The headers of a message that goes out.
    fn headers(&self, outgoing: &Outgoing) -> Vec<(HeaderName, HeaderValue)> {
        // What speaks for itself belongs to no session, whatever was tried before.
        let mut headers = match outgoing.speaks_for_itself() {
            true => {
                let annotated = self.annotated();
                let wanted = outgoing.tool().and_then(|tool| annotated.get(tool));
                outgoing.headers(wanted.map_or(&[], Vec::as_slice))
            }
            false => self.agreed(),
        };
        headers.push((ACCEPT, HeaderValue::from_static(BOTH)));
        headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
        headers
    }

    fn agreed(&self) -> Vec<(HeaderName, HeaderValue)> {
        let Agreed { session, revision } = self.lock().clone();
        let session = session.map(|session| (SESSION, session));
        let revision = revision.map(|revision| (REVISION, revision));
        session.into_iter().chain(revision).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Agreed> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl To {
    /// Takes one message; whoever says much waits until it is heard.
    async fn take(&self, message: &[u8]) {
        if let Some(said) = self.peer.take(message) {
            let _ = self.heard.send(said).await;
        }
    }
}

/// What tools of a list want to have in headers; a tool that wants nothing any more has no place.
fn note_listed(annotated: &mut HashMap<String, Vec<Annotated>>, listed: &Value) {
    for tool in listed["tools"].as_array().into_iter().flatten() {
        let Some(name) = tool["name"].as_str() else {
            continue;
        };
        let wanted = Annotated::of(&tool["inputSchema"]);
        if wanted.is_empty() {
            annotated.remove(name);
        } else if annotated.len() < MAX_ENTRIES || annotated.contains_key(name) {
            annotated.insert(name.to_owned(), wanted);
        }
    }
}

fn no_answer(unanswered: Unanswered) -> NoAnswer {
    match unanswered {
        Unanswered::NotSent(why) => NoAnswer::NotSent(why),
        Unanswered::Gone(why) => NoAnswer::Gone(why),
    }
}

fn is_answer(message: &Message<'_>, asked: u64) -> bool {
    match message {
        Message::Answer { id, .. } | Message::Failure { id: Some(id), .. } => {
            id.text() == asked.to_string()
        }
        _ => false,
    }
}

fn form(headers: &HeaderMap) -> Form {
    let form = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let form = form.unwrap_or_default().split(';').next();
    let form = form.unwrap_or_default().trim();
    if form.eq_ignore_ascii_case("application/json") {
        Form::Json
    } else if form.eq_ignore_ascii_case("text/event-stream") {
        Form::Events
    } else {
        Form::Other
    }
}

fn session(headers: &HeaderMap) -> Option<HeaderValue> {
    let id = headers.get(SESSION)?;
    let text = id.to_str().ok()?;
    let fits = (1..=MAX_SESSION).contains(&text.len());
    (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| id.clone())
}

fn pause(named: Option<Duration>) -> Duration {
    named.unwrap_or(PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// Resolves when nobody waits for an answer any more.
async fn unwanted(peer: &Peer, id: u64) {
    while peer.is_waiting(id) {
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(names: impl Iterator<Item = String>, schema: &Value) -> Value {
        let tools = names.map(|name| json!({"name": name, "inputSchema": schema}));
        json!({"tools": tools.collect::<Vec<_>>()})
    }

    #[test]
    fn what_tools_want_in_headers_is_forgotten_with_the_wish_and_has_a_limit() {
        let wanting = json!({"type": "object", "properties": {
            "place": {"type": "string", "x-mcp-header": "Place"},
        }});
        let mut annotated = HashMap::new();
        let one = || std::iter::once("one".to_owned());
        note_listed(&mut annotated, &listed(one(), &wanting));
        assert!(annotated.contains_key("one"));
        note_listed(&mut annotated, &listed(one(), &json!({"type": "object"})));
        assert!(annotated.is_empty());
        let many = (0..MAX_ENTRIES + 5).map(|number| format!("tool {number}"));
        note_listed(&mut annotated, &listed(many, &wanting));
        assert_eq!(annotated.len(), MAX_ENTRIES);
    }
}
