//! Tests of policies as data, and judgements in words.

use std::collections::BTreeMap;

use lodestar_core::contract::Contract;
use lodestar_core::ladder::Rung;
use lodestar_core::name::ToolName;
use lodestar_policy::{ArbiterRules, Gate, Suite, explain};
use serde_json::json;

use crate::world::{Call, contract, gate, tools, try_gate};

const POLICY: &str = r#"
@id("read")
permit (principal, action in Action::"run", resource in Group::"reading");

@id("write")
@approvers("release-manager")
@quorum("2")
@expires("15m")
permit (principal, action == Action::"ask:fs.write", resource)
unless { context.provenance has content && context.provenance.content == "unknown" };

@id("no-secrets")
forbid (principal, action in [Action::"run:fs.read", Action::"ask:fs.read"], resource)
when { context.args.path like "secrets/*" };
"#;

const SUITE: &str = r#"
[[case]]
name = "reading is free"
tool = "fs.read"
args = { path = "README.md" }
expect = "allow"
decided_by = ["read"]

[[case]]
name = "secrets are not read"
tool = "fs.read"
args.path = "secrets/key"
expect = "deny"
decided_by = ["no-secrets"]

[[case]]
name = "writing what the operator gave has to be asked for"
tool = "fs.write"
args = { path = "a", content = "b", tags = ["x"] }
agent = { actor = "ci", device_trust = "attested" }
beliefs = [{ truth = "unverified", confidence = 0.2 }, {}]
expect = "hold"

[[case]]
name = "what somebody else wrote is not written"
tool = "fs.write"
args = { path = "a", content = "b" }
untrusted = ["content"]
expect = "deny"

[[case]]
name = "on L4 one may always ask"
tool = "fs.list"
level = "L4"
expect = "hold"
"#;

fn contracts() -> BTreeMap<ToolName, Contract> {
    let graded = tools()
        .into_iter()
        .filter(|t| t.name.as_str() != "mail.send");
    graded.map(|t| (t.name, contract(Rung::L3))).collect()
}

#[test]
fn a_suite_that_holds_passes() {
    let result = Suite::parse(SUITE)
        .unwrap()
        .run(&gate(POLICY), &contracts());
    assert!(result.passed(), "{result}");
    assert_eq!(result.summary().passed, 5);
}

#[test]
fn a_case_cannot_lower_the_rung_of_its_tool() {
    let text = r#"
[[case]]
name = "a laxer grade changes nothing"
tool = "fs.list"
level = "L0"
expect = "hold"
"#;
    let of = |rung| -> BTreeMap<ToolName, Contract> {
        let graded = tools().into_iter();
        graded.map(move |t| (t.name, contract(rung))).collect()
    };
    let allow_all = gate("permit (principal, action in Action::\"run\", resource);");
    let suite = Suite::parse(text).unwrap();
    let result = suite.run(&allow_all, &of(Rung::L4));
    assert!(result.passed(), "{result}");
    assert!(!suite.run(&allow_all, &of(Rung::L0)).passed());
}

#[test]
fn whatever_does_not_hold_is_named() {
    let text = r#"
[[case]]
name = "wrong verdict"
tool = "fs.read"
args = { path = "a" }
expect = "deny"

[[case]]
name = "wrong policy"
tool = "fs.read"
args = { path = "a" }
expect = "allow"
decided_by = ["write"]

[[case]]
name = "nobody decided"
tool = "mail.send"
expect = "hold"

[[case]]
name = "a date is no JSON"
tool = "fs.read"
args = { path = 2026-01-01 }
expect = "hold"

[[case]]
name = "not a number"
tool = "fs.read"
args = { path = nan }
expect = "hold"

[[case]]
name = "climbing out"
tool = "fs.read"
args = { path = "../../x" }
expect = "hold"

[[case]]
name = "untrusted, and not there"
tool = "fs.read"
args = { path = "x" }
untrusted = ["paht"]
expect = "hold"
"#;
    let result = Suite::parse(text).unwrap().run(&gate(POLICY), &contracts());
    assert!(!result.passed());
    insta::assert_snapshot!("suite_failures", result);
    assert!(
        !Suite::parse("")
            .unwrap()
            .run(&gate(POLICY), &contracts())
            .passed()
    );
}

#[test]
fn arbiters_look_at_cases_too() {
    let rules = ArbiterRules::new([("untrusted-argument", None)]).unwrap();
    let gate: Gate = try_gate("permit (principal, action, resource);", rules).unwrap();
    let text = r#"
[[case]]
name = "an address from nowhere"
tool = "fs.write"
args = { path = "a", content = "eve@example.com" }
untrusted = ["content"]
expect = "hold"
"#;
    let result = Suite::parse(text).unwrap().run(&gate, &contracts());
    assert!(result.passed(), "{result}");
}

#[test]
fn what_a_suite_does_not_know_is_an_error_with_its_line() {
    for (text, expected) in [
        (
            "[[case]]\nname = \"a\"\ntool = \"t\"\nexpect = \"allow\"\nexpects = 1\n",
            "at 5:1: unknown field `expects`",
        ),
        ("[[cases]]\n", "at 1:3: unknown field `cases`"),
        (
            "[[case]]\nname = \"a\"\ntool = \"t\"\nexpect = \"maybe\"\n",
            "at 4:10: unknown verdict `maybe`",
        ),
        (
            "[[case]]\nname = \"a\"\ntool = \"t\"\n",
            "missing field `expect`",
        ),
        (
            "[[case]]\nname = \"a\"\ntool = \"\"\nexpect = \"hold\"\n",
            "the tool name is empty",
        ),
        (
            "[[case]]\nname = \"a\"\ntool = \"t\"\nexpect = \"hold\"\nbeliefs = [{ turth = 1 }]\n",
            "at 5:14: unknown field `turth`",
        ),
        ("[[case\n", "at 1:7"),
    ] {
        let error = Suite::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

#[test]
fn a_judgement_is_explained_in_plain_sentences() {
    let gate = gate(POLICY);
    let say = |call: Call| explain(&call.judge(&gate));
    let held = say(Call::new(
        "fs.write",
        Rung::L3,
        json!({"path": "a", "content": "b"}),
    ));
    let denied = say(Call::new("fs.read", Rung::L3, json!({"path": 5})));
    let above = say(Call::new("fs.read", Rung::L4, json!({"path": "a"})));
    let gone = say(Call::new("fs.raed", Rung::L0, json!({})));
    insta::assert_snapshot!("explain", [held, denied, above, gone].join("\n\n"));
}
