//! The generated schema.

use lodestar_policy::{CedarSchema, SchemaError, ToolShape};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{tool, tools};

#[test]
fn the_schema_of_four_tools_reads_like_this() {
    let schema = CedarSchema::generate(&tools()).unwrap();
    insta::assert_snapshot!("schema", schema.text());
}

#[test]
fn the_order_of_the_tools_does_not_matter() {
    let schema = CedarSchema::generate(&tools()).unwrap();
    let reversed: Vec<ToolShape> = tools().into_iter().rev().collect();
    let again = CedarSchema::generate(&reversed).unwrap();
    assert_eq!(schema.text(), again.text());
    assert_eq!(schema.digest(), again.digest());
    let fewer = CedarSchema::generate(&tools()[1..]).unwrap();
    assert_ne!(schema.digest(), fewer.digest());
}

#[test]
fn two_tools_of_one_name_have_no_schema() {
    let twice = [tools()[0].clone(), tools()[0].clone()];
    let error = CedarSchema::generate(&twice).unwrap_err();
    assert!(matches!(error, SchemaError::DuplicateTool { .. }));
    assert_eq!(
        error.to_string(),
        "two tools are called `fs.read`; policies could not tell them apart, rename one"
    );
}

fn arguments(schema: Value) -> String {
    let shape = tool("t", "s", &[], schema);
    let schema = CedarSchema::generate(&[shape]).unwrap();
    let text = schema.text();
    let start = text.find("  args: ").unwrap() + "  args: ".len();
    let end = start + text[start..].find("\n}").unwrap();
    text[start..end].to_owned()
}

fn one(schema: Value) -> String {
    let text = arguments(json!({"properties": {"x": schema}, "$defs": {
        "name": {"type": "string"},
        "loop": {"$ref": "#/$defs/loop"},
        "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}},
        "forest": {"type": "array", "items": {"$ref": "#/$defs/forest"}}
    }}));
    let inner = text.strip_prefix("{ \"x\"?: ").unwrap();
    inner.strip_suffix(" }").unwrap().to_owned()
}

#[test]
fn each_json_type_has_a_cedar_type() {
    for (schema, expected) in [
        (json!({"type": "string"}), "String"),
        (json!({"type": "string", "enum": ["a"]}), "String"),
        (json!({"enum": ["a", "b"]}), "String"),
        (json!({"const": "a"}), "String"),
        (json!({"type": "integer"}), "Long"),
        (json!({"type": "boolean"}), "Bool"),
        (json!({"type": "number"}), "decimal"),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            "Set<Long>",
        ),
        (json!({"type": ["string", "null"]}), "String"),
        (json!({"type": ["integer"]}), "Long"),
        (
            json!({"anyOf": [{"type": "null"}, {"type": "integer"}]}),
            "Long",
        ),
        (
            json!({"oneOf": [{"$ref": "#/$defs/name"}, {"type": "null"}]}),
            "String",
        ),
        (json!({"$ref": "#/$defs/name"}), "String"),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}}, "required": ["a", "b"]}),
            "{ \"a\": String, \"b\"?: String }",
        ),
        (json!({"properties": {}}), "{ }"),
        (json!({"enum": ["a", 1]}), "Opaque"),
        (json!({"type": "object"}), "Opaque"),
        (json!({"type": "array"}), "Opaque"),
        (
            json!({"type": "array", "items": {"type": ["string", "null"]}}),
            "Opaque",
        ),
        (json!({"type": ["string", "integer"]}), "Opaque"),
        (json!({"type": "null"}), "Opaque"),
        (json!({"type": 5}), "Opaque"),
        (json!({}), "Opaque"),
        (json!(true), "Opaque"),
        (json!("string"), "Opaque"),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            "Opaque",
        ),
        (json!({"$ref": "#/$defs/missing"}), "Opaque"),
        (json!({"$ref": "https://example.com/schema"}), "Opaque"),
        (json!({"$ref": "#/$defs/loop"}), "Opaque"),
        (json!({"$ref": 5}), "Opaque"),
    ] {
        assert_eq!(one(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn a_cyclic_schema_ends_in_an_opaque_value() {
    let tree = one(json!({"$ref": "#/$defs/tree"}));
    assert!(tree.ends_with("Opaque } } } } } } } }"), "{tree}");
    let forest = one(json!({"$ref": "#/$defs/forest"}));
    assert!(
        forest.starts_with("Set<Set<") && forest.contains("Opaque"),
        "{forest}"
    );
}

#[test]
fn a_schema_that_says_nothing_usable_makes_all_arguments_opaque() {
    let wide = |count: usize| -> Value {
        let properties = (0..count).map(|at| (format!("p{at}"), json!({"type": "string"})));
        json!({"properties": Value::Object(properties.collect())})
    };
    // Each level refers to the next ten times: ten million types, were they all resolved.
    let mut defs = serde_json::Map::new();
    for at in 0..7 {
        let next = (0..10).map(|n| {
            (
                format!("p{n}"),
                json!({"$ref": format!("#/$defs/d{}", at + 1)}),
            )
        });
        defs.insert(
            format!("d{at}"),
            json!({"properties": Value::Object(next.collect())}),
        );
    }
    defs.insert("d7".to_owned(), json!({"type": "string"}));
    let bomb = json!({"$ref": "#/$defs/d0", "$defs": defs});
    let long = json!({"properties": {"x".repeat(300): {"type": "string"}}});
    for schema in [
        json!(null),
        json!(5),
        json!([]),
        json!("x"),
        json!(false),
        json!({"type": "string"}),
        json!({"type": "array", "items": {}}),
        json!({"anyOf": [{"type": "object"}, {"type": "array"}]}),
        json!({"properties": 5}),
        json!({"$ref": "#"}),
        wide(257),
        wide(100_000),
        bomb,
        long,
    ] {
        assert_eq!(arguments(schema), "Opaque");
    }
    assert!(arguments(wide(256)).contains("\"p255\"?: String"));
    for empty in [json!(true), json!({}), json!({"type": "object"})] {
        assert_eq!(arguments(empty), "{ }");
    }
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "string", "integer", "number", "boolean", "null", "object", "array", "odd"
        ])
        .prop_map(|name| json!({"type": name})),
        prop::sample::select(vec!["#", "#/$defs/a", "#/properties/x", "", "#/%"])
            .prop_map(|to| json!({"$ref": to})),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map(".{0,6}", inner.clone(), 0..4)
                .prop_map(|p| json!({"type": "object", "properties": p})),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|any| json!({"anyOf": any})),
            (inner.clone(), inner).prop_map(
                |(a, b)| json!({"properties": {"x": a}, "$defs": {"a": b}, "required": ["x", 5]})
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_schema_under_every_name_gives_a_schema_that_cedar_takes(
        schema in any_schema(), name in ".{1,12}"
    ) {
        let shape = tool(&name, "s", &[], schema);
        prop_assert!(CedarSchema::generate(&[shape]).is_ok());
    }
}
