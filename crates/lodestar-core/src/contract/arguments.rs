//! Which of an action's arguments name places: by the tool's word, or where it says nothing, by name.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::ArgumentRole;
use crate::fingerprint::{NormalPath, PathError};

/// Names that mean a place where nobody declared a role: what common tools call their path arguments.
const PATH_NAMES: [&str; 14] = [
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filepath",
    "filename",
    "dir",
    "directory",
    "folder",
    "cwd",
    "root",
    "notebook_path",
    "workdir",
];

/// What an argument is to its tool.
pub fn role(name: &str, roles: &BTreeMap<String, ArgumentRole>) -> Option<ArgumentRole> {
    let by_name = || {
        let mut names = PATH_NAMES.iter();
        let is_one = names.any(|known| known.eq_ignore_ascii_case(name));
        is_one.then_some(ArgumentRole::Path)
    };
    roles.get(name).copied().or_else(by_name)
}

/// The texts of a value: itself, or the items of a list, however deep.
pub fn texts(value: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        match value {
            Value::String(text) => found.push(text.as_str()),
            Value::Array(items) => stack.extend(items.iter().rev()),
            Value::Object(members) => stack.extend(members.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

/// The texts of a value and the names of its members: a table of files has its paths there.
pub fn texts_and_names(value: &Value) -> Vec<&str> {
    let mut found = texts(value);
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        match value {
            Value::Array(items) => stack.extend(items),
            Value::Object(members) => {
                found.extend(members.keys().map(String::as_str));
                stack.extend(members.values());
            }
            _ => {}
        }
    }
    found
}

/// How large arguments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// About how many bytes they take.
    pub bytes: usize,
    /// How many texts and names of members there are.
    pub texts: usize,
    /// How deep arrays and objects nest; the arguments themselves are the first level.
    pub depth: usize,
}

/// How large arguments are.
pub fn size(arguments: &Map<String, Value>) -> Size {
    /// What a value takes beside its text.
    const VALUE: usize = 8;
    let mut size = Size::default();
    let mut open: Vec<(usize, &Value)> = Vec::new();
    let enter = |size: &mut Size, depth, members: &Map<String, Value>| {
        size.depth = size.depth.max(depth);
        size.texts += members.len();
        size.bytes += members.keys().map(String::len).sum::<usize>();
    };
    enter(&mut size, 1, arguments);
    open.extend(arguments.values().map(|value| (2, value)));
    while let Some((depth, value)) = open.pop() {
        size.bytes += VALUE;
        match value {
            Value::String(text) => {
                size.bytes += text.len();
                size.texts += 1;
            }
            Value::Array(items) => {
                size.depth = size.depth.max(depth);
                open.extend(items.iter().map(|item| (depth + 1, item)));
            }
            Value::Object(members) => {
                enter(&mut size, depth, members);
                open.extend(members.values().map(|value| (depth + 1, value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    size
}

/// The paths among the arguments, in normal form and in the order of the arguments; those below the
/// tool's root start from it.
pub fn paths(
    arguments: &Map<String, Value>,
    roles: &BTreeMap<String, ArgumentRole>,
    root: Option<&NormalPath>,
) -> Result<Vec<NormalPath>, PathError> {
    let from_root = |path: NormalPath| match root {
        Some(root) => path.below(root),
        None => path,
    };
    arguments
        .iter()
        .filter(|(name, _)| role(name, roles) == Some(ArgumentRole::Path))
        .flat_map(|(_, value)| texts(value))
        .map(|text| NormalPath::new(text).map(from_root))
        .collect()
}
