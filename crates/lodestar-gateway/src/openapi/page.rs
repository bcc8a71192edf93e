//! The API as a page of the reference, in Markdown, out of its documents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

const HEAD: &str = "\
# API of the gateway

This page is generated from the service's OpenAPI document, which is generated from the routes and the types that they \
read and write; the service gives it at `/v1/openapi.json`, and it is checked in as `gateway.openapi.json`.

Bodies are JSON unless it is said otherwise. What is asked may have no field that is not known; answers may gain \
fields. Every refusal is `{\"error\": {\"code\": …, \"message\": …}}`, with a [code](gateway-codes.md) of one closed \
list. Lists come in pages: `after` takes what the page before gave as `next`, `limit` how many there are on one.

A token opens what its kind may do, and raises nothing: whatever does takes a signed statement.
";

const PLATFORM: &str = "\
What follows is served on the socket `admin.sock` in the service's own folder, to the user that runs it, and nowhere \
else. It takes no token.
";

/// The page.
pub(super) fn page(public: &Value, platform: &Value) -> String {
    let mut page = HEAD.to_owned();
    let mut types: BTreeMap<&str, &Value> = BTreeMap::new();
    for document in [public, platform] {
        let schemas = document["components"]["schemas"].as_object();
        types.extend(
            schemas
                .into_iter()
                .flatten()
                .map(|(name, it)| (name.as_str(), it)),
        );
    }
    for tag in ["service", "account", "devices", "runs", "submissions"] {
        let _ = write!(page, "\n## {tag}\n");
        operations(&mut page, public, tag);
    }
    let _ = write!(page, "\n## platform\n\n{PLATFORM}");
    operations(&mut page, platform, "platform");
    page.push_str("\n## Types\n");
    for (name, schema) in types {
        described(&mut page, name, schema);
    }
    page
}

fn operations(page: &mut String, document: &Value, tag: &str) {
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(methods) {
            if operation["tags"][0] != tag {
                continue;
            }
            let method = method.to_uppercase();
            let _ = write!(
                page,
                "\n### `{method} {path}`\n\n{}",
                text(&operation["summary"])
            );
            if let Some(token) = operation["description"].as_str() {
                let _ = write!(page, " {token}");
            }
            page.push('\n');
            let content = &operation["requestBody"]["content"];
            if let Some(schema) = content["application/json"].get("schema") {
                let _ = writeln!(page, "\nTakes {}.", type_of(schema));
            }
            if content.get("application/octet-stream").is_some() {
                let what = text(&operation["requestBody"]["description"]);
                let _ = writeln!(page, "\nTakes bytes: {what}");
            }
            for (status, response) in members(&operation["responses"]) {
                let schema = &response["content"]["application/json"]["schema"];
                if !schema.is_null() {
                    let _ = writeln!(page, "\nAnswers {status}: {}.", type_of(schema));
                }
            }
        }
    }
}

fn described(page: &mut String, name: &str, schema: &Value) {
    let _ = write!(page, "\n### {name}\n\n");
    if let Some(what) = schema["description"].as_str() {
        let _ = writeln!(page, "{}", one_line(what));
    }
    let words = |list: &Value| -> Option<String> {
        let words = list.as_array()?.iter().map(|it| format!("`{}`", text(it)));
        Some(words.collect::<Vec<_>>().join(", "))
    };
    if let Some(words) = words(&schema["enum"]) {
        let _ = writeln!(page, "\nOne of {words}.");
    }
    // Words that are described each come as alternatives.
    for one in schema["oneOf"].as_array().into_iter().flatten() {
        let _ = writeln!(
            page,
            "- `{}`: {}",
            text(&one["const"]),
            one_line(text(&one["description"]))
        );
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let _ = writeln!(page, "\nOf the form `{pattern}`.");
    }
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    let required = schema["required"].as_array();
    page.push_str("\n| field | type | meaning |\n|---|---|---|\n");
    for (field, property) in properties {
        let needed = required.is_some_and(|all| all.iter().any(|it| it == field));
        let mark = if needed { "" } else { "?" };
        let meaning = property["description"].as_str().map(one_line);
        let _ = writeln!(
            page,
            "| `{field}`{mark} | {} | {} |",
            type_of(property),
            meaning.unwrap_or_default()
        );
    }
}

/// What a schema is, in a few words.
fn type_of(schema: &Value) -> String {
    if let Some(to) = schema["$ref"].as_str() {
        let name = to.rsplit('/').next().unwrap_or(to);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for alternatives in ["anyOf", "oneOf"] {
        if let Some(list) = schema[alternatives].as_array() {
            let known = list.iter().filter(|one| one["type"] != "null");
            return known.map(type_of).collect::<Vec<_>>().join(" or ");
        }
    }
    let named = match &schema["type"] {
        Value::Array(types) => types.iter().find(|one| *one != "null").map_or("any", text),
        one => one.as_str().unwrap_or("any"),
    };
    match named {
        "array" => format!("list of {}", type_of(&schema["items"])),
        other => other.to_owned(),
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NONE).iter()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}
