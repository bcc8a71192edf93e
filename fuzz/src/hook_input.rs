//! Laws of what clients say through hooks.

use lodestar_guard::hook::protocol::{answer, read, unanswered};
use lodestar_guard::hook::{Answer, Client, Event, Incoming};

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
            // Whoever asks for the places of a use gets all of them, or hears that nobody knows.
            if let Some(places) = r#use.places() {
                assert!(places.iter().all(|place| !place.is_empty()));
            }
        }
    }
}

/// Whether some client says this.
pub fn heard(data: &[u8]) -> bool {
    let heard = |client| read(client, None, data).is_ok_and(|incoming| incoming.is_some());
    Client::ALL.into_iter().any(heard)
}
