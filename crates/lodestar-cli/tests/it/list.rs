//! `lodestar log list`

use std::fs;

use crate::world::World;

#[test]
fn sessions_stand_in_the_order_they_were_opened_with_their_state() {
    let world = World::new();
    world.closed("web", "first");
    world.wait(60);
    let abandoned = world.open("web", "abandoned");
    drop(abandoned);
    world.wait(3600);
    world.closed("api", "of-another-project");
    world.wait(60);
    let _live = world.open("web", "live-one");
    insta::assert_snapshot!(world.run(&["log", "list"]).expect(0).out);

    let listed = world.run(&["log", "list", "--json"]).expect(0).json();
    let states: Vec<_> = listed["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|s| {
            (
                s["session"].as_str(),
                s["state"].as_str(),
                s["events"].as_u64(),
                s["events_exact"].as_bool(),
            )
        })
        .collect();
    assert_eq!(
        states,
        [
            (Some("first"), Some("closed"), Some(5), Some(true)),
            (Some("abandoned"), Some("open"), Some(1), Some(false)),
            (
                Some("of-another-project"),
                Some("closed"),
                Some(5),
                Some(true)
            ),
            (Some("live-one"), Some("live"), Some(1), Some(false)),
        ]
    );
    assert_eq!(listed["warnings"], serde_json::json!([]));
    let web = world
        .run(&["log", "list", "--json", "--project", "web"])
        .expect(0)
        .json();
    assert_eq!(web["sessions"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_session_without_files_or_without_record_stands_out() {
    let world = World::new();
    world.will_be_edited();
    world.closed("web", "deleted");
    world.closed("web", "kept");
    fs::remove_dir_all(world.session("web", "deleted").dir()).expect("removed");
    let stranger = world.session("web", "stranger");
    fs::create_dir(stranger.dir()).expect("created");
    let rows = world.run(&["log", "list", "--json"]).expect(0).json();
    let state = |i: usize| rows["sessions"][i]["state"].clone();
    assert_eq!(
        [state(0), state(1), state(2)],
        ["missing", "closed", "unknown"]
    );
    world.run(&["log", "show", "deleted"]).expect(3);
}

#[test]
fn no_session_is_read_for_it() {
    let world = World::new();
    world.will_be_edited();
    world.closed("web", "s-1");
    // If the events were opened, this would fail or show.
    let path = world.session("web", "s-1").events_path();
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("created");
    let rows = world.run(&["log", "list", "--json"]).expect(0).json();
    assert_eq!(rows["sessions"][0]["events"], 5);
}

#[test]
fn it_needs_no_key_and_warns_about_a_damaged_ledger() {
    let world = World::new();
    world.closed("web", "s-1");
    fs::remove_dir_all(world.path("config")).expect("removed");
    assert!(world.run(&["log", "list"]).expect(0).err.is_empty());
    let ledger = world.log("web").ledger_path();
    let mut bytes = fs::read(&ledger).expect("readable");
    bytes[20] ^= 1;
    fs::write(&ledger, bytes).expect("written");
    let run = world.run(&["log", "list"]).expect(0);
    assert!(
        run.err
            .starts_with("warning: the ledger of `web` is damaged"),
        "{}",
        run.err
    );
}

#[test]
fn an_empty_log_is_not_found() {
    let world = World::new();
    world.run(&["log", "list"]).expect(3);
    fs::create_dir(world.path("work/.lodestar")).expect("created");
    let run = world.run(&["log", "list"]).expect(3);
    assert!(
        run.err.contains("no session was ever logged"),
        "{}",
        run.err
    );
    world.run(&["log", "verify"]).expect(3);
}
