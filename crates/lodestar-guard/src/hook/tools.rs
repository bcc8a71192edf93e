//! The built-in tools of clients, as governed tools.
//!
//! A client runs them itself. What the kernel calls here tells the hook that waits that its tool is cleared,
//! and then waits until the client says what came of it: clearing, recording and believing are those of every
//! other tool. Which governed tool a use is, and with which arguments, [`arguments`] settles.

mod arguments;
mod names;
#[cfg(test)]
mod page;
mod patch;
mod places;

pub use arguments::{Governed, governed};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use lodestar_core::canonical;
use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_kernel::grade::Grade;
use lodestar_kernel::registry::{RegisterError, Registry};
use lodestar_kernel::tool::{Call, Calling, Definition, Effect, Output, Tool, ToolError};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::Client;
use crate::session::Setup;

/// The argument that says which part of a command line decided its rung, and why. It is Lodestar's own, and among the
/// arguments so that it stands wherever they do: on the card, in the log, in the report.
pub(super) const READING: &str = "reading";

/// What a use of a built-in tool comes to: for each, one governed tool of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    /// Reads a file of the project.
    Read,
    /// Reads or searches elsewhere.
    ReadOutside,
    /// Reads or searches where credentials are, in the project or elsewhere.
    ReadSecret,
    /// Lists or searches the project.
    Find,
    /// Changes a part of a file of the project.
    Edit,
    /// Writes a file of the project.
    Write,
    /// Writes or changes a file elsewhere.
    WriteOutside,
    /// Writes or changes a file of the project that holds credentials.
    WriteSecret,
    /// A command line that looks.
    ShellLook,
    /// A command line that changes what is here.
    ShellLocal,
    /// A command line that reaches beyond, or of which nobody can tell.
    ShellExternal,
    /// A command line that nobody may run.
    ShellProhibited,
    /// Fetches a page.
    Fetch,
    /// Searches the web.
    Search,
    /// Starts an agent, whose own tools come by here as well.
    Agent,
    /// Keeps notes.
    Note,
    /// A tool of a server that the client reaches by itself.
    Mcp,
    /// Anything else.
    Other,
}

impl Sort {
    const ALL: [Self; 18] = [
        Self::Read,
        Self::ReadOutside,
        Self::ReadSecret,
        Self::Find,
        Self::Edit,
        Self::Write,
        Self::WriteOutside,
        Self::WriteSecret,
        Self::ShellLook,
        Self::ShellLocal,
        Self::ShellExternal,
        Self::ShellProhibited,
        Self::Fetch,
        Self::Search,
        Self::Agent,
        Self::Note,
        Self::Mcp,
        Self::Other,
    ];

    /// The end of its name.
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadOutside => "read.outside",
            Self::ReadSecret => "read.secret",
            Self::Find => "find",
            Self::Edit => "edit",
            Self::Write => "write",
            Self::WriteOutside => "write.outside",
            Self::WriteSecret => "write.secret",
            Self::ShellLook => "shell.look",
            Self::ShellLocal => "shell.local",
            Self::ShellExternal => "shell.external",
            Self::ShellProhibited => "shell.prohibited",
            Self::Fetch => "fetch",
            Self::Search => "search",
            Self::Agent => "agent",
            Self::Note => "note",
            Self::Mcp => "mcp",
            Self::Other => "other",
        }
    }

    /// What it does, in words.
    fn does(self) -> &'static str {
        match self {
            Self::Read => "reads a file of the project",
            Self::ReadOutside => "reads, lists or searches outside of the project",
            Self::ReadSecret => "reads, lists or searches what holds or may hold credentials",
            Self::Find => "lists or searches the project",
            Self::Edit => "changes a part of a file of the project",
            Self::Write => "writes a file of the project",
            Self::WriteOutside => "writes or changes a file outside of the project",
            Self::WriteSecret => "writes or changes a file that holds or may hold credentials",
            Self::ShellLook => "runs a command line that only looks",
            Self::ShellLocal => "runs a command line that changes what is on this machine",
            Self::ShellExternal => {
                "runs a command line that reaches beyond this machine, or that nobody can read"
            }
            Self::ShellProhibited => "runs a command line that nobody may run",
            Self::Fetch => "fetches a page",
            Self::Search => "searches the web",
            Self::Agent => "starts an agent of the client's, whose tools are governed as its own",
            Self::Note => "keeps notes inside the client",
            Self::Mcp => "calls a tool of a server that does not stand behind the proxy",
            Self::Other => "uses a tool that nothing here knows",
        }
    }

    /// The grade where the operator says nothing; none for what is held until somebody grades it.
    fn grade(self) -> Option<Grade> {
        use Permission::{Network, ReadFiles, RunPrograms, WriteFiles};
        let (rung, radius, undone, data, permissions, sandbox): (_, _, _, _, &[Permission], _) =
            match self {
                Self::Read | Self::Find => (
                    Rung::L0,
                    BlastRadius::SelfOnly,
                    Reversibility::Reversible,
                    DataSensitivity::Private,
                    &[ReadFiles],
                    Sandbox::Read,
                ),
                // A policy that lets an agent look around means its project. Whatever else lies on a machine is
                // the user's: no list of names knows all that is private in it, so it is told when it is read,
                // and read at all only where more than looking is permitted.
                Self::ReadOutside => (
                    Rung::L3,
                    BlastRadius::Session,
                    Reversibility::Irreversible,
                    DataSensitivity::Secret,
                    &[ReadFiles],
                    Sandbox::Read,
                ),
                // What an agent has read, the maker of its model has, and no undoing takes it back. A command
                // that reads the same is held as well.
                Self::ReadSecret => (
                    Rung::L4,
                    BlastRadius::External,
                    Reversibility::Irreversible,
                    DataSensitivity::Secret,
                    &[ReadFiles],
                    Sandbox::Read,
                ),
                Self::Edit | Self::Write => (
                    Rung::L3,
                    BlastRadius::Project,
                    Reversibility::Reversible,
                    DataSensitivity::Private,
                    &[ReadFiles, WriteFiles],
                    Sandbox::WriteLocal,
                ),
                // What a shell or an editor reads when it starts lies there.
                Self::WriteOutside => (
                    Rung::L4,
                    BlastRadius::External,
                    Reversibility::Compensable,
                    DataSensitivity::Private,
                    &[ReadFiles, WriteFiles],
                    Sandbox::WriteLocal,
                ),
                Self::WriteSecret => (
                    Rung::L4,
                    BlastRadius::External,
                    Reversibility::Compensable,
                    DataSensitivity::Secret,
                    &[ReadFiles, WriteFiles],
                    Sandbox::WriteLocal,
                ),
                // No `run_programs`: what only looks may look at what nobody may write.
                Self::ShellLook => (
                    Rung::L0,
                    BlastRadius::SelfOnly,
                    Reversibility::Reversible,
                    DataSensitivity::Private,
                    &[ReadFiles],
                    Sandbox::Read,
                ),
                Self::ShellLocal => (
                    Rung::L3,
                    BlastRadius::Project,
                    Reversibility::Compensable,
                    DataSensitivity::Private,
                    &[ReadFiles, WriteFiles, RunPrograms],
                    Sandbox::ControlledShell,
                ),
                Self::ShellExternal => (
                    Rung::L4,
                    BlastRadius::External,
                    Reversibility::Irreversible,
                    DataSensitivity::Private,
                    &[ReadFiles, WriteFiles, RunPrograms, Network],
                    Sandbox::ControlledNetwork,
                ),
                Self::ShellProhibited => (
                    Rung::L5,
                    BlastRadius::External,
                    Reversibility::Irreversible,
                    DataSensitivity::Secret,
                    &[RunPrograms],
                    Sandbox::ControlledShell,
                ),
                // What an address carries out is out.
                Self::Fetch | Self::Search => (
                    Rung::L4,
                    BlastRadius::External,
                    Reversibility::Irreversible,
                    DataSensitivity::Private,
                    &[Network],
                    Sandbox::ControlledNetwork,
                ),
                // Not less: whether a client shows the tools of its agents to hooks, only its version knows.
                Self::Agent => (
                    Rung::L3,
                    BlastRadius::Session,
                    Reversibility::Reversible,
                    DataSensitivity::Private,
                    &[],
                    Sandbox::Read,
                ),
                Self::Note => (
                    Rung::L1,
                    BlastRadius::SelfOnly,
                    Reversibility::Reversible,
                    DataSensitivity::Private,
                    &[],
                    Sandbox::Read,
                ),
                Self::Mcp | Self::Other => return None,
            };
        Some(Grade {
            required_trust_level: Some(rung),
            blast_radius: Some(radius),
            reversibility: Some(undone),
            data_sensitivity: Some(data),
            permissions: Some(permissions.iter().copied().collect()),
            sandbox: Some(sandbox),
            ..Grade::default()
        })
    }

    /// What it promises at least: the operator's word counts, except on what nobody may run.
    fn minimum(self, scope: &Scope) -> Contract {
        Contract {
            required_level: match self {
                Self::ShellProhibited => Rung::L5,
                _ => Rung::L0,
            },
            blast_radius: BlastRadius::SelfOnly,
            reversibility: Reversibility::Reversible,
            scope: scope.clone(),
            data_sensitivity: DataSensitivity::Public,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::ControlledNetwork,
            permissions: Permission::ALL.iter().copied().collect(),
        }
    }

    /// Its arguments beside those that all have.
    fn arguments(self) -> &'static [(&'static str, &'static str, Option<ArgumentRole>)] {
        const PATHS: (&str, &str, Option<ArgumentRole>) =
            ("paths", "array", Some(ArgumentRole::Path));
        const CONTENTS: (&str, &str, Option<ArgumentRole>) =
            ("contents", "object", Some(ArgumentRole::Payload));
        match self {
            Self::Read
            | Self::ReadOutside
            | Self::ReadSecret
            | Self::Find
            | Self::Edit
            | Self::Write
            | Self::WriteOutside
            | Self::WriteSecret => &[PATHS, CONTENTS],
            Self::ShellLook | Self::ShellLocal | Self::ShellExternal | Self::ShellProhibited => &[
                ("command", "string", Some(ArgumentRole::Argv)),
                (READING, "string", Some(ArgumentRole::Other)),
                PATHS,
                CONTENTS,
            ],
            Self::Fetch => &[("url", "string", Some(ArgumentRole::Destination)), CONTENTS],
            Self::Search | Self::Agent | Self::Note => &[CONTENTS],
            Self::Mcp | Self::Other => &[],
        }
    }
}

/// The governed tool's name.
pub(super) fn name(client: Client, sort: Sort) -> String {
    format!("{}.{}", client.name(), sort.word())
}

/// Whether a name is that of a built-in tool of some client.
pub(crate) fn is_one(name: &str) -> bool {
    let mut clients = Client::ALL.into_iter();
    clients.any(|client| {
        let rest = name.strip_prefix(client.name());
        let rest = rest.and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| Sort::ALL.iter().any(|sort| sort.word() == rest))
    })
}

/// Gives a session the tools of a client.
pub(super) fn with_tools(mut setup: Setup, client: Client, scope: &Scope) -> Setup {
    for sort in Sort::ALL {
        let tool = HookTool::new(client, sort, scope);
        setup = match sort.grade() {
            Some(grade) => setup.tool_graded(tool, grade),
            None => setup.tool(tool),
        };
    }
    setup
}

/// The governed tools of a client under an operator's grades, by name, to be looked at: without a conversation, none of
/// them runs.
pub fn registry(
    client: Client,
    grades: &BTreeMap<String, Grade>,
    scope: &Scope,
) -> Result<Registry, RegisterError> {
    let mut registry = Registry::default();
    for sort in Sort::ALL {
        let grade = grades.get(&name(client, sort));
        let tool = Arc::new(HookTool::new(client, sort, scope));
        match sort.grade() {
            Some(otherwise) => registry.add_graded(tool, grade, &otherwise, scope)?,
            None => registry.add(tool, grade, scope)?,
        }
    }
    Ok(registry)
}

/// A built-in tool of a client.
struct HookTool {
    sort: Sort,
    definition: Definition,
}

impl HookTool {
    fn new(client: Client, sort: Sort, scope: &Scope) -> Self {
        let common = [
            ("tool", "string", Some(ArgumentRole::Other)),
            ("cwd", "string", Some(ArgumentRole::Path)),
            // Nobody said what is in it: whatever in it leads somewhere is judged as a place.
            ("rest", "object", None),
        ];
        let mut properties = serde_json::Map::new();
        let mut roles = BTreeMap::new();
        for (argument, kind, role) in common.iter().chain(sort.arguments()) {
            let schema = match *kind {
                "array" => json!({"type": "array", "items": {"type": "string"}}),
                kind => json!({"type": kind}),
            };
            properties.insert((*argument).to_owned(), schema);
            if let Some(role) = role {
                roles.insert((*argument).to_owned(), *role);
            }
        }
        let name = ToolName::new(name(client, sort));
        let server = ServerIdentity::new(client.name());
        Self {
            sort,
            definition: Definition {
                name: name.expect("INVARIANT: short constants"),
                server: server.expect("INVARIANT: a short constant"),
                description: format!("{} {}", client.name(), sort.does()),
                input_schema: json!({
                    "type": "object",
                    "properties": properties,
                    "additionalProperties": false,
                }),
                roles,
                minimum: sort.minimum(scope),
                declared: None,
            },
        }
    }
}

impl Tool for HookTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn writes(&self, arguments: &Map<String, Value>) -> Vec<PathBuf> {
        let paths = match self.sort {
            Sort::Edit | Sort::Write | Sort::WriteOutside | Sort::WriteSecret => {
                arguments.get("paths")
            }
            _ => None,
        };
        let paths = paths.and_then(Value::as_array).into_iter().flatten();
        paths.filter_map(Value::as_str).map(PathBuf::from).collect()
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            let turn = call.beside::<Turn>().and_then(Turn::take);
            let Some((cleared, told)) = turn else {
                return Err(ToolError::refused(
                    "only the client itself runs its built-in tools",
                ));
            };
            if cleared.send(()).is_err() {
                // Nobody was told that it may run.
                return Err(ToolError::stopped(Effect::None));
            }
            tokio::select! {
                told = told => match told {
                    Ok(told) => Ok(told.output()),
                    Err(_) => Err(ToolError::failed(
                        Effect::Unknown,
                        "the client never said what came of it",
                    )),
                },
                () = call.stopped() => Err(ToolError::stopped(Effect::Unknown)),
            }
        })
    }
}

/// What is said between a hook and the call behind it, once each.
#[derive(Debug)]
pub(super) struct Turn(Mutex<Option<(oneshot::Sender<()>, oneshot::Receiver<Told>)>>);

impl Turn {
    /// A turn: `cleared` is said when the tool may run, `told` is heard when it did.
    pub(super) fn new(cleared: oneshot::Sender<()>, told: oneshot::Receiver<Told>) -> Self {
        Self(Mutex::new(Some((cleared, told))))
    }

    fn take(&self) -> Option<(oneshot::Sender<()>, oneshot::Receiver<Told>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a client says came of a tool.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) result: Value,
    pub(super) failed: bool,
}

impl Told {
    /// As every tool returns it: content, of which nobody vouches for a word.
    pub(super) fn output(self) -> Output {
        let output = match self.result {
            Value::String(text) => Output::text(text),
            // What has no canonical form is kept as the text that it was.
            value if canonical::to_vec(&value).is_err() => Output::text(value.to_string()),
            value => Output::structured(value),
        };
        Output {
            is_error: self.failed,
            ..output
        }
    }
}

#[cfg(test)]
mod tests;
