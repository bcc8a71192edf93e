//! `lodestar hook daemon` and `lodestar hook stop`

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lodestar_guard::Installation;
use lodestar_guard::attend::Attendant;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::daemon::{self, Asking, Daemon, DaemonError, Settings, Unavailable};
use serde_json::{Map, Value, json};

use crate::bridge::Bridge;
use crate::cli::App;
use crate::commands::doctor::is_this_program;
use crate::commands::guard;
use crate::commands::init::client::{ClientFile, places};
use crate::commands::init::jsonc;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, wait};
use crate::{commands, inert};

const DAEMON_HELP: &str = "\
It keeps one governed session open for each conversation of a client, so that a hook is answered in
milliseconds. Hooks start it when they find none, so nobody has to; it ends when nobody has spoken for
a while, on SIGTERM, or with `lodestar hook stop`. It listens in the user's configuration directory,
to this user alone. While it is away and cannot be started, hooks refuse.

Examples:
  lodestar hook daemon
  lodestar hook daemon --foreground --root /path/to/project";

const STOP_HELP: &str = "\
Examples:
  lodestar hook stop
  lodestar hook stop --root /path/to/project";

#[derive(Debug, Args)]
#[command(after_help = DAEMON_HELP)]
pub(crate) struct DaemonArgs {
    /// Stay here instead of going to the background
    #[arg(long)]
    foreground: bool,
}

#[derive(Debug, Args)]
#[command(after_help = STOP_HELP)]
pub(crate) struct StopArgs {}

pub(crate) fn run(args: &DaemonArgs, app: &mut App) -> Result<Exit, Failure> {
    let root = root(app)?;
    let installation = Installation::locate()?;
    if !args.foreground {
        let program = std::env::current_exe()
            .map_err(|problem| Failure::usage(format!("this program is not found: {problem}")))?;
        let up = Asking::new(installation).starting(program).start_at(&root);
        up.map_err(unavailable)?;
        return told(app, &root, "the daemon answers hooks", "running");
    }
    // Without a terminal it was started by a hook, and is not to end with whoever ran that.
    if !std::io::stderr().is_terminal() {
        let _ = rustix::process::setsid();
    }
    let settings = settings(installation, &root)?;
    let served = wait(async {
        let until = commands::told_to_end()?;
        let (daemon, listener) = Daemon::bind(settings).map_err(failure)?;
        daemon.serve(listener, until).await;
        Ok(())
    })?;
    served.map(|()| Exit::Done)
}

pub(crate) fn stop(_args: &StopArgs, app: &mut App) -> Result<Exit, Failure> {
    let root = root(app)?;
    match daemon::stop(&root).map_err(unavailable)? {
        true => told(app, &root, "the daemon has ended", "stopped"),
        false => told(app, &root, "there was no daemon", "away"),
    }
}

fn told(app: &mut App, root: &Path, words: &str, word: &str) -> Result<Exit, Failure> {
    match app.json {
        true => app.out.json(&json!({"daemon": word, "root": root}))?,
        false => writeln!(app.out, "{words} for `{}`", inert::path(root))?,
    }
    Ok(Exit::Done)
}

/// The project that is named, or that one stands in.
fn root(app: &App) -> Result<PathBuf, Failure> {
    let from = match app.root() {
        Some(root) => root.to_owned(),
        None => std::env::current_dir()
            .map_err(|problem| Failure::usage(format!("there is no current folder: {problem}")))?,
    };
    let file = daemon::configuration_above(&from).ok_or_else(|| {
        Failure::not_found(format!(
            "there is no `lodestar.toml` in `{}` or above",
            inert::path(&from)
        ))
        .help("`lodestar init` writes one")
    })?;
    Ok(file.parent().unwrap_or(Path::new("/")).to_owned())
}

fn settings(installation: Installation, root: &Path) -> Result<Settings, Failure> {
    let settings = Settings::new(installation, root).map_err(Failure::io(root))?;
    let said = |failure: Failure| failure.with_help();
    let device = DeviceDirArgs { device_dir: None };
    Ok(settings
        .keys(Arc::new(move |config| guard::keys(config).map_err(said)))
        .attended(Arc::new(move |config, keys| {
            let bridge = Bridge::of(config, keys, None, &device).map_err(said)?;
            Ok(bridge.map(|bridge| bridge as Arc<dyn Attendant>))
        }))
        .proxy(Arc::new(is_proxy)))
}

/// Whether everything that the client could mean by the beginning of this tool's name, seen from a folder of the project,
/// starts this very program as the proxy of the project, and nothing else. A name alone says nothing: a project brings
/// its own list of servers along, and so does a folder in it.
fn is_proxy(client: Client, from: &Path, tool: &str) -> bool {
    let Some(config) = daemon::configuration_above(from) else {
        return false;
    };
    let root = config.parent().unwrap_or(Path::new("/"));
    let home = std::env::home_dir();
    let inside = from
        .ancestors()
        .take_while(|folder| folder.starts_with(root));
    let mut files: Vec<PathBuf> = inside.flat_map(|one| places(one, None).0).collect();
    files.extend(places(root, home.as_deref()).1);
    files.retain(|path| is_read_by(client, path));
    let mut entries = Vec::new();
    for path in files.iter().filter(|path| path.is_file()) {
        // What cannot be read may name another one.
        let Ok(file) = ClientFile::look(path, home.as_deref()) else {
            return false;
        };
        let servers = file.map(|file| file.servers).unwrap_or_default();
        let servers = servers.into_iter().chain(of_projects(path, root));
        let meant = servers.filter(|(server, _)| begins_with(tool, server));
        entries.extend(meant.map(|(_, entry)| entry));
    }
    let is_own = |entry: &Value| {
        let command = entry["command"].as_str().unwrap_or_default();
        is_plain(entry) && ClientFile::starts(entry, &config) && is_this_program(command)
    };
    !entries.is_empty() && entries.iter().all(is_own)
}

/// Whether a tool's name could begin with that of a server, as clients write it.
fn begins_with(tool: &str, server: &str) -> bool {
    let written = server.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || c == '-' => c,
        _ => '_',
    });
    let written: String = written.collect();
    let rest = tool.strip_prefix(&written);
    rest.is_some_and(|rest| rest.starts_with("__"))
}

/// Whether a server is started as `lodestar init` writes it: with no option that loosens what the configuration says, and
/// nothing in its environment that makes it another program or gives it other keys.
fn is_plain(entry: &Value) -> bool {
    let args = entry["args"].as_array().map_or(0, Vec::len);
    let is_process = entry.get("url").is_none()
        && entry.get("httpUrl").is_none()
        && entry.get("type").is_none_or(|sort| sort == "stdio");
    let changes = |name: &String| {
        let name = name.to_ascii_uppercase();
        ["LD_", "DYLD_", "LODESTAR_", "XDG_"]
            .iter()
            .any(|begin| name.starts_with(begin))
            || name == "HOME"
    };
    let environment = entry["env"].as_object();
    let is_changed = environment.is_some_and(|set| set.keys().any(changes));
    args == PROXY_ARGS && is_process && !is_changed
}

/// `guard mcp-proxy --config FILE`.
const PROXY_ARGS: usize = 4;

/// Whether a client takes servers out of a file: another client's proxy is nothing to it.
fn is_read_by(client: Client, path: &Path) -> bool {
    match client {
        Client::ClaudeCode => path.ends_with(".mcp.json") || path.ends_with(".claude.json"),
        Client::Codex => path.ends_with(".codex/config.toml"),
        Client::Cursor => path.ends_with(".cursor/mcp.json"),
        // Nothing here knows where all of its servers come from.
        Client::Gemini => false,
    }
}

/// Servers that Claude Code keeps for single projects, which come before all others: those for folders that the
/// client could be at work in here.
fn of_projects(path: &Path, root: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = serde_json::from_str::<Map<String, Value>>(&jsonc::plain(&text));
    let projects = whole.ok().and_then(|mut whole| whole.remove("projects"));
    let Some(Value::Object(projects)) = projects else {
        return Vec::new();
    };
    let concerns = |folder: &Path| folder.starts_with(root) || root.starts_with(folder);
    let here = projects.iter().filter(|(folder, _)| {
        // One that is spelt otherwise, or is a link, may still be this one.
        let folder = Path::new(folder.as_str());
        let real = folder.canonicalize();
        concerns(folder) || real.map_or(!folder.is_absolute(), |real| concerns(&real))
    });
    let servers = here.filter_map(|(_, project)| project["mcpServers"].as_object());
    let servers = servers.flatten();
    servers
        .map(|(name, entry)| (name.clone(), entry.clone()))
        .collect()
}

fn failure(problem: DaemonError) -> Failure {
    match problem {
        DaemonError::Running => {
            Failure::usage(problem.to_string()).help("`lodestar hook stop` ends it")
        }
        problem => Failure::usage(problem.to_string()),
    }
}

fn unavailable(problem: Unavailable) -> Failure {
    match problem {
        Unavailable::NoProject { .. } => Failure::not_found(problem.to_string()),
        problem => Failure::usage(problem.to_string()),
    }
}
