//! `lodestar run -- AGENT`: an agent that ignores MCP and helps itself, and one that does as it should.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};

use crate::agent::{behind, grade, marks};
use crate::world::World;

/// Tries everything by itself and tells one line for each; then asks through the proxy.
const AGENT: &str = include_str!("walled_agent.py");

fn tried(world: &World, more: &[&str], arguments: &[String]) -> BTreeMap<String, String> {
    let mut words = vec!["run"];
    words.extend(more);
    words.extend(["--", "python3", "agent.py"]);
    words.extend(arguments.iter().map(String::as_str));
    let ran = world.run(&words).expect(0);
    assert!(ran.err.contains("contained"), "{}", ran.err);
    let lines = ran.out.lines().filter_map(|line| line.split_once('\t'));
    lines
        .map(|(name, came)| (name.to_owned(), came.to_owned()))
        .collect()
}

#[test]
fn an_agent_that_helps_itself_gets_nothing_and_one_that_asks_is_answered() {
    let world = behind(&[("one", &[])], "");
    grade(&world, "L1", &["mcp.one.echo"]);
    world.write("work/agent.py", AGENT);
    world.write("work/notes.md", "plain notes\n");
    world.write("work/.mcp.json", "{}");
    world.write("outside.txt", "not the project's\n");
    std::fs::create_dir_all(world.path("work/.lodestar/log")).expect("made");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    tcp.set_nonblocking(true).expect("set");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    udp.set_nonblocking(true).expect("set");
    let port = |address: std::io::Result<std::net::SocketAddr>| address.expect("bound").port();
    let arguments = [
        env!("CARGO_BIN_EXE_lodestar").to_owned(),
        world.path(".").display().to_string(),
        port(tcp.local_addr()).to_string(),
        port(udp.local_addr()).to_string(),
        std::process::id().to_string(),
    ];
    let came = tried(&world, &[], &arguments);
    let forbidden = [
        "read_key",
        "read_key_by_link",
        "read_lodestar",
        "write_lodestar",
        "read_outside",
        "write_outside",
        "write_project",
        "write_client_configuration",
        "move_project",
        "tcp",
        "udp",
        "raw",
        "unix",
        "by_proxy_variable",
        "ptrace",
        "signal",
        "mount",
        "approve",
    ];
    for name in forbidden {
        let what = came
            .get(name)
            .unwrap_or_else(|| panic!("`{name}` was not tried: {came:?}"));
        assert!(what.starts_with("refused"), "{name}: {what}");
    }
    for name in ["read_project", "write_temporary", "run_a_program", "mcp"] {
        assert_eq!(
            came.get(name).map(String::as_str),
            Some("did"),
            "{name}: {came:?}"
        );
    }
    assert_eq!(came.len(), forbidden.len() + 4, "{came:?}");
    assert!(tcp.accept().is_err(), "somebody connected");
    assert!(udp.recv(&mut [0; 8]).is_err(), "somebody sent");
    assert_eq!(marks(&world, "one", "calls").len(), 1);
    assert!(!world.path("work/planted.txt").exists());
    world.run(&["log", "verify"]).expect(0);
    eprintln!("{} attempts refused, 4 granted worked", forbidden.len());
}

#[test]
fn what_is_declared_is_granted_and_no_more() {
    let world = behind(&[("one", &[])], "");
    world.write("work/src/main.txt", "old");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        text
    });
    let script = "import socket\n\
        open('src/main.txt', 'w').write('new')\n\
        try: open('top.txt', 'w')\n\
        except OSError: print('refused')\n\
        s = socket.create_connection(('127.0.0.1', 8099)); s.sendall(b'through'); s.close()\n";
    let forward = format!("8099=127.0.0.1:{port}");
    let ran = world
        .run(&[
            "run",
            "--write",
            "src",
            "--forward",
            &forward,
            "--",
            "python3",
            "-c",
            script,
        ])
        .expect(0);
    assert_eq!(ran.out, "refused\n");
    assert_eq!(heard.join().expect("heard"), "through");
    let written = std::fs::read_to_string(world.path("work/src/main.txt")).expect("there");
    assert_eq!(written, "new");
    assert!(!world.path("work/top.txt").exists());
}

#[test]
fn only_a_host_that_was_declared_is_connected_to() {
    let world = behind(&[("one", &[])], "");
    let script = "import os, socket\n\
        host, port = os.environ['HTTPS_PROXY'][7:].split(':')\n\
        def ask(line):\n\
        \x20   s = socket.create_connection((host, int(port))); s.sendall(line + b'\\r\\n\\r\\n'); return s.recv(64)[9:12].decode()\n\
        print(ask(b'CONNECT other.example:443 HTTP/1.1'), ask(b'CONNECT a.invalid:443 HTTP/1.1'), ask(b'GET / HTTP/1.1'))\n";
    let ran = world
        .run(&[
            "run",
            "--allow",
            "a.invalid:443",
            "--",
            "python3",
            "-c",
            script,
        ])
        .expect(0);
    assert_eq!(ran.out, "403 502 405\n");
}

#[test]
fn nothing_that_the_agent_started_outlives_it_and_its_exit_is_the_commands() {
    let world = behind(&[("one", &[])], "");
    let script = "import os, sys\n\
        if os.fork() == 0:\n\
        \x20   os.setsid()\n\
        \x20   if os.fork() == 0:\n\
        \x20       os.execvp('sleep', ['sleep', '3141'])\n\
        \x20   os._exit(0)\n\
        os.wait(); sys.exit(7)\n";
    world.run(&["run", "--", "python3", "-c", script]).expect(7);
    let sleeping = std::process::Command::new("pgrep")
        .args(["-f", "sleep 3141"])
        .output();
    let sleeping = sleeping.expect("pgrep runs");
    assert!(
        sleeping.stdout.is_empty(),
        "{:?}",
        String::from_utf8_lossy(&sleeping.stdout)
    );
}

/// Forty that leave the group and start another one as soon as they are there, for a minute at most.
const SWARM: &str = "import os, sys, time\n\
    end = time.time() + 60\n\
    for _ in range(40):\n\
    \x20   if os.fork() == 0:\n\
    \x20       while time.time() < end:\n\
    \x20           os.setsid() if os.getsid(0) != os.getpid() else None\n\
    \x20           if os.fork() > 0: os._exit(0)\n\
    \x20       os._exit(0)\n\
    try: os.wait3(os.WNOHANG)\n\
    except ChildProcessError: pass\n";

/// How many processes were started with these words, without those that have ended.
fn running(words: &str) -> usize {
    let found = std::process::Command::new("pgrep")
        .args(["--count", "--runstates", "RSDT", "--full", words])
        .output();
    let found = String::from_utf8(found.expect("pgrep runs").stdout).expect("a number");
    found.trim().parse().expect("a number")
}

#[test]
fn a_swarm_that_starts_faster_than_it_can_be_ended_ends_with_the_agent() {
    let world = behind(&[("one", &[])], "");
    let script = format!(
        "'a swarm of {}'\n{SWARM}sys.exit(5)\n",
        world.root().display()
    );
    let ran = world
        .run(&["run", "--", "python3", "-c", &script])
        .expect(5);
    assert!(!ran.err.contains("does not end"), "{}", ran.err);
    assert_eq!(
        running(&format!("a swarm of {}", world.root().display())),
        0
    );
}

#[test]
fn all_that_an_agent_started_ends_with_lodestar_even_if_that_is_killed() {
    let world = behind(&[("one", &[])], "");
    let mark = format!("left by {}", world.root().display());
    let script = format!(
        "'{mark}'\nimport os, time\n\
         if os.fork() == 0:\n\
         \x20   os.setsid()\n\
         \x20   if os.fork() == 0: time.sleep(3141)\n\
         \x20   os._exit(0)\n\
         os.wait()\n\
         try: print(os.wait())\n\
         except ChildProcessError: print('nobody else', flush=True)\n\
         time.sleep(3141)\n"
    );
    let mut lodestar = world.command(&["run", "--", "python3", "-c", &script]);
    let lodestar = lodestar.stdout(std::process::Stdio::piped()).spawn();
    let mut lodestar = lodestar.expect("it starts");
    let mut said = String::new();
    let out = lodestar.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut said).expect("a line");
    assert_eq!(
        said, "nobody else\n",
        "what is left behind is nobody's child in there"
    );
    // Lodestar itself has the script among its words, and so has what it left behind to end the rest.
    assert_eq!(running(&mark), 4);
    lodestar.kill().expect("it runs");
    lodestar.wait().expect("it ended");
    let began = std::time::Instant::now();
    while running(&mark) > 0 {
        assert!(began.elapsed().as_secs() < 20, "something goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_run_without_a_configuration_or_a_command_says_what_is_missing() {
    let world = World::new();
    let ran = world.run(&["run", "--", "true"]).expect(2);
    assert!(ran.err.contains("lodestar init"), "{}", ran.err);
    world.run(&["run"]).expect(2);
    let world = behind(&[("one", &[])], "");
    let ran = world
        .run(&["run", "--", "no-such-program-anywhere"])
        .expect(2);
    assert!(ran.err.contains("cannot be started"), "{}", ran.err);
    world
        .run(&["run", "--write", "nowhere", "--", "true"])
        .expect(2);
}

#[test]
fn hooks_of_a_client_inside_refuse_and_say_why() {
    let world = behind(&[("one", &[])], "");
    let said = serde_json::json!({
        "session_id": "c-1", "transcript_path": "", "cwd": world.root(), "hook_event_name": "PreToolUse",
        "tool_name": "Read", "tool_use_id": "1", "tool_input": {"file_path": "notes.md"},
    });
    world.write("work/look.json", &said.to_string());
    let binary = env!("CARGO_BIN_EXE_lodestar");
    let line = format!("{binary} hook claude-code --event PreToolUse <look.json");
    let refused = world.run(&["run", "--", "sh", "-c", &line]).expect(2);
    assert!(
        refused.err.contains("inside `lodestar run`"),
        "{}",
        refused.err
    );
}
