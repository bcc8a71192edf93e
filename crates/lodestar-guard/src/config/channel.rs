//! The HTTP channel: `[approvals.http]`.

use std::path::PathBuf;
use std::time::Duration;

use lodestar_core::name::Excerpt;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::native::http::client::{InTheClear, ServiceUrl, ServiceUrlError};
use lodestar_kernel::native::net::{DEFAULT_CONNECT_TIMEOUT_MS, MAX_TIMEOUT_MS};
use serde::Deserialize;
use thiserror::Error;

/// How long one exchange may take, waiting for answers apart: it is small, whatever it carries.
const TIMEOUT_MS: u64 = 10_000;

/// How long the server is asked to wait for an answer: less than the half minute after which many
/// proxies close a connection on which nothing happens.
const WAIT_MS: u64 = 25_000;

/// A server through which people elsewhere are asked and answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct HttpApprovals {
    /// Where it is; what it is asked lies below, at `v1/…`.
    pub url: ServiceUrl,
    /// The environment variable with the bearer token.
    pub token_env: String,
    /// The most sensitive that may leave this machine.
    pub ceiling: Sensitivity,
    /// Root certificates in PEM, trusted beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// Time for one connection in milliseconds, TLS included.
    pub connect_timeout_ms: u64,
    /// How long one exchange may take.
    pub timeout: Duration,
    /// How long the server is asked to wait for an answer.
    pub wait: Duration,
}

/// As it stands in a configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url: String,
    token_env: String,
    ceiling: Sensitivity,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    allow_loopback_http: bool,
    connect_timeout_ms: Option<u64>,
    timeout_ms: Option<u64>,
    wait_ms: Option<u64>,
}

/// Why a table configures no channel.
#[derive(Debug, Error)]
enum BadChannel {
    #[error("`url`: {0}")]
    Url(#[from] ServiceUrlError),
    #[error(
        "`token_env` is `{shown}`, which is no name of an environment variable; name the one that holds the token"
    )]
    Variable { shown: Excerpt },
    #[error("`{name}` is {given}; write 1 to {MAX_TIMEOUT_MS} milliseconds")]
    Time { name: &'static str, given: u64 },
}

impl TryFrom<Written> for HttpApprovals {
    type Error = BadChannel;

    fn try_from(written: Written) -> Result<Self, BadChannel> {
        let in_the_clear = match written.allow_loopback_http {
            true => InTheClear::OnLoopback,
            false => InTheClear::Never,
        };
        let url = ServiceUrl::parse(&written.url, in_the_clear)?;
        if !is_variable(&written.token_env) {
            return Err(BadChannel::Variable {
                shown: Excerpt::of(&written.token_env),
            });
        }
        let timeout = time("timeout_ms", written.timeout_ms.unwrap_or(TIMEOUT_MS))?;
        let wait = time("wait_ms", written.wait_ms.unwrap_or(WAIT_MS))?;
        let connect = written.connect_timeout_ms;
        let connect_timeout_ms = connect.unwrap_or(DEFAULT_CONNECT_TIMEOUT_MS);
        time("connect_timeout_ms", connect_timeout_ms)?;
        Ok(Self {
            url,
            token_env: written.token_env,
            ceiling: written.ceiling,
            ca_file: written.ca_file,
            connect_timeout_ms,
            timeout,
            wait,
        })
    }
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn time(name: &'static str, given: u64) -> Result<Duration, BadChannel> {
    match given {
        1..=MAX_TIMEOUT_MS => Ok(Duration::from_millis(given)),
        _ => Err(BadChannel::Time { name, given }),
    }
}
