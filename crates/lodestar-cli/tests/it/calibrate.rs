//! `lodestar harness calibrate`

use serde_json::json;

use crate::governed::{Governed, stable};
use crate::world::{World, assert_inert};

/// Ten measurements that were made again: three of them found the same.
fn measured_again() -> World {
    let world = World::new();
    let mut session = Governed::open(&world, "s-1");
    for at in 0..10 {
        let subject = format!("file:{at}.txt");
        session.measure(&subject, "size", json!(at));
        let again = if at < 3 { at } else { at + 1 };
        session.measure(&subject, "size", json!(again));
    }
    session.read(
        "DEVELOPMENT.md",
        "# Setup\n\nThis was confirmed a hundred times.\n",
    );
    session.close();
    world
}

#[test]
fn classes_are_measured_flagged_and_recorded_and_nothing_else_changes() {
    let world = measured_again();
    let before = world.run(&["belief", "list"]).expect(0).out;
    let run = world.run(&["harness", "calibrate"]).expect(0);
    insta::assert_snapshot!("calibrated", stable(&world, &run.out));
    assert!(run.out.contains("flagged"), "{}", run.out);
    assert_eq!(world.run(&["belief", "list"]).expect(0).out, before);
    let report = world
        .run(&["harness", "calibrate", "--json"])
        .expect(0)
        .json();
    let class = &report["classes"][0];
    assert_eq!((&class["n"], &class["flagged"]), (&json!(10), &json!(true)));
    assert_eq!(class["bins"].as_array().expect("bins").len(), 10);
    let (session, seq) = (&report["recorded"]["session"], &report["recorded"]["seq"]);
    let name = session.as_str().expect("a name");
    let events = world
        .run(&["log", "show", name, "--json"])
        .expect(0)
        .ndjson();
    let event = &events[usize::try_from(seq.as_u64().expect("a number")).expect("small")];
    assert_eq!(event["type"], "calibration.computed@1");
    world.run(&["log", "verify"]).expect(0);
    world.run(&["replay", name]).expect(0);
    world.run(&["store", "status"]).expect(0);
}

#[test]
fn the_report_on_a_calibration_has_the_plot_and_the_table() {
    let world = measured_again();
    let run = world.run(&["harness", "calibrate", "--json"]).expect(0);
    let recorded = run.json()["recorded"].clone();
    let session = recorded["session"].as_str().expect("a name").to_owned();
    assert!(session.starts_with("cal-"), "{session}");

    let page = world
        .run(&["report", &session, "--format", "html"])
        .expect(0)
        .out;
    let plot = page.find("<div class=\"plots\">").expect("a plot");
    let plot = &page[plot..plot + page[plot..].find("</figure>").expect("an end")];
    assert_eq!(plot.matches("<svg").count(), 1, "one class: {plot}");
    assert!(plot.contains("flagged: measured</text>"), "{plot}");
    assert!(
        plot.contains("confidence 0.95, came true 0.30, 10 samples"),
        "{plot}"
    );
    assert!(page.contains("<code>measured</code></th><td>10</td><td>0.950</td><td>0.300</td>"));

    let text = world.run(&["report", &session]).expect(0).out;
    assert_inert(&text);
    assert!(
        text.contains("| `measured` | 10 | 0.950 | 0.300 | 0.650 | 0.633 | +0.650 | **flagged** |"),
        "{text}"
    );

    let told = world.run(&["--json", "report", &session]).expect(0).json();
    let [one] = &told["calibrations"].as_array().expect("a list")[..] else {
        panic!("{told}")
    };
    assert_eq!(one["seq"], recorded["seq"]);
    assert_eq!(
        one["computed"]["classes"],
        run.json()["classes"],
        "what was printed is what is told"
    );

    // A session whose record was edited is not told at all.
    let log = world.log("web").session(&session.parse().expect("a name"));
    let events = std::fs::read_to_string(log.events_path()).expect("there");
    let forged = events.replace("\"flagged\":true", "\"flagged\":false");
    assert_ne!(forged, events);
    std::fs::write(log.events_path(), forged).expect("written");
    let page = world
        .run(&["report", &session, "--format", "html"])
        .expect(1)
        .out;
    assert!(
        !page.contains("class=\"plots\"") && !page.contains("measured"),
        "{page}"
    );
}

#[test]
fn where_nothing_was_settled_it_says_so_and_exits_0() {
    let world = World::new();
    let mut session = Governed::open(&world, "s-1");
    session.read(
        "notes.md",
        "verified: true\nconfidence: 1.0\ncame_true: yes\n",
    );
    session.close();
    let run = world.run(&["harness", "calibrate"]).expect(0);
    assert!(
        run.out
            .contains("0 samples from 1 session; no class is flagged"),
        "{}",
        run.out
    );
}

#[test]
fn a_session_that_was_edited_is_named_and_does_not_count() {
    let world = measured_again();
    let mut session = Governed::open(&world, "s-2");
    session.measure("file:z.txt", "size", json!(1));
    session.close();
    world.run(&["harness", "calibrate"]).expect(0);
    let path = world
        .log("web")
        .session(&"s-1".parse().expect("a name"))
        .events_path();
    let text = std::fs::read_to_string(&path).expect("there");
    std::fs::write(&path, text.replace("file:3.txt", "file:4.txt")).expect("written");
    let run = world.run(&["harness", "calibrate"]).expect(0);
    assert!(
        run.err.contains("session `s-1` does not count"),
        "{}",
        run.err
    );
    assert!(run.out.contains("0 samples"), "{}", run.out);
}
