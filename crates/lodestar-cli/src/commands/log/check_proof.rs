//! `lodestar log check-proof`: needs the proof and a key, and no log.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_core::note::{Checkpoint, NoteKey};
use lodestar_log::{Extends, MAX_PROOF_BYTES, Proof, Proven, Trust};
use serde_json::json;

use super::prove::claim;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::trust::{self, LogKeys};
use crate::{files, inert, json as form, words};

const AFTER_HELP: &str = "\
A proof that a session only grew says from which size and root; with --old these must be the ones
of a checkpoint you kept.

Examples:
  lodestar log check-proof proof.json
  lodestar log check-proof proof.json --key web.pub
  lodestar log check-proof grown.json --old checkpoint-of-last-week";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CheckProofArgs {
    /// The proof, as `lodestar log prove` wrote it
    file: PathBuf,

    #[command(flatten)]
    keys: LogKeys,

    /// A signed checkpoint of the same log: the proof must start from it
    #[arg(long, value_name = "CHECKPOINT")]
    old: Option<PathBuf>,
}

pub(crate) fn run(args: &CheckProofArgs, app: &mut App) -> Result<Exit, Failure> {
    let trust = args.keys.trust()?;
    let bytes = files::read(&args.file, MAX_PROOF_BYTES as u64)?;
    let old = match &args.old {
        Some(path) => Some(files::read(path, files::SMALL)?),
        None => None,
    };
    let checked = Proof::parse(&bytes)
        .map_err(Failure::from)
        .and_then(|proof| Ok((proof.check(&trust)?, proof)))
        .and_then(|(proven, proof)| {
            compare_with_old(old.as_deref(), &proven, &trust)?;
            Ok((proof, proven))
        });
    match checked {
        Ok((proof, proven)) => print(args, &proof, &proven, app)?,
        Err(failure) if app.json && failure.exit == Exit::CheckFailed => {
            app.out
                .json(&json!({"holds": false, "reason": failure.message()}))?;
            return Ok(Exit::CheckFailed);
        }
        Err(failure) => return Err(failure),
    }
    Ok(Exit::Done)
}

fn compare_with_old(old: Option<&[u8]>, proven: &Proven, trust: &Trust) -> Result<(), Failure> {
    let Some(old) = old else { return Ok(()) };
    let Some(extends) = &proven.extends else {
        return Err(Failure::usage(
            "--old goes with a proof that a session only grew; this one is about an event",
        ));
    };
    let old = signed_checkpoint(old, &proven.origin, trust)?;
    let stated = Extends {
        size: old.size,
        root: old.root,
    };
    if *extends != stated {
        return Err(Failure::check(format!(
            "the proof starts from size {} and root {}, the old checkpoint has size {} and root {}",
            extends.size, extends.root, old.size, old.root
        )));
    }
    Ok(())
}

/// The old checkpoint must be of the same log, and signed by a key that counts.
fn signed_checkpoint(note: &[u8], origin: &str, trusted: &Trust) -> Result<Checkpoint, Failure> {
    let mut reason = String::new();
    for key in &trusted.log_keys {
        let opened = NoteKey::ed25519(origin, key).and_then(|key| Checkpoint::open(note, &key));
        match opened {
            Ok((checkpoint, _)) => return Ok(checkpoint),
            Err(error) => reason = error.to_string(),
        }
    }
    let failure = Failure::check(format!(
        "the old checkpoint is not a signed one of `{origin}`: {reason}"
    ));
    Err(match trust::is_unknown_key(&reason) {
        true => failure.help(trust::GIVE_KEY),
        false => failure,
    })
}

fn print(
    args: &CheckProofArgs,
    proof: &Proof,
    proven: &Proven,
    app: &mut App,
) -> Result<(), Failure> {
    if app.json {
        return Ok(app.out.json(&json!({"holds": true, "proven": proven}))?);
    }
    let out: &mut Out = &mut app.out;
    let paint = out.paint;
    writeln!(
        out,
        "{} the proof holds: {}",
        paint.good("✓"),
        claim(proof, proven)
    )?;
    if let Some(event) = &proven.event {
        writeln!(out, "  time     {}", event.time)?;
        writeln!(out, "  actor    {}", inert::whole(&event.actor))?;
        if let Some(payload) = &event.payload {
            writeln!(
                out,
                "  payload  {}",
                inert::line(&form::compact(payload), 400)
            )?;
        }
    }
    if let (Some(extends), None) = (&proven.extends, &args.old) {
        let note = format!(
            "compare with what you kept: {}, root {}",
            words::count(extends.size, "event"),
            extends.root
        );
        writeln!(out, "  {}", paint.dim(note))?;
    }
    Ok(())
}
