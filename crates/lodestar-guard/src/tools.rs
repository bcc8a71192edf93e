//! The tools of a session, as configured.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use lodestar_core::defence::Defence;
use lodestar_core::scope::Scope;
use lodestar_kernel::contain::plan::leads_out_of;
use lodestar_kernel::native::fs::{FsRead, FsWrite, RESTORE};
use lodestar_kernel::native::git::{GitCommit, GitPush, GitStatus};
use lodestar_kernel::native::http::{HttpFetch, HttpRequest};
use lodestar_kernel::native::message::MessageSend;
use lodestar_kernel::native::net::resolve::{Resolver, SystemResolver};
use lodestar_kernel::native::nostr::NostrPublish;
use lodestar_kernel::native::shell::ShellRun;
use lodestar_kernel::registry::{RegisterError, Registry};
use lodestar_kernel::tool::Tool;

use crate::config::{Config, Tools};
use crate::session::{Given, OpenError};

/// The tools in the box that the configuration asks for, and one's own.
pub(crate) fn registry(
    config: &Config,
    scope: &Scope,
    own: &[Given],
    absent: &[String],
    without: &[Defence],
) -> Result<Registry, OpenError> {
    let mut registry = Registry::default().without(without);
    for (tool, root) in config.tools.roots() {
        stays(config.root(), root).map_err(|problem| unusable(tool, &problem))?;
    }
    for tool in native(&config.tools, scope)? {
        let grade = config.tool_defaults.get(tool.definition().name.as_str());
        let name = tool.definition().name.clone();
        registry
            .add_native(tool, grade)
            .map_err(|problem| misplaced(config, name.as_str(), problem))?;
    }
    for Given { tool, otherwise } in own {
        let name = &tool.definition().name;
        let grade = config.tool_defaults.get(name.as_str());
        let added = match otherwise {
            None => registry.add(Arc::clone(tool), grade, scope),
            Some(otherwise) => registry.add_graded(Arc::clone(tool), grade, otherwise, scope),
        };
        added.map_err(|problem| misplaced(config, name.as_str(), problem))?;
    }
    let is_absent = |name: &&String| {
        absent
            .iter()
            .any(|prefix| name.starts_with(prefix.as_str()))
    };
    // A person's undoing may be graded where an agent has no such tool, and the built-in tools of clients are there
    // when one of their conversations is.
    let is_restore = |name: &&String| name.as_str() == RESTORE;
    let elsewhere =
        |name: &&String| is_absent(name) || is_restore(name) || crate::hook::is_built_in(name);
    for name in config.tool_defaults.keys().filter(|name| !elsewhere(name)) {
        registry
            .check_grades([name])
            .map_err(|problem| misplaced(config, name, problem))?;
    }
    Ok(registry)
}

pub(crate) fn native(tools: &Tools, scope: &Scope) -> Result<Vec<Arc<dyn Tool>>, OpenError> {
    let tools = tools.clone();
    let resolver = || -> Arc<dyn Resolver> { Arc::new(SystemResolver) };
    let mut made: Vec<Arc<dyn Tool>> = Vec::new();
    macro_rules! make {
        ($name:literal, $config:expr, |$one:ident| $tool:expr) => {
            if let Some($one) = $config {
                made.push(Arc::new(
                    $tool.map_err(|problem| unusable($name, &problem))?,
                ));
            }
        };
    }
    make!("fs.read", tools.fs_read, |one| FsRead::new(
        one,
        scope.clone()
    ));
    make!("fs.write", tools.fs_write, |one| FsWrite::new(
        one,
        scope.clone()
    ));
    make!("shell.run", tools.shell_run, |one| ShellRun::new(
        one,
        scope.clone()
    ));
    make!("git.status", tools.git_status, |one| GitStatus::new(
        one,
        scope.clone()
    ));
    make!("git.commit", tools.git_commit, |one| GitCommit::new(
        one,
        scope.clone()
    ));
    make!("git.push", tools.git_push, |one| GitPush::new(
        one,
        scope.clone()
    ));
    make!("http.request", tools.http_request, |one| {
        HttpRequest::new(one, scope.clone(), resolver())
    });
    make!("http.fetch", tools.http_fetch, |one| {
        HttpFetch::new(one, scope.clone(), resolver())
    });
    make!("message.send", tools.message_send, |one| {
        MessageSend::new(one, scope.clone(), resolver())
    });
    make!("nostr.publish", tools.nostr_publish, |one| {
        NostrPublish::new(one, scope.clone(), resolver())
    });
    Ok(made)
}

fn misplaced(config: &Config, tool: &str, problem: RegisterError) -> OpenError {
    match problem {
        RegisterError::UnknownTool { .. } | RegisterError::UnknownArgument { .. } => {
            OpenError::Grade {
                place: config.place_of_grade(tool),
                problem,
            }
        }
        problem => problem.into(),
    }
}

/// A root in the project stays there: a program of the project can put a link in its place, which leads anywhere.
fn stays(project: &Path, root: &Path) -> Result<(), String> {
    let Ok(real) = root.canonicalize() else {
        // Where it is not there, its tool says so.
        return Ok(());
    };
    match leads_out_of(project, root, &real) {
        false => Ok(()),
        true => Err(format!(
            "its root `{}` leads to `{}` by a link that a program of the project can lay; name that place itself",
            root.display(),
            real.display()
        )),
    }
}

fn unusable(tool: &'static str, problem: &dyn fmt::Display) -> OpenError {
    OpenError::Tool {
        tool,
        problem: problem.to_string(),
    }
}
