//! The MCP servers behind the proxy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, de};
use url::Url;

/// The name of a server: part of the names of its tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// Longest name: with a tool's behind it, both still fit the names that clients take.
const LONGEST: usize = 40;

impl ServerName {
    /// Takes letters, digits, `-` and `_`. No dot and no `__`: these part the server from the tool.
    pub fn new(name: &str) -> Result<Self, String> {
        let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let fits = !name.is_empty() && name.len() <= LONGEST && name.chars().all(known);
        let parts = name.contains("__") || name.starts_with('_') || name.ends_with('_');
        if !fits || parts {
            return Err(format!(
                "`{}` is no server's name: 1 to {LONGEST} of `A-Z a-z 0-9 - _`, without `__`, and no `_` at its ends",
                lodestar_core::name::Excerpt::of(name)
            ));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(&name).map_err(de::Error::custom)
    }
}

/// One server.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct Server {
    /// Its name.
    pub name: ServerName,
    /// Where it is.
    pub reached: Reached,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// A process of one's own, over its standard streams.
    Child {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, beside `PATH`, `HOME` and `LANG`.
        env: BTreeMap<String, String>,
        /// What it has of the proxy's own environment: secrets are not written into a configuration.
        inherit_env: BTreeSet<String>,
        /// Where it starts; the project's root where nothing is said.
        cwd: Option<PathBuf>,
    },
    /// A server elsewhere, over Streamable HTTP.
    Url {
        /// Its address.
        url: Url,
        /// Headers, and the environment variables with their values.
        headers_env: BTreeMap<String, String>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: ServerName,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    inherit_env: Option<BTreeSet<String>>,
    cwd: Option<PathBuf>,
    url: Option<Url>,
    headers_env: Option<BTreeMap<String, String>>,
}

impl TryFrom<Written> for Server {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let name = written.name;
        let of_child = written.args.is_some()
            || written.env.is_some()
            || written.inherit_env.is_some()
            || written.cwd.is_some();
        let reached = match (written.command, written.url) {
            (Some(command), None) if written.headers_env.is_none() => Reached::Child {
                command,
                args: written.args.unwrap_or_default(),
                env: written.env.unwrap_or_default(),
                inherit_env: written.inherit_env.unwrap_or_default(),
                cwd: written.cwd,
            },
            (None, Some(url)) if !of_child => match url.scheme() {
                "http" | "https" => Reached::Url {
                    url,
                    headers_env: written.headers_env.unwrap_or_default(),
                },
                other => {
                    return Err(format!(
                        "server `{name}`: `{other}` is no way to a server; `http` and `https` are"
                    ));
                }
            },
            (Some(_), Some(_)) => {
                return Err(format!(
                    "server `{name}` has a `command` and a `url`; it is one or the other"
                ));
            }
            (Some(_), None) => {
                return Err(format!(
                    "server `{name}` is a process, which has no `headers_env`"
                ));
            }
            (None, Some(_)) => {
                return Err(format!(
                    "server `{name}` is elsewhere: `args`, `env`, `inherit_env` and `cwd` are for a `command`"
                ));
            }
            (None, None) => {
                return Err(format!("server `{name}` needs a `command` or a `url`"));
            }
        };
        Ok(Self { name, reached })
    }
}

/// Two servers of one name would be one.
pub(super) fn distinct<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Server>, D::Error> {
    let servers = Vec::<Server>::deserialize(from)?;
    let mut seen = BTreeSet::new();
    for server in &servers {
        if !seen.insert(&server.name) {
            return Err(de::Error::custom(format!(
                "there are two servers named `{}`; a name means one server",
                server.name
            )));
        }
    }
    Ok(servers)
}

/// How the tools of servers are named to the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Naming {
    /// `<server>__<tool>`.
    #[default]
    Prefixed,
    /// As the one server there is names them.
    Original,
}
