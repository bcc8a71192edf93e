//! The gateway's process, the owner's machine and the devices, each in a folder of its own.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::Run;

/// How soon a kill switch and a pause have to be in force.
pub(crate) const OBEYED: Duration = Duration::from_secs(10);

/// How long anything else may take on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A process that ends with the test.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("started"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("asked").is_none()
    }

    /// Tells it to end, and gives its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().expect("asked") {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// As if the machine had lost power.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One machine: an installation, and a folder to work in.
pub(crate) struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new(folder: PathBuf) -> Self {
        for part in ["work", "config", "home"] {
            fs::create_dir_all(folder.join(part)).expect("made");
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    pub(crate) fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lodestar"));
        command
            .args(args)
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("LODESTAR_CONFIG_DIR", self.path("config"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[impl AsRef<OsStr>]) -> Run {
        Run::of(self.command(args).output().expect("started"))
    }

    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let mut args = args.to_vec();
        args.push("--json");
        self.run(&args).expect(0).json()
    }

    /// What the daemon keeps of what the gateway said.
    pub(crate) fn state(&self) -> Value {
        let text = fs::read_to_string(self.path("config/device/state.json"));
        text.ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// A daemon that beats every second.
    pub(crate) fn daemon(&self) -> Process {
        let mut command = self.command(&["device", "daemon", "--heartbeat", "1"]);
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("daemon.log"))
            .expect("opened");
        Process::start(command.stdout(Stdio::null()).stderr(log))
    }
}

/// The whole of it.
pub(crate) struct Fleet {
    dir: TempDir,
    port: u16,
    gateway: Option<Process>,
    pub(crate) owner: Machine,
    pub(crate) devices: Vec<Machine>,
}

/// Limits that a test can wait for: a device is trusted after eight seconds, and a busy machine is no gap.
const GATEWAY: &str = "
sweep_seconds = 1
[http]
listen = \"127.0.0.1:PORT\"
token_per_second = 1000
token_burst = 5000
address_per_second = 1000
address_burst = 5000
[devices]
heartbeat_seconds = 1
max_gap_seconds = 8
continuity_seconds = 8
gaps = 1000
";

impl Fleet {
    /// A gateway with an account, and so many machines that nobody has enrolled.
    pub(crate) fn new(machines: usize) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let config = GATEWAY.replace("PORT", &port.to_string());
        fs::write(dir.path().join("gateway.toml"), config).expect("written");
        let owner = Machine::new(dir.path().join("owner"));
        let devices = (1..=machines).map(|n| Machine::new(dir.path().join(format!("device-{n}"))));
        let devices = devices.collect();
        let mut fleet = Self {
            dir,
            port,
            gateway: None,
            owner,
            devices,
        };
        fleet.serve();
        fleet.open_account();
        fleet
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts the gateway, and waits until it listens.
    pub(crate) fn serve(&mut self) {
        let config = self.path("gateway.toml");
        let mut command = self
            .owner
            .command(&["gateway", "serve", "--json", "--config"]);
        let errors = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("gateway.log"))
            .expect("opened");
        let child = command.arg(config).stdout(Stdio::piped()).stderr(errors);
        let mut child = child.spawn().expect("started");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("read");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!(
                "{line}: {}",
                fs::read_to_string(self.path("gateway.log")).expect("a file")
            )
        });
        assert_eq!(said["listening"], self.url());
        self.gateway = Some(Process(child));
    }

    /// Ends the gateway, and gives its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.gateway.take().expect("served").terminate()
    }

    pub(crate) fn kill(&mut self) {
        self.gateway.take().expect("served").kill();
    }

    /// A command over the platform's socket.
    #[track_caller]
    pub(crate) fn platform(&self, args: &[&str]) -> Value {
        let data = self.path("gateway");
        let mut all = vec!["platform"];
        all.extend(args);
        all.extend(["--data", data.to_str().expect("UTF-8")]);
        self.owner.json(&all)
    }

    fn open_account(&self) {
        let key = self
            .owner
            .json(&["approve", "keygen", "--name", "anna", "--no-passphrase"]);
        let public = key["public"].as_str().expect("a key");
        let token = self.owner.path("owner.token");
        let token = token.to_str().expect("UTF-8");
        self.platform(&[
            "account",
            "team",
            "--owner-key",
            public,
            "--token-out",
            token,
        ]);
        let url = self.url();
        self.owner.json(&[
            "token",
            "use",
            token,
            "--gateway",
            &url,
            "--allow-loopback-http",
        ]);
    }

    /// Enrols a machine, and gives its id.
    #[track_caller]
    pub(crate) fn enrol(&self, n: usize, name: &str) -> Value {
        let token = self.owner.path(&format!("enrol-{n}.token"));
        let token = token.to_str().expect("UTF-8");
        self.owner.json(&["token", "issue", "--out", token]);
        let url = self.url();
        let args = [
            "device",
            "enroll",
            name,
            "--gateway",
            &url,
            "--allow-loopback-http",
            "--token-file",
            token,
        ];
        self.devices[n].json(&args)
    }

    /// Enrols and approves a machine, and gives its id.
    #[track_caller]
    pub(crate) fn approved(&self, n: usize, name: &str) -> String {
        let enrolled = self.enrol(n, name);
        let key = enrolled["key"].as_str().expect("a key");
        let done = self
            .owner
            .json(&["device", "approve", name, "--device-key", key, "--yes"]);
        assert_eq!(done["level"], "approved");
        enrolled["device"].as_str().expect("an id").to_owned()
    }

    /// A device as the gateway shows it to its owner.
    #[track_caller]
    pub(crate) fn shown(&self, name: &str) -> Value {
        self.owner.json(&["device", "show", name])
    }

    #[track_caller]
    pub(crate) fn wait_for_level(&self, name: &str, level: &str) {
        wait_until(PATIENCE, &format!("{name} is {level}"), || {
            self.shown(name)["level"] == level
        });
    }

    /// What runs need: an agent, a runner that is bound, terms out of a session that was looked at, and a
    /// configuration with all of them.
    #[track_caller]
    pub(crate) fn ready_to_run(&self, n: usize, name: &str) {
        let agent = self.owner.json(&["agent", "add", &format!("coder-{n}")]);
        let runner = self.owner.json(&["runner", "add", &format!("nightly-{n}")]);
        let runner = runner["id"].as_str().expect("an id");
        self.owner.json(&["runner", "bind", runner, name, "--yes"]);
        let device = &self.devices[n];
        device.write("work/plan.md", "read me");
        device.write("work/flow.json", "{\"steps\": [\"read the plan\"]}");
        device.write("work/task.md", "read the plan");
        device.write("work/script.toml", SCRIPT);
        device.write("work/lodestar.toml", CONFIG);
        device
            .run(&[
                "guard",
                "run",
                "--config",
                "lodestar.toml",
                "--script",
                "script.toml",
            ])
            .expect(0);
        let terms = self.path("terms.json");
        let terms = terms.to_str().expect("UTF-8");
        device
            .run(&["run", "terms", "latest", "--out", terms])
            .expect(0);
        let registered = self.owner.json(&["run", "terms", "--file", terms, "--yes"]);
        let config = format!(
            "{CONFIG}\n[run]\ngateway = \"{}\"\nallow_loopback_http = true\nrunner = \"{runner}\"\n\
             agent = {}\nterms = {}\nworkflow_file = \"flow.json\"\ntask_file = \"task.md\"\n",
            self.url(),
            agent["id"],
            registered["terms"]
        );
        device.write("work/lodestar.toml", &config);
    }
}

const CONFIG: &str = "
project_id = \"notes\"
actor_id = \"coder\"
auto_approve_ceiling = 2

[tools.\"fs.read\"]
root = \".\"
";

const SCRIPT: &str = "
[[step]]
call = \"fs.read\"
args = { path = \"plan.md\" }
expect = \"returned\"
";

/// A port that nobody listens on: whoever found it has let go of it.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("bound").port()
}

/// A governed session with the configuration that is there.
pub(crate) fn session(device: &Machine) -> Run {
    device.run(&[
        "guard",
        "run",
        "--config",
        "lodestar.toml",
        "--script",
        "script.toml",
        "--json",
    ])
}

/// Waits until something is so, and gives how long it took.
#[track_caller]
pub(crate) fn wait_until(
    within: Duration,
    what: &str,
    mut is_so: impl FnMut() -> bool,
) -> Duration {
    let begun = Instant::now();
    loop {
        if is_so() {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

pub(crate) fn facts(evaluation: &Value) -> Vec<&str> {
    let facts = evaluation["facts"].as_array();
    facts.expect("a list").iter().map(text).collect()
}

pub(crate) fn none() -> Value {
    json!(null)
}

impl Fleet {
    /// Enrols a machine once more, with a token of its own.
    pub(crate) fn enrol_anew(&self, n: usize, name: &str) -> Run {
        let token = self.owner.path(&format!("anew-{name}.token"));
        let token = token.to_str().expect("UTF-8");
        self.owner.json(&["token", "issue", "--out", token]);
        let url = self.url();
        self.devices[n].run(&[
            "device",
            "enroll",
            name,
            "--gateway",
            &url,
            "--allow-loopback-http",
            "--token-file",
            token,
            "--json",
        ])
    }

    /// Where the gateway listens, for whoever takes its place.
    pub(crate) fn address(&self) -> (Ipv4Addr, u16) {
        (Ipv4Addr::LOCALHOST, self.port)
    }
}

impl Machine {
    /// What is known here of a run.
    #[track_caller]
    pub(crate) fn record(&self, run: &str) -> Value {
        let path = self.path(&format!("config/device/runs/{run}.json"));
        serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
    }

    pub(crate) fn keep_record(&self, run: &str, record: &Value) {
        let name = format!("config/device/runs/{run}.json");
        self.write(&name, &record.to_string());
    }

    /// The folder of the session that a run was.
    #[track_caller]
    pub(crate) fn session_of(&self, run: &str) -> PathBuf {
        let place = &self.record(run)["session"];
        let log = Path::new(text(&place["log"]));
        log.join(text(&place["project"]))
            .join(text(&place["session"]))
    }

    /// Registers a run, and gives its id.
    #[track_caller]
    pub(crate) fn start(&self) -> String {
        text(&self.json(&["run", "start"])["ticket"]["id"]).to_owned()
    }
}

/// A governed session as a run that was registered.
pub(crate) const AS_RUN: [&str; 8] = [
    "guard",
    "run",
    "--config",
    "lodestar.toml",
    "--script",
    "script.toml",
    "--json",
    "--run",
];

pub(crate) fn session_as(device: &Machine, run: &str) -> Run {
    let mut args = AS_RUN.to_vec();
    args.push(run);
    device.run(&args)
}
