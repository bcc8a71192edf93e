//! What all stores mean by the same question, where a database would answer in its own way.

use std::collections::BTreeSet;

use lodestar_core::digest::{encode_hex, sha256};
use lodestar_core::id::BeliefId;

use super::{ContextQuery, Disputes, ListQuery, StoreError};
use crate::event::Contradiction;
use crate::row::StoredRow;
use crate::text;

/// Stands before a scope among the words of a row. It is no letter, so no text has such a word.
const SCOPE_MARK: char = '§';

/// Whether the default context may have the row, by everything but words.
pub(crate) fn suits(row: &StoredRow, query: &ContextQuery) -> bool {
    row.is_eligible()
        && row.observed_at >= query.not_before.unix_micros()
        && row.sensitivity <= query.ceiling as i64
        && query.scopes.contains(&row.scope)
}

/// Whether nothing at all can be found: no place to look in, no row wanted, or a word that no text
/// has, since [`text::words`] never gives it.
pub(super) fn is_void(query: &ContextQuery) -> bool {
    let is_word = |word: &String| {
        let fits = |c: char| c.is_alphanumeric() && !c.is_ascii_uppercase();
        !word.is_empty() && word.len() <= text::MAX_WORD && word.chars().all(fits)
    };
    query.limit == 0 || query.scopes.is_empty() || !query.words.iter().all(is_word)
}

/// Whether the list has the row.
pub(super) fn is_listed(row: &StoredRow, query: &ListQuery) -> bool {
    let is = |wanted: Option<&'static str>, found: &str| wanted.is_none_or(|word| word == found);
    query
        .scopes
        .as_ref()
        .is_none_or(|scopes| scopes.contains(&row.scope))
        && is(query.truth.map(|word| word.as_str()), &row.truth)
        && is(query.retrieval.map(|word| word.as_str()), &row.retrieval)
        && is(query.security.map(|word| word.as_str()), &row.security)
        && is(query.freshness.map(|word| word.as_str()), &row.freshness)
        && query
            .session
            .as_ref()
            .is_none_or(|session| *session == row.session)
        && contains(row, query)
}

/// Databases differ in what they take for the same letter in another case, so none is asked.
fn contains(row: &StoredRow, query: &ListQuery) -> bool {
    query.containing.as_ref().is_none_or(|wanted| {
        let wanted = wanted.to_lowercase();
        row.subject.to_lowercase().contains(&wanted)
            || row.statement.to_lowercase().contains(&wanted)
    })
}

/// A scope as one more word of its rows, of the same short length for all.
pub(super) fn scope_word(scope: &str) -> String {
    const BYTES: usize = 8;
    let mut hex = Vec::with_capacity(2 * BYTES);
    encode_hex(&sha256(scope.as_bytes()).as_bytes()[..BYTES], &mut hex);
    let hex = String::from_utf8(hex).expect("INVARIANT: hex is ASCII");
    format!("{SCOPE_MARK}{hex}")
}

/// A number of rows, as databases take it.
pub(super) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// A change's place among the changes of its belief, as databases take it.
pub(super) fn revision(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// What a row is found by; only eligible rows are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Indexed {
    scope: String,
    words: BTreeSet<String>,
}

impl Indexed {
    pub(super) fn of(row: &StoredRow) -> Option<Self> {
        row.is_eligible().then(|| Self {
            scope: scope_word(&row.scope),
            words: text::indexed_words(row),
        })
    }

    /// All of it, with blanks between.
    pub(super) fn joined(&self) -> String {
        let mut all = self.scope.clone();
        for word in &self.words {
            all.push(' ');
            all.push_str(word);
        }
        all
    }

    /// The words alone, with blanks between.
    pub(super) fn words(&self) -> String {
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        words.join(" ")
    }
}

/// What speaks against a belief, out of one more than the limit where there are so many.
pub(super) fn disputes(
    belief: BeliefId,
    against: &[String],
    limit: usize,
) -> Result<Option<Disputes>, StoreError> {
    if against.is_empty() {
        return Ok(None);
    }
    let shown = against.iter().take(limit).map(|id| belief_id(id));
    Ok(Some(Disputes {
        belief,
        against: shown.collect::<Result<_, _>>()?,
        more: against.len() > limit,
    }))
}

/// A contradiction of its columns.
pub(super) fn contradiction(
    (belief, against): (String, String),
) -> Result<Contradiction, StoreError> {
    Ok(Contradiction {
        belief: belief_id(&belief)?,
        against: belief_id(&against)?,
    })
}

fn belief_id(text: &str) -> Result<BeliefId, StoreError> {
    text.parse().map_err(StoreError::database)
}
