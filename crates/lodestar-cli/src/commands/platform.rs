//! `lodestar platform`: what only whoever runs the gateway may do, over the socket in its folder.
//!
//! There is no credential: the socket is the service's user's alone, and the service asks the system who is at
//! the other end. No token opens any of this.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lodestar_core::id::{AccountId, ContenderId, DeviceId};
use lodestar_core::name::ActorId;
use lodestar_gateway::client::PlatformClient;
use lodestar_gateway::wire;
use serde_json::json;

use super::device::public_key;
use super::token::{is_new, written};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::wait;
use crate::{inert, words};

const AFTER_HELP: &str = "\
On the machine of the gateway, as the user that it runs as.

Examples:
  lodestar platform account team --owner-key alice.pub --token-out owner.token --data /var/lib/lodestar
  lodestar platform kill-switch on --reason \"a key leaked\" --data /var/lib/lodestar
  lodestar platform block dev_0198c1d2-0000-7000-8000-000000000000 --reason abuse --data /var/lib/lodestar";

const AFTER_ACCOUNT: &str = "\
The owner's key is one that `lodestar approve keygen` makes, on the owner's machine; only its public part
comes here. The token goes to the owner, who keeps it with `lodestar token use`.

Examples:
  lodestar platform account team --owner-key alice.pub --token-out owner.token --data gateway";

const AFTER_TOKEN: &str = "\
Examples:
  lodestar platform token acc_0198c1d2-0000-7000-8000-000000000000 --token-out owner.token --data gateway";

const AFTER_BLOCK: &str = "\
There is no way back.

Examples:
  lodestar platform block dev_0198c1d2-0000-7000-8000-000000000000 --reason abuse --data gateway";

const AFTER_PAUSE: &str = "\
While it is on, that device registers no run, hands in nothing and signs nothing. Its owner can let it go on
as well; what only the platform may lift does not exist below a block.

Examples:
  lodestar platform pause on dev_0198c1d2-0000-7000-8000-000000000000 --reason \"looking into it\" --data gateway
  lodestar platform pause off dev_0198c1d2-0000-7000-8000-000000000000 --reason \"it is well\" --data gateway";

const AFTER_KILL: &str = "\
While it is on, no run is registered, no bundle taken and nothing attested, by any device of any account,
and devices sign nothing: their daemons hear of it within ten seconds.

Examples:
  lodestar platform kill-switch on --reason \"a key leaked\" --data gateway
  lodestar platform kill-switch off --reason \"it is replaced\" --data gateway
  lodestar platform kill-switch show --data gateway";

const AFTER_BATTLE: &str = "\
Examples:
  lodestar platform battle spring --data gateway \\
    --participant acc_0198c1d2-0000-7000-8000-000000000000=agt_0198c1d2-0000-7000-8000-000000000001";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PlatformArgs {
    #[command(subcommand)]
    command: PlatformCommand,
}

#[derive(Debug, Args)]
struct FolderArgs {
    /// The gateway's folder
    #[arg(long, value_name = "DIR", default_value = "gateway")]
    data: PathBuf,
}

impl FolderArgs {
    fn client(&self) -> PlatformClient {
        PlatformClient::of_folder(&self.data)
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Switch {
    On,
    Off,
    Show,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Paused {
    On,
    Off,
}

#[derive(Debug, Subcommand)]
enum PlatformCommand {
    /// Open an account
    #[command(after_help = AFTER_ACCOUNT)]
    Account {
        /// What it is called
        name: String,

        /// The owner's public key: `name+hash+key`, a file with it, or 64 hexadecimal digits
        #[arg(long, value_name = "VKEY|FILE|KEY")]
        owner_key: String,

        /// Write the owner's token to this new file, of mode 0600
        #[arg(long, value_name = "FILE")]
        token_out: PathBuf,

        #[command(flatten)]
        folder: FolderArgs,
    },
    /// Make another owner's token for an account
    #[command(after_help = AFTER_TOKEN)]
    Token {
        /// The account
        account: AccountId,

        /// Write the token to this new file, of mode 0600
        #[arg(long, value_name = "FILE")]
        token_out: PathBuf,

        #[command(flatten)]
        folder: FolderArgs,
    },
    /// Block a device, for good
    #[command(after_help = AFTER_BLOCK)]
    Block {
        /// The device
        device: DeviceId,

        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,

        #[command(flatten)]
        folder: FolderArgs,
    },
    /// Stop one device's signing, or let it go on
    #[command(after_help = AFTER_PAUSE)]
    Pause {
        /// What to do
        #[arg(value_enum)]
        switch: Paused,

        /// The device
        device: DeviceId,

        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,

        #[command(flatten)]
        folder: FolderArgs,
    },
    /// Stop all signing, or let it go on
    #[command(after_help = AFTER_KILL)]
    KillSwitch {
        /// What to do with it
        #[arg(value_enum)]
        switch: Switch,

        /// Why
        #[arg(long, value_name = "TEXT", required_if_eq_any([("switch", "on"), ("switch", "off")]))]
        reason: Option<String>,

        #[command(flatten)]
        folder: FolderArgs,
    },
    /// Hold a battle
    #[command(after_help = AFTER_BATTLE)]
    Battle {
        /// What it is called
        name: String,

        /// Who takes part. May be given several times
        #[arg(long = "participant", value_name = "ACCOUNT=AGENT", required = true, value_parser = participant)]
        participants: Vec<wire::Participant>,

        #[command(flatten)]
        folder: FolderArgs,
    },
}

fn participant(text: &str) -> Result<wire::Participant, String> {
    let (account, agent) = text.split_once('=').ok_or("write ACCOUNT=AGENT")?;
    let account = account.parse::<AccountId>();
    let account = account.map_err(|problem| problem.to_string())?;
    let agent = agent.parse::<ContenderId>();
    let agent = agent.map_err(|problem| problem.to_string())?;
    Ok(wire::Participant { account, agent })
}

pub(crate) fn run(args: &PlatformArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        PlatformCommand::Account {
            name,
            owner_key,
            token_out,
            folder,
        } => {
            let name = ActorId::new(name.as_str()).map_err(|e| Failure::name("account", &e))?;
            let owner_key = public_key(owner_key)?;
            is_new(token_out)?;
            let asked = wire::OpenAccount {
                name: name.clone(),
                owner_key,
            };
            let opened = wait(folder.client().open_account(&asked))??;
            written(token_out, &opened.token)?;
            if app.json {
                let file = token_out.to_string_lossy();
                app.out
                    .json(&json!({"account": opened.account, "token_file": file}))?;
                return Ok(Exit::Done);
            }
            let mark = app.out.paint.good("✓");
            writeln!(app.out, "{mark} account {name}  {}", opened.account)?;
            let file = inert::path(token_out);
            writeln!(app.out, "  the owner's token is in {file}  (mode 0600)")?;
        }
        PlatformCommand::Token {
            account,
            token_out,
            folder,
        } => {
            is_new(token_out)?;
            let made = wait(folder.client().reissue(*account))??;
            written(token_out, &made.token)?;
            if app.json {
                let file = token_out.to_string_lossy();
                app.out.json(&json!({"id": made.id, "token_file": file}))?;
                return Ok(Exit::Done);
            }
            let mark = app.out.paint.good("✓");
            writeln!(app.out, "{mark} {}  (mode 0600)", inert::path(token_out))?;
        }
        PlatformCommand::Block {
            device,
            reason,
            folder,
        } => {
            let done = wait(folder.client().block(*device, reason))??;
            match app.json {
                true => app.out.json(&done)?,
                false => {
                    let mark = app.out.paint.good("✓");
                    writeln!(app.out, "{mark} {device} is {}, for good", done.level)?;
                }
            }
        }
        PlatformCommand::Pause {
            switch,
            device,
            reason,
            folder,
        } => {
            let on = matches!(switch, Paused::On);
            let done = wait(folder.client().pause(*device, on, reason))??;
            match app.json {
                true => app.out.json(&done)?,
                false => {
                    let mark = app.out.paint.good("✓");
                    let now = if on { "signs nothing" } else { "may go on" };
                    writeln!(app.out, "{mark} {device} {now}")?;
                }
            }
        }
        PlatformCommand::KillSwitch {
            switch,
            reason,
            folder,
        } => {
            let client = folder.client();
            let reason = reason.as_deref().unwrap_or_default();
            let stands = wait(async {
                match switch {
                    Switch::On => client.set_kill_switch(true, reason).await,
                    Switch::Off => client.set_kill_switch(false, reason).await,
                    Switch::Show => client.kill_switch().await,
                }
            })??;
            print_switch(&stands, app)?;
        }
        PlatformCommand::Battle {
            name,
            participants,
            folder,
        } => {
            let name = ActorId::new(name.as_str()).map_err(|e| Failure::name("battle", &e))?;
            let asked = wire::HoldBattle {
                name,
                participants: participants.clone(),
            };
            let held = wait(folder.client().hold_battle(&asked))??;
            match app.json {
                true => app.out.json(&held)?,
                false => {
                    let mark = app.out.paint.good("✓");
                    writeln!(app.out, "{mark} {}", held.battle)?;
                }
            }
        }
    }
    Ok(Exit::Done)
}

fn print_switch(stands: &wire::KillSwitch, app: &mut App) -> Result<(), Failure> {
    if app.json {
        return Ok(app.out.json(stands)?);
    }
    let paint = app.out.paint;
    let what = match stands.on {
        true => paint.bad("all signing is stopped"),
        false => paint.good("devices may sign"),
    };
    let since = stands
        .since
        .map(|at| format!(" since {} UTC", words::seconds(at)));
    let reason = match stands.reason.is_empty() {
        true => String::new(),
        false => format!(": {}", inert::line(&stands.reason, 200)),
    };
    writeln!(app.out, "{what}{}{reason}", since.unwrap_or_default())?;
    Ok(())
}
