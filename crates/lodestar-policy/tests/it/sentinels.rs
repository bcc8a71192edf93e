//! Sentinels, as they are configured: each sees its case and no near miss, and nothing they can be set to
//! loosens a verdict.

use lodestar_core::chain::{Confidence, Freshness, Retrieval, Security, Truth};
use lodestar_core::contract::BlastRadius;
use lodestar_core::id::BeliefId;
use lodestar_core::ladder::{Rung, Severity, Verdict};
use lodestar_core::name::CalibrationClass;
use lodestar_policy::{
    Alert, Arbiter, ArbiterRules, Dependency, Gate, Judgement, Mode, SEQUENCE_STEPS, Signal,
    StepKind, Trail, explain,
};
use proptest::prelude::*;
use serde_json::json;

use crate::slicing::{random_call, random_policies};
use crate::world::{Call, Dice, RUNGS, contract, reading, try_gate};

const OPEN: &str = "permit (principal, action, resource);";

fn class(name: &str) -> CalibrationClass {
    CalibrationClass::new(name).unwrap()
}

/// A belief that every sentinel who looks at beliefs has something to say of.
fn dubious() -> Dependency {
    Dependency {
        belief: BeliefId::from_parts(1, [1; 10]),
        truth: Truth::Unverified,
        retrieval: Retrieval::Restricted,
        security: Security::Clean,
        freshness: Freshness::Fresh,
        confidence: Confidence::new(0.2).unwrap(),
        rests_on_reading: true,
        class: Some(class("extract/content")),
    }
}

fn trail(kinds: &[StepKind]) -> Trail {
    let mut trail = Trail::default();
    for kind in kinds {
        trail.step(*kind);
    }
    trail
}

/// A call in which every sentinel sees something, if it stands on L3.
fn suspicious(rung: Rung) -> Call {
    let mut call = Call::new("mail.send", rung, json!({"to": "ann"}));
    call.dependencies.push(dubious());
    call.trail = trail(&[StepKind::Read, StepKind::External]);
    call
}

fn flagging(source: &str, rules: ArbiterRules) -> Gate {
    try_gate(source, rules)
        .unwrap()
        .flagging([class("extract/content")])
}

fn only(name: &str) -> Gate {
    flagging(OPEN, ArbiterRules::new([(name, None)]).unwrap())
}

fn seen(judgement: &Judgement) -> Vec<&str> {
    let signals = judgement.signals.iter();
    signals.map(|signal| signal.arbiter.as_str()).collect()
}

#[test]
fn a_write_after_an_external_effect_after_a_read_is_denied() {
    use StepKind::{External, Neither, Read, Write};
    let gate = only("anomalous-tool-sequence");
    let after = |steps: &[StepKind], rung| {
        let mut call = reading(rung);
        call.trail = trail(steps);
        call.judge(&gate)
    };
    let judgement = after(&[Read, External], Rung::L3);
    assert_eq!(judgement.verdict, Verdict::Deny);
    assert_eq!(
        judgement.signals[0].reason,
        "it writes, 1 step after something reached outside and 2 steps after something was read"
    );
    assert_eq!(after(&[Read, External], Rung::L2).verdict, Verdict::Deny);
    assert_eq!(
        after(&[External, Read, Neither, External, Write, Read], Rung::L3).verdict,
        Verdict::Deny
    );
    // Near misses: one part is missing, or the order is another.
    for steps in [
        &[][..],
        &[Read],
        &[External],
        &[External, Read],
        &[Read, Write],
        &[External, Write, Read],
        &[Neither, External],
    ] {
        assert_eq!(after(steps, Rung::L3).verdict, Verdict::Allow, "{steps:?}");
    }
    // Reading on, or reaching outside once more, completes nothing.
    assert_eq!(after(&[Read, External], Rung::L0).verdict, Verdict::Allow);
    assert_eq!(after(&[Read, External], Rung::L1).verdict, Verdict::Allow);
    assert!(after(&[Read, External], Rung::L4).signals.is_empty());
}

#[test]
fn a_sequence_spans_sixteen_steps_and_no_more() {
    let gate = only("anomalous-tool-sequence");
    let verdict = |between: u64| {
        let mut call = reading(Rung::L3);
        call.trail = trail(&[StepKind::Read, StepKind::External]);
        for _ in 0..between {
            call.trail.step(StepKind::Write);
        }
        call.judge(&gate).verdict
    };
    // The read, the external effect and the write that is judged are three of them.
    assert_eq!(verdict(SEQUENCE_STEPS - 3), Verdict::Deny);
    assert_eq!(verdict(SEQUENCE_STEPS - 2), Verdict::Allow);
}

#[test]
fn a_step_is_what_its_contract_says() {
    let kind = |rung, blast_radius| {
        let mut contract = contract(rung);
        contract.blast_radius = blast_radius;
        StepKind::of(&contract)
    };
    for near in [
        BlastRadius::SelfOnly,
        BlastRadius::Session,
        BlastRadius::Project,
    ] {
        let kinds = RUNGS.map(|rung| kind(rung, near));
        use StepKind::{External, Neither, Read, Write};
        assert_eq!(kinds, [Read, Neither, Write, Write, External, Neither]);
    }
    for rung in [Rung::L1, Rung::L2, Rung::L3, Rung::L4] {
        assert_eq!(kind(rung, BlastRadius::External), StepKind::External);
    }
    // To look at something far away has no effect there.
    assert_eq!(kind(Rung::L0, BlastRadius::External), StepKind::Read);
    assert_eq!(kind(Rung::L5, BlastRadius::External), StepKind::Neither);
}

#[test]
fn a_flagged_class_holds_what_rests_on_it_from_l3_on() {
    let gate = only("calibration-flag");
    let resting_on = |rung, of: Option<&str>| {
        let mut call = reading(rung);
        call.dependencies.push(Dependency {
            truth: Truth::Supported,
            class: of.map(class),
            ..dubious()
        });
        call.judge(&gate)
    };
    let held = resting_on(Rung::L3, Some("extract/content"));
    assert_eq!(held.verdict, Verdict::Hold);
    assert!(held.signals[0].reason.contains("`extract/content`"));
    for (rung, of) in [
        (Rung::L2, Some("extract/content")),
        (Rung::L3, Some("extract/contents")),
        (Rung::L3, None),
    ] {
        let judgement = resting_on(rung, of);
        assert_eq!(judgement.verdict, Verdict::Allow, "{rung} {of:?}");
        assert!(judgement.signals.is_empty());
    }
    // Nothing is flagged where nothing was measured.
    let rules = ArbiterRules::new([("calibration-flag", None)]).unwrap();
    let unmeasured = suspicious(Rung::L3).judge(&try_gate(OPEN, rules).unwrap());
    assert_eq!(unmeasured.verdict, Verdict::Allow);
}

#[test]
fn one_that_observes_is_heard_and_changes_nothing() {
    for arbiter in Arbiter::ALL {
        let mut rules = ArbiterRules::none();
        let severity = Some(Severity::Critical);
        rules
            .set(arbiter.as_str(), severity, Mode::Observe)
            .unwrap();
        assert!(!rules.arbitrate());
        let judgement = suspicious(Rung::L3).judge(&flagging(OPEN, rules));
        assert_eq!(judgement.verdict, Verdict::Allow);
        assert!(judgement.tightened.is_empty() && judgement.signals.is_empty());
        assert_eq!(judgement.observed[0].arbiter, arbiter.as_str());
        assert!(explain(&judgement).contains("which only observes, saw, as critical"));
        let alerts: Vec<_> = Alert::of(&judgement).collect();
        assert_eq!(alerts.len(), 1);
        assert_eq!(alerts[0].mode, Mode::Observe);
        let written = serde_json::to_value(&alerts[0]).unwrap();
        assert_eq!(written["mode"], "observe");
        assert_eq!(
            serde_json::from_value::<Alert<'_>>(written).unwrap(),
            alerts[0]
        );
    }
}

#[test]
fn each_sees_the_suspicious_call_and_all_see_it_together() {
    for arbiter in Arbiter::ALL {
        let judgement = suspicious(Rung::L3).judge(&only(arbiter.as_str()));
        assert_eq!(seen(&judgement), [arbiter.as_str()]);
        assert_eq!(judgement.verdict, arbiter.severity().at_least());
    }
    let names = Arbiter::ALL.map(|arbiter| (arbiter.as_str(), None));
    let judgement = suspicious(Rung::L3).judge(&flagging(OPEN, ArbiterRules::new(names).unwrap()));
    assert_eq!(seen(&judgement), Arbiter::ALL.map(Arbiter::as_str));
    assert!(seen(&judgement).is_sorted());
}

/// Off, observing, or arbitrating as gravely as itself or more so.
const SETTINGS: [Option<(Mode, Option<Severity>)>; 5] = [
    None,
    Some((Mode::Observe, None)),
    Some((Mode::Observe, Some(Severity::Critical))),
    Some((Mode::Arbitrate, None)),
    Some((Mode::Arbitrate, Some(Severity::Critical))),
];

fn set(settings: &[usize; 5]) -> ArbiterRules {
    let mut rules = ArbiterRules::none();
    for (arbiter, at) in Arbiter::ALL.into_iter().zip(settings) {
        if let Some((mode, severity)) = SETTINGS[*at] {
            rules.set(arbiter.as_str(), severity, mode).unwrap();
        }
    }
    rules
}

/// What calls come to under these settings, from what they come to without sentinels: as strict as the gravest
/// of those who arbitrate, and never milder.
fn check(calls: &[Call], source: &str, plain: &Gate, settings: &[usize; 5]) {
    let rules = set(settings);
    let gate = flagging(source, rules.clone());
    for call in calls {
        let (alone, judgement) = (call.judge(plain), call.judge(&gate));
        let gravest = judgement.signals.iter().map(|s| s.severity.at_least());
        let gravest = gravest.max().unwrap_or(Verdict::Allow);
        let what = format!("{settings:?} on {}", call.contract.required_level);
        assert_eq!(judgement.verdict, alone.verdict.tighten(gravest), "{what}");
        assert!(judgement.verdict >= alone.verdict, "{what}");
        for (arbiter, setting) in rules.iter() {
            let named = |signals: &[Signal]| {
                let mut names = signals.iter().map(|signal| signal.arbiter.as_str());
                names.any(|name| name == arbiter.as_str())
            };
            match setting.mode {
                Mode::Observe => assert!(!named(&judgement.signals), "{what}"),
                Mode::Arbitrate => assert!(!named(&judgement.observed), "{what}"),
            }
            assert!(setting.severity >= arbiter.severity());
        }
        assert_eq!(alone.answer, judgement.answer);
        assert_eq!(alone.policies, judgement.policies);
    }
}

#[test]
fn no_settings_loosen_any_answer_on_any_rung() {
    let answers = [
        OPEN,
        r#"permit (principal, action in Action::"ask", resource);"#,
        "",
        "forbid (principal, action, resource);",
    ];
    for source in answers {
        let plain = try_gate(source, ArbiterRules::none()).unwrap();
        // Each alone in every setting, then all of them in the same and in mixed ones.
        let mut all = vec![[0; 5]];
        for at in 0..5 {
            for setting in 1..SETTINGS.len() {
                let mut settings = [0; 5];
                settings[at] = setting;
                all.push(settings);
            }
        }
        for setting in 1..SETTINGS.len() {
            all.push([setting; 5]);
            all.push(std::array::from_fn(|at| (at + setting) % SETTINGS.len()));
        }
        for settings in all {
            let calls = RUNGS.map(|rung| [suspicious(rung), reading(rung)]);
            check(calls.as_flattened(), source, &plain, &settings);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn nor_do_any_settings_under_any_policy(
        seed in any::<u64>(), settings in prop::array::uniform5(0..SETTINGS.len())
    ) {
        let mut dice = Dice(seed);
        let source = random_policies(&mut dice);
        let plain = try_gate(&source, ArbiterRules::none()).unwrap();
        let mut call = random_call(&mut dice);
        call.dependencies.push(dubious());
        call.trail = trail(&[StepKind::Read, StepKind::External]);
        let calls = RUNGS.map(|rung| {
            let mut call = call.clone();
            call.contract.required_level = rung;
            call
        });
        check(&calls, &source, &plain, &settings);
    }
}

#[test]
fn the_configuration_names_sets_and_refuses() {
    let read = |text: &str| {
        #[derive(serde::Deserialize)]
        struct Config {
            sentinels: ArbiterRules,
        }
        toml::from_str::<Config>(text)
            .map(|config| config.sentinels)
            .map_err(|problem| problem.to_string())
    };
    let rules = read(
        "sentinels = [\n  \"untrusted-argument\",\n  { name = \"low-confidence-action\", severity = \"critical\" },\n  { name = \"anomalous-tool-sequence\", mode = \"observe\" },\n]",
    )
    .unwrap();
    let named: Vec<_> = rules
        .iter()
        .map(|(arbiter, set)| (arbiter.as_str(), set.severity, set.mode))
        .collect();
    assert_eq!(
        named,
        [
            ("anomalous-tool-sequence", Severity::Critical, Mode::Observe),
            ("low-confidence-action", Severity::Critical, Mode::Arbitrate),
            ("untrusted-argument", Severity::Warning, Mode::Arbitrate),
        ]
    );
    // As the log keeps them, and back.
    let written = serde_json::to_value(&rules).unwrap();
    assert_eq!(
        written,
        json!({
            "anomalous-tool-sequence": {"severity": "critical", "mode": "observe"},
            "low-confidence-action": "critical",
            "untrusted-argument": "warning",
        })
    );
    assert_eq!(
        serde_json::from_value::<ArbiterRules>(written).unwrap(),
        rules
    );
    // Named twice, the stricter counts, in either order.
    let twice = "sentinels = [{ name = \"untrusted-argument\", mode = \"observe\", severity = \"critical\" }, \"untrusted-argument\"]";
    let rules = read(twice).unwrap();
    let (_, setting) = rules.iter().next().unwrap();
    assert_eq!(
        (setting.severity, setting.mode),
        (Severity::Critical, Mode::Arbitrate)
    );
    // What is wrong is shown where it stands.
    for (line, wrong, says) in [
        (
            3,
            "{ name = \"untrusted-argument\", severity = \"info\" }",
            "`warning` at least",
        ),
        (
            3,
            "{ name = \"anomalous-tool-sequence\", severity = \"warning\", mode = \"observe\" }",
            "`critical` at least",
        ),
        (
            3,
            "{ name = \"untrusted-argument\", mode = \"watch\" }",
            "unknown variant `watch`, expected `observe` or `arbitrate`",
        ),
        (3, "{ severity = \"critical\" }", "missing field `name`"),
        (
            3,
            "{ name = \"untrusted-argument\", level = 3 }",
            "unknown field `level`",
        ),
        (
            3,
            "\"untrusted-arguments\"",
            "unknown arbiter `untrusted-arguments`",
        ),
        (3, "7", "a sentinel's name, or a table"),
    ] {
        let text = format!("sentinels = [\n  \"low-confidence-action\",\n  {wrong},\n]");
        let said = read(&text).unwrap_err();
        assert!(said.contains(&format!("line {line}")), "{said}");
        assert!(said.contains(says), "{said}");
    }
    assert!(
        read("sentinels = true")
            .unwrap_err()
            .contains("a list of sentinels")
    );
}
