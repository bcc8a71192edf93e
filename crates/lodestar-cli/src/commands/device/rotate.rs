//! `lodestar device rotate`: another key, by the word of the owner, the old key and the new one.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use lodestar_core::key::PublicKey;
use lodestar_core::statement::{Envelope, KeyRotation};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, GatewayArgs, wait};
use crate::installation::fresh_key;
use crate::owner::{Owner, SigningArgs};
use crate::trust::vkey;
use crate::{files, inert};

const AFTER_HELP: &str = "\
Three signatures are needed, and no machine has all three keys. On the device, --out makes a new key
and writes a statement that the old and the new key signed. The owner signs it with --sign, on their
own machine, and hands it in, within five minutes. The device's daemon takes the new key up by itself.
The log key stays.

Examples:
  lodestar device rotate --owner-key alice.pub --out rotation.json
  lodestar device rotate --sign rotation.json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RotateArgs {
    /// On the device: write what the old and the new key signed to this file
    #[arg(
        long,
        value_name = "FILE",
        requires = "owner_key",
        required_unless_present = "sign",
        conflicts_with = "sign"
    )]
    out: Option<PathBuf>,

    /// The owner's public key: `name+hash+key`, a file with it, or 64 hexadecimal digits
    #[arg(long, value_name = "VKEY|FILE|KEY")]
    owner_key: Option<String>,

    /// As the owner: sign what this file holds, and hand it in
    #[arg(long, value_name = "FILE")]
    sign: Option<PathBuf>,

    #[command(flatten)]
    dir: DeviceDirArgs,

    #[command(flatten)]
    signing: SigningArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &RotateArgs, app: &mut App) -> Result<Exit, Failure> {
    match (&args.out, &args.owner_key, &args.sign) {
        (Some(out), Some(owner), _) => propose(args, out, owner, app),
        (_, _, Some(file)) => sign(args, file, app),
        _ => Err(Failure::usage("say --out with --owner-key, or --sign")),
    }
}

/// On the device.
fn propose(args: &RotateArgs, out: &Path, owner: &str, app: &mut App) -> Result<Exit, Failure> {
    let owner = public_key(owner)?;
    let folder = args.dir.folder()?;
    let client = folder.client()?;
    let signer = wait(folder.signer(&client))??;
    let device = signer.identity().device;
    let next = folder.prepare_next(fresh_key()?)?;
    let envelope = signer.rotation(&owner, &next)?;
    files::replace(out, |file| {
        file.write_all(&envelope.to_json())?;
        Ok(file.write_all(b"\n")?)
    })?;
    if app.json {
        app.out.json(&json!({
            "device": device,
            "file": out.to_string_lossy(),
            "old_key": signer.public(),
            "new_key": next.public(),
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(app.out, "{} {}", paint.good("✓"), inert::path(out))?;
    writeln!(app.out, "  device   {device}")?;
    writeln!(app.out, "  new key  {}", next.public())?;
    let then = "the owner signs it within five minutes: lodestar device rotate --sign FILE";
    writeln!(app.out, "  {}", paint.dim(then))?;
    Ok(Exit::Done)
}

/// On the owner's machine.
fn sign(args: &RotateArgs, file: &Path, app: &mut App) -> Result<Exit, Failure> {
    let chosen = args.signing.operator.parse()?;
    let bytes = files::read(file, files::SMALL)?;
    let wrong = |problem: &dyn std::fmt::Display| {
        Failure::usage(format!("`{}` is no rotation: {problem}", inert::path(file)))
    };
    let envelope = Envelope::from_json(&bytes).map_err(|problem| wrong(&problem))?;
    let issued = envelope
        .unverified::<KeyRotation>()
        .map_err(|problem| wrong(&problem))?;
    let said = issued.subject.clone();
    let client = args.gateway.owner()?;
    let (device, standing) = wait(async {
        let device = client.device(said.device).await?;
        if device.key != Some(said.old_key) || device.log_key != Some(said.new_log_key) {
            return Err(Failure::check(format!(
                "the gateway has other keys for `{}` than those that the file replaces or keeps",
                device.name
            )));
        }
        let about = format!(
            "{}\n  device   {}\n  old key  {}\n  new key  {}\nYou sign: this device takes the new key",
            device.name, device.id, said.old_key, said.new_key
        );
        args.signing.confirm(&about)?;
        let owner = Owner::come(client, &chosen, "a rotation").await?;
        let envelope = envelope
            .cosign(&issued, &owner.key)
            .map_err(|problem| Failure::usage(format!("it cannot be signed: {problem}")))?;
        KeyRotation::verify_undated(&envelope, &owner.key.public(), &said.old_key)
            .map_err(|problem| wrong(&problem))?;
        let standing = owner.client.rotate(said.device, &envelope).await?;
        Ok((device, standing))
    })??;
    if app.json {
        app.out.json(&json!({
            "device": device.id,
            "level": standing.level,
            "new_key": said.new_key,
            "challenge": standing.challenge.is_some(),
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(
        app.out,
        "{} {} has a new key and is {}",
        paint.good("✓"),
        paint.strong(&device.name),
        standing.level
    )?;
    if standing.challenge.is_some() {
        writeln!(app.out, "  its daemon has to answer a challenge with it")?;
    }
    Ok(Exit::Done)
}

/// A public key: bare, or in its text form.
pub(crate) fn public_key(text: &str) -> Result<PublicKey, Failure> {
    match text.parse::<PublicKey>() {
        Ok(key) => Ok(key),
        Err(_) => Ok(*vkey(text)?.public_key()),
    }
}
