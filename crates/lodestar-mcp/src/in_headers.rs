//! Arguments that a tool wants repeated in headers, for whoever routes calls: since 2026-07-28.

use hyper::header::HeaderName;
use serde_json::Value;

/// How deep properties are looked at.
const DEEPEST: usize = 16;

/// One argument, and the header in which it is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Annotated {
    path: Vec<String>,
    pub(crate) header: HeaderName,
}

impl Annotated {
    /// All that a tool's schema of arguments names; what is no name of a header is none.
    pub(crate) fn of(schema: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        gather(schema, &mut Vec::new(), &mut found);
        found
    }

    /// What the header says, where the arguments have something that a header can say.
    pub(crate) fn text(&self, arguments: &Value) -> Option<String> {
        let mut at = arguments;
        for name in &self.path {
            at = at.get(name)?;
        }
        match at {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(at.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

fn gather(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Annotated>) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    if path.len() >= DEEPEST {
        return;
    }
    for (name, property) in properties {
        path.push(name.clone());
        let header = property["x-mcp-header"].as_str().unwrap_or_default();
        let named = HeaderName::try_from(format!("mcp-param-{header}"));
        if let (false, Ok(header)) = (header.is_empty(), named) {
            found.push(Annotated {
                path: path.clone(),
                header,
            });
        }
        gather(property, path, found);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_argument_is_found_where_the_schema_has_it() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "place": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
            "bad": {"type": "string", "x-mcp-header": "no name"},
            "plain": {"type": "string"},
        }});
        let found = Annotated::of(&schema);
        let mut names: Vec<_> = found.iter().map(|one| one.header.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["mcp-param-count", "mcp-param-region"]);
        let arguments = json!({"region": "eu", "place": {"count": 3}});
        let mut texts: Vec<_> = found.iter().map(|one| one.text(&arguments)).collect();
        texts.sort_unstable();
        assert_eq!(texts, [Some("3".to_owned()), Some("eu".to_owned())]);
        assert_eq!(found[0].text(&json!({})), None);
    }
}
