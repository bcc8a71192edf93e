//! `lodestar init`: a client's servers become a configuration that starts.

use std::fs;
use std::path::Path;

use lodestar_guard::Config;
use serde_json::{Value, json};

use crate::world::World;
use crate::wrapped::{Agent, client, project, run, wrapped};

#[test]
fn a_client_is_wrapped_and_its_agent_finds_the_tools_behind_the_proxy() {
    let world = project();
    let before = fs::read_to_string(world.path("work/.mcp.json")).expect("there");
    let done = run(&world, &["init", "--write"]).expect(0);
    assert!(
        done.out
            .contains("files: 4 tools: 1 on L1, 1 on L3, 2 ungraded, held"),
        "{}",
        done.out
    );
    assert!(done.out.contains("gone is not in force"), "{}", done.out);
    assert!(
        done.out
            .contains("old is not in force: it speaks the older SSE transport"),
        "{}",
        done.out
    );
    assert_eq!(
        fs::read_to_string(world.path("work/.mcp.json.bak")).expect("kept"),
        before
    );
    assert!(world.path("config/keys/log.key").is_file());

    let client = client(&world);
    let names: Vec<&String> = client["mcpServers"]
        .as_object()
        .expect("servers")
        .keys()
        .collect();
    assert_eq!(names, ["lodestar"]);
    let entry = &client["mcpServers"]["lodestar"];
    assert_eq!(entry["env"]["A_TOKEN"], "hidden");
    let mut agent = Agent::start(&world, entry);
    let tools = [
        "files__read_file",
        "files__write_file",
        "files__send_mail",
        "files__frobnicate",
    ];
    assert_eq!(agent.names(), tools);
    assert_eq!(
        agent.call("files__read_file", json!({"path": "a"})),
        "called read_file"
    );
    assert_eq!(
        agent.call("files__write_file", json!({"path": "a", "content": ""})),
        "approval_required"
    );
    assert_eq!(
        agent.call("files__send_mail", json!({"to": "a", "body": ""})),
        "approval_required"
    );
    assert_eq!(
        agent.call("files__read_file", json!({"path": ".lodestar/tools.lock"})),
        "policy_denied"
    );
    agent.leave();
    world.run(&["log", "verify"]).expect(0);
}

#[test]
fn the_configuration_says_why_each_tool_stands_where_it_does_and_holds_no_secret() {
    let world = wrapped();
    let text = fs::read_to_string(world.path("work/lodestar.toml")).expect("written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    insta::assert_snapshot!(world.stable(&text.replace(script, "<server.py>")));
    assert!(!text.contains("hidden"));
    assert!(world.path("work/.lodestar/lodestar.schema.json").is_file());
    let again = run(&world, &["init"]).expect(2);
    assert!(
        again.err.contains("names the proxy already"),
        "{}",
        again.err
    );
}

#[test]
fn nothing_that_is_there_is_replaced_unasked() {
    let world = project();
    world.write(
        "work/lodestar.toml",
        "project_id = \"mine\"\nactor_id = \"me\"\n",
    );
    world.write("work/.mcp.json.bak", "older");
    let refused = run(&world, &["init", "--write"]).expect(2);
    assert!(refused.err.contains("is there already"), "{}", refused.err);
    assert!(client(&world)["mcpServers"]["files"].is_object());
    run(&world, &["init", "--write", "--force"]).expect(0);
    let kept = fs::read_to_string(world.path("work/lodestar.toml.bak")).expect("kept");
    assert!(kept.contains("mine"));
    assert_eq!(
        fs::read_to_string(world.path("work/.mcp.json.bak")).expect("kept"),
        "older"
    );
    assert!(world.path("work/.mcp.json.bak.2").is_file());
}

#[test]
fn nothing_is_written_through_a_link() {
    for place in [
        "lodestar.toml",
        ".lodestar",
        ".lodestar/lodestar.schema.json",
    ] {
        let world = project();
        world.write("mine/precious", "mine");
        let link = world.path("work").join(place);
        fs::create_dir_all(link.parent().expect("a folder")).expect("created");
        std::os::unix::fs::symlink(world.path("mine/precious"), &link).expect("linked");
        let refused = run(&world, &["init", "--write", "--force"]).expect(2);
        assert!(refused.err.contains("is a link"), "{}", refused.err);
        let kept = fs::read_to_string(world.path("mine/precious")).expect("there");
        assert_eq!(kept, "mine", "{place}");
        assert!(client(&world)["mcpServers"]["files"].is_object());
    }
}

#[test]
fn without_write_the_client_stays_as_it_is_and_machines_get_the_change() {
    let world = project();
    let before = client(&world);
    let report = run(&world, &["init", "--json"]).expect(0).json();
    assert_eq!(client(&world), before);
    assert_eq!(report["client"]["written"], false);
    assert!(
        report["client"]["diff"]
            .as_str()
            .expect("a text")
            .contains("+     \"lodestar\": {")
    );
    assert_eq!(report["servers"][0]["tools"][0]["level"], Value::Null);
    assert_eq!(report["servers"][1]["in_force"], false);
}

#[test]
fn every_layout_is_read_and_what_else_it_says_stays() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    for (path, text, stays) in [
        (
            ".cursor/mcp.json",
            format!(
                "{{\"mcpServers\": {{\"a\": {{\"command\": \"python3\", \"args\": [\"{script}\", \"${{workspaceFolder}}/tools.json\"]}}}}, \"x\": 1}}"
            ),
            "\"x\": 1",
        ),
        (
            ".vscode/mcp.json",
            format!(
                "{{\n  // asked for\n  \"inputs\": [],\n  \"servers\": {{\n    \"a\": {{ \"command\": \"python3\", \"args\": [\"{script}\", \"tools.json\"], \"env\": {{\"T\": \"${{input:t}}\"}}, }},\n  }},\n}}\n"
            ),
            "// asked for",
        ),
        (
            ".codex/config.toml",
            format!(
                "model = \"m\" # ours\n\n[mcp_servers.\"a.b\"]\ncommand = \"python3\"\nargs = [\"{script}\", \"tools.json\"]\n\n[profiles.quick]\nx = 1\n"
            ),
            "[profiles.quick]\nx = 1",
        ),
        (
            "claude_desktop_config.json",
            format!(
                "{{\"mcpServers\": {{\"a\": {{\"command\": \"python3\", \"args\": [\"{script}\", \"tools.json\"]}}}}, \"globalShortcut\": \"\"}}"
            ),
            "\"globalShortcut\": \"\"",
        ),
    ] {
        let world = World::bare();
        world.write("work/tools.json", &crate::wrapped::tools().to_string());
        world.write(&format!("work/{path}"), &text);
        let done = run(&world, &["init", "--from", path, "--write", "--json"])
            .expect(0)
            .json();
        assert_eq!(done["servers"][0]["in_force"], true, "{path}: {done}");
        let after = fs::read_to_string(world.path(&format!("work/{path}"))).expect("there");
        assert!(after.contains(stays), "{path}: {after}");
        assert!(after.contains("mcp-proxy"), "{path}: {after}");
        assert!(!after.contains("server.py"), "{path}: {after}");
        let config = Config::read(world.path("work/lodestar.toml")).expect("a configuration");
        assert_eq!(config.downstream_servers.len(), 1, "{path}");
    }
}

#[test]
fn what_is_no_clients_configuration_is_refused_with_nothing_written() {
    for (text, code) in [
        ("", 2),
        ("[]", 2),
        ("{\"mcpServers\": 1}", 2),
        ("{\"mcpServers\": {}}", 3),
        ("{ /*", 2),
        ("\u{0}", 2),
    ] {
        let world = World::bare();
        world.write("work/.mcp.json", text);
        let refused = run(&world, &["init", "--from", ".mcp.json"]).expect(code);
        crate::world::assert_inert(&refused.err);
        assert!(!world.path("work/lodestar.toml").exists());
        assert!(!world.path("work/.lodestar").exists());
    }
    let world = World::bare();
    run(&world, &["init"]).expect(3);
    run(&world, &["init", "--from", "nowhere.json"]).expect(3);
    world.write(
        "work/.mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"no-such-program\"}}}",
    );
    run(&world, &["init", "--write"]).expect(1);
    assert!(
        fs::read_to_string(world.path("work/.mcp.json"))
            .expect("there")
            .contains("no-such-program")
    );
}

#[test]
fn a_clients_file_that_cannot_be_read_is_named_and_no_other_taken() {
    for text in ["{ \"mcpServers\": ", "[]"] {
        let world = project();
        fs::create_dir_all(world.path("work/.cursor")).expect("created");
        fs::rename(
            world.path("work/.mcp.json"),
            world.path("work/.cursor/mcp.json"),
        )
        .expect("moved");
        world.write("work/.mcp.json", text);
        let refused = run(&world, &["init", "--write"]).expect(2);
        assert!(refused.err.contains(".mcp.json"), "{}", refused.err);
        assert!(!world.path("work/lodestar.toml").exists());
    }
}

#[test]
fn a_server_beside_the_proxy_does_not_cost_those_behind_it() {
    let world = project();
    run(&world, &["init", "--write"]).expect(0);
    let before = fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    let mut client = client(&world);
    client["mcpServers"]["another"] = json!({"command": "true"});
    world.write("work/.mcp.json", &client.to_string());
    for args in [&["init"][..], &["init", "--write", "--force"]] {
        let refused = run(&world, args).expect(2);
        assert!(
            refused.err.contains("downstream_servers"),
            "{}",
            refused.err
        );
    }
    let after = fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    assert_eq!(after, before);
}

/// Configurations as people have them, over servers from npm and PyPI.
#[test]
fn configurations_of_real_clients_give_one_that_starts() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/clients");
    let (Some(peers), true) = (std::env::var_os("LODESTAR_PEERS"), data.is_dir()) else {
        assert!(
            std::env::var_os("LODESTAR_REQUIRE_ALL").is_none(),
            "LODESTAR_PEERS names no packages"
        );
        eprintln!("skipped: LODESTAR_PEERS names no packages");
        return;
    };
    for (folder, file, in_force) in [
        (
            "claude-code",
            ".mcp.json",
            &["everything", "filesystem", "memory"][..],
        ),
        (
            "claude-desktop",
            "claude_desktop_config.json",
            &["filesystem", "time"],
        ),
        ("cursor", ".cursor/mcp.json", &["fetch", "git", "my files"]),
        ("vscode", ".vscode/mcp.json", &["files", "memory"]),
        (
            "codex",
            ".codex/config.toml",
            &["memory", "project.git", "time"],
        ),
        ("remote", ".mcp.json", &["fetch"]),
    ] {
        let world = World::bare();
        let root = world.root().to_string_lossy().into_owned();
        let text = fs::read_to_string(data.join(folder).join(file)).expect("data");
        world.write(
            &format!("work/{file}"),
            &text.replace("/home/ada/project", &root),
        );
        fs::create_dir(world.path("work/Documents with spaces")).expect("created");
        let git = std::process::Command::new("git")
            .args(["init", "-q", &root])
            .status();
        assert!(git.expect("git runs").success());
        let bin = Path::new(&peers).join("bin");
        let path = format!(
            "{}:{}",
            bin.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let output = world
            .command(&["init", "--from", file, "--write", "--json"])
            .env("PATH", &path)
            .env("LODESTAR_PEERS", &peers)
            .env("FETCH_USER_AGENT", "research/1.0")
            .output()
            .expect("started");
        let report = crate::world::Run::of(output).expect(0).json();
        let found: Vec<&str> = report["servers"]
            .as_array()
            .expect("servers")
            .iter()
            .filter(|server| server["in_force"] == true)
            .map(|server| server["called"].as_str().expect("a name"))
            .collect();
        for wanted in in_force {
            assert!(found.contains(wanted), "{folder}: {report:#}");
        }
        let mut entry = report["client"]["entry"].clone();
        entry["env"]["PATH"] = path.into();
        // What the editor would ask a person for.
        if folder == "vscode" {
            entry["env"]["MEMORY_FILE_PATH"] = format!("{root}/memory.jsonl").into();
        }
        let mut agent = Agent::start(&world, &entry);
        let names = agent.names();
        for server in report["servers"].as_array().expect("servers") {
            let prefix = format!("{}__", server["name"].as_str().expect("a name"));
            let listed = names.iter().any(|name| name.starts_with(&prefix));
            assert_eq!(
                listed,
                server["in_force"] == true,
                "{folder}: {prefix} in {names:?}"
            );
        }
        agent.leave();
    }
}
