//! Holds, inside the process: a request is opened, and whoever was named as resolver is asked.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lodestar_core::id::RequestId;
use lodestar_core::statement::Envelope;
use lodestar_core::time::Timestamp;
use lodestar_kernel::record::Rejection;
use lodestar_kernel::{HeldWorld, Limits, Proposed};
use lodestar_log::{AppendError, Barrier};
use lodestar_policy::{ApprovalRequest, Card, Heard, Held, Pending, Permit, explain};
use serde_json::Value;

use super::Session;
use super::call::refused;
use super::reply::Reply;
use crate::error::GuardError;

/// What a resolver gives back, some time later: signed statements, in the order to be heard.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Vec<Envelope>> + Send + 'a>>;

/// Somebody who can ask people. It is not trusted: what it returns counts only if it is signed by
/// people in the operator's registry, for exactly this request.
pub trait Resolver: Send + Sync {
    /// Asks, and returns what people signed.
    fn resolve<'a>(&'a self, request: &'a ApprovalRequest) -> Resolving<'a>;
}

/// What is done with held actions. There is no default: whoever opens a session says it.
#[derive(Clone)]
pub enum Holds {
    /// Somebody is asked, and the call waits.
    Ask(Arc<dyn Resolver>),
    /// The request is opened and recorded, and the call returns at once: `approval_required`.
    Leave,
}

impl std::fmt::Debug for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ask(_) => "Ask",
            Self::Leave => "Leave",
        })
    }
}

impl Session {
    /// Holds an action until enough people agree, one says no, or nobody does in time.
    pub(super) async fn hold(
        &self,
        proposed: Proposed,
        held: Held,
        limits: &Limits,
    ) -> Result<Reply, GuardError> {
        let kernel = Arc::clone(&self.inner.kernel);
        let measuring = tokio::task::spawn_blocking(move || {
            let world = kernel.look_round(&proposed);
            (proposed, world)
        });
        let (proposed, world) = measuring.await.map_err(|_| GuardError::Panicked)?;
        let request = self.request(&proposed, &held, &world)?;
        let (log, actor) = (&self.inner.log, &self.inner.actor);
        let mut pending = Pending::open(held, request, log, actor)?;
        // Nobody is asked about a request that a crash could take back.
        let recorded = pending.recorded().reached(Barrier::Disk).await;
        recorded.map_err(AppendError::from)?;
        let request = pending.request().id;
        let answered = match &self.inner.holds {
            Holds::Leave => Answered::Waits,
            Holds::Ask(resolver) => {
                let asked = resolver.resolve(pending.request());
                let statements = tokio::select! {
                    statements = asked => Some(statements),
                    () = tokio::time::sleep(self.inner.approval_timeout) => None,
                    () = limits.stop.stopped() => None,
                    () = self.inner.kernel.stopped() => None,
                };
                match statements {
                    Some(statements) => self.hear(&mut pending, statements.iter())?,
                    None => Answered::Late,
                }
            }
        };
        let why = match answered {
            Answered::Yes(permit) => return self.go(proposed, permit, Some(&world), limits).await,
            Answered::No { reason } => Rejection::ApprovalDenied { request, reason },
            Answered::Waits => Rejection::ApprovalRequired { request },
            Answered::Late => Rejection::ApprovalTimeout { request },
        };
        self.close_held(&proposed, why)
    }

    fn close_held(&self, proposed: &Proposed, why: Rejection) -> Result<Reply, GuardError> {
        let action = &proposed.proposal().action;
        let kernel = &self.inner.kernel;
        let parents = [proposed.seq()];
        let receipt = kernel.reject(Some(action.id), Some(&action.tool), why.clone(), &parents)?;
        Ok(refused(Some(action.id), Some(receipt.seq()), why))
    }

    fn hear<'a>(
        &self,
        pending: &mut Pending,
        statements: impl Iterator<Item = &'a Envelope>,
    ) -> Result<Answered, GuardError> {
        let inner = &self.inner;
        for statement in statements {
            let now = inner.kernel.stamp(RequestId::from_parts).1;
            let heard = pending.hear(statement, &inner.approvers, now, &inner.log, &inner.actor)?;
            match heard {
                Heard::Granted(permit) => return Ok(Answered::Yes(permit)),
                Heard::Denied { reason, .. } => return Ok(Answered::No { reason }),
                Heard::Refused(_) | Heard::Counted { .. } => {}
            }
        }
        Ok(Answered::Waits)
    }

    fn request(
        &self,
        proposed: &Proposed,
        held: &Held,
        world: &HeldWorld,
    ) -> Result<ApprovalRequest, GuardError> {
        let (id, now) = self.inner.kernel.stamp(RequestId::from_parts);
        let proposal = proposed.proposal();
        let all = proposal.preconditions.iter().chain(&world.measured);
        let measured: Result<Vec<Value>, _> = all.map(serde_json::to_value).collect();
        let card = Card {
            action: proposal.action.clone(),
            provenance: proposal.provenance.clone(),
            measured: measured.map_err(GuardError::Card)?,
            going_out: world.going_out.clone(),
            why: explain(held.judgement()),
        };
        let judgement = held.judgement();
        let requirement = judgement.requirement.clone();
        let requirement =
            requirement.unwrap_or_else(|| self.inner.gate.default_requirement().clone());
        let expires_at = now.checked_add(requirement.expires());
        Ok(ApprovalRequest {
            id,
            session: self.id().clone(),
            card_digest: card.digest().map_err(GuardError::Canonical)?,
            card,
            policy: judgement.policy,
            created_at: now,
            expires_at: expires_at.unwrap_or(Timestamp::MAX),
            requirement,
        })
    }
}

/// What came of asking.
enum Answered {
    Yes(Permit),
    No {
        reason: String,
    },
    /// Not enough answered; the request stays open.
    Waits,
    /// Nobody answered in time; the request stays open.
    Late,
}
