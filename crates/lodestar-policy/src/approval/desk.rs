//! The desk of a live session: requests are opened, people are heard, and a full quorum is turned into
//! leave to clear one action, once.
//!
//! What it does is counted and recorded in one go, under the lock of whoever has the desk: nothing can
//! rest on a word whose record does not come before its own. If the log refuses the record, it refuses
//! the clearance too. What is not in the log is only which grants are on their way to a clearance at
//! this moment: after a crash they are unspent, because nothing ran.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lodestar_core::defence::Defence;
use lodestar_core::event::EventType;
use lodestar_core::id::RequestId;
use lodestar_core::name::ActorId;
use lodestar_core::time::Timestamp;
use lodestar_log::{AppendError, LogWriter, Receipt};
use serde::{Deserialize, Serialize};

use super::{
    Answer, ApprovalRequest, Approvers, Closing, Counted, Denial, NotSpendable, Refusal, Requests,
    Standing, answer,
};
use crate::confirmation::Confirmed;
use crate::ruling::{Held, Permit, Spending, Spent};

/// `approval.expired@1` and `approval.consumed@1`: a request is over although nothing was cleared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// The request.
    pub request: RequestId,
    /// How it ended.
    pub closing: Closing,
}

impl Closed {
    /// The type of the event that says so; none for what other events say.
    pub fn kind(closing: Closing) -> Option<EventType> {
        match closing {
            Closing::Expired | Closing::Abandoned => Some(EventType::APPROVAL_EXPIRED),
            Closing::WorldMoved => Some(EventType::APPROVAL_CONSUMED),
            Closing::Spent | Closing::Denied => None,
        }
    }
}

/// What came of hearing a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It does not count; a later one still may.
    Refused(Refusal),
    /// It counts; more are needed.
    Counted {
        /// How many distinct approvers are still missing.
        missing: u32,
    },
    /// Enough people said yes.
    Granted,
    /// Somebody said no, and that ends it.
    Denied(Denial),
}

/// How what somebody's word came to stands in the log.
fn told(counted: Result<Counted, Refusal>, record: &mut Answer) -> (EventType, Heard) {
    match counted {
        Err(refusal) => {
            record.reason = Some(refusal.clone());
            (EventType::APPROVAL_REFUSED, Heard::Refused(refusal))
        }
        Ok(Counted::Deny(denial)) => (EventType::APPROVAL_DENIED, Heard::Denied(denial)),
        Ok(Counted::Grant { missing }) => {
            record.missing = Some(missing);
            let heard = match missing {
                0 => Heard::Granted,
                missing => Heard::Counted { missing },
            };
            (EventType::APPROVAL_GRANTED, heard)
        }
    }
}

/// Where the desk writes.
#[derive(Debug, Clone, Copy)]
pub struct Book<'a> {
    /// The session's log.
    pub log: &'a LogWriter,
    /// Who is recorded as having done it.
    pub actor: &'a ActorId,
}

/// The open requests of a live session.
#[derive(Debug, Default)]
pub struct Desk {
    requests: Requests,
    /// The events that recorded them.
    recorded: BTreeMap<RequestId, u64>,
    /// Granted ones that are on their way to a clearance, as long as somebody has the permit.
    taken: BTreeMap<RequestId, Arc<Spending>>,
    /// Those whose grants were spent although the world had moved, as long as nobody has closed them.
    in_vain: BTreeSet<RequestId>,
    /// In a harness alone.
    waits_for_nobody: bool,
    /// For a harness that takes [`Defence::ApprovalTimeout`] out: what nobody answered in time. None
    /// where nothing is taken out.
    unanswered: Option<BTreeSet<RequestId>>,
}

impl Desk {
    /// The desk of a session that is taken up again; `recorded` are the events of its requests.
    pub fn restored(requests: Requests, recorded: BTreeMap<RequestId, u64>) -> Self {
        Self {
            requests,
            recorded,
            ..Self::default()
        }
    }

    /// For a harness that takes defences out: see [`Requests::without`]; without [`Defence::HoldsWait`], a
    /// request that is open is as good as one that enough people agreed to; without
    /// [`Defence::ApprovalTimeout`], what nobody answers in time is taken for granted.
    #[must_use]
    pub fn without(mut self, defences: &[Defence]) -> Self {
        let out = defences.contains(&Defence::ApprovalTimeout);
        Self {
            requests: std::mem::take(&mut self.requests).without(defences),
            waits_for_nobody: defences.contains(&Defence::HoldsWait),
            unanswered: out.then(BTreeSet::new),
            ..self
        }
    }

    /// Nobody answered a request in time. Says whether that opens it: only for a harness that has taken
    /// [`Defence::ApprovalTimeout`] out.
    pub fn ran_out(&mut self, id: RequestId) -> bool {
        let unanswered = self.unanswered.as_mut();
        unanswered.is_some_and(|unanswered| unanswered.insert(id))
    }

    /// The event that recorded a request.
    pub fn recorded(&self, id: RequestId) -> Option<u64> {
        self.recorded.get(&id).copied()
    }

    /// What was asked so far, and where it stands.
    pub fn requests(&mut self) -> &Requests {
        self.settle();
        &self.requests
    }

    /// The request that already asks for what is held, if its answer can still open it. One whose grants
    /// are on their way to a clearance is among them: if they come back unspent, they must be found.
    pub fn asking_for(&mut self, held: &Held, now: Timestamp) -> Option<RequestId> {
        self.settle();
        let judgement = held.judgement();
        let requirement = judgement.requirement.as_ref()?;
        let (fingerprint, policy) = (held.fingerprint(), judgement.policy);
        self.requests
            .asking_for(fingerprint, policy, requirement, now)
    }

    /// The request by which what is held was denied, as long as that could have been granted.
    pub fn denied_for(&mut self, held: &Held, now: Timestamp) -> Option<RequestId> {
        self.settle();
        let judgement = held.judgement();
        let requirement = judgement.requirement.as_ref()?;
        let (fingerprint, policy) = (held.fingerprint(), judgement.policy);
        self.requests
            .denied_for(fingerprint, policy, requirement, now)
    }

    /// Opens a request for a held action and records it.
    pub fn open(
        &mut self,
        held: &Held,
        request: ApprovalRequest,
        book: Book<'_>,
    ) -> Result<Receipt, AppendError> {
        let kind = EventType::APPROVAL_REQUESTED;
        let receipt = book.log.append(kind, book.actor, &[held.seq()], &request)?;
        self.recorded.insert(request.id, receipt.seq());
        self.requests.open(request);
        Ok(receipt)
    }

    /// Hears what somebody sent in answer to a request, and records what came of it.
    pub fn hear(
        &mut self,
        id: RequestId,
        sent: &[u8],
        approvers: &Approvers,
        now: Timestamp,
        book: Book<'_>,
    ) -> Result<Heard, AppendError> {
        self.settle();
        let parents: Vec<u64> = self.parents(id).collect();
        // While somebody is heard, what is on its way is not cleared: the log says which came first.
        let spending = self.taken.get(&id).map(Arc::clone);
        let mut spent = spending.as_ref().map(|spending| spending.lock());
        if let Some(closing) = spent.as_deref().copied().and_then(Spent::closing) {
            self.requests.close(id, closing);
        }
        let (record, kind, heard) = match answer::read(sent) {
            Err(refusal) => {
                let mut record = Answer::unreadable(id, sent, now);
                record.reason = Some(refusal.clone());
                (record, EventType::APPROVAL_REFUSED, Heard::Refused(refusal))
            }
            Ok(statement) => {
                let mut record = Answer::new(id, &statement, now);
                let counted = self.requests.hear(id, &statement, approvers, now);
                let (kind, heard) = told(counted, &mut record);
                (record, kind, heard)
            }
        };
        if let (Some(spent), Heard::Denied(_)) = (&mut spent, &heard) {
            **spent = Spent::Revoked;
        }
        book.log.append(kind, book.actor, &parents, &record)?;
        Ok(heard)
    }

    /// Counts a confirmation that was spent on the act that a request asks for, and records it.
    /// `consumed` is the event that says that it was spent.
    pub fn confirm(
        &mut self,
        id: RequestId,
        (confirmed, consumed): (&Confirmed, u64),
        approvers: &Approvers,
        now: Timestamp,
        book: Book<'_>,
    ) -> Result<Heard, AppendError> {
        self.settle();
        let parents: Vec<u64> = self.parents(id).chain([consumed]).collect();
        // As when somebody is heard.
        let spending = self.taken.get(&id).map(Arc::clone);
        let spent = spending.as_ref().map(|spending| spending.lock());
        if let Some(closing) = spent.as_deref().copied().and_then(Spent::closing) {
            self.requests.close(id, closing);
        }
        let mut record = Answer::confirmed(id, confirmed.id(), now);
        let counted = self.requests.confirm(id, confirmed, approvers, now);
        let (kind, heard) = told(counted, &mut record);
        book.log.append(kind, book.actor, &parents, &record)?;
        Ok(heard)
    }

    /// Turns a full quorum into leave to clear what is held. As long as the permit is there, nobody
    /// else gets one; if it goes unspent, the grants are as good as before.
    pub fn take(
        &mut self,
        id: RequestId,
        held: Held,
        now: Timestamp,
    ) -> Result<Permit, (Box<Held>, NotSpendable)> {
        self.settle();
        let is_unanswered = self
            .unanswered
            .as_ref()
            .is_some_and(|all| all.contains(&id));
        let spendable = match self.requests.spendable(id, held.fingerprint(), now) {
            Err(NotSpendable::NotGranted) if self.waits_for_nobody || is_unanswered => {
                Ok(Vec::new())
            }
            spendable => spendable,
        };
        match spendable {
            Ok(_) if self.taken.contains_key(&id) => Err((Box::new(held), NotSpendable::Taken)),
            Ok(grants) => {
                let spending = Arc::new(Spending::default());
                self.taken.insert(id, Arc::clone(&spending));
                Ok(held.granted(id, grants, now, spending))
            }
            Err(why) => Err((Box::new(held), why)),
        }
    }

    /// What has become of permits that are gone.
    fn settle(&mut self) {
        let (requests, in_vain) = (&mut self.requests, &mut self.in_vain);
        self.taken.retain(|id, spending| {
            let is_on_its_way = Arc::strong_count(spending) > 1;
            let spent = *spending.lock();
            if let Some(closing) = spent.closing() {
                requests.close(*id, closing);
            }
            if spent == Spent::InVain && !is_on_its_way {
                in_vain.insert(*id);
            }
            is_on_its_way
        });
    }

    /// Ends a request, and records it where no other event says it. Permits on their way are worth
    /// nothing then; one that was spent just now has ended it already.
    pub fn close(
        &mut self,
        id: RequestId,
        closing: Closing,
        book: Book<'_>,
    ) -> Result<(), AppendError> {
        self.settle();
        // The rejection has ended it, and this says so in the request's own words.
        if closing == Closing::WorldMoved && self.in_vain.remove(&id) {
            return self.record_end(id, closing, book);
        }
        if matches!(self.requests.standing(id), None | Some(Standing::Over(_))) {
            return Ok(());
        }
        // Another call may have taken the grants since whoever closes it gave them up.
        let spending = self.taken.get(&id).map(Arc::clone);
        let mut spent = spending.as_ref().map(|spending| spending.lock());
        if let Some(ended) = spent.as_deref().copied().and_then(Spent::closing) {
            self.requests.close(id, ended);
            return Ok(());
        }
        self.record_end(id, closing, book)?;
        if let Some(spent) = &mut spent {
            **spent = Spent::Revoked;
        }
        self.requests.close(id, closing);
        Ok(())
    }

    fn record_end(
        &self,
        id: RequestId,
        closing: Closing,
        book: Book<'_>,
    ) -> Result<(), AppendError> {
        if let Some(kind) = Closed::kind(closing) {
            let parents: Vec<u64> = self.parents(id).collect();
            let closed = Closed {
                request: id,
                closing,
            };
            book.log.append(kind, book.actor, &parents, &closed)?;
        }
        Ok(())
    }

    /// The event that recorded a request.
    fn parents(&self, id: RequestId) -> impl Iterator<Item = u64> + use<> {
        self.recorded(id).into_iter()
    }

    /// Ends every request whose time is over.
    pub fn sweep(&mut self, now: Timestamp, book: Book<'_>) -> Result<Vec<RequestId>, AppendError> {
        self.settle();
        let mut overdue = self.requests.overdue(now);
        // What is on its way was in time when it was taken.
        overdue.retain(|id| !self.taken.contains_key(id));
        for id in &overdue {
            self.close(*id, Closing::Expired, book)?;
        }
        Ok(overdue)
    }
}
