//! Sentinels, through the real proxy.

use serde_json::{Value, json};

use super::proved;
use crate::agent::{Agent, behind, grade, marks};
use crate::world::World;

/// Two servers: one here, and one whose `echo` reaches outside and needs nobody's leave.
fn guarded(sentinels: &str) -> World {
    let world = behind(&[("one", &[]), ("two", &[])], sentinels);
    grade(&world, "L0", &["mcp.one.echo"]);
    grade(&world, "L3", &["mcp.one.write_file", "mcp.two.echo"]);
    let file = world.path("work/lodestar.toml");
    let config = std::fs::read_to_string(&file).expect("there");
    let (before, last) = config.rsplit_once("\"project\"").expect("a radius");
    std::fs::write(file, format!("{before}\"external\"{last}")).expect("written");
    world
}

fn alerts(world: &World) -> Vec<Value> {
    let shown = world.run(&["log", "show", "latest", "--json"]).expect(0);
    let events = shown.ndjson().into_iter();
    events
        .filter(|event| event["type"] == "sentinel.alerted@1")
        .collect()
}

/// The report tells each alert as the log has it.
fn reported(world: &World, mode: &str) {
    let report = world.run(&["--json", "report", "latest"]).expect(0).json();
    let [alert] = &report["alerts"].as_array().expect("a list")[..] else {
        panic!("{report}")
    };
    let logged = &alerts(world)[0];
    assert_eq!(alert["seq"], logged["seq"]);
    assert_eq!(alert["action"], logged["payload"]["action"]);
    assert_eq!(alert["sentinel"], "anomalous-tool-sequence");
    assert_eq!(alert["severity"], "critical");
    assert_eq!(alert["mode"], mode);
    assert_eq!(alert["saw"], logged["payload"]["saw"]);
    let actions = report["actions"].as_array().expect("a list");
    let seen = actions.iter().find(|one| one["id"] == alert["action"]);
    let seen = seen.expect("the action is told too");
    assert_eq!(alert["proposed"], seen["seq"]);
    assert_eq!(seen["tool"], "mcp.one.write_file");
}

/// Reads, says something outside, writes.
fn in_sequence(world: &World) -> Option<String> {
    let mut agent = Agent::start(world);
    let write = json!({"path": world.path("out"), "content": "y"});
    let first = agent.call("one__write_file", write.clone());
    assert_eq!(first.kind(), None, "{first:?}");
    assert_eq!(agent.call("one__echo", json!({"text": "a"})).kind(), None);
    assert_eq!(agent.call("two__echo", json!({"text": "b"})).kind(), None);
    let last = agent.call("one__write_file", write);
    let kind = last.kind().map(str::to_owned);
    if kind.is_some() {
        assert!(last.text().contains("anomalous-tool-sequence"), "{last:?}");
    }
    assert_eq!(agent.leave(), Some(0));
    kind
}

#[test]
fn a_write_after_something_went_out_after_a_read_does_not_reach_the_server() {
    let world = guarded("sentinels = [\"anomalous-tool-sequence\"]");
    assert_eq!(in_sequence(&world).as_deref(), Some("policy_denied"));
    assert_eq!(
        marks(&world, "one", "calls").len(),
        2,
        "one write and one read"
    );
    let alerts = alerts(&world);
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    reported(&world, "arbitrate");
    proved(&world);
}

#[test]
fn one_that_observes_lets_everything_through_and_says_what_it_saw() {
    let world = guarded("sentinels = [{ name = \"anomalous-tool-sequence\", mode = \"observe\" }]");
    assert_eq!(in_sequence(&world), None);
    assert_eq!(marks(&world, "one", "calls").len(), 3);
    let alerts = alerts(&world);
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert_eq!(alerts[0]["payload"]["mode"], "observe");
    reported(&world, "observe");
    proved(&world);
}

#[test]
fn a_sentinel_that_is_set_wrongly_is_an_error_with_its_line() {
    for wrong in [
        "{ name = \"anomalous-tool-sequence\", severity = \"warning\" }",
        "{ name = \"anomalous-tool-sequence\", mode = \"loud\" }",
        "\"anomalous-tool-sequences\"",
    ] {
        let world = guarded(&format!("sentinels = [\n{wrong},\n]"));
        let run = world.run(&["policy", "show"]);
        assert!(run.err.contains("line 5"), "{}", run.err);
    }
}
