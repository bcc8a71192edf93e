//! `git.push`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::command::{Answer, Order, inert, variable, words};
use super::config::{GitConfig, GitError};
use super::private::PrivateDir;
use super::remote::{Credentials, Protocol, Remote, RemoteError, Secrets};
use super::repository::{Repository, check_name};
use super::status::{perhaps_changed, unchanged};
use crate::native::fs::{Reins, blocking, only};
use crate::tool::{Call, Calling, Definition, Effect, NATIVE_SERVER, Output, Tool, ToolError};

/// How `git.push` is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitPushConfig {
    /// Which repository.
    pub repository: GitConfig,
    /// Where it goes, whatever the repository calls its remotes.
    pub url: String,
    /// What may go there.
    pub refs: Vec<PinnedRef>,
    /// What the host is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// How remotes may be reached.
    #[serde(default = "default_protocols")]
    pub protocols: Vec<Protocol>,
}

/// What protects content and credentials on the way.
fn default_protocols() -> Vec<Protocol> {
    vec![Protocol::Https, Protocol::Ssh]
}

/// One branch, and what it becomes over there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedRef {
    /// The branch here, such as `main`.
    pub branch: String,
    /// The full reference there, such as `refs/heads/main`.
    pub to: String,
    /// What may become of the reference there.
    #[serde(default)]
    pub update: Update,
}

/// How a reference may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Update {
    /// Commits are added.
    #[default]
    FastForward,
    /// Commits can get lost.
    Force,
}

/// `git.push`: a pinned branch to a pinned address.
#[derive(Debug)]
pub struct GitPush {
    work: Arc<Work>,
    definition: Definition,
}

#[derive(Debug)]
struct Work {
    repository: Repository,
    remote: Remote,
    refs: Vec<PinnedRef>,
}

impl GitPush {
    /// The tool for a repository and a remote.
    pub fn new(config: GitPushConfig, scope: Scope) -> Result<Self, GitError> {
        let remote = Remote::pin(&config.url, &config.protocols, config.credentials.as_ref())?;
        check_refs(&config.refs)?;
        let work = Work {
            repository: Repository::with(config.repository)?,
            remote,
            refs: config.refs,
        };
        Ok(Self {
            definition: definition(&work, scope),
            work: Arc::new(work),
        })
    }
}

fn check_refs(refs: &[PinnedRef]) -> Result<(), GitError> {
    if refs.is_empty() {
        return Err(RemoteError::NoRefs.into());
    }
    let mut seen = BTreeSet::new();
    for pinned in refs {
        check_name("branch", &pinned.branch)?;
        check_name("reference", &pinned.to)?;
        let odd = |name: &str| name.contains([':', '+', '*', '?', '[', '^', '~', '\\', '@']);
        if !pinned.to.starts_with("refs/") || odd(&pinned.to) || odd(&pinned.branch) {
            return Err(RemoteError::Ref {
                name: Excerpt::of(&pinned.to),
            }
            .into());
        }
        if !seen.insert(&pinned.branch) {
            return Err(RemoteError::Twice {
                branch: Excerpt::of(&pinned.branch),
            }
            .into());
        }
    }
    Ok(())
}

impl Tool for GitPush {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn root(&self) -> Option<&Path> {
        Some(self.work.repository.root.path())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            only(&call, &self.definition)?;
            let branch = match call.arguments().get("branch") {
                None => None,
                Some(_) => Some(call.text("branch")?),
            };
            let pinned = self.work.choose(branch)?.clone();
            let work = Arc::clone(&self.work);
            blocking(&call, move |reins| work.push(&pinned, reins)).await
        })
    }
}

impl Work {
    /// The pinned branch of that name; the only one, if there is but one.
    fn choose(&self, branch: Option<&str>) -> Result<&PinnedRef, ToolError> {
        let known = || {
            let known: Vec<&str> = self.refs.iter().map(|r| r.branch.as_str()).collect();
            known.join(", ")
        };
        match (branch, self.refs.as_slice()) {
            (None, [only]) => Ok(only),
            (None, _) => Err(ToolError::invalid(format!(
                "`branch` is missing; there are: {}",
                known()
            ))),
            (Some(branch), refs) => refs.iter().find(|r| r.branch == branch).ok_or_else(|| {
                ToolError::refused(format!(
                    "the branch `{}` is not one that may be pushed; there are: {}",
                    Excerpt::of(branch),
                    known()
                ))
            }),
        }
    }

    fn push(&self, pinned: &PinnedRef, reins: &Reins) -> Result<Output, ToolError> {
        let desk = self.repository.desk(reins).map_err(unchanged)?;
        let source = format!("refs/heads/{}", pinned.branch);
        let commit = desk.commit_of(&source).map_err(unchanged)?;
        let commit = commit
            .ok_or_else(|| ToolError::refused(format!("there is no branch `{}`", pinned.branch)))?;
        let empty = PrivateDir::with_objects_of(&desk.private).map_err(unchanged)?;
        let (mut environment, secrets) = self
            .remote
            .environment()
            .map_err(|error| ToolError::refused(error.to_string()))?;
        environment.push(variable("GIT_DIR", empty.path()));
        let order = Order {
            name: "push",
            arguments: self.words(pinned, &commit),
            environment,
            directory: &desk.directory,
            input: None,
            confines: self.remote.confines(
                desk.private
                    .confines(self.repository.root.path(), &[empty.path()]),
            ),
        };
        reins.check()?;
        let answer = self
            .repository
            .git
            .run(&order, reins)
            .map_err(perhaps_changed)?;
        self.outcome(pinned, &commit, &answer, &secrets)
    }

    fn words(&self, pinned: &PinnedRef, commit: &str) -> Vec<OsString> {
        let mark = match pinned.update {
            Update::FastForward => "",
            Update::Force => "+",
        };
        let refspec = format!("{mark}{commit}:{}", pinned.to);
        words([
            "push",
            "--porcelain",
            "--no-verify",
            "--no-signed",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--",
            self.remote.url(),
            &refspec,
        ])
    }

    /// Reads what git says of the reference: a flag, the two names, and words.
    fn outcome(
        &self,
        pinned: &PinnedRef,
        commit: &str,
        answer: &Answer,
        secrets: &Secrets,
    ) -> Result<Output, ToolError> {
        let stdout = secrets.redact(&answer.stdout);
        let listed = String::from_utf8_lossy(&stdout);
        let line = listed.lines().find_map(|line| {
            let (flag, rest) = line.split_at_checked(1)?;
            let (names, words) = rest.strip_prefix('\t')?.split_once('\t')?;
            names
                .ends_with(&format!(":{}", pinned.to))
                .then_some((flag, words))
        });
        let result = match line {
            Some((" " | "+" | "*", _)) if answer.code == Some(0) => "updated",
            Some(("=", _)) if answer.code == Some(0) => "up to date",
            Some(("!", words)) => {
                let words = inert(words.as_bytes());
                // A refusal by the other side, or one before anything was sent.
                let effect = match words.contains("[remote failure]") {
                    true => Effect::Unknown,
                    false => Effect::None,
                };
                let message = format!("`{}` was not taken: {words}", pinned.to);
                return Err(ToolError::failed(effect, message));
            }
            _ => {
                let said = inert(&secrets.redact(&answer.stderr));
                let message = format!("`git push` failed: {said}");
                return Err(ToolError::failed(Effect::Unknown, message));
            }
        };
        Ok(Output::structured(json!({
            "remote": self.remote.url(),
            "ref": pinned.to,
            "commit": commit,
            "result": result,
        })))
    }
}

fn definition(work: &Work, scope: Scope) -> Definition {
    let branches: Vec<&str> = work.refs.iter().map(|r| r.branch.as_str()).collect();
    let required = if branches.len() == 1 {
        json!([])
    } else {
        json!(["branch"])
    };
    let list = work
        .refs
        .iter()
        .map(|pinned| match pinned.update {
            Update::FastForward => format!("{} to {}", pinned.branch, pinned.to),
            Update::Force => format!("{} to {} (forced)", pinned.branch, pinned.to),
        })
        .collect::<Vec<_>>()
        .join(", ");
    Definition {
        name: ToolName::new("git.push").expect("a literal name is valid"),
        server: ServerIdentity::new(NATIVE_SERVER).expect("a literal name is valid"),
        description: format!("Pushes a branch to {}: {list}.", work.remote.url()),
        input_schema: json!({
            "type": "object",
            "properties": {
                "branch": {
                    "type": "string",
                    "enum": branches,
                    "description": "Which branch.",
                },
            },
            "required": required,
            "additionalProperties": false,
        }),
        roles: BTreeMap::from([("branch".to_owned(), ArgumentRole::Destination)]),
        declared: None,
        minimum: Contract {
            required_level: Rung::L4,
            blast_radius: BlastRadius::External,
            reversibility: Reversibility::Irreversible,
            scope,
            data_sensitivity: DataSensitivity::Private,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::ControlledNetwork,
            permissions: BTreeSet::from([
                Permission::ReadFiles,
                Permission::RunPrograms,
                Permission::Network,
                Permission::Credentials,
                Permission::Push,
            ]),
        },
    }
}
