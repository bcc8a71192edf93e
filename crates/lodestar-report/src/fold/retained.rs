//! Content to be wary of: what it is, and that it stands in the log as it came.

use std::collections::BTreeMap;

use lodestar_core::chain::{ContentBlock, Observation, Security};
use lodestar_core::digest::Hasher;
use lodestar_core::event::EventType;
use lodestar_core::ladder::Verdict;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::{Event, Reader};
use serde_json::Value;

use super::Fold;
use crate::bounded::{TEXT, VALUE, bounded};
use crate::examine::ReportError;
use crate::model::{Action, From, Hostile, Wary};

impl Fold<'_> {
    /// Everything to be wary of. What is shown of it is read now: before the end nobody knew that it
    /// would be.
    pub(crate) fn retained(&mut self) -> Result<Vec<Hostile>, ReportError> {
        self.suspect_sources();
        let suspects = std::mem::take(&mut self.suspects);
        let Some(last) = suspects.keys().next_back().copied() else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for event in Reader::open(self.dir)? {
            let event = event.map_err(|_| ReportError::Changed)?;
            if event.seq > last {
                break;
            }
            if let Some(because) = suspects.get(&event.seq) {
                found.push(self.hostile(&event, because.clone()));
            }
        }
        Ok(found)
    }

    /// What held and refused calls took values from, and what was set apart.
    fn suspect_sources(&mut self) {
        let mut fed: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for action in &self.actions {
            let waited = action
                .judged
                .as_ref()
                .is_some_and(|judged| judged.verdict != Verdict::Allow);
            if !waited {
                continue;
            }
            let arguments = action.arguments.iter();
            let read = arguments.filter(|one| one.from == From::Read || !one.read_in.is_empty());
            for seq in read.flat_map(|one| &one.read_in) {
                let calls = fed.entry(*seq).or_default();
                if calls.last() != Some(&action.seq) {
                    calls.push(action.seq);
                }
            }
        }
        let mut apart: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for belief in &self.beliefs {
            if belief.axes.security == Security::Clean {
                continue;
            }
            let events = belief.moves.iter().filter(|one| one.session.is_none());
            let events: Vec<u64> = events.map(|one| one.seq).collect();
            for source in &belief.sources {
                apart.entry(*source).or_default().extend(&events);
            }
        }
        for (seq, events) in fed {
            let wary = self.suspects.entry(seq).or_default();
            wary.insert(0, Wary::FedCalls { events });
        }
        for (seq, mut events) in apart {
            events.sort_unstable();
            events.dedup();
            let wary = self.suspects.entry(seq).or_default();
            wary.push(Wary::SetApart { events });
        }
    }

    fn hostile(&mut self, event: &Event, because: Vec<Wary>) -> Hostile {
        let kind = EventType::parse(event.kind.as_bytes());
        let sensitivity = self.default_sensitivity();
        let mut hostile = Hostile {
            seq: event.seq,
            because,
            source: format!("event {}", event.kind),
            bytes: 0,
            sha256: None,
            begins: None,
        };
        if kind == Some(EventType::OBSERVATION_RECORDED) {
            if let Some(observation) = self.read::<Observation>(event) {
                let (bytes, digest, begins) = content(&observation);
                hostile.source = self.source(event, &observation);
                hostile.bytes = bytes;
                let level = self.level_of_result(event, &observation);
                hostile.sha256 = (level <= self.ceiling).then_some(digest);
                hostile.begins = self.shown(&begins, TEXT, level);
            }
        } else if let Some(payload) = self.read::<Value>(event) {
            let declared = payload.get("declared").filter(|one| !one.is_null());
            let text = match declared {
                Some(declared) => declared.to_string(),
                None => payload["text"].as_str().unwrap_or_default().to_owned(),
            };
            hostile.bytes = text.len() as u64;
            let digest = lodestar_core::digest::sha256(text.as_bytes());
            hostile.sha256 = (sensitivity <= self.ceiling).then_some(digest);
            hostile.begins = self.shown(&text, TEXT, sensitivity);
            let server = payload["server"].as_str().unwrap_or("a server");
            let tool = payload["tool"]
                .as_str()
                .map(|tool| format!(" of tool {tool}"));
            let source = format!("{server}{}", tool.unwrap_or_default());
            hostile.source = self.reason(&source, sensitivity);
        }
        hostile
    }

    /// The call that brought it.
    fn call(&self, event: &Event) -> Option<&Action> {
        let mut parents = event.parents.iter();
        let call = parents.find_map(|parent| self.cleared_of.get(parent));
        self.actions.get(*call?)
    }

    /// As sensitive as the session, as the call that brought it, and as it says itself. A call that is not
    /// known may have brought anything.
    fn level_of_result(&self, event: &Event, observation: &Observation) -> Sensitivity {
        let call = match (self.call(event), event.parents.is_empty()) {
            (Some(call), _) => call.sensitivity,
            (None, true) => observation.sensitivity,
            (None, false) => Sensitivity::Secret,
        };
        let level = observation.sensitivity.stricter(call);
        level.stricter(self.default_sensitivity())
    }

    /// The call that brought it, in words.
    fn source(&self, event: &Event, observation: &Observation) -> String {
        let tool = observation.tool.as_str();
        let Some(call) = self.call(event) else {
            return bounded(tool, VALUE);
        };
        let values = call.arguments.iter().filter_map(|one| one.value.as_deref());
        let values: Vec<&str> = values.collect();
        bounded(
            &format!("{tool} {} (#{})", values.join(" "), call.seq),
            VALUE,
        )
    }
}

/// How long the content is, its digest, and how its text begins.
fn content(observation: &Observation) -> (u64, lodestar_core::digest::Digest, String) {
    let (mut hasher, mut bytes, mut begins) = (Hasher::new(), 0, String::new());
    for block in &observation.content {
        let text = match block {
            ContentBlock::Text { text, .. } => text.clone(),
            other => other.to_wire().to_string(),
        };
        hasher.update(text.as_bytes());
        bytes += text.len() as u64;
        begins.push_str(&text);
    }
    (bytes, hasher.finish(), begins)
}
