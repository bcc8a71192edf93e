mod commit;
mod hostile;
mod push;
mod repository;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output as Ran};

use lodestar_core::chain::ContentBlock;
use lodestar_core::scope::Scope;
use serde_json::{Value, json};

use super::*;
use crate::native::fs::tests::run;
use crate::tool::{Output, ToolError};

/// A repository with one commit, a bare one to push to, and a place where canaries land.
pub(super) struct World {
    whole: tempfile::TempDir,
    pub(super) root: PathBuf,
}

impl World {
    pub(super) fn new() -> Self {
        let whole = tempfile::tempdir().unwrap();
        let world = Self {
            root: whole.path().canonicalize().unwrap().join("work"),
            whole,
        };
        fs::create_dir(&world.root).unwrap();
        fs::create_dir(world.at("canaries")).unwrap();
        world.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
        world.git(&["init", "-q", "--bare", "-b", "main", "../elsewhere.git"]);
        world.git(&["init", "-q", "-b", "main"]);
        world.write("a.txt", "one\n");
        world.git(&["add", "-A"]);
        world.git(&["commit", "-q", "-m", "first"]);
        world
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.whole.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs git as a person would, under the repository's configuration; says how it went.
    pub(super) fn plain(&self, arguments: &[&str]) -> Ran {
        // A canary can stand where git waits for a conversation.
        Command::new("timeout")
            .args(["--kill-after=1", "2", "git"])
            .args(arguments)
            .current_dir(&self.root)
            .env_clear()
            .envs([
                ("PATH", "/usr/local/bin:/usr/bin:/bin"),
                ("HOME", "/nonexistent"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_AUTHOR_NAME", "Test"),
                ("GIT_AUTHOR_EMAIL", "test@example.org"),
                ("GIT_COMMITTER_NAME", "Test"),
                ("GIT_COMMITTER_EMAIL", "test@example.org"),
                ("GIT_TERMINAL_PROMPT", "0"),
            ])
            .output()
            .unwrap()
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let ran = self.plain(arguments);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// A program that leaves a file behind when somebody runs it.
    pub(super) fn canary(&self, name: &str) -> String {
        let script = self.at(&format!("canary-{name}"));
        let mark = self.at("canaries").join(name);
        fs::write(
            &script,
            format!("#!/bin/sh\n: > '{}'\ncat\n", mark.display()),
        )
        .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        script.to_str().unwrap().to_owned()
    }

    /// The canaries that somebody ran, since the last time.
    pub(super) fn sung(&self) -> Vec<String> {
        let names = crate::native::fs::tests::names(&self.at("canaries"));
        for name in &names {
            fs::remove_file(self.at("canaries").join(name)).unwrap();
        }
        names
    }

    pub(super) fn config(&self) -> GitConfig {
        GitConfig::new(&self.root)
    }

    pub(super) fn repository(&self) -> Repository {
        Repository::open(&self.root).unwrap()
    }

    pub(super) fn status(&self) -> Result<Output, ToolError> {
        let tool = GitStatus::new(self.config(), Scope::default()).unwrap();
        run(&tool, json!({}))
    }

    pub(super) fn commit(&self, arguments: Value) -> Result<Output, ToolError> {
        let author = Person {
            name: "Agent Smith".to_owned(),
            email: "agent@example.org".to_owned(),
        };
        let config = GitCommitConfig {
            repository: self.config(),
            author,
        };
        run(
            &GitCommit::new(config, Scope::default()).unwrap(),
            arguments,
        )
    }

    pub(super) fn commit_all(&self) -> Result<Output, ToolError> {
        self.commit(json!({ "message": "second", "paths": ["."] }))
    }

    pub(super) fn push_config(&self) -> GitPushConfig {
        GitPushConfig {
            repository: self.config(),
            url: format!("file://{}", self.at("remote.git").display()),
            refs: vec![PinnedRef {
                branch: "main".to_owned(),
                to: "refs/heads/main".to_owned(),
                update: Update::FastForward,
            }],
            credentials: None,
            protocols: vec![Protocol::File],
        }
    }

    pub(super) fn push(&self) -> Result<Output, ToolError> {
        let tool = GitPush::new(self.push_config(), Scope::default()).unwrap();
        run(&tool, json!({}))
    }

    pub(super) fn remote_head(&self, name: &str) -> Option<String> {
        let git_dir = self.at(name);
        let ran = self.plain(&[
            "--git-dir",
            git_dir.to_str().unwrap(),
            "rev-parse",
            "-q",
            "--verify",
            "refs/heads/main",
        ]);
        let said = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        ran.status.success().then_some(said)
    }
}

pub(super) fn value(output: &Output) -> &Value {
    match output.content.as_slice() {
        [ContentBlock::Structured { value }] => value,
        other => panic!("{other:?}"),
    }
}

pub(super) fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
