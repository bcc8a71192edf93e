//! Which governed tool a use is, and with which arguments: what names places, commands and addresses is told
//! from what is only written or said.
//!
//! Nothing of what the client said is left out: what is hashed and shown is the whole use, in the same form
//! for every client. What fits none of the known forms is judged as a tool that nobody graded.

use std::path::{Path, PathBuf};

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;
use lodestar_kernel::command;
use serde_json::{Map, Value, json};

use super::{READING, Sort, name, places};
use crate::hook::{Client, Kind, Use};

/// What clients call places.
const PLACES: [&str; 20] = [
    "absolute_path",
    "cwd",
    "dir",
    "dir_path",
    "directory",
    "file",
    "file_path",
    "filename",
    "files",
    "folder",
    "glob",
    "include",
    "notebook_path",
    "path",
    "paths",
    "relative_path",
    "root",
    "target_directory",
    "target_file",
    "workdir",
];

/// What clients call what is written, said or looked for.
const CONTENTS: [&str; 24] = [
    "cell_id",
    "cell_type",
    "code_edit",
    "content",
    "contents",
    "description",
    "diff",
    "edit_mode",
    "edits",
    "explanation",
    "instruction",
    "instructions",
    "new_content",
    "new_source",
    "new_str",
    "new_string",
    "old_content",
    "old_str",
    "old_string",
    "patch",
    "pattern",
    "prompt",
    "query",
    "text",
];

/// What a patch in Codex's form says before the name of a file.
const PATCHED: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// A use, as the session judges it.
#[derive(Debug)]
pub(in crate::hook) struct Governed {
    /// The governed tool.
    pub(in crate::hook) tool: String,
    /// Its arguments.
    pub(in crate::hook) arguments: Map<String, Value>,
}

/// What a use comes to in a project at this root.
pub(in crate::hook) fn governed(
    client: Client,
    used: &Use,
    cwd: Option<&Path>,
    root: &Path,
) -> Governed {
    let cwd = cwd.filter(|cwd| cwd.is_absolute()).unwrap_or(root);
    let known = match used.kind {
        Kind::Read => of_files(used, cwd, root, Sort::Read),
        Kind::Find => of_files(used, cwd, root, Sort::Find),
        Kind::Edit => of_files(used, cwd, root, Sort::Edit),
        Kind::Write => of_files(used, cwd, root, Sort::Write),
        Kind::Shell => of_shell(used, cwd),
        Kind::Fetch => of_fetch(used),
        Kind::Search => Some((Sort::Search, spoken(used))),
        Kind::Agent => Some((Sort::Agent, spoken(used))),
        Kind::Note => Some((Sort::Note, json!({"contents": used.input}))),
        Kind::Mcp => Some((Sort::Mcp, json!({"rest": used.input}))),
        Kind::Other => None,
    };
    let (sort, arguments) = known.unwrap_or_else(|| (Sort::Other, json!({"rest": used.input})));
    let Value::Object(mut arguments) = arguments else {
        unreachable!("every branch makes an object")
    };
    // What is empty says nothing, and the same use is always the same call.
    arguments.retain(|_, value| match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
    arguments.insert("tool".to_owned(), json!(used.tool));
    arguments.insert("cwd".to_owned(), json!(cwd.to_string_lossy()));
    Governed {
        tool: name(client, sort),
        arguments,
    }
}

/// The members of an input, by what they are.
#[derive(Default)]
struct Sorted {
    places: Vec<String>,
    contents: Map<String, Value>,
    rest: Map<String, Value>,
}

impl Sorted {
    fn of(used: &Use) -> Self {
        let mut sorted = Self::default();
        let globs = used.tool.to_ascii_lowercase().contains("glob");
        for (member, value) in &used.input {
            let called = snake(member);
            let is_place = PLACES.contains(&called.as_str()) || (globs && called == "pattern");
            if is_place && is_texts(value) {
                // Written twice, so that two uses that differ in how they say it differ.
                collect(value, &mut sorted.places);
                sorted.rest.insert(member.clone(), value.clone());
            } else if CONTENTS.contains(&called.as_str()) {
                places_inside(value, &mut sorted.places);
                sorted.contents.insert(member.clone(), value.clone());
            } else {
                sorted.rest.insert(member.clone(), value.clone());
            }
        }
        sorted
    }
}

fn of_files(used: &Use, cwd: &Path, root: &Path, inside: Sort) -> Option<(Sort, Value)> {
    let mut sorted = Sorted::of(used);
    let writes = matches!(inside, Sort::Edit | Sort::Write);
    if writes {
        let patches = sorted.contents.values().chain(sorted.rest.values());
        let patched: Vec<String> = patches
            .filter_map(Value::as_str)
            .flat_map(patched_files)
            .collect();
        sorted.places.extend(patched);
    }
    if sorted.places.is_empty() {
        match inside {
            // Without a place it looks where it stands.
            Sort::Find => sorted.places.push(".".to_owned()),
            // A file that nobody knows may be any file.
            _ => return None,
        }
    }
    let paths = absolute(cwd, &sorted.places);
    let all_inside = paths.iter().all(|path| places::lies_in(root, path));
    let sort = match (inside, all_inside) {
        (Sort::Edit | Sort::Write, false) => Sort::WriteOutside,
        (Sort::Read | Sort::Find, false) => Sort::ReadOutside,
        (sort, _) => sort,
    };
    let Sorted { contents, rest, .. } = sorted;
    let patch = |(name, value): (String, Value)| (name, value);
    // A whole patch is text, whatever its member is called.
    let (contents, rest): (Map<_, _>, Map<_, _>) = match writes {
        true => {
            let (text, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(_, value)| {
                let text = value.as_str();
                text.is_some_and(|text| patched_files(text).next().is_some())
            });
            let contents = contents.into_iter().chain(text.into_iter().map(patch));
            (contents.collect(), rest.into_iter().collect())
        }
        false => (contents, rest),
    };
    let shown = shown(&paths);
    Some((
        sort,
        json!({"paths": shown, "contents": contents, "rest": rest}),
    ))
}

fn of_shell(used: &Use, cwd: &Path) -> Option<(Sort, Value)> {
    let (member, line) = used.input.iter().find_map(|(member, value)| {
        let is_command = matches!(snake(member).as_str(), "command" | "cmd" | "script");
        let line = is_command.then(|| command_line(value)).flatten()?;
        Some((member.clone(), line))
    })?;
    let Sorted {
        places,
        contents,
        mut rest,
    } = Sorted::of(used);
    if rest.get(&member).is_some_and(Value::is_string) {
        rest.remove(&member);
    }
    // Where the tool says itself where it runs, words start from there.
    let there = places.first().map(|place| places::from(cwd, place));
    let there = there.filter(|place| place.is_dir());
    // What names a place inside the project is told by its text, from where the conversation works.
    let reading = match cwd.to_str() {
        Some(root) => command::read_in(&line, root),
        None => command::read(&line),
    };
    let is_elsewhere = |place: &PathBuf| !places::lies_in(cwd, place);
    let (rung, why) = match there.as_ref().is_some_and(is_elsewhere) {
        true if reading.rung < Rung::L4 => (
            Rung::L4,
            "it runs in another folder than the conversation does".to_owned(),
        ),
        _ => (reading.rung, reading.reason.clone()),
    };
    let why = why.trim_end_matches('.');
    let mut parts = reading.parts.iter();
    let why = match parts.find(|part| part.rung == rung) {
        Some(part) => format!("{rung}, by `{}`: {why}", Excerpt::of(&part.words.join(" "))),
        None => format!("{rung}: {why}"),
    };
    let sort = match rung {
        Rung::L0 => Sort::ShellLook,
        Rung::L1 | Rung::L2 | Rung::L3 => Sort::ShellLocal,
        Rung::L4 => Sort::ShellExternal,
        Rung::L5 => Sort::ShellProhibited,
    };
    let mut paths = absolute(cwd, &places);
    let named: Vec<String> = reading.writes.into_iter().chain(reading.reads).collect();
    paths.extend(absolute(there.as_deref().unwrap_or(cwd), &named));
    let shown = shown(&paths);
    Some((
        sort,
        json!({"command": line, READING: why, "paths": shown, "contents": contents, "rest": rest}),
    ))
}

fn of_fetch(used: &Use) -> Option<(Sort, Value)> {
    let Sorted {
        contents, mut rest, ..
    } = Sorted::of(used);
    let mut arguments = json!({"contents": contents});
    if let Some(Value::String(url)) = rest.remove("url") {
        arguments["url"] = json!(url);
    }
    arguments["rest"] = json!(rest);
    Some((Sort::Fetch, arguments))
}

/// What is said to somebody: an agent, a search engine.
fn spoken(used: &Use) -> Value {
    let Sorted { contents, rest, .. } = Sorted::of(used);
    json!({"contents": contents, "rest": rest})
}

/// A command as one line: a list of words is quoted, and a shell's script is the line itself.
fn command_line(value: &Value) -> Option<String> {
    let words: Vec<&str> = match value {
        Value::String(line) => return Some(line.clone()),
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    if let [shell, flags, script] = words.as_slice()
        && ["sh", "bash", "zsh", "dash"].contains(&shell.rsplit('/').next().unwrap_or_default())
        && ["-c", "-lc", "-cl"].contains(flags)
    {
        return Some((*script).to_owned());
    }
    let quoted = words.iter().map(|word| quoted(word));
    (!words.is_empty()).then(|| quoted.collect::<Vec<_>>().join(" "))
}

fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// `filePath` and `file_path` are one name.
fn snake(name: &str) -> String {
    let mut made = String::with_capacity(name.len());
    let mut before_was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && before_was_lower {
            made.push('_');
        }
        before_was_lower = c.is_ascii_lowercase();
        made.push(c.to_ascii_lowercase());
    }
    made
}

fn is_texts(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        _ => false,
    }
}

fn collect(value: &Value, places: &mut Vec<String>) {
    match value {
        Value::String(text) => places.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, places)),
        _ => {}
    }
}

/// Places that stand deeper, as in a list of edits of several files.
fn places_inside(value: &Value, places: &mut Vec<String>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                for (member, value) in members {
                    match PLACES.contains(&snake(member).as_str()) && is_texts(value) {
                        true => collect(value, places),
                        false => open.push(value),
                    }
                }
            }
            _ => {}
        }
    }
}

fn patched_files(text: &str) -> impl Iterator<Item = String> {
    let files = text.lines().filter_map(|line| {
        let mut beginnings = PATCHED.iter();
        beginnings.find_map(|beginning| line.trim_start().strip_prefix(beginning))
    });
    files.map(|file| file.trim().to_owned())
}

fn absolute(cwd: &Path, written: &[String]) -> Vec<PathBuf> {
    let paths = written.iter().map(|written| places::from(cwd, written));
    let mut paths: Vec<PathBuf> = paths.collect();
    let mut seen = std::collections::BTreeSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    let shown = paths.iter().map(|path| path.to_string_lossy().into_owned());
    shown.collect()
}
