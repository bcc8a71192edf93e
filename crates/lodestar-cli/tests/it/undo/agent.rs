//! An agent that writes, in this process: with `fs.write`, and with a tool that edits files as coding agents do.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lodestar_core::contract::{
    BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_guard::config::Config;
use lodestar_guard::{Holds, Keys, Reply, Setup};
use lodestar_kernel::grade::Grade;
use lodestar_kernel::record::Rejection;
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool, ToolError};
use serde_json::{Map, Value, json};

use crate::world::World;

pub(super) const CONFIG: &str = "\
project_id = \"web\"
actor_id = \"coder\"
auto_approve_ceiling = 3

[tools.\"fs.read\"]
root = \".\"

[tools.\"fs.write\"]
root = \".\"
";

/// A name that is no text.
pub(super) const ODD_HEX: &str = "6f6464ff2e747874";

pub(super) fn odd_name(world: &World) -> PathBuf {
    world.path("work").join(OsStr::from_bytes(&unhex(ODD_HEX)))
}

pub(super) fn project() -> World {
    let world = World::new();
    world.write("work/lodestar.toml", CONFIG);
    world
}

/// A session with these calls in it, one after the other.
pub(super) fn setup(world: &World) -> Setup {
    let config = Config::read(world.path("work/lodestar.toml")).expect("a configuration");
    let keys = Keys::at(world.path("config")).expect("keys");
    Setup::new(config, keys)
        .holds(Holds::Leave)
        .tool_graded(Editor::at(&world.root()), grade())
}

pub(super) fn replied(world: &World, tool: &str, arguments: Value) -> Reply {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let session = setup(world).open().await.expect("opened");
        let reply = session.call(tool, arguments).await.expect("answered");
        session.close("done").await.expect("closed");
        reply
    })
}

/// Makes a call that runs, and says which act it was.
pub(super) fn call(world: &World, tool: &str, arguments: Value) -> String {
    let reply = replied(world, tool, arguments);
    assert!(reply.ran(), "{reply:?}");
    reply.action.expect("an act").to_string()
}

pub(super) fn refused(world: &World, tool: &str, arguments: Value) -> Rejection {
    let reply = replied(world, tool, arguments);
    reply.refusal().expect("refused").clone()
}

pub(super) fn write(world: &World, path: &str, content: &str) -> String {
    call(world, "fs.write", json!({"path": path, "content": content}))
}

/// Edits files as a coding agent would: in place, and through links.
pub(super) fn act(world: &World, edits: Value) -> String {
    call(world, "editor.edit", json!({"edits": edits}))
}

#[derive(Debug)]
struct Editor {
    root: PathBuf,
    definition: Definition,
}

fn grade() -> Grade {
    Grade {
        required_trust_level: Some(Rung::L3),
        blast_radius: Some(BlastRadius::Project),
        reversibility: Some(Reversibility::Reversible),
        data_sensitivity: Some(DataSensitivity::Private),
        permissions: Some([Permission::WriteFiles].into()),
        sandbox: Some(Sandbox::WriteLocal),
        ..Grade::default()
    }
}

impl Editor {
    fn at(root: &Path) -> Self {
        Self {
            root: root.canonicalize().expect("there"),
            definition: Definition {
                name: ToolName::new("editor.edit").expect("a name"),
                server: ServerIdentity::new("editor").expect("a name"),
                description: "Edits files.".to_owned(),
                input_schema: json!({"type": "object", "properties": {"edits": {"type": "array"}}}),
                roles: [].into(),
                minimum: Contract {
                    required_level: Rung::L0,
                    blast_radius: BlastRadius::SelfOnly,
                    reversibility: Reversibility::Reversible,
                    scope: Scope::global(),
                    data_sensitivity: DataSensitivity::Public,
                    preconditions: Preconditions::default(),
                    sandbox: Sandbox::ControlledNetwork,
                    permissions: Permission::ALL.iter().copied().collect(),
                },
                declared: None,
            },
        }
    }

    fn edit(&self, edit: &Value) -> std::io::Result<()> {
        let path = self.root.join(path(edit));
        if edit["remove"] == true {
            return fs::remove_file(path);
        }
        fs::write(&path, unhex(edit["hex"].as_str().unwrap_or_default()))?;
        if let Some(mode) = edit["mode"].as_u64() {
            let mode = u32::try_from(mode).expect("a mode");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }
}

fn path(edit: &Value) -> PathBuf {
    match edit["path_hex"].as_str() {
        Some(hex) => OsStr::from_bytes(&unhex(hex)).into(),
        None => edit["path"].as_str().unwrap_or_default().into(),
    }
}

impl Tool for Editor {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn writes(&self, arguments: &Map<String, Value>) -> Vec<PathBuf> {
        let edits = arguments["edits"].as_array();
        edits.into_iter().flatten().map(path).collect()
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            for edit in call.arguments()["edits"].as_array().into_iter().flatten() {
                self.edit(edit).map_err(|e| {
                    ToolError::failed(lodestar_kernel::tool::Effect::Unknown, e.to_string())
                })?;
            }
            Ok(Output::text("edited"))
        })
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hexadecimal")
    };
    pairs.map(byte).collect()
}
