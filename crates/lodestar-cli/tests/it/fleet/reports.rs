//! The trust report of a session that was a run: the level, the facts, and whose word it is.

use serde_json::Value;

use super::world::{Fleet, session, text};

#[test]
fn the_report_tells_the_level_as_the_gateways_word_and_nothing_that_was_changed() {
    let fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let device = &fleet.devices[0];
    // A session that was no run has no level.
    let before = device.json(&["report", "latest"]);
    assert_eq!(before["answers"]["execution_trust"]["answer"], "none");
    assert_eq!(before.get("execution"), None);

    let done = session(device).expect(0).json();
    let (run, id) = (text(&done["run"]["run"]), text(&done["session"]));
    let report = device.json(&["report", id]);
    let answer = &report["answers"]["execution_trust"];
    assert_eq!(answer["answer"], "agent_verified");
    assert_eq!(answer["standing"], "open");
    let because = text(&answer["because"]);
    assert!(
        because.contains("that gateway's word") && because.contains(&fleet.url()),
        "{because}"
    );
    let execution = &report["execution"];
    assert_eq!(
        (&execution["run"], &execution["level"]),
        (&run.into(), &"agent_verified".into())
    );
    assert_eq!(execution["stopped_by"], "device_trusted");
    let facts = execution["facts"].as_array().expect("a list");
    assert_eq!(facts.len(), 12);
    let held = |name: &str| {
        facts
            .iter()
            .any(|it| it["fact"] == name && it["held"] == true)
    };
    assert!(held("gateway_verified") && held("policy_passed") && !held("device_trusted"));
    for format in ["md", "html"] {
        let told = device.run(&["report", id, "--format", format]).expect(0);
        assert!(told.out.contains("by a gateway"), "{format}: {}", told.out);
        assert!(
            told.out.contains("agent_verified") && told.out.contains(run),
            "{format}"
        );
    }

    // Whoever raises it in the file raises nothing.
    let grade = device.path(&format!("work/.lodestar/log/notes/{id}/grade"));
    let kept = std::fs::read_to_string(&grade).expect("there");
    let envelope: Value = serde_json::from_str(&kept).expect("JSON");
    let mut changed = envelope.clone();
    changed["payload"] = Value::String(text(&envelope["payload"]).replacen('A', "B", 1));
    for bad in [
        changed.to_string(),
        "{}".to_owned(),
        "\u{0}".repeat(100_000),
    ] {
        std::fs::write(&grade, bad).expect("written");
        let report = device.json(&["report", id]);
        let answer = &report["answers"]["execution_trust"];
        assert_eq!(answer["answer"], "none");
        assert!(
            text(&answer["because"]).contains("does not count"),
            "{answer}"
        );
        assert_eq!(report.get("execution"), None);
    }
    // One of another session is no better.
    std::fs::write(&grade, &kept).expect("written");
    let other = session(device).expect(0).json();
    let other = text(&other["session"]);
    let place = device.path(&format!("work/.lodestar/log/notes/{other}/grade"));
    std::fs::write(&place, &kept).expect("written");
    let report = device.json(&["report", other]);
    assert!(text(&report["answers"]["execution_trust"]["because"]).contains("of another session"));
    // The log itself does not know of any of it.
    device.run(&["log", "verify"]).expect(0);
    std::fs::remove_file(&place).expect("removed");
    let report = device.json(&["report", other]);
    assert!(
        text(&report["answers"]["execution_trust"]["because"])
            .contains("nothing that a gateway said")
    );
}
