//! `lodestar log anchor`

use std::fs;

use lodestar_core::note::{Checkpoint, Note, NoteKey};

use crate::world::{World, log_key, witness_key};

fn witness() -> NoteKey {
    NoteKey::cosignature("witness.example", &witness_key().public()).expect("a name")
}

fn cosign(head: &str) -> String {
    let mut note = Note::parse(head.as_bytes()).expect("a note");
    Checkpoint::cosign(&mut note, "witness.example", &witness_key(), 1_767_323_100)
        .expect("signed");
    note.to_string()
}

#[test]
fn the_head_is_a_signed_note_of_the_ledger() {
    let world = World::new();
    world.closed("web", "s-1");
    let head = world.run(&["log", "anchor"]).expect(0).out;
    let key = NoteKey::ed25519("lodestar.log/web/_ledger", &log_key().public()).expect("a name");
    let (checkpoint, _) = Checkpoint::open(head.as_bytes(), &key).expect("verifies");
    assert_eq!(checkpoint.size, 2);
    let report = world.run(&["log", "anchor", "--json"]).expect(0).json();
    assert_eq!(report["head"], head);
    assert_eq!(report["size"], 2);
    assert_eq!(report["root"], checkpoint.root.to_string());
    let out = world.path("head.txt");
    world
        .run(&["log", "anchor", "--out", out.to_str().expect("UTF-8")])
        .expect(0);
    assert_eq!(fs::read_to_string(out).expect("written"), head);
}

#[test]
fn a_co_signature_is_recorded_and_remembered() {
    let world = World::new();
    world.closed("web", "s-1");
    let head = world.run(&["log", "anchor"]).expect(0).out;
    let file = world.write("cosigned.txt", &cosign(&head));
    let file = file.to_str().expect("UTF-8");
    let key = witness().to_string();
    let run = world
        .run(&["log", "anchor", "--record", file, "--witness-key", &key])
        .expect(0);
    assert_eq!(run.out, "✓ recorded the signature of witness.example\n");
    world.write("config/witnesses/w.pub", &format!("{key}\n"));
    let run = world.run(&["log", "verify"]).expect(0);
    assert!(
        run.out
            .contains("head of 2 records co-signed by witness.example"),
        "{}",
        run.out
    );
    // The pinned witness is enough from now on.
    let report = world
        .run(&["log", "anchor", "--record", file, "--json"])
        .expect(0)
        .json();
    assert_eq!(report["witnesses"], serde_json::json!(["witness.example"]));
}

#[test]
fn what_no_witness_signed_or_another_log_wrote_is_refused() {
    let world = World::new();
    world.closed("web", "s-1");
    let head = world.run(&["log", "anchor"]).expect(0).out;
    let key = witness().to_string();
    let record = |content: &str, code: i32| {
        let file = world.write("head.txt", content);
        let file = file.to_str().expect("UTF-8").to_owned();
        let before = fs::read(world.log("web").ledger_path()).expect("readable");
        world
            .run(&["log", "anchor", "--record", &file, "--witness-key", &key])
            .expect(code);
        assert_eq!(
            before,
            fs::read(world.log("web").ledger_path()).expect("readable")
        );
    };
    record(&head, 1);
    record("nonsense", 1);
    let other = World::new();
    other.closed("api", "s-1");
    record(&cosign(&other.run(&["log", "anchor"]).expect(0).out), 1);
    // The same project, with another past.
    let other = World::new();
    other.closed("web", "s-1");
    record(&cosign(&other.run(&["log", "anchor"]).expect(0).out), 1);
}

#[test]
fn recording_needs_the_log_key_and_a_witness() {
    let world = World::new();
    world.closed("web", "s-1");
    let file = world.write("h.txt", &world.run(&["log", "anchor"]).expect(0).out);
    let file = file.to_str().expect("UTF-8");
    let run = world.run(&["log", "anchor", "--record", file]).expect(2);
    assert!(run.err.contains("--witness-key"), "{}", run.err);
    fs::remove_file(world.path("config/keys/log.key")).expect("removed");
    let key = witness().to_string();
    world
        .run(&["log", "anchor", "--record", file, "--witness-key", &key])
        .expect(4);
}

#[test]
fn of_several_projects_one_has_to_be_named() {
    let world = World::new();
    world.closed("web", "s-1");
    world.closed("api", "s-1");
    let run = world.run(&["log", "anchor"]).expect(2);
    assert!(run.err.contains("--project: api, web"), "{}", run.err);
    world.run(&["log", "anchor", "--project", "web"]).expect(0);
}

#[test]
fn a_damaged_ledger_has_no_head_to_give() {
    let world = World::new();
    world.closed("web", "s-1");
    let path = world.log("web").ledger_path();
    let text = fs::read_to_string(&path)
        .expect("readable")
        .replace("s-1", "s-2");
    fs::write(&path, text).expect("written");
    world.run(&["log", "anchor"]).expect(1);
}
