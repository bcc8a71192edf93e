//! What operators said of an act before it was asked for. When an action is held, confirmations that were
//! dropped for it are laid beside it; the log has each as it came, and what became of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lodestar_core::event::EventType;
use lodestar_core::statement::confirmation::{ConfirmationField, ConsumeLedger, MemoryLedger};
use lodestar_kernel::step::Step;
use lodestar_log::{AppendError, Barrier};
use lodestar_policy::confirmation::{
    Confirmations, HeldAct, Recorded, Settled, Unmatched, found_by, settle,
};
use lodestar_policy::{ApprovalRequest, Heard};
use serde::Serialize;

use super::{OpenError, Session};
use crate::channel::ChannelError;
use crate::config::Config;
use crate::confirmations::{DropFolder, ledger};
use crate::error::GuardError;

/// Where confirmations are found, what they are worth, and which were spent.
pub(super) struct Beforehand {
    rules: Confirmations,
    folder: DropFolder,
    /// Looked at, and left there for the sessions that they are for.
    for_others: Mutex<BTreeSet<PathBuf>>,
    ledger: Mutex<Box<dyn ConsumeLedger>>,
}

impl std::fmt::Debug for Beforehand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beforehand")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Beforehand {
    pub(super) fn open(config: &Config) -> Result<Self, OpenError> {
        let rules = config.confirmations.clone();
        // Without a key nothing is trusted, and what is not trusted is never spent.
        let ledger = match rules.keys.keys().is_empty() {
            true => Box::new(MemoryLedger::default()),
            false => ledger(config)?,
        };
        Ok(Self {
            rules,
            folder: DropFolder::of(config),
            for_others: Mutex::default(),
            ledger: Mutex::new(ledger),
        })
    }
}

/// Whether a dropped confirmation has been dealt with.
#[derive(PartialEq, Eq)]
enum Dealt {
    /// It is in the log, and nothing more will come of it.
    With,
    /// It is in the log, and another session's to spend.
    ForAnother,
    /// Its time is yet to come, or the ledger could not say.
    NotYet,
}

impl Session {
    /// Lays what was dropped for this act beside the request. People are told if that changed anything.
    pub(super) async fn consider_confirmations(
        &self,
        request: &ApprovalRequest,
    ) -> Result<(), GuardError> {
        let (session, asked) = (self.clone(), request.clone());
        let considering = tokio::task::spawn_blocking(move || session.consider(&asked));
        let (dealt_with, counted) = considering.await.map_err(|_| GuardError::Panicked)??;
        if counted {
            // What is put away stands only in the log from now on.
            let settled = self.inner.log.settled(Barrier::Disk).await;
            settled.map_err(AppendError::from)?;
        }
        for path in &dealt_with {
            self.dispose(path);
        }
        if counted {
            self.announce(request.id).await;
        }
        Ok(())
    }

    /// The files that are dealt with, and whether one of them counted.
    fn consider(&self, request: &ApprovalRequest) -> Result<(Vec<PathBuf>, bool), GuardError> {
        let folder = &self.inner.confirmations.folder;
        let entry = self.tools().get(&request.card.action.tool);
        let Some(roles) = entry.map(|entry| &entry.record().shape.roles) else {
            return Ok((Vec::new(), false));
        };
        let fields = request.card.fields().map_err(GuardError::Canonical)?;
        let name = found_by(&fields, roles).map_err(GuardError::Canonical)?;
        let for_others = &self.inner.confirmations.for_others;
        let mut for_others = for_others.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match folder.dropped(name, &for_others) {
            Ok(found) => found,
            Err(problem) => {
                self.note_problem(format!("{}: {problem}", folder.path().display()));
                return Ok((Vec::new(), false));
            }
        };
        let (mut dealt_with, mut any) = (Vec::new(), false);
        for one in found {
            let (dealt, counted) = self.consider_one(request, &one.bytes)?;
            any |= counted;
            match dealt {
                Dealt::With => dealt_with.push(one.path),
                Dealt::ForAnother => {
                    for_others.insert(one.path);
                }
                Dealt::NotYet => {}
            }
        }
        Ok((dealt_with, any))
    }

    fn consider_one(
        &self,
        request: &ApprovalRequest,
        sent: &[u8],
    ) -> Result<(Dealt, bool), GuardError> {
        let own = &self.inner.confirmations;
        let card = &request.card;
        let entry = self.tools().get(&card.action.tool);
        let roles = entry.map(|entry| &entry.record().shape.roles);
        let Some(roles) = roles else {
            return Ok((Dealt::NotYet, false));
        };
        let act = HeldAct::on_card(card, roles, &request.session).map_err(GuardError::Canonical)?;
        let (now, steps) = (self.now(), self.inner.kernel.steps());
        self.write(EventType::CONFIRMATION_RECORDED, &Recorded::new(sent, now))?;
        steps.made(Step::Found);
        let settled = {
            let mut ledger = own.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            settle(Some(sent), &act, &own.rules, ledger.as_mut(), now)
        };
        match settled {
            // Who cannot say whether it was spent grants nothing.
            Err(problem) => {
                self.note_problem(format!("the ledger of confirmations: {problem}"));
                Ok((Dealt::NotYet, false))
            }
            Ok(Settled::Missing) => Ok((Dealt::With, false)),
            Ok(Settled::Refused(refused)) => {
                self.write(EventType::CONFIRMATION_REFUSED, &refused)?;
                let dealt = match refused.reason {
                    Unmatched::NotYetValid { .. } => Dealt::NotYet,
                    Unmatched::Mismatch { ref fields }
                        if fields.contains(&ConfirmationField::Session) =>
                    {
                        Dealt::ForAnother
                    }
                    _ => Dealt::With,
                };
                Ok((dealt, false))
            }
            Ok(Settled::WouldMatch(would)) => {
                self.write(EventType::CONFIRMATION_MATCHED, &would)?;
                Ok((Dealt::With, false))
            }
            Ok(Settled::Confirmed(confirmed, consumed)) => {
                steps.made(Step::Spent);
                self.write(EventType::CONFIRMATION_CONSUMED, &consumed)?;
                steps.made(Step::Consumed);
                let mut office = self.office();
                let heard = office.desk.confirm(
                    request.id,
                    &confirmed,
                    &self.inner.approvers,
                    now,
                    self.book(),
                )?;
                steps.made(Step::Heard);
                office.ring(request.id);
                Ok((Dealt::With, !matches!(heard, Heard::Refused(_))))
            }
        }
    }

    fn write(&self, kind: EventType, payload: &impl Serialize) -> Result<(), GuardError> {
        let inner = &self.inner;
        inner.log.append(kind, &inner.actor, &[], payload)?;
        Ok(())
    }

    fn note_problem(&self, problem: String) {
        self.note(Err(ChannelError {
            channel: "drop folder of confirmations",
            problem,
        }));
    }

    fn dispose(&self, path: &Path) {
        if let Err(problem) = std::fs::remove_file(path) {
            self.note_problem(format!("{}: {problem}", path.display()));
        }
    }
}
