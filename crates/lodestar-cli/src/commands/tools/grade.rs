//! `lodestar tools grade`: the operator's word on a tool, as a table of the configuration.

mod edit;

use std::io::Write as _;
use std::path::Path;

use clap::Args;
use lodestar_core::contract::{BlastRadius, Contract, Reversibility, Sandbox};
use lodestar_core::ladder::Rung;
use lodestar_core::name::ToolName;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_kernel::grade::Grade;
use serde_json::json;

use crate::cli::App;
use crate::configured::{ConfigArgs, Configured, FILE, Tooling};
use crate::failure::{Exit, Failure};
use crate::inert;

const AFTER_HELP: &str = "\
Without --write the table is printed, to be put into the configuration. With it, the table is
written: what is said here is set, what else the table says stays, and the rest of the file stays as
it is to the byte. A tool's own minimum is a floor on every field; what goes below it is refused and
exits with 1.

Examples:
  lodestar tools grade fs.write --level L3
  lodestar tools grade http.fetch --level L2 --sensitivity private --write
  lodestar tools grade mcp.files.write_file --level L3 --sandbox write-local --write
  lodestar tools grade crm.lookup --level L1 --unlisted --write";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct GradeArgs {
    /// The tool
    name: String,

    /// The rung: L0 to L4, or L5 to prohibit it
    #[arg(long, value_name = "RUNG")]
    level: Rung,

    /// How far its effects go: self, session, project, external
    #[arg(long, value_name = "REACH")]
    blast_radius: Option<BlastRadius>,

    /// Whether they can be undone: reversible, compensable, irreversible
    #[arg(long, value_name = "WORD")]
    reversibility: Option<Reversibility>,

    /// What data it handles: public, private, secret
    #[arg(long, value_name = "WORD")]
    sensitivity: Option<DataSensitivity>,

    /// How it is contained: read, write-isolated, write-local, controlled-shell, controlled-network. A server has what
    /// all of its tools have
    #[arg(long, value_name = "PROFILE")]
    sandbox: Option<Sandbox>,

    /// A group that policies can name; may be given several times
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,

    /// Put it into the configuration
    #[arg(long)]
    write: bool,

    /// Grade a tool that is not in the box: one that a program or a server brings
    #[arg(long)]
    unlisted: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

pub(crate) fn run(args: &GradeArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = ToolName::new(&args.name)
        .map_err(|problem| Failure::usage(format!("this is no tool's name: {problem}")))?;
    let grade = Grade {
        required_trust_level: Some(args.level),
        blast_radius: args.blast_radius,
        reversibility: args.reversibility,
        data_sensitivity: args.sensitivity,
        sandbox: args.sandbox,
        groups: args.groups.iter().cloned().collect(),
        ..Grade::default()
    };
    let tooling = Tooling::find(&args.config, app)?;
    match tooling.registry.get(&name) {
        Some(entry) => check_floor(&name, &grade, &entry.definition().minimum)?,
        None if args.unlisted => {}
        None => return Err(unknown(&name, &tooling)),
    }
    let table = edit::table(&name, &grade);
    let written = match args.write {
        true => Some(write(&name, &grade, tooling.configured.as_ref())?),
        false => None,
    };
    if app.json {
        app.out.json(&json!({
            "tool": name,
            "grade": grade,
            "toml": table,
            "written": written.map(Path::to_string_lossy),
        }))?;
        return Ok(Exit::Done);
    }
    write!(app.out, "{}", inert::lines(&table))?;
    match written {
        Some(file) => {
            let line = format!("✓ written to {}", inert::path(file));
            writeln!(app.out, "{}", app.out.paint.good(line))?;
        }
        None => app.note(format!("put this into `{FILE}`, or let --write do it")),
    }
    Ok(Exit::Done)
}

/// Refuses what is laxer than the tool's own minimum, field by field.
fn check_floor(name: &ToolName, grade: &Grade, floor: &Contract) -> Result<(), Failure> {
    let mut below = Vec::new();
    let mut look = |field: &str, given: Option<String>, least: String| {
        if let Some(given) = given {
            below.push(format!("{field} `{given}` is below its floor `{least}`"));
        }
    };
    let level = grade
        .required_trust_level
        .filter(|given| *given < floor.required_level);
    look(
        "level",
        level.map(|one| one.to_string()),
        floor.required_level.to_string(),
    );
    let reach = grade
        .blast_radius
        .filter(|given| *given < floor.blast_radius);
    look(
        "blast radius",
        reach.map(|one| one.to_string()),
        floor.blast_radius.to_string(),
    );
    let undo = grade
        .reversibility
        .filter(|given| *given < floor.reversibility);
    look(
        "reversibility",
        undo.map(|one| one.to_string()),
        floor.reversibility.to_string(),
    );
    let data = grade
        .data_sensitivity
        .filter(|given| *given < floor.data_sensitivity);
    look(
        "sensitivity",
        data.map(|one| one.to_string()),
        floor.data_sensitivity.to_string(),
    );
    // The further along, the looser.
    let sandbox = grade.sandbox.filter(|given| *given > floor.sandbox);
    look(
        "sandbox",
        sandbox.map(|one| one.to_string()),
        floor.sandbox.to_string(),
    );
    match below.is_empty() {
        true => Ok(()),
        false => Err(
            Failure::check(format!("tool `{}`: {}", name.shown(), below.join("; ")))
                .help("a grade can be stricter than the tool's own minimum, never laxer"),
        ),
    }
}

fn unknown(name: &ToolName, tooling: &Tooling) -> Failure {
    let names = tooling.registry.iter();
    let names: Vec<&str> = names
        .map(|entry| entry.definition().name.as_str())
        .collect();
    Failure::not_found(format!(
        "there is no tool `{}` among {}",
        name.shown(),
        tooling.origin()
    ))
    .help(format!(
        "there are: {}; --unlisted grades one that a program or a server brings",
        names.join(", ")
    ))
}

fn write<'a>(
    name: &ToolName,
    grade: &Grade,
    configured: Option<&'a Configured>,
) -> Result<&'a Path, Failure> {
    let configured = configured.ok_or_else(|| {
        Failure::not_found(format!("there is no `{FILE}` here to write to"))
            .help("name the configuration with --config")
    })?;
    edit::write(&configured.file, name, grade)?;
    Ok(&configured.file)
}
