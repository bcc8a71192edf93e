//! Preconditions: what has to hold in the world, as data that the kernel measures.
//!
//! A precondition names a built-in check and its arguments. What it measured at proposal is stored
//! beside the action, not in the contract: the contract says what to look at, not what was seen.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::id::BeliefId;
use crate::name::{Excerpt, deserialize_str, words};

words! {
    /// The built-in checks, without their arguments.
    pub enum CheckKind: "check" {
        /// The file's content, by digest.
        FileSha256 = "file_sha256",
        /// Nothing is there.
        PathAbsent = "path_absent",
        /// Something is there.
        PathExists = "path_exists",
        /// The commit that is checked out.
        GitHead = "git_head",
        /// Nothing is uncommitted.
        GitClean = "git_clean",
        /// Where a remote points.
        GitRemoteUrl = "git_remote_url",
        /// The tool's definition, by digest.
        ToolDefinition = "tool_definition",
        /// The policy, by digest.
        Policy = "policy",
        /// Where a belief stands.
        BeliefStatus = "belief_status",
        /// An environment variable is not set.
        EnvUnset = "env_unset",
    }
}

/// A built-in check and what it looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The file's content, by digest.
    FileSha256 {
        /// The file.
        path: Operand,
    },
    /// Nothing is there.
    PathAbsent {
        /// Where.
        path: Operand,
    },
    /// Something is there.
    PathExists {
        /// Where.
        path: Operand,
    },
    /// The commit that is checked out.
    GitHead,
    /// Nothing is uncommitted.
    GitClean,
    /// Where a remote points.
    GitRemoteUrl {
        /// The remote's name.
        remote: Operand,
    },
    /// The tool's definition, by digest.
    ToolDefinition,
    /// The policy, by digest.
    Policy,
    /// Where a belief stands.
    BeliefStatus {
        /// The belief.
        belief: BeliefId,
    },
    /// An environment variable is not set.
    EnvUnset {
        /// The variable.
        name: Operand,
    },
}

impl Check {
    /// Which check, without its arguments.
    pub const fn kind(&self) -> CheckKind {
        match self {
            Self::FileSha256 { .. } => CheckKind::FileSha256,
            Self::PathAbsent { .. } => CheckKind::PathAbsent,
            Self::PathExists { .. } => CheckKind::PathExists,
            Self::GitHead => CheckKind::GitHead,
            Self::GitClean => CheckKind::GitClean,
            Self::GitRemoteUrl { .. } => CheckKind::GitRemoteUrl,
            Self::ToolDefinition => CheckKind::ToolDefinition,
            Self::Policy => CheckKind::Policy,
            Self::BeliefStatus { .. } => CheckKind::BeliefStatus,
            Self::EnvUnset { .. } => CheckKind::EnvUnset,
        }
    }
}

/// An argument of a check: a text, or the place in the call's arguments where the text stands.
///
/// Written as the text itself, or as `$.member.member`. A text that starts with `$` is always such
/// a reference, so a file named `$x` is written `./$x`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// The text itself.
    Literal(String),
    /// The members to follow through the call's arguments.
    Argument(Vec<String>),
}

/// Why text is not an operand.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OperandError {
    /// The text has no characters.
    #[error("the operand is empty; write a value, or a reference such as `$.path`")]
    Empty,
    /// A reference that leads nowhere.
    #[error("the reference `{0}` is malformed; a reference is `$` and then one `.member` or more")]
    Reference(Excerpt),
}

impl FromStr for Operand {
    type Err = OperandError;

    fn from_str(text: &str) -> Result<Self, OperandError> {
        let Some(reference) = text.strip_prefix('$') else {
            return if text.is_empty() {
                Err(OperandError::Empty)
            } else {
                Ok(Self::Literal(text.to_owned()))
            };
        };
        let malformed = || OperandError::Reference(Excerpt::of(text));
        let members = reference
            .strip_prefix('.')
            .ok_or_else(malformed)?
            .split('.');
        let members: Vec<_> = members.map(str::to_owned).collect();
        if members.iter().any(String::is_empty) {
            Err(malformed())
        } else {
            Ok(Self::Argument(members))
        }
    }
}

impl Serialize for Operand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Literal(text) => serializer.serialize_str(text),
            Self::Argument(members) => {
                serializer.serialize_str(&format!("$.{}", members.join(".")))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Operand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_str(deserializer)
    }
}

/// A check, and whether it is made once or twice.
///
/// In JSON one object: `{"check":"file_sha256","path":"$.path","must_revalidate_at_execution":true}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Precondition {
    /// What is measured.
    pub check: Check,
    /// Whether it is measured again at execution; if it is left out of the JSON, it is.
    pub must_revalidate_at_execution: bool,
}

/// Why an object is not a precondition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PreconditionError {
    /// The check needs an argument that is not there.
    #[error("the check `{check}` needs `{argument}`")]
    Missing {
        /// The check.
        check: CheckKind,
        /// The argument.
        argument: &'static str,
    },
    /// The check takes no such argument.
    #[error("the check `{check}` does not take `{argument}`")]
    Unexpected {
        /// The check.
        check: CheckKind,
        /// The argument.
        argument: &'static str,
    },
}

/// The members that any check may have; which of them one check has is settled in `try_from`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    check: CheckKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<Operand>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remote: Option<Operand>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    belief: Option<BeliefId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Operand>,
    #[serde(default = "twice")]
    must_revalidate_at_execution: bool,
}

/// Where nobody said otherwise, the stricter holds.
fn twice() -> bool {
    true
}

impl TryFrom<Written> for Precondition {
    type Error = PreconditionError;

    fn try_from(mut written: Written) -> Result<Self, PreconditionError> {
        let kind = written.check;
        let missing = |argument| PreconditionError::Missing {
            check: kind,
            argument,
        };
        let path = |written: &mut Written| written.path.take().ok_or(missing("path"));
        let check = match kind {
            CheckKind::FileSha256 => Check::FileSha256 {
                path: path(&mut written)?,
            },
            CheckKind::PathAbsent => Check::PathAbsent {
                path: path(&mut written)?,
            },
            CheckKind::PathExists => Check::PathExists {
                path: path(&mut written)?,
            },
            CheckKind::GitHead => Check::GitHead,
            CheckKind::GitClean => Check::GitClean,
            CheckKind::GitRemoteUrl => Check::GitRemoteUrl {
                remote: written.remote.take().ok_or(missing("remote"))?,
            },
            CheckKind::ToolDefinition => Check::ToolDefinition,
            CheckKind::Policy => Check::Policy,
            CheckKind::BeliefStatus => Check::BeliefStatus {
                belief: written.belief.take().ok_or(missing("belief"))?,
            },
            CheckKind::EnvUnset => Check::EnvUnset {
                name: written.name.take().ok_or(missing("name"))?,
            },
        };
        // Whatever the check did not take should not have been there.
        let left = [
            written.path.map(|_| "path"),
            written.remote.map(|_| "remote"),
            written.belief.map(|_| "belief"),
            written.name.map(|_| "name"),
        ];
        match left.into_iter().flatten().next() {
            Some(argument) => Err(PreconditionError::Unexpected {
                check: kind,
                argument,
            }),
            None => Ok(Self {
                check,
                must_revalidate_at_execution: written.must_revalidate_at_execution,
            }),
        }
    }
}

impl From<Precondition> for Written {
    fn from(precondition: Precondition) -> Self {
        let mut written = Self {
            check: precondition.check.kind(),
            path: None,
            remote: None,
            belief: None,
            name: None,
            must_revalidate_at_execution: precondition.must_revalidate_at_execution,
        };
        match precondition.check {
            Check::FileSha256 { path }
            | Check::PathAbsent { path }
            | Check::PathExists { path } => {
                written.path = Some(path);
            }
            Check::GitRemoteUrl { remote } => written.remote = Some(remote),
            Check::BeliefStatus { belief } => written.belief = Some(belief),
            Check::EnvUnset { name } => written.name = Some(name),
            Check::GitHead | Check::GitClean | Check::ToolDefinition | Check::Policy => {}
        }
        written
    }
}

/// The preconditions of a contract: each check once, in a fixed order, so that equal sets have
/// equal digests. A check that is added twice keeps the stricter flag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Precondition>", into = "Vec<Precondition>")]
pub struct Preconditions {
    must_revalidate: BTreeMap<Check, bool>,
}

impl Preconditions {
    /// Adds a precondition.
    pub fn insert(&mut self, precondition: Precondition) {
        *self.must_revalidate.entry(precondition.check).or_default() |=
            precondition.must_revalidate_at_execution;
    }

    /// All of them, in their fixed order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Precondition> + '_ {
        self.must_revalidate
            .iter()
            .map(|(check, &must_revalidate_at_execution)| Precondition {
                check: check.clone(),
                must_revalidate_at_execution,
            })
    }

    /// Everything that either asks for.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        other
            .iter()
            .for_each(|precondition| self.insert(precondition));
        self
    }

    /// Whether everything that the other asks for is asked for here, at least as strictly.
    pub fn include(&self, other: &Self) -> bool {
        other
            .must_revalidate
            .iter()
            .all(|(check, theirs)| self.must_revalidate.get(check) >= Some(theirs))
    }
}

impl From<Vec<Precondition>> for Preconditions {
    fn from(list: Vec<Precondition>) -> Self {
        list.into_iter().collect()
    }
}

impl From<Preconditions> for Vec<Precondition> {
    fn from(preconditions: Preconditions) -> Self {
        preconditions.iter().collect()
    }
}

impl FromIterator<Precondition> for Preconditions {
    fn from_iter<I: IntoIterator<Item = Precondition>>(list: I) -> Self {
        let mut preconditions = Self::default();
        list.into_iter()
            .for_each(|precondition| preconditions.insert(precondition));
        preconditions
    }
}
