//! Where it stands which confirmations were spent: whoever is first has it, and nobody after.

use std::collections::BTreeMap;
use std::error::Error;

use super::ConfirmationId;
use crate::digest::Digest;
use crate::id::ActionId;
use crate::name::{ActorId, SessionId};
use crate::time::Timestamp;

/// A confirmation that is to be spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumption {
    /// Which.
    pub id: ConfirmationId,
    /// Its envelope, by digest.
    pub statement: Digest,
    /// Whose word it was.
    pub operator: ActorId,
    /// The session that spends it.
    pub session: SessionId,
    /// The action it is spent on.
    pub action: ActionId,
    /// When.
    pub at: Timestamp,
}

/// What came of spending a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// It was unspent, and is spent now.
    Now,
    /// Somebody had spent it.
    Before,
}

/// The ledger cannot say.
#[derive(Debug, thiserror::Error)]
#[error("the ledger of confirmations failed: {0}")]
pub struct LedgerError(#[source] pub Box<dyn Error + Send + Sync>);

/// Which confirmations were spent, for all processes that share it.
pub trait ConsumeLedger: Send {
    /// Whether this one was spent.
    fn is_spent(&mut self, id: ConfirmationId) -> Result<bool, LedgerError>;

    /// Spends it, unless it was spent before. One of all that ask gets [`Spent::Now`], and by then it
    /// is on disk. After an error it may be spent or not; nobody has been told that it is theirs.
    fn consume(&mut self, consumption: &Consumption) -> Result<Spent, LedgerError>;
}

/// A ledger that lives as long as this value.
#[derive(Debug, Clone, Default)]
pub struct MemoryLedger {
    spent: BTreeMap<ConfirmationId, Consumption>,
}

impl ConsumeLedger for MemoryLedger {
    fn is_spent(&mut self, id: ConfirmationId) -> Result<bool, LedgerError> {
        Ok(self.spent.contains_key(&id))
    }

    fn consume(&mut self, consumption: &Consumption) -> Result<Spent, LedgerError> {
        if self.spent.contains_key(&consumption.id) {
            return Ok(Spent::Before);
        }
        self.spent.insert(consumption.id, consumption.clone());
        Ok(Spent::Now)
    }
}
