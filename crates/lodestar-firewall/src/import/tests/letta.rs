use serde_json::json;

use super::*;

fn export(name: &str) -> Export {
    read_export(ExportFormat::Letta, &file(name)).unwrap()
}

#[test]
fn an_agent_file_gives_messages_blocks_and_files_in_its_order() {
    let export = export("letta-agent-file.af");
    assert_eq!(
        shown(&export),
        [
            ("message", "message-0", "My order 4711 has not arrived."),
            ("message", "message-1", "Let me look.\nOne moment."),
            (
                "message",
                "message-3",
                "{\"status\": \"OK\", \"message\": \"Order 4711 is processing.\"}"
            ),
            ("block", "block-1", "The human is waiting for order 4711."),
            ("file", "file-0", "Returns are free within thirty days."),
        ]
    );
    assert_eq!(time(&export.memories[0]), "2025-08-28T00:57:44.890070Z");
    assert_eq!(export.memories[0].pointer, "/agents/0/messages/0");
    let expected = &["`content`"];
    assert_eq!(
        skipped(&export),
        [
            ("/agents/0/messages/2", 37, &SkipReason::OnlyCalls),
            ("/blocks/1", 65, &SkipReason::EmptyText),
            ("/files/1", 72, &SkipReason::NoText { expected }),
        ]
    );
}

#[test]
fn what_a_message_holds_beside_its_text_stays_an_attribute() {
    let export = export("letta-agent-file.af");
    assert!(!export.memories[0].attributes.contains_key("content"));
    let attributes = &export.memories[1].attributes;
    assert_eq!(
        attributes["content"][0]["reasoning"],
        "I should look the order up."
    );
    assert_eq!(attributes["tool_calls"][0]["id"], "call_1");
    assert_eq!(attributes["role"], "assistant");
}

#[test]
fn an_agent_file_of_the_first_generation_is_one_agent() {
    let export = export("letta-agent-v1.af");
    assert_eq!(
        shown(&export),
        [
            ("block", "/core_memory/0", "I keep a diary."),
            ("block", "/core_memory/1", "Her name is Ines."),
            ("message", "/messages/0", "You are a diary."),
        ]
    );
    assert_eq!(time(&export.memories[1]), "2025-03-27T14:19:39.000000Z");
    assert_eq!(export.skipped, []);
}

#[test]
fn passages_come_without_their_vectors_and_without_those_that_were_deleted() {
    let export = export("letta-passages.json");
    assert_eq!(
        shown(&export),
        [
            (
                "passage",
                "passage-7c1b9d5e-2f64-4a43-8e0e-0d2f9b1a6c01",
                "Ines moved to Porto in March."
            ),
            (
                "passage",
                "passage-7c1b9d5e-2f64-4a43-8e0e-0d2f9b1a6c03",
                "She sails."
            ),
        ]
    );
    assert!(!export.memories[0].attributes.contains_key("embedding"));
    assert_eq!(export.memories[0].attributes["tags"], json!(["home"]));
    assert_eq!(
        export.memories[1].attributes["search"],
        json!({"score": 0.71, "metadata": {"rank": 1}})
    );
    assert_eq!(
        skipped(&export),
        [
            ("/1", 3, &SkipReason::Deleted),
            ("/3", 5, &SkipReason::NotARecord),
        ]
    );
}

#[test]
fn messages_of_the_api_are_read_by_what_they_say() {
    let export = export("letta-messages.json");
    assert_eq!(
        shown(&export),
        [
            ("message", "message-1", "What did I plan for today?"),
            ("message", "message-2", "The diary says sailing."),
            ("message", "message-4", "She sails."),
            ("message", "message-5", "Sailing."),
        ]
    );
    assert_eq!(time(&export.memories[0]), "2025-09-01T08:00:00.000000Z");
    assert_eq!(skipped(&export), [("/2", 4, &SkipReason::OnlyCalls)]);
}

#[test]
fn agents_of_the_api_and_named_lists_are_read() {
    let agents = r#"[{"id": "agent-1", "memory": {"blocks": [{"id": "block-1", "value": "tea"}],
        "file_blocks": [{"value": "open file"}]}}]"#;
    assert_eq!(
        shown(&read(ExportFormat::Letta, agents)),
        [
            ("block", "block-1", "tea"),
            ("block", "/0/memory/file_blocks/0", "open file"),
        ]
    );
    let named = r#"{"passages": [{"id": 1, "text": "a"}], "archives":
        [{"name": "x", "passages": [{"id": 2, "text": "b"}]}], "blocks": [{"value": "c"}]}"#;
    assert_eq!(
        shown(&read(ExportFormat::Letta, named)),
        [
            ("passage", "1", "a"),
            ("passage", "2", "b"),
            ("block", "/blocks/0", "c")
        ]
    );
    let found = r#"{"count": 1, "results": [{"id": "p", "content": "a", "timestamp": "2025-01-01T00:00:00"}]}"#;
    let export = read(ExportFormat::Letta, found);
    assert_eq!(shown(&export), [("passage", "p", "a")]);
    assert_eq!(time(&export.memories[0]), "2025-01-01T00:00:00.000000Z");
    let blocks = r#"[{"id": "block-1", "label": "human", "value": "tea"}]"#;
    assert_eq!(
        shown(&read(ExportFormat::Letta, blocks)),
        [("block", "block-1", "tea")]
    );
}
