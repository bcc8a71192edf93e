//! The tools of a session: each with its definition pinned and its contract settled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use lodestar_core::canonical::CanonicalError;
use lodestar_core::contract::{ArgumentRole, Contract, DigestedContract};
use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::NormalPath;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, ToolName};
use lodestar_core::scope::Scope;
use lodestar_policy::ToolShape;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::grade::Grade;
use crate::tool::{Definition, NATIVE_SERVER, Tool};

/// Who settled a tool's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradedBy {
    /// The operator.
    Operator,
    /// The tool comes in the box, and so does its grade.
    Box,
    /// Nobody: it is held.
    Nobody,
}

/// What the opening event of a session says of a tool: all that a verdict depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// The tool as policies see it.
    #[serde(flatten)]
    pub shape: ToolShape,
    /// Its definition, by digest.
    pub definition: Digest,
    /// The folder that its relative paths start from, where it is not the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<NormalPath>,
    /// Its contract, floors applied.
    pub contract: Contract,
    /// Who settled it.
    pub graded_by: GradedBy,
}

impl ToolRecord {
    /// Whether anybody did: only then its name counts as reviewed.
    pub fn is_graded(&self) -> bool {
        self.graded_by != GradedBy::Nobody
    }
}

/// One tool of a session.
pub struct Entry {
    tool: Arc<dyn Tool>,
    record: ToolRecord,
    /// The record's contract.
    contract: DigestedContract,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

impl Entry {
    /// What is known of it.
    pub fn record(&self) -> &ToolRecord {
        &self.record
    }

    /// Its contract.
    pub(crate) fn contract(&self) -> &DigestedContract {
        &self.contract
    }

    /// What the tool says of itself.
    pub fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    /// The folder that its relative paths start from, where it is not the project's root.
    pub fn root(&self) -> Option<&Path> {
        self.tool.root()
    }

    pub(crate) fn tool(&self) -> &dyn Tool {
        self.tool.as_ref()
    }
}

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// Two tools of one name.
    #[error("there are two tools named `{0}`; a name means one tool")]
    Duplicate(Excerpt),
    /// A grade for a tool that is not there.
    #[error("`{name}` is graded, but there is no such tool{}", suggest(.nearest))]
    UnknownTool {
        /// The name.
        name: String,
        /// A tool that is there and has nearly that name.
        nearest: Option<String>,
    },
    /// A role for an argument that is not there.
    #[error("tool `{tool}` has no argument `{argument}` to give a role to")]
    UnknownArgument {
        /// The tool.
        tool: Excerpt,
        /// The argument.
        argument: String,
    },
    /// A tool that is not from the box says it is.
    #[error("tool `{0}` says it belongs to `{NATIVE_SERVER}`, which is the box's own name")]
    NotFromTheBox(Excerpt),
    /// A definition without a digest.
    #[error("tool `{tool}`: its definition has no canonical form: {problem}")]
    Definition {
        /// The tool.
        tool: Excerpt,
        /// Why.
        problem: CanonicalError,
    },
}

fn suggest(name: &Option<String>) -> String {
    name.as_ref()
        .map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// The tools of a session. What is registered does not change while it runs.
#[derive(Debug, Default)]
pub struct Registry {
    entries: BTreeMap<ToolName, Arc<Entry>>,
    /// Of a harness.
    taken_out: BTreeSet<Defence>,
}

impl Registry {
    /// For a harness that takes defences out, before any tool is added. Without
    /// - [`Defence::ContractFloor`], a grade counts as it is, whatever the tool's minimum;
    /// - [`Defence::UngradedIsHeld`], a tool that nobody graded stands at L3.
    #[must_use]
    pub fn without(mut self, defences: &[Defence]) -> Self {
        self.taken_out.extend(defences);
        self
    }

    fn lacks(&self, defence: Defence) -> bool {
        self.taken_out.contains(&defence)
    }

    /// What a contract comes to over a tool's own minimum.
    fn floored(&self, graded: Contract, minimum: &Contract) -> Contract {
        match self.lacks(Defence::ContractFloor) {
            true => graded,
            false => graded.floor(minimum),
        }
    }

    /// Adds a tool from the box: without a grade of the operator's, its own minimum is its grade.
    pub fn add_native(
        &mut self,
        tool: Arc<dyn Tool>,
        grade: Option<&Grade>,
    ) -> Result<(), RegisterError> {
        let minimum = &tool.definition().minimum;
        let (contract, graded_by) = match grade {
            Some(grade) => (
                self.floored(grade.over(minimum), minimum),
                GradedBy::Operator,
            ),
            None => (minimum.clone(), GradedBy::Box),
        };
        self.insert(tool, contract, graded_by, grade)
    }

    /// Adds any other tool: without a grade of the operator's it is held.
    pub fn add(
        &mut self,
        tool: Arc<dyn Tool>,
        grade: Option<&Grade>,
        scope: &Scope,
    ) -> Result<(), RegisterError> {
        let definition = tool.definition();
        if definition.server.as_str() == NATIVE_SERVER {
            return Err(RegisterError::NotFromTheBox(definition.name.shown()));
        }
        let (contract, graded_by) = match grade {
            Some(grade) => {
                let graded = grade.contract_of_foreign(scope);
                let floored = self.floored(graded, &definition.minimum);
                (floored, GradedBy::Operator)
            }
            None => (self.ungraded(scope), GradedBy::Nobody),
        };
        self.insert(tool, contract, graded_by, grade)
    }

    /// As [`add`](Self::add), for what has a grade of its own where the operator says nothing: whoever
    /// registers it answers for that grade, not whoever wrote the tool.
    pub fn add_graded(
        &mut self,
        tool: Arc<dyn Tool>,
        grade: Option<&Grade>,
        otherwise: &Grade,
        scope: &Scope,
    ) -> Result<(), RegisterError> {
        if grade.is_some() {
            return self.add(tool, grade, scope);
        }
        let contract = otherwise.contract_of_foreign(scope);
        let contract = self.floored(contract, &tool.definition().minimum);
        self.insert(tool, contract, GradedBy::Box, Some(otherwise))
    }

    fn ungraded(&self, scope: &Scope) -> Contract {
        let mut contract = Contract::ungraded(scope.clone());
        if self.lacks(Defence::UngradedIsHeld) {
            contract.required_level = Rung::L3;
        }
        contract
    }

    fn insert(
        &mut self,
        tool: Arc<dyn Tool>,
        contract: Contract,
        graded_by: GradedBy,
        grade: Option<&Grade>,
    ) -> Result<(), RegisterError> {
        let definition = tool.definition();
        let name = definition.name.clone();
        let digest = definition
            .digest()
            .map_err(|problem| RegisterError::Definition {
                tool: name.shown(),
                problem,
            })?;
        let mut roles = definition.roles.clone();
        for (argument, role) in grade.iter().flat_map(|grade| &grade.arg_roles) {
            let declared = definition.input_schema["properties"]
                .get(argument)
                .is_some();
            if !declared {
                return Err(RegisterError::UnknownArgument {
                    tool: name.shown(),
                    argument: argument.clone(),
                });
            }
            roles.insert(argument.clone(), stricter(roles.get(argument), *role));
        }
        let record = ToolRecord {
            shape: ToolShape {
                name: name.clone(),
                server: definition.server.clone(),
                groups: grade.map(|grade| grade.groups.clone()).unwrap_or_default(),
                input_schema: definition.input_schema.clone(),
                roles,
            },
            definition: digest,
            root: tool
                .root()
                .and_then(|root| NormalPath::new(root.to_str()?).ok()),
            contract,
            graded_by,
        };
        let contract = record.contract.clone().digested();
        let contract = contract.map_err(|problem| RegisterError::Definition {
            tool: name.shown(),
            problem,
        })?;
        let entry = Arc::new(Entry {
            tool,
            record,
            contract,
        });
        let shown = name.shown();
        match self.entries.insert(name, entry) {
            None => Ok(()),
            Some(_) => Err(RegisterError::Duplicate(shown)),
        }
    }

    /// The tool of this name.
    pub fn get(&self, name: &ToolName) -> Option<&Arc<Entry>> {
        self.entries.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// What the opening event says of them.
    pub fn records(&self) -> Vec<ToolRecord> {
        self.iter().map(|entry| entry.record.clone()).collect()
    }

    /// Complains of grades for tools that are not there.
    pub fn check_grades<'a>(
        &self,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), RegisterError> {
        for name in names {
            let there = self.entries.keys().any(|tool| tool.as_str() == name);
            if !there {
                return Err(RegisterError::UnknownTool {
                    nearest: self.nearest(name),
                    name: name.clone(),
                });
            }
        }
        Ok(())
    }

    /// The name that shares the longest beginning with this one, if it is most of it.
    fn nearest(&self, name: &str) -> Option<String> {
        let common = |tool: &ToolName| {
            let pairs = tool.as_str().bytes().zip(name.bytes());
            pairs.take_while(|(a, b)| a == b).count()
        };
        let best = self.entries.keys().max_by_key(|tool| common(tool))?;
        (common(best) * 2 > name.len()).then(|| best.as_str().to_owned())
    }
}

/// What a tool from the box calls a place stays one, whatever the operator calls it.
fn stricter(own: Option<&ArgumentRole>, given: ArgumentRole) -> ArgumentRole {
    match own {
        Some(own @ (ArgumentRole::Path | ArgumentRole::Argv)) => *own,
        _ => given,
    }
}
