//! Hearing what people answer.

use std::collections::BTreeSet;

use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::id::RequestId;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{Approval, ApprovalDecision, Envelope, Nonce, StatementError};
use lodestar_core::time::Timestamp;
use lodestar_log::{AppendError, LogWriter, Receipt};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{ApprovalRequest, Approvers};
use crate::ruling::{Held, Permit};

/// Why a statement does not count. Named in the order of the checks: the first that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
    /// Form, key, signature or dates.
    #[error("the statement does not hold: {problem}")]
    Statement {
        /// Which, in words.
        problem: String,
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
    #[error("the request is closed: it was granted or denied before")]
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

/// What came of hearing a statement.
#[derive(Debug)]
pub enum Heard {
    /// It does not count; a later one still may.
    Refused(Refusal),
    /// It counts; more are needed.
    Counted {
        /// How many distinct approvers are still missing.
        missing: u32,
    },
    /// Enough people said yes.
    Granted(Permit),
    /// Somebody said no, and that ends it.
    Denied {
        /// Who.
        approver: ActorId,
        /// Why, in their words.
        reason: String,
    },
}

/// What has been heard of one request: pure, so that the log can be heard again.
#[derive(Debug, Clone)]
pub struct Hearing {
    request: ApprovalRequest,
    granted: Vec<Granted>,
    seen: BTreeSet<Nonce>,
    is_open: bool,
}

/// Somebody said yes.
#[derive(Debug, Clone)]
struct Granted {
    approver: ActorId,
    statement: Digest,
    /// The roles of the key that signed; another key of the same person may have others.
    roles: BTreeSet<String>,
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
    Deny {
        /// Who.
        approver: ActorId,
        /// Why, in their words.
        reason: String,
    },
}

impl Hearing {
    /// A request that nobody has answered.
    pub fn new(request: ApprovalRequest) -> Self {
        Self {
            request,
            granted: Vec::new(),
            seen: BTreeSet::new(),
            is_open: true,
        }
    }

    /// What is asked.
    pub fn request(&self) -> &ApprovalRequest {
        &self.request
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
                self.is_open = false;
                Ok(Counted::Deny {
                    approver: approval.approver,
                    reason: approval.reason,
                })
            }
            ApprovalDecision::Grant => {
                self.granted.push(Granted {
                    approver: approval.approver,
                    statement: statement.digest(),
                    roles,
                });
                let missing = self.missing();
                self.is_open = missing > 0;
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
            .map_err(|problem: StatementError| Refusal::Statement {
                problem: problem.to_string(),
            })?;
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
        if !self.is_open {
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
        let who = || approver.actor.clone();
        let roles = &self.request.requirement.roles;
        if !roles.is_empty() && roles.is_disjoint(&approver.roles) {
            return Err(Refusal::NoRole { approver: who() });
        }
        if approver.clearance < action.contract.required_level {
            return Err(Refusal::NoClearance { approver: who() });
        }
        if !approver.scope.contains(&action.contract.scope) {
            return Err(Refusal::OtherScope { approver: who() });
        }
        let nonce = verified.issued().nonce;
        if self.seen.contains(&nonce) {
            return Err(Refusal::Repeated);
        }
        Ok((approval.clone(), nonce, approver.roles.clone()))
    }

    /// How many people are missing: for the quorum, or for a role that nobody yet has.
    fn missing(&self) -> u32 {
        let people: BTreeSet<&ActorId> = self.granted.iter().map(|one| &one.approver).collect();
        let covered: BTreeSet<&String> = self.granted.iter().flat_map(|one| &one.roles).collect();
        let uncovered = self.request.requirement.roles.iter();
        let uncovered = uncovered.filter(|role| !covered.contains(role)).count() as u32;
        let lacking = self
            .request
            .requirement
            .quorum
            .saturating_sub(people.len() as u32);
        lacking.max(u32::from(uncovered > 0))
    }
}

/// An open request of a live session.
#[derive(Debug)]
pub struct Pending {
    held: Option<Held>,
    hearing: Hearing,
    recorded: Receipt,
}

impl Pending {
    /// Opens a request for a held action and records it.
    pub fn open(
        held: Held,
        request: ApprovalRequest,
        log: &LogWriter,
        actor: &ActorId,
    ) -> Result<Self, AppendError> {
        let parents = [held.seq()];
        let receipt = log.append(EventType::APPROVAL_REQUESTED, actor, &parents, &request)?;
        Ok(Self {
            held: Some(held),
            recorded: receipt,
            hearing: Hearing::new(request),
        })
    }

    /// What is asked.
    pub fn request(&self) -> &ApprovalRequest {
        self.hearing.request()
    }

    /// The event that recorded it.
    pub fn recorded(&self) -> &Receipt {
        &self.recorded
    }

    /// Hears one statement and records what came of it.
    pub fn hear(
        &mut self,
        statement: &Envelope,
        approvers: &Approvers,
        now: Timestamp,
        log: &LogWriter,
        actor: &ActorId,
    ) -> Result<Heard, AppendError> {
        let request = self.request().id;
        let counted = self.hearing.hear(statement, approvers, now);
        let (kind, record) = match &counted {
            Err(refusal) => (
                EventType::APPROVAL_REFUSED,
                Answer {
                    reason: Some(refusal.clone()),
                    ..Answer::new(request, statement, now)
                },
            ),
            Ok(Counted::Deny { .. }) => (
                EventType::APPROVAL_DENIED,
                Answer::new(request, statement, now),
            ),
            Ok(Counted::Grant { missing }) => (
                EventType::APPROVAL_GRANTED,
                Answer {
                    missing: Some(*missing),
                    ..Answer::new(request, statement, now)
                },
            ),
        };
        log.append(kind, actor, &[self.recorded.seq()], &record)?;
        Ok(match counted {
            Err(refusal) => Heard::Refused(refusal),
            Ok(Counted::Deny { approver, reason }) => {
                self.held = None;
                Heard::Denied { approver, reason }
            }
            Ok(Counted::Grant { missing: 0 }) => match self.held.take() {
                Some(held) => Heard::Granted(held.granted(request, self.hearing.grants())),
                // A full quorum closes the hearing, so nothing is granted a second time.
                None => Heard::Refused(Refusal::Repeated),
            },
            Ok(Counted::Grant { missing }) => Heard::Counted { missing },
        })
    }
}

/// `approval.granted@1`, `approval.denied@1` and `approval.refused@1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The request.
    pub request: RequestId,
    /// The statement, whole.
    pub statement: Envelope,
    /// The moment at which it was checked.
    pub heard_at: Timestamp,
    /// The first check that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Refusal>,
    /// How many people are still missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u32>,
}

impl Answer {
    fn new(request: RequestId, statement: &Envelope, heard_at: Timestamp) -> Self {
        Self {
            request,
            statement: statement.clone(),
            heard_at,
            reason: None,
            missing: None,
        }
    }
}
