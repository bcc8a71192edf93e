//! `lodestar device daemon`

use std::time::Duration;

use clap::Args;
use lodestar_core::id::RunnerId;
use lodestar_gateway::daemon::{Daemon, DaemonError, DaemonSettings};
use lodestar_gateway::service::Report;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, wait};
use crate::{commands, inert};

const AFTER_HELP: &str = "\
Every 30 seconds it signs that the device is there, with the runners that are bound to it. Every 3
seconds it asks whether the device has to stop signing: a kill switch or a pause is in force within
ten seconds, for heartbeats, runs and attestations alike. While the gateway is away it keeps trying,
and what it heard last holds. One daemon runs for a device; it ends on SIGTERM.

Examples:
  lodestar device daemon
  lodestar device daemon --runner rnr_0198c1d2-0000-7000-8000-000000000000";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DaemonArgs {
    /// A runner that is alive here [default: those that are bound to the device]. May be given
    /// several times
    #[arg(long = "runner", value_name = "RUNNER")]
    runners: Vec<RunnerId>,

    /// Seconds between heartbeats
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    heartbeat: u64,

    #[command(flatten)]
    dir: DeviceDirArgs,
}

pub(crate) fn run(args: &DaemonArgs, app: &mut App) -> Result<Exit, Failure> {
    let folder = args.dir.folder()?;
    let runners = match args.runners.is_empty() {
        true => None,
        false => Some(args.runners.iter().copied().collect()),
    };
    let json = app.json;
    let settings = DaemonSettings {
        heartbeat: Duration::from_secs(args.heartbeat),
        runners,
        report: Report::to(move |line| say(line, json)),
        ..DaemonSettings::default()
    };
    let daemon = Daemon::start(folder, settings).map_err(failure)?;
    say("the daemon runs", json);
    let done = wait(async { daemon.run(commands::told_to_end()?).await.map_err(failure) })?;
    done?;
    say("the daemon ends", json);
    Ok(Exit::Done)
}

/// Says what whoever runs it has to know, with the time.
fn say(line: &str, json: bool) {
    let at = commands::now();
    match json {
        true => eprintln!("{}", serde_json::json!({"at": at, "message": line})),
        false => eprintln!("{at} {}", inert::whole(line)),
    }
}

fn failure(problem: DaemonError) -> Failure {
    match problem {
        DaemonError::Lock(problem) => problem.into(),
        DaemonError::Device(problem) => problem.into(),
        DaemonError::Sign(problem) => problem.into(),
        DaemonError::Gone(_) => Failure::not_authorised(problem.to_string())
            .help("`lodestar device enroll` makes this machine another device, and sets this one's files aside"),
    }
}
