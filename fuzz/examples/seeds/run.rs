//! A governed session that is a run, packed: something was read, and something waits for a person.

use std::error::Error;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ProjectId, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_fuzz::{sample, ticket};
use lodestar_gateway::bundle::pack;
use lodestar_guard::{Config, Holds, Keys, Setup};
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use lodestar_log::LogRoot;
use serde_json::json;

const CONFIG: &str = r#"
project_id = "sample"
actor_id = "agent-1"
session_id = "s1"
auto_approve_ceiling = 2

[tool_defaults."box.read"]
required_trust_level = "L0"
"#;

struct BoxTool(Definition);

impl BoxTool {
    fn new(name: &str) -> Result<Self, Box<dyn Error>> {
        Ok(Self(Definition {
            name: ToolName::new(name)?,
            server: ServerIdentity::new("box")?,
            description: "a tool of the sample".to_owned(),
            input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
            roles: [("path".to_owned(), ArgumentRole::Path)].into(),
            declared: None,
            minimum: Contract {
                required_level: Rung::L0,
                blast_radius: BlastRadius::SelfOnly,
                reversibility: Reversibility::Reversible,
                scope: Scope::global(),
                data_sensitivity: DataSensitivity::Public,
                preconditions: Default::default(),
                sandbox: Sandbox::ControlledNetwork,
                permissions: Permission::ALL.iter().copied().collect(),
            },
        }))
    }
}

impl Tool for BoxTool {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn call<'a>(&'a self, _: Call<'a>) -> Calling<'a> {
        // More than stays in a line.
        Box::pin(async { Ok(Output::text("a line\n".repeat(3_000))) })
    }
}

/// The bundle.
pub(crate) fn bundle() -> Result<Vec<u8>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let config = Config::parse(CONFIG, folder.path())?;
        let setup = Setup::new(config, Keys::new(sample::log_key()))
            .tool(BoxTool::new("box.read")?)
            .tool(BoxTool::new("box.send")?)
            .holds(Holds::Leave)
            .run(ticket());
        let session = setup.open().await?;
        for tool in ["box.read", "box.send"] {
            session.call(tool, json!({"path": "a.md"})).await?;
        }
        session.close("done").await?;
        Ok::<_, Box<dyn Error>>(())
    })?;
    drop(runtime);
    let log = LogRoot::in_folder(folder.path()).project(&ProjectId::new("sample")?);
    let mut bytes = Vec::new();
    let public = sample::log_key().public();
    pack(&log.session(&"s1".parse()?), &public, &mut bytes)?;
    Ok(bytes)
}
