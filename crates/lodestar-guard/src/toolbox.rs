//! The tools in the box where no configuration says how they are set up.
//!
//! Each is made with the least setting it takes, so that its arguments and its minimum contract can be
//! looked at. Nothing here is ever called.

use std::collections::BTreeMap;
use std::path::Path;

use lodestar_core::scope::Scope;
use lodestar_kernel::native::fs::FsConfig;
use lodestar_kernel::native::git::{
    GitCommitConfig, GitConfig, GitPushConfig, Person, PinnedRef, Protocol, Update,
};
use lodestar_kernel::native::http::{FetchConfig, Method, RequestConfig};
use lodestar_kernel::native::message::{ChannelConfig, Hook, MessageConfig, WebhookConfig};
use lodestar_kernel::native::net::NetworkConfig;
use lodestar_kernel::native::shell::{ProgramConfig, ShellConfig};
use lodestar_kernel::registry::Registry;

use crate::config::Tools;
use crate::session::OpenError;
use crate::tools;

/// Bodies are not read here; any cap does.
const BYTES: usize = 1 << 20;

/// The tools in the box, as far as they can be made without a configuration.
#[derive(Debug)]
pub struct Toolbox {
    /// Those that could be made, under the grades that come with them.
    pub registry: Registry,
    /// Those that could not, and why.
    pub left_out: Vec<(&'static str, String)>,
}

/// The tools in the box for a folder, which the local ones are set up on.
pub fn in_the_box(folder: &Path) -> Toolbox {
    let mut made = Toolbox {
        registry: Registry::default(),
        left_out: Vec::new(),
    };
    for (name, settings) in settings(folder) {
        let tool = settings.and_then(|settings| make(&settings, &mut made.registry));
        if let Err(problem) = tool {
            made.left_out.push((name, problem));
        }
    }
    made
}

fn make(settings: &Tools, registry: &mut Registry) -> Result<(), String> {
    let made = tools::native(settings, &Scope::global()).map_err(|error| match error {
        OpenError::Tool { problem, .. } => problem,
        error => error.to_string(),
    })?;
    for tool in made {
        registry
            .add_native(tool, None)
            .map_err(|problem| problem.to_string())?;
    }
    Ok(())
}

fn settings(folder: &Path) -> Vec<(&'static str, Result<Tools, String>)> {
    let fs = FsConfig::new(folder);
    let git = GitConfig::new(folder);
    let none = Tools::default;
    vec![
        (
            "fs.read",
            Ok(Tools {
                fs_read: Some(fs.clone()),
                ..none()
            }),
        ),
        (
            "fs.write",
            Ok(Tools {
                fs_write: Some(fs),
                ..none()
            }),
        ),
        (
            "shell.run",
            Ok(Tools {
                shell_run: Some(shell(folder)),
                ..none()
            }),
        ),
        (
            "git.status",
            Ok(Tools {
                git_status: Some(git.clone()),
                ..none()
            }),
        ),
        (
            "git.commit",
            Ok(Tools {
                git_commit: Some(commit(git.clone())),
                ..none()
            }),
        ),
        (
            "git.push",
            Ok(Tools {
                git_push: Some(push(git)),
                ..none()
            }),
        ),
        (
            "http.request",
            Ok(Tools {
                http_request: Some(request()),
                ..none()
            }),
        ),
        (
            "http.fetch",
            Ok(Tools {
                http_fetch: Some(fetch()),
                ..none()
            }),
        ),
        (
            "message.send",
            Ok(Tools {
                message_send: Some(message()),
                ..none()
            }),
        ),
        (
            "nostr.publish",
            Err("it signs with a key, and only a configuration names one".to_owned()),
        ),
    ]
}

/// It takes a program that is there; every system has this one.
fn shell(folder: &Path) -> ShellConfig {
    let program = ProgramConfig::new("/bin/sh");
    ShellConfig::new(folder, BTreeMap::from([("sh".to_owned(), program)]))
}

fn commit(repository: GitConfig) -> GitCommitConfig {
    GitCommitConfig {
        repository,
        author: Person {
            name: "nobody".to_owned(),
            email: "nobody@example.invalid".to_owned(),
        },
    }
}

fn push(repository: GitConfig) -> GitPushConfig {
    GitPushConfig {
        repository,
        url: "https://example.invalid/repository.git".to_owned(),
        refs: vec![PinnedRef {
            branch: "main".to_owned(),
            to: "refs/heads/main".to_owned(),
            update: Update::default(),
        }],
        credentials: None,
        protocols: vec![Protocol::Https],
    }
}

fn request() -> RequestConfig {
    RequestConfig {
        hosts: Vec::new(),
        methods: Method::ALL.to_vec(),
        network: NetworkConfig::default(),
        max_request_bytes: BYTES,
        max_response_bytes: BYTES,
    }
}

fn fetch() -> FetchConfig {
    FetchConfig {
        fetch_allow: Vec::new(),
        network: NetworkConfig::default(),
        max_response_bytes: BYTES,
    }
}

fn message() -> MessageConfig {
    let hook = Hook {
        name: "nobody".to_owned(),
        url: Some("https://example.invalid/hook".to_owned()),
        url_env: None,
        url_file: None,
    };
    MessageConfig {
        channel: ChannelConfig::Webhook(WebhookConfig { hooks: vec![hook] }),
        network: NetworkConfig::default(),
        max_body_bytes: BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_configuration_is_there_and_the_rest_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let made = in_the_box(folder.path());
        let names: Vec<_> = made
            .registry
            .iter()
            .map(|e| e.definition().name.as_str().to_owned())
            .collect();
        let left_out: Vec<_> = made.left_out.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            [
                "fs.read",
                "fs.write",
                "http.fetch",
                "http.request",
                "message.send",
                "shell.run"
            ]
        );
        assert_eq!(
            left_out,
            ["git.status", "git.commit", "git.push", "nostr.publish"]
        );
    }
}
