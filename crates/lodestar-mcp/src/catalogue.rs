//! What the agent is offered: the tools of all servers under names of one's own, and where each leads.

use std::collections::HashMap;
use std::sync::Arc;

use lodestar_core::contract::{ArgumentRole, BlastRadius, Reversibility, Sandbox};
use lodestar_core::event::EventType;
use lodestar_core::ladder::Rung;
use lodestar_core::name::ToolName;
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_guard::config::Naming;
use lodestar_guard::{GuardError, Session, Setup};
use lodestar_kernel::grade::Grade;
use serde_json::{Value, json};

use crate::answer::Contents;
use crate::in_headers::Annotated;
use crate::offer::Declared;
use crate::pins::{APPEARED, Listed, Pins, Standing};
use crate::server::{Server, Up};
use crate::tool::{Drift, McpTool, Method};

/// One of MCP's methods that a server answers with content, as a tool with a grade.
pub(crate) struct Pseudo {
    /// Its name behind the server's.
    pub(crate) name: &'static str,
    /// The method.
    pub(crate) method: &'static str,
    /// The capability without which the server does not have it.
    pub(crate) capability: &'static str,
    contents: Contents,
    arguments: &'static [(&'static str, ArgumentRole)],
    /// Whether it runs unasked where the operator says nothing: it reads what the server lists anyway.
    is_listed: bool,
}

const URI: (&str, ArgumentRole) = ("uri", ArgumentRole::Destination);

/// All of them.
pub(crate) const PSEUDO: [Pseudo; 6] = [
    Pseudo {
        name: "resources.read",
        method: "resources/read",
        capability: "resources",
        contents: Contents::Resources,
        arguments: &[URI],
        is_listed: true,
    },
    Pseudo {
        name: "resources.templates.read",
        method: "resources/read",
        capability: "resources",
        contents: Contents::Resources,
        arguments: &[URI],
        is_listed: false,
    },
    Pseudo {
        name: "resources.subscribe",
        method: "resources/subscribe",
        capability: "resources",
        contents: Contents::Whole,
        arguments: &[URI],
        is_listed: true,
    },
    Pseudo {
        name: "resources.templates.subscribe",
        method: "resources/subscribe",
        capability: "resources",
        contents: Contents::Whole,
        arguments: &[URI],
        is_listed: false,
    },
    Pseudo {
        name: "prompts.get",
        method: "prompts/get",
        capability: "prompts",
        contents: Contents::Messages,
        arguments: &[
            ("name", ArgumentRole::Other),
            ("arguments", ArgumentRole::Other),
        ],
        is_listed: true,
    },
    Pseudo {
        name: "completion.complete",
        method: "completion/complete",
        capability: "completions",
        contents: Contents::Whole,
        arguments: &[
            ("ref", ArgumentRole::Other),
            ("argument", ArgumentRole::Other),
            ("context", ArgumentRole::Other),
        ],
        is_listed: false,
    },
];

/// The names, behind a server's, under which its other methods are graded.
pub fn graded_methods() -> impl Iterator<Item = &'static str> {
    PSEUDO.iter().map(|method| method.name)
}

/// Reading what a server lists: it leaves no trace and reaches nothing new.
fn reading() -> Grade {
    Grade {
        required_trust_level: Some(Rung::L0),
        blast_radius: Some(BlastRadius::SelfOnly),
        reversibility: Some(Reversibility::Reversible),
        data_sensitivity: Some(DataSensitivity::Private),
        sandbox: Some(Sandbox::Read),
        ..Grade::default()
    }
}

/// Most names that are noted because they appeared: a server that invents more is not worth the memory.
const MAX_APPEARED: usize = 2048;

/// The name of something of a server's in the log, in policies and in grades.
pub(crate) fn ledger_name(server: &Server, name: &str) -> String {
    format!("mcp.{}.{name}", server.name())
}

/// One tool of the agent's.
#[derive(Debug)]
pub(crate) struct Route {
    /// Its name in the log.
    pub(crate) ledger: String,
    /// Whether it is still the one that was pinned.
    pub(crate) drift: Arc<Drift>,
    /// Why it is not.
    pub(crate) why: std::sync::Mutex<Option<String>>,
    server: String,
    /// Its name at the server.
    own_name: String,
    digest: lodestar_core::digest::Digest,
    /// Arguments that are repeated in headers.
    pub(crate) annotated: Vec<Annotated>,
}

/// What the agent is offered.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// By every name that the agent may use.
    routes: HashMap<String, Arc<Route>>,
    /// The answer to `tools/list`.
    pub(crate) listing: String,
    naming: Naming,
    /// The servers whose tools these are. One that was not there at the opening is not offered later either.
    servers: std::collections::HashSet<String>,
    /// Tools that appeared while the session ran, by every name that the agent might use.
    appeared: std::sync::Mutex<std::collections::HashSet<String>>,
}

/// A tool that differs from what was pinned.
#[derive(Debug)]
pub(crate) struct Drifted {
    server: Arc<Server>,
    name: String,
    why: String,
    pinned: Option<lodestar_core::digest::Digest>,
    now: Option<Declared>,
}

/// A tool on its way into the catalogue.
struct Entry {
    server: Arc<Server>,
    declared: Declared,
    standing: Standing,
    /// What the agent reads: the pinned definition. What was not pinned, it does not read.
    shown: Option<Value>,
}

/// What the pins say of the servers' tools.
pub(crate) struct Compared {
    entries: Vec<Entry>,
    pub(crate) drifted: Vec<Drifted>,
}

impl Compared {
    /// Holds what every server lists against what was pinned, and pins what is seen for the first time.
    pub(crate) fn with(
        servers: &[(Arc<Server>, Arc<Up>)],
        pins: &mut Pins,
        now: lodestar_core::time::Timestamp,
    ) -> Self {
        let mut compared = Self {
            entries: Vec::new(),
            drifted: Vec::new(),
        };
        for (server, up) in servers {
            let listed: Vec<Listed<'_>> = up.lists.tools.iter().map(Declared::listed).collect();
            let (name, identity) = (server.name().as_str(), server.identity.as_str());
            let instructions = up.hello.instructions.as_deref();
            let standings = pins.compare(name, identity, instructions, &listed, now);
            let pinned = pins.servers.get(name);
            for (declared, standing) in std::iter::zip(&up.lists.tools, standings) {
                let name = &declared.name;
                let pin = pinned.and_then(|pinned| pinned.tools.get(name));
                if let Standing::Drifted(why) = &standing {
                    compared.drifted.push(Drifted {
                        server: Arc::clone(server),
                        name: name.clone(),
                        why: why.clone(),
                        pinned: pin.map(|pin| pin.digest),
                        now: Some(declared.clone()),
                    });
                }
                compared.entries.push(Entry {
                    server: Arc::clone(server),
                    declared: declared.clone(),
                    standing,
                    shown: pin.map(|pin| pin.definition.clone()),
                });
            }
        }
        compared
    }

    /// Puts the tools into a session that is about to be opened, and into the agent's catalogue.
    pub(crate) fn offer(
        &self,
        mut setup: Setup,
        servers: &[(Arc<Server>, Arc<Up>)],
        scope: &Scope,
        naming: Naming,
    ) -> (Setup, Catalogue) {
        let names = servers
            .iter()
            .map(|(server, _)| server.name().as_str().to_owned());
        let mut catalogue = Catalogue {
            naming,
            servers: names.collect(),
            ..Catalogue::default()
        };
        let mut listed = Vec::new();
        let mut taken: std::collections::HashSet<String> = std::collections::HashSet::new();
        for (server, up) in servers {
            for pseudo in &PSEUDO {
                let ledger = ledger_name(server, pseudo.name);
                if !up.hello.can(pseudo.capability) {
                    setup = setup.absent(ledger);
                    continue;
                }
                let Ok(name) = ToolName::new(&ledger) else {
                    continue;
                };
                let method = Method::Other {
                    name: pseudo.method,
                    contents: pseudo.contents,
                };
                let server = Arc::clone(server);
                let tool = McpTool::other(name, method, pseudo.arguments, server, scope);
                setup = match pseudo.is_listed {
                    true => setup.tool_graded(tool, reading()),
                    false => setup.tool(tool),
                };
                taken.insert(ledger);
            }
        }
        for entry in &self.entries {
            let Entry {
                server,
                declared,
                standing,
                shown,
            } = entry;
            let ledger = ledger_name(server, &declared.name);
            let Ok(name) = ToolName::new(&ledger) else {
                continue;
            };
            // Two of one name, or one that calls itself like a method: neither can be told from the other.
            if !taken.insert(ledger.clone()) {
                continue;
            }
            let drift = Arc::new(Drift::default());
            let route = Arc::new(Route {
                ledger: ledger.clone(),
                drift: Arc::clone(&drift),
                why: std::sync::Mutex::default(),
                server: server.name().as_str().to_owned(),
                own_name: declared.name.clone(),
                digest: declared.digest,
                annotated: Annotated::of(&declared.whole["inputSchema"]),
            });
            let shown_name = catalogue.shown_name(server, &declared.name);
            let mut shown = shown.clone();
            if let Some(members) = shown.as_mut().and_then(Value::as_object_mut) {
                members.insert("name".to_owned(), shown_name.clone().into());
            }
            listed.extend(shown);
            if let Standing::Drifted(why) = standing {
                route.drifts(why);
                setup = setup.absent(ledger.clone());
            } else {
                setup = setup.tool(McpTool::declared(
                    name,
                    declared.name.clone(),
                    &declared.whole,
                    declared.digest,
                    Arc::clone(server),
                    scope,
                    drift,
                ));
            }
            catalogue.routes.insert(ledger, Arc::clone(&route));
            catalogue.routes.insert(shown_name, route);
        }
        let mut listing = json!({"tools": listed});
        crate::answer::strip(&mut listing);
        catalogue.listing = listing.to_string();
        (setup, catalogue)
    }

    /// Records what was seen.
    pub(crate) fn record(&self, session: &Session) -> Result<(), GuardError> {
        for entry in &self.entries {
            let payload = json!({
                "server": entry.server.name().as_str(),
                "identity": entry.server.identity,
                "tool": entry.declared.name,
                "definition": entry.declared.digest,
                "declared": entry.declared.whole,
                "first": entry.standing == Standing::New,
            });
            session.note_proxied(EventType::TOOL_SEEN, &payload)?;
        }
        self.drifted
            .iter()
            .try_for_each(|drifted| drifted.record(session))
    }
}

impl Drifted {
    /// The tool, where it appeared while the session ran: its name and definition.
    pub(crate) fn appeared(&self) -> Option<(String, Value)> {
        let now = self.now.as_ref().filter(|_| self.pinned.is_none())?;
        Some((self.name.clone(), now.whole.clone()))
    }

    /// Records it.
    pub(crate) fn record(&self, session: &Session) -> Result<(), GuardError> {
        let payload = json!({
            "server": self.server.name().as_str(),
            "identity": self.server.identity,
            "tool": self.name,
            "why": self.why,
            "pinned": self.pinned,
            "definition": self.now.as_ref().map(|now| now.digest),
            "declared": self.now.as_ref().map(|now| &now.whole),
        });
        session
            .note_proxied(EventType::TOOL_DRIFTED, &payload)
            .map(drop)
    }
}

impl Route {
    /// It is not the one that was pinned any more.
    pub(crate) fn drifts(&self, why: &str) {
        let mut known = self
            .why
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.get_or_insert_with(|| why.to_owned());
        self.drift.set();
    }

    /// Why it is refused, and what somebody can do.
    pub(crate) fn refusal(&self) -> Option<String> {
        if !self.drift.is_set() {
            return None;
        }
        let known = self
            .why
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let why = known
            .as_deref()
            .unwrap_or("it is not the tool that was pinned");
        Some(format!(
            "{why}; somebody has to look at it with `lodestar tools review {}`",
            self.ledger
        ))
    }
}

impl Catalogue {
    /// Where a name leads.
    pub(crate) fn route(&self, name: &str) -> Option<&Arc<Route>> {
        self.routes.get(name)
    }

    /// Whether a name is that of a tool that appeared while the session ran.
    pub(crate) fn has_appeared(&self, name: &str) -> bool {
        self.appeared().contains(name)
    }

    fn appeared(&self) -> std::sync::MutexGuard<'_, std::collections::HashSet<String>> {
        self.appeared
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The name of something of a server's, as the agent reads it.
    pub(crate) fn shown_name(&self, server: &Server, name: &str) -> String {
        match self.naming {
            Naming::Prefixed => format!("{}__{name}", server.name()),
            Naming::Original => name.to_owned(),
        }
    }

    /// The server's own name for something that the agent names so.
    pub(crate) fn own_name<'a>(&self, server: &Server, name: &'a str) -> Option<&'a str> {
        match self.naming {
            Naming::Prefixed => {
                let rest = name.strip_prefix(server.name().as_str())?;
                rest.strip_prefix("__")
            }
            Naming::Original => Some(name),
        }
    }

    /// Holds a list of the running session against the one it was opened with; gives what is new of it.
    pub(crate) fn relisted(&self, server: &Arc<Server>, tools: &[Declared]) -> Vec<Drifted> {
        let mut drifted = Vec::new();
        let name = server.name().as_str();
        if !self.servers.contains(name) {
            return drifted;
        }
        let known = |own: &str| {
            let mut routes = self.routes.values();
            routes
                .find(|route| route.server == name && route.own_name == own)
                .cloned()
        };
        let mut note = |name: &str, why: &str, pinned, now: Option<&Declared>| {
            drifted.push(Drifted {
                server: Arc::clone(server),
                name: name.to_owned(),
                why: why.to_owned(),
                pinned,
                now: now.cloned(),
            });
        };
        for declared in tools {
            match known(&declared.name) {
                Some(route) if route.digest == declared.digest => {}
                Some(route) => {
                    if !route.drift.is_set() {
                        let why = "its definition changed while the session ran";
                        route.drifts(why);
                        note(&declared.name, why, Some(route.digest), Some(declared));
                    }
                }
                None => {
                    let ledger = ledger_name(server, &declared.name);
                    let shown = self.shown_name(server, &declared.name);
                    let mut appeared = self.appeared();
                    if appeared.len() >= MAX_APPEARED {
                        continue;
                    }
                    let is_new = appeared.insert(ledger);
                    appeared.insert(shown);
                    if is_new {
                        note(&declared.name, APPEARED, None, Some(declared));
                    }
                }
            }
        }
        let gone = self.routes.values().filter(|route| {
            let there = || tools.iter().any(|tool| tool.name == route.own_name);
            route.server == name && !route.drift.is_set() && !there()
        });
        let gone: Vec<Arc<Route>> = gone.cloned().collect();
        for route in gone {
            if route.drift.is_set() {
                continue;
            }
            let why = "its server lists it no more";
            route.drifts(why);
            note(&route.own_name, why, Some(route.digest), None);
        }
        drifted
    }
}
