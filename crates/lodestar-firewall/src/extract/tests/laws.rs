//! Laws over arbitrary calls and results.

use lodestar_core::chain::{ContentBlock, Directness, EvidenceQuality};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{Call, text};
use crate::extract::*;

/// Text that looks like what extractors read, and text that does not.
fn any_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "\\PC{0,40}",
        "[#=$`~\\-]{1,8} ?[a-z\\[\\]\"'={}().:@/ ]{0,30}",
        "(\\[|\\[\\[)?(dependencies|project|tool\\.poetry\\.dependencies)(\\.[a-z\"]{0,4})?\\]?",
        "(fn|def|func|function|public int|int) [a-z_]{0,5}[(<\\[]{0,3}[a-z,: ]{0,9}[)>{]{0,3}",
        "(On branch|Your branch is|# branch\\.|1 |2 |u |\\?\\?|R  |## )[ a-z+.\"\\\\>-]{0,20}",
        ".. code-block:: [a-z]{0,6}",
        any::<String>(),
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r"), Just("")];
    prop::collection::vec((line, end), 0..30).prop_map(|lines| {
        lines
            .into_iter()
            .flat_map(|(line, end)| [line, end.to_owned()])
            .collect()
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_block() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        4 => any_text().prop_map(text),
        1 => any_json().prop_map(ContentBlock::from_wire),
        1 => any_json().prop_map(|value| ContentBlock::Structured { value }),
        1 => (".{0,20}", any_text()).prop_map(|(uri, text)| ContentBlock::from_wire(
            json!({"type": "resource", "resource": {"uri": uri, "text": text}}))),
        1 => ".{0,20}".prop_map(|uri| ContentBlock::from_wire(
            json!({"type": "resource_link", "uri": uri}))),
    ]
}

fn any_path() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{1,2}(/[a-c]{1,2}){0,3}(\\.(md|rst|txt|rs|py|go|c|java|js|rb))?",
        prop::sample::select(vec![
            "Cargo.toml",
            "package.json",
            "requirements.txt",
            "go.mod"
        ])
        .prop_map(str::to_owned),
        ".{0,30}",
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    let tool = prop::sample::select(vec!["read_file", "git_status", "list_directory", "echo"]);
    let arguments = prop_oneof![
        any_path().prop_map(|path| json!({"path": path})),
        ".{0,30}".prop_map(|uri| json!({"uri": uri, "x": 1})),
        any_json(),
    ];
    (tool, arguments, any::<bool>()).prop_map(|(tool, arguments, reviewed)| {
        let call = Call::of(tool, arguments);
        if reviewed { call } else { call.unreviewed() }
    })
}

fn read(path: &str, content: &str) -> Vec<ClaimDraft> {
    Call::of("read_file", json!({"path": path})).drafts(vec![text(content)])
}

proptest! {
    #[test]
    fn extraction_is_deterministic_bounded_and_never_direct_about_content(
        call in any_call(),
        blocks in prop::collection::vec(any_block(), 0..5),
    ) {
        let drafts = call.drafts(blocks.clone());
        prop_assert_eq!(&drafts, &call.drafts(blocks.clone()));
        prop_assert!(drafts.len() <= 1 + blocks.len() + 3 * (MAX_DRAFTS + 1));
        prop_assert_eq!(drafts[0].quality(), EvidenceQuality::ToolResult);
        for draft in &drafts[1..] {
            prop_assert_eq!(draft.quality().directness(), Directness::Indirect);
        }
        for draft in &drafts {
            let predicate = draft.predicate();
            prop_assert!(draft.statement().len() <= MAX_STATEMENT);
            prop_assert!(predicate.subject.len() <= MAX_SUBJECT + 16);
            prop_assert!(predicate.relation.len() <= MAX_ATTRIBUTE);
            prop_assert!(serde_json::to_string(&predicate.object).unwrap().len() <= MAX_OBJECT);
            let shown = [draft.statement(), &predicate.subject, &predicate.relation].concat();
            prop_assert!(!shown.chars().any(|c| c.is_control() || (c != '…' && ('\u{200b}'..='\u{206f}').contains(&c))), "{}", shown);
        }
    }

    #[test]
    fn no_two_claims_of_one_result_contradict_each_other(
        call in any_call(),
        blocks in prop::collection::vec(any_block(), 0..5),
    ) {
        let drafts = call.drafts(blocks);
        for (place, draft) in drafts.iter().enumerate() {
            for other in &drafts[place + 1..] {
                prop_assert!(!draft.predicate().same_key(other.predicate()), "{:?}", draft.predicate());
            }
        }
    }

    #[test]
    fn two_reads_of_one_path_are_about_one_thing_whatever_stands_there(
        path in "[a-c]{1,2}(/[a-c]{1,2}){0,3}",
        one in any_text(),
        two in any_text(),
    ) {
        let (one, two) = (read(&path, &one), read(&format!("./{path}"), &two));
        prop_assert!(one[1].predicate().same_key(two[1].predicate()));
    }

    #[test]
    fn different_paths_are_different_things(
        one in "[a-c./\\\\`\u{202e}\n]{1,8}",
        two in "[a-c./\\\\`\u{202e}\n]{1,8}",
    ) {
        use lodestar_core::fingerprint::NormalPath;
        let same = match (NormalPath::new(&one), NormalPath::new(&two)) {
            (Ok(one), Ok(two)) => one == two,
            _ => one == two,
        };
        let (one, two) = (read(&one, "x"), read(&two, "x"));
        prop_assert_eq!(one[1].predicate().same_key(two[1].predicate()), same);
    }

    #[test]
    fn different_names_and_arguments_are_different_things(
        a in ("[ab/:%]{1,4}", "[ab/:%]{1,4}", any_json()),
        b in ("[ab/:%]{1,4}", "[ab/:%]{1,4}", any_json()),
    ) {
        let subject = |(server, tool, arguments): &(String, String, Value)| {
            Call::of(tool, json!([arguments])).server(server).with(Subject::thing_read)
        };
        prop_assert_eq!(subject(&a) == subject(&b), a == b || format!("{a:?}") == format!("{b:?}"));
    }
}
