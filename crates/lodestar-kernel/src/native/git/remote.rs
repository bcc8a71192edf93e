//! Where a push goes, and with what credentials: pinned by the operator, bound to one host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lodestar_core::name::Excerpt;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use url::Url;
use zeroize::Zeroizing;

use super::command::variable;
use lodestar_core::contract::Sandbox;

use crate::native::fs::shown;
use crate::native::shell::ExecutableError;
use crate::native::shell::executable::Executable;
use crate::native::shell::process::Confines;

/// Where `ssh` is looked for.
const SSH_PLACES: [&str; 3] = ["/usr/bin/ssh", "/usr/local/bin/ssh", "/bin/ssh"];

/// What stands for a secret in text.
const REDACTED: &[u8] = b"[redacted]";

/// How a remote is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// `https://`.
    Https,
    /// `ssh://`.
    Ssh,
    /// `file://`, a repository on this machine. Its hooks run here, as the user.
    File,
}

impl Protocol {
    fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }
}

/// What a push may show to the pinned host, and to no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Credentials {
    /// A key for `ssh://`. No agent, no other key, no configuration of `ssh` is used.
    SshKey {
        /// The private key's file: absolute.
        key: PathBuf,
        /// The file with the host's key: absolute. A host that is not in it is refused.
        known_hosts: PathBuf,
    },
    /// A token for `https://`, from the proxy's environment.
    Token {
        /// The variable that holds it, looked at when pushing.
        env: String,
        /// The name that goes with it.
        #[serde(default = "default_username")]
        username: String,
    },
    /// A program that answers when `git` or `ssh` asks for a password.
    Askpass {
        /// The program: absolute.
        program: PathBuf,
    },
}

/// What hosts take for a name where only the token counts.
fn default_username() -> String {
    "x-access-token".to_owned()
}

/// Why a remote cannot be pinned, or not be used.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// Not an address of a known form.
    #[error("the remote `{url}` is not of the form `https://host/path` or `ssh://user@host/path`")]
    Url {
        /// The address, inert.
        url: Excerpt,
    },
    /// An address with a password in it, or the like.
    #[error("the remote `{url}` must not have a password, query or fragment; use `credentials`")]
    UrlParts {
        /// The address without them, inert.
        url: Excerpt,
    },
    /// A protocol that is not allowed here.
    #[error("the remote `{url}` needs `{protocol}` in `protocols`")]
    Protocol {
        /// The address, inert.
        url: Excerpt,
        /// The protocol.
        protocol: &'static str,
    },
    /// Credentials for another protocol.
    #[error("these credentials do not fit `{protocol}://`; {remedy}")]
    Credentials {
        /// The protocol.
        protocol: &'static str,
        /// What would.
        remedy: &'static str,
    },
    /// A file that must be absolute and there.
    #[error("`{path}` must be the absolute path of a file, without `%`, `$`, `\"` and `\\`")]
    File {
        /// The path, inert.
        path: Excerpt,
    },
    /// A program that is not run.
    #[error(transparent)]
    Executable(#[from] ExecutableError),
    /// No `ssh`.
    #[error("there is no `ssh` in /usr/bin, /usr/local/bin or /bin")]
    NoSsh,
    /// The token's variable is not set.
    #[error("the variable `{name}` is not set, which is to hold the token")]
    NoToken {
        /// The variable, inert.
        name: Excerpt,
    },
    /// No references.
    #[error("`refs` is empty; pin at least one reference")]
    NoRefs,
    /// A reference that cannot be one.
    #[error("`{name}` is not a full reference such as `refs/heads/main`")]
    Ref {
        /// The reference, inert.
        name: Excerpt,
    },
    /// A branch is pinned twice.
    #[error("the branch `{branch}` is pinned twice")]
    Twice {
        /// The branch, inert.
        branch: Excerpt,
    },
}

/// A checked address with its credentials.
#[derive(Debug)]
pub(crate) struct Remote {
    url: Url,
    protocol: Protocol,
    access: Access,
    /// Files that a push reads on the way: keys, a program that is asked.
    reads: Vec<PathBuf>,
}

#[derive(Debug)]
enum Access {
    None,
    Ssh { command: String },
    Token { env: String, username: String },
    Askpass(Executable),
}

/// Variables for one push, and what of them must not be shown.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<Zeroizing<String>>);

impl Remote {
    pub(crate) fn pin(
        text: &str,
        protocols: &[Protocol],
        credentials: Option<&Credentials>,
    ) -> Result<Self, RemoteError> {
        let url = Url::parse(text).map_err(|_| RemoteError::Url {
            url: Excerpt::of(text),
        })?;
        let shown_url = || Excerpt::of(url_without_userinfo(&url).as_str());
        let protocol = match url.scheme() {
            "https" => Protocol::Https,
            "ssh" => Protocol::Ssh,
            "file" => Protocol::File,
            _ => return Err(RemoteError::Url { url: shown_url() }),
        };
        let named = url.host_str().is_some_and(|host| !host.starts_with('-'));
        if named == (protocol == Protocol::File) || url.path().len() < 2 {
            return Err(RemoteError::Url { url: shown_url() });
        }
        let user_allowed = protocol == Protocol::Ssh && !url.username().starts_with('-');
        let extra = url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
            || !(url.username().is_empty() || user_allowed);
        if extra {
            return Err(RemoteError::UrlParts { url: shown_url() });
        }
        if !protocols.contains(&protocol) {
            return Err(RemoteError::Protocol {
                url: shown_url(),
                protocol: protocol.as_str(),
            });
        }
        let reads = match credentials {
            Some(Credentials::SshKey { key, known_hosts }) => {
                vec![key.clone(), known_hosts.clone()]
            }
            Some(Credentials::Askpass { program }) => vec![program.clone()],
            Some(Credentials::Token { .. }) | None => Vec::new(),
        };
        Ok(Self {
            reads,
            access: access(protocol, credentials)?,
            protocol,
            url,
        })
    }

    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// What a push reaches on this machine.
    pub(crate) fn confines(&self, confines: Confines) -> Confines {
        let mut confines = confines;
        confines.profile = Sandbox::ControlledNetwork;
        confines.reads.extend(self.reads.iter().cloned());
        if self.protocol == Protocol::File {
            confines.writes.extend(self.url.to_file_path());
        }
        confines
    }

    /// The variables that a push needs to get there.
    pub(crate) fn environment(&self) -> Result<(Vec<(OsString, OsString)>, Secrets), RemoteError> {
        let mut environment = vec![variable("GIT_ALLOW_PROTOCOL", self.protocol.as_str())];
        let mut secrets = Secrets::default();
        match &self.access {
            Access::None => {}
            Access::Ssh { command } => {
                environment.push(variable("GIT_SSH_COMMAND", command));
                environment.push(variable("GIT_SSH_VARIANT", "ssh"));
            }
            Access::Askpass(program) => {
                program.check()?;
                for name in ["GIT_ASKPASS", "SSH_ASKPASS"] {
                    environment.push(variable(name, program.path()));
                }
                environment.push(variable("SSH_ASKPASS_REQUIRE", "force"));
            }
            Access::Token { env, username } => {
                let token = std::env::var(env).map(Zeroizing::new);
                let token = token.map_err(|_| RemoteError::NoToken {
                    name: Excerpt::of(env),
                })?;
                let pair = Zeroizing::new(format!("{username}:{}", *token));
                let encoded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
                let header = Zeroizing::new(format!("Authorization: Basic {}", *encoded));
                // For this host only; redirects are not followed. Variables of a process can be
                // read by its user alone, its words by everybody.
                let key = format!("http.{}.extraHeader", self.origin());
                environment.push(variable("GIT_CONFIG_COUNT", "1"));
                environment.push(variable("GIT_CONFIG_KEY_0", key));
                environment.push(variable("GIT_CONFIG_VALUE_0", header.as_str()));
                secrets = Secrets(vec![token, encoded]);
            }
        }
        Ok((environment, secrets))
    }

    fn origin(&self) -> String {
        let mut origin = self.url.clone();
        origin.set_path("/");
        origin.into()
    }
}

impl Secrets {
    /// The text without them.
    pub(crate) fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        let mut clean = bytes.to_vec();
        for secret in &self.0 {
            clean = without(&clean, secret.as_bytes());
        }
        clean
    }
}

fn without(bytes: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        if !secret.is_empty() && rest.starts_with(secret) {
            clean.extend_from_slice(REDACTED);
            rest = &rest[secret.len()..];
        } else {
            clean.push(first);
            rest = &rest[1..];
        }
    }
    clean
}

fn url_without_userinfo(url: &Url) -> Url {
    let mut plain = url.clone();
    // Fails for addresses that cannot have them.
    let _ = plain.set_password(None);
    plain.set_query(None);
    plain.set_fragment(None);
    plain
}

fn access(protocol: Protocol, credentials: Option<&Credentials>) -> Result<Access, RemoteError> {
    let misfit = |remedy| {
        Err(RemoteError::Credentials {
            protocol: protocol.as_str(),
            remedy,
        })
    };
    match (protocol, credentials) {
        (Protocol::Https | Protocol::File, None) => Ok(Access::None),
        (Protocol::Ssh, Some(Credentials::SshKey { key, known_hosts })) => {
            for file in [key, known_hosts] {
                if !file.is_absolute() || !file.is_file() {
                    return Err(RemoteError::File { path: shown(file) });
                }
            }
            let ssh = SSH_PLACES
                .iter()
                .map(Path::new)
                .find(|place| place.exists())
                .ok_or(RemoteError::NoSsh)?;
            let ssh = Executable::pin(ssh)?;
            Ok(Access::Ssh {
                command: ssh_command(ssh.path(), key, known_hosts)?,
            })
        }
        (Protocol::Https, Some(Credentials::Token { env, username })) => Ok(Access::Token {
            env: env.clone(),
            username: username.clone(),
        }),
        (Protocol::Https, Some(Credentials::Askpass { program })) => {
            Ok(Access::Askpass(Executable::pin(program)?))
        }
        (Protocol::Ssh, _) => misfit("use `ssh-key`"),
        (Protocol::Https, Some(Credentials::SshKey { .. })) => misfit("use `token` or `askpass`"),
        (Protocol::File, Some(_)) => misfit("use none"),
    }
}

/// Git hands this to a shell, so every word is quoted for one; and `ssh` reads options as it reads
/// its configuration, so paths are quoted for that, too.
fn ssh_command(ssh: &Path, key: &Path, known_hosts: &Path) -> Result<String, RemoteError> {
    let text = |path: &Path| {
        // What `ssh` would expand or end the quotes at.
        let odd = |c: char| c.is_control() || matches!(c, '%' | '$' | '"' | '\\');
        path.to_str()
            .filter(|text| !text.contains(odd))
            .map(str::to_owned)
            .ok_or_else(|| RemoteError::File { path: shown(path) })
    };
    let options = [
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        "StrictHostKeyChecking=yes",
        "ProxyCommand=none",
        "PermitLocalCommand=no",
        "ControlPath=none",
        "ForwardAgent=no",
        "ForwardX11=no",
        "PasswordAuthentication=no",
    ];
    let mut command = format!("{} -F /dev/null", quoted(&text(ssh)?));
    for option in options {
        command.push_str(&format!(" -o {option}"));
    }
    // Not `-i`, which falls back to the user's own keys where the file is missing.
    for (name, path) in [("IdentityFile", key), ("UserKnownHostsFile", known_hosts)] {
        let option = format!("{name}=\"{}\"", text(path)?);
        command.push_str(&format!(" -o {}", quoted(&option)));
    }
    Ok(command)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
