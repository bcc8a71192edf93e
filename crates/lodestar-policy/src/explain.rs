//! A judgement in a few plain sentences.

use lodestar_core::ladder::{Say, Verdict};
use lodestar_core::name::Excerpt;

use crate::judgement::{ErrorKind, Judgement, Tightened, Tightener};
use crate::text::inert;

/// Why an action may run, waits or does not run.
pub fn explain(judgement: &Judgement) -> String {
    let mut sentences = vec![verdict(judgement.verdict).to_owned(), policies(judgement)];
    for error in &judgement.errors {
        let what = match (&error.policy, error.kind) {
            (Some(policy), _) => format!("Policy `{}` could not be evaluated", policy.shown()),
            (None, ErrorKind::Argument) => "An argument is not as declared".to_owned(),
            (None, _) => "The question could not be put".to_owned(),
        };
        let least = consequence(error.kind.at_least());
        sentences.push(format!("{what}, which {least}: {}.", error.message));
    }
    for Tightened { by, from, to } in &judgement.tightened {
        let change = format!("made it `{to}`, where it would have been `{from}`.");
        sentences.push(match by {
            Tightener::EvaluationError => format!("What could not be evaluated {change}"),
            Tightener::Floor => format!("The ladder {change}"),
            Tightener::Arbiter(name) => format!("The arbiter `{}` {change}", Excerpt::of(name)),
        });
    }
    for signal in judgement.signals.iter().chain(&judgement.heard) {
        sentences.push(format!(
            "`{}` saw, as {}: {}.",
            Excerpt::of(&signal.arbiter),
            signal.severity,
            inert(&signal.reason)
        ));
    }
    for signal in &judgement.observed {
        sentences.push(format!(
            "`{}`, which only observes, saw, as {}: {}.",
            Excerpt::of(&signal.arbiter),
            signal.severity,
            inert(&signal.reason)
        ));
    }
    sentences.extend(requirement(judgement));
    sentences.push(format!("The policy in force is `{}`.", judgement.policy));
    sentences.join("\n")
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "The action may run.",
        Verdict::Hold => "The action waits for a human.",
        Verdict::Deny => "The action does not run.",
    }
}

fn consequence(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "changes nothing",
        Verdict::Hold => "holds it at least",
        Verdict::Deny => "denies it",
    }
}

// INVARIANT: what is said here stands on the cards of recorded requests, and is derived again by replay: other words would make
// every log from before differ from what follows from it.
fn policies(judgement: &Judgement) -> String {
    let said = |say: Say| match say {
        Say::Permit => "is permitted",
        Say::Forbid => "is forbidden",
        Say::Silent => "is not mentioned",
    };
    let ids: Vec<_> = judgement
        .policies
        .iter()
        .map(|id| format!("`{}`", id.shown()))
        .collect();
    let by = match ids.as_slice() {
        [] => "no policy decided".to_owned(),
        ids => format!("decided by {}", ids.join(", ")),
    };
    format!(
        "To run it {}, to ask for it {}: {by}.",
        said(judgement.answer.run),
        said(judgement.answer.ask)
    )
}

fn requirement(judgement: &Judgement) -> Option<String> {
    let needed = judgement.requirement.as_ref()?;
    let who = match needed.quorum {
        1 => "one approver".to_owned(),
        quorum => format!("{quorum} different approvers"),
    };
    let roles: Vec<_> = needed
        .roles
        .iter()
        .map(|role| format!("`{}`", Excerpt::of(role)))
        .collect();
    let roles = match (roles.as_slice(), needed.quorum) {
        ([], _) => String::new(),
        ([role], 1) => format!(" with the role {role}"),
        (roles, 1) => format!(" with the roles {}", roles.join(", ")),
        (roles, _) => format!(" who have between them {}", roles.join(", ")),
    };
    Some(format!(
        "It takes {who}{roles}, within {} seconds.",
        needed.expires_seconds
    ))
}
