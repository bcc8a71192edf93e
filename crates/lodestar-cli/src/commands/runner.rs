//! `lodestar runner`: what makes runs, and the devices that it works on.

use std::io::Write as _;

use clap::{Args, Subcommand};
use lodestar_core::id::RunnerId;
use lodestar_core::name::ActorId;
use lodestar_core::statement::Order;
use lodestar_gateway::client::GatewayClient;
use lodestar_gateway::wire;

use super::device::find as find_device;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{GatewayArgs, all, wait};
use crate::owner::{Owner, SigningArgs};
use crate::{inert, words};

const AFTER_HELP: &str = "\
A runner is named by its id or by its name.

Examples:
  lodestar runner add nightly
  lodestar runner bind nightly build-1
  lodestar runner unbind nightly build-1
  lodestar runner list";

const AFTER_ADD: &str = "\
Its id goes into `[run]` in the configuration, as `runner`. Before runs of it count, the owner binds
it to the device that it works on.

Examples:
  lodestar runner add nightly";

const AFTER_BIND: &str = "\
The owner signs it. From then on the device's heartbeats tell that the runner is alive.

Examples:
  lodestar runner bind nightly build-1
  lodestar runner bind nightly build-1 --operator alice --yes";

const AFTER_UNBIND: &str = "\
Examples:
  lodestar runner unbind nightly build-1";

const AFTER_LIST: &str = "\
Examples:
  lodestar runner list
  lodestar runner list --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RunnerArgs {
    #[command(subcommand)]
    command: RunnerCommand,
}

#[derive(Debug, Subcommand)]
enum RunnerCommand {
    /// Make a runner known to the gateway
    #[command(after_help = AFTER_ADD)]
    Add {
        /// What its owner calls it
        name: String,

        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Say as the owner that a runner works on a device
    #[command(after_help = AFTER_BIND)]
    Bind(BindArgs),
    /// Say as the owner that it no longer does
    #[command(after_help = AFTER_UNBIND)]
    Unbind(BindArgs),
    /// List the account's runners
    #[command(after_help = AFTER_LIST)]
    List {
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

#[derive(Debug, Args)]
struct BindArgs {
    /// The runner: its id or its name
    runner: String,

    /// The device: its id or its name
    device: String,

    #[command(flatten)]
    signing: SigningArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &RunnerArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        RunnerCommand::Add { name, gateway } => {
            let name = ActorId::new(name.as_str()).map_err(|e| Failure::name("runner", &e))?;
            let client = gateway.owner()?;
            let runner = wait(client.register_runner(&wire::Named { name }))??;
            match app.json {
                true => app.out.json(&runner)?,
                false => {
                    let paint = app.out.paint;
                    writeln!(
                        app.out,
                        "{} {}  {}",
                        paint.good("✓"),
                        runner.id,
                        runner.name
                    )?;
                }
            }
            Ok(Exit::Done)
        }
        RunnerCommand::Bind(args) => give(args, Wanted::Bind, app),
        RunnerCommand::Unbind(args) => give(args, Wanted::Unbind, app),
        RunnerCommand::List { gateway } => {
            let client = gateway.owner()?;
            for runner in wait(runners(&client))?? {
                if app.json {
                    app.out.json(&runner)?;
                    continue;
                }
                let heard = match runner.last_heartbeat {
                    Some(at) => format!("alive {} UTC", words::seconds(at)),
                    None => "never heard of".to_owned(),
                };
                writeln!(
                    app.out,
                    "{}  {:<20}  {heard}",
                    runner.id,
                    runner.name.as_str()
                )?;
            }
            Ok(Exit::Done)
        }
    }
}

async fn runners(client: &GatewayClient) -> Result<Vec<wire::Runner>, Failure> {
    Ok(all(|after| client.runners(after), |next| next.parse().ok()).await?)
}

/// The runner of this id or name.
async fn find(client: &GatewayClient, named: &str) -> Result<wire::Runner, Failure> {
    let id: Option<RunnerId> = named.parse().ok();
    let mut found = runners(client).await?.into_iter();
    let found = found.find(|runner| id == Some(runner.id) || runner.name.as_str() == named);
    found.ok_or_else(|| {
        Failure::not_found(format!(
            "the account has no runner `{}`",
            inert::line(named, 60)
        ))
        .help("`lodestar runner list` shows those that it has")
    })
}

#[derive(Clone, Copy)]
enum Wanted {
    Bind,
    Unbind,
}

fn give(args: &BindArgs, wanted: Wanted, app: &mut App) -> Result<Exit, Failure> {
    let chosen = args.signing.operator.parse()?;
    let client = args.gateway.owner()?;
    let (runner, device, done) = wait(async {
        let runner = find(&client, &args.runner).await?;
        let device = find_device(&client, &args.device).await?;
        let what = match wanted {
            Wanted::Bind => "works on",
            Wanted::Unbind => "no longer works on",
        };
        let about = format!(
            "{}  {}\n{}  {}\nYou sign: {} {what} {}",
            runner.id, runner.name, device.id, device.name, runner.name, device.name
        );
        args.signing.confirm(&about)?;
        let owner = Owner::come(client, &chosen, "an order to a gateway").await?;
        let order = match wanted {
            Wanted::Bind => Order::Bind {
                device: device.id,
                runner: runner.id,
            },
            Wanted::Unbind => Order::Unbind {
                device: device.id,
                runner: runner.id,
            },
        };
        let done = owner.order(order, None).await?;
        Ok::<_, Failure>((runner, device, done))
    })??;
    if app.json {
        app.out.json(&done)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let what = match wanted {
        Wanted::Bind => "works on",
        Wanted::Unbind => "no longer works on",
    };
    let mark = paint.good("✓");
    writeln!(app.out, "{mark} {} {what} {}", runner.name, device.name)?;
    Ok(Exit::Done)
}
