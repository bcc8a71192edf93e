//! Actions, and what people said of them.

use lodestar_core::chain::{ActionState, OutcomeResult};
use lodestar_core::contract::{BlastRadius, Reversibility};
use lodestar_core::ladder::{RUNGS, Verdict};
use lodestar_core::sensitivity::Sensitivity;
use serde_json::Value;

use super::signals::states;
use crate::model::{AnswerKind, CanUndo, ForgedKind, From};
use crate::schema::{
    May, Member, Must, count, digest, events, list, object, part, seq, text, time, words_of,
};

pub(super) fn action() -> Vec<Member> {
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
            "contained",
            May,
            "How far the program was contained that it started.",
            states(),
        ),
        (
            "problem",
            May,
            "What went wrong, or why nobody knows.",
            text(),
        ),
    ]);
    let image = object(vec![
        ("seq", Must, "The event.", seq()),
        (
            "paths",
            May,
            "At how many paths; none where that was redacted.",
            count(),
        ),
        (
            "undo",
            Must,
            "Whether the act can be undone with it.",
            words_of(CanUndo::ALL),
        ),
        ("problem", May, "Why not.", text()),
    ]);
    let undoes = object(vec![
        ("action", Must, "The act.", text()),
        (
            "session",
            Must,
            "The session that it was an act of.",
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
        (
            "image",
            May,
            "What was kept of what it writes over, so that it can be undone.",
            image,
        ),
        ("undoes", May, "The act that it undoes.", undoes),
        ("ended", May, "How it ended.", ended),
        ("rejected", May, "Why it did not run.", rejected),
    ]
}

pub(super) fn argument() -> Vec<Member> {
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

pub(super) fn request() -> Vec<Member> {
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

pub(super) fn answered() -> Vec<Member> {
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

pub(super) fn refused_call() -> Value {
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("tool", May, "What was called.", text()),
        (
            "sensitivity",
            Must,
            "How sensitive what the event says is.",
            words_of(Sensitivity::ALL),
        ),
        ("kind", Must, "The kind, as the agent reads it.", text()),
        ("reason", Must, "In words.", text()),
    ])
}

pub(super) fn forged() -> Value {
    let kinds = [
        ForgedKind::Approval,
        ForgedKind::Confirmation,
        ForgedKind::Declined,
        ForgedKind::Unfitting,
        ForgedKind::LodestarsWord,
    ];
    object(vec![
        ("seq", Must, "The event that kept it.", seq()),
        ("what", Must, "What it was to be.", words_of(&kinds)),
        ("proposed", May, "The action that it was meant for.", seq()),
        (
            "sensitivity",
            Must,
            "How sensitive what the event says is.",
            words_of(Sensitivity::ALL),
        ),
        ("reason", Must, "The first check that failed.", text()),
    ])
}
