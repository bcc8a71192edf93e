//! `lodestar log export`: whole events for other tools.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lodestar_log::{Reader, SessionDir};
use serde_json::json;

use super::event::{EventJson, check_complete, is_wanted, unreadable};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::place::{LATEST, SessionName};
use crate::progress::Progress;
use crate::{files, inert, json as form, words};

const AFTER_HELP: &str = "\
Each line is one event: project, session, seq, time, type, actor, parents, leaf_hash, payload,
redacted_by. Large contents are back in their places; a redacted event has the payload null and
names the event that took it. Where a payload cannot be restored it is null, too, `error` says why,
and the exit code is 1. An export can be read, not verified: keep the log itself for that.

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
        let mut export = Export::begin(args, &dir, Progress::start(false))?;
        while let Some(line) = export.next_line()? {
            writeln!(app.out, "{line}")?;
            if app.out.is_closed() {
                break;
            }
        }
        return check_complete(export.incomplete);
    };
    let (count, incomplete) = files::replace_private(path, |file| write_all(args, &dir, file))?;
    if app.json {
        app.out.json(
            &json!({"out": path.to_string_lossy(), "session": dir.session(), "events": count, "incomplete": incomplete}),
        )?;
    } else {
        let done = format!("{} written to", words::count(count, "event"));
        writeln!(app.out, "{done} {}", inert::path(path))?;
    }
    check_complete(incomplete)
}

/// Gives how many events were written, and how many of them without their payload.
fn write_all(
    args: &ExportArgs,
    dir: &SessionDir,
    file: &mut dyn Write,
) -> Result<(u64, u64), Failure> {
    let mut export = Export::begin(args, dir, Progress::start(true))?;
    let mut count = 0;
    while let Some(line) = export.next_line()? {
        writeln!(file, "{line}")?;
        count += 1;
    }
    Ok((count, export.incomplete))
}

struct Export<'a> {
    args: &'a ExportArgs,
    dir: &'a SessionDir,
    reader: Reader,
    progress: Progress,
    total: u64,
    /// Events whose payload could not be restored.
    incomplete: u64,
}

impl<'a> Export<'a> {
    fn begin(
        args: &'a ExportArgs,
        dir: &'a SessionDir,
        progress: Progress,
    ) -> Result<Self, Failure> {
        let path = dir.events_path();
        Ok(Self {
            args,
            dir,
            reader: Reader::open(dir).map_err(Failure::io(&path))?,
            progress,
            total: std::fs::metadata(&path).map_err(Failure::io(&path))?.len(),
            incomplete: 0,
        })
    }

    fn next_line(&mut self) -> Result<Option<String>, Failure> {
        let dir = self.dir;
        while let Some(event) = self.reader.next_event().map_err(|e| unreadable(dir, &e))? {
            self.progress
                .at(dir.session().as_str(), event.offset, self.total);
            if is_wanted(&event, &self.args.types) {
                let json = EventJson::whole(&event, dir);
                self.incomplete += u64::from(json.is_incomplete());
                return Ok(Some(form::compact(&json)));
            }
        }
        Ok(None)
    }
}
