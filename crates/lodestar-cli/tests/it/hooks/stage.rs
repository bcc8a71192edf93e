//! A project, a home and a real client in it, whose model is scripted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lodestar_guard::hook::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::model::{Model, Step};
use crate::terminal::skip;
use crate::world::Run;

/// Longer than a client takes on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// The clients that come in packages.
pub(super) const CLIENTS: [Client; 3] = [Client::ClaudeCode, Client::Codex, Client::Gemini];

pub(super) struct Stage {
    client: Client,
    program: PathBuf,
    dir: TempDir,
}

impl Stage {
    /// A scratch project for this client, if it is installed.
    pub(super) fn of(client: Client) -> Option<Self> {
        let Some(peers) = std::env::var_os("LODESTAR_PEERS").map(PathBuf::from) else {
            skip("LODESTAR_PEERS is not set: clients of others are not installed");
            return None;
        };
        let modules = peers.join("node_modules");
        let program = match client {
            Client::ClaudeCode => modules.join("@anthropic-ai/claude-code-linux-x64/claude"),
            Client::Codex => {
                modules.join("codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")
            }
            Client::Gemini => modules.join("@google/gemini-cli/bundle/gemini.js"),
            Client::Cursor => panic!("Cursor comes in no package"),
        };
        if !program.is_file() {
            skip(&format!("{client:?} is not installed for this system"));
            return None;
        }
        let dir = TempDir::new().expect("a folder");
        let stage = Self {
            client,
            program,
            dir,
        };
        for folder in [stage.project(), stage.home()] {
            fs::create_dir(folder).expect("a folder");
        }
        Some(stage)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.real().join("project")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.real().join("home")
    }

    fn real(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("there")
    }

    /// The file that the model writes, if it may.
    pub(super) fn written(&self) -> Option<String> {
        fs::read_to_string(self.project().join("a.txt")).ok()
    }

    /// Where the hooks are: Codex takes those of a home, and those of a project once somebody trusts it.
    pub(super) fn settings(&self) -> PathBuf {
        match self.client {
            Client::Codex => self.home().join(self.client.settings()),
            _ => self.project().join(self.client.settings()),
        }
    }

    /// Runs `lodestar hook …` for this client.
    pub(super) fn lodestar(&self, command: &str) -> Run {
        let mut lodestar = Command::new(env!("CARGO_BIN_EXE_lodestar"));
        lodestar.args(["hook", command, self.client.name()]);
        if self.client == Client::Codex {
            lodestar.arg("--user");
        }
        let output = lodestar
            .current_dir(self.project())
            .env("HOME", self.home())
            .output();
        Run::of(output.expect("started"))
    }

    /// Puts one command in as the hook of each event, as the client wants it.
    pub(super) fn hook(&self, events: &[&str], command: impl Fn(&str) -> String) {
        let entry = |event: &str| {
            let hook = json!({"type": "command", "command": command(event)});
            json!([{"hooks": [hook]}])
        };
        let hooks: serde_json::Map<String, Value> = events
            .iter()
            .map(|event| ((*event).to_owned(), entry(event)))
            .collect();
        let file = self.settings();
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, json!({"hooks": hooks}).to_string()).expect("written");
    }

    /// Lets the client work on a prompt with a model that follows these steps.
    pub(super) fn play(&self, steps: Vec<Step>) -> Model {
        let model = Model::following(steps);
        let mut command = match self.client {
            Client::Gemini => {
                let node = PathBuf::from(std::env::var_os("LODESTAR_PEERS").expect("set"));
                let mut command = Command::new(node.join("bin/node"));
                command.arg(&self.program);
                command
            }
            _ => Command::new(&self.program),
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            .env("LODESTAR_CONFIG_DIR", self.home().join("lodestar"))
            .env("RECORDED", self.recorded())
            .current_dir(self.project());
        self.configure(&mut command, &model.url);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("started");
        let started = Instant::now();
        while child.try_wait().expect("waited for").is_none() {
            if started.elapsed() > PATIENCE {
                child.kill().expect("killed");
                panic!("{:?} did not end", self.client);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        model
    }

    fn configure(&self, command: &mut Command, url: &str) {
        match self.client {
            Client::ClaudeCode => command
                .env("ANTHROPIC_BASE_URL", url)
                .env("ANTHROPIC_API_KEY", "k")
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .env("DISABLE_AUTOUPDATER", "1")
                .env("IS_SANDBOX", "1")
                .args(["-p", "do it", "--dangerously-skip-permissions"]),
            Client::Gemini => {
                let own = self.home().join(".gemini");
                fs::create_dir_all(&own).expect("a folder");
                let settings = json!({
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "privacy": {"usageStatisticsEnabled": false},
                });
                fs::write(own.join("settings.json"), settings.to_string()).expect("written");
                command
                    .env("GOOGLE_GEMINI_BASE_URL", url)
                    .env("GEMINI_API_KEY", "k")
                    .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
                    .args(["-p", "do it", "--yolo", "--model", "gemini-2.5-flash"])
            }
            Client::Codex => {
                let own = self.home().join(".codex");
                fs::create_dir_all(&own).expect("a folder");
                let config = format!(
                    "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
                     sandbox_mode = \"danger-full-access\"\n[model_providers.scripted]\n\
                     name = \"scripted\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"K\"\n"
                );
                fs::write(own.join("config.toml"), config).expect("written");
                command.env("K", "k").args([
                    "exec",
                    "--skip-git-repo-check",
                    "--dangerously-bypass-hook-trust",
                    "do it",
                ])
            }
            Client::Cursor => panic!("Cursor comes in no package"),
        };
    }

    /// The folder that a recorder writes to.
    pub(super) fn recorded(&self) -> PathBuf {
        self.real().join("recorded")
    }

    /// Has every event recorded by a hook that agrees to everything.
    pub(super) fn record(&self, events: &[&str]) {
        let script = self.real().join("record.sh");
        fs::create_dir(self.recorded()).expect("a folder");
        let text = "#!/bin/sh\ncat > \"$RECORDED/$(date +%s%N)-$$.json\"\n";
        fs::write(&script, text).expect("written");
        self.hook(events, |_| format!("sh {}", script.display()));
    }

    /// What was recorded, in the order in which it came.
    pub(super) fn inputs(&self) -> Vec<Vec<u8>> {
        let files = fs::read_dir(self.recorded()).expect("a folder");
        let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        files.sort();
        let read = |file: &PathBuf| fs::read(file).expect("an input");
        files.iter().map(read).collect()
    }
}

/// The steps of a model that writes a file with the client's own tool.
pub(super) fn writes_a_file(client: Client, project: &Path) -> Vec<Step> {
    let file = project.join("a.txt");
    let write = match client {
        Client::ClaudeCode => Step::Use("Write", json!({"file_path": file, "content": "hello\n"})),
        Client::Gemini => Step::Use(
            "write_file",
            json!({"file_path": "a.txt", "content": "hello\n"}),
        ),
        Client::Codex => Step::UseWithText(
            "apply_patch",
            "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n".to_owned(),
        ),
        Client::Cursor => panic!("Cursor comes in no package"),
    };
    vec![write, Step::Say("all done")]
}
