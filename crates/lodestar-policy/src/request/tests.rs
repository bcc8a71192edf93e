//! What is built conforms to the schema that policies were checked against.

use std::collections::BTreeSet;

use cedar_policy::Request;
use lodestar_core::contract::Contract;
use lodestar_core::id::ActionId;
use lodestar_core::name::{ActorId, ToolName};
use lodestar_core::provenance::GivenSource;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::facts::{Agent, ToolShape};
use crate::schema::{CedarSchema, Kind, Question};
use crate::trail::Trail;

fn shape() -> ToolShape {
    serde_json::from_value(json!({
        "name": "t",
        "server": "s",
        "input_schema": {
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "flag": {"type": "boolean"},
                "price": {"type": "number"},
                "list": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
                "inner": {
                    "properties": {"n": {"type": "integer"}, "m": {"type": ["string", "null"]}},
                    "required": ["n"]
                },
                "any": {}
            },
            "required": ["text"]
        }
    }))
    .unwrap()
}

fn origin(pointer: &str, label: Label) -> ArgumentProvenance {
    ArgumentProvenance {
        pointer: pointer.to_owned(),
        place: Place::Value,
        kind: ValueKind::Text,
        label,
        resembles: None,
        inside: vec![],
        inside_omitted: 0,
    }
}

fn given() -> Label {
    Label::Given {
        source: GivenSource::Task,
    }
}

/// Whether Cedar takes the request under the generated schema, and whether the arguments were fine.
fn put(arguments: &Map<String, Value>) -> (bool, bool) {
    let schema = CedarSchema::generate(&[shape()]).unwrap();
    let tool: ToolName = "t".parse().unwrap();
    let declared = schema.arguments(&tool).unwrap();
    let agent = Agent {
        actor: ActorId::new("a").unwrap(),
        device_trust: "none".to_owned(),
        execution: "mcp".to_owned(),
    };
    let contract = Contract::ungraded("project:web".parse().unwrap());
    let provenance = [
        origin("/text", given()),
        origin("/list/0/1", Label::Unknown),
        origin("/nowhere", Label::Unknown),
    ];
    let facts = Facts {
        action: ActionId::from_parts(0, [0; 10]),
        fingerprint: "00".repeat(32).parse().unwrap(),
        agent: &agent,
        tool: &tool,
        contract: &contract,
        arguments,
        paths: &["a/b".parse().unwrap()],
        provenance: &provenance,
        dependencies: &[],
        trail: Trail::default(),
    };
    let reviewed = Reviewed::of(declared, arguments);
    let context = context(&facts, None, declared, &reviewed, &Reads::everything()).unwrap();
    let request = Request::new(
        Kind::Agent.named("a"),
        Kind::Action.named(&Question::Run.action(&tool)),
        Kind::Tool.named("t"),
        context,
        Some(schema.parsed()),
    );
    (request.is_ok(), reviewed.errors.is_empty())
}

fn any_value() -> impl Strategy<Value = Value> {
    let integers = prop::collection::vec(prop::collection::vec(any::<i64>(), 0..3), 0..3);
    prop_oneof![
        ".{0,5}".prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-1_000_000i32..1_000_000).prop_map(|n| json!(f64::from(n) / 1000.0)),
        any::<f64>().prop_map(Value::from),
        Just(Value::Null),
        integers.prop_map(Value::from),
        any::<i64>().prop_map(|n| json!({"n": n})),
        any::<i64>().prop_map(|n| json!({"n": n, "m": null, "more": [n]})),
        Just(json!({"m": "x"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_request_conforms_to_the_schema_exactly_if_its_arguments_do(
        members in prop::collection::btree_map("(text|count|flag|price|list|inner|any)", any_value(), 0..6)
    ) {
        let mut arguments: Map<String, Value> = members.into_iter().collect();
        arguments.entry("text").or_insert_with(|| json!("x"));
        let (conforms, fine) = put(&arguments);
        prop_assert_eq!(conforms, fine, "{:?}", arguments);
    }
}

#[test]
fn the_worst_of_an_arguments_values_counts() {
    let read = Label::Read {
        observations: vec![],
        how: lodestar_core::provenance::Likeness::Copy,
    };
    let origins = [
        origin("/a~1b/0", given()),
        origin("/a~1b/1", read),
        origin("/c", given()),
    ];
    let names: Vec<_> = origins.iter().map(|o| argument_of(&o.pointer)).collect();
    assert_eq!(names[0].as_deref(), Some("a/b"));
    let untrusted: BTreeSet<_> = origins
        .iter()
        .filter(|o| !is_trusted(o))
        .filter_map(|o| argument_of(&o.pointer))
        .collect();
    assert_eq!(untrusted, BTreeSet::from(["a/b".into()]));
    assert!(distance(&origins[1].label) > distance(&origins[0].label));
    assert_eq!(argument_of(""), None);
}
