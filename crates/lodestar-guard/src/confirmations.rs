//! Where confirmations are dropped, and where it stands which were spent.
//!
//! The drop folder is a channel like any other: whatever lies there is bytes, and counts only for what
//! [`lodestar_policy::confirmation::settle`] makes of it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::{ConsumeLedger, MemoryLedger};
use lodestar_firewall::store::{PostgresLedger, SqliteLedger};
use lodestar_policy::confirmation::MAX_EVIDENCE_LEN;

use crate::config::{Backend, Config};
use crate::session::OpenError;

/// Most files that are looked at for one act: who can write here could write very many.
const MOST: usize = 64;

/// Where confirmations of a project are dropped.
pub fn drop_folder(config: &Config) -> PathBuf {
    config.root().join(".lodestar/approvals/confirmations")
}

/// The name of a dropped confirmation: by it, and by nothing within, it is found.
pub fn file_name(fingerprint: Fingerprint, id: ConfirmationId) -> String {
    format!("{fingerprint}.{id}.json")
}

/// What was dropped for an act, in the order of names; each at most one byte longer than evidence may
/// be. Nobody has looked at it.
pub fn dropped(config: &Config, fingerprint: Fingerprint) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let folder = drop_folder(config);
    let beginning = format!("{fingerprint}.");
    let entries = match std::fs::read_dir(&folder) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = name
            .to_str()
            .is_some_and(|name| name.starts_with(&beginning) && name.ends_with(".json"));
        // A link or a pipe is nobody's confirmation.
        if is_ours && entry.file_type()?.is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    paths.truncate(MOST);
    let read = |path: PathBuf| {
        let mut bytes = Vec::new();
        let limit = MAX_EVIDENCE_LEN as u64 + 1;
        File::open(&path)?.take(limit).read_to_end(&mut bytes)?;
        Ok((path, bytes))
    };
    paths.into_iter().map(read).collect()
}

/// The ledger of spent confirmations: where the beliefs are kept.
pub fn ledger(config: &Config) -> Result<Box<dyn ConsumeLedger>, OpenError> {
    Ok(match config.persistence.backend {
        Backend::Memory => Box::new(MemoryLedger::default()),
        Backend::Sqlite => {
            let dir = config.root().join(".lodestar");
            std::fs::create_dir_all(&dir).map_err(|problem| OpenError::Read {
                file: dir.clone(),
                problem,
            })?;
            Box::new(SqliteLedger::open(&dir.join("state.db"))?)
        }
        Backend::Postgres => {
            let name = config.persistence.connection_string_env.as_ref();
            let name = name.ok_or(OpenError::NoConnectionNamed)?;
            let address = std::env::var(name);
            let address = address.map_err(|_| OpenError::NoConnection(name.clone()))?;
            Box::new(PostgresLedger::connect(&address, None)?)
        }
    })
}
