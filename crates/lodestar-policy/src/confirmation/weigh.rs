//! Laying evidence beside a held act: pure, and in the order of the specification.

use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::id::ActionId;
use lodestar_core::key::{KeyId, PublicKey};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::statement::confirmation::{ConfirmationField, ConfirmedAct};
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Issued, StatementError,
};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::unbound::Unbound;
use super::{ConfirmationKeys, Evidence, HeldAct};

/// Why evidence is not to be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "distrust", rename_all = "snake_case")]
pub enum Distrust {
    /// It is no signed confirmation: text, for one.
    #[error("it is no signed confirmation: {problem}")]
    Malformed {
        /// Why, in words.
        problem: String,
    },
    /// It names no act, and so could be laid beside any.
    #[error("it names no act")]
    Unbound,
    /// No key that is configured signed it.
    #[error("no configured confirmation key signed it")]
    UnknownKey,
    /// Somebody changed it, or never had the key.
    #[error("the signature by `{key}` does not verify")]
    BadSignature {
        /// The key that it names.
        key: KeyId,
    },
    /// The key counts no more.
    #[error("the key was revoked at {at}")]
    RevokedKey {
        /// When.
        at: Timestamp,
    },
    /// The key may not sign for this origin.
    #[error("the key may not sign for origin `{origin}`")]
    OtherOrigin {
        /// Which it says.
        origin: ConfirmationOrigin,
    },
    /// The key may not sign in this name.
    #[error("the key may not sign for operator `{operator}`")]
    OtherOperator {
        /// Who it says.
        operator: ActorId,
    },
}

/// Why evidence does not match: the first check that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "unmatched", rename_all = "snake_case")]
pub enum Unmatched {
    /// There is none.
    #[error("there is no confirmation")]
    Missing,
    /// Origin, key or signature.
    #[error("the confirmation is not to be trusted: {why}")]
    Untrusted {
        /// Which.
        #[serde(flatten)]
        why: Distrust,
    },
    /// It was spent.
    #[error("the confirmation was spent before")]
    Consumed,
    /// Its time is yet to come.
    #[error("the confirmation is from {at}, which is yet to come")]
    NotYetValid {
        /// From when on.
        at: Timestamp,
    },
    /// Its time is over.
    #[error("the confirmation expired at {at}")]
    Expired {
        /// When.
        at: Timestamp,
    },
    /// It claims to last longer than one of its origin may for such an act.
    #[error("the confirmation may last {seconds} s at most, and says it lasts longer")]
    Overlong {
        /// How long it may last.
        seconds: u64,
    },
    /// It is about something else.
    #[error("the confirmation is for another act: {} differ", named(.fields))]
    Mismatch {
        /// Everything that differs.
        fields: Vec<ConfirmationField>,
    },
    /// The operator does not want it.
    #[error("operator `{operator}` declined this act")]
    Declined {
        /// Who.
        operator: ActorId,
    },
}

fn named(fields: &[ConfirmationField]) -> String {
    let named: Vec<_> = fields.iter().map(|field| format!("`{field}`")).collect();
    named.join(", ")
}

/// Evidence of a trusted origin, by a trusted key. Whether it is spent, its time now and its act this
/// one is not known yet.
#[derive(Debug)]
pub struct Trusted {
    statement: Issued<Unbound>,
    /// The act that it names; none where a harness takes one that names none.
    act: Option<ConfirmedAct>,
    key: PublicKey,
    digest: Digest,
    /// From when on its key counts no more.
    revoked_at: Option<Timestamp>,
    /// Whether a harness has taken [`Defence::ConfirmationTimes`] out.
    is_timeless: bool,
}

/// Whether a confirmation was spent, as the ledger says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Unspent,
    Spent,
}

impl Evidence {
    /// Checks form, key, signature, origin and operator.
    pub fn trusted(&self, keys: &ConfirmationKeys, now: Timestamp) -> Result<Trusted, Distrust> {
        let (statement, act, signer) = self.said(keys)?;
        let confirmation = &statement.subject;
        let key = keys.with_key(&signer).ok_or(Distrust::UnknownKey)?;
        if let Some(at) = key.revoked_at.filter(|at| now >= *at) {
            return Err(Distrust::RevokedKey { at });
        }
        if !key.origins.contains(&confirmation.origin) {
            return Err(Distrust::OtherOrigin {
                origin: confirmation.origin,
            });
        }
        if !key.operators.contains(&confirmation.operator) {
            return Err(Distrust::OtherOperator {
                operator: confirmation.operator.clone(),
            });
        }
        Ok(Trusted {
            act,
            key: signer,
            digest: self.details.digest(),
            revoked_at: key.revoked_at,
            is_timeless: keys.lacks(Defence::ConfirmationTimes),
            statement,
        })
    }

    /// What it says, of which act, and by whose key.
    fn said(
        &self,
        keys: &ConfirmationKeys,
    ) -> Result<(Issued<Unbound>, Option<ConfirmedAct>, PublicKey), Distrust> {
        // For a harness that takes `Defence::ConfirmationEvidence` out: whoever names a key has it.
        if keys.lacks(Defence::ConfirmationEvidence)
            && let Ok(said) =
                serde_json::from_slice::<Issued<Confirmation>>(self.details.unverified_payload())
            && let Some(key) = keys.named(&said.key_id)
        {
            let (word, act) = Unbound::apart(said);
            return Ok((word, Some(act), key));
        }
        // For a harness that takes `Defence::ConfirmationFields` out: what names no act is about any.
        if keys.lacks(Defence::ConfirmationFields)
            && let Ok(word) = self.details.verify_undated::<Unbound>(&keys.public())
        {
            return Ok((word.issued().clone(), None, *word.key()));
        }
        let verified = self
            .details
            .verify_undated::<Confirmation>(&keys.public())
            .map_err(|problem| self.distrust(problem))?;
        let (word, act) = Unbound::apart(verified.issued().clone());
        // The same defence: what names another act is about this one all the same.
        let act = (!keys.lacks(Defence::ConfirmationFields)).then_some(act);
        Ok((word, act, *verified.key()))
    }

    fn distrust(&self, problem: StatementError) -> Distrust {
        match problem {
            StatementError::Untrusted => Distrust::UnknownKey,
            StatementError::BadSignature(key) => Distrust::BadSignature { key },
            StatementError::WrongPayload { .. } if self.is_unbound() => Distrust::Unbound,
            problem => Distrust::Malformed {
                problem: problem.to_string(),
            },
        }
    }

    /// Whether it is a confirmation but for an act.
    fn is_unbound(&self) -> bool {
        let payload: Option<Value> = serde_json::from_slice(self.details.unverified_payload()).ok();
        let act = payload.as_ref().and_then(|p| p.get("subject")?.get("act"));
        act.is_none_or(|act| match act {
            Value::Object(fields) => fields.is_empty(),
            act => act.is_null(),
        })
    }
}

impl Trusted {
    /// Which confirmation it is.
    pub fn id(&self) -> ConfirmationId {
        self.statement.subject.id
    }

    /// What is said.
    pub fn decision(&self) -> ConfirmationDecision {
        self.statement.subject.decision
    }

    /// The rest of the checks.
    pub(super) fn weigh(
        self,
        act: &HeldAct,
        before: Before,
        now: Timestamp,
    ) -> Result<Matching, Unmatched> {
        if before == Before::Spent {
            return Err(Unmatched::Consumed);
        }
        let until = match self.is_timeless {
            true => Timestamp::MAX,
            false => self.check_time(act.rung, now)?,
        };
        let confirmation = self.statement.subject;
        let named = self.act.as_ref();
        let fields = named.map(|named| act.differences(named, &confirmation.session));
        if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
            return Err(Unmatched::Mismatch { fields });
        }
        if confirmation.decision == ConfirmationDecision::Decline {
            return Err(Unmatched::Declined {
                operator: confirmation.operator,
            });
        }
        Ok(Matching {
            id: confirmation.id,
            operator: confirmation.operator,
            statement: self.digest,
            key: self.key,
            action: act.action,
            fingerprint: act.fingerprint,
            session: act.session.clone(),
            until: self.revoked_at.map_or(until, |at| until.min(at)),
        })
    }

    /// Whether its time is now, and it lasts no longer than it may; and until when.
    fn check_time(&self, rung: Rung, now: Timestamp) -> Result<Timestamp, Unmatched> {
        let dates = self.statement.check_dates(now);
        dates.map_err(|problem| match problem {
            StatementError::NotYetIssued(at) => Unmatched::NotYetValid { at },
            StatementError::Expired(at) => Unmatched::Expired { at },
            problem => Unmatched::Untrusted {
                why: Distrust::Malformed {
                    problem: problem.to_string(),
                },
            },
        })?;
        let longest = self.statement.subject.origin.longest_ttl(rung);
        check_life(self.statement.issued_at, self.statement.expires_at, longest)
    }
}

/// Whether it lasts as long as it may; and until when.
fn check_life(
    from: Timestamp,
    until: Option<Timestamp>,
    longest: Duration,
) -> Result<Timestamp, Unmatched> {
    let overlong = Unmatched::Overlong {
        seconds: longest.as_secs(),
    };
    let until = until.ok_or_else(|| overlong.clone())?;
    match until.since(from) {
        None | Some(Duration::ZERO) => Err(Unmatched::Expired { at: until }),
        Some(life) if life > longest => Err(overlong),
        Some(_) => Ok(until),
    }
}

/// A confirmation that is about exactly the act that is held. It is not spent, and permits nothing.
#[derive(Debug)]
pub struct Matching {
    pub(super) id: ConfirmationId,
    pub(super) operator: ActorId,
    pub(super) statement: Digest,
    pub(super) key: PublicKey,
    pub(super) action: ActionId,
    pub(super) fingerprint: Fingerprint,
    pub(super) session: SessionId,
    /// From when on it counts no more: it is out of date, or its key revoked.
    pub(super) until: Timestamp,
}

impl Matching {
    /// Whether it is this confirmation, by this operator, of this action.
    pub(super) fn is_of(&self, id: ConfirmationId, operator: &ActorId, action: ActionId) -> bool {
        self.id == id && self.operator == *operator && self.action == action
    }
}
