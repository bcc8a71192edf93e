//! Halting a session from outside: a file beside its log, which only ever closes.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lodestar_log::SessionDir;

use crate::stop::Stop;

/// The file's name in the session's folder.
const FILE: &str = "halt";

/// Whether a session is halted. Once it is, it stays so.
#[derive(Debug, Clone)]
pub struct Halt {
    file: PathBuf,
    halted: Arc<AtomicBool>,
    /// What runs is told to stop.
    pub(crate) stop: Stop,
}

impl Halt {
    /// The switch of a session.
    pub fn of(dir: &SessionDir) -> Self {
        Self {
            file: dir.dir().join(FILE),
            halted: Arc::default(),
            stop: Stop::new(),
        }
    }

    /// Whether it is halted; looks at the disk, so that a word from another process counts at once.
    pub fn is_halted(&self) -> bool {
        if self.halted.load(Ordering::Acquire) {
            return true;
        }
        // Whatever cannot be looked at may be there.
        let there = self.file.try_exists().unwrap_or(true);
        if there {
            self.set();
        }
        there
    }

    /// Halts it from inside.
    pub fn set(&self) {
        self.halted.store(true, Ordering::Release);
        self.stop.stop();
    }

    /// Asks for it from outside, with a reason for whoever looks. Asking twice is asking once.
    pub fn ask(dir: &SessionDir, reason: &str) -> io::Result<()> {
        let path = dir.dir().join(FILE);
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        match made {
            Ok(mut file) => {
                file.write_all(reason.as_bytes())?;
                file.sync_all()
            }
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(problem) => Err(problem),
        }
    }

    /// The reason that was given, bounded.
    pub fn reason(&self) -> String {
        let text = std::fs::read(&self.file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(1024)]).into_owned();
        if text.is_empty() {
            "no reason given".to_owned()
        } else {
            text
        }
    }
}
