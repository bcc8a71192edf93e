//! `lodestar init`: a first configuration out of the one that a client has, and the way into the client.

mod change;
pub(crate) mod client;
mod configuration;
mod draft;
mod grading;
mod granting;
pub(crate) mod jsonc;
mod reference;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::ProjectId;
use lodestar_guard::config::{Config, Server};
use lodestar_mcp::pins::LockFile;
use lodestar_mcp::probe::{self, NotOffered, Offered};
use serde_json::{Value, json};

use crate::cli::App;
use crate::configured::FILE;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::paint::Paint;
use crate::{diff, inert, place, words};

use change::Proxy;
use client::ClientFile;
use configuration::Tried;
use draft::{Draft, Drafting};
use reference::Lookup;

/// The folder of what is Lodestar's own.
const OWN: &str = ".lodestar";

const AFTER_HELP: &str = "\
Reads the servers of Claude Code (.mcp.json, ~/.claude.json), Claude Desktop, Cursor
(.cursor/mcp.json), VS Code (.vscode/mcp.json) or Codex (.codex/config.toml); starts each, asks what
it offers, and writes `lodestar.toml` with every tool it lists, graded no further than its name and
arguments plainly allow. What is not plain stays ungraded: every call of it waits for a person.
Secrets stay where they are: the client goes on giving them, to the proxy.

The change to make in the client is printed; --write makes it and keeps the file as it was beside it.

Examples:
  lodestar init
  lodestar init --from ~/.codex/config.toml
  lodestar init --from .vscode/mcp.json --write";

/// Set once the environment is as the client would give it.
const READY: &str = "LODESTAR_INIT_ENVIRONMENT";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct InitArgs {
    /// The client's configuration [default: the one that is found here, or else in the home folder]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Make the change in the client, too
    #[arg(long)]
    write: bool,

    /// Write a new `lodestar.toml` where there is one; that one is kept beside it
    #[arg(long)]
    force: bool,

    /// The project's name in the log [default: the folder's]
    #[arg(long, value_name = "NAME")]
    project: Option<String>,

    /// How long a server may take until it has said what it offers
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=600))]
    deadline: u64,
}

/// What was done, for people and machines.
struct Done {
    config: PathBuf,
    tried: Vec<Tried>,
    diff: String,
    entry: Value,
    backup: Option<PathBuf>,
    log_key: PathBuf,
}

pub(crate) fn run(args: &InitArgs, app: &mut App) -> Result<Exit, Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok());
    let file = find(args, home.as_deref(), app)?;
    let root = match (app.root(), &file.project) {
        (Some(root), _) => root.to_owned(),
        (None, Some(project)) => project.clone(),
        (None, None) => place::here()?,
    };
    let root = root.canonicalize().map_err(Failure::io(&root))?;
    let config = root.join(FILE);
    for ours in [&config, &root.join(OWN), &root.join(configuration::SCHEMA)] {
        refuse_link(ours)?;
    }
    if config.symlink_metadata().is_ok() && file.servers.values().any(ClientFile::is_proxy) {
        return Err(Failure::usage(format!(
            "`{}` is wrapped already: what its proxy governs stands in `{}` alone, and would be lost",
            inert::path(&file.path),
            inert::path(&config)
        ))
        .help(
            "add what stands beside the proxy as `[[downstream_servers]]` there; or put the client's backup \
             (.bak) back, add it there, and run `lodestar init --force`",
        ));
    }
    if config.symlink_metadata().is_ok() && !args.force {
        return Err(
            Failure::usage(format!("`{}` is there already", inert::path(&config)))
                .help("--force writes a new one and keeps this one beside it"),
        );
    }
    let installation = Installation::locate()?;
    let keys = installation.dir();
    let keys = keys.canonicalize().unwrap_or_else(|_| keys.to_owned());
    if keys.starts_with(&root) {
        return Err(keys_in_the_project(&keys));
    }
    let project = project(args.project.as_deref(), &root)?;
    let drafts = drafts(&file, &root)?;
    let values = drafts.iter().flat_map(|draft| draft.values.clone());
    enter_environment(&values.collect())?;
    let tried = try_all(drafts, &root, Duration::from_secs(args.deadline), app)?;
    let text = configuration::text(&project, file.client, &file.path, &root, &tried);
    Config::parse(&text, &root)?;

    let key = installation.create_log_key()?;
    settle(&root, &config, &text)?;
    pin(&root, &project, &key, &tried)?;
    let in_force: Vec<&Draft> = tried
        .iter()
        .filter(|one| one.found.is_ok())
        .map(|one| &one.draft)
        .collect();
    let none_in_force = in_force.is_empty();
    let proxy = Proxy::new(&config, &in_force)?;
    let after = proxy.put_into(&file)?;
    let mut done = Done {
        diff: diff::shown(
            &file.text,
            &after,
            if app.json {
                Paint::none()
            } else {
                app.out.paint
            },
        ),
        entry: proxy.entry(file.client),
        config,
        tried,
        backup: None,
        log_key: installation.key_path("log"),
    };
    if args.write && !none_in_force {
        done.backup = Some(change::back_up(&file.path, &file.text)?);
        change::put(&file.path, &after)?;
    }
    print(&done, &file, args, app)?;
    Ok(if none_in_force {
        Exit::CheckFailed
    } else {
        Exit::Done
    })
}

fn find(args: &InitArgs, home: Option<&Path>, app: &App) -> Result<ClientFile, Failure> {
    let file = match &args.from {
        Some(file) => file.clone(),
        None => nearest(home, app)?,
    };
    let read = ClientFile::read(&file, home)?;
    let shown = inert::path(&file);
    if read.servers.is_empty() {
        return Err(Failure::not_found(format!("`{shown}` names no servers")));
    }
    if read.servers.values().all(ClientFile::is_proxy) {
        return Err(Failure::usage(format!("`{shown}` names the proxy already"))
            .help("`lodestar doctor` says what is enforced"));
    }
    Ok(read)
}

/// The one file with servers in the project, or else of the user's.
fn nearest(home: Option<&Path>, app: &App) -> Result<PathBuf, Failure> {
    let here = match app.root() {
        Some(root) => root.to_owned(),
        None => place::here()?,
    };
    let (in_project, of_user) = client::places(&here, home);
    for places in [&in_project, &of_user] {
        let mut found = Vec::new();
        for path in places {
            // One that cannot be read may be the one that is meant.
            let file = ClientFile::look(path, home)?;
            let mut servers = file.iter().flat_map(|file| file.servers.values());
            if servers.any(|one| !ClientFile::is_proxy(one)) {
                found.push(path);
            }
        }
        match found.as_slice() {
            [] => {}
            [one] => return Ok((*one).clone()),
            several => {
                let names: Vec<String> = several.iter().map(|path| inert::path(path)).collect();
                return Err(Failure::usage("several clients have servers here")
                    .help(format!("say which with --from: {}", names.join(", "))));
            }
        }
    }
    let is_wrapped = |path: &&PathBuf| {
        let file = ClientFile::read(path, home);
        file.is_ok_and(|file| file.servers.values().any(ClientFile::is_proxy))
    };
    if let Some(path) = in_project.iter().chain(&of_user).find(is_wrapped) {
        return Ok(path.clone());
    }
    let looked: Vec<String> = in_project
        .iter()
        .chain(&of_user)
        .map(|p| inert::path(p))
        .collect();
    Err(
        Failure::not_found("no client's configuration with servers was found").help(format!(
            "name one with --from; looked at: {}",
            looked.join(", ")
        )),
    )
}

/// Keys have to lie where no tool of an agent works.
pub(crate) fn keys_in_the_project(keys: &Path) -> Failure {
    Failure::usage(format!(
        "the keys would lie in the project (`{}`), where an agent's tools work",
        inert::path(keys)
    ))
    .help("run it in the project's own folder, or name that with --root")
}

pub(crate) fn project(given: Option<&str>, root: &Path) -> Result<ProjectId, Failure> {
    if let Some(given) = given {
        return ProjectId::new(given).map_err(|problem| Failure::name("project", &problem));
    }
    let folder = root.file_name().unwrap_or_default().to_string_lossy();
    let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = folder.chars().map(kept).take(60).collect();
    let name = name.trim_matches('-').to_ascii_lowercase();
    Ok(ProjectId::new(&name)
        .or_else(|_| ProjectId::new("project"))
        .expect("INVARIANT: a name"))
}

fn drafts(file: &ClientFile, root: &Path) -> Result<Vec<Draft>, Failure> {
    let folder = file.project.as_deref().unwrap_or(root);
    let variable = |name: &str| std::env::var(name).ok();
    let drafting = Drafting {
        client: file.client,
        lookup: Lookup {
            syntax: file.client.syntax(),
            folder,
            variable: &variable,
        },
    };
    let mut servers = file.servers.clone();
    servers.retain(|_, entry| !ClientFile::is_proxy(entry));
    Ok(drafting.all(&servers))
}

/// Goes on in the environment that the client would give to the proxy. A process cannot safely change its own.
pub(crate) fn enter_environment(values: &BTreeMap<String, String>) -> Result<(), Failure> {
    let is_there =
        |(name, value): (&String, &String)| std::env::var(name).is_ok_and(|set| set == *value);
    if values.iter().all(is_there) || std::env::var_os(READY).is_some() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(Failure::io("lodestar"))?;
    let problem = std::process::Command::new(&program)
        .args(std::env::args_os().skip(1))
        .envs(values)
        .env(READY, "given")
        .exec();
    Err(Failure::io(&program)(problem))
}

/// Starts every server, all at once, and asks what it offers.
fn try_all(
    drafts: Vec<Draft>,
    root: &Path,
    deadline: Duration,
    app: &App,
) -> Result<Vec<Tried>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|problem| Failure::usage(format!("no threads can be started: {problem}")))?;
    runtime.block_on(async {
        let mut asking = tokio::task::JoinSet::new();
        let mut found: Vec<Option<Result<(Server, Offered), NotOffered>>> = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            found.push(None);
            match draft.to_try() {
                Err(why) => {
                    let last_words = String::new();
                    found[at] = Some(Err(NotOffered { why, last_words }));
                }
                Ok(server) => {
                    let root = root.to_owned();
                    let keys = Installation::locate().ok();
                    app.note(format!("starting `{}`", inert::line(&draft.called, 40)));
                    asking.spawn(async move {
                        let offered = {
                            let keys = keys.as_ref().map(Installation::dir);
                            probe::offered(&server, &root, keys, deadline).await
                        };
                        (at, offered.map(|offered| (server, offered)))
                    });
                }
            }
        }
        while let Some(ended) = asking.join_next().await {
            let Ok((at, ended)) = ended else { continue };
            let called = inert::line(&drafts[at].called, 40);
            match &ended {
                Ok((_, offered)) => app.note(format!(
                    "`{called}` offers {}",
                    words::count(offered.tools.len() as u64, "tool")
                )),
                Err(problem) => {
                    let why = inert::line(&problem.to_string(), 400);
                    app.note(format!("`{called}` does not start: {why}"));
                }
            }
            found[at] = Some(ended);
        }
        let unknown = || NotOffered {
            why: "asking it ended early".to_owned(),
            last_words: String::new(),
        };
        let tried = drafts.into_iter().zip(found).map(|(draft, found)| Tried {
            draft,
            found: found.unwrap_or_else(|| Err(unknown())),
        });
        Ok(tried.collect())
    })
}

/// Whoever wrote what lies in the folder may have put a link where Lodestar writes, to a file of the user's.
pub(crate) fn refuse_link(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => Err(Failure::usage(format!(
            "`{}` is a link, and nothing is written through it",
            inert::path(path)
        ))
        .help("look where it leads, then remove it")),
        _ => Ok(()),
    }
}

/// Puts the configuration and what editors check it against in their places.
fn settle(root: &Path, config: &Path, text: &str) -> Result<(), Failure> {
    let own = root.join(OWN);
    std::fs::create_dir_all(&own).map_err(Failure::io(&own))?;
    let schema = root.join(configuration::SCHEMA);
    let schema_text = format!("{:#}\n", lodestar_guard::config::json_schema());
    std::fs::write(&schema, schema_text).map_err(Failure::io(&schema))?;
    if config.symlink_metadata().is_ok() {
        let before = std::fs::read_to_string(config).map_err(Failure::io(config))?;
        change::back_up(config, &before)?;
        return change::put(config, text);
    }
    let mut file = std::fs::File::create_new(config).map_err(Failure::io(config))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(Failure::io(config))
}

/// What was graded is what is pinned: a definition that changes before the first session shows as drift.
fn pin(root: &Path, project: &ProjectId, key: &SecretKey, tried: &[Tried]) -> Result<(), Failure> {
    let now = super::now();
    let lock = LockFile::of(root, project);
    let pinned = lock.change(key, now, |pins| {
        for (server, offered) in tried.iter().filter_map(|one| one.found.as_ref().ok()) {
            offered.pin(pins, server.name.as_str(), now);
        }
    });
    pinned.map_err(|problem| Failure::usage(problem.to_string()))
}

fn print(done: &Done, file: &ClientFile, args: &InitArgs, app: &mut App) -> Result<(), Failure> {
    if app.json {
        let servers = done.tried.iter().map(|one| {
            let tools = one.tools().into_iter().map(|tool| {
                json!({"name": tool.ledger, "at_server": tool.name, "level": tool.proposal.rung, "why": tool.proposal.why})
            });
            json!({
                "name": one.draft.name.as_str(),
                "called": one.draft.called,
                "in_force": one.found.is_ok(),
                "problem": one.problem(),
                "notes": one.draft.notes,
                "tools": tools.collect::<Vec<_>>(),
            })
        });
        let report = json!({
            "config": done.config.to_string_lossy(),
            "log_key": done.log_key.to_string_lossy(),
            "servers": servers.collect::<Vec<_>>(),
            "client": {
                "name": file.client.name(),
                "file": file.path.to_string_lossy(),
                "entry": done.entry,
                "diff": done.diff,
                "written": done.backup.is_some(),
                "backup": done.backup.as_ref().map(|path| path.to_string_lossy()),
            },
        });
        return Ok(app.out.json(&report)?);
    }
    let paint = app.out.paint;
    writeln!(
        app.out,
        "{} {}",
        paint.good("✓"),
        paint.strong(inert::path(&done.config))
    )?;
    for one in &done.tried {
        let called = inert::line(&one.draft.called, 40);
        match one.problem() {
            None => writeln!(app.out, "  {called}: {}", sums(one))?,
            Some(why) => {
                let line = format!("  {called} is not in force: {}", inert::line(&why, 400));
                writeln!(app.out, "{}", paint.warn(line))?;
            }
        }
        for note in &one.draft.notes {
            writeln!(
                app.out,
                "  {}",
                paint.dim(format!("{called}: {}", inert::whole(note)))
            )?;
        }
    }
    writeln!(app.out, "  log key: {}", inert::path(&done.log_key))?;
    writeln!(
        app.out,
        "\n{}",
        paint.strong(format!(
            "{}, {}:",
            file.client.name(),
            inert::path(&file.path)
        ))
    )?;
    write!(app.out, "{}", done.diff)?;
    match &done.backup {
        Some(backup) => {
            let line = format!("✓ changed; as it was: {}", inert::path(backup));
            writeln!(app.out, "{}", paint.good(line))?;
        }
        None if args.write => app.note("nothing is in force, so the client was left as it is"),
        None => app.note("this is the change to make; --write makes it"),
    }
    writeln!(
        app.out,
        "\nThen:\n  lodestar approve keygen --name NAME   a key for whoever may approve what waits\n  lodestar tools review                 look at what the servers offer, and accept it\n  lodestar doctor                       see what is enforced, and what is not"
    )?;
    Ok(())
}

fn sums(one: &Tried) -> String {
    let tools = one.tools();
    let on = |rung: Option<Rung>| {
        tools
            .iter()
            .filter(|tool| tool.proposal.rung == rung)
            .count()
    };
    let mut parts = Vec::new();
    for (rung, words) in [
        (Some(Rung::L1), "on L1"),
        (Some(Rung::L3), "on L3"),
        (Some(Rung::L5), "switched off"),
        (None, "ungraded, held"),
    ] {
        if on(rung) > 0 {
            parts.push(format!("{} {words}", on(rung)));
        }
    }
    let count = words::count(tools.len() as u64, "tool");
    match parts.is_empty() {
        true => count,
        false => format!("{count}: {}", parts.join(", ")),
    }
}
