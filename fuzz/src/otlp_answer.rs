//! Laws of what an OTLP receiver answers.

use lodestar_report::otel::Answer;

/// Reads a line with the content type, and a body.
pub fn answered(data: &[u8]) -> Option<Answer> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let kind = String::from_utf8_lossy(&data[..end]);
    Answer::read(&kind, &data[end + 1..])
}

/// What a receiver says in words is inert and short, however it says it; nothing is always an answer.
pub fn otlp_answer(data: &[u8]) {
    if let Some(answer) = answered(data) {
        let remark = answer.remark.map(|remark| remark.to_string());
        let remark = remark.unwrap_or_default();
        assert!(remark.len() < 100 && remark.is_ascii(), "{remark}");
        assert!(!remark.contains(char::is_control), "{remark}");
    }
    let kind = String::from_utf8_lossy(data);
    assert_eq!(Answer::read(&kind, b""), Some(Answer::default()));
}
