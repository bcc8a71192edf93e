//! The firewall: what comes in is weighed, recorded and kept; what goes out was carried by evidence.
//!
//! Every change runs the same way, inside one transaction of the store: decide by pure rules, have
//! the [`Recorder`] write the event, [fold](crate::fold) the recorded event into the store. So nothing
//! is in the store that is not in the log, and nothing is decided on rows that are not genuine.

mod adopt;
mod age;
mod context;
mod derive;
mod import;
mod intake;
mod lenient;
mod link;
mod moves;
mod people;
mod plain;
mod privileged;

pub use adopt::Outcome;
pub use context::{Context, ContextBelief, ContextPolicy, Dispute, Left, MAX_CONTEXT, around};
pub use derive::Derivation;
pub use import::ImportBatch;
pub use intake::{Intake, Measurement};
pub use moves::Finding;
pub use people::claim_digest;
pub use plain::{Plain, Underivable};
pub use privileged::{Audit, AuditRow};

use lodestar_core::chain::{AdoptionRefused, Rigour};
use lodestar_core::digest::Digest;
use lodestar_core::id::BeliefId;
use lodestar_core::statement::StatementError;
use lodestar_core::time::Timestamp;
use std::time::Duration;
use thiserror::Error;

use crate::authority::{Brand, ProbeSeat, Seats};
use crate::event::{FirewallEvent, LogName, LogPosition, NotRecorded, Recorder, Surroundings};
use crate::extract::{Extractors, OtherCall};
use crate::fold::{self, FoldError};
use crate::judge::MoveRefused;
use crate::row::keys::{Keyring, Standing};
use crate::row::{BadRow, Key, StoredBelief, StoredRow};
use crate::rule::RuleRefused;
use crate::store::{HistoryRow, MemoryStore, Store, StoreError, Verdict, Writing};

/// Why the firewall did not do what it was asked. Where it names an event that was recorded, the
/// store catches up with the log later; otherwise nothing has changed.
#[derive(Debug, Error)]
pub enum FirewallError {
    /// The table or its conditions refuse the move.
    #[error("belief `{belief}`: {refused}")]
    Move {
        /// Which belief.
        belief: BeliefId,
        /// Which move, and why not.
        refused: MoveRefused,
    },
    /// There is no such belief.
    #[error("there is no belief `{0}` in the store")]
    UnknownBelief(BeliefId),
    /// Its row was edited, or another installation wrote it that is not trusted here.
    #[error(
        "belief `{0}` is in the store, but its row is not one that this installation or one it trusts has signed; see `lodestar store status`"
    )]
    NotGenuine(BeliefId),
    /// A seat of another firewall.
    #[error("this authority was given out by another firewall")]
    ForeignSeat,
    /// A signed statement does not hold.
    #[error("the signed statement is refused: {0}")]
    Statement(#[from] StatementError),
    /// A signed statement is about something else.
    #[error(transparent)]
    Order(#[from] OrderRefused),
    /// A rule does not hold, or not here.
    #[error(transparent)]
    Rule(#[from] RuleRefused),
    /// The observation is not of the call.
    #[error(transparent)]
    OtherCall(#[from] OtherCall),
    /// The evidence does not belong to the claim.
    #[error(transparent)]
    Adoption(#[from] AdoptionRefused),
    /// What is to be derived or measured is too large or has no form.
    #[error("{0}")]
    BadClaim(String),
    /// The log refused the event.
    #[error(transparent)]
    NotRecorded(#[from] NotRecorded),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row cannot be read.
    #[error(transparent)]
    BadRow(#[from] BadRow),
    /// The recorded event does not fit the store.
    #[error("event #{seq} is recorded, but the store could not follow: {problem}")]
    Behind {
        /// The event.
        seq: u64,
        /// Why.
        problem: FoldError,
    },
    /// An earlier event was recorded and not followed.
    #[error(
        "an earlier event is recorded and not in the store: open the store again, and it catches up"
    )]
    Stopped,
    /// The recorded event changes a belief that changed meanwhile.
    #[error(
        "event #{seq} is recorded, but changes belief `{belief}`, which the store has in another state: rebuild the store"
    )]
    Unfit {
        /// The event.
        seq: u64,
        /// The belief.
        belief: BeliefId,
    },
}

/// Why a person's signed order was not followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OrderRefused {
    /// It is for another project.
    #[error("the statement is for project `{stated}`, not for `{here}`")]
    OtherProject {
        /// What it says.
        stated: String,
        /// Where it was used.
        here: String,
    },
    /// The claim is not the one that was signed for.
    #[error("the statement names claim {stated}, but the belief's claim is {found}")]
    OtherClaim {
        /// What it says.
        stated: Digest,
        /// What is there.
        found: Digest,
    },
    /// The belief changed since, perhaps by this very statement.
    #[error(
        "the statement is about revision {stated} of the belief, which is at revision {found}: look at it again and sign anew"
    )]
    OtherRevision {
        /// What it says.
        stated: u64,
        /// What is there.
        found: u64,
    },
    /// It moves nothing.
    #[error("the statement names no move")]
    NoMove,
    /// It was signed too long ago.
    #[error("the statement was signed at {at}; a word about beliefs is taken for {} hours", MAX_WORD_AGE.as_secs() / 3600)]
    TooOld {
        /// When.
        at: Timestamp,
    },
    /// It was used before.
    #[error("the statement was taken in before, as belief `{0}`")]
    Used(BeliefId),
}

/// How long a signed order or assertion is taken: a person's word about what is believed is about
/// today. It also bounds what somebody can do who finds an old one that was never used.
pub const MAX_WORD_AGE: Duration = Duration::from_secs(24 * 3600);

/// The memory firewall.
pub struct Firewall {
    store: Kept,
    keys: Keyring,
    extractors: Extractors,
    surroundings: Box<dyn Surroundings>,
    brand: Brand,
}

impl std::fmt::Debug for Firewall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Firewall")
            .field("store", &self.store.describe())
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Firewall {
    /// A firewall over a store, and the seats of those who may move beliefs in it.
    pub fn open(
        store: Box<dyn Store>,
        keys: Keyring,
        extractors: Extractors,
        surroundings: Box<dyn Surroundings>,
    ) -> (Self, Seats) {
        let brand = Brand::new();
        let seats = Seats::new(&brand);
        let firewall = Self {
            store: Kept {
                store,
                stopped: false,
            },
            keys,
            extractors,
            surroundings,
            brand,
        };
        (firewall, seats)
    }

    /// One belief, as data, with what its row is worth.
    pub fn look_up(
        &mut self,
        id: BeliefId,
    ) -> Result<Option<(StoredBelief, Standing)>, FirewallError> {
        match self.store.row(&id)? {
            Some(row) => Ok(Some((row.open()?, self.keys.standing(&row)))),
            None => Ok(None),
        }
    }

    /// The ids that start so, in their order: at most `limit`.
    pub fn find(&mut self, prefix: &str, limit: usize) -> Result<Vec<BeliefId>, FirewallError> {
        let rows = self.store.rows_starting(prefix, limit)?;
        rows.iter().map(|row| Ok(row.belief_id()?)).collect()
    }

    /// What became of a belief, in its order.
    pub fn history(&mut self, id: BeliefId) -> Result<Vec<HistoryRow>, FirewallError> {
        Ok(self.store.history(&id)?)
    }

    /// What speaks against a belief: the newest, at most `limit`.
    pub fn disputes(
        &mut self,
        id: BeliefId,
        limit: usize,
    ) -> Result<Option<Dispute>, FirewallError> {
        let found = self.store.disputes(&[id], limit)?;
        Ok(found.into_iter().next().map(Dispute::from))
    }

    /// Notes that a session's log ended with so many events, all of them followed: nothing in it is
    /// waited for any more.
    pub fn session_ended(&mut self, log: &LogName, events: u64) -> Result<(), FirewallError> {
        let Self { store, keys, .. } = self;
        let signer = keys.own_id().as_str();
        transact(store, |tx| {
            if tx.next(signer, log)? < events {
                tx.advance(signer, log, events)?;
            }
            Ok(())
        })
    }

    /// Genuine beliefs with the same key that are settled, newest first.
    pub(crate) fn settled_beside(
        &mut self,
        belief: &StoredBelief,
        limit: usize,
    ) -> Result<Vec<StoredBelief>, FirewallError> {
        let Some(key) = Key::of(&belief.record.scope, &belief.claim.predicate) else {
            return Ok(Vec::new());
        };
        let Self { store, keys, .. } = self;
        transact(store, |tx| only_genuine(keys, tx.settled(&key, limit)?))
    }

    pub(crate) fn rigour(&self) -> Rigour {
        self.keys.rigour()
    }

    fn check_seat(&self, brand: &Brand) -> Result<(), FirewallError> {
        if self.brand.is(brand) {
            Ok(())
        } else {
            Err(FirewallError::ForeignSeat)
        }
    }

    /// Records an event that changes no belief.
    pub(crate) fn record(
        &mut self,
        event: &FirewallEvent,
        recorder: &mut dyn Recorder,
    ) -> Result<LogPosition, FirewallError> {
        let Self { store, keys, .. } = self;
        transact(store, |tx| enact(tx, keys, recorder, event))
    }

    /// A new id, and the moment it was made at.
    pub(crate) fn stamp<T>(&mut self, make: fn(u64, [u8; 10]) -> T) -> (T, Timestamp) {
        let now = self.now();
        let id = adopt::Ids::new(self.surroundings.as_mut(), now).next(make);
        (id, now)
    }

    fn now(&mut self) -> Timestamp {
        self.surroundings.now()
    }
}

/// A firewall for a probe, in a world of its own: a store in memory that nothing else sees, and the
/// seat that only such a world has.
///
/// No firewall of the product comes with that seat:
///
/// ```compile_fail,E0609
/// use lodestar_firewall::authority::{ProbeSeat, Seats};
///
/// fn find(seats: Seats) -> ProbeSeat {
///     seats.probe
/// }
/// ```
pub fn probe_world(
    keys: Keyring,
    surroundings: Box<dyn Surroundings>,
) -> (Firewall, Seats, ProbeSeat) {
    let store = Box::new(MemoryStore::new());
    let (firewall, seats) = Firewall::open(store, keys, Extractors::built_in(), surroundings);
    let probe = ProbeSeat(firewall.brand.clone());
    (firewall, seats, probe)
}

/// A store, and whether it still follows.
struct Kept {
    store: Box<dyn Store>,
    // INVARIANT: once an event was recorded and not followed, nothing more is: a later event would
    // say that the log was followed up to it.
    stopped: bool,
}

impl std::ops::Deref for Kept {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

impl std::ops::DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.store.as_mut()
    }
}

/// Runs work in one transaction of the store; what it refuses takes no effect.
fn transact<T>(
    store: &mut Kept,
    work: impl FnOnce(&mut dyn Writing) -> Result<T, FirewallError>,
) -> Result<T, FirewallError> {
    if store.stopped {
        return Err(FirewallError::Stopped);
    }
    let mut work = Some(work);
    let mut outcome = None;
    let written = store.write(&mut |tx| {
        let work = work.take().expect("INVARIANT: a store runs the work once");
        let done = work(tx);
        let verdict = match done {
            Ok(_) => Verdict::Commit,
            Err(_) => Verdict::Rollback,
        };
        outcome = Some(done);
        Ok(verdict)
    });
    let recorded = match &outcome {
        Some(Err(FirewallError::Behind { .. } | FirewallError::Unfit { .. })) => true,
        // All was well, an event among it perhaps, and the store did not keep it.
        Some(Ok(_)) => written.is_err(),
        _ => false,
    };
    store.stopped = recorded;
    written?;
    outcome.expect("INVARIANT: a store runs the work once")
}

/// Records an event, then lets the store follow it.
fn enact(
    tx: &mut dyn Writing,
    keys: &Keyring,
    recorder: &mut dyn Recorder,
    event: &FirewallEvent,
) -> Result<LogPosition, FirewallError> {
    let at = recorder.record(event)?;
    enter(tx, keys, event, &at)?;
    // A log that cannot hand over takes nothing any more: no later event passes this one by.
    recorder.hand_over()?;
    Ok(at)
}

fn enter(
    tx: &mut dyn Writing,
    keys: &Keyring,
    event: &FirewallEvent,
    at: &LogPosition,
) -> Result<(), FirewallError> {
    let waiting = fold::apply(tx, keys, event, at).map_err(|problem| FirewallError::Behind {
        seq: at.seq,
        problem,
    })?;
    match waiting.first() {
        Some(waiting) => Err(FirewallError::Unfit {
            seq: at.seq,
            belief: waiting.change.belief,
        }),
        None => Ok(()),
    }
}

/// A belief that may be decided upon: there, and genuine.
fn genuine(
    tx: &mut dyn Writing,
    keys: &Keyring,
    id: BeliefId,
) -> Result<StoredBelief, FirewallError> {
    let row = tx.row(&id)?.ok_or(FirewallError::UnknownBelief(id))?;
    if keys.standing(&row) != Standing::Genuine {
        return Err(FirewallError::NotGenuine(id));
    }
    Ok(row.open()?)
}

/// The genuine ones among rows, read.
fn only_genuine(keys: &Keyring, rows: Vec<StoredRow>) -> Result<Vec<StoredBelief>, FirewallError> {
    let genuine = rows
        .into_iter()
        .filter(|row| keys.standing(row) == Standing::Genuine);
    genuine.map(|row| Ok(row.open()?)).collect()
}
