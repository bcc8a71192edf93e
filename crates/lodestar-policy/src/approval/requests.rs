//! The requests of one session and what has become of each: pure, so that a live session, one that is
//! taken up again and replay all count alike.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::id::RequestId;
use lodestar_core::statement::Envelope;
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{ApprovalRequest, Approvers, Counted, Hearing, Refusal};
use crate::confirmation::Confirmed;
use crate::judgement::Requirement;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// Enough people agreed, and exactly this was cleared.
    Spent,
    /// Somebody said no.
    Denied,
    /// Its time was over.
    Expired,
    /// Enough people agreed, and the world was not any more what they had seen.
    WorldMoved,
    /// Its session cannot be taken up again.
    Abandoned,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// People are missing.
    Open,
    /// Enough people agreed when the last of them was heard; nothing has been cleared by their word yet.
    Granted,
    /// It is over.
    Over(Closing),
}

/// Why a request opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotSpendable {
    /// There is none.
    #[error("there is no such request")]
    Unknown,
    /// People are missing.
    #[error("not enough people have agreed")]
    NotGranted,
    /// It is over.
    #[error("the request is over")]
    Over(Closing),
    /// Somebody is about to spend it.
    #[error("the request is about to be spent on another call of the same act")]
    Taken,
    /// Its time is over.
    #[error("the request has expired")]
    Expired,
    /// It is for another act.
    #[error("the request is for another act")]
    OtherFingerprint,
    /// Other statements opened it.
    #[error("other grants were given than were spent")]
    OtherGrants,
}

#[derive(Debug, Clone)]
struct Asked {
    hearing: Hearing,
    standing: Standing,
}

/// All requests of a session.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    asked: BTreeMap<RequestId, Asked>,
    /// Those that are not over, by what they are for.
    live: BTreeMap<Fingerprint, RequestId>,
    /// The last that somebody said no to, by what they were for.
    denied: BTreeMap<Fingerprint, RequestId>,
    /// What a harness has taken out.
    taken_out: BTreeSet<Defence>,
}

impl Requests {
    /// For a harness that takes defences out: without [`Defence::ApprovalBinding`], an answer counts for
    /// whatever is asked; without [`Defence::RegisteredRoles`], who answers has the roles that are asked
    /// for; without [`Defence::DistinctApprovers`], every yes is another person's; without
    /// [`Defence::OneDenialEnds`], a no is only heard; without [`Defence::RefusedChangesNothing`], what is
    /// refused ends the request; without [`Defence::ApprovalOnce`], no grant is ever spent.
    #[must_use]
    pub fn without(mut self, defences: &[Defence]) -> Self {
        self.taken_out.extend(defences);
        for asked in self.asked.values_mut() {
            asked.hearing.take_out(&self.taken_out);
        }
        self
    }

    fn lacks(&self, defence: Defence) -> bool {
        self.taken_out.contains(&defence)
    }

    /// Takes in a new request. False, and nothing is changed, where there was one of this id before.
    pub fn open(&mut self, request: ApprovalRequest) -> bool {
        let (id, fingerprint) = (request.id, request.card.action.fingerprint);
        if self.asked.contains_key(&id) {
            return false;
        }
        let mut hearing = Hearing::new(request);
        hearing.take_out(&self.taken_out);
        let asked = Asked {
            hearing,
            standing: Standing::Open,
        };
        self.asked.insert(id, asked);
        self.live.insert(fingerprint, id);
        true
    }

    /// What was asked, and who has agreed.
    pub fn get(&self, id: RequestId) -> Option<&Hearing> {
        self.asked.get(&id).map(|asked| &asked.hearing)
    }

    /// Where a request stands.
    pub fn standing(&self, id: RequestId) -> Option<Standing> {
        self.asked.get(&id).map(|asked| asked.standing)
    }

    /// Those that are not over.
    pub fn live(&self) -> impl Iterator<Item = &Hearing> {
        let all = self.asked.values();
        all.filter(|asked| !matches!(asked.standing, Standing::Over(_)))
            .map(|asked| &asked.hearing)
    }

    /// The request that already asks for exactly this act, of as many people, under the same policy.
    pub fn asking_for(
        &self,
        fingerprint: Fingerprint,
        policy: Digest,
        requirement: &Requirement,
        now: Timestamp,
    ) -> Option<RequestId> {
        let id = *self.live.get(&fingerprint)?;
        self.asks(id, policy, requirement, now).then_some(id)
    }

    /// The last request that asked for exactly this act in this way and was denied, as long as it could have
    /// been granted otherwise.
    pub fn denied_for(
        &self,
        fingerprint: Fingerprint,
        policy: Digest,
        requirement: &Requirement,
        now: Timestamp,
    ) -> Option<RequestId> {
        let id = *self.denied.get(&fingerprint)?;
        self.asks(id, policy, requirement, now).then_some(id)
    }

    fn asks(
        &self,
        id: RequestId,
        policy: Digest,
        requirement: &Requirement,
        now: Timestamp,
    ) -> bool {
        self.get(id).map(Hearing::request).is_some_and(|request| {
            let is_same = request.policy == policy && request.requirement == *requirement;
            is_same && now < request.expires_at
        })
    }

    /// Checks a statement and counts it if it holds.
    pub fn hear(
        &mut self,
        id: RequestId,
        statement: &Envelope,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<Counted, Refusal> {
        self.count(id, |hearing| hearing.hear(statement, approvers, now))
    }

    /// Counts a spent confirmation as the word of one approver.
    pub fn confirm(
        &mut self,
        id: RequestId,
        confirmed: &Confirmed,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<Counted, Refusal> {
        self.count(id, |hearing| hearing.confirm(confirmed, approvers, now))
    }

    fn count(
        &mut self,
        id: RequestId,
        word: impl FnOnce(&mut Hearing) -> Result<Counted, Refusal>,
    ) -> Result<Counted, Refusal> {
        let asked = self.asked.get_mut(&id).ok_or(Refusal::UnknownRequest)?;
        if let Standing::Over(_) = asked.standing {
            return Err(Refusal::Closed);
        }
        let counted = word(&mut asked.hearing);
        match &counted {
            Ok(Counted::Grant { missing: 0 }) => asked.standing = Standing::Granted,
            // Who had agreed before may not count any more.
            Ok(Counted::Grant { .. }) => asked.standing = Standing::Open,
            Ok(Counted::Deny(_)) if self.lacks(Defence::OneDenialEnds) => {}
            Ok(Counted::Deny(_)) => self.close(id, Closing::Denied),
            Err(_) if self.lacks(Defence::RefusedChangesNothing) => {
                self.close(id, Closing::Denied);
            }
            Err(_) => {}
        }
        counted
    }

    /// The grants that would be spent if this act were cleared at this moment.
    pub fn spendable(
        &self,
        id: RequestId,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Vec<Digest>, NotSpendable> {
        let asked = self.asked.get(&id).ok_or(NotSpendable::Unknown)?;
        let request = asked.hearing.request();
        match asked.standing {
            Standing::Over(closing) => return Err(NotSpendable::Over(closing)),
            Standing::Open | Standing::Granted => {}
        }
        if request.card.action.fingerprint != fingerprint {
            return Err(NotSpendable::OtherFingerprint);
        }
        if now >= request.expires_at {
            return Err(NotSpendable::Expired);
        }
        // What counts is what had been said by then and was not out of date, whatever came later.
        if asked.hearing.missing(now) > 0 {
            return Err(NotSpendable::NotGranted);
        }
        Ok(asked.hearing.grants(now))
    }

    /// An act was cleared by these grants: nobody's word is left in the request.
    pub fn spend(
        &mut self,
        id: RequestId,
        fingerprint: Fingerprint,
        grants: &[Digest],
        at: Timestamp,
    ) -> Result<(), NotSpendable> {
        let given = self.spendable(id, fingerprint, at)?;
        if given != grants {
            return Err(NotSpendable::OtherGrants);
        }
        self.close(id, Closing::Spent);
        Ok(())
    }

    /// Ends a request; one that is over stays as it ended.
    pub fn close(&mut self, id: RequestId, closing: Closing) {
        let Some(asked) = self.asked.get_mut(&id) else {
            return;
        };
        if let Standing::Over(_) = asked.standing {
            return;
        }
        if closing == Closing::Spent && self.taken_out.contains(&Defence::ApprovalOnce) {
            return;
        }
        asked.standing = Standing::Over(closing);
        let fingerprint = asked.hearing.request().card.action.fingerprint;
        // Another request may ask for the same act by now.
        if self.live.get(&fingerprint) == Some(&id) {
            self.live.remove(&fingerprint);
        }
        if closing == Closing::Denied {
            self.denied.insert(fingerprint, id);
        }
    }

    /// Those whose time is over and that nobody has closed.
    pub fn overdue(&self, now: Timestamp) -> Vec<RequestId> {
        self.live()
            .map(Hearing::request)
            .filter(|request| now >= request.expires_at)
            .map(|request| request.id)
            .collect()
    }
}
