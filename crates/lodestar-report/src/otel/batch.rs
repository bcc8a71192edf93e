//! So many spans at a time: a session of any length is exported in memory that does not grow with it.

use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::SpanData;

/// Most spans of a batch: what OpenTelemetry's own SDKs send at once.
pub const MAX_SPANS: usize = 512;

/// A batch that is larger than this is complete. Receivers commonly take 4 MiB and more.
pub const MAX_BYTES: usize = 1 << 20;

/// Spans that wait for others.
#[derive(Debug, Default)]
pub struct Batch {
    spans: Vec<SpanData>,
    bytes: usize,
}

impl Batch {
    /// Adds a span; gives a batch once it is complete.
    pub fn push(&mut self, span: SpanData) -> Option<Vec<SpanData>> {
        let bytes = weight(&span);
        let does_not_fit = !self.spans.is_empty() && self.bytes + bytes > MAX_BYTES;
        let before = does_not_fit.then(|| self.take());
        self.bytes += bytes;
        self.spans.push(span);
        match before {
            Some(before) => Some(before),
            None => (self.spans.len() >= MAX_SPANS).then(|| self.take()),
        }
    }

    /// Those that are left.
    pub fn rest(mut self) -> Vec<SpanData> {
        self.take()
    }

    fn take(&mut self) -> Vec<SpanData> {
        self.bytes = 0;
        std::mem::take(&mut self.spans)
    }
}

/// What a span or an event has beside its texts: ids, times, lengths.
const OVERHEAD: usize = 64;

/// About how many bytes a span takes.
fn weight(span: &SpanData) -> usize {
    let events = span.events.iter();
    let events = events.map(|event| OVERHEAD + event.name.len() + weight_of(&event.attributes));
    OVERHEAD + span.name.len() + weight_of(&span.attributes) + events.sum::<usize>()
}

fn weight_of(attributes: &[KeyValue]) -> usize {
    let weights = attributes.iter().map(|one| {
        let value = match &one.value {
            Value::String(text) => text.as_str().len(),
            Value::Array(array) => array.to_string().len(),
            _ => 8,
        };
        one.key.as_str().len() + value + 8
    });
    weights.sum()
}
