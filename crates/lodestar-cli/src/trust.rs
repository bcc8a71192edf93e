//! Whose signatures a command believes: what this installation pins, or what the caller names.

use std::path::Path;

use clap::Args;
use lodestar_core::key::PublicKey;
use lodestar_core::note::NoteKey;
use lodestar_log::Trust;

use crate::failure::Failure;
use crate::inert;
use crate::installation::{Installation, read_vkey};

/// The log keys that count.
#[derive(Debug, Args)]
pub(crate) struct LogKeys {
    /// Trust this log key instead of the installation's: `name+hash+key`, or a file with it.
    /// The key counts, not the name. May be given several times
    #[arg(long = "key", value_name = "VKEY|FILE")]
    keys: Vec<String>,
}

impl LogKeys {
    /// The keys the caller named, or else the installation's own.
    pub(crate) fn resolve(&self) -> Result<Vec<PublicKey>, Failure> {
        if !self.keys.is_empty() {
            return self
                .keys
                .iter()
                .map(|key| Ok(*vkey(key)?.public_key()))
                .collect();
        }
        let installation = Installation::locate()?;
        match installation.log_public()? {
            Some(key) => Ok(vec![key]),
            None => Err(Failure::usage(format!(
                "no log key is trusted: there is no `keys/log.pub` in `{}`, and no --key was given",
                inert::path(installation.dir())
            ))
            .help("pass --key with the log's public key, as its owner gave it to you")),
        }
    }

    pub(crate) fn trust(&self) -> Result<Trust, Failure> {
        Ok(Trust {
            log_keys: self.resolve()?,
            ..Trust::default()
        })
    }
}

/// A public key, written out or in a file.
pub(crate) fn vkey(text: &str) -> Result<NoteKey, Failure> {
    match text.parse::<NoteKey>() {
        Ok(key) => Ok(key),
        // A key has two plus signs; a path hardly ever does.
        Err(error) if text.matches('+').count() >= 2 && !Path::new(text).exists() => {
            Err(Failure::usage(format!(
                "`{}` is no public key: {error}",
                inert::line(text, 80)
            )))
        }
        Err(_) => read_vkey(Path::new(text)),
    }
}

/// The pinned keys of operators and witnesses. An auditor's machine may have no configuration.
pub(crate) fn pinned() -> Result<(Vec<PublicKey>, Vec<NoteKey>), Failure> {
    match Installation::locate() {
        Ok(installation) => Ok((installation.operators()?, installation.witnesses()?)),
        Err(_) => Ok((Vec::new(), Vec::new())),
    }
}
