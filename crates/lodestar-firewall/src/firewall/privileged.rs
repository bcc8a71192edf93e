//! The privileged path: everything, for audits; using it is itself on record.

use lodestar_core::chain::{BeliefAuthority, BeliefRecord, Retrieval, Truth};
use serde_json::Value;

use super::{Firewall, FirewallError, enact, transact};
use crate::event::{FirewallEvent, LogPosition, ReadPrivileged, Recorder};
use crate::extract::inert::{MAX_STATEMENT, bounded};
use crate::row::keys::Standing;
use crate::row::{BadRow, StoredBelief};
use crate::store::ListQuery;

/// One row of an audit.
#[derive(Debug, Clone)]
pub struct AuditRow {
    /// The id, as it stands in the store.
    pub id: String,
    /// What its row is worth.
    pub standing: Standing,
    /// What it says; an edited row may say nothing that can be read.
    pub belief: Result<StoredBelief, BadRow>,
}

impl AuditRow {
    /// The belief as it counts here: what another installation wrote that is not trusted, and what
    /// was edited, counts as imported, whatever it says of itself.
    pub fn counts_as(&self) -> Option<BeliefRecord> {
        let mut record = self.belief.as_ref().ok()?.record.clone();
        if self.standing != Standing::Genuine {
            record.authority = BeliefAuthority::Imported;
            record.axes.truth = Truth::Unverified;
            record.axes.retrieval = Retrieval::Restricted;
        }
        Some(record)
    }
}

/// What an audit found, and where it is on record.
#[derive(Debug, Clone)]
pub struct Audit {
    /// The rows.
    pub rows: Vec<AuditRow>,
    /// The event that says who asked for what.
    pub at: LogPosition,
}

impl Firewall {
    /// Reads past the context policy. The reading is recorded before anything is handed out.
    pub fn audit(
        &mut self,
        query: &ListQuery,
        reason: &str,
        recorder: &mut dyn Recorder,
    ) -> Result<Audit, FirewallError> {
        let rows = self.store.list(query)?;
        let event = FirewallEvent::ReadPrivileged(ReadPrivileged {
            reason: bounded(reason, MAX_STATEMENT),
            query: serde_json::to_value(query).unwrap_or(Value::Null),
            found: rows.len() as u64,
        });
        let Self { store, keys, .. } = self;
        let at = transact(store, |tx| enact(tx, keys, recorder, &event))?;
        let rows = rows
            .into_iter()
            .map(|row| AuditRow {
                standing: keys.standing(&row),
                belief: row.open(),
                id: row.id,
            })
            .collect();
        Ok(Audit { rows, at })
    }
}
