//! `lodestar log verify`: is everything as its writer left it?

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_core::name::{ProjectId, SessionId};
use lodestar_log::verify::{ProjectReport, Remark, SessionReport, VerifyOptions, verify_project};
use lodestar_log::{Problem, ProblemKind, ProjectLog, Trust};
use serde_json::json;

use super::bundle;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::read_vkey;
use crate::output::Out;
use crate::place::SessionName;
use crate::progress::Progress;
use crate::trust::{self, LogKeys, Operators};
use crate::{files, inert, words};

const AFTER_HELP: &str = "\
Checks structure, numbering, chain, payloads, blobs, roots, signatures and redactions of every
session, and the ledger that ties the sessions together. Every problem is listed with its file,
event and byte offset. Without a witnessed head, a project whose sessions and ledger were rolled
back together cannot be told from an older one: keep heads elsewhere with `lodestar log anchor`.

With --bundle it checks what `lodestar report --proofs` wrote instead, without the project. Keys in
the bundle prove nothing: pass --key with the log's public key, as its owner gave it to you. With
--report it checks too that the report in your hands is the one that the bundle was made with.

Examples:
  lodestar log verify
  lodestar log verify latest --json
  lodestar log verify --key web.pub --operator alice.pub
  lodestar log verify --bundle report.bundle --report report.md --key web.pub
  lodestar log verify --witness head.txt --witness-key witness.pub";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct VerifyArgs {
    /// Only this session and the ledger [default: everything]
    session: Option<String>,

    /// Check this proof bundle of a report instead of a log
    #[arg(long, value_name = "FILE", conflicts_with_all = ["session", "witness", "witness_key"])]
    bundle: Option<PathBuf>,

    /// The report that the bundle has to be of, in any of its forms
    #[arg(long, value_name = "FILE", requires = "bundle")]
    report: Option<PathBuf>,

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
    if let Some(path) = &args.bundle {
        let (trust, _) = trusted(args)?;
        return bundle::run(path, args.report.as_deref(), &trust, app);
    }
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
    let (trust, operators) = trusted(args)?;
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
            ..VerifyOptions::default()
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
        let view = View {
            only: session.as_ref(),
            operators: &operators,
            head: heads.taken.as_ref(),
        };
        view.print(&reports, &mut app.out)?;
    }
    Ok(if intact {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
}

fn trusted(args: &VerifyArgs) -> Result<(Trust, Operators), Failure> {
    let log_keys = args.keys.resolve()?;
    let (mut operators, mut witnesses) = trust::pinned()?;
    for path in &args.operator {
        operators.add(&read_vkey(path)?);
    }
    for key in &args.witness_key {
        witnesses.push(trust::vkey(key)?);
    }
    let trust = Trust {
        log_keys,
        operators: operators.keys(),
        witnesses,
    };
    Ok((trust, operators))
}

/// A witnessed head belongs to one project; its first line says which.
struct Heads {
    head: Option<Vec<u8>>,
    only_one: bool,
    taken: Option<TakenHead>,
}

/// A head that a project was checked against.
struct TakenHead {
    project: ProjectId,
    /// As its second line says; what it says was checked with the ledger.
    records: u64,
}

impl Heads {
    fn new(head: Option<Vec<u8>>, logs: &[ProjectLog]) -> Self {
        Self {
            head,
            only_one: logs.len() == 1,
            taken: None,
        }
    }

    fn take_for(&mut self, log: &ProjectLog) -> Option<Vec<u8>> {
        let origin = format!("{}\n", log.ledger_origin());
        let head = self.head.as_ref()?;
        // With one project there is nothing to choose: a head of another one is a problem to show.
        if !self.only_one && !head.starts_with(origin.as_bytes()) {
            return None;
        }
        let head = self.head.take()?;
        let records = str::from_utf8(&head).ok().and_then(|text| {
            let size = text.lines().nth(1)?;
            size.parse().ok()
        });
        self.taken = records.map(|records| TakenHead {
            project: log.project().clone(),
            records,
        });
        Some(head)
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

/// What a person is told, beside what the reports say themselves.
struct View<'a> {
    only: Option<&'a SessionId>,
    operators: &'a Operators,
    head: Option<&'a TakenHead>,
}

impl View<'_> {
    fn print(&self, reports: &[ProjectReport], out: &mut Out) -> Result<(), Failure> {
        for report in reports {
            let label = match reports.len() {
                1 => String::new(),
                _ => format!("{}/", report.project),
            };
            self.print_project(report, &label, out)?;
        }
        let paint = out.paint;
        let line = match reports.iter().all(ProjectReport::is_intact) {
            true => paint.good(format!("✓ {} checked: all intact", checked(reports))),
            false => paint.bad(format!(
                "✗ {} checked: {}",
                checked(reports),
                wrong(reports)
            )),
        };
        writeln!(out, "{line}")?;
        for help in remedies(reports) {
            writeln!(out, "{} {help}", paint.dim("help:"))?;
        }
        Ok(())
    }

    fn print_project(
        &self,
        report: &ProjectReport,
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
            self.print_session(session, &name, out)?;
        }
        let missing = self
            .only
            .filter(|only| report.sessions.iter().all(|s| s.session != **only));
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
        self.print_findings(&report.problems, &report.remarks, out)?;
        let head = self.head.filter(|head| head.project == report.project);
        if let Some(head) = head.filter(|_| report.problems.is_empty()) {
            let line = format!(
                "checked against the witnessed head of {}: the ledger extends it",
                words::count(head.records, "record")
            );
            writeln!(out, "    {} {line}", out.paint.dim("·"))?;
        }
        Ok(())
    }

    fn print_session(
        &self,
        report: &SessionReport,
        name: &str,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let line = format!(
            "{name}  {:>14}  root {}  proven {}  {}",
            words::count(report.events, "event"),
            words::short(&report.root),
            words::number(report.proven),
            report.state,
        );
        print_verdict(report.is_intact(), &line, out)?;
        self.print_findings(&report.problems, &report.remarks, out)
    }

    fn print_findings(
        &self,
        problems: &[Problem],
        remarks: &[Remark],
        out: &mut Out,
    ) -> Result<(), Failure> {
        for problem in problems {
            let problem = inert::whole(&problem.to_string());
            writeln!(out, "    {} {problem}", out.paint.bad("✗"))?;
        }
        for remark in remarks {
            let remark = inert::whole(&self.said(remark));
            writeln!(out, "    {} {remark}", out.paint.dim("·"))?;
        }
        Ok(())
    }

    /// The library knows keys; people know the names they pinned them under.
    fn said(&self, remark: &Remark) -> String {
        match remark {
            Remark::Redacted {
                redaction,
                events,
                operator,
                reason,
            } => {
                let is = if *events == 1 { "is" } else { "are" };
                let payloads = words::count(*events, "payload");
                let by = self.operators.name_of(operator);
                format!("{payloads} {is} redacted by #{redaction}, signed by `{by}`: {reason}")
            }
            remark => remark.to_string(),
        }
    }
}

fn checked(reports: &[ProjectReport]) -> String {
    let sessions = reports.iter().map(|r| r.sessions.len() as u64).sum();
    format!(
        "{} and {}",
        words::count(sessions, "session"),
        words::count(reports.len() as u64, "ledger")
    )
}

fn wrong(reports: &[ProjectReport]) -> String {
    let sessions = reports.iter().flat_map(|r| &r.sessions);
    let sessions = sessions.filter(|s| !s.is_intact()).count() as u64;
    let ledgers = reports.iter().filter(|r| !r.problems.is_empty()).count() as u64;
    let problems = reports.iter().flat_map(ProjectReport::all_problems).count() as u64;
    let tampered: Vec<String> = [(sessions, "session"), (ledgers, "ledger")]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| words::count(n, what))
        .collect();
    format!(
        "{} tampered, {}",
        tampered.join(" and "),
        words::count(problems, "problem")
    )
}

/// What may look like tampering because a key is not known here.
fn remedies(reports: &[ProjectReport]) -> Vec<&'static str> {
    let unknown_key = |problem: &Problem| match &problem.kind {
        ProblemKind::CheckpointInvalid { reason } => trust::is_unknown_key(reason),
        _ => false,
    };
    let unknown_operator =
        |problem: &Problem| matches!(problem.kind, ProblemKind::UnknownOperator { .. });
    let problems: Vec<&Problem> = reports
        .iter()
        .flat_map(ProjectReport::all_problems)
        .collect();
    let mut help = Vec::new();
    if problems.iter().any(|p| unknown_key(p)) {
        help.push(trust::GIVE_KEY);
    }
    if problems.iter().any(|p| unknown_operator(p)) {
        help.push("if you know the operator who redacted, pass --operator with a file of their public key");
    }
    help
}

fn print_verdict(intact: bool, line: &str, out: &mut Out) -> Result<(), Failure> {
    let verdict = match intact {
        true => out.paint.good("✓ intact  "),
        false => out.paint.bad("✗ tampered"),
    };
    Ok(writeln!(out, "{verdict}  {line}")?)
}
