//! What the log says of one action.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::event::EventType;
use lodestar_kernel::opening::{Opening, PolicyRecord};
use lodestar_kernel::record::{Proposal, Rejected};
use lodestar_kernel::terse;
use lodestar_log::{Event, Reader, SessionDir};
use lodestar_policy::Judgement;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::commands::log::event::unreadable;
use crate::failure::Failure;
use crate::inert;

/// How an action is named on the command line.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// By an event about it.
    Seq(u64),
    /// By its id, or the beginning of it.
    Id(String),
}

impl Wanted {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        if let Ok(seq) = digits.parse() {
            return Ok(Self::Seq(seq));
        }
        let is_id = !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        if text.starts_with('#') || !is_id {
            return Err(
                Failure::usage(format!("`{}` names no action", inert::line(text, 80)))
                    .help("give its id, the beginning of it, or an event as `#12`"),
            );
        }
        Ok(Self::Id(text.to_owned()))
    }
}

/// What the log says of one action.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// The action; none for a call that did not become one.
    pub(super) action: Option<String>,
    pub(super) policy: Option<PolicyRecord>,
    pub(super) proposed: Option<(u64, Proposal)>,
    pub(super) judged: Option<(u64, Judgement)>,
    pub(super) rejected: Option<(u64, Rejected)>,
    pub(super) events: Vec<(u64, String)>,
}

/// One event about actions: which action, and what it says.
struct About {
    seq: u64,
    kind: EventType,
    action: Option<String>,
    payload: Value,
}

impl Story {
    pub(super) fn find(dir: &SessionDir, wanted: &Wanted) -> Result<Self, Failure> {
        let (policy, all) = read(dir, wanted)?;
        let action = match wanted {
            Wanted::Seq(seq) => by_seq(*seq, &all, dir)?,
            Wanted::Id(id) => Some(by_id(id, &all, dir)?),
        };
        let mut story = Self {
            action: action.clone(),
            policy,
            ..Self::default()
        };
        for about in all {
            let is_meant = match (&action, wanted) {
                (Some(action), _) => about.action.as_ref() == Some(action),
                // A call that did not become an action has this one event.
                (None, Wanted::Seq(seq)) => about.seq == *seq,
                (None, Wanted::Id(_)) => false,
            };
            if is_meant {
                story.add(about, dir)?;
            }
        }
        Ok(story)
    }

    fn add(&mut self, about: About, dir: &SessionDir) -> Result<(), Failure> {
        self.events.push((about.seq, about.kind.to_string()));
        let seq = about.seq;
        match about.kind {
            EventType::ACTION_PROPOSED => self.proposed = Some((seq, parsed(about, dir)?)),
            EventType::ACTION_JUDGED => self.judged = Some((seq, parsed(about, dir)?)),
            EventType::ACTION_REJECTED => self.rejected = Some((seq, parsed(about, dir)?)),
            _ => {}
        }
        Ok(())
    }
}

fn by_seq(seq: u64, all: &[About], dir: &SessionDir) -> Result<Option<String>, Failure> {
    let found = all.iter().find(|about| about.seq == seq);
    let found = found.ok_or_else(|| {
        Failure::not_found(format!(
            "event #{seq} of session `{}` is not about an action",
            dir.session()
        ))
        .help(format!(
            "`lodestar log show {} --type action.` lists those that are",
            dir.session()
        ))
    })?;
    Ok(found.action.clone())
}

fn by_id(id: &str, all: &[About], dir: &SessionDir) -> Result<String, Failure> {
    let ids = all.iter().filter_map(|about| about.action.as_deref());
    let matching: BTreeSet<&str> = ids.filter(|action| action.starts_with(id)).collect();
    let mut matching = matching.into_iter();
    match (matching.next(), matching.next()) {
        (Some(one), None) => Ok(one.to_owned()),
        (None, _) => Err(Failure::not_found(format!(
            "there is no action `{id}` in session `{}`",
            dir.session()
        ))
        .help(format!(
            "`lodestar log show {} --type action.` lists them",
            dir.session()
        ))),
        (Some(one), Some(two)) => Err(Failure::usage(format!(
            "`{id}` could be `{one}`, `{two}`{}",
            if matching.next().is_some() {
                " or others"
            } else {
                ""
            }
        ))
        .help("give more of the id")),
    }
}

/// The policy of the session, and every event about an action.
fn read(dir: &SessionDir, wanted: &Wanted) -> Result<(Option<PolicyRecord>, Vec<About>), Failure> {
    let mut reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
    let (mut opening, mut all) = (None, Vec::new());
    let mut requests = BTreeMap::new();
    while let Some(event) = reader.next_event().map_err(|e| unreadable(dir, &e))? {
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            continue;
        };
        let is_opening = kind == EventType::SESSION_OPENED;
        let is_about = event.kind.starts_with("action.") || event.kind.starts_with("approval.");
        if !is_opening && !is_about {
            continue;
        }
        let Some(payload) = whole(&event, dir, opening.as_ref())? else {
            if matches!(wanted, Wanted::Seq(seq) if *seq == event.seq) {
                return Err(Failure::check(format!(
                    "what event #{} said was redacted: nothing of it can be explained",
                    event.seq
                )));
            }
            continue;
        };
        if is_opening {
            opening = serde_json::from_value::<Opening>(payload).ok();
            continue;
        }
        let action = action(kind, &payload, &mut requests);
        all.push(About {
            seq: event.seq,
            kind,
            action,
            payload,
        });
    }
    Ok((opening.map(|opening| opening.policy), all))
}

/// The action that an event is about; answers name a request, and the request its action.
fn action(
    kind: EventType,
    payload: &Value,
    requests: &mut BTreeMap<String, String>,
) -> Option<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match kind {
        EventType::ACTION_PROPOSED => text(&payload["id"]),
        EventType::APPROVAL_REQUESTED => {
            let action = text(&payload["card"]["action"]["id"]);
            if let (Some(request), Some(action)) = (text(&payload["id"]), &action) {
                requests.insert(request, action.clone());
            }
            action
        }
        _ => text(&payload["action"]).or_else(|| {
            let request = payload["request"].as_str()?;
            requests.get(request).cloned()
        }),
    }
}

fn whole(
    event: &Event,
    dir: &SessionDir,
    opening: Option<&Opening>,
) -> Result<Option<Value>, Failure> {
    terse::whole(event, dir, opening).map_err(|problem| odd(dir, event.seq, &problem.to_string()))
}

fn parsed<T: DeserializeOwned>(about: About, dir: &SessionDir) -> Result<T, Failure> {
    serde_json::from_value(about.payload)
        .map_err(|problem| odd(dir, about.seq, &problem.to_string()))
}

fn odd(dir: &SessionDir, seq: u64, problem: &str) -> Failure {
    Failure::check(format!("{}#{seq} cannot be read: {problem}", dir.session()))
        .help("`lodestar log verify` says what is wrong with the session")
}
