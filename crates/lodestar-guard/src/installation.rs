//! This installation's own directory: the log key, operators' keys, and whom it trusts.
//!
//! ```text
//! keys/log.key              signs checkpoints, ledgers and rows    (private)
//! keys/log.pub              verifies them
//! keys/<name>.key           an operator's key                      (private)
//! operators/<name>.pub      operators whose redactions and orders count
//! witnesses/<name>.pub      witnesses whose co-signatures count
//! installations/<name>.pub  installations whose rows count in a shared store
//! packs/<author>.pub        authors whose packs of probes run
//! ```
//!
//! It lies outside every project, so that no tool of an agent is served from it.

pub mod files;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::note::{NoteKey, encode_secret, parse_secret};
use thiserror::Error;
use zeroize::Zeroizing;

use files::FileError;

/// The name in the log key's text form. Which log a checkpoint is of stands in its origin.
const LOG_KEY_NAME: &str = "lodestar-log";

/// Why a key is not to be had.
#[derive(Debug, Error)]
pub enum InstallationError {
    /// The environment names no directory.
    #[error(
        "there is no configuration directory: neither LODESTAR_CONFIG_DIR nor XDG_CONFIG_HOME nor HOME is set"
    )]
    NoDirectory,
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no log key here.
    #[error("this installation has no log key (`{}`)", .path.display())]
    NoLogKey {
        /// Where it would be.
        path: PathBuf,
    },
    /// What lies there is no log key.
    #[error("`{}` is no log key: {problem}", .path.display())]
    NotALogKey {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// What lies there is no public key.
    #[error("`{}` is no public key: {problem}", .path.display())]
    NotAPublicKey {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The system gives no randomness.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}

/// The directory, which need not exist yet.
#[derive(Debug, Clone)]
pub struct Installation {
    dir: PathBuf,
}

impl Installation {
    /// Finds it through the environment.
    pub fn locate() -> Result<Self, InstallationError> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self::from_environment(set).ok_or(InstallationError::NoDirectory)
    }

    fn from_environment(set: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let own = set("LODESTAR_CONFIG_DIR").map(PathBuf::from);
        let xdg = || {
            // The XDG specification says to ignore relative paths.
            let dir = set("XDG_CONFIG_HOME").map(PathBuf::from);
            dir.filter(|dir| dir.is_absolute())
                .map(|dir| dir.join("lodestar"))
        };
        let home = || Some(PathBuf::from(set("HOME")?).join(".config/lodestar"));
        own.or_else(xdg).or_else(home).map(Self::at)
    }

    /// The one in this directory.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where a private key is kept.
    pub fn key_path(&self, name: &str) -> PathBuf {
        self.dir.join("keys").join(format!("{name}.key"))
    }

    fn log_public_path(&self) -> PathBuf {
        self.dir.join("keys").join("log.pub")
    }

    /// Where an operator's public key is pinned.
    pub fn operator_pin_path(&self, name: &str) -> PathBuf {
        self.dir.join("operators").join(format!("{name}.pub"))
    }

    /// The key this installation's logs are verified with, where there is one.
    pub fn log_public(&self) -> Result<Option<PublicKey>, InstallationError> {
        let path = self.log_public_path();
        if files::is_there(&path)? {
            return read_vkey(&path).map(|key| Some(*key.public_key()));
        }
        // Making the pair may have been interrupted between its two files.
        match files::is_there(&self.key_path("log"))? {
            true => self.log_secret().map(|key| Some(key.public())),
            false => Ok(None),
        }
    }

    /// The key that signs. What continues a log needs the one it was begun with, so none is made
    /// here.
    pub fn log_secret(&self) -> Result<SecretKey, InstallationError> {
        let path = self.key_path("log");
        if !files::is_there(&path)? {
            return Err(InstallationError::NoLogKey { path });
        }
        let text = files::read_private(&path)?;
        match parse_secret(text.trim_end_matches('\n')) {
            Ok((_, key)) => Ok(key),
            Err(problem) => Err(InstallationError::NotALogKey {
                path,
                problem: problem.to_string(),
            }),
        }
    }

    /// Makes the log key, or takes the one that is there or that another process made first.
    pub fn create_log_key(&self) -> Result<SecretKey, InstallationError> {
        let path = self.key_path("log");
        files::create_private_dir(&self.dir.join("keys"))?;
        let fresh = fresh_key()?;
        let secret =
            encode_secret(LOG_KEY_NAME, &fresh).expect("INVARIANT: a constant that is a name");
        let secret = Zeroizing::new(format!("{}\n", secret.as_str()));
        let key = match files::create_new(&path, secret.as_bytes(), 0o600) {
            Ok(()) => fresh,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => self.log_secret()?,
            Err(e) => return Err(FileError::io(&path)(e).into()),
        };
        let public = NoteKey::ed25519(LOG_KEY_NAME, &key.public())
            .expect("INVARIANT: a constant that is a name");
        let path = self.log_public_path();
        match files::create_new(&path, format!("{public}\n").as_bytes(), 0o644) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                Err(FileError::io(&path)(e).into())
            }
            _ => Ok(key),
        }
    }

    /// The operators whose redactions and orders count here, by the names they are pinned under.
    pub fn operators(&self) -> Result<Vec<(String, PublicKey)>, InstallationError> {
        let pins = self.pinned("operators")?;
        Ok(pins
            .into_iter()
            .map(|(name, key)| (name, *key.public_key()))
            .collect())
    }

    /// The witnesses whose co-signatures count here.
    pub fn witnesses(&self) -> Result<Vec<NoteKey>, InstallationError> {
        let pins = self.pinned("witnesses")?;
        Ok(pins.into_iter().map(|(_, key)| key).collect())
    }

    /// The other installations whose rows count here.
    pub fn installations(&self) -> Result<Vec<PublicKey>, InstallationError> {
        let pins = self.pinned("installations")?;
        Ok(pins.into_iter().map(|(_, key)| *key.public_key()).collect())
    }

    /// The authors whose packs of probes run here, by the names they are pinned under.
    pub fn pack_authors(&self) -> Result<Vec<(String, PublicKey)>, InstallationError> {
        let pins = self.pinned("packs")?;
        Ok(pins
            .into_iter()
            .map(|(name, key)| (name, *key.public_key()))
            .collect())
    }

    /// The names of the private keys that are here, the log's own among them.
    pub fn key_names(&self) -> Result<Vec<String>, InstallationError> {
        Ok(stems(&self.dir.join("keys"), "key")?)
    }

    fn pinned(&self, folder: &str) -> Result<Vec<(String, NoteKey)>, InstallationError> {
        let dir = self.dir.join(folder);
        stems(&dir, "pub")?
            .into_iter()
            .map(|stem| {
                let key = read_vkey(&dir.join(format!("{stem}.pub")))?;
                Ok((stem, key))
            })
            .collect()
    }
}

/// A key from the operating system's randomness.
pub fn fresh_key() -> Result<SecretKey, InstallationError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut_slice())
        .map_err(|problem| InstallationError::Random(problem.to_string()))?;
    Ok(SecretKey::from_seed(*seed))
}

/// Reads a file with one public key in its text form.
pub fn read_vkey(path: &Path) -> Result<NoteKey, InstallationError> {
    let text = files::read_text(path)?;
    let parsed = text.trim_end_matches('\n').parse::<NoteKey>();
    parsed.map_err(|problem| InstallationError::NotAPublicKey {
        path: path.to_owned(),
        problem: problem.to_string(),
    })
}

/// The names of a directory's files of one kind, sorted; none where there is no directory.
fn stems(dir: &Path, extension: &str) -> Result<Vec<String>, FileError> {
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(FileError::io(dir))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(FileError::io(dir))?.file_name();
        let stem = name
            .to_str()
            .and_then(|n| n.strip_suffix(extension)?.strip_suffix('.'));
        names.extend(
            stem.filter(|stem| !stem.starts_with('.'))
                .map(str::to_owned),
        );
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(variables: &[(&str, &str)]) -> Option<PathBuf> {
        Installation::from_environment(|name| {
            let found = variables.iter().find(|(n, _)| *n == name)?;
            Some(OsString::from(found.1))
        })
        .map(|i| i.dir)
    }

    #[test]
    fn the_directory_is_the_own_one_then_xdg_then_home() {
        let all = [
            ("LODESTAR_CONFIG_DIR", "/own"),
            ("XDG_CONFIG_HOME", "/xdg"),
            ("HOME", "/home/a"),
        ];
        assert_eq!(located(&all), Some("/own".into()));
        assert_eq!(located(&all[1..]), Some("/xdg/lodestar".into()));
        assert_eq!(located(&all[2..]), Some("/home/a/.config/lodestar".into()));
        assert_eq!(located(&[]), None);
        let relative = [("XDG_CONFIG_HOME", "rel"), ("HOME", "/h")];
        assert_eq!(located(&relative), Some("/h/.config/lodestar".into()));
    }

    #[test]
    fn the_log_key_is_made_once_and_by_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let installation = Installation::at(dir.path().join("config"));
        let keys: Vec<PublicKey> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| installation.create_log_key().expect("a key").public()))
                .collect();
            handles
                .into_iter()
                .map(|h| h.join().expect("no panic"))
                .collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(installation.log_public().expect("readable"), Some(keys[0]));
    }
}
