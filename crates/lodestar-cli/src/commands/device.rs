//! `lodestar device`: machines that earn trust.

mod approve;
mod daemon;
mod enroll;
mod list;
mod orders;
mod rotate;
mod show;

pub(super) use rotate::public_key;

use clap::{Args, Subcommand};
use lodestar_core::id::DeviceId;
use lodestar_gateway::client::GatewayClient;
use lodestar_gateway::wire;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::all;
use crate::{inert, words};

const AFTER_HELP: &str = "\
A device is enrolled and watched by commands on that machine; its owner approves, pauses, revokes and
binds it from another, with the owner's key. A device is named by its id or by its name.

Examples:
  lodestar device enroll build-1 --gateway https://gateway.example --token-file enrol.token
  lodestar device approve build-1
  lodestar device daemon
  lodestar device list
  lodestar device revoke build-1 --reason \"sold\"";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DeviceArgs {
    #[command(subcommand)]
    command: DeviceCommand,
}

#[derive(Debug, Subcommand)]
enum DeviceCommand {
    /// Make this machine a device of an account
    Enroll(enroll::EnrollArgs),
    /// Say as the owner that a device, with these keys, is one of yours
    Approve(approve::ApproveArgs),
    /// List the account's devices
    List(list::ListArgs),
    /// Show one device, or this one
    Show(show::ShowArgs),
    /// Stop a device's signing, as the owner
    Pause(orders::PauseArgs),
    /// Let a paused device sign again, as the owner
    Resume(orders::ResumeArgs),
    /// Give a device up for good, as the owner
    Revoke(orders::RevokeArgs),
    /// Replace a device's key
    Rotate(rotate::RotateArgs),
    /// Say that this device is there, and hear what it has to obey
    Daemon(daemon::DaemonArgs),
}

pub(crate) fn run(args: &DeviceArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        DeviceCommand::Enroll(args) => enroll::run(args, app),
        DeviceCommand::Approve(args) => approve::run(args, app),
        DeviceCommand::List(args) => list::run(args, app),
        DeviceCommand::Show(args) => show::run(args, app),
        DeviceCommand::Pause(args) => orders::pause(args, app),
        DeviceCommand::Resume(args) => orders::resume(args, app),
        DeviceCommand::Revoke(args) => orders::revoke(args, app),
        DeviceCommand::Rotate(args) => rotate::run(args, app),
        DeviceCommand::Daemon(args) => daemon::run(args, app),
    }
}

/// All devices of an account.
pub(super) async fn devices(client: &GatewayClient) -> Result<Vec<wire::Device>, Failure> {
    let found = all(|after| client.devices(after), |next| next.parse().ok());
    Ok(found.await?)
}

/// The device of this id or name.
pub(super) async fn find(client: &GatewayClient, named: &str) -> Result<wire::Device, Failure> {
    if let Ok(id) = named.parse::<DeviceId>() {
        return Ok(client.device(id).await?);
    }
    let mut found = devices(client).await?.into_iter();
    let found = found.find(|device| device.name.as_str() == named);
    found.ok_or_else(|| {
        Failure::not_found(format!(
            "the account has no device `{}`",
            inert::line(named, 60)
        ))
        .help("`lodestar device list` shows those that it has")
    })
}

/// A device in some lines.
fn card(device: &wire::Device) -> Vec<(&'static str, String)> {
    let moment = |at: Option<_>| {
        at.map_or_else(
            || "never".to_owned(),
            |at| format!("{} UTC", words::seconds(at)),
        )
    };
    let key = |key: Option<lodestar_core::key::PublicKey>| {
        key.map_or_else(|| "none".to_owned(), |key| key.to_string())
    };
    let runners: Vec<String> = device.runners.iter().map(ToString::to_string).collect();
    let level = format!(
        "{} since {} UTC",
        device.level,
        words::seconds(device.level_since)
    );
    let mut lines = vec![
        ("device", device.id.to_string()),
        ("level", level),
        ("key", key(device.key)),
        ("log key", key(device.log_key)),
        (
            "challenge",
            match device.challenge_passed_at {
                Some(at) => format!("answered {} UTC", words::seconds(at)),
                None => "not answered".to_owned(),
            },
        ),
        ("heartbeat", moment(device.last_heartbeat)),
        ("attested", moment(device.last_attested)),
        (
            "says",
            inert::line(
                &format!("{}, {}", device.gateway_status, device.daemon_version),
                110,
            ),
        ),
        (
            "runners",
            match runners.is_empty() {
                true => "none".to_owned(),
                false => runners.join(", "),
            },
        ),
    ];
    if device.paused {
        lines.push(("paused", "by its owner".to_owned()));
    }
    lines
}
