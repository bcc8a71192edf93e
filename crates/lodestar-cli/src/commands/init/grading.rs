//! A first grade for a tool, from what its name and its arguments plainly say.
//!
//! What a server says of its own tool can only make the grade stricter. A tool of which nothing is plain stays
//! ungraded: every call of it waits for a person.

use lodestar_core::contract::{ArgumentRole, Reversibility};
use lodestar_core::ladder::Rung;
use lodestar_guard::config::Reached;
use serde_json::Value;

/// What is proposed for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// The rung; none where the tool stays ungraded.
    pub(crate) rung: Option<Rung>,
    /// Whether what it does can be taken back.
    pub(crate) reversibility: Reversibility,
    /// Why, on one line.
    pub(crate) why: String,
    /// Arguments that name files.
    pub(crate) roles: Vec<(String, ArgumentRole)>,
}

/// Words that a reading tool's name begins with.
const READS: [&str; 11] = [
    "get", "list", "read", "search", "find", "show", "describe", "count", "view", "lookup", "stat",
];
/// What a tool shows whose name is the server's and then this.
const SHOWS: [&str; 6] = ["status", "log", "diff", "history", "info", "show"];
/// Words that a writing tool's name begins with.
const WRITES: [&str; 9] = [
    "write", "edit", "create", "move", "rename", "append", "copy", "insert", "save",
];
/// What is written: without one of these it is not plain that it is local.
const LOCAL: [&str; 6] = ["file", "files", "directory", "folder", "dir", "text"];
/// Local writes of git: what they do stays in the repository and can be taken back.
const COMMITS: [&str; 2] = ["add", "commit"];
/// Words that make anything graver than it looks, wherever they stand in a name.
const GRAVE: [&str; 38] = [
    "delete", "remove", "drop", "purge", "destroy", "kill", "reset", "force", "push", "publish",
    "deploy", "release", "send", "post", "reply", "mail", "email", "message", "pay", "transfer",
    "buy", "order", "sign", "exec", "execute", "run", "eval", "shell", "command", "query", "sql",
    "web", "url", "http", "fetch", "download", "upload", "mark",
];
/// What is nobody's to read unasked.
const SECRETS: [&str; 10] = [
    "env",
    "environment",
    "secret",
    "secrets",
    "token",
    "tokens",
    "password",
    "passwords",
    "credential",
    "credentials",
];
/// Arguments that name a place or a person elsewhere: what is asked for leaves the machine with them.
const ELSEWHERE: [&str; 34] = [
    "url",
    "urls",
    "uri",
    "host",
    "hostname",
    "endpoint",
    "webhook",
    "to",
    "cc",
    "bcc",
    "recipient",
    "recipients",
    "email",
    "channel",
    "channel_id",
    "address",
    "owner",
    "repo",
    "repository",
    "org",
    "organization",
    "workspace",
    "workspace_id",
    "account",
    "account_id",
    "bucket",
    "phone",
    "remote",
    "domain",
    "server",
    "namespace",
    "cluster",
    "customer",
    "database",
];
/// Arguments that are run.
const RUN: [&str; 12] = [
    "exec",
    "execute",
    "eval",
    "command",
    "cmd",
    "code",
    "script",
    "sql",
    "expression",
    "shell",
    "program",
    "statement",
];
/// Arguments that name files.
const PATHS: [&str; 13] = [
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filepath",
    "filename",
    "directory",
    "dir",
    "folder",
    "source",
    "destination",
    "repo_path",
];

/// Grades a tool.
pub(crate) fn propose(server: &str, reached: &Reached, name: &str, definition: &Value) -> Proposal {
    let ungraded = |why: String| Proposal {
        rung: None,
        reversibility: Reversibility::Irreversible,
        why,
        roles: Vec::new(),
    };
    if let Reached::Url { .. } = reached {
        return ungraded(
            "its server is elsewhere, so whatever it is given leaves this machine".into(),
        );
    }
    let words = words(name);
    let own = own_words(server, &words);
    let grave = words.iter().find(|word| GRAVE.contains(&word.as_str()));
    if let Some(grave) = grave {
        return ungraded(format!("its name says `{grave}`"));
    }
    if let Some(secret) = words.iter().find(|word| SECRETS.contains(&word.as_str())) {
        return ungraded(format!("its name says `{secret}`, which may be secret"));
    }
    let arguments = arguments(&definition["inputSchema"]);
    for (list, why) in [
        (&ELSEWHERE[..], "names somebody or something elsewhere"),
        (&RUN[..], "is run"),
    ] {
        let found = arguments.iter().find(|name| {
            let plain = plain(name);
            list.contains(&plain.as_str())
        });
        if let Some(argument) = found {
            return ungraded(format!("its argument `{argument}` {why}"));
        }
    }
    if let Some(hint) = against_itself(&definition["annotations"]) {
        return ungraded(format!("its own server says {hint}"));
    }
    let roles: Vec<_> = arguments
        .iter()
        .filter(|name| PATHS.contains(&plain(name).as_str()))
        .map(|name| (name.clone(), ArgumentRole::Path))
        .collect();
    let annotations = &definition["annotations"];
    let says_read_only = annotations["readOnlyHint"] == Value::Bool(true);
    let says_it_writes = annotations["readOnlyHint"] == Value::Bool(false);
    let destroys = annotations["destructiveHint"] == Value::Bool(true);
    let (rung, why) = match kind(own, &words, !roles.is_empty()) {
        Kind::Reads(word) if says_it_writes || destroys => {
            return ungraded(format!(
                "its name says `{word}`, and its own server says that it does not only read"
            ));
        }
        Kind::Reads(word) => (
            Rung::L1,
            format!(
                "reads: its name begins with `{word}`, and no argument names a place elsewhere{}",
                if says_read_only {
                    "; its server says so too"
                } else {
                    ""
                }
            ),
        ),
        Kind::Writes(word) if !says_read_only => (
            Rung::L3,
            format!(
                "writes here: its name begins with `{word}`, and its arguments name files{}",
                if destroys {
                    "; its server says that it may destroy"
                } else {
                    ""
                }
            ),
        ),
        Kind::Writes(word) => {
            return ungraded(format!(
                "its server says it only reads, and its name says `{word}`"
            ));
        }
        Kind::Unclear => {
            let hint = match says_read_only {
                true => "; that it only reads is its server's own word",
                false => "",
            };
            return ungraded(format!("its name does not plainly say what it does{hint}"));
        }
    };
    let reversibility = match rung {
        Rung::L3 if destroys => Reversibility::Irreversible,
        Rung::L3 => Reversibility::Compensable,
        _ => Reversibility::Reversible,
    };
    Proposal {
        rung: Some(rung),
        reversibility,
        why,
        roles,
    }
}

enum Kind<'a> {
    Reads(&'a str),
    Writes(&'a str),
    Unclear,
}

fn kind<'a>(own: &'a [String], all: &[String], names_files: bool) -> Kind<'a> {
    let Some(first) = own.first().map(String::as_str) else {
        return Kind::Unclear;
    };
    let is_prefixed = own.len() < all.len();
    let writes_somewhere = |word: &String| WRITES.contains(&word.as_str());
    let others = own.get(1..).unwrap_or_default();
    if READS.contains(&first) && !others.iter().any(writes_somewhere) {
        return Kind::Reads(first);
    }
    if is_prefixed && SHOWS.contains(&first) && own.len() <= 2 {
        return Kind::Reads(first);
    }
    // A tree of folders is a list, whatever it is called.
    if own == ["directory", "tree"] {
        return Kind::Reads(first);
    }
    let is_local = own.iter().any(|word| LOCAL.contains(&word.as_str()));
    if WRITES.contains(&first) && is_local && names_files {
        return Kind::Writes(first);
    }
    let is_git = all.first().is_some_and(|word| word == "git");
    if is_git && own.len() == 1 && COMMITS.contains(&first) && names_files {
        return Kind::Writes(first);
    }
    Kind::Unclear
}

/// What a server says against its own tool.
fn against_itself(annotations: &Value) -> Option<&'static str> {
    let says = |hint: &str| annotations[hint] == Value::Bool(true);
    says("openWorldHint").then_some("that it reaches beyond this machine (`openWorldHint`)")
}

/// The words of a name: `readTextFile` and `read-text_file` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous_is_lower = false;
    let mut begins = true;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            begins = true;
            continue;
        }
        if begins || (c.is_ascii_uppercase() && previous_is_lower) {
            words.push(String::new());
        }
        begins = false;
        previous_is_lower = c.is_ascii_lowercase();
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    words
}

/// A name without the server's own in front of it.
fn own_words<'a>(server: &str, all: &'a [String]) -> &'a [String] {
    let server = words(server);
    match all.first() {
        Some(first) if all.len() > 1 && (first == "git" || server.contains(first)) => {
            if READS.contains(&first.as_str()) {
                return all;
            }
            &all[1..]
        }
        _ => all,
    }
}

fn plain(argument: &str) -> String {
    words(argument).join("_")
}

fn arguments(schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object();
    let names = properties
        .into_iter()
        .flat_map(|properties| properties.keys());
    names.cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::json;

    use super::*;

    fn child() -> Reached {
        Reached::Child {
            command: "x".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit_env: BTreeSet::new(),
            cwd: None,
        }
    }

    fn rung(server: &str, name: &str, arguments: &[&str], annotations: Value) -> Option<Rung> {
        let properties: serde_json::Map<String, Value> = arguments
            .iter()
            .map(|name| ((*name).to_owned(), json!({})))
            .collect();
        let definition = json!({
            "inputSchema": {"properties": properties}, "annotations": annotations,
        });
        propose(server, &child(), name, &definition).rung
    }

    #[test]
    fn plain_readers_get_l1_and_plain_local_writers_l3() {
        for (server, name, arguments, wanted) in [
            ("files", "read_text_file", &["path", "head"][..], Rung::L1),
            ("files", "readTextFile", &["path"], Rung::L1),
            ("files", "list_directory", &["path"], Rung::L1),
            ("files", "directory_tree", &["path"], Rung::L1),
            ("time", "get_current_time", &["timezone"], Rung::L1),
            ("git", "git_status", &["repo_path"], Rung::L1),
            ("project-git", "git_diff_staged", &["repo_path"], Rung::L1),
            ("files", "write_file", &["path", "content"], Rung::L3),
            ("files", "move_file", &["source", "destination"], Rung::L3),
            ("git", "git_commit", &["repo_path", "message"], Rung::L3),
        ] {
            assert_eq!(
                rung(server, name, arguments, Value::Null),
                Some(wanted),
                "{name}"
            );
        }
    }

    #[test]
    fn whatever_is_not_plain_stays_ungraded() {
        for (name, arguments) in [
            ("fetch", &["url"][..]),
            ("get_page", &["url"]),
            ("search_issues", &["owner", "repo"]),
            ("create_or_update_file", &["owner", "repo", "path"]),
            ("create_entities", &["entities"]),
            ("get-env", &[]),
            ("get_or_create_file", &["path"]),
            ("mark_as_read", &["id"]),
            ("delete_file", &["path"]),
            ("git_push", &["repo_path"]),
            ("read_query", &["query"]),
            ("echo", &["message"]),
            ("list_and_purge", &[]),
            ("run_tests", &[]),
            ("", &[]),
            ("日本", &[]),
        ] {
            assert_eq!(rung("s", name, arguments, Value::Null), None, "{name}");
        }
        let far = Reached::Url {
            url: "https://example.com".parse().expect("a URL"),
            headers_env: BTreeMap::new(),
        };
        assert_eq!(propose("s", &far, "read_file", &json!({})).rung, None);
    }

    #[test]
    fn a_servers_own_word_lowers_nothing_and_may_raise() {
        let read_only = json!({"readOnlyHint": true});
        assert_eq!(rung("s", "frobnicate", &[], read_only.clone()), None);
        assert_eq!(rung("s", "delete_file", &["path"], read_only.clone()), None);
        assert_eq!(rung("s", "write_file", &["path"], read_only), None);
        let open = json!({"openWorldHint": true});
        assert_eq!(rung("s", "read_file", &["path"], open), None);
        let destructive = json!({"destructiveHint": true});
        assert_eq!(rung("s", "read_file", &["path"], destructive), None);
        let writes = json!({"readOnlyHint": false});
        assert_eq!(rung("s", "read_file", &["path"], writes), None);
    }
}
