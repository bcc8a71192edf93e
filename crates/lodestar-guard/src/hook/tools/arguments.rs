//! Which governed tool a use is, and with which arguments: what names places, commands and addresses is told
//! from what is only written or said.
//!
//! Nothing of what the client said is left out: what is hashed and shown is the whole use, in the same form
//! for every client. What fits none of the known forms is judged as a tool that nobody graded, and so is what a
//! client could take in two ways: of two commands or two addresses, nobody here knows which one it takes.

use std::path::{Path, PathBuf};

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;
use lodestar_kernel::command;
use serde_json::{Map, Value, json};

use super::names::{
    ADDRESSES, AROUND_COMMANDS, COMMANDS, CONTENTS, LOOKING_OPERATIONS, PLACES, snake,
};
use super::patch::{self, Patch};
use super::{READING, Sort, name, places};
use crate::hook::{Client, Kind, Use};

/// A use, as the session judges it.
#[derive(Debug, Clone, PartialEq)]
pub struct Governed {
    /// The governed tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// What a use comes to in a project at this root.
pub fn governed(client: Client, used: &Use, cwd: Option<&Path>, root: &Path) -> Governed {
    let told = cwd.unwrap_or(root);
    // One that is not absolute says nothing, and what is named from it could lie anywhere.
    let cwd = match told.is_absolute() {
        true => told,
        false => Path::new("/"),
    };
    let known = match used.kind {
        Kind::Read => of_files(used, cwd, root, Sort::Read),
        Kind::Find => of_files(used, cwd, root, Sort::Find),
        Kind::Edit => of_files(used, cwd, root, Sort::Edit),
        Kind::Write => of_files(used, cwd, root, Sort::Write),
        Kind::Shell => of_shell(used, cwd, root),
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
    arguments.insert("cwd".to_owned(), json!(told.to_string_lossy()));
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
    /// Whether something names a place in a form that nobody can read.
    is_unclear: bool,
}

impl Sorted {
    fn of(used: &Use) -> Self {
        let mut sorted = Self::default();
        let globs = used.tool.to_ascii_lowercase().contains("glob");
        for (member, value) in &used.input {
            let called = snake(member);
            let is_place = PLACES.contains(&called.as_str()) || (globs && called == "pattern");
            if is_place {
                // Written twice, so that two uses that differ in how they say it differ.
                sorted.is_unclear |= !collect(value, &mut sorted.places);
                sorted.rest.insert(member.clone(), value.clone());
            } else if CONTENTS.contains(&called.as_str()) {
                sorted.is_unclear |= !places_inside(value, &mut sorted.places);
                sorted.contents.insert(member.clone(), value.clone());
            } else {
                sorted.rest.insert(member.clone(), value.clone());
            }
        }
        sorted
    }

    /// Finds the files of patches, which are text, whatever their member is called; none where nobody can tell
    /// which they are.
    fn with_patches(mut self, tool: &str) -> Option<Self> {
        let mut is_patched = false;
        let members = self.contents.iter().chain(&self.rest);
        let mut texts = Vec::new();
        for (member, value) in members {
            match value.as_str().map_or(Patch::No, patch::read) {
                Patch::No => {}
                Patch::Unclear => return None,
                Patch::Of(files) => {
                    is_patched = true;
                    texts.push(member.clone());
                    self.places.extend(files);
                }
            }
        }
        for member in texts {
            if let Some(text) = self.rest.remove(&member) {
                self.contents.insert(member, text);
            }
        }
        let takes_patches = tool.to_ascii_lowercase().contains("patch");
        (is_patched || !takes_patches).then_some(self)
    }
}

fn of_files(used: &Use, cwd: &Path, root: &Path, inside: Sort) -> Option<(Sort, Value)> {
    let operations = named(used, &["operation"]);
    let looks = |value: &Value| LOOKING_OPERATIONS.iter().any(|name| value == name);
    if inside == Sort::Find && !operations.iter().all(|(_, value)| looks(value)) {
        return None;
    }
    let sorted = Sorted::of(used);
    let writes = matches!(inside, Sort::Edit | Sort::Write);
    let mut sorted = match writes {
        true => sorted.with_patches(&used.tool)?,
        false => sorted,
    };
    let is_named = sorted.places.iter().all(|place| !place.is_empty());
    if sorted.is_unclear || (!is_named && inside != Sort::Find) {
        return None;
    }
    if sorted.places.is_empty() {
        match inside {
            // Without a place it looks where it stands.
            Sort::Find => sorted.places.push(".".to_owned()),
            // A file that nobody knows may be any file.
            _ => return None,
        }
    }
    let Sorted {
        mut places,
        contents,
        rest,
        ..
    } = sorted;
    // Under a name that nobody knows, a path that leads elsewhere may be meant as one.
    rest.values()
        .for_each(|value| leading_elsewhere(value, &mut places));
    let paths = absolute(cwd, &places);
    let all_inside = paths.iter().all(|path| places::lies_in(root, path));
    let is_secret = match inside {
        Sort::Find => paths
            .iter()
            .any(|path| places::searches_secrets(root, path)),
        _ => paths.iter().any(|path| places::holds_secrets(root, path)),
    };
    let sort = match (writes, is_secret, all_inside) {
        (true, true, true) => Sort::WriteSecret,
        (true, _, false) => Sort::WriteOutside,
        (false, true, _) => Sort::ReadSecret,
        (false, false, false) => Sort::ReadOutside,
        (_, false, true) => inside,
    };
    let shown = shown(&paths);
    Some((
        sort,
        json!({"paths": shown, "contents": contents, "rest": rest}),
    ))
}

fn of_shell(used: &Use, cwd: &Path, root: &Path) -> Option<(Sort, Value)> {
    let (member, line) = match &named(used, &COMMANDS)[..] {
        [(member, value)] => ((*member).to_owned(), command_line(value)?),
        // Which one is run, only the client knows.
        _ => return None,
    };
    let Sorted {
        places,
        contents,
        mut rest,
        is_unclear,
    } = Sorted::of(used);
    if is_unclear {
        return None;
    }
    if rest.get(&member).is_some_and(Value::is_string) {
        rest.remove(&member);
    }
    // Where the tool says itself where it runs, words start from there.
    let starts = match places.is_empty() {
        true => vec![cwd.to_owned()],
        false => absolute(cwd, &places),
    };
    let is_changed = named(used, &AROUND_COMMANDS)
        .iter()
        .any(|(_, value)| !is_nothing(value));
    let starts_inside = starts.iter().all(|start| places::lies_in(root, start));
    let reading = read_line(&line, root, &starts);
    let from_starts = |named: &[String]| -> Vec<PathBuf> {
        let named = starts.iter().flat_map(|start| absolute(start, named));
        named.collect()
    };
    let (writes, reads) = (from_starts(&reading.writes), from_starts(&reading.reads));
    let leads_out = writes.iter().any(|path| places::leads_out(root, path))
        || reads.iter().any(|path| places::leads_to_secret(root, path));
    let beyond = [
        (!starts_inside, "it runs in a folder outside of the project"),
        (is_changed, "what it runs in is changed for it"),
        (
            leads_out,
            "a file that it names leads out of the project, or to a secret",
        ),
    ];
    let beyond = beyond.into_iter().find(|(is_so, _)| *is_so);
    let (rung, why) = match beyond {
        Some((_, why)) if reading.rung < Rung::L4 => (Rung::L4, why),
        _ => (reading.rung, reading.reason.trim_end_matches('.')),
    };
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
    paths.extend(writes);
    paths.extend(reads);
    if rung >= Rung::L4 {
        // What a person agrees to is also what these files say at that moment.
        paths.extend(from_starts(&files_among(&reading.parts, &starts)));
        let mut seen = std::collections::BTreeSet::new();
        paths.retain(|path| seen.insert(path.clone()));
    }
    let shown = shown(&paths);
    Some((
        sort,
        json!({"command": line, READING: why, "paths": shown, "contents": contents, "rest": rest}),
    ))
}

/// Most files that are looked for among the words of a line.
const MAX_FILES: usize = 64;

/// Words that name a file which is there: a script that is run, what is sent, what is applied. Git's are left out, whose
/// state is measured as a whole.
fn files_among(parts: &[command::Part], starts: &[PathBuf]) -> Vec<String> {
    let words = parts
        .iter()
        .filter(|part| part.words.first().is_none_or(|program| program != "git"))
        .flat_map(|part| &part.words);
    let spelt = words.flat_map(|word| {
        let value = word.split_once('=').map(|(_, value)| value);
        [Some(word.as_str()), value]
            .into_iter()
            .flatten()
            .map(|text| text.trim_start_matches('@'))
    });
    let is_file = |text: &&str| {
        let there = |start: &PathBuf| places::from(start, text).is_file();
        !text.is_empty() && starts.iter().any(there)
    };
    let found = spelt.filter(is_file).map(str::to_owned);
    found.take(MAX_FILES).collect()
}

/// What a line comes to that runs in these folders, in a project at this root: what names a place inside is told by
/// its text, from where links really lead.
fn read_line(line: &str, root: &Path, starts: &[PathBuf]) -> command::Reading {
    let real = starts
        .iter()
        .map(|start| places::real(start).unwrap_or_else(|| start.clone()));
    let real: Vec<PathBuf> = real.collect();
    let texts: Option<Vec<&str>> = real.iter().map(|start| start.to_str()).collect();
    match (root.to_str(), texts) {
        (Some(root), Some(starts)) => command::read_from(line, root, &starts),
        // Without the root's name, nothing that is absolute is inside.
        _ => command::read(line),
    }
}

fn of_fetch(used: &Use) -> Option<(Sort, Value)> {
    let addresses = named(used, &ADDRESSES);
    let Sorted {
        contents, mut rest, ..
    } = Sorted::of(used);
    let mut arguments = json!({"contents": contents});
    match &addresses[..] {
        // Gemini CLI has its addresses among the words of a prompt.
        [] => {}
        [(member, Value::String(url))] => {
            rest.remove(*member);
            arguments["url"] = json!(url);
        }
        _ => return None,
    }
    arguments["rest"] = json!(rest);
    Some((Sort::Fetch, arguments))
}

/// The members that are called one of these, in any way to write it.
fn named<'u>(used: &'u Use, names: &[&str]) -> Vec<(&'u str, &'u Value)> {
    let members = used.input.iter();
    let members = members.filter(|(member, _)| names.contains(&snake(member).as_str()));
    members
        .map(|(member, value)| (member.as_str(), value))
        .collect()
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
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

/// Takes the texts of a value that names places; whether it is made of such.
fn collect(value: &Value, places: &mut Vec<String>) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => {
            places.push(text.clone());
            true
        }
        Value::Array(items) => items
            .iter()
            .all(|item| item.is_string() && collect(item, places)),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Takes places that stand deeper, as in a list of edits of several files; whether all could be read.
fn places_inside(value: &Value, places: &mut Vec<String>) -> bool {
    let mut open = vec![value];
    let mut is_clear = true;
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                for (member, value) in members {
                    match PLACES.contains(&snake(member).as_str()) {
                        true => is_clear &= collect(value, places),
                        false => open.push(value),
                    }
                }
            }
            _ => {}
        }
    }
    is_clear
}

/// Takes texts, however deep, that are paths which leave the folder that they are read from.
fn leading_elsewhere(value: &Value, places: &mut Vec<String>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::String(text) => {
                let text = text.trim();
                let climbs = text.split('/').any(|name| name == "..");
                if text.starts_with(['/', '~', '$']) || text.starts_with("file:") || climbs {
                    places.push(text.to_owned());
                }
            }
            _ => {}
        }
    }
}

/// Where these lead, each as it is written and without the blanks around it: clients differ in whether they mean those.
fn absolute(cwd: &Path, written: &[String]) -> Vec<PathBuf> {
    let spelt = written.iter().flat_map(|text| [text.as_str(), text.trim()]);
    let paths = spelt.map(|written| places::from(cwd, written));
    let mut paths: Vec<PathBuf> = paths.collect();
    let mut seen = std::collections::BTreeSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    let shown = paths.iter().map(|path| path.to_string_lossy().into_owned());
    shown.collect()
}
