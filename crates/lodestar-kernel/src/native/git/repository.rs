//! A repository, as preconditions and cards look at it.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lodestar_core::digest::{Digest, sha256};
use lodestar_core::name::Excerpt;

use super::command::{Answer, Git, Order, words};
use super::config::{GitConfig, GitError};
use super::private::{Layout, PrivateDir, small_file};
use super::settings::entries;
use crate::native::fs::{Links, Reins, Root, shown};

/// What [`Repository::head`] says where there is no commit yet.
pub const UNBORN: &str = "unborn";

/// Longest that one question may take; a repository that needs more is not asked about at each
/// call.
const QUESTION_TIME: Duration = Duration::from_secs(20);

/// Longest name of a revision, branch or remote.
const MAX_NAME: usize = 255;

/// A repository whose configuration is read as data and never obeyed. Every answer blocks.
#[derive(Debug)]
pub struct Repository {
    pub(crate) git: Git,
    pub(crate) root: Root,
    config: GitConfig,
}

impl Repository {
    /// The repository whose working tree is this directory, by the system's `git`.
    pub fn open(root: &Path) -> Result<Self, GitError> {
        Self::with(GitConfig::new(root))
    }

    /// The repository that a configuration names.
    pub fn with(config: GitConfig) -> Result<Self, GitError> {
        let repository = Self {
            git: Git::pin(config.git.as_deref())?,
            root: Root::open(&config.root, Links::Refuse)?,
            config,
        };
        repository.layout()?;
        Ok(repository)
    }

    /// The commit that is checked out, in hexadecimal, or [`UNBORN`].
    pub fn head(&self) -> Result<String, GitError> {
        self.desk(&limit())?.head()
    }

    /// Whether nothing differs from that commit, and nothing lies around that is not ignored.
    pub fn is_clean(&self) -> Result<bool, GitError> {
        Ok(self.desk(&limit())?.changes()?.is_empty())
    }

    /// SHA-256 over what differs, path by path, with the states and the staged content; the same
    /// for every clean tree. Two contents of one changed, unstaged file are not told apart.
    pub fn status_digest(&self) -> Result<Digest, GitError> {
        Ok(sha256(&self.desk(&limit())?.changes()?))
    }

    /// Where a push to the remote would go under the repository's own configuration, with
    /// `pushurl`, `insteadOf` and `include` counted in; several addresses stand on lines of their
    /// own. None if there is no such remote.
    pub fn remote_url(&self, remote: &str) -> Result<Option<String>, GitError> {
        check_name("remote", remote)?;
        self.desk(&limit())?.remote_url(remote)
    }

    pub(crate) fn layout(&self) -> Result<Layout, GitError> {
        Layout::find(self.root.path(), self.config.git_dir.as_deref())
    }

    /// A place to work at the repository as it is now.
    pub(crate) fn desk(&self, reins: &Reins) -> Result<Desk<'_>, GitError> {
        let private = PrivateDir::around(self.layout()?, &self.git, &self.root, reins)?;
        let directory = self.root.open_directory(&self.root.top());
        Ok(Desk {
            repository: self,
            private,
            directory: directory.map_err(|errno| GitError::Io {
                path: shown(self.root.path()),
                source: errno.into(),
            })?,
            reins: reins.clone(),
        })
    }
}

pub(crate) fn limit() -> Reins {
    Reins::until(Instant::now() + QUESTION_TIME)
}

/// Refuses what git could take for an option or for several words.
pub(crate) fn check_name(kind: &'static str, name: &str) -> Result<(), GitError> {
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > MAX_NAME || name.starts_with('-') || name.contains(odd) {
        return Err(GitError::Name {
            kind,
            name: Excerpt::of(name),
        });
    }
    Ok(())
}

/// One private directory around a repository, and commands in it.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) private: PrivateDir,
    pub(crate) directory: OwnedFd,
    pub(crate) reins: Reins,
}

impl Desk<'_> {
    /// Runs a command and takes any answer.
    pub(crate) fn ask(
        &self,
        name: &'static str,
        arguments: Vec<OsString>,
        environment: &[(OsString, OsString)],
        input: Option<&[u8]>,
    ) -> Result<Answer, GitError> {
        let mut all = self.private.environment(self.repository.root.path());
        all.extend_from_slice(environment);
        let mut words = vec![OsString::from(name)];
        words.extend(arguments);
        let order = Order {
            name,
            arguments: words,
            environment: all,
            directory: &self.directory,
            input,
            confines: self.private.confines(self.repository.root.path(), &[]),
        };
        self.repository.git.run(&order, &self.reins)
    }

    /// Runs a command that has to succeed.
    pub(crate) fn tell<'w>(
        &self,
        name: &'static str,
        arguments: impl IntoIterator<Item = &'w str>,
    ) -> Result<Vec<u8>, GitError> {
        self.ask(name, words(arguments), &[], None)?.success(name)
    }

    pub(crate) fn head(&self) -> Result<String, GitError> {
        Ok(self.commit_of("HEAD")?.unwrap_or_else(|| UNBORN.to_owned()))
    }

    /// The commit that a revision names, if there is one.
    pub(crate) fn commit_of(&self, revision: &str) -> Result<Option<String>, GitError> {
        check_name("revision", revision)?;
        let peeled = format!("{revision}^{{commit}}");
        let arguments = ["--verify", "--quiet", "--end-of-options", &peeled];
        let answer = self.ask("rev-parse", words(arguments), &[], None)?;
        if answer.code == Some(1) {
            return Ok(None);
        }
        let hex = String::from_utf8_lossy(&answer.success("rev-parse")?)
            .trim()
            .to_owned();
        Ok(Some(hex))
    }

    fn changes(&self) -> Result<Vec<u8>, GitError> {
        self.tell(
            "status",
            [
                "--porcelain=v2",
                "-z",
                "--untracked-files=all",
                // Anything deeper would run git under the submodule's own configuration.
                "--ignore-submodules=dirty",
                "--no-renames",
            ],
        )
    }

    fn remote_url(&self, remote: &str) -> Result<Option<String>, GitError> {
        let prefix = format!("remote.{remote}.");
        let mut vcs = None;
        let mut relevant = Vec::new();
        for (key, value) in self.own_entries()? {
            let is_url =
                key.starts_with(&prefix) && (key.ends_with(".url") || key.ends_with(".pushurl"));
            let is_rewrite = key.starts_with("url.")
                && (key.ends_with(".insteadof") || key.ends_with(".pushinsteadof"));
            if key == format!("{prefix}vcs") {
                vcs = Some(value);
            } else if is_url || is_rewrite {
                relevant.push((key, value));
            }
        }
        self.private.configure(&relevant)?;
        let arguments = words(["get-url", "--push", "--all", "--", remote]);
        let answer = self.ask("remote", arguments, &[], None)?;
        // What git says of a remote that it does not know.
        if answer.code == Some(2) {
            return Ok(None);
        }
        let urls = answer.success("remote")?;
        let urls = String::from_utf8_lossy(&urls).trim_end().to_owned();
        Ok(Some(match vcs {
            Some(vcs) => format!("{vcs}::{urls}"),
            None => urls,
        }))
    }

    /// The repository's own configuration with what it includes, as data.
    fn own_entries(&self) -> Result<Vec<(String, String)>, GitError> {
        let read = |path: PathBuf| {
            // Looked at before git opens it, which follows what it includes.
            small_file(&path)?;
            let mut source = words(["--includes", "--file"]);
            source.push(path.into_os_string());
            let (git, root) = (&self.repository.git, &self.repository.root);
            entries(git, root, source, None, &self.reins)
        };
        let layout = &self.private.layout;
        let mut all = layout.shared_configuration().map_or(Ok(Vec::new()), read)?;
        let split = all
            .iter()
            .any(|(key, value)| key == "extensions.worktreeconfig" && value == "true");
        if let (true, Some(path)) = (split, layout.own_configuration()) {
            all.extend(read(path)?);
        }
        Ok(all)
    }
}
