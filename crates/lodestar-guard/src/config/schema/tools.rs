//! The part of the schema about the tools in the box.

use lodestar_kernel::native::fs::{FsConfig, Links};
use lodestar_kernel::native::git::{
    GitCommitConfig, GitConfig, GitPushConfig, Person, PinnedRef, Protocol, Update,
};
use lodestar_kernel::native::http::{FetchConfig, FetchEntry, HostEntry, Method, RequestConfig};
use lodestar_kernel::native::message::{EmailConfig, Hook, MessageConfig, TlsMode, WebhookConfig};
use lodestar_kernel::native::net::NetworkConfig;
use lodestar_kernel::native::net::endpoint::Scheme;
use lodestar_kernel::native::nostr::NostrConfig;
use lodestar_kernel::native::shell::{ProgramConfig, ShellConfig};
use serde_json::{Value, json};

use super::Need::{May, Must};
use super::{Member, list, members_of, number, object, one_of, set, table, text};
use crate::config::Tools;

/// The tools in the box.
pub(super) fn tools() -> Value {
    object::<Tools>(vec![
        ("fs.read", May, "Reads a file.", fs()),
        ("fs.write", May, "Writes a file.", fs()),
        ("shell.run", May, "Runs a program of a list.", shell()),
        ("git.status", May, "Where the repository stands.", git()),
        (
            "git.commit",
            May,
            "Commits.",
            object::<GitCommitConfig>(vec![
                ("repository", Must, "The repository.", git()),
                (
                    "author",
                    Must,
                    "In whose name.",
                    object::<Person>(vec![
                        ("name", Must, "The name.", text()),
                        ("email", Must, "The address.", text()),
                    ]),
                ),
            ]),
        ),
        ("git.push", May, "Pushes.", push()),
        (
            "http.request",
            May,
            "Any request to a pinned host.",
            object::<RequestConfig>(vec![
                (
                    "hosts",
                    Must,
                    "The hosts.",
                    list(object::<HostEntry>(host(Vec::new()))),
                ),
                ("methods", May, "The methods.", list(one_of::<Method>())),
                ("network", May, "The network.", network()),
                (
                    "max_request_bytes",
                    May,
                    "Most that a request may carry.",
                    number(),
                ),
                (
                    "max_response_bytes",
                    May,
                    "Most that is read of an answer.",
                    number(),
                ),
            ]),
        ),
        (
            "http.fetch",
            May,
            "Fetches from a pinned place.",
            object::<FetchConfig>(vec![
                (
                    "fetch_allow",
                    Must,
                    "The places.",
                    list(object::<FetchEntry>(host(vec![
                        (
                            "path_prefix",
                            Must,
                            "What a path has to begin with.",
                            text(),
                        ),
                        (
                            "query",
                            May,
                            "Parameters that are always sent.",
                            table(text()),
                        ),
                    ]))),
                ),
                ("network", May, "The network.", network()),
                (
                    "max_response_bytes",
                    May,
                    "Most that is read of an answer.",
                    number(),
                ),
            ]),
        ),
        ("message.send", May, "Sends a message.", message()),
        (
            "nostr.publish",
            May,
            "Publishes a Nostr event.",
            object::<NostrConfig>(vec![
                ("relays", Must, "The relays.", list(text())),
                ("kinds", Must, "The kinds of events.", list(number())),
                (
                    "credential_env",
                    May,
                    "The environment variable with the key.",
                    text(),
                ),
                ("credential_file", May, "The file with the key.", text()),
                ("network", May, "The network.", network()),
                ("max_content_bytes", May, "Longest content.", number()),
            ]),
        ),
    ])
}

fn fs() -> Value {
    object::<FsConfig>(vec![
        (
            "root",
            Must,
            "The folder; nothing above it is reached.",
            text(),
        ),
        ("max_bytes", May, "Largest file.", number()),
        (
            "links",
            May,
            "What becomes of symbolic links.",
            one_of::<Links>(),
        ),
    ])
}

fn shell() -> Value {
    object::<ShellConfig>(vec![
        ("root", Must, "Where programs start.", text()),
        (
            "programs",
            Must,
            "The programs, by the names that the agent uses.",
            table(object::<ProgramConfig>(vec![
                ("path", Must, "Where it lies.", text()),
                (
                    "args_allow",
                    May,
                    "Words that may be given to it; all where nothing is said.",
                    list(text()),
                ),
                ("args_deny", May, "Words that may not.", list(text())),
            ])),
        ),
        ("env", May, "Their environment.", table(text())),
        ("pass_env", May, "What they have of our own.", set(text())),
        ("timeout_ms", May, "How long one may run.", number()),
        (
            "max_output_bytes",
            May,
            "Most that is kept of its output.",
            number(),
        ),
    ])
}

fn git() -> Value {
    object::<GitConfig>(vec![
        ("root", Must, "The working tree.", text()),
        ("git", May, "The program.", text()),
        (
            "git_dir",
            May,
            "The repository, where it lies elsewhere.",
            text(),
        ),
    ])
}

fn push() -> Value {
    let credentials = json!({"oneOf": [
        members_of(vec![
            ("kind", Must, "A key of SSH.", json!({"const": "ssh-key"})),
            ("key", Must, "The file with the key.", text()),
            ("known_hosts", Must, "The file with the hosts' keys.", text()),
        ]),
        members_of(vec![
            ("kind", Must, "A token.", json!({"const": "token"})),
            ("env", Must, "The environment variable with it.", text()),
            ("username", May, "With which name.", text()),
        ]),
        members_of(vec![
            ("kind", Must, "A program that is asked.", json!({"const": "askpass"})),
            ("program", Must, "The program.", text()),
        ]),
    ]});
    object::<GitPushConfig>(vec![
        ("repository", Must, "The repository.", git()),
        ("url", Must, "Where it is pushed to.", text()),
        (
            "refs",
            Must,
            "What may be pushed.",
            list(object::<PinnedRef>(vec![
                ("branch", Must, "The branch here.", text()),
                ("to", Must, "The ref there.", text()),
                ("update", May, "How it may move.", one_of::<Update>()),
            ])),
        ),
        (
            "credentials",
            May,
            "How one proves who one is.",
            credentials,
        ),
        ("protocols", May, "The ways.", list(one_of::<Protocol>())),
    ])
}

fn host(more: Vec<Member>) -> Vec<Member> {
    let mut members = vec![
        (
            "host",
            Must,
            "The host, and its port where it has one.",
            text(),
        ),
        ("scheme", May, "How it is spoken to.", one_of::<Scheme>()),
        (
            "credential_env",
            May,
            "The environment variable with the credential.",
            text(),
        ),
        (
            "credential_file",
            May,
            "The file with the credential.",
            text(),
        ),
        (
            "credential_header",
            May,
            "The header that carries it.",
            text(),
        ),
        (
            "credential_prefix",
            May,
            "What stands before it there.",
            text(),
        ),
    ];
    members.extend(more);
    members
}

fn network() -> Value {
    object::<NetworkConfig>(vec![
        (
            "allow_addresses",
            May,
            "Private addresses that may be reached.",
            list(text()),
        ),
        (
            "ca_file",
            May,
            "Root certificates in PEM, trusted beside the public ones.",
            text(),
        ),
        (
            "connect_timeout_ms",
            May,
            "Time for one connection.",
            number(),
        ),
        ("timeout_ms", May, "Time for one exchange.", number()),
    ])
}

fn message() -> Value {
    let email = object::<EmailConfig>(vec![
        ("server", Must, "The mail server.", text()),
        ("port", May, "Its port.", number()),
        (
            "tls",
            May,
            "How the connection is protected.",
            one_of::<TlsMode>(),
        ),
        ("sender", Must, "From whom.", text()),
        ("recipients", Must, "To whom it may go.", list(text())),
        ("username", May, "The name to log in with.", text()),
        (
            "credential_env",
            May,
            "The environment variable with the password.",
            text(),
        ),
        (
            "credential_file",
            May,
            "The file with the password.",
            text(),
        ),
    ]);
    let webhook = object::<WebhookConfig>(vec![(
        "hooks",
        Must,
        "The hooks.",
        list(object::<Hook>(vec![
            ("name", Must, "What the agent calls it.", text()),
            ("url", May, "Where it is.", text()),
            (
                "url_env",
                May,
                "The environment variable with its address.",
                text(),
            ),
            ("url_file", May, "The file with its address.", text()),
        ])),
    )]);
    let channel = json!({"oneOf": [
        members_of(vec![("email", Must, "By mail.", email)]),
        members_of(vec![("webhook", Must, "Through a hook.", webhook)]),
    ]});
    object::<MessageConfig>(vec![
        ("channel", Must, "How.", channel),
        ("network", May, "The network.", network()),
        ("max_body_bytes", May, "Longest message.", number()),
    ])
}
