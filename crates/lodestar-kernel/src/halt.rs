//! Halting a session from outside: a file beside its log, which only ever closes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use lodestar_log::SessionDir;
use rustix::fs::{AtFlags, Mode, OFlags, open, statat};
use rustix::io::Errno;

use crate::stop::Stop;

/// Longest reason that is taken over into the log, in bytes.
pub const MAX_REASON: u64 = 1024;

/// The file's name in the session's folder.
const FILE: &str = "halt";

/// Whether a session is halted. Once it is, it stays so.
#[derive(Debug, Clone)]
pub struct Halt {
    file: PathBuf,
    /// The session's folder: from there the way to the file is short, and it is looked at in every call.
    folder: Arc<OnceLock<OwnedFd>>,
    halted: Arc<AtomicBool>,
    /// Held while something is recorded that has to stand before or after the halt.
    recording: Arc<Mutex<()>>,
    /// What runs is told to stop.
    pub(crate) stop: Stop,
    looking: Arc<Looking>,
    /// In a harness alone.
    taken_out: bool,
}

/// Who waits for a halt, and whether somebody looks for all of them.
#[derive(Debug, Default)]
struct Looking {
    waiting: AtomicUsize,
    /// Somebody waited since the last look.
    waited: AtomicBool,
    looks: AtomicBool,
}

/// Counts one that waits, until it is dropped.
struct Waiting<'a>(&'a Looking);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Somebody looks, until this is dropped: also when its runtime ends under it.
struct Looks(Arc<Looking>);

impl Drop for Looks {
    fn drop(&mut self) {
        self.0.looks.store(false, Ordering::Release);
    }
}

/// How often somebody looks for a halt from outside while calls run or wait.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Halt {
    /// The switch of a session.
    pub fn of(dir: &SessionDir) -> Self {
        Self {
            file: dir.dir().join(FILE),
            folder: Arc::default(),
            halted: Arc::default(),
            recording: Arc::default(),
            stop: Stop::new(),
            looking: Arc::default(),
            taken_out: false,
        }
    }

    /// For a harness that takes [`Defence::Halt`](lodestar_core::defence::Defence) out: nobody looks for a
    /// word from outside.
    pub(crate) fn taken_out(self) -> Self {
        Self {
            taken_out: true,
            ..self
        }
    }

    /// Whether it is halted; looks at the disk, so that a word from another process counts at once.
    pub fn is_halted(&self) -> bool {
        if self.halted.load(Ordering::Acquire) {
            return true;
        }
        let there = !self.taken_out && self.is_there();
        if there {
            self.set();
        }
        there
    }

    /// Whether the file is there. Whatever cannot be looked at may be there.
    fn is_there(&self) -> bool {
        let Some(folder) = self.folder() else {
            let looked = self.file.symlink_metadata();
            return !looked.is_err_and(|problem| problem.kind() == io::ErrorKind::NotFound);
        };
        // A link counts, wherever it leads.
        let looked = statat(folder, FILE, AtFlags::SYMLINK_NOFOLLOW);
        !looked.is_err_and(|problem| problem == Errno::NOENT)
    }

    fn folder(&self) -> Option<&OwnedFd> {
        if self.folder.get().is_none() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = open(self.file.parent()?, flags, Mode::empty()).ok()?;
            // Somebody else's is as good.
            let _ = self.folder.set(opened);
        }
        self.folder.get()
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
        self.looking.waiting.fetch_add(1, Ordering::AcqRel);
        let _waiting = Waiting(&self.looking);
        self.looking.waited.store(true, Ordering::Release);
        self.see_that_somebody_looks();
        self.stop.stopped().await;
    }

    fn see_that_somebody_looks(&self) {
        if !self.looking.looks.swap(true, Ordering::AcqRel) {
            let looks = Looks(Arc::clone(&self.looking));
            tokio::spawn(self.clone().look(looks));
        }
    }

    /// Looks at the disk again and again, for all that wait: a thousand calls that wait for people cost as much
    /// as one, and a short call does not set a timer of its own. It ends when nobody waits any more.
    async fn look(self, looks: Looks) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let waited = looks.0.waited.swap(false, Ordering::AcqRel);
            if self.is_halted() {
                return;
            }
            if !waited && looks.0.waiting.load(Ordering::Acquire) == 0 {
                break;
            }
        }
        drop(looks);
        // Somebody may have come after the last look, and relied on this one.
        if self.looking.waiting.load(Ordering::Acquire) > 0 {
            self.see_that_somebody_looks();
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
