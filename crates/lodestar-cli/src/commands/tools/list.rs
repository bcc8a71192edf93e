//! `lodestar tools list`: the tools, how far each may reach, and who graded it.

use std::collections::BTreeMap;
use std::io::Write as _;

use clap::Args;
use lodestar_core::scope::Scope;
use lodestar_guard::config::ConfigError;
use lodestar_guard::hook::{Client, registry};
use lodestar_kernel::opening::Opening;
use lodestar_kernel::registry::{GradedBy, ToolRecord};
use lodestar_log::{Reader, SessionDir};
use serde_json::{Value, json};

use crate::cli::App;
use crate::commands::hook::a_client;
use crate::commands::log::event::unreadable;
use crate::configured::{ConfigArgs, Configured, Tooling};
use crate::failure::{Exit, Failure};
use crate::pinned::State;
use crate::place::SessionName;
use crate::{inert, words};

const AFTER_HELP: &str = "\
A tool that nobody graded stands on L4: every call waits for a human. The grade of a tool in the box
is its own minimum, unless the configuration says something stricter. With --session, the tools are
those that a session was opened with, a program's own among them. With --client, they are those that
a client has built in, as hooks have them judged.

Examples:
  lodestar tools list
  lodestar tools list --config lodestar.toml --json
  lodestar tools list --session latest
  lodestar tools list --client claude-code";

/// The headings, in the order of [`cells`].
const HEADINGS: [&str; 8] = [
    "tool",
    "rung",
    "reach",
    "undo",
    "data",
    "sandbox",
    "graded by",
    "groups",
];

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// The tools of this session: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "SESSION", conflicts_with = "config")]
    session: Option<String>,

    /// The client's own tools, as its hooks have them judged
    #[arg(long, value_name = "CLIENT", conflicts_with = "session", value_parser = a_client())]
    client: Option<Client>,

    /// Look only at this project
    #[arg(long, value_name = "PROJECT", requires = "session")]
    project: Option<String>,
}

pub(crate) fn run(args: &ListArgs, app: &mut App) -> Result<Exit, Failure> {
    let (records, about, pinned) = match (&args.session, args.client) {
        (Some(session), _) => {
            let name = SessionName::parse(session)?;
            let dir = app
                .place(args.project.as_deref())?
                .readable_session(&name)?;
            let about = json!({"project": dir.project(), "session": dir.session()});
            (of_session(&dir)?, about, BTreeMap::new())
        }
        (None, Some(client)) => {
            let configured = args.config.find(app)?;
            let (grades, scope, file) = match configured {
                Some(Configured { file, config }) => {
                    let scope = config.scope().map_err(ConfigError::from)?;
                    (config.tool_defaults, scope, Some(file))
                }
                None => (BTreeMap::new(), Scope::global(), None),
            };
            let registry = registry(client, &grades, &scope)
                .map_err(|problem| Failure::usage(problem.to_string()))?;
            let about = json!({"client": client.name(), "config": file});
            (registry.records(), about, BTreeMap::new())
        }
        (None, None) => {
            let tooling = Tooling::find(&args.config, app)?;
            tooling.note(app);
            (
                tooling.registry.records(),
                tooling.json(),
                tooling.pinned.clone(),
            )
        }
    };
    let ungraded: Vec<&ToolRecord> = records
        .iter()
        .filter(|record| record.graded_by == GradedBy::Nobody)
        .collect();
    if app.json {
        let names: Vec<_> = ungraded.iter().map(|record| &record.shape.name).collect();
        app.out.json(&json!({
            "tools": records.iter().map(|record| row(record, &pinned)).collect::<Vec<_>>(),
            "ungraded": names,
            "from": about,
        }))?;
        return Ok(Exit::Done);
    }
    print(&records, app)?;
    let drifted = pinned.iter().filter(|(_, state)| **state == State::Drifted);
    for (name, _) in drifted {
        let line = format!(
            "! `{}` is not as pinned, and is refused",
            inert::line(name, 80)
        );
        writeln!(app.out, "{}", app.out.paint.warn(line))?;
    }
    let unreviewed = pinned.values().filter(|state| **state == State::Unreviewed);
    let unreviewed = unreviewed.count() as u64;
    if unreviewed > 0 {
        let count = words::count(unreviewed, "pinned tool");
        let line = format!("! nobody has looked at {count}");
        writeln!(app.out, "{}", app.out.paint.warn(line))?;
    }
    if pinned.values().any(|state| *state != State::Reviewed) {
        app.note("`lodestar tools review` shows what waits for a person");
    }
    for record in ungraded {
        let name = inert::line(record.shape.name.as_str(), 80);
        let line = format!("! nobody graded `{name}`: every call of it waits for a human");
        let line = app.out.paint.warn(line);
        writeln!(app.out, "{line}")?;
    }
    Ok(Exit::Done)
}

/// The tools that the opening event of a session names.
fn of_session(dir: &SessionDir) -> Result<Vec<ToolRecord>, Failure> {
    let mut reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
    let first = reader.next_event().map_err(|e| unreadable(dir, &e))?;
    let session = dir.session();
    let first =
        first.ok_or_else(|| Failure::check(format!("session `{session}` has no opening event")))?;
    let payload = first
        .whole(dir)
        .map_err(|problem| Failure::check(format!("{session}#0 cannot be read: {problem}")))?;
    let payload = payload.ok_or_else(|| {
        Failure::check(format!(
            "the opening event of session `{session}` was redacted: its tools are not known any more"
        ))
    })?;
    match serde_json::from_value::<Opening>(payload) {
        Ok(opening) => Ok(opening.tools),
        Err(_) => Err(Failure::not_found(format!(
            "session `{session}` has no tools: it is not one of an agent"
        ))),
    }
}

fn row(record: &ToolRecord, pinned: &BTreeMap<String, State>) -> Value {
    let contract = &record.contract;
    let state = pinned.get(record.shape.name.as_str());
    json!({
        "pin": state.map(|state| state.word()),
        "name": record.shape.name,
        "server": record.shape.server,
        "level": contract.required_level,
        "blast_radius": contract.blast_radius,
        "reversibility": contract.reversibility,
        "data_sensitivity": contract.data_sensitivity,
        "sandbox": contract.sandbox,
        "permissions": contract.permissions,
        "graded_by": record.graded_by,
        "groups": record.shape.groups,
        "definition": record.definition,
    })
}

fn cells(record: &ToolRecord) -> [String; 8] {
    let contract = &record.contract;
    let groups: Vec<&str> = record.shape.groups.iter().map(String::as_str).collect();
    [
        inert::line(record.shape.name.as_str(), 60),
        contract.required_level.to_string(),
        contract.blast_radius.to_string(),
        contract.reversibility.to_string(),
        contract.data_sensitivity.to_string(),
        contract.sandbox.to_string(),
        match record.graded_by {
            GradedBy::Operator => "operator",
            GradedBy::Box => "box",
            GradedBy::Nobody => "nobody: held",
        }
        .to_owned(),
        inert::line(&groups.join(", "), 60),
    ]
}

fn print(records: &[ToolRecord], app: &mut App) -> Result<(), Failure> {
    let rows: Vec<[String; 8]> = records.iter().map(cells).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().map(inert::width).sum());
        }
    }
    let line = |cells: &[String; 8]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| {
            let taken: usize = cell.chars().map(inert::width).sum();
            format!("{cell}{}", " ".repeat(width.saturating_sub(taken)))
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let paint = app.out.paint;
    writeln!(app.out, "{}", paint.dim(line(&HEADINGS.map(str::to_owned))))?;
    for (row, record) in rows.iter().zip(records) {
        let text = line(row);
        let text = match record.graded_by {
            GradedBy::Nobody => paint.warn(text),
            GradedBy::Operator | GradedBy::Box => text,
        };
        writeln!(app.out, "{text}")?;
    }
    let count = words::count(rows.len() as u64, "tool");
    Ok(writeln!(app.out, "{}", paint.dim(count))?)
}
