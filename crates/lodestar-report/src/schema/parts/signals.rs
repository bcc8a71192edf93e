//! What watches a session: sentinels, pins of tools, servers, calibration.

use lodestar_core::calibration::BINS;
use lodestar_core::ladder::Severity;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::contain::State;
use lodestar_policy::Mode;
use serde_json::{Value, json};

use super::super::{May, Must, count, events, list, object, seq, text, time, words_of};

pub(super) fn alert() -> Value {
    let modes = [Mode::Observe, Mode::Arbitrate];
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("action", Must, "The action in which it saw it.", text()),
        ("proposed", May, "Its proposal.", seq()),
        (
            "sensitivity",
            Must,
            "How sensitive what it saw is.",
            words_of(Sensitivity::ALL),
        ),
        ("sentinel", Must, "Which sentinel.", text()),
        ("severity", Must, "How grave.", words_of(Severity::ALL)),
        (
            "mode",
            Must,
            "Whether it had a say in the verdict.",
            words_of(&modes),
        ),
        ("saw", Must, "What it saw, in its words.", text()),
    ])
}

pub(super) fn drift() -> Value {
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

pub(super) fn server() -> Value {
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("server", Must, "The server.", text()),
        (
            "note",
            Must,
            "That it started and how far it is contained, or that it failed.",
            text(),
        ),
        (
            "containment",
            May,
            "How it was contained when it started.",
            contained(),
        ),
    ])
}

fn contained() -> Value {
    object(vec![
        (
            "state",
            Must,
            "How far: never further than what is listed here bears out.",
            states(),
        ),
        (
            "profiles",
            Must,
            "The profiles whose union it was granted.",
            list(text()),
        ),
        (
            "layers",
            Must,
            "What of the system enforced it.",
            list(text()),
        ),
        ("network", Must, "Its ways out, in words.", text()),
        (
            "refused",
            Must,
            "What was tried inside, before its program began, and was refused.",
            list(text()),
        ),
        (
            "open",
            Must,
            "What was tried there and was not refused.",
            list(text()),
        ),
        ("gaps", Must, "What does not hold.", list(text())),
        (
            "notes",
            Must,
            "What holds and is less than one may think.",
            list(text()),
        ),
    ])
}

/// How far something is contained.
pub(super) fn states() -> Value {
    words_of(&[State::Absent, State::Partial, State::Proved])
}

pub(super) fn calibration() -> Value {
    object(vec![
        ("seq", Must, "The event.", seq()),
        ("at", Must, "When.", time()),
        (
            "computed",
            Must,
            "What `calibration.computed@1` says.",
            computed(),
        ),
    ])
}

fn computed() -> Value {
    let refused = object(vec![
        ("session", Must, "Which.", text()),
        ("reason", Must, "Why.", text()),
    ]);
    object(vec![
        (
            "classes",
            Must,
            "What was measured, in the order of the classes' names.",
            list(class()),
        ),
        ("sessions", Must, "From how many sessions.", count()),
        (
            "refused",
            May,
            "Sessions that did not count.",
            list(refused),
        ),
    ])
}

fn class() -> Value {
    let bin = object(vec![
        ("n", Must, "How many samples.", count()),
        (
            "confidence",
            May,
            "Their mean confidence; none without samples.",
            between(0, 1),
        ),
        (
            "accuracy",
            May,
            "The share that came true; none without samples.",
            between(0, 1),
        ),
    ]);
    let bins = json!({"type": "array", "items": bin, "minItems": BINS, "maxItems": BINS});
    object(vec![
        ("class", Must, "Which class of beliefs.", text()),
        ("n", Must, "How many were settled.", count()),
        ("confidence", Must, "Their mean confidence.", between(0, 1)),
        ("accuracy", Must, "The share that came true.", between(0, 1)),
        ("ece", Must, "Expected calibration error.", between(0, 1)),
        ("brier", Must, "Brier score.", between(0, 1)),
        (
            "gap",
            Must,
            "Mean confidence less the share that came true: above 0 is too sure.",
            between(-1, 1),
        ),
        (
            "flagged",
            Must,
            "Whether it is off.",
            json!({"type": "boolean"}),
        ),
        (
            "bins",
            Must,
            "Bins of equal width over confidence, from 0 to 1.",
            bins,
        ),
    ])
}

pub(super) fn calibration_in_force() -> Value {
    let computed = object(vec![
        ("session", Must, "The session.", text()),
        ("seq", Must, "The event of that session.", seq()),
    ]);
    object(vec![
        ("seq", Must, "The event that says so.", seq()),
        ("flagged", Must, "The classes that were off.", list(text())),
        (
            "computed",
            May,
            "Where that is recorded; none where nobody had measured.",
            computed,
        ),
        (
            "ignored",
            May,
            "Later measurements whose record did not hold.",
            list(text()),
        ),
    ])
}

fn between(least: i8, most: i8) -> Value {
    json!({"type": "number", "minimum": least, "maximum": most})
}
