//! `lodestar hook status`: where hooks are installed, and whether they are as they were put in.

use std::io::Write as _;

use clap::Args;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::settings::State;
use lodestar_guard::hook::settings::file::Settings;
use serde_json::json;

use super::{Scope, program, refused};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::inert;

const AFTER_HELP: &str = "\
Looks into the settings of every client, of this project and of the home folder. Hooks that were changed since
they were put in, or that run another program, are told, and make exit code 1.

Examples:
  lodestar hook status
  lodestar hook status --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StatusArgs {}

pub(crate) fn run(_args: &StatusArgs, app: &mut App) -> Result<Exit, Failure> {
    let program = program()?;
    let mut exit = Exit::Done;
    let mut rows = Vec::new();
    for client in Client::ALL {
        for scope in [Scope::Project, Scope::User] {
            let settings = Settings::of(client, &scope.folder(app)?);
            let state = settings.state(&program).map_err(refused);
            let word = match &state {
                Ok(State::Absent) => "absent",
                Ok(State::Installed) => "installed",
                Ok(State::Changed) => "changed",
                Err(_) => "unreadable",
            };
            if matches!(state, Ok(State::Changed) | Err(_)) {
                exit = Exit::CheckFailed;
            }
            let problem = state.err().map(|problem| problem.message().to_owned());
            rows.push((client, scope, settings.file().to_owned(), word, problem));
        }
    }
    if app.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(client, scope, file, state, problem)| {
                json!({"client": client.name(), "scope": scope.name(), "file": file,
                    "state": state, "problem": problem})
            })
            .collect();
        app.out.json(&json!({"hooks": rows}))?;
        return Ok(exit);
    }
    for (client, scope, file, state, problem) in rows {
        let file = inert::path(&file);
        writeln!(
            app.out,
            "{:<12} {:<8} {state:<11} {file}",
            client.name(),
            scope.name()
        )?;
        if let Some(problem) = problem {
            writeln!(app.out, "  {problem}")?;
        }
    }
    Ok(exit)
}
