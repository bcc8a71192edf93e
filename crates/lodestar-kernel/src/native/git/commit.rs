//! `git.commit`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::command::{variable, words};
use super::config::{GitConfig, GitError};
use super::repository::{Desk, Repository};
use super::status::{perhaps_changed, unchanged};
use crate::native::fs::{Below, Reins, Root, blocking, only};
use crate::tool::{Call, Calling, Definition, NATIVE_SERVER, Output, Tool, ToolError};

/// Longest message: an essay; a diff does not belong there.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// Most paths of one commit; a directory counts as one.
const MAX_PATHS: usize = 1000;

/// What is in the git directory while something else is going on that a commit would take part in.
const UNDER_WAY: [&str; 6] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

/// How `git.commit` is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitCommitConfig {
    /// Which repository.
    pub repository: GitConfig,
    /// Who the commits are by.
    pub author: Person,
}

/// Author and committer of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

impl Person {
    fn check(&self) -> Result<(), GitError> {
        for (field, value) in [("name", &self.name), ("email", &self.email)] {
            let odd = |c: char| c.is_control() || c == '<' || c == '>';
            if value.trim().is_empty() || value.contains(odd) {
                return Err(GitError::Person {
                    field,
                    value: Excerpt::of(value),
                });
            }
        }
        Ok(())
    }

    fn environment(&self) -> [(OsString, OsString); 4] {
        [
            variable("GIT_AUTHOR_NAME", &self.name),
            variable("GIT_AUTHOR_EMAIL", &self.email),
            variable("GIT_COMMITTER_NAME", &self.name),
            variable("GIT_COMMITTER_EMAIL", &self.email),
        ]
    }
}

/// `git.commit`: exactly the named paths, by the configured author, without hooks.
#[derive(Debug)]
pub struct GitCommit {
    work: Arc<Work>,
    definition: Definition,
}

#[derive(Debug)]
struct Work {
    repository: Repository,
    author: Person,
}

impl GitCommit {
    /// The tool for a repository.
    pub fn new(config: GitCommitConfig, scope: Scope) -> Result<Self, GitError> {
        config.author.check()?;
        let repository = Repository::with(config.repository)?;
        Ok(Self {
            work: Arc::new(Work {
                repository,
                author: config.author,
            }),
            definition: definition(scope),
        })
    }
}

impl Tool for GitCommit {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            only(&call, &self.definition)?;
            let message = message(call.text("message")?)?;
            let paths = paths(&self.work.repository.root, call.arguments().get("paths"))?;
            let work = Arc::clone(&self.work);
            blocking(&call, move |reins| work.commit(&message, &paths, reins)).await
        })
    }
}

fn message(text: &str) -> Result<String, ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::invalid("`message` is empty; say why"));
    }
    if text.contains('\0') {
        return Err(ToolError::invalid("`message` has a NUL byte in it"));
    }
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(ToolError::invalid(format!(
            "`message` has {} bytes; {MAX_MESSAGE_BYTES} are the most",
            text.len()
        )));
    }
    Ok(text.to_owned())
}

fn paths(root: &Root, value: Option<&Value>) -> Result<Vec<Below>, ToolError> {
    let Some(Value::Array(values)) = value else {
        return Err(ToolError::invalid("`paths` must be a list of strings"));
    };
    if values.is_empty() || values.len() > MAX_PATHS {
        return Err(ToolError::invalid(format!(
            "`paths` has {} entries; name 1 to {MAX_PATHS}",
            values.len()
        )));
    }
    values
        .iter()
        .map(|value| {
            let Value::String(text) = value else {
                return Err(ToolError::invalid("`paths` must be a list of strings"));
            };
            let below = root.below(text);
            let below = below.map_err(|refused| ToolError::refused(refused.to_string()))?;
            let in_git = below.names().any(|name| name.eq_ignore_ascii_case(".git"));
            if in_git {
                return Err(ToolError::refused(format!(
                    "`{}` is in a repository's own directory",
                    below.shown()
                )));
            }
            Ok(below)
        })
        .collect()
}

impl Work {
    fn commit(&self, message: &str, paths: &[Below], reins: &Reins) -> Result<Output, ToolError> {
        let desk = self.repository.desk(reins).map_err(unchanged)?;
        let branch = branch(&desk)?;
        let layout = &desk.private.layout;
        layout.check_branch(&branch).map_err(unchanged)?;
        let mut named = vec![OsString::from("--")];
        named.extend(paths.iter().map(|path| {
            if path.is_root() {
                OsString::from(".")
            } else {
                path.as_path().as_os_str().to_owned()
            }
        }));
        refuse_filters(&desk, &named)?;
        let with = |options: &[&str]| {
            let mut arguments = words(options.iter().copied());
            arguments.extend(named.iter().cloned());
            arguments
        };
        let status = with(&["--porcelain=v1", "--untracked-files=all", "-z"]);
        let changed = desk.ask("status", status, &[], None).map_err(unchanged)?;
        if changed.success("status").map_err(unchanged)?.is_empty() {
            return Err(ToolError::refused(
                "nothing to commit: the paths are as in the last commit, or do not exist",
            ));
        }
        reins.check()?;
        // From here on the index may differ.
        desk.ask("add", with(&[]), &[], None)
            .and_then(|answer| answer.success("add"))
            .map_err(perhaps_changed)?;
        let options = [
            "--only",
            "--quiet",
            "--no-verify",
            "--no-gpg-sign",
            "--no-post-rewrite",
            "--cleanup=verbatim",
            "--file=-",
        ];
        desk.ask(
            "commit",
            with(&options),
            &self.author.environment(),
            Some(message.as_bytes()),
        )
        .and_then(|answer| answer.success("commit"))
        .map_err(perhaps_changed)?;
        let commit = desk.head().map_err(perhaps_changed)?;
        Ok(Output::structured(
            json!({ "commit": commit, "branch": branch }),
        ))
    }
}

/// The branch that the commit goes on. Nothing else may be under way: a merge's second parent is
/// recorded in places that the private directory does not have.
fn branch(desk: &Desk<'_>) -> Result<String, ToolError> {
    let git_dir = &desk.private.layout.git_dir;
    if let Some(what) = UNDER_WAY.iter().find(|name| git_dir.join(name).exists()) {
        return Err(ToolError::refused(format!(
            "something is under way in the repository (`{what}`); finish or abort it by hand first"
        )));
    }
    let head = String::from_utf8_lossy(&desk.private.head);
    match head.trim_end().strip_prefix("ref: refs/heads/") {
        Some(branch) => Ok(branch.to_owned()),
        None => Err(ToolError::refused(
            "no branch is checked out; check one out by hand first",
        )),
    }
}

/// Filters come from configuration that is not obeyed; without them the wrong content would be
/// committed.
fn refuse_filters(desk: &Desk<'_>, named: &[OsString]) -> Result<(), ToolError> {
    let mut arguments = words(["-z", "--cached", "--others", "--exclude-standard"]);
    arguments.extend_from_slice(named);
    let files = desk
        .ask("ls-files", arguments, &[], None)
        .and_then(|answer| answer.success("ls-files"))
        .map_err(unchanged)?;
    let answer = desk.ask(
        "check-attr",
        words(["-z", "--stdin", "filter"]),
        &[],
        Some(&files),
    );
    let listed = answer
        .and_then(|answer| answer.success("check-attr"))
        .map_err(unchanged)?;
    let fields: Vec<&[u8]> = listed.split(|&byte| byte == 0).collect();
    let (triples, _) = fields.as_chunks::<3>();
    for [path, _, value] in triples {
        if !matches!(*value, b"unspecified" | b"unset") {
            return Err(ToolError::refused(format!(
                "`{}` goes through the filter `{}`, which is not run here; commit it by hand",
                Excerpt::of(&String::from_utf8_lossy(path)),
                Excerpt::of(&String::from_utf8_lossy(value))
            )));
        }
    }
    Ok(())
}

fn definition(scope: Scope) -> Definition {
    Definition {
        name: ToolName::new("git.commit").expect("a literal name is valid"),
        server: ServerIdentity::new(NATIVE_SERVER).expect("a literal name is valid"),
        description: "Commits the named files and directories, as they are now, on the branch \
                      that is checked out; whatever else is staged stays staged. Hooks and filters \
                      do not run."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "message": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The message, taken as it is.",
                },
                "paths": {
                    "type": "array",
                    "items": { "type": "string", "minLength": 1 },
                    "minItems": 1,
                    "maxItems": MAX_PATHS,
                    "description": "Files or directories, relative to the root of the project.",
                },
            },
            "required": ["message", "paths"],
            "additionalProperties": false,
        }),
        roles: BTreeMap::from([
            ("message".to_owned(), ArgumentRole::Payload),
            ("paths".to_owned(), ArgumentRole::Path),
        ]),
        minimum: Contract {
            required_level: Rung::L3,
            blast_radius: BlastRadius::Project,
            reversibility: Reversibility::Compensable,
            scope,
            data_sensitivity: DataSensitivity::Private,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::WriteLocal,
            permissions: BTreeSet::from([
                Permission::ReadFiles,
                Permission::WriteFiles,
                Permission::RunPrograms,
            ]),
        },
    }
}
