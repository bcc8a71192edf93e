//! What the built-in arbiters see.

use lodestar_core::chain::{Confidence, Freshness, Retrieval, Security, Truth};
use lodestar_core::id::BeliefId;
use lodestar_core::ladder::{Rung, Severity, Verdict};
use lodestar_core::provenance::{ArgumentProvenance, GivenSource, Label, Place, ValueKind};
use lodestar_policy::{ArbiterError, ArbiterRules, Dependency, Gate, Tightener};
use serde_json::json;

use crate::world::{Call, reading, try_gate};

fn gate_with(named: &[(&str, Option<Severity>)]) -> Gate {
    let rules = ArbiterRules::new(named.iter().copied()).unwrap();
    try_gate("permit (principal, action, resource);", rules).unwrap()
}

fn sound() -> Dependency {
    Dependency {
        belief: BeliefId::from_parts(1, [1; 10]),
        truth: Truth::Supported,
        retrieval: Retrieval::Normal,
        security: Security::Clean,
        freshness: Freshness::Fresh,
        confidence: Confidence::new(0.5).unwrap(),
        rests_on_reading: false,
        class: None,
    }
}

fn resting_on(rung: Rung, dependency: Dependency) -> Call {
    let mut call = reading(rung);
    call.dependencies.push(dependency);
    call
}

fn origin(pointer: &str, kind: ValueKind, label: Label) -> ArgumentProvenance {
    ArgumentProvenance {
        pointer: pointer.to_owned(),
        place: Place::Value,
        kind,
        label,
        resembles: None,
        inside: vec![],
        inside_omitted: 0,
    }
}

fn given() -> Label {
    Label::Given {
        source: GivenSource::Task,
    }
}

#[test]
fn a_weak_belief_holds_what_stands_on_l3() {
    let gate = gate_with(&[("low-confidence-action", None)]);
    let weak = Dependency {
        confidence: Confidence::new(0.49).unwrap(),
        ..sound()
    };
    let unverified = Dependency {
        truth: Truth::Unverified,
        confidence: Confidence::new(1.0).unwrap(),
        ..sound()
    };
    for dependency in [weak, unverified] {
        let held = resting_on(Rung::L3, dependency.clone()).judge(&gate);
        assert_eq!(held.verdict, Verdict::Hold);
        assert_eq!(
            held.tightened[0].by,
            Tightener::Arbiter("low-confidence-action".to_owned())
        );
        let low = resting_on(Rung::L2, dependency).judge(&gate);
        assert_eq!(low.verdict, Verdict::Allow);
        assert!(low.signals.is_empty());
    }
    let fine = resting_on(Rung::L3, sound()).judge(&gate);
    assert_eq!(fine.verdict, Verdict::Allow);
}

#[test]
fn a_belief_that_was_only_read_holds_on_every_rung() {
    let gate = gate_with(&[("suspicious-memory-origin", None)]);
    let read = Dependency {
        rests_on_reading: true,
        ..sound()
    };
    assert_eq!(
        resting_on(Rung::L0, read).judge(&gate).verdict,
        Verdict::Hold
    );
    assert_eq!(
        resting_on(Rung::L0, sound()).judge(&gate).verdict,
        Verdict::Allow
    );
}

#[test]
fn a_destination_that_nobody_gave_holds() {
    let gate = gate_with(&[("untrusted-argument", None)]);
    let verdict = |tool: &str, level, arguments, origins: Vec<ArgumentProvenance>| {
        let mut call = Call::new(tool, level, arguments);
        call.provenance = origins;
        call.judge(&gate).verdict
    };
    let to = |label| vec![origin("/to", ValueKind::Text, label)];
    let mail = || json!({"to": "ann"});
    // By its role.
    assert_eq!(
        verdict("mail.send", Rung::L3, mail(), to(Label::Unknown)),
        Verdict::Hold
    );
    assert_eq!(
        verdict("mail.send", Rung::L3, mail(), vec![]),
        Verdict::Hold
    );
    assert_eq!(
        verdict("mail.send", Rung::L3, mail(), to(given())),
        Verdict::Allow
    );
    assert_eq!(
        verdict("mail.send", Rung::L2, mail(), to(Label::Unknown)),
        Verdict::Allow
    );
    // By its form, where no role is declared.
    let content = |kind| vec![origin("/content", kind, Label::Unknown)];
    let write = || json!({"path": "a", "content": "x"});
    assert_eq!(
        verdict("fs.write", Rung::L3, write(), content(ValueKind::Email)),
        Verdict::Hold
    );
    for harmless in [ValueKind::Text, ValueKind::Path, ValueKind::Number] {
        let found = verdict("fs.write", Rung::L3, write(), content(harmless));
        assert_eq!(found, Verdict::Allow);
    }
    // A declared role that is no address counts more than the form.
    let path = vec![origin("/path", ValueKind::Url, Label::Unknown)];
    let found = verdict("fs.read", Rung::L3, json!({"path": "x://a"}), path);
    assert_eq!(found, Verdict::Allow);
}

#[test]
fn arbiters_are_off_unless_named() {
    let gate = gate_with(&[]);
    let read = Dependency {
        rests_on_reading: true,
        truth: Truth::Unverified,
        ..sound()
    };
    let judgement = resting_on(Rung::L3, read).judge(&gate);
    assert_eq!(judgement.verdict, Verdict::Allow);
    assert!(judgement.signals.is_empty());
}

#[test]
fn a_severity_can_be_made_stricter_and_not_milder() {
    let read = Dependency {
        rests_on_reading: true,
        ..sound()
    };
    let name = "suspicious-memory-origin";
    let gate = gate_with(&[(name, Some(Severity::Critical))]);
    assert_eq!(
        resting_on(Rung::L0, read).judge(&gate).verdict,
        Verdict::Deny
    );
    let milder = ArbiterRules::new([(name, Some(Severity::Info))]).unwrap_err();
    assert!(matches!(milder, ArbiterError::Milder { .. }));
    assert_eq!(
        milder.to_string(),
        "arbiter `suspicious-memory-origin` is set to `info`, but is `warning` at least; a severity can only be made stricter"
    );
    let unknown = ArbiterRules::new([("untrusted-arguments", None)]).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown arbiter `untrusted-arguments`; expected one of `anomalous-tool-sequence`, `calibration-flag`, `low-confidence-action`, `suspicious-memory-origin`, `untrusted-argument`"
    );
}
