//! Laws of changes to clients' settings.

use std::path::Path;

use lodestar_core::canonical;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::settings::{Program, State, state, with_hooks, without_hooks};

/// What is put in is there, once; what is taken out is gone; and nothing beside the hooks is another than it was.
pub fn hook_settings(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let program = Program::at(Path::new("/usr/bin/lodestar")).expect("a program");
    for client in Client::ALL {
        let Ok(with) = with_hooks(client, Some(text), &program) else {
            continue;
        };
        assert_eq!(state(client, &with, &program), Ok(State::Installed));
        let twice = with_hooks(client, Some(&with), &program).expect("it was before");
        assert_eq!(with, twice);
        let without = without_hooks(client, &with).expect("it was just put in");
        assert_eq!(state(client, &without, &program), Ok(State::Absent));
        if !text.trim().is_empty() {
            assert_eq!(others(text), others(&with));
            assert_eq!(others(text), others(&without));
        }
    }
}

/// Everything but the hooks.
fn others(text: &str) -> serde_json::Value {
    let mut value = canonical::parse(text.as_bytes()).expect("it was read before");
    if let Some(object) = value.as_object_mut() {
        object.remove("hooks");
    }
    value
}

/// Whether some client's hooks could be put in.
pub fn settled(data: &[u8]) -> bool {
    let program = Program::at(Path::new("/usr/bin/lodestar")).expect("a program");
    str::from_utf8(data).is_ok_and(|text| {
        let settled = |client| with_hooks(client, Some(text), &program).is_ok();
        Client::ALL.into_iter().any(settled)
    })
}
