//! Retrieval into the planner's context: what direct evidence carries, and nothing else.

use std::time::Duration;

use lodestar_core::chain::{Confidence, Freshness, Predicate};
use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::id::BeliefId;
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::intake::said;
use super::{Firewall, FirewallError, lenient};
use crate::row::keys::Standing;
use crate::row::{BadRow, EXPIRED_AFTER, StoredRow};
use crate::store::query::suits;
use crate::store::{ContextQuery, Disputes};
use crate::text::{self, MAX_QUERY_WORDS};

/// Most beliefs of one context: more than a planner reads.
pub const MAX_CONTEXT: usize = 1000;

/// Most rumours that are named beside a belief that they speak against.
const MAX_DISPUTES: usize = 3;

/// How often a store is asked for more where rows that do not count stand in the way; each time for
/// four times as many.
const MAX_LOOKS: usize = 4;

/// What may go into a planner's context: supported, normal and clean, for everyone and always. Age
/// and sensitivity can be chosen, the rest cannot: what lies beyond is for audits, and audits are
/// logged.
///
/// ```compile_fail,E0599
/// use lodestar_core::chain::Truth;
/// use lodestar_firewall::ContextPolicy;
///
/// let wide = ContextPolicy::default().with_truth(Truth::Unverified);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextPolicy {
    max_age: Duration,
    ceiling: Sensitivity,
}

impl Default for ContextPolicy {
    /// Not older than 30 days, and at most internal.
    fn default() -> Self {
        Self {
            max_age: EXPIRED_AFTER,
            ceiling: Sensitivity::Internal,
        }
    }
}

impl ContextPolicy {
    /// Nothing older than this.
    pub fn not_older_than(self, max_age: Duration) -> Self {
        Self { max_age, ..self }
    }

    /// Nothing more sensitive than this.
    pub fn up_to(self, ceiling: Sensitivity) -> Self {
        Self { ceiling, ..self }
    }
}

/// One belief for a planner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextBelief {
    /// Its id: what a decision cites.
    pub id: BeliefId,
    /// What it says.
    pub statement: String,
    /// What it says, for comparison.
    pub predicate: Predicate,
    /// Where it holds.
    pub scope: Scope,
    /// The assigned strength.
    pub confidence: Confidence,
    /// When it was observed.
    pub observed_at: Timestamp,
    /// How old it is.
    pub freshness: Freshness,
    /// The session that adopted it.
    pub session: String,
    /// The event that adopted it.
    pub seq: u64,
    /// The leaf hash of that event.
    pub leaf: Digest,
}

/// What speaks against a belief of the context: by id only, for none of its words belong here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dispute {
    /// The belief.
    pub belief: BeliefId,
    /// The newest that speak against it.
    pub against: Vec<BeliefId>,
    /// Whether there are more.
    pub more: bool,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Which; none if what stands in its place is no id. Nothing else of such a row is told here.
    pub id: Option<BeliefId>,
    /// Why: edited, or of an installation that is not trusted here.
    pub standing: Standing,
}

/// What a planner gets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Context {
    /// What is believed.
    pub beliefs: Vec<ContextBelief>,
    /// What something speaks against, for the reader to look at.
    pub contradictions: Vec<Dispute>,
    /// What is believed and not fresh any more.
    pub uncertainties: Vec<BeliefId>,
    /// Rows that were left out because they are not genuine.
    pub left_out: Vec<Left>,
}

impl Firewall {
    /// What is believed at a place, newest first: what holds there or around it, and has all the
    /// words of `text`.
    pub fn context(
        &mut self,
        policy: &ContextPolicy,
        scope: &Scope,
        text: Option<&str>,
        limit: usize,
    ) -> Result<Context, FirewallError> {
        let now = self.now();
        let mut query = query(policy, scope, text, limit, now);
        let wanted = query.limit;
        let mut context = self.genuine_rows(&query, now)?;
        // Rows that do not count must not crowd out those that do.
        for _ in 0..MAX_LOOKS {
            let found = context.beliefs.len() + context.left_out.len();
            if context.left_out.is_empty() || context.beliefs.len() >= wanted || found < query.limit
            {
                break;
            }
            query.limit *= 4;
            context = self.genuine_rows(&query, now)?;
        }
        context.beliefs.truncate(wanted);
        let ids: Vec<_> = context.beliefs.iter().map(|belief| belief.id).collect();
        let disputes = self.store.disputes(&ids, MAX_DISPUTES)?;
        // For a harness that takes `ContradictionChannel` out: what speaks against something stands beside it.
        if !self.rigour().keeps(Defence::ContradictionChannel) {
            for against in disputes.iter().flat_map(|dispute| &dispute.against) {
                if let Some(row) = self.store.row(against)? {
                    context.beliefs.push(shown(&row, now)?);
                }
            }
        }
        context.contradictions = disputes.into_iter().map(Dispute::from).collect();
        let old = |belief: &&ContextBelief| belief.freshness != Freshness::Fresh;
        context.uncertainties = context.beliefs.iter().filter(old).map(|b| b.id).collect();
        Ok(context)
    }

    /// The rows that the store finds, sorted by what they are worth.
    fn genuine_rows(
        &mut self,
        query: &ContextQuery,
        now: Timestamp,
    ) -> Result<Context, FirewallError> {
        let lenient = lenient::rows(&mut *self.store, query, self.keys.rigour())?;
        let is_lenient = lenient.is_some();
        let rows = match lenient {
            Some(rows) => rows,
            None => self.store.context(query)?,
        };
        let mut context = Context {
            beliefs: Vec::with_capacity(rows.len()),
            contradictions: Vec::new(),
            uncertainties: Vec::new(),
            left_out: Vec::new(),
        };
        for row in &rows {
            match self.keys.standing(row) {
                // The columns are proven, so they can be asked again: an index may lie.
                Standing::Genuine if is_lenient || suits(row, query) => {
                    context.beliefs.push(shown(row, now)?)
                }
                Standing::Genuine => {}
                standing => context.left_out.push(Left {
                    id: row.belief_id().ok(),
                    standing,
                }),
            }
        }
        Ok(context)
    }
}

impl From<Disputes> for Dispute {
    fn from(disputes: Disputes) -> Self {
        Self {
            belief: disputes.belief,
            against: disputes.against,
            more: disputes.more,
        }
    }
}

/// What the store is asked.
pub(crate) fn query(
    policy: &ContextPolicy,
    scope: &Scope,
    text: Option<&str>,
    limit: usize,
    now: Timestamp,
) -> ContextQuery {
    let age = i64::try_from(policy.max_age.as_micros()).unwrap_or(i64::MAX);
    let not_before = now.unix_micros().saturating_sub(age).max(0);
    ContextQuery {
        scopes: around(scope),
        words: text
            .map(|text| {
                text::words(text)
                    .into_iter()
                    .take(MAX_QUERY_WORDS)
                    .collect()
            })
            .unwrap_or_default(),
        not_before: Timestamp::from_unix_micros(not_before).unwrap_or(Timestamp::MIN),
        ceiling: policy.ceiling,
        limit: limit.min(MAX_CONTEXT),
    }
}

/// All scopes that contain this one: it names at most five levels, so at most 32.
pub fn around(scope: &Scope) -> Vec<String> {
    let named: Vec<_> = scope.named().collect();
    (0..1_usize << named.len())
        .filter_map(|chosen| {
            let levels = named.iter().enumerate();
            levels
                .filter(|(place, _)| chosen & (1 << place) != 0)
                .try_fold(Scope::global(), |outer, (_, &(level, name))| {
                    outer.with(level, name.clone())
                })
                .ok()
        })
        .map(|outer| outer.to_string())
        .collect()
}

fn shown(row: &StoredRow, now: Timestamp) -> Result<ContextBelief, BadRow> {
    let object: Value = row.read_object()?;
    let predicate = Predicate {
        subject: row.subject.clone(),
        relation: row.relation.clone(),
        object,
    };
    // The clock may be ahead of the last session that let beliefs grow old.
    let freshness = match row.axes()?.freshness {
        Freshness::Fresh if row.due_at.is_some_and(|due| due <= now.unix_micros()) => {
            Freshness::Stale
        }
        recorded => recorded,
    };
    // What was promoted is its predicate; the words around it are still somebody's.
    let statement = if row.is_direct() {
        row.statement.clone()
    } else {
        said(&predicate)
    };
    Ok(ContextBelief {
        id: row.belief_id()?,
        statement,
        predicate,
        scope: row.read_scope()?,
        confidence: row.read_confidence()?,
        observed_at: row.read_observed_at()?,
        freshness,
        session: row.session.clone(),
        seq: u64::try_from(row.seq).unwrap_or_default(),
        leaf: Digest::from_bytes(row.leaf),
    })
}
