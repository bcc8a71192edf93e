//! Small parts that spans are made of.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use lodestar_core::time::Timestamp;
use lodestar_log::{Event, Payload};
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value, trace};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::content::inert;
use super::ids::Ids;
use super::names;

/// A moment of the log.
pub(super) fn moment(time: Timestamp) -> SystemTime {
    let micros = u64::try_from(time.unix_micros()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}

/// A number of the log. None is larger than what a log can hold.
pub(super) fn number(name: &'static str, value: u64) -> KeyValue {
    KeyValue::new(name, i64::try_from(value).unwrap_or(i64::MAX))
}

/// A text, inert: names of tools and people are anybody's to choose.
pub(super) fn text(name: &'static str, value: impl ToString) -> KeyValue {
    KeyValue::new(name, inert(&value.to_string()))
}

/// Most texts of one attribute.
const MOST_LISTED: usize = 32;

/// Several texts; of very many, the first ones and how many more there are.
pub(super) fn texts(name: &'static str, mut values: impl Iterator<Item = String>) -> KeyValue {
    let mut listed: Vec<StringValue> = Vec::new();
    let first = values.by_ref().take(MOST_LISTED);
    listed.extend(first.map(|value| StringValue::from(inert(&value))));
    let more = values.count();
    if more > 0 {
        listed.push(format!("… ({more} more)").into());
    }
    KeyValue::new(name, Value::Array(Array::String(listed)))
}

/// Where an event stands: what leads back to the log.
pub(super) fn place(event: &Event) -> Vec<KeyValue> {
    let mut place = vec![
        number(names::SEQ, event.seq),
        text(names::LEAF_HASH, event.leaf_hash),
    ];
    if let Payload::Redacted { by } = event.payload {
        place.push(number(names::REDACTED_BY, by));
    }
    place
}

/// An event of the log as one of a span.
pub(super) fn span_event(
    name: &'static str,
    event: &Event,
    attributes: Vec<KeyValue>,
) -> trace::Event {
    let mut all = place(event);
    all.extend(attributes);
    trace::Event::new(name, moment(event.time), all, 0)
}

/// Most events of one name in one span: what OpenTelemetry's own SDKs keep of a span by default. A flood of
/// one sort does not hide another.
const MOST_EVENTS: usize = 128;

/// The events of one span, bounded, and how many were left out.
#[derive(Debug, Default)]
pub(super) struct Events {
    kept: Vec<trace::Event>,
    /// How many there are of each name.
    counts: BTreeMap<Cow<'static, str>, usize>,
    dropped: u32,
}

impl Events {
    pub(super) fn push(&mut self, event: trace::Event) {
        let count = self.counts.entry(event.name.clone()).or_default();
        if *count < MOST_EVENTS {
            *count += 1;
            self.kept.push(event);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }
}

/// A span that is over.
pub(super) struct Finished {
    pub(super) span: SpanId,
    pub(super) parent: SpanId,
    pub(super) name: String,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) events: Events,
    /// Another span of the trace that it has to do with.
    pub(super) link: Option<SpanId>,
    pub(super) status: Status,
}

impl Finished {
    pub(super) fn data(self, ids: &Ids) -> SpanData {
        let mut events = SpanEvents::default();
        events.events = self.events.kept;
        events.dropped_count = self.events.dropped;
        let mut links = SpanLinks::default();
        let linked = self.link.map(|span| ids.context(span));
        links.links = linked.map(trace::Link::with_context).into_iter().collect();
        SpanData {
            span_context: ids.context(self.span),
            parent_span_id: self.parent,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: Cow::Owned(self.name),
            start_time: moment(self.from),
            end_time: moment(self.to),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events,
            links,
            status: self.status,
            instrumentation_scope: scope(),
        }
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(names::SCOPE)
        .with_version(env!("CARGO_PKG_VERSION"))
        .with_schema_url(names::SCHEMA_URL)
        .build()
}
