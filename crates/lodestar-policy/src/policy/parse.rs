//! Policy text, taken apart into single policies with ids and places.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use cedar_policy::PolicySet;
use lodestar_core::name::PolicyId;
use miette::Diagnostic;

use super::depth::too_deep;
use crate::annotation::ID;
use crate::finding::{Finding, Gravity};

/// How many policies a text may have: checking compares each with the others.
const MAX_RULES: usize = 4096;

/// One policy of the text.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// Its `@id`, or `policy<N>` with its place in the text, from 0.
    pub(crate) id: PolicyId,
    /// The policy, under that id.
    pub(crate) policy: cedar_policy::Policy,
    /// Where it stands in the text: offset and length in bytes.
    pub(crate) span: (usize, usize),
}

impl Rule {
    /// The piece of the text, and where it starts.
    pub(crate) fn text<'a>(&self, source: &'a str) -> &'a str {
        let (start, len) = self.span;
        source.get(start..start + len).unwrap_or_default()
    }

    /// Where a piece of text stands in the policy; the policy's head if it does not.
    pub(crate) fn find(&self, source: &str, piece: &str) -> (usize, usize) {
        let (start, _) = self.span;
        match self.text(source).find(piece) {
            Some(at) => (start + at, piece.len()),
            None => self.span,
        }
    }
}

/// Reads policies, or finds all that keeps them from being read.
pub(crate) fn parse(source: &str) -> Result<Vec<Rule>, Vec<Finding>> {
    if let Some(at) = too_deep(source) {
        let message = "the policy goes too deep, or puts too many operators in a row";
        let finding = Finding::new(Gravity::Error, None, source, (at, 1), message);
        let help = "split it into several policies, or put the values into a set";
        return Err(vec![finding.with_help(help)]);
    }
    let set = PolicySet::from_str(source).map_err(|errors| {
        let errors = errors.iter();
        errors
            .map(|error| from_diagnostic(error, Gravity::Error, None, source, (0, 0)))
            .collect::<Vec<_>>()
    })?;
    let mut findings = Vec::new();
    for template in set.templates() {
        let slot = template.slots().next().map(ToString::to_string);
        let at = slot.and_then(|slot| Some((source.find(&slot)?, slot.len())));
        let message = "templates are not taken: nothing would fill the slot";
        findings.push(
            Finding::new(Gravity::Error, None, source, at.unwrap_or((0, 0)), message)
                .with_help("name the principal or the resource"),
        );
    }
    let mut policies: Vec<_> = set.policies().collect();
    policies.sort_by_key(|policy| position(policy));
    if policies.len() > MAX_RULES {
        let message = format!("{} policies; at most {MAX_RULES} are taken", policies.len());
        let finding = Finding::new(Gravity::Error, None, source, (0, 0), &message);
        return Err(vec![
            finding.with_help("put values into sets, and tools into groups"),
        ]);
    }
    let mut rules = Vec::with_capacity(policies.len());
    let mut seen: BTreeMap<PolicyId, usize> = BTreeMap::new();
    for (at, policy) in policies.into_iter().enumerate() {
        let span = policy
            .as_ref()
            .loc()
            .map_or((0, 0), |loc| (loc.start(), loc.end() - loc.start()));
        let name = policy.annotation(ID).map(str::to_owned);
        let id = match PolicyId::new(name.unwrap_or_else(|| format!("policy{at}"))) {
            Ok(id) => id,
            Err(error) => {
                let finding = Finding::new(Gravity::Error, None, source, span, &error.to_string());
                findings.push(finding.with_help("give it a name, such as @id(\"no-pushes\")"));
                continue;
            }
        };
        if let Some(first) = seen.insert(id.clone(), at) {
            let message = format!("the id `{}` is taken already", id.shown());
            let finding = Finding::new(Gravity::Error, Some(id), source, span, &message);
            let help =
                format!("the policy at place {first} of the text has it; rename one of them");
            findings.push(finding.with_help(help));
            continue;
        }
        let policy = policy.new_id(cedar_policy::PolicyId::new(id.as_str()));
        rules.push(Rule { id, policy, span });
    }
    if findings.is_empty() {
        Ok(rules)
    } else {
        Err(findings)
    }
}

/// Where in the text Cedar found a policy: it numbers them.
fn position(policy: &cedar_policy::Policy) -> usize {
    let id: &str = policy.id().as_ref();
    id.strip_prefix("policy")
        .and_then(|number| number.parse().ok())
        .unwrap_or(usize::MAX)
}

/// What Cedar says, with the place it says it about.
pub(crate) fn from_diagnostic(
    diagnostic: &dyn Diagnostic,
    gravity: Gravity,
    policy: Option<PolicyId>,
    source: &str,
    fallback: (usize, usize),
) -> Finding {
    let label = diagnostic.labels().and_then(|mut labels| labels.next());
    let span = label.map_or(fallback, |label| (label.offset(), label.len()));
    // The finding names the policy already.
    let prefix = policy
        .as_ref()
        .map(|id| format!("for policy `{}`, ", id.as_str()));
    let plain = |text: String| match prefix.as_deref().and_then(|p| text.strip_prefix(p)) {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    let message = plain(diagnostic.to_string());
    let help = diagnostic.help().map(|help| plain(help.to_string()));
    let finding = Finding::new(gravity, policy, source, span, &message);
    match help {
        Some(help) => finding.with_help(help),
        None => finding,
    }
}
