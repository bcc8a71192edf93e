//! Servers and clients that misbehave: the proxy lives, others are served meanwhile, and the log holds.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::proved;
use crate::agent::{Agent, behind, grade, marks, peers, stderr_of};
use crate::gated::events;
use crate::world::World;

/// What the agent gets from a tool that misbehaves.
enum Gets {
    /// A result of the tool's.
    Result,
    /// An error of the server's own.
    Error,
    /// A refusal that says that the call failed.
    Failed,
}

/// Misbehaviour by its tool, and what the agent gets.
const CASES: [(&str, Gets); 42] = [
    ("crash", Gets::Failed),
    ("half_line", Gets::Failed),
    ("hang", Gets::Failed),
    ("deaf", Gets::Failed),
    ("huge", Gets::Failed),
    ("many_blocks", Gets::Result),
    ("endless_line", Gets::Failed),
    ("invalid_json", Gets::Failed),
    ("not_rpc", Gets::Failed),
    ("wrong_id", Gets::Failed),
    ("string_id", Gets::Failed),
    ("null_id", Gets::Failed),
    ("duplicate", Gets::Result),
    ("unasked", Gets::Result),
    ("premature", Gets::Result),
    ("flood", Gets::Result),
    ("restless", Gets::Result),
    ("stray_progress", Gets::Result),
    ("forged", Gets::Result),
    ("forged_escaped", Gets::Result),
    ("forged_unclear", Gets::Error),
    ("twice_the_key", Gets::Failed),
    ("binary", Gets::Result),
    ("not_utf8", Gets::Failed),
    ("drip", Gets::Result),
    ("stderr", Gets::Result),
    ("stderr_line", Gets::Result),
    ("lone_surrogate", Gets::Failed),
    ("deep", Gets::Failed),
    ("both", Gets::Failed),
    ("neither", Gets::Failed),
    ("batch", Gets::Failed),
    ("odd_result", Gets::Failed),
    ("odd_error", Gets::Error),
    ("error", Gets::Error),
    ("odd_content", Gets::Result),
    ("numbers", Gets::Result),
    ("crlf", Gets::Result),
    ("asking", Gets::Result),
    ("clashing", Gets::Result),
    ("cancelling", Gets::Result),
    ("mute", Gets::Failed),
];

fn two_servers(case: &str, more: &str) -> World {
    let world = behind(&[("bad", &[]), ("good", &[])], more);
    let bad = format!("mcp.bad.{case}");
    grade(&world, "L1", &[&bad, "mcp.good.echo"]);
    world
}

#[test]
fn whatever_a_server_does_the_proxy_lives_and_others_are_served() {
    for (case, gets) in &CASES {
        let world = two_servers(case, "[limits]\ncall_deadline_ms = 3000");
        let mut agent = Agent::start(&world);
        let arguments = match *case {
            "flood" | "restless" => json!({"count": 5000}),
            "many_blocks" => json!({"blocks": 2000}),
            "stderr" => json!({"bytes": 4 << 20}),
            "endless_line" => json!({"bytes": 40 << 20}),
            "huge" => json!({"bytes": 40 << 20}),
            _ => json!({}),
        };
        let bad = agent.send(
            "tools/call",
            json!({"name": format!("bad__{case}"), "arguments": arguments}),
        );
        let good = agent.call("good__echo", json!({"text": "meanwhile"}));
        assert_eq!(good.text(), "meanwhile", "{case}");
        let answer = agent.answer(bad);
        let kind = answer["result"]["_meta"]["_lodestar"]["kind"].as_str();
        match gets {
            Gets::Result => assert_eq!(kind, None, "{case}: {answer}"),
            Gets::Failed => assert_eq!(kind, Some("execution_failed"), "{case}: {answer}"),
            Gets::Error => assert!(
                answer["error"].is_object() || answer["error"].is_string(),
                "{case}: {answer}"
            ),
        }
        let verdict = &answer["result"]["_meta"]["_lodestar"]["verdict"];
        assert!(
            kind.is_some() || answer["error"] != Value::Null || verdict == "allow",
            "{case}: {answer}"
        );
        assert!(
            !answer.to_string().contains("\"forged\""),
            "{case}: {answer}"
        );
        assert_eq!(
            agent.call("good__echo", json!({"text": "after"})).text(),
            "after",
            "{case}"
        );
        assert_eq!(agent.leave(), Some(0), "{case}");
        let called = marks(&world, "bad", "calls").len();
        assert_eq!(called, 1, "{case}: nothing is run twice");
        proved(&world);
    }
}

#[test]
fn a_large_result_holds_up_no_other_server() {
    // Whoever takes it apart on the way of the others has them wait for nearly all of its time.
    let tries: Vec<f64> = (0..3)
        .map(|_| longest_wait_beside_a_large_result())
        .collect();
    assert!(tries.iter().any(|part| *part < 0.34), "{tries:?}");
}

/// The longest that a short call takes beside one with a large result, as part of what that one takes.
fn longest_wait_beside_a_large_result() -> f64 {
    let world = two_servers("many_words", "");
    let mut agent = Agent::start(&world);
    assert_eq!(agent.call("good__echo", json!({"text": "a"})).text(), "a");
    let large = json!({"name": "bad__many_words", "arguments": {"words": 200_000}});
    let begun = Instant::now();
    let large = agent.send("tools/call", large);
    let mut longest = Duration::ZERO;
    let (answer, took) = loop {
        if let Some(answer) = agent.answer_within(large, Duration::ZERO) {
            break (answer, begun.elapsed());
        }
        let asked = Instant::now();
        let small = agent.call("good__echo", json!({"text": "meanwhile"}));
        assert_eq!(small.text(), "meanwhile");
        longest = longest.max(asked.elapsed());
    };
    let text = answer["result"]["content"][0]["text"].as_str();
    assert!(text.is_some_and(|text| text.len() > 2 << 20), "all of it");
    // What it said is known by the time that the agent has it.
    let last = text.and_then(|text| text.rsplit(' ').next());
    let said = last.expect("words").to_owned();
    agent.call("good__echo", json!({"text": said}));
    agent.leave();
    let list = world.run(&["log", "list", "--json"]).expect(0).json();
    let session = list["sessions"][0]["session"].as_str().expect("a name");
    let events = events(&world, session);
    let mut proposed = events
        .iter()
        .filter(|(_, kind, _)| kind == "action.proposed@1");
    let labels = proposed.next_back().expect("proposed").2.to_string();
    assert!(labels.contains("\"read\""), "{labels}");
    proved(&world);
    longest.as_secs_f64() / took.as_secs_f64()
}

#[test]
fn a_crashed_server_is_started_again_and_its_call_is_not() {
    let world = two_servers("crash", "");
    grade(&world, "L1", &["mcp.bad.echo"]);
    let mut agent = Agent::start(&world);
    assert_eq!(
        agent.call("bad__crash", json!({})).kind(),
        Some("execution_failed")
    );
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let again = agent.call("bad__echo", json!({"text": "back"}));
        if again.text() == "back" {
            break;
        }
        assert_eq!(again.kind(), Some("execution_failed"), "{again:?}");
        assert!(Instant::now() < until, "{again:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    agent.leave();
    assert_eq!(marks(&world, "bad", "starts").len(), 2);
    let crashes = marks(&world, "bad", "calls")
        .iter()
        .filter(|call| call.contains("crash"))
        .count();
    assert_eq!(crashes, 1);
    proved(&world);
}

#[test]
fn a_server_that_does_not_come_up_does_not_keep_the_others_down() {
    for case in [
        "exit",
        "exit_with_words",
        "silent",
        "crash",
        "error",
        "garbage",
        "revision",
        "empty",
    ] {
        let world = behind(
            &[("bad", &["--start", case]), ("good", &[])],
            "[limits]\nstart_deadline_ms = 2000",
        );
        grade(&world, "L1", &["mcp.bad.echo", "mcp.good.echo"]);
        let mut agent = Agent::start(&world);
        assert_eq!(
            agent.call("good__echo", json!({"text": "here"})).text(),
            "here",
            "{case}"
        );
        let gone = agent.call("bad__echo", json!({"text": "there"}));
        assert_eq!(gone.kind(), Some("tool_not_advertised"), "{case}: {gone:?}");
        agent.leave();
        let said = std::fs::read_to_string(stderr_of(&world)).expect("written");
        assert!(
            said.contains("server `bad` did not come up"),
            "{case}: {said}"
        );
        proved(&world);
    }
}

#[test]
fn a_server_that_starts_oddly_is_served_all_the_same() {
    for case in [
        "banner",
        "noise",
        "late",
        "twice",
        "early",
        "stderr",
        "flood",
        "instructions",
        "promises",
    ] {
        let world = behind(&[("odd", &["--start", case])], "");
        grade(&world, "L1", &["mcp.odd.echo"]);
        let mut agent = Agent::start(&world);
        assert_eq!(
            agent.call("odd__echo", json!({"text": "here"})).text(),
            "here",
            "{case}"
        );
        agent.leave();
        proved(&world);
    }
}

#[test]
fn lists_that_no_client_expects_are_no_harm() {
    for case in [
        "doubled", "strange", "crowded", "silent", "endless", "error",
    ] {
        let world = behind(
            &[("odd", &["--list", case, "--at", "1"]), ("good", &[])],
            "[limits]\nstart_deadline_ms = 3000",
        );
        grade(&world, "L1", &["mcp.good.echo"]);
        let mut agent = Agent::start(&world);
        assert_eq!(
            agent.call("good__echo", json!({"text": "here"})).text(),
            "here",
            "{case}"
        );
        agent.ask("tools/list", json!({}));
        agent.leave();
        proved(&world);
    }
}

#[test]
fn whatever_a_client_sends_the_proxy_answers_or_ends_and_the_log_holds() {
    let script = peers().join("hostile_client.py");
    let listed = std::process::Command::new("python3")
        .arg(&script)
        .arg("--list")
        .output()
        .expect("python3");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    let cases: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(cases.len() > 25, "{listed}");
    for case in cases {
        let world = behind(&[("one", &[])], "");
        grade(&world, "L1", &["mcp.one.echo", "mcp.one.slow"]);
        let mut command = std::process::Command::new("python3");
        command
            .arg(&script)
            .args([
                "--case",
                case,
                "--tool",
                "one__echo",
                "--arguments",
                "{\"text\":\"x\"}",
                "--",
            ])
            .arg(env!("CARGO_BIN_EXE_lodestar"))
            .args(["guard", "mcp-proxy", "--config", "lodestar.toml"])
            .current_dir(world.root())
            .env("LODESTAR_CONFIG_DIR", world.path("config"))
            .stdin(Stdio::null());
        let output = command.output().expect("ran");
        let text = String::from_utf8_lossy(&output.stdout);
        let seen: Value = serde_json::from_str(text.lines().next().unwrap_or_default())
            .unwrap_or_else(|e| panic!("{case}: {e}: {text}"));
        assert!(
            !seen["stderr"].to_string().contains("panicked"),
            "{case}: {seen}"
        );
        let peak = seen["peak_kib"].as_u64().unwrap_or(0);
        assert!(peak < 400 << 10, "{case}: {seen}");
        assert_ne!(seen["exit"], json!(101), "{case}: {seen}");
        if world.path("work/.lodestar/log/web").exists() {
            proved(&world);
        }
    }
}
