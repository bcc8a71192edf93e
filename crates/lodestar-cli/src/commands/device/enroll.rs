//! `lodestar device enroll`

use std::io::Write as _;

use clap::Args;
use lodestar_core::name::ActorId;
use lodestar_gateway::device::{DeviceFolder, DeviceIdentity};
use lodestar_gateway::token::TokenText;
use lodestar_gateway::wire;
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, GatewayArgs, wait};
use crate::inert;
use crate::installation::{Installation, fresh_key};

const AFTER_HELP: &str = "\
The device's key is made here and never leaves; logs of its runs are signed with this installation's
log key. The token is one that the owner made with `lodestar token issue`; it is spent by this, and
the device gets one of its own. What the gateway asks the device to sign is answered at once. The
owner compares the keys that are printed here, and approves. Where the device of this folder was
revoked or blocked, its files are set aside, and this machine becomes another one, with a new key.

Examples:
  lodestar device enroll build-1 --gateway https://gateway.example --token-file enrol.token
  lodestar device enroll build-1 --gateway http://127.0.0.1:7417 --allow-loopback-http --token-file enrol.token";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EnrollArgs {
    /// What its owner calls it
    name: String,

    #[command(flatten)]
    dir: DeviceDirArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &EnrollArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = ActorId::new(args.name.as_str()).map_err(|e| Failure::name("device", &e))?;
    let folder = args.dir.folder()?;
    let gateway = args
        .gateway
        .named()
        .ok_or_else(|| Failure::usage("no gateway is named").help("name it with --gateway"))?;
    let token = args.gateway.given()?.ok_or_else(|| {
        Failure::not_authorised("there is no token to enrol with").help(
            "the owner makes one with `lodestar token issue`; name its file with --token-file",
        )
    })?;
    let client = gateway.client(Some(token))?;
    let installation = Installation::locate()?;
    let log_key = installation.create_log_key()?.public();
    make_room(&folder)?;
    let key = folder.prepare(fresh_key()?)?;
    let asked = wire::RegisterDevice {
        name: name.clone(),
        key: Some(key),
        log_key: Some(log_key),
    };
    let (identity, answered) = wait(async {
        let registered = client.register_device(&asked).await?;
        let own = TokenText::parse(&registered.token)
            .ok_or_else(|| Failure::usage("the gateway gave no token for the device"))?;
        let identity = DeviceIdentity {
            gateway: gateway.clone(),
            account: registered.account,
            device: registered.device,
            name,
            key,
            log_key,
        };
        // First: what was given is given once.
        folder.enrol(&identity, &own)?;
        let answered = answer(&folder, &identity, registered.challenge).await;
        Ok::<_, Failure>((identity, answered))
    })??;
    if app.json {
        app.out.json(&json!({
            "device": identity.device,
            "account": identity.account,
            "name": identity.name,
            "gateway": identity.gateway.url,
            "key": identity.key,
            "log_key": identity.log_key,
            "folder": folder.path().to_string_lossy(),
            "challenge": match &answered {
                Ok(()) => "answered",
                Err(_) => "open",
            },
        }))?;
    } else {
        let paint = app.out.paint;
        let done = format!(
            "{} is a device of the account, and waits for its owner",
            identity.name
        );
        writeln!(app.out, "{} {done}", paint.good("✓"))?;
        for (what, value) in [
            ("device", identity.device.to_string()),
            ("key", identity.key.to_string()),
            ("log key", identity.log_key.to_string()),
            ("folder", inert::path(folder.path())),
        ] {
            writeln!(app.out, "  {what:<8} {value}")?;
        }
        writeln!(
            app.out,
            "  {}",
            paint.dim(format!(
                "the owner compares the keys: lodestar device approve {}",
                identity.name
            ))
        )?;
    }
    if let Err(problem) = answered {
        app.note(format!(
            "the gateway's challenge is not answered yet: {}; `lodestar device daemon` does it",
            problem.message()
        ));
    }
    Ok(Exit::Done)
}

/// Hears whether a device that is enrolled here was stopped for good: then this machine may be another one.
fn make_room(folder: &DeviceFolder) -> Result<(), Failure> {
    if folder.is_enrolled()
        && let Ok(client) = folder.client()
    {
        // What it says is kept; whether that makes room, the folder decides.
        let _ = wait(async { folder.ask(&client).await.map(drop) })?;
    }
    Ok(())
}

/// Signs what the gateway asked for.
async fn answer(
    folder: &DeviceFolder,
    identity: &DeviceIdentity,
    challenge: Option<wire::Challenge>,
) -> Result<(), Failure> {
    let client = folder.client()?;
    let challenge = match challenge {
        Some(challenge) => challenge,
        None => client.challenge(identity.device).await?.challenge,
    };
    let signer = folder.signer(&client).await?;
    let envelope = signer.answer(challenge.nonce)?;
    client.answer_challenge(identity.device, &envelope).await?;
    Ok(())
}
