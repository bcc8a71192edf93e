//! What belongs to one belief, put together from the log.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::canonical;
use lodestar_core::chain::belief::gate::{self, Weighing};
use lodestar_core::chain::{
    BeliefRecord, Claim, ContentBlock, EvidenceItem, EvidenceQuality, EvidenceSet, EvidenceSource,
    ExtractionMethod, Observation,
};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::{BeliefId, ClaimId, DecisionId, ObservationId};
use lodestar_core::statement::{Promotion, Verified};
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::{Change, PromotionGround};
use lodestar_firewall::row::keys::Standing;
use lodestar_log::verify::verify_session;
use serde::Serialize;
use serde_json::Value;

use super::trace::{At, Cited, Spot, Trace};
use crate::beliefs::Beliefs;
use crate::commands::belief::one::One;
use crate::commands::belief::show;
use crate::commands::log::summary::summary;
use crate::failure::Failure;
use crate::inert;

/// Observations that are shown; a summary may go back to hundreds.
const MOST_OBSERVATIONS: usize = 32;
/// Blocks of an observation that are shown.
const MOST_BLOCKS: usize = 4;
/// Claims behind a derived one that are shown.
const MOST_CLAIMS: usize = 64;
const EXCERPT_COLUMNS: usize = 100;

/// The chain behind a belief.
#[derive(Debug, Serialize)]
pub(super) struct Why {
    /// The belief, as the store has it.
    pub(super) stored: Value,
    pub(super) log: LogCheck,
    pub(super) observations: Vec<Observed>,
    /// Observations that the lineage names beyond those.
    pub(super) more_observations: usize,
    pub(super) claim: Claimed,
    pub(super) evidence: Vec<Evidence>,
    pub(super) weighed: Vec<Weighed>,
    /// Where the belief stood when it was adopted.
    pub(super) adopted: Option<BeliefRecord>,
    pub(super) changes: Vec<Changed>,
    pub(super) decisions: Vec<Decided>,
    /// The claims it was derived from, and theirs.
    pub(super) derived_from: Vec<Claimed>,
    pub(super) more_claims: usize,
}

/// Whether the log has what the store's row says.
#[derive(Debug, Serialize)]
pub(super) struct LogCheck {
    /// The event that the row names.
    pub(super) adopted: At,
    pub(super) leaf_in_row: Digest,
    /// `None` if there is no such event in a session that the ledger knows.
    pub(super) leaf_in_log: Option<Digest>,
    /// Whether that event adopted this belief, with this claim.
    pub(super) adopts_it: bool,
    /// Whether the row stands where the adoption and all later changes in the log lead.
    pub(super) stands_as_logged: bool,
    /// What the row is worth.
    pub(super) standing: Standing,
    pub(super) sessions: Vec<SessionCheck>,
}

impl LogCheck {
    pub(super) fn agrees(&self) -> bool {
        self.leaf_in_log == Some(self.leaf_in_row) && self.adopts_it && self.stands_as_logged
    }

    pub(super) fn holds(&self) -> bool {
        self.agrees()
            && self.standing != Standing::Edited
            && self.sessions.iter().all(|s| s.problem.is_none())
    }
}

#[derive(Debug, Serialize)]
pub(super) struct SessionCheck {
    pub(super) session: String,
    pub(super) problem: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Observed {
    pub(super) id: ObservationId,
    pub(super) quality: EvidenceQuality,
    /// `None` if no session that the ledger knows recorded it.
    pub(super) at: Option<At>,
    pub(super) time: Option<Timestamp>,
    pub(super) tool: Option<String>,
    pub(super) actor: Option<String>,
    pub(super) redacted_by: Option<u64>,
    pub(super) blocks: Vec<Block>,
    pub(super) more_blocks: usize,
}

/// One piece of content: what it is, and how it begins.
#[derive(Debug, Serialize)]
pub(super) struct Block {
    pub(super) kind: &'static str,
    pub(super) bytes: u64,
    pub(super) sha256: Digest,
    pub(super) excerpt: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Claimed {
    pub(super) id: ClaimId,
    pub(super) at: Option<At>,
    /// The belief that came of it.
    pub(super) belief: Option<BeliefId>,
    /// How many derivations away.
    pub(super) depth: usize,
    pub(super) claim: Option<Claim>,
}

#[derive(Debug, Serialize)]
pub(super) struct Evidence {
    pub(super) item: EvidenceItem,
    /// The event that added it.
    pub(super) added: Option<At>,
    /// The event that it comes from.
    pub(super) origin: Option<At>,
}

/// Which evidence was weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum When {
    /// What there was at first.
    Adopted,
    /// With what was added since.
    Now,
}

#[derive(Debug, Serialize)]
pub(super) struct Weighed {
    pub(super) when: When,
    pub(super) threshold: f64,
    #[serde(flatten)]
    pub(super) weighing: Weighing,
}

#[derive(Debug, Serialize)]
pub(super) struct Changed {
    pub(super) at: At,
    pub(super) change: Change,
    pub(super) signed: Option<Signed>,
}

/// A person's statement: by whom, and in which words.
#[derive(Debug, Serialize)]
pub(super) struct Signed {
    /// The name that the key is pinned under, or its id.
    pub(super) by: String,
    pub(super) reason: String,
    /// Why the signature does not hold, if so.
    pub(super) problem: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Decided {
    pub(super) at: At,
    pub(super) id: DecisionId,
    pub(super) question: String,
    pub(super) chosen: String,
    pub(super) origin: String,
    /// The event by which a reflection asks to look at it again.
    pub(super) flagged: Option<At>,
}

/// Follows the belief back to what was observed, and on to what rests on it.
pub(super) fn assemble(one: &One, trace: &Trace, beliefs: &Beliefs) -> Result<Why, Failure> {
    let belief = &one.belief;
    let adopted_at = &belief.adopted;
    let adopting = trace.spot(adopted_at.log.session.as_str(), adopted_at.seq);
    let (derived_from, more_claims, mut cited) = derivations(&belief.claim, trace)?;
    let origins = belief.claim.lineage.origins.as_slice();
    let shown = &origins[..origins.len().min(MOST_OBSERVATIONS)];
    cited.extend(adopting);
    cited.extend(
        shown
            .iter()
            .filter_map(|o| trace.observation(o.observation)),
    );
    cited.extend(trace.changes.iter().map(|changed| changed.spot));
    let events = trace.fetch(&cited)?;
    cited.extend(trace.decisions.iter().map(|decided| decided.spot));

    let event = adopting.and_then(|spot| events.get(&spot));
    let adopted = event.and_then(|cited| cited.adopted(belief.claim.id));
    let record = adopted.and_then(|adopted| adopted.beliefs.iter().find(|b| b.id == trace.belief));
    let log = LogCheck {
        adopted: At {
            session: adopted_at.log.session.to_string(),
            seq: adopted_at.seq,
        },
        leaf_in_row: adopted_at.leaf,
        leaf_in_log: event.map(|cited| cited.event.leaf_hash),
        adopts_it: record.is_some()
            && adopted.is_some_and(|adopted| adopted.claims.contains(&belief.claim)),
        stands_as_logged: record.is_some_and(|record| stands_as_logged(record, belief, trace)),
        standing: one.standing,
        sessions: check_sessions(&cited, trace, beliefs)?,
    };
    // Of an import, one record became one claim; only that one is meant.
    let focus = adopted.and_then(|adopted| {
        let imported = belief.claim.extraction_method == ExtractionMethod::Import;
        let place = adopted.claims.iter().position(|c| c.id == belief.claim.id);
        place.filter(|_| imported)
    });
    let first_evidence = adopted.and_then(|adopted| {
        let mut sets = adopted.evidence.iter();
        sets.find(|set| set.claim == belief.claim.id)
    });
    let mut weighed = Vec::new();
    weighed.extend(first_evidence.map(|set| weigh(When::Adopted, set)));
    if first_evidence.is_none_or(|set| set.items != belief.evidence.items) {
        weighed.push(weigh(When::Now, &belief.evidence));
    }
    Ok(Why {
        stored: show::as_json(one),
        log,
        observations: shown
            .iter()
            .map(|origin| observed(origin.observation, origin.quality, focus, trace, &events))
            .collect(),
        more_observations: origins.len() - shown.len(),
        claim: Claimed {
            id: belief.claim.id,
            at: trace.claim(belief.claim.id).map(|spot| trace.at(spot)),
            belief: Some(trace.belief),
            depth: 0,
            claim: Some(belief.claim.clone()),
        },
        evidence: evidence(one, adopting, trace),
        weighed,
        adopted: record.cloned(),
        changes: changes(trace, &events, beliefs),
        decisions: decisions(trace),
        derived_from,
        more_claims,
    })
}

/// Follows the log's changes in the order of their revisions and compares where they lead.
fn stands_as_logged(
    record: &BeliefRecord,
    belief: &lodestar_firewall::row::StoredBelief,
    trace: &Trace,
) -> bool {
    let mut changes: Vec<_> = trace
        .changes
        .iter()
        .map(|changed| &changed.change)
        .collect();
    changes.sort_by_key(|change| change.revision);
    let axes = changes
        .iter()
        .flat_map(|change| &change.moves)
        .fold(record.axes, |axes, step| axes.with(step.to()));
    axes == belief.record.axes && changes.len() as u64 == belief.revision
}

/// The claims behind a derived one, level by level; how many are left out; where they stand.
fn derivations(
    claim: &Claim,
    trace: &Trace,
) -> Result<(Vec<Claimed>, usize, BTreeSet<Spot>), Failure> {
    let mut found = Vec::new();
    let mut cited = BTreeSet::new();
    let mut seen = BTreeSet::from([claim.id]);
    let mut left = 0;
    let mut level: Vec<ClaimId> = claim.lineage.derived_from.clone();
    let mut depth = 1;
    while !level.is_empty() {
        level.retain(|id| seen.insert(*id));
        let room = MOST_CLAIMS - found.len();
        left += level.len().saturating_sub(room);
        level.truncate(room);
        let spots: BTreeSet<Spot> = level.iter().filter_map(|id| trace.claim(*id)).collect();
        let events = trace.fetch(&spots)?;
        cited.extend(spots);
        let mut next = Vec::new();
        for id in level {
            let spot = trace.claim(id);
            let adopted = spot.and_then(|spot| events.get(&spot)?.adopted(id));
            let place = adopted.and_then(|adopted| adopted.claims.iter().position(|c| c.id == id));
            let at_place = adopted.zip(place);
            let source = at_place.map(|(adopted, place)| adopted.claims[place].clone());
            next.extend(source.iter().flat_map(|c| c.lineage.derived_from.clone()));
            found.push(Claimed {
                id,
                at: spot.map(|spot| trace.at(spot)),
                belief: at_place.and_then(|(adopted, place)| Some(adopted.beliefs.get(place)?.id)),
                depth,
                claim: source,
            });
        }
        level = next;
        depth += 1;
    }
    Ok((found, left, cited))
}

fn check_sessions(
    cited: &BTreeSet<Spot>,
    trace: &Trace,
    beliefs: &Beliefs,
) -> Result<Vec<SessionCheck>, Failure> {
    let ledger = beliefs.ledger()?;
    trace
        .sessions_of(cited)
        .into_iter()
        .map(|dir| {
            let facts = ledger.session(dir.session());
            let report = verify_session(dir, facts, &beliefs.trust, &|_| ())
                .map_err(Failure::io(dir.dir()))?;
            Ok(SessionCheck {
                session: dir.session().to_string(),
                problem: report.problems.first().map(ToString::to_string),
            })
        })
        .collect()
}

fn weigh(when: When, set: &EvidenceSet) -> Weighed {
    Weighed {
        when,
        threshold: gate::THRESHOLD,
        weighing: gate::weigh(set),
    }
}

fn observed(
    id: ObservationId,
    quality: EvidenceQuality,
    focus: Option<usize>,
    trace: &Trace,
    events: &BTreeMap<Spot, Cited>,
) -> Observed {
    let spot = trace.observation(id);
    let cited = spot.and_then(|spot| events.get(&spot));
    let payload = cited.and_then(|cited| cited.payload.clone());
    let observation: Option<Observation> = payload
        .clone()
        .and_then(|payload| serde_json::from_value(payload).ok());
    let (blocks, more_blocks) = match (&observation, payload) {
        (Some(observation), _) => {
            let content = &observation.content;
            let shown: Vec<_> = match focus.and_then(|place| content.get(place)) {
                Some(one) => vec![block(one)],
                None => content.iter().take(MOST_BLOCKS).map(block).collect(),
            };
            let more = content.len() - shown.len();
            (shown, more)
        }
        (None, Some(payload)) => (vec![of_another_form(&payload)], 0),
        (None, None) => (Vec::new(), 0),
    };
    Observed {
        id,
        quality,
        at: spot.map(|spot| trace.at(spot)),
        time: cited.map(Cited::time),
        tool: observation.as_ref().map(|o| o.tool.as_str().to_owned()),
        actor: observation.as_ref().map(|o| o.actor.to_string()),
        redacted_by: cited.and_then(Cited::redacted_by),
        blocks,
        more_blocks,
    }
}

fn block(block: &ContentBlock) -> Block {
    let kind = match block {
        ContentBlock::Text { .. } => "text",
        ContentBlock::Image { .. } => "image",
        ContentBlock::Audio { .. } => "audio",
        ContentBlock::Resource { .. } => "resource",
        ContentBlock::ResourceLink { .. } => "resource link",
        ContentBlock::Structured { .. } => "structured",
        ContentBlock::Unknown { .. } => "unknown",
    };
    let text = match block.text() {
        Some(text) => text.to_owned(),
        None => written(&block.to_wire()),
    };
    let said = match block {
        ContentBlock::Structured { value } => value.get("text").and_then(Value::as_str),
        _ => None,
    };
    Block {
        kind,
        bytes: text.len() as u64,
        sha256: sha256(text.as_bytes()),
        excerpt: inert::line(said.unwrap_or(&text), EXCERPT_COLUMNS),
    }
}

fn of_another_form(payload: &Value) -> Block {
    let text = written(payload);
    Block {
        kind: "payload",
        bytes: text.len() as u64,
        sha256: sha256(text.as_bytes()),
        excerpt: summary(payload, EXCERPT_COLUMNS),
    }
}

fn written(value: &Value) -> String {
    let canonical = canonical::to_vec(value).ok();
    let text = canonical.and_then(|bytes| String::from_utf8(bytes).ok());
    text.unwrap_or_else(|| value.to_string())
}

/// Each item with the event that added it and the one it comes from.
fn evidence(one: &One, adopting: Option<Spot>, trace: &Trace) -> Vec<Evidence> {
    let added_by = |item: &EvidenceItem| {
        let later = trace
            .changes
            .iter()
            .find(|changed| changed.change.evidence.contains(item));
        later.map(|changed| changed.spot).or(adopting)
    };
    let items = one.belief.evidence.items.iter();
    items
        .map(|item| {
            let added = added_by(item);
            let origin = match item.source {
                EvidenceSource::Observation(id) => trace.observation(id),
                EvidenceSource::Claim(id) => trace.claim(id),
                // The statement stands in the event that used it.
                EvidenceSource::Statement(_) => added,
            };
            Evidence {
                item: item.clone(),
                added: added.map(|spot| trace.at(spot)),
                origin: origin.map(|spot| trace.at(spot)),
            }
        })
        .collect()
}

fn changes(trace: &Trace, events: &BTreeMap<Spot, Cited>, beliefs: &Beliefs) -> Vec<Changed> {
    let changes = trace.changes.iter();
    changes
        .map(|changed| {
            let time = events.get(&changed.spot).map(Cited::time);
            let signed = match (&changed.ground, time) {
                (Some(PromotionGround::Statement(envelope)), Some(time)) => {
                    // As it was judged then: when it was recorded, not now.
                    let verified: Result<Verified<Promotion>, _> =
                        envelope.verify(&beliefs.trust.operators, time);
                    Some(match verified {
                        Ok(verified) => Signed {
                            by: name_of(beliefs, verified.issued().key_id.as_str()),
                            reason: verified.subject().reason.clone(),
                            problem: None,
                        },
                        Err(error) => Signed {
                            by: envelope
                                .signatures()
                                .first()
                                .map_or_else(String::new, |s| name_of(beliefs, s.key_id.as_str())),
                            reason: String::new(),
                            problem: Some(error.to_string()),
                        },
                    })
                }
                _ => None,
            };
            Changed {
                at: trace.at(changed.spot),
                change: changed.change.clone(),
                signed,
            }
        })
        .collect()
}

fn name_of(beliefs: &Beliefs, key_id: &str) -> String {
    beliefs.operators.name_of(key_id).to_owned()
}

fn decisions(trace: &Trace) -> Vec<Decided> {
    let decisions = trace.decisions.iter();
    decisions
        .map(|decided| Decided {
            at: trace.at(decided.spot),
            id: decided.decision.id,
            question: decided.decision.question.clone(),
            chosen: decided.decision.choice.chosen().to_owned(),
            origin: decided.decision.origin.to_string(),
            flagged: trace.flag(decided.decision.id).map(|spot| trace.at(spot)),
        })
        .collect()
}
