//! `lodestar man DIR`

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;

use crate::cli::{self, App};
use crate::failure::{Exit, Failure};
use crate::{files, inert, words};

const AFTER_HELP: &str = "\
Examples:
  lodestar man ~/.local/share/man/man1
  lodestar man /tmp/man && man /tmp/man/lodestar-log-verify.1";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ManArgs {
    /// Where to write them; made if it is missing
    dir: PathBuf,
}

pub(crate) fn run(args: &ManArgs, app: &mut App) -> Result<Exit, Failure> {
    std::fs::create_dir_all(&args.dir).map_err(Failure::io(&args.dir))?;
    let mut command = cli::command();
    command.build();
    let mut written = Vec::new();
    write_pages(&command, args, &mut written)?;
    if app.json {
        app.out.json(&serde_json::json!({"written": written}))?;
    } else {
        writeln!(
            app.out,
            "{} written to {}",
            words::count(written.len() as u64, "page"),
            inert::path(&args.dir)
        )?;
    }
    Ok(Exit::Done)
}

fn write_pages(
    command: &clap::Command,
    args: &ManArgs,
    written: &mut Vec<String>,
) -> Result<(), Failure> {
    let page = clap_mangen::Man::new(command.clone());
    let name = page.get_filename();
    files::replace(&args.dir.join(&name), |file| {
        page.render(file).map_err(Failure::from)
    })?;
    written.push(name);
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .try_for_each(|sub| write_pages(sub, args, written))
}
