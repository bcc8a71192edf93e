//! `lodestar device approve`

use std::io::Write as _;

use clap::Args;
use lodestar_core::key::PublicKey;
use lodestar_core::statement::Order;
use lodestar_gateway::code::Code;

use super::{card, find};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{GatewayArgs, wait};
use crate::owner::{Owner, SigningArgs};

const AFTER_HELP: &str = "\
What is signed names the device's two keys: compare them with what `lodestar device enroll` printed on
the device. With --device-key, it is not signed for any other. The device has to have answered the gateway's
challenge with that key.

Examples:
  lodestar device approve build-1
  lodestar device approve build-1 --device-key 5f1c… --yes";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ApproveArgs {
    /// The device: its id or its name
    device: String,

    /// The device's key, as it was printed on the device
    #[arg(long, value_name = "KEY")]
    device_key: Option<PublicKey>,

    #[command(flatten)]
    signing: SigningArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &ApproveArgs, app: &mut App) -> Result<Exit, Failure> {
    let chosen = args.signing.operator.parse()?;
    let client = args.gateway.owner()?;
    let (device, done) = wait(async {
        let device = find(&client, &args.device).await?;
        let (Some(key), Some(log_key)) = (device.key, device.log_key) else {
            return Err(Failure::check(format!(
                "{} ({})",
                Code::DeviceWithoutKey.meaning(),
                Code::DeviceWithoutKey
            )));
        };
        if args.device_key.is_some_and(|seen| seen != key) {
            return Err(Failure::check(format!(
                "the gateway has the key {key} for `{}`, which is not the one that you saw",
                device.name
            ))
            .help("somebody else may have enrolled under this name; revoke it"));
        }
        let lines = card(&device)
            .into_iter()
            .map(|(what, value)| format!("  {what:<9} {value}\n"));
        let about = format!(
            "{}\n{}You sign: this device, with these keys, is mine",
            device.name,
            lines.collect::<String>()
        );
        args.signing.confirm(&about)?;
        let owner = Owner::come(client, &chosen, "an order to a gateway").await?;
        let order = Order::Approve {
            device: device.id,
            key,
            log_key,
        };
        let done = owner.order(order, None).await?;
        Ok((device, done))
    })??;
    if app.json {
        app.out.json(&done)?;
        return Ok(Exit::Done);
    }
    let level = done
        .level
        .map(|level| level.to_string())
        .unwrap_or_default();
    let paint = app.out.paint;
    writeln!(
        app.out,
        "{} {} is {level}",
        paint.good("✓"),
        paint.strong(&device.name)
    )?;
    writeln!(
        app.out,
        "  {}",
        paint.dim("the gateway trusts it once it was heard of without a gap, and attested a run")
    )?;
    Ok(Exit::Done)
}
