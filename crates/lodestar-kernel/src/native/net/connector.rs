//! Resolve once, check every answer, connect to exactly what was checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lodestar_core::name::Excerpt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Host;

use super::address::{AddressClass, AllowedAddress, refused};
use super::endpoint::Endpoint;
use super::resolve::Resolver;
use super::{NetworkConfig, NetworkError};
use crate::tool::{Effect, ToolError};

/// More answers than this are no directory but a flood.
const MAX_ANSWERS: usize = 64;

/// Which addresses are open to whoever connects.
#[derive(Debug)]
enum Open {
    /// What an agent names: public ones, and those that the operator lists.
    Listed(Vec<AllowedAddress>),
    /// What the operator names: their own machines and networks too.
    Named,
}

impl Open {
    fn is_for(&self, address: SocketAddr, class: AddressClass) -> bool {
        match self {
            Self::Listed(allowed) => allowed.iter().any(|allowed| allowed.opens(address)),
            Self::Named => matches!(
                class,
                AddressClass::Loopback | AddressClass::Private | AddressClass::SharedNat
            ),
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Listed(_) => "the operator can open it with `allow_addresses`",
            Self::Named => "name a host with another address",
        }
    }
}

/// Opens connections for a tool.
#[derive(Debug)]
pub struct Connector {
    resolver: Arc<dyn Resolver>,
    open: Open,
    tls: Arc<ClientConfig>,
    connect_timeout: Duration,
    timeout: Duration,
}

impl Connector {
    /// A connector for this configuration.
    pub fn new(config: &NetworkConfig, resolver: Arc<dyn Resolver>) -> Result<Self, NetworkError> {
        let open = Open::Listed(config.allow_addresses.clone());
        Self::reaching(open, config, resolver)
    }

    /// A connector to hosts that only the operator names: their networks are open to it.
    pub fn to_named(
        config: &NetworkConfig,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, NetworkError> {
        Self::reaching(Open::Named, config, resolver)
    }

    fn reaching(
        open: Open,
        config: &NetworkConfig,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, NetworkError> {
        let roots = roots(config.ca_file.as_deref())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            resolver,
            open,
            tls: Arc::new(tls),
            connect_timeout: NetworkConfig::timeout(
                "connect_timeout_ms",
                config.connect_timeout_ms,
            )?,
            timeout: NetworkConfig::timeout("timeout_ms", config.timeout_ms)?,
        })
    }

    /// How long a whole call may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Connects; over TLS where the scheme says so. Nothing that matters has gone out by then.
    pub async fn connect(&self, endpoint: &Endpoint) -> Result<Stream, ToolError> {
        let work = async {
            let stream = self.dial(endpoint).await?;
            if endpoint.scheme().is_secure() {
                self.secure(endpoint, stream).await
            } else {
                Ok(Stream::Plain(stream))
            }
        };
        self.in_time(endpoint, work).await
    }

    /// Connects without TLS, whatever the scheme; for protocols that begin it later.
    pub(crate) async fn connect_plain(&self, endpoint: &Endpoint) -> Result<TcpStream, ToolError> {
        self.in_time(endpoint, self.dial(endpoint)).await
    }

    async fn in_time<T>(
        &self,
        endpoint: &Endpoint,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        match tokio::time::timeout(self.connect_timeout, work).await {
            Ok(result) => result,
            Err(_) => Err(failed(format!(
                "no connection to `{endpoint}` within {} ms",
                self.connect_timeout.as_millis()
            ))),
        }
    }

    /// Begins TLS on a connection; the server has to prove that it is the endpoint's host.
    pub(crate) async fn secure(
        &self,
        endpoint: &Endpoint,
        stream: TcpStream,
    ) -> Result<Stream, ToolError> {
        let name = match endpoint.host() {
            Host::Domain(name) => ServerName::try_from(name.clone()).map_err(|_| {
                failed(format!(
                    "`{endpoint}` has no name that a certificate can have"
                ))
            })?,
            Host::Ipv4(v4) => ServerName::from(IpAddr::V4(*v4)),
            Host::Ipv6(v6) => ServerName::from(IpAddr::V6(*v6)),
        };
        TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, stream)
            .await
            .map(|stream| Stream::Tls(Box::new(stream)))
            .map_err(|e| failed(format!("tls with `{endpoint}` failed: {e}")))
    }

    async fn dial(&self, endpoint: &Endpoint) -> Result<TcpStream, ToolError> {
        let addresses = self.checked(endpoint).await?;
        let mut last = None;
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // Requests are small and answers are waited for.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(e) => last = Some(e),
            }
        }
        let reason = last.map_or_else(|| "it has no address".to_owned(), |e| e.to_string());
        Err(failed(format!("no connection to `{endpoint}`: {reason}")))
    }

    /// The addresses of an endpoint, if none of them is refused.
    async fn checked(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, ToolError> {
        let answers = match endpoint.host() {
            Host::Domain(name) => self
                .resolver
                .resolve(name)
                .await
                .map_err(|e| failed(format!("`{endpoint}` cannot be resolved: {e}")))?,
            Host::Ipv4(v4) => vec![IpAddr::V4(*v4)],
            Host::Ipv6(v6) => vec![IpAddr::V6(*v6)],
        };
        if answers.len() > MAX_ANSWERS {
            return Err(ToolError::refused(format!(
                "`{endpoint}` has {} addresses; at most {MAX_ANSWERS} are taken",
                answers.len()
            )));
        }
        answers
            .into_iter()
            .map(|ip| self.check(endpoint, SocketAddr::new(ip, endpoint.port())))
            .collect()
    }

    fn check(&self, endpoint: &Endpoint, address: SocketAddr) -> Result<SocketAddr, ToolError> {
        if let Some(class) = refused(address.ip())
            && !self.open.is_for(address, class)
        {
            return Err(ToolError::refused(format!(
                "`{endpoint}` leads to {}, which is {class}; {}",
                address.ip(),
                self.open.remedy()
            )));
        }
        Ok(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }
}

fn failed(message: String) -> ToolError {
    ToolError::failed(Effect::None, message)
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, NetworkError> {
    let mut store = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let Some(path) = file else {
        return Ok(store);
    };
    let unusable = |reason: String| NetworkError::Roots {
        path: Excerpt::of(&path.to_string_lossy()),
        reason,
    };
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|e| unusable(e.to_string()))?;
    if found.is_empty() {
        return Err(unusable("it has no certificate".into()));
    }
    for certificate in found {
        store
            .add(certificate)
            .map_err(|e| unusable(e.to_string()))?;
    }
    Ok(store)
}

/// An open connection.
#[derive(Debug)]
pub enum Stream {
    /// In the clear.
    Plain(TcpStream),
    /// Encrypted, with a server that proved its name.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Where it leads.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Plain(stream) => stream.peer_addr(),
            Self::Tls(stream) => stream.get_ref().0.peer_addr(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
