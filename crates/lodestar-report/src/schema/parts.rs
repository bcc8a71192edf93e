//! The parts of a report, one by one.

use lodestar_core::chain::transition::Axis;
use lodestar_core::chain::{
    ActionState, BeliefAuthority, DecisionOrigin, EvidenceQuality, Freshness, OutcomeResult,
    Retrieval, Security, Truth,
};
use lodestar_core::contract::{BlastRadius, Reversibility};
use lodestar_core::ladder::{RUNGS, Verdict};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::verify::SessionState;
use serde_json::{Map, Value, json};

use super::{
    May, Member, Must, count, digest, events, list, object, part, seq, text, time, words_of,
};
use crate::model::{AnswerKind, FORMAT, ForgedKind, From, Standing, Word};

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
            "Statements and results in somebody else's name.",
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
    let words = [Word::Yes, Word::No, Word::CannotTell, Word::None];
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

fn action() -> Vec<Member> {
    let rungs: Vec<_> = RUNGS.iter().map(|spec| spec.rung).collect();
    let judged = object(vec![
        ("seq", Must, "The event.", seq()),
        ("verdict", Must, "The verdict.", words_of(Verdict::ALL)),
        ("policies", Must, "The policies that decided.", list(text())),
        ("reason", Must, "Why, in words.", text()),
    ]);
    let cleared = object(vec![
        ("seq", Must, "The event.", seq()),
        (
            "request",
            May,
            "The request whose grants were spent; none for what needed none.",
            text(),
        ),
        ("grants", May, "The grants, by digest.", list(digest())),
    ]);
    let ended = object(vec![
        ("seq", Must, "The event.", seq()),
        (
            "result",
            Must,
            "What came of it.",
            words_of(OutcomeResult::ALL),
        ),
        ("micros", May, "How long it took, in microseconds.", count()),
        ("returned", May, "The event with what it returned.", seq()),
        (
            "problem",
            May,
            "What went wrong, or why nobody knows.",
            text(),
        ),
    ]);
    let rejected = object(vec![
        ("seq", Must, "The event.", seq()),
        ("kind", Must, "The kind, as the agent reads it.", text()),
        ("reason", Must, "In words.", text()),
    ]);
    vec![
        ("id", Must, "Its id.", text()),
        ("seq", Must, "The event that proposed it.", seq()),
        ("at", Must, "When.", time()),
        ("tool", Must, "The tool.", text()),
        ("server", Must, "The server.", text()),
        ("level", Must, "Its rung.", words_of(&rungs)),
        (
            "blast_radius",
            Must,
            "How far it reaches.",
            words_of(BlastRadius::ALL),
        ),
        (
            "reversibility",
            Must,
            "Whether it can be taken back.",
            words_of(Reversibility::ALL),
        ),
        (
            "sensitivity",
            Must,
            "How sensitive what it handles is.",
            words_of(Sensitivity::ALL),
        ),
        (
            "arguments",
            Must,
            "Its arguments, value by value.",
            list(part("argument")),
        ),
        (
            "phase",
            Must,
            "How far it came.",
            words_of(ActionState::ALL),
        ),
        ("judged", May, "The verdict.", judged),
        ("request", May, "What people were asked.", text()),
        (
            "cleared",
            May,
            "The clearance, and whose word was spent on it.",
            cleared,
        ),
        ("ended", May, "How it ended.", ended),
        ("rejected", May, "Why it did not run.", rejected),
    ]
}

fn argument() -> Vec<Member> {
    let from = [
        From::Given,
        From::Measured,
        From::Read,
        From::Unknown,
        From::Untraced,
    ];
    vec![
        (
            "pointer",
            Must,
            "Where it stands, as a JSON pointer.",
            text(),
        ),
        (
            "value",
            May,
            "Its beginning; none above the ceiling.",
            text(),
        ),
        ("kind", May, "What kind of value it is.", text()),
        ("from", Must, "Where it came from.", words_of(&from)),
        (
            "read_in",
            May,
            "The events with the content that it was read in.",
            events(),
        ),
    ]
}

fn request() -> Vec<Member> {
    vec![
        ("id", Must, "The request.", text()),
        ("seq", Must, "The event that asked.", seq()),
        (
            "proposed",
            May,
            "The proposal that it was asked for.",
            seq(),
        ),
        ("quorum", Must, "How many people had to agree.", count()),
        ("expires_at", Must, "Until when.", time()),
        (
            "answers",
            Must,
            "What they said, in the order in which it was heard.",
            list(part("answered")),
        ),
        ("closed", May, "How it ended.", part("said")),
    ]
}

fn answered() -> Vec<Member> {
    let kinds = [
        AnswerKind::Granted,
        AnswerKind::Confirmed,
        AnswerKind::Denied,
        AnswerKind::Refused,
    ];
    vec![
        ("seq", Must, "The event.", seq()),
        ("kind", Must, "What it came to.", words_of(&kinds)),
        (
            "approver",
            May,
            "Who; as the statement says where it does not count.",
            text(),
        ),
        ("key", May, "The key that signed.", text()),
        ("statement", May, "The statement, by digest.", digest()),
        (
            "reason",
            Must,
            "Why, in their words, or why it does not count.",
            text(),
        ),
    ]
}

fn refused_call() -> Value {
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("tool", May, "What was called.", text()),
        ("kind", Must, "The kind, as the agent reads it.", text()),
        ("reason", Must, "In words.", text()),
    ])
}

fn forged() -> Value {
    let kinds = [
        ForgedKind::Approval,
        ForgedKind::Confirmation,
        ForgedKind::LodestarsWord,
    ];
    object(vec![
        ("seq", Must, "The event that kept it.", seq()),
        ("what", Must, "What it was to be.", words_of(&kinds)),
        ("proposed", May, "The action that it was meant for.", seq()),
        ("reason", Must, "The first check that failed.", text()),
    ])
}

fn belief() -> Vec<Member> {
    vec![
        ("id", Must, "Its id.", text()),
        ("seq", Must, "The event that adopted it.", seq()),
        (
            "statement",
            May,
            "What is believed; none above the ceiling.",
            text(),
        ),
        (
            "confidence",
            Must,
            "The strength that was assigned.",
            json!({"type": "number", "minimum": 0, "maximum": 1}),
        ),
        (
            "authority",
            Must,
            "On whose word.",
            words_of(BeliefAuthority::ALL),
        ),
        (
            "quality",
            Must,
            "The weakest of what it goes back to.",
            words_of(EvidenceQuality::ALL),
        ),
        (
            "sensitivity",
            Must,
            "How sensitive it is.",
            words_of(Sensitivity::ALL),
        ),
        ("truth", Must, "Truth, now.", words_of(Truth::ALL)),
        (
            "retrieval",
            Must,
            "Retrieval, now.",
            words_of(Retrieval::ALL),
        ),
        ("security", Must, "Security, now.", words_of(Security::ALL)),
        (
            "freshness",
            Must,
            "Freshness, now.",
            words_of(Freshness::ALL),
        ),
        (
            "sources",
            May,
            "The events with the observations that it came of.",
            events(),
        ),
        ("moves", May, "What moved it.", list(part("move"))),
    ]
}

fn moved() -> Vec<Member> {
    vec![
        ("seq", Must, "The event.", seq()),
        (
            "session",
            May,
            "The session that it is of; none for this one.",
            text(),
        ),
        ("axis", Must, "Along which axis.", words_of(Axis::ALL)),
        ("from", Must, "From where.", text()),
        ("to", Must, "To where.", text()),
        ("authority", Must, "Who.", text()),
        ("cause", Must, "What caused it, in words.", text()),
    ]
}

fn decision() -> Vec<Member> {
    vec![
        ("id", Must, "Its id.", text()),
        ("seq", Must, "The event that made it.", seq()),
        (
            "question",
            May,
            "What was asked; none above the ceiling.",
            text(),
        ),
        ("chosen", May, "What was chosen.", text()),
        (
            "origin",
            Must,
            "Whether somebody declared it.",
            words_of(DecisionOrigin::ALL),
        ),
        ("made_by", Must, "Who made it.", text()),
        ("rests_on", Must, "What it stood on.", list(part("ground"))),
        (
            "actions",
            Must,
            "The proposals that carry it out.",
            events(),
        ),
    ]
}

fn ground() -> Vec<Member> {
    vec![
        ("belief", Must, "The belief.", text()),
        (
            "adopted",
            May,
            "The event that adopted it; none for one of another session.",
            seq(),
        ),
        ("truth", May, "Truth, then.", words_of(Truth::ALL)),
        ("security", May, "Security, then.", words_of(Security::ALL)),
        (
            "rests_on_reading",
            May,
            "Whether it goes back to something that was read.",
            json!({"type": "boolean"}),
        ),
    ]
}

fn hostile() -> Vec<Member> {
    let whys = [
        "fed_calls",
        "hidden_characters",
        "set_apart",
        "alerted",
        "forges",
        "drifted_definition",
    ];
    let because = object(vec![
        ("why", Must, "Why.", json!({"enum": whys})),
        (
            "events",
            May,
            "The calls that took values from it, the moves that set it apart, or the alerts.",
            events(),
        ),
        (
            "count",
            May,
            "How many characters act instead of being seen.",
            count(),
        ),
    ]);
    vec![
        ("seq", Must, "The event that keeps it.", seq()),
        ("because", Must, "Why it is here.", list(because)),
        ("source", Must, "Where it came from.", text()),
        ("bytes", Must, "How long it is.", count()),
        ("sha256", May, "SHA-256 of its text.", digest()),
        (
            "begins",
            May,
            "How it begins; none above the ceiling.",
            text(),
        ),
    ]
}

fn alert() -> Value {
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("sentinel", Must, "Which sentinel.", text()),
        ("severity", Must, "How grave.", text()),
        ("saw", Must, "What it saw, in its words.", text()),
    ])
}

fn drift() -> Value {
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("server", Must, "The server.", text()),
        ("tool", Must, "The tool.", text()),
        ("why", Must, "What differs.", text()),
        (
            "refused",
            Must,
            "Calls of it that did not run for this reason.",
            events(),
        ),
    ])
}

fn server() -> Value {
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("server", Must, "The server.", text()),
        (
            "note",
            Must,
            "How it is contained, or that it failed.",
            text(),
        ),
    ])
}

fn calibration() -> Value {
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("at", Must, "When.", time()),
        (
            "computed",
            Must,
            "The report that `calibration.computed@1` carries.",
            json!({}),
        ),
    ])
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
