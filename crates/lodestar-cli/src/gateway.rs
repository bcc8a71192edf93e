//! A gateway as a command reaches it: where it is, what is shown to it, and what its refusals come to.
//!
//! ```text
//! <installation>/gateway/owner.json   the gateway that this owner's commands speak to, and the token
//!                                     that they show it                                   (private)
//!               device/              a device's own folder: see `lodestar_gateway::device`
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
    AskError, DeviceError, DeviceFolder, FileError, LockError, SignError, Whereabouts, keep_secret,
    read_secret, read_token,
};
use lodestar_gateway::token::{PREFIX, TokenText};
use lodestar_gateway::wire;
use lodestar_kernel::native::http::client::{InTheClear, ServiceUrl};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use crate::failure::{Exit, Failure};
use crate::inert;
use crate::installation::Installation;

/// The gateway's URL.
const GATEWAY: &str = "LODESTAR_GATEWAY";
/// A token.
const TOKEN: &str = "LODESTAR_GATEWAY_TOKEN";
/// A file with a token.
const TOKEN_FILE: &str = "LODESTAR_GATEWAY_TOKEN_FILE";

/// What to do about a key that the gateway does not know.
pub(crate) const OTHER_KEY: &str = "put the device's own key back; if it is lost, its owner revokes the device, and it is enrolled anew";

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

/// What `token use` keeps. All of it is one file: a token is never beside another gateway than its own.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    pub(crate) gateway: Whereabouts,
    pub(crate) account: AccountId,
    pub(crate) name: ActorId,
    /// What is shown to this gateway, and to no other.
    token: String,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.token.zeroize();
    }
}

impl Kept {
    pub(crate) fn new(gateway: Whereabouts, account: &wire::Account, token: &TokenText) -> Self {
        Self {
            gateway,
            account: account.id,
            name: account.name.clone(),
            token: token.expose().to_owned(),
        }
    }

    /// Where an installation keeps it.
    pub(crate) fn path(installation: &Installation) -> PathBuf {
        installation.dir().join("gateway").join("owner.json")
    }

    pub(crate) fn keep(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map(Zeroizing::new);
        let text = text.map_err(|problem| Failure::usage(problem.to_string()))?;
        Ok(keep_secret(path, &text)?)
    }

    fn read(path: &Path) -> Result<Option<Self>, Failure> {
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let malformed = |problem: &dyn std::fmt::Display| {
            Failure::usage(format!("`{}`: {problem}", inert::path(path)))
                .help("`lodestar token use` writes it again")
        };
        let text = read_secret(path)?;
        let kept = serde_json::from_str(&text).map_err(|problem: serde_json::Error| {
            // Its words may repeat what is in the file.
            malformed(&format!("line {} is not as it should be", problem.line()))
        })?;
        Ok(Some(kept))
    }

    fn token(&self) -> Result<TokenText, Failure> {
        TokenText::parse(&self.token).ok_or_else(|| {
            Failure::not_authorised("what is kept is no token of a gateway")
                .help("`lodestar token use` keeps another")
        })
    }

    /// Whether a URL is that of the gateway that is kept, however it is spelt.
    fn is_of(&self, url: &str) -> bool {
        let read = |url| ServiceUrl::parse(url, InTheClear::Anywhere).ok();
        read(url).is_some_and(|url| Some(url) == read(&self.gateway.url))
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

impl GatewayArgs {
    fn url(&self) -> Option<String> {
        self.gateway.clone().or_else(|| set(GATEWAY))
    }

    /// The gateway that is named; none where nothing names one.
    pub(crate) fn named(&self) -> Option<Whereabouts> {
        let url = self.url()?;
        Some(self.over(Whereabouts {
            url,
            allow_loopback_http: false,
            ca_file: None,
        }))
    }

    /// A gateway with what is said of how it is reached.
    fn over(&self, gateway: Whereabouts) -> Whereabouts {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Whereabouts {
            url: gateway.url,
            allow_loopback_http: gateway.allow_loopback_http || self.allow_loopback_http,
            ca_file: self.ca_file.as_ref().map(absolute).or(gateway.ca_file),
        }
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
        let kept = Kept::read(&Kept::path(&Installation::locate()?))?;
        let url = self.url();
        // A token that was kept for one gateway is shown to no other.
        let kept = kept.filter(|kept| url.as_deref().is_none_or(|url| kept.is_of(url)));
        let gateway = match &kept {
            Some(kept) => Some(self.over(kept.gateway.clone())),
            None => self.named(),
        };
        let gateway = gateway.ok_or_else(|| {
            Failure::usage("no gateway is named")
                .help("name it with --gateway, or keep one with `lodestar token use`")
        })?;
        let token = match (self.given()?, &kept) {
            (Some(token), _) => token,
            (None, Some(kept)) => kept.token()?,
            (None, None) => {
                return Err(Failure::not_authorised("there is no token to show to the gateway")
                    .help("name a file of mode 0600 with --token-file; whoever runs the gateway makes one with `lodestar platform account`"));
            }
        };
        Ok(gateway.client(Some(token))?)
    }

    /// Whether an owner's gateway is named or kept.
    pub(crate) fn is_owners(&self) -> bool {
        let kept = Installation::locate().map(|it| Kept::path(&it).exists());
        self.url().is_some() || kept.unwrap_or(false)
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
    let done = runtime.block_on(doing);
    // Looking up a name cannot be called off; nobody waits for an answer that nobody wants any more.
    runtime.shutdown_background();
    Ok(done)
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
            DeviceError::Enrolled(_) => Self::usage(error.to_string()).help(
                "only one that its owner revoked or the platform blocked makes room for another; --device-dir names a folder for a second device",
            ),
            error => Self::usage(error.to_string()),
        }
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Device(error) => error.into(),
            AskError::Gateway(error) => error.into(),
            AskError::Stopped(_) | AskError::StoppedBefore { .. } => {
                Self::not_authorised(error.to_string())
            }
            AskError::OtherKey => Self::not_authorised(error.to_string()).help(OTHER_KEY),
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn nobody_waits_for_a_name_that_is_still_looked_up() {
        let begun = Instant::now();
        wait(async {
            // As the system's resolver does it, where nobody answers.
            tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_secs(20)));
        })
        .unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_gateway_is_the_one_that_is_kept_however_its_url_is_spelt() {
        let kept: Kept = serde_json::from_value(serde_json::json!({
            "gateway": {"url": "https://Gateway.example:443/"},
            "account": "acc_0198c1d2-0000-7000-8000-000000000000",
            "name": "team",
            "token": "",
        }))
        .unwrap();
        assert!(kept.is_of("https://gateway.example"));
        for other in ["https://gateway.example:444", "http://gateway.example", "x"] {
            assert!(!kept.is_of(other), "{other}");
        }
    }
}
