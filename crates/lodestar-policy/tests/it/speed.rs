//! What a judgement costs, measured against one bare answer of Cedar over all policies.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicySet, Request, RestrictedExpression,
};
use lodestar_core::ladder::{Rung, Verdict};
use lodestar_core::provenance::{ArgumentProvenance, GivenSource, Label, Place, ValueKind};
use lodestar_policy::{ArbiterRules, Gate, ToolShape};
use serde_json::json;

use crate::world::{Call, policy, requirement, tool};

/// The least time that a piece of work took: what it costs when nothing else runs.
fn least(mut work: impl FnMut()) -> Duration {
    (0..400)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .unwrap()
}

fn twenty_tools() -> Vec<ToolShape> {
    let schema = json!({
        "properties": {
            "path": {"type": "string"}, "content": {"type": "string"},
            "count": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["path"]
    });
    (0..20)
        .map(|at| tool(&format!("tool{at}"), "server", &["all"], schema.clone()))
        .collect()
}

/// Five policies on each of twenty tools.
fn hundred_policies() -> String {
    let mut text = String::new();
    for at in 0..20 {
        let _ = write!(
            text,
            r#"permit (principal, action == Action::"run:tool{at}", resource) when {{ context.args.path like "src/*" && context.level <= 3 }};
permit (principal, action == Action::"ask:tool{at}", resource) when {{ context.level <= 3 }};
forbid (principal, action == Action::"run:tool{at}", resource) when {{ context.untrusted_args.contains("path") }};
forbid (principal, action == Action::"ask:tool{at}", resource) when {{ context.sensitivity == "secret" }};
permit (principal, action == Action::"run:tool{at}", resource) when {{ context.args has count && context.args.count < 10 }};
"#
        );
    }
    text
}

fn bare_answer(source: &str) -> Duration {
    let policies: PolicySet = source.parse().unwrap();
    assert_eq!(policies.policies().count(), 100);
    let uid = |text: &str| text.parse::<EntityUid>().unwrap();
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let args = RestrictedExpression::new_record([("path".to_owned(), text("src/a.rs"))]).unwrap();
    let context = Context::from_pairs([
        ("args".to_owned(), args),
        ("level".to_owned(), RestrictedExpression::new_long(3)),
        ("sensitivity".to_owned(), text("private")),
        (
            "untrusted_args".to_owned(),
            RestrictedExpression::new_set([]),
        ),
    ])
    .unwrap();
    let entities =
        Entities::from_entities([Entity::with_uid(uid("Tool::\"tool7\""))], None).unwrap();
    let request = Request::new(
        uid("Agent::\"coder\""),
        uid("Action::\"run:tool7\""),
        uid("Tool::\"tool7\""),
        context,
        None,
    )
    .unwrap();
    let authorizer = Authorizer::new();
    least(|| {
        black_box(authorizer.is_authorized(&request, &policies, &entities));
    })
}

#[test]
fn a_whole_judgement_costs_no_more_than_one_bare_answer_over_all_policies() {
    let source = hundred_policies();
    let gate = Gate::new(
        policy(&source),
        twenty_tools(),
        ArbiterRules::new([
            ("untrusted-argument", None),
            ("low-confidence-action", None),
        ])
        .unwrap(),
        requirement(1, 60),
    )
    .unwrap();
    let arguments =
        json!({"path": "src/a.rs", "content": "x".repeat(2000), "count": 3, "tags": ["a", "b"]});
    let mut call = Call::new("tool7", Rung::L3, arguments);
    for name in ["path", "content", "count", "tags"] {
        call.provenance.push(ArgumentProvenance {
            pointer: format!("/{name}"),
            place: Place::Value,
            kind: ValueKind::Text,
            label: Label::Given {
                source: GivenSource::Task,
            },
            resembles: None,
            inside: vec![],
            inside_omitted: 0,
        });
    }
    assert_eq!(call.judge(&gate).verdict, Verdict::Allow);
    let bare = bare_answer(&source);
    let whole = least(|| {
        black_box(call.judge(&gate));
    });
    let unsliced = gate.unsliced();
    let slow = least(|| {
        black_box(call.judge(&unsliced));
    });
    let ratio = whole.as_secs_f64() / bare.as_secs_f64();
    println!("bare {bare:?}, whole judgement {whole:?} ({ratio:.2} of it), unsliced {slow:?}");
    assert!(ratio <= 1.0, "{ratio}");
}
