//! Real servers on loopback for the tests of the network tools.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Map, Value};
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::resolve::{Resolver, Resolving};
use crate::stop::Stop;
use crate::tool::{Call, Output, Tool, ToolError};

/// A resolver that knows a few names, each with the answers that it gives one after the other; the
/// last stays.
#[derive(Debug, Default)]
pub(crate) struct Names {
    answers: BTreeMap<String, Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Names {
    pub(crate) fn with(mut self, name: &str, answers: &[&[&str]]) -> Self {
        let answers = answers
            .iter()
            .map(|one| one.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        self.answers.insert(name.to_owned(), answers);
        self
    }

    /// All these names are this machine.
    pub(crate) fn local(names: &[&str]) -> Arc<Self> {
        let mut this = Self::default();
        for name in names {
            this = this.with(name, &[&["127.0.0.1"]]);
        }
        Arc::new(this)
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let answers = self
                .answers
                .get(name)
                .ok_or_else(|| std::io::Error::other("no such name"))?;
            Ok(answers[turn.min(answers.len() - 1)].clone())
        })
    }
}

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

pub(crate) type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A server that hands every connection to a function.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) accepted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(
        tls: Option<Arc<ServerConfig>>,
        serve: impl Fn(Box<dyn Duplex>) -> Serving + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let serve = Arc::new(serve);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => serve(Box::new(stream)).await,
                        Some(tls) => {
                            if let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await {
                                serve(Box::new(stream)).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            accepted,
            task,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A certificate for some names, and the PEM file that trusts it.
pub(crate) struct Identity {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) ca_file: NamedTempFile,
}

impl Identity {
    pub(crate) fn of(names: &[&str]) -> Self {
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
        Self {
            server: Arc::new(server),
            ca_file,
        }
    }
}

/// What a small HTTP/1.1 server does once it has read a request.
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Sends the same bytes again and again, until the other side is gone.
    Forever(Vec<u8>, Duration),
    /// Keeps the connection open.
    Hold,
    /// Waits for the other side to close, and tells of it.
    UntilClosed(Arc<Notify>),
}

/// The requests that a server saw, heads and bodies as they came.
pub(crate) type Seen = Arc<Mutex<Vec<String>>>;

/// An HTTP/1.1 server that answers each request as the function says.
pub(crate) async fn http_server(
    tls: Option<Arc<ServerConfig>>,
    answer: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
) -> (Server, Seen) {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let answer = Arc::new(answer);
    let server = Server::start(tls, move |mut stream| {
        let log = Arc::clone(&log);
        let answer = Arc::clone(&answer);
        Box::pin(async move {
            let Some(request) = read_request(&mut stream).await else {
                return;
            };
            let steps = answer(&request);
            log.lock().unwrap().push(request);
            for step in steps {
                match step {
                    Step::Send(bytes) => {
                        let _ = stream.write_all(&bytes).await;
                        let _ = stream.flush().await;
                    }
                    Step::Hold => std::future::pending().await,
                    Step::UntilClosed(told) => {
                        let mut rest = [0; 64];
                        while matches!(stream.read(&mut rest).await, Ok(count) if count > 0) {}
                        told.notify_one();
                    }
                    Step::Forever(bytes, pause) => {
                        while stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok()
                        {
                            tokio::time::sleep(pause).await;
                        }
                    }
                }
            }
            let _ = stream.shutdown().await;
        })
    })
    .await;
    (server, seen)
}

async fn read_request(stream: &mut Box<dyn Duplex>) -> Option<String> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.trim().parse::<usize>().ok())?
                })
                .unwrap_or(0);
            if body.len() >= length {
                return Some(text);
            }
        }
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&part[..count]),
        }
    }
}

/// An answer with a body, its length said rightly.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<Step> {
    vec![Step::Send(
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        )
        .into_bytes(),
    )]
}

/// Calls a tool with a generous deadline.
pub(crate) async fn call(tool: &dyn Tool, arguments: Value) -> Result<Output, ToolError> {
    call_until(tool, arguments, &Stop::new(), Duration::from_secs(20)).await
}

pub(crate) async fn call_until(
    tool: &dyn Tool,
    arguments: Value,
    stop: &Stop,
    time: Duration,
) -> Result<Output, ToolError> {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    tool.call(Call::new(&arguments, stop, Instant::now() + time))
        .await
}

/// A file with this text that only we can read.
pub(crate) fn private_file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o600))
        .unwrap();
    file
}
