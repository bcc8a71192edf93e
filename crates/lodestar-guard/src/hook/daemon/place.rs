//! Where the daemon of a project is found: below the user's own configuration directory, which no tool of an
//! agent reaches, under a name made from the project's root.
//!
//! ```text
//! hook/<project>.sock            the daemon listens there                     (0600)
//! hook/<project>.pass            what a hook shows it; made anew at each start (0600)
//! hook/<project>.lock            held by the daemon for as long as it runs
//! hook/<project>.starting        held by the hook that starts one
//! hook/of/<conversation>         the project that a conversation was first seen in
//! ```
//!
//! The pass is there because a sandbox that keeps a process from reading files does not everywhere keep it
//! from connecting to a socket.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lodestar_core::digest::sha256;

use crate::hook::{Client, Incoming};
use crate::installation::Installation;
use crate::installation::files::{self, FileError};
use crate::recover::OF_CONVERSATION;

/// The folder below the configuration directory.
const FOLDER: &str = "hook";

/// The names of a configuration, in the order in which they count.
const CONFIGURATIONS: [&str; 2] = ["lodestar.toml", "lodestar.json"];

/// Longest path that a socket may have, on every system.
const LONGEST_SOCKET: usize = 100;

/// Longest part of a conversation's own name that is kept.
const LONGEST_NAME: usize = 24;

/// Where the daemon of one project is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    dir: PathBuf,
    key: String,
}

impl Place {
    /// That of a project's root.
    pub(super) fn of(installation: &Installation, root: &Path) -> Self {
        Self {
            dir: installation.dir().join(FOLDER),
            key: short(root.as_os_str().as_bytes()),
        }
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.dir.join(format!("{}.{ending}", self.key))
    }

    /// The folder, made if it is not there; it has to be the user's own, and closed to others.
    pub(super) fn make(&self) -> Result<(), FileError> {
        files::create_private_dir(&self.dir)?;
        self.check()
    }

    /// Whether the folder is the user's own, and closed to others.
    pub(super) fn check(&self) -> Result<(), FileError> {
        let failed = |problem| FileError::Io {
            path: self.dir.clone(),
            problem,
        };
        let found = self.dir.symlink_metadata().map_err(failed)?;
        if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
            let problem = io::Error::other("it is not a folder of this user's");
            return Err(failed(problem));
        }
        let mode = found.permissions().mode() & 0o7777;
        match mode & 0o077 {
            0 => Ok(()),
            _ => Err(FileError::OpenToOthers {
                path: self.dir.clone(),
                mode,
            }),
        }
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.file("sock")
    }

    /// The socket under a name that is short enough to be one, for as long as the file lives.
    pub(super) fn short_socket(&self) -> io::Result<(PathBuf, Option<File>)> {
        use std::os::fd::AsRawFd as _;
        let socket = self.socket();
        if socket.as_os_str().len() <= LONGEST_SOCKET {
            return Ok((socket, None));
        }
        let dir = File::open(&self.dir)?;
        let name = socket.file_name().unwrap_or_default();
        let way = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
        Ok((way.join(name), Some(dir)))
    }

    /// Takes the lock of the daemon, or of whoever starts it; none where somebody has it.
    pub(super) fn lock(&self, whose: Lock) -> io::Result<Option<File>> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.file(whose.ending()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(problem)) => Err(problem),
        }
    }

    /// Makes a new pass, in place of the one that is there.
    pub(super) fn make_pass(&self) -> io::Result<String> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let pass = sha256(&random).to_string();
        let (made, kept) = (self.file("pass.new"), self.file("pass"));
        match std::fs::remove_file(&made) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&made)?;
        file.write_all(pass.as_bytes())?;
        drop(file);
        std::fs::rename(made, kept)?;
        Ok(pass)
    }

    pub(super) fn pass(&self) -> Result<String, FileError> {
        let pass = files::read_private(&self.file("pass"))?;
        Ok(pass.trim_end().to_owned())
    }
}

/// Who holds a lock.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lock {
    Daemon,
    Starting,
}

impl Lock {
    fn ending(self) -> &'static str {
        match self {
            Self::Daemon => "lock",
            Self::Starting => "starting",
        }
    }
}

/// The configuration of the project that a folder lies in: the nearest, from there upwards.
pub fn configuration_above(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find_map(|folder| {
        let mut files = CONFIGURATIONS.iter().map(|name| folder.join(name));
        files.find(|file| file.is_file())
    })
}

/// How the names of all sessions of a conversation begin. What the client calls it is the client's word: of
/// it only what is inert in a name is kept, and its digest tells any two apart.
pub(super) fn sessions_of(client: Client, conversation: &str) -> String {
    let inert = |c: &char| c.is_ascii_alphanumeric();
    let kept: String = conversation
        .chars()
        .filter(inert)
        .take(LONGEST_NAME)
        .collect();
    let digest = short(conversation.as_bytes());
    format!("{OF_CONVERSATION}{}-{kept}-{digest}", client.name())
}

/// Which project a conversation belongs to. It is the one that it was first seen in: an agent that goes to
/// another folder does not change whose rules it is under.
#[derive(Debug)]
pub(super) struct Belongs {
    file: PathBuf,
}

impl Belongs {
    pub(super) fn of(installation: &Installation, incoming: &Incoming) -> Self {
        let name = sessions_of(incoming.client, &incoming.conversation);
        Self {
            file: installation.dir().join(FOLDER).join("of").join(name),
        }
    }

    /// The configuration that it is under, if it was seen before.
    pub(super) fn to(&self) -> Result<Option<PathBuf>, FileError> {
        match files::read(&self.file, files::SMALL) {
            Ok(bytes) => {
                use std::os::unix::ffi::OsStringExt as _;
                Ok(Some(PathBuf::from(std::ffi::OsString::from_vec(bytes))))
            }
            Err(FileError::Io { problem, .. }) if problem.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }

    /// From now on it is under this one, unless it was seen before; says which it is under.
    pub(super) fn settle(&self, configuration: &Path) -> Result<PathBuf, FileError> {
        if let Some(dir) = self.file.parent() {
            files::create_private_dir(dir)?;
        }
        let bytes = configuration.as_os_str().as_bytes();
        match files::create_new(&self.file, bytes, 0o600) {
            Ok(()) => Ok(configuration.to_owned()),
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
                Ok(self.to()?.unwrap_or_else(|| configuration.to_owned()))
            }
            Err(problem) => Err(FileError::Io {
                path: self.file.clone(),
                problem,
            }),
        }
    }

    /// It is over.
    pub(super) fn forget(&self) {
        // One that stays says the same as before.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// How long it is remembered where a conversation belongs that never said that it is over.
const REMEMBERED: Duration = Duration::from_secs(30 * 86_400);

/// Forgets conversations that nobody will come back to.
pub(super) fn forget_old(installation: &Installation) {
    let entries = std::fs::read_dir(installation.dir().join(FOLDER).join("of"));
    for entry in entries.into_iter().flatten().flatten() {
        let written = entry.metadata().and_then(|found| found.modified());
        let age = written.ok().and_then(|written| written.elapsed().ok());
        if age.is_some_and(|age| age > REMEMBERED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Enough of a digest to tell a user's projects and conversations apart.
fn short(bytes: &[u8]) -> String {
    let digest = sha256(bytes).to_hex();
    String::from_utf8_lossy(&digest[..16]).into_owned()
}

#[cfg(test)]
mod tests {
    use lodestar_core::name::SessionId;

    use super::*;

    #[test]
    fn every_conversation_gives_a_name_that_a_session_can_have_and_no_other_conversation_has() {
        let long = "x".repeat(10_000);
        let words = [
            "",
            "..",
            "a/../../b",
            "abc",
            "abc ",
            "a\nb",
            "ä",
            long.as_str(),
        ];
        let mut seen = std::collections::BTreeSet::new();
        for said in words {
            let name = sessions_of(Client::ClaudeCode, said);
            let whole = format!("{name}-1790000000-0123456789ab");
            SessionId::new(whole).unwrap_or_else(|problem| panic!("{said:?}: {problem}"));
            assert!(seen.insert(name), "{said:?}");
        }
        assert!(seen.insert(sessions_of(Client::Codex, "abc")));
    }

    #[test]
    fn a_conversation_stays_under_the_configuration_that_it_was_first_seen_under() {
        let scratch = tempfile::tempdir().unwrap();
        let installation = Installation::at(scratch.path());
        let incoming = Incoming {
            client: Client::Codex,
            conversation: "c".to_owned(),
            cwd: None,
            event: crate::hook::Event::Started,
        };
        let belongs = Belongs::of(&installation, &incoming);
        assert_eq!(belongs.to().unwrap(), None);
        let (first, other) = (Path::new("/a/lodestar.toml"), Path::new("/b/lodestar.toml"));
        assert_eq!(belongs.settle(first).unwrap(), first);
        assert_eq!(belongs.settle(other).unwrap(), first);
        belongs.forget();
        assert_eq!(belongs.settle(other).unwrap(), other);
    }

    #[test]
    fn a_folder_that_others_can_enter_is_not_used() {
        let scratch = tempfile::tempdir().unwrap();
        let place = Place::of(&Installation::at(scratch.path()), Path::new("/p"));
        place.make().unwrap();
        let open = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(&place.dir, open).unwrap();
        assert!(matches!(place.check(), Err(FileError::OpenToOthers { .. })));
    }
}
