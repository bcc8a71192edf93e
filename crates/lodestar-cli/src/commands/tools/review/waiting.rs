//! What waits for a person: definitions that nobody accepted as they are now.

use std::time::Duration;

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::key::PublicKey;
use lodestar_guard::config::{Config, Server};
use lodestar_mcp::pins::{Pins, ServerPins, difference};
use lodestar_mcp::probe::{self, Offered};
use serde_json::{Value, json};

use crate::cli::App;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::paint::Paint;
use crate::pinned::{State, state};
use crate::{diff, json as text};

/// One definition that waits.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) server: String,
    /// Who the server is now.
    pub(super) identity: String,
    /// The tool; none where it is about what the server tells agents.
    pub(super) tool: Option<String>,
    pub(super) why: String,
    pub(super) pinned: Option<Value>,
    /// The definition now; none where it is gone.
    pub(super) now: Option<Value>,
}

impl Waiting {
    pub(super) fn ledger(&self) -> String {
        match &self.tool {
            Some(tool) => format!("mcp.{}.{tool}", self.server),
            None => format!("mcp.{}", self.server),
        }
    }

    pub(super) fn digest(&self) -> Option<Digest> {
        let canonical = canonical::to_vec(self.now.as_ref()?).ok()?;
        Some(sha256(&canonical))
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "tool": self.ledger(),
            "server": self.server,
            "identity": self.identity,
            "why": self.why,
            "pinned": self.pinned,
            "now": self.now,
            "definition": self.digest(),
        })
    }

    pub(super) fn difference(&self, paint: Paint) -> String {
        let shown = |definition: &Option<Value>| match definition {
            None => String::new(),
            Some(Value::String(words)) => format!("{words}\n"),
            Some(definition) => format!("{}\n", text::pretty(definition)),
        };
        let before = match self.pinned == self.now {
            true => String::new(),
            false => shown(&self.pinned),
        };
        diff::shown(&before, &shown(&self.now), paint)
    }
}

/// Everything that waits, in the order of the configuration.
pub(super) fn find(
    config: &Config,
    pins: &Pins,
    no_start: bool,
    app: &App,
) -> Result<Vec<Waiting>, Failure> {
    let operators = Installation::locate()?.operators()?;
    let operators: Vec<PublicKey> = operators.into_iter().map(|(_, key)| key).collect();
    let mut waiting = Vec::new();
    for server in &config.downstream_servers {
        let name = server.name.as_str();
        let pinned = pins.servers.get(name);
        let offered = match no_start {
            true => None,
            false => ask(server, config, app)?,
        };
        match offered {
            Some(offered) => now(name, pinned, &offered, config, &operators, &mut waiting),
            None => kept(name, pinned, pins, config, &operators, &mut waiting),
        }
    }
    Ok(waiting)
}

fn ask(server: &Server, config: &Config, app: &App) -> Result<Option<Offered>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|problem| Failure::usage(format!("no threads can be started: {problem}")))?;
    let deadline = Duration::from_millis(config.limits.start_deadline_ms);
    let keys = Installation::locate().ok();
    let keys = keys.as_ref().map(Installation::dir);
    match runtime.block_on(probe::offered(server, config.root(), keys, deadline)) {
        Ok(offered) => Ok(Some(offered)),
        Err(problem) => {
            app.note(format!(
                "`{}` does not start, so what sessions saw of it is shown: {problem}",
                server.name
            ));
            Ok(None)
        }
    }
}

/// What a server offers now, held against its pins.
fn now(
    server: &str,
    pinned: Option<&ServerPins>,
    offered: &Offered,
    config: &Config,
    operators: &[PublicKey],
    waiting: &mut Vec<Waiting>,
) {
    let moved = pinned.filter(|pinned| pinned.identity != offered.identity);
    let mut wait = |tool: Option<&str>, why: String, before: Option<Value>, now: Option<Value>| {
        waiting.push(Waiting {
            server: server.to_owned(),
            identity: offered.identity.clone(),
            tool: tool.map(str::to_owned),
            why,
            pinned: before,
            now,
        });
    };
    let told = pinned.and_then(|pinned| pinned.instructions.clone());
    if pinned.is_some() && told != offered.instructions {
        let text = |words: Option<String>| words.map(Value::String);
        let why = "what it tells agents has changed".to_owned();
        wait(None, why, text(told), text(offered.instructions.clone()));
    }
    for tool in &offered.tools {
        let pin = pinned.and_then(|pinned| pinned.tools.get(&tool.name));
        let before = pin.map(|pin| pin.definition.clone());
        let why = match (pin, moved) {
            (Some(_), Some(moved)) => Some(format!(
                "what is started or called under the server's name has changed: it was `{}`",
                moved.identity
            )),
            (None, _) => Some("nobody has seen it before".to_owned()),
            (Some(pin), None) if pin.digest != tool.digest => {
                Some(difference(&pin.definition, &tool.definition))
            }
            (Some(pin), None) => {
                let mut as_seen = pin.clone();
                as_seen.drifted = None;
                let stands = state(
                    &as_seen,
                    &config.project_id,
                    &offered.identity,
                    &tool.name,
                    operators,
                );
                (stands != State::Reviewed).then(|| "nobody has looked at it yet".to_owned())
            }
        };
        if let Some(why) = why {
            wait(Some(&tool.name), why, before, Some(tool.definition.clone()));
        }
    }
    let gone = pinned.into_iter().flat_map(|pinned| &pinned.tools);
    for (name, pin) in gone.filter(|(name, _)| offered.tools.iter().all(|t| t.name != **name)) {
        let why = "its server offers it no more".to_owned();
        wait(Some(name), why, Some(pin.definition.clone()), None);
    }
}

/// What sessions saw of a server, where it cannot be asked.
fn kept(
    server: &str,
    pinned: Option<&ServerPins>,
    pins: &Pins,
    config: &Config,
    operators: &[PublicKey],
    waiting: &mut Vec<Waiting>,
) {
    let Some(pinned) = pinned else { return };
    let mut wait = |tool: &str, why: String, before: Option<Value>, now: Value| {
        waiting.push(Waiting {
            server: server.to_owned(),
            identity: pinned.identity.clone(),
            tool: Some(tool.to_owned()),
            why,
            pinned: before,
            now: Some(now),
        });
    };
    for (name, pin) in &pinned.tools {
        let before = Some(pin.definition.clone());
        match &pin.drifted {
            Some(now) => wait(name, difference(&pin.definition, now), before, now.clone()),
            None => {
                let stands = state(pin, &config.project_id, &pinned.identity, name, operators);
                if stands != State::Reviewed {
                    let why = "nobody has looked at it yet".to_owned();
                    wait(name, why, before, pin.definition.clone());
                }
            }
        }
    }
    for (name, now) in pins.appeared.get(server).into_iter().flatten() {
        wait(
            name,
            "it appeared while a session ran".to_owned(),
            None,
            now.clone(),
        );
    }
}
