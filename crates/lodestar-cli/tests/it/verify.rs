//! `lodestar log verify`

use std::fs;
use std::path::Path;

use lodestar_core::key::SecretKey;
use lodestar_core::note::{Checkpoint, Note, NoteKey};

use crate::world::{Run, World, assert_inert, log_key, vkey, witness_key};

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("readable");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("written");
}

#[test]
fn an_intact_project_passes() {
    let world = World::new();
    world.closed("web", "s-1");
    world.closed("web", "session-two");
    let run = world.run(&["log", "verify"]).expect(0);
    insta::assert_snapshot!(world.stable(&run.out));
    let report = world.run(&["log", "verify", "--json"]).expect(0).json();
    assert_eq!(report["intact"], true);
    let project = &report["projects"][0];
    assert_eq!(project["project"], "web");
    assert_eq!(project["ledger_records"], 4);
    assert_eq!(project["sessions"][0]["proven"], 5);
    assert_eq!(project["sessions"][0]["state"], "closed");
}

#[test]
fn one_session_can_be_named_and_all_projects_are_checked_otherwise() {
    let world = World::new();
    world.closed("web", "s-1");
    world.closed("api", "s-2");
    let count = |args: &[&str]| {
        let mut all = vec!["log", "verify", "--json"];
        all.extend(args);
        let report = world.run(&all).expect(0).json();
        let projects = report["projects"].as_array().expect("a list").clone();
        let sessions = projects
            .iter()
            .map(|p| p["sessions"].as_array().map_or(0, Vec::len));
        (projects.len(), sessions.sum::<usize>())
    };
    assert_eq!(count(&[]), (2, 2));
    assert_eq!(count(&["s-1"]), (1, 1));
    assert_eq!(count(&["latest"]), (1, 1));
    assert_eq!(count(&["--project", "api"]), (1, 1));
}

#[test]
fn tampering_is_exit_1_with_every_place_named() {
    let world = World::new();
    world.closed("web", "s-1");
    world.closed("web", "s-2");
    let path = world.session("web", "s-1").events_path();
    let at = fs::read_to_string(&path)
        .expect("readable")
        .find("IGNORE")
        .expect("there");
    flip(&path, at);
    flip(&world.session("web", "s-2").checkpoint_path(), 30);
    let run = world.run(&["log", "verify"]).expect(1);
    insta::assert_snapshot!(world.stable(&run.out));
    let report = world.run(&["log", "verify", "--json"]).expect(1).json();
    assert_eq!(report["intact"], false);
    let problem = &report["projects"][0]["sessions"][0]["problems"][0];
    assert_eq!(problem["file"], "s-1/events.ndjson");
    assert_eq!(problem["seq"], 3);
    assert_eq!(problem["code"], "payload_changed");
    assert!(
        problem["offset"]
            .as_u64()
            .is_some_and(|offset| (offset as usize) < at)
    );
    // The one that is intact can still be told from the other.
    assert_eq!(
        report["projects"][0]["sessions"][1]["problems"][0]["code"],
        "checkpoint_invalid"
    );
}

#[test]
fn a_tampered_ledger_counts_as_much_as_a_session() {
    let world = World::new();
    world.closed("web", "s-1");
    flip(&world.log("web").ledger_checkpoint_path(), 40);
    let run = world.run(&["log", "verify"]).expect(1);
    assert!(
        run.out
            .contains("✗ 1 session and 1 ledger checked: 1 ledger tampered, "),
        "{}",
        run.out
    );
}

#[test]
fn a_deleted_session_is_missed() {
    let world = World::new();
    world.closed("web", "s-1");
    world.closed("web", "s-2");
    fs::remove_dir_all(world.session("web", "s-1").dir()).expect("removed");
    let run = world.run(&["log", "verify"]).expect(1);
    assert!(
        run.out.contains("session `s-1` stands in the ledger"),
        "{}",
        run.out
    );
    let run = world.run(&["log", "verify", "s-1"]).expect(1);
    assert!(run.out.contains("✗ not here   s-1"), "{}", run.out);
}

#[test]
fn a_live_session_passes_and_its_tail_is_called_unproven() {
    let world = World::new();
    let writer = world.open("web", "s-1");
    crate::world::fill(&writer);
    let report = world.run(&["log", "verify", "--json"]).expect(0).json();
    assert_eq!(report["projects"][0]["sessions"][0]["state"], "live");
}

#[test]
fn without_any_key_it_says_how_to_give_one() {
    let world = World::new();
    world.closed("web", "s-1");
    fs::remove_dir_all(world.path("config")).expect("removed");
    let run = world.run(&["log", "verify"]).expect(2);
    insta::assert_snapshot!(world.stable(&run.err));
    let error = world.run(&["log", "verify", "--json"]).expect(2).error();
    assert!(
        error["help"]
            .as_str()
            .is_some_and(|help| help.contains("--key"))
    );
    // A configuration that cannot be looked into is not one without a key.
    let mut command = world.command(&["log", "verify"]);
    let file = world.write("a-file", "");
    command.env("LODESTAR_CONFIG_DIR", file);
    let run = Run::of(command.output().expect("started")).expect(2);
    assert!(run.err.contains("a-file/keys/log.pub`: "), "{}", run.err);
    assert!(!run.err.contains("there is no"), "{}", run.err);
    // Nor with nothing that could hold a configuration.
    let mut command = world.command(&["log", "verify"]);
    let output = command
        .env_remove("HOME")
        .env_remove("LODESTAR_CONFIG_DIR")
        .output();
    assert_eq!(output.expect("started").status.code(), Some(2));
}

#[test]
fn a_key_is_given_as_text_or_file_under_any_name_and_counts_alone() {
    let world = World::new();
    world.closed("web", "s-1");
    let right = vkey("whatever", &log_key());
    let other = vkey("lodestar-log", &SecretKey::from_seed([9; 32]));
    let file = world.write("k.pub", &format!("{right}\n"));
    let file = file.to_str().expect("UTF-8");
    world.run(&["log", "verify", "--key", &right]).expect(0);
    world.run(&["log", "verify", "--key", file]).expect(0);
    world
        .run(&["log", "verify", "--key", &other, "--key", &right])
        .expect(0);
    // The installation's key does not come to the rescue.
    let run = world.run(&["log", "verify", "--key", &other]).expect(1);
    assert!(
        run.out
            .contains("help: if the log was written elsewhere, pass --key")
    );
    let run = world.run(&["log", "prove", "1", "--key", &other]).expect(1);
    assert!(
        run.err
            .contains("help: if the log was written elsewhere, pass --key")
    );
    world
        .run(&["log", "verify", "--key", "missing.pub"])
        .expect(3);
    let broken = right.replace('+', "-");
    world.run(&["log", "verify", "--key", &broken]).expect(3);
    let run = world
        .run(&["log", "verify", "--key", "a+00000000+AAAA\x1b"])
        .expect(2);
    assert_inert(&run.err);
    let big = world.write("big.pub", &"x".repeat(100_000));
    world
        .run(&["log", "verify", "--key", big.to_str().expect("UTF-8")])
        .expect(2);
}

/// The ledger's head, signed by a witness as well.
fn cosigned(world: &World) -> String {
    let head = world.run(&["log", "anchor"]).expect(0).out;
    let mut note = Note::parse(head.as_bytes()).expect("a note");
    Checkpoint::cosign(&mut note, "witness.example", &witness_key(), 1_767_323_100)
        .expect("signed");
    note.to_string()
}

fn witness_vkey() -> String {
    NoteKey::cosignature("witness.example", &witness_key().public())
        .expect("a name")
        .to_string()
}

#[test]
fn a_rollback_of_everything_is_found_with_a_witnessed_head() {
    let world = World::new();
    world.closed("web", "s-1");
    let log = world.log("web");
    let copy = world.path("copy");
    copy_dir(log.dir(), &copy);
    world.closed("web", "s-2");
    let head = world.write("head.txt", &cosigned(&world));
    let head = head.to_str().expect("UTF-8");
    world
        .run(&[
            "log",
            "verify",
            "--witness",
            head,
            "--witness-key",
            &witness_vkey(),
        ])
        .expect(0);

    fs::remove_dir_all(log.dir()).expect("removed");
    copy_dir(&copy, log.dir());
    // The files alone are consistent; only the head tells.
    world.run(&["log", "verify"]).expect(0);
    let run = world.run(&["log", "verify", "--witness", head]).expect(1);
    assert!(
        run.out.contains("the project's log was rolled back"),
        "{}",
        run.out
    );
}

#[test]
fn a_head_that_the_witness_did_not_sign_does_not_count() {
    let world = World::new();
    world.closed("web", "s-1");
    let head = world.run(&["log", "anchor"]).expect(0).out;
    let head = world.write("head.txt", &head);
    let head = head.to_str().expect("UTF-8");
    let run = world.run(&["log", "verify", "--witness", head]).expect(0);
    let said = "checked against the witnessed head of 2 records";
    assert!(run.out.contains(said), "{}", run.out);
    let run = world
        .run(&[
            "log",
            "verify",
            "--witness",
            head,
            "--witness-key",
            &witness_vkey(),
        ])
        .expect(1);
    assert!(!run.out.contains(said), "{}", run.out);
    let nonsense = world.write("nonsense.txt", "not a head");
    world
        .run(&[
            "log",
            "verify",
            "--witness",
            nonsense.to_str().expect("UTF-8"),
        ])
        .expect(1);
    world
        .run(&["log", "verify", "--witness", "missing.txt"])
        .expect(3);
}

#[test]
fn a_head_goes_to_its_project_and_a_project_that_vanished_is_missed() {
    let world = World::new();
    for project in ["api", "web", "jobs"] {
        world.closed(project, "s-1");
    }
    let head = world
        .run(&["log", "anchor", "--project", "web"])
        .expect(0)
        .out;
    let head = world.write("head.txt", &head);
    let head = head.to_str().expect("UTF-8");
    world.run(&["log", "verify", "--witness", head]).expect(0);
    fs::remove_dir_all(world.log("web").dir()).expect("removed");
    let run = world.run(&["log", "verify", "--witness", head]).expect(1);
    assert!(run.err.contains("lodestar.log/web/_ledger"), "{}", run.err);
}

#[test]
fn names_and_reasons_that_others_chose_are_shown_inertly() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    let reason = "\x1b[31mleaked\u{202e}\nfor good";
    let args = ["log", "redact", "s-1", "--seq", "1", "--yes", "--reason"];
    let args: Vec<&str> = args.into_iter().chain([reason]).collect();
    world.run(&args).expect(0);
    let path = world.session("web", "s-1").checkpoint_path();
    let mut note = fs::read_to_string(&path).expect("readable");
    note.push_str("— evil\u{202e}\u{9b}31m AAAAAAAAAAA=\n");
    fs::write(&path, note).expect("written");
    let run = world.run(&["log", "verify"]).expect(0);
    assert_inert(&run.out);
    assert!(run.out.contains("evil⟨U+202E⟩⟨U+009B⟩31m"), "{}", run.out);
    assert!(
        run.out.contains("␛[31mleaked⟨U+202E⟩␊for good"),
        "{}",
        run.out
    );
    assert_inert(&world.run(&["log", "verify", "--json"]).expect(0).out);
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("created");
    for entry in fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy_dir(&path, &target),
            false => drop(fs::copy(&path, &target).expect("copied")),
        }
    }
}
