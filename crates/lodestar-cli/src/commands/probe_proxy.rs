//! `lodestar probe-proxy`: the proxy with a defence taken out, to see that it is missed.
//!
//! It serves scratch projects of the demonstration and of probes, and nothing else: a project of another name
//! is refused, and so is one that has a session with all defences. Sessions that it opens say which they
//! lack, and count for nobody.

use std::path::PathBuf;

use clap::Args;
use lodestar_core::defence::Defence;
use lodestar_core::name::ProjectId;
use lodestar_guard::config::Config;
use lodestar_harness::world;
use lodestar_log::LogRoot;
use lodestar_mcp::Settings;
use lodestar_replay::Defences;

use super::demo;
use super::guard::{keys, serve};
use crate::failure::{Exit, Failure};

#[derive(Debug, Args)]
pub(crate) struct ProbeProxyArgs {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// What is taken out
    #[arg(long, value_name = "DEFENCE", value_parser = demo::defence, required = true)]
    without: Vec<Defence>,
}

pub(crate) fn run(args: &ProbeProxyArgs) -> Result<Exit, Failure> {
    let config = Config::read(&args.config)?;
    let is_scratch = [demo::PROJECT, world::PROJECT].contains(&config.project_id.as_str());
    if !is_scratch || has_whole_session(&config) {
        return Err(Failure::usage(
            "defences are taken out in scratch projects that `lodestar demo` and `lodestar harness` make, and in no other",
        ));
    }
    let settings = Settings {
        keys: keys(&config)?,
        config,
        ceiling: None,
        task: None,
        attendant: None,
        without: args.without.clone(),
    };
    serve(settings, None)
}

/// Whether a session is there that does not say that it lacks a defence, or cannot be read.
fn has_whole_session(config: &Config) -> bool {
    let root = config.path(&config.log_root);
    if !root.exists() {
        return false;
    }
    let lacks = |project: &ProjectId| -> Option<bool> {
        let log = LogRoot::at(&root).project(project);
        for session in log.sessions_on_disk().ok()? {
            let dir = log.session(&session);
            if !matches!(Defences::of(&dir).ok()?, Defences::Lacks(_)) {
                return Some(false);
            }
        }
        Some(true)
    };
    let projects = LogRoot::at(&root).projects();
    !projects.is_ok_and(|all| all.iter().all(|project| lacks(project) == Some(true)))
}
