//! The act that is meant, and what the log keeps of it.

use std::collections::BTreeMap;

use lodestar_core::event::EventType;
use lodestar_core::id::ActionId;
use lodestar_kernel::image::{Imaged, State};
use lodestar_kernel::native::fs::RESTORE;
use lodestar_kernel::record::Finished;
use lodestar_kernel::terse;
use lodestar_log::{Event, Payload, Reader, SessionDir};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::commands::log::event::unreadable;
use crate::failure::Failure;
use crate::inert;
use crate::place::LATEST;

/// How an act is named on the command line.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    Latest,
    /// Its id, or the beginning of it.
    Id(String),
}

impl Wanted {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        if text == LATEST {
            return Ok(Self::Latest);
        }
        let is_id = !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        match is_id {
            true if text.starts_with("act_") || "act_".starts_with(text) => {
                Ok(Self::Id(text.to_owned()))
            }
            true => Ok(Self::Id(format!("act_{text}"))),
            false => Err(
                Failure::usage(format!("`{}` names no act", inert::line(text, 80)))
                    .help("give its id, the beginning of it, or `latest`"),
            ),
        }
    }
}

/// An act, and the events about it that matter here.
#[derive(Debug, Clone)]
pub(super) struct Act {
    dir: SessionDir,
    pub(super) id: ActionId,
    pub(super) tool: String,
    proposed: u64,
    cleared: Option<u64>,
    imaged: Option<u64>,
    ended: Option<u64>,
}

/// What the log keeps of it.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) imaged: Imaged,
    /// What it left at each path; none where no end of it tells.
    pub(super) left: Option<Vec<State>>,
}

#[derive(Deserialize)]
struct ProposedLine {
    id: ActionId,
    tool: String,
}

#[derive(Deserialize)]
struct AboutLine {
    action: ActionId,
}

/// The act in these sessions, which stand in the order in which they are looked at.
pub(super) fn act(sessions: &[SessionDir], wanted: &Wanted) -> Result<Act, Failure> {
    let mut matching: Vec<Act> = Vec::new();
    for dir in sessions {
        let acts = read(dir)?;
        match wanted {
            Wanted::Latest => {
                let mut wrote = acts.into_iter().rev();
                let last = wrote.find(|act| act.imaged.is_some() && act.tool != RESTORE);
                if let Some(act) = last {
                    return Ok(act);
                }
            }
            Wanted::Id(id) => {
                let begins = |act: &Act| act.id.to_string().starts_with(id);
                matching.extend(acts.into_iter().filter(begins));
            }
        }
    }
    let Wanted::Id(id) = wanted else {
        return Err(Failure::not_found(
            "no act here wrote a file of which something was kept",
        ));
    };
    let id = inert::line(id, 80);
    match matching.as_slice() {
        [] => Err(Failure::not_found(format!("there is no act `{id}` here"))
            .help("`lodestar log show SESSION --type action.proposed` lists those of a session")),
        [_] => Ok(matching.remove(0)),
        [one, two, rest @ ..] => Err(Failure::usage(format!(
            "`{id}` could be `{}`, `{}`{}",
            one.id,
            two.id,
            if rest.is_empty() { "" } else { " or others" }
        ))
        .help("give more of the id, or --session")),
    }
}

/// The acts of a session, in the order in which they were proposed. Of what was redacted the heads are there.
fn read(dir: &SessionDir) -> Result<Vec<Act>, Failure> {
    let mut reader = match Reader::open(dir) {
        Ok(reader) => reader,
        // A session whose start was interrupted has no events yet.
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(problem) => return Err(Failure::io(dir.events_path())(problem)),
    };
    let mut acts: BTreeMap<u64, Act> = BTreeMap::new();
    let mut of: BTreeMap<u64, u64> = BTreeMap::new();
    while let Some(event) = reader.next_event().map_err(|e| unreadable(dir, &e))? {
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            continue;
        };
        let first = event.parents.first().copied();
        match kind {
            EventType::ACTION_PROPOSED => {
                if let Some(ProposedLine { id, tool }) = line(&event) {
                    let act = Act {
                        dir: dir.clone(),
                        id,
                        tool,
                        proposed: event.seq,
                        cleared: None,
                        imaged: None,
                        ended: None,
                    };
                    acts.insert(event.seq, act);
                }
            }
            EventType::ACTION_CLEARED => {
                let place = event.parents.iter().find(|seq| acts.contains_key(seq));
                if let Some(act) = place.and_then(|place| acts.get_mut(place)) {
                    of.insert(event.seq, act.proposed);
                    act.cleared = Some(event.seq);
                }
            }
            EventType::ACTION_IMAGED | EventType::ACTION_COMPLETED | EventType::ACTION_FAILED => {
                let place = first.and_then(|cleared| of.get(&cleared));
                let Some(act) = place.and_then(|place| acts.get_mut(place)) else {
                    continue;
                };
                // What names another act than it hangs on is none of this one's.
                let is_of_it = line::<AboutLine>(&event).is_none_or(|one| one.action == act.id);
                match kind {
                    _ if !is_of_it => {}
                    EventType::ACTION_IMAGED => act.imaged = Some(event.seq),
                    _ => act.ended = Some(event.seq),
                }
            }
            _ => {}
        }
    }
    Ok(acts.into_values().collect())
}

/// What stands in the line itself.
fn line<T: DeserializeOwned>(event: &Event) -> Option<T> {
    match &event.payload {
        Payload::Present(payload) => serde_json::from_slice(payload).ok(),
        Payload::Redacted { .. } => None,
    }
}

impl Act {
    pub(super) fn dir(&self) -> &SessionDir {
        &self.dir
    }

    /// What was kept of it, out of events that are proven.
    pub(super) fn kept(&self, proven: u64) -> Result<Kept, Failure> {
        let Some(imaged) = self.imaged else {
            let why = match self.cleared {
                None => "it did not run",
                Some(_) => "its tool does not say which files it writes, or it stands below L3",
            };
            return Err(Failure::check(format!(
                "of `{}` ({}) nothing was kept: {why}",
                self.id,
                inert::line(&self.tool, 80)
            )));
        };
        // Behind the checkpoint stands what anybody may have written who can write the file.
        if imaged >= proven {
            return Err(Failure::check(format!(
                "what was kept of `{}` (#{imaged}) is under no checkpoint, so nothing is put back out of it",
                self.id
            )));
        }
        let image: Option<Imaged> = self.whole(imaged)?;
        let image = image.ok_or_else(|| {
            Failure::check(format!(
                "what was kept of `{}` (#{imaged}) was redacted: it cannot be undone",
                self.id
            ))
        })?;
        if image.action != self.id {
            return Err(odd(&self.dir, imaged, "it names another act"));
        }
        // The end of an act comes under a checkpoint seconds later. Until then it is believed all the same, since it
        // only tells a change from the act's own work: without it a person's edit would pass for nobody's, and what
        // a forged one gives away is kept when it is written over.
        let finished: Option<Finished> = match self.ended {
            Some(ended) => self.whole(ended)?,
            None => None,
        };
        let left = finished.map(|finished| finished.left);
        Ok(Kept {
            left: left.filter(|left| left.len() == image.images.len()),
            imaged: image,
        })
    }

    /// An event, whole; none where it was redacted.
    fn whole<T: DeserializeOwned>(&self, seq: u64) -> Result<Option<T>, Failure> {
        let dir = &self.dir;
        let mut reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
        while let Some(event) = reader.next_event().map_err(|e| unreadable(dir, &e))? {
            if event.seq != seq {
                continue;
            }
            let payload = terse::whole(&event, dir, None)
                .map_err(|problem| odd(dir, seq, &problem.to_string()))?;
            let read = payload.map(serde_json::from_value).transpose();
            return read.map_err(|problem| odd(dir, seq, &problem.to_string()));
        }
        Err(odd(dir, seq, "it is not there any more"))
    }
}

fn odd(dir: &SessionDir, seq: u64, problem: &str) -> Failure {
    Failure::check(format!("{}#{seq} cannot be read: {problem}", dir.session()))
        .help("`lodestar log verify` says what is wrong with the session")
}
