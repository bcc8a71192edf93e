//! `lodestar confirm plan`: which channel is in use, and what it may do. It looks and changes nothing.

use std::io::Write as _;

use clap::Args;
use lodestar_guard::config::Backend;
use lodestar_guard::confirmations::DropFolder;
use lodestar_policy::confirmation::{ENVELOPE_NAME, Mode, Operation};
use serde_json::{Value, json};

use crate::cli::App;
use crate::configured::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::{inert, words};

const AFTER_HELP: &str = "\
No channel ever dispatches a call: at most it records what an operator decided, and lets the
session that holds the act spend it once.

Examples:
  lodestar confirm plan
  lodestar confirm plan --config lodestar.toml --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// A way by which confirmations come: its name, what it is, and whether it is the one in use.
const CHANNELS: [(&str, &str, bool); 3] = [
    (
        "guard-owned-dialog",
        "`lodestar confirm`, into the drop folder",
        true,
    ),
    (
        "wrapper-signal",
        "a signal of the program around the agent",
        false,
    ),
    ("upstream-event", "an event of the agent's own host", false),
];

pub(super) fn run(args: &PlanArgs, app: &mut App) -> Result<Exit, Failure> {
    let configured = super::configured(&args.config, app)?;
    let config = &configured.config;
    let confirmations = &config.confirmations;
    let operations: &[Operation] = match confirmations.mode {
        Mode::ReportOnly => &[Operation::RecordDecision],
        Mode::Enforce => &[Operation::RecordDecision, Operation::ConsumeEnvelope],
    };
    let ledger = match config.persistence.backend {
        Backend::Memory => "memory, for one session",
        Backend::Sqlite => "SQLite, .lodestar/state.db",
        Backend::Postgres => "PostgreSQL",
    };
    let folder = DropFolder::of(config).path();
    let keys = confirmations.keys.keys();
    if app.json {
        let channels = CHANNELS.iter().map(|(name, what, in_use)| {
            let may: &[Operation] = if *in_use { operations } else { &[] };
            json!({"name": name, "what": what, "in_use": in_use, "may": may, "may_dispatch": false})
        });
        let keys = keys.iter().map(|key| {
            json!({
                "key_id": key.public_key.key_id(),
                "origins": key.origins,
                "operators": key.operators,
                "revoked_at": key.revoked_at,
            })
        });
        app.out.json(&json!({
            "config": configured.file.to_string_lossy(),
            "mode": confirmations.mode,
            "envelope": ENVELOPE_NAME,
            "channel": CHANNELS[0].0,
            "channels": channels.collect::<Vec<_>>(),
            "operations": operations,
            "may_dispatch": false,
            "keys": keys.collect::<Vec<Value>>(),
            "drop_folder": folder.to_string_lossy(),
            "ledger": ledger,
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let mode = match confirmations.mode {
        Mode::ReportOnly => "report-only: a match is recorded and grants nothing",
        Mode::Enforce => "enforce: a match is spent and counts as one approval",
    };
    writeln!(app.out, "{}  {mode}", paint.dim("mode   "))?;
    for (name, what, in_use) in CHANNELS {
        let state = if in_use { "in use" } else { "not in use" };
        writeln!(app.out, "{}  {name}: {state}; {what}", paint.dim("channel"))?;
    }
    writeln!(
        app.out,
        "{}  {}",
        paint.dim("folder "),
        inert::path(&folder)
    )?;
    writeln!(app.out, "{}  {ledger}", paint.dim("ledger "))?;
    for key in keys {
        let line = format!(
            "{} for {}, {}",
            key.public_key.key_id(),
            super::listed(&key.operators),
            super::listed(&key.origins)
        );
        writeln!(
            app.out,
            "{}  {}",
            paint.dim("key    "),
            inert::line(&line, 400)
        )?;
    }
    let count = words::count(keys.len() as u64, "key");
    writeln!(
        app.out,
        "{}",
        paint.dim(format!("{count}; nothing here runs a call"))
    )?;
    Ok(Exit::Done)
}
