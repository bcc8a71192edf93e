//! The change to a client's configuration: its servers give way to the proxy, the rest stays to the byte.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

use super::client::{Client, ClientFile, place_of_servers};
use super::draft::{Draft, Given};
use crate::failure::Failure;
use crate::{files, inert};

/// What the proxy is called in the client.
const NAME: &str = "lodestar";

/// How the client starts the proxy.
pub(crate) struct Proxy {
    program: String,
    config: String,
    given: BTreeMap<String, Given>,
    /// Where this installation's keys are, if not where they are looked for anyway.
    keys: Option<String>,
}

impl Proxy {
    pub(crate) fn new(config: &Path, drafts: &[&Draft]) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(Failure::io("lodestar"))?;
        let given = drafts.iter().flat_map(|draft| draft.given.clone());
        Ok(Self {
            program: program.to_string_lossy().into_owned(),
            config: config.to_string_lossy().into_owned(),
            given: given.collect(),
            keys: std::env::var("LODESTAR_CONFIG_DIR")
                .ok()
                .filter(|dir| !dir.is_empty()),
        })
    }

    fn args(&self) -> [&str; 4] {
        ["guard", "mcp-proxy", "--config", &self.config]
    }

    /// The variables that are spelled out.
    fn spelled(&self) -> Vec<(&str, &str)> {
        let given = self.given.iter();
        let spelled = given.filter_map(|(name, given)| match given {
            Given::Spelled(text) => Some((name.as_str(), text.as_str())),
            Given::Passed | Given::File(_) => None,
        });
        let keys = self
            .keys
            .as_deref()
            .map(|keys| ("LODESTAR_CONFIG_DIR", keys));
        spelled.chain(keys).collect()
    }

    fn passed(&self) -> Vec<&str> {
        let given = self.given.iter();
        let passed = given.filter(|(_, given)| **given == Given::Passed);
        passed.map(|(name, _)| name.as_str()).collect()
    }

    fn env_file(&self) -> Option<&str> {
        self.given.values().find_map(|given| match given {
            Given::File(file) => Some(file.as_str()),
            Given::Spelled(_) | Given::Passed => None,
        })
    }

    /// As a server of a JSON client's.
    pub(crate) fn entry(&self, client: Client) -> Value {
        let mut entry = Map::new();
        if matches!(client, Client::VsCode | Client::ClaudeCode) {
            entry.insert("type".to_owned(), "stdio".into());
        }
        entry.insert("command".to_owned(), self.program.as_str().into());
        entry.insert("args".to_owned(), json!(self.args()));
        let env: Map<String, Value> = self
            .spelled()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        if !env.is_empty() {
            entry.insert("env".to_owned(), env.into());
        }
        if let Some(file) = self.env_file() {
            entry.insert("envFile".to_owned(), file.into());
        }
        entry.into()
    }

    /// The client's file with the proxy in place of its servers.
    pub(crate) fn put_into(&self, file: &ClientFile) -> Result<String, Failure> {
        let edited = match file.client {
            Client::Codex => self.toml(&file.text),
            client => self.json(&file.text, file.member, client),
        };
        let shown = inert::path(&file.path);
        edited.ok_or_else(|| {
            Failure::usage(format!("`{shown}` cannot be edited in place"))
                .help("put what is printed without --write into it by hand")
        })
    }

    fn json(&self, text: &str, member: &str, client: Client) -> Option<String> {
        let place = place_of_servers(text, member)?;
        let line = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
        let indent: String = text[line..]
            .chars()
            .take_while(|c| matches!(c, ' ' | '\t'))
            .collect();
        let unit = if indent.starts_with('\t') { "\t" } else { "  " };
        let entry = json!({NAME: self.entry(client)});
        let pretty = serde_json::to_string_pretty(&entry).ok()?;
        let mut lines = pretty.lines();
        let mut new = lines.next()?.to_owned();
        for line in lines {
            let depth = line.len() - line.trim_start().len();
            new.push_str(&format!(
                "\n{indent}{}{}",
                unit.repeat(depth / 2),
                line.trim_start()
            ));
        }
        Some(format!(
            "{}{new}{}",
            &text[..place.start],
            &text[place.end..]
        ))
    }

    fn toml(&self, text: &str) -> Option<String> {
        let mut document: DocumentMut = text.parse().ok()?;
        let mut table = Table::new();
        table.insert("command", toml_edit::value(self.program.as_str()));
        let args: Array = self.args().into_iter().collect();
        table.insert("args", toml_edit::value(args));
        let env: InlineTable = self.spelled().into_iter().collect();
        if !env.is_empty() {
            table.insert("env", toml_edit::value(env));
        }
        let passed: Array = self.passed().into_iter().collect();
        if !passed.is_empty() {
            table.insert("env_vars", toml_edit::value(passed));
        }
        let servers = document.get_mut("mcp_servers")?.as_table_like_mut()?;
        let first = servers
            .iter()
            .find_map(|(_, item)| item.as_table()?.position());
        if let Some(first) = first {
            table.set_position(Some(first));
        }
        servers.clear();
        servers.insert(NAME, Item::Table(table));
        Some(document.to_string())
    }
}

/// Keeps a file as it is under another name beside it, never in the place of an older one.
pub(crate) fn back_up(path: &Path, text: &str) -> Result<PathBuf, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..1000 {
        let ending = if number == 1 {
            "bak".to_owned()
        } else {
            format!("bak.{number}")
        };
        let beside = path.with_file_name(format!("{name}.{ending}"));
        let created = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside);
        match created {
            Ok(mut file) => {
                let permissions = path.metadata().map_err(Failure::io(path))?.permissions();
                file.set_permissions(permissions)
                    .map_err(Failure::io(&beside))?;
                file.write_all(text.as_bytes())
                    .map_err(Failure::io(&beside))?;
                file.sync_all().map_err(Failure::io(&beside))?;
                return Ok(beside);
            }
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {}
            Err(problem) => return Err(Failure::io(&beside)(problem)),
        }
    }
    Err(Failure::usage(format!(
        "there are a thousand backups of `{}`; clear them away",
        inert::path(path)
    )))
}

/// Puts a new text into a file, whole or not at all, and keeps who may read it.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let permissions = path.metadata().map_err(Failure::io(path))?.permissions();
    files::replace(path, |to| Ok(to.write_all(text.as_bytes())?))?;
    std::fs::set_permissions(path, permissions).map_err(Failure::io(path))
}
