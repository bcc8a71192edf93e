//! Runs: governed sessions with a ticket, made by the library that everybody uses, and what a forger with the
//! device's own log key makes of them.

use std::path::Path;
use std::sync::Arc;

use lodestar_core::canonical;
use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Reversibility, Sandbox,
};
use lodestar_core::digest::{Digest, decode_hex, leaf_hash, sha256_parts};
use lodestar_core::id::RunId;
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::ladder::Rung;
use lodestar_core::merkle::Frontier;
use lodestar_core::name::{ActorId, ProjectId, ServerIdentity, SessionId, ToolName};
use lodestar_core::note::Checkpoint;
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_core::statement::{ApprovalDecision, Envelope, Nonce};
use lodestar_core::time::Timestamp;
use lodestar_gateway::bundle::{Expected, Packed, pack};
use lodestar_guard::{Config, Holds, Keys, Resolver, Resolving, Session, Setup};
use lodestar_kernel::opening::{Opening, RunTicket};
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use lodestar_log::{Clock, LogRoot, Reader, SessionDir};
use lodestar_policy::{ApprovalRequest, Signed};
use lodestar_replay::terms::{Moments, Terms};
use serde_json::{Value, json};

const POLICY: &str = r#"@id("run-most")
permit (principal, action in Action::"run", resource) when { context.level <= 3 };
"#;

const CONFIG: &str = r#"
project_id = "notes"
actor_id = "agent"
approval_timeout_ms = 2000

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

pub(crate) fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

/// The key of the device's log.
pub(crate) fn log_key() -> SecretKey {
    key(7)
}

/// Who signs policies.
const SIGNER: u8 = 40;

/// Who approves.
const APPROVER: u8 = 1;

pub(crate) fn ticket(number: u8) -> RunTicket {
    RunTicket {
        id: RunId::from_parts(1_700_000_000_000, [number; 10]),
        nonce: Nonce::from_bytes([number; 16]),
    }
}

fn nonce() -> Nonce {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    Nonce::from_bytes(bytes)
}

struct BoxTool(Definition);

impl BoxTool {
    fn new(name: &str) -> Self {
        Self(Definition {
            name: ToolName::new(name).unwrap(),
            server: ServerIdentity::new("box").unwrap(),
            description: "a tool of a test".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "to": {"type": "string"},
                    "lines": {"type": "integer"},
                },
                "additionalProperties": false,
            }),
            roles: [
                ("path".to_owned(), ArgumentRole::Path),
                ("to".to_owned(), ArgumentRole::Destination),
            ]
            .into(),
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
        })
    }
}

impl Tool for BoxTool {
    fn definition(&self) -> &Definition {
        &self.0
    }

    /// So many lines as it is asked for: many do not fit into a line of the log.
    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            let lines = call.arguments().get("lines").and_then(Value::as_u64);
            Ok(Output::text(
                "something was read\n".repeat(usize::try_from(lines.unwrap_or(1)).unwrap()),
            ))
        })
    }
}

struct Grants;

impl Resolver for Grants {
    fn resolve<'a>(&'a self, request: &'a ApprovalRequest) -> Resolving<'a> {
        Box::pin(async move {
            let signed = Signed {
                key: &key(APPROVER),
                at: Clock::system().now(),
                nonce: nonce(),
            };
            let name = ActorId::new("anna").unwrap();
            let granted = request.answer(&name, ApprovalDecision::Grant, "looked at it", signed);
            vec![granted.unwrap()]
        })
    }
}

/// Where runs of the same terms are made: one folder, one policy, one signature.
pub(crate) struct Workshop {
    folder: Arc<tempfile::TempDir>,
    signature: Envelope,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = Clock::system().now();
        let signature =
            lodestar_policy::sign(POLICY.as_bytes(), &key(SIGNER), nonce(), now, None).unwrap();
        std::fs::write(folder.path().join("policy.cedar"), POLICY).unwrap();
        std::fs::write(folder.path().join("policy.cedar.sig"), signature.to_json()).unwrap();
        Self {
            folder: Arc::new(folder),
            signature,
        }
    }

    pub(crate) async fn run<F: Future<Output = Session>>(
        &self,
        ticket: RunTicket,
        work: impl FnOnce(Session) -> F,
    ) -> Ran {
        let folder = Arc::clone(&self.folder);
        let since = Clock::system().now();
        let (signer, approver) = (key(SIGNER).public(), key(APPROVER).public());
        let config = format!(
            "{CONFIG}\n[policy]\nfile = \"policy.cedar\"\nkeys = [\"{signer}\"]\n\
             [[approvals.authorized_keys]]\nactor_id = \"anna\"\npublic_key = \"{approver}\"\n"
        );
        let config = Config::parse(&config, folder.path()).unwrap();
        let setup = Setup::new(config, Keys::new(log_key()))
            .tool(BoxTool::new("box.read"))
            .tool(BoxTool::new("box.send"))
            .holds(Holds::Ask(Arc::new(Grants)))
            .run(ticket);
        let session = work(setup.open().await.unwrap()).await;
        session.close("done").await.unwrap();
        let project = ProjectId::new("notes").unwrap();
        let log = LogRoot::in_folder(folder.path().canonicalize().unwrap()).project(&project);
        let dir = log.session(session.id());
        drop(session);
        while lodestar_log::verify::is_live(&dir).unwrap() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let first = Reader::open(&dir).unwrap().next_event().unwrap().unwrap();
        let opening = first.whole(&dir).unwrap().unwrap();
        let opening: Opening = serde_json::from_value(opening).unwrap();
        let signed = Some((self.signature.clone(), vec![signer]));
        let terms = Terms::of_opening(&opening, signed, Vec::new()).unwrap();
        Ran {
            _folder: folder,
            dir,
            terms,
            ticket,
            since,
        }
    }
}

/// A run that is over: its log where it was made, and what the owner registered before.
pub(crate) struct Ran {
    _folder: Arc<tempfile::TempDir>,
    pub(crate) dir: SessionDir,
    pub(crate) terms: Terms,
    pub(crate) ticket: RunTicket,
    pub(crate) since: Timestamp,
}

impl Ran {
    /// Something is read, something large too, and something sent with somebody's leave.
    pub(crate) async fn honest(ticket: RunTicket) -> Self {
        Self::of(ticket, |session| async move {
            for (tool, arguments) in [
                ("box.read", json!({"path": "a.md"})),
                ("box.read", json!({"path": "b.md", "lines": 5_000})),
                ("box.send", json!({"to": "anna@corp.example"})),
            ] {
                assert!(session.call(tool, arguments).await.unwrap().ran());
            }
            session
        })
        .await
    }

    pub(crate) async fn of<F: Future<Output = Session>>(
        ticket: RunTicket,
        work: impl FnOnce(Session) -> F,
    ) -> Self {
        Workshop::new().run(ticket, work).await
    }

    pub(crate) fn session(&self) -> &SessionId {
        self.dir.session()
    }

    pub(crate) fn packed(&self) -> (Vec<u8>, Packed) {
        let mut bytes = Vec::new();
        let packed = pack(&self.dir, &log_key().public(), &mut bytes).unwrap();
        (bytes, packed)
    }

    pub(crate) fn moments(&self) -> Moments {
        Moments {
            registered_at: self.since,
            received_at: Clock::system().now(),
        }
    }

    /// The checkpoint that the device's writer would have signed after so many events.
    pub(crate) fn note_at(&self, size: usize) -> String {
        let leaves = Reader::open(&self.dir).unwrap().take(size);
        let mut tree = Frontier::new();
        leaves.for_each(|event| tree.push(event.unwrap().leaf_hash));
        let checkpoint = Checkpoint {
            origin: self.dir.origin(),
            size: tree.size(),
            root: tree.root(),
        };
        checkpoint.sign(&log_key()).to_string()
    }

    /// Writes the log anew after a change, as somebody does who has the device's log key: every hash, the root and
    /// the checkpoint are right.
    pub(crate) fn forge(&self, change: impl FnOnce(&mut Vec<Value>)) {
        let path = self.dir.events_path();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut lines: Vec<Value> = lines.collect();
        let opening = lines[0]["head"]["prev"].clone();
        change(&mut lines);
        seal(&self.dir, opening, &mut lines, &log_key());
    }

    pub(crate) fn forged(self, change: impl FnOnce(&mut Vec<Value>)) -> Self {
        self.forge(change);
        self
    }
}

fn seal(dir: &SessionDir, opening: Value, lines: &mut [Value], key: &SecretKey) {
    let (mut tree, mut last, mut text) = (Frontier::new(), opening, Vec::new());
    for (seq, line) in (0_u64..).zip(lines) {
        let payload = canonical::to_vec(&line["payload"]).unwrap();
        let salt: [u8; 16] = decode_hex(line["salt"].as_str().unwrap().as_bytes()).unwrap();
        let head = &mut line["head"];
        head["seq"] = json!(seq);
        head["prev"] = last;
        head["payload_hash"] = json!(sha256_parts(&[&salt, &payload]));
        let leaf: Digest = leaf_hash(&canonical::to_vec(head).unwrap());
        tree.push(leaf);
        last = json!(leaf);
        text.extend(canonical::to_vec(&line).unwrap());
        text.push(b'\n');
    }
    std::fs::write(dir.events_path(), text).unwrap();
    let checkpoint = Checkpoint {
        origin: dir.origin(),
        size: tree.size(),
        root: tree.root(),
    };
    let note = checkpoint.sign(key).to_string();
    std::fs::write(dir.checkpoint_path(), note).unwrap();
}

/// Where an event of a type stands.
pub(crate) fn of_kind(lines: &[Value], kind: &str, nth: usize) -> usize {
    let places = (0..).zip(lines);
    let mut places = places.filter(|(_, line)| line["head"]["type"] == kind);
    places.nth(nth).unwrap().0
}

/// What the server expects of a run whose bundle was packed so.
pub(crate) fn expected<'a>(
    packed: &Packed,
    notes: &'a [String],
    log_key: &'a PublicKey,
    ticket: RunTicket,
) -> Expected<'a> {
    Expected {
        bundle: packed.bundle,
        log_key,
        operators: &[],
        session: None,
        root: packed.root,
        size: packed.size,
        checkpoints: notes,
        ticket,
    }
}

/// Every file below a folder, with what is in it.
pub(crate) fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let name = entry.path().strip_prefix(folder).unwrap().to_owned();
                    let bytes = std::fs::read(entry.path()).unwrap();
                    found.push((name.to_string_lossy().into_owned(), bytes));
                }
            }
        }
    }
    found.sort();
    found
}
