//! Names in policies that nothing has: tools, groups, servers.

use std::collections::BTreeSet;

use cedar_policy::EntityUid;
use lodestar_core::name::{Excerpt, PolicyId};

use crate::facts::ToolShape;
use crate::finding::{Finding, Gravity};
use crate::policy::Rule;
use crate::schema::{Kind, Question};

/// How the names of tools begin, by the way they come into a session: over the proxy, or as a client's own. One
/// policy serves all of them, and no session has the tools of every way.
const WAYS_IN: [&str; 5] = ["mcp", "claude-code", "codex", "cursor", "gemini"];

fn way_in(tool: &str) -> Option<&str> {
    let (way, _) = tool.split_once('.')?;
    WAYS_IN.contains(&way).then_some(way)
}

/// Finds tools that are named and do not exist; returns the policies that name them. That a session has none
/// of the tools of another way in is no mistake of the policy's.
pub(super) fn unknown_tools(
    source: &str,
    rules: &[Rule],
    tools: &[ToolShape],
    findings: &mut Vec<Finding>,
) -> Vec<PolicyId> {
    let known: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let ways: BTreeSet<&str> = known.iter().filter_map(|tool| way_in(tool)).collect();
    let mut policies = Vec::new();
    for rule in rules {
        let mut said = BTreeSet::new();
        for uid in rule.policy.entity_literals() {
            let Some(tool) = tool_of(&uid) else { continue };
            if known.contains(tool.as_str()) || !said.insert(uid.to_string()) {
                continue;
            }
            let at = rule.find(source, &uid.to_string());
            let id = Some(rule.id.clone());
            let message = format!("there is no tool `{}`", Excerpt::of(&tool));
            let elsewhere = way_in(&tool).is_some_and(|way| !ways.contains(way));
            let gravity = match elsewhere && !ways.is_empty() {
                true => Gravity::Warning,
                false => Gravity::Error,
            };
            let finding = Finding::new(gravity, id, source, at, &message);
            findings.push(suggesting(finding, &tool, &known));
            policies.push(rule.id.clone());
        }
    }
    policies
}

/// Finds groups and servers that no tool belongs to: a rule about them never applies.
pub(super) fn empty_wholes(
    source: &str,
    rules: &[Rule],
    tools: &[ToolShape],
    findings: &mut Vec<Finding>,
) {
    let groups: BTreeSet<&str> = tools.iter().flat_map(|t| &t.groups).map(|g| &**g).collect();
    let servers: BTreeSet<&str> = tools.iter().map(|tool| tool.server.as_str()).collect();
    for (kind, word, known) in [
        (Kind::Group, "group", groups),
        (Kind::Server, "server", servers),
    ] {
        for rule in rules {
            let named: BTreeSet<String> = rule
                .policy
                .entity_literals()
                .iter()
                .filter(|uid| uid.type_name() == &kind.type_name())
                .map(|uid| uid.id().unescaped().to_owned())
                .filter(|id| !known.contains(id.as_str()))
                .collect();
            for id in named {
                let at = rule.find(source, &kind.named(&id).to_string());
                let message = format!("no tool belongs to the {word} `{}`", Excerpt::of(&id));
                let policy = Some(rule.id.clone());
                let finding = Finding::new(Gravity::Warning, policy, source, at, &message);
                findings.push(suggesting(finding, &id, &known));
            }
        }
    }
}

fn suggesting(finding: Finding, name: &str, known: &BTreeSet<&str>) -> Finding {
    match nearest(name, known) {
        Some(near) => finding.with_help(format!("did you mean `{}`?", Excerpt::of(near))),
        None => finding,
    }
}

/// The tool that an entity is, or is an action on.
fn tool_of(uid: &EntityUid) -> Option<String> {
    let id: &str = uid.id().as_ref();
    if uid.type_name() == &Kind::Tool.type_name() {
        return Some(id.to_owned());
    }
    if uid.type_name() != &Kind::Action.type_name() {
        return None;
    }
    Question::BOTH.iter().find_map(|question| {
        let tool = id.strip_prefix(question.as_str())?.strip_prefix(':')?;
        Some(tool.to_owned())
    })
}

/// Longest name that is compared: the comparison takes the product of two lengths.
const MAX_COMPARED: usize = 128;

/// The known name that takes the fewest changes, if that is less than half of the name.
fn nearest<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    if name.len() > MAX_COMPARED {
        return None;
    }
    let candidates = known.iter().filter(|other| other.len() <= MAX_COMPARED);
    let (changes, near) = candidates
        .map(|other| (changes(name, other), *other))
        .min()?;
    (changes * 2 <= name.chars().count()).then_some(near)
}

/// How many characters have to be put in, taken out or replaced.
fn changes(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, &right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let known = BTreeSet::from(["fs.read", "fs.write", "git.push"]);
        assert_eq!(nearest("fs.raed", &known), Some("fs.read"));
        assert_eq!(nearest("git_push", &known), Some("git.push"));
        assert_eq!(nearest("mail.send", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(changes("kitten", "sitting"), 3);
    }
}
