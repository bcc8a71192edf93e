//! Halting a session from outside: a file beside its log, which only ever closes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lodestar_log::SessionDir;
use tokio::time::Instant;

use crate::stop::Stop;

/// Longest reason that is taken over into the log, in bytes.
pub const MAX_REASON: u64 = 1024;

/// The file's name in the session's folder.
const FILE: &str = "halt";

/// Whether a session is halted. Once it is, it stays so.
#[derive(Debug, Clone)]
pub struct Halt {
    file: PathBuf,
    halted: Arc<AtomicBool>,
    /// Held while something is recorded that has to stand before or after the halt.
    recording: Arc<Mutex<()>>,
    /// What runs is told to stop.
    pub(crate) stop: Stop,
    /// Whoever has it looks for all others that wait, the next time at this moment.
    looking: Arc<tokio::sync::Mutex<Option<Instant>>>,
}

/// How often somebody looks for a halt from outside while calls run or wait.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Halt {
    /// The switch of a session.
    pub fn of(dir: &SessionDir) -> Self {
        Self {
            file: dir.dir().join(FILE),
            halted: Arc::default(),
            recording: Arc::default(),
            stop: Stop::new(),
            looking: Arc::default(),
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

    /// Whether it was seen halted the last time that anybody looked: for steps behind which somebody looks
    /// again before anything runs.
    pub(crate) fn was_halted(&self) -> bool {
        self.halted.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.halted.store(true, Ordering::Release);
        self.stop.stop();
    }

    /// Halts it from inside, and records that, once: nothing that has to stand before the halt is
    /// recorded after it.
    pub fn halt<T>(&self, record: impl FnOnce() -> T) -> T {
        let _recording = self
            .recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.set();
        record()
    }

    /// Records something that must not stand behind a halt; `None` if it is halted.
    pub(crate) fn unless_halted<T>(&self, record: impl FnOnce() -> T) -> Option<T> {
        let _recording = self
            .recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (!self.is_halted()).then(record)
    }

    /// Resolves when it is halted, from inside or outside.
    pub(crate) async fn halted(&self) {
        tokio::select! {
            () = self.stop.stopped() => {}
            () = self.look() => {}
        }
    }

    /// Looks at the disk again and again, one of all that wait at a time: a thousand calls that wait for
    /// people cost as much as one. Whoever takes over looks when the one before would have.
    async fn look(&self) {
        let mut next = self.looking.lock().await;
        loop {
            let at = *next.get_or_insert_with(|| Instant::now() + LOOK_EVERY);
            tokio::time::sleep_until(at).await;
            *next = None;
            if self.is_halted() {
                return;
            }
        }
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
        let mut text = Vec::new();
        if let Ok(file) = File::open(&self.file) {
            // What cannot be read is no reason.
            let _ = file.take(MAX_REASON).read_to_end(&mut text);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        if text.is_empty() {
            "no reason given".to_owned()
        } else {
            text
        }
    }
}
