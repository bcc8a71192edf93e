//! The session as a whole: the root of its trace.

use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::Opening;
use lodestar_log::Event;
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanId, Status};
use serde_json::Value;

use super::admit::Admitted;
use super::attributes::{Events, Finished, number, place, span_event, text};
use super::content::{Ceiling, inert};
use super::names;

/// Every span event there is.
#[cfg(test)]
pub(super) const EVENT_NAMES: &[&str] = &[
    "lodestar.judged",
    "lodestar.cleared",
    "lodestar.notified",
    "lodestar.observed",
    "lodestar.completed",
    "lodestar.failed",
    "lodestar.unknown",
    "lodestar.rejected",
    "lodestar.approval.granted",
    "lodestar.approval.denied",
    "lodestar.approval.refused",
    "lodestar.confirmation.consumed",
    "lodestar.confirmation.matched",
    "lodestar.confirmation.refused",
    "lodestar.belief.adopted",
    "lodestar.belief.moved",
    "lodestar.belief.promoted",
    "lodestar.belief.read_privileged",
    "lodestar.sentinel.alerted",
    "lodestar.server.failed",
    "lodestar.tool.drifted",
    "lodestar.log.recovered",
    "lodestar.log.redacted",
    "lodestar.redacted",
    "lodestar.halted",
    "lodestar.closed",
];

/// The session.
#[derive(Debug)]
pub(super) struct RootSpan {
    pub(super) span: SpanId,
    /// How sensitive what is said in words is.
    pub(super) level: Sensitivity,
    agent: Option<String>,
    from: Timestamp,
    attributes: Vec<KeyValue>,
    events: Events,
    status: Status,
    pub(super) counts: Counts,
}

/// How many actions there are, and of what sort.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) actions: u64,
    pub(super) held: u64,
    pub(super) rejected: u64,
    pub(super) failed: u64,
    pub(super) unknown: u64,
}

impl RootSpan {
    /// The session that this event opened. One of a person, who looks at beliefs and moves them, has no
    /// agent.
    pub(super) fn open(
        event: &Event,
        payload: Option<&Value>,
        opening: Option<&Opening>,
        admitted: &Admitted,
        (span, ceiling): (SpanId, Ceiling),
    ) -> Self {
        let dir = &admitted.dir;
        let mut attributes = Vec::new();
        if let Some(opening) = opening {
            attributes.extend([
                text(names::GEN_AI_OPERATION_NAME, "invoke_agent"),
                text(names::GEN_AI_AGENT_NAME, &opening.agent.actor),
                text(names::GEN_AI_CONVERSATION_ID, dir.session()),
                text(names::POLICY_DIGEST, opening.policy.digest),
                text(names::CONFIGURATION_DIGEST, opening.configuration),
                text(names::DEVICE_TRUST, &opening.agent.device_trust),
                text(names::EXECUTION, &opening.agent.execution),
            ]);
        }
        let purpose = payload.and_then(|payload| payload["purpose"].as_str());
        let level = opening.map_or(Sensitivity::Secret, |opening| opening.sensitivity);
        attributes.extend(
            purpose.map(|purpose| ceiling.words(names::SESSION_PURPOSE, purpose, level, event)),
        );
        attributes.extend([
            text(names::PROJECT, dir.project()),
            text(names::SESSION, dir.session()),
            text(names::SESSION_STATE, admitted.state),
            number(names::EVENTS, admitted.events),
            number(names::EVENTS_PROVEN, admitted.proven),
            text(names::ROOT_HASH, admitted.root),
            text(names::CEILING, ceiling.0),
        ]);
        attributes.extend(place(event));
        Self {
            span,
            level,
            agent: opening.map(|opening| inert(opening.agent.actor.as_ref())),
            from: event.time,
            attributes,
            events: Events::default(),
            status: Status::Unset,
            counts: Counts::default(),
        }
    }

    /// Something happened in the session.
    pub(super) fn note(&mut self, name: &'static str, event: &Event, attributes: Vec<KeyValue>) {
        self.events.push(span_event(name, event, attributes));
    }

    /// Somebody stopped it.
    pub(super) fn halted(&mut self) {
        self.attributes.push(text(names::ERROR_TYPE, "halted"));
        self.status = Status::error("halted");
    }

    pub(super) fn ended(mut self, at: Timestamp) -> Finished {
        let counts = &self.counts;
        self.attributes.extend([
            number(names::ACTIONS, counts.actions),
            number(names::ACTIONS_HELD, counts.held),
            number(names::ACTIONS_REJECTED, counts.rejected),
            number(names::ACTIONS_FAILED, counts.failed),
            number(names::ACTIONS_UNKNOWN, counts.unknown),
        ]);
        Finished {
            span: self.span,
            parent: SpanId::INVALID,
            name: match self.agent {
                Some(agent) => format!("invoke_agent {agent}"),
                None => "lodestar.session".to_owned(),
            },
            from: self.from,
            to: at,
            attributes: self.attributes,
            events: self.events,
            link: None,
            status: self.status,
        }
    }
}
