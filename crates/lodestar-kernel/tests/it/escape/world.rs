//! What a program could reach if it got out: files, listeners, a process; and how it is told that something did.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lodestar_kernel::contain::{Cell, Host, Plan, Planted};
use lodestar_kernel::protect::out_of_reach;
use tempfile::TempDir;

use super::cases::Case;

const SOURCES: [(&str, &str); 3] = [
    ("escape.c", include_str!("escape.c")),
    ("escape.py", include_str!("escape.py")),
    ("escape.sh", include_str!("escape.sh")),
];

const SECRET: &str = "what nobody may read or change\n";

/// What the programs are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Python,
    Shell,
}

impl Language {
    pub(super) const ALL: [Self; 3] = [Self::C, Self::Python, Self::Shell];

    /// What its program tries, by its text.
    pub(super) fn attempts(self) -> BTreeSet<&'static str> {
        let (_, source) = SOURCES[self as usize];
        let name = |line: &'static str| {
            let line = line.trim_start();
            let rest = line
                .strip_prefix("say(\"")
                .or_else(|| (self == Self::Shell).then(|| line.strip_prefix("say "))?)?;
            let end = rest.find(['"', ' '])?;
            Some(&rest[..end])
        };
        let mut names: BTreeSet<_> = source.lines().filter_map(name).collect();
        // Only when it is told to: a test of its own.
        names.remove("fork_bomb");
        assert!(names.len() > 50, "{self:?} tries {}", names.len());
        names
    }
}

/// What came of one program.
pub(super) struct Ran {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) planted: Vec<Planted>,
}

/// A project with what is protected, a home, an outside, and listeners.
pub(super) struct World {
    whole: TempDir,
    suid: PathBuf,
    reached: Arc<AtomicUsize>,
    arrived: Vec<UdpSocket>,
    datagram: UnixDatagram,
    abstract_datagram: UnixDatagram,
    variables: Vec<(&'static str, String)>,
    port: u16,
    memory: String,
    _open: OwnedFd,
    _bytes: &'static [u8; 8],
}

impl World {
    pub(super) fn new(suid: &Path) -> Self {
        let whole = tempfile::tempdir().unwrap();
        let at = whole.path();
        lay_out(at);
        let reached = Arc::new(AtomicUsize::new(0));
        let tcp4 = serve("127.0.0.1:0", Some(&reached));
        let tcp6 = serve("[::1]:0", Some(&reached));
        let port = serve("127.0.0.1:0", None);
        let udp = ["127.0.0.1:0", "[::1]:0"].map(|address| {
            let socket = UdpSocket::bind(address).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        });
        let stream = at.join("outside/daemon.socket");
        let unix = UnixListener::bind(&stream).unwrap();
        let name = format!("lodestar-escape-{}", at.display());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        for listener in [unix, hidden] {
            let reached = Arc::clone(&reached);
            std::thread::spawn(move || {
                while listener.accept().is_ok() {
                    reached.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let datagram_at = at.join("outside/datagram.socket");
        let datagram = UnixDatagram::bind(&datagram_at).unwrap();
        let datagrams = format!("{name}-datagrams");
        let address = SocketAddr::from_abstract_name(datagrams.as_bytes()).unwrap();
        let abstract_datagram = UnixDatagram::bind_addr(&address).unwrap();
        for socket in [&datagram, &abstract_datagram] {
            socket.set_nonblocking(true).unwrap();
        }
        // One that is not closed when another program starts.
        let open: OwnedFd = fs::File::open(at.join("outside/secret")).unwrap().into();
        let high = rustix::io::fcntl_dupfd_cloexec(&open, 100).unwrap();
        rustix::io::fcntl_setfd(&high, rustix::io::FdFlags::empty()).unwrap();
        let bytes: &'static [u8; 8] = Box::leak(Box::new(*b"LODESTAR"));
        let path = |name: &str| at.join(name).display().to_string();
        let memory = shared_memory(&at.join("bin/escape"), "make");
        let variables = vec![
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME", path("home")),
            ("E_PROJECT", path("project")),
            ("E_OUTSIDE", path("outside")),
            ("E_KEYS", path("keys")),
            ("E_KEY", path("keys/approver.key")),
            ("E_PARENT", std::process::id().to_string()),
            ("E_ADDRESS", (bytes.as_ptr() as usize).to_string()),
            ("E_FD", high.as_raw_fd().to_string()),
            ("E_TCP4", tcp4.to_string()),
            ("E_TCP6", tcp6.to_string()),
            ("E_TCP_PORT", port.to_string()),
            ("E_UDP4", udp[0].local_addr().unwrap().port().to_string()),
            ("E_UDP6", udp[1].local_addr().unwrap().port().to_string()),
            ("E_STREAM", stream.display().to_string()),
            ("E_DATAGRAM", datagram_at.display().to_string()),
            ("E_ABSTRACT", format!("@{name}")),
            ("E_ABSTRACT_DATAGRAM", format!("@{datagrams}")),
            ("E_SHM", memory.clone()),
            ("E_SUID", path("tools/id")),
            ("http_proxy", format!("http://127.0.0.1:{tcp4}")),
            ("GIT_AUTHOR_NAME", "somebody".to_owned()),
            ("GIT_AUTHOR_EMAIL", "somebody@example.com".to_owned()),
            ("GIT_COMMITTER_NAME", "somebody".to_owned()),
            ("GIT_COMMITTER_EMAIL", "somebody@example.com".to_owned()),
        ];
        let tools = at.join("tools");
        fs::create_dir(&tools).unwrap();
        let own = tools.join("id");
        if suid == Path::new("/usr/bin/id") && rustix::process::geteuid().is_root() {
            fs::copy(suid, &own).unwrap();
            std::os::unix::fs::chown(&own, Some(1), Some(1)).unwrap();
            fs::set_permissions(&own, PermissionsExt::from_mode(0o4755)).unwrap();
        } else {
            std::os::unix::fs::symlink(suid, &own).unwrap();
        }
        Self {
            suid: suid.to_owned(),
            reached,
            arrived: udp.into(),
            datagram,
            abstract_datagram,
            variables,
            port,
            memory,
            _open: high,
            _bytes: bytes,
            whole,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.whole.path().join(name)
    }

    fn command(&self, language: Language) -> Command {
        let mut command = match language {
            Language::C => Command::new(self.path("bin/escape")),
            Language::Python => Command::new("/usr/bin/python3"),
            Language::Shell => Command::new("/bin/bash"),
        };
        if language != Language::C {
            command.arg(self.path("bin").join(SOURCES[language as usize].0));
        }
        command
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.path("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }

    fn plan(&self, language: Language, case: &Case) -> Plan {
        let out = out_of_reach(&self.path("project"), Some(&self.path("keys")), [], []);
        let program = match language {
            Language::C => self.path("bin/escape"),
            Language::Python => "/usr/bin/python3".into(),
            Language::Shell => "/bin/bash".into(),
        };
        let mut plan = Plan::new([case.profile], program, self.path("project"), out);
        plan.home = Some(self.path("home"));
        plan.reads = vec![self.path("bin"), self.path("tools")];
        plan.reads.extend(self.suid.parent().map(Path::to_owned));
        plan.network = case.network(self.port);
        plan
    }

    /// Runs a program to its end, in a cell or without one.
    pub(super) fn run(&self, language: Language, cell: Option<(&Case, Host)>) -> Ran {
        self.start(self.command(language), language, cell)
    }

    /// How a fork bomb ends that goes no further than `most`.
    pub(super) fn bomb(&self, case: &Case, host: Host, most: u32) -> String {
        let mut command = self.command(Language::C);
        command.env("E_BOMB", most.to_string());
        self.start(command, Language::C, Some((case, host))).stdout
    }

    fn start(&self, mut command: Command, language: Language, cell: Option<(&Case, Host)>) -> Ran {
        let mut confined = None;
        match cell {
            Some((case, host)) => {
                let cell = Cell::of(&self.plan(language, case), host).unwrap();
                confined = Some(cell.confine(&mut command));
            }
            None => {
                fs::create_dir(self.path("tmp")).unwrap();
                command.env("TMPDIR", self.path("tmp"));
            }
        }
        let child = command.spawn();
        drop(command);
        let child = child
            .map_err(|problem| match &mut confined {
                Some(confined) => confined.explain(problem),
                None => problem,
            })
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let confined = confined.iter_mut();
        let planted = confined.flat_map(|one| one.watch().look(None)).collect();
        Ran {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            planted,
        }
    }

    /// What is not as it was, or was reached, and should not be.
    pub(super) fn harmed(&self, case: &Case, planted: &[Planted]) -> Vec<String> {
        let mut harm = Vec::new();
        for kept in [
            "keys/approver.key",
            "outside/secret",
            "project/.lodestar/state.db",
            "project/.mcp.json",
            "project/.claude/settings.json",
            "project/.git/hooks/pre-commit",
            "home/.ssh/id",
        ] {
            if fs::read_to_string(self.path(kept)).ok().as_deref() != Some(SECRET) {
                harm.push(format!("{kept} was changed"));
            }
        }
        for (place, mode) in [("keys/approver.key", 0o600), ("outside/secret", 0o640)] {
            let found = fs::metadata(self.path(place)).unwrap().permissions().mode() & 0o7777;
            if found != mode {
                harm.push(format!("{place} has the mode {found:o}"));
            }
        }
        let config = fs::read_to_string(self.path("project/.git/config")).unwrap();
        if config.contains("escaped") {
            harm.push("git's configuration was changed".to_owned());
        }
        for planted in [
            ".codex/config.toml",
            ".vscode/mcp.json",
            ".gemini/settings.json",
            ".gemini",
            ".git/commondir",
            ".git/hooks/post-commit",
        ] {
            let place = self.path("project").join(planted);
            // A folder by itself is no harm, where it is one.
            let is_there = fs::symlink_metadata(&place).is_ok_and(|found| !found.is_dir());
            if is_there {
                harm.push(format!("{planted} was made and stayed"));
            }
        }
        if case.writes() && !planted.iter().any(|one| one.place.ends_with("mcp.json")) {
            // Only the program in C makes it.
            let made = self.path("project/src/c-new").exists();
            if made {
                harm.push(format!("`.vscode/mcp.json` was not set aside: {planted:?}"));
            }
        }
        if !case.any_network() {
            let reached = self.reached.load(Ordering::SeqCst);
            if reached > 0 {
                harm.push(format!("listeners were reached {reached} times"));
            }
        }
        let arrived = |socket: &UdpSocket| socket.recv(&mut [0; 16]).is_ok();
        let may_arrive = case.any_network();
        if self.arrived.iter().any(arrived) && !may_arrive {
            harm.push("a datagram arrived".to_owned());
        }
        for socket in [&self.datagram, &self.abstract_datagram] {
            if socket.recv(&mut [0; 16]).is_ok() {
                harm.push("a datagram reached a Unix socket".to_owned());
            }
        }
        harm
    }
}

impl Drop for World {
    fn drop(&mut self) {
        shared_memory(&self.path("bin/escape"), &self.memory);
    }
}

/// Lets the program in C make a piece of memory that every program can have, or take it away again.
fn shared_memory(program: &Path, what: &str) -> String {
    let made = Command::new(program).env("E_MEMORY", what).output();
    let made = made.unwrap().stdout;
    String::from_utf8(made).unwrap().trim().to_owned()
}

fn lay_out(at: &Path) {
    fs::set_permissions(at, PermissionsExt::from_mode(0o755)).unwrap();
    for folder in [
        "bin",
        "keys",
        "outside",
        "home/.ssh",
        "home/.config/git",
        "project/src",
        "project/.lodestar",
        "project/.claude",
        "project/.vscode",
    ] {
        fs::create_dir_all(at.join(folder)).unwrap();
    }
    for (name, text) in SOURCES {
        fs::write(at.join("bin").join(name), text).unwrap();
    }
    let git = |words: &[&str]| {
        let done = Command::new("git")
            .args([
                "-c",
                "user.name=somebody",
                "-c",
                "user.email=some@example.com",
            ])
            .args(words)
            .current_dir(at.join("project"))
            .env("HOME", at.join("home"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    fs::create_dir_all(at.join("project/.git/hooks")).unwrap();
    for (place, text, mode) in [
        ("keys/approver.key", SECRET, 0o600),
        ("outside/secret", SECRET, 0o640),
        ("outside/c-prey", "", 0o644),
        ("outside/py-prey", "", 0o644),
        ("outside/sh-prey", "", 0o644),
        ("home/.ssh/id", SECRET, 0o600),
        ("home/.config/git/credentials", SECRET, 0o600),
        ("project/README", "a project\n", 0o644),
        ("project/src/a.txt", "text\n", 0o644),
        ("project/src/b.txt", "text\n", 0o644),
        ("project/own.sh", "#!/bin/sh\nexit 0\n", 0o755),
        ("project/.lodestar/state.db", SECRET, 0o600),
        ("project/.mcp.json", SECRET, 0o644),
        ("project/.claude/settings.json", SECRET, 0o644),
        ("project/.git/hooks/pre-commit", SECRET, 0o644),
    ] {
        fs::write(at.join(place), text).unwrap();
        fs::set_permissions(at.join(place), PermissionsExt::from_mode(mode)).unwrap();
    }
    git(&["add", "README", "src"]);
    git(&["commit", "-qm", "first", "--no-verify"]);
    let compiled = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(at.join("bin/escape"))
        .arg(at.join("bin/escape.c"))
        .args(["-lpthread", "-lrt"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
}

/// A listener that counts who comes, and answers as a web server would.
fn serve(address: &str, count: Option<&Arc<AtomicUsize>>) -> u16 {
    let listener = TcpListener::bind(address).unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = count.cloned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            if let Some(count) = &count {
                count.fetch_add(1, Ordering::SeqCst);
            }
            std::thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                let _ = stream.read(&mut [0; 4096]);
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    port
}
