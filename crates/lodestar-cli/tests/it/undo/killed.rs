//! An agent that is killed around its write: what was kept is on disk before the tool is called.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use lodestar_guard::config::Config;
use lodestar_guard::{Holds, Keys, Setup};
use lodestar_kernel::step::{Step, Steps};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;

use super::agent::project;
use super::read;
use crate::world::World;

const PLACE: &str = "LODESTAR_TEST_UNDO";

#[test]
#[ignore = "is started by the tests below, in a process of its own"]
fn an_agent_that_is_killed() {
    let place = std::env::var(PLACE).expect("started by another test");
    let (step, dir) = place.split_once(' ').expect("both");
    let step = match step {
        "durable" => Step::Durable,
        _ => Step::Returned,
    };
    let config = Config::read(format!("{dir}/work/lodestar.toml")).expect("a configuration");
    let keys = Keys::at(std::path::Path::new(dir).join("config")).expect("keys");
    let steps = Steps::tell(move |made| {
        if made == step {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let setup = Setup::new(config, keys).holds(Holds::Leave).steps(steps);
        let session = setup.open().await.expect("opened");
        let arguments = json!({"path": "notes.md", "content": "after"});
        let _ = session.call("fs.write", arguments).await;
    });
    unreachable!("nobody survives that signal")
}

fn killed_at(step: &str) -> World {
    let world = project();
    world.write("work/notes.md", "before");
    let dir = world.path("");
    let own = std::env::current_exe().expect("a test has a path");
    let ended = Command::new(own)
        .args([
            "--ignored",
            "--exact",
            "undo::killed::an_agent_that_is_killed",
        ])
        .env(PLACE, format!("{step} {}", dir.display()))
        .output()
        .expect("started");
    let signal = ended.status.signal();
    assert_eq!(
        signal,
        Some(9),
        "{}",
        String::from_utf8_lossy(&ended.stdout)
    );
    world
}

#[test]
fn killed_before_it_wrote_there_is_nothing_to_undo() {
    let world = killed_at("durable");
    assert_eq!(read(&world, "work/notes.md"), b"before");
    let run = world.run(&["undo", "latest"]).expect(0);
    assert!(run.out.contains("nothing to undo"), "{}", run.out);
}

#[test]
fn killed_after_it_wrote_what_stood_there_is_put_back_only_by_force() {
    let world = killed_at("returned");
    assert_eq!(read(&world, "work/notes.md"), b"after");
    let run = world.run(&["undo", "latest"]).expect(1);
    assert!(run.out.contains("is not on record"), "{}", run.out);
    assert_eq!(read(&world, "work/notes.md"), b"after");
    world.run(&["undo", "latest", "--force"]).expect(0);
    assert_eq!(read(&world, "work/notes.md"), b"before");
    world.run(&["log", "verify"]).expect(0);
}
