//! `lodestar run attest`

use std::io::Write as _;

use clap::Args;
use lodestar_core::id::RunId;
use lodestar_gateway::device::DeviceFolder;
use lodestar_gateway::run::{FinishError, Finished, RunBook, RunRecord, Stage, finish};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, OTHER_KEY, wait};
use crate::inert;
use crate::installation::Installation;
use crate::place::SessionName;

const AFTER_HELP: &str = "\
A run is attested by the session that it was, which has to be closed. Without a run, all are attested
whose sessions were opened here, are over, and were not attested yet. What was done is not done twice,
and what the gateway says is kept beside the session's log, where the trust report finds it. Exits
with 1 if one could not be attested.

Examples:
  lodestar run attest
  lodestar run attest run_0198c1d2-0000-7000-8000-000000000000
  lodestar run attest run_0198c1d2-0000-7000-8000-000000000000 --session latest";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AttestArgs {
    /// The run [default: all that wait for it]
    run: Option<RunId>,

    /// The session that the run was: its id, the beginning of it, or `latest` [default: the one that
    /// was opened as it]
    #[arg(long, value_name = "SESSION", requires = "run")]
    session: Option<String>,

    /// Look for it only in this project
    #[arg(long, value_name = "PROJECT", requires = "session")]
    project: Option<String>,

    #[command(flatten)]
    dir: DeviceDirArgs,
}

pub(crate) fn run(args: &AttestArgs, app: &mut App) -> Result<Exit, Failure> {
    let folder = args.dir.folder()?;
    match args.run {
        Some(id) => one(id, args, &folder, app),
        None => all(&folder, app),
    }
}

/// All that wait for it. One whose session goes on does not, nor one that another process ships.
fn all(folder: &DeviceFolder, app: &mut App) -> Result<Exit, Failure> {
    let records = RunBook::of(folder).list()?.into_iter();
    let opened: Vec<_> = records.filter(|it| it.stage == Stage::Opened).collect();
    let (mut waiting, live): (Vec<_>, Vec<_>) = opened.into_iter().partition(RunRecord::is_waiting);
    for record in &live {
        app.note(format!("the session of {} goes on", record.ticket.id));
    }
    if waiting.is_empty() {
        app.note("no run waits to be attested");
        return Ok(Exit::Done);
    }
    let key = Installation::locate()?.log_secret()?;
    let client = folder.client()?;
    let mut exit = Exit::Done;
    for record in &mut waiting {
        match wait(finish(folder, &client, record, &key))? {
            Err(problem @ (FinishError::Live(_) | FinishError::Busy | FinishError::Attested)) => {
                app.note(format!("{}: {problem}", record.ticket.id))
            }
            done => {
                if done.is_err() {
                    exit = Exit::CheckFailed;
                }
                print(record, done, app)?;
            }
        }
    }
    Ok(exit)
}

/// The one that is named.
fn one(
    id: RunId,
    args: &AttestArgs,
    folder: &DeviceFolder,
    app: &mut App,
) -> Result<Exit, Failure> {
    let record = RunBook::of(folder).get(id)?;
    let mut record = record.ok_or_else(|| {
        Failure::not_found(format!("this device registered no run `{id}`"))
            .help("`lodestar run list --here` shows those that it did")
    })?;
    if record.stage == Stage::Attested {
        return already(&record, app);
    }
    if let Some(name) = &args.session {
        let name = SessionName::parse(name)?;
        let place = app.place(args.project.as_deref())?;
        let dir = place.readable_session(&name)?;
        record.was(&dir).map_err(|problem| failure(&problem))?;
    }
    let key = Installation::locate()?.log_secret()?;
    let client = folder.client()?;
    match wait(finish(folder, &client, &mut record, &key))? {
        Err(FinishError::Attested) => already(&record, app),
        Err(problem) => Err(failure(&problem)),
        done => {
            print(&record, done, app)?;
            Ok(Exit::Done)
        }
    }
}

/// What was done is not done twice.
fn already(record: &RunRecord, app: &mut App) -> Result<Exit, Failure> {
    let id = record.ticket.id;
    if app.json {
        app.out
            .json(&json!({"run": id, "already_attested": true, "level": record.level}))?;
        return Ok(Exit::Done);
    }
    let level = record.level.map(|level| format!("  {level}"));
    let mark = app.out.paint.good("✓");
    writeln!(
        app.out,
        "{mark} {id}{}, attested before",
        level.unwrap_or_default()
    )?;
    Ok(Exit::Done)
}

fn print(
    record: &RunRecord,
    done: Result<Finished, FinishError>,
    app: &mut App,
) -> Result<(), Failure> {
    let id = record.ticket.id;
    if app.json {
        return Ok(app.out.json(&match done {
            Ok(finished) => json!({
                "run": id,
                "attested": finished.attested,
                "grade": finished.grade.to_string_lossy(),
            }),
            Err(problem) => json!({"run": id, "problem": problem.to_string()}),
        })?);
    }
    let paint = app.out.paint;
    match done {
        Ok(finished) => {
            let evaluation = &finished.attested.evaluation;
            let level = paint.strong(evaluation.level);
            writeln!(
                app.out,
                "{} {id}  {level}, the gateway says",
                paint.good("✓")
            )?;
            super::print_facts(evaluation, &mut app.out)?;
            if let Some(reason) = &finished.attested.found.reason {
                writeln!(app.out, "  {}", inert::whole(reason))?;
            }
        }
        Err(problem) => {
            let why = inert::whole(&problem.to_string());
            writeln!(app.out, "{} {id}  {why}", paint.bad("✗"))?;
        }
    }
    Ok(())
}

fn failure(problem: &FinishError) -> Failure {
    let text = problem.to_string();
    match problem {
        FinishError::NoSession => Failure::not_found(text).help("name the session with --session"),
        FinishError::Stopped(_) | FinishError::OtherLogKey => Failure::not_authorised(text),
        FinishError::OtherKey(_) => Failure::not_authorised(text).help(OTHER_KEY),
        FinishError::OtherRun { .. } | FinishError::Pack(_) | FinishError::DoesNotFollow { .. } => {
            Failure::check(text)
        }
        _ if problem.may_pass() => Failure::usage(text).help("try again later; nothing is lost"),
        _ => Failure::check(text),
    }
}
