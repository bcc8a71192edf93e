use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::contract::tests::{any_contract, sample};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn fields() -> FingerprintFields {
    FingerprintFields::under(
        &sample(),
        ServerIdentity::new("files").unwrap(),
        ToolName::new("write_file").unwrap(),
        sha256(b"definition"),
        object(json!({"path": "./a/b", "text": "hello"})),
        vec![NormalPath::new("./a/b").unwrap()],
    )
    .unwrap()
}

#[test]
fn changing_any_one_field_changes_the_fingerprint() {
    let original = fields();
    let changed = |change: fn(&mut FingerprintFields)| {
        let mut fields = original.clone();
        change(&mut fields);
        fields
    };
    let variants = [
        changed(|f| f.kind = ActionKind::Destructive),
        changed(|f| f.tool = ToolName::new("write_file2").unwrap()),
        changed(|f| f.server = ServerIdentity::new("files2").unwrap()),
        changed(|f| f.tool_definition = sha256(b"another definition")),
        changed(|f| f.arguments = object(json!({"path": "./a/b", "text": "hello "}))),
        changed(|f| f.paths = vec![NormalPath::new("a/c").unwrap()]),
        changed(|f| f.scope = Scope::global()),
        changed(|f| f.contract = sha256(b"another contract")),
    ];
    assert_eq!(variants.len(), FingerprintField::ALL.len());
    let mut seen = BTreeSet::from([original.fingerprint().unwrap()]);
    for (variant, &field) in variants.iter().zip(FingerprintField::ALL) {
        assert_eq!(original.differences(variant), [field]);
        assert!(seen.insert(variant.fingerprint().unwrap()), "{field}");
    }
}

#[test]
fn every_field_is_hashed_under_its_own_name() {
    let bytes = canonical::to_vec(&fields()).unwrap();
    let hashed: Value = serde_json::from_slice(&bytes).unwrap();
    let names: BTreeSet<_> = hashed
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names,
        FingerprintField::ALL.iter().map(|f| f.as_str()).collect()
    );
    assert_eq!(fields().fingerprint().unwrap().digest(), &sha256(&bytes));
}

#[test]
fn no_field_may_be_absent() {
    let written = serde_json::to_value(fields()).unwrap();
    for field in FingerprintField::ALL {
        let mut fewer = written.clone();
        fewer.as_object_mut().unwrap().remove(field.as_str());
        assert!(
            serde_json::from_value::<FingerprintFields>(fewer).is_err(),
            "{field}"
        );
        let mut null = written.clone();
        null[field.as_str()] = Value::Null;
        assert!(
            serde_json::from_value::<FingerprintFields>(null).is_err(),
            "{field}"
        );
    }
    let read: FingerprintFields = serde_json::from_value(written).unwrap();
    assert_eq!(read.fingerprint(), fields().fingerprint());
}

#[test]
fn what_cannot_be_undone_is_destructive() {
    let mut contract = sample();
    for (&reversibility, kind) in
        Reversibility::ALL
            .iter()
            .zip(["protected", "protected", "destructive"])
    {
        contract.reversibility = reversibility;
        let fields = FingerprintFields::under(
            &contract,
            ServerIdentity::new("s").unwrap(),
            ToolName::new("t").unwrap(),
            sha256(b""),
            Map::new(),
            vec![],
        );
        assert_eq!(fields.unwrap().kind.as_str(), kind);
    }
}

#[test]
fn spellings_of_one_number_are_one_argument() {
    let with = |arguments| FingerprintFields {
        arguments: object(arguments),
        ..fields()
    };
    let (whole, point) = (with(json!({"n": 1})), with(json!({"n": 1.0})));
    assert_eq!(whole.fingerprint(), point.fingerprint());
    assert_eq!(whole.differences(&point), []);
}

#[test]
fn an_argument_that_no_double_holds_is_refused() {
    let mut fields = fields();
    fields.arguments = object(json!({"account": 9_007_199_254_740_993_u64}));
    assert!(fields.fingerprint().is_err());
}

proptest! {
    #[test]
    fn equal_fields_have_equal_fingerprints_and_others_do_not(
        (a, b) in (any_contract(), any_contract()),
        (x, y) in ("[a-b]{0,2}", "[a-b]{0,2}"),
    ) {
        let make = |contract: &Contract, text: &str| FingerprintFields::under(
            contract,
            ServerIdentity::new("s").unwrap(),
            ToolName::new("t").unwrap(),
            sha256(b"d"),
            object(json!({"text": text})),
            vec![],
        ).unwrap();
        let (first, second) = (make(&a, &x), make(&b, &y));
        let same = a == b && x == y;
        prop_assert_eq!(first.fingerprint().unwrap() == second.fingerprint().unwrap(), same);
        prop_assert_eq!(first.differences(&second).is_empty(), same);
    }
}
