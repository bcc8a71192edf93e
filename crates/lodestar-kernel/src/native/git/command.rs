//! The real `git`, in an environment that holds nothing but what is written here.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;

use super::config::GitError;
use crate::native::fs::Reins;
use crate::native::shell::executable::Executable;
use crate::native::shell::process::{self, Confines, End, Run};
use crate::native::shell::{DEFAULT_HOME, DEFAULT_PATH};

/// Where `git` is looked for.
const USUAL_PLACES: [&str; 4] = [
    "/usr/bin/git",
    "/usr/local/bin/git",
    "/bin/git",
    "/opt/homebrew/bin/git",
];

/// Most that one command may say.
pub(crate) const MAX_OUTPUT: usize = 8 * 1024 * 1024;

/// Most of git's own words in a message.
const MAX_MESSAGE: usize = 400;

/// No configuration but that of the directory it is pointed to, nobody to ask, no way out.
const ENVIRONMENT: [(&str, &str); 19] = [
    ("PATH", DEFAULT_PATH),
    ("HOME", DEFAULT_HOME),
    ("XDG_CONFIG_HOME", DEFAULT_HOME),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", ":"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    // No protocol has this name; a push names the one it needs.
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// The program.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    executable: Executable,
}

/// One command.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<OsString>,
    /// Beyond the fixed environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: &'a OwnedFd,
    pub(crate) input: Option<&'a [u8]>,
    /// Where it works, and what it needs beyond.
    pub(crate) confines: Confines,
}

/// What it answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The exit code; none after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Answer {
    /// What it said, if it succeeded.
    pub(crate) fn success(self, command: &'static str) -> Result<Vec<u8>, GitError> {
        if self.code == Some(0) {
            return Ok(self.stdout);
        }
        Err(GitError::Failed {
            command,
            message: inert(&self.stderr),
        })
    }
}

impl Git {
    pub(crate) fn pin(path: Option<&Path>) -> Result<Self, GitError> {
        let path = match path {
            Some(path) => path,
            None => USUAL_PLACES
                .iter()
                .map(Path::new)
                .find(|place| place.exists())
                .ok_or(GitError::NoGit)?,
        };
        Ok(Self {
            executable: Executable::pin(path)?,
        })
    }

    pub(crate) fn run(&self, order: &Order<'_>, reins: &Reins) -> Result<Answer, GitError> {
        self.executable.check()?;
        let mut environment: BTreeMap<OsString, OsString> = ENVIRONMENT
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        environment.extend(order.environment.iter().cloned());
        let run = Run {
            executable: &self.executable,
            arguments: order.arguments.clone(),
            environment,
            directory: order.directory,
            input: order.input,
            max_output: MAX_OUTPUT,
            confines: order.confines.clone(),
        };
        let command = order.name;
        if let Some(early) = reins.early() {
            return Err(GitError::early(command, early));
        }
        let ended = process::run(&run, reins).map_err(GitError::Start)?;
        match ended.end {
            End::Early(early) => Err(GitError::early(command, early)),
            End::Flooded(_) => Err(GitError::TooMuch { command }),
            End::Own => Ok(Answer {
                code: ended.status.code(),
                stdout: ended.stdout,
                stderr: ended.stderr,
            }),
        }
    }
}

/// Words for a list of arguments.
pub(crate) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}

/// A variable.
pub(crate) fn variable(name: &str, value: impl AsRef<OsStr>) -> (OsString, OsString) {
    (OsString::from(name), value.as_ref().to_owned())
}

/// Git's words for a message: on one line, escaped, bounded.
pub(crate) fn inert(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    for c in text.trim().chars() {
        match c {
            '\n' => shown.push_str("; "),
            '`' => shown.push('\''),
            ' '..='~' => shown.push(c),
            _ => shown.extend(c.escape_default()),
        }
        if shown.len() > MAX_MESSAGE {
            shown.push_str(&format!("... ({} bytes)", bytes.len()));
            break;
        }
    }
    if shown.is_empty() {
        shown.push_str("it did not say why");
    }
    shown
}
