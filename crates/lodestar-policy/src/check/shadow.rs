//! Policies that another one leaves nothing to say.

use std::collections::BTreeMap;

use cedar_policy::{ActionConstraint, Effect, EntityUid, PrincipalConstraint, ResourceConstraint};

use crate::annotation::ApprovalAnnotation;
use crate::finding::{Finding, Gravity};
use crate::policy::Rule;
use crate::schema::{Kind, Question};

/// What a policy is about, and whether it forbids all of it.
struct Reach {
    principal: PrincipalConstraint,
    action: ActionConstraint,
    resource: ResourceConstraint,
    bare_forbid: bool,
}

impl Reach {
    fn of(rule: &Rule) -> Self {
        let policy = &rule.policy;
        Self {
            principal: policy.principal_constraint(),
            action: policy.action_constraint(),
            resource: policy.resource_constraint(),
            bare_forbid: policy.effect() == Effect::Forbid && !policy.has_non_scope_constraint(),
        }
    }

    /// Whether every request that the other is about is also this one's, as far as the text shows.
    fn covers(&self, narrow: &Self) -> bool {
        let principals = match &self.principal {
            PrincipalConstraint::Any => true,
            PrincipalConstraint::Is(kind) => kind == &Kind::Agent.type_name(),
            wide => wide == &narrow.principal,
        };
        let resources = match &self.resource {
            ResourceConstraint::Any => true,
            ResourceConstraint::Is(kind) => kind == &Kind::Tool.type_name(),
            wide => wide == &narrow.resource,
        };
        principals
            && resources
            && match &narrow.action {
                ActionConstraint::Any => matches!(self.action, ActionConstraint::Any),
                ActionConstraint::Eq(action) => self.acts(action),
                ActionConstraint::In(actions) => actions.iter().all(|action| self.acts(action)),
            }
    }

    fn acts(&self, action: &EntityUid) -> bool {
        match &self.action {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(only) => only == action,
            ActionConstraint::In(groups) => groups.iter().any(|group| {
                let (group_id, id): (&str, &str) = (group.id().as_ref(), action.id().as_ref());
                let is_group = Question::BOTH.iter().any(|q| q.as_str() == group_id);
                let is_member = |rest: &str| rest.starts_with(':');
                group == action || is_group && id.strip_prefix(group_id).is_some_and(is_member)
            }),
        }
    }
}

/// Finds policies that an unconditional forbid covers, or that stand twice.
pub(super) fn shadowed(source: &str, rules: &[Rule], findings: &mut Vec<Finding>) {
    let reaches: Vec<Reach> = rules.iter().map(Reach::of).collect();
    let bare: Vec<usize> = (0..rules.len())
        .filter(|&at| reaches[at].bare_forbid)
        .collect();
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for (at, rule) in rules.iter().enumerate() {
        let warn = |message: String| {
            let id = Some(rule.id.clone());
            Finding::new(Gravity::Warning, id, source, rule.span, &message)
        };
        let twin = content(rule).and_then(|content| {
            let first = *said.entry(content).or_insert(at);
            (first != at).then_some(first)
        });
        if let Some(first) = twin {
            let message = format!("the policy says the same as `{}`", rules[first].id.shown());
            findings.push(warn(message).with_help("delete one of them"));
            continue;
        }
        let reach = &reaches[at];
        let cover = bare.iter().find(|&&other| {
            // Of two that cover each other, the later one is the one too many.
            let mutual = || reach.bare_forbid && reach.covers(&reaches[other]);
            other != at && reaches[other].covers(reach) && !(other > at && mutual())
        });
        if let Some(&cover) = cover {
            let message = format!(
                "the policy never matters: `{}` forbids all that it is about",
                rules[cover].id.shown()
            );
            findings.push(warn(message).with_help("narrow the forbid, or delete this policy"));
        }
    }
}

/// What a policy says, without its name; none if Cedar cannot write it down.
fn content(rule: &Rule) -> Option<String> {
    let mut json = rule.policy.to_json().ok()?;
    json.as_object_mut()?.remove("annotations");
    // The same words that ask for different approvals do not say the same.
    let asks = ApprovalAnnotation::ALL.map(|a| rule.policy.annotation(a.as_str()));
    Some(format!("{json}{asks:?}"))
}
