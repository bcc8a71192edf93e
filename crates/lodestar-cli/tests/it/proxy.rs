//! `lodestar guard mcp-proxy`: the real process, between an agent and servers that misbehave on request.

mod hostile;
mod sentinels;

use std::time::Duration;

use serde_json::json;

use crate::agent::{Agent, behind, grade, grant_all, marks};
use crate::world::World;

/// The sessions of a project, verified and derived again.
#[track_caller]
fn proved(world: &World) {
    world.run(&["log", "verify"]).expect(0);
    let list = world.run(&["log", "list", "--json"]).expect(0).json();
    for session in list["sessions"].as_array().expect("a list") {
        let name = session["session"].as_str().expect("a name");
        world.run(&["replay", name]).expect(0);
    }
}

#[test]
fn reading_runs_acting_is_held_and_both_are_in_the_log() {
    let world = behind(&[("one", &[])], "");
    grade(&world, "L1", &["mcp.one.echo"]);
    let mut agent = Agent::start(&world);
    let listed = agent.ask("tools/list", json!({}));
    let names: Vec<_> = listed["result"]["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    assert!(names.contains(&"one__echo"), "{names:?}");
    let ran = agent.call("one__echo", json!({"text": "hello"}));
    assert_eq!(ran.text(), "hello");
    let own = &ran.0["result"]["_meta"]["_lodestar"];
    assert_eq!(own["verdict"], "allow");
    assert!(own["action_id"].is_string() && own["seq"].is_u64(), "{own}");
    let by_ledger_name = agent.call("mcp.one.echo", json!({"text": "again"}));
    assert_eq!(by_ledger_name.text(), "again");
    let held = agent.call("one__write_file", json!({"path": "x", "content": "y"}));
    assert_eq!(held.kind(), Some("approval_required"));
    assert!(held.0["result"]["_meta"]["_lodestar"]["request_id"].is_string());
    let unknown = agent.call("one__nothing", json!({}));
    assert_eq!(unknown.kind(), Some("tool_not_advertised"));
    let reaching = agent.call(
        "one__echo",
        json!({"text": world.path("config/keys/log.key")}),
    );
    assert_eq!(reaching.kind(), Some("policy_denied"), "{reaching:?}");
    assert_eq!(agent.leave(), Some(0));
    assert_eq!(marks(&world, "one", "calls").len(), 2);
    proved(&world);
}

#[test]
fn a_held_call_runs_once_when_it_is_made_again_after_a_grant() {
    let world = behind(&[("one", &[])], "");
    let mut agent = Agent::start(&world);
    let wanted = json!({"path": world.path("out"), "content": "y"});
    assert_eq!(
        agent.call("one__write_file", wanted.clone()).kind(),
        Some("approval_required")
    );
    assert_eq!(grant_all(&world), 1);
    let other = json!({"path": world.path("out"), "content": "z"});
    assert_eq!(
        agent.call("one__write_file", other).kind(),
        Some("approval_required")
    );
    let ran = agent.call("one__write_file", wanted.clone());
    assert_eq!(ran.kind(), None, "{ran:?}");
    assert_eq!(ran.0["result"]["_meta"]["_lodestar"]["verdict"], "hold");
    assert_eq!(
        std::fs::read_to_string(world.path("out")).expect("written"),
        "y"
    );
    assert_eq!(
        agent.call("one__write_file", wanted).kind(),
        Some("approval_required")
    );
    agent.leave();
    assert_eq!(marks(&world, "one", "calls").len(), 1);
    proved(&world);
}

#[test]
fn a_held_call_outlives_the_proxy() {
    let world = behind(&[("one", &[])], "");
    let wanted = json!({"path": world.path("out"), "content": "y"});
    let mut first = Agent::start(&world);
    assert_eq!(
        first.call("one__write_file", wanted.clone()).kind(),
        Some("approval_required")
    );
    // A crash: nothing is closed.
    drop(first);
    assert_eq!(grant_all(&world), 1);
    let mut second = Agent::start(&world);
    let ran = second.call("one__write_file", wanted);
    assert_eq!(ran.kind(), None, "{ran:?}");
    second.leave();
    assert_eq!(marks(&world, "one", "calls").len(), 1);
    proved(&world);
}

#[test]
fn who_waits_for_a_human_is_told_so_under_its_own_token() {
    let world = behind(&[("one", &[])], "approval_timeout_ms = 30000");
    let mut agent = Agent::start(&world);
    let params = json!({
        "name": "one__write_file",
        "arguments": {"path": world.path("out"), "content": "y"},
        "_meta": {"progressToken": "mine"},
    });
    let id = agent.send("tools/call", params);
    let told = agent
        .notification("notifications/progress", Duration::from_secs(20))
        .expect("told");
    assert_eq!(told["params"]["progressToken"], "mine");
    assert!(
        told["params"]["message"]
            .as_str()
            .expect("words")
            .contains("waits for a human")
    );
    assert_eq!(grant_all(&world), 1);
    let ran = agent.answer(id);
    assert_eq!(ran["result"]["isError"], json!(null), "{ran}");
    agent.leave();
    proved(&world);
}

#[test]
fn a_cancelled_call_reaches_the_server_and_is_not_answered() {
    let world = behind(&[("one", &[])], "");
    grade(&world, "L1", &["mcp.one.slow", "mcp.one.echo"]);
    let mut agent = Agent::start(&world);
    agent.call("one__echo", json!({"text": "warm"}));
    let id = agent.send(
        "tools/call",
        json!({"name": "one__slow", "arguments": {"ms": 20000}}),
    );
    // Once it is there, it can be cancelled.
    while marks(&world, "one", "calls").len() < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    agent.tell(
        "notifications/cancelled",
        json!({"requestId": id, "reason": "enough"}),
    );
    assert_eq!(
        agent
            .call("one__echo", json!({"text": "still here"}))
            .text(),
        "still here"
    );
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while marks(&world, "one", "cancelled").is_empty() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(marks(&world, "one", "cancelled").len(), 1);
    assert!(
        agent
            .answer_within(id, Duration::from_millis(500))
            .is_none()
    );
    agent.leave();
    proved(&world);
}

#[test]
fn of_many_calls_at_once_each_gets_its_own_answer() {
    let world = behind(&[("one", &[]), ("two", &[])], "");
    grade(&world, "L1", &["mcp.one.echo", "mcp.two.echo"]);
    let mut agent = Agent::start(&world);
    let mut sent = Vec::new();
    for at in 0..64 {
        let (tool, arguments) = match at % 4 {
            0 => ("one__echo", json!({"text": format!("one {at}")})),
            1 => ("two__echo", json!({"text": format!("two {at}")})),
            2 => (
                "one__write_file",
                json!({"path": format!("{at}"), "content": ""}),
            ),
            _ => ("two__nothing", json!({"at": at})),
        };
        sent.push((
            at,
            agent.send("tools/call", json!({"name": tool, "arguments": arguments})),
        ));
    }
    for (at, id) in sent {
        let answer = crate::agent::Called(agent.answer(id));
        match at % 4 {
            0 => assert_eq!(answer.text(), format!("one {at}")),
            1 => assert_eq!(answer.text(), format!("two {at}")),
            2 => assert_eq!(answer.kind(), Some("approval_required")),
            _ => assert_eq!(answer.kind(), Some("tool_not_advertised")),
        }
    }
    assert_eq!(agent.leave(), Some(0));
    assert_eq!(marks(&world, "one", "calls").len(), 16);
    proved(&world);
}

#[test]
fn a_signal_ends_the_session_properly() {
    let world = behind(&[("one", &[])], "");
    grade(&world, "L1", &["mcp.one.echo"]);
    let mut agent = Agent::start(&world);
    agent.call("one__echo", json!({"text": "hello"}));
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(agent.pid()).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
    assert_eq!(agent.ended(), Some(0));
    let list = world.run(&["log", "list", "--json"]).expect(0).out;
    assert!(list.contains("closed"), "{list}");
    proved(&world);
}

#[test]
fn a_tool_that_is_not_what_was_pinned_is_refused() {
    for (change, refused) in [
        ("described", "one__echo"),
        ("schema", "one__echo"),
        ("annotated", "one__write_file"),
        ("swapped", "one__echo"),
        ("renamed", "one__echo"),
        ("removed", "one__echo"),
        ("added", "one__exfiltrate"),
        ("renamed", "one__echo_v2"),
    ] {
        let world = behind(&[("one", &[])], "");
        grade(
            &world,
            "L1",
            &["mcp.one.echo", "mcp.one.change_tools", "mcp.one.slow"],
        );
        let mut agent = Agent::start(&world);
        if refused == "one__echo" {
            assert_eq!(agent.call(refused, json!({"text": "before"})).kind(), None);
        }
        agent.call("one__change_tools", json!({"to": change}));
        agent
            .notification("notifications/tools/list_changed", Duration::from_secs(20))
            .expect("told");
        let after = agent.call(refused, json!({"text": "after"}));
        assert_eq!(
            after.kind(),
            Some("definition_drift"),
            "{change}: {after:?}"
        );
        assert!(after.text().contains("lodestar tools review"), "{after:?}");
        let listed = agent.ask("tools/list", json!({})).to_string();
        assert!(
            !listed.contains("IMPORTANT") && !listed.contains("exfiltrate"),
            "{change}"
        );
        assert_eq!(agent.call("one__slow", json!({"ms": 1})).kind(), None);
        agent.leave();
        let calls = marks(&world, "one", "calls").join(" ");
        assert!(!calls.contains("after"), "{calls}");
        proved(&world);
    }
}

#[test]
fn what_changed_between_sessions_is_refused_until_somebody_looks() {
    let world = behind(&[("one", &["--list", "described", "--at", "2"])], "");
    grade(&world, "L1", &["mcp.one.echo"]);
    let mut first = Agent::start(&world);
    assert_eq!(first.call("one__echo", json!({"text": "a"})).kind(), None);
    first.leave();
    let file = world.path("work/lodestar.toml");
    let config = std::fs::read_to_string(&file).expect("there");
    std::fs::write(&file, config.replace("\"--at\", \"2\"", "\"--at\", \"1\"")).expect("written");
    // Other arguments are another server.
    let mut second = Agent::start(&world);
    assert_eq!(
        second.call("one__echo", json!({"text": "b"})).kind(),
        Some("definition_drift")
    );
    second.leave();
    proved(&world);
}

#[test]
fn a_lock_file_that_was_edited_stops_the_proxy() {
    let world = behind(&[("one", &[])], "");
    let agent = Agent::start(&world);
    agent.leave();
    let file = world.path("work/.lodestar/tools.lock");
    let text = std::fs::read_to_string(&file).expect("there");
    std::fs::write(
        &file,
        text.replace("Says what it was told", "Says anything"),
    )
    .expect("written");
    let mut agent = Agent::begin(&world, &[]);
    agent.greet(json!({}));
    assert_eq!(agent.ended(), Some(2));
}

#[test]
fn grades_of_tools_that_are_not_there_are_mistakes_with_a_line() {
    let world = behind(&[("one", &[])], "");
    grade(&world, "L1", &["mcp.one.ecko"]);
    let mut command = world.command(&["guard", "mcp-proxy", "--config", "lodestar.toml"]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    drop(command);
    let mut agent = Agent::begin(&world, &[]);
    agent.greet(json!({}));
    assert_eq!(agent.ended(), Some(2));
}
