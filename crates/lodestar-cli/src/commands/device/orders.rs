//! `lodestar device pause`, `resume` and `revoke`: orders about one device.

use std::io::Write as _;

use clap::Args;
use lodestar_core::statement::Order;
use lodestar_core::time::Timestamp;
use lodestar_gateway::wire;

use super::{card, find};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{GatewayArgs, wait};
use crate::owner::{Owner, SigningArgs};

const AFTER_PAUSE: &str = "\
Within ten seconds the device signs nothing more, heartbeats neither; runs and attestations of it are
refused at once. `lodestar device resume` lets it sign again.

Examples:
  lodestar device pause build-1 --reason \"looking into it\"";

const AFTER_RESUME: &str = "\
Examples:
  lodestar device resume build-1";

const AFTER_REVOKE: &str = "\
There is no way back: the machine can only be enrolled as another device. With --compromised-since,
runs that it attested from then on, by the gateway's time, are evaluated again without its word.

Examples:
  lodestar device revoke build-1 --reason \"sold\"
  lodestar device revoke build-1 --reason \"stolen\" --compromised-since 2026-03-01";

#[derive(Debug, Args)]
#[command(after_help = AFTER_PAUSE)]
pub(crate) struct PauseArgs {
    /// The device: its id or its name
    device: String,

    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,

    #[command(flatten)]
    signing: SigningArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_RESUME)]
pub(crate) struct ResumeArgs {
    /// The device: its id or its name
    device: String,

    #[command(flatten)]
    signing: SigningArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_REVOKE)]
pub(crate) struct RevokeArgs {
    /// The device: its id or its name
    device: String,

    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Since when it may have been somebody else's, in UTC: `2026-03-01`, `2026-03-01 12:00:00`, or to
    /// the microsecond
    #[arg(long, value_name = "TIME", value_parser = moment)]
    compromised_since: Option<Timestamp>,

    #[command(flatten)]
    signing: SigningArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

/// A moment as people write it, and as it is shown.
fn moment(text: &str) -> Result<Timestamp, String> {
    let plain = text.trim().trim_end_matches("UTC").trim_end();
    let plain = plain.trim_end_matches('Z').replacen(' ', "T", 1);
    let whole = match plain.len() {
        10 => format!("{plain}T00:00:00.000000Z"),
        19 => format!("{plain}.000000Z"),
        _ => format!("{plain}Z"),
    };
    whole.parse().map_err(|_| {
        "write a moment in UTC, such as `2026-03-01` or `2026-03-01 12:00:00`".to_owned()
    })
}

pub(crate) fn pause(args: &PauseArgs, app: &mut App) -> Result<Exit, Failure> {
    let order = |device: &wire::Device| Order::Pause {
        device: device.id,
        reason: args.reason.clone(),
    };
    let wanted = Wanted {
        device: &args.device,
        what: "this device stops signing",
        done: "signs nothing from now on",
    };
    give(&wanted, order, &args.signing, &args.gateway, app)
}

pub(crate) fn resume(args: &ResumeArgs, app: &mut App) -> Result<Exit, Failure> {
    let order = |device: &wire::Device| Order::Resume { device: device.id };
    let wanted = Wanted {
        device: &args.device,
        what: "this device may sign again",
        done: "may sign again",
    };
    give(&wanted, order, &args.signing, &args.gateway, app)
}

pub(crate) fn revoke(args: &RevokeArgs, app: &mut App) -> Result<Exit, Failure> {
    let order = |device: &wire::Device| Order::Revoke {
        compromised_since: args.compromised_since,
        device: device.id,
        reason: args.reason.clone(),
    };
    let wanted = Wanted {
        device: &args.device,
        what: "this device is given up, for good",
        done: "is revoked, for good",
    };
    give(&wanted, order, &args.signing, &args.gateway, app)
}

struct Wanted<'a> {
    device: &'a str,
    what: &'a str,
    done: &'a str,
}

fn give(
    wanted: &Wanted<'_>,
    order: impl Fn(&wire::Device) -> Order,
    signing: &SigningArgs,
    gateway: &GatewayArgs,
    app: &mut App,
) -> Result<Exit, Failure> {
    let chosen = signing.operator.parse()?;
    let client = gateway.owner()?;
    let (device, done) = wait(async {
        let device = find(&client, wanted.device).await?;
        let lines = card(&device).into_iter();
        let lines = lines.map(|(what, value)| format!("  {what:<9} {value}\n"));
        let about = format!(
            "{}\n{}You sign: {}",
            device.name,
            lines.collect::<String>(),
            wanted.what
        );
        signing.confirm(&about)?;
        let owner = Owner::come(client, &chosen, "an order to a gateway").await?;
        let done = owner.order(order(&device), None).await?;
        Ok::<_, Failure>((device, done))
    })??;
    if app.json {
        app.out.json(&done)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(
        app.out,
        "{} {} {}",
        paint.good("✓"),
        paint.strong(&device.name),
        wanted.done
    )?;
    if done.evaluated > 0 {
        let runs = crate::words::count(done.evaluated.into(), "run");
        writeln!(app.out, "  {runs} evaluated again")?;
    }
    Ok(Exit::Done)
}
