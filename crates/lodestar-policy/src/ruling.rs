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
//!     held.granted(todo!(), vec![])
//! }
//! ```

use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::ladder::Verdict;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_log::{AppendError, LogWriter};

use crate::facts::Facts;
use crate::gate::Gate;
use crate::judgement::{Judgement, Signal};

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
    session: SessionId,
}

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

    /// INVARIANT: called by `Pending` alone, when every check has passed and the quorum is full.
    pub(crate) fn granted(self, request: RequestId, grants: Vec<Digest>) -> Permit {
        Permit {
            action: self.judgement.action,
            fingerprint: self.fingerprint,
            judged: self.seq,
            request: Some(request),
            grants,
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

impl Gate {
    /// Judges an action and records the verdict; what comes back names the record.
    pub fn rule(
        &self,
        facts: &Facts<'_>,
        heard: &[Signal],
        log: &LogWriter,
        actor: &ActorId,
        proposed: u64,
    ) -> Result<Ruling, AppendError> {
        let judgement = self.judge(facts, heard);
        let receipt = log.append(EventType::ACTION_JUDGED, actor, &[proposed], &judgement)?;
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
