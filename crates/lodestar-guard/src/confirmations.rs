//! Where confirmations are dropped, and where it stands which were spent.
//!
//! The drop folder is a channel like any other: whatever lies there is bytes, and counts only for what
//! [`lodestar_policy::confirmation::settle`] makes of it.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::{ConsumeLedger, MemoryLedger};
use lodestar_firewall::store::{PostgresLedger, SqliteLedger};
use lodestar_policy::confirmation::MAX_EVIDENCE_LEN;
use rustix::fs::OFlags;

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
/// be. Nobody has looked at it. What is no plain file, or cannot be read, is passed over.
pub fn dropped(folder: &Path, fingerprint: Fingerprint) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let beginning = format!("{fingerprint}.");
    let entries = match std::fs::read_dir(folder) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = |name: &str| name.starts_with(&beginning) && name.ends_with(".json");
        if name.to_str().is_some_and(is_ours) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    paths.truncate(MOST);
    let read = |path: PathBuf| Some((read_plain(&path).ok()?, path));
    let found = paths.into_iter().filter_map(read);
    Ok(found.map(|(bytes, path)| (path, bytes)).collect())
}

/// Reads a plain file. A link is not followed, and a pipe is not waited for.
fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    // Of what was opened, not of what the name stands for by now.
    if !file.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut bytes = Vec::new();
    file.take(MAX_EVIDENCE_LEN as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use lodestar_core::digest::sha256;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn fingerprint(of: &[u8]) -> Fingerprint {
        sha256(of).to_string().parse().expect("a fingerprint")
    }

    #[test]
    fn only_plain_files_of_this_act_are_found_and_none_is_read_without_end() {
        let root = tempfile::tempdir().expect("a folder");
        let text = "project_id = \"web\"\nactor_id = \"agent\"\n";
        let config = Config::parse(text, root.path()).expect("a configuration");
        let act = fingerprint(b"act");
        let folder = drop_folder(&config);
        assert_eq!(dropped(&folder, act).expect("no folder yet"), []);

        std::fs::create_dir_all(&folder).expect("created");
        let named = |n: u8| folder.join(file_name(act, ConfirmationId::from_bytes([n; 16])));
        std::fs::write(named(1), b"one").expect("written");
        std::fs::write(named(2), vec![b'x'; 4 * MAX_EVIDENCE_LEN]).expect("written");
        symlink("/etc/passwd", named(3)).expect("linked");
        let fifo = (FileType::Fifo, Mode::from_raw_mode(0o600));
        mknodat(CWD, named(4), fifo.0, fifo.1, 0).expect("a pipe");
        std::fs::create_dir(named(5)).expect("created");
        let other = file_name(fingerprint(b"other"), ConfirmationId::from_bytes([6; 16]));
        std::fs::write(folder.join(other), b"other").expect("written");
        std::fs::write(folder.join(format!("{act}.tmp")), b"half").expect("written");

        let found = dropped(&folder, act).expect("readable");
        let lengths: Vec<_> = found
            .iter()
            .map(|(path, bytes)| (path, bytes.len()))
            .collect();
        let (one, two) = (named(1), named(2));
        assert_eq!(lengths, [(&one, 3), (&two, MAX_EVIDENCE_LEN + 1)]);
    }

    #[test]
    fn very_many_files_are_not_all_looked_at() {
        let root = tempfile::tempdir().expect("a folder");
        let text = "project_id = \"web\"\nactor_id = \"agent\"\n";
        let config = Config::parse(text, root.path()).expect("a configuration");
        let (act, folder) = (fingerprint(b"act"), drop_folder(&config));
        std::fs::create_dir_all(&folder).expect("created");
        for n in 0..=MOST as u8 {
            let name = file_name(act, ConfirmationId::from_bytes([n; 16]));
            std::fs::write(folder.join(name), b"x").expect("written");
        }
        assert_eq!(dropped(&folder, act).expect("readable").len(), MOST);
    }
}
