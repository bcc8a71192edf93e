//! What a session that is over left behind, read from its log: calls without an end, requests without
//! an answer, confirmations that were spent.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;

use lodestar_core::contract::Contract;
use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::name::ToolName;
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Cleared, Finished, Rejected, Unknown};
use lodestar_kernel::terse;
use lodestar_log::{Event, Reader, SessionDir};
use lodestar_policy::confirmation::{Consumed, SpentBefore};
use lodestar_policy::{
    Answer, ApprovalRequest, Arbiter, Closed, Closing, Requests, Standing, StepKind, Trail,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::GuardError;

/// How many requests can have ended without anybody being told: those that were being withdrawn when the
/// session stopped.
const LATELY: usize = 64;

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
    /// Whether everything that was asked, said and spent can still be read.
    is_whole: bool,
    confirmations: SpentBefore,
    /// The requests that something was said of last.
    lately: VecDeque<RequestId>,
    unfinished: BTreeMap<ActionId, (u64, Unknown)>,
    /// What was proposed and may yet become a step.
    proposed: BTreeMap<ActionId, StepKind>,
    /// Its steps, where somebody looked at them.
    pub(crate) trail: Trail,
}

impl Past {
    /// Reads the whole log of a session.
    pub(crate) fn of(dir: &SessionDir) -> Result<Self, GuardError> {
        let reader = Reader::open(dir).map_err(unreadable)?;
        let mut past = Self {
            is_whole: true,
            ..Self::default()
        };
        for event in reader {
            past.follow(&event.map_err(unreadable)?, dir)?;
        }
        Ok(past)
    }

    fn follow(&mut self, event: &Event, dir: &SessionDir) -> Result<(), GuardError> {
        let kind = EventType::parse(event.kind.as_bytes());
        let Some(kind) = kind.filter(|kind| self.is_concerned_by(*kind)) else {
            return Ok(());
        };
        // What was redacted may have been what spent a grant: nobody can tell any more.
        let Some(payload) = terse::whole(event, dir, None).map_err(unreadable)? else {
            self.is_whole = false;
            return Ok(());
        };
        let told = Told::read(kind, payload, self.opening.as_ref());
        if let Some(told) = told {
            self.take_in(event.seq, told);
        }
        Ok(())
    }

    /// Proposals matter where their order does.
    fn is_concerned_by(&self, kind: EventType) -> bool {
        if kind != EventType::ACTION_PROPOSED {
            return CONCERNED.contains(&kind);
        }
        let opening = self.opening.as_ref();
        opening.is_some_and(|opening| opening.arbiters.has(Arbiter::AnomalousToolSequence))
    }

    fn take_in(&mut self, seq: u64, told: Told) {
        if let Some(request) = told.request() {
            self.lately.truncate(LATELY - 1);
            self.lately.push_front(request);
        }
        match told {
            Told::Opened(opening) => self.opening = Some(*opening),
            Told::Proposed(action, kind) => {
                self.proposed.insert(action, kind);
            }
            Told::Halted => self.halted = true,
            Told::Requested(request) => {
                self.recorded.insert(request.id, seq);
                self.requests.open(*request);
            }
            Told::Answered(answer) => self.answered(&answer),
            Told::Consumed(consumed) => {
                self.confirmations.take_in(*consumed);
            }
            Told::Closed(closed) => self.requests.close(closed.request, closed.closing),
            Told::Cleared(cleared) => self.cleared(seq, cleared),
            Told::Rejected(rejected) => {
                // Whether or not the session came to say so of the request itself.
                if let Some(request) = rejected.spent_in_vain() {
                    self.requests.close(request, Closing::WorldMoved);
                }
            }
            Told::Ended(action) => {
                self.unfinished.remove(&action);
            }
        }
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
            let (requests, under) = (&mut self.requests, &opening.under());
            let _ = self
                .confirmations
                .count(confirmation, request, requests, under, at);
        }
    }

    fn cleared(&mut self, seq: u64, cleared: Cleared) {
        if let Some(kind) = self.proposed.remove(&cleared.action) {
            self.trail.step(kind);
        }
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

    /// What was cleared and has no end, in the order of clearing.
    pub(crate) fn unfinished(&self) -> Vec<(u64, Unknown)> {
        let mut open: Vec<_> = self.unfinished.values().cloned().collect();
        open.sort_by_key(|(seq, _)| *seq);
        open
    }

    /// Every confirmation that was spent in it, whatever came of it: none of them is good once more.
    pub(crate) fn spent(&self) -> impl Iterator<Item = &Consumed> {
        self.confirmations.spent()
    }

    /// Requests that ended shortly before the session did: people may not have been told.
    pub(crate) fn lately_over(&self) -> BTreeMap<RequestId, Closing> {
        let over = self.lately.iter().filter_map(|request| {
            let standing = self.requests.standing(*request)?;
            match standing {
                Standing::Over(closing) => Some((*request, closing)),
                Standing::Open | Standing::Granted => None,
            }
        });
        over.collect()
    }

    /// Whether somebody can still answer one of its requests, or spend an answer.
    pub(crate) fn waits(&self, now: Timestamp) -> bool {
        let mut live = self.requests.live();
        !self.halted && self.is_whole && live.any(|hearing| now < hearing.request().expires_at)
    }
}

/// What an event says, as far as it concerns whoever comes after.
enum Told {
    Opened(Box<Opening>),
    Proposed(ActionId, StepKind),
    Halted,
    Requested(Box<ApprovalRequest>),
    Answered(Box<Answer>),
    Consumed(Box<Consumed>),
    Closed(Closed),
    Cleared(Cleared),
    Rejected(Box<Rejected>),
    Ended(ActionId),
}

impl Told {
    /// The request that it may have ended.
    fn request(&self) -> Option<RequestId> {
        match self {
            Self::Answered(answer) => Some(answer.request),
            Self::Closed(closed) => Some(closed.request),
            Self::Cleared(cleared) => cleared.request,
            Self::Rejected(rejected) => rejected.spent_in_vain(),
            Self::Opened(_)
            | Self::Proposed(..)
            | Self::Halted
            | Self::Requested(_)
            | Self::Consumed(_)
            | Self::Ended(_) => None,
        }
    }

    /// None where it cannot be read: verification and replay say so.
    fn read(kind: EventType, payload: Value, opening: Option<&Opening>) -> Option<Self> {
        Some(match kind {
            EventType::ACTION_PROPOSED => {
                let (action, kind) = step(read(payload)?, opening?)?;
                Self::Proposed(action, kind)
            }
            EventType::SESSION_OPENED => Self::Opened(read(payload)?),
            EventType::SESSION_HALTED => Self::Halted,
            EventType::APPROVAL_REQUESTED => Self::Requested(read(payload)?),
            EventType::APPROVAL_GRANTED | EventType::APPROVAL_DENIED => {
                Self::Answered(read(payload)?)
            }
            EventType::CONFIRMATION_CONSUMED => Self::Consumed(read(payload)?),
            EventType::APPROVAL_EXPIRED | EventType::APPROVAL_CONSUMED => {
                Self::Closed(read(payload)?)
            }
            EventType::ACTION_CLEARED => Self::Cleared(read(payload)?),
            EventType::ACTION_REJECTED => Self::Rejected(read(payload)?),
            EventType::ACTION_COMPLETED | EventType::ACTION_FAILED => {
                Self::Ended(read::<Finished>(payload)?.outcome.action)
            }
            EventType::ACTION_UNKNOWN => Self::Ended(read::<Unknown>(payload)?.action),
            _ => return None,
        })
    }
}

/// What a proposal would do: its own contract counts, and the tool's where it has none.
fn step(proposal: Step, opening: &Opening) -> Option<(ActionId, StepKind)> {
    let kind = match &proposal.contract {
        Some(contract) => StepKind::of(contract),
        None => {
            let mut tools = opening.tools.iter();
            StepKind::of(
                &tools
                    .find(|tool| tool.shape.name == proposal.tool)?
                    .contract,
            )
        }
    };
    Some((proposal.id, kind))
}

/// A proposal, as far as it says what kind of step it would be.
#[derive(Deserialize)]
struct Step {
    id: ActionId,
    tool: ToolName,
    contract: Option<Contract>,
}

const CONCERNED: [EventType; 13] = [
    EventType::SESSION_OPENED,
    EventType::SESSION_HALTED,
    EventType::APPROVAL_REQUESTED,
    EventType::APPROVAL_GRANTED,
    EventType::APPROVAL_DENIED,
    EventType::APPROVAL_EXPIRED,
    EventType::CONFIRMATION_CONSUMED,
    EventType::APPROVAL_CONSUMED,
    EventType::ACTION_CLEARED,
    EventType::ACTION_REJECTED,
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
