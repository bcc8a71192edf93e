use serde_json::json;

use super::*;

fn export(name: &str) -> Export {
    read_export(ExportFormat::Zep, &file(name)).unwrap()
}

#[test]
fn a_graph_gives_facts_summaries_and_episodes() {
    let export = export("zep-graph.json");
    assert_eq!(
        shown(&export),
        [
            (
                "fact",
                "e1a7c2d4-0001-4f0a-9b1c-000000000001",
                "Jane works at Acme."
            ),
            (
                "fact",
                "e1a7c2d4-0001-4f0a-9b1c-000000000002",
                "Jane worked at Initech."
            ),
            (
                "node_summary",
                "n-1",
                "Jane is an engineer who moved from Initech to Acme."
            ),
            ("episode", "p-1", "Jane: I started at Acme in April."),
        ]
    );
    assert_eq!(time(&export.memories[0]), "2025-05-01T10:00:00.123456Z");
    assert_eq!(skipped(&export), [("/nodes/1", 8, &SkipReason::EmptyText)]);
    let over = &export.memories[1].attributes;
    assert_eq!(over["expired_at"], "2025-05-02T00:00:00Z");
    assert!(!over.contains_key("fact_embedding"));
}

#[test]
fn sessions_give_facts_messages_and_summary() {
    let export = export("zep-sessions.json");
    assert_eq!(
        shown(&export),
        [
            ("fact", "/sessions/0/facts/0", "Jane likes running shoes."),
            (
                "message",
                "3e550000-0000-4000-8000-000000000001",
                "I need new shoes."
            ),
            (
                "fact",
                "fac70000-0000-4000-8000-000000000001",
                "Jane runs in size 39."
            ),
            (
                "summary",
                "50000000-0000-4000-8000-000000000001",
                "Jane looks for running shoes."
            ),
        ]
    );
    let expected = &["`content`"];
    assert_eq!(
        skipped(&export),
        [
            ("/sessions/0/facts/1", 12, &SkipReason::EmptyText),
            (
                "/sessions/0/memory/messages/1",
                16,
                &SkipReason::NoText { expected }
            ),
        ]
    );
}

#[test]
fn results_of_a_search_are_read_by_what_was_found() {
    let export = export("zep-search.json");
    let aspects: Vec<_> = export.memories.iter().map(|one| one.aspect).collect();
    assert_eq!(aspects, [Aspect::Fact, Aspect::Message, Aspect::Summary]);
    assert_eq!(
        export.memories[0].attributes["search"],
        json!({"message": null, "summary": null, "score": 0.9, "session_id": "s-1"})
    );
    let expected = &["`fact`", "`content`", "`summary`"];
    assert_eq!(
        skipped(&export),
        [("/results/3", 6, &SkipReason::NoText { expected })]
    );
}

#[test]
fn a_page_is_read_by_what_its_items_are() {
    let export = export("zep-page.json");
    assert_eq!(
        shown(&export),
        [
            ("fact", "e-1", "Jane moved to Berlin."),
            ("node_summary", "n-1", "Jane lives in Berlin."),
            ("episode", "p-1", "I moved to Berlin."),
            ("message", "m-1", "Hello from Berlin."),
            ("summary", "t-1", "Jane tells of her move."),
        ]
    );
}

#[test]
fn bare_lists_of_edges_or_of_sessions_are_read() {
    let edges = r#"[{"uuid": "e", "fact": "a", "episodes": ["p"]}, {"uuid": "p", "content": "b"}]"#;
    assert_eq!(
        shown(&read(ExportFormat::Zep, edges)),
        [("fact", "e", "a"), ("episode", "p", "b")]
    );
    let sessions = r#"[{"session_id": "s", "messages": [{"uuid": "m", "content": "a"}], "facts": ["b"]},
        {"summary": "c"}]"#;
    assert_eq!(
        shown(&read(ExportFormat::Zep, sessions)),
        [
            ("message", "m", "a"),
            ("fact", "/0/facts/0", "b"),
            ("summary", "/1", "c")
        ]
    );
    let users =
        r#"{"users": [{"user_id": "u", "threads": [{"summary": "a"}], "edges": [{"fact": "b"}]}]}"#;
    assert_eq!(
        shown(&read(ExportFormat::Zep, users)),
        [
            ("summary", "/users/0/threads/0/summary", "a"),
            ("fact", "/users/0/edges/0", "b"),
        ]
    );
}

#[test]
fn one_id_may_name_records_of_several_kinds_and_one_of_each() {
    let json = r#"{"edges": [{"uuid": "x", "fact": "a"}], "nodes": [{"uuid": "x", "summary": "b"}],
        "relevant_facts": [{"uuid": "x", "fact": "c"}]}"#;
    let export = read(ExportFormat::Zep, json);
    assert_eq!(
        shown(&export),
        [("fact", "x", "a"), ("node_summary", "x", "b")]
    );
    let first = "/edges/0".to_owned();
    assert_eq!(
        skipped(&export),
        [("/relevant_facts/0", 2, &SkipReason::DuplicateId { first })]
    );
}
