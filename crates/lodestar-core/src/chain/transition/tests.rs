use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::chain::{Axes, Freshness, Retrieval, Security, Truth};

/// The table once more, transcribed from the specification by itself: `from>to authority…`, with a
/// letter for the condition where there is one (g gate, r rule, d direct evidence, n newer direct
/// observation, c clock).
const TRANSCRIPT: &str = "
    truth unverified>supported user probe auto_observation/g policy/r
    truth unverified>contradicted user probe sentinel/d reflection/d
    truth supported>contradicted user probe sentinel/d reflection/d
    truth supported>superseded user reflection auto_observation/n
    truth contradicted>superseded user reflection auto_observation/n
    truth contradicted>supported user probe
    retrieval hidden>restricted user reflection
    retrieval restricted>normal user probe
    retrieval normal>privileged_only user policy
    retrieval normal>restricted user policy sentinel
    retrieval normal>hidden user policy sentinel
    retrieval restricted>hidden user policy sentinel
    retrieval privileged_only>restricted user policy
    retrieval hidden>blocked user policy sentinel
    retrieval restricted>blocked user policy sentinel
    retrieval normal>blocked user policy sentinel
    retrieval privileged_only>blocked user policy sentinel
    retrieval blocked>hidden user
    security clean>suspicious sentinel probe user
    security suspicious>quarantined sentinel probe user
    security clean>quarantined sentinel probe user
    security quarantined>malicious sentinel user
    security suspicious>clean user
    security quarantined>clean user
    freshness fresh>stale system/c
    freshness stale>expired system/c
    freshness stale>fresh user probe auto_observation
    freshness expired>fresh user probe auto_observation
";

fn transcript() -> BTreeMap<String, Condition> {
    let mut permitted = BTreeMap::new();
    for line in TRANSCRIPT.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let (axis, step) = (words.next().unwrap(), words.next().unwrap());
        for word in words {
            let (authority, condition) = match word.split_once('/') {
                None => (word, Condition::None),
                Some((authority, "g")) => (authority, Condition::ThroughGate),
                Some((authority, "r")) => (authority, Condition::ThroughPolicyRule),
                Some((authority, "d")) => (authority, Condition::DirectEvidenceOnly),
                Some((authority, "n")) => (authority, Condition::NewerDirectObservation),
                Some((authority, "c")) => (authority, Condition::ByClock),
                Some(other) => panic!("{other:?}"),
            };
            let unseen = permitted.insert(format!("{axis} {step} {authority}"), condition);
            assert_eq!(unseen, None, "{line}");
        }
    }
    permitted
}

#[test]
fn the_table_and_its_transcript_agree_on_every_state_target_and_authority() {
    let mut left = transcript();
    let (mut checked, mut permitted) = (0, 0);
    for &axis in Axis::ALL {
        let before = (checked, permitted);
        for from in State::all(axis) {
            for to in State::all(axis) {
                for &authority in AuthorityKind::ALL {
                    let key = format!("{axis} {}>{} {authority}", from.word(), to.word());
                    let answer = condition(AxisMove::new(from, to).unwrap(), authority);
                    assert_eq!(answer.ok(), left.remove(&key), "{key}");
                    checked += 1;
                    permitted += usize::from(answer.is_ok());
                }
            }
        }
        println!(
            "{axis}: {} of {} permitted",
            permitted - before.1,
            checked - before.0
        );
    }
    println!("all axes: {permitted} of {checked} permitted");
    assert!(
        left.is_empty(),
        "the transcript has rows that name no state: {left:?}"
    );
    assert_eq!(
        (checked, permitted),
        (7 * (16 + 25 + 16 + 9), 20 + 30 + 13 + 8)
    );
}

/// Every state that a belief can be in.
fn whole_states() -> Vec<Axes> {
    let mut states = Vec::new();
    for &truth in Truth::ALL {
        for &retrieval in Retrieval::ALL {
            for &security in Security::ALL {
                for &freshness in Freshness::ALL {
                    states.push(Axes {
                        truth,
                        retrieval,
                        security,
                        freshness,
                    });
                }
            }
        }
    }
    states
}

/// Where a whole state stands, axis by axis.
fn positions(axes: Axes) -> [State; 4] {
    [
        axes.truth.into(),
        axes.retrieval.into(),
        axes.security.into(),
        axes.freshness.into(),
    ]
}

#[test]
fn out_of_every_whole_state_exactly_the_moves_of_the_transcript_are_permitted() {
    let transcript = transcript();
    let targets: Vec<_> = Axis::ALL.iter().flat_map(|&a| State::all(a)).collect();
    let (mut moves, mut permitted, mut across) = (0, 0, 0);
    for axes in whole_states() {
        for (&to, from) in targets
            .iter()
            .flat_map(|to| positions(axes).map(|from| (to, from)))
        {
            let (axis, goal) = (from.axis(), to.axis());
            if axis != goal {
                let refused = Err(StateError::TwoAxes(axis, goal));
                assert_eq!(AxisMove::new(from, to), refused, "{axes:?}");
                across += 1;
                continue;
            }
            let step = AxisMove::new(from, to).unwrap();
            for &authority in AuthorityKind::ALL {
                let key = format!("{axis} {}>{} {authority}", from.word(), to.word());
                let expected = transcript.get(&key).copied();
                let expected = expected.ok_or(TransitionRefused { step, authority });
                assert_eq!(condition(step, authority), expected, "{axes:?} {key}");
                moves += 1;
                permitted += usize::from(expected.is_ok());
            }
        }
    }
    println!(
        "{} whole states, {} targets, {} authorities: {permitted} of {moves} moves permitted; \
         {across} moves across axes, none possible",
        whole_states().len(),
        targets.len(),
        AuthorityKind::ALL.len(),
    );
    assert_eq!((whole_states().len(), targets.len()), (240, 16));
    assert_eq!((moves, across), (240 * 16 * 7, 240 * 16 * 3));
    // Each row of an axis counts once for every state of the other three.
    assert_eq!(permitted, 20 * 60 + 30 * 48 + 13 * 60 + 8 * 80);
}

#[test]
fn no_row_stands_twice_and_none_stays_in_place() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        assert!(
            seen.insert(format!("{:?} {}", row.step, row.authority)),
            "{row:?}"
        );
        assert_ne!(row.step.from(), row.step.to());
    }
}

#[test]
fn superseded_and_malicious_are_the_only_dead_ends() {
    let terminal: Vec<_> = Axis::ALL
        .iter()
        .flat_map(|&axis| State::all(axis))
        .filter(|&state| is_terminal(state))
        .map(State::word)
        .collect();
    assert_eq!(terminal, ["superseded", "malicious"]);
}

#[test]
fn reflection_never_reaches_the_default_context() {
    let normal = State::from(Retrieval::Normal);
    assert!(
        rows().all(|row| row.authority != AuthorityKind::Reflection || row.step.to() != normal)
    );
}

#[test]
fn a_refusal_names_axis_from_to_and_authority() {
    let step = AxisMove::new(Truth::Superseded, Truth::Supported).unwrap();
    let refused = condition(step, AuthorityKind::Sentinel).unwrap_err();
    assert_eq!(
        refused,
        TransitionRefused {
            step,
            authority: AuthorityKind::Sentinel
        }
    );
    assert_eq!(
        refused.to_string(),
        "`sentinel` may not move truth from `superseded` to `supported`"
    );
}

#[test]
fn a_move_stays_on_its_axis() {
    let (truth, retrieval) = (
        State::from(Truth::Supported),
        State::from(Retrieval::Normal),
    );
    assert_eq!(
        AxisMove::new(truth, retrieval),
        Err(StateError::TwoAxes(Axis::Truth, Axis::Retrieval))
    );
    assert!(
        serde_json::from_str::<AxisMove>(r#"{"axis":"truth","from":"normal","to":"supported"}"#)
            .is_err()
    );
    let json = r#"{"axis":"truth","from":"unverified","to":"supported"}"#;
    let step: AxisMove = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&step).unwrap(), json);
}

#[test]
fn the_reference_page_has_a_row_for_every_permitted_move() {
    let page = reference_page();
    let steps: BTreeSet<_> = rows()
        .map(|row| format!("| {} | {} |", row.step.from().word(), row.step.to().word()))
        .collect();
    for step in &steps {
        assert_eq!(page.matches(step.as_str()).count(), 1, "{step}");
    }
    assert_eq!(steps.len(), 28);
    assert!(page.contains("| unverified | supported | user, probe, auto_observation (through the gate), policy (through a promotion rule) |"));
    assert!(page.contains("Nothing leads out of `malicious`."));
}
