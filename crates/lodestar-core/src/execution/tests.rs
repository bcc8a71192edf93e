//! Every set of facts against the specification.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

/// The specification's table, said anew: what each level asks, given the names of the facts that hold.
fn level_by_the_specification(holds: impl Fn(&str) -> bool) -> &'static str {
    let attested = holds("attestation_present");
    if !attested || !holds("account_owns_run") {
        return "unverified";
    }
    if !holds("contender_owned") {
        return "account_verified";
    }
    let by_a_trusted_device = holds("attestation_valid") && holds("device_trusted");
    if !by_a_trusted_device {
        return "agent_verified";
    }
    if !(holds("runner_bound") && holds("runner_fresh")) {
        return "device_verified";
    }
    if !(holds("signature_verifies") && holds("gateway_verified")) {
        return "runner_verified";
    }
    let recorded = holds("workflow_recorded") && holds("lens_recorded");
    if !(holds("policy_passed") && recorded) {
        return "execution_verified";
    }
    "fully_trusted"
}

#[test]
fn every_set_of_facts_gives_the_level_of_the_specification() {
    let mut levels = [0; 7];
    for facts in FactSet::all() {
        let names: BTreeSet<_> = facts.iter().map(ExecutionFact::as_str).collect();
        let evaluation = evaluate(facts);
        let expected = level_by_the_specification(|name| names.contains(name));
        assert_eq!(evaluation.level().as_str(), expected, "{facts}");
        assert_eq!(evaluation.held(), facts);
        levels[evaluation.level() as usize] += 1;
    }
    assert_eq!(levels.iter().sum::<u32>(), 1 << 12);
    // Half of the sets that have all below lack the one fact, three quarters one of two.
    assert_eq!(levels, [3072, 512, 384, 96, 24, 7, 1]);
    println!("{} sets: {levels:?}", 1 << 12);
}

#[test]
fn the_level_is_the_highest_whose_facts_all_hold() {
    for facts in FactSet::all() {
        let highest = ExecutionLevel::ALL
            .iter()
            .rfind(|level| facts.is_superset(level.needs()));
        assert_eq!(Some(&evaluate(facts).level()), highest, "{facts}");
    }
}

#[test]
fn what_stopped_it_is_the_first_fact_that_the_next_level_lacks() {
    for facts in FactSet::all() {
        let evaluation = evaluate(facts);
        let Some(fact) = evaluation.stopped_by() else {
            assert_eq!(facts, FactSet::FULL);
            continue;
        };
        assert!(!facts.contains(fact));
        let next = ExecutionLevel::ALL[evaluation.level() as usize + 1];
        assert_eq!(fact.needed_from(), next);
        let mut asked = next.spec().needs.iter();
        assert_eq!(asked.find(|needed| !facts.contains(**needed)), Some(&fact));
    }
}

#[test]
fn another_fact_never_lowers_a_level() {
    for facts in FactSet::all() {
        for &fact in ExecutionFact::ALL {
            assert!(evaluate(facts.with(fact)).level() >= evaluate(facts).level());
        }
    }
}

#[test]
fn with_one_fact_missing_it_is_the_level_below_the_first_that_needs_it() {
    assert_eq!(
        evaluate(FactSet::FULL).level(),
        ExecutionLevel::FullyTrusted
    );
    for &fact in ExecutionFact::ALL {
        let evaluation = evaluate(FactSet::FULL.without(fact));
        assert_eq!(
            evaluation.level() as usize + 1,
            fact.needed_from() as usize,
            "{fact}"
        );
        assert_eq!(evaluation.stopped_by(), Some(fact));
    }
}

#[test]
fn every_fact_is_asked_for_once_and_in_the_order_of_the_table() {
    let asked: Vec<_> = EXECUTION_LEVELS
        .iter()
        .flat_map(|spec| spec.needs.iter().copied())
        .collect();
    assert_eq!(asked, ExecutionFact::ALL);
    for (spec, &level) in EXECUTION_LEVELS.iter().zip(ExecutionLevel::ALL) {
        assert_eq!(spec.level, level);
        assert_eq!(level.spec(), spec);
    }
    assert_eq!(ExecutionLevel::FullyTrusted.needs(), FactSet::FULL);
    assert_eq!(ExecutionLevel::Unverified.needs(), FactSet::EMPTY);
}

#[test]
fn an_evaluation_explains_itself() {
    assert_eq!(
        evaluate(FactSet::FULL).to_string(),
        "fully_trusted: every fact holds"
    );
    assert_eq!(
        evaluate(FactSet::FULL.without(ExecutionFact::RunnerFresh)).to_string(),
        "device_verified: runner_verified needs `runner_fresh` (the runner's heartbeat is fresh), which does not hold"
    );
}

#[test]
fn an_evaluation_is_only_read_if_it_follows_from_its_facts() {
    for facts in FactSet::all() {
        let evaluation = evaluate(facts);
        let written = serde_json::to_value(evaluation).unwrap();
        assert_eq!(written.get("stopped_by").is_none(), facts == FactSet::FULL);
        let read: Evaluation = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(read, evaluation);
        let higher = ExecutionLevel::ALL.get(evaluation.level() as usize + 1);
        if let Some(higher) = higher {
            let mut raised = written;
            raised["level"] = json!(higher);
            assert!(serde_json::from_value::<Evaluation>(raised).is_err());
        }
    }
    let said = serde_json::from_value::<Evaluation>(
        json!({"held": [], "level": "fully_trusted", "stopped_by": "attestation_present"}),
    );
    assert_eq!(
        said.unwrap_err().to_string(),
        "the facts add up to `unverified`, not to `fully_trusted` as it says"
    );
    let other_reason = json!({"held": [], "level": "unverified", "stopped_by": "lens_recorded"});
    assert!(serde_json::from_value::<Evaluation>(other_reason).is_err());
}

#[test]
fn a_set_is_written_as_sorted_names_and_kept_as_bits() {
    let facts: FactSet = [
        ExecutionFact::RunnerFresh,
        ExecutionFact::AttestationPresent,
        ExecutionFact::AccountOwnsRun,
    ]
    .into_iter()
    .collect();
    assert_eq!(
        serde_json::to_value(facts).unwrap(),
        json!(["account_owns_run", "attestation_present", "runner_fresh"])
    );
    assert_eq!(
        facts.to_string(),
        "account_owns_run, attestation_present, runner_fresh"
    );
    assert_eq!(FactSet::EMPTY.to_string(), "none");
    assert_eq!(facts.bits(), 0b100_0011);
    assert_eq!(facts.len(), 3);
    for facts in FactSet::all() {
        assert_eq!(FactSet::from_bits(facts.bits()), Ok(facts));
        let json = serde_json::to_value(facts).unwrap();
        assert_eq!(serde_json::from_value::<FactSet>(json).unwrap(), facts);
        assert_eq!(facts.is_empty(), facts == FactSet::EMPTY);
    }
    assert_eq!(FactSet::all().len(), 4096);
    assert_eq!(
        FactSet::from_bits(1 << 12),
        Err(BadFactSet::UnknownBits(1 << 12))
    );
    assert_eq!(
        FactSet::from_bits(u16::MAX),
        Err(BadFactSet::UnknownBits(0xf000))
    );
}

#[test]
fn names_out_of_order_twice_or_unknown_are_refused() {
    for names in [
        json!(["attestation_present", "account_owns_run"]),
        json!(["account_owns_run", "account_owns_run"]),
        json!(["account_owns_run", ""]),
        json!(["trusted"]),
        json!("account_owns_run"),
        json!(3),
        json!(null),
    ] {
        assert!(
            serde_json::from_value::<FactSet>(names.clone()).is_err(),
            "{names}"
        );
    }
}

#[test]
fn facts_are_set_and_taken_away() {
    let fact = ExecutionFact::PolicyPassed;
    let some = FactSet::EMPTY.set(fact, true);
    assert!(some.contains(fact) && some == FactSet::EMPTY.with(fact));
    assert_eq!(some.set(fact, false), FactSet::EMPTY);
    assert_eq!(some.set(fact, true), some);
    assert!(some.is_superset(FactSet::EMPTY) && !FactSet::EMPTY.is_superset(some));
    assert_eq!(format!("{some:?}"), "{PolicyPassed}");
}

#[test]
fn each_level_earns_what_the_specification_says() {
    let table = "unverified BATTLE_SUBMISSION_COMPLETED
        account_verified BATTLE_SUBMISSION_COMPLETED
        agent_verified BATTLE_SUBMISSION_COMPLETED
        device_verified BATTLE_SUBMISSION_COMPLETED VERIFIED_DEVICE_BADGE
        runner_verified BATTLE_SUBMISSION_COMPLETED VERIFIED_DEVICE_BADGE
        execution_verified BATTLE_SUBMISSION_COMPLETED VERIFIED_DEVICE_BADGE VERIFIED_LOCAL_EXECUTION_COMPLETED
        fully_trusted BATTLE_SUBMISSION_COMPLETED VERIFIED_DEVICE_BADGE VERIFIED_LOCAL_EXECUTION_COMPLETED LEADERBOARD_TIE_BREAK";
    assert_eq!(table.lines().count(), ExecutionLevel::ALL.len());
    for line in table.lines() {
        let mut words = line.split_whitespace();
        let level: ExecutionLevel = words.next().unwrap().parse().unwrap();
        let earned: Vec<_> = level.effects().map(Effect::as_str).collect();
        assert_eq!(earned, words.collect::<Vec<_>>(), "{level}");
    }
}

#[test]
fn the_page_has_every_level_fact_and_effect() {
    let page = reference_page();
    for spec in &EXECUTION_LEVELS {
        let row = format!("| {} | {} | ", spec.level, spec.meaning);
        let line = page.lines().find(|line| line.starts_with(&row)).unwrap();
        for fact in spec.needs {
            assert!(line.contains(&format!("`{fact}`")), "{line}");
        }
    }
    for &fact in ExecutionFact::ALL {
        let row = format!("| `{fact}` | {} | {} |", fact.phrase(), fact.needed_from());
        assert!(page.contains(&row), "{row}");
    }
    for &effect in Effect::ALL {
        let row = format!(
            "| `{effect}` | {} | {} |",
            effect.phrase(),
            effect.earned_from()
        );
        assert!(page.contains(&row), "{row}");
    }
}
