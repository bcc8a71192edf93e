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
use crate::world::ServerScript;

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
    Prompt(String),
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
