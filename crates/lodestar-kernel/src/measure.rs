//! Measuring the world: preconditions are looked at by the kernel, never taken from anybody's word.
//!
//! Each is measured when the action is proposed, recorded as what was expected, and measured again
//! just before it runs. A check that says how things must be (nothing there, all committed) has to
//! hold already at proposal; one that says what there is has only to stay as it was.

mod file;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};
use lodestar_core::contract::{Check, CheckKind, Operand, Precondition};
use lodestar_core::digest::Digest;
use lodestar_core::id::BeliefId;
use lodestar_policy::Dependency;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::native::git::{GitError, Repository};
use crate::tool::Definition;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Found {
    /// A file: what is in it, and where it really lies.
    File {
        /// Its content.
        sha256: Digest,
        /// Its path, links followed.
        at: String,
    },
    /// Something that is no file.
    Other {
        /// Its path, links followed.
        at: String,
    },
    /// Nothing.
    Nothing,
    /// A text: a commit, a URL, a state.
    Text {
        /// What it says.
        is: String,
    },
    /// A digest.
    Digest {
        /// Which.
        is: Digest,
    },
    /// Where a belief stands.
    Standing {
        /// Whether it is so.
        truth: Truth,
        /// Whether it is handed out.
        retrieval: Retrieval,
        /// Whether something is wrong with where it came from.
        security: Security,
        /// Whether it is still so.
        freshness: Freshness,
    },
    /// It could not be looked at, which is never as it was.
    Unmeasurable {
        /// Why.
        because: String,
    },
}

/// One measurement, as it is recorded with the proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The check.
    #[serde(flatten)]
    pub precondition: Precondition,
    /// What it looked at, when that came out of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// What it found.
    pub expected_at_approval: Found,
}

/// A measurement that is not as it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The check.
    pub check: CheckKind,
    /// What it looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// What was expected; none where it had to hold from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Found>,
    /// What was found.
    pub found: Found,
}

impl std::fmt::Display for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.check)?;
        if let Some(of) = &self.of {
            write!(f, " of `{}`", lodestar_core::name::Excerpt::of(of))?;
        }
        match (&self.expected, &self.found) {
            (_, Found::Unmeasurable { because }) => write!(f, " cannot be measured: {because}"),
            (None, _) => f.write_str(" does not hold"),
            (Some(_), _) => f.write_str(" is not as it was when the action was proposed"),
        }
    }
}

/// Where beliefs stand now. The kernel asks; who keeps beliefs answers.
pub trait BeliefView: Send + Sync {
    /// Where this belief stands; `None` if there is none that counts.
    fn standing(&self, belief: BeliefId) -> Result<Option<Dependency>, String>;
}

/// What the kernel looks at.
#[derive(Clone)]
pub struct World {
    root: PathBuf,
    policy: Digest,
    policy_file: Option<PathBuf>,
    beliefs: Option<Arc<dyn BeliefView>>,
    environment: Environment,
}

/// Whether a variable of the environment is set.
type Environment = Arc<dyn Fn(&str) -> bool + Send + Sync>;

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// What a measurement is about, beside the world: the call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) definition: &'a Definition,
    /// The definition that was reviewed.
    pub(crate) pinned: Digest,
    /// The folder that the tool's relative paths start from.
    pub(crate) root: Option<&'a Path>,
}

impl World {
    /// The project at this root, under this policy.
    pub fn new(root: PathBuf, policy: Digest, policy_file: Option<PathBuf>) -> Self {
        Self {
            root,
            policy,
            policy_file,
            beliefs: None,
            environment: Arc::new(|name| std::env::var_os(name).is_some()),
        }
    }

    /// With another environment than the process's own, for those who run things in one.
    #[must_use]
    pub fn with_environment(
        mut self,
        is_set: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.environment = Arc::new(is_set);
        self
    }

    /// With somebody who knows where beliefs stand.
    #[must_use]
    pub fn with_beliefs(mut self, beliefs: Arc<dyn BeliefView>) -> Self {
        self.beliefs = Some(beliefs);
        self
    }

    /// The project's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes one check: one measurement for each text that its operand leads to.
    pub(crate) fn measure(
        &self,
        precondition: &Precondition,
        subject: Subject<'_>,
    ) -> Vec<Measured> {
        let measured = |of: Option<&str>, found| Measured {
            precondition: precondition.clone(),
            of: of.map(str::to_owned),
            expected_at_approval: found,
        };
        let Some(operand) = operand(&precondition.check) else {
            return vec![measured(
                None,
                self.look(&precondition.check, None, subject),
            )];
        };
        match resolve(operand, subject.arguments) {
            Ok(texts) => texts
                .into_iter()
                .map(|text| {
                    measured(
                        Some(text),
                        self.look(&precondition.check, Some(text), subject),
                    )
                })
                .collect(),
            Err(because) => vec![measured(None, Found::Unmeasurable { because })],
        }
    }

    /// Looks again at what was measured.
    pub(crate) fn look_again(&self, measured: &Measured, subject: Subject<'_>) -> Found {
        self.look(
            &measured.precondition.check,
            measured.of.as_deref(),
            subject,
        )
    }

    fn look(&self, check: &Check, of: Option<&str>, subject: Subject<'_>) -> Found {
        let text = || of.unwrap_or_default();
        match check {
            Check::FileSha256 { .. } | Check::PathAbsent { .. } | Check::PathExists { .. } => {
                let root = subject.root.unwrap_or(&self.root);
                file::look(root, text(), check.kind() == CheckKind::FileSha256)
            }
            Check::GitHead => self.git(subject, |repository| repository.head()),
            Check::GitClean => self.git(subject, |repository| {
                if repository.is_clean()? {
                    return Ok(CLEAN.to_owned());
                }
                Ok::<_, GitError>(repository.status_digest()?.to_string())
            }),
            Check::GitRemoteUrl { .. } => self.git(subject, |repository| {
                let url = repository.remote_url(text());
                url.map(|url| url.unwrap_or_else(|| "no such remote".to_owned()))
            }),
            Check::ToolDefinition => match subject.definition.digest() {
                Ok(is) if is != subject.pinned => Found::Unmeasurable {
                    because: format!("the tool's definition is {is}, no longer the reviewed one"),
                },
                Ok(is) => Found::Digest { is },
                Err(problem) => Found::Unmeasurable {
                    because: problem.to_string(),
                },
            },
            Check::Policy => self.look_at_policy(),
            Check::BeliefStatus { belief } => self.look_at_belief(*belief),
            Check::EnvUnset { .. } => match (self.environment)(text()) {
                false => Found::Nothing,
                // The value may be a secret; that it is there is all that counts.
                true => Found::Text {
                    is: "set".to_owned(),
                },
            },
        }
    }

    fn git<E: std::fmt::Display>(
        &self,
        subject: Subject<'_>,
        ask: impl FnOnce(&Repository) -> Result<String, E>,
    ) -> Found {
        let root = subject.root.unwrap_or(&self.root);
        let repository = match Repository::open(root) {
            Ok(repository) => repository,
            Err(problem) => {
                return Found::Unmeasurable {
                    because: problem.to_string(),
                };
            }
        };
        match ask(&repository) {
            Ok(is) => Found::Text { is },
            Err(problem) => Found::Unmeasurable {
                because: problem.to_string(),
            },
        }
    }

    /// The folder that a call's relative paths start from.
    pub(crate) fn root_of<'a>(&'a self, subject: Subject<'a>) -> &'a Path {
        subject.root.unwrap_or(&self.root)
    }

    fn look_at_policy(&self) -> Found {
        let Some(path) = &self.policy_file else {
            return Found::Digest { is: self.policy };
        };
        let file = std::fs::File::open(path);
        let limit = lodestar_policy::MAX_POLICY_LEN as u64 + 1;
        let mut bytes = Vec::new();
        match file.and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
            Ok(_) if lodestar_core::digest::sha256(&bytes) != self.policy => Found::Unmeasurable {
                because: format!("{} is no longer the policy in force", path.display()),
            },
            Ok(_) => Found::Digest { is: self.policy },
            Err(problem) => Found::Unmeasurable {
                because: format!("{}: {problem}", path.display()),
            },
        }
    }

    fn look_at_belief(&self, belief: BeliefId) -> Found {
        let standing = match &self.beliefs {
            Some(beliefs) => beliefs.standing(belief),
            None => Err("nobody here keeps beliefs".to_owned()),
        };
        match standing {
            Ok(Some(standing)) => Found::Standing {
                truth: standing.truth,
                retrieval: standing.retrieval,
                security: standing.security,
                freshness: standing.freshness,
            },
            Ok(None) => Found::Nothing,
            Err(because) => Found::Unmeasurable { because },
        }
    }
}

/// Whether what was found is already not as the check says it must be.
pub(crate) fn fails_outright(kind: CheckKind, found: &Found) -> bool {
    match (kind, found) {
        (_, Found::Unmeasurable { .. }) => true,
        (CheckKind::PathAbsent | CheckKind::EnvUnset, found) => *found != Found::Nothing,
        (CheckKind::PathExists, found) => *found == Found::Nothing,
        (CheckKind::GitClean, Found::Text { is }) => is != CLEAN,
        (CheckKind::BeliefStatus, found) => *found == Found::Nothing,
        _ => false,
    }
}

/// What `git_clean` finds in a repository where all is committed.
pub(crate) const CLEAN: &str = "clean";

fn operand(check: &Check) -> Option<&Operand> {
    match check {
        Check::FileSha256 { path } | Check::PathAbsent { path } | Check::PathExists { path } => {
            Some(path)
        }
        Check::GitRemoteUrl { remote } => Some(remote),
        Check::EnvUnset { name } => Some(name),
        Check::GitHead
        | Check::GitClean
        | Check::ToolDefinition
        | Check::Policy
        | Check::BeliefStatus { .. } => None,
    }
}

/// The texts that an operand leads to: at least one, or why there is none.
fn resolve<'a>(
    operand: &'a Operand,
    arguments: &'a Map<String, Value>,
) -> Result<Vec<&'a str>, String> {
    let members = match operand {
        Operand::Literal(text) => return Ok(vec![text]),
        Operand::Argument(members) => members,
    };
    let reference = || format!("$.{}", members.join("."));
    let mut names = members.iter();
    let first = names.next().and_then(|name| arguments.get(name));
    let value = names.try_fold(first, |value, name| value.map(|value| value.get(name)));
    let value = value.flatten();
    match value {
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(items)) if !items.is_empty() => items
            .iter()
            .map(|item| item.as_str().ok_or_else(|| not_text(&reference())))
            .collect(),
        Some(_) => Err(not_text(&reference())),
        None => Err(format!("the call has no argument `{}`", reference())),
    }
}

fn not_text(reference: &str) -> String {
    format!("the argument `{reference}` is neither a text nor a list of texts")
}
