//! Governed work: sessions of the guard with a run's ticket, and the logs that they leave.

use std::path::PathBuf;
use std::sync::Arc;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Reversibility, Sandbox,
};
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, ProjectId, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_core::statement::ApprovalDecision;
use lodestar_gateway::bundle::{Packed, pack};
use lodestar_guard::{Config, Holds, Keys, Resolver, Resolving, Setup};
use lodestar_kernel::opening::{Opening, RunTicket};
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use lodestar_log::{Clock, LogRoot, Reader, SessionDir};
use lodestar_policy::{ApprovalRequest, Signed};
use lodestar_replay::terms::Terms;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Prepared, Trouble, While, fresh_nonce};

/// What governs the work: reading is free, and sending waits for somebody.
const CONFIG: &str = r#"
project_id = "notes"
actor_id = "agent"
approval_timeout_ms = 5000

[tool_defaults."box.read"]
required_trust_level = "L0"
blast_radius = "self"
reversibility = "reversible"
data_sensitivity = "private"

[tool_defaults."box.send"]
required_trust_level = "L4"
blast_radius = "external"
reversibility = "irreversible"
data_sensitivity = "private"
"#;

/// What is done in a run where nothing else is said.
pub const SCRIPT: &[(&str, &str)] = &[("box.read", "a.md"), ("box.send", "anna@corp.example")];

/// What is done in a run, and under what.
#[derive(Debug, Clone)]
pub struct Work {
    /// The calls: a tool, and what it is pointed at.
    pub calls: Vec<(&'static str, String)>,
    /// Up to which rung calls run unasked.
    pub ceiling: u8,
    /// Whose approval counts, in the place of the workplace's own people.
    pub approver: Option<Arc<SecretKey>>,
    /// The grade of sending.
    pub sending: &'static str,
}

impl From<&[(&'static str, &str)]> for Work {
    fn from(calls: &[(&'static str, &str)]) -> Self {
        let calls = calls.iter().map(|(tool, at)| (*tool, (*at).to_owned()));
        Self {
            calls: calls.collect(),
            ceiling: 3,
            approver: None,
            sending: "L4",
        }
    }
}

/// A tool that does nothing, and says so.
struct BoxTool(Definition);

impl BoxTool {
    fn new(name: &str) -> Prepared<Self> {
        let roles = [
            ("path".to_owned(), ArgumentRole::Path),
            ("to".to_owned(), ArgumentRole::Destination),
        ];
        Ok(Self(Definition {
            name: ToolName::new(name).while_("naming a tool")?,
            server: ServerIdentity::new("box").while_("naming a server")?,
            description: "a tool of a scenario".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"path": {"type": "string"}, "to": {"type": "string"}},
                "additionalProperties": false,
            }),
            roles: roles.into(),
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
        Box::pin(async move { Ok(Output::text("something was read")) })
    }
}

/// Somebody who agrees to everything.
struct Agrees(Arc<SecretKey>);

impl Resolver for Agrees {
    fn resolve<'a>(&'a self, request: &'a ApprovalRequest) -> Resolving<'a> {
        Box::pin(async move {
            let answer = || {
                let signed = Signed {
                    key: &self.0,
                    at: Clock::system().now(),
                    nonce: fresh_nonce().ok()?,
                };
                let name = ActorId::new("anna").ok()?;
                let granted = ApprovalDecision::Grant;
                request.answer(&name, granted, "looked at it", signed).ok()
            };
            answer().into_iter().collect()
        })
    }
}

/// Where governed work is done.
#[derive(Debug)]
pub struct Workplace {
    folder: PathBuf,
    approver: Arc<SecretKey>,
}

impl Workplace {
    /// In this folder, which is there.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            approver: Arc::new(SecretKey::from_seed([41; 32])),
        }
    }

    /// Does work under a ticket, and gives the log of it.
    pub async fn run(
        &self,
        ticket: Option<RunTicket>,
        log_key: &Arc<SecretKey>,
        work: &Work,
    ) -> Prepared<Ran> {
        let folder = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(&self.folder);
        let folder = folder.while_("making a project")?;
        let approver = work.approver.as_ref().unwrap_or(&self.approver);
        let (ceiling, public) = (work.ceiling, approver.public());
        let graded = CONFIG.replacen("\"L4\"", &format!("{:?}", work.sending), 1);
        let config = format!(
            "auto_approve_ceiling = {ceiling}\n{graded}\n[[approvals.authorized_keys]]\n\
             actor_id = \"anna\"\npublic_key = \"{public}\"\n"
        );
        let config = Config::parse(&config, folder.path()).while_("configuring a session")?;
        let mut setup = Setup::new(config, keys(log_key))
            .tool(BoxTool::new("box.read")?)
            .tool(BoxTool::new("box.send")?)
            .holds(Holds::Ask(Arc::new(Agrees(Arc::clone(approver)))));
        if let Some(ticket) = ticket {
            setup = setup.run(ticket);
        }
        let session = setup.open().await.while_("opening a session")?;
        for (tool, at) in &work.calls {
            let argument = match *tool {
                "box.send" => "to",
                _ => "path",
            };
            let called = session.call(tool, json!({argument: at})).await;
            if !called.while_("calling a tool")?.ran() {
                return Err(Trouble::new(format!("{tool} did not run")));
            }
        }
        session.close("done").await.while_("closing a session")?;
        let project = ProjectId::new("notes").while_("a project's name")?;
        let place = folder.path().canonicalize().while_("a project's path")?;
        let dir = LogRoot::in_folder(place)
            .project(&project)
            .session(session.id());
        Ok(Ran {
            dir,
            log_key: Arc::clone(log_key),
            _folder: Arc::new(folder),
        })
    }

    /// The terms that the workplace's own work keeps to.
    pub async fn terms(&self) -> Prepared<Terms> {
        let key = Arc::new(SecretKey::from_seed([42; 32]));
        let ran = self.run(None, &key, &Work::from(&[][..])).await?;
        Terms::of_opening(&ran.opening()?, None, Vec::new()).while_("making terms")
    }
}

fn keys(log_key: &SecretKey) -> Keys {
    // Keys are not copied; a seed is, and is as secret.
    Keys::new(SecretKey::from_seed(*log_key.seed()))
}

/// A run that is over: its log where it was made.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Where.
    pub dir: SessionDir,
    pub(super) log_key: Arc<SecretKey>,
    _folder: Arc<TempDir>,
}

impl Ran {
    /// The bundle of it.
    pub fn packed(&self) -> Prepared<(Vec<u8>, Packed)> {
        let mut bytes = Vec::new();
        let packed = pack(&self.dir, &self.log_public(), &mut bytes).while_("packing a log")?;
        Ok((bytes, packed))
    }

    fn log_public(&self) -> PublicKey {
        self.log_key.public()
    }

    /// The last checkpoint, as it lies there.
    pub fn note(&self) -> Prepared<String> {
        std::fs::read_to_string(self.dir.checkpoint_path()).while_("reading a checkpoint")
    }

    /// What it opened with.
    fn opening(&self) -> Prepared<Opening> {
        let mut reader = Reader::open(&self.dir).while_("reading a log")?;
        let first = reader.next_event().while_("reading a log")?;
        let first = first.ok_or_else(|| Trouble::new("an empty log"))?;
        let payload: Option<Value> = first.whole(&self.dir).while_("reading an opening")?;
        let payload = payload.ok_or_else(|| Trouble::new("a redacted opening"))?;
        serde_json::from_value(payload).while_("reading an opening")
    }
}
