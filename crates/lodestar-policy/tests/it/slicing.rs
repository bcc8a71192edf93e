//! Leaving out policies that cannot have a say never changes what is said.

use std::fmt::Write as _;

use lodestar_core::ladder::Verdict;
use lodestar_core::provenance::{ArgumentProvenance, GivenSource, Label, Place, ValueKind};
use serde_json::{Map, Value, json};

use crate::world::{Call, Dice, RUNGS, gate};

const ACTIONS: &[&str] = &[
    "action",
    r#"action in Action::"run""#,
    r#"action in Action::"ask""#,
    r#"action in [Action::"run", Action::"ask"]"#,
    r#"action == Action::"run:fs.read""#,
    r#"action == Action::"ask:fs.read""#,
    r#"action in [Action::"run:fs.read", Action::"ask:fs.read"]"#,
    r#"action in [Action::"run:fs.write", Action::"ask:mail.send"]"#,
    r#"action == Action::"run:mail.send""#,
];

const RESOURCES: &[&str] = &[
    "resource",
    "resource is Tool",
    r#"resource == Tool::"fs.read""#,
    r#"resource == Tool::"mail.send""#,
    r#"resource in Group::"reading""#,
    r#"resource in Group::"nobody""#,
    r#"resource in Server::"files""#,
    r#"resource is Tool in Group::"files""#,
    r#"resource in Tool::"fs.write""#,
];

const PRINCIPALS: &[&str] = &[
    "principal",
    "principal",
    "principal is Agent",
    r#"principal == Agent::"coder""#,
    r#"principal in Agent::"other""#,
];

const CONDITIONS: &[&str] = &[
    "true",
    "context.level <= 2",
    "context.level > 2",
    r#"context.blast_radius == "project""#,
    r#"context.untrusted_args.contains("path")"#,
    "context.untrusted_args.isEmpty()",
    r#"context.scope.level == "project" && context.scope.identifier == "web""#,
    r#"context.mistyped_args.contains("path")"#,
    r#"context.undeclared_args.contains("zz")"#,
    r#"context.paths.contains("a.txt")"#,
    r#"resource.name == "fs.read""#,
    r#"resource.server == "mail""#,
    r#"Tool::"fs.write".server == "files""#,
    r#"Tool::"fs.list" in Group::"reading" && resource in Server::"files""#,
    r#"Action::"run:fs.write" in Action::"run""#,
    r#"action in Action::"ask""#,
    r#"principal.device_trust == "attested""#,
    r#"principal == Agent::"coder" && principal.execution == "interactive""#,
    "context.beliefs.count > 0",
    "9223372036854775807 + context.level > 0",
    "context.level * 9223372036854775807 > 0",
];

/// Conditions on the arguments of `fs.read` alone.
const READ_CONDITIONS: &[&str] = &[
    r#"context.args.path == "secret""#,
    r#"context.args.path like "a*""#,
    "context.args has limit && context.args.limit > 3",
    r#"context.provenance has path && context.provenance.path == "given""#,
    "context.args == context.args",
    "[context.args].contains(context.args) && context == context",
    "context has args.limit && context.args.limit < 3",
    "context.args has path",
];

pub(crate) fn random_policies(dice: &mut Dice) -> String {
    let mut text = String::new();
    for at in 0..dice.roll(12) {
        let effect = if dice.roll(3) == 0 {
            "forbid"
        } else {
            "permit"
        };
        let action = dice.pick(ACTIONS);
        // Only these match nothing but actions on one tool, so only here its arguments have a type.
        let of_read = action.contains("fs.read");
        let resource = match dice.pick(RESOURCES) {
            r if of_read && (r.contains("mail.send") || r.contains("fs.write")) => "resource",
            r => r,
        };
        let principal = dice.pick(PRINCIPALS);
        let _ = write!(
            text,
            "@id(\"p{at}\")\n{effect} ({principal}, {action}, {resource})"
        );
        if dice.roll(4) > 0 {
            let condition = if of_read && dice.roll(2) == 0 {
                dice.pick(READ_CONDITIONS)
            } else {
                dice.pick(CONDITIONS)
            };
            let word = dice.pick(&["when", "when", "unless"]);
            let _ = write!(text, " {word} {{ {condition} }}");
        }
        text.push_str(";\n");
    }
    text
}

fn random_value(dice: &mut Dice) -> Value {
    match dice.roll(9) {
        0 => json!(5),
        1 => json!(null),
        2 => json!({"__entity": {"type": "Tool", "id": "fs.read"}}),
        3 => json!("secret"),
        4 => json!(["x"]),
        5 => json!(1.5),
        _ => json!("a.txt"),
    }
}

pub(crate) fn random_call(dice: &mut Dice) -> Call {
    let tool = dice.pick(&[
        "fs.read",
        "fs.read",
        "fs.write",
        "mail.send",
        "fs.list",
        "gone",
    ]);
    let mut arguments = Map::new();
    for name in ["path", "limit", "content", "to", "price", "meta", "zz"] {
        if dice.roll(3) > 0 {
            arguments.insert(name.to_owned(), random_value(dice));
        }
    }
    if dice.roll(2) == 0 {
        // Half of the calls are as the tool of most policies wants them.
        arguments = Map::from_iter([("path".to_owned(), json!(dice.pick(&["a.txt", "secret"])))]);
    }
    let mut call = Call::new(tool, RUNGS[dice.roll(5)], Value::Object(arguments));
    call.agent.device_trust = dice.pick(&["none", "attested"]).to_owned();
    call.agent.actor = dice.pick(&["coder", "other"]).parse().unwrap();
    call.paths = vec![dice.pick(&["a.txt", "b.txt"]).parse().unwrap()];
    let label = match dice.roll(2) {
        0 => Label::Unknown,
        _ => Label::Given {
            source: GivenSource::Task,
        },
    };
    call.provenance.push(ArgumentProvenance {
        pointer: "/path".to_owned(),
        place: Place::Value,
        kind: ValueKind::Text,
        label,
        resembles: None,
        inside: vec![],
        inside_omitted: 0,
    });
    call
}

#[test]
fn matrix_slicing_never_changes_the_answer() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let sets: u64 = if full { 10_000 } else { 200 };
    let (mut pairs, mut errors, mut verdicts) = (0, 0, [0; 3]);
    for seed in 0..sets {
        let mut dice = Dice(seed);
        let source = random_policies(&mut dice);
        let sliced = gate(&source);
        let whole = sliced.unsliced();
        for _ in 0..10 {
            let call = random_call(&mut dice);
            let (a, b) = (call.judge(&sliced), call.judge(&whole));
            assert_eq!(a, b, "seed {seed}\n{source}\n{call:?}");
            pairs += 1;
            errors += usize::from(!a.errors.is_empty());
            verdicts[a.verdict as usize] += 1;
        }
    }
    println!(
        "{pairs} pairs, {errors} with errors; {} allow, {} hold, {} deny; 0 differ",
        verdicts[Verdict::Allow as usize],
        verdicts[Verdict::Hold as usize],
        verdicts[Verdict::Deny as usize]
    );
    // A sample in which nothing happens would prove nothing.
    assert!(verdicts.iter().all(|&count| count * 20 > pairs) && errors * 10 > pairs);
}
