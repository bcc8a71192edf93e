//! One rule at a time: logs that are hashed and signed correctly, with the log key, and break
//! exactly one rule. Flipped bits never get this far, because a hash catches them first.

use std::fs;

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, leaf_hash, sha256, sha256_parts};
use lodestar_core::merkle::Frontier;
use lodestar_core::note::Checkpoint;
use serde_json::{Value, json};

use crate::support::{World, id};

/// What a line says; the rest is computed.
#[derive(Clone)]
pub(crate) struct Row {
    kind: &'static str,
    payload: Value,
    /// The payload as it stands there, where it is not canonical.
    written: Option<&'static str>,
    parents: &'static str,
    project: &'static str,
    second: u32,
}

pub(crate) fn row(kind: &'static str, payload: Value) -> Row {
    Row {
        kind,
        payload,
        written: None,
        parents: "",
        project: "notes",
        second: 0,
    }
}

/// Lines that chain from `prev`, and the signed checkpoint over them.
fn signed(
    world: &World,
    session: &str,
    mut prev: Digest,
    rows: &[Row],
) -> (String, String, Digest) {
    let mut tree = Frontier::new();
    let mut text = String::new();
    let mut first = prev;
    for (seq, row) in rows.iter().enumerate() {
        let canonical = String::from_utf8(canonical::to_vec(&row.payload).unwrap()).unwrap();
        let payload = row.written.map_or(canonical, str::to_owned);
        let hash = sha256_parts(&[&[0; 16], payload.as_bytes()]);
        let Row {
            kind,
            parents,
            project,
            second,
            ..
        } = row;
        let head = format!(
            "{{\"actor\":\"lodestar\",\"parents\":[{parents}],\"payload_hash\":\"{hash}\",\"prev\":\"{prev}\",\"project\":\"{project}\",\"seq\":{seq},\"session\":\"{session}\",\"time\":\"2026-01-01T00:00:{second:02}.000000Z\",\"type\":\"{kind}\"}}"
        );
        prev = leaf_hash(head.as_bytes());
        if seq == 0 {
            first = prev;
        }
        tree.push(prev);
        let salt = "0".repeat(32);
        text += &format!("{{\"head\":{head},\"payload\":{payload},\"salt\":\"{salt}\"}}\n");
    }
    let checkpoint = Checkpoint {
        origin: format!("lodestar.log/notes/{session}"),
        size: tree.size(),
        root: tree.root(),
    };
    (text, checkpoint.sign(&world.key).to_string(), first)
}

pub(crate) fn opening(world: &World) -> Row {
    let record = json!({
        "format": "lodestar-log/1",
        "log_key": world.key.public(),
        "session": "s1",
    });
    row("ledger.session_opened@1", record)
}

/// A project with this ledger and this session, both signed.
pub(crate) fn project(ledger: impl Fn(&World) -> Vec<Row>, session: Vec<Row>) -> World {
    let world = World::fast();
    let genesis = sha256(b"lodestar.log/notes/_ledger");
    let (text, head, opened) = signed(&world, "_ledger", genesis, &ledger(&world));
    let dir = world.log().session(&id("s1"));
    fs::create_dir_all(dir.dir()).unwrap();
    fs::write(world.log().ledger_path(), text).unwrap();
    fs::write(world.log().ledger_checkpoint_path(), head).unwrap();
    let (text, checkpoint, _) = signed(&world, "s1", opened, &session);
    fs::write(dir.events_path(), text).unwrap();
    fs::write(dir.checkpoint_path(), checkpoint).unwrap();
    world
}

fn codes(world: &World) -> Vec<&'static str> {
    let report = world.verify();
    report.all_problems().map(|p| p.kind.code()).collect()
}

pub(crate) fn opened() -> Row {
    row("session.opened@1", json!({}))
}

pub(crate) fn note() -> Row {
    row("agent.note@1", json!({}))
}

#[test]
fn a_log_made_by_hand_to_the_rules_is_intact() {
    let world = project(|w| vec![opening(w)], vec![opened(), note()]);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
}

#[test]
fn what_a_checkpoint_covers_was_written_by_whoever_has_the_key_however_it_is_spelled() {
    let spelled = Row {
        written: Some("{\"b\": 1, \"a\": 1}"),
        ..note()
    };
    let world = project(|w| vec![opening(w)], vec![opened(), spelled]);
    assert_eq!(codes(&world), [""; 0]);
}

#[test]
fn every_rule_of_a_session_is_checked_by_itself() {
    let fake = sha256(b"no such blob").to_string();
    let blob =
        json!({"at": "/x", "encoding": "text", "raw_bytes": 1, "raw_sha256": fake, "sha256": fake});
    let cases: Vec<(&str, Vec<Row>)> = vec![
        ("not_opened", vec![note()]),
        (
            "time_runs_backwards",
            vec![
                Row {
                    second: 9,
                    ..opened()
                },
                Row {
                    second: 8,
                    ..note()
                },
            ],
        ),
        (
            "parent_ahead",
            vec![
                opened(),
                Row {
                    parents: "1",
                    ..note()
                },
            ],
        ),
        (
            "wrong_project",
            vec![
                opened(),
                Row {
                    project: "other",
                    ..note()
                },
            ],
        ),
        (
            "bad_blob_list",
            vec![opened(), row("agent.note@1", json!({"blobs": [{"at": 1}]}))],
        ),
        (
            "blob_missing",
            vec![
                opened(),
                row("agent.note@1", json!({"blobs": [blob], "x": null})),
            ],
        ),
        (
            "bad_redaction",
            vec![opened(), row("log.redacted@1", json!({"statement": 1}))],
        ),
        (
            "recovered_part_changed",
            vec![opened(), row("log.recovered@1", json!({}))],
        ),
        (
            "recovered_part_changed",
            vec![
                opened(),
                row(
                    "log.recovered@1",
                    json!({"bytes": 1, "kept": "../../../etc/passwd", "offset": 0, "sha256": fake}),
                ),
            ],
        ),
    ];
    for (code, rows) in cases {
        let world = project(|w| vec![opening(w)], rows);
        assert_eq!(codes(&world), [code]);
    }
}

#[test]
fn every_rule_of_the_ledger_is_checked_by_itself() {
    let stranger = || {
        row(
            "ledger.session_closed@1",
            json!({"checkpoint": "", "session": "s9"}),
        )
    };
    let reopened = |session: &str| {
        let record = json!({"proven": 1, "root": sha256(b""), "session": session, "size": 9});
        row("ledger.session_reopened@1", record)
    };
    type Ledger<'a> = Box<dyn Fn(&World) -> Vec<Row> + 'a>;
    let cases: Vec<(&str, Ledger<'_>)> = vec![
        ("opened_twice", Box::new(|w| vec![opening(w), opening(w)])),
        ("bad_record", Box::new(|w| vec![opening(w), stranger()])),
        ("bad_record", Box::new(|w| vec![opening(w), note()])),
        (
            "bad_record",
            Box::new(|w| vec![opening(w), row("ledger.session_opened@1", json!({}))]),
        ),
        (
            "bad_record",
            Box::new(|w| {
                let mut newer = opening(w);
                newer.payload["format"] = json!("lodestar-log/2");
                newer.payload["session"] = json!("s2");
                vec![opening(w), newer]
            }),
        ),
        (
            "never_opened",
            Box::new(|w| vec![opening(w), reopened("s9")]),
        ),
        ("truncated", Box::new(|w| vec![opening(w), reopened("s1")])),
        (
            "bad_witnessed_head",
            Box::new(|w| {
                vec![
                    opening(w),
                    row("log.anchored@1", json!({"head": "", "witnesses": []})),
                ]
            }),
        ),
        (
            "recovered_part_changed",
            Box::new(|w| {
                let record = json!({"bytes": 1, "kept": "ledger.recovered-1", "offset": 1, "sha256": sha256(b"")});
                vec![opening(w), row("log.recovered@1", record)]
            }),
        ),
    ];
    for (code, ledger) in cases {
        let world = project(ledger, vec![opened(), note()]);
        assert_eq!(codes(&world), [code]);
    }
}

#[test]
fn a_blob_whose_bytes_or_claims_are_wrong_is_damaged() {
    let raw = b"what was read";
    let stored = zstd::bulk::compress(raw, 3).unwrap();
    let claim = |bytes: u64, hash: Digest| json!({"at": "/x", "encoding": "text", "raw_bytes": bytes, "raw_sha256": hash, "sha256": sha256(&stored)});
    let with = |claims: Vec<Value>, content: &[u8]| {
        let payload = json!({"blobs": claims, "x": null});
        let world = project(
            |w| vec![opening(w)],
            vec![opened(), row("agent.note@1", payload)],
        );
        let blobs = world.log().session(&id("s1")).blobs_dir();
        fs::create_dir_all(&blobs).unwrap();
        fs::write(blobs.join(sha256(&stored).to_string()), content).unwrap();
        codes(&world)
    };
    let len = raw.len() as u64;
    let trailing = [&stored[..], b"more"].concat();
    assert_eq!(with(vec![claim(len, sha256(raw))], &stored), [""; 0]);
    assert_eq!(
        with(vec![claim(len, sha256(raw))], &trailing),
        ["blob_damaged"]
    );
    assert_eq!(
        with(vec![claim(len, sha256(raw))], b"junk"),
        ["blob_damaged"]
    );
    assert_eq!(
        with(vec![claim(len + 1, sha256(raw))], &stored),
        ["blob_damaged"]
    );
    assert_eq!(
        with(vec![claim(len - 1, sha256(raw))], &stored),
        ["blob_damaged"]
    );
    assert_eq!(
        with(vec![claim(len, sha256(b"other"))], &stored),
        ["blob_damaged"]
    );
    // A second claim about the same blob is not covered by the first.
    let two = vec![claim(len, sha256(raw)), claim(1, sha256(raw))];
    assert_eq!(with(two, &stored), ["blob_damaged"]);
}
