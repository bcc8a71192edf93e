//! The names in a session's folder. Whatever is named otherwise is nobody's business here.

use lodestar_core::id::RequestId;
use lodestar_core::statement::Nonce;

/// The lines about what ran without being held.
pub(super) const NOTICES: &str = "notices.ndjson";
const REQUEST: &str = ".request.json";
const ANSWER: &str = ".answer.json";

pub(super) fn request(id: RequestId) -> String {
    format!("{id}{REQUEST}")
}

pub(super) fn answer(id: RequestId, nonce: Nonce) -> String {
    format!("{id}.{nonce}{ANSWER}")
}

/// The request that a file announces.
pub(super) fn announced(name: &str) -> Option<RequestId> {
    name.strip_suffix(REQUEST)?.parse().ok()
}

/// The request that a file answers.
pub(super) fn answered(name: &str) -> Option<RequestId> {
    let (request, nonce) = name.strip_suffix(ANSWER)?.split_once('.')?;
    let is_nonce = nonce.len() == 32
        && nonce
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_nonce.then(|| request.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_no_others() {
        let id = RequestId::from_parts(1_767_323_045_000, [7; 10]);
        assert_eq!(announced(&request(id)), Some(id));
        let name = answer(id, Nonce::from_bytes([0xab; 16]));
        assert_eq!(answered(&name), Some(id));
        assert_eq!(announced(&name), None);
        for bad in [
            String::new(),
            "..".to_owned(),
            REQUEST.to_owned(),
            format!("../{}", request(id)),
            request(id).to_uppercase(),
            format!("{id}.request.json.new"),
            format!("{id}.answer.json"),
            format!("{id}.{}.answer.json", "A".repeat(32)),
            format!("{id}.{}.answer.json", "0".repeat(31)),
            format!("{id}.../..{}.answer.json", "0".repeat(26)),
            format!("\u{202e}{}", request(id)),
        ] {
            assert_eq!(announced(&bad).or(answered(&bad)), None, "{bad}");
        }
    }
}
