//! Clearing: the world is measured again, and the record that it may run is made safe.

use std::sync::Arc;

use lodestar_core::contract::CheckKind;
use lodestar_core::defence::Defence;
use lodestar_core::event::EventType;
use lodestar_core::id::ClearanceId;
use lodestar_core::ladder::Rung;
use lodestar_log::{AppendError, Barrier, Receipt};
use lodestar_policy::{Permit, Revoked, StepKind};
use thiserror::Error;

use super::hold::{HeldWorld, going_out};
use super::keep::unkept;
use super::unended::Unended;
use super::{Kernel, Proposed};
use crate::image::{Sight, Taken};
use crate::measure::{Found, Measured, Moved, Subject, World};
use crate::record::{Cleared, Notified, Proposal, Rejected, Rejection};
use crate::registry::Entry;
use crate::step::Step;
use crate::stop::Stop;
use crate::terse::ClearedLine;

/// Leave to call the tool of one action, once.
#[derive(Debug)]
pub struct Clearance {
    id: ClearanceId,
    pub(super) proposal: Proposal,
    pub(super) entry: Arc<Entry>,
    pub(super) unended: Unended,
    /// The paths that it writes, with what stood there kept.
    pub(super) sight: Option<Sight>,
    judged: u64,
}

impl Clearance {
    /// Its id.
    pub fn id(&self) -> ClearanceId {
        self.id
    }

    /// The event that recorded the verdict it stands on.
    pub fn judged(&self) -> u64 {
        self.judged
    }

    /// The action.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }
}

/// Why there is no clearance.
#[derive(Debug, Error)]
pub enum ClearError {
    /// It does not run; the log says so where it still can.
    #[error("{0}")]
    Rejected(Rejection),
    /// The log refused.
    #[error(transparent)]
    Log(#[from] AppendError),
    /// The permit is for another action, or another session's.
    #[error("the permit is for another action")]
    OtherAction,
}

/// From this rung on nothing runs before its clearance is on disk, under a checkpoint.
pub(super) const DURABLE_FROM: Rung = Rung::L3;

impl Kernel {
    /// Measures again, records the clearance, and waits until the record is as safe as the rung
    /// asks for. `held` is what was measured when the hold was opened; what was told to stop meanwhile
    /// is not cleared.
    pub async fn clear(
        &self,
        proposed: Proposed,
        permit: Permit,
        held: Option<&HeldWorld>,
        stop: &Stop,
    ) -> Result<Clearance, ClearError> {
        let action = &proposed.proposal.action;
        let is_for_this = permit.action() == action.id
            && permit.fingerprint() == action.fingerprint
            && permit.session() == self.log.dir().session();
        if !is_for_this {
            return Err(ClearError::OtherAction);
        }
        let level = action.contract.required_level;
        let parents = [proposed.seq, permit.judged()];
        let refuse = |why: Rejection| {
            let rejected = Rejected {
                action: Some(action.id),
                tool: Some(action.tool.clone()),
                granted: permit.request(),
                why,
            };
            let record = || self.record_rejection(&rejected, &parents);
            match rejected.why.is_of_the_world() {
                true => permit.spend_in_vain(record)?,
                false => record()?,
            };
            self.steps.made(Step::Rejected);
            Err(ClearError::Rejected(rejected.why))
        };
        let measured = self.measure_again(&proposed, held).await;
        // What only reads, and nobody waited for, was looked at just now, when it was proposed.
        let is_old = held.is_some() || !proposed.proposal.preconditions.is_empty();
        if (is_old || level >= Rung::L2)
            && !self.lacks(Defence::SecondLook)
            && let Some(why) = self.reaches_now(&proposed)
        {
            return refuse(why);
        }
        self.steps.made(Step::MeasuredAgain);
        let measured = match measured {
            Ok(measured) => measured,
            Err(moved) => return refuse(Rejection::PreconditionFailed { moved }),
        };
        let taken = match self.writes(&proposed) {
            Some(writing) => Some(writing.take().await),
            None => None,
        };
        if let Some(why) = taken.as_ref().and_then(|taken| unkept(level, taken)) {
            return refuse(why);
        }
        if stop.is_stopped() {
            return refuse(Rejection::Stopped);
        }
        let id = ClearanceId::of_action(action.id);
        let cleared = Cleared {
            action: action.id,
            clearance: id,
            judged: permit.judged(),
            measured,
            request: permit.request(),
            grants: permit.grants().to_vec(),
            taken_at: permit.taken_at(),
        };
        let kind = EventType::ACTION_CLEARED;
        let line = ClearedLine::of(&cleared);
        let append = || {
            let step = StepKind::of(&action.contract);
            let record = || self.log.append(kind, self.actor(), &parents, &line);
            self.trail.step(step, record)
        };
        let clearing = permit.spend(|| self.halt.unless_halted(append));
        let receipt = match (clearing, permit.request()) {
            (Ok(Some(receipt)), _) => receipt?,
            (Err(Revoked), Some(request)) => {
                let reason =
                    "somebody said no, or the request was closed, while it was about to run"
                        .to_owned();
                return refuse(Rejection::ApprovalDenied { request, reason });
            }
            (Ok(None) | Err(Revoked), _) => return refuse(Rejection::Halted),
        };
        let unended = Unended::new(&self.log, self.actor(), action.id, id, receipt.seq());
        self.steps.made(Step::Cleared);
        if level >= DURABLE_FROM {
            self.notify(&proposed.proposal, taken.as_ref(), receipt.seq())?;
        }
        let sight = match taken {
            // One wait makes both safe.
            Some(taken) => Some(self.keep(&proposed, id, &receipt, taken).await?),
            None => {
                if level >= DURABLE_FROM {
                    self.made_safe(&receipt).await?;
                }
                None
            }
        };
        self.steps.made(Step::Durable);
        Ok(Clearance {
            id,
            judged: permit.judged(),
            proposal: proposed.proposal,
            entry: proposed.entry,
            unended,
            sight,
        })
    }

    /// Waits until an event is as safe as what runs at L3 or above needs it.
    pub(super) async fn made_safe(&self, receipt: &Receipt) -> Result<(), ClearError> {
        if self.lacks(Defence::DurableClearance) {
            return Ok(());
        }
        let reached = receipt.reached(Barrier::Checkpoint).await;
        reached.map_err(|stopped| {
            ClearError::Rejected(Rejection::NotRecorded {
                reason: stopped.to_string(),
            })
        })
    }

    /// Every measurement that has to be made again, or what is not as it was.
    async fn measure_again(
        &self,
        proposed: &Proposed,
        held: Option<&HeldWorld>,
    ) -> Result<Vec<Found>, Vec<Moved>> {
        // What people were shown may be older than this proposal.
        let expected = match held {
            Some(held) => &held.measured,
            None => &proposed.proposal.preconditions,
        };
        let again: Vec<Measured> = expected
            .iter()
            .filter(|measured| measured.precondition.must_revalidate_at_execution)
            .cloned()
            .collect();
        if again.is_empty() && held.is_none() || self.lacks(Defence::Revalidation) {
            return Ok(Vec::new());
        }
        let world = self.world.clone();
        let action = proposed.proposal.action.clone();
        let shown = held.map(|held| held.going_out.clone());
        let entry = Arc::clone(&proposed.entry);
        let looking = tokio::task::spawn_blocking(move || {
            let subject = Subject {
                arguments: &action.arguments,
                definition: entry.definition(),
                pinned: entry.record().definition,
                root: entry.root(),
            };
            let found = look_again(&world, &again, subject)?;
            let roles = &entry.record().shape.roles;
            let now = going_out(&action, roles, world.root_of(subject));
            match shown {
                Some(shown) if shown != now => Err(vec![other_goods(&shown, &now)]),
                _ => Ok(found),
            }
        });
        looking.await.unwrap_or_else(|_| {
            Err(vec![Moved {
                check: CheckKind::ToolDefinition,
                of: None,
                expected: None,
                found: Found::Unmeasurable {
                    because: "the measurement panicked".to_owned(),
                },
            }])
        })
    }

    /// Links may have been laid since the action was judged.
    fn reaches_now(&self, proposed: &Proposed) -> Option<Rejection> {
        let action = &proposed.proposal.action;
        let shape = &proposed.entry.record().shape;
        let (roles, schema) = (&shape.roles, &shape.input_schema);
        let base = proposed.entry.root().unwrap_or(self.world.root());
        let contract = &action.contract;
        let reach = self
            .protected
            .reached_by(&action.arguments, roles, schema, contract, base)?;
        Some(Rejection::ReachesLodestar { reach })
    }

    fn notify(
        &self,
        proposal: &Proposal,
        taken: Option<&Taken>,
        cleared: u64,
    ) -> Result<(), AppendError> {
        let mut what = proposal.in_words();
        if let Some((path, because)) = taken.and_then(Taken::first_unkept) {
            what = format!(
                "{what}; it cannot be undone: what stands at `{}` cannot be kept, {because}",
                path.shown()
            );
        }
        let notified = Notified {
            action: proposal.action.id,
            what,
        };
        let kind = EventType::ACTION_NOTIFIED;
        self.log.append(kind, self.actor(), &[cleared], &notified)?;
        Ok(())
    }
}

/// What would go out is not what was shown.
fn other_goods(shown: &[String], now: &[String]) -> Moved {
    let text = |lines: &[String]| Found::Text {
        is: lines.join("\n"),
    };
    Moved {
        check: CheckKind::GitHead,
        of: Some("what would go out".to_owned()),
        expected: Some(text(shown)),
        found: text(now),
    }
}

fn look_again(
    world: &World,
    again: &[Measured],
    subject: Subject<'_>,
) -> Result<Vec<Found>, Vec<Moved>> {
    let mut found = Vec::new();
    let mut moved = Vec::new();
    for measured in again {
        let now = world.look_again(measured, subject);
        let is_unmeasurable = matches!(now, Found::Unmeasurable { .. });
        if now != measured.expected_at_approval || is_unmeasurable {
            moved.push(Moved {
                check: measured.precondition.check.kind(),
                of: measured.of.clone(),
                expected: Some(measured.expected_at_approval.clone()),
                found: now.clone(),
            });
        }
        found.push(now);
    }
    if moved.is_empty() {
        Ok(found)
    } else {
        Err(moved)
    }
}
