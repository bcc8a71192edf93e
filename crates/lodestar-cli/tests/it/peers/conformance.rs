//! The MCP project's conformance suite at a conforming server, and at the proxy's HTTP face in front of it:
//! every check that passes there passes here, but for what `conformance-exceptions.json` lists.

use serde_json::{Value, json};

use super::listening::{Listening, TOKEN};
use super::{Lab, Names, Sdk, Subject, documents, done, proved};
use crate::agent::{grade, peers};
use crate::world::World;

/// What the suite says of a server: scenario, check, status.
fn suite(lab: &Lab, url: &str, revision: &str) -> Value {
    let mut command = lab.program("python3");
    command
        .arg(peers().join("conformance.py"))
        .args(["--url", url, "--revision", revision]);
    let out = done(command.output().expect("started"));
    serde_json::from_str(&out).expect("JSON")
}

/// How the proxy reaches the conforming server.
#[derive(Debug, Clone, Copy)]
enum Reached {
    Child,
    Url,
}

/// A proxy in front of the conforming server that asks nobody and lets it ask the agent.
fn behind(lab: &Lab, url: Option<&str>) -> World {
    let world = World::new();
    let subject = lab.conforming();
    let ops = world.write("list.json", &json!([{"do": "tools/list"}]).to_string());
    let mut listing = lab.client(Sdk::TypeScript);
    listing.arg("--ops").arg(ops).arg("--env");
    listing.arg(format!("LODESTAR_PEERS={}", lab.0.display()));
    let listing = listing.arg("--").args(&subject.command).output();
    let listed = documents(&done(listing.expect("started")));
    let subject = Subject {
        url: url.map(str::to_owned),
        ..subject
    };
    subject.behind(&world, Names::Original, &listed);
    let asking = [
        "mcp.conforming.sampling.create",
        "mcp.conforming.elicitation.create",
    ];
    grade(&world, "L1", &asking);
    world
}

/// Checks that may fail at the proxy alone, with reasons.
fn exceptions() -> Value {
    let file = peers().join("conformance-exceptions.json");
    let text = std::fs::read_to_string(file).expect("there");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    all["exceptions"].clone()
}

fn conforms(revision: &str, ways: &[Reached]) {
    let Some(lab) = Lab::found() else { return };
    let server = Listening::script(&lab, "conforming.mjs", &["--http", "--port", "0"]);
    let direct = suite(&lab, &server.url, revision);
    for way in ways {
        let world = match way {
            Reached::Child => behind(&lab, None),
            Reached::Url => behind(&lab, Some(&server.url)),
        };
        let face = Listening::proxy(&lab, &world);
        let bearer = ["--to", &face.url, "--token", TOKEN];
        let bearer = Listening::script(&lab, "bearer.mjs", &bearer);
        let mut through = suite(&lab, &bearer.url, revision);
        if !worse(&direct, &through).is_empty() {
            // Some checks wait for half a second, and servers are started for who comes first.
            through = suite(&lab, &bearer.url, revision);
        }
        drop(bearer);
        face.end();
        proved(&world);
        let worse = worse(&direct, &through);
        assert!(worse.is_empty(), "{revision} {way:?}: {worse:#?}");
        let passed = passed(&direct, &through);
        println!("{revision} {way:?}: {passed} checks pass with and without the proxy");
        assert!(passed > 30, "{direct}");
    }
}

/// Every check that passes without the proxy: scenario, check, what it says through the proxy.
fn passing<'a>(direct: &'a Value, through: &'a Value) -> Vec<(&'a str, &'a str, &'a Value)> {
    let mut all = Vec::new();
    for (scenario, checks) in direct.as_object().expect("scenarios") {
        for (check, status) in checks.as_object().expect("checks") {
            if status == "SUCCESS" {
                all.push((scenario.as_str(), check.as_str(), &through[scenario][check]));
            }
        }
    }
    all
}

/// The checks that pass only without the proxy, and the exceptions that are none.
fn worse(direct: &Value, through: &Value) -> Vec<String> {
    let exceptions = exceptions();
    let odd = passing(direct, through)
        .into_iter()
        .filter(|(scenario, check, here)| {
            let is_excepted = exceptions[*scenario][*check].is_string();
            is_excepted == (**here == "SUCCESS")
        });
    odd.map(|(scenario, check, here)| format!("{scenario} {check}: {here}"))
        .collect()
}

/// How many checks pass with and without the proxy.
fn passed(direct: &Value, through: &Value) -> usize {
    let all = passing(direct, through);
    all.iter().filter(|(_, _, here)| *here == "SUCCESS").count()
}

#[test]
fn every_scenario_of_the_suite_passes_through_the_proxy_too() {
    conforms("all", &[Reached::Url]);
}

#[test]
fn what_2025_11_25_requires_passes_through_the_proxy_too() {
    conforms("2025-11-25", &[Reached::Child]);
}

#[test]
fn what_2026_07_28_requires_passes_through_the_proxy_too() {
    conforms("2026-07-28", &[Reached::Child, Reached::Url]);
}
