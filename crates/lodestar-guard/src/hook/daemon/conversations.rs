//! The conversations of a project: opened at first sight, closed at their end or when they fall silent, and
//! never more than there is room for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lodestar_core::name::Excerpt;
use tokio::sync::Mutex as Turns;

use super::conversation::{Conversation, LONGEST_USE};
use super::place::{Belongs, configuration_above, sessions_of};
use super::wire::LONGEST_HOLD;
use super::{Daemon, Settings};
use crate::channel;
use crate::config::Config;
use crate::hook::tools::with_tools;
use crate::hook::{Client, Incoming};
use crate::session::{Holds, Setup};

/// Most conversations at the same time: each has a log, a store and a place in memory.
const MAX_CONVERSATIONS: usize = 64;

/// How long a conversation may be silent before its session is closed: longer than requests wait for people.
pub(super) const SILENT: Duration = Duration::from_secs(2 * 3600);

/// Whether a conversation is over for all that one can tell. One with a use whose end is open waits for its client, who
/// may ask its user for as long as a use may take.
fn fell_silent(quiet_for: Duration, has_open_uses: bool) -> bool {
    let longest = match has_open_uses {
        true => LONGEST_USE,
        false => SILENT,
    };
    quiet_for >= longest
}

type Key = (Client, String);

/// A conversation, opened by one hook while others wait for it.
type Slot = Arc<Turns<Option<Arc<Conversation>>>>;

/// The conversations.
#[derive(Default)]
pub(super) struct Conversations {
    slots: Mutex<BTreeMap<Key, Slot>>,
    /// Sessions of a project are opened one after the other: each looks at what the others left.
    opening: Turns<()>,
}

impl Conversations {
    fn slots(&self) -> MutexGuard<'_, BTreeMap<Key, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.slots().is_empty()
    }

    /// The conversation that somebody speaks in, if it is open.
    pub(super) async fn find(&self, incoming: &Incoming) -> Option<Arc<Conversation>> {
        let slot = self.slots().get(&key(incoming)).map(Arc::clone)?;
        let found = slot.lock().await.clone();
        found.inspect(|conversation| conversation.touch())
    }

    /// The conversation that somebody speaks in, opened if it is not.
    pub(super) async fn find_or_open(
        &self,
        daemon: &Daemon,
        incoming: &Incoming,
    ) -> Result<Arc<Conversation>, String> {
        let key = key(incoming);
        loop {
            if !self.slots().contains_key(&key) {
                self.make_room().await?;
            }
            let slot = Arc::clone(self.slots().entry(key.clone()).or_default());
            let mut held = slot.lock().await;
            // Whoever closed it meanwhile took the slot away.
            if !self.is_current(&key, &slot) {
                continue;
            }
            if let Some(conversation) = &*held {
                conversation.touch();
                return Ok(Arc::clone(conversation));
            }
            let _turn = self.opening.lock().await;
            let opened = match daemon.over.is_stopped() {
                true => Err(super::ENDING.to_owned()),
                false => open(&daemon.settings, incoming).await,
            };
            match opened {
                Ok(conversation) => {
                    let conversation = Arc::new(conversation);
                    *held = Some(Arc::clone(&conversation));
                    return Ok(conversation);
                }
                Err(why) => {
                    // One that cannot be opened takes no room.
                    self.slots().remove(&key);
                    return Err(why);
                }
            }
        }
    }

    fn is_current(&self, key: &Key, slot: &Slot) -> bool {
        let slots = self.slots();
        slots.get(key).is_some_and(|now| Arc::ptr_eq(now, slot))
    }

    /// Closes the one that was silent longest, where all places are taken. One that waits for its client only gives way
    /// after a silence that would end any other: clients that are interrupted never say what came of a use.
    async fn make_room(&self) -> Result<(), String> {
        let slots: Vec<(Key, Slot)> = {
            let slots = self.slots();
            if slots.len() < MAX_CONVERSATIONS {
                return Ok(());
            }
            let slots = slots.iter();
            slots
                .map(|(key, slot)| (key.clone(), Arc::clone(slot)))
                .collect()
        };
        let quiet = slots.iter().filter_map(|(key, slot)| {
            let slot = slot.try_lock().ok()?;
            let conversation = slot.as_ref()?;
            let (waits, quiet) = (conversation.has_open_uses(), conversation.quiet_for());
            (!waits || quiet >= SILENT).then(|| (!waits, quiet, key.clone()))
        });
        match quiet.max() {
            Some((_, _, key)) => {
                self.close(&key, "another conversation needed its place")
                    .await
            }
            None => Err(format!(
                "{MAX_CONVERSATIONS} conversations are at work, which is as many as one daemon takes"
            )),
        }
    }

    /// Closes those that were silent for too long.
    pub(super) async fn close_silent(&self) {
        let keys: Vec<Key> = {
            let slots = self.slots();
            let silent = slots.iter().filter(|(_, slot)| {
                let slot = slot.try_lock();
                let conversation = slot.as_ref().ok().and_then(|slot| slot.as_ref());
                conversation.is_some_and(|conversation| {
                    fell_silent(conversation.quiet_for(), conversation.has_open_uses())
                })
            });
            silent.map(|(key, _)| key.clone()).collect()
        };
        for key in keys {
            let closed = self.close(&key, "nobody spoke for a long time").await;
            super::tell(closed);
        }
    }

    /// Closes all of them.
    pub(super) async fn close_all(&self, reason: &str) {
        let keys: Vec<Key> = self.slots().keys().cloned().collect();
        for key in keys {
            let closed = self.close(&key, reason).await;
            super::tell(closed);
        }
    }

    /// Closes one; whoever speaks in it next opens it anew.
    pub(super) async fn close_of(&self, incoming: &Incoming, reason: &str) -> Result<(), String> {
        self.close(&key(incoming), reason).await
    }

    async fn close(&self, key: &Key, reason: &str) -> Result<(), String> {
        let Some(slot) = self.slots().get(key).map(Arc::clone) else {
            return Ok(());
        };
        let mut held = slot.lock().await;
        let conversation = held.take();
        let closed = match &conversation {
            Some(conversation) => conversation.close(reason).await,
            None => Ok(()),
        };
        if self.is_current(key, &slot) {
            self.slots().remove(key);
        }
        closed.map_err(|problem| problem.to_string())
    }
}

fn key(incoming: &Incoming) -> Key {
    (incoming.client, incoming.conversation.clone())
}

/// Opens the session of a conversation, under the configuration of its project.
async fn open(settings: &Settings, incoming: &Incoming) -> Result<Conversation, String> {
    let file = belonging(settings, incoming)?;
    let mut config = Config::read(&file).map_err(|problem| problem.to_string())?;
    let longest = u64::try_from(LONGEST_HOLD.as_millis()).unwrap_or(u64::MAX);
    config.approval_timeout_ms = config.approval_timeout_ms.min(longest);
    let keys = (settings.keys)(&config)?;
    let people = channel::configured(&config).map_err(|problem| problem.to_string())?;
    let scope = config.scope().map_err(|problem| problem.to_string())?;
    let attendant = (settings.attendant)(&config, &keys)?;
    let (client, root) = (incoming.client, config.root().to_owned());
    let mut setup = Setup::new(config, keys)
        .holds(Holds::Tell(people))
        .execution("hook")
        .conversation(sessions_of(client, &incoming.conversation))
        // They are the proxy's.
        .absent("mcp.".to_owned());
    if let Some(attendant) = attendant {
        setup = setup.attended(attendant);
    }
    let opened = with_tools(setup, client, &scope).open().await;
    let session = opened.map_err(|problem| problem.to_string())?;
    Ok(Conversation::new(session, client, &root))
}

/// The configuration that a conversation is under, which has to be that of this daemon's project.
fn belonging(settings: &Settings, incoming: &Incoming) -> Result<PathBuf, String> {
    let belongs = Belongs::of(&settings.installation, incoming);
    let settled = belongs.to().map_err(|problem| problem.to_string())?;
    let file = match settled {
        Some(file) => file,
        None => {
            let cwd = incoming.cwd.as_deref().unwrap_or(&settings.root);
            let found = configuration_above(cwd).ok_or_else(|| {
                format!(
                    "there is no `lodestar.toml` in `{}` or above",
                    Excerpt::of(&cwd.to_string_lossy())
                )
            })?;
            let settled = belongs.settle(&found);
            settled.map_err(|problem| problem.to_string())?
        }
    };
    match file.parent() == Some(settings.root.as_path()) {
        true => Ok(file),
        false => Err(format!(
            "the conversation belongs to the project of `{}`",
            Excerpt::of(&file.to_string_lossy())
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_waits_for_its_client_is_not_over_before_its_use_is() {
        let soon = Duration::from_secs(1);
        assert!(!fell_silent(SILENT - soon, false));
        assert!(fell_silent(SILENT, false));
        assert!(!fell_silent(SILENT, true));
        assert!(!fell_silent(LONGEST_USE - soon, true));
        assert!(fell_silent(LONGEST_USE, true));
    }
}
