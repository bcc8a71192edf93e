//! What sentinels saw, and what was measured of beliefs.

use serde_json::{Value, json};

use super::Raw;

pub(super) fn check(report: &Value, raw: &Raw) {
    assert_eq!(report["alerts"], alerts(raw));
    let told = report["calibrations"].as_array().unwrap();
    let lines: Vec<(u64, &Value)> = raw.of("calibration.computed@1").collect();
    assert_eq!(told.len(), lines.len());
    for (one, (seq, line)) in told.iter().zip(lines) {
        let at = &raw.times[usize::try_from(seq).unwrap()];
        assert_eq!((&one["seq"], &one["at"]), (&json!(seq), at));
        assert!(is_same(&one["computed"], line), "{one} {line}");
        measured(line);
    }
    let opening = raw.lines[0].1.get("calibration");
    let in_force = report["session"].get("calibration");
    assert_eq!(in_force.is_some(), opening.is_some());
    if let (Some(told), Some(opening)) = (in_force, opening) {
        let mut expected = opening.clone();
        expected["seq"] = json!(0);
        assert_eq!(*told, expected);
    }
}

/// Every alert, with the action that it names and where that was proposed.
fn alerts(raw: &Raw) -> Value {
    let alerts = raw.of("sentinel.alerted@1").map(|(seq, line)| {
        let proposed = raw
            .of("action.proposed@1")
            .find(|(_, one)| one["id"] == line["action"]);
        let (proposed, action) = proposed.expect("an alert is about an action");
        let handles = &raw.contract(action)["data_sensitivity"];
        let sensitivity = if *handles == "secret" {
            "secret"
        } else {
            "internal"
        };
        json!({
            "seq": seq,
            "action": line["action"],
            "proposed": proposed,
            "sensitivity": sensitivity,
            "sentinel": line["sentinel"],
            "severity": line["severity"],
            "mode": line.get("mode").cloned().unwrap_or(json!("arbitrate")),
            "saw": line["saw"],
        })
    });
    Value::Array(alerts.collect())
}

/// The same, also where one writes `1` and the other `1.0`.
fn is_same(told: &Value, line: &Value) -> bool {
    match (told, line) {
        (Value::Number(told), Value::Number(line)) => told.as_f64() == line.as_f64(),
        (Value::Array(told), Value::Array(line)) => {
            let mut pairs = told.iter().zip(line);
            told.len() == line.len() && pairs.all(|(told, line)| is_same(told, line))
        }
        (Value::Object(told), Value::Object(line)) => {
            let mut members = told.iter();
            told.len() == line.len()
                && members
                    .all(|(name, told)| line.get(name).is_some_and(|line| is_same(told, line)))
        }
        _ => told == line,
    }
}

/// The numbers of each class follow from its bins, as far as bins say.
fn measured(line: &Value) {
    for class in line["classes"].as_array().unwrap() {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let n = number(&class["n"]);
        let (mut samples, mut said, mut came, mut error) = (0.0, 0.0, 0.0, 0.0);
        for bin in class["bins"].as_array().unwrap() {
            let n = number(&bin["n"]);
            let (confidence, accuracy) = (number(&bin["confidence"]), number(&bin["accuracy"]));
            samples += n;
            said += n * confidence;
            came += n * accuracy;
            error += n * (confidence - accuracy).abs();
        }
        let near = |name: &str, derived: f64| {
            let told = number(&class[name]);
            assert!((told - derived).abs() < 1e-9, "{name}: {told}, {derived}");
        };
        near("n", samples);
        near("confidence", said / n);
        near("accuracy", came / n);
        near("ece", error / n);
        near("gap", (said - came) / n);
        let is_off = error / n >= 0.1 - 1e-9 || ((said - came) / n).abs() >= 0.1 - 1e-9;
        assert_eq!(class["flagged"], n >= 5.0 && is_off);
    }
}
