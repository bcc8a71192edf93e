//! Tools, contracts and calls for the tests.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::fingerprint::{Fingerprint, NormalPath};
use lodestar_core::id::ActionId;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, ToolName};
use lodestar_core::provenance::ArgumentProvenance;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_core::time::Timestamp;
use lodestar_policy::{
    Agent, ArbiterRules, Dependency, Facts, Gate, GateError, Judgement, Policy, Requirement,
    Signal, ToolShape, Trail, Unsigned,
};
use serde_json::{Map, Value, json};

pub(crate) const NOW: Timestamp = Timestamp::MIN;

pub(crate) const RUNGS: [Rung; 6] = [Rung::L0, Rung::L1, Rung::L2, Rung::L3, Rung::L4, Rung::L5];

pub(crate) fn tool(name: &str, server: &str, groups: &[&str], input_schema: Value) -> ToolShape {
    ToolShape {
        name: name.parse().unwrap(),
        server: server.parse().unwrap(),
        groups: groups.iter().map(ToString::to_string).collect(),
        input_schema,
        roles: BTreeMap::new(),
    }
}

/// Four tools on two servers, with every type of argument between them.
pub(crate) fn tools() -> Vec<ToolShape> {
    let mut read = tool(
        "fs.read",
        "files",
        &["files", "reading"],
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": ["integer", "null"]}},
            "required": ["path"],
            "additionalProperties": false
        }),
    );
    read.roles.insert("path".to_owned(), ArgumentRole::Path);
    let write = tool(
        "fs.write",
        "files",
        &["files"],
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "content": {"type": "string"},
                "force": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}}
            },
            "required": ["path", "content"]
        }),
    );
    let mut send = tool(
        "mail.send",
        "mail",
        &["outside"],
        json!({
            "type": "object",
            "properties": {
                "to": {"type": "string"},
                "price": {"type": "number"},
                "meta": {
                    "type": "object",
                    "properties": {"thread": {"type": "integer"}, "note": {"type": "string"}},
                    "required": ["thread"]
                },
                "anything": {}
            }
        }),
    );
    send.roles
        .insert("to".to_owned(), ArgumentRole::Destination);
    let list = tool(
        "fs.list",
        "files",
        &["files", "reading"],
        json!({"type": "object"}),
    );
    vec![read, write, send, list]
}

pub(crate) fn contract(level: Rung) -> Contract {
    Contract {
        required_level: level,
        blast_radius: BlastRadius::Project,
        reversibility: Reversibility::Reversible,
        scope: "organization:acme/project:web".parse().unwrap(),
        data_sensitivity: DataSensitivity::Private,
        preconditions: Preconditions::default(),
        sandbox: Sandbox::WriteLocal,
        permissions: BTreeSet::new(),
    }
}

pub(crate) fn requirement(quorum: u32, seconds: u64) -> Requirement {
    Requirement {
        roles: BTreeSet::from(["owner".to_owned()]),
        quorum,
        expires_seconds: seconds,
    }
}

pub(crate) fn policy(source: &str) -> Policy {
    match Policy::load(source.as_bytes(), None, &[], Unsigned::Allowed, NOW) {
        Ok(policy) => policy,
        Err(error) => panic!("{error}\n{source}"),
    }
}

pub(crate) fn try_gate(source: &str, arbiters: ArbiterRules) -> Result<Gate, GateError> {
    Gate::new(policy(source), tools(), arbiters, requirement(1, 600))
}

pub(crate) fn gate(source: &str) -> Gate {
    match try_gate(source, ArbiterRules::none()) {
        Ok(gate) => gate,
        Err(error) => panic!("{error}\n{source}"),
    }
}

/// A call, to be changed and put to a gate.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) tool: ToolName,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) contract: Contract,
    pub(crate) agent: Agent,
    pub(crate) paths: Vec<NormalPath>,
    pub(crate) provenance: Vec<ArgumentProvenance>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) trail: Trail,
}

impl Call {
    pub(crate) fn new(tool: &str, level: Rung, arguments: Value) -> Self {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object")
        };
        Self {
            tool: tool.parse().unwrap(),
            arguments,
            contract: contract(level),
            agent: Agent {
                actor: ActorId::new("coder").unwrap(),
                device_trust: "none".to_owned(),
                execution: "interactive".to_owned(),
            },
            paths: Vec::new(),
            provenance: Vec::new(),
            dependencies: Vec::new(),
            trail: Trail::default(),
        }
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            action: ActionId::from_parts(1, [0; 10]),
            fingerprint: fingerprint(),
            agent: &self.agent,
            tool: &self.tool,
            contract: &self.contract,
            arguments: &self.arguments,
            paths: &self.paths,
            provenance: &self.provenance,
            dependencies: &self.dependencies,
            trail: self.trail,
        }
    }

    pub(crate) fn judge(&self, gate: &Gate) -> Judgement {
        gate.judge(&self.facts(), &[])
    }

    pub(crate) fn judge_hearing(&self, gate: &Gate, heard: &[Signal]) -> Judgement {
        gate.judge(&self.facts(), heard)
    }
}

fn fingerprint() -> Fingerprint {
    "00".repeat(32).parse().unwrap()
}

/// A well-formed call of `fs.read`.
pub(crate) fn reading(level: Rung) -> Call {
    Call::new("fs.read", level, json!({"path": "a.txt"}))
}

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }
}
