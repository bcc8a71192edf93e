//! Holds: a request is opened, or one that asks for the same act is joined, and the call waits until
//! enough people agree, one says no, or nobody does in time. The request outlives the call.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use lodestar_core::id::RequestId;
use lodestar_core::statement::Envelope;
use lodestar_core::time::Timestamp;
use lodestar_kernel::record::Rejection;
use lodestar_kernel::step::Step;
use lodestar_kernel::{HeldWorld, Limits, Proposed};
use lodestar_log::{AppendError, Barrier};
use lodestar_policy::{
    ApprovalRequest, Book, Card, Closing, Desk, Heard, Held, NotSpendable, Permit, Standing,
    explain,
};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Session;
use super::call::refused;
use super::reply::Reply;
use crate::channel::Channel;
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
    /// Somebody in this process is asked, and the call waits.
    Ask(Arc<dyn Resolver>),
    /// People outside are told, and the call waits as long as the configuration says.
    Tell(Vec<Arc<dyn Channel>>),
    /// The request is opened and recorded, and the call returns at once: `approval_required`.
    Leave,
}

impl std::fmt::Debug for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ask(_) => "Ask",
            Self::Tell(_) => "Tell",
            Self::Leave => "Leave",
        })
    }
}

impl Holds {
    pub(super) fn channels(&self) -> &[Arc<dyn Channel>] {
        match self {
            Self::Tell(channels) => channels,
            Self::Ask(_) | Self::Leave => &[],
        }
    }
}

/// The requests of a session, and who waits for their answers.
#[derive(Debug, Default)]
pub(super) struct Office {
    pub(super) desk: Desk,
    waiting: BTreeMap<RequestId, Arc<Notify>>,
    /// Requests that the resolver is being asked about.
    asked: BTreeSet<RequestId>,
    /// Denied requests of which the agent knows.
    told: BTreeSet<RequestId>,
}

impl Office {
    pub(super) fn new(desk: Desk) -> Self {
        Self {
            desk,
            ..Self::default()
        }
    }

    /// The requests that calls wait for.
    pub(super) fn waiting(&mut self) -> Vec<ApprovalRequest> {
        let requests = self.desk.requests();
        let waiting = self.waiting.keys().filter_map(|id| requests.get(*id));
        waiting.map(|hearing| hearing.request().clone()).collect()
    }

    /// A no that was said while no call waited for it. It is told once: who asks again after that, asks people.
    fn unheard_denial(&mut self, held: &Held, now: Timestamp) -> Option<RequestId> {
        let denied = self.desk.denied_for(held, now)?;
        (!self.told.contains(&denied)).then_some(denied)
    }

    /// A request, and the world as people were shown it.
    fn shown(&mut self, request: RequestId) -> Option<(ApprovalRequest, HeldWorld)> {
        let request = self.desk.requests().get(request)?.request();
        let world = HeldWorld::shown_on(&request.card)?;
        Some((request.clone(), world))
    }

    /// Whoever waits for this request looks again.
    pub(super) fn ring(&self, request: RequestId) {
        if let Some(bell) = self.waiting.get(&request) {
            bell.notify_waiters();
        }
    }
}

/// The requests that a session leaves when it is closed.
pub(super) struct Left {
    /// Ended just now, and how.
    pub(super) ended: Vec<(RequestId, Closing)>,
    /// Open still.
    pub(super) open: Vec<RequestId>,
}

/// What came of waiting.
enum Answered {
    Yes(Permit),
    No {
        reason: String,
    },
    /// The request is open still.
    Waits,
    /// Nobody answered in time; the request may be open still.
    Late,
    /// The session was halted.
    Halted,
    /// The call was told to stop.
    Stopped,
    /// The answer was spent on another call of the same act: one has to ask anew.
    SpentElsewhere(Held),
}

/// How often whoever waits for a held call is told so: often enough that clients do not give up.
const TOLD_EVERY: Duration = Duration::from_secs(2);

impl Session {
    /// Holds an action until enough people agree, one says no, or nobody does in time.
    pub(super) async fn hold(
        &self,
        mut proposed: Proposed,
        mut held: Held,
        limits: &Limits,
    ) -> Result<Reply, GuardError> {
        let until = Instant::now() + self.inner.approval_timeout;
        loop {
            let (request, world);
            (proposed, request, world) = self.ask(proposed, &held).await?;
            let id = request.id;
            tokio::select! {
                considered = self.consider_confirmations(&request) => considered?,
                // Whoever is told to stop does not wait for a folder or a ledger.
                () = limits.stop.stopped() => {}
                () = self.inner.kernel.stopped() => {}
            }
            let waiting = self.wait_for(&request, held, until, limits);
            let why = match telling(waiting, id, limits).await? {
                Answered::Yes(permit) => {
                    self.inner.kernel.steps().made(Step::Permitted);
                    let _ring = RingAtEnd(self, id);
                    return self.go(proposed, permit, Some(&world), limits).await;
                }
                Answered::SpentElsewhere(again) => {
                    held = again;
                    continue;
                }
                Answered::No { reason } => Rejection::ApprovalDenied {
                    request: id,
                    reason,
                },
                Answered::Waits => Rejection::ApprovalRequired { request: id },
                Answered::Late => Rejection::ApprovalTimeout { request: id },
                Answered::Halted => Rejection::Halted,
                Answered::Stopped => Rejection::Stopped,
            };
            return self.close_held(&proposed, why);
        }
    }

    /// Joins the request that asks for this act already, or opens one; people hear of it once it is safe.
    async fn ask(
        &self,
        proposed: Proposed,
        held: &Held,
    ) -> Result<(Proposed, ApprovalRequest, HeldWorld), GuardError> {
        let (overdue, joined) = {
            let mut office = self.office();
            let overdue = office.desk.sweep(self.now(), self.book())?;
            let mut joined = office.desk.asking_for(held, self.now());
            if joined.is_none() {
                joined = office.unheard_denial(held, self.now());
            }
            (overdue, joined.and_then(|id| office.shown(id)))
        };
        for id in overdue {
            self.withdraw(id, Closing::Expired).await;
        }
        if let Some((request, world)) = joined {
            // The answer may lie there since before anybody listened.
            self.hear_all().await;
            return Ok((proposed, request, world));
        }
        let kernel = Arc::clone(&self.inner.kernel);
        let measuring = tokio::task::spawn_blocking(move || {
            let world = kernel.look_round(&proposed);
            (proposed, world)
        });
        let (proposed, world) = measuring.await.map_err(|_| GuardError::Panicked)?;
        let request = self.request(&proposed, held, &world)?;
        let receipt = self
            .office()
            .desk
            .open(held, request.clone(), self.book())?;
        // Nobody is asked about a request that a crash could take back.
        let recorded = receipt.reached(Barrier::Disk).await;
        recorded.map_err(AppendError::from)?;
        self.inner.kernel.steps().made(Step::Asked);
        self.announce(request.id).await;
        Ok((proposed, request, world))
    }

    async fn wait_for(
        &self,
        request: &ApprovalRequest,
        mut held: Held,
        until: Instant,
        limits: &Limits,
    ) -> Result<Answered, GuardError> {
        let id = request.id;
        let bell = Bell::hang(self, id);
        let mut asking = self.start_asking(request);
        loop {
            let rung = bell.rung.notified();
            tokio::pin!(rung);
            // From here on nothing that happens is missed.
            rung.as_mut().enable();
            if self.is_granted(id) {
                self.hear_all().await;
            }
            let now = self.now();
            let taken = self.office().desk.take(id, held, now);
            held = match taken {
                Ok(permit) => return Ok(Answered::Yes(permit)),
                Err((held, NotSpendable::NotGranted | NotSpendable::Taken)) => *held,
                Err((_, NotSpendable::Over(Closing::Denied))) => return Ok(self.denial(id)),
                Err((_, NotSpendable::Expired | NotSpendable::Over(Closing::Expired))) => {
                    return Ok(Answered::Late);
                }
                Err((held, _)) => return Ok(Answered::SpentElsewhere(*held)),
            };
            let over = until.min(Instant::now() + left(now, request.expires_at));
            if Instant::now() >= over || matches!(asking, Asking::Done | Asking::Nobody) {
                // Never, unless a harness has taken that out: silence opens nothing.
                if self.office().desk.ran_out(id) {
                    continue;
                }
                return Ok(match asking {
                    Asking::Outside if !self.inner.approval_timeout.is_zero() => Answered::Late,
                    Asking::Inside { .. } => Answered::Late,
                    Asking::Outside | Asking::Done | Asking::Nobody => Answered::Waits,
                });
            }
            tokio::select! {
                () = rung => {}
                statements = asking.answer() => {
                    for statement in statements {
                        self.hear(id, &statement.to_json())?;
                    }
                }
                () = tokio::time::sleep_until(over) => {}
                () = limits.stop.stopped() => return Ok(Answered::Stopped),
                () = self.inner.kernel.stopped() => {
                    self.note_halt()?;
                    let halted = self.inner.kernel.halt().is_halted();
                    return Ok(if halted { Answered::Halted } else { Answered::Stopped });
                }
            }
        }
    }

    fn is_granted(&self, request: RequestId) -> bool {
        let standing = self.office().desk.requests().standing(request);
        standing == Some(Standing::Granted)
    }

    /// Asks the resolver, unless another call is asking it about the same request.
    fn start_asking<'a>(&'a self, request: &'a ApprovalRequest) -> Asking<'a> {
        match &self.inner.holds {
            Holds::Leave => Asking::Nobody,
            Holds::Tell(_) => Asking::Outside,
            Holds::Ask(resolver) => {
                // The resolver may use the session: nothing is locked while it is called.
                let is_first = self.office().asked.insert(request.id);
                match is_first {
                    true => Asking::Inside {
                        resolving: resolver.resolve(request),
                        _asked: AskedOf(self, request.id),
                    },
                    false => Asking::Outside,
                }
            }
        }
    }

    /// Hears what somebody sent in answer to a request; whoever waits for it looks again.
    pub(super) fn hear(&self, request: RequestId, sent: &[u8]) -> Result<Heard, GuardError> {
        let inner = &self.inner;
        let mut office = self.office();
        let now = self.now();
        let heard = office
            .desk
            .hear(request, sent, &inner.approvers, now, self.book())?;
        inner.kernel.steps().made(Step::Heard);
        office.ring(request);
        Ok(heard)
    }

    fn denial(&self, request: RequestId) -> Answered {
        let mut office = self.office();
        office.told.insert(request);
        let hearing = office.desk.requests().get(request);
        let denial = hearing.and_then(|hearing| hearing.denial());
        Answered::No {
            reason: denial.map_or_else(String::new, |denial| denial.reason.clone()),
        }
    }

    /// What an approval is worth whose action was not cleared: nothing if the world moved, and as much
    /// as before if it was only stopped.
    pub(super) async fn not_cleared(
        &self,
        request: RequestId,
        why: &Rejection,
    ) -> Result<(), GuardError> {
        if !why.is_of_the_world() {
            return Ok(());
        }
        let closing = Closing::WorldMoved;
        self.office().desk.close(request, closing, self.book())?;
        self.withdraw(request, closing).await;
        Ok(())
    }

    /// Ends what is overdue; the rest can be answered and taken up again when the session is. A run is
    /// judged as it stands when it is closed: with it, all of its requests end.
    pub(super) fn leave_requests(&self) -> Result<Left, GuardError> {
        let mut office = self.office();
        let overdue = office.desk.sweep(self.now(), self.book())?;
        let overdue = overdue.into_iter().map(|id| (id, Closing::Expired));
        let mut ended: Vec<_> = overdue.collect();
        let live = office.desk.requests().live();
        let mut open: Vec<_> = live.map(|hearing| hearing.request().id).collect();
        if self.ticket().is_some() {
            for id in open.drain(..) {
                office.desk.close(id, Closing::Abandoned, self.book())?;
                ended.push((id, Closing::Abandoned));
            }
        }
        Ok(Left { ended, open })
    }

    fn close_held(&self, proposed: &Proposed, why: Rejection) -> Result<Reply, GuardError> {
        let action = &proposed.proposal().action;
        let kernel = &self.inner.kernel;
        let parents = [proposed.seq()];
        let receipt = kernel.reject(Some(action.id), Some(&action.tool), why.clone(), &parents)?;
        Ok(refused(Some(action.id), Some(receipt.seq()), why))
    }

    pub(super) fn office(&self) -> MutexGuard<'_, Office> {
        let office = self.inner.office.lock();
        office.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn book(&self) -> Book<'_> {
        Book {
            log: &self.inner.log,
            actor: &self.inner.actor,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.inner.kernel.stamp(RequestId::from_parts).1
    }

    fn request(
        &self,
        proposed: &Proposed,
        held: &Held,
        world: &HeldWorld,
    ) -> Result<ApprovalRequest, GuardError> {
        let (id, now) = self.inner.kernel.stamp(RequestId::from_parts);
        let proposal = proposed.proposal();
        let measured: Result<Vec<Value>, _> =
            world.measured.iter().map(serde_json::to_value).collect();
        let card = Card {
            action: proposal.action.clone(),
            definition: proposal.definition,
            paths: proposal.paths.clone(),
            provenance: proposal.provenance.clone(),
            measured: measured.map_err(GuardError::Card)?,
            going_out: world.going_out.clone(),
            why: explain(held.judgement()),
        };
        let judgement = held.judgement();
        let requirement = judgement.requirement.clone();
        let requirement =
            requirement.unwrap_or_else(|| self.inner.gate.default_requirement().clone());
        let place = (self.inner.log.dir().project().clone(), self.id().clone());
        ApprovalRequest::new(id, place, card, requirement, judgement.policy, now)
            .map_err(GuardError::Canonical)
    }
}

/// Who is asked while a call waits.
enum Asking<'a> {
    /// The resolver in this process.
    Inside {
        resolving: Resolving<'a>,
        _asked: AskedOf<'a>,
    },
    /// The resolver in this process has answered.
    Done,
    /// People outside, or another call's resolver.
    Outside,
    Nobody,
}

impl Asking<'_> {
    /// What the resolver brings; never, where it is not asked. Dropping the future loses nothing.
    async fn answer(&mut self) -> Vec<Envelope> {
        let Self::Inside { resolving, .. } = self else {
            return std::future::pending().await;
        };
        let statements = resolving.as_mut().await;
        *self = Self::Done;
        statements
    }
}

/// A call that waits for a request hears it ring; with the last one that waits, the bell goes.
struct Bell<'a> {
    session: &'a Session,
    request: RequestId,
    rung: Arc<Notify>,
}

impl<'a> Bell<'a> {
    fn hang(session: &'a Session, request: RequestId) -> Self {
        let rung = Arc::clone(session.office().waiting.entry(request).or_default());
        Self {
            session,
            request,
            rung,
        }
    }
}

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        let mut office = self.session.office();
        // The office's own and this one.
        if Arc::strong_count(&self.rung) <= 2 {
            office.waiting.remove(&self.request);
        }
    }
}

/// The resolver is asked about a request by one call at a time.
struct AskedOf<'a>(&'a Session, RequestId);

impl Drop for AskedOf<'_> {
    fn drop(&mut self) {
        self.0.office().asked.remove(&self.1);
    }
}

/// Calls of the same act look again when this one is over, however it ends.
struct RingAtEnd<'a>(&'a Session, RequestId);

impl Drop for RingAtEnd<'_> {
    fn drop(&mut self) {
        self.0.office().ring(self.1);
    }
}

/// Tells whoever wants to know how far the call is that it waits for people, now and then.
async fn telling<T>(waiting: impl Future<Output = T>, request: RequestId, limits: &Limits) -> T {
    let Some(progress) = &limits.progress else {
        return waiting.await;
    };
    let mut waiting = std::pin::pin!(waiting);
    let mut told = 0_u64;
    loop {
        tokio::select! {
            biased;
            done = &mut waiting => return done,
            () = tokio::time::sleep(TOLD_EVERY) => {
                told += 1;
                let message = format!("held: waits for a human's approval, request `{request}`");
                let so_far = serde_json::json!({"progress": told, "message": message});
                progress.made(&so_far.to_string());
            }
        }
    }
}

/// How long a request can still be answered.
fn left(now: Timestamp, expires_at: Timestamp) -> Duration {
    let micros = expires_at.unix_micros().saturating_sub(now.unix_micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or(0)).min(FAR)
}

/// Longer than any call waits, and short enough for every clock.
const FAR: Duration = Duration::from_secs(365 * 86_400);
