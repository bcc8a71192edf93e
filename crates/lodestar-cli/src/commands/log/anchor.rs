//! `lodestar log anchor`: what a witness signs, and what came back.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lodestar_core::note::NoteKey;
use lodestar_log::{AnchorError, Ledger, ProjectLog, WriterOptions, record_anchor};
use serde_json::json;

use super::remedy;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::trust::{self, LogKeys};
use crate::{files, inert, words};

const AFTER_HELP: &str = "\
The head is a C2SP checkpoint of the project's ledger, signed by the log key. Whoever keeps it can
later tell a log that was rolled back; a witness that signs it says so to others as well.

Examples:
  lodestar log anchor --out head.txt
  lodestar log anchor --record cosigned.txt --witness-key witness.pub";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AnchorArgs {
    /// Write the head to this file
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    out: Option<PathBuf>,

    /// Record the signatures that witnesses added to a head
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// The key of a witness who signed it [default: the pinned ones]
    #[arg(long, value_name = "VKEY|FILE", requires = "record")]
    witness_key: Vec<String>,

    #[command(flatten)]
    keys: LogKeys,
}

pub(crate) fn run(
    args: &AnchorArgs,
    project: Option<&str>,
    app: &mut App,
) -> Result<Exit, Failure> {
    let place = app.place(project)?;
    let log = place.only_project()?;
    match &args.record {
        Some(file) => record(args, log, file, app),
        None => print_head(args, log, app),
    }
}

fn print_head(args: &AnchorArgs, log: &ProjectLog, app: &mut App) -> Result<Exit, Failure> {
    let trust = args.keys.trust()?;
    let (ledger, problems) =
        Ledger::read(log, &trust, &BTreeSet::new()).map_err(Failure::io(log.ledger_path()))?;
    if let Some(problem) = problems.first() {
        return Err(
            Failure::check(format!("the ledger is not intact: {problem}")).help(remedy(problem)),
        );
    }
    let Some((checkpoint, head)) = ledger.head() else {
        return Err(Failure::not_found(format!(
            "the ledger of `{}` has no signed head",
            log.project()
        )));
    };
    if let Some(path) = &args.out {
        files::replace(path, |file| Ok(file.write_all(head.as_bytes())?))?;
    }
    if app.json {
        app.out.json(&json!({
            "project": log.project(),
            "size": checkpoint.size,
            "root": checkpoint.root,
            "head": head,
        }))?;
    } else if let Some(path) = &args.out {
        writeln!(
            app.out,
            "the head of {} is in {}",
            words::count(checkpoint.size, "record"),
            inert::path(path)
        )?;
    } else if app.out.is_terminal && inert::lines(head) != head {
        // The log's signature does not cover the names in the lines that others added.
        return Err(
            Failure::check("the head has characters in it that act on a terminal")
                .help("write it to a file with --out"),
        );
    } else {
        // To be signed as it is: the bytes, and nothing but the bytes.
        app.out.write_all(head.as_bytes())?;
    }
    Ok(Exit::Done)
}

fn record(
    args: &AnchorArgs,
    log: &ProjectLog,
    file: &Path,
    app: &mut App,
) -> Result<Exit, Failure> {
    let installation = Installation::locate()?;
    let witnesses: Vec<NoteKey> = match args.witness_key.as_slice() {
        [] => installation.witnesses()?,
        keys => keys
            .iter()
            .map(|key| trust::vkey(key))
            .collect::<Result<_, _>>()?,
    };
    if witnesses.is_empty() {
        return Err(Failure::usage("no witness is known here")
            .help("pass --witness-key with the public key of the witness"));
    }
    let options = WriterOptions::new(Arc::new(installation.log_secret()?));
    let cosigned = files::read(file, files::SMALL)?;
    let names = record_anchor(log, &cosigned, &witnesses, &options)?;
    if app.json {
        app.out
            .json(&json!({"project": log.project(), "witnesses": names}))?;
    } else {
        let paint = app.out.paint;
        let names = inert::whole(&names.join(", "));
        writeln!(
            app.out,
            "{} recorded the signature of {names}",
            paint.good("✓")
        )?;
    }
    Ok(Exit::Done)
}

impl From<AnchorError> for Failure {
    fn from(error: AnchorError) -> Self {
        match error {
            AnchorError::Ledger(error) => error.into(),
            AnchorError::NotOurs(reason) if trust::is_unknown_key(&reason) => {
                Self::check(AnchorError::NotOurs(reason).to_string())
                    .help("a head is recorded by the installation whose log key signed it; LODESTAR_CONFIG_DIR names another one")
            }
            AnchorError::NotWitnessed(_) => Self::check(error.to_string())
                .help("pass --witness-key with the public key of a witness who signed it"),
            error => Self::check(error.to_string()),
        }
    }
}
