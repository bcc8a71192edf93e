//! `lodestar log`: the record, for people and for machines.

mod anchor;
mod bundle;
mod check_proof;
pub(super) mod event;
mod export;
mod list;
mod prove;
mod redact;
mod redaction;
mod show;
pub(super) mod summary;
mod verify;

use clap::{Args, Subcommand};
use lodestar_log::{LedgerError, OpenError, Problem, ProblemKind};

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::trust;

const AFTER_HELP: &str = "\
A session is named by its id, the beginning of it, or `latest`.

Examples:
  lodestar log list
  lodestar log show latest --type action.
  lodestar log verify";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LogArgs {
    /// Look only at this project
    #[arg(
        long,
        global = true,
        value_name = "PROJECT",
        help_heading = "Global options"
    )]
    project: Option<String>,

    #[command(subcommand)]
    command: LogCommand,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    /// The sessions there are, newest last
    List(list::ListArgs),
    /// What happened in a session, event by event
    Show(show::ShowArgs),
    /// Check that everything is as it was written
    Verify(verify::VerifyArgs),
    /// Prove that an event is in a session, or that a session only grew
    Prove(prove::ProveArgs),
    /// Check a proof; needs no log
    CheckProof(check_proof::CheckProofArgs),
    /// Take the content of events away, under an operator's signature
    Redact(redact::RedactArgs),
    /// Print the ledger's head for a witness to sign, or record what witnesses signed
    Anchor(anchor::AnchorArgs),
    /// Write a session's events as JSON, one per line, with everything in place
    Export(export::ExportArgs),
}

pub(crate) fn run(args: &LogArgs, app: &mut App) -> Result<Exit, Failure> {
    let project = args.project.as_deref();
    match &args.command {
        LogCommand::List(_) => list::run(project, app),
        LogCommand::Show(args) => show::run(args, project, app),
        LogCommand::Verify(args) => verify::run(args, project, app),
        LogCommand::Prove(args) => prove::run(args, project, app),
        LogCommand::CheckProof(args) => check_proof::run(args, app),
        LogCommand::Redact(args) => redact::run(args, project, app),
        LogCommand::Anchor(args) => anchor::run(args, project, app),
        LogCommand::Export(args) => export::run(args, project, app),
    }
}

/// What to do about a log that is not as its writer left it.
fn remedy(problem: &Problem) -> &'static str {
    match &problem.kind {
        ProblemKind::CheckpointInvalid { reason } if trust::is_unknown_key(reason) => {
            trust::GIVE_KEY
        }
        ProblemKind::UnknownOperator { .. } => {
            "`lodestar log verify --operator FILE` checks it with that operator's public key"
        }
        _ => "`lodestar log verify` lists everything that is wrong",
    }
}

/// What to do about a log that cannot be continued: it takes the key it was begun with.
fn writers_remedy(problem: &Problem) -> &'static str {
    match &problem.kind {
        ProblemKind::CheckpointInvalid { reason } if trust::is_unknown_key(reason) => {
            "only the installation that wrote a log can continue it; LODESTAR_CONFIG_DIR names another one"
        }
        _ => remedy(problem),
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let text = error.to_string();
        match error {
            LedgerError::Tampered { problem } => Self::check(text).help(writers_remedy(&problem)),
            _ => Self::usage(text),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let text = error.to_string();
        match error {
            OpenError::Ledger(error) => error.into(),
            OpenError::Tampered { problem, .. } => Self::check(text).help(writers_remedy(&problem)),
            OpenError::NotFound { .. } => Self::new(Exit::NotFound, text),
            OpenError::Busy { .. } => Self::usage(text)
                .help("stop the process that writes it, or wait until it has closed the session"),
            _ => Self::usage(text),
        }
    }
}
