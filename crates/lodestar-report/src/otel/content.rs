//! What of a call's content may leave this machine, and in what form.
//!
//! Content at or below the ceiling is written out, bounded; content above it is replaced by a digest that
//! starts with the salt of its event. The salt stays in the log: few words can be guessed and hashed, but not
//! with 128 random bits before them; and whoever has the log can compute the digest again.

use lodestar_core::digest::sha256_parts;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::Event;
use opentelemetry::KeyValue;

use crate::inert;

/// Most bytes of one content that are written out. Back ends cut or refuse attributes that are much longer.
pub const MAX_CONTENT_BYTES: usize = 8 << 10;

/// Most bytes of a reason: a span may have many.
const MAX_WORDS_BYTES: usize = 1 << 10;

/// How a content stands in a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All of it.
    Whole,
    /// Its beginning.
    Cut,
    /// A digest in its place.
    Withheld,
}

impl Form {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Cut => "cut",
            Self::Withheld => "withheld",
        }
    }
}

/// A content as it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outward {
    pub(super) text: String,
    pub(super) form: Form,
    /// How long it is in the log.
    pub(super) bytes: usize,
}

/// The most sensitive content that may leave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling(pub(super) Sensitivity);

impl Ceiling {
    /// What may leave of a content of this level, which stands in this event. JSON stays JSON with the
    /// same meaning, unless it is cut.
    pub(super) fn outward(self, content: &str, level: Sensitivity, event: &Event) -> Outward {
        self.bounded(content, MAX_CONTENT_BYTES, level, event)
    }

    fn bounded(self, content: &str, most: usize, level: Sensitivity, event: &Event) -> Outward {
        let bytes = content.len();
        if level > self.0 {
            // Without a salt there is no payload, and so no content.
            let salt = event.salt.unwrap_or_default();
            let digest = sha256_parts(&[&salt, content.as_bytes()]);
            return Outward {
                text: format!("sha256:{digest}"),
                form: Form::Withheld,
                bytes,
            };
        }
        let mut text = String::new();
        for c in content.chars() {
            let before = text.len();
            push_inert(&mut text, c);
            if text.len() > most {
                text.truncate(before);
                text.push_str(&format!("… ({bytes} bytes)"));
                let form = Form::Cut;
                return Outward { text, form, bytes };
            }
        }
        let form = Form::Whole;
        Outward { text, form, bytes }
    }

    /// Words about a call: as sensitive as its content.
    pub(super) fn words(
        self,
        name: &'static str,
        words: &str,
        level: Sensitivity,
        event: &Event,
    ) -> KeyValue {
        KeyValue::new(
            name,
            self.bounded(words, MAX_WORDS_BYTES, level, event).text,
        )
    }
}

/// A text that does nothing on a screen.
pub(super) fn inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_inert(&mut shown, c));
    shown
}

/// Characters that do not show what they are become escapes as JSON has them: in a string of JSON they mean
/// the same, and on a screen they do nothing.
fn push_inert(text: &mut String, c: char) {
    if inert::is_inert(c) {
        return text.push(c);
    }
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        text.push_str(&format!("\\u{unit:04x}"));
    }
}

#[cfg(test)]
mod tests {
    use lodestar_core::digest::sha256;
    use lodestar_core::time::Timestamp;
    use lodestar_log::Payload;

    use super::*;

    fn event(salt: u8) -> Event {
        Event {
            seq: 1,
            time: Timestamp::from_unix_micros(0).unwrap(),
            kind: "action.proposed@1".into(),
            actor: "agent".into(),
            parents: Vec::new(),
            leaf_hash: sha256(b"leaf"),
            offset: 0,
            payload: Payload::Present(b"{}".to_vec()),
            salt: Some([salt; 16]),
        }
    }

    #[test]
    fn what_is_above_the_ceiling_is_never_written_out() {
        for &ceiling in Sensitivity::ALL {
            for &level in Sensitivity::ALL {
                let outward = Ceiling(ceiling).outward("hunter2", level, &event(1));
                assert_eq!(outward.text == "hunter2", level <= ceiling);
                assert_eq!(outward.form == Form::Withheld, level > ceiling);
                assert_eq!(outward.bytes, 7);
            }
        }
    }

    #[test]
    fn the_digest_of_what_is_withheld_cannot_be_guessed_from_the_words_alone() {
        let withheld = |salt| {
            let (ceiling, level) = (Ceiling(Sensitivity::Public), Sensitivity::Secret);
            ceiling.outward("1234", level, &event(salt)).text
        };
        assert_ne!(withheld(1), format!("sha256:{}", sha256(b"1234")));
        assert_ne!(withheld(1), withheld(2));
        let salted = sha256(&[&[1; 16][..], b"1234"].concat());
        assert_eq!(withheld(1), format!("sha256:{salted}"));
    }

    #[test]
    fn a_long_content_is_cut_with_a_marker_and_never_inside_a_character() {
        let long = "ä".repeat(MAX_CONTENT_BYTES);
        let outward = Ceiling(Sensitivity::Secret).outward(&long, Sensitivity::Public, &event(1));
        assert_eq!(outward.form, Form::Cut);
        assert!(
            outward.text.ends_with("ä… (16384 bytes)"),
            "{}",
            &outward.text[8000..]
        );
        assert!(outward.text.len() < MAX_CONTENT_BYTES + 40);
    }

    #[test]
    fn json_with_hidden_characters_stays_the_same_json_and_becomes_inert() {
        let value = serde_json::json!({"a": "x\u{202e}y\u{200b}\u{9b}\u{e0001}ok ä 漢 \"q\" \\"});
        let text = value.to_string();
        let outward = Ceiling(Sensitivity::Secret).outward(&text, Sensitivity::Public, &event(1));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&outward.text).unwrap(),
            value
        );
        for hidden in ['\u{202e}', '\u{200b}', '\u{9b}', '\u{e0001}'] {
            assert!(!outward.text.contains(hidden));
        }
        assert!(outward.text.contains("ok ä 漢"));
    }
}
