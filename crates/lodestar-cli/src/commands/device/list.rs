//! `lodestar device list`

use std::io::Write as _;

use clap::Args;
use lodestar_core::device::DeviceLevel;

use super::devices;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{GatewayArgs, wait};
use crate::words;

const AFTER_HELP: &str = "\
Examples:
  lodestar device list
  lodestar device list --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &ListArgs, app: &mut App) -> Result<Exit, Failure> {
    let client = args.gateway.owner()?;
    let found = wait(devices(&client))??;
    if app.json {
        for device in &found {
            app.out.json(device)?;
        }
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    for device in &found {
        let level = format!("{:<9}", device.level.as_str());
        let level = match device.level {
            DeviceLevel::Trusted => paint.good(level),
            DeviceLevel::Unhealthy | DeviceLevel::Revoked | DeviceLevel::Blocked => {
                paint.bad(level)
            }
            DeviceLevel::Approved => level,
            DeviceLevel::Pending | DeviceLevel::Offline => paint.warn(level),
        };
        let heard = match device.last_heartbeat {
            Some(at) => format!("heard of {} UTC", words::seconds(at)),
            None => "never heard of".to_owned(),
        };
        let paused = if device.paused { ", paused" } else { "" };
        writeln!(
            app.out,
            "{}  {level}  {:<20}  {heard}{paused}",
            device.id,
            device.name.as_str()
        )?;
    }
    if found.is_empty() {
        app.note("the account has no device; `lodestar device enroll` makes a machine one");
    }
    Ok(Exit::Done)
}
