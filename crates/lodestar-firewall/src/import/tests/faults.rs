use serde_json::json;

use super::*;

fn refused(format: ExportFormat, bytes: &[u8]) -> ExportError {
    read_export(format, bytes).unwrap_err()
}

fn only_reason(json: &str) -> SkipReason {
    let export = read(ExportFormat::Mem0, json);
    assert_eq!((export.memories.len(), export.skipped.len()), (0, 1));
    export.skipped[0].reason.clone()
}

#[test]
fn one_bad_record_never_costs_the_others() {
    let export = read_export(ExportFormat::Mem0, &file("mem0-damaged.json")).unwrap();
    let references: Vec<_> = export.memories.iter().map(|one| &one.reference).collect();
    assert_eq!(references, ["m-1", "m-7", "m-8", "m-9"]);
    let key = Excerpt::of("memory");
    let expected = &["`memory`", "`content`", "`text`", "`data`"];
    assert_eq!(
        skipped(&export),
        [
            ("/1", 3, &SkipReason::LoneSurrogate),
            ("/2", 4, &SkipReason::DuplicateKey { key }),
            ("/3", 5, &SkipReason::NotText { key: "`memory`" }),
            ("/4", 6, &SkipReason::NoText { expected }),
            ("/5", 7, &SkipReason::NotARecord),
        ]
    );
}

#[test]
fn a_time_that_does_not_exist_stays_an_attribute() {
    let export = read_export(ExportFormat::Mem0, &file("mem0-damaged.json")).unwrap();
    assert_eq!(export.memories[1].created_at, None);
    assert_eq!(
        export.memories[1].attributes["created_at"],
        "2025-02-30T00:00:00Z"
    );
}

#[test]
fn numbers_that_canonical_json_refuses_become_text_with_all_their_digits() {
    let export = read_export(ExportFormat::Mem0, &file("mem0-damaged.json")).unwrap();
    let memory = &export.memories[2];
    assert_eq!(memory.text, "numbers \0 of all sizes");
    assert_eq!(
        memory.attributes["metadata"],
        json!({
            "big": "18446744073709551616",
            "snowflake": "-9007199254740993",
            "double": "1.0e16",
            "huge": "1e400",
            "far": 1e22,
            "edge": 9_007_199_254_740_992_u64,
        })
    );
    lodestar_core::canonical::to_vec(&memory.attributes).unwrap();
}

#[test]
fn digits_in_texts_and_keys_are_left_alone() {
    let json = r#"[{"memory": "\"9007199254740993\\", "9007199254740993": "a\\\"1e400"}]"#;
    let export = read(ExportFormat::Mem0, json);
    assert_eq!(export.memories[0].text, "\"9007199254740993\\");
    assert_eq!(
        json!(export.memories[0].attributes),
        json!({"9007199254740993": "a\\\"1e400"})
    );
}

#[test]
fn sizes_end_where_the_limits_say() {
    let text = |bytes: usize| format!(r#"[{{"memory": "{}"}}]"#, "x".repeat(bytes));
    assert_eq!(read(ExportFormat::Mem0, &text(MAX_TEXT)).memories.len(), 1);
    let bytes = MAX_TEXT + 1;
    assert_eq!(
        only_reason(&text(bytes)),
        SkipReason::TextTooLarge { bytes }
    );

    let rest = |bytes: usize| {
        let filler = "x".repeat(bytes - r#"{"a":""}"#.len());
        format!(r#"[{{"memory": "m", "a": "{filler}"}}]"#)
    };
    assert_eq!(
        read(ExportFormat::Mem0, &rest(MAX_ATTRIBUTES))
            .memories
            .len(),
        1
    );
    let bytes = MAX_ATTRIBUTES + 1;
    assert_eq!(
        only_reason(&rest(bytes)),
        SkipReason::AttributesTooLarge { bytes }
    );

    let record = format!(r#"{{"memory": "{}"}}"#, "x".repeat(MAX_RECORD));
    let bytes = record.len();
    assert_eq!(
        only_reason(&format!("[{record}]")),
        SkipReason::RecordTooLarge { bytes }
    );
    let bytes = MAX_EXPORT + 1;
    assert_eq!(
        refused(ExportFormat::Mem0, &vec![b' '; bytes]),
        ExportError::TooLarge { bytes }
    );
}

#[test]
fn a_record_nests_so_deep_and_no_deeper_and_the_file_as_deep_as_it_likes() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"[{{"memory": "m", "deep": {open}{close}}}]"#)
    };
    assert_eq!(
        read(ExportFormat::Mem0, &nested(MAX_DEPTH)).memories.len(),
        1
    );
    assert_eq!(only_reason(&nested(MAX_DEPTH + 1)), SkipReason::TooDeep);
    let bottomless = format!("{}1{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    for format in ExportFormat::ALL {
        let export = read(*format, &bottomless);
        assert!(matches!(
            export.skipped[0].reason,
            SkipReason::RecordTooLarge { .. }
        ));
        let unfinished = refused(*format, "{\"agents\":[".repeat(1 << 20).as_bytes());
        assert!(matches!(unfinished, ExportError::NotJson { line: 1, .. }));
    }
}

#[test]
fn an_export_has_so_many_records_and_no_more() {
    let list = |records: usize| format!("[{}0]", "0,".repeat(records - 1));
    let most = read(ExportFormat::Zep, &list(MAX_RECORDS));
    assert_eq!(most.skipped.len(), MAX_RECORDS);
    assert_eq!(
        refused(ExportFormat::Zep, list(MAX_RECORDS + 1).as_bytes()),
        ExportError::TooManyRecords
    );
}

#[test]
fn what_is_no_text_or_no_json_says_where() {
    let mem0 = ExportFormat::Mem0;
    assert_eq!(
        refused(mem0, b"[\"a\xff\"]"),
        ExportError::NotUtf8 { offset: 3 }
    );
    let not_json = |line, column| ExportError::NotJson { line, column };
    assert_eq!(refused(mem0, b""), not_json(1, 0));
    assert_eq!(refused(mem0, b"[1,\n 2,]"), not_json(2, 4));
    assert_eq!(refused(mem0, b"{\"results\": []} x"), not_json(1, 17));
    assert_eq!(refused(mem0, b"[\"\0\"]"), not_json(1, 2));
    assert_eq!(refused(ExportFormat::Zep, b"{}\n{}"), not_json(2, 1));
    assert_eq!(refused(mem0, b"PK\x03\x04 and so on"), ExportError::Archive);
    assert_eq!(refused(mem0, b"\x1f\x8b\x08"), ExportError::Archive);
}

#[test]
fn a_byte_order_mark_is_no_fault() {
    let export = read(ExportFormat::Mem0, "\u{feff}[{\"memory\": \"tea\"},\n1]");
    assert_eq!(shown(&export), [("memory", "/0", "tea")]);
    assert_eq!(skipped(&export), [("/1", 2, &SkipReason::NotARecord)]);
}

#[test]
fn another_shape_is_refused_with_what_was_expected_and_what_it_looks_like() {
    let wrong = refused(ExportFormat::Mem0, &file("zep-graph.json"));
    assert_eq!(
        wrong.to_string(),
        "no list of records found; a mem0 export has `results` or `memories`, or is a list of \
         memories; an export with a schema of one's own has to keep one of them. It can be read as \
         `zep`"
    );
    let format = ExportFormat::Zep;
    let looks_like = None;
    for json in [
        "{}",
        "5",
        "null",
        r#""text""#,
        r#"{"edges": 5}"#,
        r#"{"edges": null}"#,
    ] {
        assert_eq!(
            refused(format, json.as_bytes()),
            ExportError::WrongShape { format, looks_like },
            "{json}"
        );
    }
}

#[test]
fn a_list_that_stands_twice_counts_once_and_one_that_is_none_is_reported() {
    let json = r#"{"\ud800": 1, "results": [{"memory": "a"}],
        "results": [{"memory": "b"}], "relations": {}}"#;
    let export = read(ExportFormat::Mem0, json);
    assert_eq!(shown(&export), [("memory", "/results/0", "a")]);
    let key = Excerpt::of("results");
    assert_eq!(
        skipped(&export),
        [
            ("/results", 2, &SkipReason::DuplicateKey { key }),
            ("/relations", 2, &SkipReason::NotAList),
        ]
    );
    let export = read(ExportFormat::Letta, r#"{"agents": [5, {"memory": "x"}]}"#);
    assert_eq!(
        skipped(&export),
        [
            ("/agents/0", 1, &SkipReason::NotARecord),
            ("/agents/1/memory", 1, &SkipReason::NotARecord),
        ]
    );
}

#[test]
fn references_are_inert_bounded_and_keep_ids_apart() {
    let long = "x".repeat(MAX_REFERENCE + 1);
    let json = json!([
        {"id": "/2", "memory": "posing as a place"},
        {"id": "a\u{202e}`\n", "memory": "b"},
        {"id": "", "memory": "c"},
        {"id": long, "memory": "d"},
        {"id": format!("sha256={}", lodestar_core::digest::sha256(long.as_bytes())), "memory": "e"},
        {"id": {"not": "one"}, "memory": "f"},
    ]);
    let export = read(ExportFormat::Mem0, &json.to_string());
    let references: Vec<_> = export
        .memories
        .iter()
        .map(|one| one.reference.as_str())
        .collect();
    assert_eq!(references[..3], ["%2F2", "a%E2%80%AE%60%0A", "/2"]);
    assert!(references[3].starts_with("sha256="));
    assert!(references[4].starts_with("sha256%3D"));
    assert_eq!(references[5], "/5");
    assert_eq!(export.memories[5].attributes["id"], json!({"not": "one"}));
}

#[test]
fn formats_have_their_words() {
    for format in ExportFormat::ALL {
        assert_eq!(format.as_str().parse(), Ok(*format));
    }
    assert_eq!(
        "memo".parse::<ExportFormat>().unwrap_err().to_string(),
        "unknown export format `memo`; expected one of `mem0`, `letta`, `zep`"
    );
    let mut words: Vec<_> = Aspect::ALL.iter().map(|aspect| aspect.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Aspect::ALL.len());
}
