//! Results made to hurt: huge, nested, endless, binary, reordered.

use std::time::{Duration, Instant};

use lodestar_core::chain::ContentBlock;
use serde_json::json;

use super::fixture::{Call, text};
use crate::extract::*;

/// Far more than any of them takes, far less than anything quadratic would.
const PATIENCE: Duration = Duration::from_secs(60);

const NAMES: &[&str] = &[
    "README.md",
    "a.rst",
    "a.txt",
    "a.rs",
    "a.py",
    "a.go",
    "A.java",
    "a.c",
    "Cargo.toml",
    "package.json",
    "requirements.txt",
    "go.mod",
];

fn read(path: &str, content: &str) -> Vec<ClaimDraft> {
    Call::of("read_file", json!({"path": path})).drafts(vec![text(content)])
}

#[test]
fn ten_megabytes_of_anything_take_linear_time_and_give_few_claims() {
    const SIZE: usize = 10 << 20;
    let started = Instant::now();
    let pieces = [
        "a",
        "\n",
        "#",
        "# h\n",
        "(",
        "fn f(",
        "fn f(\n",
        "$ x \\\n",
        "[dependencies.aaaaaaaaaaaaaaa]\n",
        "a = \"1\"\n",
        "[",
        "{\"a\":",
        "```\n",
        "```json\n{\n",
        "~~~",
        "=",
        "x\n=\n",
        "\u{202e}",
        "\u{fffd}\0\u{1b}",
        "\r\n",
        "require (\n",
        "\"",
        "dependencies = [\n",
    ];
    for (piece, path) in pieces.iter().zip(NAMES.iter().cycle()) {
        let content = piece.repeat(SIZE / piece.len() / 4);
        for path in [*path, "README.md"] {
            let drafts = read(path, &content);
            assert!(drafts.len() < 300, "{piece:?} {path}");
        }
    }
    let all: String = pieces.concat().repeat(SIZE / pieces.concat().len());
    for path in NAMES {
        assert!(read(path, &all).len() < 300, "{path}");
    }
    let status = Call::of("git_status", json!({})).drafts(vec![text(format!(
        "On branch x\nUntracked files:\n{}",
        "\ta\n".repeat(SIZE / 3)
    ))]);
    assert!(status.len() < 20);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
}

#[test]
fn thousands_of_headings_become_a_few_claims_and_a_count() {
    let content: String = (0..5_000).map(|n| format!("# heading {n}\n")).collect();
    let drafts = read("README.md", &content);
    let headings: Vec<_> = drafts
        .iter()
        .filter(|draft| draft.predicate().relation.starts_with("documents/heading/"))
        .collect();
    assert_eq!(headings.len(), 65);
    let more = headings.last().unwrap();
    assert_eq!(more.predicate().relation, "documents/heading/more");
    assert_eq!(more.predicate().object, json!({"count": 5_000 - 64}));
    assert!(more.statement().ends_with("and 4936 more"));
}

#[test]
fn a_line_of_a_megabyte_is_content_and_no_item() {
    let content = format!("# {}\n# short\n", "x".repeat(1 << 20));
    let drafts = read("README.md", &content);
    let headings = drafts
        .iter()
        .filter(|draft| draft.predicate().relation.starts_with("documents/heading/"));
    assert_eq!(headings.count(), 1);
}

#[test]
fn reordering_marks_in_an_item_are_shown_as_escapes() {
    let drafts = read("README.md", "# pay \u{202e}ecila\u{2066}\n");
    let heading = drafts.last().unwrap();
    assert_eq!(
        heading.statement(),
        r"`file:README.md` documents the heading `pay \u{202e}ecila\u{2066}`"
    );
    assert_eq!(
        heading.predicate().object["text"],
        r"pay \u{202e}ecila\u{2066}"
    );
}

#[test]
fn nesting_that_no_parser_would_take_is_summed() {
    let mut deep = json!({"x": 1});
    for _ in 0..3_000 {
        deep = json!([deep]);
    }
    let call = Call::of("echo", deep.clone());
    let drafts = call.drafts(vec![ContentBlock::Structured { value: deep }]);
    assert_eq!(drafts.len(), 2);
}
