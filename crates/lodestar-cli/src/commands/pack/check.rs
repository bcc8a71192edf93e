//! `lodestar pack check`: what is wrong with a pack, with line and column. Nothing of it runs.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_harness::pack::OutsidePack;
use serde_json::json;

use super::shown_problem;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::{inert, words};

const AFTER_HELP: &str = "\
A pack with problems exits with 1. Whose it is is another question: `lodestar pack verify`.

Examples:
  lodestar pack check my-pack
  lodestar --json pack check my-pack";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CheckArgs {
    /// The pack's folder
    folder: PathBuf,
}

pub(crate) fn run(args: &CheckArgs, app: &mut App) -> Result<Exit, Failure> {
    let (pack, problems) = match OutsidePack::read(&args.folder) {
        Ok(pack) => (Some(pack), Vec::new()),
        Err(problems) => (None, problems),
    };
    if app.json {
        let scenarios = pack.as_ref().map(|pack| {
            let names = pack.scenarios().iter().map(|one| one.name.clone());
            names.collect::<Vec<_>>()
        });
        app.out.json(&json!({
            "passed": problems.is_empty(),
            "pack": pack.as_ref().map(|pack| &pack.about),
            "scenarios": scenarios,
            "problems": problems,
        }))?;
    } else {
        let folder = inert::path(&args.folder);
        let paint = app.out.paint;
        for problem in &problems {
            writeln!(app.out, "{}", shown_problem(problem))?;
        }
        let line = match &pack {
            Some(pack) => {
                let scenarios = words::count(pack.scenarios().len() as u64, "scenario");
                paint.good(format!("✓ {folder}: {scenarios}, nothing wrong"))
            }
            None => {
                let problems = words::count(problems.len() as u64, "problem");
                paint.bad(format!("✗ {folder}: {problems}"))
            }
        };
        writeln!(app.out, "{line}")?;
    }
    Ok(match pack {
        Some(_) => Exit::Done,
        None => Exit::CheckFailed,
    })
}
