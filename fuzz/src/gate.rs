//! The gate that the targets of policies and calls have in common: two tools with every type of
//! argument between them, and a policy that lets everything run which is what it says it is.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_core::time::Timestamp;
use lodestar_policy::{ArbiterRules, Gate, Policy, Requirement, ToolShape, Unsigned};
use serde_json::{Value, json};

/// The tool whose arguments the target of calls reads.
pub(crate) const TOOL: &str = "fs.write";

const POLICY: &str = r#"
permit (principal, action in Action::"run", resource);
forbid (principal, action == Action::"run:fs.write", resource)
when { context.args has path && context.args.path like "*.pem" };
"#;

pub(crate) fn tool_name(name: &str) -> ToolName {
    ToolName::new(name).expect("a valid name")
}

/// What policies are written about here.
pub(crate) static TOOLS: LazyLock<Vec<ToolShape>> = LazyLock::new(|| {
    let write = json!({
        "path": {"type": "string"},
        "content": {"type": "string"},
        "count": {"type": "integer"},
        "force": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "meta": {
            "type": "object",
            "properties": {"thread": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["thread"],
            "additionalProperties": false,
        },
    });
    let send = json!({"to": {"type": "string"}, "text": {"type": "string"}});
    vec![
        shape(TOOL, write, "path", ArgumentRole::Path),
        shape("mail.send", send, "to", ArgumentRole::Destination),
    ]
});

fn shape(name: &str, properties: Value, first: &str, role: ArgumentRole) -> ToolShape {
    ToolShape {
        name: tool_name(name),
        server: ServerIdentity::new("box").expect("a valid name"),
        groups: ["all".to_owned()].into(),
        input_schema: json!({
            "type": "object", "properties": properties,
            "required": [first], "additionalProperties": false,
        }),
        roles: [(first.to_owned(), role)].into(),
    }
}

/// A policy before the tools; none if it does not fit them.
pub(crate) fn before(policy: Policy) -> Option<Gate> {
    let requirement = Requirement {
        roles: Default::default(),
        quorum: 1,
        expires_seconds: 600,
    };
    Gate::new(policy, TOOLS.clone(), ArbiterRules::none(), requirement).ok()
}

/// The gate.
pub(crate) static GATE: LazyLock<Gate> = LazyLock::new(|| {
    let bytes = POLICY.as_bytes();
    let policy = Policy::load(bytes, None, &[], Unsigned::Allowed, Timestamp::MIN);
    before(policy.expect("the policy is Cedar")).expect("the policy fits the tools")
});

/// What the tools may do.
pub(crate) static CONTRACTS: LazyLock<BTreeMap<ToolName, Contract>> = LazyLock::new(|| {
    let names = TOOLS.iter().map(|tool| tool.name.clone());
    names.map(|name| (name, contract())).collect()
});

pub(crate) fn contract() -> Contract {
    Contract {
        required_level: Rung::L3,
        blast_radius: BlastRadius::Project,
        reversibility: Reversibility::Reversible,
        scope: Scope::global(),
        data_sensitivity: DataSensitivity::Private,
        preconditions: Preconditions::default(),
        sandbox: Sandbox::WriteLocal,
        permissions: [Permission::WriteFiles].into(),
    }
}
