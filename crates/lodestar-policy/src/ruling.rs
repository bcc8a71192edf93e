//! Rulings: verdicts that are in the log, as values that cannot be made otherwise.
//!
//! A [`Permit`] is what the kernel needs to clear an action. It comes from a recorded *allow*, or from
//! a recorded *hold* and the recorded grants that lifted it; and it is used up by what takes it.
//!
//! ```compile_fail,E0451
//! use lodestar_policy::Permit;
//!
//! fn forge(honest: Permit) -> Permit {
//!     Permit { fingerprint: todo!(), ..honest }
//! }
//! ```
//! ```compile_fail,E0599
//! use lodestar_policy::Permit;
//!
//! fn twice(permit: &Permit) -> Permit {
//!     permit.clone()
//! }
//! ```
//! A verdict that is only computed, and not in the log, opens nothing:
//!
//! ```compile_fail,E0308
//! use lodestar_policy::{Judgement, Permit};
//!
//! fn unlogged(judgement: Judgement) -> Permit {
//!     judgement
//! }
//! ```
//! And a hold is not a permit:
//!
//! ```compile_fail,E0624
//! use lodestar_policy::{Held, Permit};
//!
//! fn impatient(held: Held) -> Permit {
//!     held.granted(todo!(), vec![], todo!(), todo!())
//! }
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::ladder::Verdict;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::time::Timestamp;
use lodestar_log::{AppendError, LogWriter};

use crate::approval::Closing;
use crate::arbiter::{Alert, Arbiter};
use crate::facts::Facts;
use crate::gate::Gate;
use crate::judgement::{JudgedLine, Judgement, Signal};

/// A recorded verdict, sorted by what may follow.
#[derive(Debug)]
pub enum Ruling {
    /// It may run.
    Allowed(Permit),
    /// It waits for people.
    Held(Held),
    /// It does not run.
    Denied(Denied),
}

/// Leave to clear one action, once.
#[derive(Debug)]
pub struct Permit {
    action: ActionId,
    fingerprint: Fingerprint,
    judged: u64,
    request: Option<RequestId>,
    grants: Vec<Digest>,
    /// When it was taken from a granted request, and whether it has been spent since.
    taken: Option<(Timestamp, Arc<Spending>)>,
    session: SessionId,
}

/// Whether the grants behind a permit were spent. The desk and the permit share it, so that a permit
/// which is dropped on its way leaves no doubt.
#[derive(Debug, Default)]
pub(crate) struct Spending(Mutex<Spent>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    #[default]
    NotYet,
    Yes,
    /// On a call that was rejected because the world had moved.
    InVain,
    /// Somebody said no before it was, or the request was closed.
    Revoked,
}

impl Spent {
    /// How it ended the request.
    pub(crate) fn closing(self) -> Option<Closing> {
        match self {
            Self::Yes => Some(Closing::Spent),
            Self::InVain => Some(Closing::WorldMoved),
            Self::NotYet | Self::Revoked => None,
        }
    }
}

impl Spending {
    /// Whoever holds it records the clearance, or a denial, and nobody both.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody said no while the action was about to be cleared, or its request was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked;

impl Permit {
    /// The action.
    pub fn action(&self) -> ActionId {
        self.action
    }

    /// Exactly which act.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The event that recorded the verdict.
    pub fn judged(&self) -> u64 {
        self.judged
    }

    /// The request that was granted; none where nobody had to be asked.
    pub fn request(&self) -> Option<RequestId> {
        self.request
    }

    /// When its grants were taken to be spent; none where nobody had to be asked.
    pub fn taken_at(&self) -> Option<Timestamp> {
        self.taken.as_ref().map(|(at, _)| *at)
    }

    /// Records the clearance that this permit gives leave for. From before the record is made, its
    /// grants are spent, unless `record` says that it made none.
    pub fn spend<T>(&self, record: impl FnOnce() -> Option<T>) -> Result<Option<T>, Revoked> {
        let Some((_, spending)) = &self.taken else {
            return Ok(record());
        };
        let mut spent = spending.lock();
        if *spent == Spent::Revoked {
            return Err(Revoked);
        }
        *spent = Spent::Yes;
        let recorded = record();
        if recorded.is_none() {
            *spent = Spent::NotYet;
        }
        Ok(recorded)
    }

    /// Records that what this permit gives leave for is rejected, since the world had moved. From before
    /// the record is made, its grants are spent: people agreed to another world.
    pub fn spend_in_vain<T>(&self, record: impl FnOnce() -> T) -> T {
        let mut spent = self.taken.as_ref().map(|(_, spending)| spending.lock());
        if let Some(spent) = &mut spent
            && **spent == Spent::NotYet
        {
            **spent = Spent::InVain;
        }
        record()
    }

    /// The session in whose log the verdict stands.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The statements that granted it, by digest.
    pub fn grants(&self) -> &[Digest] {
        &self.grants
    }
}

/// A recorded hold.
#[derive(Debug)]
pub struct Held {
    judgement: Judgement,
    fingerprint: Fingerprint,
    seq: u64,
    session: SessionId,
}

impl Held {
    /// Why, and what a grant needs.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// The event that recorded it.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Exactly which act.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// INVARIANT: called by the desk alone, for a request of this act whose quorum is full, once.
    /// Only the desk of a harness that takes [`Defence::HoldsWait`](lodestar_core::defence::Defence) out does not
    /// wait for the quorum.
    pub(crate) fn granted(
        self,
        request: RequestId,
        grants: Vec<Digest>,
        at: Timestamp,
        spending: Arc<Spending>,
    ) -> Permit {
        Permit {
            action: self.judgement.action,
            fingerprint: self.fingerprint,
            judged: self.seq,
            request: Some(request),
            grants,
            taken: Some((at, spending)),
            session: self.session,
        }
    }
}

/// A recorded deny.
#[derive(Debug)]
pub struct Denied {
    judgement: Judgement,
    seq: u64,
}

impl Denied {
    /// Why.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// The event that recorded it.
    pub fn seq(&self) -> u64 {
        self.seq
    }
}

/// The events that a verdict follows from: the proposal, and one for each arbiter that saw something.
struct Parents {
    seqs: [u64; 1 + Arbiter::ALL.len()],
    len: usize,
}

impl Parents {
    fn of(proposed: u64) -> Self {
        Self {
            seqs: [proposed; 1 + Arbiter::ALL.len()],
            len: 1,
        }
    }

    /// INVARIANT: at most once for each arbiter.
    fn push(&mut self, alerted: u64) {
        self.seqs[self.len] = alerted;
        self.len += 1;
    }

    fn as_slice(&self) -> &[u64] {
        &self.seqs[..self.len]
    }
}

impl Gate {
    /// Judges an action and records the verdict; what comes back names the record. What sentinels saw is
    /// recorded before it, and the verdict names that.
    pub fn rule(
        &self,
        facts: &Facts<'_>,
        heard: &[Signal],
        log: &LogWriter,
        actor: &ActorId,
        proposed: u64,
    ) -> Result<Ruling, AppendError> {
        let judgement = self.judge(facts, heard);
        let mut parents = Parents::of(proposed);
        for alert in Alert::of(&judgement) {
            let kind = EventType::SENTINEL_ALERTED;
            parents.push(log.append(kind, actor, &[proposed], &alert)?.seq());
        }
        let line = JudgedLine::of(&judgement);
        let receipt = log.append(EventType::ACTION_JUDGED, actor, parents.as_slice(), &line)?;
        let seq = receipt.seq();
        let fingerprint = facts.fingerprint;
        let session = log.dir().session().clone();
        Ok(match judgement.verdict {
            Verdict::Allow => Ruling::Allowed(Permit {
                action: judgement.action,
                fingerprint,
                judged: seq,
                request: None,
                grants: Vec::new(),
                taken: None,
                session,
            }),
            Verdict::Hold => Ruling::Held(Held {
                judgement,
                fingerprint,
                seq,
                session,
            }),
            Verdict::Deny => Ruling::Denied(Denied { judgement, seq }),
        })
    }
}
