//! Settings on disk: where each client keeps them, and how they are changed there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::super::Client;
use super::{Program, SettingsError, State, state, with_hooks, without_hooks};

/// More than anybody's settings are.
pub const MAX_LEN: u64 = 1 << 20;

/// What a backup is called, beside the file.
const BACKUP: &str = "lodestar-backup";

/// The settings of a client, in a project or of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    client: Client,
    /// The folder that they belong to; links do not lead out of it.
    scope: PathBuf,
    file: PathBuf,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub file: PathBuf,
    /// What was in it; nothing, if it was not there.
    pub before: Option<String>,
    /// What is in it now; nothing, if it is gone.
    pub after: Option<String>,
    /// Where it is kept as it was.
    pub backup: Option<PathBuf>,
}

impl Change {
    /// Whether anything is different now.
    pub fn is_one(&self) -> bool {
        self.before != self.after
    }
}

/// Whether something is done, or only said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earnest {
    /// Done.
    Done,
    /// Only said.
    Rehearsed,
}

impl Settings {
    /// Those of a project, or of a user by their home folder: both keep the same file below.
    pub fn of(client: Client, scope: &Path) -> Self {
        Self {
            client,
            scope: scope.to_owned(),
            file: scope.join(client.settings()),
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// How Lodestar's hooks stand in it.
    pub fn state(&self, program: &Program) -> Result<State, SettingsError> {
        let text = self.read()?.unwrap_or_default();
        state(self.client, &text, program).map_err(|fault| fault.in_file(self.file.clone(), &text))
    }

    /// Puts the hooks in, and keeps the file as it was beside it.
    pub fn install(&self, program: &Program, earnest: Earnest) -> Result<Change, SettingsError> {
        let before = self.read()?;
        let after = with_hooks(self.client, before.as_deref(), program)
            .map_err(|fault| self.fault(fault, before.as_deref()))?;
        let mut change = Change {
            file: self.file.clone(),
            before,
            after: Some(after),
            backup: None,
        };
        if change.is_one() && earnest == Earnest::Done {
            change.backup = match &change.before {
                Some(before) => Some(self.back_up(before)?),
                None => None,
            };
            self.write(change.after.as_deref().unwrap_or_default())?;
        }
        Ok(change)
    }

    /// Takes the hooks out. A file in which nothing else has changed since is as it was before, to the byte.
    pub fn uninstall(&self, program: &Program, earnest: Earnest) -> Result<Change, SettingsError> {
        let before = self.read()?;
        let Some(text) = &before else {
            return Ok(Change {
                file: self.file.clone(),
                before: None,
                after: None,
                backup: None,
            });
        };
        let fault = |fault| self.fault(fault, Some(text));
        let without = without_hooks(self.client, text).map_err(fault)?;
        let (after, spent) = if without == *text {
            (before.clone(), None)
        } else if let Some((backup, old)) = self.backup_of(text, program)? {
            (Some(old), Some(backup))
        } else if with_hooks(self.client, None, program).map_err(fault)? == *text {
            // There was none.
            (None, None)
        } else {
            (Some(without), None)
        };
        let change = Change {
            file: self.file.clone(),
            before,
            after,
            backup: None,
        };
        if change.is_one() && earnest == Earnest::Done {
            match &change.after {
                Some(after) => self.write(after)?,
                None => {
                    let file = self.target()?;
                    fs::remove_file(&file).map_err(io(&file))?;
                    // Installing made its folder as well, which stays where anything else lies in it.
                    let folder = file.parent().filter(|folder| *folder != self.scope);
                    let _ = folder.map(fs::remove_dir);
                }
            }
            if let Some(spent) = spent {
                fs::remove_file(&spent).map_err(io(&spent))?;
            }
        }
        Ok(change)
    }

    fn fault(&self, fault: super::Fault, text: Option<&str>) -> SettingsError {
        fault.in_file(self.file.clone(), text.unwrap_or_default())
    }

    /// Where the file really is. A link may stand for it, if it stays in the folder that it belongs to.
    fn target(&self) -> Result<PathBuf, SettingsError> {
        let scope = self.scope.canonicalize().map_err(io(&self.scope))?;
        let mut there = self.file.as_path();
        // Of what is not there yet, the nearest folder that is.
        while there.symlink_metadata().is_err() {
            match there.parent() {
                Some(above) => there = above,
                None => break,
            }
        }
        let real = there
            .canonicalize()
            .map_err(|problem| match problem.kind() {
                io::ErrorKind::NotFound => SettingsError::LeadsNowhere(there.to_owned()),
                _ => io(there)(problem),
            })?;
        if !real.starts_with(&scope) {
            return Err(SettingsError::LeadsOut {
                file: self.file.clone(),
                scope,
                to: real,
            });
        }
        let rest = self.file.strip_prefix(there).unwrap_or(Path::new(""));
        Ok(match rest.as_os_str().is_empty() {
            true => real,
            false => real.join(rest),
        })
    }

    fn read(&self) -> Result<Option<String>, SettingsError> {
        let file = self.target()?;
        let opened = match File::open(&file) {
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io(&self.file))?,
        };
        let metadata = opened.metadata().map_err(io(&self.file))?;
        if !metadata.is_file() {
            return Err(SettingsError::NoFile(self.file.clone()));
        }
        let mut bytes = Vec::new();
        let mut limited = opened.take(MAX_LEN + 1);
        limited.read_to_end(&mut bytes).map_err(io(&self.file))?;
        if bytes.len() as u64 > MAX_LEN {
            return Err(SettingsError::TooLarge(self.file.clone()));
        }
        let text = String::from_utf8(bytes);
        text.map(Some)
            .map_err(|_| SettingsError::NotText(self.file.clone()))
    }

    fn backups(&self) -> impl Iterator<Item = PathBuf> {
        let name = self.file.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        (1..1000).map(move |number| {
            let ending = match number {
                1 => BACKUP.to_owned(),
                number => format!("{BACKUP}.{number}"),
            };
            self.file.with_file_name(format!("{name}.{ending}"))
        })
    }

    /// Keeps a text beside the file, never in the place of an earlier one.
    fn back_up(&self, text: &str) -> Result<PathBuf, SettingsError> {
        let permissions = self.target()?.metadata().map_err(io(&self.file))?;
        let permissions = permissions.permissions();
        for beside in self.backups() {
            let created = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&beside);
            match created {
                Ok(mut file) => {
                    file.set_permissions(permissions).map_err(io(&beside))?;
                    file.write_all(text.as_bytes()).map_err(io(&beside))?;
                    file.sync_all().map_err(io(&beside))?;
                    return Ok(beside);
                }
                Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {}
                Err(problem) => return Err(io(&beside)(problem)),
            }
        }
        Err(SettingsError::Backups(self.file.clone()))
    }

    /// The backup out of which installing made this very text.
    fn backup_of(
        &self,
        text: &str,
        program: &Program,
    ) -> Result<Option<(PathBuf, String)>, SettingsError> {
        for backup in self.backups() {
            let old = match fs::symlink_metadata(&backup) {
                Err(_) => break,
                Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_LEN => {
                    fs::read_to_string(&backup)
                }
                Ok(_) => continue,
            };
            let Ok(old) = old else { continue };
            let again = with_hooks(self.client, Some(&old), program);
            if again.is_ok_and(|again| again == text) {
                return Ok(Some((backup, old)));
            }
        }
        Ok(None)
    }

    /// Puts a text into the file, whole or not at all, and keeps who may read it.
    fn write(&self, text: &str) -> Result<(), SettingsError> {
        let file = self.target()?;
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(io(folder))?;
        let mode = file.metadata().map(|metadata| metadata.permissions());
        let mode = mode.unwrap_or_else(|_| fs::Permissions::from_mode(0o644));
        let new = folder.join(format!(".lodestar-new-{}", std::process::id()));
        let written = (|| {
            let mut out = OpenOptions::new().write(true).create_new(true).open(&new)?;
            out.set_permissions(mode)?;
            out.write_all(text.as_bytes())?;
            out.sync_all()?;
            fs::rename(&new, &file)
        })();
        written.map_err(|problem| {
            // What was not moved is nobody's.
            let _ = fs::remove_file(&new);
            io(&self.file)(problem)
        })
    }
}

fn io(file: &Path) -> impl FnOnce(io::Error) -> SettingsError {
    let file = file.to_owned();
    move |problem| SettingsError::Io { file, problem }
}
