//! The proxy over HTTP: `[http]`.

use std::path::PathBuf;
use std::time::Duration;

use lodestar_core::name::Excerpt;
use serde::Deserialize;
use thiserror::Error;

/// How long a client may be silent: somebody who thinks, or has lunch, still finds their session.
const IDLE_MS: u64 = 30 * 60_000;

/// How long a message may take to arrive: it is written by a program, on a line that works.
const BODY_MS: u64 = 30_000;

/// Most clients at the same time: each has servers of its own, which are processes.
const SESSIONS: usize = 32;

/// The longest time that can be configured: a day.
const MAX_MS: u64 = 24 * 3_600_000;

/// How agents are served over HTTP.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct Http {
    /// Where the token is that agents have to show.
    pub token: TokenSource,
    /// How long a client may be silent before its session ends.
    pub idle: Duration,
    /// How long one message may take to arrive.
    pub body: Duration,
    /// Most clients at the same time.
    pub max_sessions: usize,
    /// Names under which this machine is called, beside its own addresses.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may call, such as `https://inspector.example`.
    pub allowed_origins: Vec<String>,
}

/// Where a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// In a file that only its owner can read; several, one on each line, tell clients apart.
    File(PathBuf),
    /// In an environment variable.
    Env(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    token_file: Option<PathBuf>,
    token_env: Option<String>,
    idle_ms: Option<u64>,
    body_ms: Option<u64>,
    max_sessions: Option<usize>,
    #[serde(default)]
    allowed_hosts: Vec<String>,
    #[serde(default)]
    allowed_origins: Vec<String>,
}

/// Why a table configures no way in.
#[derive(Debug, Error)]
enum BadHttp {
    #[error("there is no token; write `token_file` or `token_env`")]
    NoToken,
    #[error("`token_file` and `token_env` are two places for one token; keep one")]
    TwoTokens,
    #[error("`token_env` is `{0}`, which is no name of an environment variable")]
    Variable(Excerpt),
    #[error("`{name}` is {given}; write 1 to {MAX_MS} milliseconds")]
    Time { name: &'static str, given: u64 },
    #[error("`max_sessions` is 0; nobody could be served")]
    NoSessions,
}

impl TryFrom<Written> for Http {
    type Error = BadHttp;

    fn try_from(written: Written) -> Result<Self, BadHttp> {
        let token = match (written.token_file, written.token_env) {
            (Some(file), None) => TokenSource::File(file),
            (None, Some(variable)) => {
                let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                if variable.is_empty() || !variable.bytes().all(fits) {
                    return Err(BadHttp::Variable(Excerpt::of(&variable)));
                }
                TokenSource::Env(variable)
            }
            (None, None) => return Err(BadHttp::NoToken),
            (Some(_), Some(_)) => return Err(BadHttp::TwoTokens),
        };
        let max_sessions = written.max_sessions.unwrap_or(SESSIONS);
        if max_sessions == 0 {
            return Err(BadHttp::NoSessions);
        }
        Ok(Self {
            token,
            idle: time("idle_ms", written.idle_ms.unwrap_or(IDLE_MS))?,
            body: time("body_ms", written.body_ms.unwrap_or(BODY_MS))?,
            max_sessions,
            allowed_hosts: written.allowed_hosts,
            allowed_origins: written.allowed_origins,
        })
    }
}

fn time(name: &'static str, given: u64) -> Result<Duration, BadHttp> {
    match given {
        1..=MAX_MS => Ok(Duration::from_millis(given)),
        _ => Err(BadHttp::Time { name, given }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        toml::from_str::<Http>(text).unwrap_err().to_string()
    }

    #[test]
    fn there_is_one_token_and_it_is_somewhere() {
        assert!(problem("").contains("there is no token"));
        assert!(problem("token_file = 'a'\ntoken_env = 'B'").contains("keep one"));
        assert!(problem("token_env = 'a b'").contains("`a b`"));
        let http: Http = toml::from_str("token_env = 'TOKEN'").unwrap();
        assert_eq!(http.token, TokenSource::Env("TOKEN".to_owned()));
        assert_eq!(http.idle, Duration::from_secs(1800));
    }

    #[test]
    fn bounds_are_bounds() {
        assert!(problem("token_env = 'T'\nidle_ms = 0").contains("`idle_ms` is 0"));
        assert!(problem("token_env = 'T'\nmax_sessions = 0").contains("nobody"));
        assert!(problem("token_env = 'T'\nport = 1").contains("port"));
    }
}
