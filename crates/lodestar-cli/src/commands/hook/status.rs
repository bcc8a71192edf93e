//! `lodestar hook status`: where hooks are installed, and whether they are as they were put in.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::settings::State;
use lodestar_guard::hook::settings::file::Settings;
use lodestar_guard::hook::settings::switch::{Off, switched_off};
use serde_json::{Value, json};

use super::{Scope, program, refused};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::inert;

const AFTER_HELP: &str = "\
Looks into the settings of every client, of this project and of the home folder. Hooks that were changed since
they were put in, that run another program, or that some settings turn off, are told, and make exit code 1.

Examples:
  lodestar hook status
  lodestar hook status --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StatusArgs {}

/// How the hooks of a client stand in one of its settings.
struct Row {
    client: Client,
    scope: Scope,
    file: PathBuf,
    word: &'static str,
    problem: Option<String>,
    off: Vec<Off>,
}

pub(crate) fn run(_args: &StatusArgs, app: &mut App) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    for client in Client::ALL {
        for scope in [Scope::Project, Scope::User] {
            rows.push(row(client, scope, app)?);
        }
    }
    let is_well = |row: &Row| matches!(row.word, "absent" | "installed") && row.off.is_empty();
    let exit = match rows.iter().all(is_well) {
        true => Exit::Done,
        false => Exit::CheckFailed,
    };
    if app.json {
        let rows: Vec<_> = rows.iter().map(shown).collect();
        app.out.json(&json!({"hooks": rows}))?;
        return Ok(exit);
    }
    for row in rows {
        writeln!(
            app.out,
            "{:<12} {:<8} {:<11} {}",
            row.client.name(),
            row.scope.name(),
            row.word,
            inert::path(&row.file)
        )?;
        if let Some(problem) = row.problem {
            writeln!(app.out, "  {problem}")?;
        }
        for off in row.off {
            let (file, why) = (inert::path(&off.file), inert::line(&off.why, 200));
            writeln!(app.out, "  they do not run: {why}, in `{file}`")?;
        }
    }
    Ok(exit)
}

fn row(client: Client, scope: Scope, app: &App) -> Result<Row, Failure> {
    let settings = Settings::of(client, &scope.folder(app)?);
    let state = settings.state(&program()?).map_err(refused);
    // What is not installed is turned off by nothing.
    let off = match state {
        Ok(State::Absent) | Err(_) => Vec::new(),
        Ok(_) => switched_off(
            client,
            &Scope::Project.folder(app)?,
            &Scope::User.folder(app)?,
        ),
    };
    let word = match &state {
        Ok(State::Absent) => "absent",
        Ok(State::Installed) if !off.is_empty() => "off",
        Ok(State::Installed) => "installed",
        Ok(State::Changed) => "changed",
        Err(_) => "unreadable",
    };
    Ok(Row {
        client,
        scope,
        file: settings.file().to_owned(),
        word,
        problem: state.err().map(|problem| problem.message().to_owned()),
        off,
    })
}

fn shown(row: &Row) -> Value {
    let off = row.off.iter();
    let off = off.map(|off| json!({"file": off.file, "why": off.why}));
    json!({
        "client": row.client.name(),
        "scope": row.scope.name(),
        "file": row.file,
        "state": row.word,
        "problem": row.problem,
        "off": off.collect::<Vec<_>>(),
    })
}
