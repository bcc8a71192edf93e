use serde_json::{Value, json};

use super::*;
use crate::extract::tests::fixture::Call;

fn reading(tool: &str, arguments: Value) -> (String, String) {
    Call::of(tool, arguments).with(|call| {
        let reading = Reading::of(call);
        (
            reading.subject.as_str().to_owned(),
            reading.relation("content", 0),
        )
    })
}

fn subject(arguments: Value) -> String {
    reading("read", arguments).0
}

#[test]
fn arguments_that_name_one_path_make_a_file_the_subject() {
    for arguments in [
        json!({"path": "a/b"}),
        json!({"path": "./a/b"}),
        json!({"file_path": "a//b"}),
        json!({"filePath": "a/x/../b"}),
        json!({"path": "a/b", "file": "./a/b"}),
    ] {
        assert_eq!(subject(arguments.clone()), "file:a/b", "{arguments}");
    }
    assert_eq!(subject(json!({"uri": "file:///a/b"})), "file:/a/b");
    assert_eq!(subject(json!({"path": "file:///a/b"})), "file:/a/b");
}

#[test]
fn arguments_that_name_a_uri_make_a_resource_the_subject() {
    assert_eq!(
        subject(json!({"url": "HTTPS://Docs.example:443/x"})),
        "resource:https://docs.example/x"
    );
    assert_eq!(subject(json!({"uri": "memo://1/"})), "resource:memo://1/");
}

#[test]
fn arguments_that_name_no_single_thing_are_the_name_themselves() {
    for arguments in [
        json!({}),
        json!({"query": "x"}),
        json!({"path": "../up"}),
        json!({"path": "a", "file": "b"}),
        json!({"path": ["a"]}),
        json!({"path": "nul\0"}),
        json!({"path": "../up", "url": "https://a.example"}),
        json!(null),
        json!("path"),
    ] {
        let subject = subject(arguments.clone());
        assert!(
            subject.starts_with("call-result:files/read:"),
            "{arguments} {subject}"
        );
    }
}

#[test]
fn a_long_path_is_bounded_and_still_its_own() {
    let long = |end: &str| subject(json!({"path": format!("{}{end}", "d/".repeat(4_000))}));
    assert!(long("a").len() <= MAX_SUBJECT + 5);
    assert_ne!(long("a"), long("b"));
}

#[test]
fn another_view_of_a_thing_has_a_relation_of_its_own() {
    let (whole, content) = reading("read_file", json!({"path": "a"}));
    assert_eq!(content, "content");
    let views = [
        reading("read_file", json!({"path": "a", "head": 10})),
        reading("read_file", json!({"path": "a", "head": 20})),
        reading("list_directory", json!({"path": "a"})),
        reading("get_file_info", json!({"path": "a"})),
    ];
    for (place, (subject, relation)) in views.iter().enumerate() {
        assert_eq!(*subject, whole);
        assert!(relation.starts_with("content("), "{relation}");
        assert!(
            views[place + 1..]
                .iter()
                .all(|(_, other)| other != relation)
        );
    }
    assert_eq!(
        reading("read_file", json!({"head": 10, "path": "./a"})),
        views[0]
    );
}

#[test]
fn a_repository_is_named_by_the_arguments_or_is_the_one_here() {
    let repository = |arguments| {
        Call::of("git_status", arguments)
            .with(Subject::repository)
            .map(|subject| subject.as_str().to_owned())
    };
    assert_eq!(repository(json!({})).unwrap(), "git:.");
    assert_eq!(
        repository(json!({"repo_path": "/w/./r"})).unwrap(),
        "git:/w/r"
    );
    assert_eq!(
        repository(json!({"path": "a", "repoPath": "b"})).unwrap(),
        "git:b"
    );
    assert_eq!(repository(json!({"repo_path": "../r"})), None);
}
