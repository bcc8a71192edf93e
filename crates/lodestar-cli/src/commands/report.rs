//! `lodestar report`: what a session comes to, for somebody who has to say yes or no.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::{SessionDir, Trust};
use lodestar_report::model::{Report, Standing};
use lodestar_report::{Examination, Projection, ReportError, bundle, html, markdown};

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::place::SessionName;
use crate::progress::Progress;
use crate::trust::{self, LogKeys};
use crate::{files, inert, json, words};

const AFTER_HELP: &str = "\
The log is verified and derived again first. If it was edited, or if what it says does not follow
from it, the report says so and nothing else, and exits with 1. Everything in it cites the events
that it rests on.

With --proofs, these events and their proofs go into one file that `lodestar log verify --bundle`
checks on another machine. The log's key seals it: only the installation that wrote the log can.

Examples:
  lodestar report latest
  lodestar report latest --format html --out report.html
  lodestar report s-0197 --format json --ceiling public
  lodestar report latest --out report.md --proofs report.bundle";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Md,
    Html,
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReportArgs {
    /// The session: its id, the beginning of it, or `latest`
    session: String,

    /// Markdown, one self-contained HTML page, or JSON [default: md]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "md|html|json"
    )]
    format: Option<Format>,

    /// Write it to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Write the events that it cites, with their proofs, to this file
    #[arg(long, value_name = "FILE")]
    proofs: Option<PathBuf>,

    /// Leave out content that is more sensitive than this
    #[arg(
        long,
        value_name = "public|internal|confidential|secret",
        default_value = "internal",
        value_parser = sensitivity
    )]
    ceiling: Sensitivity,

    #[command(flatten)]
    keys: LogKeys,

    /// Look only at this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

fn sensitivity(text: &str) -> Result<Sensitivity, String> {
    text.parse::<Sensitivity>()
        .map_err(|problem| problem.to_string())
}

pub(crate) fn run(args: &ReportArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let dir = app
        .place(args.project.as_deref())?
        .readable_session_of_an_agent(&name)?;
    let (operators, witnesses) = trust::pinned()?;
    let trust = Trust {
        log_keys: args.keys.resolve()?,
        operators: operators.keys(),
        witnesses,
    };
    let progress = Progress::start(!app.json);
    let projection = examine(&dir, &trust, args.ceiling, &progress)?;
    drop(progress);
    let format = match (args.format, app.json) {
        (Some(format), _) => format,
        (None, true) => Format::Json,
        (None, false) => Format::Md,
    };
    // First: what is printed last stays in sight.
    let bundled = match (&args.proofs, &projection) {
        (Some(path), Projection::Report(report)) => {
            // The proofs show what is there; that nothing is missing is on the word of the log's key.
            let key = Installation::locate()?.log_secret()?;
            Some(files::replace_private(path, |out| {
                bundle::write(report, &dir, &trust, &key, out)
                    .map_err(|problem| Failure::check(format!("there is no bundle: {problem}")))
            })?)
        }
        _ => None,
    };
    match &args.out {
        Some(path) => files::replace_private(path, |out| Ok(render(&projection, format, out)?))?,
        None => render(&projection, format, &mut app.out)?,
    }
    match &projection {
        Projection::Report(report) => {
            if let (Some(path), false) = (&args.out, app.json) {
                told(
                    report,
                    path,
                    bundled.map(|one| (one, args.proofs.as_deref())),
                    app,
                )?;
            }
            Ok(Exit::Done)
        }
        Projection::Refused(refused) => {
            let told = args.out.iter();
            let told = told.map(|path| format!("what is wrong stands in `{}`", inert::path(path)));
            // Whoever finds it beside the refusal would take it for the proofs of this session.
            let stale = args.proofs.iter().filter(|path| path.exists());
            let stale = stale.map(|path| {
                let path = inert::path(path);
                format!("`{path}` is older, and proves nothing of what is wrong now: remove it")
            });
            let help: Vec<String> = told.chain(stale).collect();
            if help.is_empty() {
                return Ok(Exit::CheckFailed);
            }
            Err(Failure::check(format!(
                "there is no report of session `{}`: {}",
                refused.refused.session,
                refused.refused.because.shown()
            ))
            .help(help.join("; ")))
        }
    }
}

/// The answers, where the report itself went into a file.
fn told(
    report: &Report,
    path: &Path,
    bundled: Option<(bundle::Written, Option<&Path>)>,
    app: &mut App,
) -> Result<(), Failure> {
    let paint = app.out.paint;
    for answer in report.answers.all() {
        let word = match answer.standing {
            Standing::Good => paint.good(answer.answer.shown()),
            Standing::Bad => paint.bad(answer.answer.shown()),
            Standing::Open => paint.warn(answer.answer.shown()),
        };
        let because = inert::whole(&answer.because);
        writeln!(app.out, "{} {word}: {because}", answer.question)?;
    }
    writeln!(app.out, "{} {}", paint.dim("report:"), inert::path(path))?;
    if let Some((written, Some(path))) = bundled {
        let withheld = match written.withheld {
            0 => String::new(),
            n => format!(", {} withheld", words::count(n, "payload")),
        };
        writeln!(
            app.out,
            "{} {} ({} with proofs{withheld})",
            paint.dim("proofs:"),
            inert::path(path),
            words::count(written.events, "event"),
        )?;
    }
    Ok(())
}

/// Verifies, derives again and tells.
pub(super) fn examine(
    dir: &SessionDir,
    trust: &Trust,
    ceiling: Sensitivity,
    progress: &Progress,
) -> Result<Projection, Failure> {
    let examination = Examination {
        dir,
        trust,
        ceiling,
    };
    let told = examination.run(&|at| progress.at(at.session.as_str(), at.done, at.total));
    told.map_err(|problem| match problem {
        ReportError::Io(problem) => Failure::io(dir.dir())(problem),
        changed => Failure::check(changed.to_string()),
    })
}

/// Writes a report in a form.
pub(super) fn render(
    projection: &Projection,
    format: Format,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match format {
        Format::Md => markdown::write(projection, out),
        Format::Html => html::write(projection, out),
        Format::Json => writeln!(out, "{}", json::pretty(projection)),
    }
}
