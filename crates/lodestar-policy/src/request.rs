//! One proposed action, put as a question to Cedar.
//!
//! A value that is not of its declared type is neither dropped nor passed as something else: the
//! marker stands in its place, its name is in `mistyped_args`, and the judgement has an error that
//! holds the action at least.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{Context, RestrictedExpression};
use lodestar_core::contract::ArgumentRole;
use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;
use lodestar_core::provenance::{ArgumentProvenance, Label, Place, ValueKind};
use serde_json::{Map, Value};

use crate::facts::{Dependency, Facts, ToolShape};
use crate::judgement::{ErrorKind, EvaluationError};
use crate::reads::Reads;
use crate::schema::{Arguments, RecordType};
use crate::value::{conforms, express, marker, record, text_set};

/// What is wrong with the arguments of a call, and what policies are told of it.
#[derive(Debug, Default)]
pub(crate) struct Reviewed {
    /// Arguments that are not of their declared type.
    pub(crate) mistyped: BTreeSet<String>,
    /// Arguments and members that nobody declared; a member is written `argument/member`.
    pub(crate) undeclared: BTreeSet<String>,
    /// Each of them that holds the call.
    pub(crate) errors: Vec<EvaluationError>,
}

impl Reviewed {
    /// Compares the arguments with their declaration.
    pub(crate) fn of(declared: &Arguments, arguments: &Map<String, Value>) -> Self {
        let mut reviewed = Self::default();
        let Some(record) = declared.declared() else {
            reviewed.undeclared.extend(arguments.keys().cloned());
            return reviewed;
        };
        let mut members = Vec::new();
        for (name, attribute) in &record.attributes {
            match arguments.get(name) {
                None if attribute.required => reviewed.complain(name, "is missing"),
                None => {}
                Some(Value::Null) if attribute.nullable => {}
                Some(value) => {
                    if let Err(misfit) = conforms(&attribute.of, value, name, &mut members) {
                        reviewed.mistyped.insert(name.clone());
                        let problem = format!("is mistyped: {}", misfit.message());
                        reviewed.complain(name, &problem);
                    }
                }
            }
        }
        reviewed.undeclared.extend(members);
        for name in arguments.keys() {
            if !record.attributes.contains_key(name) {
                reviewed.undeclared.insert(name.clone());
                if record.closed {
                    reviewed.complain(name, "is not declared, and the tool takes no others");
                }
            }
        }
        reviewed
    }

    /// Whether every argument is of its declared type.
    pub(crate) fn is_sound(&self) -> bool {
        self.mistyped.is_empty()
    }

    fn complain(&mut self, name: &str, problem: &str) {
        self.errors.push(EvaluationError {
            kind: ErrorKind::Argument,
            policy: None,
            message: format!("argument `{}` {problem}", Excerpt::of(name)),
        });
    }
}

/// The context of both questions, as far as policies can look at it.
pub(crate) fn context(
    facts: &Facts<'_>,
    tool: Option<&ToolShape>,
    declared: &Arguments,
    reviewed: &Reviewed,
    reads: &Reads,
) -> Result<Context, String> {
    let mut parts = Vec::new();
    for part in PARTS {
        if reads.context.contains(part) {
            let value = express_part(part, facts, tool, declared, reviewed, reads);
            parts.push((part.to_owned(), value));
        }
    }
    Context::from_pairs(parts).map_err(|error| error.to_string())
}

const PARTS: [&str; 12] = [
    "args",
    "beliefs",
    "blast_radius",
    "level",
    "mistyped_args",
    "paths",
    "provenance",
    "reversibility",
    "scope",
    "sensitivity",
    "undeclared_args",
    "untrusted_args",
];

fn express_part(
    part: &str,
    facts: &Facts<'_>,
    tool: Option<&ToolShape>,
    declared: &Arguments,
    reviewed: &Reviewed,
    reads: &Reads,
) -> RestrictedExpression {
    let contract = facts.contract;
    match part {
        "args" => express_arguments(declared, facts.arguments, reviewed, reads),
        "beliefs" => express_beliefs(facts.dependencies),
        "blast_radius" => word(contract.blast_radius.as_str()),
        "level" => RestrictedExpression::new_long(contract.required_level as i64),
        "mistyped_args" => text_set(reviewed.mistyped.iter().map(String::as_str)),
        "paths" => text_set(facts.paths.iter().map(|path| path.as_str())),
        "provenance" => express_provenance(declared.declared(), facts.provenance),
        "reversibility" => word(contract.reversibility.as_str()),
        "scope" => express_scope(facts),
        "sensitivity" => word(contract.data_sensitivity.as_str()),
        "undeclared_args" => text_set(reviewed.undeclared.iter().map(String::as_str)),
        "untrusted_args" => text_set(untrusted(facts, tool).iter().map(String::as_str)),
        _ => unreachable!("every part has its expression"),
    }
}

fn word(word: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(word.to_owned())
}

fn express_arguments(
    declared: &Arguments,
    arguments: &Map<String, Value>,
    reviewed: &Reviewed,
    reads: &Reads,
) -> RestrictedExpression {
    let Some(declared) = declared.declared() else {
        return marker(&Value::Object(Map::new()));
    };
    let members = declared.attributes.iter().filter_map(|(name, attribute)| {
        if !reads.arguments.contains(name) {
            return None;
        }
        let value = match arguments.get(name)? {
            Value::Null if attribute.nullable => return None,
            value if reviewed.mistyped.contains(name) => marker(value),
            value => express(&attribute.of, value),
        };
        Some((name.clone(), value))
    });
    record(members)
}

fn express_scope(facts: &Facts<'_>) -> RestrictedExpression {
    let narrowest = facts.contract.scope.named().next_back();
    let (level, name) = match &narrowest {
        Some((level, name)) => (level.as_str(), name.as_str()),
        None => ("global", ""),
    };
    record([
        ("level".to_owned(), word(level)),
        ("identifier".to_owned(), word(name)),
    ])
}

fn express_beliefs(dependencies: &[Dependency]) -> RestrictedExpression {
    let count = i64::try_from(dependencies.len()).unwrap_or(i64::MAX);
    let axis = |of: fn(&Dependency) -> &'static str| text_set(dependencies.iter().map(of));
    record([
        ("count".to_owned(), RestrictedExpression::new_long(count)),
        ("truth".to_owned(), axis(|d| d.truth.as_str())),
        ("retrieval".to_owned(), axis(|d| d.retrieval.as_str())),
        ("security".to_owned(), axis(|d| d.security.as_str())),
        ("freshness".to_owned(), axis(|d| d.freshness.as_str())),
    ])
}

/// How far a label is from the operator's own word.
fn distance(label: &Label) -> (u8, &'static str) {
    match label {
        Label::Given { .. } => (0, "given"),
        Label::Measured { .. } => (1, "measured"),
        Label::Read { .. } => (2, "read"),
        Label::Unknown => (3, "unknown"),
    }
}

fn express_provenance(
    declared: Option<&RecordType>,
    provenance: &[ArgumentProvenance],
) -> RestrictedExpression {
    let mut worst: BTreeMap<String, (u8, &'static str)> = BTreeMap::new();
    for origin in provenance.iter().filter(|origin| has_origin(origin)) {
        if let Some(name) = argument_of(&origin.pointer) {
            let whole = distance(&origin.label);
            let inside = origin.inside.iter().map(|inside| distance(&inside.label));
            let found = match origin.label.is_trusted() {
                true => whole,
                false => inside.fold(whole, Ord::max),
            };
            let entry = worst.entry(name.into_owned()).or_insert(found);
            *entry = (*entry).max(found);
        }
    }
    let is_declared = |name: &str| declared.is_some_and(|of| of.attributes.contains_key(name));
    worst.retain(|name, _| is_declared(name));
    record(
        worst
            .into_iter()
            .map(|(name, (_, label))| (name, word(label))),
    )
}

/// The arguments that say where something goes or whose it is, and are neither given nor measured.
///
/// By their role; where none is declared, by the form of the value, and at L4 every one of them: what
/// reaches beyond the machine has to be explained whole. What is written, sent or said never counts.
pub(crate) fn untrusted(facts: &Facts<'_>, tool: Option<&ToolShape>) -> BTreeSet<String> {
    let role = |name: &str| tool.and_then(|tool| tool.roles.get(name)).copied();
    let everything = facts.contract.required_level >= Rung::L4;
    let suspect = |name: &str| {
        let mut origins = facts
            .provenance
            .iter()
            .filter(|origin| has_origin(origin))
            .filter(|origin| argument_of(&origin.pointer).as_deref() == Some(name));
        match role(name) {
            Some(ArgumentRole::Destination | ArgumentRole::Identity) => {
                let explained = facts
                    .provenance
                    .iter()
                    .any(|origin| argument_of(&origin.pointer).as_deref() == Some(name));
                !explained || origins.any(|origin| !is_trusted(origin))
            }
            Some(_) => false,
            None if everything => origins.any(|origin| !is_trusted(origin)),
            None => origins.any(|origin| {
                // A path has a role of its own, and most of them are made up by whoever writes.
                let address = origin.kind.is_address() && origin.kind != ValueKind::Path;
                address && !is_trusted(origin)
            }),
        }
    };
    let arguments = facts.arguments.iter();
    arguments
        .filter(|(name, value)| **value != Value::Null && suspect(name))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Whether a value is given or measured. If it is as a whole, so is what stands inside it: whoever gave
/// an address gave its host.
pub(crate) fn is_trusted(origin: &ArgumentProvenance) -> bool {
    origin.label.is_trusted()
}

/// `true` and `false` come from nowhere: there are only two of them.
fn has_origin(origin: &ArgumentProvenance) -> bool {
    origin.kind != ValueKind::Boolean || origin.place == Place::Name
}

/// The argument that a JSON pointer leads into.
pub(crate) fn argument_of(pointer: &str) -> Option<Cow<'_, str>> {
    let first = pointer.strip_prefix('/')?.split('/').next()?;
    Some(match first.contains('~') {
        true => Cow::Owned(first.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(first),
    })
}

#[cfg(test)]
mod tests;
