//! What a gateway said, in the schema.

use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use serde_json::{Value, json};

use super::super::{May, Must, list, object, text, time, words_of};

pub(super) fn execution() -> Value {
    let fact = object(vec![
        ("fact", Must, "Which.", words_of(ExecutionFact::ALL)),
        (
            "held",
            Must,
            "Whether it held, by the gateway's word.",
            json!({"type": "boolean"}),
        ),
    ]);
    object(vec![
        ("run", Must, "The run.", text()),
        ("gateway", Must, "Where the gateway is.", text()),
        ("account", Must, "The account whose run it is.", text()),
        ("device", Must, "The device that attested it.", text()),
        (
            "attestation",
            Must,
            "The attestation that was graded.",
            text(),
        ),
        (
            "evaluation",
            Must,
            "The gateway's own name of what it found.",
            text(),
        ),
        (
            "evaluated_at",
            Must,
            "When it found it, by its own time.",
            time(),
        ),
        ("level", Must, "The level.", words_of(ExecutionLevel::ALL)),
        (
            "facts",
            Must,
            "Every fact that the ladder asks for, in its order.",
            list(fact),
        ),
        (
            "stopped_by",
            May,
            "The first fact that did not hold.",
            words_of(ExecutionFact::ALL),
        ),
        (
            "reason",
            May,
            "Why one does not hold, in the gateway's words.",
            text(),
        ),
    ])
}
