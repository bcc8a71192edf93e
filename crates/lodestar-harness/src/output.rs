//! What came of a run, for other programs.

mod junit;
mod sarif;

pub use junit::junit;
pub use sarif::sarif;

use serde_json::{Value, json};

use crate::runner::{ProbeResult, RunReport};

/// As JSON: the results, and the counts.
pub fn json(report: &RunReport) -> Value {
    let probes = report.probes.iter().map(|result: &ProbeResult| {
        let header = &result.header;
        json!({
            "name": header.name,
            "pack": header.pack,
            "section": header.section,
            "class": header.class,
            "defence": header.defence,
            "status": result.status,
            "contrast": result.contrast,
            "ms": result.ms,
            "reason": result.reason,
        })
    });
    json!({
        "probes": probes.collect::<Vec<_>>(),
        "passed": report.passed,
        "failed": report.failed,
        "skipped": report.skipped,
        "errors": report.errors,
    })
}
