//! `lodestar log export`: whole events for other tools.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lodestar_log::{Reader, SessionDir};
use serde_json::json;

use super::event::{EventJson, is_wanted, unreadable};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::place::{LATEST, SessionName};
use crate::progress::Progress;
use crate::{files, inert, json as form, words};

const AFTER_HELP: &str = "\
Each line is one event: project, session, seq, time, type, actor, parents, leaf_hash, payload,
redacted_by. Large contents are back in their places; a redacted event has the payload null and
names the event that took it. An export can be read, not verified: keep the log itself for that.

Examples:
  lodestar log export latest --out session.ndjson
  lodestar log export latest --type observation. | jq .payload.content";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ExportArgs {
    /// The session: its id, the beginning of it, or `latest`
    #[arg(default_value = LATEST)]
    session: String,

    /// Write to this file, which is replaced only once the export is whole
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Only events whose type begins so; may be given several times
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
}

pub(crate) fn run(
    args: &ExportArgs,
    project: Option<&str>,
    app: &mut App,
) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let dir = app.place(project)?.readable_session(&name)?;
    let Some(path) = &args.out else {
        let mut reader = Reader::open(&dir).map_err(Failure::io(dir.events_path()))?;
        while let Some(line) = next_line(&mut reader, &dir, args, &Progress::start(false), 0)? {
            writeln!(app.out, "{line}")?;
            if app.out.is_closed() {
                break;
            }
        }
        return Ok(Exit::Done);
    };
    let count = files::replace(path, |file| write_all(args, &dir, file))?;
    if app.json {
        app.out.json(
            &json!({"out": path.to_string_lossy(), "session": dir.session(), "events": count}),
        )?;
    } else {
        let done = format!("{} written to", words::count(count, "event"));
        writeln!(app.out, "{done} {}", inert::path(path))?;
    }
    Ok(Exit::Done)
}

fn write_all(args: &ExportArgs, dir: &SessionDir, file: &mut dyn Write) -> Result<u64, Failure> {
    let path = dir.events_path();
    let mut reader = Reader::open(dir).map_err(Failure::io(&path))?;
    let total = std::fs::metadata(&path).map_err(Failure::io(&path))?.len();
    let progress = Progress::start(true);
    let mut count = 0;
    while let Some(line) = next_line(&mut reader, dir, args, &progress, total)? {
        writeln!(file, "{line}")?;
        count += 1;
    }
    Ok(count)
}

fn next_line(
    reader: &mut Reader,
    dir: &SessionDir,
    args: &ExportArgs,
    progress: &Progress,
    total: u64,
) -> Result<Option<String>, Failure> {
    while let Some(event) = reader.next_event().map_err(|e| unreadable(dir, &e))? {
        progress.at(dir.session().as_str(), event.offset, total);
        if is_wanted(&event, &args.types) {
            return Ok(Some(form::compact(&EventJson::whole(&event, dir)?)));
        }
    }
    Ok(None)
}
