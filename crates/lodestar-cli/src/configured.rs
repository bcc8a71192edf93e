//! The project's configuration, and the tools that a command is about: those it asks for, or else
//! those in the box.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lodestar_guard::config::{Config, ConfigError};
use lodestar_guard::in_the_box;
use lodestar_kernel::registry::Registry;
use lodestar_kernel::tool::Tool;
use lodestar_policy::ToolShape;
use serde_json::{Value, json};

use crate::cli::App;
use crate::failure::Failure;
use crate::pinned::{self, State};
use crate::trust::known_operators;
use crate::{inert, place};

/// What a server answers beside its tools.
const METHODS: [&str; 5] = [
    "resources.",
    "prompts.",
    "completion.",
    "sampling.",
    "elicitation.",
];

/// The configuration's name where none is given.
pub(crate) const FILE: &str = "lodestar.toml";

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The configuration [default: the nearest `lodestar.toml`, from here upwards]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// A configuration, and where it was found.
pub(crate) struct Configured {
    pub(crate) file: PathBuf,
    pub(crate) config: Config,
}

impl ConfigArgs {
    /// The one that was named, or the nearest; none where there is none.
    pub(crate) fn find(&self, app: &App) -> Result<Option<Configured>, Failure> {
        let Some(file) = self.file(app)? else {
            return Ok(None);
        };
        let config = Config::read(&file)?;
        Ok(Some(Configured { file, config }))
    }

    fn file(&self, app: &App) -> Result<Option<PathBuf>, Failure> {
        if let Some(file) = &self.config {
            return Ok(Some(file.clone()));
        }
        let is_there = |dir: &&Path| dir.join(FILE).is_file();
        let found = match app.root() {
            Some(root) => Some(root).filter(is_there).map(Path::to_owned),
            None => place::here()?
                .ancestors()
                .find(is_there)
                .map(Path::to_owned),
        };
        Ok(found.map(|dir| dir.join(FILE)))
    }
}

/// The tools of a configuration, those of its servers among them as they were pinned.
fn with_pinned(config: &Config) -> Result<(Registry, BTreeMap<String, State>), Failure> {
    if config.downstream_servers.is_empty() {
        return Ok((config.registry()?, BTreeMap::new()));
    }
    let pins = pinned::of(config)?;
    let operators = known_operators().keys();
    let mut states = BTreeMap::new();
    for server in &config.downstream_servers {
        let name = server.name.as_str();
        let Some(of_server) = pins.servers.get(name) else {
            continue;
        };
        for (tool, pin) in &of_server.tools {
            let stands = pinned::state(
                pin,
                &config.project_id,
                &of_server.identity,
                tool,
                &operators,
            );
            states.insert(format!("mcp.{name}.{tool}"), stands);
        }
    }
    Ok((config.registry_with(tools_of_servers(config)?)?, states))
}

/// The tools of a configuration's servers, as they were pinned.
pub(crate) fn tools_of_servers(config: &Config) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    if config.downstream_servers.is_empty() {
        return Ok(Vec::new());
    }
    let servers = config.downstream_servers.iter();
    let scope = config.scope().map_err(ConfigError::from)?;
    let pins = pinned::of(config)?;
    Ok(pins.tools(servers.map(|server| server.name.as_str()), &scope))
}

/// The tools that a command is about.
pub(crate) struct Tooling {
    pub(crate) registry: Registry,
    pub(crate) configured: Option<Configured>,
    /// How the pinned tools of servers stand, by name.
    pub(crate) pinned: BTreeMap<String, State>,
    /// Tools in the box that could not be made without a configuration, and why.
    pub(crate) left_out: Vec<(&'static str, String)>,
}

impl Tooling {
    pub(crate) fn find(args: &ConfigArgs, app: &App) -> Result<Self, Failure> {
        match args.find(app)? {
            Some(configured) => {
                let (registry, pinned) = with_pinned(&configured.config)?;
                Ok(Self {
                    registry,
                    pinned,
                    configured: Some(configured),
                    left_out: Vec::new(),
                })
            }
            None => {
                let made = in_the_box(&place::here()?);
                Ok(Self {
                    registry: made.registry,
                    configured: None,
                    pinned: BTreeMap::new(),
                    left_out: made.left_out,
                })
            }
        }
    }

    pub(crate) fn config(&self) -> Option<&Config> {
        self.configured.as_ref().map(|one| &one.config)
    }

    /// The tools as policies see them.
    pub(crate) fn shapes(&self) -> Vec<ToolShape> {
        let entries = self.registry.iter();
        entries.map(|entry| entry.record().shape.clone()).collect()
    }

    /// Names that are graded and belong to no tool in the box: a program brings such a tool itself, or
    /// the name is misspelt.
    pub(crate) fn not_here(&self) -> Vec<&str> {
        let Some(config) = self.config() else {
            return Vec::new();
        };
        let is_here = |name: &str| {
            let mut entries = self.registry.iter();
            entries.any(|entry| entry.record().shape.name.as_str() == name)
        };
        // Methods of servers have grades and no pins: what is read through them is pinned nowhere.
        let is_method = |name: &str| {
            let mut servers = config.downstream_servers.iter();
            servers.any(|server| {
                let rest = name.strip_prefix(&format!("mcp.{}.", server.name));
                rest.is_some_and(|rest| METHODS.iter().any(|method| rest.starts_with(method)))
            })
        };
        let graded = config.tool_defaults.keys().map(String::as_str);
        graded
            .filter(|name| !is_here(name) && !is_method(name))
            .collect()
    }

    /// Where the tools come from, in a few words.
    pub(crate) fn origin(&self) -> String {
        match &self.configured {
            Some(configured) => format!("the tools of `{}`", inert::path(&configured.file)),
            None => "the tools in the box".to_owned(),
        }
    }

    /// Says which tools are not known, to people.
    pub(crate) fn note(&self, app: &App) {
        if self.configured.is_none() {
            app.note("there is no `lodestar.toml` here, so the tools are those in the box");
        }
        for (name, why) in &self.left_out {
            app.note(format!("`{name}` is not among them: {why}"));
        }
        for name in self.not_here() {
            app.note(format!(
                "`{}` is graded, and no tool here has that name: a program brings it, or it is misspelt",
                inert::line(name, 80)
            ));
        }
    }

    /// The same for machines.
    pub(crate) fn json(&self) -> Value {
        let left_out = self.left_out.iter();
        let left_out = left_out.map(|(name, why)| json!({"name": name, "why": why}));
        json!({
            "config": self.configured.as_ref().map(|one| one.file.to_string_lossy()),
            "left_out": left_out.collect::<Vec<_>>(),
            "not_here": self.not_here(),
        })
    }
}
