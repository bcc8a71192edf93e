//! Laws of memory exports.

use std::collections::HashSet;

use lodestar_core::canonical;
use lodestar_firewall::import::{Export, ExportFormat, MAX_REFERENCE, MAX_TEXT, read_export};
use serde_json::json;

/// The byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Whatever is read is bounded, has a name of its own that is safe to show, and attributes that can be
/// written to the log; a byte order mark changes nothing; texts that were read are read again.
pub fn memory_export(data: &[u8]) {
    for format in ExportFormat::ALL {
        let read = read_export(*format, data);
        let Ok(export) = read else {
            continue;
        };
        is_bounded(&export);
        is_read_again(&export);
        if !data.starts_with(MARK) {
            let marked = [MARK, data].concat();
            assert_eq!(read_export(*format, &marked).as_ref(), Ok(&export));
        }
    }
}

fn is_bounded(export: &Export) {
    let mut names = HashSet::new();
    for memory in &export.memories {
        assert!(!memory.text.trim().is_empty() && memory.text.len() <= MAX_TEXT);
        assert!(memory.reference.len() <= MAX_REFERENCE);
        assert!(memory.reference.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(
            names.insert((memory.aspect, &memory.reference)),
            "a name of its own"
        );
        assert!(canonical::to_vec(&memory.attributes).is_ok());
    }
    let places = export.memories.iter().map(|memory| &memory.pointer);
    let different: HashSet<_> = places.collect();
    assert_eq!(different.len(), export.memories.len(), "a place of its own");
    assert!(export.skipped.is_sorted_by_key(|skipped| skipped.line));
}

fn is_read_again(export: &Export) {
    let texts: Vec<_> = export.memories.iter().map(|memory| &memory.text).collect();
    let list = json!({"memories": texts}).to_string();
    let again = read_export(ExportFormat::Mem0, list.as_bytes()).expect("a list of texts");
    assert!(again.memories.iter().map(|memory| &memory.text).eq(texts));
}
