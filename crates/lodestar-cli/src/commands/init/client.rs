//! Clients: where each keeps its servers, and in what form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item};

use super::jsonc;
use super::reference::{Lookup, Syntax};
use crate::failure::Failure;
use crate::{files, inert};

/// A client's configuration is written by people and by the client; it also keeps histories there.
const MAX_FILE: u64 = 32 << 20;

/// Whose configuration it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Codex,
    Other,
}

/// A client's configuration, read.
pub(crate) struct ClientFile {
    pub(crate) client: Client,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The member with the servers.
    pub(crate) member: &'static str,
    /// The servers, by the client's names, in its order.
    pub(crate) servers: Map<String, Value>,
    /// The project's folder, where the file lies in one.
    pub(crate) project: Option<PathBuf>,
}

impl Client {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Other => "the client",
        }
    }

    /// As a name of an actor.
    pub(crate) fn actor(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Other => "agent",
        }
    }

    pub(crate) fn syntax(self) -> Syntax {
        match self {
            Self::ClaudeCode => Syntax::Shell,
            Self::Cursor | Self::VsCode => Syntax::Editor,
            Self::ClaudeDesktop | Self::Codex => Syntax::None,
            Self::Other => Syntax::Any,
        }
    }

    /// By the place of a file.
    fn of(path: &Path) -> Self {
        let name = |path: Option<&Path>| {
            let name = path.and_then(Path::file_name).unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let (file, folder) = (name(Some(path)), name(path.parent()));
        match (folder.as_str(), file.as_str()) {
            (_, ".mcp.json" | ".claude.json") => Self::ClaudeCode,
            (_, "claude_desktop_config.json") => Self::ClaudeDesktop,
            (".cursor", "mcp.json") => Self::Cursor,
            (".vscode" | "User", "mcp.json") => Self::VsCode,
            (_, file) if file.ends_with(".toml") => Self::Codex,
            _ => Self::Other,
        }
    }

    /// The project that a file of this client's lies in; none for one of the user's.
    fn project_of(self, path: &Path, home: Option<&Path>) -> Option<PathBuf> {
        let folder = path.parent()?;
        let project = match self {
            Self::ClaudeCode if path.ends_with(".mcp.json") => folder,
            Self::Cursor | Self::Codex => folder.parent()?,
            Self::VsCode if folder.ends_with(".vscode") => folder.parent()?,
            Self::ClaudeCode | Self::ClaudeDesktop | Self::VsCode | Self::Other => return None,
        };
        (Some(project) != home).then(|| project.to_owned())
    }
}

/// Where clients keep their servers: in a project, and for a user.
pub(crate) fn places(here: &Path, home: Option<&Path>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let project = [
        ".mcp.json",
        ".cursor/mcp.json",
        ".vscode/mcp.json",
        ".codex/config.toml",
    ];
    let user = [
        ".claude.json",
        ".cursor/mcp.json",
        ".codex/config.toml",
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
    ];
    let below =
        |folder: &Path, names: &[&str]| names.iter().map(|name| folder.join(name)).collect();
    (
        below(here, &project),
        home.map(|home| below(home, &user)).unwrap_or_default(),
    )
}

impl ClientFile {
    /// Reads the file of a client.
    pub(crate) fn read(path: &Path, home: Option<&Path>) -> Result<Self, Failure> {
        let shown = inert::path(path);
        let bytes = files::read(path, MAX_FILE)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::usage(format!("`{shown}` is not UTF-8 text")))?;
        let path = path.canonicalize().map_err(Failure::io(path))?;
        let mut client = Client::of(&path);
        let refused = |problem: String| {
            Failure::usage(format!("`{shown}`: {problem}"))
                .help("`lodestar init --from FILE` reads `mcpServers` or `servers` of a JSON file, or `[mcp_servers]` of a TOML file")
        };
        let (member, servers) = match client {
            Client::Codex => ("mcp_servers", of_toml(&text).map_err(refused)?),
            _ => of_json(&text).map_err(refused)?,
        };
        if client == Client::Other && member == "servers" {
            client = Client::VsCode;
        }
        Ok(Self {
            client,
            member,
            servers,
            project: client.project_of(&path, home),
            path,
            text,
        })
    }

    /// As [`read`](Self::read), for a file that nobody named: nothing where it is none, or has no servers; an
    /// error where it cannot be read as what it should be.
    pub(crate) fn look(path: &Path, home: Option<&Path>) -> Result<Option<Self>, Failure> {
        if !path.is_file() {
            return Ok(None);
        }
        let read = Self::read(path, home);
        let is_readable = || {
            let text = String::from_utf8(files::read(path, MAX_FILE).ok()?).ok()?;
            match Client::of(path) {
                Client::Codex => text.parse::<toml_edit::DocumentMut>().ok().map(drop),
                _ => serde_json::from_str::<Map<String, Value>>(&jsonc::plain(&text))
                    .ok()
                    .map(drop),
            }
        };
        match read {
            Ok(file) => Ok(Some(file)),
            Err(_) if is_readable().is_some() => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Whether a server of the client's is the proxy with this configuration.
    pub(crate) fn starts(entry: &Value, config: &Path) -> bool {
        let args = entry["args"].as_array().into_iter().flatten();
        let args: Vec<&str> = args.filter_map(Value::as_str).collect();
        let named = args.iter().skip_while(|arg| **arg != "--config").nth(1);
        let same = |named: &&str| match (Path::new(named).canonicalize(), config.canonicalize()) {
            (Ok(named), Ok(config)) => named == config,
            _ => false,
        };
        Self::is_proxy(entry) && named.is_some_and(same)
    }

    /// Whether a server of the client's is the proxy already.
    pub(crate) fn is_proxy(entry: &Value) -> bool {
        let args = entry["args"].as_array();
        let words = args.map(|args| args.iter().filter_map(Value::as_str).collect::<Vec<_>>());
        words.is_some_and(|words| words.starts_with(&["guard", "mcp-proxy"]))
    }
}

/// What the clients that start the proxy with this configuration give to its environment, as far as it is known.
pub(crate) fn environment(root: &Path, config: &Path) -> BTreeMap<String, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let (mut files, of_user) = places(root, home.as_deref());
    files.extend(of_user);
    let variable = |name: &str| std::env::var(name).ok();
    let mut environment = BTreeMap::new();
    for path in files.iter().filter(|path| path.is_file()) {
        let Ok(file) = ClientFile::read(path, home.as_deref()) else {
            continue;
        };
        let lookup = Lookup {
            syntax: file.client.syntax(),
            folder: root,
            variable: &variable,
        };
        let entries = file.servers.values();
        for entry in entries.filter(|entry| ClientFile::starts(entry, config)) {
            for (name, value) in entry["env"].as_object().into_iter().flatten() {
                let expanded = lookup.expand(value.as_str().unwrap_or_default());
                if expanded.missing.is_empty() {
                    environment.insert(name.clone(), expanded.text);
                }
            }
        }
    }
    environment
}

fn of_json(text: &str) -> Result<(&'static str, Map<String, Value>), String> {
    let plain = jsonc::plain(text);
    let all: Map<String, Value> = serde_json::from_str(&plain)
        .map_err(|problem| format!("it is no JSON object: {problem}"))?;
    let member = ["mcpServers", "servers"]
        .into_iter()
        .find(|member| all.contains_key(*member));
    let member = member.ok_or("it has neither `mcpServers` nor `servers`")?;
    match &all[member] {
        Value::Object(servers) => Ok((member, servers.clone())),
        _ => Err(format!("its `{member}` is no object")),
    }
}

/// Where the member with the servers begins and ends in the text.
pub(crate) fn place_of_servers(text: &str, member: &str) -> Option<std::ops::Range<usize>> {
    #[derive(Deserialize)]
    struct Top<'a> {
        #[serde(borrow, rename = "mcpServers")]
        mcp_servers: Option<&'a RawValue>,
        #[serde(borrow)]
        servers: Option<&'a RawValue>,
    }
    let plain = jsonc::plain(text);
    let top: Top<'_> = serde_json::from_str(&plain).ok()?;
    let found = match member {
        "servers" => top.servers,
        _ => top.mcp_servers,
    }?;
    let start = found.get().as_ptr() as usize - plain.as_ptr() as usize;
    Some(start..start + found.get().len())
}

/// A TOML document as JSON. Times become texts.
pub(crate) fn json_of_toml(text: &str) -> Result<Map<String, Value>, String> {
    let document: DocumentMut = text
        .parse()
        .map_err(|problem: toml_edit::TomlError| format!("it is no TOML: {problem}"))?;
    let members = document.iter();
    Ok(members
        .map(|(key, item)| (key.to_owned(), json(item)))
        .collect())
}

fn of_toml(text: &str) -> Result<Map<String, Value>, String> {
    match json_of_toml(text)?.remove("mcp_servers") {
        None => Err("it has no `[mcp_servers]`".to_owned()),
        Some(Value::Object(servers)) => Ok(servers),
        Some(_) => Err("its `mcp_servers` is no table".to_owned()),
    }
}

fn json(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => json_of_value(value),
        Item::Table(table) => table.iter().map(|(k, v)| (k.to_owned(), json(v))).collect(),
        Item::ArrayOfTables(tables) => tables
            .iter()
            .map(|table| json(&Item::Table(table.clone())))
            .collect(),
    }
}

fn json_of_value(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => text.value().as_str().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(is) => (*is.value()).into(),
        Toml::Datetime(time) => time.value().to_string().into(),
        Toml::Array(items) => items.iter().map(json_of_value).collect(),
        Toml::InlineTable(table) => table
            .iter()
            .map(|(key, value)| (key.to_owned(), json_of_value(value)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_where_they_lie() {
        let home = Some(Path::new("/home/ada"));
        for (path, client, project) in [
            ("/w/.mcp.json", Client::ClaudeCode, Some("/w")),
            ("/home/ada/.claude.json", Client::ClaudeCode, None),
            ("/w/.cursor/mcp.json", Client::Cursor, Some("/w")),
            ("/home/ada/.cursor/mcp.json", Client::Cursor, None),
            ("/w/.vscode/mcp.json", Client::VsCode, Some("/w")),
            ("/home/ada/.codex/config.toml", Client::Codex, None),
            ("/w/x.json", Client::Other, None),
        ] {
            let path = Path::new(path);
            assert_eq!(Client::of(path), client);
            assert_eq!(
                client.project_of(path, home).as_deref(),
                project.map(Path::new)
            );
        }
    }

    #[test]
    fn the_place_of_the_servers_is_found_behind_comments() {
        let text = "{ // a\n \"x\": {\"servers\": 1}, /* ü */ \"servers\": { \"a\": {}, }, }";
        let place = place_of_servers(text, "servers").expect("found");
        assert_eq!(&text[place], "{ \"a\": {}, }");
    }
}
