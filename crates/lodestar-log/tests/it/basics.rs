//! What is written can be read, followed and verified.

use std::time::Duration;

use lodestar_core::event::EventType;
use lodestar_core::name::{ActorId, ProjectId, SessionId};
use lodestar_core::time::Timestamp;
use lodestar_log::verify::{Remark, SessionState, is_live};
use lodestar_log::{AppendError, Barrier, Clock, LogWriter, OpenError, Reader};
use serde_json::{Value, json};

use crate::support::{World, actor, append, close, id};

#[test]
fn a_closed_session_is_intact_and_reads_back() {
    let world = World::new();
    world.closed("s1", 20);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions[0].events, 20);
    assert_eq!(report.sessions[0].proven, 20);
    assert_eq!(report.sessions[0].state, SessionState::Closed);
    assert_eq!(report.sessions[0].remarks, []);
    let events: Vec<_> = Reader::open(&world.log().session(&id("s1")))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(events.len(), 20);
    assert_eq!(events[0].kind, "session.opened@1");
    assert_eq!(events[19].kind, "session.closed@1");
    assert_eq!(events[7].parents, [6]);
    let payload = events[7].inline().unwrap().unwrap();
    assert_eq!(payload["index"], 7);
    assert!(payload["text"].as_str().unwrap().contains("\u{1F511} ключ"));
    assert!(events.is_sorted_by_key(|e| e.time));
}

#[test]
fn an_empty_project_is_intact() {
    let world = World::new();
    std::fs::create_dir_all(world.log().dir()).unwrap();
    assert!(world.verify().is_intact());
}

#[test]
fn a_live_session_can_be_verified_and_followed() {
    let world = World::new();
    let writer = world.create("s1");
    let mut reader = Reader::open(&world.log().session(&id("s1"))).unwrap();
    assert_eq!(reader.next_event().unwrap().unwrap().seq, 0);
    assert!(reader.next_event().unwrap().is_none());
    append(&writer, 1).wait(Barrier::Disk).unwrap();
    assert_eq!(reader.next_event().unwrap().unwrap().seq, 1);
    assert!(reader.next_event().unwrap().is_none());
    // Without a barrier an event still arrives, a moment later.
    append(&writer, 2);
    let arrived = (0..400).find_map(|_| {
        std::thread::sleep(Duration::from_millis(5));
        reader.next_event().unwrap()
    });
    assert_eq!(arrived.unwrap().seq, 2);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions[0].state, SessionState::Live);
    assert_eq!(
        report.sessions[0].remarks,
        [Remark::UnprovenTail { events: 2 }]
    );
    append(&writer, 3).wait(Barrier::Checkpoint).unwrap();
    let report = world.verify();
    assert_eq!(report.sessions[0].proven, 4);
    assert_eq!(report.sessions[0].remarks, []);
}

#[test]
fn a_checkpoint_comes_with_every_thousand_events_unasked() {
    let world = World::new();
    let writer = world.create("s1");
    for i in 1..=2500 {
        append(&writer, i);
    }
    let proven = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let report = world.verify();
        assert!(report.is_intact(), "{report:#?}");
        (report.sessions[0].proven >= 1000).then_some(report.sessions[0].proven)
    });
    assert!(proven.is_some());
}

#[test]
fn dropping_the_writer_leaves_the_session_open_and_everything_on_disk() {
    let world = World::new();
    let writer = world.create("s1");
    append(&writer, 1);
    drop(writer);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions[0].state, SessionState::Open);
    assert_eq!(
        (report.sessions[0].events, report.sessions[0].proven),
        (2, 2)
    );
}

#[test]
fn a_closed_session_is_nobodys_even_while_its_writer_is_still_held() {
    let world = World::new();
    let first = world.create("s1");
    let refused = LogWriter::reopen(&world.log(), &id("s1"), &world.options());
    assert!(matches!(refused, Err(OpenError::Busy { .. })));
    close(&first);
    let dir = world.log().session(&id("s1"));
    assert!(!is_live(&dir).unwrap());
    // Whoever takes it up is its one writer: the first has nothing more to say.
    let second = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
    append(&second, 2);
    let late = first.append(EventType::SESSION_HALTED, &actor(), &[], &json!({}));
    assert!(late.is_err());
    drop(first);
    assert!(is_live(&dir).unwrap());
    close(&second);
    assert!(world.verify().is_intact());
}

#[test]
fn a_closed_session_can_be_taken_up_and_closed_again() {
    let world = World::new();
    world.closed("s1", 5);
    let writer = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
    assert_eq!(append(&writer, 5).seq(), 5);
    assert!(world.verify().is_intact());
    close(&writer);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions[0].events, 7);
    assert_eq!(report.ledger_records, 4);
}

#[test]
fn large_values_go_to_blobs_and_come_back() {
    let world = World::new();
    let writer = world.create("s1");
    let long = "сто строк\n".repeat(20_000);
    let payload = json!({
        "short": "stays",
        "content": [{"type": "text", "text": long}, {"a/b~c": {"d": "y".repeat(17_000)}}],
        "crowd": (0..20_000).map(|i| json!({"i": i})).collect::<Vec<_>>(),
        // Looks like the log's own list and is not: it stays where it is.
        "nested": {"blobs": [{"at": "/short", "sha256": "00"}]},
    });
    writer
        .append(EventType::OBSERVATION_RECORDED, &actor(), &[0], &payload)
        .unwrap();
    close(&writer);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    let dir = world.log().session(&id("s1"));
    let event = Reader::open(&dir).unwrap().nth(1).unwrap().unwrap();
    let inline = event.inline().unwrap().unwrap();
    assert_eq!(inline["short"], "stays");
    assert_eq!(inline["content"][0]["text"], Value::Null);
    assert_eq!(inline["blobs"].as_array().unwrap().len(), 3);
    assert_eq!(event.whole(&dir).unwrap().unwrap(), payload);
}

#[test]
fn the_writer_refuses_what_it_must_not_write() {
    let world = World::new();
    let writer = world.create("s1");
    let refuse = |kind, parents: &[u64], payload: Value| {
        writer
            .append(kind, &actor(), parents, &payload)
            .unwrap_err()
    };
    for own in [
        EventType::LOG_RECOVERED,
        EventType::LOG_REDACTED,
        EventType::LEDGER_SESSION_CLOSED,
        EventType::SESSION_OPENED,
        EventType::SESSION_CLOSED,
    ] {
        assert!(matches!(
            refuse(own, &[], json!({})),
            AppendError::OwnType { .. }
        ));
    }
    let note = EventType::AGENT_NOTE;
    assert!(matches!(
        refuse(note, &[], json!([1])),
        AppendError::NotAnObject
    ));
    assert!(matches!(
        refuse(note, &[], json!("x")),
        AppendError::NotAnObject
    ));
    assert!(matches!(
        refuse(note, &[], json!({"blobs": 1})),
        AppendError::ReservedKey
    ));
    assert!(matches!(
        refuse(note, &[1], json!({})),
        AppendError::BadParents
    ));
    assert!(matches!(
        refuse(note, &[0, 0], json!({})),
        AppendError::BadParents
    ));
    assert!(matches!(
        refuse(note, &[], json!({"n": 1u64 << 60})),
        AppendError::Payload(_)
    ));
    assert!(matches!(
        refuse(note, &[], json!({"n": (0..100_000).map(|i| (i.to_string(), json!(i))).collect::<serde_json::Map<_, _>>()}).as_object().unwrap()["n"].clone()),
        AppendError::PayloadTooLarge { .. }
    ));
    // None of it left a trace.
    assert_eq!(writer.head().0, 1);
    close(&writer);
    assert!(matches!(refuse(note, &[], json!({})), AppendError::Closed));
    assert!(world.verify().is_intact());
}

#[test]
fn times_never_run_backwards_when_the_clock_does() {
    let world = World::new();
    let ticks = std::sync::atomic::AtomicI64::new(0);
    let mut options = world.options();
    options.clock = Clock::new(move || {
        let tick = ticks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Timestamp::from_unix_micros(2_000_000_000_000_000 - tick * 60_000_000).unwrap()
    });
    let writer =
        LogWriter::create(&world.log(), &id("s1"), &actor(), &json!({}), &options).unwrap();
    (1..50).for_each(|i| drop(append(&writer, i)));
    close(&writer);
    assert!(world.verify().is_intact());
}

#[test]
fn names_that_are_no_path_components_never_get_that_far() {
    for bad in [
        "",
        "../x",
        "..",
        ".",
        "a..b",
        "a/b",
        "a\0b",
        "a\nb",
        "-a",
        "_ledger",
        "ledger.ndjson",
        "ledger.checkpoint",
        "é",
        " a",
        "a ",
        "~",
        "a\\b",
        "a:b",
    ] {
        assert!(SessionId::new(bad).is_err(), "{bad:?}");
        assert!(ProjectId::new(bad).is_err(), "{bad:?}");
    }
    assert!(SessionId::new("a".repeat(128)).is_ok());
    let error = SessionId::new("\u{1b}[31m\n".repeat(100_000))
        .unwrap_err()
        .to_string();
    assert!(
        error.len() < 400 && !error.contains('\u{1b}') && !error.contains('\n'),
        "{error}"
    );
    assert!(ActorId::new("../x").is_err());
}

#[test]
fn opening_says_what_is_in_the_way() {
    let world = World::new();
    let open = |session: &str| LogWriter::reopen(&world.log(), &id(session), &world.options());
    assert!(matches!(open("s1"), Err(OpenError::NotFound { .. })));
    let writer = world.create("s1");
    assert!(matches!(open("s1"), Err(OpenError::Busy { .. })));
    let again = LogWriter::create(
        &world.log(),
        &id("s1"),
        &actor(),
        &json!({}),
        &world.options(),
    );
    assert!(matches!(again, Err(OpenError::Busy { .. })));
    close(&writer);
    drop(writer);
    let again = LogWriter::create(
        &world.log(),
        &id("s1"),
        &actor(),
        &json!({}),
        &world.options(),
    );
    assert!(matches!(again, Err(OpenError::Exists { .. })));
}
