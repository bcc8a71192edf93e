//! The columns of a row by name, in one order, for both databases, and what both read
//! in the same way.

use lodestar_core::digest::Digest;

use super::{AppliedLog, HistoryRow, StoreError};
use crate::event::{LogName, LogPosition};

/// All of [`crate::row::StoredRow`], in its order.
pub(super) const COLUMNS: [&str; 35] = [
    "id",
    "key",
    "scope",
    "subject",
    "relation",
    "object",
    "statement",
    "claim",
    "evidence",
    "authority",
    "confidence",
    "class",
    "sensitivity",
    "quality",
    "truth",
    "retrieval",
    "security",
    "freshness",
    "observed_at",
    "adopted_at",
    "due_at",
    "server",
    "tool",
    "revision",
    "project",
    "session",
    "seq",
    "leaf",
    "changed_project",
    "changed_session",
    "changed_seq",
    "changed_leaf",
    "signer",
    "signature",
    "seal",
];

/// The condition of the default context, as [`crate::row::StoredRow::is_eligible`] has it. Partial
/// indexes are used where query and index say the same words.
pub(super) const ELIGIBLE: &str = "truth = 'supported' AND retrieval = 'normal' AND security = 'clean' AND freshness <> 'expired'";

/// The columns, with something before each name and a comma between.
pub(super) fn list(before: &str) -> String {
    COLUMNS.map(|column| format!("{before}{column}")).join(", ")
}

/// A hash as it was stored. One of another length was edited, and no event hashes to zero.
pub(super) fn hash(bytes: &[u8]) -> [u8; 32] {
    bytes.try_into().unwrap_or_default()
}

/// The history of one change, of its columns.
pub(super) fn history(
    change: &str,
    project: &str,
    session: &str,
    seq: i64,
    leaf: [u8; 32],
) -> Result<HistoryRow, StoreError> {
    Ok(HistoryRow {
        change: serde_json::from_str(change).map_err(StoreError::database)?,
        at: LogPosition {
            log: log_name(project, session)?,
            seq: seq.cast_unsigned(),
            leaf: Digest::from_bytes(leaf),
        },
    })
}

/// How far a log was applied, of its columns.
pub(super) fn applied(
    signer: String,
    project: &str,
    session: &str,
    next: i64,
) -> Result<AppliedLog, StoreError> {
    Ok(AppliedLog {
        signer,
        log: log_name(project, session)?,
        next: next.cast_unsigned(),
    })
}

fn log_name(project: &str, session: &str) -> Result<LogName, StoreError> {
    Ok(LogName {
        project: project.parse().map_err(StoreError::database)?,
        session: session.parse().map_err(StoreError::database)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};

    #[test]
    fn the_condition_of_the_default_context_is_that_of_rows() {
        let words = [
            Truth::Supported.as_str(),
            Retrieval::Normal.as_str(),
            Security::Clean.as_str(),
            Freshness::Expired.as_str(),
        ];
        let [truth, retrieval, security, expired] = words;
        let said = format!(
            "truth = '{truth}' AND retrieval = '{retrieval}' AND security = '{security}' \
             AND freshness <> '{expired}'"
        );
        assert_eq!(ELIGIBLE, said);
    }
}
