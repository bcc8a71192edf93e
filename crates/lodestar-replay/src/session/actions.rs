//! The actions of a session, derived again: proposals, verdicts, answers, clearances, ends.

mod alerts;
mod asked;
mod ends;
mod gone;
mod images;
mod notes;
mod proposed;
mod steps;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::event::EventType;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::id::ActionId;
use lodestar_core::name::ToolName;
use lodestar_firewall::event::LogName;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Finished, Proposal, Unknown};
use lodestar_kernel::registry::ToolRecord;
use lodestar_log::Event;
use lodestar_policy::{Alert, Gate, Judgement, Signal, Trail};
use serde_json::Value;

use super::{Difference, Otherwise, SessionReplay};
use notes::Notes;
use steps::{Before, Steps};
use words::Words;

pub(super) struct Actions {
    place: LogName,
    opening: Opening,
    gate: Gate,
    other: Option<Gate>,
    tools: BTreeMap<ToolName, ToolRecord>,
    /// By the event that proposed each.
    actions: BTreeMap<u64, Followed>,
    proposed_as: BTreeMap<ActionId, u64>,
    /// Verdicts and clearances, and the proposals that they are of.
    of: BTreeMap<u64, u64>,
    /// The proposals of what was cleared and has no end yet.
    running: BTreeSet<u64>,
    words: Words,
    halted: bool,
    steps: Steps,
}

/// How far an action has come.
struct Followed {
    /// None as long as no event says it whose proposal was redacted.
    id: Option<ActionId>,
    proposed: u64,
    /// None where it was redacted.
    proposal: Option<Proposal>,
    /// The steps before it.
    before: Before,
    /// What sentinels were recorded to have seen in it; none where that was redacted.
    alerts: Vec<(u64, Option<Alert<'static>>)>,
    judged: Option<(u64, Ruled)>,
    cleared: bool,
    /// How many paths the last image of it has; none where there is no image, or it was redacted.
    imaged: Option<usize>,
    /// Whether an image of it was redacted.
    image_redacted: bool,
    ended: bool,
    rejected: bool,
}

/// A verdict.
enum Ruled {
    Known(Box<Judgement>),
    /// Nobody can tell any more which.
    Redacted,
}

impl Followed {
    fn new(proposed: u64, proposal: Option<Proposal>, before: Before) -> Self {
        Self {
            id: proposal.as_ref().map(|one| one.action.id),
            proposed,
            proposal,
            before,
            alerts: Vec::new(),
            judged: None,
            cleared: false,
            imaged: None,
            image_redacted: false,
            ended: false,
            rejected: false,
        }
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        self.proposal.as_ref().map(|one| one.action.fingerprint)
    }

    /// Every judgement that follows: more than one where a step before it was redacted. None where
    /// nobody can tell.
    fn judgements(&self, gate: &Gate, heard: &[Signal]) -> Option<Vec<Judgement>> {
        let proposal = self.proposal.as_ref()?;
        let judged = |trail: &Trail| gate.judge(&proposal.facts(*trail), heard);
        Some(self.before.possible()?.iter().map(judged).collect())
    }
}

impl Actions {
    pub(super) fn new(place: LogName, opening: Opening, gate: Gate, other: Option<Gate>) -> Self {
        let tools = opening.tools.iter();
        Self {
            tools: tools
                .map(|tool| (tool.shape.name.clone(), tool.clone()))
                .collect(),
            place,
            opening,
            gate,
            other,
            actions: BTreeMap::new(),
            proposed_as: BTreeMap::new(),
            of: BTreeMap::new(),
            running: BTreeSet::new(),
            words: Words::default(),
            halted: false,
            steps: Steps::default(),
        }
    }

    /// Whether events of this type say something about actions.
    pub(super) fn concerns(kind: EventType) -> bool {
        [
            EventType::ACTION_PROPOSED,
            EventType::ACTION_JUDGED,
            EventType::SENTINEL_ALERTED,
            EventType::ACTION_CLEARED,
            EventType::ACTION_IMAGED,
            EventType::ACTION_REJECTED,
            EventType::ACTION_COMPLETED,
            EventType::ACTION_FAILED,
            EventType::ACTION_UNKNOWN,
            EventType::APPROVAL_REQUESTED,
            EventType::APPROVAL_GRANTED,
            EventType::APPROVAL_DENIED,
            EventType::APPROVAL_REFUSED,
            EventType::APPROVAL_EXPIRED,
            EventType::APPROVAL_CONSUMED,
            EventType::CONFIRMATION_CONSUMED,
            EventType::CONFIRMATION_MATCHED,
            EventType::CONFIRMATION_REFUSED,
            EventType::SESSION_HALTED,
        ]
        .contains(&kind)
    }

    /// The opening that everything follows from.
    pub(super) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// What has to be so when the session is closed: whatever was cleared has an end.
    pub(super) fn closed(&self, seq: u64, replay: &mut SessionReplay) {
        let running = self.running.iter();
        for action in running.filter_map(|place| self.actions.get(place)) {
            replay.differ(Difference {
                seq,
                recorded: "that the session is closed".to_owned(),
                derived: match action.id {
                    Some(id) => format!("that action `{id}` has no end"),
                    None => format!("that the action of #{} has no end", action.proposed),
                },
            });
        }
    }

    /// Takes in one event and compares it with what follows.
    pub(super) fn follow(
        &mut self,
        kind: EventType,
        event: &Event,
        payload: Value,
        replay: &mut SessionReplay,
    ) {
        let mut notes = Notes {
            seq: event.seq,
            time: event.time,
            parents: &event.parents,
            replay,
        };
        match kind {
            EventType::ACTION_PROPOSED => self.proposed(notes.read(payload), &mut notes),
            EventType::SENTINEL_ALERTED => self.alerted(notes.read(payload), &mut notes),
            EventType::ACTION_JUDGED => self.judged(notes.read(payload), &mut notes),
            EventType::APPROVAL_REQUESTED => self.requested(notes.read(payload), &mut notes),
            EventType::APPROVAL_GRANTED
            | EventType::APPROVAL_DENIED
            | EventType::APPROVAL_REFUSED => {
                if let Some(answer) = notes.read(payload) {
                    self.words
                        .answered(kind, &answer, &self.opening, &mut notes);
                }
            }
            EventType::APPROVAL_EXPIRED | EventType::APPROVAL_CONSUMED => {
                if let Some(closed) = notes.read(payload) {
                    self.words.ended(kind, &closed, &mut notes);
                }
            }
            EventType::CONFIRMATION_CONSUMED => {
                if let Some(consumed) = notes.read(payload) {
                    self.words.spent(consumed, &self.opening, &mut notes);
                }
            }
            EventType::CONFIRMATION_MATCHED => {
                if let Some(would) = notes.read(payload) {
                    self.words.would_match(&would, &self.opening, &mut notes);
                }
            }
            EventType::CONFIRMATION_REFUSED => {
                if let Some(refused) = notes.read(payload) {
                    self.words.refused(&refused, &self.opening, &mut notes);
                }
            }
            EventType::ACTION_CLEARED => self.cleared(notes.read(payload), &mut notes),
            EventType::ACTION_IMAGED => self.imaged(notes.read(payload), &mut notes),
            EventType::ACTION_REJECTED => self.rejected(notes.read(payload), &mut notes),
            EventType::ACTION_COMPLETED | EventType::ACTION_FAILED => {
                let finished: Option<Finished> = notes.read(payload);
                self.left(finished.as_ref(), &mut notes);
                self.ended(finished.map(|one| one.outcome.action), &mut notes);
            }
            EventType::ACTION_UNKNOWN => {
                let unknown: Option<Unknown> = notes.read(payload);
                self.ended(unknown.map(|one| one.action), &mut notes);
            }
            EventType::SESSION_HALTED => self.halted = true,
            _ => {}
        }
    }

    fn proposed(&mut self, proposal: Option<Proposal>, notes: &mut Notes<'_>) {
        let Some(proposal) = proposal else { return };
        let action = &proposal.action;
        match self.tools.get(&action.tool) {
            None => notes.differ(
                format!("that `{}` was proposed", action.tool.shown()),
                "that there is no such tool",
            ),
            Some(tool) => proposed::check(&proposal, tool, &self.opening, notes),
        }
        let (id, seq) = (action.id, notes.seq);
        let followed = Followed::new(seq, Some(proposal), self.steps.so_far());
        self.actions.insert(seq, followed);
        if self.proposed_as.insert(id, seq).is_some() {
            notes.differ("a proposal", "that this action was proposed before");
        }
    }

    /// The action that an event is about. One whose proposal was redacted has the id that the first event
    /// gives it that goes back to that proposal, and no other.
    fn action(&mut self, id: ActionId, parents: &[u64]) -> Option<&mut Followed> {
        let place = match self.proposed_as.get(&id) {
            Some(place) => *place,
            None => {
                let place = self.proposal_of(parents)?;
                let unnamed = self
                    .actions
                    .get_mut(&place)
                    .filter(|one| one.id.is_none())?;
                unnamed.id = Some(id);
                self.proposed_as.insert(id, place);
                place
            }
        };
        self.actions.get_mut(&place)
    }

    /// The proposal that events go back to.
    fn proposal_of(&self, parents: &[u64]) -> Option<u64> {
        parents.iter().find_map(|parent| {
            let is_one = self.actions.contains_key(parent);
            is_one.then_some(*parent).or(self.of.get(parent).copied())
        })
    }

    fn judged(&mut self, judgement: Option<Judgement>, notes: &mut Notes<'_>) {
        let Some(judgement) = judgement else { return };
        let Some(action) = self.action(judgement.action, notes.parents) else {
            return notes.differ("a verdict", "that no such action was proposed");
        };
        let (place, is_second) = (action.proposed, action.judged.is_some());
        if is_second {
            notes.differ("a verdict", "that there was one before");
        }
        self.of.insert(notes.seq, place);
        let action = &self.actions[&place];
        // What the gate's own arbiters saw is derived; what others said was only heard.
        match action.judgements(&self.gate, &judgement.heard) {
            Some(possible) => {
                notes.replay.verdicts += 1;
                let same = possible.iter().find(|one| **one == judgement);
                if possible.len() > 1 {
                    notes.cannot_tell();
                }
                let derived = same.unwrap_or(&possible[0]);
                if same.is_none() {
                    notes.differ(told(&judgement), told(derived));
                }
                alerts::check(derived, &action.alerts, notes);
            }
            None => notes.cannot_tell(),
        }
        alerts::check_parents(action.proposed, &action.alerts, notes);
        if let (Some(other), Some(proposal)) = (&self.other, &action.proposal)
            && let Some(would_be) = action.judgements(other, &judgement.heard)
            && let [would_be] = &would_be[..]
            && would_be.verdict != judgement.verdict
        {
            let otherwise = notes.replay.otherwise.get_or_insert_default();
            otherwise.push(Otherwise {
                seq: action.proposed,
                tool: proposal.action.tool.as_str().to_owned(),
                was: judgement.verdict,
                would_be: would_be.verdict,
                policies: would_be.policies.clone(),
            });
        }
        if let Some(action) = self.actions.get_mut(&place) {
            action.judged = Some((notes.seq, Ruled::Known(Box::new(judgement))));
        }
    }
}

fn told(judgement: &Judgement) -> String {
    let ids: Vec<_> = judgement.policies.iter().map(|id| id.as_str()).collect();
    let by = if ids.is_empty() {
        String::new()
    } else {
        format!(" by {}", ids.join(", "))
    };
    format!(
        "{}{by}, {} errors, {} signals",
        judgement.verdict,
        judgement.errors.len(),
        judgement.signals.len()
    )
}
