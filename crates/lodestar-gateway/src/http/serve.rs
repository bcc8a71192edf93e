//! Connections: taken up to a bound, answered in time, and let finish when the service ends.

use std::convert::Infallible;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::limits::{From, Limits, Rate};
use super::read::Read;
use super::request::{self, Shared};
use super::route::Face;
use crate::code::{Code, Refusal};
use crate::config::{GatewayConfig, HttpConfig};
use crate::service::{Service, StartError, Surroundings};

/// The platform's socket, in the service's folder.
pub const SOCKET: &str = "admin.sock";

/// Connections to the platform's socket at the same time: its user is one.
const PLATFORM_CONNECTIONS: usize = 16;

/// Headers of one request, in number and in bytes.
const HEADERS: usize = 64;
const HEAD_BYTES: usize = 16 << 10;

/// How long an answer may lie unread: whoever asks reads, or makes room for others.
const UNREAD: Duration = Duration::from_secs(20);

/// Why the service is not reached.
#[derive(Debug, Error)]
pub enum BindError {
    /// The address is not to be had.
    #[error("cannot listen at {address}: {problem}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        problem: io::Error,
    },
    /// The platform's socket is not to be had.
    #[error("cannot make the socket `{}`: {problem}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        problem: io::Error,
    },
}

/// The service with its two faces, bound and not yet serving.
#[derive(Debug)]
pub struct Server {
    tcp: TcpListener,
    address: SocketAddr,
    unix: UnixListener,
    socket: PathBuf,
    shared: Arc<Shared>,
    config: HttpConfig,
}

impl Server {
    /// Binds both faces.
    pub async fn bind(service: Arc<Service>, config: HttpConfig) -> Result<Self, BindError> {
        let address = config.listen;
        let listen = |problem| BindError::Listen { address, problem };
        let tcp = TcpListener::bind(address).await.map_err(listen)?;
        let address = tcp.local_addr().map_err(listen)?;
        let socket = service.folder().join(SOCKET);
        let unix = bind_socket(&socket).map_err(|problem| BindError::Socket {
            path: socket.clone(),
            problem,
        })?;
        let rate = |per_second: u32, burst: u32| Rate {
            per_second: per_second.into(),
            burst: burst.into(),
        };
        let limits = Limits::new(
            rate(config.token_per_second, config.token_burst),
            rate(config.address_per_second, config.address_burst),
        );
        let shared = Shared::new(service, limits, &config);
        Ok(Self {
            tcp,
            address,
            unix,
            socket,
            shared: Arc::new(shared),
            config,
        })
    }

    /// Where the public face listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the platform's does.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Serves until told to end; then takes nothing new, and finishes what it took, unless that takes too long.
    pub async fn serve(self, until: impl Future<Output = ()>) {
        let public = request::router(&self.shared, Face::Public);
        let platform = request::router(&self.shared, Face::Platform);
        let own = rustix::process::geteuid().as_raw();
        let head = self.config.head();
        let (ending, watched) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut calls = JoinSet::new();
        let mut flood = tokio::time::interval(request::FLOOD);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => break,
                _ = flood.tick() => self.shared.tell_flood().await,
                Some(_) = connections.join_next() => {}
                Some(_) = calls.join_next() => {}
                accepted = self.tcp.accept(), if connections.len() < self.config.connections => {
                    let Ok((stream, peer)) = accepted else {
                        pause().await;
                        continue;
                    };
                    let _ = stream.set_nodelay(true);
                    let from = From::from(peer.ip());
                    connections.spawn(serve_one(stream, (public.clone(), Arc::clone(&self.shared)), from, head, watched.clone()));
                }
                accepted = self.unix.accept(), if calls.len() < PLATFORM_CONNECTIONS => {
                    let Ok((stream, _)) = accepted else {
                        pause().await;
                        continue;
                    };
                    if is_user(&stream, own) {
                        let from = From::Local;
                        calls.spawn(serve_one(stream, (platform.clone(), Arc::clone(&self.shared)), from, head, watched.clone()));
                    }
                }
            }
        }
        drop((self.tcp, self.unix));
        let _ = std::fs::remove_file(&self.socket);
        self.shared.end();
        let _ = ending.send(true);
        let finish = async {
            while connections.join_next().await.is_some() {}
            while calls.join_next().await.is_some() {}
            self.shared.idle().await;
        };
        let _ = tokio::time::timeout(self.config.closing(), finish).await;
        self.shared.tell_flood().await;
    }
}

/// Why a gateway does not serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The service.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its faces.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// Serves a gateway from its start to its end: whoever waits for it is told when it is ready, and when this
/// returns, everything that was answered is on disk and in the log.
pub async fn serve(
    config: &GatewayConfig,
    surroundings: Surroundings,
    ready: impl FnOnce(&Server),
    until: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    // A database's client may wait in its own way, which is not for threads that answer.
    let (opened, of) = (config.clone(), surroundings);
    let opening = tokio::task::spawn_blocking(move || Service::open(&opened, of));
    let opened = opening.await.map_err(|gone| {
        let gone = std::io::Error::other(gone.to_string());
        ServeError::Start(StartError::Thread(gone))
    })?;
    let service = Arc::new(opened?);
    let served = match Server::bind(Arc::clone(&service), config.http.clone()).await {
        Ok(server) => {
            ready(&server);
            server.serve(until).await;
            Ok(())
        }
        Err(problem) => Err(problem.into()),
    };
    // It waits for the disk, and nobody is left to be answered meanwhile.
    let _ = tokio::task::spawn_blocking(move || service.close()).await;
    served
}

/// Whoever could not be accepted tries again; a full table of descriptors empties.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// One connection, from its first request to its last.
async fn serve_one<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    (router, shared): (Router, Arc<Shared>),
    from: From,
    head: Duration,
    mut ending: watch::Receiver<bool>,
) {
    let service = Placed {
        routes: TowerToHyperService::new(router),
        from,
        shared,
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_headers(HEADERS)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Read::by(stream, UNREAD)), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        _ = ending.wait_for(|ending| *ending) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// The routes, for requests that know where they come from.
struct Placed {
    routes: TowerToHyperService<Router>,
    from: From,
    shared: Arc<Shared>,
}

impl hyper::service::Service<hyper::Request<Incoming>> for Placed {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    /// A request is done to its end, also where whoever asked hangs up before it is even looked at: what is refused
    /// is recorded all the same.
    fn call(&self, mut request: hyper::Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.from);
        // Whoever runs the service always gets through.
        let seat = match self.from {
            From::Local => None,
            _ => match self.shared.seat() {
                None => {
                    let full = request::failure(&Refusal::of(Code::Overloaded));
                    return Box::pin(std::future::ready(Ok(full)));
                }
                seat => seat,
            },
        };
        let answering = hyper::service::Service::call(&self.routes, request);
        let answering = tokio::spawn(async move {
            let answered = answering.await;
            drop(seat);
            answered
        });
        Box::pin(async move {
            let failed = |_| Ok(request::failure(&Refusal::of(Code::Internal)));
            answering.await.unwrap_or_else(failed)
        })
    }
}

/// Whether the other end of a socket is this user's.
fn is_user(stream: &UnixStream, own: u32) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// A socket that nobody else may write to. Whoever serves has the folder to themselves, so one that is there
/// was left behind.
fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    match path.symlink_metadata() {
        Ok(there) if there.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::other("something else is there")),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => {}
        Err(problem) => return Err(problem),
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}
