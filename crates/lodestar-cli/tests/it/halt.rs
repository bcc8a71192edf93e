//! `lodestar halt`: nothing further runs in a session.

use lodestar_guard::{Config, Holds, Keys, Setup};
use lodestar_kernel::record::Rejection;
use serde_json::json;

use crate::gated::{configure, events, followed, project};
use crate::world::{HOSTILE, World, assert_inert, log_key};

#[tokio::test]
async fn a_running_session_stops_clearing() {
    let world = project();
    configure(&world, "s-1", "auto_approve_ceiling = 2");
    let config = Config::read(world.path("work/lodestar.toml")).expect("a configuration");
    let setup = Setup::new(config, Keys::new(log_key())).holds(Holds::Leave);
    let session = setup.open().await.expect("opened");
    let read = || session.call("fs.read", json!({"path": "plan.md"}));
    assert!(read().await.expect("called").ran());
    let run = world
        .run(&["halt", "latest", "--reason", HOSTILE])
        .expect(0);
    assert_eq!(
        run.out,
        "session s-1 is halted: nothing further runs in it\n"
    );
    let reply = read().await.expect("called");
    assert_eq!(reply.refusal(), Some(&Rejection::Halted));
    let again = world.run(&["halt", "s-1", "--json"]).expect(0).json();
    assert_eq!(
        again,
        json!({"project": "web", "session": "s-1", "state": "live", "asked": true, "already": true})
    );
    session.close("done").await.expect("closed");
    let events = events(&world, "s-1");
    let halted = events
        .iter()
        .find(|(_, kind, _)| kind == "session.halted@1");
    assert_eq!(halted.expect("recorded").2["reason"], HOSTILE);
    assert_inert(&world.run(&["log", "show", "s-1"]).expect(0).out);
    world.run(&["log", "verify"]).expect(0);
    world.run(&["replay", "s-1"]).expect(0);
}

#[test]
fn a_session_that_is_over_is_left_as_it_is() {
    let world = project();
    followed(&world, "s-1");
    let run = world.run(&["halt", "s-1"]).expect(0);
    assert_eq!(run.out, "session s-1 is over: there is nothing to halt\n");
    assert!(!world.session("web", "s-1").dir().join("halt").exists());
}

#[test]
fn a_session_that_nobody_runs_is_halted_for_the_next_one() {
    let world = World::new();
    drop(world.open("web", "s-1"));
    let run = world.run(&["halt", "s-1"]).expect(0);
    assert_eq!(run.out, "session s-1 is halted; it is not running now\n");
}

#[test]
fn there_has_to_be_such_a_session() {
    let world = World::new();
    world.run(&["halt", "latest"]).expect(3);
    world.closed("web", "s-1");
    world.run(&["halt", "s-2"]).expect(3);
    world.run(&["halt", "../x"]).expect(2);
    world.run(&["halt", "s-1", "--reason", ""]).expect(2);
    world
        .run(&["halt", "s-1", "--reason", &"x".repeat(2000)])
        .expect(2);
    assert_eq!(
        world.run(&["halt", "s-2", "--json"]).expect(3).error()["code"],
        "not_found"
    );
}
