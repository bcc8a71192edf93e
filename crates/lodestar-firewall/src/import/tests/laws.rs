use lodestar_core::canonical;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Any JSON, with the keys of the three systems in it more often than not.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((any_key(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(vec![
        "results",
        "memories",
        "relations",
        "memory",
        "content",
        "id",
        "agents",
        "blocks",
        "core_memory",
        "messages",
        "passages",
        "value",
        "text",
        "role",
        "tool_calls",
        "type",
        "edges",
        "nodes",
        "facts",
        "fact",
        "summary",
        "sessions",
        "uuid",
        "created_at",
        "payload",
        "data",
        "state",
        "passage",
        "source",
        "relationship",
        "target",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

fn keeps_its_promises(export: &Export) {
    let mut references = std::collections::HashSet::new();
    for memory in &export.memories {
        assert!(!memory.text.trim().is_empty() && memory.text.len() <= MAX_TEXT);
        assert!(memory.reference.len() <= MAX_REFERENCE);
        assert!(memory.reference.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(references.insert((memory.aspect, &memory.reference)));
        assert!(canonical::to_vec(&memory.attributes).is_ok());
    }
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused(value in any_json()) {
        for format in ExportFormat::ALL {
            if let Ok(export) = read_export(*format, value.to_string().as_bytes()) {
                keeps_its_promises(&export);
                for place in export.memories.iter().map(|one| &one.pointer)
                    .chain(export.skipped.iter().map(|one| &one.pointer))
                {
                    prop_assert!(value.pointer(place).is_some(), "{}", place);
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text in "[\\[\\]{}\",:0-9a-z\\\\ \n]{0,60}") {
        for format in ExportFormat::ALL {
            let _ = read_export(*format, &bytes);
            let _ = read_export(*format, text.as_bytes());
        }
    }

    #[test]
    fn every_record_of_a_list_is_a_memory_or_is_skipped(records in vec(any_json(), 0..12)) {
        for (format, key) in [
            (ExportFormat::Mem0, "results"),
            (ExportFormat::Mem0, "relations"),
            (ExportFormat::Letta, "blocks"),
            (ExportFormat::Letta, "passages"),
            (ExportFormat::Letta, "messages"),
            (ExportFormat::Zep, "edges"),
            (ExportFormat::Zep, "nodes"),
            (ExportFormat::Zep, "items"),
        ] {
            let export = read(format, &json!({key: records}).to_string());
            prop_assert_eq!(export.memories.len() + export.skipped.len(), records.len());
        }
    }

    #[test]
    fn space_between_the_values_changes_nothing_but_the_lines(value in any_json()) {
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for format in ExportFormat::ALL {
            let dense = read_export(*format, value.to_string().as_bytes());
            let spread = read_export(*format, pretty.as_bytes());
            prop_assert_eq!(dense.map(|export| export.memories), spread.map(|export| export.memories));
        }
    }
}
