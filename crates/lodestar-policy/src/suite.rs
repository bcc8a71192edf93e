//! Tests of a policy, as data: what is proposed, and what the gate has to say to it.

mod case;

use std::collections::BTreeMap;
use std::fmt;

use lodestar_core::contract::Contract;
use lodestar_core::ladder::Verdict;
use lodestar_core::name::{PolicyId, ToolName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use case::{Case, CaseAgent, CaseBelief, CaseError, json_of_toml};

use crate::gate::Gate;
use crate::judgement::Judgement;
use crate::location::Location;
use crate::text::inert;

/// Cases for a policy, read from TOML.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The cases, in the order of the text.
    #[serde(rename = "case", default)]
    pub cases: Vec<Case>,
}

/// Why a suite cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the policy tests cannot be read at {line}:{column}: {problem}")]
pub struct SuiteError {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// What is wrong, inert.
    pub problem: String,
}

/// How one case ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// As expected.
    Passed,
    /// Another verdict.
    OtherVerdict {
        /// What the gate said.
        found: Verdict,
    },
    /// The verdict, but from other policies.
    OtherPolicies {
        /// Those that decided.
        found: Vec<PolicyId>,
    },
    /// It could not be put.
    Broken(CaseError),
}

/// One case, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// What was expected.
    pub expected: Verdict,
    /// How it ended.
    pub ending: Ending,
    /// The gate's judgement; none if the case could not be put.
    pub judgement: Option<Judgement>,
}

/// How a suite ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteResult {
    /// Case by case, in the order of the text.
    pub cases: Vec<CaseResult>,
}

/// How many cases ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// As expected.
    pub passed: usize,
    /// Otherwise, or not at all.
    pub failed: usize,
}

impl Suite {
    /// Reads TOML; a key that means nothing is an error with its line.
    pub fn parse(text: &str) -> Result<Self, SuiteError> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let at = Location::of(text, offset);
            SuiteError {
                line: at.line,
                column: at.column,
                problem: inert(error.message()),
            }
        })
    }

    /// Puts every case to the gate, under the contract that its tool has.
    pub fn run(&self, gate: &Gate, contracts: &BTreeMap<ToolName, Contract>) -> SuiteResult {
        let cases = self
            .cases
            .iter()
            .map(|case| run_case(case, gate, contracts));
        SuiteResult {
            cases: cases.collect(),
        }
    }
}

fn run_case(case: &Case, gate: &Gate, contracts: &BTreeMap<ToolName, Contract>) -> CaseResult {
    let judged = case.judge(gate, contracts);
    let (ending, judgement) = match judged {
        Err(error) => (Ending::Broken(error), None),
        Ok(judgement) if judgement.verdict != case.expect => {
            let found = judgement.verdict;
            (Ending::OtherVerdict { found }, Some(judgement))
        }
        Ok(judgement) => {
            let as_named = case.decided_by.as_ref().is_none_or(|ids| {
                let mut ids = ids.clone();
                ids.sort();
                ids == judgement.policies
            });
            let ending = if as_named {
                Ending::Passed
            } else {
                let found = judgement.policies.clone();
                Ending::OtherPolicies { found }
            };
            (ending, Some(judgement))
        }
    };
    CaseResult {
        name: case.name.clone(),
        expected: case.expect,
        ending,
        judgement,
    }
}

impl SuiteResult {
    /// How many cases ended how.
    pub fn summary(&self) -> Summary {
        let passed = self
            .cases
            .iter()
            .filter(|case| case.ending == Ending::Passed);
        let passed = passed.count();
        Summary {
            passed,
            failed: self.cases.len() - passed,
        }
    }

    /// Whether there is a case, and every case ended as expected.
    pub fn passed(&self) -> bool {
        !self.cases.is_empty() && self.summary().failed == 0
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = inert(&self.name);
        match &self.ending {
            Ending::Passed => write!(f, "ok      {name}"),
            Ending::OtherVerdict { found } => {
                write!(
                    f,
                    "FAILED  {name}: expected `{}`, found `{found}`",
                    self.expected
                )
            }
            Ending::OtherPolicies { found } => {
                let found: Vec<_> = found.iter().map(|id| format!("`{}`", id.shown())).collect();
                let found = if found.is_empty() {
                    "no policy".to_owned()
                } else {
                    found.join(", ")
                };
                write!(
                    f,
                    "FAILED  {name}: `{}` as expected, but {found} decided",
                    self.expected
                )
            }
            Ending::Broken(error) => write!(f, "FAILED  {name}: {error}"),
        }
    }
}

impl fmt::Display for SuiteResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            writeln!(f, "{case}")?;
        }
        let Summary { passed, failed } = self.summary();
        write!(f, "{passed} passed, {failed} failed")
    }
}
