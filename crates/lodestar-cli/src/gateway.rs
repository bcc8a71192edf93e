//! A gateway as a command reaches it: where it is, what is shown to it, and what its refusals come to.
//!
//! ```text
//! <installation>/gateway/owner.json    the gateway that this owner's commands speak to
//!                        owner.token   what they show it                                 (private)
//!               device/               a device's own folder: see `lodestar_gateway::device`
//! ```
//!
//! A token comes from a file that nobody else can read, or from the environment. It is never an argument: those
//! are seen by everybody on the machine, and kept by shells.

use std::path::{Path, PathBuf};

use clap::Args;
use lodestar_core::id::AccountId;
use lodestar_core::name::ActorId;
use lodestar_gateway::client::{GatewayClient, GatewayError};
use lodestar_gateway::code::Code;
use lodestar_gateway::device::{
    DeviceError, DeviceFolder, FileError, LockError, SignError, Whereabouts, read_token,
};
use lodestar_gateway::token::TokenText;
use lodestar_gateway::wire;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};
use crate::inert;
use crate::installation::Installation;

/// The gateway's URL.
const GATEWAY: &str = "LODESTAR_GATEWAY";
/// A token.
const TOKEN: &str = "LODESTAR_GATEWAY_TOKEN";
/// A file with a token.
const TOKEN_FILE: &str = "LODESTAR_GATEWAY_TOKEN_FILE";

/// How every token begins.
const PREFIX: &str = "lsgw_";

/// Which gateway, and by which token.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// The gateway [default: what LODESTAR_GATEWAY says, or what `lodestar token use` keeps]
    #[arg(long, value_name = "URL", help_heading = "Gateway")]
    gateway: Option<String>,

    /// A file of mode 0600 with the token [default: what LODESTAR_GATEWAY_TOKEN_FILE names, what
    /// LODESTAR_GATEWAY_TOKEN holds, or what `lodestar token use` keeps]
    #[arg(long, value_name = "FILE", help_heading = "Gateway")]
    token_file: Option<PathBuf>,

    /// Root certificates in PEM, trusted beside the public ones
    #[arg(long, value_name = "FILE", help_heading = "Gateway")]
    ca_file: Option<PathBuf>,

    /// Speak without encryption to a gateway on this machine
    #[arg(long, help_heading = "Gateway")]
    allow_loopback_http: bool,
}

/// What `token use` keeps.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    pub(crate) gateway: Whereabouts,
    pub(crate) account: AccountId,
    pub(crate) name: ActorId,
}

/// Where the owner's gateway and token are kept.
pub(crate) struct KeptAt {
    pub(crate) json: PathBuf,
    pub(crate) token: PathBuf,
}

impl KeptAt {
    pub(crate) fn of(installation: &Installation) -> Self {
        let folder = installation.dir().join("gateway");
        Self {
            json: folder.join("owner.json"),
            token: folder.join("owner.token"),
        }
    }

    fn read(&self) -> Result<Option<Kept>, Failure> {
        if self.json.symlink_metadata().is_err() {
            return Ok(None);
        }
        let bytes = crate::files::read(&self.json, crate::files::SMALL)?;
        let kept = serde_json::from_slice(&bytes).map_err(|problem| {
            Failure::usage(format!("`{}`: {problem}", inert::path(&self.json)))
                .help("`lodestar token use` writes it again")
        })?;
        Ok(Some(kept))
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

impl GatewayArgs {
    /// The gateway that is named; none where nothing names one.
    pub(crate) fn named(&self) -> Option<Whereabouts> {
        let url = self.gateway.clone().or_else(|| set(GATEWAY))?;
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Some(Whereabouts {
            url,
            allow_loopback_http: self.allow_loopback_http,
            ca_file: self.ca_file.as_ref().map(absolute),
        })
    }

    /// The token that is given; none where nothing gives one.
    pub(crate) fn given(&self) -> Result<Option<TokenText>, Failure> {
        let file = self.token_file.clone();
        let file = file.or_else(|| set(TOKEN_FILE).map(PathBuf::from));
        if let Some(file) = file {
            return Ok(Some(read_token(&file)?));
        }
        match set(TOKEN) {
            None => Ok(None),
            Some(text) => TokenText::parse(text.trim()).map(Some).ok_or_else(|| {
                Failure::not_authorised(format!("what {TOKEN} holds is no token of a gateway"))
            }),
        }
    }

    /// A client that shows the owner's token.
    pub(crate) fn owner(&self) -> Result<GatewayClient, Failure> {
        let at = KeptAt::of(&Installation::locate()?);
        let kept = at.read()?;
        let named = self.named();
        // A token that was kept for one gateway is shown to no other.
        let is_kept = match (&named, &kept) {
            (None, Some(_)) => true,
            (Some(named), Some(kept)) => named.url == kept.gateway.url,
            (_, None) => false,
        };
        let mut gateway = match (named, kept) {
            (Some(named), _) => named,
            (None, Some(kept)) => kept.gateway,
            (None, None) => {
                return Err(Failure::usage("no gateway is named")
                    .help("name it with --gateway, or keep one with `lodestar token use`"));
            }
        };
        gateway.allow_loopback_http |= self.allow_loopback_http;
        let token = match self.given()? {
            Some(token) => token,
            None if is_kept => read_token(&at.token)?,
            None => {
                return Err(Failure::not_authorised("there is no token to show to the gateway")
                    .help("name a file of mode 0600 with --token-file; whoever runs the gateway makes one with `lodestar platform account`"));
            }
        };
        Ok(gateway.client(Some(token))?)
    }

    /// Whether an owner's gateway is named or kept.
    pub(crate) fn is_owners(&self) -> bool {
        let kept = Installation::locate().map(|it| KeptAt::of(&it).json.exists());
        self.named().is_some() || kept.unwrap_or(false)
    }
}

/// Where a device's folder is.
#[derive(Debug, Args)]
pub(crate) struct DeviceDirArgs {
    /// The device's folder: identity, key and token [default: `device/` in the installation's
    /// directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) device_dir: Option<PathBuf>,
}

impl DeviceDirArgs {
    pub(crate) fn folder(&self) -> Result<DeviceFolder, Failure> {
        device_folder(self.device_dir.as_deref())
    }
}

/// The device's folder that is named, or the installation's own.
pub(crate) fn device_folder(named: Option<&Path>) -> Result<DeviceFolder, Failure> {
    Ok(match named {
        Some(path) => DeviceFolder::at(path),
        None => DeviceFolder::at(Installation::locate()?.dir().join("device")),
    })
}

/// Does what has to be waited for.
pub(crate) fn wait<T>(doing: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|problem| Failure::usage(format!("no threads can be started: {problem}")))?;
    Ok(runtime.block_on(doing))
}

/// Everything on all pages of a list.
pub(crate) async fn all<T, I, F>(
    mut page: impl FnMut(Option<I>) -> F,
    read: impl Fn(&str) -> Option<I>,
) -> Result<Vec<T>, GatewayError>
where
    F: Future<Output = Result<wire::Page<T>, GatewayError>>,
{
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let found = page(after.take()).await?;
        items.extend(found.items);
        match found.next.as_deref().and_then(&read) {
            Some(next) => after = Some(next),
            None => return Ok(items),
        }
    }
}

/// Whether the command line holds a token, which it must not.
pub(crate) fn token_in_arguments() -> Option<Failure> {
    let mut arguments = std::env::args_os().skip(1);
    let holds = arguments.any(|argument| {
        let text = argument.to_string_lossy();
        text.match_indices(PREFIX)
            .any(|(at, _)| text.get(at..at + PREFIX.len() + 64).is_some_and(is_token))
    });
    holds.then(|| {
        Failure::usage("an argument holds a gateway's token; everybody on this machine can see it there")
            .help("take that token back (`lodestar token revoke`), and put the next one into a file of mode 0600, or into LODESTAR_GATEWAY_TOKEN")
    })
}

fn is_token(text: &str) -> bool {
    TokenText::parse(text).is_some()
}

impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Self {
        let text = error.to_string();
        let GatewayError::Refused { code, field, .. } = &error else {
            return Self::usage(text);
        };
        let exit = match (code, code.status()) {
            (_, 401 | 403) => Exit::NotAuthorised,
            (_, 404) => Exit::NotFound,
            (_, 409) => Exit::CheckFailed,
            _ => Exit::Usage,
        };
        let text = match field {
            Some(field) => format!("{text}, in `{}`", inert::line(field, 40)),
            None => text,
        };
        let failure = Self::new(exit, text);
        match code {
            Code::ClockSkew => failure.help(
                "set this machine's clock; `lodestar gateway doctor` says by how much it is off",
            ),
            Code::TokenInvalid => failure.help(
                "`lodestar token list` shows which there are; `lodestar token issue` makes another",
            ),
            Code::TokenKind => failure.help(
                "owners' commands take an owner's token, and a device's own take the device's",
            ),
            Code::ChallengeNotPassed => failure
                .help("`lodestar device daemon`, on the device, answers what the gateway asked"),
            _ => failure,
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { path, problem } => Self::io(path)(problem),
            FileError::OpenToOthers { path, mode } => {
                let shown = inert::path(&path);
                Self::not_authorised(format!(
                    "`{shown}` is open to others (mode {mode:04o}), so what is in it is no secret"
                ))
                .help(format!(
                    "if nobody else can have read it: chmod 600 {shown}"
                ))
            }
            error => Self::usage(error.to_string()),
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::File(error) => error.into(),
            DeviceError::Gateway(error) => error.into(),
            DeviceError::NotEnrolled(_) => Self::not_found(error.to_string())
                .help("`lodestar device enroll` makes this machine a device of an account"),
            error => Self::usage(error.to_string()),
        }
    }
}

impl From<SignError> for Failure {
    fn from(error: SignError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            LockError::File(error) => error.into(),
            error => Self::usage(error.to_string()),
        }
    }
}
