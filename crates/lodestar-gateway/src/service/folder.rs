//! The service's own folder: who serves has it alone, and nobody else can look into it.
//!
//! ```text
//! <data>/lock            held by whoever serves
//!        gateway.db      the database, where it is SQLite
//!        keys/log.key    signs the event log
//!        log/gateway/…   the event log
//!        bundles/<sha256>
//!        scratch/        bundles on their way, and unpacked ones
//!        admin.sock      the platform's routes
//! ```

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::digest::Digest;
use lodestar_core::key::SecretKey;
use lodestar_core::note::{NoteKey, encode_secret, parse_secret};
use thiserror::Error;
use zeroize::Zeroizing;

/// The name that log keys of installations have.
const KEY_NAME: &str = "lodestar-log";

/// A key's file has a few hundred bytes.
const KEY_BYTES: u64 = 4096;

/// Why there is no folder to serve from.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The system refused.
    #[error("`{}`: {problem}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// Another process serves from it.
    #[error("another service runs in `{}`", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// Others could have read the key.
    #[error("`{}` can be read by others (mode {mode:04o}); if nobody has, give it mode 600", path.display())]
    Open {
        /// Where.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The key's file holds none.
    #[error("`{}` is no log key: {problem}", path.display())]
    Key {
        /// Where.
        path: PathBuf,
        /// Why.
        problem: String,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |problem| FolderError::Io { path, problem }
}

/// The folder, while it is served from.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Takes the folder, and makes what is missing.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        private(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(at(path))?;
        let path = path.canonicalize().map_err(at(path))?;
        let name = path.join("lock");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&name).map_err(at(&name))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FolderError::InUse { path }),
            Err(TryLockError::Error(problem)) => return Err(at(&name)(problem)),
        }
        let folder = Self { path, _lock: lock };
        // What was on its way when the service last ended will not arrive any more.
        let scratch = folder.scratch();
        match std::fs::remove_dir_all(&scratch) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                return Err(at(&scratch)(problem));
            }
            _ => {}
        }
        for part in [folder.bundles(), scratch, folder.log()] {
            private(&part)?;
        }
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where bundles are kept.
    pub fn bundles(&self) -> PathBuf {
        self.path.join("bundles")
    }

    /// Where one is, by its digest.
    pub fn bundle(&self, digest: Digest) -> PathBuf {
        self.bundles().join(digest.to_string())
    }

    /// Those that are there, by their digests.
    pub(super) fn bundle_digests(&self) -> Result<Vec<Digest>, FolderError> {
        let folder = self.bundles();
        let mut digests = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(at(&folder))? {
            let name = entry.map_err(at(&folder))?.file_name();
            digests.extend(name.to_str().and_then(|name| name.parse::<Digest>().ok()));
        }
        Ok(digests)
    }

    /// Takes them out.
    pub(super) fn forget_bundles(&self, digests: &[Digest]) -> Result<(), FolderError> {
        for digest in digests {
            let path = self.bundle(*digest);
            match std::fs::remove_file(&path) {
                Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                    return Err(at(&path)(problem));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Where they are on their way, and taken apart.
    pub fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }

    /// Where the event log is.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The key that signs the event log: the one that is there, or a new one.
    pub fn log_key(&self) -> Result<Arc<SecretKey>, FolderError> {
        let keys = self.path.join("keys");
        private(&keys)?;
        let path = keys.join("log.key");
        if !path.try_exists().map_err(at(&path))? {
            let mut seed = Zeroizing::new([0; 32]);
            getrandom::fill(seed.as_mut_slice()).map_err(|e| at(&path)(io::Error::other(e)))?;
            let key = SecretKey::from_seed(*seed);
            let named = "INVARIANT: a constant that is a name";
            let text = encode_secret(KEY_NAME, &key).expect(named);
            let text = Zeroizing::new(format!("{}\n", text.as_str()));
            // Whole or not at all: a beginning of a key is none.
            let new = keys.join("log.key.new");
            write_private(&new, text.as_bytes()).map_err(at(&new))?;
            std::fs::rename(&new, &path).map_err(at(&path))?;
            let public = NoteKey::ed25519(KEY_NAME, &key.public()).expect(named);
            let shown = keys.join("log.pub");
            std::fs::write(&shown, format!("{public}\n")).map_err(at(&shown))?;
            let dir = File::open(&keys).map_err(at(&keys))?;
            dir.sync_all().map_err(at(&keys))?;
        }
        read_key(&path).map(Arc::new)
    }
}

/// A folder that only its owner enters.
fn private(path: &Path) -> Result<(), FolderError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(at(path))
}

fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn read_key(path: &Path) -> Result<SecretKey, FolderError> {
    let file = File::open(path).map_err(at(path))?;
    let mode = file.metadata().map_err(at(path))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(FolderError::Open {
            path: path.to_owned(),
            mode: mode & 0o7777,
        });
    }
    let mut text = Zeroizing::new(String::with_capacity(KEY_BYTES as usize));
    let read = file.take(KEY_BYTES).read_to_string(&mut text);
    read.map_err(at(path))?;
    match parse_secret(text.trim_end_matches('\n')) {
        Ok((_, key)) => Ok(key),
        Err(problem) => Err(FolderError::Key {
            path: path.to_owned(),
            problem: problem.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_serves_and_the_key_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        let folder = Folder::open(&path).unwrap();
        let key = folder.log_key().unwrap().public();
        assert!(matches!(
            Folder::open(&path),
            Err(FolderError::InUse { .. })
        ));
        drop(folder);
        let folder = Folder::open(&path).unwrap();
        assert_eq!(folder.log_key().unwrap().public(), key);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_key_that_others_could_read_is_none() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        folder.log_key().unwrap();
        let path = folder.path().join("keys/log.key");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(folder.log_key(), Err(FolderError::Open { .. })));
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "no key").unwrap();
        assert!(matches!(folder.log_key(), Err(FolderError::Key { .. })));
    }

    #[test]
    fn what_was_on_its_way_is_gone_after_a_restart() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let left = folder.scratch().join("half-a-bundle");
        std::fs::write(&left, "…").unwrap();
        drop(folder);
        Folder::open(place.path()).unwrap();
        assert!(!left.exists());
    }
}
