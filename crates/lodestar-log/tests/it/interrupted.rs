//! What a kill leaves between two steps: put together by hand, one state at a time.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use lodestar_core::event::EventType;
use lodestar_log::verify::{Remark, SessionState};
use lodestar_log::{Barrier, Durability, LogWriter, Reader};
use serde_json::json;

use crate::support::{World, actor, append, close, id};

fn create(world: &World, session: &str) -> LogWriter {
    world.create(session)
}

#[test]
fn a_start_that_was_interrupted_is_no_tampering_and_can_be_repeated() {
    let world = World::fast();
    drop(create(&world, "s1"));
    let whole = world.log().session(&id("s1"));
    // The checkpoint over nothing, as it was before the first event.
    let empty = {
        let other = World::fast();
        let dir = other.log().session(&id("s1"));
        fs::create_dir_all(dir.dir()).unwrap();
        let checkpoint = lodestar_core::note::Checkpoint {
            origin: dir.origin(),
            size: 0,
            root: lodestar_core::merkle::Frontier::new().root(),
        };
        checkpoint.sign(&world.key).to_string()
    };
    for events in [None, Some(0), Some(100), Some(usize::MAX)] {
        let world = world.copy();
        let dir = world.log().session(&id("s1"));
        fs::write(dir.checkpoint_path(), &empty).unwrap();
        let line = fs::read(whole.events_path()).unwrap();
        match events {
            None => fs::remove_file(dir.events_path()).unwrap(),
            Some(len) => fs::write(dir.events_path(), &line[..len.min(line.len())]).unwrap(),
        }
        let report = world.verify();
        assert!(report.is_intact(), "{events:?}: {report:#?}");
        assert_eq!(report.sessions[0].state, SessionState::Open);
        assert!(!report.sessions[0].remarks.is_empty(), "{events:?}");
        let writer = create(&world, "s1");
        assert_eq!(writer.head().0, 1);
        close(&writer);
        drop(writer);
        let report = world.verify();
        assert!(report.is_intact(), "{events:?}: {report:#?}");
    }
}

#[test]
fn an_interrupted_ledger_append_is_finished_and_loses_no_record() {
    let before = World::fast();
    before.closed("s1", 4);
    let after = before.copy();
    drop(create(&after, "s2"));
    let ledger = |w: &World| fs::read(w.log().ledger_path()).unwrap();
    let (old, new) = (ledger(&before), ledger(&after));
    let head = fs::read(after.log().ledger_checkpoint_path()).unwrap();
    // The head is announced, and the record is there in part, or whole.
    for len in [old.len(), old.len() + 1, new.len() - 1, new.len()] {
        let world = before.copy();
        fs::write(world.log().dir().join("ledger.next"), &head).unwrap();
        fs::write(world.log().ledger_path(), &new[..len]).unwrap();
        let report = world.verify();
        if len != new.len() {
            assert!(report.is_intact(), "{len}: {report:#?}");
        } else {
            // The record opens a session that has no directory in this copy.
            let codes: Vec<_> = report.all_problems().map(|p| p.kind.code()).collect();
            assert_eq!(codes, ["session_missing"]);
        }
        let torn_or_whole = report.remarks.contains(&Remark::LedgerAppendInterrupted);
        assert_eq!(torn_or_whole, len != old.len(), "{len}");
        world.closed("s3", 4);
        let records = world.verify().ledger_records;
        let recovered = u64::from(len != old.len() && len != new.len());
        let kept = u64::from(len == new.len());
        assert_eq!(records, 4 + recovered + kept, "{len}");
    }
}

#[test]
fn a_reader_that_read_ahead_goes_on_behind_a_recovery() {
    let world = World::new();
    let writer = create(&world, "s1");
    append(&writer, 1);
    drop(writer);
    let dir = world.log().session(&id("s1"));
    let mut reader = Reader::open(&dir).unwrap();
    reader.by_ref().take(2).for_each(|e| drop(e.unwrap()));
    let torn = b"{\"head\":{\"actor\":\"agent-1\",\"parents\":[";
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(dir.events_path())
        .unwrap();
    file.write_all(torn).unwrap();
    assert!(reader.next_event().unwrap().is_none());
    let writer = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
    append(&writer, 1).wait(Barrier::Disk).unwrap();
    assert_eq!(
        reader.next_event().unwrap().unwrap().kind,
        "log.recovered@1"
    );
    assert_eq!(reader.next_event().unwrap().unwrap().seq, 3);
}

#[test]
fn an_interrupted_close_is_told_and_can_be_repeated() {
    let world = World::fast();
    let writer = create(&world, "s1");
    let ledger = fs::read(world.log().ledger_path()).unwrap();
    let head = fs::read(world.log().ledger_checkpoint_path()).unwrap();
    close(&writer);
    drop(writer);
    fs::write(world.log().ledger_path(), ledger).unwrap();
    fs::write(world.log().ledger_checkpoint_path(), head).unwrap();
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions[0].remarks, [Remark::CloseInterrupted]);
    close(&LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap());
    assert_eq!(world.verify().sessions[0].remarks, []);
}

#[test]
fn a_payload_as_deep_as_the_writer_takes_can_be_read_back() {
    let world = World::fast();
    let writer = create(&world, "s1");
    let deep = |levels| (0..levels).fold(json!(1), |value, _| json!([value]));
    let mut deepest = 0;
    for levels in 100..200 {
        let payload = json!({"x": deep(levels)});
        if writer
            .append(EventType::AGENT_NOTE, &actor(), &[], &payload)
            .is_ok()
        {
            deepest = levels;
        }
    }
    assert!((120..200).contains(&deepest), "{deepest}");
    close(&writer);
    let dir = world.log().session(&id("s1"));
    for event in Reader::open(&dir).unwrap() {
        let event = event.unwrap();
        event.inline().unwrap();
        event.whole(&dir).unwrap();
    }
}

#[test]
fn strict_durability_returns_when_the_event_is_on_disk() {
    let world = World::new();
    let mut options = world.options();
    options.durability = Durability::Strict;
    let writer =
        LogWriter::create(&world.log(), &id("s1"), &actor(), &json!({}), &options).unwrap();
    for i in 1..20 {
        append(&writer, i);
        let bytes = fs::read(world.log().session(&id("s1")).events_path()).unwrap();
        let lines = bytes.iter().filter(|b| **b == b'\n').count() as u64;
        assert_eq!(lines, i + 1, "without waiting for anything else");
    }
}

#[test]
fn a_checkpoint_comes_by_itself_after_a_while() {
    let world = World::new();
    let mut options = world.options();
    options.checkpoint_after = Duration::from_millis(30);
    let writer =
        LogWriter::create(&world.log(), &id("s1"), &actor(), &json!({}), &options).unwrap();
    append(&writer, 1);
    let proven = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        world.verify().sessions[0].proven == 2
    });
    assert!(proven);
}
