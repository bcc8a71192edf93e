//! The session as a run of a gateway: `[run]`.

use std::path::{Path, PathBuf};

use lodestar_core::id::{ContenderId, RunnerId, TermsId};
use lodestar_kernel::native::http::client::{InTheClear, ServiceUrl, ServiceUrlError};
use serde::Deserialize;
use thiserror::Error;

/// A gateway that the session is registered at as a run, and attested to when it is over.
///
/// Where the device's keys and token are, and which certificates its gateway has, is not said here: a project's file
/// is anybody's who writes to the project, and would send them anywhere.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct Run {
    /// Where the gateway is; what it is asked lies below, at `v1/…`.
    pub gateway: ServiceUrl,
    /// The runner that makes the run.
    pub runner: RunnerId,
    /// The agent in whose name it is made.
    pub agent: ContenderId,
    /// The terms that it is judged by.
    pub terms: TermsId,
    /// The workflow that it follows.
    pub workflow_file: Option<PathBuf>,
    /// The task that it was given.
    pub task_file: Option<PathBuf>,
    /// The prompts that it was given, in their order.
    pub prompt_files: Vec<PathBuf>,
}

/// As it stands in a configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    gateway: String,
    #[serde(default)]
    allow_loopback_http: bool,
    runner: RunnerId,
    agent: ContenderId,
    terms: TermsId,
    workflow_file: Option<PathBuf>,
    task_file: Option<PathBuf>,
    #[serde(default)]
    prompt_files: Vec<PathBuf>,
}

/// Why a table configures no run.
#[derive(Debug, Error)]
#[error("`gateway`: {0}")]
struct BadRun(#[from] ServiceUrlError);

impl TryFrom<Written> for Run {
    type Error = BadRun;

    fn try_from(written: Written) -> Result<Self, BadRun> {
        let in_the_clear = match written.allow_loopback_http {
            true => InTheClear::OnLoopback,
            false => InTheClear::Never,
        };
        Ok(Self {
            gateway: ServiceUrl::parse(&written.gateway, in_the_clear)?,
            runner: written.runner,
            agent: written.agent,
            terms: written.terms,
            workflow_file: written.workflow_file,
            task_file: written.task_file,
            prompt_files: written.prompt_files,
        })
    }
}

impl Run {
    /// Relative paths start from the project's root.
    pub(super) fn start_from(&mut self, root: &Path) {
        let single = [&mut self.workflow_file, &mut self.task_file];
        let single = single.into_iter().flatten();
        for path in single.chain(&mut self.prompt_files) {
            *path = root.join(&*path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const RUN: &str = r#"
project_id = "web"
actor_id = "coder"

[run]
gateway = "https://gateway.example"
runner = "rnr_01900000-0000-7000-8000-000000000001"
agent = "agt_01900000-0000-7000-8000-000000000002"
terms = "trm_01900000-0000-7000-8000-000000000003"
"#;

    #[test]
    fn paths_start_from_the_root_and_no_project_says_whose_keys_sign() {
        for named in ["device_dir", "ca_file"] {
            let text = format!("{RUN}{named} = 'here'\n");
            let refused = Config::parse(&text, "/").unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
        let text = format!("{RUN}workflow_file = 'flow.json'\nprompt_files = ['a.md', '/b.md']\n");
        let config = Config::parse(&text, "/nonexistent/web").unwrap();
        let run = config.run.as_ref().unwrap();
        let root = Path::new("/nonexistent/web");
        assert_eq!(run.workflow_file, Some(root.join("flow.json")));
        assert_eq!(
            run.prompt_files,
            [root.join("a.md"), PathBuf::from("/b.md")]
        );
        assert!(!config.files().contains(&root.join("a.md")));
    }

    #[test]
    fn a_gateway_is_not_spoken_to_in_the_clear_unless_it_is_here_and_that_is_said() {
        let problem = |text: &str| Config::parse(text, "/").unwrap_err().to_string();
        let clear = RUN.replace("https://gateway.example", "http://gateway.example");
        assert!(problem(&clear).contains("`gateway`"));
        let here = RUN.replace("https://gateway.example", "http://127.0.0.1:7070");
        assert!(problem(&here).contains("`gateway`"));
        let said = format!("{here}allow_loopback_http = true\n");
        assert!(Config::parse(&said, "/").unwrap().run.is_some());
        assert!(problem(&format!("{RUN}token = 'x'\n")).contains("token"));
        assert!(problem(&RUN.replace("rnr_", "dev_")).contains("rnr_"));
    }
}
