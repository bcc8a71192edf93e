//! `lodestar token`: what is shown to a gateway. A token elevates nothing; it says whose request it is.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use lodestar_core::id::TokenId;
use lodestar_gateway::device::keep_token;
use lodestar_gateway::token::TokenText;
use lodestar_gateway::wire;
use serde_json::json;

use super::device::find as find_device;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{GatewayArgs, Kept, all, wait};
use crate::installation::Installation;
use crate::{inert, words};

const AFTER_HELP: &str = "\
Tokens go into files of mode 0600, and come from such files or the environment
(LODESTAR_GATEWAY_TOKEN, LODESTAR_GATEWAY_TOKEN_FILE). They are never arguments.

Examples:
  lodestar token use owner.token --gateway https://gateway.example
  lodestar token issue --out enrol.token
  lodestar token list
  lodestar token revoke tok_0198c1d2-0000-7000-8000-000000000000";

const AFTER_USE: &str = "\
The token is tried, and kept in the installation's directory with the gateway: commands of an owner
take both from there when nothing else is said.

Examples:
  lodestar token use owner.token --gateway https://gateway.example
  lodestar token use owner.token --gateway http://127.0.0.1:7417 --allow-loopback-http";

const AFTER_ISSUE: &str = "\
An enrol token registers one device, once, within an hour. A device's new token replaces the one that
it had: put it into the device's folder as `token`.

Examples:
  lodestar token issue --out enrol.token
  lodestar token issue --kind owner --out owner-2.token
  lodestar token issue --kind device --device build-1 --out build-1.token";

const AFTER_LIST: &str = "\
Examples:
  lodestar token list
  lodestar token list --json";

const AFTER_REVOKE: &str = "\
Examples:
  lodestar token revoke tok_0198c1d2-0000-7000-8000-000000000000";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Keep an owner's token and its gateway for the commands that follow
    #[command(after_help = AFTER_USE)]
    Use(UseArgs),
    /// Make a token, into a file
    #[command(after_help = AFTER_ISSUE)]
    Issue(IssueArgs),
    /// List the account's tokens, without what makes them ones
    #[command(after_help = AFTER_LIST)]
    List {
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Take a token back
    #[command(after_help = AFTER_REVOKE)]
    Revoke {
        /// The token's id
        token: TokenId,

        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

#[derive(Debug, Args)]
struct UseArgs {
    /// A file of mode 0600 with the token
    file: PathBuf,

    #[command(flatten)]
    gateway: GatewayArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Enrol,
    Owner,
    Device,
}

#[derive(Debug, Args)]
struct IssueArgs {
    /// What for
    #[arg(long, value_enum, default_value = "enrol")]
    kind: Kind,

    /// Whose, for a device's: its id or its name
    #[arg(long, value_name = "DEVICE", required_if_eq("kind", "device"))]
    device: Option<String>,

    /// Write it to this new file, of mode 0600
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &TokenArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        TokenCommand::Use(args) => keep(args, app),
        TokenCommand::Issue(args) => issue(args, app),
        TokenCommand::List { gateway } => list(gateway, app),
        TokenCommand::Revoke { token, gateway } => {
            let revoked = wait(gateway.owner()?.revoke_token(*token))??;
            match app.json {
                true => app.out.json(&revoked)?,
                false => {
                    let mark = app.out.paint.good("✓");
                    writeln!(app.out, "{mark} {} opens nothing any more", revoked.id)?;
                }
            }
            Ok(Exit::Done)
        }
    }
}

fn keep(args: &UseArgs, app: &mut App) -> Result<Exit, Failure> {
    let gateway = args
        .gateway
        .named()
        .ok_or_else(|| Failure::usage("no gateway is named").help("name it with --gateway"))?;
    let token = lodestar_gateway::device::read_token(&args.file)?;
    let client = gateway.client(Some(token.clone()))?;
    let account = wait(client.account())??;
    let path = Kept::path(&Installation::locate()?);
    let kept = Kept::new(gateway, &account, &token);
    kept.keep(&path)?;
    if app.json {
        app.out.json(&json!({
            "account": account,
            "gateway": kept.gateway.url,
            "file": path.to_string_lossy(),
        }))?;
        return Ok(Exit::Done);
    }
    let mark = app.out.paint.good("✓");
    let url = inert::line(&kept.gateway.url, 200);
    writeln!(app.out, "{mark} account {} at {url}", account.name)?;
    writeln!(app.out, "  kept in {}", inert::path(&path))?;
    Ok(Exit::Done)
}

fn issue(args: &IssueArgs, app: &mut App) -> Result<Exit, Failure> {
    is_new(&args.out)?;
    let client = args.gateway.owner()?;
    let made = wait(async {
        let device = match &args.device {
            Some(named) => Some(find_device(&client, named).await?.id),
            None => None,
        };
        let kind = match args.kind {
            Kind::Enrol => wire::TokenKind::Enrol,
            Kind::Owner => wire::TokenKind::Owner,
            Kind::Device => wire::TokenKind::Device,
        };
        Ok::<_, Failure>(client.make_token(&wire::MakeToken { kind, device }).await?)
    })??;
    written(&args.out, &made.token)?;
    if app.json {
        app.out.json(&json!({
            "id": made.id,
            "file": args.out.to_string_lossy(),
            "expires_at": made.expires_at,
        }))?;
        return Ok(Exit::Done);
    }
    let mark = app.out.paint.good("✓");
    writeln!(app.out, "{mark} {}  (mode 0600)", inert::path(&args.out))?;
    writeln!(app.out, "  token  {}", made.id)?;
    if let Some(end) = made.expires_at {
        writeln!(app.out, "  until  {} UTC", words::seconds(end))?;
    }
    Ok(Exit::Done)
}

/// Before anything is made that could then not be kept.
pub(super) fn is_new(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata().is_ok() {
        true => Err(
            Failure::usage(format!("`{}` exists already", inert::path(path)))
                .help("a token is shown once; give it a file of its own"),
        ),
        false => Ok(()),
    }
}

/// Puts a token into a new file that nobody else can read.
pub(super) fn written(path: &Path, token: &str) -> Result<(), Failure> {
    let token = TokenText::parse(token)
        .ok_or_else(|| Failure::usage("what the gateway gave is no token"))?;
    Ok(keep_token(path, &token)?)
}

fn list(gateway: &GatewayArgs, app: &mut App) -> Result<Exit, Failure> {
    let client = gateway.owner()?;
    let tokens = wait(all(|after| client.tokens(after), |next| next.parse().ok()))??;
    let now = super::now();
    for token in &tokens {
        if app.json {
            app.out.json(token)?;
            continue;
        }
        let state = match token {
            wire::Token {
                revoked_at: Some(at),
                ..
            } => format!("revoked {} UTC", words::seconds(*at)),
            wire::Token {
                used_at: Some(at), ..
            } => format!("used {} UTC", words::seconds(*at)),
            wire::Token {
                expires_at: Some(at),
                ..
            } if now >= *at => "expired".to_owned(),
            wire::Token {
                expires_at: Some(at),
                ..
            } => format!("until {} UTC", words::seconds(*at)),
            _ => "in force".to_owned(),
        };
        let device = token.device.map(|device| format!("  {device}"));
        writeln!(
            app.out,
            "{}  {:<6}  {state}{}",
            token.id,
            token.kind.as_str(),
            device.unwrap_or_default()
        )?;
    }
    Ok(Exit::Done)
}
