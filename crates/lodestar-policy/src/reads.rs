//! Which parts of the context a policy can look at, found in its text alone.
//!
//! What no policy of a slice can look at need not be built; and a forbid that can look at an argument
//! denies when that argument is not of its declared type, since `==` on values of different types is
//! false in Cedar, not an error.

use std::collections::BTreeSet;

use serde_json::Value;

/// The part of the context that holds the arguments.
const ARGUMENTS: &str = "args";

/// Some names, or all there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Names {
    /// Any.
    All,
    /// These.
    Some(BTreeSet<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

impl Names {
    fn add(&mut self, name: &str) {
        if let Self::Some(names) = self {
            names.insert(name.to_owned());
        }
    }

    fn add_all(&mut self, others: &Self) {
        match (self, others) {
            (Self::Some(mine), Self::Some(theirs)) => mine.extend(theirs.iter().cloned()),
            (mine, Self::All) => *mine = Self::All,
            (Self::All, _) => {}
        }
    }

    /// Whether there are no others than these.
    pub(crate) fn are_among(&self, these: &[&str]) -> bool {
        match self {
            Self::All => false,
            Self::Some(names) => names.iter().all(|name| these.contains(&name.as_str())),
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(names) => names.contains(name),
        }
    }
}

/// What policies can look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Parts of the context.
    pub(crate) context: Names,
    /// Arguments.
    pub(crate) arguments: Names,
}

impl Reads {
    /// Everything.
    pub(crate) fn everything() -> Self {
        Self {
            context: Names::All,
            arguments: Names::All,
        }
    }

    /// What this policy can look at; everything if Cedar cannot write the policy down.
    pub(crate) fn of(policy: &cedar_policy::Policy) -> Self {
        let mut reads = Self::default();
        match policy.to_json() {
            Ok(json) => match json.get("conditions") {
                Some(conditions) => reads.walk(conditions),
                None => return Self::everything(),
            },
            Err(_) => return Self::everything(),
        }
        reads
    }

    /// What either can look at.
    pub(crate) fn join(&mut self, other: &Self) {
        self.context.add_all(&other.context);
        self.arguments.add_all(&other.arguments);
    }

    fn access(&mut self, whole: &Value, path: &[&str]) {
        match path {
            [ARGUMENTS, name, ..] if is_context(whole) => {
                self.context.add(ARGUMENTS);
                self.arguments.add(name);
            }
            [ARGUMENTS] if is_context(whole) => {
                // Whoever takes the record as a whole, or asks whether it is there.
                self.context.add(ARGUMENTS);
                self.arguments = Names::All;
            }
            [name, ..] if is_context(whole) => self.context.add(name),
            [name, ..] if is_arguments(whole) => {
                self.context.add(ARGUMENTS);
                self.arguments.add(name);
            }
            _ => self.walk(whole),
        }
    }

    fn walk(&mut self, expression: &Value) {
        // Cedar bounds how deep a policy's expressions nest, so this recursion has an end too.
        match expression {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(members) => {
                if is_context(expression) {
                    *self = Self::everything();
                    return;
                }
                for (operator, operand) in members {
                    match accessed(operator, operand) {
                        Some((whole, path)) => self.access(whole, &path),
                        None => self.walk(operand),
                    }
                }
            }
            _ => {}
        }
    }
}

/// The operands of `whole.name`, `whole has name` and `whole has name.name`.
fn accessed<'a>(operator: &str, operand: &'a Value) -> Option<(&'a Value, Vec<&'a str>)> {
    if operator != "." && operator != "has" {
        return None;
    }
    let path = match operand.get("attr")? {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    Some((operand.get("left")?, path))
}

fn is_context(expression: &Value) -> bool {
    expression.get("Var").is_some_and(|name| name == "context")
}

fn is_arguments(expression: &Value) -> bool {
    expression
        .get(".")
        .and_then(|operand| accessed(".", operand))
        .is_some_and(|(whole, path)| is_context(whole) && path == [ARGUMENTS])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(condition: &str) -> Reads {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        Reads::of(&cedar_policy::Policy::parse(None, text).unwrap())
    }

    fn names<const N: usize>(names: [&str; N]) -> Names {
        Names::Some(names.map(str::to_owned).into())
    }

    #[test]
    fn a_policy_is_known_to_look_at_what_it_names_and_at_nothing_else() {
        for (condition, context, arguments) in [
            ("true", names([]), names([])),
            ("context.level > 1", names(["level"]), names([])),
            ("context has level", names(["level"]), names([])),
            (
                "context.args.path == \"a\"",
                names(["args"]),
                names(["path"]),
            ),
            ("context.args has path", names(["args"]), names(["path"])),
            (
                "context.args.meta.thread == 1",
                names(["args"]),
                names(["meta"]),
            ),
            ("context has args", names(["args"]), Names::All),
            ("context.args == context.args", names(["args"]), Names::All),
            ("principal.execution == \"x\"", names([]), names([])),
            ("principal.args.path == \"x\"", names([]), names([])),
            (
                "[context.level].contains(1) && context.args.to == \"x\"",
                names(["args", "level"]),
                names(["to"]),
            ),
            ("{ a: context }.a.level == 1", Names::All, Names::All),
        ] {
            let expected = Reads { context, arguments };
            assert_eq!(reads(condition), expected, "{condition}");
        }
    }

    /// As versions of Cedar may write `context has args.path`.
    #[test]
    fn a_path_of_several_names_is_followed() {
        for (whole, path, context, arguments) in [
            (
                "context",
                ["args", "path"],
                names(["args"]),
                names(["path"]),
            ),
            ("context", ["level", "x"], names(["level"]), names([])),
            ("principal", ["args", "path"], names([]), names([])),
        ] {
            let mut reads = Reads::default();
            let left = serde_json::json!({"Var": whole});
            reads.walk(&serde_json::json!({"has": {"left": left, "attr": path}}));
            assert_eq!(reads, Reads { context, arguments });
        }
    }

    #[test]
    fn all_names_are_among_none() {
        assert!(names(["a", "b"]).are_among(&["a", "b", "c"]));
        assert!(!names(["a", "d"]).are_among(&["a", "b", "c"]));
        assert!(names([]).are_among(&[]));
        assert!(!Names::All.are_among(&["a"]));
        assert!(Names::All.contains("a") && !names(["a"]).contains("b"));
    }
}
