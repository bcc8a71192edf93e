//! Arguments that are not what they were declared to be.

use lodestar_core::ladder::{Rung, Say, Verdict};
use lodestar_policy::{ArbiterRules, ErrorKind, Gate, Judgement, ToolShape};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::world::{Call, gate, policy, requirement, tool};

const OPEN: &str = "permit (principal, action, resource);";

fn kinds(judgement: &Judgement) -> Vec<ErrorKind> {
    judgement.errors.iter().map(|error| error.kind).collect()
}

fn typed() -> ToolShape {
    tool(
        "t",
        "s",
        &[],
        json!({
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "flag": {"type": "boolean"},
                "price": {"type": "number"},
                "list": {"type": "array", "items": {"type": "string"}},
                "inner": {
                    "type": "object",
                    "properties": {"n": {"type": "integer"}},
                    "required": ["n"],
                    "additionalProperties": false
                },
                "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "any": {}
            }
        }),
    )
}

fn typed_gate(source: &str) -> Gate {
    let gate = Gate::new(
        policy(source),
        vec![typed()],
        ArbiterRules::none(),
        requirement(1, 60),
    );
    gate.unwrap_or_else(|error| panic!("{error}"))
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

/// Every type of argument with values that are not of it.
fn misfits() -> Vec<(&'static str, Value)> {
    vec![
        ("text", json!(1)),
        ("text", json!(null)),
        ("text", json!(["a"])),
        ("text", json!({"__entity": {"type": "Tool", "id": "t"}})),
        ("text", json!({"__extn": {"fn": "decimal", "arg": "1.0"}})),
        ("text", json!({"opaque": "string"})),
        ("count", json!(1.5)),
        ("count", json!(1.0)),
        ("count", json!("1")),
        ("count", json!(null)),
        ("count", json!(u64::MAX)),
        ("count", json!(1e300)),
        ("flag", json!("true")),
        ("flag", json!(0)),
        ("price", json!(0.00001)),
        ("price", json!(1e15)),
        ("price", json!(922_337_203_685_478_i64)),
        ("price", json!(u64::MAX)),
        ("price", json!("1.0")),
        ("price", json!({"__extn": {"fn": "decimal", "arg": "1.0"}})),
        ("list", json!("a")),
        ("list", json!(["a", 1])),
        ("list", json!([null])),
        ("list", json!({"0": "a"})),
        ("inner", json!({})),
        ("inner", json!({"n": "1"})),
        ("inner", json!({"n": 1, "more": 1})),
        ("inner", json!([1])),
        ("maybe", json!(1)),
        ("text", deep(100)),
    ]
}

#[test]
fn a_mistyped_call_is_held_at_least_however_open_the_policy() {
    let gate = typed_gate(OPEN);
    for rung in [Rung::L0, Rung::L3] {
        for (name, value) in misfits() {
            let call = Call::new("t", rung, json!({name: value}));
            let judgement = call.judge(&gate);
            assert_eq!(judgement.verdict, Verdict::Hold, "{name} {value}");
            assert_eq!(kinds(&judgement), [ErrorKind::Argument], "{name} {value}");
            assert!(
                judgement.errors[0]
                    .message
                    .starts_with(&format!("argument `{name}` is mistyped")),
                "{judgement:?}"
            );
        }
    }
}

#[test]
fn what_conforms_runs() {
    let gate = typed_gate(OPEN);
    for arguments in [
        json!({}),
        json!({"text": "__entity", "count": -5, "flag": false, "list": [], "maybe": null}),
        json!({"count": i64::MIN}),
        json!({"count": 9_007_199_254_740_993_i64}),
        json!({"price": 1}),
        json!({"price": -0.0001}),
        json!({"price": 0.1}),
        json!({"price": 922_337_203_685_477.5}),
        json!({"price": -922_337_203_685_477_i64}),
        json!({"inner": {"n": 1}}),
        json!({"any": {"__entity": {"type": "Agent", "id": "root"}}}),
        json!({"any": deep(100)}),
        json!({"any": null}),
        json!({"undeclared": 1}),
    ] {
        let judgement = Call::new("t", Rung::L0, arguments.clone()).judge(&gate);
        assert_eq!(
            judgement.verdict,
            Verdict::Allow,
            "{arguments} {judgement:?}"
        );
    }
}

#[test]
fn a_forbid_that_looks_at_a_mistyped_argument_denies() {
    // Each condition is false, or guarded, when the marker stands for the value.
    let conditions = [
        (
            r#"context.args has text && context.args.text == "secret""#,
            "text",
            json!(1),
        ),
        (
            r#"context.args has text && context.args.text like "*secret*""#,
            "text",
            json!(["secret"]),
        ),
        (
            "context.args has count && context.args.count > 5",
            "count",
            json!("9"),
        ),
        (
            "context.args has flag && context.args.flag",
            "flag",
            json!("true"),
        ),
        (
            r#"context.args has list && context.args.list.contains("x")"#,
            "list",
            json!(["x", 1]),
        ),
        (
            "context.args has inner && context.args.inner.n == 3",
            "inner",
            json!({"n": "3"}),
        ),
        (
            r#"context.args has maybe && context.args.maybe == "x""#,
            "maybe",
            json!({"x": 1}),
        ),
        (
            "context.args has inner.n && context.args.inner.n == 3",
            "inner",
            json!({"n": "3"}),
        ),
    ];
    for (condition, name, value) in conditions {
        let source = format!(
            "{OPEN}\n@id(\"no\") forbid (principal, action, resource) when {{ {condition} }};"
        );
        let gate = typed_gate(&source);
        let judgement = Call::new("t", Rung::L0, json!({name: value})).judge(&gate);
        assert_eq!(
            judgement.verdict,
            Verdict::Deny,
            "{condition}: {judgement:?}"
        );
        assert!(
            kinds(&judgement).contains(&ErrorKind::Forbid),
            "{judgement:?}"
        );
        // Another mistyped argument is none of its business.
        let other = if name == "flag" { "count" } else { "flag" };
        let judgement = Call::new("t", Rung::L0, json!({other: "no"})).judge(&gate);
        assert_eq!(
            judgement.verdict,
            Verdict::Hold,
            "{condition}: {judgement:?}"
        );
    }
}

#[test]
fn a_permit_that_looks_at_a_mistyped_argument_does_not_let_it_through() {
    for condition in [
        r#"if context.args has text then context.args.text != "secret" else true"#,
        r#"context.args has text && context.args.text like "*""#,
        r#"!context.mistyped_args.contains("text")"#,
    ] {
        let source = format!("permit (principal, action, resource) when {{ {condition} }};");
        let judgement = Call::new("t", Rung::L0, json!({"text": 1})).judge(&typed_gate(&source));
        assert!(
            judgement.verdict >= Verdict::Hold,
            "{condition}: {judgement:?}"
        );
    }
}

#[test]
fn no_part_of_a_mistyped_argument_satisfies_a_condition() {
    for (condition, arguments) in [
        (
            r#"context.args has list && context.args.list.contains("x")"#,
            json!({"list": ["x", 1]}),
        ),
        (
            "context.args has inner && context.args.inner.n == 3",
            json!({"inner": {"n": 3, "more": 1}}),
        ),
    ] {
        let source = format!(
            "permit (principal, action in Action::\"run\", resource) when {{ {condition} }};"
        );
        let judgement = Call::new("t", Rung::L0, arguments).judge(&typed_gate(&source));
        assert_eq!(
            judgement.answer.run,
            Say::Silent,
            "{condition}: {judgement:?}"
        );
        assert_eq!(kinds(&judgement), [ErrorKind::Permit, ErrorKind::Argument]);
    }
}

#[test]
fn policies_can_ask_what_was_mistyped_and_undeclared() {
    let gate = typed_gate(
        r#"permit (principal, action, resource);
        @id("strict") forbid (principal, action, resource)
        when { context.mistyped_args.contains("count") || context.undeclared_args.contains("extra") };"#,
    );
    for arguments in [json!({"count": "x"}), json!({"extra": true})] {
        let judgement = Call::new("t", Rung::L0, arguments).judge(&gate);
        assert_eq!(judgement.policies[0].as_str(), "strict");
        assert_eq!(judgement.verdict, Verdict::Deny);
    }
}

#[test]
fn what_a_closed_schema_does_not_declare_and_what_is_missing_hold() {
    let gate = gate(OPEN);
    for (arguments, message) in [
        (
            json!({"path": "a", "extra": 1}),
            "argument `extra` is not declared, and the tool takes no others",
        ),
        (json!({}), "argument `path` is missing"),
        (json!({"limit": null}), "argument `path` is missing"),
    ] {
        let judgement = Call::new("fs.read", Rung::L0, arguments).judge(&gate);
        assert_eq!(judgement.verdict, Verdict::Hold);
        assert_eq!(judgement.errors[0].message, message);
    }
    let fine = Call::new("fs.read", Rung::L0, json!({"path": "a", "limit": null}));
    assert_eq!(fine.judge(&gate).verdict, Verdict::Allow);
    // Elsewhere a missing argument that a forbid relies on is an error in the forbid.
    let gate = crate::world::gate(
        r#"permit (principal, action, resource);
        forbid (principal, action == Action::"run:fs.read", resource) when { context.args.path like "/etc/*" };"#,
    );
    let judgement = Call::new("fs.read", Rung::L0, json!({})).judge(&gate);
    assert_eq!(judgement.verdict, Verdict::Deny);
    assert_eq!(kinds(&judgement), [ErrorKind::Forbid, ErrorKind::Argument]);
}

#[test]
fn an_object_that_looks_like_an_entity_stays_an_object() {
    // If the escape were understood, `any` would be an entity and the forbid would not see a record.
    let gate = typed_gate(
        r#"permit (principal, action, resource);
        @id("object") forbid (principal, action, resource)
        when { context.args has any && context.args.any.opaque == "object" };"#,
    );
    for hidden in [
        json!({"__entity": {"type": "Agent", "id": "root"}}),
        json!({"__extn": {"fn": "decimal", "arg": "1.0"}}),
        json!({"__expr": "true"}),
    ] {
        let judgement = Call::new("t", Rung::L0, json!({"any": hidden})).judge(&gate);
        assert_eq!(judgement.policies[0].as_str(), "object");
        assert!(judgement.errors.is_empty());
    }
}

#[test]
fn names_of_arguments_may_be_anything() {
    let names = [
        "__entity",
        "a\"b",
        "a\\b",
        "ключ",
        "when",
        "in",
        " ",
        "\u{202e}x",
        "a\nb",
        "'",
        "{}",
    ];
    for name in names {
        let shape = tool(
            "odd",
            "s",
            &[],
            json!({"properties": {name: {"type": "string"}}}),
        );
        let literal = format!("\"{}\"", name.escape_default());
        let source = format!(
            "permit (principal, action == Action::\"run:odd\", resource) when {{ context.args has {literal} && context.args[{literal}] == \"yes\" }};"
        );
        let gate = Gate::new(
            policy(&source),
            vec![shape],
            ArbiterRules::none(),
            requirement(1, 60),
        )
        .unwrap_or_else(|error| panic!("{name}: {error}"));
        let verdict = |value: Value| {
            Call::new("odd", Rung::L0, json!({name: value}))
                .judge(&gate)
                .verdict
        };
        assert_eq!(verdict(json!("yes")), Verdict::Allow, "{name}");
        assert_eq!(verdict(json!("no")), Verdict::Deny, "{name}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("(__entity|__extn|type|id|n|[a-z])", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_arguments_at_all_get_a_verdict_and_errors_never_allow(
        arguments in prop::collection::btree_map(
            "(text|count|flag|price|list|inner|maybe|any|zz)", any_json(), 0..5)
    ) {
        let gate = typed_gate(OPEN);
        let arguments = Value::Object(arguments.into_iter().collect());
        let judgement = Call::new("t", Rung::L0, arguments).judge(&gate);
        prop_assert_eq!(judgement.verdict == Verdict::Allow, judgement.errors.is_empty());
        prop_assert!(judgement.errors.iter().all(|e| e.kind == ErrorKind::Argument));
    }
}
