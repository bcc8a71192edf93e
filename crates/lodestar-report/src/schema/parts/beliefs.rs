//! Beliefs, decisions, and content to be wary of.

use lodestar_core::chain::transition::Axis;
use lodestar_core::chain::{
    BeliefAuthority, DecisionOrigin, EvidenceQuality, Freshness, Retrieval, Security, Truth,
};
use lodestar_core::sensitivity::Sensitivity;
use serde_json::json;

use crate::schema::{
    May, Member, Must, count, digest, events, list, object, part, seq, text, words_of,
};

pub(super) fn belief() -> Vec<Member> {
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

pub(super) fn moved() -> Vec<Member> {
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

pub(super) fn decision() -> Vec<Member> {
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

pub(super) fn ground() -> Vec<Member> {
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

pub(super) fn hostile() -> Vec<Member> {
    let whys = [
        "fed_calls",
        "hidden_characters",
        "set_apart",
        "forges",
        "drifted_definition",
    ];
    let because = object(vec![
        ("why", Must, "Why.", json!({"enum": whys})),
        (
            "events",
            May,
            "The calls that took values from it, or the moves that set it apart.",
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
        (
            "sha256",
            May,
            "SHA-256 of its text; none above the ceiling.",
            digest(),
        ),
        (
            "begins",
            May,
            "How it begins; none above the ceiling.",
            text(),
        ),
    ]
}
