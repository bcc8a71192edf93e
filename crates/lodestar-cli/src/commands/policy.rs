//! `lodestar policy`: what runs, what is asked for, what is refused, and on whose word.

mod check;
mod explain;
mod show;
mod sign;
mod test;
mod verify;

use std::path::Path;

use clap::{Args, Subcommand};
use lodestar_core::statement::Envelope;
use lodestar_policy::{MAX_POLICY_LEN, Policy, Unsigned, signature_path};

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::refusals::policy_refused;
use crate::{files, inert};

const AFTER_HELP: &str = "\
A policy is Cedar text. `run` permitted: the call runs; else `ask` permitted: it waits for a human;
else it is denied. Whatever the text says, L4 waits for a human and L5 does not run.

Examples:
  lodestar policy show
  lodestar policy check policy.cedar
  lodestar policy sign policy.cedar --operator alice
  lodestar policy test policy-tests.toml
  lodestar policy explain latest '#12'";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// The policy in force, or a preset, as Cedar text
    Show(show::ShowArgs),
    /// What is wrong with a policy, line by line
    Check(check::CheckArgs),
    /// Put a policy into force, under an operator's signature
    Sign(sign::SignArgs),
    /// Check that a policy is as it was signed, and by whom
    Verify(verify::VerifyArgs),
    /// Why an action ran, waited or did not run
    Explain(explain::ExplainArgs),
    /// Put calls to the policy and compare the verdicts with those expected
    Test(test::TestArgs),
}

pub(crate) fn run(args: &PolicyArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        PolicyCommand::Show(args) => show::run(args, app),
        PolicyCommand::Check(args) => check::run(args, app),
        PolicyCommand::Sign(args) => sign::run(args, app),
        PolicyCommand::Verify(args) => verify::run(args, app),
        PolicyCommand::Explain(args) => explain::run(args, app),
        PolicyCommand::Test(args) => test::run(args, app),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    Ok(files::read(file, MAX_POLICY_LEN as u64)?)
}

/// A policy to look at, whoever signed it.
pub(super) fn read_unsigned(file: &Path) -> Result<Policy, Failure> {
    load(file, &read(file)?)
}

fn load(file: &Path, bytes: &[u8]) -> Result<Policy, Failure> {
    let now = super::now();
    Policy::load(bytes, None, &[], Unsigned::Allowed, now)
        .map_err(|problem| policy_refused(&inert::path(file), &problem))
}

/// The signature that lies beside a policy, if one does.
fn read_signature(file: &Path) -> Result<Option<Envelope>, Failure> {
    let path = signature_path(file);
    if !crate::installation::is_there(&path)? {
        return Ok(None);
    }
    let bytes = files::read(&path, files::SMALL)?;
    let envelope = Envelope::from_json(&bytes).map_err(|problem| {
        Failure::check(format!(
            "`{}` is no signature: {problem}",
            inert::path(&path)
        ))
        .help("sign the policy again")
    })?;
    Ok(Some(envelope))
}
