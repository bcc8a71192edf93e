//! The JSON schema of a configuration, for editors. Serde says which members each part has; what a member is
//! for and what it takes is said here, once.

mod tools;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, CheckKind, Permission, Precondition, Reversibility, Sandbox,
};
use lodestar_core::id::{ContenderId, RunnerId, TermsId};
use lodestar_core::ladder::{RUNGS, Severity};
use lodestar_core::scope::ScopeLevel;
use lodestar_core::sensitivity::{DataSensitivity, Sensitivity};
use lodestar_core::statement::ConfirmationOrigin;
use lodestar_kernel::grade::Grade;
use lodestar_policy::confirmation::{ConfirmationKey, Confirmations, Mode};
use lodestar_policy::{Approver, Arbiter, Mode as SentinelMode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::parts::DefaultApproval;
use super::traced::{fields, variants};
use super::{
    Approvals, Backend, Config, ConfigScope, Http, HttpApprovals, KnownValues, Limits, Naming,
    Persistence, PolicyFile, Run, Server,
};

/// The JSON schema of a configuration.
pub fn json_schema() -> Value {
    let mut schema = config();
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lodestar configuration",
    });
    if let (Some(schema), Value::Object(head)) = (schema.as_object_mut(), head) {
        schema.extend(head);
    }
    schema
}

/// A member: its name, whether it has to be there, what it is for, what it takes.
type Member = (&'static str, Need, &'static str, Value);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    May,
}

use Need::{May, Must};

/// The schema of a part. INVARIANT: its members are those that serde knows.
fn object<T: DeserializeOwned>(members: Vec<Member>) -> Value {
    let named: Vec<&str> = members.iter().map(|(name, ..)| *name).collect();
    debug_assert_eq!(
        sorted(named),
        sorted(fields::<T>()),
        "the members of {}",
        std::any::type_name::<T>()
    );
    members_of(members)
}

fn members_of(members: Vec<Member>) -> Value {
    let required: Vec<&str> = members
        .iter()
        .filter(|(_, need, ..)| *need == Must)
        .map(|(name, ..)| *name)
        .collect();
    let mut properties = Map::new();
    for (name, _, about, mut schema) in members {
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), about.into());
        }
        properties.insert(name.to_owned(), schema);
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn sorted<'a>(names: impl AsRef<[&'a str]>) -> Vec<&'a str> {
    let mut names = names.as_ref().to_vec();
    names.sort_unstable();
    names
}

fn text() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

fn set(of: Value) -> Value {
    json!({"type": "array", "items": of, "uniqueItems": true})
}

fn table(of: Value) -> Value {
    json!({"type": "object", "additionalProperties": of})
}

/// One of the words of a type that is written as a word.
fn word<T: std::fmt::Display>(all: &[T]) -> Value {
    json!({"enum": all.iter().map(ToString::to_string).collect::<Vec<_>>()})
}

/// One of the words that serde knows for a type.
fn one_of<T: DeserializeOwned>() -> Value {
    json!({"enum": variants::<T>()})
}

fn rung() -> Value {
    word(&RUNGS.iter().map(|spec| spec.rung).collect::<Vec<_>>())
}

fn key() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
}

fn moment() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn config() -> Value {
    object::<Config>(vec![
        (
            "project_id",
            Must,
            "The project, in whose log the session stands.",
            text(),
        ),
        ("actor_id", Must, "Who acts.", text()),
        (
            "session_id",
            May,
            "The session's name; `auto` makes a new one each time.",
            text(),
        ),
        (
            "log_root",
            May,
            "Where logs are kept; relative to this file.",
            text(),
        ),
        (
            "default_scope",
            May,
            "Where effects land and beliefs hold; the project where nothing is said.",
            object::<ConfigScope>(vec![
                ("level", Must, "The narrowest level.", word(ScopeLevel::ALL)),
                ("identifier", Must, "Its name.", text()),
            ]),
        ),
        (
            "default_sensitivity",
            May,
            "How sensitive content is.",
            word(Sensitivity::ALL),
        ),
        (
            "auto_approve_ceiling",
            May,
            "Up to which rung calls run unasked; not together with `policy`.",
            json!({"type": "integer", "minimum": 0, "maximum": 3, "default": 2}),
        ),
        (
            "policy",
            May,
            "A policy of one's own.",
            object::<PolicyFile>(vec![
                ("file", Must, "The Cedar file.", text()),
                (
                    "keys",
                    May,
                    "Keys whose signature puts it into force.",
                    list(key()),
                ),
                (
                    "allow_unsigned",
                    May,
                    "Whether it counts without one; reports say so then.",
                    flag(),
                ),
            ]),
        ),
        (
            "sentinels",
            May,
            "Monitors that tighten the gate, or only observe: a list of names and tables, or a table by name.",
            sentinels(),
        ),
        (
            "approval_timeout_ms",
            May,
            "How long a held call waits for an answer.",
            number(),
        ),
        (
            "approvals",
            May,
            "Whose approval counts, and what one needs.",
            approvals(),
        ),
        (
            "confirmations",
            May,
            "What operators may say before they are asked, and what it is worth.",
            confirmations(),
        ),
        (
            "tool_defaults",
            May,
            "The operator's grades, by the tool's name.",
            table(grade()),
        ),
        ("task", May, "The operator's statement of the task.", text()),
        (
            "known_values",
            May,
            "Contacts, payees, hosts: values that the operator knows.",
            object::<KnownValues>(vec![(
                "file",
                Must,
                "The file, with one value a line.",
                text(),
            )]),
        ),
        (
            "persistence",
            May,
            "Where beliefs are kept.",
            object::<Persistence>(vec![
                ("backend", May, "In what.", one_of::<Backend>()),
                (
                    "connection_string_env",
                    May,
                    "The environment variable with the address of a PostgreSQL server.",
                    text(),
                ),
            ]),
        ),
        ("limits", May, "Bounds.", limits()),
        (
            "tools",
            May,
            "The tools in the box that are to be there.",
            tools::tools(),
        ),
        (
            "downstream_servers",
            May,
            "The MCP servers behind the proxy.",
            list(server()),
        ),
        (
            "naming",
            May,
            "How their tools are named to the agent: `<server>__<tool>`, or as the one server there is names them.",
            one_of::<Naming>(),
        ),
        (
            "http",
            May,
            "How agents are served over HTTP, with `--listen`.",
            http(),
        ),
        (
            "run",
            May,
            "The gateway that sessions are runs of: registered when they begin, shipped and attested when they are over.",
            run(),
        ),
    ])
}

fn run() -> Value {
    let id = |prefix: &str| {
        let form = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
        json!({"type": "string", "pattern": format!("^{prefix}_{form}$")})
    };
    object::<Run>(vec![
        ("gateway", Must, "Where the gateway is.", text()),
        (
            "allow_loopback_http",
            May,
            "Whether `http` is taken for a gateway on this machine.",
            flag(),
        ),
        (
            "runner",
            Must,
            "The runner that makes the runs.",
            id(RunnerId::PREFIX),
        ),
        (
            "agent",
            Must,
            "The agent in whose name they are made.",
            id(ContenderId::PREFIX),
        ),
        (
            "terms",
            Must,
            "The terms that they are judged by.",
            id(TermsId::PREFIX),
        ),
        (
            "workflow_file",
            May,
            "The workflow that they follow.",
            text(),
        ),
        ("task_file", May, "The task that they were given.", text()),
        (
            "prompt_files",
            May,
            "The prompts that they were given, in their order.",
            list(text()),
        ),
    ])
}

fn http() -> Value {
    object::<Http>(vec![
        (
            "token_file",
            May,
            "A file of mode 0600 with the token that agents show; several, one on each line, tell clients apart.",
            text(),
        ),
        (
            "token_env",
            May,
            "The environment variable with the token that agents show.",
            text(),
        ),
        (
            "idle_ms",
            May,
            "How long a client may be silent before its session ends.",
            number(),
        ),
        (
            "body_ms",
            May,
            "How long one message may take to arrive.",
            number(),
        ),
        (
            "max_sessions",
            May,
            "Most clients at the same time.",
            number(),
        ),
        (
            "allowed_hosts",
            May,
            "Names under which this machine is called, beside its own addresses.",
            list(text()),
        ),
        (
            "allowed_origins",
            May,
            "Web pages that may call.",
            list(text()),
        ),
    ])
}

fn sentinels() -> Value {
    let names: Vec<&str> = Arbiter::ALL.iter().map(|one| one.as_str()).collect();
    let set = || {
        vec![
            (
                "severity",
                May,
                "How grave what it sees is: its own severity, or a stricter one.",
                word(Severity::ALL),
            ),
            (
                "mode",
                May,
                "Whether it has a say in verdicts, as it has where nothing is said, or only records.",
                one_of::<SentinelMode>(),
            ),
        ]
    };
    let mut named = vec![("name", Must, "Which.", json!({"enum": names.clone()}))];
    named.extend(set());
    let by_name: Map<String, Value> = names
        .iter()
        .map(|name| {
            let setting = json!({"oneOf": [word(Severity::ALL), members_of(set())]});
            ((*name).to_owned(), setting)
        })
        .collect();
    json!({"oneOf": [
        {"type": "array", "items": {"oneOf": [{"enum": names}, members_of(named)]}},
        {"type": "object", "properties": by_name, "additionalProperties": false},
    ]})
}

fn approvals() -> Value {
    object::<Approvals>(vec![
        (
            "default",
            May,
            "What an approval needs where no policy says.",
            object::<DefaultApproval>(vec![
                (
                    "roles",
                    May,
                    "Roles that have to be among those who agree.",
                    set(text()),
                ),
                (
                    "quorum",
                    May,
                    "How many have to agree.",
                    json!({"type": "integer", "minimum": 1}),
                ),
                (
                    "expires",
                    May,
                    "How long a request stays open, such as `15m`.",
                    duration(),
                ),
            ]),
        ),
        (
            "authorized_keys",
            May,
            "The approvers.",
            list(object::<Approver>(vec![
                ("actor", May, "Who; `actor_id` says the same.", text()),
                ("actor_id", May, "Who.", text()),
                ("public_key", Must, "Their key.", key()),
                ("roles", May, "What they answer for.", set(text())),
                ("clearance", May, "Up to which rung.", rung()),
                ("scope", May, "Where.", text()),
                (
                    "revoked_at",
                    May,
                    "From when on their key counts no more.",
                    moment(),
                ),
            ])),
        ),
        (
            "http",
            May,
            "A server through which people elsewhere are asked, beside the drop directory.",
            object::<HttpApprovals>(vec![
                ("url", Must, "Where it is.", text()),
                (
                    "token_env",
                    Must,
                    "The environment variable with the bearer token.",
                    text(),
                ),
                (
                    "ceiling",
                    Must,
                    "The most sensitive that may leave this machine.",
                    word(Sensitivity::ALL),
                ),
                (
                    "ca_file",
                    May,
                    "Root certificates in PEM, trusted beside the public ones.",
                    text(),
                ),
                (
                    "allow_loopback_http",
                    May,
                    "Whether `http` is taken for a server on this machine.",
                    flag(),
                ),
                (
                    "connect_timeout_ms",
                    May,
                    "Time for one connection, TLS included.",
                    number(),
                ),
                (
                    "timeout_ms",
                    May,
                    "How long one exchange may take.",
                    number(),
                ),
                (
                    "wait_ms",
                    May,
                    "How long the server is asked to wait for an answer.",
                    number(),
                ),
            ]),
        ),
        (
            "allow_unsigned",
            May,
            "Not a choice: an unsigned approval is never accepted.",
            json!({"const": false}),
        ),
    ])
}

fn duration() -> Value {
    json!({"type": "string", "pattern": "^[0-9]+[smh]$"})
}

fn confirmations() -> Value {
    object::<Confirmations>(vec![
        ("mode", May, "What a match is worth.", one_of::<Mode>()),
        (
            "keys",
            May,
            "Which keys may sign what.",
            list(object::<ConfirmationKey>(vec![
                ("public_key", Must, "The key.", key()),
                (
                    "origins",
                    Must,
                    "How confirmations by it may have come about.",
                    set(word(ConfirmationOrigin::ALL)),
                ),
                ("operators", Must, "In whose name it may sign.", set(text())),
                (
                    "revoked_at",
                    May,
                    "From when on it counts no more.",
                    moment(),
                ),
            ])),
        ),
    ])
}

fn grade() -> Value {
    object::<Grade>(vec![
        ("required_trust_level", May, "The rung.", rung()),
        (
            "blast_radius",
            May,
            "How far its effects go.",
            word(BlastRadius::ALL),
        ),
        (
            "reversibility",
            May,
            "Whether they can be undone.",
            word(Reversibility::ALL),
        ),
        (
            "data_sensitivity",
            May,
            "What data it handles.",
            word(DataSensitivity::ALL),
        ),
        (
            "permissions",
            May,
            "What it is given to use.",
            set(word(Permission::ALL)),
        ),
        (
            "sandbox",
            May,
            "In what confinement it runs.",
            word(Sandbox::ALL),
        ),
        (
            "preconditions",
            May,
            "What has to hold in the world.",
            list(object::<Precondition>(vec![
                ("check", Must, "What is measured.", word(CheckKind::ALL)),
                (
                    "path",
                    May,
                    "The file, or where its name stands: `$.path`.",
                    text(),
                ),
                ("remote", May, "The remote.", text()),
                ("belief", May, "The belief.", text()),
                ("name", May, "The variable.", text()),
                (
                    "must_revalidate_at_execution",
                    May,
                    "Whether it is measured again at execution.",
                    flag(),
                ),
            ])),
        ),
        (
            "arg_roles",
            May,
            "What its arguments are to it.",
            table(word(ArgumentRole::ALL)),
        ),
        ("groups", May, "Groups that policies can name.", set(text())),
    ])
}

fn limits() -> Value {
    object::<Limits>(vec![
        (
            "call_deadline_ms",
            May,
            "How long one call may take.",
            number(),
        ),
        (
            "start_deadline_ms",
            May,
            "How long a server may take until it has said what it offers.",
            number(),
        ),
        (
            "message_bytes",
            May,
            "Most that one message of an agent or a server may take.",
            number(),
        ),
        (
            "concurrent_calls",
            May,
            "Most calls of one agent at the same time; more wait.",
            number(),
        ),
    ])
}

fn server() -> Value {
    let mut server = object::<Server>(vec![
        (
            "name",
            Must,
            "Its name: part of the names of its tools.",
            json!({"type": "string", "pattern": "^[A-Za-z0-9-]([A-Za-z0-9_-]*[A-Za-z0-9-])?$", "maxLength": 40}),
        ),
        ("command", May, "The program that is started.", text()),
        ("args", May, "Its arguments.", list(text())),
        (
            "env",
            May,
            "Its environment, beside `PATH`, `HOME` and `LANG`.",
            table(text()),
        ),
        (
            "inherit_env",
            May,
            "What it has of the proxy's own environment: the place for secrets.",
            set(text()),
        ),
        (
            "cwd",
            May,
            "Where it starts; the project's root where nothing is said.",
            text(),
        ),
        (
            "containment",
            May,
            "Whether the operating system has to contain it: `best-effort`, `required` or `off`.",
            json!({ "enum": ["best-effort", "required", "off"] }),
        ),
        (
            "sandbox",
            May,
            "The profiles whose union it is granted; those that its tools are graded for where nothing is said.",
            set(word(Sandbox::ALL)),
        ),
        (
            "read",
            May,
            "Places that it reads, beyond the profiles.",
            set(text()),
        ),
        (
            "write",
            May,
            "Places that it writes, beyond the profiles.",
            set(text()),
        ),
        (
            "network",
            May,
            "Its ways out, apart from the profiles: `none`, `any`, or the TCP ports it may connect to.",
            json!({ "anyOf": [
                { "enum": ["none", "any"] },
                { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 65535 }, "uniqueItems": true },
            ] }),
        ),
        (
            "unix_sockets",
            May,
            "Whether it may use sockets in the file system; they lead past its containment.",
            json!({ "type": "boolean" }),
        ),
        (
            "url",
            May,
            "Where a server elsewhere is.",
            json!({"type": "string", "pattern": "^https?://"}),
        ),
        (
            "headers_env",
            May,
            "Headers, and the environment variables with their values.",
            table(text()),
        ),
    ]);
    server["oneOf"] = json!([{"required": ["command"]}, {"required": ["url"]}]);
    server
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_the_members_that_serde_knows() {
        let schema = json_schema();
        assert_eq!(
            schema["properties"]["naming"]["enum"],
            json!(["prefixed", "original"])
        );
        assert_eq!(schema["required"], json!(["project_id", "actor_id"]));
    }

    #[test]
    fn the_page_is_the_one_that_is_generated() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/reference/lodestar.schema.json");
        let now = format!("{:#}\n", json_schema());
        if std::env::var_os("LODESTAR_BLESS").is_some() {
            std::fs::write(&page, &now).unwrap();
        }
        let kept = std::fs::read_to_string(&page).unwrap_or_default();
        assert!(
            kept == now,
            "run the tests with LODESTAR_BLESS=1, then look at the difference"
        );
    }
}
