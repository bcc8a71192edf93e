//! Opening the session, once the servers have said what they offer; and what becomes of them afterwards.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use lodestar_core::defence::Defence;
use lodestar_core::event::EventType;
use lodestar_core::name::Excerpt;
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::Surroundings as _;
use lodestar_guard::config::Reached;
use lodestar_guard::{Holds, Setup, SystemSurroundings, channel};
use lodestar_kernel::contain::State;
use serde_json::json;

use super::{Conversation, Opened, Settings};
use crate::catalogue::{Compared, Drifted};
use crate::offer::Lists;
use crate::peer::{Peer, Said};
use crate::pins::{LockFile, Pins};
use crate::server::{Server, Up, Watcher};

impl Conversation {
    /// Opens the session. Whatever prevents it ends the conversation: nothing runs ungoverned.
    pub(super) async fn open(self: Arc<Self>) {
        let opened = self.try_open().await;
        if let Err(why) = &opened {
            // Standard output is the agent's.
            eprintln!("lodestar: {why}");
        }
        let failed = opened.is_err();
        let _ = self.opened.set(opened);
        self.ready.send_replace(true);
        if failed {
            self.fatal.send_replace(true);
        }
    }

    async fn try_open(self: &Arc<Self>) -> Result<Opened, String> {
        let settings = &self.settings;
        let (config, keys) = (&settings.config, &settings.keys);
        let mut up = Vec::new();
        let mut down = Vec::new();
        for server in &self.servers {
            match server.up() {
                Ok(found) => up.push((Arc::clone(server), found)),
                Err(why) => down.push((Arc::clone(server), why)),
            }
        }
        let lock = LockFile::of(config.root(), &config.project_id);
        let compared = match self.lacks(Defence::DefinitionPins) {
            // For a harness that takes it out: every session sees every tool for the first time.
            true => Ok(Compared::with(&up, &mut Pins::default(), now())),
            false => lock.change(&keys.log, now(), |pins| Compared::with(&up, pins, now())),
        };
        let compared = compared.map_err(|problem| problem.to_string())?;
        let people = channel::configured(config).map_err(|problem| problem.to_string())?;
        let mut setup = Setup::new(config.clone(), keys.clone())
            .holds(Holds::Tell(people))
            .execution("mcp-proxy")
            .without(settings.without.iter().copied());
        if let Some(ceiling) = settings.ceiling {
            setup = setup.ceiling(ceiling);
        }
        if let Some(task) = &settings.task {
            setup = setup.task(task.clone());
        }
        if let Some(attendant) = &settings.attendant {
            setup = setup.attended(Arc::clone(attendant));
        }
        for (server, _) in &down {
            setup = setup.absent(format!("mcp.{}.", server.name()));
        }
        let scope = config.scope().map_err(|problem| problem.to_string())?;
        setup = self.with_favours(setup, &scope);
        let (setup, catalogue) = compared.offer(setup, &up, &scope, config.naming);
        let session = setup.open().await.map_err(|problem| problem.to_string())?;
        for ignored in session.calibration().iter().flat_map(|one| &one.ignored) {
            eprintln!(
                "lodestar: a calibration does not count: {}",
                Excerpt::of(ignored)
            );
        }
        let record = || -> Result<(), lodestar_guard::GuardError> {
            for (server, up) in &up {
                session.note_proxied(EventType::SERVER_STARTED, &started(server, up))?;
            }
            for (server, why) in &down {
                // Standard output is the agent's.
                eprintln!(
                    "lodestar: server `{}` did not come up, and its tools are not offered in this \
                     session: {why}",
                    server.name()
                );
                session.note_proxied(EventType::SERVER_FAILED, &failed(server, why))?;
            }
            let early =
                std::mem::take(&mut *self.early.lock().unwrap_or_else(PoisonError::into_inner));
            for (server, piece) in early {
                self.record_output(&session, &server, "stderr", &piece)?;
            }
            let warned =
                std::mem::take(&mut *self.warned.lock().unwrap_or_else(PoisonError::into_inner));
            for (server, warning) in warned {
                warn(&session, &server, &warning)?;
            }
            compared.record(&session)
        };
        record().map_err(|problem| problem.to_string())?;
        Ok(Opened { session, catalogue })
    }

    fn record_output(
        &self,
        session: &lodestar_guard::Session,
        server: &str,
        stream: &str,
        piece: &[u8],
    ) -> Result<(), lodestar_guard::GuardError> {
        let left = self.output_left.load(Ordering::Relaxed);
        if left == 0 {
            return Ok(());
        }
        let piece = &piece[..piece.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let rest = left - piece.len() as u64;
        self.output_left.store(rest, Ordering::Relaxed);
        let payload = json!({
            "server": server,
            "stream": stream,
            "text": String::from_utf8_lossy(piece),
            "last": rest == 0,
        });
        session
            .note_proxied(EventType::SERVER_OUTPUT, &payload)
            .map(drop)
    }

    /// Records bytes of a server that are no message.
    pub(super) fn note_noise(&self, server: &Server, noise: &str) {
        if let Some(session) = self.session() {
            let noted =
                self.record_output(session, server.name().as_str(), "stdout", noise.as_bytes());
            self.go_on(noted);
        }
    }

    /// Records that a server spoke in Lodestar's name.
    pub(super) fn note_forgery(&self, opened: &Opened, tool: &str, forged: usize) {
        let text = format!(
            "`_lodestar` in a result of `{tool}`, {forged} times: taken out of the agent's copy"
        );
        let noted = self.record_output(&opened.session, tool, "forged", text.as_bytes());
        self.go_on(noted);
    }

    /// A session whose log cannot be written does not go on.
    fn go_on(&self, noted: Result<(), lodestar_guard::GuardError>) {
        if let Err(problem) = noted {
            eprintln!("lodestar: {problem}");
            self.fatal.send_replace(true);
        }
    }

    /// Keeps what appeared for a person to look at, across sessions.
    fn remember_appeared(&self, server: &Arc<Server>, appeared: Vec<(String, serde_json::Value)>) {
        if appeared.is_empty() {
            return;
        }
        let Settings { config, keys, .. } = &self.settings;
        let lock = LockFile::of(config.root(), &config.project_id);
        let (key, server) = (Arc::clone(&keys.log), Arc::clone(server));
        // A file is written and synced: not where messages are passed on.
        tokio::task::spawn_blocking(move || {
            let noted = lock.change(&key, now(), |pins| {
                for (name, definition) in &appeared {
                    pins.note_appeared(server.name().as_str(), name, definition);
                }
            });
            if let Err(problem) = noted {
                eprintln!("lodestar: {problem}");
            }
        });
    }

    /// What a server tells agents: as it was pinned, or nothing.
    pub(super) fn instructions(&self, server: &Server, now: Option<&str>) -> Option<String> {
        let config = &self.settings.config;
        let lock = LockFile::of(config.root(), &config.project_id);
        let pins = lock.read(&self.settings.keys.log.public()).ok()?;
        match pins.servers.get(server.name().as_str()) {
            None => now.map(str::to_owned),
            Some(pinned) if pinned.instructions.as_deref() == now => now.map(str::to_owned),
            Some(_) => None,
        }
    }
}

fn started(server: &Server, up: &Up) -> serde_json::Value {
    let how = match &server.configured.reached {
        Reached::Child { .. } => "stdio",
        Reached::Url { .. } => "http",
    };
    // `none` was the word before there was any, and is that of a server elsewhere.
    let contained = up.containment.as_ref();
    let contained = contained.filter(|one| one.state != State::Absent);
    json!({
        "server": server.name().as_str(),
        "identity": server.identity,
        "transport": how,
        "revision": up.hello.revision,
        "instructions": up.hello.instructions,
        "containment": contained.map_or("none", |one| one.state.as_str()),
        "confinement": up.containment,
    })
}

fn failed(server: &Server, why: &str) -> serde_json::Value {
    json!({
        "server": server.name().as_str(),
        "identity": server.identity,
        "why": why,
        "again": true,
    })
}

fn now() -> Timestamp {
    SystemSurroundings::default().now()
}

impl Watcher for Conversation {
    fn up(&self, server: &Arc<Server>, up: &Arc<Up>) {
        let Some(Ok(opened)) = self.opened.get() else {
            return;
        };
        let noted = opened
            .session
            .note_proxied(EventType::SERVER_STARTED, &started(server, up));
        self.go_on(noted.map(drop));
        self.relisted(server, &up.lists);
    }

    fn relisted(&self, server: &Arc<Server>, lists: &Lists) {
        let Some(Ok(opened)) = self.opened.get() else {
            return;
        };
        // For a harness that takes it out: what a tool becomes while the session runs is not looked at.
        if self.lacks(Defence::DefinitionPins) {
            return;
        }
        let drifted = opened.catalogue.relisted(server, &lists.tools);
        for one in &drifted {
            self.go_on(one.record(&opened.session));
        }
        self.remember_appeared(
            server,
            drifted.iter().filter_map(Drifted::appeared).collect(),
        );
        // Other lists change, too, and a server that was started again mostly lists what it listed before.
        if !self.tools_announced.swap(false, Ordering::Relaxed) && drifted.is_empty() {
            return;
        }
        // Once for however many announcements; the list that the agent sees stays the pinned one.
        let changed = "notifications/tools/list_changed";
        if !self.tell_listeners(changed, None) {
            let mut message = Vec::new();
            crate::wire::notification(&mut message, changed, None);
            self.agent.offer(message);
        }
    }

    fn failed(&self, server: &Arc<Server>, why: &str, _again: bool) {
        if let Some(session) = self.session() {
            eprintln!(
                "lodestar: server `{}` is gone and is started again: {why}",
                server.name()
            );
            let noted = session.note_proxied(EventType::SERVER_FAILED, &failed(server, why));
            self.go_on(noted.map(drop));
        }
    }

    fn wrote(&self, server: &Arc<Server>, piece: &[u8]) {
        match self.session() {
            Some(session) => {
                let noted = self.record_output(session, server.name().as_str(), "stderr", piece);
                self.go_on(noted);
            }
            None => {
                let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
                if early.len() < 64 {
                    early.push((server.name().as_str().to_owned(), piece.to_vec()));
                }
            }
        }
    }

    fn warned(&self, server: &Arc<Server>, warning: &str) {
        let server = server.name().as_str();
        eprintln!("lodestar: server `{server}`: {warning}");
        match self.session() {
            Some(session) => {
                let noted = warn(session, server, warning);
                self.go_on(noted);
            }
            None => {
                let mut early = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
                early.push((server.to_owned(), warning.to_owned()));
            }
        }
    }

    async fn said(self: &Arc<Self>, server: &Arc<Server>, peer: &Peer, said: Said) {
        self.heard(server, peer, said).await;
    }
}

/// Records what happened to a protected place. Whatever the server wrote before, there is room for it.
fn warn(
    session: &lodestar_guard::Session,
    server: &str,
    warning: &str,
) -> Result<(), lodestar_guard::GuardError> {
    let payload = json!({
        "server": server,
        "stream": "watch",
        "text": warning,
        "last": false,
    });
    session
        .note_proxied(EventType::SERVER_OUTPUT, &payload)
        .map(drop)
}
