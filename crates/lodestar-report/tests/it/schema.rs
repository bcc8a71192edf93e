//! The published schema describes what is written, and nothing else.

use lodestar_report::schema;
use serde_json::{Value, json};

use crate::told::{poisoned, project_of, report_of};

/// As much of JSON Schema as the published one uses.
fn fits(value: &Value, schema: &Value, whole: &Value, at: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{at}: {why}"));
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = whole.pointer(&reference[1..]).unwrap();
        return fits(value, target, whole, at);
    }
    if let Some(either) = schema.get("oneOf").and_then(Value::as_array) {
        let tried: Vec<_> = either
            .iter()
            .map(|one| fits(value, one, whole, at))
            .collect();
        return match tried.iter().filter(|one| one.is_ok()).count() {
            1 => Ok(()),
            _ => Err(format!("{at}: {tried:?}")),
        };
    }
    if let Some(only) = schema.get("const") {
        return if value == only {
            Ok(())
        } else {
            wrong("another constant")
        };
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return if words.contains(value) {
            Ok(())
        } else {
            wrong(&format!("no such word {value}"))
        };
    }
    let is = match schema.get("type").and_then(Value::as_str) {
        None => true,
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some(other) => panic!("{other}"),
    };
    if !is {
        return wrong("another type");
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let size = match value {
        Value::Number(number) => number.as_f64().map(|size| (size, "minimum", "maximum")),
        Value::Array(list) => Some((list.len() as f64, "minItems", "maxItems")),
        _ => None,
    };
    if let Some((size, least, most)) = size
        && (bound(least).is_some_and(|least| size < least)
            || bound(most).is_some_and(|most| size > most))
    {
        return wrong("out of bounds");
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        for (place, one) in list.iter().enumerate() {
            fits(one, items, whole, &format!("{at}/{place}"))?;
        }
    }
    let (Some(properties), Some(members)) = (schema.get("properties"), value.as_object()) else {
        return Ok(());
    };
    for required in schema["required"].as_array().unwrap() {
        if !members.contains_key(required.as_str().unwrap()) {
            return wrong(&format!("{required} is missing"));
        }
    }
    for (name, member) in members {
        match properties.get(name) {
            Some(schema) => fits(member, schema, whole, &format!("{at}/{name}"))?,
            None => return wrong(&format!("`{name}` is not described")),
        }
    }
    Ok(())
}

/// Holds a report against the published schema.
pub(crate) fn assert_fits(report: &Value) {
    let whole = schema::json_schema();
    fits(report, &whole, &whole, "").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_and_refusals_fit_the_schema() {
    let whole = schema::json_schema();
    let (project, session) = poisoned().await;
    let report = serde_json::to_value(report_of(&project, &session)).unwrap();
    fits(&report, &whole, &whole, "").unwrap();
    let mut odd = report.clone();
    odd["more"] = json!(1);
    assert!(fits(&odd, &whole, &whole, "").is_err());
    let mut odd = report.clone();
    odd["actions"][0]["phase"] = json!("perhaps");
    assert!(fits(&odd, &whole, &whole, "").is_err());
    let class = json!({
        "class": "a", "n": 1, "confidence": 1.0, "accuracy": 1.0, "ece": 0.0, "brier": 0.0,
        "gap": 0.0, "flagged": false, "bins": vec![json!({"n": 0}); 10],
    });
    let at = report["session"]["opened_at"].clone();
    let computed = json!({"classes": [class], "sessions": 1});
    let mut measured = report;
    measured["calibrations"] = json!([{"seq": 1, "at": at, "computed": computed}]);
    fits(&measured, &whole, &whole, "").unwrap();
    for (name, wrong) in [
        ("gap", json!(-2)),
        ("ece", json!("low")),
        ("bins", json!([])),
    ] {
        let mut odd = measured.clone();
        odd["calibrations"][0]["computed"]["classes"][0][name] = wrong;
        assert!(fits(&odd, &whole, &whole, "").is_err(), "{name}");
    }
    project.will_be_edited();
    let path = project.log().session(&session).checkpoint_path();
    std::fs::write(path, "nothing").unwrap();
    let refused = serde_json::to_value(project_of(&project, &session)).unwrap();
    assert!(refused.get("refused").is_some());
    fits(&refused, &whole, &whole, "").unwrap();
}

#[test]
fn the_published_schema_is_the_one_of_the_code() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/report.schema.json"
    );
    let now = schema::reference_page();
    if std::env::var_os("LODESTAR_BLESS").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == now,
        "run the tests with LODESTAR_BLESS=1, then look at the difference"
    );
}
