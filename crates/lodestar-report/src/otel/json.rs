//! OTLP as JSON, as its file exporters write it: one `ExportTraceServiceRequest` a line.

use std::io::{self, Write};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::trace::SpanData;

use super::resource;

/// Writes a batch.
pub fn write(batch: Vec<SpanData>, out: &mut dyn Write) -> io::Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let resource = ResourceAttributesWithSchema::from(&resource());
    let resource_spans = group_spans_by_resource_and_scope(batch, &resource);
    serde_json::to_writer(&mut *out, &ExportTraceServiceRequest { resource_spans })?;
    out.write_all(b"\n")
}
