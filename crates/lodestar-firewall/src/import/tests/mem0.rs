use serde_json::json;

use super::*;

fn export(name: &str) -> Export {
    read_export(ExportFormat::Mem0, &file(name)).unwrap()
}

#[test]
fn the_answer_of_the_platform_is_read_with_its_duplicate_and_its_empty_memory_skipped() {
    let export = export("mem0-platform.json");
    assert_eq!(
        shown(&export),
        [
            (
                "memory",
                "8f165f7e-b411-4afe-b7e5-35789b72c4a5",
                "Dev works at TechCorp as a senior engineer"
            ),
            (
                "memory",
                "2ac3f1d0-9d1b-4c76-9d5e-7a0d5a7b1c11",
                "Is a vegetarian and is allergic to nuts"
            ),
        ]
    );
    assert_eq!(time(&export.memories[0]), "2024-07-20T08:30:36.275141Z");
    assert_eq!(export.memories[1].pointer, "/results/1");
    let first = "/results/1".to_owned();
    assert_eq!(
        skipped(&export),
        [
            ("/results/2", 29, &SkipReason::DuplicateId { first }),
            ("/results/3", 35, &SkipReason::EmptyText),
        ]
    );
}

#[test]
fn what_a_record_says_of_its_own_truth_is_an_attribute() {
    let export = export("mem0-platform.json");
    let attributes = &export.memories[0].attributes;
    assert_eq!(
        attributes["metadata"],
        json!({"type": "professional", "verified": true, "truth": "supported"})
    );
    assert_eq!(attributes["user_id"], "dev");
    assert_eq!(attributes["expiration_date"], json!(null));
    for taken in ["id", "memory", "created_at"] {
        assert!(!attributes.contains_key(taken), "{taken}");
    }
}

#[test]
fn relations_of_graph_memory_are_their_three_words() {
    let export = export("mem0-graph.json");
    assert_eq!(
        shown(&export)[1..],
        [
            ("relation", "/relations/0", "alice loves_to_play badminton"),
            ("relation", "/relations/1", "alice hates tennis"),
        ]
    );
    assert_eq!(
        export.memories[0].attributes["metadata"],
        json!({"order_id": "9007199254740993"})
    );
    let expected = &["`target`", "`destination`"];
    assert_eq!(
        skipped(&export),
        [("/relations/2", 8, &SkipReason::NoText { expected })]
    );
    let empty = read(
        ExportFormat::Mem0,
        r#"{"relations": [{"source": "a", "relationship": " ", "target": "b"}]}"#,
    );
    assert_eq!(empty.skipped[0].reason, SkipReason::EmptyText);
}

#[test]
fn a_backup_of_openmemory_does_not_bring_back_what_was_deleted() {
    let export = export("mem0-openmemory.json");
    assert_eq!(
        shown(&export),
        [(
            "memory",
            "c1000000-0000-4000-8000-000000000001",
            "Deploys on Fridays only after the tests are green"
        )]
    );
    assert_eq!(skipped(&export), [("/memories/1", 7, &SkipReason::Deleted)]);
}

#[test]
fn a_broken_line_costs_only_itself() {
    let export = export("mem0-openmemory.jsonl");
    let pointers: Vec<_> = export.memories.iter().map(|one| &one.pointer).collect();
    assert_eq!(pointers, ["/0", "/2"]);
    assert_eq!(export.skipped.len(), 1);
    assert_eq!(
        (export.skipped[0].pointer.as_str(), export.skipped[0].line),
        ("/1", 2)
    );
    assert_eq!(export.skipped[0].reason, SkipReason::NotJson { column: 71 });
}

#[test]
fn one_memory_alone_is_an_export_too() {
    let export = read(ExportFormat::Mem0, r#"{"id": "m", "memory": "tea"}"#);
    assert_eq!(shown(&export), [("memory", "m", "tea")]);
    assert_eq!(export.memories[0].pointer, "");
    let export = read(ExportFormat::Mem0, r#"{"id": "m", "memory": 5}"#);
    assert_eq!(
        skipped(&export),
        [("", 1, &SkipReason::NotText { key: "`memory`" })]
    );
}

#[test]
fn pages_texts_and_rows_of_the_vector_store_are_read() {
    let page = r#"{"items": [{"id": 7, "content": "tea", "created_at": 1721476800}], "total": 1}"#;
    let export = read(ExportFormat::Mem0, page);
    assert_eq!(shown(&export), [("memory", "7", "tea")]);
    assert_eq!(time(&export.memories[0]), "2024-07-20T12:00:00.000000Z");

    let export = read(ExportFormat::Mem0, r#"{"memories": ["tea", "milk"]}"#);
    assert_eq!(
        shown(&export),
        [
            ("memory", "/memories/0", "tea"),
            ("memory", "/memories/1", "milk")
        ]
    );

    let rows = r#"[{"id": "r", "vector": [1, 2], "payload":
        {"data": "tea", "user_id": "u", "created_at": "2024-07-20T12:00:00Z"}}]"#;
    let export = read(ExportFormat::Mem0, rows);
    assert_eq!(shown(&export), [("memory", "r", "tea")]);
    assert_eq!(time(&export.memories[0]), "2024-07-20T12:00:00.000000Z");
    assert_eq!(
        json!(export.memories[0].attributes),
        json!({"payload": {"user_id": "u"}})
    );
}
