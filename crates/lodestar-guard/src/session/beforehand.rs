//! What operators said of an act before it was asked for. When an action is held, confirmations that were
//! dropped for it are laid beside it; the log has each as it came, and what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::event::EventType;
use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::{
    ConfirmationField, ConsumeLedger, Consumption, LedgerError, MemoryLedger, Spent,
};
use lodestar_core::time::Timestamp;
use lodestar_kernel::step::Step;
use lodestar_kernel::stop::Stop;
use lodestar_log::{AppendError, Barrier, Clock};
use lodestar_policy::confirmation::{
    Confirmations, Confirmed, HeldAct, Mode, Recorded, Settled, Unmatched, found_by, settle,
};
use lodestar_policy::{ApprovalRequest, Heard, Standing};
use serde::Serialize;

use super::outside::REST;
use super::{Inner, OpenError, Session};
use crate::channel::ChannelError;
use crate::config::Config;
use crate::confirmations::{Arrivals, DropFolder, Found, ledger};
use crate::error::GuardError;

/// Where confirmations are found, what they are worth, and which were spent.
pub(super) struct Beforehand {
    rules: Confirmations,
    folder: DropFolder,
    ledger: Mutex<Ledgers>,
    staying: Mutex<Staying>,
    /// One look at a time, so that nothing is looked at twice.
    looking: Arc<tokio::sync::Mutex<()>>,
}

/// What was looked at and stays where it lies. Whoever can write there can write much: of either, as much
/// is remembered as an honest folder can hold.
#[derive(Default)]
struct Staying {
    /// For other sessions.
    for_others: BTreeSet<PathBuf>,
    /// What may count later, by digest, and the event that recorded it.
    later: BTreeMap<Digest, u64>,
}

/// Most that is remembered of either.
const MOST_STAYING: usize = 4096;

/// Most looks at one folder for one call: each gives some of what lies there.
const MOST_LOOKS: usize = 16;

impl Staying {
    fn is_for_another(&mut self, path: PathBuf) {
        if self.for_others.len() >= MOST_STAYING {
            self.for_others.pop_first();
        }
        self.for_others.insert(path);
    }

    fn may_count_later(&mut self, digest: Digest, recorded: u64) {
        if self.later.len() >= MOST_STAYING {
            self.later.pop_first();
        }
        self.later.insert(digest, recorded);
    }
}

/// How long arrivals are gathered before somebody looks: whoever drops many has them looked at together.
const GATHER: Duration = Duration::from_millis(20);

async fn hear_of(session: Weak<Inner>, mut arrivals: Arrivals, deaf: Stop) {
    loop {
        let arrived = tokio::select! {
            () = deaf.stopped() => return,
            arrived = arrivals.next() => arrived,
        };
        tokio::time::sleep(if arrived.is_ok() { GATHER } else { REST }).await;
        let Some(inner) = session.upgrade() else {
            return;
        };
        let session = Session { inner };
        if let Err(problem) = arrived {
            session.note_problem(problem.to_string());
        }
        // A log that takes nothing any more ends the session, and with it this.
        if session.consider_for_all().await.is_err() {
            return;
        }
    }
}

impl std::fmt::Debug for Beforehand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beforehand")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Beforehand {
    /// For a session whose log says that these were spent. For a harness that takes defences out: without
    /// [`Defence::ConfirmationReportOnly`], what is only to be reported counts; without
    /// [`Defence::ConfirmationOnce`], nothing is remembered of what was spent.
    pub(super) fn open(
        config: &Config,
        logged: BTreeSet<ConfirmationId>,
        without: &[Defence],
    ) -> Result<Self, OpenError> {
        let mut rules = config.confirmations.clone();
        rules.keys = rules.keys.without(without);
        if without.contains(&Defence::ConfirmationReportOnly) {
            rules.mode = Mode::Enforce;
        }
        // Without a key nothing is trusted, and what is not trusted is never spent.
        let shared = match rules.keys.keys().is_empty() {
            true => Box::new(MemoryLedger::default()),
            false => ledger(config)?,
        };
        let folder = DropFolder::of(config);
        // Only to keep it small; what stays is told apart by its time anyway.
        let _ = folder.remove_expired(Clock::system().now());
        Ok(Self {
            rules,
            folder,
            ledger: Mutex::new(Ledgers {
                shared,
                logged,
                forgets: without.contains(&Defence::ConfirmationOnce),
            }),
            staying: Mutex::default(),
            looking: Arc::default(),
        })
    }

    fn staying(&self) -> MutexGuard<'_, Staying> {
        let staying = self.staying.lock();
        staying.unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all processes share, and what the session's own log says. A confirmation is for one session: what
/// the log of that one says stays true when the store is lost, or forgets.
struct Ledgers {
    shared: Box<dyn ConsumeLedger>,
    logged: BTreeSet<ConfirmationId>,
    /// Whether a harness has taken [`Defence::ConfirmationOnce`] out.
    forgets: bool,
}

impl ConsumeLedger for Ledgers {
    fn is_spent(&mut self, id: ConfirmationId) -> Result<bool, LedgerError> {
        Ok(!self.forgets && (self.logged.contains(&id) || self.shared.is_spent(id)?))
    }

    fn consume(&mut self, consumption: &Consumption) -> Result<Spent, LedgerError> {
        match self.logged.contains(&consumption.id) {
            _ if self.forgets => Ok(Spent::Now),
            true => Ok(Spent::Before),
            false => self.shared.consume(consumption),
        }
    }
}

/// What became of a dropped confirmation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Became {
    /// Its word counts for the request.
    Counted,
    /// It is in the log, and nothing more will come of it.
    Nothing,
    /// It is in the log, and another session's to spend.
    ForAnother,
    /// Its time is yet to come, or the ledger could not say: it stays.
    NotYet,
}

/// What became of all that were dropped for an act.
#[derive(Default)]
struct Considered {
    /// What is in the log, and need not lie there any more.
    dealt_with: Vec<PathBuf>,
    counted: bool,
}

impl Session {
    /// Starts to listen for confirmations, if any could count; it ends with the session.
    pub(super) fn listen_for_confirmations(&self) {
        let own = &self.inner.confirmations;
        if own.rules.keys.keys().is_empty() {
            return;
        }
        match own.folder.arrivals() {
            Ok(arrivals) => {
                let deaf = self.inner.deaf.clone();
                self.keep(tokio::spawn(hear_of(
                    Arc::downgrade(&self.inner),
                    arrivals,
                    deaf,
                )));
            }
            // What lies there is looked at with every call all the same.
            Err(problem) => self.note_problem(problem.to_string()),
        }
    }

    /// Looks again for every call that waits.
    async fn consider_for_all(&self) -> Result<(), GuardError> {
        let waiting = self.office().waiting();
        for request in waiting {
            self.consider_confirmations(&request).await?;
        }
        Ok(())
    }

    /// Lays what was dropped for this act beside the request. People are told if that changed anything.
    pub(super) async fn consider_confirmations(
        &self,
        request: &ApprovalRequest,
    ) -> Result<(), GuardError> {
        let (session, asked) = (self.clone(), request.clone());
        let looking = Arc::clone(&self.inner.confirmations.looking);
        let looking = looking.lock_owned().await;
        let considering = tokio::task::spawn_blocking(move || {
            let considered = session.consider(&asked);
            drop(looking);
            considered
        });
        let considered = considering.await.map_err(|_| GuardError::Panicked)??;
        if considered.counted {
            // What is put away stands only in the log from now on.
            let settled = self.inner.log.settled(Barrier::Disk).await;
            settled.map_err(AppendError::from)?;
        }
        for path in &considered.dealt_with {
            self.dispose(path);
        }
        if considered.counted {
            self.announce(request.id).await;
        }
        Ok(())
    }

    fn consider(&self, request: &ApprovalRequest) -> Result<Considered, GuardError> {
        let mut considered = Considered::default();
        // No word is spent on what somebody has said no to.
        let standing = self.office().desk.requests().standing(request.id);
        if matches!(standing, Some(Standing::Over(_))) {
            return Ok(considered);
        }
        let own = &self.inner.confirmations;
        let folder = &own.folder;
        let entry = self.tools().get(&request.card.action.tool);
        let Some(roles) = entry.map(|entry| &entry.record().shape.roles) else {
            return Ok(considered);
        };
        let fields = request.card.fields().map_err(GuardError::Canonical)?;
        let name = found_by(&fields, roles).map_err(GuardError::Canonical)?;
        let act = HeldAct::on_card(&request.card, roles, &request.session);
        let act = act.map_err(GuardError::Canonical)?;
        let mut seen = own.staying().for_others.clone();
        for _ in 0..MOST_LOOKS {
            let Found { found, is_all } = match folder.dropped(name, &seen) {
                Ok(found) => found,
                Err(problem) => {
                    self.note_problem(format!("{}: {problem}", folder.path().display()));
                    return Ok(considered);
                }
            };
            for one in found {
                seen.insert(one.path.clone());
                match self.consider_one(request, &act, &one.bytes)? {
                    Became::Counted => {
                        considered.counted = true;
                        considered.dealt_with.push(one.path);
                    }
                    Became::Nothing => considered.dealt_with.push(one.path),
                    Became::ForAnother => own.staying().is_for_another(one.path),
                    Became::NotYet => {}
                }
            }
            if is_all || considered.counted {
                break;
            }
        }
        Ok(considered)
    }

    fn consider_one(
        &self,
        request: &ApprovalRequest,
        act: &HeldAct,
        sent: &[u8],
    ) -> Result<Became, GuardError> {
        let own = &self.inner.confirmations;
        let now = self.now();
        let digest = sha256(sent);
        let before = own.staying().later.get(&digest).copied();
        let recorded = match before {
            Some(recorded) => recorded,
            None => {
                let asked = self.office().desk.recorded(request.id);
                let recorded = Recorded::new(sent, now);
                self.write(EventType::CONFIRMATION_RECORDED, asked, &recorded)?
            }
        };
        self.inner.kernel.steps().made(Step::Found);
        let settled = {
            let mut ledger = own.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            settle(Some(sent), act, &own.rules, &mut *ledger, now)
        };
        match settled {
            // Who cannot say whether it was spent grants nothing.
            Err(problem) => {
                self.note_problem(format!("the ledger of confirmations: {problem}"));
                own.staying().may_count_later(digest, recorded);
                Ok(Became::NotYet)
            }
            Ok(Settled::Missing) => Ok(Became::Nothing),
            Ok(Settled::Refused(refused)) => {
                let is_early = matches!(refused.reason, Unmatched::NotYetValid { .. });
                // It is said once that something is early, however often it is looked at.
                if before.is_none() || !is_early {
                    self.write(EventType::CONFIRMATION_REFUSED, Some(recorded), &refused)?;
                }
                Ok(match &refused.reason {
                    Unmatched::NotYetValid { .. } => {
                        own.staying().may_count_later(digest, recorded);
                        Became::NotYet
                    }
                    Unmatched::Mismatch { fields }
                        if fields.contains(&ConfirmationField::Session) =>
                    {
                        Became::ForAnother
                    }
                    _ => Became::Nothing,
                })
            }
            Ok(Settled::WouldMatch(would)) => {
                self.write(EventType::CONFIRMATION_MATCHED, Some(recorded), &would)?;
                Ok(Became::Nothing)
            }
            Ok(Settled::Confirmed(confirmed, consumed)) => {
                self.inner.kernel.steps().made(Step::Spent);
                let kind = EventType::CONFIRMATION_CONSUMED;
                let consumed = self.write(kind, Some(recorded), &consumed)?;
                self.inner.kernel.steps().made(Step::Consumed);
                self.count(request, (&confirmed, consumed), now)
            }
        }
    }

    fn count(
        &self,
        request: &ApprovalRequest,
        confirmed: (&Confirmed, u64),
        now: Timestamp,
    ) -> Result<Became, GuardError> {
        let mut office = self.office();
        let approvers = &self.inner.approvers;
        let heard = office
            .desk
            .confirm(request.id, confirmed, approvers, now, self.book())?;
        self.inner.kernel.steps().made(Step::Heard);
        office.ring(request.id);
        Ok(match heard {
            Heard::Refused(_) => Became::Nothing,
            Heard::Counted { .. } | Heard::Granted | Heard::Denied(_) => Became::Counted,
        })
    }

    /// Records what rests on another event, and says where it stands.
    fn write(
        &self,
        kind: EventType,
        parent: Option<u64>,
        payload: &impl Serialize,
    ) -> Result<u64, GuardError> {
        let inner = &self.inner;
        let parents: Vec<u64> = parent.into_iter().collect();
        let receipt = inner.log.append(kind, &inner.actor, &parents, payload)?;
        Ok(receipt.seq())
    }

    fn note_problem(&self, problem: String) {
        self.note(Err(ChannelError {
            channel: "drop folder of confirmations",
            problem,
        }));
    }

    fn dispose(&self, path: &Path) {
        if let Err(problem) = self.inner.confirmations.folder.remove(path) {
            self.note_problem(format!("{}: {problem}", path.display()));
        }
    }
}
