//! The configuration of a governed session: one file, versioned with the project.
//!
//! TOML, or JSON with the same keys. Whatever is not known, twice there or out of bounds is an error that
//! names its place; nothing is guessed.

mod channel;
mod dated;
mod http;
mod native;
mod parts;
mod pointed;
mod run;
mod schema;
mod servers;
mod traced;

pub use channel::HttpApprovals;
pub use http::{Http, TokenSource};
pub use native::Tools;
pub use parts::{
    Approvals, Backend, BadScope, Ceiling, ConfigScope, KnownValues, Limits, Never, Persistence,
    PolicyFile, SessionName,
};
pub use run::Run;
pub use schema::json_schema;
pub use servers::{Confines, Demand, Naming, Reached, Server, ServerName};

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use lodestar_core::contract::Sandbox;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::name::{ActorId, ProjectId};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::contain::{OutOfReach, Plan};
use lodestar_kernel::grade::Grade;
use lodestar_kernel::protect::out_of_reach;
use lodestar_policy::ArbiterRules;
use lodestar_policy::confirmation::Confirmations;
use serde::Deserialize;
use thiserror::Error;

/// What a session is configured with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The project, in whose log the session stands.
    pub project_id: ProjectId,
    /// Who acts.
    pub actor_id: ActorId,
    /// The session's name.
    #[serde(default)]
    pub session_id: SessionName,
    /// Where logs are kept; relative to the configuration file.
    #[serde(default = "default_log_root")]
    pub log_root: PathBuf,
    /// Where effects land and beliefs hold; the project where nothing is said.
    #[serde(default)]
    pub default_scope: Option<ConfigScope>,
    /// How sensitive content is.
    #[serde(default = "internal")]
    pub default_sensitivity: Sensitivity,
    /// Up to which rung calls run unasked; not together with `policy`.
    #[serde(default)]
    pub auto_approve_ceiling: Option<Ceiling>,
    /// A policy of one's own.
    #[serde(default)]
    pub policy: Option<PolicyFile>,
    /// Monitors that tighten the gate; none where nothing is said.
    #[serde(default)]
    pub sentinels: ArbiterRules,
    /// How long a held call waits for an answer.
    #[serde(default)]
    pub approval_timeout_ms: u64,
    /// Whose approval counts, and what one needs.
    #[serde(default)]
    pub approvals: Approvals,
    /// What operators may say before they are asked, and what it is worth.
    #[serde(default, deserialize_with = "dated::dated")]
    pub confirmations: Confirmations,
    /// The operator's grades, by the tool's name.
    #[serde(default)]
    pub tool_defaults: BTreeMap<String, Grade>,
    /// The operator's statement of the task.
    #[serde(default)]
    pub task: Option<String>,
    /// Contacts, payees, hosts: values that the operator knows.
    #[serde(default)]
    pub known_values: Option<KnownValues>,
    /// Where beliefs are kept.
    #[serde(default)]
    pub persistence: Persistence,
    /// Bounds.
    #[serde(default)]
    pub limits: Limits,
    /// The tools in the box that are to be there.
    #[serde(default)]
    pub tools: Tools,
    /// The MCP servers behind the proxy.
    #[serde(default, deserialize_with = "servers::distinct")]
    pub downstream_servers: Vec<Server>,
    /// How their tools are named to the agent.
    #[serde(default)]
    pub naming: Naming,
    /// How agents are served over HTTP.
    #[serde(default)]
    pub http: Option<Http>,
    /// The gateway that sessions are runs of.
    #[serde(default)]
    pub run: Option<Run>,
    /// The folder that relative paths start from, and its digest: what a session is bound to.
    #[serde(skip)]
    place: Place,
}

#[derive(Debug, Clone, Default)]
struct Place {
    file: Option<PathBuf>,
    root: PathBuf,
    digest: Option<Digest>,
    text: String,
}

/// Why a configuration is none.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{}: {problem}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// It is no configuration.
    #[error("{}{problem}", place(.path))]
    Parse {
        /// The file; none where it was given as text.
        path: Option<PathBuf>,
        /// What is wrong, and where.
        problem: String,
    },
    /// Two ways to say what runs.
    #[error("`auto_approve_ceiling` and `policy` are two ways to say what runs unasked; keep one")]
    TwoPolicies,
    /// Several servers, and nothing that would tell their tools apart.
    #[error("`naming = \"original\"` is for one server alone: two could have tools of one name")]
    OriginalNames,
    /// The scope is none.
    #[error("`default_scope`: {0}")]
    Scope(#[from] BadScope),
}

fn place(path: &Option<PathBuf>) -> String {
    path.as_ref()
        .map_or_else(String::new, |path| format!("{}: ", path.display()))
}

fn default_log_root() -> PathBuf {
    PathBuf::from(".lodestar/log")
}

/// Most of what an agent reads is the team's own.
fn internal() -> Sensitivity {
    Sensitivity::Internal
}

impl Config {
    /// Reads a file; its folder is the project's root.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let failed = |problem| ConfigError::Read {
            path: path.to_owned(),
            problem,
        };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let file = path.canonicalize().map_err(failed)?;
        let root = file.parent().unwrap_or(Path::new("/")).to_owned();
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        let parsed = if is_json {
            serde_json::from_str(&text).map_err(|problem| pointed::json(&text, &problem))
        } else {
            toml::from_str(&text).map_err(|problem: toml::de::Error| problem.to_string())
        };
        let config: Self = parsed.map_err(|problem| ConfigError::Parse {
            path: Some(path.to_owned()),
            problem,
        })?;
        config.at(Some(file), root, &text)
    }

    /// Takes TOML text for a project at this root.
    pub fn parse(text: &str, root: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|problem| ConfigError::Parse {
            path: None,
            problem: problem.to_string(),
        })?;
        config.at(None, root.into(), text)
    }

    fn at(mut self, file: Option<PathBuf>, root: PathBuf, text: &str) -> Result<Self, ConfigError> {
        if self.auto_approve_ceiling.is_some() && self.policy.is_some() {
            return Err(ConfigError::TwoPolicies);
        }
        if self.naming == Naming::Original && self.downstream_servers.len() > 1 {
            return Err(ConfigError::OriginalNames);
        }
        self.scope()?;
        // Where it lies now: a link to it that is turned elsewhere later changes nothing.
        let root = root.canonicalize().unwrap_or(root);
        self.tools.start_from(&root);
        if let Some(certificates) = self.http_certificates() {
            *certificates = root.join(&*certificates);
        }
        if let Some(run) = &mut self.run {
            run.start_from(&root);
        }
        self.place = Place {
            file,
            root,
            digest: Some(sha256(text.as_bytes())),
            text: text.to_owned(),
        };
        Ok(self)
    }

    fn http_certificates(&mut self) -> Option<&mut PathBuf> {
        self.approvals.http.as_mut()?.ca_file.as_mut()
    }

    /// The project's root.
    pub fn root(&self) -> &Path {
        &self.place.root
    }

    /// A path that the configuration names.
    pub fn path(&self, named: &Path) -> PathBuf {
        self.place.root.join(named)
    }

    /// Where the configuration grades a tool, for whoever has to change it: `lodestar.toml:12`.
    pub fn place_of_grade(&self, tool: &str) -> String {
        let names = [format!("\"{tool}\""), format!("'{tool}'"), tool.to_owned()];
        let mut lines = (1..).zip(self.place.text.lines());
        let line = lines.find(|(_, line)| names.iter().any(|name| line.contains(name.as_str())));
        let file = self.place.file.as_ref().and_then(|file| file.file_name());
        let file = file.map_or("configuration".into(), |name| name.to_string_lossy());
        match line {
            Some((number, _)) => format!("{file}:{number}"),
            None => file.into_owned(),
        }
    }

    /// SHA-256 of the configuration's text.
    pub fn digest(&self) -> Digest {
        self.place
            .digest
            .expect("INVARIANT: every way in goes through `at`")
    }

    /// Where effects land and beliefs hold.
    pub fn scope(&self) -> Result<Scope, BadScope> {
        match &self.default_scope {
            Some(scope) => scope.scope(),
            None => ConfigScope::project(&self.project_id).scope(),
        }
    }

    /// What no child may reach: the same places, and the keys. What programs of the project may have to read, they
    /// may read.
    pub fn out_of_reach(&self, keys: Option<&Path>) -> OutOfReach {
        let policy = self.policy.iter();
        let policy =
            policy.flat_map(|policy| [self.path(&policy.file), self.path(&policy.signature())]);
        let known = self.known_values.iter().map(|known| self.path(&known.file));
        let fixed: Vec<PathBuf> = self
            .place
            .file
            .iter()
            .cloned()
            .chain(policy)
            .chain(known)
            .collect();
        let own = self.path(&self.log_root);
        let hidden = self
            .files()
            .into_iter()
            .filter(|file| !fixed.contains(file) && *file != own);
        let mut out = out_of_reach(self.root(), keys, hidden.collect::<Vec<_>>(), fixed.clone());
        out.own.push(own);
        out
    }

    /// What a server may reach that is a process: the union of what its tools are graded for, unless it is said.
    pub fn plan(&self, server: &Server, keys: Option<&Path>) -> Option<Plan> {
        let prefix = format!("mcp.{}.", server.name);
        let grades = self.tool_defaults.iter();
        let of_server = grades.filter(|(tool, _)| tool.starts_with(&prefix));
        let graded = of_server.map(|(_, grade)| grade.sandbox.unwrap_or(Sandbox::Read));
        let graded = graded.collect();
        let others = self.downstream_servers.iter();
        let others = others.flat_map(|other| other.writes(self.root()));
        let out_of_reach = self.out_of_reach(keys);
        server.plan(self.root(), graded, others.collect(), out_of_reach)
    }

    /// Every file that the configuration is or names: no tool may reach them.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.place.file.iter().cloned().collect();
        files.push(self.path(&self.log_root));
        if let Some(policy) = &self.policy {
            files.push(self.path(&policy.file));
            files.push(self.path(&policy.signature()));
        }
        files.extend(self.known_values.iter().map(|known| self.path(&known.file)));
        let http = self.approvals.http.as_ref();
        files.extend(http.and_then(|http| http.ca_file.clone()));
        if let Some(TokenSource::File(file)) = self.http.as_ref().map(|http| &http.token) {
            files.push(self.path(file));
        }
        files.extend(self.tools.files().into_iter().map(|file| self.path(&file)));
        files
    }
}
