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
            Ok((checkpoint, note)) if checkpoint.origin == origin => return Ok((checkpoint, note)),
            Ok((checkpoint, _)) => {
                reason = format!("it is a checkpoint of `{}`", checkpoint.origin);
            }
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
}
