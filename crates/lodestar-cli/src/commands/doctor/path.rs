//! The configured path, tried: the proxy, its gate, its approvals, its own protection, its log.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lodestar_core::event::EventType;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::statement::{ApprovalDecision, Nonce};
use lodestar_guard::channel::drop::{DropDirectory, Pile};
use lodestar_guard::config::{Backend, Config};
use lodestar_log::verify::verify_session;
use lodestar_log::{Ledger, LogRoot, Reader, Trust};
use lodestar_mcp::pins::LockFile;
use lodestar_policy::Signed;
use serde_json::{Map, Value, json};

use super::Finding;
use super::agent::Agent;
use super::canary::{ACT, LOOK, NAME};
use crate::cli::App;
use crate::commands::init::client::{environment, json_of_toml};
use crate::commands::now;
use crate::configured::Configured;
use crate::failure::Failure;
use crate::installation::{Installation, fresh_key};

/// The log of the doctor's session, among its notes.
const LOG: &str = "log";
/// The canary's own folder among them.
const NOTES: &str = "canary";
/// How long a session may take to look at an approval.
const LOOKING: Duration = Duration::from_secs(2);
/// How long a server may take before the doctor asks anything, beside its own deadline.
const MORE: Duration = Duration::from_secs(15);

/// Files that are gone when the doctor is.
struct Scratch {
    config: PathBuf,
    notes: tempfile::TempDir,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.config);
    }
}

impl Scratch {
    fn notes_file(&self) -> PathBuf {
        notes_file(self.notes.path())
    }

    /// What reached the canary: how often each tool.
    fn ran(&self, tool: &str) -> usize {
        let text = std::fs::read_to_string(self.notes_file()).unwrap_or_default();
        let calls = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        calls.filter(|call| call["name"] == tool).count()
    }
}

/// Where the canary notes what reaches it: in a folder that it alone may write.
fn notes_file(scratch: &Path) -> PathBuf {
    scratch.join(NOTES).join("notes")
}

pub(super) fn try_it(
    configured: &Configured,
    app: &App,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let config = &configured.config;
    let scratch = prepare(configured)?;
    app.note("starting the proxy with a canary among its servers");
    let given = environment(config.root(), &configured.file);
    let patience = Duration::from_millis(config.limits.start_deadline_ms) + MORE;
    let tried = Agent::start(&scratch.config, &given, patience).and_then(|mut agent| {
        converse(&mut agent, config, &scratch, findings).map(|id| (agent, id))
    });
    match tried {
        Ok((agent, session)) => {
            if let Err(problem) = agent.leave() {
                findings.push(Finding::broken(
                    "proxy",
                    format!("the proxy does not end well: {problem}"),
                ));
            }
            log(config, &scratch, session.as_deref(), findings)?;
            withdraw(config, session.as_deref());
        }
        Err(problem) => findings.push(
            Finding::broken(
                "proxy",
                format!("the proxy does not run with this configuration: {problem}"),
            )
            .remedy("an agent behind it has no tools; put right what it names, and run this again"),
        ),
    }
    forget(config)
}

/// The configuration with a session of its own, and the canary among its servers.
fn prepare(configured: &Configured) -> Result<Scratch, Failure> {
    let text = std::fs::read_to_string(&configured.file).map_err(Failure::io(&configured.file))?;
    let is_json = configured
        .file
        .extension()
        .is_some_and(|ending| ending == "json");
    let parsed = match is_json {
        true => serde_json::from_str(&text).map_err(|problem| problem.to_string()),
        false => json_of_toml(&text),
    };
    let mut all: Map<String, Value> = parsed.map_err(Failure::usage)?;
    let notes = tempfile::tempdir().map_err(Failure::io(std::env::temp_dir()))?;
    // It is contained as every server is.
    let own = notes.path().join(NOTES);
    std::fs::create_dir(&own).map_err(Failure::io(&own))?;
    let program = std::env::current_exe().map_err(Failure::io("lodestar"))?;
    all.insert("session_id".to_owned(), "auto".into());
    all.insert("actor_id".to_owned(), "lodestar-doctor".into());
    all.insert("approval_timeout_ms".to_owned(), 0.into());
    // A session of the doctor's in the project's own log would end the one that waits for people there.
    let log = notes.path().join(LOG);
    all.insert("log_root".to_owned(), log.to_string_lossy().into());
    if configured.config.persistence.backend == Backend::Sqlite {
        all.insert("persistence".to_owned(), json!({"backend": "memory"}));
    }
    all.remove("naming");
    // What the doctor does is no run of anybody's.
    all.remove("run");
    if let Some(servers) = all
        .get_mut("downstream_servers")
        .and_then(Value::as_array_mut)
    {
        servers.push(json!({
            "name": NAME,
            "command": program.to_string_lossy(),
            "args": ["doctor", "--canary", notes_file(notes.path()).to_string_lossy()],
            "write": [own.to_string_lossy()],
        }));
    }
    let grades = all.entry("tool_defaults").or_insert_with(|| json!({}));
    grades[format!("mcp.{NAME}.{LOOK}")] = json!({
        "required_trust_level": "L0",
        "blast_radius": "self",
        "reversibility": "reversible",
        "data_sensitivity": "public",
        "arg_roles": {"path": "path"},
    });
    let mut random = [0; 6];
    getrandom::fill(&mut random)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    // Beside the configuration: relative paths start from where it lies.
    let root = configured.config.root();
    let config = root.join(format!(".lodestar-doctor-{name}.json"));
    let scratch = Scratch { config, notes };
    let file = std::fs::File::create_new(&scratch.config).map_err(Failure::io(&scratch.config))?;
    serde_json::to_writer(file, &all).map_err(|problem| Failure::usage(problem.to_string()))?;
    Ok(scratch)
}

fn kind(result: &Value) -> &str {
    result["_meta"]["_lodestar"]["kind"]
        .as_str()
        .unwrap_or_default()
}

/// Tries everything; gives the session's name.
fn converse(
    agent: &mut Agent,
    config: &Config,
    scratch: &Scratch,
    findings: &mut Vec<Finding>,
) -> Result<Option<String>, String> {
    let listed = agent.ask("tools/list", json!({}))?;
    servers(&listed, config, findings);
    let tool = |name: &str| format!("{NAME}__{name}");
    let looked = agent.call(&tool(LOOK), json!({"path": "canary"}))?;
    let session = looked["_meta"]["_lodestar"]["session_id"]
        .as_str()
        .map(str::to_owned);
    let runs = looked["isError"] != json!(true) && scratch.ran(LOOK) == 1;
    if !runs {
        findings.push(Finding::uncovered(
            "allowed",
            format!("not even a reading call of L0 runs here (`{}`), so that others are refused proves little", kind(&looked)),
        ));
    }
    let unknown = agent.call(&tool("nothing"), json!({}))?;
    findings.push(match kind(&unknown) {
        "tool_not_advertised" => Finding::proven(
            "unknown_tool",
            "a call of a tool that no server offers is refused",
        ),
        other => Finding::broken(
            "unknown_tool",
            format!("a call of a tool that no server offers ends as `{other}`"),
        ),
    });
    held(agent, &tool(ACT), config, scratch, findings)?;
    let before = scratch.ran(LOOK);
    let reached = agent.call(&tool(LOOK), json!({"path": ".lodestar/tools.lock"}))?;
    findings.push(match (kind(&reached), scratch.ran(LOOK) == before) {
        ("policy_denied", true) => Finding::proven(
            "self_protection",
            "a call whose argument leads to `.lodestar/` is denied, although its tool may run",
        ),
        (other, true) => Finding::uncovered(
            "self_protection",
            format!("a call that reaches for `.lodestar/` ended as `{other}`, and did not run"),
        ),
        (_, false) => Finding::broken(
            "self_protection",
            "a call whose argument leads to `.lodestar/` ran",
        ),
    });
    Ok(session)
}

fn servers(listed: &Value, config: &Config, findings: &mut Vec<Finding>) {
    let tools = listed["tools"].as_array();
    let names: Vec<&str> = tools
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    for server in &config.downstream_servers {
        let prefix = format!("{}__", server.name);
        if !names.iter().any(|name| name.starts_with(&prefix)) {
            findings.push(
                Finding::uncovered(
                    "server",
                    format!("server `{}` offers nothing through the proxy", server.name),
                )
                .remedy("`lodestar log show latest` says why; it may need variables that only the client gives"),
            );
        }
    }
}

/// A call of a tool that nobody graded, and an approval of it that a stranger signs.
fn held(
    agent: &mut Agent,
    tool: &str,
    config: &Config,
    scratch: &Scratch,
    findings: &mut Vec<Finding>,
) -> Result<(), String> {
    let arguments = json!({"note": "a canary of `lodestar doctor`: nobody needs to approve it"});
    let first = agent.call(tool, arguments.clone())?;
    findings.push(match (kind(&first), scratch.ran(ACT)) {
        ("approval_required", 0) => Finding::proven(
            "ungraded_is_held",
            "a call of a tool that nobody graded waits for a person, and did not run",
        ),
        (other, 0) => Finding::proven(
            "ungraded_is_held",
            format!("a call of a tool that nobody graded does not run (`{other}`)"),
        ),
        (_, _) => Finding::broken(
            "ungraded_is_held",
            "a call of a tool that nobody graded ran unasked",
        ),
    });
    let Some(request) = first["_meta"]["_lodestar"]["request_id"].as_str() else {
        return Ok(());
    };
    if let Err(problem) = forge(config, request) {
        findings.push(Finding::uncovered(
            "forged_approval",
            format!("no forged approval could be put there: {problem}"),
        ));
        return Ok(());
    }
    let until = Instant::now() + LOOKING;
    let mut last = Value::Null;
    while Instant::now() < until && scratch.ran(ACT) == 0 {
        last = agent.call(tool, arguments.clone())?;
        std::thread::sleep(LOOKING / 10);
    }
    findings.push(match scratch.ran(ACT) {
        0 => Finding::proven(
            "forged_approval",
            format!("an approval that a stranger signed and dropped into `.lodestar/approvals` starts nothing (`{}`)", kind(&last)),
        ),
        _ => Finding::broken("forged_approval", "an approval that a stranger signed let the call run"),
    });
    Ok(())
}

/// Signs an approval with a key that nobody knows, in the name of somebody who may approve.
fn forge(config: &Config, request: &str) -> Result<(), String> {
    let approvers = config.approvals.authorized_keys.approvers();
    let name = approvers.first().map(|one| one.actor.clone());
    let name = name
        .or_else(|| ActorId::new("somebody").ok())
        .ok_or("no name")?;
    let pile = Pile::below(config.root()).map_err(|problem| problem.to_string())?;
    let shown = pile
        .requests()
        .find(|shown| shown.announcement().request.id.to_string() == request)
        .ok_or("the request is not announced")?;
    let key = fresh_key().map_err(|problem| problem.to_string())?;
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|problem| problem.to_string())?;
    let nonce = Nonce::from_bytes(random);
    let signed = Signed {
        key: &key,
        at: now(),
        nonce,
    };
    let reason = "forged by `lodestar doctor`, to see it refused";
    let answer = shown
        .announcement()
        .request
        .answer(&name, ApprovalDecision::Grant, reason, signed)
        .map_err(|problem| problem.to_string())?;
    pile.answer(shown, &answer, nonce)
        .map_err(|problem| problem.to_string())
}

/// What the log of the doctor's own session proves.
fn log(
    config: &Config,
    scratch: &Scratch,
    session: Option<&str>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let Some(session) = session.and_then(|id| SessionId::new(id).ok()) else {
        findings.push(Finding::broken(
            "log",
            "the proxy does not say in which session its answers stand",
        ));
        return Ok(());
    };
    let installation = Installation::locate()?;
    let Some(key) = installation.log_public()? else {
        findings.push(Finding::broken(
            "log",
            "there is no log key, and a session was written all the same",
        ));
        return Ok(());
    };
    let trust = Trust::only(key);
    let log = LogRoot::at(scratch.notes.path().join(LOG)).project(&config.project_id);
    let (ledger, _) =
        Ledger::read(&log, &trust, &BTreeSet::new()).map_err(Failure::io(log.ledger_path()))?;
    let dir = log.session(&session);
    let facts = ledger.session(&session);
    let report = verify_session(&dir, facts, &trust, &|_| ()).map_err(Failure::io(dir.dir()))?;
    findings.push(match report.problems.first() {
        None if facts.is_some() => Finding::proven(
            "log",
            "every canary stands in the log of its own that the doctor kept, and it verifies",
        ),
        None => Finding::broken(
            "log",
            format!("the ledger does not know session `{session}`"),
        ),
        Some(problem) => Finding::broken(
            "log",
            format!("the log of session `{session}` does not verify: {problem}"),
        ),
    });
    if findings.iter().any(|one| one.check == "forged_approval") && !has_refused(&dir)? {
        findings.push(Finding::uncovered(
            "forged_approval_in_log",
            "the forged approval is not in the log",
        ));
    }
    Ok(())
}

fn has_refused(dir: &lodestar_log::SessionDir) -> Result<bool, Failure> {
    let mut reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
    while let Ok(Some(event)) = reader.next_event() {
        if event.kind == EventType::APPROVAL_REFUSED.to_string() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Nobody needs to answer for a canary.
fn withdraw(config: &Config, session: Option<&str>) {
    if let Some(session) = session.and_then(|id| SessionId::new(id).ok()) {
        let approvals = DropDirectory::path_below(config.root());
        let _ = std::fs::remove_dir_all(approvals.join(session.as_str()));
    }
}

/// The canary is not one of the project's servers: its pins go with it.
fn forget(config: &Config) -> Result<(), Failure> {
    let lock = LockFile::of(config.root(), &config.project_id);
    if lock.path().symlink_metadata().is_err() {
        return Ok(());
    }
    let key = Installation::locate()?.create_log_key()?;
    let forgotten = lock.change(&key, now(), |pins| {
        pins.servers.remove(NAME);
        pins.appeared.remove(NAME);
    });
    // A lock file that was tampered with is a finding of its own.
    drop(forgotten);
    Ok(())
}
