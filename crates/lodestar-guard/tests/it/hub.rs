//! A server that speaks the protocol of the HTTP channel over real sockets, or does not, as a test says.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lodestar_core::id::RequestId;
use lodestar_guard::channel::http::Told;
use lodestar_policy::ApprovalRequest;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

pub(crate) const ANSWER_TYPE: &str = "application/vnd.lodestar.answer.v1";

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }

    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn is(&self, method: &str, part: &str) -> bool {
        self.method() == method && self.target().contains(part)
    }

    fn last(&self) -> &str {
        let path = self.target().split('?').next().unwrap();
        path.rsplit('/').next().unwrap()
    }
}

/// What a rude server does instead.
#[derive(Clone)]
pub(crate) enum Rude {
    /// Sends this and closes.
    Sends(Vec<u8>),
    /// Sends this, and then that for ever, with a pause each time.
    Drips(Vec<u8>, Vec<u8>, Duration),
}

/// The rudeness that a request gets; none means the protocol.
type Manner = Box<dyn Fn(&Seen) -> Option<Rude> + Send + Sync>;

struct Answer {
    id: String,
    request: String,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Vec<Seen>>,
    answers: Mutex<Vec<Answer>>,
    manner: Mutex<Option<Manner>>,
    count: AtomicU64,
    connections: AtomicUsize,
    forgetful: AtomicBool,
    bell: Notify,
}

pub(crate) struct Hub {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hub {
    pub(crate) async fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), None).await
    }

    pub(crate) async fn at(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let serving = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let (state, tls) = (Arc::clone(&serving), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => state.serve(stream).await,
                        Some(tls) => {
                            if let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await {
                                state.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            state,
            task,
        }
    }

    pub(crate) fn rude(&self, manner: impl Fn(&Seen) -> Option<Rude> + Send + Sync + 'static) {
        *self.state.manner.lock().unwrap() = Some(Box::new(manner));
    }

    pub(crate) fn polite(&self) {
        *self.state.manner.lock().unwrap() = None;
        self.state.forgetful.store(false, Ordering::SeqCst);
    }

    /// Says that it consumed an answer, and brings it again.
    pub(crate) fn forgets_what_was_consumed(&self) {
        self.state.forgetful.store(true, Ordering::SeqCst);
    }

    pub(crate) fn bring(&self, request: RequestId, bytes: Vec<u8>) {
        let id = self.state.count.fetch_add(1, Ordering::SeqCst);
        self.state.answers.lock().unwrap().push(Answer {
            id: format!("a{id}"),
            request: request.to_string(),
            bytes,
        });
        self.state.bell.notify_waiters();
    }

    pub(crate) fn kept(&self) -> usize {
        self.state.answers.lock().unwrap().len()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, method: &str, part: &str) -> usize {
        let seen = self.seen();
        seen.iter().filter(|seen| seen.is(method, part)).count()
    }

    /// What it was told of requests, in order.
    pub(crate) fn told(&self) -> Vec<Told> {
        let seen = self.seen();
        let puts = seen.iter().filter(|seen| seen.is("PUT", "/requests/"));
        puts.map(|seen| serde_json::from_slice(&seen.body).unwrap())
            .collect()
    }

    /// The requests that it was told of, each once.
    pub(crate) fn requests(&self) -> Vec<ApprovalRequest> {
        let mut requests: Vec<ApprovalRequest> = Vec::new();
        for told in self.told() {
            if let Told::Whole(told) = told
                && !requests.iter().any(|known| known.id == told.request.id)
            {
                requests.push(told.request);
            }
        }
        requests
    }

    pub(crate) async fn request(&self, number: usize) -> ApprovalRequest {
        until("a request is announced", || self.requests().len() >= number).await;
        self.requests().swap_remove(number - 1)
    }
}

pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..8_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("in vain: {what}");
}

pub(crate) fn answer(id: &str, request: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {ANSWER_TYPE}\r\nlodestar-answer: {id}\r\nlodestar-request: {request}\r\ncontent-length: {}\r\n\r\n",
        bytes.len()
    );
    [head.as_bytes(), bytes].concat()
}

impl State {
    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let Some(seen) = read_request(&mut stream).await else {
            return;
        };
        self.seen.lock().unwrap().push(seen.clone());
        let manner = self.manner.lock().unwrap().as_ref().and_then(|m| m(&seen));
        match manner {
            None => {
                let reply = self.reply(&seen).await;
                let _ = stream.write_all(&reply).await;
            }
            Some(Rude::Sends(bytes)) => {
                let _ = stream.write_all(&bytes).await;
            }
            Some(Rude::Drips(first, then, pause)) => {
                let mut alive = stream.write_all(&first).await.is_ok();
                while alive {
                    tokio::time::sleep(pause).await;
                    alive = stream.write_all(&then).await.is_ok() && stream.flush().await.is_ok();
                }
            }
        }
        let _ = stream.shutdown().await;
    }

    async fn reply(&self, seen: &Seen) -> Vec<u8> {
        let nothing = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
        if seen.is("DELETE", "/answers/") {
            if !self.forgetful.load(Ordering::SeqCst) {
                let id = seen.last();
                self.answers.lock().unwrap().retain(|it| it.id != id);
            }
            return nothing;
        }
        if !seen.is("GET", "/answers?") {
            return nothing;
        }
        let wait = seen.target().split("wait_ms=").nth(1).unwrap();
        let wait = Duration::from_millis(wait.parse().unwrap());
        let waiting = async {
            loop {
                let rung = self.bell.notified();
                tokio::pin!(rung);
                rung.as_mut().enable();
                if let Some(it) = self.answers.lock().unwrap().first() {
                    return answer(&it.id, &it.request, &it.bytes);
                }
                rung.await;
            }
        };
        tokio::time::timeout(wait, waiting).await.unwrap_or(nothing)
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut read = Vec::new();
    loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(read[..at].to_vec()).unwrap();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_it = name.eq_ignore_ascii_case("content-length");
                is_it.then(|| value.trim().parse::<usize>().unwrap())
            });
            if read.len() >= at + 4 + length.unwrap_or(0) {
                let body = read.split_off(at + 4);
                return Some(Seen { head, body });
            }
        }
        let mut part = [0; 8192];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&part[..count]),
        }
    }
}

/// A certificate for some names, and the PEM file that trusts it.
pub(crate) fn identity(names: &[&str]) -> (Arc<ServerConfig>, NamedTempFile) {
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let mut ca_file = NamedTempFile::new().unwrap();
    ca_file.write_all(made.cert.pem().as_bytes()).unwrap();
    (Arc::new(server), ca_file)
}
