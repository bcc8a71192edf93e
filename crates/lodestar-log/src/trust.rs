//! Whose signatures count. The log cannot say it of itself: these keys come from the
//! installation's configuration or from whoever runs the check.

use lodestar_core::key::PublicKey;
use lodestar_core::note::{Checkpoint, Note, NoteKey};

/// The keys a check trusts.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Keys that sign checkpoints.
    pub log_keys: Vec<PublicKey>,
    /// Keys of people who may redact.
    pub operators: Vec<PublicKey>,
    /// Keys of witnesses, each with the name it signs under.
    pub witnesses: Vec<NoteKey>,
}

impl Trust {
    /// Trusts one log key and nobody else.
    pub fn only(log_key: PublicKey) -> Self {
        Self {
            log_keys: vec![log_key],
            ..Self::default()
        }
    }
}

/// Reads a checkpoint of `origin` and checks that a trusted log key signed it.
pub(crate) fn open_checkpoint(
    bytes: &[u8],
    origin: &str,
    trust: &Trust,
) -> Result<(Checkpoint, Note), String> {
    let mut reason = String::from("no log key is trusted");
    for key in &trust.log_keys {
        let key = NoteKey::ed25519(origin, key).map_err(|e| e.to_string())?;
        match Checkpoint::open(bytes, &key) {
            Ok(opened) => return Ok(opened),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
}

/// The signatures on a note that are not the log's own, by the name they give, each verified where
/// its key is a known witness's.
pub(crate) fn other_signatures(
    note: &Note,
    origin: &str,
    trust: &Trust,
) -> Vec<(String, Option<Result<(), String>>)> {
    let own: Vec<[u8; 4]> = trust
        .log_keys
        .iter()
        .filter_map(|key| NoteKey::ed25519(origin, key).ok())
        .map(|key| key.key_hash())
        .collect();
    let others = note
        .signatures()
        .iter()
        .filter(|s| s.name != origin || !own.contains(&s.key_hash));
    others
        .map(|signature| {
            let key = trust
                .witnesses
                .iter()
                .find(|k| k.name() == signature.name && k.key_hash() == signature.key_hash);
            let verified = key.map(|key| match key.verify(note) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            });
            (signature.name.clone(), verified)
        })
        .collect()
}
