//! Policies that another one leaves nothing to say.

use cedar_policy::{ActionConstraint, Effect, PrincipalConstraint, ResourceConstraint};
use serde_json::Value;

use crate::finding::{Finding, Gravity};
use crate::policy::Rule;
use crate::schema::{Kind, Question};

/// Finds policies that an unconditional forbid covers, or that stand twice.
pub(super) fn shadowed(source: &str, rules: &[Rule], findings: &mut Vec<Finding>) {
    let contents: Vec<Option<Value>> = rules.iter().map(content).collect();
    for (at, rule) in rules.iter().enumerate() {
        let warn = |message: String| {
            let id = Some(rule.id.clone());
            Finding::new(Gravity::Warning, id, source, rule.span, &message)
        };
        let cover = rules.iter().enumerate().find(|(other, cover)| {
            *other != at
                && cover.policy.effect() == Effect::Forbid
                && !cover.policy.has_non_scope_constraint()
                && covers(cover, rule)
                // Of two that cover each other, the later one is the one too many.
                && !(is_bare_forbid(rule) && covers(rule, cover) && *other > at)
        });
        let twin =
            (0..at).find(|&other| contents[other].is_some() && contents[other] == contents[at]);
        if let Some(other) = twin {
            let message = format!("the policy says the same as `{}`", rules[other].id.shown());
            findings.push(warn(message).with_help("delete one of them"));
        } else if let Some((_, cover)) = cover {
            let message = format!(
                "the policy never matters: `{}` forbids all that it is about",
                cover.id.shown()
            );
            findings.push(warn(message).with_help("narrow the forbid, or delete this policy"));
        }
    }
}

fn is_bare_forbid(rule: &Rule) -> bool {
    rule.policy.effect() == Effect::Forbid && !rule.policy.has_non_scope_constraint()
}

/// What a policy says, without its name; none if Cedar cannot write it down.
fn content(rule: &Rule) -> Option<Value> {
    let mut json = rule.policy.to_json().ok()?;
    json.as_object_mut()?.remove("annotations");
    // The same words that ask for different approvals do not say the same.
    let asks = crate::annotation::ApprovalAnnotation::ALL
        .map(|annotation| rule.policy.annotation(annotation.as_str()));
    json.as_object_mut()?
        .insert("asks".to_owned(), serde_json::json!(asks));
    Some(json)
}

/// Whether every request in the one's scope is also in the other's, as far as the text shows.
fn covers(wide: &Rule, narrow: &Rule) -> bool {
    principals(
        &wide.policy.principal_constraint(),
        &narrow.policy.principal_constraint(),
    ) && actions(
        &wide.policy.action_constraint(),
        &narrow.policy.action_constraint(),
    ) && resources(
        &wide.policy.resource_constraint(),
        &narrow.policy.resource_constraint(),
    )
}

fn principals(wide: &PrincipalConstraint, narrow: &PrincipalConstraint) -> bool {
    match wide {
        PrincipalConstraint::Any => true,
        PrincipalConstraint::Is(kind) => kind == &Kind::Agent.type_name(),
        _ => wide == narrow,
    }
}

fn resources(wide: &ResourceConstraint, narrow: &ResourceConstraint) -> bool {
    match wide {
        ResourceConstraint::Any => true,
        ResourceConstraint::Is(kind) => kind == &Kind::Tool.type_name(),
        _ => wide == narrow,
    }
}

fn actions(wide: &ActionConstraint, narrow: &ActionConstraint) -> bool {
    let within = |action: &cedar_policy::EntityUid| match wide {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(only) => only == action,
        ActionConstraint::In(groups) => groups.iter().any(|group| {
            let (group_id, id): (&str, &str) = (group.id().as_ref(), action.id().as_ref());
            let is_group = Question::BOTH.iter().any(|q| q.as_str() == group_id);
            group == action
                || is_group
                    && id
                        .strip_prefix(group_id)
                        .is_some_and(|rest| rest.starts_with(':'))
        }),
    };
    match narrow {
        ActionConstraint::Any => matches!(wide, ActionConstraint::Any),
        ActionConstraint::Eq(action) => within(action),
        ActionConstraint::In(actions) => actions.iter().all(within),
    }
}
