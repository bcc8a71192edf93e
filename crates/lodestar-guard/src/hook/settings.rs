//! The settings of clients: Lodestar's hooks put in, taken out, looked at.
//!
//! What is put in are whole entries at the end of each event's list; everything else in the file stays to the
//! byte: its order, keys that nobody here knows, the hooks of others. The functions on texts are pure
//! ([`with_hooks`], [`without_hooks`], [`state`]); [`file`] reads and writes, and keeps the file as it was beside it.

mod edit;
pub mod file;
pub mod switch;
mod tree;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use lodestar_core::canonical::{self, CanonicalError};
use serde_json::{Value, json};
use thiserror::Error;

use super::Client;
use super::protocol::{self, Moment};
use edit::Edited;
use tree::{Node, Tree};

/// How long a client waits for a hook. Some clients go on where it takes longer, as if nothing were installed.
pub const CLIENT_WAITS: Duration = Duration::from_secs(60);

/// How long a hook may take until it refuses by itself: before the client stops waiting, and after the daemon has stopped holding.
pub const DEADLINE: Duration = Duration::from_secs(50);

/// What the program is called.
const NAME: &str = "lodestar";

/// Codex waits no longer than this where a session ends.
const CODEX_WAITS_AT_THE_END: Duration = Duration::from_secs(3);

/// Why settings are not touched.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// No JSON, or JSON with two meanings.
    #[error("`{}`, line {line}: {problem}", .file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// The line in it, from 1.
        line: usize,
        /// What is wrong there.
        problem: CanonicalError,
    },
    /// A comment, which would not survive the change.
    #[error(
        "`{}`, line {line}: there is a comment, and only plain JSON is changed here: take the comments out for it, or put in by hand what `--dry-run` shows where there are no settings yet",
        .file.display()
    )]
    Comment {
        /// The file.
        file: PathBuf,
        /// The line in it, from 1.
        line: usize,
    },
    /// Something that has to be an object or a list is neither.
    #[error("`{}`, line {line}: `{what}` is not {wanted}", .file.display())]
    Shape {
        /// The file.
        file: PathBuf,
        /// The line in it, from 1.
        line: usize,
        /// What.
        what: String,
        /// What it has to be.
        wanted: &'static str,
    },
    /// A link that leads out of the folder that the settings belong to.
    #[error("`{}` leads out of `{}`, to `{}`, and is not written through", .file.display(), .scope.display(), .to.display())]
    LeadsOut {
        /// The file.
        file: PathBuf,
        /// Where it has to stay.
        scope: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// A link to nothing.
    #[error("`{}` is a link that leads nowhere: remove it, or make what it leads to", .0.display())]
    LeadsNowhere(PathBuf),
    /// Not a file.
    #[error("`{}` is no plain file", .0.display())]
    NoFile(PathBuf),
    /// More than settings can be.
    #[error("`{}` is larger than {} bytes, so it cannot be settings", .0.display(), file::MAX_LEN)]
    TooLarge(PathBuf),
    /// Not text.
    #[error("`{}` is not UTF-8 text", .0.display())]
    NotText(PathBuf),
    /// The program's path cannot stand in a command.
    #[error("the path of this program is no text that a client could run")]
    Program,
    /// The program would not be known for Lodestar again.
    #[error(
        "this program is called `{0}`; under another name than `lodestar` its hooks would not be found again"
    )]
    OtherName(String),
    /// Too many backups.
    #[error("there are a thousand backups of `{}`; clear them away", .0.display())]
    Backups(PathBuf),
    /// The system refused.
    #[error("`{}`: {problem}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        problem: std::io::Error,
    },
}

/// What is wrong with a text, before anybody says whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No JSON.
    Json(CanonicalError),
    /// Of the wrong shape at this byte.
    Shape {
        /// Where.
        offset: usize,
        /// What.
        what: String,
        /// What it has to be.
        wanted: &'static str,
    },
}

impl Fault {
    fn in_file(self, file: PathBuf, text: &str) -> SettingsError {
        let line = |offset: usize| {
            let before = text.as_bytes().iter().take(offset);
            before.filter(|byte| **byte == b'\n').count() + 1
        };
        let is_comment = |offset: usize| {
            let rest = text.get(offset..).unwrap_or_default();
            rest.starts_with("//") || rest.starts_with("/*")
        };
        match self {
            Self::Json(CanonicalError::Parse { offset, .. }) if is_comment(offset) => {
                SettingsError::Comment {
                    file,
                    line: line(offset),
                }
            }
            Self::Json(problem) => SettingsError::Json {
                file,
                line: match &problem {
                    CanonicalError::Parse { offset, .. } => line(*offset),
                    _ => 1,
                },
                problem,
            },
            Self::Shape {
                offset,
                what,
                wanted,
            } => SettingsError::Shape {
                file,
                line: line(offset),
                what,
                wanted,
            },
        }
    }
}

/// How Lodestar's hooks stand in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// None is there.
    Absent,
    /// All are there, and run this program.
    Installed,
    /// Some are missing, changed, or run another program.
    Changed,
}

/// A program that clients can run as a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(String);

impl Program {
    /// This program, by its absolute path.
    pub fn at(path: &std::path::Path) -> Result<Self, SettingsError> {
        let text = path.to_str().ok_or(SettingsError::Program)?;
        if !path.is_absolute() || text.chars().any(char::is_control) {
            return Err(SettingsError::Program);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match name == NAME {
            true => Ok(Self(quoted(text))),
            false => Err(SettingsError::OtherName(name.into_owned())),
        }
    }

    fn command(&self, client: Client, event: &str) -> String {
        format!("{} hook {} --event {event}", self.0, client.name())
    }
}

/// One word of a shell, whatever is in it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The events that hooks are installed for. Cursor's older events would tell of the same use a second time.
pub fn hooked(client: Client) -> impl Iterator<Item = (&'static str, Moment)> {
    let all = protocol::events(client).iter().copied();
    all.filter(move |(event, _)| client != Client::Cursor || CURSOR.contains(event))
}

const CURSOR: [&str; 6] = [
    "sessionStart",
    "sessionEnd",
    "beforeSubmitPrompt",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
];

/// The entry of one event.
fn entry(client: Client, event: &str, moment: Moment, program: &Program) -> Value {
    let command = program.command(client, event);
    let stops = matches!(moment, Moment::Before | Moment::Prompt);
    let waits = match (client, moment) {
        (Client::Codex, Moment::Ended) => CODEX_WAITS_AT_THE_END,
        _ => CLIENT_WAITS,
    };
    match client {
        Client::ClaudeCode => {
            let mut hook =
                json!({"type": "command", "command": command, "timeout": waits.as_secs()});
            if stops {
                // A hook that crashes, hangs or is gone blocks; without this it would not.
                hook["onFailure"] = "block".into();
            }
            json!({"hooks": [hook]})
        }
        Client::Codex => json!({"hooks": [
            {"type": "command", "command": command, "timeout": waits.as_secs()},
        ]}),
        Client::Gemini => {
            let millis = u64::try_from(waits.as_millis()).unwrap_or(u64::MAX);
            let hook = json!({"name": "lodestar", "type": "command", "command": command, "timeout": millis});
            match moment {
                Moment::Before | Moment::After => json!({"matcher": "*", "hooks": [hook]}),
                _ => json!({"hooks": [hook]}),
            }
        }
        Client::Cursor => {
            let mut hook = json!({"command": command, "timeout": waits.as_secs()});
            if stops {
                hook["failClosed"] = true.into();
            }
            hook
        }
    }
}

/// What an empty file begins with.
fn blank(client: Client) -> &'static str {
    match client {
        Client::Cursor => "{\n  \"version\": 1\n}\n",
        Client::ClaudeCode | Client::Codex | Client::Gemini => "{}\n",
    }
}

/// The text with Lodestar's hooks in it, where there is one; else a new one. A text that has them stays as it is.
pub fn with_hooks(client: Client, text: Option<&str>, program: &Program) -> Result<String, Fault> {
    let text = match text {
        Some(text) if !text.trim().is_empty() => text,
        _ => blank(client),
    };
    match state(client, text, program)? {
        State::Installed => return Ok(text.to_owned()),
        State::Absent | State::Changed => {}
    }
    let mut edited = Edited::new(without_hooks(client, text)?);
    for (event, moment) in hooked(client) {
        let entry = entry(client, event, moment, program);
        edited.append(&["hooks", event], &entry)?;
    }
    Ok(edited.text())
}

/// The text without any hook of Lodestar's for this client, and without lists that are empty then.
pub fn without_hooks(client: Client, text: &str) -> Result<String, Fault> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let mut edited = Edited::new(text.to_owned());
    while let Some((event, at)) = first_of_ours(client, edited.now())? {
        edited.remove_item(&event, &at)?;
    }
    Ok(edited.text())
}

/// How Lodestar's hooks stand in a text.
pub fn state(client: Client, text: &str, program: &Program) -> Result<State, Fault> {
    if text.trim().is_empty() {
        return Ok(State::Absent);
    }
    let tree = Tree::of(text)?;
    let hooks = lists(&tree)?;
    let mut found = 0;
    let mut right = 0;
    for (event, items) in &hooks {
        for item in *items {
            let value = tree.value(item);
            if !handlers(&value).any(|command| is_ours(client, command)) {
                continue;
            }
            found += 1;
            let wanted = hooked(client).find(|(name, _)| name == event);
            right += usize::from(
                wanted.is_some_and(|(name, moment)| value == entry(client, name, moment, program)),
            );
        }
    }
    Ok(match (found, right) {
        (0, _) => State::Absent,
        (found, right) if found == right && right == hooked(client).count() => State::Installed,
        _ => State::Changed,
    })
}

/// The lists of hooks, by event. A list that is none is a fault: a client would not run it either.
fn lists<'t>(tree: &'t Tree<'_>) -> Result<Vec<(&'t str, &'t [Node])>, Fault> {
    let Some(members) = tree.root().members() else {
        return Err(tree.fault(tree.root(), "the file", "a JSON object"));
    };
    let Some(hooks) = members.iter().find(|member| member.key == "hooks") else {
        return Ok(Vec::new());
    };
    let Some(events) = hooks.value.members() else {
        return Err(tree.fault(&hooks.value, "hooks", "an object"));
    };
    // Older settings of Gemini CLI keep switches among the events.
    let lists = events.iter();
    let lists = lists.filter_map(|event| Some((event.key.as_str(), event.value.items()?)));
    Ok(lists.collect())
}

/// The commands of an entry: its own, or those of the hooks in it.
fn handlers(entry: &Value) -> impl Iterator<Item = &str> {
    let inner = entry["hooks"].as_array().map_or(&[][..], Vec::as_slice);
    let all = std::iter::once(entry).chain(inner);
    all.filter_map(|one| one["command"].as_str())
}

/// Whether a command is `… hook <client> --event …` of a program that is called `lodestar`.
fn is_ours(client: Client, command: &str) -> bool {
    let Some((program, event)) = command.rsplit_once(" --event ") else {
        return false;
    };
    let Some(program) = program.strip_suffix(&format!(" hook {}", client.name())) else {
        return false;
    };
    let program = program.trim_matches('\'');
    let name = program.rsplit('/').next().unwrap_or_default();
    name == NAME && !event.is_empty() && event.chars().all(|c| c.is_ascii_alphabetic())
}

/// Where the first thing of ours stands: the event, and the place in its list, or in the list of hooks of an entry
/// that others share.
fn first_of_ours(client: Client, text: &str) -> Result<Option<(String, Vec<usize>)>, Fault> {
    let tree = Tree::of(text)?;
    for (event, items) in lists(&tree)? {
        for (at, item) in items.iter().enumerate() {
            let value = tree.value(item);
            let ours = |command: &str| is_ours(client, command);
            if !handlers(&value).any(ours) {
                continue;
            }
            let inner = value["hooks"].as_array();
            let is_ours_alone = inner.is_none_or(|hooks| {
                let mut hooks = hooks.iter();
                hooks.all(|hook| hook["command"].as_str().is_some_and(ours))
            });
            let place = match (is_ours_alone, inner) {
                (false, Some(hooks)) => {
                    let mut hooks = hooks.iter();
                    let inside = hooks.position(|hook| hook["command"].as_str().is_some_and(ours));
                    inside.map_or_else(|| vec![at], |inside| vec![at, inside])
                }
                _ => vec![at],
            };
            return Ok(Some((event.to_owned(), place)));
        }
    }
    Ok(None)
}

/// Whether two texts say the same.
#[cfg(test)]
fn same(one: &str, other: &str) -> bool {
    canonical::canonicalize(one.as_bytes()).ok() == canonical::canonicalize(other.as_bytes()).ok()
}

fn checked(text: &str) -> Result<(), Fault> {
    canonical::parse(text.as_bytes())
        .map(drop)
        .map_err(Fault::Json)
}
