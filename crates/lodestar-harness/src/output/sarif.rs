//! SARIF 2.1.0, as code scanning reads it: what did not pass is a result, every probe a rule.

use serde_json::{Value, json};

use crate::runner::{RunReport, Status};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The run as SARIF.
pub fn sarif(report: &RunReport) -> Value {
    let rules = report.probes.iter().map(|result| {
        let header = &result.header;
        json!({
            "id": header.name,
            "shortDescription": {"text": header.asserts},
            "fullDescription": {"text": header.scenario},
            "help": {"text": format!("Does not claim: {}", header.does_not_claim)},
            "properties": {"tags": [header.class, header.section, header.pack], "defence": header.defence},
        })
    });
    let results = report
        .probes
        .iter()
        .enumerate()
        .filter(|(_, result)| result.status != Status::Pass)
        .map(|(at, result)| {
            let (level, kind) = match result.status {
                Status::Pass | Status::Skip => ("none", "notApplicable"),
                Status::Fail => ("error", "fail"),
                Status::Error => ("warning", "open"),
            };
            json!({
                "ruleId": result.header.name,
                "ruleIndex": at,
                "level": level,
                "kind": kind,
                "message": {"text": result.reason.as_deref().unwrap_or("no reason was given")},
                "locations": [{"logicalLocations": [{"name": result.header.name, "kind": "function"}]}],
            })
        });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "lodestar harness",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.collect::<Vec<_>>(),
            }},
            "results": results.collect::<Vec<_>>(),
        }],
    })
}
