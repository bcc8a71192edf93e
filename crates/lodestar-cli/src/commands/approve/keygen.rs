//! `lodestar approve keygen`

use std::io::Write as _;

use clap::Args;
use lodestar_core::note::NoteKey;
use serde_json::json;
use zeroize::Zeroizing;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::{self, Installation, OperatorName, fresh_key};
use crate::terminal::Terminal;
use crate::{inert, operator_key};

const AFTER_HELP: &str = "\
The passphrase is asked for on the terminal, twice, and has 8 characters or more; it is
never an argument.

Examples:
  lodestar approve keygen --name alice
  lodestar approve keygen --name ci --no-passphrase";

/// Shorter ones fall to guessing even at a tenth of a second per guess.
const FEWEST_CHARACTERS: usize = 8;

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct KeygenArgs {
    /// Whose key it is
    #[arg(long)]
    name: String,

    /// Store the key unsealed: whoever can read the file can sign
    #[arg(long)]
    no_passphrase: bool,
}

pub(crate) fn run(args: &KeygenArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = OperatorName::parse(&args.name)?;
    let installation = Installation::locate()?;
    installation::check_operator_is_new(&installation, &name)?;
    let passphrase = match args.no_passphrase {
        true => None,
        false => Some(ask_twice(&name)?),
    };
    let key = fresh_key()?;
    let public = NoteKey::ed25519(name.as_str(), &key.public())
        .map_err(|e| Failure::usage(e.to_string()))?;
    let text = match &passphrase {
        Some(passphrase) => Zeroizing::new(operator_key::seal(&public, &key, passphrase)?),
        None => operator_key::plain(name.as_str(), &key)?,
    };
    installation::add_operator(&installation, &name, &text, &public)?;

    let file = installation::operator_key_path(&installation, &name);
    let pin = installation.operator_pin_path(name.as_str());
    if app.json {
        app.out.json(&json!({
            "name": name.as_str(),
            "public": public.to_string(),
            "public_key": key.public().to_string(),
            "key_id": key.public().key_id().as_str(),
            "key_file": file.to_string_lossy(),
            "pinned": pin.to_string_lossy(),
            "passphrase": passphrase.is_some(),
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(
        app.out,
        "{} key of {}",
        paint.good("✓"),
        paint.strong(name.as_str())
    )?;
    writeln!(app.out, "  private  {}  (mode 0600)", inert::path(&file))?;
    writeln!(app.out, "  pinned   {}", inert::path(&pin))?;
    writeln!(app.out, "  public   {public}")?;
    writeln!(
        app.out,
        "  key id   {}  (as reports show it)",
        key.public().key_id()
    )?;
    writeln!(app.out, "  to let them approve, in lodestar.toml:")?;
    let entry = [
        "[[approvals.authorized_keys]]".to_owned(),
        format!("actor_id = \"{}\"", name.as_str()),
        format!("public_key = \"{}\"", key.public()),
    ];
    for line in entry {
        writeln!(app.out, "    {line}")?;
    }
    if passphrase.is_none() {
        let warning = "without a passphrase: whoever can read the file can sign as this operator";
        writeln!(app.out, "  {}", paint.warn(warning))?;
    }
    Ok(Exit::Done)
}

fn ask_twice(name: &OperatorName) -> Result<Zeroizing<String>, Failure> {
    let Some(mut terminal) = Terminal::open() else {
        return Err(
            Failure::usage("there is no terminal to ask for a passphrase on")
                .help("run it on a terminal, or accept an unsealed key with --no-passphrase"),
        );
    };
    let name = name.as_str();
    let first = terminal.ask_hidden(&format!(
        "Passphrase for the new key of {name} ({FEWEST_CHARACTERS} characters or more): "
    ))?;
    if first.chars().count() < FEWEST_CHARACTERS {
        return Err(Failure::usage(format!(
            "the passphrase is too short: at least {FEWEST_CHARACTERS} characters"
        )));
    }
    let second = terminal.ask_hidden("Once more: ")?;
    if *first != *second {
        return Err(Failure::usage(
            "the two passphrases differ; nothing was made",
        ));
    }
    Ok(first)
}
