//! A scenario of an outside pack, checked: everything it names is there, and it stays within its limits.

use std::collections::BTreeMap;
use std::time::Duration;

use lodestar_core::chain::Truth;
use lodestar_core::contract::ArgumentRole;
use lodestar_core::defence::Defence;
use lodestar_core::ladder::Rung;
use lodestar_core::statement::ApprovalDecision;
use serde_json::{Map, Value};

pub(super) use super::written::{Came, Restart};
use crate::class::AttackClass;
use crate::world::{PROBE_SERVER, ServerScript};

/// One scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name, which is that of its file.
    pub name: String,
    /// What happens in it.
    pub scenario: String,
    /// What must be so afterwards.
    pub asserts: String,
    /// What its passing does not show.
    pub does_not_claim: String,
    /// The kind of attack.
    pub class: AttackClass,
    /// The defence that the contrast run lacks.
    pub defence: Defence,
    /// How long one run may take.
    pub deadline: Duration,
    pub(super) setting: Setting,
    pub(super) steps: Vec<Step>,
    pub(super) needs: Vec<End>,
    pub(super) expects: Vec<End>,
}

/// What is there before the agent comes.
#[derive(Debug, Clone, Default)]
pub(super) struct Setting {
    pub(super) task: Option<String>,
    pub(super) ceiling: Option<u8>,
    pub(super) policy: Option<String>,
    pub(super) sentinels: Vec<String>,
    pub(super) people: Vec<String>,
    pub(super) known_values: Vec<String>,
    pub(super) files: BTreeMap<String, String>,
    pub(super) grades: BTreeMap<String, (Rung, BTreeMap<String, ArgumentRole>)>,
    pub(super) servers: Vec<ServerScript>,
}

/// The file of a policy, and of known values, beside the configuration.
pub(super) const POLICY: &str = "policy.cedar";
pub(super) const KNOWN: &str = "known.txt";

/// What the configuration of a scenario's project may be made of.
const KEYS: [&str; 10] = [
    "project_id",
    "actor_id",
    "task",
    "auto_approve_ceiling",
    "sentinels",
    "policy",
    "known_values",
    "approvals",
    "downstream_servers",
    "tool_defaults",
];

impl Setting {
    /// The lines of the configuration that stand before all tables.
    pub(super) fn head(&self) -> String {
        let mut head = String::new();
        let mut line = |name: &str, value: Value| head.push_str(&format!("{name} = {value}\n"));
        if let Some(task) = &self.task {
            line("task", task.as_str().into());
        }
        if let Some(ceiling) = self.ceiling {
            line("auto_approve_ceiling", ceiling.into());
        }
        if !self.sentinels.is_empty() {
            line("sentinels", self.sentinels.clone().into());
        }
        head
    }

    /// Its tables, servers and grades aside.
    pub(super) fn tables(&self) -> String {
        let mut tables = String::new();
        if self.policy.is_some() {
            tables.push_str(&format!(
                "[policy]\nfile = \"{POLICY}\"\nallow_unsigned = true\n"
            ));
        }
        if !self.known_values.is_empty() {
            tables.push_str(&format!("[known_values]\nfile = \"{KNOWN}\"\n"));
        }
        tables
    }

    /// Whether a server has this tool, before or after it changes.
    pub(super) fn offers(&self, server: &str, tool: &str) -> bool {
        let found = self.servers.iter().find(|one| one.name == server);
        found.is_some_and(|server| {
            let mut tools = server.tools.iter().chain(&server.tools_later);
            tools.any(|one| one.name == tool)
        })
    }

    /// Whether a configuration is of this setting and no more, as it is read: a text of a pack that came to be
    /// read as something else than a text would show here.
    pub(super) fn confines(&self, config: &str) -> Result<(), String> {
        let other =
            |what: &str| format!("the project would have {what} that the scenario does not name");
        let config: toml::Table = config
            .parse()
            .map_err(|problem| format!("the project cannot be set up so: {problem}"))?;
        if let Some(key) = config.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(other(&format!("`{key}`")));
        }
        let servers = config
            .get("downstream_servers")
            .and_then(|all| all.as_array());
        let mut servers = servers.into_iter().flatten();
        let mut wanted = self.servers.iter();
        loop {
            let (is, should_be) = (servers.next(), wanted.next());
            let (Some(is), Some(should_be)) = (is, should_be) else {
                match (is, should_be) {
                    (None, None) => break,
                    _ => return Err(other("servers")),
                }
            };
            let is_scripted =
                is.get("args").and_then(|args| args.get(0)?.as_str()) == Some(PROBE_SERVER);
            if !is_scripted
                || is.get("name").and_then(|name| name.as_str()) != Some(&should_be.name)
            {
                return Err(other("servers"));
            }
        }
        let grades = config.get("tool_defaults").and_then(|all| all.as_table());
        let mut grades = grades.into_iter().flat_map(toml::Table::keys);
        match grades.all(|tool| self.grades.contains_key(tool)) {
            true => Ok(()),
            false => Err(other("grades")),
        }
    }

    /// The lines of a grade beside its rung.
    pub(super) fn roles(roles: &BTreeMap<String, ArgumentRole>) -> String {
        let one = |(name, role): (&String, &ArgumentRole)| {
            format!("{} = \"{role}\"", Value::from(name.as_str()))
        };
        let roles: Vec<String> = roles.iter().map(one).collect();
        match roles.is_empty() {
            true => String::new(),
            false => format!("arg_roles = {{ {} }}", roles.join(", ")),
        }
    }
}

/// What the agent, or a person, does.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) act: Act,
    /// Without this nothing is shown.
    pub(super) needs: Option<Came>,
    pub(super) needs_text: Option<String>,
    /// Otherwise the attack succeeded.
    pub(super) expect: Option<Came>,
    pub(super) never_says: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) enum Act {
    /// The agent calls a tool.
    Call {
        tool: String,
        arguments: Map<String, Value>,
    },
    /// It reads a resource.
    Read(String),
    /// It asks for a prompt.
    Prompt {
        name: String,
        arguments: Map<String, Value>,
    },
    /// It makes every call that the last answer demands; so many are demanded.
    Obey(usize),
    /// Somebody answers everything that waits.
    Answer {
        person: String,
        decision: ApprovalDecision,
    },
    /// The proxy is started anew.
    Restart(Restart),
}

/// What is looked at in the end.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// How often a tool really ran, by its server's marks.
    Ran {
        server: String,
        tool: String,
        with: Map<String, Value>,
        times: usize,
    },
    /// What is believed of what was read: at least one belief, and all of them stand so.
    Believes { words: String, truth: Truth },
    /// How many events of a type there are, in all sessions.
    Events { kind: String, times: usize },
    /// All logs verify, and everything follows from them again.
    LogIntact,
}
