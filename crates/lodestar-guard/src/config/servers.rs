//! The MCP servers behind the proxy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use lodestar_core::contract::Sandbox;
use lodestar_kernel::contain::{Network, OutOfReach, Plan, Strictness, on_path};
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
    /// What it may reach, if it is a process.
    pub confines: Confines,
}

/// What a server that is a process may reach, where that is said apart from the grades of its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confines {
    /// Whether it has to be contained.
    pub containment: Demand,
    /// The profiles whose union it is granted; those of its tools where nothing is said.
    pub sandbox: Option<BTreeSet<Sandbox>>,
    /// Places to read, beyond the profiles.
    pub read: Vec<PathBuf>,
    /// Places to write, beyond the profiles.
    pub write: Vec<PathBuf>,
    /// Its ways out, where they are said apart from the profiles.
    pub network: Option<Network>,
    /// Whether it may use sockets in the file system.
    pub unix_sockets: bool,
}

/// Whether a server has to be contained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Demand {
    /// As far as this machine can; what is missing is said.
    #[default]
    BestEffort,
    /// Wholly, or it does not start.
    Required,
    /// Not at all. The report says so.
    Off,
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

impl Server {
    /// What it may reach on this machine; none where it is elsewhere, or is not to be contained.
    /// `alterable` is what other servers write.
    pub fn plan(
        &self,
        root: &Path,
        graded: BTreeSet<Sandbox>,
        alterable: Vec<PathBuf>,
        out_of_reach: OutOfReach,
    ) -> Option<Plan> {
        let Reached::Child {
            command, args, cwd, ..
        } = &self.reached
        else {
            return None;
        };
        let confines = &self.confines;
        if confines.containment == Demand::Off {
            return None;
        }
        let place = cwd.as_ref().map_or(root.to_owned(), |cwd| root.join(cwd));
        let profiles = confines.sandbox.clone().unwrap_or(graded);
        let program = on_path(Path::new(command), &place);
        let mut plan = Plan::new(profiles, program, root, out_of_reach);
        plan.alterable = alterable;
        plan.writes = self.writes(root);
        // What a link of the project leads to is not what somebody named, and neither is what lies around it.
        plan.loads = loaded_by(&plan);
        let named = args.iter().filter_map(|arg| {
            let real = plan.real(&place.join(arg))?;
            named(arg, real)
        });
        let named: Vec<PathBuf> = named.collect();
        plan.loads.extend(named);
        if cwd.is_some() {
            plan.reads.push(place);
        }
        plan.reads
            .extend(confines.read.iter().map(|path| absolute(path, root)));
        plan.strictness = match confines.containment {
            Demand::Required => Strictness::Wholly,
            Demand::BestEffort | Demand::Off => Strictness::AsFarAsItCan,
        };
        plan.network.clone_from(&confines.network);
        plan.unix_sockets = confines.unix_sockets;
        Some(plan)
    }

    /// The places that it is granted to write by name.
    pub fn writes(&self, root: &Path) -> Vec<PathBuf> {
        let places = self.confines.write.iter();
        places.map(|path| absolute(path, root)).collect()
    }
}

fn absolute(path: &Path, root: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => root.join(path),
    }
}

/// What an argument names that is there: a folder, or the package or folder of a script, with what it loads. Never a
/// home or anything above one.
fn named(argument: &str, real: PathBuf) -> Option<PathBuf> {
    if !argument.contains('/') && !real.is_file() {
        return None;
    }
    let folder = if real.is_dir() {
        real.clone()
    } else {
        package_of(&real).or_else(|| Some(real.parent()?.to_owned()))?
    };
    match is_too_much(&folder) {
        true => real.is_file().then_some(real),
        false => Some(folder),
    }
}

/// What a program that is itself a script loads: its package, and the environment of Python's that it stands in.
fn loaded_by(plan: &Plan) -> Vec<PathBuf> {
    let package = plan.real(&plan.program).as_deref().and_then(package_of);
    let environment = plan.program.parent().and_then(Path::parent);
    let environment = environment.filter(|place| place.join("pyvenv.cfg").is_file());
    let found = package.into_iter().chain(environment.map(Path::to_owned));
    found.filter(|place| !is_too_much(place)).collect()
}

/// Where a script finds what it loads: the outermost `node_modules` that it lies in, or else its package's folder.
fn package_of(script: &Path) -> Option<PathBuf> {
    let above = || script.ancestors().skip(1);
    let modules = above().filter(|folder| folder.ends_with("node_modules"));
    let package = |folder: &&Path| folder.join("package.json").is_file();
    let place = modules.last().or_else(|| above().find(package))?;
    (!is_too_much(place)).then(|| place.to_owned())
}

/// Whether a place is a home, or above one.
fn is_too_much(place: &Path) -> bool {
    let home = std::env::home_dir();
    home.is_some_and(|home| home.starts_with(place)) || place.parent().is_none()
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
    containment: Option<Demand>,
    sandbox: Option<BTreeSet<Sandbox>>,
    read: Option<Vec<PathBuf>>,
    write: Option<Vec<PathBuf>>,
    network: Option<Network>,
    unix_sockets: Option<bool>,
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
            || written.cwd.is_some()
            || written.containment.is_some()
            || written.sandbox.is_some()
            || written.read.is_some()
            || written.write.is_some()
            || written.network.is_some()
            || written.unix_sockets.is_some();
        for path in written.read.iter().chain(&written.write).flatten() {
            stands_for_itself(path).map_err(|why| format!("server `{name}`: {why}"))?;
        }
        let confines = Confines {
            containment: written.containment.unwrap_or_default(),
            sandbox: written.sandbox,
            read: written.read.unwrap_or_default(),
            write: written.write.unwrap_or_default(),
            network: written.network,
            unix_sockets: written.unix_sockets.unwrap_or_default(),
        };
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
                    "server `{name}` is elsewhere: `args`, `env`, `inherit_env`, `cwd` and what contains a process are for a `command`"
                ));
            }
            (None, None) => {
                return Err(format!("server `{name}` needs a `command` or a `url`"));
            }
        };
        Ok(Self {
            name,
            reached,
            confines,
        })
    }
}

/// A place is named, and not left out: an empty one would be the whole project.
fn stands_for_itself(path: &Path) -> Result<(), String> {
    if path.as_os_str().is_empty() {
        return Err(
            "an empty path in `read` or `write` names nothing; the project is `.`".to_owned(),
        );
    }
    let first = path.components().next();
    let of_another = first.and_then(|first| first.as_os_str().to_str());
    match of_another.filter(|first| first.starts_with('~') && *first != "~") {
        Some(first) => Err(format!(
            "`{first}` is not understood: `~` is your own home, of others give the whole path"
        )),
        None => Ok(()),
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
