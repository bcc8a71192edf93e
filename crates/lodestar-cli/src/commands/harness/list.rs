//! `lodestar harness list`: what each probe shows, and what it does not.

use std::io::Write as _;

use clap::Args;
use lodestar_harness::{Header, Probe};
use serde_json::json;

use super::run::Selection;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::inert;
use crate::output::Out;

const AFTER_HELP: &str = "\
Beside each probe: its attack class, and the defence that its contrast run goes without.

Examples:
  lodestar harness list
  lodestar harness list --pack coding-agent-safety
  lodestar --json harness list";

/// As long as most names of probes.
const NAMES: usize = 52;

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    which: Selection,
}

pub(crate) fn run(args: &ListArgs, app: &mut App) -> Result<Exit, Failure> {
    let probes = args.which.probes()?.probes;
    if app.json {
        let headers: Vec<&Header> = probes.iter().map(|probe| &probe.header).collect();
        app.out.json(&json!({"probes": headers}))?;
        return Ok(Exit::Done);
    }
    let mut before = None;
    for Probe { header, .. } in &probes {
        let place = (header.pack.clone(), header.section);
        if before.as_ref() != Some(&place) {
            let heading = format!("{} · {}", header.pack, header.section);
            let gap = if before.is_some() { "\n" } else { "" };
            writeln!(
                app.out,
                "{gap}{}",
                app.out.paint.strong(inert::line(&heading, 100))
            )?;
            before = Some(place);
        }
        print(header, &mut app.out)?;
    }
    writeln!(app.out, "\n{} probes", probes.len())?;
    Ok(Exit::Done)
}

fn print(header: &Header, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let name = inert::line(&header.name, 60);
    let class = inert::line(&header.class.to_string(), 30);
    let about = format!("{class} · without {}", header.defence);
    // One row where both have room, two where they have not: nothing is wrapped by the terminal.
    let beside = 2 + NAMES + 1 + about.chars().count();
    if beside <= out.list_columns() {
        writeln!(out, "  {name:<NAMES$} {}", paint.dim(about))?;
    } else {
        writeln!(out, "  {name}\n      {}", paint.dim(about))?;
    }
    Ok(())
}

/// All that a probe says of itself.
pub(super) fn describe(header: &Header, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    writeln!(out, "{}", paint.strong(inert::line(&header.name, 100)))?;
    let rows = [
        ("pack", header.pack.to_string()),
        ("class", header.class.to_string()),
        ("scenario", header.scenario.to_string()),
        ("asserts", header.asserts.to_string()),
        ("does not claim", header.does_not_claim.to_string()),
        ("contrast", format!("the same without `{}`", header.defence)),
    ];
    for (name, text) in rows {
        writeln!(
            out,
            "  {} {}",
            paint.dim(format!("{name:<15}")),
            inert::lines(&text)
        )?;
    }
    Ok(())
}
