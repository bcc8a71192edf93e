//! Holds as a model: agents, approvers, processes, a log that a crash can cut, a ledger. Every state
//! that can be reached is looked at, rules that are deliberately wrong are found out, and random ways
//! through the model are gone by the code, too.

mod explore;
mod follow;
mod law;
mod machine;
mod scenarios;
mod state;
mod trace;

use std::time::Instant;

use explore::{Counterexample, explore};
use law::Law;
use machine::{Machine, Scenario, Wrong};
use scenarios::{AGAIN, APART, CONFIRMED, CUT, LARGE, MOVING, PAIR, QUICK, SIMPLE, STRAY, WALKS};

fn told(counterexample: &Counterexample) -> String {
    let Counterexample {
        law, steps, state, ..
    } = counterexample;
    let steps: Vec<_> = steps.iter().map(|step| format!("  {step:?}")).collect();
    format!("{law:?} is broken:\n{}\n{state:#?}", steps.join("\n"))
}

fn look_everywhere(scenarios: &[Scenario]) {
    let (mut states, mut transitions) = (0, 0);
    for scenario in scenarios {
        let began = Instant::now();
        let seen = match explore(&Machine::right(*scenario), &Law::ALL) {
            Ok(seen) => seen,
            Err(counterexample) => panic!("{}: {}", scenario.name, told(&counterexample)),
        };
        assert!(seen.ends > 0, "{}: nothing ever ends", scenario.name);
        println!(
            "{}: {} states, {} transitions, depth {}, {} ends, {:.1} s",
            scenario.name,
            seen.states,
            seen.transitions,
            seen.depth,
            seen.ends,
            began.elapsed().as_secs_f64()
        );
        states += seen.states;
        transitions += seen.transitions;
    }
    println!("explored: {states} states, {transitions} transitions, 0 counterexamples");
}

#[test]
fn every_law_holds_in_every_state_that_can_be_reached() {
    look_everywhere(&QUICK);
}

#[test]
fn matrix_every_law_holds_in_larger_scenarios() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    look_everywhere(if full { &LARGE } else { &LARGE[..1] });
}

/// Each wrong rule, a scenario in which it shows, and the law that it breaks.
const WRONG: [(Wrong, Scenario, Law); 17] = [
    (Wrong::RunsBeforeTheRecordIsSafe, CUT, Law::AtMostOnce),
    (Wrong::RunsBeforeTheRecordIsSafe, AGAIN, Law::RecordedFirst),
    (Wrong::GrantsAnyAct, STRAY, Law::OnlyGranted),
    (Wrong::RestartForgetsSpends, CUT, Law::AtMostOnce),
    (Wrong::RestartForgetsSpends, AGAIN, Law::DeskFollowsLog),
    (Wrong::RestartForgetsGrants, AGAIN, Law::NoGrantLost),
    (
        Wrong::ChannelForgetsBeforeTheLogKnows,
        AGAIN,
        Law::NoGrantLost,
    ),
    (Wrong::DenyComesTooLateForAPermit, PAIR, Law::DenyWins),
    (Wrong::ExpiryIsNotLookedAt, PAIR, Law::OnlyInTime),
    (Wrong::LedgerSpendsTwice, APART, Law::ConfirmedOnce),
    (Wrong::NobodySweeps, SIMPLE, Law::NoHoldForEver),
    (Wrong::NobodySweeps, CUT, Law::NoHoldForEver),
    (Wrong::TwoWritersOfOneLog, SIMPLE, Law::AtMostOnce),
    (Wrong::MovedLeavesTheGrant, MOVING, Law::OneEnding),
    (Wrong::OnePersonCountsTwice, CONFIRMED, Law::OnlyGranted),
    (Wrong::TwoPermitsOfOneGrant, SIMPLE, Law::AtMostOnce),
    (Wrong::WorldIsNotMeasuredAgain, MOVING, Law::AsShown),
];

#[test]
fn each_wrong_rule_is_found_out_by_the_law_that_it_breaks() {
    for (wrong, scenario, law) in WRONG {
        let machine = Machine {
            scenario,
            wrong: Some(wrong),
        };
        let Err(found) = explore(&machine, &[law]) else {
            panic!("{wrong:?} breaks nothing that {law:?} would notice")
        };
        assert_eq!(found.law, law);
        let (steps, seen) = (found.steps.len(), found.seen);
        println!("{wrong:?} breaks {law:?} after {steps} steps, {seen} states");
    }
    // Nothing is a law that nothing can break.
    for law in Law::ALL {
        assert!(WRONG.iter().any(|(_, _, broken)| *broken == law), "{law:?}");
    }
}

#[test]
fn matrix_random_ways_are_the_same_in_the_model_and_in_the_code() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let traces = if full { 100_000 } else { 2_500 };
    let mut all = 0;
    for (number, scenario) in WALKS.into_iter().enumerate() {
        let gone = trace::go(scenario, traces, number as u64);
        println!("{}: {gone:?}", scenario.name);
        assert!(gone.executions > 0 && gone.granted > 0, "{gone:?}");
        assert!(
            gone.denied > 0 && gone.moved > 0 && gone.revoked > 0,
            "{gone:?}"
        );
        all += gone.traces;
    }
    println!("{all} traces");
}
