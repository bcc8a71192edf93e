//! This installation's own directory: the log key, operators' keys, and whom it trusts.
//!
//! ```text
//! keys/log.key              signs checkpoints, ledgers and rows    (private)
//! keys/log.pub              verifies them
//! keys/<name>.key           an operator's key                      (private)
//! operators/<name>.pub      operators whose redactions and orders count
//! witnesses/<name>.pub      witnesses whose co-signatures count
//! installations/<name>.pub  installations whose rows count in a shared store
//! ```
//!
//! It lies outside every project, so that no tool of an agent is served from it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::{ActorId, Excerpt};
use lodestar_core::note::{NoteKey, encode_secret, parse_secret};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::{files, inert};

/// The name in the log key's text form. Which log a checkpoint is of stands in its origin.
const LOG_KEY_NAME: &str = "lodestar-log";

/// An operator's name: it names files, and none of them may be the log key's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperatorName(ActorId);

impl OperatorName {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let name = ActorId::new(text).map_err(|e| Failure::name("operator", &e))?;
        // Some file systems do not tell `Log.key` from `log.key`.
        if text.eq_ignore_ascii_case("log") {
            return Err(Failure::usage(format!(
                "an operator cannot be called `{}`: that is the log key's name",
                Excerpt::of(text)
            )));
        }
        Ok(Self(name))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The directory, which need not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    dir: PathBuf,
}

impl Installation {
    /// Finds it through the environment.
    pub(crate) fn locate() -> Result<Self, Failure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self::from_environment(set).ok_or_else(|| {
            Failure::usage("there is no configuration directory: neither LODESTAR_CONFIG_DIR nor XDG_CONFIG_HOME nor HOME is set")
                .help("set LODESTAR_CONFIG_DIR to the directory that holds `keys/`")
        })
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

    pub(crate) fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn key_path(&self, name: &str) -> PathBuf {
        self.dir.join("keys").join(format!("{name}.key"))
    }

    fn log_public_path(&self) -> PathBuf {
        self.dir.join("keys").join("log.pub")
    }

    /// Where an operator's private key is.
    pub(crate) fn operator_key_path(&self, name: &OperatorName) -> PathBuf {
        self.key_path(name.as_str())
    }

    /// Where an operator's public key is pinned.
    pub(crate) fn operator_pin_path(&self, name: &OperatorName) -> PathBuf {
        self.dir
            .join("operators")
            .join(format!("{}.pub", name.as_str()))
    }

    /// The key this installation's logs are verified with, where there is one.
    pub(crate) fn log_public(&self) -> Result<Option<PublicKey>, Failure> {
        let path = self.log_public_path();
        if is_there(&path)? {
            return read_vkey(&path).map(|key| Some(*key.public_key()));
        }
        // Making the pair may have been interrupted between its two files.
        match is_there(&self.key_path("log"))? {
            true => self.log_secret().map(|key| Some(key.public())),
            false => Ok(None),
        }
    }

    /// The key that signs. Commands that continue a log need the one it was begun with, so none is
    /// made here.
    pub(crate) fn log_secret(&self) -> Result<SecretKey, Failure> {
        let path = self.key_path("log");
        if !is_there(&path)? {
            return Err(Failure::not_authorised(format!(
                "this installation has no log key (`{}`)",
                inert::path(&path)
            ))
            .help("only the installation that wrote a log can continue it; LODESTAR_CONFIG_DIR names another one"));
        }
        let text = files::read_private(&path)?;
        let (_, key) = parse_secret(text.trim_end_matches('\n'))
            .map_err(|e| Failure::usage(format!("`{}` is no log key: {e}", inert::path(&path))))?;
        Ok(key)
    }

    /// Makes the log key, or takes the one that another process made first.
    pub(crate) fn create_log_key(&self) -> Result<SecretKey, Failure> {
        let path = self.key_path("log");
        files::create_private_dir(&self.dir.join("keys"))?;
        let fresh = fresh_key()?;
        let secret =
            encode_secret(LOG_KEY_NAME, &fresh).map_err(|e| Failure::usage(e.to_string()))?;
        let secret = Zeroizing::new(format!("{}\n", secret.as_str()));
        let key = match files::create_new(&path, secret.as_bytes(), 0o600) {
            Ok(()) => fresh,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => self.log_secret()?,
            Err(e) => return Err(Failure::io(&path)(e)),
        };
        let public = NoteKey::ed25519(LOG_KEY_NAME, &key.public())
            .map_err(|e| Failure::usage(e.to_string()))?;
        let path = self.log_public_path();
        match files::create_new(&path, format!("{public}\n").as_bytes(), 0o644) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(Failure::io(&path)(e)),
            _ => Ok(key),
        }
    }

    /// Stores a new operator's key and pins its public part. Nothing that is there is replaced.
    pub(crate) fn add_operator(
        &self,
        name: &OperatorName,
        private: &str,
        public: &NoteKey,
    ) -> Result<(), Failure> {
        let (key, pin) = (self.operator_key_path(name), self.operator_pin_path(name));
        files::create_private_dir(&self.dir.join("keys"))?;
        files::create_private_dir(&self.dir.join("operators"))?;
        let create = |path: &Path, content: &[u8], mode| {
            files::create_new(path, content, mode).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => exists(path),
                _ => Failure::io(path)(e),
            })
        };
        create(&pin, format!("{public}\n").as_bytes(), 0o644)?;
        create(&key, private.as_bytes(), 0o600).inspect_err(|_| {
            // A pin without its key would only stand in the way of the next attempt.
            let _ = std::fs::remove_file(&pin);
        })
    }

    /// Refuses before anybody types a passphrase in vain.
    pub(crate) fn check_operator_is_new(&self, name: &OperatorName) -> Result<(), Failure> {
        let paths = [self.operator_key_path(name), self.operator_pin_path(name)];
        match paths.iter().find(|path| path.symlink_metadata().is_ok()) {
            Some(path) => Err(exists(path)),
            None => Ok(()),
        }
    }

    /// The operators whose redactions and orders count here, by the names they are pinned under.
    pub(crate) fn operators(&self) -> Result<Vec<(String, PublicKey)>, Failure> {
        let pins = self.pinned("operators")?;
        Ok(pins
            .into_iter()
            .map(|(name, key)| (name, *key.public_key()))
            .collect())
    }

    /// The witnesses whose co-signatures count here.
    pub(crate) fn witnesses(&self) -> Result<Vec<NoteKey>, Failure> {
        let pins = self.pinned("witnesses")?;
        Ok(pins.into_iter().map(|(_, key)| key).collect())
    }

    /// The other installations whose rows count here.
    pub(crate) fn installations(&self) -> Result<Vec<PublicKey>, Failure> {
        let pins = self.pinned("installations")?;
        Ok(pins.into_iter().map(|(_, key)| *key.public_key()).collect())
    }

    /// The names of the operators whose private keys are here.
    pub(crate) fn operator_keys(&self) -> Result<Vec<OperatorName>, Failure> {
        let names = stems(&self.dir.join("keys"), "key")?;
        Ok(names
            .iter()
            .filter_map(|name| OperatorName::parse(name).ok())
            .collect())
    }

    fn pinned(&self, folder: &str) -> Result<Vec<(String, NoteKey)>, Failure> {
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

/// Whether there is such a file; a directory that cannot be looked into says nothing of it.
pub(crate) fn is_there(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(Failure::io(path))
}

fn exists(path: &Path) -> Failure {
    Failure::usage(format!("`{}` exists already", inert::path(path)))
        .help("choose another name; keys are never overwritten")
}

/// A key from the operating system's randomness.
pub(crate) fn fresh_key() -> Result<SecretKey, Failure> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut_slice())
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    Ok(SecretKey::from_seed(*seed))
}

/// Reads a file with one public key in its text form.
pub(crate) fn read_vkey(path: &Path) -> Result<NoteKey, Failure> {
    let text = files::read_text(path)?;
    text.trim_end_matches('\n')
        .parse()
        .map_err(|e| Failure::usage(format!("`{}` is no public key: {e}", inert::path(path))))
}

/// The names of a directory's files of one kind, sorted; none where there is no directory.
fn stems(dir: &Path, extension: &str) -> Result<Vec<String>, Failure> {
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Failure::io(dir))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(Failure::io(dir))?.file_name();
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
    fn no_operator_is_called_like_the_log_key_or_a_path() {
        for bad in [
            "log", "LOG", "Log", "", "../x", "a/b", "a\nb", "-x", ".hidden",
        ] {
            assert!(OperatorName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(OperatorName::parse("logan").is_ok());
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
