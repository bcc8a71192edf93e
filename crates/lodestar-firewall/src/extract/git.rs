//! Git status: branch, distance from its upstream, and the paths that changed.
//!
//! Reads `git status` in its human form and in both porcelain forms. It is text that a server sent:
//! the claims say what that text reports, about `git:<repository>` as the arguments name it.

mod human;
mod porcelain;
mod status;

#[cfg(test)]
mod tests;

use lodestar_core::chain::Observation;
use serde_json::json;

use self::status::{Paths, Status};
use super::inert::{MAX_ATTRIBUTE, Statement, bounded};
use super::lines::{lines, texts};
use super::tool_words::words;
use super::{ContentDraft, Extractor, Subject, ToolCall};

/// Claims about a repository: `branch`, `distance`, `staged`, `unstaged`, `untracked`, `unmerged`.
#[derive(Debug, Clone, Copy)]
pub struct GitStatus;

impl Extractor for GitStatus {
    fn name(&self) -> &'static str {
        "git-status"
    }

    fn applies(&self, call: &ToolCall<'_>, observation: &Observation) -> bool {
        !call.is_error && asks_for_status(call) && texts(observation).next().is_some()
    }

    fn extract(&self, call: &ToolCall<'_>, observation: &Observation) -> Vec<ContentDraft> {
        let Some(subject) = Subject::repository(call) else {
            return Vec::new();
        };
        let status = texts(observation).find_map(|(_, text)| read(text));
        status.map_or_else(Vec::new, |status| claims(&subject, &status))
    }
}

/// A tool of that name, or a command line that is `git status` and nothing else: another command in
/// it could have changed the repository that is meant.
fn asks_for_status(call: &ToolCall<'_>) -> bool {
    let tool = words(call.tool.as_str());
    let has = |word: &str| tool.iter().any(|other| other == word);
    if has("status") && (has("git") || words(call.server.as_str()).iter().any(|w| w == "git")) {
        return true;
    }
    let command = ["command", "cmd"]
        .iter()
        .find_map(|name| call.arguments.get(name)?.as_str());
    command.is_some_and(|command| {
        let mut words = command.split_ascii_whitespace();
        words.next() == Some("git")
            && words.next() == Some("status")
            && words.all(|option| {
                option
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'='))
                    && option.starts_with('-')
            })
    })
}

fn read(text: &str) -> Option<Status> {
    // Output of `-z`, which has no lines.
    if text.contains('\0') {
        return None;
    }
    human::read(lines(text))
        .or_else(|| porcelain::read_v2(lines(text)))
        .or_else(|| porcelain::read_v1(lines(text)))
}

fn claims(subject: &Subject, status: &Status) -> Vec<ContentDraft> {
    let mut drafts = Vec::new();
    let attribute = |text: &String| bounded(text, MAX_ATTRIBUTE);
    if let Some(head) = &status.head {
        let statement = Statement::new()
            .subject(subject)
            .say(if status.detached {
                " is reported detached at "
            } else {
                " is reported on branch "
            })
            .quote(head);
        let object = json!({
            "detached": status.detached,
            "head": attribute(head),
            "upstream": status.upstream.as_ref().map(attribute),
        });
        drafts.push(ContentDraft::new(
            subject.clone(),
            "branch",
            object,
            statement,
        ));
    }
    if let Some((ahead, behind)) = status.distance {
        let statement = Statement::new()
            .subject(subject)
            .say(" is reported ")
            .number(ahead)
            .say(" commits ahead and ")
            .number(behind)
            .say(" behind its upstream");
        let object = json!({"ahead": ahead, "behind": behind});
        drafts.push(ContentDraft::new(
            subject.clone(),
            "distance",
            object,
            statement,
        ));
    }
    let groups = [
        ("staged", &status.staged),
        ("unstaged", &status.unstaged),
        ("untracked", &status.untracked),
        ("unmerged", &status.unmerged),
    ];
    drafts.extend(groups.map(|(relation, paths)| group(subject, relation, paths)));
    drafts
}

fn group(subject: &Subject, relation: &'static str, paths: &Paths) -> ContentDraft {
    let mut statement = Statement::new()
        .subject(subject)
        .say(" is reported with ")
        .number(paths.count())
        .say(" ")
        .say(relation)
        .say(" paths");
    for (place, path) in paths.listed().iter().take(MAX_QUOTED).enumerate() {
        statement = statement
            .say(if place == 0 { ": " } else { ", " })
            .quote(path);
    }
    let more = paths.count() - paths.listed().len().min(MAX_QUOTED) as u64;
    if more > 0 {
        statement = statement.say(" and ").number(more).say(" more");
    }
    let listed: Vec<_> = paths
        .listed()
        .iter()
        .map(|path| bounded(path, MAX_ATTRIBUTE))
        .collect();
    let object = json!({
        "count": paths.count(),
        "digest": paths.digest(),
        "more": paths.count() - listed.len() as u64,
        "paths": listed,
    });
    ContentDraft::new(subject.clone(), relation, object, statement)
}

/// A statement names the first paths; the object lists more.
const MAX_QUOTED: usize = 3;
