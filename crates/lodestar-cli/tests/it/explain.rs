//! `lodestar policy explain`: verdicts in words.

use crate::gated::{events, followed, project, renumbered, seq_of};
use crate::governed::stable;
use crate::world::assert_inert;

#[test]
fn a_verdict_is_told_with_the_policy_that_decided() {
    let world = project();
    followed(&world, "s-1");
    let seq = seq_of(&world, "s-1", "action.judged@1");
    let run = world
        .run(&["policy", "explain", "latest", &format!("#{seq}")])
        .expect(0);
    assert_inert(&run.out);
    insta::assert_snapshot!("allowed", stable(&world, &renumbered(&run.out)));
    let requested = seq_of(&world, "s-1", "approval.requested@1");
    let run = world
        .run(&["policy", "explain", "s-", &requested.to_string()])
        .expect(0);
    insta::assert_snapshot!("held", stable(&world, &renumbered(&run.out)));
}

#[test]
fn a_denial_says_what_tightened_it_and_a_call_that_was_none_says_that() {
    let world = project();
    followed(&world, "s-1");
    let rejected: Vec<_> = events(&world, "s-1")
        .into_iter()
        .filter(|(_, kind, _)| kind == "action.rejected@1")
        .collect();
    let of = |kind: &str| {
        let found = rejected
            .iter()
            .find(|(_, _, payload)| payload["kind"] == kind);
        let seq = found.expect("rejected").0;
        world
            .run(&["policy", "explain", "s-1", &format!("#{seq}")])
            .expect(0)
    };
    insta::assert_snapshot!(
        "denied",
        stable(&world, &renumbered(&of("policy_denied").out))
    );
    insta::assert_snapshot!(
        "no_action",
        stable(&world, &renumbered(&of("tool_not_advertised").out))
    );
}

#[test]
fn an_action_is_named_by_the_beginning_of_its_id() {
    let world = project();
    followed(&world, "s-1");
    let events = events(&world, "s-1");
    let proposed = events
        .iter()
        .find(|(_, kind, _)| kind == "action.proposed@1");
    let id = proposed.expect("proposed").2["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let report = world
        .run(&["policy", "explain", "s-1", &id[..id.len() - 2], "--json"])
        .expect(0)
        .json();
    assert_eq!(report["action"], id.as_str());
    assert_eq!(report["judged"]["judgement"]["verdict"], "allow");
    assert_eq!(report["policies"][0]["id"], "preset-run");
    assert_eq!(report["policies"][0]["line"], 4);
    let run = world.run(&["policy", "explain", "s-1", "act_"]).expect(2);
    assert!(run.err.contains("could be"), "{}", run.err);
    world
        .run(&["policy", "explain", "s-1", "act_ffff"])
        .expect(3);
    let run = world.run(&["policy", "explain", "s-1", "#0"]).expect(3);
    assert!(run.err.contains("not about an action"), "{}", run.err);
    world.run(&["policy", "explain", "s-1", "#999"]).expect(3);
    world.run(&["policy", "explain", "nowhere", "#1"]).expect(3);
}

#[test]
fn what_was_redacted_is_not_explained() {
    let world = project();
    world.will_be_edited();
    world.add_operator();
    followed(&world, "s-1");
    let seq = seq_of(&world, "s-1", "action.judged@1").to_string();
    world
        .run(&[
            "log", "redact", "s-1", "--seq", &seq, "--reason", "r", "--yes",
        ])
        .expect(0);
    let run = world
        .run(&["policy", "explain", "s-1", &format!("#{seq}")])
        .expect(1);
    assert!(run.err.contains("was redacted"), "{}", run.err);
    let proposed = seq_of(&world, "s-1", "action.proposed@1").to_string();
    let run = world
        .run(&["policy", "explain", "s-1", &proposed])
        .expect(0);
    assert!(
        run.out.contains("There is no verdict in the log"),
        "{}",
        run.out
    );
}
