//! What `check` finds, as people see it.

use lodestar_policy::{ArbiterRules, Gate, GateError, Gravity, check, render};

use crate::world::{gate, policy, requirement, tools};

fn shown(source: &str) -> String {
    render(&check(source, &tools()), source, "policy.cedar")
}

#[test]
fn a_sound_policy_has_no_findings() {
    let source = r#"
@id("read") permit (principal, action in Action::"run", resource in Group::"reading");
@id("write") @approvers("a,b") @quorum("2") @expires("90s")
permit (principal, action == Action::"ask:fs.write", resource == Tool::"fs.write")
when { context.args.content like "*" && context.args has tags && context.args.tags.contains("x") };
"#;
    assert_eq!(shown(source), "");
}

#[test]
fn what_cedar_cannot_read() {
    insta::assert_snapshot!(shown(
        "permit (principal, action, resource)\nwhen { context.level << 3 };\n"
    ));
}

#[test]
fn attributes_that_do_not_exist_or_have_another_type() {
    insta::assert_snapshot!(shown(
        r#"permit (principal, action == Action::"run:fs.read", resource)
when { context.args.paht == "x" };

permit (principal, action == Action::"run:fs.read", resource)
when { context.args.limit > 3 };

permit (principal, action in Action::"run", resource)
when { context.level == "L3" };

permit (principal, action == Action::"run:mail.send", resource)
when { context.args has price && context.args.price > 3 };
"#
    ));
}

#[test]
fn tools_groups_and_servers_that_do_not_exist() {
    insta::assert_snapshot!(shown(
        r#"permit (principal, action == Action::"run:fs.raed", resource);
permit (principal, action, resource == Tool::"mail_send");
forbid (principal, action in Action::"run", resource) when { resource == Tool::"deploy" };
forbid (principal, action, resource in Group::"readin");
forbid (principal, action, resource) when { resource in Server::"elsewhere" };
"#
    ));
}

#[test]
fn policies_that_can_never_apply() {
    insta::assert_snapshot!(shown(
        r#"permit (principal, action == Action::"run", resource);
permit (principal is Tool, action, resource);
permit (principal, action in Action::"run", resource) when { false };
permit (principal, action == Action::"run:fs.list", resource) when { context.args has path };
"#
    ));
}

#[test]
fn policies_that_another_one_leaves_nothing_to_say() {
    insta::assert_snapshot!(shown(
        r#"@id("all") permit (principal, action in Action::"run", resource) when { context.level < 2 };
@id("again") permit (principal, action in Action::"run", resource) when { context.level < 2 };
@id("read") permit (principal, action == Action::"run:fs.read", resource);
@id("none") forbid (principal, action in Action::"run", resource);
@id("less") forbid (principal, action == Action::"run:fs.read", resource) when { context.level > 1 };
@id("free") permit (principal, action in Action::"ask", resource);
@id("twice") @quorum("2") permit (principal, action in Action::"ask", resource);
"#
    ));
}

#[test]
fn annotations_that_mean_nothing() {
    insta::assert_snapshot!(shown(
        r#"@quorum("x")
permit (principal, action in Action::"ask", resource) when { context.level == 0 };
@expires("15x") @approvers("a b")
permit (principal, action in Action::"ask", resource) when { context.level == 1 };
@approvers("ops")
permit (principal, action in Action::"run", resource);
@quorum("2")
forbid (principal, action in Action::"ask", resource) when { context.level == 2 };
"#
    ));
}

#[test]
fn what_could_mislead_a_reader_is_shown_inert() {
    let found = shown("permit (principal, action, resource) when { \"\u{202e}\u{1b}[31m\" };\n");
    assert!(
        found.chars().all(|c| c == '\n' || !c.is_control()),
        "{found:?}"
    );
    assert!(!found.contains('\u{202e}'), "{found:?}");
}

#[test]
fn errors_keep_a_policy_out_of_the_gate_and_warnings_do_not() {
    let wrong = policy(r#"permit (principal, action == Action::"run:fs.raed", resource);"#);
    let error = Gate::new(wrong, tools(), ArbiterRules::none(), requirement(1, 60)).unwrap_err();
    let GateError::Policy(findings) = &error else {
        panic!("{error}")
    };
    assert_eq!(findings[0].gravity, Gravity::Error);
    assert_eq!(
        error.to_string(),
        "the policy does not fit the tools: error at 1:30 in policy `policy0`: there is no tool `fs.raed`; did you mean `fs.read`?"
    );
    let odd = gate(r#"permit (principal, action in Action::"run", resource) when { false };"#);
    assert_eq!(odd.warnings().len(), 1);
    for bad in [requirement(0, 60), requirement(1, 0)] {
        let open = policy("permit (principal, action, resource);");
        let error = Gate::new(open, tools(), ArbiterRules::none(), bad).unwrap_err();
        assert_eq!(error, GateError::Requirement);
    }
}

#[test]
fn what_is_wrong_for_every_tool_is_said_once() {
    let source = "permit (principal, action, resource) when { context.lvel < 2 };\n";
    for _ in 0..5 {
        let findings = check(source, &tools());
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(
            findings[0].message,
            "attribute `lvel` in context for Action::\"ask:fs.list\" not found (and 7 more like it)"
        );
    }
}

#[test]
fn there_are_never_more_policies_than_can_be_compared() {
    let many = "permit (principal, action, resource);".repeat(4097);
    let findings = check(&many, &tools());
    assert_eq!(findings[0].message, "4097 policies; at most 4096 are taken");
}
