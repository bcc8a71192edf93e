//! Laws of self-protection.

use std::path::Path;
use std::sync::LazyLock;

use lodestar_core::contract::ArgumentRole;
use lodestar_core::fingerprint::MAX_PATH_LEN;
use lodestar_kernel::protect::{Protected, Reach};
use serde_json::{Map, Value, json};

use crate::gate::contract;

/// Nothing is there: what is protected is protected before it is made.
const ROOT: &str = "/nonexistent/project";

static PROTECTED: LazyLock<Protected> = LazyLock::new(|| {
    let named = ["rules/policy.cedar", "/nonexistent/keys"].map(Into::into);
    Protected::new(Path::new(ROOT), named)
});

/// What a text reaches in this role.
pub fn reached(text: &str, role: ArgumentRole) -> Option<Reach> {
    let Value::Object(arguments) = json!({"it": text}) else {
        return None;
    };
    reached_by(&arguments, role)
}

fn reached_by(arguments: &Map<String, Value>, role: ArgumentRole) -> Option<Reach> {
    let roles = [("it".to_owned(), role)].into();
    PROTECTED.reached_by(
        arguments,
        &roles,
        &Value::Null,
        &contract(),
        Path::new(ROOT),
    )
}

/// Payload is never judged for what it says. A path into a protected place is found whatever stands
/// around it that leads nowhere else; a word of a command reaches at least what it reaches as a path.
pub fn protected_path(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert_eq!(reached(&text, ArgumentRole::Payload), None);
    let as_path = reached(&text, ArgumentRole::Path);
    if as_path.is_some() {
        assert!(reached(&text, ArgumentRole::Argv).is_some(), "{text:?}");
        let listed = json!({"it": ["src", [&*text]]});
        let listed = listed.as_object().expect("it is written as an object");
        assert!(reached_by(listed, ArgumentRole::Path).is_some(), "{text:?}");
    }
    let is_plain = !text.contains('\0') && text.len() <= MAX_PATH_LEN - 64;
    let is_below = is_plain && !text.split('/').any(|part| part == "..");
    if is_below {
        for place in [".lodestar", "./x/../.lodestar", "rules/policy.cedar"] {
            let below = format!("{place}/{text}");
            let found = reached(&below, ArgumentRole::Path);
            assert!(found.is_some(), "{below:?}");
        }
    }
}
