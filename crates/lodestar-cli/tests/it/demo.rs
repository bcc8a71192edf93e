//! `lodestar demo`

use std::fs;

use crate::world::{Run, World, assert_inert};

#[test]
fn it_runs_on_a_machine_with_nothing_and_leaves_nothing() {
    let world = World::bare();
    let scratch = world.path("tmp");
    fs::create_dir(&scratch).expect("created");
    let mut command = world.command(&["demo"]);
    command.env_clear().env("TMPDIR", &scratch);
    let run = Run::of(command.output().expect("started")).expect(0);
    assert_inert(&run.out);
    insta::assert_snapshot!(world.stable(&run.out));
    assert_eq!(fs::read_dir(&scratch).expect("readable").count(), 0);
    assert_eq!(fs::read_dir(world.root()).expect("readable").count(), 0);
}

#[test]
fn json_says_what_was_checked() {
    let report = World::bare().run(&["demo", "--json"]).expect(0).json();
    assert_eq!(report["passed"], true);
    let checks = report["checks"].as_array().expect("a list");
    let names: Vec<_> = checks
        .iter()
        .map(|c| c["check"].as_str().expect("text"))
        .collect();
    assert_eq!(names, ["kept", "verify", "prove", "one bit", "deletion"]);
    assert!(checks.iter().all(|c| c["passed"] == true));
}

#[test]
fn what_is_kept_can_be_looked_at_with_the_commands_it_names() {
    let world = World::bare();
    let keep = world.path("it's kept");
    // From where it was said, the folder is a relative one.
    let run = world.run(&["demo", "--keep", "../it's kept"]).expect(0);
    let (_, further) = run.out.split_once("To look further:\n").expect("commands");
    let commands: Vec<&str> = further.lines().map(str::trim).collect();
    assert_eq!(commands.len(), 5);
    let codes: Vec<Option<i32>> = commands[1..]
        .iter()
        .map(|line| {
            let script = format!("{}\n{line}", commands[0]);
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &script]).current_dir("/");
            shell.output().expect("started").status.code()
        })
        .collect();
    assert_eq!(codes, [Some(0), Some(0), Some(1), Some(1)]);
    // By its name alone where that leads to the same program.
    let mut command = world.command(&["demo", "--keep", "named"]);
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_lodestar"));
    command.env("PATH", binary.parent().expect("a folder"));
    let run = Run::of(command.output().expect("started")).expect(0);
    assert!(run.out.contains("\n  lodestar --root "), "{}", run.out);
    // A folder with something in it is left alone.
    world
        .run(&["demo", "--keep", keep.to_str().expect("UTF-8")])
        .expect(2);
}
