//! What a command says when it cannot do its work: what happened, and what to do about it.
//!
//! The exit codes are part of the interface. With `--json` a failure is one JSON object on stderr,
//! so that stdout carries results and nothing else:
//! `{"error":{"code":"not_found","exit":3,"message":"…","help":"…"}}`.

use std::io::{self, Write};
use std::path::Path;

use lodestar_core::name::NameError;
use lodestar_harness::Broken;
use serde_json::json;

use crate::inert;
use crate::json;
use crate::paint::Paint;

/// How a command ended, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The work is done, and what was checked holds.
    Done,
    /// The work is done, and what was checked does not hold.
    CheckFailed,
    /// Wrong arguments or configuration, or a file that cannot be read or written.
    Usage,
    /// What was named does not exist.
    NotFound,
    /// A key is missing, unprotected, or not entitled.
    NotAuthorised,
    /// What was run inside a sandbox ended so.
    Agent(u8),
}

impl Exit {
    /// The name machines see.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::CheckFailed => "check_failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::NotAuthorised => "not_authorised",
            Self::Agent(_) => "agent",
        }
    }

    /// The number scripts see.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::CheckFailed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::NotAuthorised => 4,
            Self::Agent(code) => code,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    help: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message)
    }

    pub(crate) fn not_authorised(message: impl Into<String>) -> Self {
        Self::new(Exit::NotAuthorised, message)
    }

    pub(crate) fn check(message: impl Into<String>) -> Self {
        Self::new(Exit::CheckFailed, message)
    }

    /// On one line, with what to do about it.
    pub(crate) fn with_help(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Says what to do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// A name that is none; there are several kinds, and the command may have been given more
    /// than one.
    pub(crate) fn name(of: &str, error: &NameError) -> Self {
        let text = error.to_string();
        Self::usage(match text.strip_prefix("the name") {
            Some(rest) => format!("the {of}'s name{rest}"),
            None => format!("the {of}'s name: {text}"),
        })
    }

    /// A file operation that failed.
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let shown = inert::path(path.as_ref());
        move |error| {
            let exit = match error.kind() {
                io::ErrorKind::NotFound => Exit::NotFound,
                io::ErrorKind::PermissionDenied => Exit::NotAuthorised,
                _ => Exit::Usage,
            };
            Self::new(exit, format!("`{shown}`: {error}"))
        }
    }

    /// Says it, on stderr. Nobody may be listening there; that is not another failure.
    pub(crate) fn report(&self, as_json: bool, paint: Paint) {
        let mut stderr = io::stderr().lock();
        let text = if as_json {
            json::compact(&json!({"error": {
                "code": self.exit.code(),
                "exit": self.exit.number(),
                "message": self.message,
                "help": self.help,
            }}))
        } else {
            self.text(paint)
        };
        let _ = writeln!(stderr, "{text}");
    }

    fn text(&self, paint: Paint) -> String {
        let mut text = format!("{} {}", paint.bad("error:"), inert::lines(&self.message));
        if let Some(help) = &self.help {
            text.push_str(&format!("\n{} {}", paint.dim("help:"), inert::lines(help)));
        }
        text
    }
}

/// A part of the harness that could not go on.
impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        let (Broken::Failed(why) | Broken::Breached(why) | Broken::Skipped(why)) = broken;
        Self::usage(inert::line(&format!("it could not go on: {why}"), 2000))
    }
}

/// Output that cannot be written; a reader that went away is dealt with in [`crate::output`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::usage(format!("the output cannot be written: {error}"))
    }
}
