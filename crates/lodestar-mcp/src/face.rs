//! The agent's side over Streamable HTTP: whoever shows the token has a conversation of their own.
//!
//! Nothing is read of a request before its host, its origin and its token are looked at.

mod admission;
mod attended;
mod body;
mod resume;
mod stateless;
mod tokens;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lodestar_core::digest::Digest;
use lodestar_guard::config::{Http, SessionName};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::conversation::{INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, Settings};
use crate::http::{LAST_EVENT, REVISION, SESSION};
use crate::proxy::ProxyError;
use crate::wire::{self, Malformed, Message};
use admission::Admission;
use attended::{Attended, Key};
use body::{EventId, Unread, events, json, plain};
use tokens::Tokens;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";

/// Connections at the same time: clients have a handful each.
const CONNECTIONS: usize = 1024;

/// How long the head of a request may take, and how long a connection may be kept without one.
const HEAD: Duration = Duration::from_secs(30);

/// How long conversations may take to end when the proxy ends.
const CLOSING: Duration = Duration::from_secs(10);

/// The proxy over HTTP, bound to its address.
#[derive(Debug)]
pub struct HttpFace {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    settings: Settings,
    http: Http,
    tokens: Tokens,
    admission: Admission,
    attended: Mutex<HashMap<Key, Arc<Attended>>>,
    room: Arc<Semaphore>,
}

impl HttpFace {
    /// Binds an address. Without a token in the configuration, nothing is bound.
    pub async fn bind(settings: Settings, address: SocketAddr) -> Result<Self, ProxyError> {
        let Some(http) = settings.config.http.clone() else {
            return Err(ProxyError::NoToken);
        };
        if !matches!(settings.config.session_id, SessionName::Auto) {
            return Err(ProxyError::NamedSession);
        }
        let tokens = Tokens::read(&http.token, &settings.config).map_err(ProxyError::Token)?;
        let failed = |problem| ProxyError::Listen { address, problem };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Shared {
            admission: Admission::new(address, &http),
            room: Arc::new(Semaphore::new(http.max_sessions)),
            attended: Mutex::default(),
            settings,
            http,
            tokens,
        };
        Ok(Self {
            listener,
            address,
            shared: Arc::new(shared),
        })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Whether others than this machine can reach it.
    pub fn is_open(&self) -> bool {
        !self.address.ip().is_loopback()
    }

    /// Serves until told to end; then every conversation ends properly.
    pub async fn serve(self, until: impl Future<Output = &'static str>) {
        let Self {
            listener, shared, ..
        } = self;
        let router = Router::new()
            .route(PATH, any(handle))
            .with_state(Arc::clone(&shared));
        let mut connections = JoinSet::new();
        let mut look = tokio::time::interval(shared.http.idle.div_f64(4.0).min(HEAD));
        tokio::pin!(until);
        let reason = loop {
            tokio::select! {
                reason = &mut until => break reason,
                _ = look.tick() => shared.end_idle(),
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < CONNECTIONS => {
                    // Whoever could not be accepted tries again; a full table of descriptors empties.
                    let Ok((stream, _)) = accepted else {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    let _ = stream.set_nodelay(true);
                    let service = TowerToHyperService::new(router.clone());
                    let served = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEAD)
                        .serve_connection(TokioIo::new(stream), service);
                    connections.spawn(async move {
                        let _ = served.await;
                    });
                }
            }
        };
        drop(listener);
        shared.end_all(reason).await;
    }
}

/// One request.
async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(refused) = shared.admission.admit(&parts.uri, &parts.headers) {
        return plain(StatusCode::FORBIDDEN, refused.to_string());
    }
    let Some(owner) = shared.tokens.owner(&parts.headers) else {
        let mut response = plain(
            StatusCode::UNAUTHORIZED,
            "show the token: `Authorization: Bearer …`".to_owned(),
        );
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    };
    match parts.method {
        Method::POST => shared.post(owner, &parts.headers, body).await,
        Method::GET => shared.get(owner, &parts.headers),
        Method::DELETE => shared.delete(owner, &parts.headers).await,
        _ => {
            let mut response = plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "POST, GET and DELETE are spoken here".to_owned(),
            );
            let allowed = HeaderValue::from_static("POST, GET, DELETE");
            response.headers_mut().insert(header::ALLOW, allowed);
            response
        }
    }
}

impl Shared {
    /// A message of an agent's.
    async fn post(self: &Arc<Self>, owner: Digest, headers: &HeaderMap, body: Body) -> Response {
        if !body::is_json(headers) {
            let why = "write `Content-Type: application/json`".to_owned();
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
        let limit = self.settings.config.limits.message_bytes;
        let message = match body::read(body, headers, limit, self.http.body).await {
            Ok(message) => message,
            Err(Unread::TooLarge) => {
                let why = format!("a message takes at most {limit} bytes");
                return plain(StatusCode::PAYLOAD_TOO_LARGE, why);
            }
            Err(Unread::TooSlow) => {
                let why = format!("a message takes at most {} ms", self.http.body.as_millis());
                return plain(StatusCode::REQUEST_TIMEOUT, why);
            }
            Err(Unread::Broken) => {
                return plain(StatusCode::BAD_REQUEST, "the message broke off".to_owned());
            }
        };
        match Message::read(&message) {
            Err(refused) => {
                let code = match refused.why {
                    Malformed::NoJson(_) => PARSE_ERROR,
                    _ => INVALID_REQUEST,
                };
                let id = refused.id.map(|id| id.text());
                failure(StatusCode::BAD_REQUEST, id, code, &refused.why.to_string())
            }
            Ok(Message::Request { method, params, .. })
                if stateless::is_stateless(headers, &method, params) =>
            {
                self.stateless(owner, headers, &message).await
            }
            Ok(message) if !is_known(headers) => stateless::unknown_revision(headers, &message),
            Ok(Message::Request { method, .. }) => {
                let is_greeting = method == "initialize";
                self.request(owner, headers, &message, is_greeting).await
            }
            // Who has no session cancels by going, and has nothing else to say.
            Ok(_) if !headers.contains_key(SESSION) && is_inline(headers) => {
                status(StatusCode::ACCEPTED)
            }
            Ok(_) => match self.known(owner, headers) {
                Err(none) => none.response(),
                Ok(attended) => {
                    attended.take(&message).await;
                    status(StatusCode::ACCEPTED)
                }
            },
        }
    }

    async fn request(
        self: &Arc<Self>,
        owner: Digest,
        headers: &HeaderMap,
        message: &Bytes,
        is_greeting: bool,
    ) -> Response {
        if !is_greeting || headers.contains_key(SESSION) {
            return match self.known(owner, headers) {
                Ok(attended) => attended.answer(message, body::takes_events(headers)).await,
                Err(none) => none.response(),
            };
        }
        let id = match attended::random_id() {
            Ok(id) => id,
            Err(why) => return plain(StatusCode::INTERNAL_SERVER_ERROR, why),
        };
        let Some(attended) = self.begin(owner, Key::Session(id.clone())) else {
            return full();
        };
        let mut response = attended.answer(message, body::takes_events(headers)).await;
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION, id);
        }
        response
    }

    /// The stream of what belongs to no request.
    fn get(&self, owner: Digest, headers: &HeaderMap) -> Response {
        if !body::takes_events(headers) {
            let why = "write `Accept: text/event-stream`".to_owned();
            return plain(StatusCode::NOT_ACCEPTABLE, why);
        }
        let attended = match self.known(owner, headers) {
            Ok(attended) => attended,
            Err(none) => return none.response(),
        };
        let Some(last) = headers.get(LAST_EVENT) else {
            return events(attended.listen(None));
        };
        let last = last.to_str().ok().and_then(EventId::read);
        match last.and_then(|last| attended.resume(last)) {
            Some(rest) => events(rest),
            None => {
                let why = "nothing is kept behind this `Last-Event-ID`".to_owned();
                plain(StatusCode::BAD_REQUEST, why)
            }
        }
    }

    async fn delete(&self, owner: Digest, headers: &HeaderMap) -> Response {
        match self.known(owner, headers) {
            Err(none) => none.response(),
            Ok(attended) => {
                self.forget(&attended);
                attended.end("the agent left").await;
                status(StatusCode::NO_CONTENT)
            }
        }
    }

    /// The session that a request names, if it is its owner's.
    fn known(&self, owner: Digest, headers: &HeaderMap) -> Result<Arc<Attended>, NoSession> {
        let id = headers.get(SESSION).ok_or(NoSession::Unnamed)?;
        let id = id.to_str().map_err(|_| NoSession::Unknown)?;
        let found = self.attended().get(&Key::Session(id.to_owned())).cloned();
        found
            .filter(|attended| attended.owner == owner)
            .ok_or(NoSession::Unknown)
    }

    /// A new conversation, if there is room for one.
    fn begin(self: &Arc<Self>, owner: Digest, key: Key) -> Option<Arc<Attended>> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        let attended = Attended::begin(self.settings.clone(), owner, key.clone(), room);
        self.attended().insert(key, Arc::clone(&attended));
        let (shared, watched) = (Arc::downgrade(self), Arc::clone(&attended));
        tokio::spawn(async move {
            watched.broken().await;
            if let Some(shared) = shared.upgrade() {
                shared.forget(&watched);
            }
            watched.end("it could not go on").await;
        });
        Some(attended)
    }

    fn forget(&self, attended: &Attended) {
        self.attended().remove(&attended.key);
    }

    fn end_idle(&self) {
        let idle: Vec<Arc<Attended>> = {
            let attended = self.attended();
            let idle = attended.values().filter(|one| one.is_idle(self.http.idle));
            idle.cloned().collect()
        };
        for attended in idle {
            self.forget(&attended);
            tokio::spawn(async move { attended.end("nothing was heard of the agent").await });
        }
    }

    async fn end_all(&self, reason: &'static str) {
        let all: Vec<Arc<Attended>> = self.attended().drain().map(|(_, one)| one).collect();
        let mut ending = JoinSet::new();
        for attended in all {
            ending.spawn(async move { attended.end(reason).await });
        }
        let ended = async { while ending.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(CLOSING, ended).await;
    }

    fn attended(&self) -> MutexGuard<'_, HashMap<Key, Arc<Attended>>> {
        self.attended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a request has no session.
#[derive(Debug, Clone, Copy)]
enum NoSession {
    /// It names none.
    Unnamed,
    /// There is none of this name, or it is another client's.
    Unknown,
}

impl NoSession {
    fn response(self) -> Response {
        let (status, why) = match self {
            Self::Unnamed => (
                StatusCode::BAD_REQUEST,
                "begin with `initialize`, and name the session in `Mcp-Session-Id`",
            ),
            Self::Unknown => (
                StatusCode::NOT_FOUND,
                "there is no such session; begin again with `initialize`",
            ),
        };
        plain(status, why.to_owned())
    }
}

/// Whether the revision that a request names, if it does, is one that is spoken here.
fn is_known(headers: &HeaderMap) -> bool {
    let spoken = crate::inline::supported();
    let known = |named: &HeaderValue| spoken.iter().any(|known| *named == **known);
    headers.get(REVISION).is_none_or(known)
}

fn is_inline(headers: &HeaderMap) -> bool {
    let named = headers.get(REVISION);
    named.is_some_and(|named| named == crate::inline::INLINE)
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn full() -> Response {
    let why = "as many clients are served as may be; try again when one has left".to_owned();
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, why);
    let later = HeaderValue::from_static("30");
    response.headers_mut().insert(header::RETRY_AFTER, later);
    response
}

/// An error of the protocol, with a status.
fn failure(status: StatusCode, id: Option<&str>, code: i64, why: &str) -> Response {
    let mut message = Vec::new();
    wire::failure(&mut message, id, code, why);
    json(status, message)
}
