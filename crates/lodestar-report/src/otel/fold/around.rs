//! What happens around calls: what is believed, what becomes of servers, tools and the session.

use lodestar_core::event::EventType;
use lodestar_core::id::ActionId;
use lodestar_firewall::event::{Adopted, Change, FirewallEvent};
use lodestar_log::Event;
use lodestar_policy::{Alert, Mode};
use opentelemetry::KeyValue;

use super::super::action::Reached;
use super::super::attributes::{text, texts};
use super::super::names;
use super::{Fold, Owner, Unprojectable};

impl Fold {
    /// What concerns the session as a whole, or an action that it names.
    pub(super) fn session_event(
        &mut self,
        kind: EventType,
        event: &Event,
    ) -> Result<(), Unprojectable> {
        let Some(name) = session_event_name(kind) else {
            match kind {
                EventType::SERVER_STARTED => self.server_started(event)?,
                EventType::SENTINEL_ALERTED => self.alerted(event)?,
                _ => {}
            }
            return Ok(());
        };
        let payload = self.payload(event)?.unwrap_or_default();
        let mut said = Vec::new();
        let named = |member: &str| payload[member].as_str().map(str::to_owned);
        said.extend(named("operator").map(|who| text(names::APPROVER, who)));
        let words = ["reason", "why", "what", "message"]
            .iter()
            .find_map(|it| named(it));
        let action: Option<ActionId> = named("action").and_then(|id| id.parse().ok());
        let Some((_, root)) = &mut self.open else {
            return Ok(());
        };
        said.extend(words.map(|it| self.ceiling.words(names::REASON, &it, root.level, event)));
        if kind == EventType::SESSION_HALTED {
            root.halted();
        }
        let action = action.and_then(|id| self.by_id.get(&id));
        match action.and_then(|seq| self.actions.get_mut(seq)) {
            Some(action) => action.note(name, event, said),
            None => root.note(name, event, said),
        }
        Ok(())
    }

    /// What a sentinel saw, as sensitive as the action in which it saw it.
    fn alerted(&mut self, event: &Event) -> Result<(), Unprojectable> {
        const NAME: &str = "lodestar.sentinel.alerted";
        let Some(alert) = self.read::<Alert<'static>>(event)? else {
            self.note_root(NAME, event, Vec::new());
            return Ok(());
        };
        let mode = match alert.mode {
            Mode::Observe => "observe",
            Mode::Arbitrate => "arbitrate",
        };
        let mut said = vec![
            text(names::SENTINEL, &alert.sentinel),
            text(names::SEVERITY, alert.severity),
            text(names::SENTINEL_MODE, mode),
        ];
        let ceiling = self.ceiling;
        let saw = |level| ceiling.words(names::REASON, &alert.saw, level, event);
        let action = self.by_id.get(&alert.action);
        if let Some(action) = action.and_then(|seq| self.actions.get_mut(seq)) {
            said.push(saw(action.level));
            action.note(NAME, event, said);
        } else if let Some((_, root)) = &mut self.open {
            said.push(saw(root.level));
            root.note(NAME, event, said);
        }
        Ok(())
    }

    fn server_started(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?.unwrap_or_default();
        if let Some(identity) = payload["identity"].as_str() {
            let named = |member: &str| payload[member].as_str().map(str::to_owned);
            let reached = Reached {
                revision: named("revision"),
                transport: named("transport"),
            };
            self.servers.insert(identity.to_owned(), reached);
        }
        Ok(())
    }

    pub(super) fn believed(&mut self, event: &Event, said: &FirewallEvent) {
        match said {
            FirewallEvent::Adopted(adopted) => {
                let of = self.by_observation.get(&adopted.observation);
                let owner = of.map(|seq| Owner::Action(*seq));
                self.adopted(event, owner, adopted);
            }
            FirewallEvent::Moved(moved) => {
                let said = moves(moved.changes.iter());
                self.note_root("lodestar.belief.moved", event, said);
            }
            FirewallEvent::Promoted(promoted) => {
                let said = moves(std::iter::once(&promoted.change));
                self.note_root("lodestar.belief.promoted", event, said);
            }
            _ => {}
        }
    }

    pub(super) fn adopted(&mut self, event: &Event, owner: Option<Owner>, adopted: &Adopted) {
        let ids = adopted.beliefs.iter().map(|belief| belief.id.to_string());
        let axes = adopted.beliefs.iter().map(|belief| {
            let axes = &belief.axes;
            format!(
                "truth={} retrieval={} security={} freshness={}",
                axes.truth, axes.retrieval, axes.security, axes.freshness
            )
        });
        let said = vec![texts(names::BELIEFS, ids), texts(names::BELIEFS_AXES, axes)];
        let seq = match owner {
            Some(Owner::Action(seq)) => Some(seq),
            _ => None,
        };
        match seq.and_then(|seq| self.actions.get_mut(&seq)) {
            Some(action) => {
                action.note("lodestar.belief.adopted", event, said);
                if let Some(seq) = seq.filter(|seq| self.actions[seq].is_over()) {
                    self.waiting.retain(|one| *one != seq);
                    self.flush(seq);
                }
            }
            None => self.note_root("lodestar.belief.adopted", event, said),
        }
    }
}

fn moves<'a>(changes: impl Iterator<Item = &'a Change> + Clone) -> Vec<KeyValue> {
    let beliefs = changes.clone().map(|change| change.belief.to_string());
    let moved = changes.clone().flat_map(|change| &change.moves);
    let authority = changes.map(|change| change.authority.to_string()).next();
    let mut said = vec![
        texts(names::BELIEFS, beliefs),
        texts(
            names::BELIEFS_AXES,
            moved.map(|one| {
                format!(
                    "{}: {} to {}",
                    one.axis(),
                    one.from().word(),
                    one.to().word()
                )
            }),
        ),
    ];
    said.extend(authority.map(|authority| text(names::AUTHORITY, authority)));
    said
}

fn session_event_name(kind: EventType) -> Option<&'static str> {
    Some(match kind {
        EventType::CONFIRMATION_CONSUMED => "lodestar.confirmation.consumed",
        EventType::CONFIRMATION_MATCHED => "lodestar.confirmation.matched",
        EventType::CONFIRMATION_REFUSED => "lodestar.confirmation.refused",
        EventType::BELIEF_READ_PRIVILEGED => "lodestar.belief.read_privileged",
        EventType::SERVER_FAILED => "lodestar.server.failed",
        EventType::TOOL_DRIFTED => "lodestar.tool.drifted",
        EventType::LOG_RECOVERED => "lodestar.log.recovered",
        EventType::LOG_REDACTED => "lodestar.log.redacted",
        EventType::SESSION_HALTED => "lodestar.halted",
        EventType::SESSION_CLOSED => "lodestar.closed",
        _ => return None,
    })
}
