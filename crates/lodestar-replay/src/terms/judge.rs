//! A session held against registered terms, and derived again.

use std::time::Duration;

use lodestar_core::event::EventType;
use lodestar_core::name::SessionId;
use lodestar_core::statement::Promotion;
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::{FirewallEvent, PromotionGround};
use lodestar_kernel::opening::{Opening, RunTicket};
use lodestar_log::{Event, ProjectLog, Reader};
use lodestar_policy::{Arbiter, Policy};
use serde::Serialize;
use serde_json::Value;

use super::{Part, Reason, Terms};
use crate::defences::Defences;
use crate::follow::ReplayError;
use crate::results::Recorded;
use crate::session::{DeriveError, Patience, derive_alone};

/// How far a device's clock may be off the gateway's: as far as its signed statements may be.
pub const CLOCK_WINDOW: Duration = Duration::from_secs(300);

/// Most reasons that are listed; the rest is counted. A log in which nothing follows has thousands.
const MOST_REASONS: usize = 64;

/// When a gateway gave a run out, and when it had the whole of it, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// When the run was registered.
    pub registered_at: Timestamp,
    /// When its log had arrived.
    pub received_at: Timestamp,
}

/// What came of judging a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// Every reason why it does not pass, in the order of events.
    pub reasons: Vec<Reason>,
    /// How many more there are.
    pub more: u64,
    /// How many events were followed; none where the opening is of other terms, whose policy and tools nobody
    /// here evaluates.
    pub events: u64,
    /// How many verdicts were derived.
    pub verdicts: u64,
    /// How many answers were heard again.
    pub answers: u64,
    /// How many clearances were checked.
    pub clearances: u64,
    /// How many events rest on what other sessions made of beliefs, and are neither for nor against the run.
    pub elsewhere: u64,
}

impl Judgement {
    /// Whether the run kept to its terms: every action that was executed was allowed, or approved by those whose
    /// word counts, under what the owner registered.
    pub fn passed(&self) -> bool {
        self.reasons.is_empty() && self.more == 0
    }

    fn found() -> Self {
        Self {
            reasons: Vec::new(),
            more: 0,
            events: 0,
            verdicts: 0,
            answers: 0,
            clearances: 0,
            elsewhere: 0,
        }
    }

    fn note(&mut self, reason: Reason) {
        match self.reasons.len() < MOST_REASONS {
            true => self.reasons.push(reason),
            false => self.more += 1,
        }
    }
}

/// Judges the session of a run by the terms that it was registered under. Nothing that the log says of policy,
/// keys or grades is believed: it has to be what was registered, and what follows from that is derived again. That
/// the log is whole and unchanged is for others to verify, before.
///
/// Fails only where the log cannot be read at all, or patience is over.
pub fn judge(
    log: &ProjectLog,
    session: &SessionId,
    terms: &Terms,
    ticket: &RunTicket,
    moments: Moments,
    patience: Patience,
) -> Result<Judgement, ReplayError> {
    let mut judgement = Judgement::found();
    let Some(opening) = opening(log, session, &mut judgement)? else {
        return Ok(judgement);
    };
    check_ticket(&opening, ticket, &mut judgement);
    let is_as_registered = match terms.check(moments.registered_at) {
        Ok(policy) => check_opening(&opening, terms, &policy, &mut judgement),
        Err(problem) => {
            let problem = problem.to_string();
            judgement.note(Reason::NotInForce { problem });
            false
        }
    };
    if is_as_registered {
        follow(log, session, terms, (moments, patience), &mut judgement)?;
    }
    judgement
        .reasons
        .sort_by_key(|reason| reason.seq().unwrap_or(u64::MAX));
    Ok(judgement)
}

/// The opening, if there is one that can be judged.
fn opening(
    log: &ProjectLog,
    session: &SessionId,
    judgement: &mut Judgement,
) -> Result<Option<Opening>, ReplayError> {
    let dir = log.session(session);
    let unreadable = |problem: String| Reason::Unreadable { seq: 0, problem };
    let reason = match Reader::open(&dir)?.next_event() {
        Ok(Some(first)) if is(&first, EventType::SESSION_OPENED) => match first.whole(&dir) {
            Ok(Some(payload)) => return Ok(read_opening(payload, judgement)),
            Ok(None) => Reason::Redacted { seq: 0 },
            Err(problem) => unreadable(problem.to_string()),
        },
        Ok(_) => Reason::NotGoverned,
        Err(problem) => unreadable(problem.to_string()),
    };
    judgement.note(reason);
    Ok(None)
}

fn read_opening(payload: Value, judgement: &mut Judgement) -> Option<Opening> {
    if let Defences::Lacks(names) = Defences::of_opening(&payload) {
        judgement.note(Reason::DefencesOff { names });
    }
    if payload.get("policy").is_none() {
        judgement.note(Reason::NotGoverned);
        return None;
    }
    match serde_json::from_value(payload) {
        Ok(opening) => Some(opening),
        Err(problem) => {
            let problem = problem.to_string();
            judgement.note(Reason::Unreadable { seq: 0, problem });
            None
        }
    }
}

fn check_ticket(opening: &Opening, ticket: &RunTicket, judgement: &mut Judgement) {
    match &opening.run {
        None => judgement.note(Reason::NoTicket),
        Some(found) if found.id != ticket.id => judgement.note(Reason::OtherRun),
        Some(found) if found.nonce != ticket.nonce => judgement.note(Reason::OtherNonce),
        Some(_) => {}
    }
}

/// Holds an opening against the terms, part by part. Whether policy and tools are the registered ones, so that
/// they may be evaluated.
fn check_opening(
    opening: &Opening,
    terms: &Terms,
    policy: &Policy,
    judgement: &mut Judgement,
) -> bool {
    let is_text =
        opening.policy.text == policy.source() && opening.policy.digest == policy.digest();
    let parts = [
        (Part::Agent, terms.agents.contains(&opening.agent)),
        (Part::Policy, is_text),
        (
            Part::PolicySignature,
            opening.policy.signature == *policy.signature(),
        ),
        (Part::Approvers, opening.approvers == terms.approvers),
        (
            Part::Confirmations,
            opening.confirmations == terms.confirmations,
        ),
        (
            Part::ApprovalsDefault,
            opening.approvals_default == terms.approvals_default,
        ),
        (Part::Arbiters, opening.arbiters == terms.arbiters),
    ];
    let others = parts.iter().filter(|(_, is_same)| !is_same);
    others.for_each(|(part, _)| judgement.note(Reason::Other { part: *part }));
    let registered: std::collections::HashMap<_, _> = terms
        .tools
        .iter()
        .map(|tool| (&tool.shape.name, tool))
        .collect();
    let mut are_tools = true;
    for tool in &opening.tools {
        if registered.get(&tool.shape.name) != Some(&tool) {
            are_tools = false;
            let tool = tool.shape.name.shown().to_string();
            judgement.note(Reason::Tool { tool });
        }
    }
    let looks = opening.arbiters.has(Arbiter::CalibrationFlag);
    if looks && opening.calibration.is_none() {
        judgement.note(Reason::NoCalibration);
    }
    is_text && are_tools
}

/// Derives the session again, and looks at every event on the way.
fn follow(
    log: &ProjectLog,
    session: &SessionId,
    terms: &Terms,
    (moments, patience): (Moments, Patience),
    judgement: &mut Judgement,
) -> Result<(), ReplayError> {
    let mut watch = Watch::new(terms, moments);
    let derived = derive_alone(
        log,
        session,
        &terms.operators,
        patience,
        &mut |event, said, _| watch.see(event, said.ok(), judgement),
    );
    let replay = match derived {
        Ok(replay) => replay,
        Err(DeriveError::Replay(
            problem @ (ReplayError::Io(_) | ReplayError::Store(_) | ReplayError::OutOfPatience),
        )) => return Err(problem),
        Err(problem) => {
            let problem = problem.to_string();
            judgement.note(Reason::Unreadable { seq: 0, problem });
            return Ok(());
        }
    };
    if !watch.is_closed {
        judgement.note(Reason::NotClosed);
    }
    for seq in &replay.redacted {
        judgement.note(Reason::Redacted { seq: *seq });
    }
    judgement.more += replay.unlisted();
    judgement.events = replay.events;
    judgement.verdicts = replay.verdicts;
    judgement.answers = replay.answers;
    judgement.clearances = replay.clearances;
    judgement.elsewhere = replay.elsewhere.len() as u64;
    for difference in replay.differences {
        judgement.note(Reason::Differs {
            seq: difference.seq,
            recorded: difference.recorded,
            derived: difference.derived,
        });
    }
    Ok(())
}

/// What is looked at in every event, beside what follows from it.
struct Watch<'a> {
    terms: &'a Terms,
    /// In microseconds: what is dated outside is of another time.
    earliest: i64,
    latest: i64,
    is_out_of_time: bool,
    is_closed: bool,
}

impl<'a> Watch<'a> {
    fn new(terms: &'a Terms, moments: Moments) -> Self {
        let window = CLOCK_WINDOW.as_micros() as i64;
        Self {
            terms,
            earliest: moments.registered_at.unix_micros().saturating_sub(window),
            latest: moments.received_at.unix_micros().saturating_add(window),
            is_out_of_time: false,
            is_closed: false,
        }
    }

    fn see(&mut self, event: &Event, said: Option<&Recorded>, judgement: &mut Judgement) {
        let seq = event.seq;
        let time = event.time.unix_micros();
        // Times rise, so that the first says it all.
        if !(self.earliest..=self.latest).contains(&time)
            && !std::mem::replace(&mut self.is_out_of_time, true)
        {
            judgement.note(Reason::OutOfTime { seq });
        }
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            self.is_closed = false;
            let kind = event.kind.clone();
            return judgement.note(Reason::UnknownEvent { seq, kind });
        };
        match kind {
            EventType::SESSION_OPENED if seq > 0 => judgement.note(Reason::OpenedAgain { seq }),
            EventType::SESSION_CLOSED => self.is_closed = true,
            // What the log says of itself may follow.
            EventType::LOG_REDACTED | EventType::LOG_RECOVERED | EventType::LOG_ANCHORED => {}
            _ => self.is_closed = false,
        }
        if let Some(Recorded::Event(said)) = said
            && let FirewallEvent::Promoted(promoted) = said.as_ref()
            && let PromotionGround::Statement(envelope) = &promoted.ground
        {
            let verified = envelope.verify::<Promotion>(&self.terms.operators, event.time);
            let problem = match verified {
                Ok(verified) if verified.subject().belief == promoted.change.belief => return,
                Ok(_) => "it is about another belief".to_owned(),
                Err(problem) => problem.to_string(),
            };
            judgement.note(Reason::Promotion { seq, problem });
        }
    }
}

fn is(event: &Event, kind: EventType) -> bool {
    EventType::parse(event.kind.as_bytes()) == Some(kind)
}
