//! Calibration out of the log: which beliefs were settled, and the latest measurement that was recorded.
//!
//! Only what verifies counts, and only sessions that had all defences. Each belief gives one sample at most,
//! so that nothing is made of saying or doing the same thing often:
//!
//! | what happened to the belief | it came |
//! |---|---|
//! | to `supported`, by direct evidence through the gate or by a person's signed statement | true |
//! | to `contradicted`, by a person, or by a sentinel or reflection that names a direct belief | false |
//! | to `superseded`, by a direct claim or belief that says the same | true |
//! | to `superseded`, by a direct claim or belief that says something else | false |
//! | none of these, and an action of a tool in the box that rests on it failed | false |
//! | none of these, and all such actions that ended, one at least, succeeded | true |
//!
//! The last of the moves counts. Rules of the operator promote without looking, and probes plant: neither
//! settles anything. A tool of somebody else says itself whether it succeeded, so its outcomes count for
//! nothing. So no text makes a sample, whatever it says: what is read is `external_document`, which moves no
//! belief on this axis.

mod latest;
mod outcomes;

pub use latest::{CALIBRATION_PURPOSE, CALIBRATION_SESSIONS, Computed, Latest, Measured, latest};

use std::collections::HashMap;

use lodestar_core::calibration::{Came, Sample};
use lodestar_core::canonical;
use lodestar_core::chain::transition::{AuthorityKind, Axis};
use lodestar_core::chain::{BeliefAuthority, Confidence, Truth};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::{BeliefId, ClaimId};
use lodestar_core::name::CalibrationClass;
use lodestar_firewall::event::{Cause, Change};
use lodestar_firewall::fold::FoldError;
use lodestar_firewall::row::StoredBelief;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{SqliteStore, Store as _};
use lodestar_log::{ProjectLog, Trust};

use crate::follow::{
    Followed, PAGE, Refused, ReplayError, StoreProgress, lead, transact, verified,
};
use outcomes::Outcomes;

/// The samples of a project, and what they were taken from.
#[derive(Debug, Default)]
pub struct Collected {
    /// One for each belief that was settled.
    pub samples: Vec<Sample>,
    /// How many sessions counted.
    pub sessions: u64,
    /// Those that did not.
    pub refused: Vec<Refused>,
}

/// Takes the samples of a project out of its logs, which are verified first.
pub fn samples(
    keys: &Keyring,
    log: &ProjectLog,
    trust: &Trust,
    progress: &mut dyn FnMut(StoreProgress<'_>),
) -> Result<Collected, ReplayError> {
    if !log.ledger_path().exists() {
        return Ok(Collected::default());
    }
    let (counted, refused) = verified(log, trust, progress)?;
    let scratch = tempfile::tempdir()?;
    let mut store = SqliteStore::open(&scratch.path().join("calibration.db"))?;
    let mut followed = Followed::default();
    transact(&mut store, |tx| {
        lead(tx, keys, &counted, &mut followed, progress)
    })?;
    let mut outcomes = Outcomes::default();
    for session in &counted {
        outcomes.follow(session.dir())?;
    }
    let mut said = Said::default();
    let mut beliefs = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.scan(after.as_deref(), PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for row in page {
            let belief = row.open().map_err(FoldError::from)?;
            said.note(&belief);
            let moves = match belief.revision {
                0 => None,
                _ => settling(&store.history(&belief.record.id)?),
            };
            let outcome = outcomes.of(belief.record.id);
            if (moves.is_some() || outcome.is_some())
                && belief.record.authority != BeliefAuthority::Synthetic
            {
                beliefs.push(Settled::new(&belief, moves, outcome));
            }
        }
    }
    let samples = beliefs.into_iter();
    Ok(Collected {
        samples: samples.filter_map(|belief| belief.sample(&said)).collect(),
        sessions: counted.len() as u64,
        refused,
    })
}

/// What each claim says, for those that took the place of others.
#[derive(Default)]
struct Said {
    claims: HashMap<ClaimId, Digest>,
    beliefs: HashMap<BeliefId, ClaimId>,
}

impl Said {
    fn note(&mut self, belief: &StoredBelief) {
        let claim = &belief.claim;
        self.claims.insert(claim.id, object(belief));
        self.beliefs.insert(belief.record.id, claim.id);
    }

    fn by(&self, by: &By) -> Option<Digest> {
        let claim = match by {
            By::Claim(claim) => claim,
            By::Belief(belief) => self.beliefs.get(belief)?,
        };
        self.claims.get(claim).copied()
    }
}

fn object(belief: &StoredBelief) -> Digest {
    let object = canonical::to_vec(&belief.claim.predicate.object);
    sha256(&object.expect("INVARIANT: it was read from canonical JSON"))
}

/// What took the place of a belief.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Claim(ClaimId),
    Belief(BeliefId),
}

/// What a move settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settling {
    Came(Came),
    /// It depends on what took its place.
    Superseded(By),
}

/// The last move that settles something.
fn settling(history: &[lodestar_firewall::store::HistoryRow]) -> Option<Settling> {
    let mut changes: Vec<&Change> = history.iter().map(|row| &row.change).collect();
    changes.sort_by_key(|change| change.revision);
    changes.into_iter().rev().find_map(settled_by)
}

fn settled_by(change: &Change) -> Option<Settling> {
    use AuthorityKind::{AutoObservation, Policy, Probe, Reflection, Sentinel, System, User};
    let mut steps = change.moves.iter();
    let to = steps.find(|step| step.axis() == Axis::Truth)?.to();
    let is = |truth: Truth| to == truth.into();
    let by = match &change.cause {
        Cause::Claim(claim) => Some(By::Claim(*claim)),
        Cause::Belief(belief) => Some(By::Belief(*belief)),
        Cause::Statement(_) | Cause::Rule(_) | Cause::Finding(_) | Cause::Clock => None,
    };
    match change.authority {
        AutoObservation | User if is(Truth::Supported) => Some(Settling::Came(Came::True)),
        User if is(Truth::Contradicted) => Some(Settling::Came(Came::False)),
        Sentinel | Reflection if is(Truth::Contradicted) => by.map(|_| Settling::Came(Came::False)),
        AutoObservation | User | Reflection if is(Truth::Superseded) => {
            by.map(Settling::Superseded)
        }
        AutoObservation | User | Reflection | Sentinel | Policy | Probe | System => None,
    }
}

/// A belief of which something is known.
struct Settled {
    class: CalibrationClass,
    confidence: Confidence,
    object: Digest,
    moves: Option<Settling>,
    outcome: Option<Came>,
}

impl Settled {
    fn new(belief: &StoredBelief, moves: Option<Settling>, outcome: Option<Came>) -> Self {
        Self {
            class: belief.record.calibration_class.clone(),
            confidence: belief.record.confidence,
            object: object(belief),
            moves,
            outcome,
        }
    }

    /// What took its place may have been redacted: then nobody can tell.
    fn sample(self, said: &Said) -> Option<Sample> {
        let came = match self.moves {
            None => self.outcome?,
            Some(Settling::Came(came)) => came,
            Some(Settling::Superseded(by)) => match said.by(&by)? == self.object {
                true => Came::True,
                false => Came::False,
            },
        };
        Some(Sample {
            class: self.class,
            confidence: self.confidence,
            came,
        })
    }
}
