//! What a mind is put into: a clock that can be set forward, and a way to read claims out of short texts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lodestar_core::chain::{ContentBlock, Observation};
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::Surroundings;
use lodestar_firewall::extract::{ContentDraft, Extractor, Statement, Subject, ToolCall};
use lodestar_guard::SystemSurroundings;
use serde_json::json;

/// Reads lines such as `status = done` as claims about the thing read.
pub(super) struct Lines;

impl Extractor for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn applies(&self, _: &ToolCall<'_>, _: &Observation) -> bool {
        true
    }

    fn extract(&self, call: &ToolCall<'_>, observation: &Observation) -> Vec<ContentDraft> {
        let texts = observation.content.iter().filter_map(ContentBlock::text);
        let facts = texts.flat_map(str::lines);
        let facts = facts.filter_map(|line| line.split_once(" = "));
        facts
            .map(|(relation, object)| {
                let subject = Subject::thing_read(call);
                let statement = Statement::new()
                    .subject(&subject)
                    .say(" says ")
                    .quote(object);
                ContentDraft::new(subject, relation, json!(object), statement)
            })
            .collect()
    }
}

/// The system's clock and randomness, with time that scenarios let pass.
#[derive(Debug, Clone, Default)]
pub(super) struct Shifted {
    pub(super) by: Arc<AtomicI64>,
}

impl Surroundings for Shifted {
    fn now(&mut self) -> Timestamp {
        let now = SystemSurroundings::default().now();
        let by = u64::try_from(self.by.load(Ordering::Relaxed)).unwrap_or_default();
        now.checked_add(Duration::from_micros(by)).unwrap_or(now)
    }

    fn random(&mut self) -> [u8; 10] {
        SystemSurroundings::default().random()
    }
}
