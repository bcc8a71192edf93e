//! `lodestar pack sign`: these files, and no others, are the pack.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_core::note::NoteKey;
use lodestar_core::statement::Nonce;
use lodestar_harness::pack::SIGNATURE;
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::{Installation, OperatorName};
use crate::operator::{self, Chosen};
use crate::{files, inert};

const AFTER_HELP: &str = "\
The signature is written into the pack as pack.sig, and replaces an earlier one. It names every file with its
length and digest. A pack that `pack check` refuses is not signed. Whoever wants to run the pack pins the key
that is printed here, in `packs/AUTHOR.pub` of their configuration directory.

Examples:
  lodestar approve keygen --name alice
  lodestar pack sign my-pack --as alice";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SignArgs {
    /// The pack's folder
    folder: PathBuf,

    /// The author, whose key is here
    #[arg(long = "as", value_name = "NAME")]
    author: String,
}

pub(crate) fn run(args: &SignArgs, app: &mut App) -> Result<Exit, Failure> {
    let author = OperatorName::parse(&args.author)?;
    let pack = super::read(&args.folder)?;
    if pack.about.author != author.as_str() {
        return Err(Failure::usage(format!(
            "the pack's author is `{}`, not `{}`",
            inert::line(&pack.about.author, 128),
            author.as_str()
        ))
        .help("only its author signs a pack; change `author` in pack.toml if it is yours"));
    }
    let installation = Installation::locate()?;
    let sealed = Chosen::Name(author).sealed(&installation, "a pack")?;
    let key = operator::open(sealed)?;
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    let now = crate::commands::now();
    let envelope = pack
        .seal(&key, Nonce::from_bytes(nonce), now)
        .map_err(|e| Failure::usage(format!("the pack cannot be signed: {e}")))?;
    let path = args.folder.join(SIGNATURE);
    files::replace(&path, |file| {
        file.write_all(&envelope.to_json())?;
        Ok(file.write_all(b"\n")?)
    })?;
    let public = NoteKey::ed25519(&pack.about.author, &key.public())
        .map_err(|e| Failure::usage(format!("the author's name is no name of a key: {e}")))?;
    if app.json {
        app.out.json(&json!({
            "pack": pack.about,
            "signature": path.to_string_lossy(),
            "public": public.to_string(),
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let folder = inert::path(&args.folder);
    writeln!(
        app.out,
        "{} {}",
        paint.good("✓ signed"),
        paint.strong(folder)
    )?;
    writeln!(
        app.out,
        "  by         `{}`",
        inert::line(&pack.about.author, 128)
    )?;
    writeln!(app.out, "  signature  {}", inert::path(&path))?;
    writeln!(app.out, "  public     {public}")?;
    Ok(Exit::Done)
}
