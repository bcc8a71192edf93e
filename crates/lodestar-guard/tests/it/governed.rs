//! A governed project: a folder, keys, tools that count how often they ran, and its log read back.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lodestar_core::chain::ContentBlock;
use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Reversibility, Sandbox,
};
use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ProjectId, ServerIdentity, SessionId, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_guard::{Config, Holds, Keys, Session, Setup};
use lodestar_kernel::terse;
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use lodestar_log::{LogRoot, ProjectLog, Reader, Trust};
use lodestar_replay::SessionReplay;
use serde_json::{Value, json};

pub(crate) struct Project {
    pub(crate) root: PathBuf,
    _scratch: Option<tempfile::TempDir>,
    edited: Cell<bool>,
}

/// Every session that a test leaves behind is derived again from its log alone.
impl Drop for Project {
    fn drop(&mut self) {
        if std::thread::panicking() || self.edited.get() || !self.log().ledger_path().exists() {
            return;
        }
        for session in self.log().sessions_on_disk().unwrap() {
            let replay = self.replay(&session);
            assert!(replay.agrees(), "{session}: {:?}", replay.differences);
        }
    }
}

/// What every test here starts from: reading runs, writing runs and is told, sending is held.
pub(crate) const GRADES: &str = r#"
project_id = "notes"
actor_id = "agent"
auto_approve_ceiling = 3

[tool_defaults."box.read"]
required_trust_level = "L0"
blast_radius = "self"
reversibility = "reversible"
data_sensitivity = "private"

[tool_defaults."box.write"]
required_trust_level = "L3"
blast_radius = "project"
reversibility = "compensable"
data_sensitivity = "private"

[tool_defaults."box.send"]
required_trust_level = "L4"
blast_radius = "external"
reversibility = "irreversible"
data_sensitivity = "private"
"#;

impl Project {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mut project = Self::at(scratch.path());
        project._scratch = Some(scratch);
        project
    }

    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.canonicalize().unwrap(),
            _scratch: None,
            edited: Cell::new(false),
        }
    }

    /// The test changes what stands in the log: nothing follows from it any more.
    pub(crate) fn will_be_edited(&self) {
        self.edited.set(true);
    }

    pub(crate) fn log(&self) -> ProjectLog {
        LogRoot::in_folder(&self.root).project(&ProjectId::new("notes").unwrap())
    }

    pub(crate) fn setup(&self, config: &str, tools: &[CountingTool]) -> Setup {
        let config = Config::parse(config, &self.root).unwrap();
        let setup = Setup::new(config, Keys::new(log_key()));
        tools
            .iter()
            .fold(setup, |setup, tool| setup.tool(tool.clone()))
    }

    pub(crate) async fn open(&self, config: &str, tools: &[CountingTool]) -> Session {
        let setup = self.setup(config, tools).holds(Holds::Leave);
        setup.open().await.unwrap()
    }

    /// Every event of a session: type and payload.
    pub(crate) fn events(&self, session: &SessionId) -> Vec<(String, Value)> {
        let dir = self.log().session(session);
        let reader = Reader::open(&dir).unwrap();
        let mut opening = None;
        reader
            .map(|event| {
                let event = event.unwrap();
                let payload = terse::whole(&event, &dir, opening.as_ref()).unwrap();
                let payload = payload.unwrap_or_default();
                if event.seq == 0 {
                    opening = serde_json::from_value(payload.clone()).ok();
                }
                (event.kind, payload)
            })
            .collect()
    }

    pub(crate) fn replay(&self, session: &SessionId) -> SessionReplay {
        lodestar_replay::derive(&self.log(), session, &[], None).unwrap()
    }

    /// The log verifies, and everything in it follows again.
    pub(crate) fn assert_sound(&self, session: &SessionId) -> SessionReplay {
        let trust = Trust::only(log_key().public());
        let options = lodestar_log::verify::VerifyOptions::default();
        let report =
            lodestar_log::verify::verify_project(&self.log(), &trust, &options, &|_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        for session in &report.sessions {
            assert!(session.problems.is_empty(), "{:?}", session.problems);
        }
        let replay = self.replay(session);
        assert!(replay.agrees(), "{:?}", replay.differences);
        replay
    }
}

pub(crate) fn operator() -> SecretKey {
    SecretKey::from_seed([99; 32])
}

/// Takes events out of a session as an operator may.
pub(crate) fn redact(log: &ProjectLog, session: &SessionId, seqs: &[u64], log_key: SecretKey) {
    let mut trust = Trust::only(log_key.public());
    trust.operators.push(operator().public());
    lodestar_log::redact(
        log,
        session,
        &seqs.iter().copied().collect(),
        "a name stood in it",
        &operator(),
        &trust,
        &lodestar_log::WriterOptions::new(Arc::new(log_key)),
    )
    .unwrap();
}

/// Copies of a project, in each of which another event of a session was redacted: what it was, and what is
/// left. The opening stays.
pub(crate) fn without_each(
    root: &Path,
    (log, session): (&ProjectLog, &SessionId),
    log_key: impl Fn() -> SecretKey,
    check: &mut dyn FnMut(&ProjectLog, u64, &str),
) {
    let kinds: Vec<String> = Reader::open(&log.session(session))
        .unwrap()
        .map(|event| event.unwrap().kind)
        .collect();
    for (seq, kind) in (0..).zip(&kinds).skip(1) {
        let scratch = tempfile::tempdir().unwrap();
        copy(root, scratch.path());
        let left = LogRoot::in_folder(scratch.path()).project(log.project());
        redact(&left, session, &[seq], log_key());
        check(&left, seq, kind);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

pub(crate) fn log_key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

/// How often an event of a type stands in a log.
pub(crate) fn count(events: &[(String, Value)], kind: &str) -> usize {
    let kind = format!("{kind}@1");
    events.iter().filter(|(found, _)| *found == kind).count()
}

/// A tool that says what it was given and counts how often it ran.
#[derive(Clone)]
pub(crate) struct CountingTool {
    definition: Definition,
    ran: Arc<AtomicU64>,
    answer: Arc<dyn Fn(&Call<'_>) -> Output + Send + Sync>,
}

impl CountingTool {
    pub(crate) fn new(name: &str) -> Self {
        Self::answering(name, |call| {
            Output::text(format!("did {}", Value::Object(call.arguments().clone())))
        })
    }

    pub(crate) fn answering(
        name: &str,
        answer: impl Fn(&Call<'_>) -> Output + Send + Sync + 'static,
    ) -> Self {
        let roles = [
            ("path", ArgumentRole::Path),
            ("to", ArgumentRole::Destination),
            ("text", ArgumentRole::Payload),
        ];
        Self {
            definition: Definition {
                name: ToolName::new(name).unwrap(),
                server: ServerIdentity::new("box").unwrap(),
                description: "a tool of a test".to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "to": {"type": "string"},
                        "text": {"type": "string"},
                        "count": {"type": "integer"},
                    },
                    "additionalProperties": false,
                }),
                roles: roles.map(|(name, role)| (name.to_owned(), role)).into(),
                declared: None,
                minimum: laxest(),
            },
            ran: Arc::default(),
            answer: Arc::new(answer),
        }
    }

    pub(crate) fn ran(&self) -> u64 {
        self.ran.load(Ordering::SeqCst)
    }
}

/// One tool for each grade.
pub(crate) fn three() -> [CountingTool; 3] {
    ["box.read", "box.write", "box.send"].map(CountingTool::new)
}

impl Tool for CountingTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            self.ran.fetch_add(1, Ordering::SeqCst);
            Ok((self.answer)(&call))
        })
    }
}

/// What promises nothing itself.
pub(crate) fn laxest() -> Contract {
    Contract {
        required_level: Rung::L0,
        blast_radius: BlastRadius::SelfOnly,
        reversibility: Reversibility::Reversible,
        scope: Scope::global(),
        data_sensitivity: DataSensitivity::Public,
        preconditions: Default::default(),
        sandbox: Sandbox::ControlledNetwork,
        permissions: Permission::ALL.iter().copied().collect(),
    }
}

pub(crate) fn text(block: &str) -> Vec<ContentBlock> {
    Output::text(block).content
}

/// Runs git, whatever the user has configured.
pub(crate) fn git(root: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}
