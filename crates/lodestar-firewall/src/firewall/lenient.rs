//! What a harness sees of a context whose policy it takes a rule out of.

use lodestar_core::chain::{Freshness, Retrieval, Rigour, Security, Truth};
use lodestar_core::defence::Defence;

use crate::row::StoredRow;
use crate::store::{ContextQuery, ListQuery, Store, StoreError};
use crate::text;

const RULES: [Defence; 3] = [
    Defence::ContextTruth,
    Defence::ContextSecurity,
    Defence::ContextSensitivity,
];

/// More rows than a scenario has.
const ALL: usize = 1 << 16;

/// The rows that the rules which are left let through; `None` where none is taken out, and the store's own
/// index answers.
pub(super) fn rows(
    store: &mut dyn Store,
    query: &ContextQuery,
    rigour: Rigour,
) -> Result<Option<Vec<StoredRow>>, StoreError> {
    if RULES.iter().all(|rule| rigour.keeps(*rule)) {
        return Ok(None);
    }
    let mut rows = store.list(&ListQuery {
        scopes: Some(query.scopes.clone()),
        retrieval: Some(Retrieval::Normal),
        limit: ALL,
        ..ListQuery::default()
    })?;
    rows.retain(|row| {
        let kept = |rule, is_so: bool| is_so || !rigour.keeps(rule);
        let words = text::indexed_words(row);
        kept(
            Defence::ContextTruth,
            row.truth == Truth::Supported.as_str(),
        ) && kept(
            Defence::ContextSecurity,
            row.security == Security::Clean.as_str(),
        ) && kept(
            Defence::ContextSensitivity,
            row.sensitivity <= query.ceiling as i64,
        ) && row.freshness != Freshness::Expired.as_str()
            && row.observed_at >= query.not_before.unix_micros()
            && query.words.iter().all(|word| words.contains(word))
    });
    rows.truncate(query.limit);
    Ok(Some(rows))
}
