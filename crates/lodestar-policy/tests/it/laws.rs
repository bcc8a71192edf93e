//! Laws that hold for every policy and everything that arbiters can say.

use lodestar_core::ladder::{Rung, Severity, Verdict};
use lodestar_policy::{Policy, Signal, Suite, Unsigned, check};
use proptest::prelude::*;

use crate::slicing::{random_call, random_policies};
use crate::world::{Dice, NOW, RUNGS, gate, tools};

fn any_signals() -> impl Strategy<Value = Vec<Signal>> {
    let severity = prop::sample::select(Severity::ALL);
    let signal = severity.prop_map(|severity| Signal {
        arbiter: "any".to_owned(),
        severity,
        reason: String::new(),
    });
    prop::collection::vec(signal, 0..4)
}

#[test]
fn no_depth_makes_the_parsers_overflow() {
    let deep = 200_000;
    let around = |open: &str, core: &str, close: &str| {
        let condition = format!("{}{core}{}", open.repeat(deep), close.repeat(deep));
        format!("permit (principal, action, resource) when {{ {condition} }};")
    };
    for text in [
        around("(", "true", ")"),
        around("!", "true", ""),
        around("-", "1", ""),
        around("[", "1", "]"),
        around("{a:", "1", "}"),
        around("true && ", "true", ""),
        around("if true then true else ", "true", ""),
        around("context", "", ".a"),
        around("1 + ", "1 > 0", ""),
    ] {
        let _ = Policy::load(text.as_bytes(), None, &[], Unsigned::Allowed, NOW);
        let _ = check(&text, &tools());
    }
    let _ = Suite::parse(&format!("a = {}", "[".repeat(deep)));
    let _ = Suite::parse(&format!("{}x = 1", "a.".repeat(deep)));
}

#[test]
fn the_deepest_policy_that_loads_is_still_validated_on_a_small_stack() {
    // Cedar's validator says nothing at all once the stack runs low.
    let wrong = "context.nowhere";
    let shapes: [(&str, String); 4] = [
        (
            "brackets",
            format!("{}{wrong}{}", "(".repeat(28), ")".repeat(28)),
        ),
        ("operators", format!("{}{wrong}", "true && ".repeat(140))),
        (
            "choices",
            format!(
                "{}{wrong}",
                "if context.level > 0 then true else ".repeat(70)
            ),
        ),
        ("attributes", format!("{wrong}{}", ".a".repeat(140))),
    ];
    for (name, condition) in shapes {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        let small = std::thread::Builder::new().stack_size(1 << 20);
        let checked = small.spawn(move || check(&text, &tools())).unwrap();
        let findings = checked.join().unwrap();
        let found = findings.iter().any(|f| f.message.contains("`nowhere`"));
        assert!(found, "{name}: {findings:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_ladder_and_the_arbiters_only_tighten(seed in any::<u64>(), heard in any_signals()) {
        let mut dice = Dice(seed);
        let gate = gate(&random_policies(&mut dice));
        let mut call = random_call(&mut dice);
        for rung in RUNGS {
            call.contract.required_level = rung;
            let alone = call.judge(&gate);
            let judgement = call.judge_hearing(&gate, &heard);
            prop_assert!(judgement.verdict >= alone.verdict);
            let loudest = heard.iter().map(|s| s.severity.at_least()).max();
            prop_assert!(judgement.verdict >= loudest.unwrap_or(Verdict::Allow));
            let gravest = judgement.errors.iter().map(|e| e.kind.at_least()).max();
            prop_assert!(judgement.verdict >= gravest.unwrap_or(Verdict::Allow));
            match rung {
                Rung::L5 => prop_assert_eq!(judgement.verdict, Verdict::Deny),
                Rung::L4 => prop_assert_ne!(judgement.verdict, Verdict::Allow),
                _ => {}
            }
            prop_assert_eq!(judgement.requirement.is_some(), judgement.verdict == Verdict::Hold);
            prop_assert!(judgement.policies.is_sorted());
            let json = serde_json::to_string(&judgement).unwrap();
            prop_assert_eq!(&judgement, &serde_json::from_str(&json).unwrap());
            prop_assert_eq!(&judgement, &call.judge_hearing(&gate, &heard));
        }
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in ".{0,200}") {
        let _ = Policy::load(text.as_bytes(), None, &[], Unsigned::Allowed, NOW);
        let _ = lodestar_policy::render(&check(&text, &tools()), &text, "policy.cedar");
        let _ = Suite::parse(&text);
    }

    #[test]
    fn no_broken_policy_makes_the_parsers_panic(
        seed in any::<u64>(), at in any::<prop::sample::Index>(), with in ".{0,3}"
    ) {
        let mut text = random_policies(&mut Dice(seed));
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        if !places.is_empty() {
            text.insert_str(*at.get(&places), &with);
        }
        let findings = check(&text, &tools());
        let _ = lodestar_policy::render(&findings, &text, "policy.cedar");
        let lines = text.lines().count().max(1) + 1;
        prop_assert!(findings.iter().all(|f| (1..=lines).contains(&f.line) && f.column >= 1));
    }

    #[test]
    fn no_bytes_make_loading_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Policy::load(&bytes, None, &[], Unsigned::Allowed, NOW);
    }
}
