//! `lodestar replay`: does everything in a session follow from its log?

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_log::verify::{ProjectReport, VerifyOptions, verify_project};
use lodestar_log::{Problem, SessionDir, Trust};
use lodestar_replay::{Otherwise, SessionReplay, derive};
use serde_json::json;

use super::policy;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::place::SessionName;
use crate::progress::Progress;
use crate::trust::{self, LogKeys};
use crate::{inert, words};

const AFTER_HELP: &str = "\
The log is verified first, then every verdict, answer, clearance and belief is derived again from
it, by the code that ran live. Each difference is named with its event and exits with 1.

With --policy, what another policy would have decided stands beside what was decided. That some
verdicts would differ is no failure.

Examples:
  lodestar replay latest
  lodestar replay latest --policy stricter.cedar
  lodestar replay s-0197 --key web.pub --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReplayArgs {
    /// The session: its id, the beginning of it, or `latest`
    session: String,

    /// Show what this policy would have decided; it need not be signed
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    #[command(flatten)]
    keys: LogKeys,

    /// Look only at this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

pub(crate) fn run(args: &ReplayArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let other = args
        .policy
        .as_deref()
        .map(policy::read_unsigned)
        .transpose()?;
    let dir = app
        .place(args.project.as_deref())?
        .readable_session(&name)?;
    let (operators, witnesses) = trust::pinned()?;
    let trust = Trust {
        log_keys: args.keys.resolve()?,
        operators: operators.keys(),
        witnesses,
    };
    let report = verify(&dir, &trust, app)?;
    let problems: Vec<&Problem> = report.all_problems().collect();
    let replay = match derive(&dir.project_log(), dir.session(), &trust.operators, other) {
        Ok(replay) => replay,
        Err(error) => {
            // Of a log that is not intact, what is wrong with it is the better answer.
            print_problems(&problems, app)?;
            return Err(error.into());
        }
    };
    let agrees = problems.is_empty() && replay.agrees();
    if app.json {
        app.out.json(&json!({
            "project": dir.project(),
            "agrees": agrees,
            "integrity": problems,
            "replay": replay,
        }))?;
    } else {
        print_problems(&problems, app)?;
        print_replay(&replay, agrees, app)?;
    }
    Ok(if agrees {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
}

/// Whether the session, and the ledger around it, is as it was written.
pub(crate) fn verify(dir: &SessionDir, trust: &Trust, app: &App) -> Result<ProjectReport, Failure> {
    let options = VerifyOptions {
        session: Some(dir.session().clone()),
        witnessed: None,
        ..VerifyOptions::default()
    };
    let progress = Progress::start(!app.json);
    let log = dir.project_log();
    verify_project(&log, trust, &options, &|at| {
        progress.at(at.session.as_str(), at.done, at.total);
    })
    .map_err(Failure::io(log.dir()))
}

fn print_problems(problems: &[&Problem], app: &mut App) -> Result<(), Failure> {
    if app.json {
        return Ok(());
    }
    for problem in problems {
        let bad = app.out.paint.bad("✗ not intact");
        let problem = inert::whole(&problem.to_string());
        writeln!(app.out, "{bad}  {problem}")?;
    }
    Ok(())
}

fn print_replay(replay: &SessionReplay, agrees: bool, app: &mut App) -> Result<(), Failure> {
    let paint = app.out.paint;
    if !replay.defences_off.is_empty() {
        let names: Vec<String> = replay
            .defences_off
            .iter()
            .map(|one| inert::line(one, 40))
            .collect();
        let line = format!("! opened with defences taken out: {}", names.join(", "));
        writeln!(app.out, "{}", paint.warn(line))?;
    }
    for difference in &replay.differences {
        let line = inert::whole(&difference.to_string());
        writeln!(app.out, "{}  {line}", paint.bad("✗ differs"))?;
    }
    if !replay.redacted.is_empty() {
        let seqs = replay.redacted.iter();
        let seqs: Vec<String> = seqs.map(|seq| format!("#{seq}")).collect();
        let line = format!("redacted, so not derived: {}", seqs.join(", "));
        writeln!(app.out, "{} {line}", paint.dim("·"))?;
    }
    if let Some(otherwise) = &replay.otherwise {
        print_otherwise(otherwise, app)?;
    }
    let derived = format!(
        "session {}: {} derived from {} ({}, {}, {})",
        replay.session,
        words::count(replay.verdicts, "verdict"),
        words::count(replay.events, "event"),
        words::count(replay.answers, "answer"),
        words::count(replay.clearances, "clearance"),
        words::count(replay.beliefs, "belief event"),
    );
    let line = match (agrees, replay.differences.len()) {
        (true, _) => paint.good(format!("✓ {derived}: all as the log says")),
        (false, 0) => paint.bad(format!("✗ {derived}: the log is not intact")),
        (false, n) => paint.bad(format!(
            "✗ {derived}: {}",
            words::count(n as u64, "difference")
        )),
    };
    Ok(writeln!(app.out, "{line}")?)
}

fn print_otherwise(otherwise: &[Otherwise], app: &mut App) -> Result<(), Failure> {
    if otherwise.is_empty() {
        let line = "the other policy would have decided everything alike";
        return Ok(writeln!(app.out, "{line}")?);
    }
    let shown = |one: &Otherwise| inert::line(&one.tool, 40);
    let width = otherwise.iter().map(|one| shown(one).chars().count()).max();
    let width = width.unwrap_or(0).max("tool".len());
    let heading = format!(
        "{:>6}  {:<width$}  {:<5}  {:<8}  decided by",
        "event", "tool", "was", "would be"
    );
    writeln!(app.out, "{}", app.out.paint.dim(heading))?;
    for one in otherwise {
        let ids: Vec<&str> = one.policies.iter().map(|id| id.as_str()).collect();
        let ids = match ids.is_empty() {
            true => "no policy".to_owned(),
            false => inert::line(&ids.join(", "), 80),
        };
        writeln!(
            app.out,
            "{:>6}  {:<width$}  {:<5}  {:<8}  {ids}",
            format!("#{}", one.seq),
            shown(one),
            one.was,
            one.would_be,
        )?;
    }
    let count = words::count(otherwise.len() as u64, "verdict");
    Ok(writeln!(app.out, "{count} would be another")?)
}
