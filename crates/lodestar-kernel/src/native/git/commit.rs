//! `git.commit`.

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

    fn root(&self) -> Option<&Path> {
        Some(self.work.repository.root.path())
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
    /// Makes the commit beside the real index, then moves the branch in one step: until then
    /// nothing has changed. Git's own `commit` and `add` would look into submodules, under their
    /// configuration.
    fn commit(&self, message: &str, paths: &[Below], reins: &Reins) -> Result<Output, ToolError> {
        let desk = self.repository.desk(reins).map_err(unchanged)?;
        let branch = branch(&desk)?;
        let layout = &desk.private.layout;
        layout.check_branch(&branch).map_err(unchanged)?;
        let changed = changed_files(&desk, paths)?;
        refuse_filters(&desk, &changed)?;
        let parent = desk.commit_of("HEAD").map_err(unchanged)?;
        let tree = tree(&desk, parent.as_deref(), &changed).map_err(unchanged)?;
        let Some(tree) = tree else {
            return Err(nothing());
        };
        let commit = self
            .object(&desk, &tree, parent.as_deref(), message)
            .map_err(unchanged)?;
        reins.check()?;
        move_branch(&desk, &branch, &commit, parent.as_deref(), message)
            .map_err(perhaps_changed)?;
        take_up(&desk, &[], &changed).map_err(perhaps_changed)?;
        Ok(Output::structured(
            json!({ "commit": commit, "branch": branch }),
        ))
    }

    fn object(
        &self,
        desk: &Desk<'_>,
        tree: &str,
        parent: Option<&str>,
        message: &str,
    ) -> Result<String, GitError> {
        let mut arguments = vec!["--no-gpg-sign", tree];
        arguments.extend(parent.iter().flat_map(|parent| ["-p", parent]));
        let mut text = message.trim_end_matches('\n').to_owned();
        text.push('\n');
        let answer = desk.ask(
            "commit-tree",
            words(arguments),
            &self.author.environment(),
            Some(text.as_bytes()),
        )?;
        name_in(&answer.success("commit-tree")?)
    }
}

fn nothing() -> ToolError {
    ToolError::refused("nothing to commit: the paths are as in the last commit, or do not exist")
}

fn name_in(stdout: &[u8]) -> Result<String, GitError> {
    Ok(String::from_utf8_lossy(stdout).trim().to_owned())
}

/// The files below the paths that differ from the last commit, each ended by a NUL. Submodules
/// stay as they are.
fn changed_files(desk: &Desk<'_>, paths: &[Below]) -> Result<Vec<u8>, ToolError> {
    let mut arguments = words([
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=all",
        "--",
    ]);
    arguments.extend(paths.iter().map(|path| match path.is_root() {
        true => OsString::from("."),
        false => path.as_path().as_os_str().to_owned(),
    }));
    let listed = desk
        .ask("status", arguments, &[], None)
        .and_then(|answer| answer.success("status"))
        .map_err(unchanged)?;
    let mut changed = Vec::new();
    // Two letters and a blank, then the path.
    for entry in listed.split(|&byte| byte == 0).filter(|e| e.len() > 3) {
        let (state, path) = (&entry[..2], &entry[3..]);
        let shown = || Excerpt::of(&String::from_utf8_lossy(path));
        if state.contains(&b'U') || state == b"AA" || state == b"DD" {
            return Err(ToolError::refused(format!(
                "`{}` is in conflict; resolve it by hand first",
                shown()
            )));
        }
        if path.ends_with(b"/") {
            return Err(ToolError::refused(format!(
                "`{}` is a repository of its own; name the other paths, or add it by hand",
                shown()
            )));
        }
        changed.extend_from_slice(path);
        changed.push(0);
    }
    if changed.is_empty() {
        return Err(nothing());
    }
    Ok(changed)
}

/// Writes the files as they are now, or that they are gone, into an index.
fn take_up(
    desk: &Desk<'_>,
    index: &[(OsString, OsString)],
    changed: &[u8],
) -> Result<(), GitError> {
    let arguments = words(["-z", "--add", "--remove", "--replace", "--stdin"]);
    desk.ask("update-index", arguments, index, Some(changed))?
        .success("update-index")
        .map(|_| ())
}

/// The tree of the last commit with the changed files; none if it is the same.
fn tree(desk: &Desk<'_>, parent: Option<&str>, changed: &[u8]) -> Result<Option<String>, GitError> {
    let index = [variable(
        "GIT_INDEX_FILE",
        desk.private.path().join("commit-index"),
    )];
    if let Some(parent) = parent {
        desk.ask("read-tree", words([parent]), &index, None)?
            .success("read-tree")?;
    }
    take_up(desk, &index, changed)?;
    let written = desk.ask("write-tree", Vec::new(), &index, None)?;
    let tree = name_in(&written.success("write-tree")?)?;
    let Some(parent) = parent else {
        return Ok(Some(tree));
    };
    let before = format!("{parent}^{{tree}}");
    let before = name_in(&desk.tell("rev-parse", ["--verify", before.as_str()])?)?;
    Ok(Some(tree).filter(|tree| *tree != before))
}

/// Moves the branch from the parent to the commit, if it still is at the parent.
fn move_branch(
    desk: &Desk<'_>,
    branch: &str,
    commit: &str,
    parent: Option<&str>,
    message: &str,
) -> Result<(), GitError> {
    let reference = format!("refs/heads/{branch}");
    let reason = format!("commit: {}", message.lines().next().unwrap_or_default());
    // Zeros mean that there must be no such branch yet.
    let expected = parent.map_or_else(|| "0".repeat(commit.len()), str::to_owned);
    desk.tell("update-ref", ["-m", &reason, &reference, commit, &expected])
        .map(|_| ())
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
fn refuse_filters(desk: &Desk<'_>, changed: &[u8]) -> Result<(), ToolError> {
    let answer = desk.ask(
        "check-attr",
        words(["-z", "--stdin", "filter"]),
        &[],
        Some(changed),
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
                      do not run, and submodules stay as they are."
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
        declared: None,
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
