//! Beliefs in words: the same line for the same thing in every command.

use lodestar_core::chain::transition::AxisMove;
use lodestar_core::chain::{BeliefRecord, EvidenceItem, EvidenceSource};
use lodestar_firewall::event::{Cause, LogPosition, Source};
use lodestar_firewall::row::StoredBelief;
use lodestar_firewall::row::keys::Standing;
use serde_json::{Value, json};

use crate::inert;

/// `confidence 0.95 · truth=… · retrieval=… · security=… · freshness=… · authority …`
pub(crate) fn axes(record: &BeliefRecord) -> String {
    let axes = record.axes;
    format!(
        "confidence {:.2} · truth={} · retrieval={} · security={} · freshness={} · authority {}",
        record.confidence.get(),
        axes.truth,
        axes.retrieval,
        axes.security,
        axes.freshness,
        record.authority
    )
}

/// `session#7`
pub(crate) fn place(at: &LogPosition) -> String {
    format!("{}#{}", at.log.session, at.seq)
}

/// `truth unverified → supported, retrieval restricted → normal`
pub(crate) fn moves(moves: &[AxisMove]) -> String {
    let each = moves.iter().map(|step| {
        let (from, to) = (step.from().word(), step.to().word());
        format!("{} {from} → {to}", step.axis())
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What caused a change.
pub(crate) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Claim(claim) => format!("because of the direct claim {claim}"),
        Cause::Belief(belief) => format!("because of the direct belief {belief}"),
        Cause::Statement(digest) => format!("by the signed statement {digest}"),
        Cause::Rule(rule) => format!("by the rule `{}`", inert::line(rule.as_str(), 80)),
        Cause::Finding(words) => format!("because: {}", inert::line(words, 200)),
        Cause::Clock => "by the clock".to_owned(),
    }
}

/// What an item of evidence weighs in, and whose it is.
pub(crate) fn evidence(item: &EvidenceItem) -> String {
    format!(
        "{} · {} ({}) · {} · group {}",
        item.relation,
        item.quality,
        item.quality.directness(),
        item.freshness,
        inert::line(item.independence_group.as_str(), 100)
    )
}

/// Where an item of evidence came from.
pub(crate) fn source(source: &EvidenceSource) -> String {
    match source {
        EvidenceSource::Observation(id) => id.to_string(),
        EvidenceSource::Claim(id) => id.to_string(),
        EvidenceSource::Statement(digest) => format!("signed statement {digest}"),
    }
}

/// Whose tool said so.
pub(crate) fn tool(source: &Source) -> String {
    let server = inert::line(source.server.as_str(), 80);
    let tool = inert::line(source.tool.as_str(), 80);
    format!("{tool} of {server}")
}

/// What a row is worth.
pub(crate) fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Genuine => "genuine",
        Standing::Edited => "edited: its signature is not right, so it is in no context",
        Standing::Foreign => {
            "foreign: written by an installation that is not trusted here, so it counts as imported"
        }
    }
}

/// All of it, for machines.
pub(crate) fn json(belief: &StoredBelief) -> Value {
    json!({
        "belief": belief.record,
        "claim": belief.claim,
        "evidence": belief.evidence,
        "source": belief.source,
        "revision": belief.revision,
        "due_at": belief.due_at,
        "adopted": belief.adopted,
        "changed": belief.changed,
    })
}
