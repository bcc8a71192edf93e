//! A project in a scratch folder, and what tests do with it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, ProjectId, SessionId};
use lodestar_log::verify::{ProjectReport, VerifyOptions, verify_project};
use lodestar_log::{LogRoot, LogWriter, ProjectLog, Trust, WriterOptions};
use serde_json::json;
use tempfile::TempDir;

pub(crate) struct World {
    folder: TempDir,
    pub(crate) key: Arc<SecretKey>,
    pub(crate) operator: SecretKey,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// In memory where the machine has such a place: for tests that write a million times. Whoever says
    /// where temporary files go is followed, and can clean up there.
    pub(crate) fn fast() -> Self {
        let memory = Path::new("/dev/shm");
        let said = std::env::var_os("TMPDIR").is_some();
        Self::in_folder(match memory.is_dir() && !said {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        })
    }

    fn in_folder(folder: TempDir) -> Self {
        Self {
            folder,
            key: Arc::new(SecretKey::from_seed([7; 32])),
            operator: SecretKey::from_seed([9; 32]),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn log(&self) -> ProjectLog {
        project_log(self.folder())
    }

    pub(crate) fn options(&self) -> WriterOptions {
        WriterOptions {
            // No checkpoint that a test did not ask for, however slow the machine is.
            checkpoint_after: Duration::from_secs(3600),
            ..WriterOptions::new(Arc::clone(&self.key))
        }
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust {
            operators: vec![self.operator.public()],
            ..Trust::only(self.key.public())
        }
    }

    pub(crate) fn create(&self, session: &str) -> LogWriter {
        LogWriter::create(
            &self.log(),
            &id(session),
            &actor(),
            &json!({"configuration": "none", "versions": {"lodestar": "test"}}),
            &self.options(),
        )
        .unwrap()
    }

    /// A closed session of `events` events, opening and closing included.
    pub(crate) fn closed(&self, session: &str, events: u64) -> PathBuf {
        let writer = self.create(session);
        for i in 1..events - 1 {
            append(&writer, i);
        }
        close(&writer);
        self.log().session(&id(session)).dir().to_owned()
    }

    pub(crate) fn verify(&self) -> ProjectReport {
        verify_folder(self.folder(), &self.trust(), None)
    }

    /// A copy of everything, with the same keys.
    pub(crate) fn copy(&self) -> World {
        let other = World::fast();
        copy_tree(self.folder(), other.folder());
        other
    }
}

pub(crate) fn project_log(folder: &Path) -> ProjectLog {
    LogRoot::in_folder(folder).project(&ProjectId::new("notes").unwrap())
}

pub(crate) fn verify_folder(
    folder: &Path,
    trust: &Trust,
    witnessed: Option<Vec<u8>>,
) -> ProjectReport {
    let options = VerifyOptions {
        session: None,
        witnessed,
        ..VerifyOptions::default()
    };
    verify_project(&project_log(folder), trust, &options, &|_| ()).unwrap()
}

pub(crate) fn id(session: &str) -> SessionId {
    SessionId::new(session).unwrap()
}

pub(crate) fn actor() -> ActorId {
    ActorId::new("agent-1").unwrap()
}

/// A note of about 600 bytes on its line, with some awkward text in it.
pub(crate) fn append(writer: &LogWriter, i: u64) -> lodestar_log::Receipt {
    let parents: &[u64] = if i > 1 { &[i - 1] } else { &[] };
    writer
        .append(
            EventType::AGENT_NOTE,
            &actor(),
            parents,
            &json!({
                "text": format!("event {i}: \"quoted\", \\ back, \u{1F511} ключ, {}", "x".repeat(120)),
                "index": i,
                "ratio": i as f64 / 3.0,
            }),
        )
        .unwrap()
}

pub(crate) fn close(writer: &LogWriter) {
    writer.close(&actor(), &json!({"reason": "done"})).unwrap();
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_tree(&entry.path(), &target),
            false => {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// Fixed-seed randomness: a failure can be run again.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// The whole matrix, or the sample that fits a check of every change.
pub(crate) fn full_matrix() -> bool {
    std::env::var_os("LODESTAR_MATRIX").is_some_and(|v| v == "full")
}

/// Says loudly, past the test harness's capture, that something was not tested here.
pub(crate) fn skip(what: &str) {
    assert!(
        std::env::var_os("LODESTAR_REQUIRE_ALL").is_none(),
        "not everything can be tested here: {what}"
    );
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}
