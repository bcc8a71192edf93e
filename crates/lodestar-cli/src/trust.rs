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
#[derive(Debug, Default, Args)]
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
        Err(_) => Ok(read_vkey(Path::new(text))?),
    }
}

/// What to do when a log may be genuine and signed by a key that is not trusted here.
pub(crate) const GIVE_KEY: &str =
    "if the log was written elsewhere, pass --key with its public key, as its owner gave it to you";

/// Whether a checkpoint was refused because another key than the trusted ones signed it.
pub(crate) fn is_unknown_key(reason: &str) -> bool {
    reason.contains("is not signed by this key of")
}

/// The operators whose redactions count, each under the name it was pinned by.
#[derive(Debug, Default)]
pub(crate) struct Operators(Vec<(String, PublicKey)>);

impl Operators {
    /// Adds one that the caller named, under the name in the key's own text.
    pub(crate) fn add(&mut self, key: &NoteKey) {
        self.0.push((key.name().to_owned(), *key.public_key()));
    }

    pub(crate) fn keys(&self) -> Vec<PublicKey> {
        self.0.iter().map(|(_, key)| *key).collect()
    }

    /// The pinned name behind a key id, or else the id.
    pub(crate) fn name_of<'a>(&'a self, key_id: &'a str) -> &'a str {
        let known = self.0.iter().find(|(_, k)| k.key_id().as_str() == key_id);
        known.map_or(key_id, |(name, _)| name)
    }
}

/// The pinned keys of operators and witnesses. An auditor's machine may have no configuration.
pub(crate) fn pinned() -> Result<(Operators, Vec<NoteKey>), Failure> {
    match Installation::locate() {
        Ok(installation) => Ok((
            Operators(installation.operators()?),
            installation.witnesses()?,
        )),
        Err(_) => Ok((Operators::default(), Vec::new())),
    }
}

/// The pinned operators, to show names instead of keys: without them the keys do.
pub(crate) fn known_operators() -> Operators {
    let operators = Installation::locate().and_then(|installation| installation.operators());
    operators.map_or_else(|_| Operators::default(), Operators)
}
