//! What is wrong with a policy, before it judges anything.

mod names;
mod shadow;

use cedar_policy::{
    Effect, PolicySet, ValidationError, ValidationMode, ValidationWarning, Validator,
};
use lodestar_core::name::PolicyId;

use crate::annotation::{ApprovalAnnotation, Asked};
use crate::facts::ToolShape;
use crate::finding::{Finding, Gravity};
use crate::policy::{Rule, from_diagnostic, parse};
use crate::schema::{CedarSchema, Kind, Question};

/// Everything that is wrong with a policy's text for these tools, in the order of the text.
pub fn check(source: &str, tools: &[ToolShape]) -> Vec<Finding> {
    let rules = match parse(source) {
        Ok(rules) => rules,
        Err(findings) => return findings,
    };
    match CedarSchema::generate(tools) {
        Ok(schema) => check_rules(source, &rules, &schema, tools),
        Err(error) => {
            let message = error.to_string();
            vec![Finding::new(Gravity::Error, None, source, (0, 0), &message)]
        }
    }
}

/// The same for a policy that was read already.
pub(crate) fn check_rules(
    source: &str,
    rules: &[Rule],
    schema: &CedarSchema,
    tools: &[ToolShape],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let unknown = names::unknown_tools(source, rules, tools, &mut findings);
    // Without tools there is no action that a policy could apply to; all of them would be wrong.
    if !tools.is_empty() {
        validate(source, rules, schema, &unknown, &mut findings);
    }
    names::empty_wholes(source, rules, tools, &mut findings);
    annotations(source, rules, &mut findings);
    shadow::shadowed(source, rules, &mut findings);
    let key = |f: &Finding| (f.line, f.column, f.gravity, f.message.clone());
    findings.sort_by_cached_key(key);
    findings.dedup();
    findings
}

fn validate(
    source: &str,
    rules: &[Rule],
    schema: &CedarSchema,
    unknown: &[PolicyId],
    findings: &mut Vec<Finding>,
) {
    let policies = rules.iter().map(|rule| rule.policy.clone());
    let set = PolicySet::from_policies(policies).expect("the ids of a policy's rules differ");
    let validator = Validator::new(schema.parsed().clone());
    let result = validator.validate(&set, ValidationMode::Strict);
    let rule = |id: &cedar_policy::PolicyId| {
        let id: &str = id.as_ref();
        rules.iter().find(|rule| rule.id.as_str() == id)
    };
    let mut errors = Vec::new();
    for error in result.validation_errors() {
        let Some(rule) = rule(error.policy_id()) else {
            continue;
        };
        // An unknown tool is said once, with the nearest name, and not again in Cedar's words.
        if unknown.contains(&rule.id) && matches!(error, ValidationError::UnrecognizedActionId(_)) {
            continue;
        }
        let id = Some(rule.id.clone());
        errors.push(from_diagnostic(
            error,
            Gravity::Error,
            id,
            source,
            rule.span,
        ));
    }
    findings.extend(once_per_place(errors));
    let never: Vec<_> = result
        .validation_warnings()
        .filter(|warning| matches!(warning, ValidationWarning::InvalidActionApplication(_)))
        .map(ValidationWarning::policy_id)
        .collect();
    for warning in result.validation_warnings() {
        let Some(rule) = rule(warning.policy_id()) else {
            continue;
        };
        // What can never apply is also impossible: once is enough.
        let said = matches!(warning, ValidationWarning::ImpossiblePolicy(_))
            && never.contains(&warning.policy_id());
        if said || unknown.contains(&rule.id) {
            continue;
        }
        let id = Some(rule.id.clone());
        let finding = from_diagnostic(warning, Gravity::Warning, id, source, rule.span);
        findings.push(match warning {
            ValidationWarning::InvalidActionApplication(_) => Finding {
                // A policy that can never apply is a rule that somebody believes to hold.
                gravity: Gravity::Error,
                help: Some(
                    "actions apply to an `Agent` and a `Tool`; for all tools write `action in Action::\"run\"` or `action in Action::\"ask\"`"
                        .to_owned(),
                ),
                ..finding
            },
            _ => finding,
        });
    }
}

/// Cedar checks a policy for every action that it applies to, and says the same for each.
fn once_per_place(mut errors: Vec<Finding>) -> Vec<Finding> {
    let place = |finding: &Finding| (finding.line, finding.column, finding.width);
    errors.sort_by(|a, b| (place(a), &a.message).cmp(&(place(b), &b.message)));
    errors.dedup();
    let groups = errors.chunk_by(|a, b| place(a) == place(b) && a.policy == b.policy);
    let first = groups.map(|group| {
        let mut finding = group[0].clone();
        if group.len() > 1 {
            let more = format!(" (and {} more like it)", group.len() - 1);
            finding.message.push_str(&more);
        }
        finding
    });
    first.collect()
}

fn annotations(source: &str, rules: &[Rule], findings: &mut Vec<Finding>) {
    for rule in rules {
        for annotation in ApprovalAnnotation::ALL {
            let Some(value) = rule.policy.annotation(annotation.as_str()) else {
                continue;
            };
            let at = rule.find(source, &format!("@{}", annotation.as_str()));
            let id = Some(rule.id.clone());
            if let Err(error) = Asked::default().read(annotation, value) {
                let message = format!("@{}: {error}", annotation.as_str());
                let finding = Finding::new(Gravity::Error, id, source, at, &message);
                findings.push(finding.with_help(error.help()));
            } else if !is_about_asking(rule) {
                let message = format!(
                    "@{} says nothing here: the policy never permits to ask",
                    annotation.as_str()
                );
                let finding = Finding::new(Gravity::Warning, id, source, at, &message);
                let help = "put it on a `permit` with `action in Action::\"ask\"`";
                findings.push(finding.with_help(help));
            }
        }
    }
}

/// Whether a policy can permit to ask.
fn is_about_asking(rule: &Rule) -> bool {
    let ask = Question::Ask.as_str();
    let of_ask = |uid: &cedar_policy::EntityUid| {
        let id: &str = uid.id().as_ref();
        uid.type_name() == &Kind::Action.type_name()
            && (id == ask || id.starts_with(&format!("{ask}:")))
    };
    rule.policy.effect() == Effect::Permit
        && match rule.policy.action_constraint() {
            cedar_policy::ActionConstraint::Any => true,
            cedar_policy::ActionConstraint::In(actions) => actions.iter().any(of_ask),
            cedar_policy::ActionConstraint::Eq(action) => of_ask(&action),
        }
}
