//! Hearing what people answer.

use std::collections::BTreeSet;

use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::statement::{Approval, ApprovalDecision, Envelope, Nonce};
use lodestar_core::time::Timestamp;

use super::{ApprovalRequest, Approver, Approvers, Refusal};
use crate::confirmation::Confirmed;

impl ApprovalRequest {
    /// Whether the word of this approver can count here: the role, the clearance and the scope that a
    /// hearing asks for. Whether their key still counts is not looked at.
    pub fn check_approver(&self, approver: &Approver) -> Result<(), Refusal> {
        self.check_standing(approver, &approver.roles)
    }

    /// What an approver has to be for this request; `roles` are those that count.
    fn check_standing(&self, approver: &Approver, roles: &BTreeSet<String>) -> Result<(), Refusal> {
        let contract = &self.card.action.contract;
        let who = || approver.actor.clone();
        let asked = &self.requirement.roles;
        if !asked.is_empty() && asked.is_disjoint(roles) {
            return Err(Refusal::NoRole { approver: who() });
        }
        if approver.clearance < contract.required_level {
            return Err(Refusal::NoClearance { approver: who() });
        }
        if !approver.scope.contains(&contract.scope) {
            return Err(Refusal::OtherScope { approver: who() });
        }
        Ok(())
    }
}

/// What has been heard of one request: pure, so that the log can be heard again.
#[derive(Debug, Clone)]
pub struct Hearing {
    request: ApprovalRequest,
    granted: Vec<Granted>,
    seen: BTreeSet<Nonce>,
    denied: Option<Denial>,
    /// What a harness has taken out.
    taken_out: BTreeSet<Defence>,
}

/// Somebody said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Who.
    pub approver: ActorId,
    /// Why, in their words.
    pub reason: String,
}

/// Somebody said yes.
#[derive(Debug, Clone)]
struct Granted {
    approver: ActorId,
    statement: Digest,
    /// The roles of the key that signed; another key of the same person may have others.
    roles: BTreeSet<String>,
    by: Word,
    heard_at: Timestamp,
    /// From when on it counts no more: the statement is out of date, or its key revoked.
    until: Timestamp,
}

/// How somebody said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// In answer to the request, having seen its card.
    Answer,
    /// Before anybody asked.
    Confirmation,
}

/// What a statement comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// Yes, and so many people are still missing.
    Grant {
        /// How many.
        missing: u32,
    },
    /// No.
    Deny(Denial),
}

impl Hearing {
    /// A request that nobody has answered.
    pub fn new(request: ApprovalRequest) -> Self {
        Self {
            request,
            granted: Vec::new(),
            seen: BTreeSet::new(),
            denied: None,
            taken_out: BTreeSet::new(),
        }
    }

    /// For a harness that takes defences out: see [`Requests::without`](super::Requests::without).
    pub(super) fn take_out(&mut self, defences: &BTreeSet<Defence>) {
        self.taken_out.extend(defences);
    }

    pub(super) fn lacks(&self, defence: Defence) -> bool {
        self.taken_out.contains(&defence)
    }

    /// What is asked.
    pub fn request(&self) -> &ApprovalRequest {
        &self.request
    }

    /// Who said no, and why.
    pub fn denial(&self) -> Option<&Denial> {
        self.denied.as_ref()
    }

    /// Who has said yes and means it still, in the order of their names.
    pub fn granted_by(&self, now: Timestamp) -> BTreeSet<&ActorId> {
        self.standing(now).map(|one| &one.approver).collect()
    }

    /// The statements that said yes and count still, by digest.
    pub fn grants(&self, now: Timestamp) -> Vec<Digest> {
        self.standing(now).map(|one| one.statement).collect()
    }

    /// Every yes that had been said by then, and was neither out of date nor by a key that was revoked.
    fn standing(&self, now: Timestamp) -> impl Iterator<Item = &Granted> {
        let counts = move |one: &&Granted| one.heard_at <= now && now < one.until;
        self.granted.iter().filter(counts)
    }

    /// Checks a statement and counts it if it holds.
    pub fn hear(
        &mut self,
        statement: &Envelope,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<Counted, Refusal> {
        let answer = self.check(statement, approvers, now)?;
        self.seen.insert(answer.nonce);
        match answer.approval.decision {
            ApprovalDecision::Deny => {
                let denial = Denial {
                    approver: answer.approval.approver,
                    reason: answer.approval.reason,
                };
                if !self.lacks(Defence::OneDenialEnds) {
                    self.denied = Some(denial.clone());
                }
                Ok(Counted::Deny(denial))
            }
            ApprovalDecision::Grant => Ok(self.count(Granted {
                approver: answer.approval.approver,
                statement: statement.digest(),
                roles: answer.roles,
                by: Word::Answer,
                heard_at: now,
                until: answer.until,
            })),
        }
    }

    /// The checks, in the order of the specification.
    fn check(
        &self,
        statement: &Envelope,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<Answering, Refusal> {
        let (issued, key) = approvers.read(statement, now)?;
        let approval = &issued.subject;
        self.check_asked(&approval.session, now)?;
        if self.is_other(approval.request != self.request.id) {
            return Err(Refusal::OtherRequest);
        }
        self.check_open(approval.decision, now)?;
        self.check_act(approval.fingerprint)?;
        if self.is_other(approval.card != self.request.card_digest) {
            return Err(Refusal::OtherCard);
        }
        if self.is_other(approval.policy != self.request.policy) {
            return Err(Refusal::OtherPolicy);
        }
        let approver = approvers
            .with_key(&key)
            .filter(|approver| approver.actor == approval.approver)
            .ok_or(Refusal::OtherApprover)?;
        // For a harness that takes `Defence::RegisteredRoles` out: who answers has the roles that are asked for.
        let roles = match self.lacks(Defence::RegisteredRoles) {
            true => &self.request.requirement.roles,
            false => {
                self.request.check_approver(approver)?;
                &approver.roles
            }
        };
        if self.seen.contains(&issued.nonce) {
            return Err(Refusal::Repeated);
        }
        let expires_at = issued.expires_at.unwrap_or(Timestamp::MAX);
        let until = match approvers.lacks(Defence::ApprovalTimes) {
            true => Timestamp::MAX,
            false => expires_at.min(approver.counts_until()),
        };
        Ok(Answering {
            nonce: issued.nonce,
            roles: roles.clone(),
            until,
            approval: issued.subject,
        })
    }

    /// Whether a difference counts. For a harness that takes [`Defence::ApprovalBinding`] out, none does.
    fn is_other(&self, differs: bool) -> bool {
        differs && !self.lacks(Defence::ApprovalBinding)
    }

    /// In time, and of the session that asks.
    fn check_asked(&self, session: &SessionId, now: Timestamp) -> Result<(), Refusal> {
        if now >= self.request.expires_at {
            return Err(Refusal::RequestExpired {
                at: self.request.expires_at,
            });
        }
        if self.is_other(*session != self.request.session) {
            return Err(Refusal::OtherSession);
        }
        Ok(())
    }

    /// A full quorum needs no more, and yet whoever says no before it is spent ends it.
    fn check_open(&self, decision: ApprovalDecision, now: Timestamp) -> Result<(), Refusal> {
        let is_full = decision == ApprovalDecision::Grant && self.missing(now) == 0;
        if self.denied.is_some() || is_full {
            return Err(Refusal::Closed);
        }
        Ok(())
    }

    fn check_act(&self, fingerprint: Fingerprint) -> Result<(), Refusal> {
        if self.is_other(fingerprint != self.request.card.action.fingerprint) {
            return Err(Refusal::OtherFingerprint);
        }
        Ok(())
    }

    /// Counts a confirmation as the word of one approver, for as long as the confirmation lasts. Of a
    /// quorum above one, confirmations alone are never enough.
    pub fn confirm(
        &mut self,
        confirmed: &Confirmed,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<Counted, Refusal> {
        self.check_asked(confirmed.session(), now)?;
        self.check_open(ApprovalDecision::Grant, now)?;
        self.check_act(confirmed.fingerprint())?;
        let entries = approvers.confirming(confirmed, now);
        let Some(first) = entries.first() else {
            return Err(Refusal::NotAnApprover {
                operator: confirmed.operator().clone(),
            });
        };
        // A host does not say which of their keys a person would have used: the least of them counts.
        let mut roles = first.roles.clone();
        roles.retain(|role| entries.iter().all(|entry| entry.roles.contains(role)));
        for entry in &entries {
            self.request.check_standing(entry, &roles)?;
        }
        let statement = confirmed.statement();
        if self.granted.iter().any(|one| one.statement == statement) {
            return Err(Refusal::Repeated);
        }
        // They are an approver for as long as one of those keys counts.
        let until = entries.iter().map(|entry| entry.counts_until()).max();
        Ok(self.count(Granted {
            approver: confirmed.operator().clone(),
            statement,
            roles,
            by: Word::Confirmation,
            heard_at: now,
            until: confirmed.until().min(until.unwrap_or(now)),
        }))
    }

    fn count(&mut self, granted: Granted) -> Counted {
        let now = granted.heard_at;
        self.granted.push(granted);
        Counted::Grant {
            missing: self.missing(now),
        }
    }

    /// How many people are missing: for the quorum, or for a role that nobody yet has.
    pub fn missing(&self, now: Timestamp) -> u32 {
        let requirement = &self.request.requirement;
        // For a harness that takes `Defence::DistinctApprovers` out: every yes is another person's.
        let people = match self.lacks(Defence::DistinctApprovers) {
            true => self.standing(now).count(),
            false => self.granted_by(now).len(),
        } as u32;
        let covered: BTreeSet<&String> = self.standing(now).flat_map(|one| &one.roles).collect();
        let is_uncovered = requirement.roles.iter().any(|role| !covered.contains(role));
        let is_answered = self.standing(now).any(|one| one.by == Word::Answer);
        let only_confirmed = requirement.quorum > 1 && !is_answered;
        requirement
            .quorum
            .saturating_sub(people)
            .max(u32::from(is_uncovered || only_confirmed))
    }
}

/// An answer that holds.
struct Answering {
    approval: Approval,
    nonce: Nonce,
    /// The roles of the key that signed.
    roles: BTreeSet<String>,
    until: Timestamp,
}
