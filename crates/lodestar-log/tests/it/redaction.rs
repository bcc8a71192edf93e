//! Content that is taken back is gone, and everything else still verifies.

use std::collections::BTreeSet;
use std::fs;

use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_log::verify::{Remark, SessionState};
use lodestar_log::{
    Disclosure, LogWriter, OpenError, Reader, RedactError, Redacted, Trust, prove_consistency,
    prove_inclusion, redact,
};
use serde_json::json;

use crate::support::{World, actor, append, close, files_below, id};

const SECRET: &str = "sk-live-51H8xVeryPrivateToken";

/// #1 mentions the secret, #2 and #3 carry the same large content with it, #4 other large content.
fn world_with_a_secret() -> World {
    let world = World::new();
    let writer = world.create("s1");
    let observe = |payload| {
        writer
            .append(EventType::OBSERVATION_RECORDED, &actor(), &[], &payload)
            .unwrap();
    };
    observe(json!({"content": format!("the token is {SECRET}")}));
    let large = format!("{SECRET} {}", "line of the file\n".repeat(3000));
    observe(json!({"content": large, "first": true}));
    observe(json!({"content": large, "again": true}));
    observe(json!({"content": "harmless\n".repeat(5000)}));
    close(&writer);
    drop(writer);
    assert!(world.verify().is_intact());
    world
}

fn redact_events(world: &World, seqs: &[u64]) -> Result<Redacted, RedactError> {
    redact(
        &world.log(),
        &id("s1"),
        &seqs.iter().copied().collect::<BTreeSet<_>>(),
        "a customer's token",
        &world.operator,
        &world.trust(),
        &world.options(),
    )
}

/// Whether the secret stands anywhere below the folder, also inside compressed blobs.
fn secret_on_disk(world: &World) -> bool {
    files_below(world.folder()).iter().any(|path| {
        let bytes = fs::read(path).unwrap();
        let raw = zstd::decode_all(&bytes[..]).unwrap_or_default();
        let holds = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes());
        holds(&bytes) || holds(&raw)
    })
}

#[test]
fn redacting_keeps_chain_proofs_and_checkpoints_and_removes_the_content() {
    let world = world_with_a_secret();
    let trust = world.trust();
    let dir = world.log().session(&id("s1"));
    let before = prove_inclusion(&dir, 1, Disclosure::HeadOnly, &trust).unwrap();
    let checkpoint_before = world.verify().sessions[0].root;
    assert!(secret_on_disk(&world));

    let done = redact_events(&world, &[1, 2]).unwrap();
    assert_eq!(done.events, [1, 2, 3], "#3 refers to the same blob as #2");
    assert_eq!(done.blobs.len(), 1);
    assert_eq!(done.redaction, 6);
    assert!(!secret_on_disk(&world));

    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions[0].state, SessionState::Closed);
    assert_eq!(report.sessions[0].proven, 7);
    assert!(matches!(
        &report.sessions[0].remarks[..],
        [Remark::Redacted { redaction: 6, events: 3, reason, .. }] if reason == "a customer's token"
    ));
    // A proof from before still holds, a new one can be made, and the old root is a prefix.
    before.check(&trust).unwrap();
    prove_inclusion(&dir, 2, Disclosure::Payload, &trust)
        .unwrap()
        .check(&trust)
        .unwrap();
    let proven = prove_consistency(&dir, 6, &trust)
        .unwrap()
        .check(&trust)
        .unwrap();
    assert_eq!(proven.extends.unwrap().root, checkpoint_before);
    // The rest is still there.
    let events: Vec<_> = Reader::open(&dir).unwrap().map(Result::unwrap).collect();
    assert_eq!(events[2].inline().unwrap(), None);
    assert!(
        events[4].whole(&dir).unwrap().unwrap()["content"]
            .as_str()
            .unwrap()
            .starts_with("harmless")
    );
}

#[test]
fn a_second_redaction_and_a_reopened_session_go_on() {
    let world = world_with_a_secret();
    redact_events(&world, &[1]).unwrap();
    assert!(matches!(
        redact_events(&world, &[1]),
        Err(RedactError::Already { seq: 1 })
    ));
    redact_events(&world, &[2]).unwrap();
    assert!(!secret_on_disk(&world));
    assert!(world.verify().is_intact());
    let writer = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
    append(&writer, 1);
    drop(writer);
    assert!(world.verify().is_intact());
    // An open session can be redacted too.
    redact_events(&world, &[4]).unwrap();
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
}

#[test]
fn a_redaction_needs_an_operator_who_is_known_and_is_not_the_log() {
    let world = world_with_a_secret();
    redact_events(&world, &[1]).unwrap();
    // To somebody who does not know the operator it is tampering.
    let stranger = Trust::only(world.key.public());
    let report = crate::support::verify_folder(world.folder(), &stranger, None);
    let codes: Vec<_> = report.all_problems().map(|p| p.kind.code()).collect();
    assert_eq!(codes, ["unknown_operator", "unanswered_tombstone"]);
    // The log key cannot do it, neither here nor for a reader who would take it for an operator.
    let seed = *world.key.seed();
    let own = redact(
        &world.log(),
        &id("s1"),
        &BTreeSet::from([2]),
        "",
        &SecretKey::from_seed(seed),
        &world.trust(),
        &world.options(),
    );
    assert!(matches!(own, Err(RedactError::LogKey)));
}

#[test]
fn a_tombstone_without_a_redaction_is_tampering() {
    let world = world_with_a_secret();
    let path = world.log().session(&id("s1")).events_path();
    let text = fs::read_to_string(&path).unwrap();
    let forged: String = text
        .split_inclusive('\n')
        .enumerate()
        .map(|(i, line)| match i {
            1 => {
                let head = &line[..line.find(",\"payload\":").unwrap()];
                format!("{head},\"tombstone\":{{\"redaction\":5}}}}\n")
            }
            _ => line.to_owned(),
        })
        .collect();
    fs::write(&path, forged).unwrap();
    let report = world.verify();
    let problem = report.all_problems().next().unwrap();
    assert_eq!(
        (problem.kind.code(), problem.seq),
        ("unanswered_tombstone", Some(1))
    );
}

#[test]
fn what_cannot_be_redacted_says_why_and_changes_nothing() {
    let world = world_with_a_secret();
    let before = fs::read(world.log().session(&id("s1")).events_path()).unwrap();
    assert!(matches!(
        redact_events(&world, &[]),
        Err(RedactError::Nothing)
    ));
    assert!(matches!(
        redact_events(&world, &[99]),
        Err(RedactError::NoSuchEvent { seq: 99, events: 6 })
    ));
    let writer = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
    assert!(matches!(
        redact_events(&world, &[1]),
        Err(RedactError::Open(OpenError::Busy { .. }))
    ));
    drop(writer);
    assert_eq!(
        fs::read(world.log().session(&id("s1")).events_path()).unwrap(),
        before
    );
    redact_events(&world, &[1]).unwrap();
    assert!(matches!(
        redact_events(&world, &[6]),
        Err(RedactError::Needed { seq: 6, .. })
    ));
    // A session that does not verify is left as it is.
    let path = world.log().session(&id("s1")).events_path();
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        redact_events(&world, &[2]),
        Err(RedactError::NotIntact { .. })
    ));
}

/// The state a crash leaves between putting the new events in place and signing them.
#[test]
fn an_interrupted_redaction_is_finished_by_the_next_one() {
    let world = world_with_a_secret();
    let before = world.copy();
    redact_events(&world, &[2]).unwrap();
    // New events, but checkpoint, blobs and ledger of before.
    let dir = |w: &World| w.log().session(&id("s1"));
    fs::copy(dir(&world).events_path(), dir(&before).events_path()).unwrap();
    assert!(!before.verify().is_intact());
    let done = redact_events(&before, &[1]).unwrap();
    assert_eq!(done.events, [1]);
    assert!(!secret_on_disk(&before));
    let report = before.verify();
    assert!(report.is_intact(), "{report:#?}");
}

#[test]
fn too_many_events_for_one_statement_are_refused_and_nothing_changes() {
    let world = World::fast();
    world.closed("s1", 12_000);
    let path = world.log().session(&id("s1")).events_path();
    let before = fs::metadata(&path).unwrap().len();
    let all: Vec<u64> = (1..11_000).collect();
    let error = redact_events(&world, &all).unwrap_err();
    assert!(
        matches!(error, RedactError::TooMany { events: 10_999 }),
        "{error}"
    );
    assert_eq!(fs::metadata(&path).unwrap().len(), before);
    assert!(world.verify().is_intact());
    redact_events(&world, &all[..2000]).unwrap();
    assert!(world.verify().is_intact());
}

#[test]
fn redacted_content_that_is_read_again_is_stored_again_and_can_be_redacted_again() {
    let world = world_with_a_secret();
    let redacted = redact_events(&world, &[2]).unwrap();
    let writer = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
    let large = format!("{SECRET} {}", "line of the file\n".repeat(3000));
    let kind = EventType::OBSERVATION_RECORDED;
    let again = writer
        .append(kind, &actor(), &[], &json!({ "content": large }))
        .unwrap()
        .seq();
    close(&writer);
    drop(writer);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(
        redact_events(&world, &[again]).unwrap().blobs,
        redacted.blobs
    );
    redact_events(&world, &[1]).unwrap();
    assert!(world.verify().is_intact());
    assert!(!secret_on_disk(&world));
}

#[test]
fn a_blob_that_a_crash_left_is_erased_when_the_session_is_taken_up() {
    let world = world_with_a_secret();
    let before = world.copy();
    redact_events(&world, &[1, 2]).unwrap();
    let blobs = |w: &World| w.log().session(&id("s1")).blobs_dir();
    for blob in files_below(&blobs(&before)) {
        let there = blobs(&world).join(blob.file_name().unwrap());
        fs::copy(&blob, there).unwrap();
    }
    assert!(secret_on_disk(&world));
    drop(LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap());
    assert!(!secret_on_disk(&world));
    assert!(world.verify().is_intact());
}

/// A crash may tear a line that holds what is redacted later; at every length, also without just
/// its newline.
#[test]
fn what_a_recovery_kept_goes_with_a_redaction() {
    let world = World::fast();
    let writer = world.create("s1");
    let payload = json!({"content": SECRET});
    let kind = EventType::OBSERVATION_RECORDED;
    writer.append(kind, &actor(), &[], &payload).unwrap();
    drop(writer);
    let path = world.log().session(&id("s1")).events_path();
    let whole = fs::read(&path).unwrap();
    let last = whole.split_inclusive(|b| *b == b'\n').next_back().unwrap();
    // The same line torn behind it, as a caller's retry would leave it.
    for len in (1..last.len()).rev().step_by(13) {
        let world = world.copy();
        let path = world.log().session(&id("s1")).events_path();
        fs::write(&path, [&whole[..], &last[..len]].concat()).unwrap();
        redact_events(&world, &[1]).unwrap();
        assert!(!secret_on_disk(&world), "{len}");
        let report = world.verify();
        assert!(report.is_intact(), "{len}: {report:#?}");
        // A crash before the part was erased: told, and finished by the next writer.
        let part = world
            .log()
            .session(&id("s1"))
            .recovered_dir()
            .join(format!("events-{}", whole.len()));
        fs::write(&part, &last[..len]).unwrap();
        let codes: Vec<_> = world
            .verify()
            .all_problems()
            .map(|p| p.kind.code())
            .collect();
        assert_eq!(codes, ["redacted_part_present"]);
        drop(LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap());
        assert!(!secret_on_disk(&world), "{len}");
        assert!(world.verify().is_intact());
    }
}
