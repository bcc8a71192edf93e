//! Deriving a session again from its log alone: every verdict, every approval check, every clearance,
//! every belief's status, through the code that ran live.
//!
//! What the log says and what follows from it are compared; each difference is named with its event.

mod actions;
mod beliefs;
mod beside;

use std::fmt;
use std::io;
use std::panic::resume_unwind;

use lodestar_core::event::EventType;
use lodestar_core::key::PublicKey;
use lodestar_core::ladder::Verdict;
use lodestar_core::name::{PolicyId, SessionId};
use lodestar_firewall::event::LogName;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::terse;
use lodestar_log::{Event, ProjectLog, Reader, SessionDir};
use lodestar_policy::{Gate, Policy};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::defences::Defences;
use crate::follow::ReplayError;
use crate::results::{Recorded, Results, UnreadableBeliefs};
use actions::Actions;
use beside::Beside;
pub use beside::Patience;

/// Where the log and what follows from it differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The event.
    pub seq: u64,
    /// What it says.
    pub recorded: String,
    /// What follows.
    pub derived: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seq,
            recorded,
            derived,
        } = self;
        write!(f, "#{seq}: the log says {recorded}; it follows {derived}")
    }
}

/// What another policy would have decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Otherwise {
    /// The event that proposed the action.
    pub seq: u64,
    /// The tool.
    pub tool: String,
    /// What was decided.
    pub was: Verdict,
    /// What would have been.
    pub would_be: Verdict,
    /// By which policies.
    pub policies: Vec<PolicyId>,
}

/// What came of deriving a session again.
#[derive(Debug, Clone, Serialize)]
pub struct SessionReplay {
    /// The session.
    pub session: SessionId,
    /// The defences that it was opened without, in a harness.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub defences_off: Vec<String>,
    /// How many events it has.
    pub events: u64,
    /// How many verdicts were derived.
    pub verdicts: u64,
    /// How many answers to requests were heard again.
    pub answers: u64,
    /// How many clearances were checked.
    pub clearances: u64,
    /// How many belief events were followed.
    pub beliefs: u64,
    /// Where the log and what follows from it differ.
    pub differences: Vec<Difference>,
    /// Events whose payload was taken away, and those that cannot be derived any more because they rest on
    /// such.
    pub redacted: Vec<u64>,
    /// Events that may rest on what other sessions of the project did to beliefs, of one that was derived
    /// without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<u64>,
    /// What another policy would have decided, where that is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Vec<Otherwise>>,
    #[serde(skip)]
    unlisted: u64,
}

/// Most differences that are listed: a forged log of a million lines must not fill the memory.
const MOST_DIFFERENCES: usize = 10_000;

impl SessionReplay {
    fn differ(&mut self, difference: Difference) {
        match self.differences.len() < MOST_DIFFERENCES {
            true => self.differences.push(difference),
            false => self.unlisted += 1,
        }
    }

    /// How many differences there are beside those that are listed.
    pub fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// For a harness that takes `Defence::ReplayDerivation` out: nothing is compared.
    #[must_use]
    pub fn taken_at_its_word(mut self) -> Self {
        self.differences.clear();
        self.unlisted = 0;
        self
    }

    fn nothing(session: &SessionId) -> Self {
        Self {
            session: session.clone(),
            defences_off: Vec::new(),
            events: 0,
            verdicts: 0,
            answers: 0,
            clearances: 0,
            beliefs: 0,
            differences: Vec::new(),
            redacted: Vec::new(),
            elsewhere: Vec::new(),
            otherwise: None,
            unlisted: 0,
        }
    }

    /// Whether everything that was derived is as the log says.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty() && self.unlisted == 0
    }
}

/// Why a session cannot be derived again.
#[derive(Debug, Error)]
pub enum DeriveError {
    /// It cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Its log has no opening event.
    #[error("session `{0}` has no opening event")]
    NoOpening(SessionId),
    /// The opening event was taken away, and with it the policy.
    #[error("the opening event of session `{0}` was redacted: what its verdicts rest on is gone")]
    OpeningRedacted(SessionId),
    /// The policy in the log does not load any more.
    #[error("the policy that the log of session `{session}` carries does not load: {problem}")]
    Policy {
        /// The session.
        session: SessionId,
        /// Why.
        problem: String,
    },
    /// The other policy does not fit the session's tools.
    #[error("the other policy does not fit the tools of session `{session}`: {problem}")]
    Other {
        /// The session.
        session: SessionId,
        /// Why.
        problem: String,
    },
}

/// Somebody who looks on: each event of the session in its order, what it says of beliefs, and how to read it
/// whole.
pub type Seen<'a> =
    &'a mut (dyn FnMut(&Event, Result<&Recorded, &UnreadableBeliefs>, &Results) + Send);

/// Derives a session again. `operators` are the people whose orders about beliefs count; `other` is a
/// policy to compare with.
pub fn derive(
    log: &ProjectLog,
    session: &SessionId,
    operators: &[PublicKey],
    other: Option<Policy>,
) -> Result<SessionReplay, DeriveError> {
    let until = written(log, session).map_err(ReplayError::from)?;
    derive_seen(log, session, operators, other, until, &mut |_, _, _| ())
}

/// How many events a session has at this moment. One that cannot be read is found where it is followed.
fn written(log: &ProjectLog, session: &SessionId) -> io::Result<u64> {
    let mut events = 0;
    for event in Reader::open(&log.session(session))? {
        match event {
            Ok(_) => events += 1,
            Err(_) => return Ok(u64::MAX),
        }
    }
    Ok(events)
}

/// The same, while somebody looks on. What they see is what the log says; that it follows is known when
/// this returns. Only the first `until` events are looked at: a session may be written meanwhile, and whoever
/// reads it twice would not read the same.
pub fn derive_seen(
    log: &ProjectLog,
    session: &SessionId,
    operators: &[PublicKey],
    other: Option<Policy>,
    until: u64,
    seen: Seen<'_>,
) -> Result<SessionReplay, DeriveError> {
    derive_beside(
        log,
        (session, until),
        operators,
        other,
        Beside::Project,
        seen,
    )
}

/// The same of a session that nobody writes any more, of whose project nothing else is at hand. What it says of
/// beliefs that others adopted, or that others may have changed in between, is noted, and not held against it: no
/// verdict follows from that.
pub fn derive_alone(
    log: &ProjectLog,
    session: &SessionId,
    operators: &[PublicKey],
    patience: Patience,
    seen: Seen<'_>,
) -> Result<SessionReplay, DeriveError> {
    let whole = (session, u64::MAX);
    let beside = Beside::Nothing(patience);
    derive_beside(log, whole, operators, None, beside, seen)
}

fn derive_beside(
    log: &ProjectLog,
    (session, until): (&SessionId, u64),
    operators: &[PublicKey],
    other: Option<Policy>,
    beside: Beside,
    seen: Seen<'_>,
) -> Result<SessionReplay, DeriveError> {
    // Neither reads what the other finds.
    let (actions, beliefs) = std::thread::scope(|scope| {
        let beliefs = scope.spawn(|| {
            let mut found = SessionReplay::nothing(session);
            let what = (session, until, beside);
            beliefs::derive(log, what, operators, &mut found, seen).map(|()| found)
        });
        let actions = derive_actions(log, (session, until, beside), other);
        let beliefs = beliefs.join();
        (
            actions,
            beliefs.unwrap_or_else(|panic| resume_unwind(panic)),
        )
    });
    let (mut replay, beliefs) = (actions?, beliefs?);
    replay.beliefs = beliefs.beliefs;
    replay.unlisted += beliefs.unlisted;
    for difference in beliefs.differences {
        replay.differ(difference);
    }
    replay.redacted.extend(beliefs.redacted);
    replay.redacted.sort_unstable();
    replay.redacted.dedup();
    replay.elsewhere = beliefs.elsewhere;
    replay.elsewhere.sort_unstable();
    replay.elsewhere.dedup();
    replay.differences.sort_by_key(|difference| difference.seq);
    Ok(replay)
}

fn derive_actions(
    log: &ProjectLog,
    (session, until, beside): (&SessionId, u64, Beside),
    other: Option<Policy>,
) -> Result<SessionReplay, DeriveError> {
    let dir = log.session(session);
    let mut reader = Reader::open(&dir).map_err(ReplayError::from)?;
    let first = next(&mut reader, session)?;
    let first = first.ok_or_else(|| DeriveError::NoOpening(session.clone()))?;
    let mut replay = SessionReplay {
        events: 1,
        otherwise: other.is_some().then(Vec::new),
        ..SessionReplay::nothing(session)
    };
    let place = LogName {
        project: log.project().clone(),
        session: session.clone(),
    };
    let mut actions = open(&first, &dir, place, other, &mut replay)?;
    while replay.events < until
        && let Some(event) = next(&mut reader, session)?
    {
        replay.events += 1;
        beside.patience().check()?;
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            continue;
        };
        if kind == EventType::SESSION_CLOSED
            && let Some(actions) = &actions
        {
            actions.closed(event.seq, &mut replay);
        }
        if kind == EventType::OBSERVATION_RECORDED
            && let Some(actions) = &mut actions
        {
            actions.observed(&event, &mut replay);
        }
        if !Actions::concerns(kind) {
            continue;
        }
        let opening = actions.as_ref().map(Actions::opening);
        match payload(&event, &dir, session, opening)? {
            Some(payload) => {
                if let Some(actions) = &mut actions {
                    actions.follow(kind, &event, payload, &mut replay);
                }
            }
            None => {
                replay.redacted.push(event.seq);
                if let Some(actions) = &mut actions {
                    actions.redacted(kind, &event);
                }
            }
        }
    }
    Ok(replay)
}

/// The gate that the opening event describes; none for a session of a person, which has no actions.
fn open(
    first: &Event,
    dir: &SessionDir,
    place: LogName,
    other: Option<Policy>,
    replay: &mut SessionReplay,
) -> Result<Option<Actions>, DeriveError> {
    let session = &place.session;
    let payload = payload(first, dir, session, None)?;
    let payload = payload.ok_or_else(|| DeriveError::OpeningRedacted(session.clone()))?;
    if let Defences::Lacks(off) = Defences::of_opening(&payload) {
        replay.defences_off = off;
    }
    if payload.get("policy").is_none() {
        return Ok(None);
    }
    let unloadable = |problem: String| DeriveError::Policy {
        session: session.clone(),
        problem,
    };
    let opening: Opening =
        serde_json::from_value(payload).map_err(|problem| unloadable(problem.to_string()))?;
    let policy = Policy::recorded(&opening.policy.text, opening.policy.signature.clone());
    let policy = policy.map_err(|problem| unloadable(problem.to_string()))?;
    if policy.digest() != opening.policy.digest {
        replay.differ(Difference {
            seq: first.seq,
            recorded: format!("that the policy is {}", opening.policy.digest),
            derived: format!("that its text is {}", policy.digest()),
        });
    }
    let gate = gate(&opening, policy).map_err(unloadable)?;
    if gate.schema().digest() != opening.schema {
        replay.differ(Difference {
            seq: first.seq,
            recorded: format!("that the Cedar schema is {}", opening.schema),
            derived: format!("{} from its tools", gate.schema().digest()),
        });
    }
    let other = match other {
        Some(policy) => Some(gate_of_other(&opening, policy, session)?),
        None => None,
    };
    Ok(Some(Actions::new(place, opening, gate, other)))
}

fn gate(opening: &Opening, policy: Policy) -> Result<Gate, String> {
    let shapes = opening.tools.iter().map(|tool| tool.shape.clone());
    Gate::new(
        policy,
        shapes.collect(),
        opening.arbiters.clone(),
        opening.approvals_default.clone(),
    )
    .map(|gate| gate.flagging(opening.flagged().cloned()))
    .map_err(|problem| problem.to_string())
}

fn gate_of_other(
    opening: &Opening,
    policy: Policy,
    session: &SessionId,
) -> Result<Gate, DeriveError> {
    gate(opening, policy).map_err(|problem| DeriveError::Other {
        session: session.clone(),
        problem,
    })
}

fn next(reader: &mut Reader, session: &SessionId) -> Result<Option<Event>, DeriveError> {
    let event = reader.next_event();
    Ok(event.map_err(|problem| unreadable(session, problem))?)
}

fn payload(
    event: &Event,
    dir: &SessionDir,
    session: &SessionId,
    opening: Option<&Opening>,
) -> Result<Option<Value>, DeriveError> {
    let whole = terse::whole(event, dir, opening);
    Ok(whole.map_err(|problem| unreadable(session, format!("#{}: {problem}", event.seq)))?)
}

fn unreadable(session: &SessionId, problem: impl fmt::Display) -> ReplayError {
    ReplayError::Session {
        session: session.clone(),
        problem: problem.to_string(),
    }
}
