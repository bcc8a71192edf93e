use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::id::BeliefId;
use crate::scope::tests::any_scope;

fn any_check() -> impl Strategy<Value = Check> {
    let operand = || {
        prop::sample::select(vec!["a", "b", "$.path", "$.a.b"])
            .prop_map(|t| t.parse::<Operand>().unwrap())
    };
    prop_oneof![
        operand().prop_map(|path| Check::FileSha256 { path }),
        operand().prop_map(|path| Check::PathAbsent { path }),
        operand().prop_map(|path| Check::PathExists { path }),
        Just(Check::GitHead),
        Just(Check::GitClean),
        operand().prop_map(|remote| Check::GitRemoteUrl { remote }),
        Just(Check::ToolDefinition),
        Just(Check::Policy),
        (0..2_u8).prop_map(|n| Check::BeliefStatus {
            belief: BeliefId::from_parts(1, [n; 10])
        }),
        operand().prop_map(|name| Check::EnvUnset { name }),
    ]
}

fn any_precondition() -> impl Strategy<Value = Precondition> {
    (any_check(), any::<bool>()).prop_map(|(check, must_revalidate_at_execution)| Precondition {
        check,
        must_revalidate_at_execution,
    })
}

pub(crate) fn any_contract() -> impl Strategy<Value = Contract> {
    (
        (0..6_usize).prop_map(|index| crate::ladder::RUNGS[index].rung),
        prop::sample::select(BlastRadius::ALL),
        prop::sample::select(Reversibility::ALL),
        any_scope(),
        prop::sample::select(DataSensitivity::ALL),
        prop::collection::vec(any_precondition(), 0..5),
        prop::sample::select(Sandbox::ALL),
        prop::collection::btree_set(prop::sample::select(Permission::ALL), 0..5),
    )
        .prop_map(|fields| Contract {
            required_level: fields.0,
            blast_radius: fields.1,
            reversibility: fields.2,
            scope: fields.3,
            data_sensitivity: fields.4,
            preconditions: fields.5.into_iter().collect(),
            sandbox: fields.6,
            permissions: fields.7,
        })
}

pub(crate) fn sample() -> Contract {
    Contract {
        required_level: Rung::L3,
        blast_radius: BlastRadius::Project,
        reversibility: Reversibility::Reversible,
        scope: "project:web".parse().unwrap(),
        data_sensitivity: DataSensitivity::Private,
        preconditions: serde_json::from_value(json!([
            {"check": "file_sha256", "path": "$.path"},
            {"check": "git_head", "must_revalidate_at_execution": false},
        ]))
        .unwrap(),
        sandbox: Sandbox::WriteLocal,
        permissions: [Permission::WriteFiles, Permission::ReadFiles].into(),
    }
}

#[test]
fn a_contract_is_written_in_the_words_of_the_specification() {
    let written = json!({
        "required_level": "L3",
        "blast_radius": "project",
        "reversibility": "reversible",
        "scope": "project:web",
        "data_sensitivity": "private",
        "preconditions": [
            {"check": "file_sha256", "path": "$.path", "must_revalidate_at_execution": true},
            {"check": "git_head", "must_revalidate_at_execution": false},
        ],
        "sandbox": "write-local",
        "permissions": ["read_files", "write_files"],
    });
    assert_eq!(serde_json::to_value(sample()).unwrap(), written);
    assert_eq!(
        serde_json::from_value::<Contract>(written).unwrap(),
        sample()
    );
    let blast: Vec<_> = BlastRadius::ALL.iter().map(|b| b.as_str()).collect();
    assert_eq!(blast, ["self", "session", "project", "external"]);
}

#[test]
fn a_contract_with_a_field_too_many_or_too_few_is_refused() {
    let written = serde_json::to_value(sample()).unwrap();
    for field in written.as_object().unwrap().keys() {
        let mut fewer = written.clone();
        fewer.as_object_mut().unwrap().remove(field);
        assert!(
            serde_json::from_value::<Contract>(fewer).is_err(),
            "{field}"
        );
    }
    let mut more = written;
    more["auto_approve"] = true.into();
    assert!(serde_json::from_value::<Contract>(more).is_err());
}

#[test]
fn preconditions_take_their_own_arguments_and_no_others() {
    let read =
        |value| serde_json::from_value::<Precondition>(value).map_err(|error| error.to_string());
    assert_eq!(
        read(json!({"check": "file_sha256"})).unwrap_err(),
        "the check `file_sha256` needs `path`"
    );
    assert_eq!(
        read(json!({"check": "git_head", "path": "a"})).unwrap_err(),
        "the check `git_head` does not take `path`"
    );
    assert!(read(json!({"check": "git_head", "paht": "a"})).is_err());
    assert!(read(json!({"check": "moon_phase"})).is_err());
    assert!(read(json!({"check": "env_unset", "name": ""})).is_err());
    assert!(
        read(json!({"check": "policy"}))
            .unwrap()
            .must_revalidate_at_execution
    );
}

#[test]
fn operands_are_values_or_references() {
    assert_eq!("a.b".parse(), Ok(Operand::Literal("a.b".into())));
    assert_eq!(
        "$.a.b".parse(),
        Ok(Operand::Argument(vec!["a".into(), "b".into()]))
    );
    assert_eq!("".parse::<Operand>(), Err(OperandError::Empty));
    for bad in ["$", "$x", "$.", "$..a", "$.a."] {
        assert!(
            matches!(bad.parse::<Operand>(), Err(OperandError::Reference(_))),
            "{bad}"
        );
    }
}

#[test]
fn a_check_that_is_asked_for_twice_keeps_the_stricter_flag() {
    let set: Preconditions = serde_json::from_value(json!([
        {"check": "git_clean", "must_revalidate_at_execution": true},
        {"check": "git_clean", "must_revalidate_at_execution": false},
    ]))
    .unwrap();
    assert_eq!(
        serde_json::to_value(&set).unwrap(),
        json!([{"check": "git_clean", "must_revalidate_at_execution": true}])
    );
}

#[test]
fn the_digest_does_not_depend_on_the_order_of_preconditions() {
    let mut reversed = serde_json::to_value(sample()).unwrap();
    reversed["preconditions"].as_array_mut().unwrap().reverse();
    reversed["permissions"].as_array_mut().unwrap().reverse();
    let reversed: Contract = serde_json::from_value(reversed).unwrap();
    assert_eq!(reversed.digest().unwrap(), sample().digest().unwrap());
}

proptest! {
    #[test]
    fn a_floor_is_at_least_as_strict_as_both_and_no_stricter_than_needed(
        a in any_contract(), b in any_contract(), c in any_contract(),
    ) {
        let raised = a.clone().floor(&b);
        prop_assert!(raised.is_as_strict_as(&a));
        prop_assert!(raised.is_as_strict_as(&b));
        prop_assert_eq!(c.is_as_strict_as(&a) && c.is_as_strict_as(&b), c.is_as_strict_as(&raised));
    }

    #[test]
    fn every_field_of_a_floor_is_monotone(a in any_contract(), b in any_contract(), minimum in any_contract()) {
        let (lax, strict) = (a.clone().floor(&minimum), a.floor(&b).floor(&minimum));
        prop_assert!(strict.required_level >= lax.required_level);
        prop_assert!(strict.blast_radius >= lax.blast_radius);
        prop_assert!(strict.reversibility >= lax.reversibility);
        prop_assert!(strict.scope.contains(&lax.scope));
        prop_assert!(strict.data_sensitivity >= lax.data_sensitivity);
        prop_assert!(strict.preconditions.include(&lax.preconditions));
        prop_assert!(strict.sandbox <= lax.sandbox);
        prop_assert!(strict.permissions.is_subset(&lax.permissions));
    }

    #[test]
    fn floors_apply_in_any_order_and_any_number(a in any_contract(), b in any_contract(), c in any_contract()) {
        prop_assert_eq!(a.clone().floor(&a), a.clone());
        prop_assert_eq!(a.clone().floor(&b), b.clone().floor(&a));
        prop_assert_eq!(a.clone().floor(&b).floor(&c), a.floor(&b.floor(&c)));
    }

    #[test]
    fn strictness_is_antisymmetric(a in any_contract(), b in any_contract()) {
        prop_assert_eq!(a.is_as_strict_as(&b) && b.is_as_strict_as(&a), a == b);
    }

    #[test]
    fn nothing_below_l5_is_stricter_than_an_ungraded_tool(a in any_contract()) {
        let mut a = a;
        a.preconditions = Preconditions::default();
        if a.required_level < Rung::L5 {
            prop_assert!(Contract::ungraded(a.scope.clone()).is_as_strict_as(&a));
        }
    }

    #[test]
    fn contracts_read_back_and_different_ones_have_different_digests(a in any_contract(), b in any_contract()) {
        let json = serde_json::to_string(&a).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Contract>(&json).unwrap(), &a);
        prop_assert_eq!(a.digest().unwrap() == b.digest().unwrap(), a == b);
    }
}
