//! Hearing what people answer.

use std::collections::BTreeSet;

use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::RequestId;
use lodestar_core::key::KeyId;
use lodestar_core::name::{ActorId, Excerpt};
use lodestar_core::statement::{
    Approval, ApprovalDecision, ConfirmationId, Envelope, Nonce, StatementError,
};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{ApprovalRequest, Approver, Approvers};
use crate::confirmation::Confirmed;

/// Why a statement does not count. Named in the order of the checks: the first that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
    /// It is no statement at all.
    #[error("this is no signed statement: {problem}")]
    Malformed {
        /// Why, in words.
        problem: String,
    },
    /// It answers what was never asked here.
    #[error("there is no such request in this session")]
    UnknownRequest,
    /// It is signed, and is no answer to a request.
    #[error("the statement does not hold: {problem}")]
    Statement {
        /// Why, in words.
        problem: String,
    },
    /// Nobody in the registry signed it.
    #[error("no approver's key signed the statement")]
    UnknownKey,
    /// The key counts no more.
    #[error("the key of approver `{approver}` was revoked at {at}")]
    RevokedKey {
        /// Whose.
        approver: ActorId,
        /// When.
        at: Timestamp,
    },
    /// Somebody changed it, or never had the key.
    #[error("the signature by `{key}` does not verify")]
    BadSignature {
        /// The key that it names.
        key: KeyId,
    },
    /// Its time is yet to come.
    #[error("the statement was issued at {at}, which is yet to come")]
    NotYetIssued {
        /// When.
        at: Timestamp,
    },
    /// Its time is over.
    #[error("the statement expired at {at}")]
    Expired {
        /// When.
        at: Timestamp,
    },
    /// The request is over.
    #[error("the request expired at {at}")]
    RequestExpired {
        /// When.
        at: Timestamp,
    },
    /// Another session's.
    #[error("the statement is for another session")]
    OtherSession,
    /// Another request's.
    #[error("the statement is for another request")]
    OtherRequest,
    /// The request has been answered already.
    #[error("the request is over: it was granted, denied or closed before")]
    Closed,
    /// Another act.
    #[error("the statement is for another act: its fingerprint differs")]
    OtherFingerprint,
    /// They saw something else.
    #[error("the approver saw another card")]
    OtherCard,
    /// Another policy was in force.
    #[error("the statement was made under another policy")]
    OtherPolicy,
    /// The key is somebody else's.
    #[error("the key belongs to another approver than the statement names")]
    OtherApprover,
    /// They are no approver, or not any more.
    #[error("operator `{operator}` is not registered as an approver")]
    NotAnApprover {
        /// Who.
        operator: ActorId,
    },
    /// None of the roles that are asked for.
    #[error("approver `{approver}` has none of the roles that are asked for")]
    NoRole {
        /// Who.
        approver: ActorId,
    },
    /// Not up to this rung.
    #[error("approver `{approver}` is not cleared for this rung")]
    NoClearance {
        /// Who.
        approver: ActorId,
    },
    /// Not here.
    #[error("approver `{approver}` does not answer for this scope")]
    OtherScope {
        /// Who.
        approver: ActorId,
    },
    /// It was used before.
    #[error("the statement was heard before")]
    Repeated,
}

/// What has been heard of one request: pure, so that the log can be heard again.
#[derive(Debug, Clone)]
pub struct Hearing {
    request: ApprovalRequest,
    granted: Vec<Granted>,
    seen: BTreeSet<Nonce>,
    denied: Option<Denial>,
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
        }
    }

    /// What is asked.
    pub fn request(&self) -> &ApprovalRequest {
        &self.request
    }

    /// Who said no, and why.
    pub fn denial(&self) -> Option<&Denial> {
        self.denied.as_ref()
    }

    /// Who has said yes, in the order of their names.
    pub fn granted_by(&self) -> BTreeSet<&ActorId> {
        self.granted.iter().map(|one| &one.approver).collect()
    }

    /// The statements that said yes, by digest.
    pub fn grants(&self) -> Vec<Digest> {
        self.granted.iter().map(|one| one.statement).collect()
    }

    /// Checks a statement and counts it if it holds.
    pub fn hear(
        &mut self,
        statement: &Envelope,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<Counted, Refusal> {
        let (approval, nonce, roles) = self.check(statement, approvers, now)?;
        self.seen.insert(nonce);
        match approval.decision {
            ApprovalDecision::Deny => {
                let denial = Denial {
                    approver: approval.approver,
                    reason: approval.reason,
                };
                self.denied = Some(denial.clone());
                Ok(Counted::Deny(denial))
            }
            ApprovalDecision::Grant => {
                self.granted.push(Granted {
                    approver: approval.approver,
                    statement: statement.digest(),
                    roles,
                    by: Word::Answer,
                });
                let missing = self.missing();
                Ok(Counted::Grant { missing })
            }
        }
    }

    /// The checks, in the order of the specification.
    fn check(
        &self,
        statement: &Envelope,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<(Approval, Nonce, BTreeSet<String>), Refusal> {
        let verified = statement
            .verify::<Approval>(&approvers.keys(now), now)
            .map_err(|problem| unverified(problem, statement, approvers))?;
        let approval = verified.subject();
        if now >= self.request.expires_at {
            return Err(Refusal::RequestExpired {
                at: self.request.expires_at,
            });
        }
        if approval.session != self.request.session {
            return Err(Refusal::OtherSession);
        }
        if approval.request != self.request.id {
            return Err(Refusal::OtherRequest);
        }
        // A full quorum needs no more, and yet whoever says no before it is spent ends it.
        let is_full = approval.decision == ApprovalDecision::Grant && self.missing() == 0;
        if self.denied.is_some() || is_full {
            return Err(Refusal::Closed);
        }
        let action = &self.request.card.action;
        if approval.fingerprint != action.fingerprint {
            return Err(Refusal::OtherFingerprint);
        }
        if approval.card != self.request.card_digest {
            return Err(Refusal::OtherCard);
        }
        if approval.policy != self.request.policy {
            return Err(Refusal::OtherPolicy);
        }
        let approver = approvers
            .with_key(verified.key())
            .filter(|approver| approver.actor == approval.approver)
            .ok_or(Refusal::OtherApprover)?;
        self.check_standing(approver, &approver.roles)?;
        let nonce = verified.issued().nonce;
        if self.seen.contains(&nonce) {
            return Err(Refusal::Repeated);
        }
        Ok((approval.clone(), nonce, approver.roles.clone()))
    }

    /// What an approver has to be for this request; `roles` are those that count.
    fn check_standing(&self, approver: &Approver, roles: &BTreeSet<String>) -> Result<(), Refusal> {
        let contract = &self.request.card.action.contract;
        let who = || approver.actor.clone();
        let asked = &self.request.requirement.roles;
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

    /// Counts a confirmation as the word of one approver. Of a quorum above one, confirmations alone
    /// are never enough.
    pub fn confirm(
        &mut self,
        confirmed: &Confirmed,
        approvers: &Approvers,
        now: Timestamp,
    ) -> Result<Counted, Refusal> {
        if now >= self.request.expires_at {
            return Err(Refusal::RequestExpired {
                at: self.request.expires_at,
            });
        }
        if *confirmed.session() != self.request.session {
            return Err(Refusal::OtherSession);
        }
        if self.denied.is_some() || self.missing() == 0 {
            return Err(Refusal::Closed);
        }
        if confirmed.fingerprint() != self.request.card.action.fingerprint {
            return Err(Refusal::OtherFingerprint);
        }
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
            self.check_standing(entry, &roles)?;
        }
        let statement = confirmed.statement();
        if self.granted.iter().any(|one| one.statement == statement) {
            return Err(Refusal::Repeated);
        }
        self.granted.push(Granted {
            approver: confirmed.operator().clone(),
            statement,
            roles,
            by: Word::Confirmation,
        });
        let missing = self.missing();
        Ok(Counted::Grant { missing })
    }

    /// How many people are missing: for the quorum, or for a role that nobody yet has.
    pub fn missing(&self) -> u32 {
        let people: BTreeSet<&ActorId> = self.granted.iter().map(|one| &one.approver).collect();
        let covered: BTreeSet<&String> = self.granted.iter().flat_map(|one| &one.roles).collect();
        let uncovered = self.request.requirement.roles.iter();
        let uncovered = uncovered.filter(|role| !covered.contains(role)).count() as u32;
        let lacking = self
            .request
            .requirement
            .quorum
            .saturating_sub(people.len() as u32);
        let is_answered = self.granted.iter().any(|one| one.by == Word::Answer);
        let only_confirmed = self.request.requirement.quorum > 1 && !is_answered;
        lacking
            .max(u32::from(uncovered > 0))
            .max(u32::from(only_confirmed))
    }
}

/// Which check a statement failed before anybody looked at what it says.
fn unverified(problem: StatementError, statement: &Envelope, approvers: &Approvers) -> Refusal {
    match problem {
        StatementError::Untrusted => match approvers.revoked(statement.signatures()) {
            Some((approver, at)) => Refusal::RevokedKey { approver, at },
            None => Refusal::UnknownKey,
        },
        StatementError::BadSignature(key) => Refusal::BadSignature { key },
        StatementError::NotYetIssued(at) => Refusal::NotYetIssued { at },
        StatementError::Expired(at) => Refusal::Expired { at },
        problem => Refusal::Statement {
            problem: problem.to_string(),
        },
    }
}

/// `approval.granted@1`, `approval.denied@1` and `approval.refused@1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The request.
    pub request: RequestId,
    /// The statement, whole; none where what came is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<Envelope>,
    /// What came instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<Unreadable>,
    /// The confirmation that was spent on it: the statement stands in `confirmation.consumed@1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<ConfirmationId>,
    /// The moment at which it was checked.
    pub heard_at: Timestamp,
    /// The first check that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Refusal>,
    /// How many people are still missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u32>,
}

/// Something that is no statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Its beginning, inert.
    pub begins: String,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// All of it, by digest.
    pub digest: Digest,
}

impl Answer {
    pub(super) fn new(request: RequestId, statement: &Envelope, heard_at: Timestamp) -> Self {
        Self {
            request,
            statement: Some(statement.clone()),
            unreadable: None,
            confirmation: None,
            heard_at,
            reason: None,
            missing: None,
        }
    }

    pub(super) fn confirmed(
        request: RequestId,
        confirmation: ConfirmationId,
        heard_at: Timestamp,
    ) -> Self {
        Self {
            request,
            statement: None,
            unreadable: None,
            confirmation: Some(confirmation),
            heard_at,
            reason: None,
            missing: None,
        }
    }

    pub(super) fn unreadable(request: RequestId, sent: &[u8], heard_at: Timestamp) -> Self {
        let unreadable = Unreadable {
            begins: Excerpt::of(&String::from_utf8_lossy(sent)).to_string(),
            bytes: sent.len() as u64,
            digest: sha256(sent),
        };
        Self {
            request,
            statement: None,
            unreadable: Some(unreadable),
            confirmation: None,
            heard_at,
            reason: None,
            missing: None,
        }
    }
}
