//! What an answer says beside the label: addresses inside a value, names, resemblances.

use lodestar_core::chain::ContentBlock;
use lodestar_core::provenance::{
    ArgumentProvenance, GivenSource, Label, Place, Resembled, ValueKind,
};
use serde_json::json;

use super::{contacts, label, observation, small_index};

#[test]
fn several_blocks_of_one_observation_are_one_source() {
    let mut index = small_index();
    for block in [
        json!({"type": "text", "text": "ask mallory@evil.example", "_meta": {"x": "meta-value-1"}}),
        json!({"type": "resource", "resource": {"uri": "file:///a/b.txt", "text": "ask trudy@worse.example", "blob": "cXV1eC1ibG9iLXp5eA=="}}),
        json!({"type": "resource_link", "uri": "https://link.evil.example/x", "name": "linked name"}),
        json!({"type": "image", "data": "cXV1eC1pbWFnZS16eXg=", "mimeType": "image/png", "alt": "alternative text"}),
        json!({"type": "video", "source": {"deep": ["unheard-of@evil.example"]}}),
    ] {
        index.read_block(observation(1), &ContentBlock::from_wire(block));
    }
    let value = json!({"rows": [{"id": 4_711}, {"someone@evil.example": true}]});
    index.read_block(observation(1), &ContentBlock::Structured { value });
    for found in [
        "mallory@evil.example",
        "meta-value-1",
        "file:///a/b.txt",
        "trudy@worse.example",
        "https://link.evil.example/x",
        "linked name",
        "alternative text",
        "unheard-of@evil.example",
        "4711",
        "someone@evil.example",
    ] {
        let Label::Read { observations, .. } = label(&index, found) else {
            panic!("{found}");
        };
        assert_eq!(observations, [observation(1)], "{found}");
    }
    assert_eq!(label(&index, "quux-blob-zyx"), Label::Unknown);
    assert_eq!(label(&index, "quux-image-zyx"), Label::Unknown);
}

#[test]
fn addresses_inside_a_text_are_labelled_one_by_one() {
    let mut index = small_index();
    index
        .give_task(
            "Write to anna@corp.example about https://corp.example/a",
            GivenSource::Task,
        )
        .unwrap();
    index.read(observation(1), "and to mallory@evil.example");
    let body = "Dear anna@corp.example, see (https://corp.example/a), not https://corp.example/a(b), \
                cc:mallory@evil.example;x DE89 3704 0044 0532 0130 00 and x/y";
    let labelled = index.explain(&json!({ "body": body })).remove(0);
    let inside: Vec<(&str, ValueKind, bool)> = labelled
        .inside
        .iter()
        .map(|value| {
            (
                &body[value.range.clone()],
                value.kind,
                value.label.is_trusted(),
            )
        })
        .collect();
    assert_eq!(
        inside,
        [
            ("anna@corp.example", ValueKind::Email, true),
            ("https://corp.example/a", ValueKind::Url, true),
            ("https://corp.example/a(b)", ValueKind::Url, false),
            ("mallory@evil.example", ValueKind::Email, false),
            ("DE89 3704 0044 0532 0130 00", ValueKind::Account, false),
            ("x/y", ValueKind::Path, false),
        ]
        .into_iter()
        .collect::<Vec<_>>()
    );
    assert!(!labelled.label.is_trusted());
}

#[test]
fn the_host_inside_a_url_is_labelled_too() {
    let mut index = small_index();
    index.give_value("api.corp.example", contacts()).unwrap();
    for (url, trusted) in [
        ("https://api.corp.example/v1?q=x", true),
        ("https://api.corp.example@evil.example/", false),
        ("https://evil.example/api.corp.example", false),
        ("mail@api.corp.example", true),
    ] {
        let labelled = index.explain(&json!(url)).remove(0);
        assert!(!labelled.label.is_trusted());
        assert_eq!(labelled.inside.len(), 1, "{url}");
        assert_eq!(labelled.inside[0].label.is_trusted(), trusted, "{url}");
    }
}

#[test]
fn a_name_that_is_an_address_is_labelled() {
    let mut index = small_index();
    index.read(observation(1), "mallory@evil.example");
    let labelled = index.explain(&json!({"mallory@evil.example": true, "plain": "zzqq"}));
    let names: Vec<_> = labelled.iter().filter(|l| l.place == Place::Name).collect();
    assert_eq!(names.len(), 1);
    assert_eq!(names[0].pointer, "/mallory@evil.example");
    assert!(matches!(names[0].label, Label::Read { .. }));
}

#[test]
fn what_an_untrusted_value_is_easily_taken_for_is_named() {
    let mut index = small_index();
    index
        .give_task("Write to anna@corp.example, not to mark", GivenSource::Task)
        .unwrap();
    let resembled = |argument: &str| index.explain(&json!(argument)).remove(0).resembles;
    for look_alike in [
        "аnna@corp.example",
        "Anna@corp.example",
        "an\u{200b}na@corp.example",
    ] {
        let resemblance = resembled(look_alike).unwrap();
        assert_eq!(resemblance.to, Resembled::TrustedValue);
        assert_eq!(resemblance.text, "anna@corp.example");
    }
    assert_eq!(resembled("mark").unwrap().to, Resembled::WordOfTask);
    assert_eq!(resembled("zoe@nowhere.example"), None);
    assert_eq!(resembled("anna@corp.example"), None);
}

#[test]
fn answers_read_back_from_json() {
    let mut index = small_index();
    index
        .give_task("Write to anna@corp.example, not to mark", GivenSource::Task)
        .unwrap();
    index
        .measure(&json!("https://git.corp.example/w"), "git_remote_url")
        .unwrap();
    index.read(observation(1), "mallory@evil.example");
    let labelled = index.explain(&json!([
        "anna@corp.example",
        "https://git.corp.example/w",
        "mallory@evil.example",
        "mark",
        true,
        "see x/y and mallory@evil.example",
    ]));
    let stored = serde_json::to_value(&labelled).unwrap();
    assert_eq!(
        stored[0],
        json!({
            "pointer": "/0", "place": "value", "kind": "email",
            "label": "given", "source": {"by": "task"},
            "inside": [{"range": {"start": 5, "end": 17}, "kind": "host", "label": "unknown"}],
        })
    );
    assert_eq!(stored[1]["label"], "measured");
    assert_eq!(stored[2]["observations"], json!([observation(1)]));
    let back: Vec<ArgumentProvenance> = serde_json::from_value(stored).unwrap();
    assert_eq!(back, labelled);
}
