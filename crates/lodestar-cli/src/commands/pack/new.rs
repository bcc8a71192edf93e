//! `lodestar pack new`: a first pack, to change.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_harness::pack::template;
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::inert;
use crate::installation::OperatorName;

const AFTER_HELP: &str = "\
Examples:
  lodestar pack new my-pack
  lodestar pack new packs/invoice-fraud --author alice";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct NewArgs {
    /// The folder, which is made; its name is the pack's
    folder: PathBuf,

    /// Whose pack it is: the name that their key is made and pinned under
    #[arg(long, value_name = "NAME", default_value = "me")]
    author: String,
}

pub(crate) fn run(args: &NewArgs, app: &mut App) -> Result<Exit, Failure> {
    let author = OperatorName::parse(&args.author)?;
    let name = args.folder.file_name().and_then(|name| name.to_str());
    let name =
        name.ok_or_else(|| Failure::usage("the folder's name is the pack's, and is missing"))?;
    template::check(name, author.as_str())
        .map_err(|problem| Failure::usage(inert::line(&problem, 600)))?;
    let scenarios = args.folder.join("scenarios");
    if let Some(parent) = args.folder.parent() {
        std::fs::create_dir_all(parent).map_err(Failure::io(parent))?;
    }
    // Nothing that is there is touched.
    std::fs::create_dir(&args.folder).map_err(Failure::io(&args.folder))?;
    std::fs::create_dir(&scenarios).map_err(Failure::io(&scenarios))?;
    let files = template::files(name, author.as_str());
    for (path, text) in &files {
        let path = args.folder.join(path);
        std::fs::write(&path, text).map_err(Failure::io(&path))?;
    }
    let folder = inert::path(&args.folder);
    if app.json {
        let files: Vec<&String> = files.iter().map(|(path, _)| path).collect();
        app.out.json(&json!({"folder": folder, "files": files}))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(
        app.out,
        "{} {}",
        paint.good("✓ made"),
        paint.strong(&folder)
    )?;
    for (path, _) in &files {
        writeln!(app.out, "  {path}")?;
    }
    writeln!(app.out, "next: lodestar pack check {folder}")?;
    writeln!(
        app.out,
        "      lodestar harness run --pack {folder} --allow-unsigned"
    )?;
    Ok(Exit::Done)
}
