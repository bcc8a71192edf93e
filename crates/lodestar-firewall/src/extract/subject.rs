//! What a claim is about: the thing that was read, as the call's arguments name it.
//!
//! Arguments decide, never what a server says. A [`Subject`] is made here out of a [`ToolCall`] and
//! nowhere else, so that no content can choose whose facts it is compared with.

use lodestar_core::digest::{Digest, Hasher};
use lodestar_core::fingerprint::NormalPath;
use serde_json::Value;

use super::ToolCall;
use super::inert::{MAX_SUBJECT, bounded, label};
use super::sum::Sum;
use super::tool_words::may_read;
use super::uri::Place;

/// What a claim is about: a kind, a colon, and a name in normal form.
///
/// It cannot be made of text:
///
/// ```compile_fail,E0423
/// use lodestar_firewall::extract::Subject;
///
/// fn forge(content: String) -> Subject {
///     Subject(content)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(String);

impl Subject {
    /// The call itself. Every invocation is one of its own, so two calls never contradict each other.
    pub fn call(call: &ToolCall<'_>) -> Self {
        Self(format!("call:{}", call.invocation))
    }

    /// The thing that the call read.
    pub fn thing_read(call: &ToolCall<'_>) -> Self {
        Reading::of(call).subject
    }

    /// The repository that the arguments name, or the one at `.` if they name none; `None` if the
    /// name they give has no normal form.
    pub fn repository(call: &ToolCall<'_>) -> Option<Self> {
        const NAMES: &[&str] = &[
            "repopath",
            "repositorypath",
            "repo",
            "repository",
            "cwd",
            "workdir",
            "workingdirectory",
            "directory",
            "dir",
            "path",
        ];
        let named = NAMES.iter().find_map(|name| {
            strings(call.arguments)
                .find(|(key, text)| plain_key(key) == *name && !text.is_empty())
                .map(|(_, text)| text)
        });
        let path = NormalPath::new(named.unwrap_or(".")).ok()?;
        Some(Self::named("git", path.as_str()))
    }

    /// What the argument `name` says, verbatim, under a kind of the extractor's own.
    ///
    /// `None` if the arguments have no such text.
    pub fn argument(call: &ToolCall<'_>, kind: &'static str, name: &str) -> Option<Self> {
        let text = call.arguments.as_object()?.get(name)?.as_str()?;
        Some(Self::named(kind, text))
    }

    /// The subject as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn named(kind: &str, name: &str) -> Self {
        Self(format!("{kind}:{}", bounded(name, MAX_SUBJECT)))
    }
}

/// The thing that a call read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thing {
    File(NormalPath),
    Resource(String),
    /// Nothing that the arguments name alone: tool and arguments together are the name.
    CallResult,
}

/// A thing, and which view of it the call asked for.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) thing: Thing,
    pub(super) subject: Subject,
    /// What else decided the result; `None` if it is the thing itself.
    view: Option<Digest>,
    is_error: bool,
}

impl Reading {
    pub(super) fn of(call: &ToolCall<'_>) -> Self {
        let (thing, is_name): (Thing, fn(&str) -> bool) = thing(call.arguments);
        let (subject, view) = match &thing {
            Thing::File(path) => (Subject::named("file", path.as_str()), view(call, is_name)),
            Thing::Resource(uri) => (Subject::named("resource", uri), view(call, is_name)),
            Thing::CallResult => (call_result(call), None),
        };
        Self {
            thing,
            subject,
            view,
            is_error: call.is_error,
        }
    }

    /// The relation of the block at this place: `content`, `content/1`, … for the thing itself.
    ///
    /// Another view of it (the first ten lines, a search in it, a listing) has relations of its own,
    /// since two views that differ do not contradict each other; and so has an error.
    pub(super) fn relation(&self, stem: &'static str, index: usize) -> String {
        let stem = if self.is_error { "error" } else { stem };
        let mut relation = stem.to_owned();
        if let Some(view) = &self.view {
            relation.push_str(&format!("({view:.32})"));
        }
        if index > 0 {
            relation.push_str(&format!("/{index}"));
        }
        relation
    }
}

fn call_result(call: &ToolCall<'_>) -> Subject {
    let (server, tool) = (label(call.server.as_str()), label(call.tool.as_str()));
    let arguments = Sum::of_json(call.arguments).digest;
    Subject(format!("call-result:{server}/{tool}:{arguments}"))
}

/// Decides by the arguments alone; also says which of them were used up as the name.
fn thing(arguments: &Value) -> (Thing, fn(&str) -> bool) {
    const NOTHING: (Thing, fn(&str) -> bool) = (Thing::CallResult, |_| false);
    for is_name in [is_path_key as fn(&str) -> bool, is_uri_key] {
        let mut named = strings(arguments)
            .filter(|(key, text)| is_name(key) && !text.is_empty())
            .map(|(key, text)| place(key, text));
        match named.next() {
            None => {}
            Some(Some(first)) if named.all(|other| other.as_ref() == Some(&first)) => {
                return (first, is_name);
            }
            // Two things, or a path that climbs out of its root: no single thing has this name.
            Some(_) => return NOTHING,
        }
    }
    NOTHING
}

fn place(key: &str, text: &str) -> Option<Thing> {
    if is_path_key(key) && !text.contains("://") {
        return NormalPath::new(text).ok().map(Thing::File);
    }
    Some(match Place::of(text) {
        Place::File(path) => Thing::File(path),
        Place::Resource(uri) => Thing::Resource(uri),
    })
}

fn is_path_key(key: &str) -> bool {
    matches!(
        plain_key(key).as_str(),
        "path"
            | "file"
            | "filepath"
            | "filename"
            | "absolutepath"
            | "relativepath"
            | "targetfile"
            | "notebookpath"
    )
}

fn is_uri_key(key: &str) -> bool {
    matches!(
        plain_key(key).as_str(),
        "uri" | "url" | "href" | "link" | "resourceuri" | "resource"
    )
}

/// `file_path`, `filePath` and `file-path` are one name.
fn plain_key(key: &str) -> String {
    key.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

fn strings(arguments: &Value) -> impl Iterator<Item = (&str, &str)> {
    arguments
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

fn view(call: &ToolCall<'_>, is_name: fn(&str) -> bool) -> Option<Digest> {
    let mut others: Vec<_> = call
        .arguments
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| !(is_name(key) && value.is_string()))
        .collect();
    let reads = may_read(call.tool.as_str());
    if others.is_empty() && reads {
        return None;
    }
    let mut hasher = Hasher::new();
    if !reads {
        for name in [call.server.as_str(), call.tool.as_str()] {
            hasher.update(Sum::of_text(name).digest.as_bytes());
        }
    }
    others.sort_by_key(|(key, _)| key.as_str());
    for (key, value) in others {
        hasher.update(Sum::of_text(key).digest.as_bytes());
        hasher.update(Sum::of_json(value).digest.as_bytes());
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests;
