//! Laws of policy texts.

use lodestar_core::digest::sha256;
use lodestar_policy::{Gravity, Policy, SignatureState, check, render};

use crate::gate::{self, TOOLS};

/// Whether a text is a policy that fits the tools here.
pub fn fits(text: &str) -> bool {
    let policy = Policy::recorded(text, SignatureState::Unsigned);
    policy.is_ok_and(|policy| gate::before(policy).is_some())
}

/// A text is put into force exactly if checking it finds no error, and is then kept to the byte.
/// Whatever is found is at a place that the text has, and can be shown.
pub fn policy_text(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let findings = check(text, &TOOLS);
    let lines = text.lines().count().max(1) + 1;
    for finding in &findings {
        assert!((1..=lines).contains(&finding.line), "{finding:?}");
        assert!(finding.column >= 1, "{finding:?}");
    }
    let shown = render(&findings, text, "policy.cedar");
    assert!(is_inert(&shown), "{shown:?}");
    let is_wrong = findings.iter().any(|one| one.gravity == Gravity::Error);
    match Policy::recorded(text, SignatureState::Unsigned) {
        Ok(policy) => {
            assert_eq!(policy.source(), text);
            assert_eq!(policy.digest(), sha256(data));
            let gate = gate::before(policy);
            assert_eq!(gate.is_some(), !is_wrong, "{findings:?}");
        }
        Err(_) => assert!(is_wrong, "what cannot be read is an error"),
    }
}

fn is_inert(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !c.is_control())
}
