//! The proxy between official SDKs and servers of others: what an agent sees through it is what it sees
//! without it, but for what `intended.json` lists.

mod conformance;
mod listening;
mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::agent::{grade, peers};
use crate::terminal::skip;
use crate::world::World;
use listening::{Listening, TOKEN};

/// What `cargo xtask test` installs: Node, servers, SDKs, suites.
struct Lab(PathBuf);

/// An official SDK as a scripted client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sdk {
    TypeScript,
    Python,
}

/// How the proxy names tools and prompts to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Original,
    Prefixed,
}

/// A server, and how its operations are run.
struct Subject {
    /// Its name in the configuration.
    name: &'static str,
    /// Its list of operations.
    ops: &'static str,
    command: Vec<String>,
    env: BTreeMap<&'static str, String>,
    /// Where it is, if it is not started.
    url: Option<String>,
    /// The newest revision that it speaks.
    newest: &'static str,
    /// What the agent can.
    capabilities: &'static str,
    /// What of that a server hears of where nothing more is graded.
    heard: &'static str,
}

/// How an agent reaches the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    Stdio,
    Http,
}

/// How an agent comes: its revision, how it reaches the proxy, and how things are called there.
#[derive(Debug, Clone, Copy)]
struct Coming(&'static str, Face, Names);

/// Every revision over every face, each with another way of naming.
const EVERY_WAY: [Coming; 6] = [
    Coming("2025-06-18", Face::Stdio, Names::Original),
    Coming("2025-06-18", Face::Http, Names::Prefixed),
    Coming("2025-11-25", Face::Stdio, Names::Prefixed),
    Coming("2025-11-25", Face::Http, Names::Original),
    Coming("2026-07-28", Face::Stdio, Names::Prefixed),
    Coming("2026-07-28", Face::Http, Names::Original),
];

/// Every revision over one face each.
const EVERY_REVISION: [Coming; 3] = [EVERY_WAY[0], EVERY_WAY[3], EVERY_WAY[4]];

/// Every revision over the other face.
const THE_OTHER_WAY: [Coming; 3] = [EVERY_WAY[1], EVERY_WAY[2], EVERY_WAY[5]];

/// Those with a handshake.
const WITH_A_HANDSHAKE: &[Coming] = EVERY_WAY.split_at(4).0;

/// Those without.
const WITHOUT_A_HANDSHAKE: &[Coming] = EVERY_WAY.split_at(4).1;

/// MCP's methods that have grades, with the capability that each belongs to.
const METHODS: [(&str, &str); 6] = [
    ("resources.read", "resources"),
    ("resources.templates.read", "resources"),
    ("resources.subscribe", "resources"),
    ("resources.templates.subscribe", "resources"),
    ("prompts.get", "prompts"),
    ("completion.complete", "completions"),
];

impl Lab {
    fn found() -> Option<Self> {
        let folder = std::env::var_os("LODESTAR_PEERS");
        if folder.is_none() {
            skip("LODESTAR_PEERS is not set: clients and servers of others are not installed");
        }
        folder.map(|folder| Self(folder.into()))
    }

    fn node(&self) -> String {
        text(&self.0.join("bin/node"))
    }

    /// A program with the packages and Node in reach, and nothing else.
    fn program(&self, program: impl AsRef<Path>) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("HOME", &self.0)
            .env("PATH", format!("{}:{path}", self.0.join("bin").display()))
            .env("LODESTAR_PEERS", &self.0);
        command
    }

    /// The command of one of the MCP project's servers.
    fn server(&self, package: &str, args: &[String]) -> Vec<String> {
        let packages = self.0.join("node_modules/@modelcontextprotocol");
        let script = packages.join(package).join("dist/index.js");
        [self.node(), text(&script)]
            .into_iter()
            .chain(args.iter().cloned())
            .collect()
    }

    fn client(&self, sdk: Sdk) -> Command {
        let (program, script) = match sdk {
            Sdk::TypeScript => (self.0.join("bin/node"), "client.mjs"),
            Sdk::Python => (self.0.join("venv/bin/python"), "client.py"),
        };
        let mut command = self.program(program);
        command.arg(peers().join(script));
        command
    }

    fn everything(&self) -> Subject {
        Subject {
            name: "everything",
            ops: "everything.ops.json",
            command: self.server("server-everything", &[]),
            env: self.env(),
            url: None,
            newest: "2025-11-25",
            capabilities: "roots,sampling,elicitation",
            heard: "roots",
        }
    }

    fn conforming(&self) -> Subject {
        Subject {
            name: "conforming",
            ops: "conforming.ops.json",
            command: vec![self.node(), text(&peers().join("conforming.mjs"))],
            newest: "2026-07-28",
            ..self.everything()
        }
    }

    fn filesystem(&self, scratch: &Path) -> Subject {
        Subject {
            name: "filesystem",
            ops: "filesystem.ops.json",
            command: self.server("server-filesystem", &[text(scratch)]),
            // Roots would take the place of the folder that it is given.
            capabilities: "sampling",
            heard: "",
            ..self.everything()
        }
    }

    fn memory(&self, file: &Path) -> Subject {
        let mut env = self.env();
        env.insert("MEMORY_FILE_PATH", text(file));
        Subject {
            name: "memory",
            ops: "memory.ops.json",
            command: self.server("server-memory", &[]),
            env,
            capabilities: "",
            heard: "",
            ..self.everything()
        }
    }

    fn env(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([("LODESTAR_PEERS", text(&self.0))])
    }
}

impl Subject {
    /// The table of the configuration that names it.
    fn configured(&self) -> String {
        if let Some(url) = &self.url {
            let name = self.name;
            return format!("[[downstream_servers]]\nname = {name:?}\nurl = {url:?}\n");
        }
        let env: Vec<_> = self
            .env
            .iter()
            .map(|(name, value)| format!("{name} = {value:?}"))
            .collect();
        format!(
            "[[downstream_servers]]\nname = {:?}\ncommand = {:?}\nargs = {:?}\nenv = {{ {} }}\nwrite = {:?}\n",
            self.name,
            self.command[0],
            &self.command[1..],
            env.join(", "),
            self.writes()
        )
    }

    /// Where it writes: folders among its arguments, and those of files in its environment.
    fn writes(&self) -> Vec<PathBuf> {
        let args = self.command[1..].iter().map(PathBuf::from);
        let args = args.filter(|path| path.is_absolute() && path.is_dir());
        let values = self.env.values().map(PathBuf::from);
        let files = values.filter(|path| path.is_absolute() && path.extension().is_some());
        args.chain(files.filter_map(|path| path.parent().map(Path::to_owned)))
            .collect()
    }

    /// Puts it behind a proxy that asks nobody.
    fn behind(&self, world: &World, names: Names, direct: &[Value]) {
        let naming = match names {
            Names::Original => "original",
            Names::Prefixed => "prefixed",
        };
        let config = format!(
            "project_id = \"web\"\nactor_id = \"agent\"\nauto_approve_ceiling = 3\nnaming = {naming:?}\n\
             [http]\ntoken_env = \"PROXY_TOKEN\"\nmax_sessions = 64\n{}",
            self.configured()
        );
        world.write("work/lodestar.toml", &config);
        let graded = self.graded(direct);
        let graded: Vec<_> = graded.iter().map(String::as_str).collect();
        grade(world, "L1", &graded);
    }

    /// Everything of its that has a grade, from what it said to a client.
    fn graded(&self, direct: &[Value]) -> Vec<String> {
        // An SDK that does not ask when it connects does so later.
        let mut said = direct.iter().map(|one| &one["result"]["capabilities"]);
        let capabilities = said.find(|said| said.is_object()).expect("said");
        let listed = direct.iter().find(|one| one["op"]["do"] == "tools/list");
        let tools = listed.expect("the operations list the tools")["result"]["tools"].as_array();
        let tools = tools.expect("a list").iter();
        let tools = tools.map(|tool| tool["name"].as_str().expect("a name"));
        let methods = METHODS
            .iter()
            .filter(|(_, capability)| capabilities[capability].is_object())
            .map(|(name, _)| *name);
        tools
            .chain(methods)
            .map(|name| format!("mcp.{}.{name}", self.name))
            .collect()
    }
}

/// The command that is the proxy to a client.
fn proxy(world: &World) -> Vec<String> {
    let config = text(&world.path("work/lodestar.toml"));
    [
        env!("CARGO_BIN_EXE_lodestar"),
        "guard",
        "mcp-proxy",
        "--config",
        &config,
    ]
    .map(str::to_owned)
    .to_vec()
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

#[track_caller]
fn done(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{errors}\n{out}");
    out.into_owned()
}

#[track_caller]
fn documents(lines: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    lines.lines().map(parse).collect()
}

/// Every session is as it was written, and follows from its log.
#[track_caller]
fn proved(world: &World) {
    world.run(&["log", "verify"]).expect(0);
    world.run(&["replay", "latest"]).expect(0);
}

/// Runs a server's operations without the proxy, once in every revision, and through it in every way, and
/// lets nothing differ that is not meant to.
#[track_caller]
fn same(lab: &Lab, sdk: Sdk, ways: &[Coming], anew: impl Fn(&World) -> Subject) {
    let world = World::new();
    let mut direct: BTreeMap<&str, String> = BTreeMap::new();
    for way @ Coming(revision, face, names) in ways.iter().copied() {
        let subject = anew(&world);
        // A server that does not speak the agent's revision is compared with the newest that it does.
        let spoken = revision.min(subject.newest);
        let client = |revision: &str, capabilities: &str| {
            let mut command = lab.client(sdk);
            command
                .args(["--revision", revision, "--capabilities", capabilities])
                .arg("--ops")
                .arg(peers().join(subject.ops))
                .arg("--set")
                .arg(format!("scratch={}", world.path("scratch").display()));
            command
        };
        let direct = direct.entry(spoken).or_insert_with(|| {
            let mut direct = client(spoken, subject.heard);
            match &subject.url {
                Some(url) => direct.args(["--url", url]),
                None => {
                    for (name, value) in &subject.env {
                        direct.arg("--env").arg(format!("{name}={value}"));
                    }
                    direct.arg("--").args(&subject.command)
                }
            };
            done(direct.output().expect("started"))
        });
        world.write("direct", direct);

        let subject = anew(&world);
        subject.behind(&world, names, &documents(direct));
        let mut through = client(revision, subject.capabilities);
        if revision != spoken {
            // What only those hear who listen does not come.
            through.args(["--patience-ms", "300"]);
        }
        if names == Names::Prefixed {
            let prefix = format!("{}__", subject.name);
            through.args(["--tool-prefix", &prefix, "--prompt-prefix", &prefix]);
        }
        let through = through_the_proxy(lab, &world, face, through);
        world.write("through", &through);

        let meant = compared(&world, revision);
        let title = format!("{} {sdk:?} {way:?}", subject.name);
        println!("{title}: {meant}");
        let renamed = meant["names"].as_u64().unwrap_or_default();
        assert_eq!(renamed > 0, names == Names::Prefixed, "{title}: {meant}");
        assert!(meant["own word"].as_u64() > Some(10), "{title}: {meant}");
        proved(&world);
    }
}

/// What a client prints at the proxy.
fn through_the_proxy(lab: &Lab, world: &World, face: Face, mut client: Command) -> String {
    match face {
        Face::Stdio => {
            let config = world.path("config");
            client
                .arg("--env")
                .arg(format!("LODESTAR_CONFIG_DIR={}", config.display()))
                .arg("--")
                .args(proxy(world));
            done(client.output().expect("started"))
        }
        Face::Http => {
            let listening = Listening::proxy(lab, world);
            client.args(["--url", &listening.url, "--token", TOKEN]);
            let printed = done(client.output().expect("started"));
            listening.end();
            printed
        }
    }
}

/// How many differences of each kind there are; fails on one that nobody meant.
#[track_caller]
fn compared(world: &World, revision: &str) -> Value {
    let mut command = Command::new("python3");
    command
        .arg(peers().join("compare.py"))
        .arg("--intended")
        .arg(peers().join("intended.json"))
        .args(["--revision", revision])
        .args([world.path("direct"), world.path("through")]);
    let lines = done(command.output().expect("started"));
    let mut lines = documents(&lines);
    let last = lines.pop().expect("a summary");
    assert!(lines.is_empty(), "{lines:?}");
    last["intended"].clone()
}

/// The folder that the operations of the file server work in, as new.
fn scratch(world: &World) -> PathBuf {
    let folder = world.path("scratch");
    let mut make = Command::new(peers().join("filesystem.scratch.sh"));
    done(make.arg(&folder).output().expect("started"));
    folder
}

/// An empty memory.
fn no_memory(world: &World) -> PathBuf {
    let file = world.path("memory.jsonl");
    let _ = std::fs::remove_file(&file);
    file
}

#[test]
fn the_reference_server_is_the_same_to_the_typescript_sdk() {
    let Some(lab) = Lab::found() else { return };
    same(&lab, Sdk::TypeScript, &EVERY_WAY, |_| lab.everything());
}

#[test]
fn the_reference_server_is_the_same_to_the_python_sdk() {
    let Some(lab) = Lab::found() else { return };
    same(&lab, Sdk::Python, &THE_OTHER_WAY, |_| lab.everything());
}

#[test]
fn the_conforming_server_is_the_same_to_the_typescript_sdk() {
    let Some(lab) = Lab::found() else { return };
    same(&lab, Sdk::TypeScript, WITH_A_HANDSHAKE, |_| {
        lab.conforming()
    });
}

#[test]
fn the_conforming_server_is_the_same_to_the_python_sdk() {
    let Some(lab) = Lab::found() else { return };
    same(&lab, Sdk::Python, WITH_A_HANDSHAKE, |_| lab.conforming());
}

#[test]
fn the_conforming_server_is_the_same_without_a_handshake() {
    let Some(lab) = Lab::found() else { return };
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        same(&lab, sdk, WITHOUT_A_HANDSHAKE, |_| Subject {
            ops: "conforming-2026.ops.json",
            ..lab.conforming()
        });
    }
}

#[test]
fn the_reference_server_is_the_same_elsewhere() {
    let Some(lab) = Lab::found() else { return };
    let server = Listening::script(&lab, "everything-http.mjs", &["0"]);
    same(&lab, Sdk::TypeScript, &THE_OTHER_WAY, |_| Subject {
        url: Some(server.url.clone()),
        ..lab.everything()
    });
}

#[test]
fn the_file_server_is_the_same_to_the_typescript_sdk() {
    let Some(lab) = Lab::found() else { return };
    same(&lab, Sdk::TypeScript, &EVERY_REVISION, |world| {
        lab.filesystem(&scratch(world))
    });
}

#[test]
fn the_file_server_is_the_same_to_the_python_sdk() {
    let Some(lab) = Lab::found() else { return };
    same(&lab, Sdk::Python, &THE_OTHER_WAY, |world| {
        lab.filesystem(&scratch(world))
    });
}

#[test]
fn the_memory_server_is_the_same_to_the_typescript_sdk() {
    let Some(lab) = Lab::found() else { return };
    same(&lab, Sdk::TypeScript, &EVERY_REVISION, |world| {
        lab.memory(&no_memory(world))
    });
}

#[test]
fn the_memory_server_is_the_same_to_the_python_sdk() {
    let Some(lab) = Lab::found() else { return };
    same(&lab, Sdk::Python, &THE_OTHER_WAY, |world| {
        lab.memory(&no_memory(world))
    });
}
