//! How `shell.run` is set up.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use lodestar_core::name::Excerpt;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::executable::{Executable, ExecutableError};
use crate::native::fs::RootError;
use crate::tool::ToolError;

/// `PATH` of a program, for the programs that it starts: the system's places, not the user's.
pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// `HOME` of a program: nowhere. The user's home has credentials in it, and the project as a home
/// would let the project bring dotfiles.
pub const DEFAULT_HOME: &str = "/nonexistent";

/// `LANG` of a program: messages that stay the same, and UTF-8.
pub const DEFAULT_LANG: &str = "C.UTF-8";

/// Longest run: a test suite of a usual project.
pub const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// Most bytes per stream: what an agent can still use.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// Variables by which a program would be made to load other code before it starts.
const LOADER_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];

/// Ours: keys, and the marker of a run.
const OWN_PREFIX: &str = "LODESTAR_";

/// How `shell.run` is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellConfig {
    /// The directory below which programs are started.
    pub root: PathBuf,
    /// The programs that there are, by the name that the agent uses.
    pub programs: BTreeMap<String, ProgramConfig>,
    /// Variables that programs get, besides `PATH`, `HOME` and `LANG`, which it may replace.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables of the proxy's own environment that are passed on where they are set.
    #[serde(default)]
    pub pass_env: BTreeSet<String>,
    /// Longest run in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Most bytes of output per stream; a program that says more is killed.
    #[serde(default = "default_max_output_bytes")]
    pub max_output_bytes: usize,
}

impl ShellConfig {
    /// The defaults for a root and a list of programs.
    pub fn new(root: impl Into<PathBuf>, programs: BTreeMap<String, ProgramConfig>) -> Self {
        Self {
            root: root.into(),
            programs,
            env: BTreeMap::new(),
            pass_env: BTreeSet::new(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
        }
    }
}

fn default_timeout_ms() -> u64 {
    DEFAULT_TIMEOUT_MS
}

fn default_max_output_bytes() -> usize {
    DEFAULT_MAX_OUTPUT_BYTES
}

/// One program of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramConfig {
    /// Where it is: absolute.
    pub path: PathBuf,
    /// The words that it may be given. Absent: any that are not denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_allow: Option<Vec<WordPattern>>,
    /// The words that it may not be given. A long option stands for `--option=value`, too; but
    /// programs know many spellings of one option, so only `args_allow` is tight.
    #[serde(default)]
    pub args_deny: Vec<WordPattern>,
}

impl ProgramConfig {
    /// A program with any words.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args_allow: None,
            args_deny: Vec::new(),
        }
    }
}

/// A word as it is, or, with `*` at its end, how a word starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WordPattern(pub String);

impl WordPattern {
    fn matches(&self, word: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => word.starts_with(prefix),
            None => word == self.0,
        }
    }

    fn denies(&self, word: &str) -> bool {
        self.matches(word)
            || self.0.starts_with("--")
                && word
                    .strip_prefix(&self.0)
                    .is_some_and(|rest| rest.starts_with('='))
    }
}

/// Why `shell.run` cannot be set up.
#[derive(Debug, Error)]
pub enum ShellError {
    /// The root is none.
    #[error(transparent)]
    Root(#[from] RootError),
    /// No program.
    #[error("`programs` is empty; name at least one program, or leave the tool out")]
    NoPrograms,
    /// A program that is not run.
    #[error("program `{name}`: {source}")]
    Program {
        /// Its name, inert.
        name: Excerpt,
        /// Why.
        source: ExecutableError,
    },
    /// A name that would not be one on a command line.
    #[error("the program name `{name}` is empty or has a blank, a slash or a control character")]
    ProgramName {
        /// The name, inert.
        name: Excerpt,
    },
    /// A variable that no program may get.
    #[error("the variable `{name}` cannot be given to programs: {reason}; remove it")]
    Variable {
        /// Its name, inert.
        name: Excerpt,
        /// Why not.
        reason: &'static str,
    },
    /// A limit of zero.
    #[error("`{name}` is zero, so that nothing could run; raise it")]
    Zero {
        /// The limit.
        name: &'static str,
    },
}

/// A program of the list, pinned.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) executable: Executable,
    allow: Option<Vec<WordPattern>>,
    deny: Vec<WordPattern>,
}

impl Program {
    pub(crate) fn check_words(&self, name: &str, words: &[String]) -> Result<(), ToolError> {
        for word in words {
            if let Some(pattern) = self.deny.iter().find(|pattern| pattern.denies(word)) {
                return Err(ToolError::refused(format!(
                    "`{name}` may not be given `{}`: `args_deny` has `{}`",
                    Excerpt::of(word),
                    Excerpt::of(&pattern.0)
                )));
            }
            let allowed = self
                .allow
                .as_ref()
                .is_none_or(|allow| allow.iter().any(|pattern| pattern.matches(word)));
            if !allowed {
                return Err(ToolError::refused(format!(
                    "`{name}` may not be given `{}`: no entry of its `args_allow` matches",
                    Excerpt::of(word)
                )));
            }
        }
        Ok(())
    }
}

impl ShellConfig {
    pub(crate) fn pinned_programs(&self) -> Result<BTreeMap<String, Program>, ShellError> {
        if self.programs.is_empty() {
            return Err(ShellError::NoPrograms);
        }
        for (name, limit) in [
            ("timeout_ms", self.timeout_ms == 0),
            ("max_output_bytes", self.max_output_bytes == 0),
        ] {
            if limit {
                return Err(ShellError::Zero { name });
            }
        }
        self.programs
            .iter()
            .map(|(name, program)| Ok((name.clone(), pinned(name, program)?)))
            .collect()
    }

    /// The whole environment of a program.
    pub(crate) fn environment(&self) -> Result<BTreeMap<OsString, OsString>, ShellError> {
        let mut environment: BTreeMap<OsString, OsString> = [
            ("PATH", DEFAULT_PATH),
            ("HOME", DEFAULT_HOME),
            ("LANG", DEFAULT_LANG),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
        for name in &self.pass_env {
            check_variable(name, "")?;
            if let Some(value) = std::env::var_os(name) {
                environment.insert(name.into(), value);
            }
        }
        for (name, value) in &self.env {
            check_variable(name, value)?;
            environment.insert(name.into(), value.into());
        }
        Ok(environment)
    }
}

fn pinned(name: &str, program: &ProgramConfig) -> Result<Program, ShellError> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    if name.is_empty() || name.contains(odd) {
        return Err(ShellError::ProgramName {
            name: Excerpt::of(name),
        });
    }
    let executable = Executable::pin(&program.path).map_err(|source| ShellError::Program {
        name: Excerpt::of(name),
        source,
    })?;
    Ok(Program {
        executable,
        allow: program.args_allow.clone(),
        deny: program.args_deny.clone(),
    })
}

fn check_variable(name: &str, value: &str) -> Result<(), ShellError> {
    let reason = if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        "it is not a variable"
    } else if name.starts_with(OWN_PREFIX) {
        "it is Lodestar's own"
    } else if LOADER_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
    {
        "it makes programs load other code"
    } else {
        return Ok(());
    };
    Err(ShellError::Variable {
        name: Excerpt::of(name),
        reason,
    })
}
