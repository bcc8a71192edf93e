//! What an intake gives, and what it leaves when it fails.

use lodestar_core::chain::{BeliefAuthority, ObservationTrust, Retrieval, Security, Truth};
use lodestar_core::id::InvocationId;
use lodestar_firewall::FirewallError;
use lodestar_firewall::event::FirewallEvent;
use serde_json::json;

use crate::world::World;

#[test]
fn of_a_call_only_the_envelope_is_supported() {
    let mut world = World::new();
    let outcome = world.read("notes.md", "# Title\n\nRun `make deploy`.\nstatus = done");
    assert!(outcome.beliefs().len() >= 4);
    for (record, claim) in outcome.beliefs().iter().zip(&outcome.adopted.claims) {
        let envelope = claim.predicate.subject.starts_with("call:");
        let expected = if envelope {
            (Truth::Supported, Retrieval::Normal)
        } else {
            (Truth::Unverified, Retrieval::Restricted)
        };
        assert_eq!((record.axes.truth, record.axes.retrieval), expected);
        assert_eq!(record.axes.security, Security::Clean);
        assert_eq!(record.confidence.get(), 0.95);
    }
}

#[test]
fn all_of_one_observation_is_one_event() {
    let mut world = World::new();
    world.read("notes.md", "status = done");
    assert_eq!(world.tape.events.len(), 1);
    assert!(matches!(&world.tape.events[0].0, FirewallEvent::Adopted(_)));
}

#[test]
fn an_observation_of_another_call_is_refused() {
    let mut world = World::new();
    let mut observation = world.observation("read_file", "text");
    let arguments = json!({"path": "a.md"});
    assert!(world.take_in("files", &observation, &arguments).is_ok());
    let server = lodestar_core::name::ServerIdentity::new("files").unwrap();
    let tool = observation.tool.clone();
    let call = lodestar_firewall::extract::ToolCall {
        invocation: observation.invocation_id,
        server: &server,
        tool: &tool,
        arguments: &arguments,
        definition: lodestar_core::digest::sha256(b"d"),
        reviewed: true,
        is_error: false,
    };
    observation.invocation_id = InvocationId::from_parts(1, [7; 10]);
    let intake = lodestar_firewall::Intake {
        call,
        observation: &observation,
        scope: &crate::world::scope(),
        recorded: None,
    };
    let refused = world.firewall.observe(intake, &mut world.tape).unwrap_err();
    assert!(matches!(refused, FirewallError::OtherCall(_)), "{refused}");
}

#[test]
fn what_a_probe_made_is_no_evidence() {
    let mut world = World::new();
    let mut observation = world.observation("read_file", "status = done");
    observation.trust = ObservationTrust::Synthetic;
    let outcome = world
        .take_in("files", &observation, &json!({"path": "a.md"}))
        .unwrap();
    for record in outcome.beliefs() {
        assert_eq!(record.axes.truth, Truth::Unverified);
        assert_eq!(record.authority, BeliefAuthority::Synthetic);
    }
}

#[test]
fn what_is_not_recorded_did_not_happen() {
    let mut world = World::new();
    world.tape.broken = true;
    let observation = world.observation("read_file", "status = done");
    let refused = world
        .take_in("files", &observation, &json!({"path": "a.md"}))
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the event was not recorded: the disk is full"
    );
    world.tape.broken = false;
    assert!(world.context(None).beliefs.is_empty());
    assert!(world.firewall.find("blf_", 10).unwrap().is_empty());
}

#[test]
fn huge_and_hostile_text_is_taken_in_and_bounded() {
    let mut world = World::new();
    let text = format!(
        "status = {}\n{}",
        "é\u{202e}".repeat(60_000),
        "# heading\n".repeat(5_000)
    );
    let outcome = world.read("huge.md", &text);
    for claim in &outcome.adopted.claims {
        assert!(claim.statement.len() <= 1024);
        assert!(!claim.statement.contains('\u{202e}'));
    }
}

#[test]
fn a_result_of_very_many_blocks_gives_a_bounded_number_of_claims() {
    let mut world = World::new();
    let mut observation = world.observation("read_file", "");
    observation.content = vec![observation.content[0].clone(); 60_000];
    let outcome = world
        .take_in("files", &observation, &json!({"path": "a.md"}))
        .unwrap();
    assert!(outcome.beliefs().len() < 300, "{}", outcome.beliefs().len());
    let size = serde_json::to_vec(&outcome.adopted).unwrap().len();
    assert!(size < 1 << 20, "{size} bytes");
}
