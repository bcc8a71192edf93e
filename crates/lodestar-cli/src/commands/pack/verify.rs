//! `lodestar pack verify`: is a pack as its author signed it, and does that author count here?

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use lodestar_core::key::PublicKey;
use lodestar_harness::pack::{OutsidePack, Unsealed};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::{inert, trust};

const AFTER_HELP: &str = "\
The author's key counts if it is pinned under the author's name in `packs/` of the configuration directory, or
given with --key. A pack that was changed, that nobody signed, or that somebody else signed exits with 1.

Examples:
  lodestar pack verify my-pack
  lodestar pack verify my-pack --key alice.pub";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct VerifyArgs {
    /// The pack's folder
    folder: PathBuf,

    /// Count this key for the author instead of the pinned one: `name+hash+key`, or a file with it
    #[arg(long, value_name = "KEY|FILE")]
    key: Option<String>,
}

pub(crate) fn run(args: &VerifyArgs, app: &mut App) -> Result<Exit, Failure> {
    let pack = super::read(&args.folder)?;
    let authors = match &args.key {
        Some(key) => {
            let key = trust::vkey(key)?;
            vec![(pack.about.author.clone(), *key.public_key())]
        }
        None => Installation::locate()?.pack_authors()?,
    };
    let key = pack
        .verify(&authors)
        .map_err(|problem| unsealed(&args.folder, &pack, &problem))?;
    print(&args.folder, &pack, key, app)?;
    Ok(Exit::Done)
}

fn print(folder: &Path, pack: &OutsidePack, key: PublicKey, app: &mut App) -> Result<(), Failure> {
    if app.json {
        let key = key.key_id();
        return Ok(app.out.json(&json!({"pack": pack.about, "key_id": key}))?);
    }
    let line = format!(
        "✓ {} is {} {} as it was signed by `{}`",
        inert::path(folder),
        inert::line(&pack.about.name, 64),
        inert::line(&pack.about.version, 64),
        inert::line(&pack.about.author, 128),
    );
    let line = app.out.paint.good(line);
    Ok(writeln!(app.out, "{line}")?)
}

/// A pack that does not run because of who signed it, or did not.
pub(in crate::commands) fn unsealed(
    folder: &Path,
    pack: &OutsidePack,
    problem: &Unsealed,
) -> Failure {
    let text = format!("`{}`: {problem}", inert::path(folder));
    let text = inert::line(&text, 1000);
    match problem {
        Unsealed::Unsigned => Failure::check(text).help(
            "its author signs it with `lodestar pack sign`; `harness run --allow-unsigned` runs it all the same",
        ),
        Unsealed::Unknown { .. } => Failure::not_authorised(text).help(format!(
            "if you trust this author, put their public key into packs/{}.pub of the configuration directory",
            inert::line(&pack.about.author, 128)
        )),
        _ => Failure::check(text).help("get the pack from its author again"),
    }
}
