//! A client's server as one of the configuration's: what it is started or called with, and what the client has
//! to give to the proxy so that the server gets it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lodestar_guard::config::{Confines, Reached, Server, ServerName};
use serde_json::{Map, Value};

use super::client::Client;
use super::reference::{Expanded, Lookup, is_secret};

/// What the client gives to the proxy's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// A text in the client's own spelling, references and all.
    Spelled(String),
    /// The client's own variable of that name.
    Passed,
    /// From a file that the client reads.
    File(String),
}

/// A server on its way into the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// What the client calls it.
    pub(crate) called: String,
    pub(crate) name: ServerName,
    /// Where it is, or why it cannot be wrapped.
    pub(crate) reached: Result<Reached, String>,
    /// Variables that the proxy needs from the client.
    pub(crate) given: BTreeMap<String, Given>,
    /// Their values here, as far as they are known.
    pub(crate) values: BTreeMap<String, String>,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
    /// Tools that the client leaves on; none where it says nothing.
    pub(crate) only: Option<BTreeSet<String>>,
    /// Tools that the client switched off.
    pub(crate) without: BTreeSet<String>,
}

/// What drafts are made with.
pub(crate) struct Drafting<'a> {
    pub(crate) client: Client,
    pub(crate) lookup: Lookup<'a>,
}

impl Drafting<'_> {
    /// All servers of a client, each under a name of its own.
    pub(crate) fn all(&self, servers: &Map<String, Value>) -> Vec<Draft> {
        let mut drafts: Vec<Draft> = Vec::new();
        for (called, entry) in servers {
            let name = free_name(called, &drafts);
            let mut draft = self.one(called, name, entry);
            for (variable, given) in &draft.given {
                let other = drafts.iter().find(|other| {
                    other.reached.is_ok()
                        && other.given.get(variable).is_some_and(|had| had != given)
                });
                if let Some(other) = other {
                    draft.reached = Err(format!(
                        "it and `{}` take `{variable}` with different values, and the proxy has one environment; give one of them another way to it",
                        other.called
                    ));
                    break;
                }
            }
            if draft.reached.is_err() {
                draft.given.clear();
                draft.values.clear();
            }
            drafts.push(draft);
        }
        drafts
    }

    fn one(&self, called: &str, name: ServerName, entry: &Value) -> Draft {
        let mut draft = Draft {
            called: called.to_owned(),
            name,
            reached: Err(String::new()),
            given: BTreeMap::new(),
            values: BTreeMap::new(),
            notes: Vec::new(),
            only: names(&entry["enabled_tools"]),
            without: names(&entry["disabled_tools"]).unwrap_or_default(),
        };
        draft.reached = self.reached(entry, &mut draft);
        draft
    }

    fn reached(&self, entry: &Value, draft: &mut Draft) -> Result<Reached, String> {
        if entry["disabled"] == Value::Bool(true) || entry["enabled"] == Value::Bool(false) {
            return Err(format!("{} has it switched off", self.client.name()));
        }
        let kind = entry["type"].as_str().or(entry["transport"].as_str());
        match kind {
            None | Some("stdio" | "http" | "streamable-http" | "streamableHttp") => {}
            Some("sse") => {
                return Err(
                    "it speaks the older SSE transport, which the proxy does not; most servers that have it also have Streamable HTTP"
                        .to_owned(),
                );
            }
            Some(other) => return Err(format!("the proxy does not know the transport `{other}`")),
        }
        match (entry["command"].as_str(), entry["url"].as_str()) {
            (Some(command), None) => self.child(command, entry, draft),
            (None, Some(url)) => self.elsewhere(url, entry, draft),
            (Some(_), Some(_)) => Err("it has a `command` and a `url`".to_owned()),
            (None, None) => Err("it has neither a `command` nor a `url`".to_owned()),
        }
    }

    fn child(&self, command: &str, entry: &Value, draft: &mut Draft) -> Result<Reached, String> {
        let command = self.settled("command", command, draft)?;
        let mut args = Vec::new();
        for arg in texts(&entry["args"], "args")? {
            args.push(self.settled("args", &arg, draft)?);
        }
        draft.notes.extend(secret_argument(&args).map(spelled_out));
        let mut env = BTreeMap::new();
        let mut inherit_env = BTreeSet::new();
        for (name, value) in members(&entry["env"], "env")? {
            let expanded = self.lookup.expand(&value);
            if expanded.is_open() || (is_secret(&name) && !value.is_empty()) {
                inherit_env.insert(name.clone());
                draft.give(&name, Given::Spelled(value), known(&expanded));
            } else {
                env.insert(name, expanded.text);
            }
        }
        for name in texts(&entry["env_vars"], "env_vars")? {
            let Some(value) = (self.lookup.variable)(&name) else {
                draft.notes.push(format!(
                    "`{name}` is not set here, so it is left out; put it into `inherit_env` once it is"
                ));
                continue;
            };
            inherit_env.insert(name.clone());
            draft.give(&name, Given::Passed, Some(value));
        }
        if let Some(file) = entry["envFile"].as_str() {
            self.env_file(file, &mut inherit_env, draft)?;
        }
        let cwd = match entry["cwd"].as_str() {
            Some(cwd) => Some(self.below(&self.settled("cwd", cwd, draft)?)),
            None => None,
        };
        Ok(Reached::Child {
            command,
            args,
            env,
            inherit_env,
            cwd: cwd.filter(|cwd| cwd.as_os_str() != "."),
        })
    }

    fn elsewhere(&self, url: &str, entry: &Value, draft: &mut Draft) -> Result<Reached, String> {
        let url = self.settled("url", url, draft)?;
        draft.notes.extend(secret_in_url(&url).map(spelled_out));
        let mut headers_env = BTreeMap::new();
        let upper = |text: &str| {
            let kept = |c: char| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_uppercase()
                } else {
                    '_'
                }
            };
            text.chars().map(kept).collect::<String>()
        };
        let own =
            |header: &str| format!("LODESTAR_{}_{}", upper(draft.name.as_str()), upper(header));
        let mut given = Vec::new();
        for member in ["headers", "http_headers"] {
            for (header, value) in members(&entry[member], member)? {
                let expanded = self.lookup.expand(&value);
                given.push((
                    header.clone(),
                    own(&header),
                    Given::Spelled(value),
                    known(&expanded),
                ));
            }
        }
        for (header, name) in members(&entry["env_http_headers"], "env_http_headers")? {
            let value = (self.lookup.variable)(&name);
            given.push((header, name, Given::Passed, value));
        }
        let mut notes = Vec::new();
        if let Some(name) = entry["bearer_token_env_var"].as_str() {
            let variable = own("Authorization");
            notes.push(format!(
                "set `{variable}` to `Bearer` and the token of `{name}`: headers are taken whole"
            ));
            let value = (self.lookup.variable)(name).map(|token| format!("Bearer {token}"));
            let value = (self.lookup.variable)(&variable).or(value);
            given.push(("Authorization".to_owned(), variable, Given::Passed, value));
        }
        for (header, variable, how, value) in given {
            headers_env.insert(header, variable.clone());
            draft.give(&variable, how, value);
        }
        draft.notes.extend(notes);
        let server = serde_json::json!({"name": draft.name.as_str(), "url": url, "headers_env": headers_env});
        let server: Server =
            serde_json::from_value(server).map_err(|problem| problem.to_string())?;
        Ok(server.reached)
    }

    /// A text whose references have to be known now: it stands in the configuration as it is.
    fn settled(&self, member: &str, text: &str, draft: &mut Draft) -> Result<String, String> {
        let expanded = self.lookup.expand(text);
        if let Some(missing) = expanded.missing.first() {
            return Err(format!(
                "its `{member}` takes {missing}, which has no value here; set it and run `lodestar init` again"
            ));
        }
        if let Some(secret) = expanded.variables.iter().find(|name| is_secret(name)) {
            return Err(format!(
                "its `{member}` takes the secret `{secret}`, which is not written into a configuration; give it to the server in its environment"
            ));
        }
        for variable in &expanded.variables {
            draft.notes.push(format!(
                "`{member}` has the value that `{variable}` had when this was written"
            ));
        }
        Ok(expanded.text)
    }

    /// Variables out of a file: the client goes on reading it, for the proxy.
    fn env_file(
        &self,
        file: &str,
        inherit_env: &mut BTreeSet<String>,
        draft: &mut Draft,
    ) -> Result<(), String> {
        let path = PathBuf::from(self.settled("envFile", file, draft)?);
        let Ok(text) = std::fs::read_to_string(self.lookup.folder.join(path)) else {
            draft.notes.push(format!(
                "its `envFile` {file} is not there; name its variables in `inherit_env` once it is"
            ));
            return Ok(());
        };
        for line in text.lines() {
            let line = line.trim().strip_prefix("export ").unwrap_or(line.trim());
            if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
                let value = value.trim().trim_matches(['"', '\'']);
                inherit_env.insert(name.trim().to_owned());
                draft.give(
                    name.trim(),
                    Given::File(file.to_owned()),
                    Some(value.to_owned()),
                );
            }
        }
        Ok(())
    }

    /// A path as the configuration has it: relative where it lies in the project.
    fn below(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        match path.strip_prefix(self.lookup.folder) {
            Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
            Ok(rest) => rest.to_owned(),
            Err(_) => path.to_owned(),
        }
    }
}

impl Draft {
    fn give(&mut self, name: &str, how: Given, value: Option<String>) {
        self.given.insert(name.to_owned(), how);
        if let Some(value) = value {
            self.values.insert(name.to_owned(), value);
        }
    }

    /// As it can be started here: without variables that have no value.
    pub(crate) fn to_try(&self) -> Result<Server, String> {
        let mut reached = self.reached.clone()?;
        if let Reached::Child { inherit_env, .. } = &mut reached {
            inherit_env.retain(|name| self.values.contains_key(name));
        }
        Ok(Server {
            name: self.name.clone(),
            reached,
            confines: Confines::default(),
        })
    }

    /// Whether the client offers this tool of the server's.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let is_on = self.only.as_ref().is_none_or(|only| only.contains(tool));
        is_on && !self.without.contains(tool)
    }
}

fn known(expanded: &Expanded) -> Option<String> {
    expanded.missing.is_empty().then(|| expanded.text.clone())
}

fn names(value: &Value) -> Option<BTreeSet<String>> {
    let names = value.as_array()?.iter().filter_map(Value::as_str);
    Some(names.map(str::to_owned).collect())
}

fn texts(value: &Value, member: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("its `{member}` is no list of texts");
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

fn members(value: &Value, member: &str) -> Result<Vec<(String, String)>, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Object(all) => all
            .iter()
            .map(|(name, value)| Some((name.clone(), text(value)?)))
            .collect::<Option<Vec<_>>>()
            .ok_or(format!("its `{member}` has more than texts")),
        _ => Err(format!("its `{member}` is no object")),
    }
}

/// A name that the configuration takes and that no other server has.
fn free_name(called: &str, drafts: &[Draft]) -> ServerName {
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let mut name: String = called.chars().map(kept).take(36).collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    let name = name.trim_matches(['_', '-']);
    let name = if name.is_empty() { "server" } else { name };
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    candidates
        .find_map(|name| {
            let name = ServerName::new(&name).ok()?;
            let is_free = drafts.iter().all(|draft| draft.name != name);
            is_free.then_some(name)
        })
        .expect("INVARIANT: letters, digits and hyphens, and one of many numbers is free")
}

/// The option that most likely gives a secret: as `--token=…`, or as `--token …`.
fn secret_argument(args: &[String]) -> Option<&str> {
    let named =
        |arg: &String| arg.starts_with('-') && is_secret(arg.split('=').next().unwrap_or(arg));
    let gives = |(at, arg): &(usize, &String)| {
        let is_value = |next: &String| !next.starts_with('-');
        named(arg) && (arg.contains('=') || args.get(at + 1).is_some_and(is_value))
    };
    let found = args.iter().enumerate().find(gives);
    found
        .map(|(_, arg)| arg.split('=').next().unwrap_or(arg))
        .or_else(|| args.iter().find_map(|arg| secret_in_url(arg)))
}

/// What of a URL most likely holds a secret: its user's password, or a parameter.
fn secret_in_url(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority
        .rsplit_once('@')
        .is_some_and(|(user, _)| user.contains(':'))
    {
        return Some("password");
    }
    let (_, query) = rest.split_once('?')?;
    let names = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut names = names.map(|(name, _)| name);
    names.find(|name| is_secret(name))
}

fn spelled_out(what: &str) -> String {
    format!(
        "`{what}` seems to give it a secret, which now stands in the configuration too: give it to the server in its environment, or keep the configuration to yourself"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::init::reference::Syntax;

    fn drafts(client: Client, syntax: Syntax, servers: Value) -> Vec<Draft> {
        let variable = |name: &str| match name {
            "SET" => Some("value".to_owned()),
            "A_TOKEN" => Some("secret".to_owned()),
            _ => None,
        };
        let drafting = Drafting {
            client,
            lookup: Lookup {
                syntax,
                folder: Path::new("/w"),
                variable: &variable,
            },
        };
        let Value::Object(servers) = servers else {
            panic!("an object")
        };
        drafting.all(&servers)
    }

    #[test]
    fn secrets_that_are_spelled_out_are_told() {
        let args = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        for (words, found) in [
            (&["--api-key", "abc"][..], Some("--api-key")),
            (&["-y", "--token=abc"], Some("--token")),
            (&["--token"], None),
            (&["--token", "--verbose"], None),
            (&["postgres://u:pw@db/x"], Some("password")),
            (&["https://x.example/?apikey=1"], Some("apikey")),
            (&["https://u@x.example/?page=1", "--root", "."], None),
        ] {
            assert_eq!(secret_argument(&args(words)), found, "{words:?}");
        }
    }

    #[test]
    fn secrets_and_references_go_to_the_proxys_environment_and_not_into_the_configuration() {
        let servers = json!({"x": {
            "command": "x", "args": ["${SET}"],
            "env": {"PLAIN": "p", "A_TOKEN": "literal", "PATH_": "${SET}/y", "Q": "${NOT}"}
        }});
        let draft = &drafts(Client::ClaudeCode, Syntax::Shell, servers)[0];
        let Ok(Reached::Child {
            args,
            env,
            inherit_env,
            ..
        }) = &draft.reached
        else {
            panic!("{:?}", draft.reached);
        };
        assert_eq!(args, &["value"]);
        assert_eq!(env.keys().collect::<Vec<_>>(), ["PLAIN"]);
        let inherited: Vec<_> = inherit_env.iter().map(String::as_str).collect();
        assert_eq!(inherited, ["A_TOKEN", "PATH_", "Q"]);
        assert_eq!(draft.given["PATH_"], Given::Spelled("${SET}/y".to_owned()));
        assert_eq!(draft.values["PATH_"], "value/y");
        assert!(!draft.values.contains_key("Q"));
    }

    #[test]
    fn what_cannot_be_wrapped_says_why() {
        let servers = json!({
            "a": {"type": "sse", "url": "http://127.0.0.1/sse"},
            "b": {"command": "x", "enabled": false},
            "c": {"command": "x", "args": ["--token", "${A_TOKEN}"]},
            "d": {"command": "x", "args": ["${NOT}"]},
            "e": {"url": "ftp://x"},
            "f": {},
            "g": {"command": "x", "env": []},
            "h": 1,
        });
        for draft in drafts(Client::ClaudeCode, Syntax::Shell, servers) {
            let why = draft.reached.expect_err(&draft.called);
            assert!(!why.is_empty(), "{}", draft.called);
            assert!(!why.contains("secret`value"), "{why}");
        }
    }

    #[test]
    fn names_fit_and_differ() {
        let servers = json!({"my files": {"command": "x"}, "my-files": {"command": "x"}, "__": {"command": "x"}, "project.git": {"command": "x"}});
        let names: Vec<String> = drafts(Client::Cursor, Syntax::Editor, servers)
            .iter()
            .map(|draft| draft.name.to_string())
            .collect();
        assert_eq!(names, ["my-files", "my-files-2", "server", "project-git"]);
    }

    #[test]
    fn headers_come_from_the_environment() {
        let servers = json!({"far": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${A_TOKEN}"}}});
        let draft = &drafts(Client::ClaudeCode, Syntax::Shell, servers)[0];
        let Ok(Reached::Url { headers_env, .. }) = &draft.reached else {
            panic!("{draft:?}")
        };
        assert_eq!(headers_env["Authorization"], "LODESTAR_FAR_AUTHORIZATION");
        assert_eq!(draft.values["LODESTAR_FAR_AUTHORIZATION"], "Bearer secret");
    }
}
