//! A full disk: a clear error, and nothing acknowledged is lost.

use std::path::Path;
use std::process::Command;

use lodestar_core::event::EventType;
use lodestar_log::{AppendError, Barrier, LogWriter};
use serde_json::json;

use crate::support::{World, actor, append, copy_tree, id, project_log, skip, verify_folder};

/// A small file system of its own, taken down at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let at = tempfile::tempdir().unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at.path())
            .output();
        match status {
            Ok(output) if output.status.success() => Some(Self(at)),
            _ => None,
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_stops_the_log_with_a_clear_error_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount("256k") else {
        return skip("a full disk (mounting a small tmpfs needs root)");
    };
    let world = World::new();
    let log = project_log(disk.path());
    let writer =
        LogWriter::create(&log, &id("s1"), &actor(), &json!({}), &world.options()).unwrap();
    let mut acknowledged = 0;
    let error = loop {
        let appended = writer.append(
            EventType::AGENT_NOTE,
            &actor(),
            &[],
            &json!({"text": "x".repeat(400)}),
        );
        match appended.map_err(|e| e.to_string()).and_then(|receipt| {
            receipt.wait(Barrier::Disk).map_err(|e| e.to_string())?;
            Ok(receipt.seq())
        }) {
            Ok(seq) => acknowledged = seq,
            Err(error) => break error,
        }
        assert!(acknowledged < 10_000, "the disk never filled up");
    };
    assert!(error.contains("No space left on device"), "{error}");
    assert!(
        error.contains("events.ndjson") && error.contains("nothing further is accepted"),
        "{error}"
    );
    // It has stopped for good.
    let again = writer.append(EventType::AGENT_NOTE, &actor(), &[], &json!({}));
    assert!(matches!(again, Err(AppendError::Stopped(_))));
    drop(writer);

    // Moved to a larger disk, the session goes on behind the last acknowledged event.
    let roomy = World::new();
    copy_tree(disk.path(), roomy.folder());
    let writer = LogWriter::reopen(&roomy.log(), &id("s1"), &world.options()).unwrap();
    assert!(writer.head().0 > acknowledged);
    append(&writer, 1);
    drop(writer);
    let report = verify_folder(roomy.folder(), &world.trust(), None);
    assert!(report.is_intact(), "{report:#?}");
}

#[test]
fn a_full_disk_refuses_a_blob_and_the_session_goes_on() {
    let Some(disk) = SmallDisk::mount("256k") else {
        return skip("a full disk for blobs (mounting a small tmpfs needs root)");
    };
    let world = World::new();
    let log = project_log(disk.path());
    let writer =
        LogWriter::create(&log, &id("s1"), &actor(), &json!({}), &world.options()).unwrap();
    // Does not compress.
    let mut noise = String::new();
    let mut dice = crate::support::Dice::new(5);
    while noise.len() < 400_000 {
        noise.push((b'!' + dice.roll(90) as u8) as char);
    }
    let kind = EventType::OBSERVATION_RECORDED;
    let refused = writer.append(kind, &actor(), &[], &json!({ "content": noise }));
    let error = refused.unwrap_err();
    assert!(matches!(error, AppendError::Blob(_)), "{error}");
    assert!(
        error.to_string().contains("No space left on device"),
        "{error}"
    );
    append(&writer, 1).wait(Barrier::Disk).unwrap();
    drop(writer);
    let report = verify_folder(disk.path(), &world.trust(), None);
    assert!(report.is_intact(), "{report:#?}");
}
