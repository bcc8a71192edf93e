//! Which tools in the box are to be there, and how each is set up: one table per tool.

use std::path::{Path, PathBuf};

use lodestar_kernel::native::fs::FsConfig;
use lodestar_kernel::native::git::{Credentials, GitCommitConfig, GitConfig, GitPushConfig};
use lodestar_kernel::native::http::{FetchConfig, RequestConfig};
use lodestar_kernel::native::message::{ChannelConfig, MessageConfig};
use lodestar_kernel::native::net::NetworkConfig;
use lodestar_kernel::native::nostr::NostrConfig;
use lodestar_kernel::native::shell::ShellConfig;
use serde::Deserialize;

/// The tools in the box. One that has no table is not there.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// Reads a file.
    #[serde(rename = "fs.read")]
    pub fs_read: Option<FsConfig>,
    /// Writes a file.
    #[serde(rename = "fs.write")]
    pub fs_write: Option<FsConfig>,
    /// Runs a program of a list.
    #[serde(rename = "shell.run")]
    pub shell_run: Option<ShellConfig>,
    /// Where the repository stands.
    #[serde(rename = "git.status")]
    pub git_status: Option<GitConfig>,
    /// Commits.
    #[serde(rename = "git.commit")]
    pub git_commit: Option<GitCommitConfig>,
    /// Pushes.
    #[serde(rename = "git.push")]
    pub git_push: Option<GitPushConfig>,
    /// Any request to a pinned host.
    #[serde(rename = "http.request")]
    pub http_request: Option<RequestConfig>,
    /// Fetches from a pinned place.
    #[serde(rename = "http.fetch")]
    pub http_fetch: Option<FetchConfig>,
    /// Sends a message.
    #[serde(rename = "message.send")]
    pub message_send: Option<MessageConfig>,
    /// Publishes a Nostr event.
    #[serde(rename = "nostr.publish")]
    pub nostr_publish: Option<NostrConfig>,
}

impl Tools {
    /// Relative roots start from the configuration's folder, not from wherever the process is.
    pub(super) fn start_from(&mut self, folder: &Path) {
        let roots = [
            self.fs_read.as_mut().map(|fs| &mut fs.root),
            self.fs_write.as_mut().map(|fs| &mut fs.root),
            self.shell_run.as_mut().map(|shell| &mut shell.root),
            self.git_status.as_mut().map(|git| &mut git.root),
            self.git_commit.as_mut().map(|git| &mut git.repository.root),
            self.git_push.as_mut().map(|git| &mut git.repository.root),
        ];
        for root in roots.into_iter().flatten() {
            *root = folder.join(&*root);
        }
        for file in self.files_mut().into_iter().flatten() {
            *file = folder.join(&*file);
        }
    }

    /// The roots of the tools that have one, by tool.
    pub(crate) fn roots(&self) -> Vec<(&'static str, &Path)> {
        let roots = [
            ("fs.read", self.fs_read.as_ref().map(|fs| &fs.root)),
            ("fs.write", self.fs_write.as_ref().map(|fs| &fs.root)),
            (
                "shell.run",
                self.shell_run.as_ref().map(|shell| &shell.root),
            ),
            ("git.status", self.git_status.as_ref().map(|git| &git.root)),
            (
                "git.commit",
                self.git_commit.as_ref().map(|git| &git.repository.root),
            ),
            (
                "git.push",
                self.git_push.as_ref().map(|git| &git.repository.root),
            ),
        ];
        let roots = roots.into_iter();
        roots
            .filter_map(|(tool, root)| Some((tool, root?.as_path())))
            .collect()
    }

    /// Every file with a secret or a certificate that the tables name.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut own = self.clone();
        let files = own.files_mut().into_iter().flatten();
        files.map(|file| file.clone()).collect()
    }

    fn files_mut(&mut self) -> Vec<Option<&mut PathBuf>> {
        fn certificates(network: &mut NetworkConfig) -> Option<&mut PathBuf> {
            network.ca_file.as_mut()
        }
        let mut files = Vec::new();
        if let Some(http) = &mut self.http_request {
            files.push(certificates(&mut http.network));
            files.extend(
                http.hosts
                    .iter_mut()
                    .map(|host| host.credential_file.as_mut()),
            );
        }
        if let Some(http) = &mut self.http_fetch {
            files.push(certificates(&mut http.network));
            let hosts = http.fetch_allow.iter_mut();
            files.extend(hosts.map(|host| host.credential_file.as_mut()));
        }
        if let Some(message) = &mut self.message_send {
            files.push(certificates(&mut message.network));
            match &mut message.channel {
                ChannelConfig::Email(email) => files.push(email.credential_file.as_mut()),
                ChannelConfig::Webhook(hooks) => {
                    files.extend(hooks.hooks.iter_mut().map(|hook| hook.url_file.as_mut()));
                }
            }
        }
        if let Some(nostr) = &mut self.nostr_publish {
            files.push(certificates(&mut nostr.network));
            files.push(nostr.credential_file.as_mut());
        }
        if let Some(Some(Credentials::SshKey { key, known_hosts })) =
            self.git_push.as_mut().map(|git| &mut git.credentials)
        {
            files.extend([Some(key), Some(known_hosts)]);
        }
        files
    }
}
