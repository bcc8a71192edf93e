//! `lodestar undo`, on real files: what an act wrote over stands there again, or it is said why not.

mod agent;
mod hostile;
mod killed;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use self::agent::{act, project, refused, write};
use crate::world::World;

fn read(world: &World, name: &str) -> Vec<u8> {
    fs::read(world.path(name)).expect("there")
}

#[test]
fn what_was_written_over_stands_there_again_with_its_mode() {
    let world = project();
    let file = world.write("work/notes.md", "one\ntwo\n");
    world.chmod(&file, 0o640);
    let action = write(&world, "notes.md", "one\nthree\nfour\n");
    assert_eq!(read(&world, "work/notes.md"), b"one\nthree\nfour\n");
    // What the act did not do itself counts as well: somebody else's change would show as one.
    let shown = world.run(&["undo", "latest", "--dry-run"]).expect(0);
    assert!(
        shown.out.contains("notes.md: back to 8 bytes, +1 −2 lines"),
        "{}",
        shown.out
    );
    assert_eq!(read(&world, "work/notes.md"), b"one\nthree\nfour\n");
    let run = world.run(&["undo", &action]).expect(0);
    assert!(run.out.contains("✓ notes.md"), "{}", run.out);
    assert_eq!(read(&world, "work/notes.md"), b"one\ntwo\n");
    let mode = fs::metadata(&file).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    world.run(&["log", "verify"]).expect(0);
}

#[test]
fn undoing_twice_does_nothing_and_undoing_the_undoing_does_it_again() {
    let world = project();
    world.write("work/notes.md", "before");
    let action = write(&world, "notes.md", "after");
    let first = world.run(&["undo", &action, "--json"]).expect(0).json();
    assert_eq!(first["done"], true);
    let undoing = first["undone_by"]["action"]
        .as_str()
        .expect("an id")
        .to_owned();
    let again = world.run(&["undo", &action]).expect(0);
    assert!(again.out.contains("nothing to undo"), "{}", again.out);
    // `latest` is the agent's act, not the undoing of it.
    let latest = world.run(&["undo", "latest", "--json"]).expect(0).json();
    assert_eq!(latest["action"], json!(action));
    assert_eq!(latest["done"], false);
    world.run(&["undo", &undoing]).expect(0);
    assert_eq!(read(&world, "work/notes.md"), b"after");
}

#[test]
fn what_an_act_made_goes_and_so_do_the_folders_it_made_for_it() {
    let world = project();
    world.write("work/a/stays.txt", "here");
    let arguments = json!({"path": "a/b/c/new.txt", "content": "x", "create_dirs": true});
    let action = agent::call(&world, "fs.write", arguments);
    assert!(world.path("work/a/b/c/new.txt").exists());
    let run = world.run(&["undo", &action]).expect(0);
    assert!(run.out.contains("it was not there before"), "{}", run.out);
    assert!(!world.path("work/a/b").exists());
    assert!(world.path("work/a/stays.txt").exists());
}

#[test]
fn a_folder_that_somebody_put_something_into_stays() {
    let world = project();
    let arguments = json!({"path": "new/one.txt", "content": "x", "create_dirs": true});
    let action = agent::call(&world, "fs.write", arguments);
    world.write("work/new/two.txt", "mine");
    world.run(&["undo", &action]).expect(0);
    assert!(!world.path("work/new/one.txt").exists());
    assert_eq!(read(&world, "work/new/two.txt"), b"mine");
}

#[test]
fn several_files_come_back_whatever_they_hold_and_are_called() {
    let world = project();
    let large: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(world.path("work/large.bin"), &large).expect("written");
    fs::write(world.path("work/latin.txt"), b"caf\xe9\n").expect("written");
    world.write("work/removed.txt", "was here");
    world.write("work/target.txt", "behind the link");
    std::os::unix::fs::symlink("target.txt", world.path("work/link")).expect("linked");
    let odd = agent::odd_name(&world);
    fs::write(&odd, b"odd \0 name").expect("written");
    let action = act(
        &world,
        json!([
            {"path": "large.bin", "hex": "00ff"},
            {"path": "latin.txt", "hex": "6869", "mode": 0o600},
            {"path": "removed.txt", "remove": true},
            {"path": "link", "hex": "77"},
            {"path_hex": agent::ODD_HEX, "hex": "01"},
            {"path": "made.txt", "hex": "02"},
        ]),
    );
    assert_eq!(read(&world, "work/target.txt"), b"w");
    let told = world.run(&["undo", &action, "--json"]).expect(0).json();
    let paths: Vec<&Value> = told["paths"].as_array().expect("a list").iter().collect();
    assert_eq!(paths.len(), 7, "the link and what it leads to: {told}");
    assert_eq!(read(&world, "work/large.bin"), large);
    assert_eq!(read(&world, "work/latin.txt"), b"caf\xe9\n");
    assert_eq!(read(&world, "work/removed.txt"), b"was here");
    assert_eq!(read(&world, "work/target.txt"), b"behind the link");
    assert!(world.path("work/link").is_symlink());
    assert_eq!(fs::read(&odd).expect("there"), b"odd \0 name");
    assert!(!world.path("work/made.txt").exists());
    let undoing = told["undone_by"]["action"]
        .as_str()
        .expect("an id")
        .to_owned();
    world.run(&["undo", &undoing]).expect(0);
    assert_eq!(read(&world, "work/target.txt"), b"w");
    assert_eq!(fs::read(&odd).expect("there"), b"\x01");
    assert!(!world.path("work/removed.txt").exists());
}

#[test]
fn a_link_that_was_replaced_by_a_file_is_a_link_again() {
    let world = project();
    world.write("work/target.txt", "untouched");
    std::os::unix::fs::symlink("target.txt", world.path("work/link")).expect("linked");
    let action = act(
        &world,
        json!([{"path": "link", "remove": true}, {"path": "link", "hex": "77"}]),
    );
    assert!(!world.path("work/link").is_symlink());
    world.run(&["undo", &action]).expect(0);
    assert!(world.path("work/link").is_symlink());
    assert_eq!(read(&world, "work/link"), b"untouched");
}

#[test]
fn a_file_that_was_changed_since_is_left_alone_unless_forced() {
    let world = project();
    world.write("work/one.txt", "one");
    world.write("work/two.txt", "two");
    let action = act(
        &world,
        json!([{"path": "one.txt", "hex": "31"}, {"path": "two.txt", "hex": "32"}]),
    );
    world.write("work/two.txt", "mine");
    let run = world.run(&["undo", &action]).expect(1);
    assert!(
        run.out.contains("✗ two.txt: was changed since"),
        "{}",
        run.out
    );
    assert_eq!(read(&world, "work/one.txt"), b"1", "all or nothing");
    let forced = world.run(&["undo", &action, "--force", "--json"]).expect(0);
    assert_eq!(read(&world, "work/one.txt"), b"one");
    assert_eq!(read(&world, "work/two.txt"), b"two");
    let undoing = forced.json()["undone_by"]["action"].clone();
    world
        .run(&["undo", undoing.as_str().expect("an id")])
        .expect(0);
    assert_eq!(read(&world, "work/two.txt"), b"mine", "nothing is lost");
}

/// The end of an act is written at once, and is under a checkpoint seconds later.
#[test]
fn while_the_session_runs_a_change_is_told_from_what_the_act_left() {
    let world = project();
    world.write("work/notes.md", "before");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let session = agent::setup(&world).open().await.expect("opened");
        for content in ["after", "after again"] {
            let arguments = json!({"path": "notes.md", "content": content});
            let reply = session.call("fs.write", arguments).await.expect("answered");
            assert!(reply.ran(), "{reply:?}");
            world.write("work/notes.md", "mine");
            let run = world.run(&["undo", "latest"]).expect(1);
            assert!(run.out.contains("was changed since"), "{}", run.out);
            assert_eq!(read(&world, "work/notes.md"), b"mine");
            world.write("work/notes.md", content);
            world.run(&["undo", "latest"]).expect(0);
            assert_ne!(read(&world, "work/notes.md"), content.as_bytes());
        }
        session.close("done").await.expect("closed");
    });
    assert_eq!(read(&world, "work/notes.md"), b"before");
}

#[test]
fn what_is_too_large_to_keep_is_not_written_over_at_l3() {
    let world = project();
    let file = fs::File::create(world.path("work/huge.bin")).expect("made");
    file.set_len((16 << 20) + 1).expect("grown");
    let arguments = json!({"path": "huge.bin", "content": "small"});
    let why = refused(&world, "fs.write", arguments);
    assert_eq!(why.kind(), "irreversible");
    assert!(why.to_string().contains("16777217 bytes"), "{why}");
    let length = fs::metadata(world.path("work/huge.bin"))
        .expect("there")
        .len();
    assert_eq!(length, (16 << 20) + 1);
    // At the limit it is kept whole.
    file.set_len(16 << 20).expect("shrunk");
    let action = write(&world, "huge.bin", "small");
    world.run(&["undo", &action]).expect(0);
    assert_eq!(read(&world, "work/huge.bin"), vec![0; 16 << 20]);
}

#[test]
fn an_act_is_named_by_the_beginning_of_its_id_and_what_is_none_is_said() {
    let world = project();
    world.write("work/notes.md", "before");
    let action = write(&world, "notes.md", "after");
    let session = world.run(&["log", "list", "--json"]).expect(0);
    assert!(session.out.contains("s-"), "{}", session.out);
    world.run(&["undo", &action[..20], "--dry-run"]).expect(0);
    let bare = action.strip_prefix("act_").expect("an id");
    world.run(&["undo", bare, "--dry-run"]).expect(0);
    world.run(&["undo", "act_nobody"]).expect(3);
    world.run(&["undo", "not an id"]).expect(2);
    world
        .run(&["undo", &action, "--session", "s-nobody"])
        .expect(3);
    let read = agent::call(&world, "fs.read", json!({"path": "notes.md"}));
    let run = world.run(&["undo", &read]).expect(1);
    assert!(run.err.contains("nothing was kept"), "{}", run.err);
}

#[test]
fn a_policy_that_asks_for_it_is_obeyed() {
    let world = project();
    world.write("work/notes.md", "before");
    let action = write(&world, "notes.md", "after");
    let policy = "@id(\"ask-all\")\npermit(principal, action in Action::\"ask\", resource);\n";
    world.write("work/ask.cedar", policy);
    let asks = agent::CONFIG.replace(
        "auto_approve_ceiling = 3",
        "policy = { file = \"ask.cedar\", allow_unsigned = true }",
    );
    world.write("work/lodestar.toml", &asks);
    let run = world.run(&["undo", &action]).expect(4);
    assert!(run.err.contains("approve list"), "{}", run.err);
    assert_eq!(read(&world, "work/notes.md"), b"after");
    let list = world.run(&["approve", "list", "--json"]).expect(0).json();
    assert_eq!(list["requests"].as_array().map(Vec::len), Some(1), "{list}");
}

#[test]
fn a_policy_that_names_tools_permits_it_by_who_asks() {
    let world = project();
    world.write("work/notes.md", "before");
    let action = write(&world, "notes.md", "after");
    let agents =
        "@id(\"write\")\npermit(principal, action == Action::\"run:fs.write\", resource);\n";
    let people = "@id(\"undo\")\npermit(principal, action in Action::\"run\", resource)\n\
                  when { principal.execution == \"command-line\" };\n";
    let config = agent::CONFIG.replace(
        "auto_approve_ceiling = 3",
        "policy = { file = \"own.cedar\", allow_unsigned = true }",
    );
    world.write("work/lodestar.toml", &config);
    world.write("work/own.cedar", agents);
    let run = world.run(&["undo", &action]).expect(1);
    assert!(run.err.contains("has to permit it"), "{}", run.err);
    assert_eq!(read(&world, "work/notes.md"), b"after");
    world.write("work/own.cedar", &format!("{agents}{people}"));
    world.run(&["undo", &action]).expect(0);
    assert_eq!(read(&world, "work/notes.md"), b"before");
}

#[test]
fn under_the_default_preset_a_persons_own_undoing_runs() {
    let world = project();
    world.write("work/notes.md", "before");
    let action = write(&world, "notes.md", "after");
    let asks = agent::CONFIG.replace("auto_approve_ceiling = 3", "");
    world.write("work/lodestar.toml", &asks);
    world.run(&["undo", &action]).expect(0);
    assert_eq!(read(&world, "work/notes.md"), b"before");
}

#[test]
fn a_report_says_what_can_be_undone_and_what_was() {
    let world = project();
    world.write("work/notes.md", "before");
    let action = write(&world, "notes.md", "after");
    let report = world.run(&["report", "latest", "--format", "md"]).expect(0);
    let kept = "can be undone: what stood at 1 path was kept";
    assert!(report.out.contains(kept), "{}", report.out);
    let told = world.run(&["undo", &action, "--json"]).expect(0).json();
    let session = told["undone_by"]["session"].as_str().expect("a name");
    let report = world
        .run(&["report", session, "--format", "json"])
        .expect(0);
    let report = report.json();
    assert_eq!(report["actions"][0]["undoes"]["action"], json!(action));
    assert_eq!(report["actions"][0]["image"]["undo"], "yes");
    // What a person undid is not what anybody asks about an agent.
    let latest = world
        .run(&["report", "latest", "--format", "json"])
        .expect(0);
    assert_eq!(latest.json()["actions"][0]["id"], json!(action));
}
