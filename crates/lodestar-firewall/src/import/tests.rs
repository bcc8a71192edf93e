//! What is read out of exports: one file per system, one for what can be wrong, one for laws.

mod faults;
mod laws;
mod letta;
mod mem0;
mod zep;

use super::*;

/// An export in the tests' data.
fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/import/");
    std::fs::read(format!("{folder}{name}")).unwrap()
}

fn read(format: ExportFormat, json: &str) -> Export {
    read_export(format, json.as_bytes()).unwrap()
}

/// Aspect, reference and text of each memory.
fn shown(export: &Export) -> Vec<(&'static str, &str, &str)> {
    let memories = export.memories.iter();
    memories
        .map(|memory| {
            (
                memory.aspect.as_str(),
                memory.reference.as_str(),
                memory.text.as_str(),
            )
        })
        .collect()
}

/// Pointer, line and reason of each skipped record.
fn skipped(export: &Export) -> Vec<(&str, u64, &SkipReason)> {
    let skipped = export.skipped.iter();
    skipped
        .map(|one| (one.pointer.as_str(), one.line, &one.reason))
        .collect()
}

fn time(memory: &ImportedMemory) -> String {
    memory
        .created_at
        .map(|at| at.to_string())
        .unwrap_or_default()
}
