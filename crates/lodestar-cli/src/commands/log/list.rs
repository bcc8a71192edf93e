//! `lodestar log list`: from ledgers and checkpoints, without reading any session.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use clap::Args;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_core::time::Timestamp;
use lodestar_log::verify::is_live;
use lodestar_log::{Ledger, LedgerState, ProblemKind, ProjectLog, SessionDir, SessionFacts, Trust};
use serde::Serialize;
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::{files, inert, words};

const AFTER_HELP: &str = "\
Nothing is verified here; `lodestar log verify` does that. The number of events of a session that
is not closed is the one its last checkpoint covers, and there may be more.

Examples:
  lodestar log list
  lodestar log list --project web --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ListArgs {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Live,
    Open,
    Closed,
    /// In the ledger, and not on disk.
    Missing,
    /// On disk, and not in the ledger.
    Unknown,
}

#[derive(Debug, Serialize)]
struct Row {
    project: String,
    session: String,
    state: State,
    /// `None` where neither ledger nor checkpoint tells.
    events: Option<u64>,
    events_exact: bool,
    opened: Option<Timestamp>,
    bytes: u64,
}

pub(crate) fn run(project: Option<&str>, app: &mut App) -> Result<Exit, Failure> {
    let place = app.place(project)?;
    let mut rows = Vec::new();
    let mut warnings = Vec::new();
    for log in &place.projects {
        rows.extend(rows_of(log, &mut warnings)?);
    }
    // The ones no ledger knows come last; nobody can say when they were opened.
    rows.sort_by_key(|row| (row.opened.is_none(), row.opened));
    if app.json {
        app.out.json(&json!({
            "root": place.folder.to_string_lossy(),
            "sessions": rows,
            "warnings": warnings,
        }))?;
    } else {
        for warning in &warnings {
            let _ = writeln!(std::io::stderr(), "warning: {}", inert::whole(warning));
        }
        print(&rows, &mut app.out)?;
    }
    Ok(Exit::Done)
}

fn rows_of(log: &ProjectLog, warnings: &mut Vec<String>) -> Result<Vec<Row>, Failure> {
    let (ledger, problems) = Ledger::read(log, &Trust::default(), &BTreeSet::new())
        .map_err(Failure::io(log.ledger_path()))?;
    // Without a key no signature verifies; everything else would show with one, too.
    let for_want_of_a_key =
        |kind: &ProblemKind| matches!(kind, ProblemKind::CheckpointInvalid { .. });
    if let Some(problem) = problems.iter().find(|p| !for_want_of_a_key(&p.kind)) {
        warnings.push(format!(
            "the ledger of `{}` is damaged, and this list may be wrong: {problem}",
            log.project()
        ));
    }
    let mut rows = Vec::new();
    for (session, facts) in ledger.sessions() {
        rows.push(row(&log.session(session), Some(facts))?);
    }
    let on_disk = log.sessions_on_disk().map_err(Failure::io(log.dir()))?;
    for session in on_disk.iter().filter(|s| ledger.session(s).is_none()) {
        rows.push(row(&log.session(session), None)?);
    }
    Ok(rows)
}

fn row(dir: &SessionDir, facts: Option<&SessionFacts>) -> Result<Row, Failure> {
    let closing = match facts.map(|facts| &facts.state) {
        Some(LedgerState::Closed(checkpoint)) => Some(checkpoint.size),
        _ => None,
    };
    let there = dir.dir().is_dir();
    let state = match facts {
        _ if there && is_live(dir).map_err(Failure::io(dir.dir()))? => State::Live,
        None => State::Unknown,
        Some(_) if !there => State::Missing,
        Some(_) if closing.is_some() => State::Closed,
        Some(_) => State::Open,
    };
    let events_exact = state == State::Closed;
    Ok(Row {
        project: dir.project().to_string(),
        session: dir.session().to_string(),
        state,
        events: closing.or_else(|| checkpoint_size(dir)),
        events_exact,
        opened: facts.map(|facts| facts.opened_at),
        bytes: size_on_disk(dir.dir()),
    })
}

/// As the checkpoint says, unchecked.
fn checkpoint_size(dir: &SessionDir) -> Option<u64> {
    let note = Note::parse(&files::read(&dir.checkpoint_path(), files::SMALL).ok()?).ok()?;
    Some(Checkpoint::parse_body(note.text()).ok()?.size)
}

/// The session's files and those one level below; links are not followed.
fn size_on_disk(dir: &Path) -> u64 {
    fn below(dir: &Path, levels: u8) -> u64 {
        let Ok(entries) = std::fs::read_dir(dir) else {
            return 0;
        };
        let sizes = entries.flatten().map(|entry| match entry.metadata() {
            Ok(m) if m.is_file() => m.len(),
            Ok(m) if m.is_dir() && levels > 0 => below(&entry.path(), levels - 1),
            _ => 0,
        });
        sizes.sum()
    }
    below(dir, 1)
}

fn print(rows: &[Row], out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let widest = |of: fn(&Row) -> &str, title: &str| {
        let longest = rows.iter().map(|row| of(row).len()).max();
        longest.unwrap_or(0).max(title.len())
    };
    let projects = widest(|row| &row.project, "PROJECT");
    let sessions = widest(|row| &row.session, "SESSION");
    let title = format!(
        "{:<projects$}  {:<sessions$}  {:<7}  {:>11}  {:<19}  {:>10}",
        "PROJECT", "SESSION", "STATE", "EVENTS", "OPENED (UTC)", "SIZE"
    );
    writeln!(out, "{}", paint.dim(title.trim_end()))?;
    for row in rows {
        let events = match (row.events, row.events_exact) {
            (None, _) => "?".to_owned(),
            (Some(n), true) => words::number(n),
            (Some(n), false) => format!("{}+", words::number(n)),
        };
        let opened = row.opened.map_or_else(|| "?".to_owned(), words::seconds);
        writeln!(
            out,
            "{:<projects$}  {:<sessions$}  {}  {events:>11}  {opened:<19}  {:>10}",
            inert::whole(&row.project),
            inert::whole(&row.session),
            painted_state(row.state, paint),
            words::bytes(row.bytes),
        )?;
    }
    Ok(())
}

fn painted_state(state: State, paint: crate::paint::Paint) -> String {
    match state {
        State::Live => paint.accent("live   "),
        State::Open => paint.warn("open   "),
        State::Closed => paint.good("closed "),
        State::Missing => paint.bad("missing"),
        State::Unknown => paint.bad("unknown"),
    }
}
