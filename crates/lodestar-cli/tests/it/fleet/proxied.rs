//! Sessions of the proxy that are runs: real processes all the way from an agent's first message to the level that
//! the gateway gives.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::world::{Fleet, PATIENCE, Process, facts, text, wait_until};
use crate::agent::{Agent, behind, grade, marks, stderr_of};
use crate::world::World;

/// What clients of the proxy over HTTP have to show.
const TOKEN: &str = "a-token-of-the-tests-0123456789abcdef";

/// A device of a fleet, with the proxy in front of a server.
struct Proxied {
    fleet: Fleet,
    device: World,
}

impl Proxied {
    /// Enrolled, approved, bound to a runner, and with terms out of a session of the proxy that was no run.
    fn ready() -> Self {
        let fleet = Fleet::new(0);
        let device = behind(
            &[("one", &[])],
            "[http]\ntoken_env = \"PROXY_TOKEN\"\nmax_sessions = 8\n",
        );
        grade(&device, "L1", &["mcp.one.echo"]);
        let this = Self { fleet, device };
        this.enrol();
        let mut agent = this.agent();
        let ran = agent.call("one__echo", json!({"text": "looked at"}));
        assert_eq!(ran.text(), "looked at");
        assert_eq!(agent.leave(), Some(0));
        let report = this.json(&["report", "latest"]);
        assert_eq!(report["answers"]["execution_trust"]["answer"], "none");
        this.configure();
        this
    }

    fn enrol(&self) {
        let (owner, url) = (&self.fleet.owner, self.fleet.url());
        let token = owner.path("enrol.token");
        let token = token.to_str().expect("UTF-8");
        owner.json(&["token", "issue", "--out", token]);
        let enrolled = self.json(&[
            "device",
            "enroll",
            "build-1",
            "--gateway",
            &url,
            "--allow-loopback-http",
            "--token-file",
            token,
        ]);
        let key = text(&enrolled["key"]);
        owner.json(&["device", "approve", "build-1", "--device-key", key, "--yes"]);
    }

    /// Takes the terms of the last session, and makes every later one a run.
    fn configure(&self) {
        let owner = &self.fleet.owner;
        let terms = self.fleet.path("terms.json");
        let terms = terms.to_str().expect("UTF-8");
        self.json(&["run", "terms", "latest", "--out", terms]);
        let registered = owner.json(&["run", "terms", "--file", terms, "--yes"]);
        let agent = owner.json(&["agent", "add", "coder"]);
        let runner = owner.json(&["runner", "add", "nightly"]);
        owner.json(&["runner", "bind", text(&runner["id"]), "build-1", "--yes"]);
        let file = self.device.path("work/lodestar.toml");
        let before = std::fs::read_to_string(&file).expect("there");
        let config = format!(
            "{before}\n[run]\ngateway = \"{}\"\nallow_loopback_http = true\nrunner = {}\nagent = {}\nterms = {}\n",
            self.fleet.url(),
            runner["id"],
            agent["id"],
            registered["terms"]
        );
        std::fs::write(file, config).expect("written");
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        let mut args = args.to_vec();
        args.push("--json");
        self.device.run(&args).expect(0).json()
    }

    fn agent(&self) -> Agent {
        Agent::start(&self.device)
    }

    /// The runs that this device knows of, in the order in which they were registered.
    #[track_caller]
    fn runs(&self) -> Vec<Value> {
        let listed = self.device.run(&["run", "list", "--here", "--json"]);
        listed.expect(0).ndjson()
    }

    /// A run is graded, as the gateway tells its owner and as the report of its session tells.
    #[track_caller]
    fn is_graded(&self, run: &Value) {
        assert_eq!(run["stage"], "attested", "{run}");
        let (id, session) = (text(&run["ticket"]["id"]), text(&run["session"]["session"]));
        let shown = self.fleet.owner.json(&["run", "show", id]);
        let evaluation = &shown["evaluation"];
        assert_eq!(evaluation["level"], "agent_verified", "{shown}");
        assert_eq!(evaluation["stopped_by"], "device_trusted", "{shown}");
        let held = facts(evaluation);
        for fact in ["gateway_verified", "policy_passed"] {
            assert!(held.contains(&fact), "{shown}");
        }
        let report = self.json(&["report", session]);
        assert_eq!(
            report["answers"]["execution_trust"]["answer"],
            "agent_verified"
        );
        assert_eq!(report["execution"]["run"], id);
        assert_eq!(report["execution"]["level"], "agent_verified");
        self.device.run(&["log", "verify", session]).expect(0);
    }
}

#[test]
fn a_session_of_the_proxy_is_a_run_and_its_report_tells_the_level() {
    let proxied = Proxied::ready();
    let mut agent = proxied.agent();
    for said in ["hello", "again"] {
        let ran = agent.call("one__echo", json!({"text": said}));
        assert_eq!(ran.text(), said);
    }
    // What is held is in the log, too, and has to be judged the same by the gateway.
    let held = agent.call("one__write_file", json!({"path": "x", "content": "y"}));
    assert_eq!(held.kind(), Some("approval_required"));
    // It is known at the gateway while it goes on, and nothing is said of it yet.
    let [going] = <[Value; 1]>::try_from(proxied.runs()).expect("one run");
    let id = text(&going["ticket"]["id"]);
    assert_eq!(going["stage"], "opened", "{going}");
    let shown = proxied.fleet.owner.json(&["run", "show", id]);
    assert_eq!(shown.get("evaluation"), None, "{shown}");
    assert_eq!(agent.leave(), Some(0));
    let [run] = <[Value; 1]>::try_from(proxied.runs()).expect("one run");
    proxied.is_graded(&run);
    let said = std::fs::read_to_string(stderr_of(&proxied.device)).expect("there");
    assert!(
        said.contains(&format!("{id} is `agent_verified`")),
        "{said}"
    );
    assert_eq!(marks(&proxied.device, "one", "calls").len(), 3);
}

/// The proxy over HTTP, as a process, and where it listens.
fn listening(device: &World) -> (Process, String) {
    let mut command = device.command(&[
        "guard",
        "mcp-proxy",
        "--config",
        "lodestar.toml",
        "--listen",
        "127.0.0.1:0",
    ]);
    command
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("PROXY_TOKEN", TOKEN)
        .stderr(Stdio::from(
            std::fs::File::create(stderr_of(device)).expect("created"),
        ));
    let process = Process::start(&mut command);
    let mut found = None;
    wait_until(PATIENCE, "the proxy listens", || {
        let said = std::fs::File::open(stderr_of(device)).expect("there");
        found = BufReader::new(said).lines().find_map(|line| {
            let line: Value = serde_json::from_str(&line.ok()?).ok()?;
            Some(line["listening"].as_str()?.to_owned())
        });
        found.is_some()
    });
    (process, found.expect("found"))
}

/// A client over HTTP: one request, one connection.
struct Client {
    address: String,
    session: Option<String>,
    asked: u64,
}

impl Client {
    fn greeted(url: &str) -> Self {
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let mut client = Self {
            address: address.to_owned(),
            session: None,
            asked: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let (head, _) = client.ask("initialize", hello);
        let named = head.lines().filter_map(|line| line.split_once(": "));
        let named = named.filter(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
        client.session = named.map(|(_, value)| value.to_owned()).next();
        assert!(client.session.is_some(), "{head}");
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.send("POST", &done.to_string());
        client
    }

    fn call(&mut self, said: &str) -> String {
        let params = json!({"name": "one__echo", "arguments": {"text": said}});
        let (_, answer) = self.ask("tools/call", params);
        text(&answer["result"]["content"][0]["text"]).to_owned()
    }

    fn ask(&mut self, method: &str, params: Value) -> (String, Value) {
        self.asked += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        let (head, body) = self.send("POST", &message.to_string());
        assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
        // As events, the answer is the last.
        let answer = body.lines().rev().find_map(|line| {
            let line = line.strip_prefix("data:").unwrap_or(line);
            let answer: Value = serde_json::from_str(line.trim()).ok()?;
            (answer["id"] == self.asked).then_some(answer)
        });
        let answer = answer.unwrap_or_else(|| panic!("no answer in {body}"));
        (head, answer)
    }

    /// Ends its session, as a client does that is done.
    fn leave(self) {
        let (head, body) = self.send("DELETE", "");
        assert!(head.starts_with("HTTP/1.1 2"), "{head}\n{body}");
    }

    fn send(&self, method: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let session = self.session.as_ref();
        let session = session.map_or(String::new(), |id| format!("mcp-session-id: {id}\r\n"));
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n{session}\
             mcp-protocol-version: 2025-11-25\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head.to_owned(), body.to_owned())
    }
}

#[test]
fn two_clients_over_http_are_two_sessions_and_two_runs() {
    let proxied = Proxied::ready();
    let (process, url) = listening(&proxied.device);
    let (mut first, mut second) = (Client::greeted(&url), Client::greeted(&url));
    for said in ["one", "two"] {
        assert_eq!(first.call(said), said);
        assert_eq!(second.call(said), said);
    }
    assert_eq!(proxied.runs().len(), 2);
    // One is done, and is graded while the other goes on; the other ends with the proxy.
    first.leave();
    wait_until(PATIENCE, "the first is attested", || {
        let runs = proxied.runs();
        runs.iter().filter(|run| run["stage"] == "attested").count() == 1
    });
    assert_eq!(second.call("three"), "three");
    assert_eq!(process.terminate(), Some(0));
    let runs = proxied.runs();
    assert_eq!(runs.len(), 2);
    let session = |n: usize| text(&runs[n]["session"]["session"]);
    assert_ne!(session(0), session(1));
    for run in &runs {
        proxied.is_graded(run);
    }
}

#[test]
fn a_run_whose_proxy_was_killed_is_closed_by_the_next_session_and_attested_later() {
    let proxied = Proxied::ready();
    let mut agent = proxied.agent();
    let ran = agent.call("one__echo", json!({"text": "cut off"}));
    assert_eq!(ran.text(), "cut off");
    let [cut] = <[Value; 1]>::try_from(proxied.runs()).expect("one run");
    let (id, session) = (text(&cut["ticket"]["id"]), text(&cut["session"]["session"]));
    // By SIGKILL: nothing is closed, and the gateway hears no more of it.
    let pid = rustix::process::Pid::from_raw(i32::try_from(agent.pid()).expect("a pid"));
    rustix::process::kill_process(pid.expect("a pid"), rustix::process::Signal::KILL)
        .expect("killed");
    assert_eq!(agent.ended(), None, "by a signal");
    // A session that nobody closed may go on: nothing is attested of it.
    let early = proxied.device.run(&["run", "attest", id]).expect(1);
    assert!(early.err.contains("is not closed"), "{}", early.err);
    let shown = proxied.fleet.owner.json(&["run", "show", id]);
    assert_eq!(shown.get("evaluation"), None, "{shown}");

    let mut next = proxied.agent();
    assert_eq!(
        next.call("one__echo", json!({"text": "next"})).text(),
        "next"
    );
    assert_eq!(next.leave(), Some(0));
    let attested = proxied.json(&["run", "attest", id]);
    assert_eq!(attested["run"], id, "{attested}");
    assert_eq!(
        attested["attested"]["level"], "agent_verified",
        "{attested}"
    );
    let runs = proxied.runs();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().any(|run| run["session"]["session"] == session));
    for run in &runs {
        proxied.is_graded(run);
    }
}
