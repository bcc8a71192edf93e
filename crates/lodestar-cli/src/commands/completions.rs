//! `lodestar completions SHELL`

use std::io::Write as _;

use clap::Args;
use clap_complete::Shell;

use crate::cli::{self, App};
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar completions bash > ~/.local/share/bash-completion/completions/lodestar
  lodestar completions zsh > \"${fpath[1]}/_lodestar\"
  lodestar completions fish > ~/.config/fish/completions/lodestar.fish";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, app: &mut App) -> Result<Exit, Failure> {
    // The generator panics on a writer that fails; memory does not.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "lodestar", &mut script);
    if app.json {
        let script = String::from_utf8_lossy(&script);
        let shell = args.shell.to_string();
        app.out
            .json(&serde_json::json!({"shell": shell, "script": script}))?;
    } else {
        app.out.write_all(&script)?;
    }
    Ok(Exit::Done)
}
