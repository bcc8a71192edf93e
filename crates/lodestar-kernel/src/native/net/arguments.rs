//! Arguments, read strictly: what a tool does not know, it refuses.

use lodestar_core::name::Excerpt;
use serde_json::{Map, Value};

use crate::tool::ToolError;

/// Refuses any argument that is not among these.
pub(crate) fn only(arguments: &Map<String, Value>, known: &[&str]) -> Result<(), ToolError> {
    match arguments
        .keys()
        .find(|name| !known.contains(&name.as_str()))
    {
        Some(name) => Err(ToolError::invalid(format!(
            "`{}` is no argument of this tool; it takes `{}`",
            Excerpt::of(name),
            known.join("`, `")
        ))),
        None => Ok(()),
    }
}

/// The text of an argument, if it is there.
pub(crate) fn text<'a>(
    arguments: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a str>, ToolError> {
    match arguments.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ToolError::invalid(format!("`{name}` must be a string"))),
    }
}

/// The texts of an argument that is a list of them, if it is there.
pub(crate) fn texts<'a>(
    arguments: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<Vec<&'a str>>, ToolError> {
    let Some(value) = arguments.get(name) else {
        return Ok(None);
    };
    value
        .as_array()
        .and_then(|items| items.iter().map(Value::as_str).collect())
        .map(Some)
        .ok_or_else(|| ToolError::invalid(format!("`{name}` must be a list of strings")))
}

/// The pairs of an argument that is an object of texts; none if it is not there.
pub(crate) fn pairs<'a>(
    arguments: &'a Map<String, Value>,
    name: &str,
) -> Result<Vec<(&'a str, &'a str)>, ToolError> {
    let Some(value) = arguments.get(name) else {
        return Ok(Vec::new());
    };
    value
        .as_object()
        .and_then(|object| {
            object
                .iter()
                .map(|(key, value)| Some((key.as_str(), value.as_str()?)))
                .collect()
        })
        .ok_or_else(|| ToolError::invalid(format!("`{name}` must be an object of strings")))
}
