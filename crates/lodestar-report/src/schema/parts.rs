//! The parts of a report, one by one.

mod acts;
mod beliefs;
mod execution;
mod signals;

use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};
use lodestar_core::execution::ExecutionLevel;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::verify::SessionState;
use serde_json::{Map, Value, json};

use self::acts::{action, answered, argument, forged, refused_call, request};
use self::beliefs::{belief, decision, ground, hostile, moved};
use self::execution::execution;
use self::signals::{alert, calibration, calibration_in_force, drift, server};
use super::{
    May, Member, Must, count, digest, events, list, object, part, seq, text, time, words_of,
};
use crate::model::{FORMAT, Standing, Word};

pub(super) fn all() -> Value {
    let mut parts = Map::new();
    let mut add = |name: &str, members: Vec<Member>| {
        parts.insert(name.to_owned(), object(members));
    };
    add("report", report());
    add("session", session());
    add("policy", policy());
    add("said", said());
    add("answer", answer());
    add("counts", counts());
    add("action", action());
    add("argument", argument());
    add("request", request());
    add("answered", answered());
    add("belief", belief());
    add("move", moved());
    add("decision", decision());
    add("ground", ground());
    add("hostile", hostile());
    add("integrity", integrity());
    Value::Object(parts)
}

fn report() -> Vec<Member> {
    let answers = object(vec![
        (
            "untrusted_became_trusted",
            Must,
            "Did untrusted input become trusted?",
            part("answer"),
        ),
        (
            "irreversible_without_approval",
            Must,
            "Did anything irreversible run without approval?",
            part("answer"),
        ),
        ("log_intact", Must, "Is the log intact?", part("answer")),
        (
            "execution_trust",
            Must,
            "Which execution trust level?",
            part("answer"),
        ),
    ]);
    let tally = object(vec![
        ("truth", Must, "Truth.", words_of(Truth::ALL)),
        ("retrieval", Must, "Retrieval.", words_of(Retrieval::ALL)),
        ("security", Must, "Security.", words_of(Security::ALL)),
        ("freshness", Must, "Freshness.", words_of(Freshness::ALL)),
        ("beliefs", Must, "How many.", count()),
    ]);
    let beliefs = object(vec![
        ("tally", Must, "How many stand where.", list(tally)),
        (
            "list",
            Must,
            "All of them, in the order in which they were adopted.",
            list(part("belief")),
        ),
    ]);
    vec![
        ("format", Must, "What this is.", json!({"const": FORMAT})),
        (
            "ceiling",
            Must,
            "Content that is more sensitive than this is not in here.",
            words_of(Sensitivity::ALL),
        ),
        ("session", Must, "Which session.", part("session")),
        ("answers", Must, "What an auditor asks first.", answers),
        ("counts", Must, "How much there was.", part("counts")),
        (
            "actions",
            Must,
            "Every action, in the order in which they were proposed.",
            list(part("action")),
        ),
        (
            "requests",
            Must,
            "What people were asked, and what they said.",
            list(part("request")),
        ),
        (
            "refused_calls",
            Must,
            "Calls that did not become actions.",
            list(refused_call()),
        ),
        (
            "forged",
            Must,
            "Statements that did not count, and results in somebody else's name; `declined` and `unfitting` are genuine.",
            list(forged()),
        ),
        ("beliefs", Must, "What is believed.", beliefs),
        (
            "decisions",
            Must,
            "Decisions that were declared, and those that rest on something.",
            list(part("decision")),
        ),
        (
            "hostile",
            Must,
            "Content to be wary of, which the log keeps as it came.",
            list(part("hostile")),
        ),
        ("alerts", Must, "What sentinels saw.", list(alert())),
        (
            "drift",
            Must,
            "Tools that are not what they were.",
            list(drift()),
        ),
        (
            "servers",
            Must,
            "How servers are contained, and which failed.",
            list(server()),
        ),
        (
            "calibrations",
            Must,
            "Calibrations that were recorded.",
            list(calibration()),
        ),
        (
            "execution",
            May,
            "What a gateway said of the run that the session was, by its word; there where it was graded.",
            execution(),
        ),
        ("integrity", Must, "How the log stands.", part("integrity")),
        (
            "limits",
            Must,
            "What this report does not say.",
            list(limit()),
        ),
    ]
}

fn session() -> Vec<Member> {
    let states = [SessionState::Live, SessionState::Open, SessionState::Closed];
    vec![
        ("project", Must, "The project.", text()),
        ("id", Must, "Its id.", text()),
        (
            "state",
            Must,
            "Whether it is being written, open or closed.",
            words_of(&states),
        ),
        (
            "purpose",
            Must,
            "What it was opened for, as it says.",
            text(),
        ),
        ("actor", Must, "Who acted.", text()),
        ("opened_at", Must, "When it was opened.", time()),
        ("last_at", Must, "When its last event was written.", time()),
        (
            "policy",
            May,
            "Its policy; none for a session that has no actions.",
            part("policy"),
        ),
        (
            "calibration",
            May,
            "The calibration that it was opened under; there where a sentinel looks at it.",
            calibration_in_force(),
        ),
        (
            "sensitivity",
            Must,
            "How sensitive its content is by default.",
            words_of(Sensitivity::ALL),
        ),
        (
            "tasks",
            Must,
            "What the operator stated as the task.",
            list(part("said")),
        ),
        (
            "halted",
            Must,
            "Who halted it, and why.",
            list(part("said")),
        ),
        ("closed", May, "How it was closed.", part("said")),
    ]
}

fn policy() -> Vec<Member> {
    vec![
        ("digest", Must, "By digest.", digest()),
        (
            "signature",
            Must,
            "Whether anybody signed it.",
            json!({"enum": ["signed", "unsigned", "preset"]}),
        ),
        ("key", May, "The key that signed it.", text()),
        (
            "approvers",
            Must,
            "How many approvers are registered.",
            count(),
        ),
        ("tools", Must, "How many tools there are.", count()),
        ("ungraded", Must, "Tools that nobody graded.", list(text())),
        ("seq", Must, "The event.", seq()),
    ]
}

fn said() -> Vec<Member> {
    vec![
        ("seq", Must, "The event.", seq()),
        ("text", Must, "In their words.", text()),
    ]
}

fn answer() -> Vec<Member> {
    let mut words = vec![Word::Yes, Word::No, Word::CannotTell, Word::None];
    words.extend(ExecutionLevel::ALL.iter().copied().map(Word::Level));
    let standings = [Standing::Good, Standing::Bad, Standing::Open];
    vec![
        ("question", Must, "What is asked.", text()),
        ("answer", Must, "In a word.", words_of(&words)),
        (
            "standing",
            Must,
            "Whether it is the answer that is hoped for.",
            words_of(&standings),
        ),
        ("because", Must, "Why.", text()),
        ("events", Must, "The events that prove it.", events()),
    ]
}

fn counts() -> Vec<Member> {
    vec![
        ("events", Must, "Events.", count()),
        ("proposed", Must, "Actions that were proposed.", count()),
        ("allowed", Must, "Of them, allowed.", count()),
        ("held", Must, "Held.", count()),
        ("denied", Must, "Denied.", count()),
        (
            "cleared",
            Must,
            "Cleared, so that their tool may have been called.",
            count(),
        ),
        ("completed", Must, "Completed.", count()),
        ("failed", Must, "Failed.", count()),
        ("unknown", Must, "Called, and nobody saw the end.", count()),
        ("rejected", Must, "Did not run.", count()),
        ("observations", Must, "What was read or returned.", count()),
        ("beliefs", Must, "Beliefs that were adopted.", count()),
        (
            "groundless_decisions",
            Must,
            "Decisions that nobody declared and that rest on nothing that is known.",
            count(),
        ),
    ]
}

fn integrity() -> Vec<Member> {
    let key = object(vec![
        ("signs", Must, "What it signs.", text()),
        ("key", Must, "By id.", text()),
    ]);
    let redaction = object(vec![
        ("seq", Must, "The event.", seq()),
        ("payloads", Must, "How many payloads.", count()),
        ("events", Must, "Which events.", events()),
        ("operator", Must, "The operator's key.", text()),
        ("reason", Must, "Why.", text()),
    ]);
    let recovered = object(vec![
        ("seq", Must, "The event that says so.", seq()),
        ("bytes", Must, "How many bytes.", count()),
    ]);
    vec![
        ("events", Must, "How many events it has.", count()),
        ("root", Must, "The root over them.", digest()),
        (
            "proven",
            Must,
            "How many a signed checkpoint covers.",
            count(),
        ),
        ("checkpoint", May, "The checkpoint, a signed note.", text()),
        (
            "keys",
            Must,
            "The keys by which it was verified.",
            list(key),
        ),
        (
            "ledger_records",
            Must,
            "How many records the ledger has.",
            count(),
        ),
        ("ledger_root", Must, "The root over them.", digest()),
        (
            "verdicts_again",
            Must,
            "How many verdicts were derived again.",
            count(),
        ),
        (
            "answers_again",
            Must,
            "How many answers were heard again.",
            count(),
        ),
        (
            "clearances_again",
            Must,
            "How many clearances were checked again.",
            count(),
        ),
        (
            "beliefs_again",
            Must,
            "How many belief events were followed again.",
            count(),
        ),
        (
            "redactions",
            Must,
            "What was taken out by signed redactions.",
            list(redaction),
        ),
        ("recovered", Must, "What crashes cut off.", list(recovered)),
        (
            "remarks",
            Must,
            "What else is worth knowing, in words.",
            list(text()),
        ),
    ]
}

fn limit() -> Value {
    object(vec![
        ("limit", Must, "In words.", text()),
        ("events", May, "The events that it is about.", events()),
    ])
}
