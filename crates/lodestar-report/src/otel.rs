//! A session as an OpenTelemetry trace.
//!
//! A trace is a projection of a log, like a report: it follows from events that verified, and every span
//! and span event names the event that it comes from, by number and leaf hash. Ids follow from leaf
//! hashes too, so whoever exports a session twice sends the same spans.
//!
//! | part | role |
//! |---|---|
//! | [`admit`](mod@admit) | whether a session may be exported at all |
//! | [`names`] | attribute names: the conventions' and our own |
//! | `ids` | trace and span ids, from leaf hashes |
//! | `content` | what of a call's content may leave, and in what form |
//! | `fold`, `action`, `hold`, `root` | events to spans |
//! | [`batch`] | so many spans at a time |
//! | [`json`] | OTLP as JSON, a batch a line |
//! | [`endpoint`], [`send`], `answer` | OTLP over HTTP, and what comes back |
//!
//! What is exported and under which names is documented in `docs/reference/opentelemetry.md`.

mod action;
mod admit;
mod answer;
mod attributes;
pub mod batch;
mod content;
pub mod endpoint;
mod fold;
mod hold;
mod ids;
pub mod json;
pub mod names;
mod root;
pub mod send;
#[cfg(test)]
mod tests;

pub use admit::{Admitted, NotAdmitted, admit};
pub use answer::Answer;
pub use content::MAX_CONTENT_BYTES;
pub use fold::{Exported, Fold, Unprojectable, project};

/// A span, as OpenTelemetry's SDK has it.
pub use opentelemetry_sdk::trace::SpanData;

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

/// What every span is of. One attribute only: of several, the SDK chooses another order in every process, and
/// an export would not be the same twice. The version stands in the scope.
fn resource() -> Resource {
    let name = KeyValue::new(names::SERVICE_NAME, "lodestar");
    Resource::builder_empty()
        .with_schema_url([name], names::SCHEMA_URL)
        .build()
}
