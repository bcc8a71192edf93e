//! `lodestar log`: the record, for people and for machines.

mod anchor;
mod check_proof;
mod event;
mod export;
mod list;
mod prove;
mod redact;
mod show;
mod summary;
mod verify;

use clap::{Args, Subcommand};
use lodestar_log::{LedgerError, OpenError};

use crate::cli::App;
use crate::failure::{Exit, Failure};

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

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let exit = match &error {
            LedgerError::Tampered { .. } => Exit::CheckFailed,
            _ => Exit::Usage,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let exit = match error {
            OpenError::Ledger(error) => return error.into(),
            OpenError::Tampered { .. } => Exit::CheckFailed,
            OpenError::NotFound { .. } => Exit::NotFound,
            _ => Exit::Usage,
        };
        Self::new(exit, error.to_string())
    }
}
