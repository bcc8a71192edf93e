//! Laws of what clients say through hooks.

use std::path::Path;

use lodestar_guard::hook::protocol::{answer, read, unanswered};
use lodestar_guard::hook::{Answer, Client, Event, Incoming, Use, governed};
use serde_json::Value;

/// What is read says the same to whoever it is handed on to. To proceed is never more than silence, and a refusal
/// is never silent; what can be stopped is stopped by it.
pub fn hook_input(data: &[u8]) {
    for client in Client::ALL {
        let Ok(Some(incoming)) = read(client, None, data) else {
            continue;
        };
        assert_eq!(incoming.client, client);
        assert!(!incoming.conversation.is_empty());
        let written = serde_json::to_vec(&incoming).expect("names, texts and JSON");
        let again: Incoming = serde_json::from_slice(&written).expect("as it was written");
        assert_eq!(again, incoming);
        let proceed = answer(client, &incoming, &Answer::Proceed);
        assert!(proceed.stdout.is_empty() && proceed.exit == 0);
        let reason = String::from_utf8_lossy(data).into_owned();
        let refused = answer(client, &incoming, &Answer::Refuse { reason });
        for refused in [refused, unanswered(&incoming, "")] {
            assert!(!refused.stderr.trim().is_empty() && refused.exit != 0);
            if matches!(incoming.event, Event::Before { .. } | Event::Prompt { .. }) {
                assert_eq!(refused.exit, 2);
                let said: serde_json::Value =
                    serde_json::from_str(&refused.stdout).expect("a decision in JSON");
                assert!(said.is_object());
            }
        }
        if let Event::Before { r#use } | Event::After { r#use, .. } = &incoming.event {
            judged(&incoming, r#use);
        }
    }
}

/// A use is one of the client's governed tools, the same each time; nothing of it is lost on the way to who judges it,
/// and what counts as a change to the project stays in it by its text.
fn judged(incoming: &Incoming, used: &Use) {
    let root = Path::new("/nonexistent/project");
    let once = governed(incoming.client, used, incoming.cwd.as_deref(), root);
    let again = governed(incoming.client, used, incoming.cwd.as_deref(), root);
    assert_eq!(once, again);
    let name = incoming.client.name();
    let sort = once.tool.strip_prefix(name).expect("a tool of the client");
    let kept = |member: &str| {
        let parts = ["rest", "contents"];
        let mut parts = parts.iter().filter_map(|part| once.arguments.get(*part));
        parts.any(|part| part.get(member).is_some())
    };
    let is_line = |value: &Value| {
        let own = ["command", "url"].iter();
        own.filter_map(|own| once.arguments.get(*own))
            .any(|own| own == value)
    };
    for (member, value) in &used.input {
        assert!(kept(member) || is_line(value), "{member} is lost");
    }
    let paths = once.arguments.get("paths").and_then(Value::as_array);
    for path in paths.into_iter().flatten().filter_map(Value::as_str) {
        let is_inside = Path::new(path).starts_with(root);
        assert!(is_inside || !matches!(sort, ".edit" | ".write"), "{path}");
    }
}

/// Whether some client says this.
pub fn heard(data: &[u8]) -> bool {
    let heard = |client| read(client, None, data).is_ok_and(|incoming| incoming.is_some());
    Client::ALL.into_iter().any(heard)
}
