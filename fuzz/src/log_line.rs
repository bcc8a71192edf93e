//! Laws of a log line.

use lodestar_core::canonical;
use lodestar_core::digest::{encode_hex, leaf_hash, sha256_parts};
use lodestar_log::{Body, Line, LineError, MAX_LINE_BYTES, MAX_PARENTS};
use serde_json::Value;

/// A line that is accepted has exactly one spelling, everything taken from it lies inside it, and
/// a plain JSON reader finds the same in its head.
pub fn log_line(data: &[u8]) {
    let line = match Line::parse(data) {
        Ok(line) => line,
        Err(LineError::Malformed { at, .. }) => return assert!(at <= data.len()),
        Err(LineError::TooLong { bytes }) => {
            return assert!(bytes == data.len() && bytes > MAX_LINE_BYTES);
        }
        Err(LineError::Unterminated) => panic!("only a file can end inside a line"),
    };
    let names = [line.actor(), line.project(), line.session(), line.kind()];
    assert!(names.iter().all(|name| lies_in(data, name.as_bytes())));
    assert!(lies_in(data, line.head));
    assert!(line.payload().is_none_or(|payload| lies_in(data, payload)));
    assert_eq!(spelt_again(&line), data, "a line has one spelling");
    head_reads_alike(&line);
    assert_eq!(line.leaf_hash(), leaf_hash(line.head));
    if let Body::Payload { bytes, salt } = line.body {
        let commitment = sha256_parts(&[&salt, bytes]);
        assert_eq!(line.payload_matches(), commitment == line.payload_hash);
    }
}

fn lies_in(whole: &[u8], part: &[u8]) -> bool {
    let (whole, part) = (whole.as_ptr_range(), part.as_ptr_range());
    whole.start <= part.start && part.end <= whole.end
}

fn spelt_again(line: &Line<'_>) -> Vec<u8> {
    let mut text = b"{\"head\":".to_vec();
    text.extend_from_slice(line.head);
    match line.body {
        Body::Payload { bytes, salt } => {
            text.extend_from_slice(b",\"payload\":");
            text.extend_from_slice(bytes);
            text.extend_from_slice(b",\"salt\":\"");
            encode_hex(&salt, &mut text);
            text.extend_from_slice(b"\"}");
        }
        Body::Tombstone { redaction } => {
            let tail = format!(",\"tombstone\":{{\"redaction\":{redaction}}}}}");
            text.extend_from_slice(tail.as_bytes());
        }
    }
    text
}

fn head_reads_alike(line: &Line<'_>) {
    assert!(
        canonical::is_canonical(line.head),
        "the head is canonical JSON"
    );
    let head: Value = serde_json::from_slice(line.head).expect("canonical JSON is JSON");
    let fields = head.as_object().expect("the head is an object");
    assert_eq!(fields.len(), 9);
    assert_eq!(fields["actor"], line.actor());
    assert_eq!(fields["payload_hash"], line.payload_hash.to_string());
    assert_eq!(fields["prev"], line.prev.to_string());
    assert_eq!(fields["project"], line.project());
    assert_eq!(fields["seq"], line.seq);
    assert_eq!(fields["session"], line.session());
    assert_eq!(fields["time"], line.time.to_string());
    assert_eq!(fields["type"], line.kind());
    let parents: Vec<u64> = line.parents().collect();
    assert_eq!(fields["parents"], Value::from(parents.clone()));
    assert!(parents.is_sorted_by(|a, b| a < b) && parents.len() <= MAX_PARENTS);
}
