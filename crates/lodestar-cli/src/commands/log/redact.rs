//! `lodestar log redact`: content goes, what proves that it was there stays.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;

use clap::Args;
use lodestar_core::key::SecretKey;
use lodestar_log::{ProblemKind, Reader, RedactError, Redacted, SessionDir, Trust, WriterOptions};
use serde_json::json;

use super::event::unreadable;
use super::writers_remedy;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::operator::{self, OperatorArgs};
use crate::place::SessionName;
use crate::terminal::Terminal;
use crate::words;

const AFTER_HELP: &str = "\
Payloads and their salts are replaced by tombstones and overwritten on disk; chain, proofs and
checkpoints stay valid, and a statement signed with the operator's key answers for the gap. Events
that refer to the same large content go with the named ones. This cannot be undone.

Examples:
  lodestar log redact latest --seq 7 --reason \"customer's address\"
  lodestar log redact 0197 --seq 7,9 --reason \"leaked token\" --operator alice --yes";

/// Events that are named in the question before it becomes a count.
const MOST_NAMED: usize = 20;

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RedactArgs {
    /// The session: its id, the beginning of it, or `latest`
    session: String,

    /// The events whose content goes
    #[arg(long, value_name = "SEQ,…", value_delimiter = ',', required = true)]
    seq: Vec<u64>,

    /// Why; it is kept in the log, signed
    #[arg(long, value_name = "TEXT")]
    reason: String,

    #[command(flatten)]
    operator: OperatorArgs,

    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(
    args: &RedactArgs,
    project: Option<&str>,
    app: &mut App,
) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let operator = args.operator.parse()?;
    let dir = app.place(project)?.readable_session(&name)?;
    if args.reason.trim().is_empty() {
        return Err(Failure::usage(
            "a redaction needs a reason; it is all that readers will have",
        ));
    }
    let seqs: BTreeSet<u64> = args.seq.iter().copied().collect();
    let installation = Installation::locate()?;
    let log_key = installation.log_secret()?;
    let sealed = operator.sealed(&installation, "a redaction")?;
    if !args.yes {
        confirm(&dir, &seqs)?;
    }
    let operator = operator::open(sealed)?;
    let trust = entitled(&installation, &operator, &log_key)?;
    let options = WriterOptions::new(Arc::new(log_key));
    let redacted = lodestar_log::redact(
        &dir.project_log(),
        dir.session(),
        &seqs,
        &args.reason,
        &operator,
        &trust,
        &options,
    )
    .map_err(|error| match error {
        RedactError::Io(error) => Failure::io(dir.dir())(error),
        RedactError::Read(error) => unreadable(&dir, &error),
        error => error.into(),
    })?;
    print(&dir, &redacted, app)
}

/// A redaction by somebody who is not pinned would read as tampering from then on.
fn entitled(
    installation: &Installation,
    operator: &SecretKey,
    log_key: &SecretKey,
) -> Result<Trust, Failure> {
    // No pin would help it.
    if operator.public() == log_key.public() {
        return Err(RedactError::LogKey.into());
    }
    Ok(Trust {
        operators: operator::pinned(
            installation,
            &operator.public(),
            "its redaction would count as tampering",
        )?,
        ..Trust::default()
    })
}

fn confirm(dir: &SessionDir, seqs: &BTreeSet<u64>) -> Result<(), Failure> {
    let named = named_events(dir, seqs)?;
    let Some(mut terminal) = Terminal::open() else {
        return Err(
            Failure::usage("there is no terminal to ask for confirmation on")
                .help("--yes redacts without asking"),
        );
    };
    let question = format!(
        "This takes the content of these events of {} away for good:\n{named}Type `yes` to go on: ",
        dir.session()
    );
    match terminal.ask(&question)?.as_str() {
        "yes" => Ok(()),
        _ => Err(Failure::usage("not confirmed; nothing was redacted")),
    }
}

fn named_events(dir: &SessionDir, seqs: &BTreeSet<u64>) -> Result<String, Failure> {
    let mut reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
    let mut missing = seqs.clone();
    let mut named = Vec::new();
    while !missing.is_empty() {
        let Some(event) = reader.next_event().map_err(|e| unreadable(dir, &e))? else {
            break;
        };
        if missing.remove(&event.seq) {
            named.push(format!("  #{} {} {}\n", event.seq, event.time, event.kind));
        }
    }
    if let Some(seq) = missing.first() {
        return Err(Failure::not_found(format!(
            "there is no event {seq} in session `{}`",
            dir.session()
        )));
    }
    if named.len() > MOST_NAMED {
        let more = format!("  and {} more\n", named.len() - MOST_NAMED);
        named.truncate(MOST_NAMED);
        named.push(more);
    }
    Ok(named.concat())
}

fn print(dir: &SessionDir, redacted: &Redacted, app: &mut App) -> Result<Exit, Failure> {
    if app.json {
        app.out.json(&json!({
            "project": dir.project(),
            "session": dir.session(),
            "redacted": redacted,
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let events: Vec<String> = redacted
        .events
        .iter()
        .map(|seq| format!("#{seq}"))
        .collect();
    writeln!(
        app.out,
        "{} {} redacted: {}",
        paint.good("✓"),
        words::count(redacted.events.len() as u64, "event"),
        events.join(" ")
    )?;
    for blob in &redacted.blobs {
        writeln!(app.out, "  blob {blob} erased")?;
    }
    let answer = format!(
        "answered for by #{} of {}",
        redacted.redaction,
        dir.session()
    );
    writeln!(app.out, "  {}", paint.dim(answer))?;
    Ok(Exit::Done)
}

impl From<RedactError> for Failure {
    fn from(error: RedactError) -> Self {
        let text = error.to_string();
        match error {
            RedactError::Open(error) => error.into(),
            RedactError::NotIntact { problem } => Self::check(text).help(match problem.kind {
                ProblemKind::UnknownOperator { .. } => {
                    "an earlier redaction counts once its operator's public key is pinned in `operators/`"
                }
                _ => writers_remedy(&problem),
            }),
            RedactError::NoSuchEvent { .. } => Self::not_found(text),
            RedactError::LogKey => Self::not_authorised(text)
                .help("make an operator's key with `lodestar approve keygen --name NAME`"),
            RedactError::Read(_) => Self::check(text),
            _ => Self::usage(text),
        }
    }
}
