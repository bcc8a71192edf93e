//! What becomes of evidence when an action is held.

use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::key::PublicKey;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::{ConsumeLedger, Consumption, LedgerError, Spent};
use lodestar_core::time::Timestamp;

use super::record::Sent;
use super::weigh::Before;
use super::{
    Confirmations, Consumed, Evidence, HeldAct, Matching, Mode, Operation, Refused, Unmatched,
    WouldMatch,
};

/// A confirmation that matched a held act and was spent on it. Only [`settle`] makes one, and
/// [`Consumed::again`] out of a log.
#[derive(Debug)]
pub struct Confirmed {
    matching: Matching,
}

impl Confirmed {
    pub(super) fn spent(matching: Matching) -> Self {
        Self { matching }
    }

    /// Which confirmation.
    pub fn id(&self) -> ConfirmationId {
        self.matching.id
    }

    /// Whose word it is.
    pub fn operator(&self) -> &ActorId {
        &self.matching.operator
    }

    /// The statement, by digest.
    pub fn statement(&self) -> Digest {
        self.matching.statement
    }

    /// The key that signed: the operator's own, or a host's.
    pub fn key(&self) -> &PublicKey {
        &self.matching.key
    }

    /// The act that is held.
    pub fn fingerprint(&self) -> Fingerprint {
        self.matching.fingerprint
    }

    /// From when on it counts no more: it is out of date, or its key revoked.
    pub fn until(&self) -> Timestamp {
        self.matching.until
    }

    /// The session that holds it.
    pub fn session(&self) -> &SessionId {
        &self.matching.session
    }
}

/// What became of evidence.
#[derive(Debug)]
pub enum Settled {
    /// There was none; there is nothing to record.
    Missing,
    /// It counts for nothing. To be recorded; a later one may still match.
    Refused(Box<Refused>),
    /// It would have counted. To be recorded; nothing was spent.
    WouldMatch(Box<WouldMatch>),
    /// It is spent. To be recorded before it is counted.
    Confirmed(Box<Confirmed>, Box<Consumed>),
}

/// Lays what a channel brought beside the act that is held, and spends it if it matches and the mode
/// says so. If the ledger cannot say, nothing is granted.
pub fn settle(
    sent: Option<&[u8]>,
    act: &HeldAct,
    confirmations: &Confirmations,
    ledger: &mut dyn ConsumeLedger,
    now: Timestamp,
) -> Result<Settled, LedgerError> {
    let Some(sent) = sent else {
        return Ok(Settled::Missing);
    };
    let refused = |reason| {
        Settled::Refused(Box::new(Refused {
            sent: Sent::of(sent),
            action: act.action,
            reason,
            heard_at: now,
        }))
    };
    let read = Evidence::read(sent)
        .and_then(|evidence| Ok((evidence.trusted(&confirmations.keys, now)?, evidence)));
    let (trusted, evidence) = match read {
        Ok(read) => read,
        Err(why) => return Ok(refused(Unmatched::Untrusted { why })),
    };
    let before = match ledger.is_spent(trusted.id())? {
        true => Before::Spent,
        false => Before::Unspent,
    };
    let matching = match trusted.weigh(act, before, now) {
        Ok(matching) => matching,
        Err(reason) => return Ok(refused(reason)),
    };
    let (id, operator) = (matching.id, matching.operator.clone());
    if confirmations.mode == Mode::ReportOnly {
        return Ok(Settled::WouldMatch(Box::new(WouldMatch {
            evidence,
            id,
            operator,
            action: act.action,
            mode: Mode::ReportOnly,
            heard_at: now,
        })));
    }
    // Another process may have been faster since the ledger was asked.
    match ledger.consume(&consumption(&matching, now))? {
        Spent::Before => Ok(refused(Unmatched::Consumed)),
        Spent::Now => {
            let consumed = Consumed {
                operation: Operation::ConsumeEnvelope,
                evidence,
                id,
                operator,
                action: act.action,
                heard_at: now,
            };
            Ok(Settled::Confirmed(
                Box::new(Confirmed::spent(matching)),
                Box::new(consumed),
            ))
        }
    }
}

fn consumption(matching: &Matching, at: Timestamp) -> Consumption {
    Consumption {
        id: matching.id,
        statement: matching.statement,
        operator: matching.operator.clone(),
        session: matching.session.clone(),
        action: matching.action,
        at,
    }
}
