//! The fields of what a client says, taken out one by one, each with its type.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::super::{Client, Use};
use super::{ProtocolError, kind};

/// The longest name: of an event, a tool, a conversation, one use of a tool.
const MAX_NAME: usize = 512;

/// The longest path.
const MAX_PATH: usize = 4096;

pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn of(object: Map<String, Value>) -> Self {
        Self(object)
    }

    /// Whatever stands there; a `null` is nothing.
    pub(super) fn value(&mut self, field: &'static str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    pub(super) fn text_if_any(
        &mut self,
        field: &'static str,
    ) -> Result<Option<String>, ProtocolError> {
        match self.value(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ProtocolError::WrongType {
                field,
                wanted: "a text",
            }),
        }
    }

    pub(super) fn text(&mut self, field: &'static str) -> Result<String, ProtocolError> {
        self.text_if_any(field)?
            .ok_or(ProtocolError::Missing(field))
    }

    pub(super) fn name_if_any(
        &mut self,
        field: &'static str,
    ) -> Result<Option<String>, ProtocolError> {
        let name = self.text_if_any(field)?;
        match name {
            Some(name) if !is_name(&name, MAX_NAME) => Err(ProtocolError::NoName(field)),
            name => Ok(name),
        }
    }

    pub(super) fn name(&mut self, field: &'static str) -> Result<String, ProtocolError> {
        self.name_if_any(field)?
            .ok_or(ProtocolError::Missing(field))
    }

    pub(super) fn path_if_any(
        &mut self,
        field: &'static str,
    ) -> Result<Option<PathBuf>, ProtocolError> {
        match self.text_if_any(field)? {
            // Cursor leaves it empty where a command runs in no folder of its own.
            None => Ok(None),
            Some(path) if path.is_empty() => Ok(None),
            Some(path) if !is_name(&path, MAX_PATH) => Err(ProtocolError::NoName(field)),
            Some(path) => Ok(Some(path.into())),
        }
    }

    pub(super) fn path(&mut self, field: &'static str) -> Result<PathBuf, ProtocolError> {
        self.path_if_any(field)?
            .ok_or(ProtocolError::Missing(field))
    }

    /// An object of arguments.
    pub(super) fn arguments(
        &mut self,
        field: &'static str,
    ) -> Result<Map<String, Value>, ProtocolError> {
        match self.value(field) {
            None => Err(ProtocolError::Missing(field)),
            Some(Value::Object(arguments)) => Ok(arguments),
            Some(_) => Err(ProtocolError::WrongType {
                field,
                wanted: "an object",
            }),
        }
    }

    /// A use of a tool as most clients tell it: `tool_name`, `tool_input` and, where there is one,
    /// `tool_use_id`.
    pub(super) fn tool_use(&mut self, client: Client) -> Result<Use, ProtocolError> {
        let tool = self.name("tool_name")?;
        Ok(Use {
            kind: kind(client, &tool),
            tool,
            id: self.name_if_any("tool_use_id")?,
            input: self.arguments("tool_input")?,
        })
    }
}

fn is_name(text: &str, longest: usize) -> bool {
    !text.is_empty() && text.len() <= longest && !text.chars().any(char::is_control)
}
