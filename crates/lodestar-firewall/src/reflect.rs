//! Reflection: a deterministic look back that proposes, and a separate step that applies.
//!
//! [`propose`] reads a window of a session's log beside what the store knows now. [`apply`] does what
//! was proposed and still holds, under reflection's own limited authority: it supersedes and flags;
//! it can never bring anything into the default context.

use lodestar_core::chain::{
    Change as LinkChange, Decision, Directness, LinkRef, Retrieval, Revision, RevisionCause,
    Security, Truth,
};
use lodestar_core::defence::Defence;
use lodestar_core::id::{BeliefId, RevisionId};

use crate::authority::ReflectionSeat;
use crate::event::{FirewallEvent, LogName, LogPosition, Proposal, Recorder, Reflected};
use crate::firewall::{Finding, Firewall, FirewallError};
use crate::row::StoredBelief;
use crate::row::keys::Standing;

/// Most settled beliefs of one key that are compared with each other.
const MAX_COMPARED: usize = 256;

/// What a reflection looks at: decisions and adoptions of a session, each with its event.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// The decisions that were made.
    pub decisions: Vec<(u64, Decision)>,
    /// The beliefs that were adopted or changed.
    pub beliefs: Vec<(u64, BeliefId)>,
    /// From which event on.
    pub from: u64,
    /// Up to, and without, which event.
    pub until: u64,
}

/// What came of applying.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Applied {
    /// What was done, each with its event.
    pub done: Vec<(Proposal, LogPosition)>,
    /// What no longer holds or is not permitted, each with the reason.
    pub left: Vec<(Proposal, String)>,
}

/// Proposes, and changes nothing. The same window and the same store give the same proposals.
pub fn propose(
    firewall: &mut Firewall,
    log: &LogName,
    window: &Window,
) -> Result<Reflected, FirewallError> {
    let mut proposals = Vec::new();
    // For a harness that takes `ReflectionFlags` out: nobody looks at decisions again.
    let looks_back = firewall.rigour().keeps(Defence::ReflectionFlags);
    for (made_at, decision) in window.decisions.iter().filter(|_| looks_back) {
        for &belief in &decision.belief_dependencies {
            if is_contradicted(firewall, belief)? {
                proposals.push(Proposal::FlagDecision {
                    decision: decision.id,
                    made_at: *made_at,
                    belief,
                });
            }
        }
    }
    for &(_, id) in &window.beliefs {
        for proposal in superseding(firewall, id)? {
            if !proposals.contains(&proposal) {
                proposals.push(proposal);
            }
        }
    }
    Ok(Reflected {
        log: log.clone(),
        from: window.from,
        until: window.until,
        proposals,
    })
}

fn stands(firewall: &mut Firewall, id: BeliefId) -> Result<Option<StoredBelief>, FirewallError> {
    let found = firewall.look_up(id)?;
    Ok(found.and_then(|(belief, standing)| (standing == Standing::Genuine).then_some(belief)))
}

fn is_contradicted(firewall: &mut Firewall, id: BeliefId) -> Result<bool, FirewallError> {
    let belief = stands(firewall, id)?;
    Ok(belief.is_some_and(|belief| belief.record.axes.truth == Truth::Contradicted))
}

/// Supported beliefs with the key of this one and another object: the older of each pair goes.
fn superseding(firewall: &mut Firewall, id: BeliefId) -> Result<Vec<Proposal>, FirewallError> {
    let Some(belief) = stands(firewall, id)? else {
        return Ok(Vec::new());
    };
    if belief.record.axes.truth != Truth::Supported {
        return Ok(Vec::new());
    }
    let mut proposals = Vec::new();
    for other in firewall.settled_beside(&belief, MAX_COMPARED)? {
        if other.claim.predicate.object == belief.claim.predicate.object {
            continue;
        }
        let (older, newer) = in_order(&belief, &other);
        if may_supersede(newer, older) {
            proposals.push(Proposal::Supersede {
                older: older.record.id,
                newer: newer.record.id,
            });
        }
    }
    Ok(proposals)
}

fn in_order<'a>(a: &'a StoredBelief, b: &'a StoredBelief) -> (&'a StoredBelief, &'a StoredBelief) {
    let place = |belief: &StoredBelief| (belief.record.observed_at, belief.record.id);
    if place(a) < place(b) { (a, b) } else { (b, a) }
}

/// Whether both stand, and the newer is no weaker kind of word than the older: a document that
/// somebody promoted does not take the place of what was observed.
fn may_supersede(newer: &StoredBelief, older: &StoredBelief) -> bool {
    let axes = newer.record.axes;
    let quality = |belief: &StoredBelief| belief.claim.lineage.quality();
    let is_direct = |belief: &StoredBelief| quality(belief).directness() == Directness::Direct;
    axes.truth == Truth::Supported
        && older.record.axes.truth == Truth::Supported
        && axes.security == Security::Clean
        && axes.retrieval != Retrieval::Blocked
        && (!is_direct(older) || is_direct(newer))
}

/// Records the proposals, then does what still holds of them.
pub fn apply(
    firewall: &mut Firewall,
    seat: &ReflectionSeat,
    reflected: &Reflected,
    recorder: &mut dyn Recorder,
) -> Result<Applied, FirewallError> {
    firewall.record(&FirewallEvent::Reflected(reflected.clone()), recorder)?;
    let mut applied = Applied::default();
    for proposal in &reflected.proposals {
        match apply_one(firewall, seat, proposal, recorder) {
            Ok(at) => applied.done.push((proposal.clone(), at)),
            Err(error @ (FirewallError::NotRecorded(_) | FirewallError::Store(_))) => {
                return Err(error);
            }
            Err(refused) => applied.left.push((proposal.clone(), refused.to_string())),
        }
    }
    Ok(applied)
}

fn apply_one(
    firewall: &mut Firewall,
    seat: &ReflectionSeat,
    proposal: &Proposal,
    recorder: &mut dyn Recorder,
) -> Result<LogPosition, FirewallError> {
    match *proposal {
        Proposal::FlagDecision {
            decision, belief, ..
        } => {
            if !is_contradicted(firewall, belief)? {
                return Err(FirewallError::BadClaim(format!(
                    "belief `{belief}` is not contradicted"
                )));
            }
            let (id, now) = firewall.stamp(RevisionId::from_parts);
            let revision = Revision {
                id,
                link: LinkRef::from(decision),
                change: LinkChange::Flagged {
                    depends_on: belief.into(),
                },
                reason: "it rests on a belief that is contradicted".to_owned(),
                cause: RevisionCause::Link(belief.into()),
                made_at: now,
            };
            firewall.record(&FirewallEvent::Revised(revision), recorder)
        }
        Proposal::Supersede { older, newer } => {
            let holds = superseding(firewall, newer)?.contains(proposal);
            if !holds {
                return Err(FirewallError::BadClaim(format!(
                    "beliefs `{older}` and `{newer}` no longer stand against each other"
                )));
            }
            let to = Truth::Superseded.into();
            let finding = Finding::SaysOtherwise(newer);
            let (_, at) = firewall.shift(seat, older, to, finding, recorder)?;
            Ok(at)
        }
    }
}
