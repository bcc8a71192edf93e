//! The tables of `lodestar-core`, as rows: what the database compares with is what the code decides by.

use lodestar_core::device;
use lodestar_core::execution::{Effect, ExecutionLevel, FactSet, evaluate};

fn quoted(word: &str) -> String {
    debug_assert!(!word.contains('\''), "words of core have no quotes");
    format!("'{word}'")
}

/// Statements that fill them, and make the row of the kill switch.
pub(in crate::store) fn rows() -> Vec<String> {
    let levels = device::levels().iter().map(|spec| {
        let (attests, permanent) = (i64::from(spec.attests), i64::from(spec.permanent));
        format!("({}, {attests}, {permanent})", quoted(spec.level.as_str()))
    });
    let moves = device::rows().map(|row| {
        // Nowhere is the empty word: a key has no null.
        let from = row.from.map_or("", |level| level.as_str());
        let words = [from, row.to.as_str(), row.event.as_str(), row.actor.as_str()];
        format!("({})", words.map(quoted).join(", "))
    });
    let executions = FactSet::all().map(|facts| {
        let made = evaluate(facts);
        let level = quoted(made.level().as_str());
        let stopped = made.stopped_by().map(|fact| quoted(fact.as_str()));
        let stopped = stopped.unwrap_or_else(|| "NULL".to_owned());
        format!("({}, {level}, {stopped})", facts.bits())
    });
    let effects = ExecutionLevel::ALL.iter().flat_map(|&level| {
        level.effects().map(move |effect: Effect| {
            format!("({}, {})", quoted(effect.as_str()), quoted(level.as_str()))
        })
    });
    vec![
        insert("device_levels", levels),
        insert("legal_transitions", moves),
        insert("execution_levels", executions),
        insert("effect_levels", effects),
        "INSERT INTO control (one, kill_switch, since, reason) VALUES (1, 0, NULL, '')".to_owned(),
    ]
}

/// The tables that are filled so, and that nobody writes to after.
pub(in crate::store) const FILLED: &[&str] = &[
    "device_levels",
    "legal_transitions",
    "execution_levels",
    "effect_levels",
];

fn insert(table: &str, rows: impl Iterator<Item = String>) -> String {
    let rows: Vec<_> = rows.collect();
    format!("INSERT INTO {table} VALUES {}", rows.join(", "))
}
