//! What a scripted server sends that no well-behaved one does.

use serde_json::json;

/// Sent instead of an answer, or before it.
#[derive(Debug)]
pub(super) enum OutOfTurn {
    /// Lines as they are; `{id}` stands for the request's number.
    Lines(Vec<String>),
    /// One line of so many bytes.
    Huge(u32),
    /// So many notifications, then the answer.
    Flood(u32),
    /// Word that the tools changed, then the answer.
    Changed,
}

impl OutOfTurn {
    /// All that is sent, its last line end aside.
    pub(super) fn said(&self, id: &str, answer: Vec<u8>) -> Vec<u8> {
        let mut said = Vec::new();
        match self {
            Self::Lines(lines) => {
                let lines: Vec<String> = lines.iter().map(|one| one.replace("{id}", id)).collect();
                return lines.join("\n").into_bytes();
            }
            Self::Huge(bytes) => return vec![b'x'; *bytes as usize],
            Self::Flood(times) => {
                for at in 0..*times {
                    let params = json!({"level": "info", "data": at});
                    notify(&mut said, "notifications/message", &params);
                }
            }
            Self::Changed => notify(&mut said, "notifications/tools/list_changed", &json!({})),
        }
        said.extend(answer);
        said
    }
}

fn notify(said: &mut Vec<u8>, method: &str, params: &serde_json::Value) {
    let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    said.extend(message.to_string().into_bytes());
    said.push(b'\n');
}
