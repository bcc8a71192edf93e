//! The ladder and the words of a contract as a page of the reference.
//!
//! Every list comes from the type itself, and every description from a match over it, so that a new
//! rung, check, role, permission or sandbox is on the page or does not compile.

use std::fmt::Write as _;

use super::{ArgumentRole, BlastRadius, CheckKind, Permission, Reversibility, Sandbox};
use crate::ladder::{CedarAnswer, RUNGS, Rung, Say, floor};

const HEAD: &str = "\
# Ladder and contracts

The rungs, what the gate makes of a policy's answer on each, and the words that a contract is written in. This page is
generated from the code; [the trust ladder](../concepts/trust-ladder.md) says what it is for.
";

/// The page `docs/reference/ladder.md`.
pub fn reference_page() -> String {
    let mut page = HEAD.to_owned();
    rungs(&mut page);
    answers(&mut page);
    reach(&mut page);
    list(&mut page, SANDBOXES, Sandbox::ALL, Sandbox::as_str, sandbox);
    list(
        &mut page,
        PERMISSIONS,
        Permission::ALL,
        Permission::as_str,
        permission,
    );
    list(
        &mut page,
        ROLES,
        ArgumentRole::ALL,
        ArgumentRole::as_str,
        role,
    );
    checks(&mut page);
    page
}

const SANDBOXES: &str = "
## Sandboxes

In what confinement a tool runs, from tight to loose. It is declared and shown; nothing of the operating system enforces
it yet.

| sandbox | the tool |
|---|---|
";

const PERMISSIONS: &str = "
## Permissions

What a tool is given to use. Fewer is stricter.

| permission | gives |
|---|---|
";

const ROLES: &str = "
## Roles of arguments

What an argument is to its tool. Self-protection looks at everything but `payload`, and takes `argv` apart into words;
`destination` and `identity` have to be explained by provenance. `payload` is never judged for what it mentions.

| role | the argument is |
|---|---|
";

fn rungs(page: &mut String) {
    page.push_str("\n## Rungs\n\n| rung | meaning | example | gate |\n|---|---|---|---|\n");
    for spec in &RUNGS {
        let example = if spec.example.is_empty() {
            "—"
        } else {
            spec.example
        };
        let (name, meaning, gate) = (spec.name, spec.meaning, spec.gate);
        let _ = writeln!(page, "| {name} | {meaning} | {example} | {gate} |");
    }
}

/// The verdict of every answer, as the gate itself computes it.
fn answers(page: &mut String) {
    page.push_str(
        "
## Verdicts

What the ladder makes of the policies' answers to the two questions, before any arbiter.

| `run` | `ask` | L0 to L3 | L4 | L5 |
|---|---|---|---|---|
",
    );
    for answer in CedarAnswer::all() {
        let CedarAnswer { run, ask } = answer;
        let [low, high, top] = [Rung::L0, Rung::L4, Rung::L5].map(|rung| floor(rung, answer));
        let (run, ask) = (said(run), said(ask));
        let _ = writeln!(page, "| {run} | {ask} | {low} | {high} | {top} |");
    }
}

fn said(say: Say) -> &'static str {
    match say {
        Say::Permit => "permitted",
        Say::Forbid => "forbidden",
        Say::Silent => "not mentioned",
    }
}

fn reach(page: &mut String) {
    page.push_str("\n## Reach\n\nFrom mild to grave; graver is stricter.\n\n");
    page.push_str("| field | words |\n|---|---|\n");
    let radii = BlastRadius::ALL.iter().map(|one| one.as_str());
    let _ = writeln!(page, "| blast radius | {} |", joined(radii));
    let reversal = Reversibility::ALL.iter().map(|one| one.as_str());
    let _ = writeln!(page, "| reversibility | {} |", joined(reversal));
    let data = crate::sensitivity::DataSensitivity::ALL.iter();
    let _ = writeln!(
        page,
        "| data sensitivity | {} |",
        joined(data.map(|one| one.as_str()))
    );
}

fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

fn list<T: Copy>(
    page: &mut String,
    head: &str,
    all: &[T],
    word: fn(T) -> &'static str,
    describe: fn(T) -> &'static str,
) {
    page.push_str(head);
    for &one in all {
        let _ = writeln!(page, "| `{}` | {} |", word(one), describe(one));
    }
}

fn sandbox(sandbox: Sandbox) -> &'static str {
    match sandbox {
        Sandbox::Read => "reads",
        Sandbox::WriteIsolated => "writes where nothing else looks",
        Sandbox::WriteLocal => "writes in the project",
        Sandbox::ControlledShell => "runs commands",
        Sandbox::ControlledNetwork => "reaches the network",
    }
}

fn permission(permission: Permission) -> &'static str {
    match permission {
        Permission::ReadFiles => "files, to read",
        Permission::WriteFiles => "files, to write",
        Permission::RunPrograms => "other programs",
        Permission::Network => "the network",
        Permission::Credentials => "credentials",
        Permission::Publish => "publishing",
        Permission::Deploy => "deploying",
        Permission::Push => "pushing to a remote",
        Permission::Sign => "signing",
        Permission::Pay => "paying",
    }
}

fn role(role: ArgumentRole) -> &'static str {
    match role {
        ArgumentRole::Path => "a file or folder",
        ArgumentRole::Argv => "a word of a command, or a list of them",
        ArgumentRole::Destination => "where something goes: an address, a host, a URL, a remote",
        ArgumentRole::Identity => "whose it is, or in whose name: a person, an account",
        ArgumentRole::Payload => "what is written, sent or said",
        ArgumentRole::Other => "anything else",
    }
}

fn checks(page: &mut String) {
    page.push_str(
        "
## Preconditions

What the kernel measures when an action is proposed, and again before it runs. An argument is a text, or a place in the
call's arguments such as `$.path`. Whatever cannot be measured counts as moved.

| check | takes | measures | has to hold at the proposal |
|---|---|---|---|
",
    );
    for &kind in CheckKind::ALL {
        let (takes, measures, holds) = check(kind);
        let _ = writeln!(page, "| `{kind}` | {takes} | {measures} | {holds} |");
    }
}

fn check(kind: CheckKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        CheckKind::FileSha256 => ("`path`", "content and real place of a file", "—"),
        CheckKind::PathAbsent => ("`path`", "that nothing is there", "nothing is there"),
        CheckKind::PathExists => ("`path`", "that something is there", "something is there"),
        CheckKind::GitHead => ("—", "the commit that is checked out", "—"),
        CheckKind::GitClean => ("—", "that nothing is uncommitted", "nothing is uncommitted"),
        CheckKind::GitRemoteUrl => ("`remote`", "where a remote points", "—"),
        CheckKind::ToolDefinition => ("—", "the tool's definition, by digest", "—"),
        CheckKind::Policy => ("—", "the policy, by digest", "—"),
        CheckKind::BeliefStatus => ("`belief`", "where a belief stands", "the belief is there"),
        CheckKind::EnvUnset => ("`name`", "that a variable is not set", "it is not set"),
    }
}
