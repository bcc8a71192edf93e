//! Somebody who can write the files, and has no key, against a writer and a checker who do their
//! work in good faith: nothing forged gets signed, and nothing outside the log gets hurt.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use lodestar_core::digest::{Digest, leaf_hash, sha256_parts};
use lodestar_core::event::EventType;
use lodestar_log::{Barrier, LogWriter, OpenError, RedactError, Redacted, redact};
use serde_json::json;

use crate::support::{World, actor, append, close, files_below, id};

fn codes(world: &World) -> Vec<&'static str> {
    let report = world.verify();
    report.all_problems().map(|p| p.kind.code()).collect()
}

fn events_path(world: &World) -> std::path::PathBuf {
    world.log().session(&id("s1")).events_path()
}

fn reopen(world: &World) -> Result<LogWriter, OpenError> {
    LogWriter::reopen(&world.log(), &id("s1"), &world.options())
}

fn redact_event(world: &World, seq: u64) -> Result<Redacted, RedactError> {
    let seqs = BTreeSet::from([seq]);
    redact(
        &world.log(),
        &id("s1"),
        &seqs,
        "gone",
        &world.operator,
        &world.trust(),
        &world.options(),
    )
}

/// A line that chains to the last one of a file, made with nothing but SHA-256.
fn forge(path: &Path, session: &str, kind: &str, payload: &str) {
    let mut text = fs::read_to_string(path).unwrap();
    let last = text.lines().last().unwrap();
    let head_of = |line: &str| {
        let end = line
            .find(",\"payload\":")
            .or(line.find(",\"tombstone\":"))
            .unwrap();
        line["{\"head\":".len()..end].to_owned()
    };
    let prev: Digest = leaf_hash(head_of(last).as_bytes());
    let seq = text.lines().count();
    let salt = [0u8; 16];
    let hash = sha256_parts(&[&salt, payload.as_bytes()]);
    let head = format!(
        "{{\"actor\":\"agent-1\",\"parents\":[],\"payload_hash\":\"{hash}\",\"prev\":\"{prev}\",\"project\":\"notes\",\"seq\":{seq},\"session\":\"{session}\",\"time\":\"9000-01-01T00:00:00.000000Z\",\"type\":\"{kind}\"}}"
    );
    text += &format!(
        "{{\"head\":{head},\"payload\":{payload},\"salt\":\"{}\"}}\n",
        "0".repeat(32)
    );
    fs::write(path, text).unwrap();
}

#[test]
fn events_added_after_closing_are_never_signed() {
    let world = World::fast();
    world.closed("s1", 6);
    forge(&events_path(&world), "s1", "approval.granted@1", "{}");
    assert_eq!(codes(&world), ["grown_after_closing"]);
    assert!(matches!(reopen(&world), Err(OpenError::Tampered { .. })));
    assert!(matches!(
        redact_event(&world, 2),
        Err(RedactError::NotIntact { .. })
    ));
    assert_eq!(codes(&world), ["grown_after_closing"]);
    // Torn bytes there are no crash either: the session was closed.
    let world = World::fast();
    world.closed("s1", 6);
    let mut bytes = fs::read(events_path(&world)).unwrap();
    bytes.extend_from_slice(b"{\"head\":");
    fs::write(events_path(&world), &bytes).unwrap();
    assert!(matches!(reopen(&world), Err(OpenError::Tampered { .. })));
}

#[test]
fn what_was_signed_only_at_reopening_is_marked_for_good() {
    let world = World::fast();
    let writer = world.create("s1");
    append(&writer, 1).wait(Barrier::Checkpoint).unwrap();
    let copy = world.copy();
    drop(writer);
    // The writer was killed, and before it is started again somebody adds an event.
    forge(&events_path(&copy), "s1", "approval.granted@1", "{}");
    let writer = reopen(&copy).unwrap();
    close(&writer);
    drop(writer);
    let report = copy.verify();
    assert!(report.is_intact(), "{report:#?}");
    let remark = report.sessions[0].remarks[0].to_string();
    assert!(
        remark.contains("events #2 to #2 were signed only when"),
        "{remark}"
    );
}

#[test]
fn a_tail_that_no_writer_wrote_is_not_taken_over() {
    for payload in [
        "{not json}",
        "{\"a\": 1}",
        "{\"b\":1,\"a\":1}",
        "{\"a\":1,\"a\":1}",
    ] {
        let world = World::fast();
        let writer = world.create("s1");
        append(&writer, 1);
        drop(writer);
        forge(&events_path(&world), "s1", "agent.note@1", payload);
        assert_eq!(codes(&world), ["not_canonical"], "{payload}");
        let writer = reopen(&world).unwrap();
        assert_eq!(
            writer.head().0,
            3,
            "it was set aside, and that was recorded"
        );
        drop(writer);
        assert!(world.verify().is_intact());
    }
}

#[test]
fn a_line_is_found_fault_with_once() {
    let faults = |session: &str, payload: &str| {
        let world = World::fast();
        let writer = world.create("s1");
        append(&writer, 1);
        drop(writer);
        forge(&events_path(&world), session, "agent.note@1", payload);
        codes(&world)
    };
    assert_eq!(faults("s9", "{\"a\":1}"), ["wrong_session"]);
    assert_eq!(faults("s9", "{\"a\": 1}"), ["wrong_session"]);
    assert_eq!(faults("s1", "{\"a\": 1}"), ["not_canonical"]);
}

#[test]
fn a_line_that_cannot_be_read_takes_its_place_in_the_numbering() {
    let world = World::fast();
    world.closed("s1", 8);
    let text = fs::read_to_string(events_path(&world)).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines[4] = "{\"head\":nothing}";
    fs::write(events_path(&world), lines.join("\n") + "\n").unwrap();
    let found = codes(&world);
    assert!(found.contains(&"malformed_line"), "{found:?}");
    // What comes after it has the number that it should have.
    assert!(!found.contains(&"wrong_seq"), "{found:?}");
}

#[test]
fn a_copied_redaction_statement_answers_for_nothing() {
    let world = World::fast();
    world.closed("s1", 8);
    redact_event(&world, 3).unwrap();
    let path = events_path(&world);
    let text = fs::read_to_string(&path).unwrap();
    let last = text.lines().last().unwrap();
    let payload = last
        .split_once(",\"payload\":")
        .unwrap()
        .1
        .rsplit_once(",\"salt\"")
        .unwrap()
        .0;
    let payload = payload.to_owned();
    forge(&path, "s1", "approval.granted@1", "{}");
    forge(&path, "s1", "log.redacted@1", &payload);
    let moved = fs::read_to_string(&path).unwrap().replace(
        "\"tombstone\":{\"redaction\":8}",
        "\"tombstone\":{\"redaction\":10}",
    );
    fs::write(&path, moved).unwrap();
    let found = codes(&world);
    assert!(
        found.contains(&"bad_redaction") && found.contains(&"grown_after_closing"),
        "{found:?}"
    );
    assert!(matches!(
        redact_event(&world, 4),
        Err(RedactError::NotIntact { .. })
    ));
    assert!(matches!(reopen(&world), Err(OpenError::Tampered { .. })));
}

#[test]
fn links_planted_in_the_log_lead_nowhere() {
    let world = World::fast();
    let victim = world.folder().join("victim");
    fs::write(&victim, "precious").unwrap();
    let writer = world.create("s1");
    let large = json!({"content": "secret ".repeat(4000)});
    let kind = EventType::OBSERVATION_RECORDED;
    writer.append(kind, &actor(), &[], &large).unwrap();
    append(&writer, 1);
    let dir = world.log().session(&id("s1"));
    symlink(&victim, dir.dir().join("checkpoint.tmp")).unwrap();
    symlink(&victim, dir.dir().join("events.ndjson.tmp")).unwrap();
    symlink(&victim, world.log().dir().join("ledger.next")).unwrap();
    close(&writer);
    drop(writer);
    let blob = redact_event(&world, 1).unwrap().blobs[0];
    symlink(&victim, dir.blobs_dir().join(blob.to_string())).unwrap();
    assert_eq!(codes(&world), ["redacted_blob_present"]);
    redact_event(&world, 2).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(world.verify().is_intact());
    for file in files_below(world.log().dir()) {
        assert!(!file.is_symlink(), "{}", file.display());
    }
    // A link in the place of a file of the log is reported, not followed.
    let events = events_path(&world);
    fs::rename(&events, world.folder().join("elsewhere")).unwrap();
    symlink(world.folder().join("elsewhere"), &events).unwrap();
    assert!(codes(&world).contains(&"unreadable"));
}

#[test]
fn pipes_and_directories_in_the_place_of_files_are_problems_and_hang_nobody() {
    for file in [
        "ledger.ndjson",
        "ledger.checkpoint",
        "s1/events.ndjson",
        "s1/checkpoint",
    ] {
        for special in ["pipe", "directory"] {
            let world = World::fast();
            world.closed("s1", 6);
            let s2 = world.closed("s2", 6);
            fs::remove_file(s2.join("checkpoint")).unwrap();
            let path = world.log().dir().join(file);
            fs::remove_file(&path).unwrap();
            match special {
                "pipe" => assert!(
                    Command::new("mkfifo")
                        .arg(&path)
                        .status()
                        .unwrap()
                        .success()
                ),
                _ => fs::create_dir(&path).unwrap(),
            }
            let found = codes(&world);
            assert!(found.contains(&"unreadable"), "{special} {file}: {found:?}");
            assert!(
                !found.contains(&"truncated"),
                "it is not said to be gone: {found:?}"
            );
            if !file.starts_with("ledger") {
                assert!(
                    found.contains(&"checkpoint_missing"),
                    "the rest is still checked"
                );
            }
        }
    }
}

#[test]
fn a_session_that_was_deleted_is_not_begun_again_under_its_name() {
    for closed in [true, false] {
        let world = World::fast();
        match closed {
            true => drop(world.closed("s1", 6)),
            false => drop(world.create("s1")),
        }
        fs::remove_dir_all(world.log().session(&id("s1")).dir()).unwrap();
        assert_eq!(codes(&world), ["session_missing"]);
        let again = LogWriter::create(
            &world.log(),
            &id("s1"),
            &actor(),
            &json!({}),
            &world.options(),
        );
        assert!(
            matches!(again, Err(OpenError::Tampered { .. })),
            "{again:?}"
        );
    }
}

#[test]
fn a_forged_ledger_record_is_never_signed() {
    let world = World::fast();
    world.closed("s1", 6);
    let record = json!({"format": "lodestar-log/1", "log_key": "00", "session": "s2"}).to_string();
    forge(
        &world.log().ledger_path(),
        "_ledger",
        "ledger.session_opened@1",
        &record,
    );
    assert!(codes(&world).contains(&"ledger_tail"));
    let create = LogWriter::create(
        &world.log(),
        &id("s3"),
        &actor(),
        &json!({}),
        &world.options(),
    );
    assert!(matches!(create, Err(OpenError::Ledger(_))), "{create:?}");
    // Without its checkpoint the ledger is not taken for a new one either.
    let world = World::fast();
    drop(world.create("s1"));
    fs::remove_file(world.log().ledger_checkpoint_path()).unwrap();
    assert_eq!(codes(&world), ["checkpoint_missing"]);
    let create = LogWriter::create(
        &world.log(),
        &id("s3"),
        &actor(),
        &json!({}),
        &world.options(),
    );
    assert!(matches!(create, Err(OpenError::Ledger(_))), "{create:?}");
}

#[test]
fn a_flipped_bit_among_unproven_events_is_no_crash() {
    let world = World::fast();
    let writer = world.create("s1");
    for i in 1..20 {
        append(&writer, i).wait(Barrier::Disk).unwrap();
    }
    let copy = world.copy();
    drop(writer);
    let path = events_path(&copy);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(reopen(&copy), Err(OpenError::Tampered { .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was cut off");
}

#[test]
fn what_is_recorded_is_nobody_elses_to_read() {
    let world = World::new();
    let writer = world.create("s1");
    let large = json!({"content": "secret ".repeat(4000)});
    let kind = EventType::OBSERVATION_RECORDED;
    writer.append(kind, &actor(), &[], &large).unwrap();
    close(&writer);
    for file in files_below(&world.folder().join(".lodestar")) {
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
        let dir = fs::metadata(file.parent().unwrap())
            .unwrap()
            .permissions()
            .mode()
            & 0o777;
        assert_eq!(dir, 0o700, "{}", file.display());
    }
}

/// Checking goes on while somebody closes, reopens and redacts: no alarm may be false.
#[test]
fn verifying_what_is_being_worked_on_raises_no_false_alarm() {
    let world = World::fast();
    world.closed("s1", 200);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..25 {
                let writer = loop {
                    match reopen(&world) {
                        Ok(writer) => break writer,
                        Err(OpenError::Busy { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                };
                append(&writer, 1);
                close(&writer);
                drop(writer);
                if round % 2 == 0 {
                    redact_event(&world, 2 + round).unwrap();
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut looks = 0;
        while !done.load(Ordering::SeqCst) {
            let report = world.verify();
            assert!(report.is_intact(), "look {looks}: {report:#?}");
            looks += 1;
        }
        println!("verified {looks} times under reopenings and redactions");
    });
}
