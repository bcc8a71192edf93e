//! `lodestar log show`: one line per event, also while they are being written.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use lodestar_core::event::EventType;
use lodestar_log::{Event, Payload, Reader, SessionDir};

use super::event::{EventJson, check_complete, is_wanted, unreadable};
use super::redaction::ShownRedaction;
use super::summary::summary;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::place::{LATEST, SessionName};
use crate::trust::{self, Operators};
use crate::{inert, json, words};

const AFTER_HELP: &str = "\
Content comes from tools and files that nobody vetted: control characters, escape sequences,
direction overrides, invisible characters and look-alikes are shown as marks such as ␛ and
⟨U+202E⟩, and what does not fit is counted. Times are UTC.

Examples:
  lodestar log show
  lodestar log show latest --type action. --type approval.
  lodestar log show latest --from 40 --limit 10 --payload
  lodestar log show latest --follow";

/// With fewer columns than this the place of an event takes no more of them than it has to.
const WIDE_COLUMNS: usize = 100;

/// How soon a follower sees an event; short for a person, rare for a processor.
const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ShowArgs {
    /// The session: its id, the beginning of it, or `latest`
    #[arg(default_value = LATEST)]
    session: String,

    /// Only events whose type begins so; may be given several times
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,

    /// Begin with this event
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    from: u64,

    /// Show at most so many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Go on as events arrive, until the session is closed
    #[arg(long, short)]
    follow: bool,

    /// Print each payload in full below its line
    #[arg(long)]
    payload: bool,
}

pub(crate) fn run(args: &ShowArgs, project: Option<&str>, app: &mut App) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let dir = app.place(project)?.readable_session(&name)?;
    let mut reader = Reader::open(&dir).map_err(Failure::io(dir.events_path()))?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut view = View::new(&dir, args.payload, app.json);
    let mut closed = false;
    let mut events = 0;
    while left > 0 && !app.out.is_closed() {
        let next = reader.next_event().map_err(|e| {
            // What comes before the damage is part of the answer.
            let _ = app.out.flush();
            unreadable(&dir, &e)
        })?;
        let Some(event) = next else {
            if !args.follow || closed {
                break;
            }
            app.out.flush()?;
            std::thread::sleep(POLL);
            continue;
        };
        closed = closes(&event, closed);
        events = event.seq + 1;
        if event.seq >= args.from && is_wanted(&event, &args.types) {
            view.event(&event, &mut app.out)?;
            left -= 1;
        }
    }
    if left > 0 && view.shown == 0 && !app.out.is_closed() {
        app.out.flush()?;
        app.note(format!(
            "no event matches; session `{}` has {}",
            dir.session(),
            words::count(events, "event")
        ));
    }
    check_complete(view.incomplete)
}

/// The log may write about itself after the end; anything else means that the session goes on.
fn closes(event: &Event, before: bool) -> bool {
    match event.kind.as_str() {
        kind if kind == EventType::SESSION_CLOSED.as_str() => true,
        kind if kind.starts_with("log.") => before,
        _ => false,
    }
}

struct View<'a> {
    dir: &'a SessionDir,
    payloads: bool,
    json: bool,
    /// The day that was announced last.
    day: String,
    operators: Operators,
    shown: u64,
    /// Events whose payload could not be restored.
    incomplete: u64,
}

impl<'a> View<'a> {
    fn new(dir: &'a SessionDir, payloads: bool, json: bool) -> Self {
        Self {
            dir,
            payloads,
            json,
            day: String::new(),
            operators: trust::known_operators(),
            shown: 0,
            incomplete: 0,
        }
    }

    fn event(&mut self, event: &Event, out: &mut Out) -> Result<(), Failure> {
        self.shown += 1;
        if self.json {
            let json = EventJson::whole(event, self.dir);
            self.incomplete += u64::from(json.is_incomplete());
            return Ok(out.json(&json)?);
        }
        let paint = out.paint;
        let time = event.time.to_string();
        let wide = out.columns >= WIDE_COLUMNS;
        let (day, clock) = (&time[..10], &time[11..if wide { 23 } else { 19 }]);
        if day != self.day {
            writeln!(out, "{}", paint.dim(format!("── {day} UTC ──")))?;
            day.clone_into(&mut self.day);
        }
        let (gap, digits) = if wide { ("  ", 6) } else { (" ", 4) };
        let seq = format!("{:>digits$}", format!("#{}", event.seq));
        let place = format!("{clock}{gap}{seq}{gap}{:<22}{gap}", event.kind);
        let room = out.columns.saturating_sub(place.chars().count()).max(30);
        let what = match (&event.payload, event.inline()) {
            (Payload::Redacted { by }, _) => paint.warn(format!("▒ redacted by #{by}")),
            (_, Ok(payload)) => match ShownRedaction::of(event) {
                Some(redaction) => redaction.summary(&self.operators, room),
                None => summary(&payload.unwrap_or_default(), room),
            },
            (_, Err(error)) => paint.bad(inert::line(&error.to_string(), room)),
        };
        let kind = format!("{:<22}", event.kind);
        writeln!(
            out,
            "{}{gap}{}{gap}{}{gap}{what}",
            paint.dim(clock),
            paint.strong(seq),
            paint.accent(kind)
        )?;
        match self.payloads {
            true => self.payload(event, out),
            false => Ok(()),
        }
    }

    fn payload(&self, event: &Event, out: &mut Out) -> Result<(), Failure> {
        let paint = out.paint;
        let mut about = format!("actor {}", event.actor);
        if !event.parents.is_empty() {
            let causes: Vec<String> = event.parents.iter().map(|seq| format!("#{seq}")).collect();
            about.push_str(&format!(", caused by {}", causes.join(" ")));
        }
        writeln!(out, "    {}", paint.dim(about))?;
        let payload = match ShownRedaction::of(event) {
            Some(redaction) => Ok(Some(redaction.decoded())),
            None => event.whole(self.dir),
        };
        match payload {
            Ok(None) => {}
            Ok(Some(payload)) => {
                for line in json::pretty(&payload).lines() {
                    writeln!(out, "    {line}")?;
                }
            }
            Err(error) => writeln!(out, "    {}", paint.bad(inert::whole(&error.to_string())))?,
        }
        Ok(())
    }
}
