//! What a `log.redacted@1` says, for people: the statement inside its envelope, as it claims to be.
//! Whether the signature on it counts is for `verify` to say.

use lodestar_core::event::EventType;
use lodestar_core::statement::{Issued, Redaction};
use lodestar_log::{Event, Payload, RedactedRecord};
use serde_json::{Value, json};

use crate::trust::Operators;
use crate::{inert, words};

/// An operator's statement that payloads go.
pub(crate) struct ShownRedaction {
    record: RedactedRecord,
    issued: Issued<Redaction>,
}

impl ShownRedaction {
    /// `None` for every other event, and for one that cannot be read so.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let Payload::Present(bytes) = &event.payload else {
            return None;
        };
        if event.kind != EventType::LOG_REDACTED.as_str() {
            return None;
        }
        let record: RedactedRecord = serde_json::from_slice(bytes).ok()?;
        let issued = serde_json::from_slice(record.statement.unverified_payload()).ok()?;
        Some(Self { record, issued })
    }

    /// One line of at most so many columns.
    pub(crate) fn summary(&self, operators: &Operators, columns: usize) -> String {
        let subject = &self.issued.subject;
        let text = format!(
            "{} redacted by {}: {}",
            words::count(subject.events.len() as u64, "event"),
            operators.name_of(self.issued.key_id.as_str()),
            subject.reason
        );
        inert::line(&text, columns)
    }

    /// The statement in place of its encoding.
    pub(crate) fn decoded(&self) -> Value {
        let envelope = &self.record.statement;
        let signers: Vec<&str> = envelope
            .signatures()
            .iter()
            .map(|signature| signature.key_id.as_str())
            .collect();
        json!({
            "payload_type": envelope.payload_type(),
            "signed_by": signers,
            "statement": self.issued,
        })
    }
}
