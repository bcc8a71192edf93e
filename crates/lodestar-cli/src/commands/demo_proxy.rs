//! `lodestar demo-proxy`: the proxy with a defence taken out, to see that it is missed.
//!
//! It serves the demonstration's own scratch project and nothing else: a project that has a log already is
//! refused, and so is one of another name. Sessions that it opens say which defences they lack.

use std::path::PathBuf;

use clap::Args;
use lodestar_core::defence::Defence;
use lodestar_guard::config::Config;
use lodestar_mcp::Settings;

use super::demo;
use super::guard::{keys, serve};
use crate::failure::{Exit, Failure};

#[derive(Debug, Args)]
pub(crate) struct DemoProxyArgs {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// What is taken out
    #[arg(long, value_name = "DEFENCE", value_parser = demo::defence)]
    without: Vec<Defence>,
}

pub(crate) fn run(args: &DemoProxyArgs) -> Result<Exit, Failure> {
    let config = Config::read(&args.config)?;
    if config.project_id.as_str() != demo::PROJECT || config.path(&config.log_root).exists() {
        return Err(Failure::usage(
            "defences are taken out in a scratch project that `lodestar demo` makes, and in no other",
        ));
    }
    let settings = Settings {
        keys: keys(&config)?,
        config,
        ceiling: None,
        task: None,
        without: args.without.clone(),
    };
    serve(settings, None)
}
