//! `git.status`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use lodestar_core::contract::{
    BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use serde_json::json;

use super::config::{GitConfig, GitError};
use super::repository::Repository;
use crate::native::fs::{Reins, blocking, only};
use crate::tool::{Call, Calling, Definition, Effect, NATIVE_SERVER, Output, Tool, ToolError};

/// `git.status`: the branch, and what differs from its last commit.
#[derive(Debug)]
pub struct GitStatus {
    repository: Arc<Repository>,
    definition: Definition,
}

impl GitStatus {
    /// The tool for a repository.
    pub fn new(config: GitConfig, scope: Scope) -> Result<Self, GitError> {
        Ok(Self {
            repository: Arc::new(Repository::with(config)?),
            definition: definition(scope),
        })
    }
}

impl Tool for GitStatus {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn root(&self) -> Option<&Path> {
        Some(self.repository.root.path())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            only(&call, &self.definition)?;
            let repository = Arc::clone(&self.repository);
            blocking(&call, move |reins| {
                status(&repository, reins).map_err(|error| error.tool_error(Effect::None))
            })
            .await
        })
    }
}

fn status(repository: &Repository, reins: &Reins) -> Result<Output, GitError> {
    let desk = repository.desk(reins)?;
    // Without `-z` git quotes odd names itself, so this is text, one entry on a line.
    let listed = desk.tell(
        "status",
        [
            "--porcelain=v1",
            "--branch",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
        ],
    )?;
    Ok(Output::text(String::from_utf8_lossy(&listed)))
}

fn definition(scope: Scope) -> Definition {
    Definition {
        name: ToolName::new("git.status").expect("a literal name is valid"),
        server: ServerIdentity::new(NATIVE_SERVER).expect("a literal name is valid"),
        description: "Says which branch is checked out and which files differ from its last \
                      commit, as `git status --porcelain --branch` does."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {},
            "additionalProperties": false,
        }),
        roles: BTreeMap::new(),
        declared: None,
        minimum: Contract {
            required_level: Rung::L0,
            blast_radius: BlastRadius::SelfOnly,
            reversibility: Reversibility::Reversible,
            scope,
            data_sensitivity: DataSensitivity::Private,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::Read,
            permissions: BTreeSet::from([Permission::ReadFiles, Permission::RunPrograms]),
        },
    }
}

/// What a call means that failed before it changed anything.
pub(super) fn unchanged(error: GitError) -> ToolError {
    error.tool_error(Effect::None)
}

/// What a call means that failed after it may have changed something.
pub(super) fn perhaps_changed(error: GitError) -> ToolError {
    error.tool_error(Effect::Unknown)
}
