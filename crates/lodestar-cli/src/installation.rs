//! What people's keys add to an installation: who signs, and where their keys lie.

use std::io;
use std::path::{Path, PathBuf};

use lodestar_core::name::{ActorId, Excerpt};
use lodestar_core::note::NoteKey;
use lodestar_guard::installation::InstallationError;
use lodestar_guard::installation::files::{self, FileError};

pub(crate) use lodestar_guard::Installation;
pub(crate) use lodestar_guard::installation::{fresh_key, read_vkey};

use crate::failure::Failure;
use crate::inert;

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

/// Where an operator's private key is.
pub(crate) fn operator_key_path(installation: &Installation, name: &OperatorName) -> PathBuf {
    installation.key_path(name.as_str())
}

fn paths(installation: &Installation, name: &OperatorName) -> (PathBuf, PathBuf) {
    let key = operator_key_path(installation, name);
    (key, installation.operator_pin_path(name.as_str()))
}

/// Stores a new operator's key and pins its public part. Nothing that is there is replaced.
pub(crate) fn add_operator(
    installation: &Installation,
    name: &OperatorName,
    private: &str,
    public: &NoteKey,
) -> Result<(), Failure> {
    let (key, pin) = paths(installation, name);
    files::create_private_dir(&installation.dir().join("keys"))?;
    files::create_private_dir(&installation.dir().join("operators"))?;
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
pub(crate) fn check_operator_is_new(
    installation: &Installation,
    name: &OperatorName,
) -> Result<(), Failure> {
    let (key, pin) = paths(installation, name);
    match [key, pin]
        .iter()
        .find(|path| path.symlink_metadata().is_ok())
    {
        Some(path) => Err(exists(path)),
        None => Ok(()),
    }
}

/// The names of the operators whose private keys are here.
pub(crate) fn operator_keys(installation: &Installation) -> Result<Vec<OperatorName>, Failure> {
    let names = installation.key_names()?;
    Ok(names
        .iter()
        .filter_map(|name| OperatorName::parse(name).ok())
        .collect())
}

/// Whether there is such a file; a directory that cannot be looked into says nothing of it.
pub(crate) fn is_there(path: &Path) -> Result<bool, Failure> {
    Ok(files::is_there(path)?)
}

fn exists(path: &Path) -> Failure {
    Failure::usage(format!("`{}` exists already", inert::path(path)))
        .help("choose another name; keys are never overwritten")
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { path, problem } => Self::io(path)(problem),
            FileError::OpenToOthers { path, mode } => {
                let shown = inert::path(&path);
                Self::not_authorised(format!(
                    "`{shown}` is open to others (mode {mode:04o}), so what is in it is no secret"
                ))
                .help(format!(
                    "if nobody else can have read it: chmod 600 {shown}"
                ))
            }
            FileError::TooLarge { path, limit } => Self::usage(format!(
                "`{}` is larger than {limit} bytes, so it cannot be what was expected",
                inert::path(&path)
            )),
            FileError::NotText { path } => {
                Self::usage(format!("`{}` is not UTF-8 text", inert::path(&path)))
            }
        }
    }
}

impl From<InstallationError> for Failure {
    fn from(error: InstallationError) -> Self {
        match error {
            InstallationError::NoDirectory => Self::usage(error.to_string())
                .help("set LODESTAR_CONFIG_DIR to the directory that holds `keys/`"),
            InstallationError::File(error) => error.into(),
            InstallationError::NoLogKey { path } => Self::not_authorised(format!(
                "this installation has no log key (`{}`)",
                inert::path(&path)
            ))
            .help("only the installation that wrote a log can continue it; LODESTAR_CONFIG_DIR names another one"),
            InstallationError::NotALogKey { path, problem } => {
                Self::usage(format!("`{}` is no log key: {problem}", inert::path(&path)))
            }
            InstallationError::NotAPublicKey { path, problem } => Self::usage(format!(
                "`{}` is no public key: {problem}",
                inert::path(&path)
            )),
            InstallationError::Random(_) => Self::usage(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operator_is_called_like_the_log_key_or_a_path() {
        for bad in [
            "log", "LOG", "Log", "", "../x", "a/b", "a\nb", "-x", ".hidden",
        ] {
            assert!(OperatorName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(OperatorName::parse("logan").is_ok());
    }
}
