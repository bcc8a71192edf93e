//! The reference page of the format says what the code does.

use std::fs;
use std::path::Path;

use lodestar_core::canonical;
use lodestar_core::note::MAX_NOTE_SIGNATURES;
use lodestar_core::statement::{MAX_ENVELOPE_LEN, MAX_ENVELOPE_SIGNATURES};
use lodestar_log::{
    FORMAT, Line, MAX_BLOB_BYTES, MAX_LINE_BYTES, MAX_PARENTS, MAX_PAYLOAD_BYTES, MAX_PROOF_BYTES,
    SPILL_BYTES,
};

fn page() -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    fs::read_to_string(docs.join("reference/log-format.md")).expect("the page is there")
}

/// `1114112` → `1,114,112`
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[test]
fn the_line_to_test_with_is_a_line_and_has_that_hash() {
    let page = page();
    let mut lines = page
        .lines()
        .skip_while(|line| !line.starts_with("{\"head\":{\"actor\":\"agent-1\""));
    let line = lines.next().expect("the page has a line");
    let hash = lines
        .next()
        .and_then(|line| line.strip_prefix("leaf hash "));
    let line = Line::parse(line.as_bytes()).unwrap();
    assert!(line.payload_matches());
    assert_eq!(hash, Some(line.leaf_hash().to_string().as_str()));
}

#[test]
fn the_limits_are_those_of_the_code() {
    let page = page();
    let signatures = |count| format!("{count} signatures");
    for row in [
        format!(
            "| payload in a line | {} bytes |",
            grouped(MAX_PAYLOAD_BYTES)
        ),
        format!(
            "| line, without the newline | {} bytes |",
            grouped(MAX_LINE_BYTES)
        ),
        format!("| `parents` | {} |", grouped(MAX_PARENTS)),
        format!(
            "stays in a large payload | {} bytes |",
            grouped(SPILL_BYTES)
        ),
        format!("| raw content of a blob | {} GiB |", MAX_BLOB_BYTES >> 30),
        format!(", {} |", signatures(MAX_NOTE_SIGNATURES)),
        format!(
            "| envelope | {} bytes, {} |",
            grouped(MAX_ENVELOPE_LEN),
            signatures(MAX_ENVELOPE_SIGNATURES)
        ),
        format!("| proof file | {} bytes |", grouped(MAX_PROOF_BYTES)),
        format!("more than {} levels", canonical::MAX_DEPTH),
        format!("Format name: `{FORMAT}`"),
    ] {
        assert!(page.contains(&row), "the page lacks `{row}`");
    }
    assert_eq!(canonical::MAX_INTEGER, 1 << 53);
}
