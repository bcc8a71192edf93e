//! `lodestar gateway doctor`: can this device do its work? In less than five seconds, with codes.

mod checks;
mod findings;

use std::time::Duration;

use clap::Args;
use lodestar_core::time::Timestamp;
use lodestar_gateway::client::{GatewayClient, GatewayError};
use lodestar_gateway::device::{DeviceError, DeviceFolder, DeviceIdentity};
use lodestar_gateway::wire;

use self::findings::Findings;
use crate::cli::App;
use crate::commands;
use crate::configured::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, wait};

/// How long the gateway may take: with two questions at once, all of it stays below five seconds.
const WITHIN: Duration = Duration::from_secs(3);

const AFTER_HELP: &str = "\
Looks at six things: clock (how far this machine's is from the gateway's), key (there, private, and the
one that the gateway has), identity (token, device and level), daemon (runs, and was heard), bind (the
runners that are bound here, the one of `[run]` among them) and sync (may it sign, does a run wait to be
attested). Each has a code; ✗ exits with 1, ! does not.

Examples:
  lodestar gateway doctor
  lodestar gateway doctor --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    dir: DeviceDirArgs,
}

pub(crate) fn run(args: &DoctorArgs, app: &mut App) -> Result<Exit, Failure> {
    let configured = args.config.find(app)?;
    let configured = configured.and_then(|it| it.config.run);
    let folder = args.dir.folder()?;
    let mut findings = Findings::default();
    let identity = match folder.identity() {
        Ok(identity) => identity,
        Err(problem) => {
            checks::no_identity(&problem, &mut findings);
            return findings.print(app);
        }
    };
    let key = checks::key(&folder, &identity, &mut findings);
    let answers = asked(&folder, &identity)?;
    let now = commands::now();
    checks::clock(&answers.health, answers.asked_at, now, &mut findings);
    checks::standing(&answers.own, key, &mut findings);
    let state = folder.state().unwrap_or_default();
    checks::daemon(&folder, &state, now, &mut findings);
    checks::bind(&answers.own, configured.as_ref(), &mut findings);
    checks::sync(&folder, &state, &answers.own, &mut findings);
    findings.print(app)
}

/// What the gateway said, all of it asked at once.
struct Answers {
    asked_at: Timestamp,
    health: Result<wire::Health, GatewayError>,
    /// What it said to the device's own token, if that can be read.
    own: Result<Own, DeviceError>,
}

/// What the gateway says to nobody but the device.
struct Own {
    device: Result<wire::Device, GatewayError>,
    directives: Result<wire::Directives, GatewayError>,
}

fn asked(folder: &DeviceFolder, identity: &DeviceIdentity) -> Result<Answers, Failure> {
    let bare: GatewayClient = identity.gateway.client(None)?.within(WITHIN);
    let asked_at = commands::now();
    // Without a token there is still the clock to look at.
    let client = folder.client().map(|client| client.within(WITHIN));
    wait(async {
        let own = async {
            let client = client?;
            let (device, directives) = tokio::join!(
                client.device(identity.device),
                client.directives(identity.device)
            );
            Ok(Own { device, directives })
        };
        let (health, own) = tokio::join!(bare.health(), own);
        Answers {
            asked_at,
            health,
            own,
        }
    })
}
