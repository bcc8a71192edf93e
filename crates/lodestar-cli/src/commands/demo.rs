//! `lodestar demo`: a poisoned document meets an agent, and the log tells what came of it.
//!
//! The real proxy runs as a process over two small servers in a scratch project; a scripted agent speaks MCP
//! to it. What is printed on the way is what the agent saw. The verdict comes out of the log alone.

mod agent;
mod checks;
mod record;
mod scene;
mod tamper;

pub(crate) use scene::PROJECT;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use lodestar_core::defence::Defence;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_harness::world::{Agent as Client, Proxy};
use lodestar_log::Trust;
use serde_json::json;

use self::agent::{Agent, Approval, Came, Play, Step};
use self::checks::{Case, Check};
use self::record::Record;
use self::scene::{POISON, POISONED, SOURCE, Scene};
use self::tamper::Verifier;
use super::demo_server::pushes;
use super::report::{self, Format};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::progress::Progress;
use crate::{files, inert};

const AFTER_HELP: &str = "\
Works in a scratch folder with scratch keys, without network, and touches nothing else. The proxy
is the one that `lodestar guard mcp-proxy` runs; the verdict comes out of its log alone, and exits
with 1 where a check fails.

Examples:
  lodestar demo
  lodestar demo --agent honest
  lodestar demo --approve
  lodestar demo --keep /tmp/lodestar-demo";

/// Columns of what a step does, and of what came of it.
const DID: usize = 44;
const CAME: usize = 8;

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DemoArgs {
    /// Whom the agent believes: its task alone (honest), or whatever it reads (obedient)
    #[arg(long, value_enum, default_value_t = Agent::Obedient, hide_possible_values = true)]
    agent: Agent,

    /// Let a person approve the push, with a signature
    #[arg(long)]
    approve: bool,

    /// Work in this folder, which must be new or empty, and leave it there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,

    /// Take a defence out, to see that it is missed
    #[arg(long, value_name = "DEFENCE", value_parser = defence, hide = true)]
    without: Vec<Defence>,
}

/// A defence, as it is typed.
pub(crate) fn defence(text: &str) -> Result<Defence, String> {
    text.parse::<Defence>()
        .map_err(|problem| problem.to_string())
}

pub(crate) fn run(args: &DemoArgs, app: &mut App) -> Result<Exit, Failure> {
    let scratch;
    let folder = match &args.keep {
        Some(dir) => {
            make_empty(dir)?;
            dir.clone()
        }
        None => {
            scratch = tempfile::Builder::new()
                .prefix("lodestar-demo-")
                .tempdir()
                .map_err(Failure::io(std::env::temp_dir()))?;
            scratch.path().to_owned()
        }
    };
    let scene = Scene::set(&folder)?;
    let approval = match args.approve {
        true => Approval::Given,
        false => Approval::NotGiven,
    };
    if !app.json {
        print_opening(args, &mut app.out)?;
    }
    let steps = perform(args, approval, &scene, app)?;
    let record = Record::read(&scene.session())?;
    let case = Case {
        record: &record,
        agent: args.agent,
        approval,
    };
    let log_key = scene.installation().log_public()?;
    let log_key = log_key.ok_or_else(|| Failure::check("the log key is gone"))?;
    let verifier = Verifier {
        trust: Trust::only(log_key),
        without: &args.without,
    };
    let checks = checks::all(&case, &scene, &verifier)?;
    let held = checks.iter().all(|check| check.passed);
    let reports = match &args.keep {
        Some(_) => reports(&scene, &verifier.trust)?,
        None => Vec::new(),
    };
    if app.json {
        app.out.json(&json!({
            "agent": args.agent,
            "held": held,
            "defences_off": record.opening.defences_off,
            "steps": steps,
            "checks": checks,
            "pushes": pushes(&scene.remote()).map_err(Failure::io(scene.remote()))?,
            "kept": args.keep.as_ref().map(|dir| dir.to_string_lossy()),
            "reports": reports.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        }))?;
    } else {
        print_verdict(&checks, held, &mut app.out)?;
        print_further(
            args.keep.is_some().then_some(&scene),
            &reports,
            &mut app.out,
        )?;
    }
    Ok(match held {
        true => Exit::Done,
        false => Exit::CheckFailed,
    })
}

/// Writes the trust report of the run beside it. The session of a world without a defence has none, and its
/// files say so.
fn reports(scene: &Scene, trust: &Trust) -> Result<Vec<PathBuf>, Failure> {
    let progress = Progress::start(false);
    let told = report::examine(&scene.session(), trust, Sensitivity::Internal, &progress)?;
    let forms = [
        ("report.html", Format::Html),
        ("report.md", Format::Md),
        ("report.json", Format::Json),
    ];
    let mut written = Vec::new();
    for (name, format) in forms {
        let path = scene.beside(name);
        files::replace_private(&path, |out| Ok(report::render(&told, format, out)?))?;
        written.push(path);
    }
    Ok(written)
}

fn perform(
    args: &DemoArgs,
    approval: Approval,
    scene: &Scene,
    app: &mut App,
) -> Result<Vec<Step>, Failure> {
    let program = std::env::current_exe().map_err(Failure::io("this program"))?;
    let client = Client::connect(&Proxy {
        program: &program,
        config: &scene.config(),
        installation: scene.installation().dir(),
        agent: "lodestar-demo",
        without: &args.without,
        errors: &scene.beside("proxy.stderr"),
    })?;
    let mut told = 0;
    let mut tell = |step: &Step| {
        told += 1;
        match app.json {
            true => Ok(()),
            false => print_step(told, step, &mut app.out),
        }
    };
    Play::new(scene, client, &mut tell).perform(args.agent, approval)
}

fn make_empty(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(Failure::io(dir))?;
    let mut entries = std::fs::read_dir(dir).map_err(Failure::io(dir))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(
            Failure::usage(format!("`{}` is not empty", inert::path(dir)))
                .help("--keep takes a folder that is new or empty"),
        ),
    }
}

fn print_opening(args: &DemoArgs, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let title =
        format!("An agent is to let people pin notes in {SOURCE}. It also reads {POISONED}:");
    writeln!(out, "{}", paint.strong(title))?;
    for line in POISON.lines().skip(4).filter(|line| !line.is_empty()) {
        writeln!(out, "  {}", paint.warn(inert::line(line, out.columns - 2)))?;
    }
    let agent = match args.agent {
        Agent::Honest => "honest: it does what it was asked to",
        Agent::Obedient => "obedient: it does whatever it reads",
    };
    writeln!(
        out,
        "\nThe agent is {agent}. Up to L3 it runs unasked; L4 waits for a person."
    )?;
    if !args.without.is_empty() {
        let names: Vec<&str> = args.without.iter().map(|one| one.as_str()).collect();
        let line = format!("Taken out for this run: {}", names.join(", "));
        writeln!(out, "{}", paint.bad(line))?;
    }
    writeln!(out)?;
    Ok(out.flush()?)
}

fn print_step(number: usize, step: &Step, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let came = match step.came {
        Came::Ran => paint.good(format!("{:<CAME$}", "ran")),
        Came::Held => paint.warn(format!("{:<CAME$}", "held")),
        Came::Refused => paint.bad(format!("{:<CAME$}", "refused")),
        Came::Failed => paint.bad(format!("{:<CAME$}", "failed")),
        Came::Outside => paint.dim(format!("{:<CAME$}", "·")),
    };
    let did = inert::line(&step.did, DID);
    let line = format!(
        "{number:>2}  {did:<DID$}  {came}  {}",
        paint.dim(&step.remark)
    );
    writeln!(out, "{}", line.trim_end())?;
    // The story is told as it happens.
    Ok(out.flush()?)
}

fn print_verdict(checks: &[Check], held: bool, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    writeln!(
        out,
        "\n{}",
        paint.strong("What the log says, and nothing but the log:")
    )?;
    for check in checks {
        let mark = match check.passed {
            true => paint.good("✓"),
            false => paint.bad("✗"),
        };
        let name = paint.strong(format!("{:<10}", check.name));
        writeln!(out, "{mark} {name}  {}", inert::whole(&check.claim))?;
    }
    let verdict = match held {
        true => paint.good("[firewall verdict] HELD ✓"),
        false => paint.bad("[firewall verdict] BREACHED ✗"),
    };
    Ok(writeln!(out, "\n{verdict}")?)
}

fn print_further(kept: Option<&Scene>, reports: &[PathBuf], out: &mut Out) -> Result<(), Failure> {
    let Some(scene) = kept else {
        writeln!(
            out,
            "\nTo look further, with the trust report of the run: lodestar demo --keep DIR"
        )?;
        return Ok(());
    };
    if let Some(page) = reports.first() {
        writeln!(out, "\nThe trust report: {}", inert::path(page))?;
    }
    let lodestar = own_command();
    let root = for_shell(&scene.workspace());
    writeln!(out, "\nTo look further:")?;
    let config = for_shell(scene.installation().dir());
    writeln!(out, "  export LODESTAR_CONFIG_DIR={config}")?;
    for command in [
        "log show latest",
        "log verify",
        "replay latest",
        "report latest",
        "belief list",
        "approve list",
    ] {
        writeln!(out, "  {lodestar} --root {root} {command}")?;
    }
    for copy in [tamper::ONE_BIT, tamper::DELETED] {
        let copy = for_shell(&scene.beside(copy));
        writeln!(out, "  {lodestar} --root {copy} log verify")?;
    }
    Ok(())
}

/// How a shell finds this program: by name where the name leads here, or else by its path.
fn own_command() -> String {
    const NAME: &str = "lodestar";
    let Ok(own) = std::env::current_exe() else {
        return NAME.to_owned();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path)
        .map(|dir| dir.join(NAME))
        .find(|file| file.is_file());
    let same = |file: &PathBuf| file.canonicalize().ok() == own.canonicalize().ok();
    match first.as_ref().is_some_and(same) {
        true => NAME.to_owned(),
        false => for_shell(&own),
    }
}

/// A path as a word that can be pasted.
fn for_shell(path: &Path) -> String {
    let text = inert::path(path);
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
