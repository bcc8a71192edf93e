//! `lodestar log verify`: is everything as its writer left it?

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_core::name::SessionId;
use lodestar_log::verify::{ProjectReport, Remark, SessionReport, VerifyOptions, verify_project};
use lodestar_log::{LEDGER_NAME, Problem, ProjectLog, Trust};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::read_vkey;
use crate::output::Out;
use crate::place::SessionName;
use crate::progress::Progress;
use crate::trust::{self, LogKeys};
use crate::{files, inert, words};

const AFTER_HELP: &str = "\
Checks structure, numbering, chain, payloads, blobs, roots, signatures and redactions of every
session, and the ledger that ties the sessions together. Every problem is listed with its file,
event and byte offset. Without a witnessed head, a project whose sessions and ledger were rolled
back together cannot be told from an older one: keep heads elsewhere with `lodestar log anchor`.

Examples:
  lodestar log verify
  lodestar log verify latest --json
  lodestar log verify --key web.pub --operator alice.pub
  lodestar log verify --witness head.txt --witness-key witness.pub";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct VerifyArgs {
    /// Only this session and the ledger [default: everything]
    session: Option<String>,

    #[command(flatten)]
    keys: LogKeys,

    /// A file with the public key of an operator whose redactions count, beside the pinned ones
    #[arg(long, value_name = "FILE")]
    operator: Vec<PathBuf>,

    /// A ledger head that was signed earlier: the ledger must be an extension of it
    #[arg(long, value_name = "HEADFILE")]
    witness: Option<PathBuf>,

    /// The key of a witness who must have signed that head, beside the pinned ones
    #[arg(long, value_name = "VKEY|FILE")]
    witness_key: Vec<String>,
}

pub(crate) fn run(
    args: &VerifyArgs,
    project: Option<&str>,
    app: &mut App,
) -> Result<Exit, Failure> {
    let name = args
        .session
        .as_deref()
        .map(SessionName::parse)
        .transpose()?;
    let place = app.place(project)?;
    let (logs, session) = match &name {
        None => (place.projects.clone(), None),
        Some(name) => {
            let dir = place.session(name)?;
            (vec![dir.project_log()], Some(dir.session().clone()))
        }
    };
    let trust = trusted(args)?;
    let head = match &args.witness {
        Some(path) => Some(files::read(path, files::SMALL)?),
        None => None,
    };
    let mut heads = Heads::new(head, &logs);
    let progress = Progress::start(!app.json);
    let mut reports = Vec::new();
    for log in &logs {
        let options = VerifyOptions {
            session: session.clone(),
            witnessed: heads.take_for(log),
        };
        let report = verify_project(log, &trust, &options, &|at| {
            progress.at(at.session.as_str(), at.done, at.total);
        });
        reports.push(report.map_err(Failure::io(log.dir()))?);
    }
    drop(progress);
    heads.all_used()?;
    let intact = reports.iter().all(ProjectReport::is_intact);
    if app.json {
        app.out
            .json(&json!({"intact": intact, "projects": reports}))?;
    } else {
        print(&reports, session.as_ref(), &mut app.out)?;
    }
    Ok(if intact {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
}

fn trusted(args: &VerifyArgs) -> Result<Trust, Failure> {
    let log_keys = args.keys.resolve()?;
    let (mut operators, mut witnesses) = trust::pinned()?;
    for path in &args.operator {
        operators.push(*read_vkey(path)?.public_key());
    }
    for key in &args.witness_key {
        witnesses.push(trust::vkey(key)?);
    }
    Ok(Trust {
        log_keys,
        operators,
        witnesses,
    })
}

/// A witnessed head belongs to one project; its first line says which.
struct Heads {
    head: Option<Vec<u8>>,
    only_one: bool,
}

impl Heads {
    fn new(head: Option<Vec<u8>>, logs: &[ProjectLog]) -> Self {
        Self {
            head,
            only_one: logs.len() == 1,
        }
    }

    fn take_for(&mut self, log: &ProjectLog) -> Option<Vec<u8>> {
        let origin = format!("lodestar.log/{}/{LEDGER_NAME}\n", log.project());
        let head = self.head.as_ref()?;
        // With one project there is nothing to choose: a head of another one is a problem to show.
        (self.only_one || head.starts_with(origin.as_bytes()))
            .then(|| self.head.take())
            .flatten()
    }

    fn all_used(&self) -> Result<(), Failure> {
        let Some(head) = &self.head else {
            return Ok(());
        };
        let origin = String::from_utf8_lossy(head);
        let origin = inert::line(origin.lines().next().unwrap_or_default(), 80);
        Err(Failure::check(format!(
            "the witnessed head is of `{origin}`, and no such project is here: it was deleted, or the head is another log's"
        )))
    }
}

fn print(
    reports: &[ProjectReport],
    only: Option<&SessionId>,
    out: &mut Out,
) -> Result<(), Failure> {
    for report in reports {
        let label = match reports.len() {
            1 => String::new(),
            _ => format!("{}/", report.project),
        };
        print_project(report, only, &label, out)?;
    }
    let paint = out.paint;
    let sessions = reports.iter().flat_map(|r| &r.sessions);
    let total = sessions.clone().count() as u64;
    let bad = sessions.filter(|s| !s.is_intact()).count() as u64;
    let problems = reports.iter().flat_map(ProjectReport::all_problems).count() as u64;
    let checked = words::count(total, "session");
    let ledgers = words::count(reports.len() as u64, "ledger");
    let line = match problems {
        0 => paint.good(format!("✓ {checked} and {ledgers} checked: all intact")),
        _ => paint.bad(format!(
            "✗ {checked} and {ledgers} checked: {} tampered, {}",
            words::number(bad),
            words::count(problems, "problem")
        )),
    };
    writeln!(out, "{line}")?;
    Ok(())
}

fn print_project(
    report: &ProjectReport,
    only: Option<&SessionId>,
    label: &str,
    out: &mut Out,
) -> Result<(), Failure> {
    let ids = report.sessions.iter().map(|s| s.session.as_str().len());
    let ledger_name = format!("{} ledger", report.project);
    let width = (ids.max().unwrap_or(0) + label.len()).max(ledger_name.len());
    for session in &report.sessions {
        let name = format!(
            "{label}{:<width$}",
            session.session,
            width = width - label.len()
        );
        print_session(session, &name, out)?;
    }
    let missing = only.filter(|only| report.sessions.iter().all(|s| s.session != **only));
    if let Some(missing) = missing {
        let line = format!("✗ not here   {missing}");
        writeln!(out, "{}", out.paint.bad(line))?;
    }
    let line = format!(
        "{ledger_name:<width$}  {:>14}  root {}",
        words::count(report.ledger_records, "record"),
        words::short(&report.ledger_root),
    );
    print_verdict(report.problems.is_empty(), &line, out)?;
    print_findings(&report.problems, &report.remarks, out)
}

fn print_session(report: &SessionReport, name: &str, out: &mut Out) -> Result<(), Failure> {
    let line = format!(
        "{name}  {:>14}  root {}  proven {}  {}",
        words::count(report.events, "event"),
        words::short(&report.root),
        words::number(report.proven),
        report.state,
    );
    print_verdict(report.is_intact(), &line, out)?;
    print_findings(&report.problems, &report.remarks, out)
}

fn print_verdict(intact: bool, line: &str, out: &mut Out) -> Result<(), Failure> {
    let verdict = match intact {
        true => out.paint.good("✓ intact  "),
        false => out.paint.bad("✗ tampered"),
    };
    Ok(writeln!(out, "{verdict}  {line}")?)
}

fn print_findings(problems: &[Problem], remarks: &[Remark], out: &mut Out) -> Result<(), Failure> {
    for problem in problems {
        let problem = inert::whole(&problem.to_string());
        writeln!(out, "    {} {problem}", out.paint.bad("✗"))?;
    }
    for remark in remarks {
        let remark = inert::whole(&remark.to_string());
        writeln!(out, "    {} {remark}", out.paint.dim("·"))?;
    }
    Ok(())
}
