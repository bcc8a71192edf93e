//! What an approval needs, put together from the policies that ask for it.

use lodestar_core::ladder::{Rung, Severity, Verdict};
use lodestar_policy::{Requirement, Signal};

use crate::world::{gate, reading, requirement};

fn needed(source: &str, rung: Rung) -> Requirement {
    let judgement = reading(rung).judge(&gate(source));
    assert_eq!(judgement.verdict, Verdict::Hold);
    judgement.requirement.unwrap()
}

fn roles(requirement: &Requirement) -> Vec<&str> {
    requirement.roles.iter().map(String::as_str).collect()
}

#[test]
fn several_policies_that_ask_add_up() {
    let found = needed(
        r#"@approvers("release-manager, security") @quorum("2") @expires("2h")
        permit (principal, action in Action::"ask", resource);
        @approvers("legal") @expires("90s")
        permit (principal, action in Action::"ask", resource in Group::"files");
        @quorum("9") @expires("1s")
        permit (principal, action in Action::"ask", resource in Group::"elsewhere");"#,
        Rung::L3,
    );
    assert_eq!(roles(&found), ["legal", "release-manager", "security"]);
    assert_eq!((found.quorum, found.expires_seconds), (2, 90));
}

#[test]
fn whatever_nobody_named_is_the_default() {
    assert_eq!(needed("", Rung::L4), requirement(1, 600));
    let found = needed(
        r#"@quorum("3") permit (principal, action in Action::"ask", resource);"#,
        Rung::L0,
    );
    assert_eq!(roles(&found), ["owner"]);
    assert_eq!((found.quorum, found.expires_seconds), (3, 600));
}

#[test]
fn a_hold_by_the_ladder_or_an_arbiter_needs_what_asking_would_need() {
    let source = r#"permit (principal, action in Action::"run", resource);
        @approvers("ops") @expires("15m")
        permit (principal, action in Action::"ask", resource);"#;
    let found = needed(source, Rung::L4);
    assert_eq!((roles(&found), found.expires_seconds), (vec!["ops"], 900));
    let warning = Signal {
        arbiter: "sentinel".to_owned(),
        severity: Severity::Warning,
        reason: "odd".to_owned(),
    };
    let judgement = reading(Rung::L1).judge_hearing(&gate(source), &[warning]);
    assert_eq!(judgement.verdict, Verdict::Hold);
    assert_eq!(roles(&judgement.requirement.unwrap()), ["ops"]);
}
