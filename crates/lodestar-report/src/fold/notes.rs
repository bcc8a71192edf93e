//! Everything else that a session says of itself: how it was opened, what was read, what servers did.

use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, ObservationId};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::terse;
use lodestar_log::{Event, Payload};
use lodestar_policy::SignatureState;
use lodestar_replay::calibration::Computed;
use serde::Deserialize;
use serde_json::Value;

use super::Fold;
use crate::bounded::{TEXT, VALUE, bounded};
use crate::inert;
use crate::model::{
    Alert, Calibration, CalibrationInForce, Drift, Forged, ForgedKind, PolicyInForce, Said,
    ServerNote, Wary,
};

#[derive(Deserialize)]
struct ObservedLine {
    #[serde(default)]
    id: Option<ObservationId>,
    #[serde(default)]
    action: Option<ActionId>,
}

impl Fold<'_> {
    pub(super) fn opened(&mut self, event: &Event) {
        self.opened_at = Some(event.time);
        self.actor.clone_from(&event.actor);
        let Some(opening) = self.opening.as_ref() else {
            // A person's session at a command line: no policy, no actions.
            let payload = self.read::<Value>(event);
            let purpose = payload
                .as_ref()
                .and_then(|one| one.get("purpose")?.as_str());
            self.purpose = bounded(purpose.unwrap_or("not said"), VALUE);
            return;
        };
        self.purpose = bounded(&opening.purpose, VALUE);
        self.policy = Some(in_force(opening, event.seq));
        let calibration = opening.calibration.as_ref();
        self.calibration = calibration.map(|one| CalibrationInForce {
            seq: event.seq,
            flagged: one.flagged.iter().cloned().collect(),
            computed: one.computed.clone(),
            ignored: one.ignored.iter().map(|why| bounded(why, TEXT)).collect(),
        });
    }

    pub(super) fn observation(&mut self, event: &Event) {
        self.counts.observations += 1;
        let Some(line) = self.read_line::<ObservedLine>(event) else {
            return;
        };
        if let Some(action) = line.action
            && let Some(ran) = self.program_contained(event, action)
        {
            self.programs.insert(event.seq, ran);
        }
        let id = line.id.or(line.action.map(ObservationId::of_action));
        if let Some(id) = id {
            self.observed.insert(id, event.seq);
        }
        let count = self.acting(event);
        if count > 0 {
            let wary = Wary::HiddenCharacters { count };
            self.suspects.entry(event.seq).or_default().push(wary);
        }
    }

    /// Characters that act, in all that was returned; what lies in a blob is read for it.
    fn acting(&self, event: &Event) -> u64 {
        match &event.payload {
            Payload::Present(line) if may_act(line) => {
                let whole = terse::whole(event, self.dir, self.opening());
                let content = whole.ok().flatten();
                content.map_or(0, |whole| acting(&whole["content"]))
            }
            _ => 0,
        }
    }

    pub(super) fn noted(&mut self, kind: EventType, event: &Event) {
        let wanted = [
            EventType::TASK_STATED,
            EventType::SESSION_HALTED,
            EventType::SESSION_CLOSED,
            EventType::TOOL_DRIFTED,
            EventType::SERVER_STARTED,
            EventType::SERVER_FAILED,
            EventType::SERVER_OUTPUT,
        ];
        if !wanted.contains(&kind) {
            return;
        }
        let Some(payload) = self.read::<Value>(event) else {
            return;
        };
        let seq = event.seq;
        let sensitivity = self.default_sensitivity();
        let text = |name: &str| self.reason(said(&payload, name), sensitivity);
        match kind {
            EventType::TASK_STATED => {
                let said = text("statement");
                self.tasks.push(Said { seq, text: said });
            }
            EventType::SESSION_HALTED => {
                let said = format!("by {}: {}", text("by"), text("reason"));
                self.halted.push(Said { seq, text: said });
            }
            EventType::SESSION_CLOSED => {
                let said = text("reason");
                self.closed = Some(Said { seq, text: said });
            }
            EventType::TOOL_DRIFTED => {
                let drift = Drift {
                    seq,
                    server: text("server"),
                    tool: text("tool"),
                    why: text("why"),
                    refused: Vec::new(),
                };
                self.drift.push(drift);
                let (server, tool) = (said(&payload, "server"), said(&payload, "tool"));
                self.drifted.push(format!("mcp.{server}.{tool}"));
                let wary = self.suspects.entry(seq).or_default();
                wary.push(Wary::DriftedDefinition);
            }
            EventType::SERVER_STARTED => {
                let contained = self.contained(&payload, sensitivity);
                self.servers.push(ServerNote {
                    seq,
                    server: text("server"),
                    note: format!("started, {}", contained.in_words()),
                    containment: Some(contained),
                });
            }
            EventType::SERVER_FAILED => {
                self.servers.push(ServerNote {
                    seq,
                    server: text("server"),
                    note: format!("failed: {}", text("why")),
                    containment: None,
                });
            }
            EventType::SERVER_OUTPUT
                if payload.get("stream").and_then(Value::as_str) == Some("watch") =>
            {
                self.servers.push(ServerNote {
                    seq,
                    server: text("server"),
                    note: text("text"),
                    containment: None,
                });
            }
            EventType::SERVER_OUTPUT
                if payload.get("stream").and_then(Value::as_str) == Some("forged") =>
            {
                let reason = text("text");
                self.forged.push(Forged {
                    seq,
                    what: ForgedKind::LodestarsWord,
                    proposed: None,
                    sensitivity,
                    reason,
                });
                self.suspects.entry(seq).or_default().push(Wary::Forges);
            }
            _ => {}
        }
    }

    /// What a sentinel saw, as sensitive as the action in which it saw it.
    pub(super) fn alerted(&mut self, event: &Event) {
        let Some(alerted) = self.read::<lodestar_policy::Alert<'static>>(event) else {
            return;
        };
        let action = self.action(alerted.action);
        let known = action.map(|one| (one.seq, one.sensitivity));
        let sensitivity = known.map_or(Sensitivity::Secret, |(_, level)| level);
        self.alerts.push(Alert {
            sensitivity,
            seq: event.seq,
            action: alerted.action,
            proposed: known.map(|(seq, _)| seq),
            sentinel: bounded(&alerted.sentinel, VALUE),
            severity: alerted.severity,
            mode: alerted.mode,
            saw: self.reason(&alerted.saw, sensitivity),
        });
    }

    pub(super) fn calibrated(&mut self, event: &Event) {
        let Some(mut computed) = self.read::<Computed>(event) else {
            return;
        };
        let sensitivity = self.default_sensitivity();
        for refused in &mut computed.refused {
            refused.session = bounded(&refused.session, VALUE);
            refused.reason = self.reason(&refused.reason, sensitivity);
        }
        self.calibrations.push(Calibration {
            seq: event.seq,
            at: event.time,
            computed,
        });
    }

    pub(super) fn drift_refused(&mut self, seq: u64, tool: Option<&str>) {
        let named = self.drifted.iter();
        let place = tool.and_then(|tool| named.clone().rposition(|one| one == tool));
        if let Some(drift) = place.and_then(|at| self.drift.get_mut(at)) {
            drift.refused.push(seq);
        }
    }
}

fn said<'a>(payload: &'a Value, name: &str) -> &'a str {
    payload
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or("not said")
}

fn in_force(opening: &Opening, seq: u64) -> PolicyInForce {
    let (signature, key) = match &opening.policy.signature {
        SignatureState::Signed { key } => ("signed", Some(key.as_str().to_owned())),
        SignatureState::Unsigned => ("unsigned", None),
        SignatureState::Preset => ("preset", None),
    };
    let ungraded = opening.tools.iter().filter(|tool| !tool.is_graded());
    PolicyInForce {
        digest: opening.policy.digest,
        signature,
        key,
        approvers: opening.approvers.approvers().len() as u64,
        tools: opening.tools.len() as u64,
        ungraded: ungraded
            .map(|tool| tool.shape.name.as_str().to_owned())
            .collect(),
        seq,
    }
}

/// Whether a line may have characters that act: as they are, as an escape, or in a blob.
fn may_act(line: &[u8]) -> bool {
    let has = |what: &[u8]| line.windows(what.len()).any(|some| some == what);
    !line.is_ascii()
        || line.contains(&0x7f)
        || [&br"\u"[..], br"\b", br"\f", br#""blobs""#]
            .into_iter()
            .any(has)
}

/// Characters in what was returned that have no place in honest content.
fn acting(payload: &Value) -> u64 {
    match payload {
        Value::String(text) => text.chars().filter(|c| inert::acts(*c)).count() as u64,
        Value::Array(list) => list.iter().map(acting).sum(),
        Value::Object(members) => {
            let names = members.keys().flat_map(|name| name.chars());
            let names = names.filter(|c| inert::acts(*c)).count() as u64;
            names + members.values().map(acting).sum::<u64>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(line: &str) -> u64 {
        let payload = serde_json::from_str(line).unwrap();
        match may_act(line.as_bytes()) {
            true => acting(&payload),
            false => 0,
        }
    }

    #[test]
    fn what_acts_instead_of_being_seen_is_counted_and_emoji_are_not() {
        assert_eq!(count(r#"{"text":"plain \\u001b text"}"#), 0);
        assert_eq!(count(r#"{"text":"\u001b[31mred"}"#), 1);
        assert_eq!(count(r#"{"text":"\b\f\u0000\u007f"}"#), 4);
        assert_eq!(count("{\"te\u{200b}xt\":\"\u{7f}\"}"), 2);
        assert_eq!(count("{\"text\":\"a\u{202e}b\u{200b}\u{e0041}\"}"), 3);
        let more = "\u{200e}\u{200f}\u{61c}\u{feff}\u{ad}\u{9b}";
        assert_eq!(count(&format!("{{\"text\":\"{more}\"}}")), 6);
        let honest = "👩\u{200d}🚀 ❤\u{fe0f} naïve ┃ می\u{200c}خواهم";
        assert_eq!(count(&format!("{{\"text\":\"{honest} a\\n\\tb\"}}")), 0);
    }
}
