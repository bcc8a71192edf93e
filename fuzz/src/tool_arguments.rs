//! Laws of a call's arguments.

use lodestar_core::canonical;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::id::ActionId;
use lodestar_core::ladder::Verdict;
use lodestar_core::name::ActorId;
use lodestar_policy::{Agent, Facts, Judgement, Trail};
use serde_json::{Map, Value};

use crate::gate::{GATE, TOOL, contract, tool_name};

/// What the gate says to a call with these arguments; nothing if they are none.
pub fn judged(data: &[u8]) -> Option<Judgement> {
    let Ok(Value::Object(arguments)) = canonical::parse(data) else {
        return None;
    };
    Some(judge(&arguments))
}

fn judge(arguments: &Map<String, Value>) -> Judgement {
    let agent = Agent {
        actor: ActorId::new("agent").expect("a valid name"),
        device_trust: "none".to_owned(),
        execution: "library".to_owned(),
    };
    let fingerprint: Fingerprint = "00".repeat(32).parse().expect("a digest");
    let facts = Facts {
        action: ActionId::from_parts(1, [0; 10]),
        fingerprint,
        agent: &agent,
        tool: &tool_name(TOOL),
        contract: &contract(),
        arguments,
        paths: &[],
        provenance: &[],
        dependencies: &[],
        trail: Trail::default(),
    };
    GATE.judge(&facts, &[])
}

/// A policy that lets everything run lets run exactly what is of its declared type and not forbidden;
/// the same arguments get the same judgement; and adding one that nobody declared opens nothing.
pub fn tool_arguments(data: &[u8]) {
    let Ok(Value::Object(mut arguments)) = canonical::parse(data) else {
        return;
    };
    let judgement = judge(&arguments);
    let is_forbidden = |path: &Value| path.as_str().is_some_and(|path| path.ends_with(".pem"));
    let may_run = is_as_declared(&arguments) && !arguments.get("path").is_some_and(is_forbidden);
    assert_eq!(
        judgement.verdict == Verdict::Allow,
        may_run,
        "{judgement:?}"
    );
    assert_eq!(judge(&arguments), judgement);
    arguments.insert("undeclared".to_owned(), Value::Null);
    assert_ne!(judge(&arguments).verdict, Verdict::Allow);
}

fn is_as_declared(arguments: &Map<String, Value>) -> bool {
    arguments.contains_key("path")
        && arguments
            .iter()
            .all(|(name, value)| match (name.as_str(), value) {
                ("path" | "content", value) => value.is_string(),
                ("count", value) => is_integer(value),
                ("force", value) => value.is_boolean(),
                ("tags", Value::Array(tags)) => tags.iter().all(Value::is_string),
                ("meta", Value::Object(meta)) => {
                    meta.contains_key("thread")
                        && meta.iter().all(|(name, value)| match name.as_str() {
                            "thread" => is_integer(value),
                            "note" => value.is_string(),
                            _ => false,
                        })
                }
                _ => false,
            })
}

fn is_integer(value: &Value) -> bool {
    value.as_i64().is_some()
}
