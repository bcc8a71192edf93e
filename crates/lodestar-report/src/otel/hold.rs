//! A request for approval as a span: how long people were waited for, and what they said.
//!
//! It is a child of the action that asked, and may outlive it: a request stays open after its caller has
//! gone, and the call that its grant opens may be a later one.

use lodestar_core::id::RequestId;
use lodestar_core::statement::{Approval, Issued};
use lodestar_core::time::Timestamp;
use lodestar_log::Event;
use lodestar_policy::Answer;
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanId, Status};
use serde_json::Value;

use super::attributes::{Events, Finished, number, place, span_event, text};
use super::names;

/// A request that people are asked about.
#[derive(Debug)]
pub(super) struct HoldSpan {
    pub(super) request: Option<RequestId>,
    pub(super) span: SpanId,
    parent: SpanId,
    tool: String,
    from: Timestamp,
    attributes: Vec<KeyValue>,
    events: Events,
}

/// What an `approval.requested@1` says that stands in the span.
#[derive(serde::Deserialize)]
struct Asked {
    id: RequestId,
    requirement: lodestar_policy::Requirement,
}

impl HoldSpan {
    pub(super) fn open(
        event: &Event,
        payload: Option<Value>,
        (span, parent): (SpanId, SpanId),
        tool: &str,
    ) -> Self {
        let asked = payload.and_then(|payload| serde_json::from_value::<Asked>(payload).ok());
        let mut attributes = place(event);
        if let Some(asked) = &asked {
            attributes.push(text(names::REQUEST, asked.id));
            let quorum = u64::from(asked.requirement.quorum);
            attributes.push(number(names::QUORUM, quorum));
        }
        Self {
            request: asked.map(|asked| asked.id),
            span,
            parent,
            tool: tool.to_owned(),
            from: event.time,
            attributes,
            events: Events::default(),
        }
    }

    /// Somebody answered.
    pub(super) fn answered(&mut self, name: &'static str, event: &Event, payload: Option<Value>) {
        let attributes = payload.map(answer).unwrap_or_default();
        self.events.push(span_event(name, event, attributes));
    }

    /// It is over.
    pub(super) fn closed(mut self, closing: &str, event: &Event) -> Finished {
        self.attributes.push(text(names::CLOSING, closing));
        self.ended(event.time)
    }

    /// Nothing more is known of it.
    pub(super) fn left_open(mut self, at: Timestamp) -> Finished {
        self.attributes.push(text(names::CLOSING, "open"));
        self.ended(at)
    }

    fn ended(self, at: Timestamp) -> Finished {
        Finished {
            span: self.span,
            parent: self.parent,
            name: format!("lodestar.hold {}", self.tool),
            from: self.from,
            to: at,
            attributes: self.attributes,
            events: self.events,
            link: None,
            status: Status::Unset,
        }
    }
}

/// Who answered, and which check failed. Of an answer that was refused, the name is only what it claims; the
/// key is the one whose signature it carries.
pub(super) fn answer(payload: Value) -> Vec<KeyValue> {
    let refusal = payload["reason"]["refused"].as_str().map(str::to_owned);
    let mut found = Vec::new();
    if let Ok(answer) = serde_json::from_value::<Answer>(payload) {
        found.push(text(names::REQUEST, answer.request));
        let issued = answer.statement.as_ref().and_then(|statement| {
            serde_json::from_slice::<Issued<Approval>>(statement.unverified_payload()).ok()
        });
        if let Some(issued) = issued {
            found.push(text(names::APPROVER, issued.subject.approver));
            found.push(text(names::APPROVER_KEY, issued.key_id));
        }
        let missing = answer.missing.map(u64::from);
        found.extend(missing.map(|missing| number(names::MISSING, missing)));
    }
    found.extend(refusal.map(|refusal| text(names::REFUSAL, refusal)));
    found
}
