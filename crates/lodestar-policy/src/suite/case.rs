//! One case of a suite, and the facts it stands for.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::chain::{Confidence, Freshness, Retrieval, Security, Truth};
use lodestar_core::contract::{Contract, arguments};
use lodestar_core::digest::sha256;
use lodestar_core::fingerprint::{Fingerprint, FingerprintFields, NormalPath};
use lodestar_core::id::{ActionId, BeliefId};
use lodestar_core::ladder::{Rung, Verdict};
use lodestar_core::name::{ActorId, Excerpt, PolicyId, ToolName};
use lodestar_core::provenance::{ArgumentProvenance, GivenSource, Label, Place, ValueKind};
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use thiserror::Error;

use crate::facts::{Agent, Dependency, Facts, ToolShape};
use crate::gate::Gate;
use crate::judgement::Judgement;
use crate::trail::Trail;

/// One proposal, and what the gate has to say to it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments.
    #[serde(default)]
    pub args: toml::Table,
    /// The rung, if not the contract's.
    #[serde(default)]
    pub level: Option<Rung>,
    /// Who acts.
    #[serde(default)]
    pub agent: CaseAgent,
    /// Arguments whose values nobody gave; all others count as given.
    #[serde(default)]
    pub untrusted: BTreeSet<String>,
    /// What the decision rests on.
    #[serde(default)]
    pub beliefs: Vec<CaseBelief>,
    /// The verdict.
    pub expect: Verdict,
    /// The policies that decide; not looked at if left out.
    #[serde(default)]
    pub decided_by: Option<Vec<PolicyId>>,
}

/// Who acts in a case.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaseAgent {
    /// The actor.
    pub actor: String,
    /// How far its device is trusted.
    pub device_trust: String,
    /// How it came to run.
    pub execution: String,
}

impl Default for CaseAgent {
    fn default() -> Self {
        Self {
            actor: "agent".to_owned(),
            device_trust: "none".to_owned(),
            execution: "interactive".to_owned(),
        }
    }
}

/// A belief that a case's decision rests on; sound in every respect that is left out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaseBelief {
    /// Whether it is so.
    pub truth: Truth,
    /// Whether it is handed out.
    pub retrieval: Retrieval,
    /// Whether something is wrong with where it came from.
    pub security: Security,
    /// Whether it is still so.
    pub freshness: Freshness,
    /// How sure.
    pub confidence: Confidence,
    /// Whether it rests on something that was only read.
    pub rests_on_reading: bool,
}

impl Default for CaseBelief {
    fn default() -> Self {
        Self {
            truth: Truth::Supported,
            retrieval: Retrieval::Normal,
            security: Security::Clean,
            freshness: Freshness::Fresh,
            confidence: Confidence::EXTRACTED,
            rests_on_reading: false,
        }
    }
}

/// Why a case cannot be put.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CaseError {
    /// Nobody graded its tool.
    #[error("the tool `{tool}` has no contract; name a tool that is graded")]
    NoContract {
        /// The tool, inert.
        tool: Excerpt,
    },
    /// A value that JSON does not have.
    #[error("argument `{argument}` is {what}, which JSON does not have")]
    NotJson {
        /// The argument, inert.
        argument: Excerpt,
        /// What it is.
        what: &'static str,
    },
    /// An argument that is named as untrusted is not there.
    #[error("argument `{argument}` is listed as untrusted, but is not among the arguments")]
    NotThere {
        /// The argument, inert.
        argument: Excerpt,
    },
    /// A path, an actor or arguments that the gate would never see.
    #[error("the case can never come up: {problem}")]
    Impossible {
        /// Why.
        problem: String,
    },
}

fn impossible(error: impl std::fmt::Display) -> CaseError {
    CaseError::Impossible {
        problem: error.to_string(),
    }
}

impl Case {
    /// Puts the case to the gate.
    pub(super) fn judge(
        &self,
        gate: &Gate,
        contracts: &BTreeMap<ToolName, Contract>,
    ) -> Result<Judgement, CaseError> {
        let mut contract =
            contracts
                .get(&self.tool)
                .cloned()
                .ok_or_else(|| CaseError::NoContract {
                    tool: self.tool.shown(),
                })?;
        // A grade can be stricter than the tool's own, never laxer.
        let own = contract.required_level;
        contract.required_level = self.level.map_or(own, |level| level.max(own));
        let arguments = self.arguments()?;
        let shape = gate.tool(&self.tool);
        let paths = shape.map_or(Ok(Vec::new()), |shape| paths(shape, &arguments))?;
        let agent = Agent {
            actor: ActorId::new(&self.agent.actor).map_err(impossible)?,
            device_trust: self.agent.device_trust.clone(),
            execution: self.agent.execution.clone(),
        };
        let facts = Facts {
            action: ActionId::from_parts(0, [0; 10]),
            fingerprint: fingerprint(shape, &self.tool, &contract, &arguments, &paths)?,
            agent: &agent,
            tool: &self.tool,
            contract: &contract,
            arguments: &arguments,
            paths: &paths,
            provenance: &self.provenance(&arguments)?,
            dependencies: &self.dependencies(),
            trail: Trail::default(),
        };
        Ok(gate.judge(&facts, &[]))
    }

    fn arguments(&self) -> Result<Map<String, Value>, CaseError> {
        let arguments = self.args.iter().map(|(name, value)| {
            let value = json_of_toml(value).map_err(|what| CaseError::NotJson {
                argument: Excerpt::of(name),
                what,
            })?;
            Ok((name.clone(), value))
        });
        arguments.collect()
    }

    fn provenance(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<Vec<ArgumentProvenance>, CaseError> {
        if let Some(name) = self.untrusted.iter().find(|n| !arguments.contains_key(*n)) {
            return Err(CaseError::NotThere {
                argument: Excerpt::of(name),
            });
        }
        let origins = arguments.iter().map(|(name, value)| ArgumentProvenance {
            pointer: format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            place: Place::Value,
            kind: kind(value),
            label: if self.untrusted.contains(name) {
                Label::Unknown
            } else {
                Label::Given {
                    source: GivenSource::Task,
                }
            },
            resembles: None,
            inside: Vec::new(),
            inside_omitted: 0,
        });
        Ok(origins.collect())
    }

    fn dependencies(&self) -> Vec<Dependency> {
        let beliefs = self.beliefs.iter().enumerate();
        let dependencies = beliefs.map(|(at, belief)| Dependency {
            belief: BeliefId::from_parts(at as u64, [0; 10]),
            truth: belief.truth,
            retrieval: belief.retrieval,
            security: belief.security,
            freshness: belief.freshness,
            confidence: belief.confidence,
            rests_on_reading: belief.rests_on_reading,
            class: None,
        });
        dependencies.collect()
    }
}

/// What sort of value it is, as far as a test needs it: only addresses are judged by their kind.
fn kind(value: &Value) -> ValueKind {
    match value {
        Value::Bool(_) => ValueKind::Boolean,
        Value::Number(_) => ValueKind::Number,
        Value::String(text) if text.contains("://") => ValueKind::Url,
        Value::String(text) if text.contains('@') => ValueKind::Email,
        _ => ValueKind::Text,
    }
}

/// A TOML value as JSON; what JSON does not have is named.
pub fn json_of_toml(value: &toml::Value) -> Result<Value, &'static str> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text.clone()),
        toml::Value::Integer(integer) => Value::Number((*integer).into()),
        toml::Value::Float(float) => {
            Value::Number(Number::from_f64(*float).ok_or("not a finite number")?)
        }
        toml::Value::Boolean(truth) => Value::Bool(*truth),
        toml::Value::Datetime(_) => return Err("a date"),
        toml::Value::Array(items) => {
            Value::Array(items.iter().map(json_of_toml).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(members) => {
            let members = members
                .iter()
                .map(|(name, value)| Ok((name.clone(), json_of_toml(value)?)));
            Value::Object(members.collect::<Result<_, &'static str>>()?)
        }
    })
}

fn paths(shape: &ToolShape, arguments: &Map<String, Value>) -> Result<Vec<NormalPath>, CaseError> {
    arguments::paths(arguments, &shape.roles, None).map_err(impossible)
}

fn fingerprint(
    shape: Option<&ToolShape>,
    tool: &ToolName,
    contract: &Contract,
    arguments: &Map<String, Value>,
    paths: &[NormalPath],
) -> Result<Fingerprint, CaseError> {
    let server = match shape {
        Some(shape) => shape.server.clone(),
        None => "unknown".parse().map_err(impossible)?,
    };
    let fields = FingerprintFields::under(
        contract,
        server,
        tool.clone(),
        sha256(b""),
        arguments.clone(),
        paths.to_vec(),
    );
    let fields = fields.map_err(impossible)?;
    fields.fingerprint().map_err(impossible)
}
