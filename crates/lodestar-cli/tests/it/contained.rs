//! Official servers behind the proxy with what `init` writes for them: contained, and unharmed.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::agent::grade;
use crate::terminal::skip;
use crate::world::{Run, World};
use crate::wrapped::Agent;

/// A client with three servers of the MCP project, as they are installed.
fn client(world: &World, peers: &Path) -> Value {
    let script = |package: &str| {
        let packages = peers.join("node_modules/@modelcontextprotocol");
        packages.join(package).join("dist/index.js")
    };
    let node = peers.join("bin/node");
    json!({"mcpServers": {
        "filesystem": {"command": node, "args": [script("server-filesystem"), world.path("shared")]},
        "memory": {"command": node, "args": [script("server-memory")], "env": {"MEMORY_FILE_PATH": world.path("notes/memory.jsonl")}},
        "everything": {"command": node, "args": [script("server-everything")]},
    }})
}

/// What the log says of the servers that were started.
fn started(world: &World) -> Vec<Value> {
    let shown = world.run(&[
        "log",
        "show",
        "latest",
        "--type",
        "server.started",
        "--json",
    ]);
    let lines = shown.expect(0).out;
    let lines = lines.lines().map(serde_json::from_str);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON");
    lines.iter().map(|line| line["payload"].clone()).collect()
}

#[test]
fn official_servers_work_unharmed_and_contained_with_what_init_writes() {
    let Some(peers) = std::env::var_os("LODESTAR_PEERS") else {
        return skip("LODESTAR_PEERS is not set: servers of others are not installed");
    };
    let peers = Path::new(&peers);
    let world = World::bare();
    for folder in ["shared", "notes"] {
        fs::create_dir(world.path(folder)).expect("created");
    }
    world.write("work/.mcp.json", &client(&world, peers).to_string());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let init = world
        .command(&["init", "--write", "--json"])
        .env("PATH", &path)
        .output();
    let report = Run::of(init.expect("started")).expect(0).json();
    let config = fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    for folder in ["shared", "notes"] {
        let granted = format!(
            "write = [\"{}\"]",
            world.path(folder).canonicalize().expect("there").display()
        );
        assert!(config.contains(&granted), "{granted}: {config}");
    }
    let config = config.replace("auto_approve_ceiling = 2", "auto_approve_ceiling = 3");
    world.write("work/lodestar.toml", &config);
    let wanted = [
        "mcp.memory.create_entities",
        "mcp.memory.read_graph",
        "mcp.everything.echo",
    ];
    let ungraded: Vec<&str> = wanted
        .into_iter()
        .filter(|tool| !config.contains(&format!("\n[tool_defaults.\"{tool}\"]")))
        .collect();
    grade(&world, "L1", &ungraded);
    let mut agent = Agent::start(&world, &report["client"]["entry"]);
    let file = world.path("shared/new.txt");
    let wrote = agent.call(
        "filesystem__write_file",
        json!({"path": file, "content": "written behind the proxy"}),
    );
    assert!(wrote.contains("wrote"), "{wrote}");
    assert_eq!(
        fs::read_to_string(&file).expect("there"),
        "written behind the proxy"
    );
    let read = agent.call("filesystem__read_text_file", json!({"path": file}));
    assert_eq!(read, "written behind the proxy");
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["counts"]});
    let kept = agent.call("memory__create_entities", json!({"entities": [entity]}));
    assert!(kept.contains("Ada"), "{kept}");
    let graph = agent.call("memory__read_graph", json!({}));
    assert!(graph.contains("counts"), "{graph}");
    assert!(world.path("notes/memory.jsonl").is_file());
    let echoed = agent.call("everything__echo", json!({"message": "hello"}));
    assert!(echoed.contains("hello"), "{echoed}");
    agent.leave();
    let started = started(&world);
    assert_eq!(started.len(), 3, "{started:#?}");
    for server in &started {
        let confinement = &server["confinement"];
        assert_eq!(server["containment"], confinement["state"], "{server:#}");
        if lodestar_kernel::contain::Host::here().namespaces() {
            assert_eq!(server["containment"], "proved", "{server:#}");
        }
        assert_eq!(confinement["network"], "none", "{server:#}");
    }
    let told = world.run(&["report", "latest", "--json"]).expect(0).json();
    let servers = told["servers"].as_array().expect("servers");
    for (server, event) in servers.iter().zip(&started) {
        assert_eq!(
            server["containment"]["state"], event["containment"],
            "{told:#}"
        );
    }
}
