//! The gate's table, in full: every rung, every kind of answer, every thing an arbiter can say.

use lodestar_core::ladder::{Rung, Severity, Verdict};
use lodestar_policy::{ErrorKind, Signal, Tightener};
use serde_json::json;

use crate::world::{Call, RUNGS, gate, reading};

const RUN: &str = r#"@id("run") permit (principal, action in Action::"run", resource);"#;
const ASK: &str = r#"@id("ask") permit (principal, action in Action::"ask", resource);"#;
const FORBID: &str = r#"@id("no") forbid (principal, action, resource);"#;
const FORBID_RUN: &str = r#"@id("no-run") forbid (principal, action in Action::"run", resource);"#;
const PERMIT_ERROR: &str = r#"@id("broken-permit") permit (principal, action, resource)
    when { 9223372036854775807 + 1 + context.level > 0 };"#;
const FORBID_ERROR: &str = r#"@id("broken-forbid") forbid (principal, action, resource)
    when { 9223372036854775807 + 1 + context.level > 0 };"#;

/// Name, policies, verdicts from L0 to L5.
const TABLE: &[(&str, &[&str], &str)] = &[
    ("run", &[RUN], "allow allow allow allow hold deny"),
    ("ask", &[ASK], "hold hold hold hold hold deny"),
    ("both", &[RUN, ASK], "allow allow allow allow hold deny"),
    ("neither", &[], "deny deny deny deny hold deny"),
    ("forbid", &[FORBID], "deny deny deny deny deny deny"),
    (
        "forbid beside permits",
        &[RUN, ASK, FORBID],
        "deny deny deny deny deny deny",
    ),
    (
        "forbidden to run, free to ask",
        &[FORBID_RUN, ASK],
        "hold hold hold hold deny deny",
    ),
    (
        "error in a permit",
        &[PERMIT_ERROR],
        "deny deny deny deny hold deny",
    ),
    (
        "run, error in a permit",
        &[RUN, PERMIT_ERROR],
        "hold hold hold hold hold deny",
    ),
    (
        "ask, error in a permit",
        &[ASK, PERMIT_ERROR],
        "hold hold hold hold hold deny",
    ),
    (
        "error in a forbid",
        &[FORBID_ERROR],
        "deny deny deny deny deny deny",
    ),
    (
        "run, error in a forbid",
        &[RUN, FORBID_ERROR],
        "deny deny deny deny deny deny",
    ),
    (
        "ask, error in a forbid",
        &[ASK, FORBID_ERROR],
        "deny deny deny deny deny deny",
    ),
];

/// What arbiters can say, and what is left of each verdict after it.
const HEARD: &[(&[Severity], [&str; 3])] = {
    use Severity::{Critical, Info, Warning};
    &[
        (&[], ["allow", "hold", "deny"]),
        (&[Info], ["allow", "hold", "deny"]),
        (&[Warning], ["hold", "hold", "deny"]),
        (&[Critical], ["deny", "deny", "deny"]),
        (&[Info, Info], ["allow", "hold", "deny"]),
        (&[Info, Warning], ["hold", "hold", "deny"]),
        (&[Info, Critical], ["deny", "deny", "deny"]),
        (&[Warning, Info], ["hold", "hold", "deny"]),
        (&[Warning, Warning], ["hold", "hold", "deny"]),
        (&[Warning, Critical], ["deny", "deny", "deny"]),
        (&[Critical, Info], ["deny", "deny", "deny"]),
        (&[Critical, Warning], ["deny", "deny", "deny"]),
        (&[Critical, Critical], ["deny", "deny", "deny"]),
    ]
};

fn heard(severities: &[Severity]) -> Vec<Signal> {
    severities
        .iter()
        .enumerate()
        .map(|(at, &severity)| Signal {
            arbiter: format!("sentinel-{at}"),
            severity,
            reason: "something".to_owned(),
        })
        .collect()
}

#[test]
fn the_gate_answers_as_the_table_says() {
    let mut judged = 0;
    for (name, policies, verdicts) in TABLE {
        let gate = gate(&policies.join("\n"));
        for (rung, plain) in RUNGS.into_iter().zip(verdicts.split_whitespace()) {
            for (severities, after) in HEARD {
                let expected = match plain {
                    "allow" => after[0],
                    "hold" => after[1],
                    _ => after[2],
                };
                let judgement = reading(rung).judge_hearing(&gate, &heard(severities));
                let what = format!("{name} on {rung}, hearing {severities:?}: {judgement:?}");
                assert_eq!(judgement.verdict.as_str(), expected, "{what}");
                let held = judgement.verdict == Verdict::Hold;
                assert_eq!(judgement.requirement.is_some(), held, "{what}");
                for pair in judgement.tightened.windows(2) {
                    assert_eq!(pair[0].to, pair[1].from, "{what}");
                }
                for step in &judgement.tightened {
                    assert!(step.from < step.to, "{what}");
                }
                if let Some(last) = judgement.tightened.last() {
                    assert_eq!(last.to, judgement.verdict, "{what}");
                }
                assert_eq!(judgement.heard.len(), severities.len(), "{what}");
                judged += 1;
            }
        }
    }
    assert_eq!(judged, TABLE.len() * 6 * HEARD.len());
}

#[test]
fn whatever_tightened_is_named() {
    let by = |call: &Call, policies: &[&str], heard: &[Signal]| -> Vec<Tightener> {
        let judgement = call.judge_hearing(&gate(&policies.join("\n")), heard);
        judgement.tightened.into_iter().map(|t| t.by).collect()
    };
    let nothing: [Tightener; 0] = [];
    assert_eq!(by(&reading(Rung::L3), &[RUN], &[]), nothing);
    assert_eq!(by(&reading(Rung::L4), &[RUN], &[]), [Tightener::Floor]);
    assert_eq!(by(&reading(Rung::L5), &[ASK], &[]), [Tightener::Floor]);
    // Silence on L4 is milder than silence below: nothing tightened.
    assert_eq!(by(&reading(Rung::L4), &[], &[]), nothing);
    let broken = [Tightener::EvaluationError];
    assert_eq!(by(&reading(Rung::L0), &[RUN, PERMIT_ERROR], &[]), broken);
    assert_eq!(by(&reading(Rung::L4), &[FORBID_ERROR], &[]), broken);
    let critical = heard(&[Severity::Warning, Severity::Critical]);
    assert_eq!(
        by(&reading(Rung::L0), &[RUN], &critical),
        [
            Tightener::Arbiter("sentinel-0".to_owned()),
            Tightener::Arbiter("sentinel-1".to_owned())
        ]
    );
}

#[test]
fn the_deciding_policies_are_those_of_the_question_that_decided() {
    let decided = |rung, policies: &[&str]| -> Vec<String> {
        let judgement = reading(rung).judge(&gate(&policies.join("\n")));
        let ids = judgement.policies.iter();
        ids.map(|id| id.as_str().to_owned()).collect()
    };
    let unnamed = "permit (principal, action, resource);";
    assert_eq!(decided(Rung::L0, &[RUN, ASK, unnamed]), ["policy2", "run"]);
    assert_eq!(decided(Rung::L0, &[ASK]), ["ask"]);
    assert_eq!(decided(Rung::L0, &[ASK, FORBID_RUN]), ["ask", "no-run"]);
    assert_eq!(decided(Rung::L0, &[RUN, ASK, FORBID]), ["no"]);
    assert_eq!(decided(Rung::L4, &[RUN, ASK]), ["ask"]);
    assert_eq!(decided(Rung::L4, &[RUN]), ["run"]);
    assert_eq!(decided(Rung::L4, &[RUN, ASK, FORBID_RUN]), ["no-run"]);
    assert!(decided(Rung::L4, &[]).is_empty());
}

#[test]
fn a_tool_that_the_gate_does_not_know_is_denied_on_every_rung() {
    let gate = gate(&[RUN, ASK].join("\n"));
    for rung in RUNGS {
        let judgement = Call::new("fs.raed", rung, json!({"path": "a"})).judge(&gate);
        assert_eq!(judgement.verdict, Verdict::Deny);
        assert_eq!(judgement.errors.len(), 1);
        assert_eq!(judgement.errors[0].kind, ErrorKind::Request);
        assert_eq!(
            judgement.errors[0].message,
            "the gate does not know the tool `fs.raed`"
        );
    }
}

#[test]
fn a_gate_without_tools_denies_everything() {
    let preset = lodestar_policy::Policy::preset(3).unwrap();
    let gate = lodestar_policy::Gate::new(
        preset,
        vec![],
        lodestar_policy::ArbiterRules::none(),
        crate::world::requirement(1, 60),
    );
    assert_eq!(
        reading(Rung::L0).judge(&gate.unwrap()).verdict,
        Verdict::Deny
    );
}
