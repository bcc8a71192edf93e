//! `lodestar demo`: what the event log proves, on a session made for it.
//!
//! Everything that is printed comes out of the calls the other commands make, on real files.

mod checks;
mod session;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lodestar_log::{LogRoot, Trust};
use serde_json::json;

use self::checks::Check;
use self::session::{HOSTILE, Told};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::inert;
use crate::installation::Installation;
use crate::output::Out;

const AFTER_HELP: &str = "\
Works in a scratch folder with a scratch key, and touches nothing else. It shows the event log
alone: the command writes the events itself, no agent, proxy or tool takes part.

Examples:
  lodestar demo
  lodestar demo --keep /tmp/lodestar-demo";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DemoArgs {
    /// Work in this folder, which must be new or empty, and leave it there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
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
    let installation = Installation::at(folder.join("config"));
    let key = installation.create_log_key()?;
    let trust = Trust::only(key.public());
    let told = session::tell(&LogRoot::in_folder(&folder), Arc::new(key))?;
    let checks = checks::all(&folder, &told, &trust)?;
    let passed = checks.iter().all(|check| check.passed);
    if app.json {
        app.out.json(&json!({
            "passed": passed,
            "events": told.checkpoint.size,
            "checks": checks,
            "kept": args.keep.as_ref().map(|dir| dir.to_string_lossy()),
        }))?;
    } else {
        print(&told, &checks, &mut app.out)?;
        print_further(args.keep.as_deref(), &mut app.out)?;
    }
    Ok(if passed {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
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

fn print(told: &Told, checks: &[Check], out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    writeln!(
        out,
        "{}",
        paint.strong("The event log, on a scratch session")
    )?;
    writeln!(
        out,
        "It tells of an agent that is to summarise a file. The file has other plans for it:"
    )?;
    writeln!(out, "  {}", paint.warn(inert::whole(HOSTILE)))?;
    writeln!(
        out,
        "What it read, what was decided and what was refused are {} events in one log.",
        told.checkpoint.size
    )?;
    writeln!(out)?;
    for check in checks {
        let mark = match check.passed {
            true => paint.good("✓"),
            false => paint.bad("✗"),
        };
        let name = paint.strong(format!("{:<12}", check.name));
        writeln!(out, "{mark} {name} {}", inert::whole(&check.claim))?;
        for line in &check.seen {
            writeln!(out, "{:15}{}", "", paint.dim(inert::whole(line)))?;
        }
    }
    let (good, all) = (checks.iter().filter(|c| c.passed).count(), checks.len());
    let verdict = format!("[log verdict] {good} of {all} checks passed");
    let verdict = match good == all {
        true => paint.good(format!("{verdict} ✓")),
        false => paint.bad(format!("{verdict} ✗")),
    };
    writeln!(out, "\n{verdict}")?;
    writeln!(
        out,
        "{}",
        paint.dim(
            "This shows the log alone: the events were written by this command, not by a proxy."
        )
    )?;
    Ok(())
}

fn print_further(kept: Option<&Path>, out: &mut Out) -> Result<(), Failure> {
    let Some(dir) = kept else {
        writeln!(out, "\nTo look further: lodestar demo --keep DIR")?;
        return Ok(());
    };
    // The commands are to work from anywhere.
    let dir = &std::path::absolute(dir).map_err(Failure::io(dir))?;
    let config = for_shell(&dir.join("config"));
    let lodestar = own_command();
    writeln!(out, "\nTo look further:")?;
    writeln!(out, "  export LODESTAR_CONFIG_DIR={config}")?;
    writeln!(out, "  {lodestar} --root {} log show", for_shell(dir))?;
    writeln!(out, "  {lodestar} --root {} log verify", for_shell(dir))?;
    for copy in [checks::ONE_BIT, checks::DELETED] {
        writeln!(
            out,
            "  {lodestar} --root {} log verify",
            for_shell(&dir.join(copy))
        )?;
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
