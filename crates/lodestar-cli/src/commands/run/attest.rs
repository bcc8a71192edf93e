//! `lodestar run attest`

use std::io::Write as _;

use clap::Args;
use lodestar_core::id::RunId;
use lodestar_gateway::run::{FinishError, Finished, Place, RunBook, RunRecord, Stage, finish};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, wait};
use crate::inert;
use crate::installation::Installation;
use crate::place::SessionName;

const AFTER_HELP: &str = "\
A run is attested by the session that it was, which has to be closed. Without a run, all are attested
whose sessions were opened here and that were not yet. What was done is not done twice, and what the
gateway says is kept beside the session's log, where the trust report finds it. Exits with 1 if one
could not be attested.

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
    let book = RunBook::of(&folder);
    let mut records = match args.run {
        None => {
            let all = book.list()?.into_iter();
            all.filter(|record| record.stage == Stage::Opened).collect()
        }
        Some(id) => {
            let record = book.get(id)?.ok_or_else(|| {
                Failure::not_found(format!("this device registered no run `{id}`"))
                    .help("`lodestar run list --here` shows those that it did")
            })?;
            vec![record]
        }
    };
    if let (Some(name), [record]) = (&args.session, records.as_mut_slice()) {
        let name = SessionName::parse(name)?;
        let place = app.place(args.project.as_deref())?;
        let dir = place.readable_session(&name)?;
        record.session = Some(Place::of(&dir));
    }
    if records.is_empty() {
        app.note("no run waits to be attested");
        return Ok(Exit::Done);
    }
    let key = Installation::locate()?.log_secret()?;
    let client = folder.client()?;
    let mut exit = Exit::Done;
    for record in &mut records {
        let done = wait(finish(&folder, &client, record, &key))?;
        if let (Err(problem), Some(_)) = (&done, args.run) {
            return Err(failure(problem));
        }
        if done.is_err() {
            exit = Exit::CheckFailed;
        }
        print(record, done, app)?;
    }
    Ok(exit)
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
        FinishError::OtherRun { .. } | FinishError::Pack(_) | FinishError::DoesNotFollow { .. } => {
            Failure::check(text)
        }
        _ if problem.may_pass() => Failure::usage(text).help("try again later; nothing is lost"),
        _ => Failure::check(text),
    }
}
