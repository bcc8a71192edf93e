//! `lodestar policy sign`: these bytes, and no others, are the policy.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_core::digest::sha256;
use lodestar_core::statement::Nonce;
use lodestar_policy::{sign, signature_path};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::operator::{self, OperatorArgs};
use crate::{files, inert, trust};

const AFTER_HELP: &str = "\
The signature is written beside the policy, as FILE.sig, and replaces an earlier one. A policy that
cannot be read is not signed. A configuration puts it into force with

  [policy]
  file = \"policy.cedar\"
  keys = [\"…\"]            # the public key that is printed here

Examples:
  lodestar policy sign policy.cedar
  lodestar policy sign policy.cedar --operator alice
  lodestar policy sign policy.cedar --operator-key release.key";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SignArgs {
    /// The policy
    file: PathBuf,

    #[command(flatten)]
    operator: OperatorArgs,
}

pub(crate) fn run(args: &SignArgs, app: &mut App) -> Result<Exit, Failure> {
    let chosen = args.operator.parse()?;
    let bytes = super::read(&args.file)?;
    super::load(&args.file, &bytes)?;
    let installation = Installation::locate()?;
    let key = operator::open(chosen.sealed(&installation, "a policy")?)?;
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    let now = crate::commands::now();
    let envelope = sign(&bytes, &key, Nonce::from_bytes(nonce), now, None)
        .map_err(|e| Failure::usage(format!("the policy cannot be signed: {e}")))?;
    let path = signature_path(&args.file);
    files::replace(&path, |file| {
        file.write_all(&envelope.to_json())?;
        Ok(file.write_all(b"\n")?)
    })?;
    let (public, digest) = (key.public(), sha256(&bytes));
    let id = public.key_id();
    let operators = trust::known_operators();
    let name = operators.name_of(id.as_str());
    if app.json {
        app.out.json(&json!({
            "file": args.file.to_string_lossy(),
            "signature": path.to_string_lossy(),
            "digest": digest,
            "signed_by": name,
            "key_id": id,
            "public": public,
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let file = inert::path(&args.file);
    writeln!(app.out, "{} {}", paint.good("✓ signed"), paint.strong(file))?;
    writeln!(app.out, "  by         `{}`", inert::line(name, 128))?;
    writeln!(app.out, "  signature  {}", inert::path(&path))?;
    writeln!(app.out, "  digest     {digest}")?;
    writeln!(app.out, "  public     {public}")?;
    if name == id.as_str() {
        app.note("this key is not one of the operators pinned here; `policy verify` needs --key");
    }
    Ok(Exit::Done)
}
