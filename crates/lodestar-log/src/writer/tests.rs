//! A disk that fails: what the writer says, and what it has kept.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, ProjectId, SessionId};
use serde_json::json;

use super::commit::EventSink;
use super::{Barrier, LogWriter, WriterOptions};
use crate::chain::Tip;
use crate::error::AppendError;
use crate::layout::LogRoot;

/// Writes to a real file until its allowance is used up, then fails like a broken disk.
struct Failing {
    file: File,
    writes: Arc<AtomicU64>,
    syncs: Arc<AtomicU64>,
}

fn spend(allowance: &AtomicU64) -> io::Result<()> {
    let left = allowance.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    match left {
        Ok(_) => Ok(()),
        // What the operating system reports when a block cannot be written.
        Err(_) => Err(io::Error::from_raw_os_error(5)),
    }
}

impl EventSink for Failing {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = spend(&self.writes) {
            // A broken disk may have taken a part of it.
            io::Write::write_all(&mut self.file, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        io::Write::write_all(&mut self.file, bytes)
    }

    fn syncer(&self) -> io::Result<Box<dyn FnMut() -> io::Result<()> + Send>> {
        let (file, syncs) = (self.file.try_clone()?, Arc::clone(&self.syncs));
        Ok(Box::new(move || {
            spend(&syncs)?;
            file.sync_data()
        }))
    }
}

fn failing_writer(folder: &std::path::Path, writes: u64, syncs: u64) -> LogWriter {
    let log = LogRoot::in_folder(folder).project(&ProjectId::new("p").unwrap());
    let dir = log.session(&SessionId::new("s").unwrap());
    crate::disk::create_dirs(dir.dir()).unwrap();
    let sink = Failing {
        file: crate::disk::open_append(&dir.events_path()).unwrap(),
        writes: Arc::new(AtomicU64::new(writes)),
        syncs: Arc::new(AtomicU64::new(syncs)),
    };
    let lock = super::lock_session(&dir).unwrap();
    let options = WriterOptions::new(Arc::new(SecretKey::from_seed([7; 32])));
    let tip = Tip::start(Digest::from_bytes([0; 32]));
    LogWriter::start(dir, Box::new(sink), tip, 0, lock, &options).unwrap()
}

/// Appends with a barrier each until it fails; gives the events that were acknowledged.
fn run_until_failure(writer: &LogWriter) -> (u64, String) {
    let actor = ActorId::new("a").unwrap();
    for i in 0..1000 {
        let outcome = writer
            .append(EventType::AGENT_NOTE, &actor, &[], &json!({"i": i}))
            .and_then(|receipt| Ok(receipt.wait(Barrier::Disk)?));
        if let Err(error) = outcome {
            assert!(matches!(error, AppendError::Stopped(_)), "{error}");
            return (i, error.to_string());
        }
    }
    panic!("it never failed");
}

#[test]
fn a_write_error_stops_the_log_and_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let writer = failing_writer(folder.path(), 5, u64::MAX);
    let (acknowledged, error) = run_until_failure(&writer);
    assert!((1..=5).contains(&acknowledged));
    assert!(
        error.contains("cannot write `") && error.contains("Input/output error"),
        "{error}"
    );
    // Every later call says the same, at once.
    assert_eq!(run_until_failure(&writer).0, 0);
    let path = writer.dir().events_path();
    drop(writer);
    let whole_lines = std::fs::read(path)
        .unwrap()
        .iter()
        .filter(|b| **b == b'\n')
        .count();
    assert!(whole_lines as u64 >= acknowledged);
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_again() {
    let folder = tempfile::tempdir().unwrap();
    let writer = failing_writer(folder.path(), u64::MAX, 3);
    let (acknowledged, error) = run_until_failure(&writer);
    assert_eq!(acknowledged, 3);
    assert!(error.contains("cannot sync `"), "{error}");
    assert_eq!(run_until_failure(&writer).0, 0);
}

#[test]
fn everybody_who_waits_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let writer = failing_writer(folder.path(), u64::MAX, 0);
    let actor = ActorId::new("a").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let outcome = writer
                    .append(EventType::AGENT_NOTE, &actor, &[], &json!({}))
                    .and_then(|receipt| Ok(receipt.wait(Barrier::Checkpoint)?));
                assert!(outcome.is_err());
            });
        }
    });
}
