//! The tool that echoes, and a session around it.

use std::path::{Path, PathBuf};

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_guard::{Config, Holds, Keys, Session, Setup};
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::CONTENT;
use crate::session;

/// Gives back a kibibyte that begins with what it was given.
pub(crate) struct Echo(Definition);

impl Echo {
    pub(crate) const NAME: &str = "echo";

    fn new() -> Self {
        Self(Definition {
            name: ToolName::new(Self::NAME).expect("a valid name"),
            server: ServerIdentity::new("bench").expect("a valid name"),
            description: "gives back what it was given".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": false,
            }),
            roles: [("text".to_owned(), ArgumentRole::Payload)].into(),
            declared: None,
            minimum: Contract {
                required_level: Rung::L0,
                blast_radius: BlastRadius::SelfOnly,
                reversibility: Reversibility::Reversible,
                scope: Scope::global(),
                data_sensitivity: DataSensitivity::Private,
                preconditions: Preconditions::default(),
                sandbox: Sandbox::Read,
                permissions: [Permission::ReadFiles].into(),
            },
        })
    }
}

impl Tool for Echo {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            let given = call.text("text")?.to_owned();
            // As one that answers over a pipe does, it lets others go on meanwhile.
            tokio::task::yield_now().await;
            let mut text = given;
            while text.len() < CONTENT {
                text.push_str(" and what else there was to say about it in a few words");
            }
            text.truncate(CONTENT);
            Ok(Output::text(text))
        })
    }
}

/// A policy such as somebody might write for it.
const POLICY: &str = r#"
permit (principal, action == Action::"run:echo", resource) when { context.level <= 1 };
forbid (principal, action == Action::"run:echo", resource) when { context.sensitivity == "secret" };
"#;

const CONFIG: &str = r#"
project_id = "bench"
actor_id = "coder"
[policy]
file = "policy.cedar"
allow_unsigned = true
[tool_defaults.echo]
required_trust_level = "L0"
blast_radius = "self"
reversibility = "reversible"
data_sensitivity = "private"
"#;

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// A session over SQLite in a folder of its own.
pub(crate) fn open(runtime: &Runtime, folder: &Path) -> Session {
    std::fs::create_dir_all(folder).expect("a scratch folder");
    std::fs::write(folder.join("policy.cedar"), POLICY).expect("the disk has room");
    let config = Config::parse(CONFIG, folder).expect("a configuration");
    let setup = Setup::new(config, Keys::new(session::key())).tool(Echo::new());
    let opening = setup.holds(Holds::Leave).open();
    runtime
        .block_on(opening)
        .expect("a session in a scratch folder")
}

/// Where the session's log lies.
pub(crate) fn log(folder: &Path) -> PathBuf {
    folder.join(".lodestar").join("log")
}

pub(crate) fn arguments(text: &str) -> Value {
    json!({"text": text})
}

/// A text that no other call has.
pub(crate) fn other(number: u64) -> String {
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The text of one call.
pub(crate) fn text(number: u64) -> String {
    format!("note {number} of today")
}
