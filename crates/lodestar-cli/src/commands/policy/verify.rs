//! `lodestar policy verify`: is a policy as it was signed, and by somebody who counts?

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_core::key::PublicKey;
use lodestar_policy::{Policy, SignatureState, Unsigned};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::refusals::policy_refused;
use crate::{inert, trust};

const AFTER_HELP: &str = "\
The operators pinned by this installation count, or those whose keys are given with --key. A policy
that was edited, that nobody signed, or that somebody else signed exits with 1.

Examples:
  lodestar policy verify policy.cedar
  lodestar policy verify policy.cedar --key alice.pub";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct VerifyArgs {
    /// The policy; its signature lies beside it, as FILE.sig
    file: PathBuf,

    /// Count this key instead of the pinned operators': `name+hash+key`, a file with it, or the
    /// key in hexadecimal. May be given several times
    #[arg(long = "key", value_name = "KEY|FILE")]
    keys: Vec<String>,
}

pub(crate) fn run(args: &VerifyArgs, app: &mut App) -> Result<Exit, Failure> {
    let keys: Vec<PublicKey> = args
        .keys
        .iter()
        .map(|key| given(key))
        .collect::<Result<_, _>>()?;
    let operators = trust::pinned()?.0;
    let keys = match keys.is_empty() {
        true => operators.keys(),
        false => keys,
    };
    let bytes = super::read(&args.file)?;
    let signature = super::read_signature(&args.file)?;
    let now = crate::commands::now();
    let file = inert::path(&args.file);
    let policy = Policy::load(&bytes, signature.as_ref(), &keys, Unsigned::Refused, now)
        .map_err(|problem| policy_refused(&file, &problem))?;
    let SignatureState::Signed { key } = policy.signature() else {
        unreachable!("INVARIANT: an unsigned policy was refused above")
    };
    let name = operators.name_of(key.as_str());
    if app.json {
        app.out.json(&json!({
            "file": args.file.to_string_lossy(),
            "digest": policy.digest(),
            "signed_by": name,
            "key_id": key,
        }))?;
        return Ok(Exit::Done);
    }
    let line = format!(
        "✓ {file} is as it was signed by `{}`",
        inert::line(name, 128)
    );
    let line = app.out.paint.good(line);
    writeln!(app.out, "{line}")?;
    writeln!(app.out, "  digest  {}", policy.digest())?;
    Ok(Exit::Done)
}

/// A configuration has keys in hexadecimal, the installation in the form of notes.
fn given(text: &str) -> Result<PublicKey, Failure> {
    match text.parse() {
        Ok(key) => Ok(key),
        Err(_) => Ok(*trust::vkey(text)?.public_key()),
    }
}
