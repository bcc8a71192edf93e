//! How servers and programs were contained, as the log says it.
//!
//! What stands in the log is a record of the proxy's and is shown as data. Its one word is not taken over what the
//! record lists beneath it: where something was tried and not refused, or a gap is named, nothing is proved.

use lodestar_core::contract::Sandbox;
use lodestar_core::id::ActionId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::contain::{Attempt, State};
use lodestar_kernel::terse;
use lodestar_kernel::tool::NATIVE_SERVER;
use lodestar_log::Event;
use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, Error};
use serde_json::Value;

use super::Fold;
use crate::model::Contained;

/// Entries of one list that are shown; what is left out is counted. A record of ours has fewer.
const MOST: usize = 32;

/// The tool whose results say how the program was contained that it started.
const RUNS_PROGRAMS: &str = "shell.run";

/// A record, read as far as it can be: a later version may know other words.
#[derive(Deserialize)]
struct Record {
    state: String,
    #[serde(default)]
    profiles: Vec<String>,
    #[serde(default)]
    landlock: u32,
    #[serde(default)]
    namespaces: bool,
    #[serde(default)]
    filtered: bool,
    #[serde(default)]
    network: Value,
    #[serde(default)]
    tried: Vec<TriedOnce>,
    #[serde(default)]
    gaps: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct TriedOnce {
    attempt: String,
    refused: bool,
}

/// What the result of a program says of how it ran.
pub(super) struct RanProgram {
    pub(super) state: State,
    /// What it did to protected places.
    pub(super) planted: Vec<String>,
}

impl Fold<'_> {
    /// What the start of a server says of its containment.
    pub(super) fn contained(&self, payload: &Value, sensitivity: Sensitivity) -> Contained {
        let word = payload.get("containment").and_then(Value::as_str);
        let record = match payload.get("confinement") {
            None | Some(Value::Null) => None,
            Some(record) => match Record::deserialize(record) {
                Ok(record) => Some(record),
                Err(_) => return absent("what is recorded of its containment cannot be read"),
            },
        };
        let elsewhere = payload.get("transport").and_then(Value::as_str) == Some("http");
        let (Some(word), Some(record)) = (word, record) else {
            return absent(match elsewhere {
                true => "it is no process of Lodestar's: it is reached over the network",
                false => "nothing contained it",
            });
        };
        let mut contained = self.listed(&record, sensitivity);
        let whole = record.filtered
            && !contained.refused.is_empty()
            && contained.open.is_empty()
            && contained.gaps.is_empty();
        let said = state(word).min(state(&record.state));
        contained.state = match said {
            State::Proved if !whole => State::Partial,
            said => said,
        };
        contained
    }

    fn listed(&self, record: &Record, sensitivity: Sensitivity) -> Contained {
        let words = |list: &mut dyn Iterator<Item = &String>| {
            let all: Vec<&String> = list.collect();
            let mut shown: Vec<String> = all
                .iter()
                .take(MOST)
                .map(|one| self.reason(one, sensitivity))
                .collect();
            if all.len() > MOST {
                shown.push(format!("… (+{} entries)", all.len() - MOST));
            }
            shown
        };
        let tried = |refused: bool| -> Vec<String> {
            let of = record.tried.iter().filter(|one| one.refused == refused);
            let of = of.take(MOST);
            of.map(|one| match named::<Attempt>(&one.attempt) {
                Some(attempt) => attempt.as_words().to_owned(),
                None => self.reason(&one.attempt, sensitivity),
            })
            .collect()
        };
        let profiles = record.profiles.iter().take(MOST);
        let profiles = profiles.map(|one| match named::<Sandbox>(one) {
            Some(profile) => profile.as_str().to_owned(),
            None => self.reason(one, sensitivity),
        });
        let mut layers = Vec::new();
        if record.landlock > 0 {
            layers.push(format!("Landlock {}", record.landlock));
        }
        if record.namespaces {
            layers.push("namespaces".to_owned());
        }
        if record.filtered {
            layers.push("seccomp".to_owned());
        }
        Contained {
            state: State::Absent,
            profiles: profiles.collect(),
            layers,
            network: network(&record.network),
            refused: tried(true),
            open: tried(false),
            gaps: words(&mut record.gaps.iter()),
            notes: words(&mut record.notes.iter()),
        }
    }

    /// What the result of a program says of how that was contained: in the block that is Lodestar's own, which stands
    /// before whatever the program said.
    pub(super) fn program_contained(&self, event: &Event, action: ActionId) -> Option<RanProgram> {
        let action = self.actions.get(*self.action_of.get(&action)?)?;
        if action.server != NATIVE_SERVER || action.tool != RUNS_PROGRAMS {
            return None;
        }
        let whole = terse::whole(event, self.dir, self.opening()).ok()??;
        let first = whole.get("content")?.as_array()?.first()?;
        let summary = first.get("value")?;
        // Results from before there was any containment say nothing of it.
        let word = summary.get("containment").and_then(Value::as_str);
        let planted = summary.get("set_aside").and_then(Value::as_array);
        let planted = planted.into_iter().flatten().filter_map(Value::as_str);
        let planted = planted.take(MOST);
        Some(RanProgram {
            state: word.map_or(State::Absent, state),
            planted: planted
                .map(|one| self.reason(one, action.sensitivity))
                .collect(),
        })
    }
}

/// The word of a state; whatever else stands there promises nothing.
fn state(word: &str) -> State {
    named::<State>(word).unwrap_or(State::Absent)
}

/// One of our words, if it is one.
fn named<'de, T: Deserialize<'de>>(word: &'de str) -> Option<T> {
    T::deserialize(BorrowedStrDeserializer::<Error>::new(word)).ok()
}

/// Ways out, in words.
fn network(said: &Value) -> String {
    match said {
        Value::String(word) if word == "none" => "none".to_owned(),
        Value::String(word) if word == "any" => "any".to_owned(),
        Value::Array(ports) => {
            let ports = ports.iter().filter_map(Value::as_u64).take(MOST);
            let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
            format!("TCP to port {}", ports.join(", "))
        }
        _ => "not said".to_owned(),
    }
}

fn absent(why: &str) -> Contained {
    Contained {
        state: State::Absent,
        profiles: Vec::new(),
        layers: Vec::new(),
        network: "any".to_owned(),
        refused: Vec::new(),
        open: Vec::new(),
        gaps: vec![why.to_owned()],
        notes: Vec::new(),
    }
}
