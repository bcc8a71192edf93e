//! Asking a server what it offers, once and outside every session: for whoever writes a configuration or looks
//! at definitions.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lodestar_core::digest::Digest;
use lodestar_core::time::Timestamp;
use lodestar_guard::config::{Limits, Server as Configured};
use lodestar_kernel::contain::Host;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::{oneshot, watch};

use crate::child::Wall;
use crate::conversation::{Era, METHOD_NOT_FOUND};
use crate::offer::Lists;
use crate::peer::{Answered, Peer, Said};
use crate::pins::{Listed, Pins, Standing};
use crate::server::{Introduction, Server, Up, Watcher};

/// What is kept of a failing server's standard error: its last words.
const LAST_WORDS: usize = 2 << 10;

/// What a server offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// Who it is: what is started or called under its name.
    pub identity: String,
    /// The revision of MCP that is spoken with it.
    pub revision: String,
    /// What it tells agents to do.
    pub instructions: Option<String>,
    /// Its tools, in its order.
    pub tools: Vec<OfferedTool>,
}

/// One tool of a server, as it declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Its name at the server.
    pub name: String,
    /// All of its definition.
    pub definition: Value,
    /// SHA-256 of the definition in canonical form.
    pub digest: Digest,
}

/// Why a server does not say what it offers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct NotOffered {
    /// Why.
    pub why: String,
    /// The last that it wrote to its standard error.
    pub last_words: String,
}

/// Who a server would be: part of the pins of its tools, and of every approval.
pub fn identity(server: &Configured) -> String {
    crate::identity::of(server).as_str().to_owned()
}

/// Starts or calls a server, greets it, asks for its lists, and leaves it again.
///
/// It is told of no capability of an agent's: what it offers only to some agents is not among its tools.
pub async fn offered(
    server: &Configured,
    root: &Path,
    keys: Option<&Path>,
    deadline: Duration,
) -> Result<Offered, NotOffered> {
    // Nobody has graded its tools: it is contained as tightly as one whose tools only read.
    let out_of_reach = lodestar_kernel::protect::out_of_reach(root, keys, [], []);
    let wall = Wall {
        plan: server.plan(root, BTreeSet::new(), Vec::new(), out_of_reach),
        demand: server.confines.containment,
        hosting: Host::here,
    };
    let server = Arc::new(Server::new(
        server.clone(),
        root.to_owned(),
        wall,
        deadline,
        Limits::default().message_bytes,
    ));
    let introduction = Introduction {
        capabilities: json!({}),
        client: json!({"name": "lodestar", "version": env!("CARGO_PKG_VERSION")}),
        era: Era::Handshake,
    };
    let (leave, introduced) = watch::channel(Some(introduction));
    let (tell, told) = oneshot::channel();
    let listener = Arc::new(Listener {
        tell: Mutex::new(Some(tell)),
        written: Mutex::default(),
    });
    let running = tokio::spawn(Arc::clone(&server).run(introduced, Arc::clone(&listener)));
    // A server that cannot even be reached is given a moment more than one that is slow to answer.
    let told = tokio::time::timeout(deadline + Duration::from_secs(5), told).await;
    drop(leave);
    let _ = running.await;
    let up = match told {
        Ok(Ok(told)) => told,
        Ok(Err(_)) | Err(_) => Err(format!(
            "it did not say what it offers within {} ms",
            deadline.as_millis()
        )),
    };
    let up = up.map_err(|why| NotOffered {
        why,
        last_words: listener.last_words(),
    })?;
    let tools = up.lists.tools.iter().map(|tool| OfferedTool {
        name: tool.name.clone(),
        definition: tool.whole.clone(),
        digest: tool.digest,
    });
    Ok(Offered {
        identity: server.identity.as_str().to_owned(),
        revision: up.hello.revision.clone(),
        instructions: up.hello.instructions.clone(),
        tools: tools.collect(),
    })
}

impl Offered {
    /// Holds what is offered against what was pinned, and pins what is seen for the first time.
    pub fn pin(&self, pins: &mut Pins, server: &str, now: Timestamp) -> Vec<(String, Standing)> {
        let listed: Vec<Listed<'_>> = self
            .tools
            .iter()
            .map(|tool| Listed {
                name: &tool.name,
                definition: &tool.definition,
                digest: tool.digest,
            })
            .collect();
        let instructions = self.instructions.as_deref();
        let standings = pins.compare(server, &self.identity, instructions, &listed, now);
        let names = self.tools.iter().map(|tool| tool.name.clone());
        names.zip(standings).collect()
    }
}

/// What came of a server that was started.
type Found = Result<Arc<Up>, String>;

/// Hears what becomes of the server.
struct Listener {
    tell: Mutex<Option<oneshot::Sender<Found>>>,
    written: Mutex<Vec<u8>>,
}

impl Listener {
    fn tell(&self, what: Found) {
        let tell = self
            .tell
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(tell) = tell {
            let _ = tell.send(what);
        }
    }

    fn last_words(&self) -> String {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&written).trim().to_owned()
    }
}

impl Watcher for Listener {
    fn up(&self, _: &Arc<Server>, up: &Arc<Up>) {
        self.tell(Ok(Arc::clone(up)));
    }

    fn relisted(&self, _: &Arc<Server>, _: &Lists) {}

    fn failed(&self, _: &Arc<Server>, why: &str, _: bool) {
        self.tell(Err(why.to_owned()));
    }

    fn wrote(&self, _: &Arc<Server>, piece: &[u8]) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(piece);
        let beyond = written.len().saturating_sub(LAST_WORDS);
        written.drain(..beyond);
    }

    fn warned(&self, server: &Arc<Server>, warning: &str) {
        self.wrote(server, format!("lodestar: {warning}\n").as_bytes());
    }

    async fn said(self: &Arc<Self>, _: &Arc<Server>, peer: &Peer, said: Said) {
        let Said::Request { id, method, .. } = said else {
            return;
        };
        let nothing = RawValue::from_string("{}".to_owned());
        match (&*method, nothing) {
            ("ping", Ok(nothing)) => peer.answer(&id, &Answered::Result(nothing)).await,
            _ => {
                let why = "this is not offered to servers here";
                peer.decline(&id, METHOD_NOT_FOUND, why).await;
            }
        }
    }
}
