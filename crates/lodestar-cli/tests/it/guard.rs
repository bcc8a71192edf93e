//! `lodestar guard run`: a scripted agent through a governed session.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::gated::{RUN, SCRIPT, configure, events, followed, project};
use crate::governed::stable;
use crate::world::{HOSTILE, Run, World, assert_inert};

#[test]
fn every_step_is_told_with_its_verdict_and_what_came_of_it() {
    let world = project();
    let run = followed(&world, "s-1");
    assert_inert(&run.out);
    // How much of an id and of a path fits on a line depends on the folder's name.
    let short = |line: &str| match line.find(" request `").or(line.find(" leads to `")) {
        Some(at) => line[..at].to_owned(),
        None => line.to_owned(),
    };
    let whole = run.out.replace(&format!("\n{}", " ".repeat(26)), " ");
    let lines: Vec<_> = whole.lines().map(short).collect();
    insta::assert_snapshot!(stable(&world, &lines.join("\n")));
    assert!(!world.path("work/out.md").exists());
    world.run(&["log", "verify"]).expect(0);
    world.run(&["replay", "s-1"]).expect(0);
    let kinds: Vec<_> = events(&world, "s-1")
        .into_iter()
        .map(|(_, kind, _)| kind)
        .collect();
    assert!(
        kinds.contains(&"approval.requested@1".to_owned()),
        "{kinds:?}"
    );
}

#[test]
fn ids_and_reasons_stand_there_whole_however_long() {
    let world = project();
    let run = followed(&world, "s-1");
    let list = world.run(&["approve", "list", "--json"]).expect(0).json();
    let id = list["requests"][0]["request"].as_str().expect("an id");
    assert!(run.out.contains(id), "{id}:\n{}", run.out);
    assert!(!run.out.contains(" bytes)"), "{}", run.out);
}

#[test]
fn machines_get_one_document() {
    let world = project();
    let mut args = RUN.to_vec();
    args.push("--json");
    let report = world.run(&args).expect(0).json();
    assert_eq!(report["met"], true);
    assert_eq!(report["counts"]["calls"], 4);
    assert_eq!(report["counts"]["ran"], 1);
    assert_eq!(report["counts"]["held"], 1);
    assert_eq!(report["steps"][0]["called"]["text"], HOSTILE);
    assert_eq!(report["steps"][0]["note"], "reads the plan");
    assert_eq!(report["steps"][0]["verdict"], serde_json::Value::Null);
    assert_eq!(report["steps"][2]["verdict"], "hold");
    assert_eq!(report["steps"][3]["verdict"], "deny");
    assert_eq!(report["steps"][4]["called"]["kind"], "tool_not_advertised");
    let session = report["session"].as_str().expect("a name");
    world.run(&["replay", session]).expect(0);
}

#[test]
fn a_step_that_ends_otherwise_than_expected_fails() {
    let world = project();
    let script = SCRIPT.replace("expect = \"returned\"", "expect = \"refused\"");
    world.write("work/script.toml", &script);
    let run = world.run(&RUN).expect(1);
    let missed = "✗ line 1 of the script: expected `refused`, found `returned`";
    assert!(run.out.contains(missed), "{}", run.out);
    assert!(
        run.out.contains("✗ 1 step ended otherwise than expected"),
        "{}",
        run.out
    );
}

#[test]
fn a_ceiling_on_the_command_line_lets_more_run() {
    let world = project();
    let script = "{\"call\":\"fs.write\",\"args\":{\"path\":\"out.md\",\"content\":\"done\"},\"expect\":\"returned\"}\n";
    world.write("work/script.jsonl", script);
    let mut args = RUN.to_vec();
    args[5] = "script.jsonl";
    world.run(&args).expect(1);
    args.extend(["--auto-approve-up-to", "3"]);
    world.run(&args).expect(0);
    assert_eq!(
        fs::read_to_string(world.path("work/out.md")).expect("there"),
        "done"
    );
    args[7] = "4";
    let run = world.run(&args).expect(2);
    assert!(
        run.err.contains("a ceiling is 0 to 3, not 4"),
        "{}",
        run.err
    );
}

#[test]
fn the_task_is_stated_in_the_log() {
    let world = project();
    configure(&world, "s-1", "auto_approve_ceiling = 2");
    world.write("work/task.txt", "read plan.md and tell me");
    let mut args = RUN.to_vec();
    args.extend(["--task-file", "task.txt"]);
    world.run(&args).expect(0);
    let events = events(&world, "s-1");
    let task = events.iter().find(|(_, kind, _)| kind == "task.stated@1");
    assert_eq!(
        task.expect("stated").2["statement"],
        "read plan.md and tell me"
    );
}

#[test]
fn bad_input_opens_nothing() {
    let world = project();
    fs::write(world.path("work/binary.toml"), b"\xff\xfe[[step]]").expect("written");
    world.write("work/odd.toml", "[[step]]\ncall = \"fs.read\"\nargz = {}\n");
    world.write(
        "work/four.toml",
        "project_id = \"web\"\nactor_id = \"agent\"\nauto_approve_ceiling = 4\n",
    );
    world.write("work/two.toml", "project_id = \"web\"\nactor_id = \"a\"\nauto_approve_ceiling = 1\n[policy]\nfile = \"p.cedar\"\n");
    for (config, script, code, said) in [
        ("none.toml", "script.toml", 3, "none.toml"),
        ("lodestar.toml", "none.toml", 3, "none.toml"),
        ("binary.toml", "script.toml", 2, "UTF-8"),
        ("lodestar.toml", "binary.toml", 2, "not UTF-8 at line 1"),
        (
            "lodestar.toml",
            "odd.toml",
            2,
            "at line 3: unknown field `argz`",
        ),
        ("four.toml", "script.toml", 2, "line 3, column 24"),
        ("two.toml", "script.toml", 2, "two ways to say"),
    ] {
        let args = ["guard", "run", "--config", config, "--script", script];
        let run = world.run(&args).expect(code);
        assert!(run.err.contains(said), "{config} {script}: {}", run.err);
        assert!(!world.path("work/.lodestar").exists(), "{config} {script}");
        let mut args = args.to_vec();
        args.push("--json");
        assert_eq!(world.run(&args).expect(code).error()["exit"], code);
    }
}

#[test]
fn keys_never_lie_in_the_project_and_a_log_is_continued_by_its_own() {
    let world = project();
    let with = |dir: &str| {
        let mut command = world.command(&RUN);
        command.env("LODESTAR_CONFIG_DIR", world.path(dir));
        crate::world::Run::of(command.output().expect("started"))
    };
    let run = with("work/keys").expect(2);
    assert!(run.err.contains("outside of it"), "{}", run.err);
    assert!(!world.path("work/keys").exists());
    with("fresh").expect(0);
    assert!(world.path("fresh/keys/log.key").exists());
    let run = with("other").expect(4);
    assert!(run.err.contains("has no log key"), "{}", run.err);
    assert!(!world.path("other").exists());
    // Another key than the log was begun with.
    world.run(&RUN).expect(1);
}

#[test]
fn a_project_elsewhere_is_named_in_what_to_do_next() {
    let world = project();
    let config = world.path("work/lodestar.toml");
    let script = world.path("work/script.toml");
    let mut command = world.command(&["guard", "run", "--config"]);
    command.arg(config).arg("--script").arg(script);
    command.current_dir(world.path(""));
    let run = crate::world::Run::of(command.output().expect("started")).expect(0);
    let root = world.root().canonicalize().expect("there");
    assert!(
        run.out.contains(&format!("--root {}", root.display())),
        "{}",
        run.out
    );
}

#[test]
fn an_unwritable_world_is_not_confused_with_a_refusal() {
    let world = World::new();
    world.write(
        "work/lodestar.toml",
        "project_id = \"web\"\nactor_id = \"a\"\n[tools.\"fs.read\"]\nroot = \"gone\"\n",
    );
    world.write("work/script.toml", SCRIPT);
    let run = world.run(&RUN).expect(2);
    assert!(run.err.contains("tool `fs.read`"), "{}", run.err);
}

/// A server that takes whatever comes, and never has an answer.
fn listener() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let heard = Arc::clone(&heard);
            thread::spawn(move || {
                if let Some(request) = hear(stream) {
                    heard.lock().expect("whole").push(request);
                }
            });
        }
    });
    (address, seen)
}

fn hear(mut stream: TcpStream) -> Option<String> {
    let mut read = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()?;
                return Some(text);
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&part[..count]),
        }
    }
}

#[test]
fn people_elsewhere_are_told_through_the_server_that_the_configuration_names() {
    let world = project();
    let (address, seen) = listener();
    let more = format!(
        "[approvals.http]\nurl = \"http://{address}\"\nallow_loopback_http = true\ntoken_env = \"APPROVALS_TOKEN\"\nceiling = \"secret\"\n"
    );
    configure(&world, "s-1", "auto_approve_ceiling = 2");
    let config = fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    world.write("work/lodestar.toml", &format!("{config}{more}"));
    let without = world.run(&RUN).expect(2);
    let told = "the environment variable `APPROVALS_TOKEN` is not set to text";
    assert!(without.err.contains(told), "{}", without.err);
    let token = "tok-3f9a77c1e0";
    let mut command = world.command(&RUN);
    let run = command.env("APPROVALS_TOKEN", token).output();
    let run = Run::of(run.expect("started")).expect(0);
    let seen = seen.lock().expect("whole").clone();
    let put = seen
        .iter()
        .find(|request| request.starts_with("PUT /v1/web/s-1/requests/req_"));
    let put = put.expect("the held call is announced");
    assert!(
        put.contains(&format!("authorization: Bearer {token}\r\n")),
        "{put}"
    );
    assert!(
        put.contains("\"shown\":\"whole\"") && put.contains("out.md"),
        "{put}"
    );
    let logged = format!("{:?}", events(&world, "s-1"));
    assert!(!format!("{}{}{logged}", run.out, run.err).contains(token));
    let here = fs::read_dir(world.path("work/.lodestar/approvals/s-1")).expect("a drop directory");
    assert!(here.count() > 0, "people here are asked too");
}

#[test]
fn a_call_that_waits_for_somebody_says_so_meanwhile() {
    let world = project();
    let waits = "auto_approve_ceiling = 2\napproval_timeout_ms = 400";
    configure(&world, "s-1", waits);
    let script = SCRIPT.replace("approval_required", "approval_timeout");
    world.write("work/script.toml", &script);
    let run = world.run(&RUN).expect(0);
    let said = "fs.write waits for a person: req_";
    assert_eq!(run.err.matches(said).count(), 1, "{}", run.err);
    assert!(run.err.contains("(lodestar approve watch)"), "{}", run.err);
    assert!(
        run.out.contains("of these 1 ran and 3 did not; 1 was held"),
        "{}",
        run.out
    );
}
