//! What a session that is over left behind, read from its log: calls without an end, requests without
//! an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::statement::ConfirmationId;
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Cleared, Finished, Unknown};
use lodestar_log::{Event, Reader, SessionDir};
use lodestar_policy::confirmation::{Consumed, SpentBefore, Under};
use lodestar_policy::{Answer, ApprovalRequest, Closed, Closing, Requests};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::GuardError;

/// A session, as its log tells it.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// How it was opened; none if it was not a governed one.
    pub(crate) opening: Option<Opening>,
    /// Its requests.
    pub(crate) requests: Requests,
    /// The events that recorded them.
    pub(crate) recorded: BTreeMap<RequestId, u64>,
    /// Whether it was halted, which is for good.
    pub(crate) halted: bool,
    confirmations: SpentBefore,
    spent: BTreeSet<ConfirmationId>,
    unfinished: BTreeMap<ActionId, (u64, Unknown)>,
}

impl Past {
    /// Reads the whole log of a session.
    pub(crate) fn of(dir: &SessionDir) -> Result<Self, GuardError> {
        let reader = Reader::open(dir).map_err(unreadable)?;
        let mut past = Self::default();
        for event in reader {
            past.follow(&event.map_err(unreadable)?, dir)?;
        }
        Ok(past)
    }

    fn follow(&mut self, event: &Event, dir: &SessionDir) -> Result<(), GuardError> {
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            return Ok(());
        };
        if !CONCERNED.contains(&kind) {
            return Ok(());
        }
        // What was redacted cannot be named any more.
        let Some(payload) = event.whole(dir).map_err(unreadable)? else {
            return Ok(());
        };
        match kind {
            EventType::SESSION_OPENED => self.opening = read(payload),
            EventType::SESSION_HALTED => self.halted = true,
            EventType::APPROVAL_REQUESTED => {
                if let Some(request) = read::<ApprovalRequest>(payload) {
                    self.recorded.insert(request.id, event.seq);
                    self.requests.open(request);
                }
            }
            EventType::APPROVAL_GRANTED | EventType::APPROVAL_DENIED => {
                if let Some(answer) = read::<Answer>(payload) {
                    self.answered(&answer);
                }
            }
            EventType::CONFIRMATION_CONSUMED => {
                if let Some(consumed) = read::<Consumed>(payload) {
                    self.spent.insert(consumed.id);
                    self.confirmations.take_in(consumed);
                }
            }
            EventType::APPROVAL_EXPIRED | EventType::APPROVAL_CONSUMED => {
                if let Some(closed) = read::<Closed>(payload) {
                    self.requests.close(closed.request, closed.closing);
                }
            }
            EventType::ACTION_CLEARED => {
                if let Some(cleared) = read::<Cleared>(payload) {
                    self.cleared(event.seq, cleared);
                }
            }
            EventType::ACTION_COMPLETED | EventType::ACTION_FAILED => {
                if let Some(finished) = read::<Finished>(payload) {
                    self.unfinished.remove(&finished.outcome.action);
                }
            }
            _ => {
                if let Some(unknown) = read::<Unknown>(payload) {
                    self.unfinished.remove(&unknown.action);
                }
            }
        }
        Ok(())
    }

    /// Counts an answer again. What does not count now did not count then; replay says which.
    fn answered(&mut self, answer: &Answer) {
        let Some(opening) = &self.opening else { return };
        let (request, at) = (answer.request, answer.heard_at);
        if let Some(statement) = &answer.statement {
            let _ = self
                .requests
                .hear(request, statement, &opening.approvers, at);
        }
        if let Some(confirmation) = answer.confirmation {
            let under = Under {
                keys: &opening.confirmations.keys,
                approvers: &opening.approvers,
                roles: &|tool| opening.roles(tool),
            };
            let requests = &mut self.requests;
            let _ = self
                .confirmations
                .count(confirmation, request, requests, &under, at);
        }
    }

    fn cleared(&mut self, seq: u64, cleared: Cleared) {
        if let Some(request) = cleared.request {
            self.requests.close(request, Closing::Spent);
        }
        let unknown = Unknown {
            action: cleared.action,
            clearance: cleared.clearance,
            because: "the session ended before the call's result was recorded".to_owned(),
        };
        self.unfinished.insert(cleared.action, (seq, unknown));
    }

    /// The confirmations that its log says were spent.
    pub(crate) fn spent(&self) -> BTreeSet<ConfirmationId> {
        self.spent.clone()
    }

    /// What was cleared and has no end, in the order of clearing.
    pub(crate) fn unfinished(&self) -> Vec<(u64, Unknown)> {
        let mut open: Vec<_> = self.unfinished.values().cloned().collect();
        open.sort_by_key(|(seq, _)| *seq);
        open
    }

    /// Whether somebody can still answer one of its requests, or spend an answer.
    pub(crate) fn waits(&self, now: Timestamp) -> bool {
        let mut live = self.requests.live();
        !self.halted && live.any(|hearing| now < hearing.request().expires_at)
    }
}

const CONCERNED: [EventType; 12] = [
    EventType::SESSION_OPENED,
    EventType::SESSION_HALTED,
    EventType::APPROVAL_REQUESTED,
    EventType::APPROVAL_GRANTED,
    EventType::APPROVAL_DENIED,
    EventType::APPROVAL_EXPIRED,
    EventType::CONFIRMATION_CONSUMED,
    EventType::APPROVAL_CONSUMED,
    EventType::ACTION_CLEARED,
    EventType::ACTION_COMPLETED,
    EventType::ACTION_FAILED,
    EventType::ACTION_UNKNOWN,
];

fn read<T: DeserializeOwned>(payload: Value) -> Option<T> {
    serde_json::from_value(payload).ok()
}

pub(super) fn unreadable(problem: impl Display) -> GuardError {
    GuardError::Unreadable(problem.to_string())
}
