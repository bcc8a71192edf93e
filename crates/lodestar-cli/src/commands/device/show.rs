//! `lodestar device show`

use std::io::Write as _;

use clap::Args;
use lodestar_gateway::device::running;
use serde_json::json;

use super::{card, find};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, GatewayArgs, wait};
use crate::words;

const AFTER_HELP: &str = "\
Without a device, it is this machine: the gateway is asked with the device's own token, and what its
daemon last heard is shown beside it.

Examples:
  lodestar device show
  lodestar device show build-1";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ShowArgs {
    /// The device: its id or its name [default: this one]
    device: Option<String>,

    #[command(flatten)]
    dir: DeviceDirArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &ShowArgs, app: &mut App) -> Result<Exit, Failure> {
    let (device, own) = match &args.device {
        Some(named) => {
            let client = args.gateway.owner()?;
            (wait(find(&client, named))??, None)
        }
        None => {
            let folder = args.dir.folder()?;
            let (client, identity) = (folder.client()?, folder.identity()?);
            let own = (folder.state()?, running(&folder)?);
            (wait(client.device(identity.device))??, Some(own))
        }
    };
    if app.json {
        let daemon =
            own.map(|(state, pid)| json!({"running": pid.is_some(), "pid": pid, "state": state}));
        let mut shown = serde_json::to_value(&device).unwrap_or_default();
        if let Some(daemon) = daemon {
            shown["daemon"] = daemon;
        }
        app.out.json(&shown)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(app.out, "{}", paint.strong(&device.name))?;
    for (what, value) in card(&device) {
        writeln!(app.out, "  {} {value}", paint.dim(format!("{what:<9}")))?;
    }
    if let Some((state, pid)) = own {
        let runs = match pid {
            Some(pid) => format!("runs (process {pid})"),
            None => "does not run".to_owned(),
        };
        writeln!(
            app.out,
            "  {} {runs}",
            paint.dim(format!("{:<9}", "daemon"))
        )?;
        if let Some(stopped) = state.stopped {
            writeln!(
                app.out,
                "  {} {}",
                paint.dim(format!("{:<9}", "signing")),
                paint.warn(stopped)
            )?;
        }
        if let (Some(problem), heard) = (&state.problem, state.heard_at) {
            let since = heard.map(|at| format!(" since {} UTC", words::seconds(at)));
            let line = format!(
                "the gateway was not heard{}: {}",
                since.unwrap_or_default(),
                crate::inert::whole(problem)
            );
            writeln!(app.out, "  {}", paint.warn(line))?;
        }
    }
    Ok(Exit::Done)
}
