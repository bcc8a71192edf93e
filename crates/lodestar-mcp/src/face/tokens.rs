//! Tokens: who shows one is let in, and has sessions of their own.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;

use axum::http::{HeaderMap, header};
use lodestar_core::digest::{Digest, sha256};
use lodestar_guard::config::{Config, TokenSource};
use subtle::ConstantTimeEq as _;

/// The shortest that nobody guesses.
const SHORTEST: usize = 32;

/// Most that a file of tokens takes.
const MAX_FILE: u64 = 64 << 10;

const REMEDY: &str = "make one with `openssl rand -hex 32`";

/// Tokens, by digest: digests are of one length, and say nothing when they are printed.
#[derive(Debug)]
pub(super) struct Tokens(Vec<Digest>);

impl Tokens {
    /// Reads them from where the configuration says.
    pub(super) fn read(source: &TokenSource, config: &Config) -> Result<Self, String> {
        let (text, place) = match source {
            TokenSource::Env(variable) => {
                let text = std::env::var(variable).map_err(|_| {
                    format!("`token_env` names `{variable}`, which is not set; {REMEDY}")
                })?;
                (text, format!("`{variable}`"))
            }
            TokenSource::File(file) => {
                let path = config.path(file);
                let place = format!("`{}`", path.display());
                let cannot = |problem: std::io::Error| {
                    format!(
                        "{place} cannot be read: {problem}; {REMEDY} into it, then `chmod 600` it"
                    )
                };
                let file = File::open(&path).map_err(cannot)?;
                let kind = file.metadata().map_err(cannot)?;
                if !kind.is_file() {
                    return Err(format!("{place} is no file"));
                }
                if kind.mode() & 0o077 != 0 {
                    return Err(format!(
                        "{place} can be read by others (mode {:o}); `chmod 600` it",
                        kind.mode() & 0o777
                    ));
                }
                let mut text = String::new();
                let read = file.take(MAX_FILE).read_to_string(&mut text);
                read.map_err(cannot)?;
                (text, place)
            }
        };
        let tokens: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        if tokens.is_empty() {
            return Err(format!("{place} has no token; {REMEDY}"));
        }
        if tokens.iter().any(|token| token.len() < SHORTEST) {
            return Err(format!(
                "{place} has a token of less than {SHORTEST} characters; {REMEDY}"
            ));
        }
        let digests = tokens.iter().map(|token| sha256(token.as_bytes()));
        Ok(Self(digests.collect()))
    }

    /// Whose token a request shows. Every token is compared, and each comparison takes as long as any.
    pub(super) fn owner(&self, headers: &HeaderMap) -> Option<Digest> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(shown), None) = (shown.next(), shown.next()) else {
            return None;
        };
        let (scheme, token) = shown.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let shown = sha256(token.trim().as_bytes());
        let mut owner = None;
        for known in &self.0 {
            if bool::from(known.as_bytes().ct_eq(shown.as_bytes())) {
                owner = Some(*known);
            }
        }
        owner
    }
}
