//! What was believed, on which grounds, and where it stands.

use lodestar_core::chain::transition::AuthorityKind;
use lodestar_core::chain::{Axes, Decision as Declared, Truth};
use lodestar_core::id::BeliefId;
use lodestar_core::name::SessionId;
use lodestar_firewall::event::{Adopted, Cause, Change, FirewallEvent};
use lodestar_log::Event;
use lodestar_replay::{Recorded, UnreadableBeliefs};

use super::{Fold, Moved, Odd};
use crate::bounded::{VALUE, bounded};
use crate::model::{Belief, Decision, Ground, Move};

/// A change of a belief, with its place in the belief's own order.
pub(crate) struct Changed {
    pub(crate) revision: u64,
    pub(crate) belief: BeliefId,
    pub(crate) moves: Vec<Move>,
    /// Whether its cause is others' words, which are as sensitive as the belief.
    is_found: bool,
}

impl Changed {
    /// A change, as an event of a session says it.
    pub(crate) fn new(change: &Change, seq: u64, session: Option<&SessionId>) -> Self {
        let cause = in_words(&change.cause);
        let moves = change.moves.iter().map(|step| Move {
            seq,
            session: session.cloned(),
            step: *step,
            authority: change.authority.to_string(),
            cause: cause.clone(),
        });
        Self {
            revision: change.revision,
            belief: change.belief,
            moves: moves.collect(),
            is_found: matches!(change.cause, Cause::Finding(_)),
        }
    }
}

impl Fold<'_> {
    pub(super) fn take_beliefs(
        &mut self,
        event: &Event,
        recorded: Result<&Recorded, &UnreadableBeliefs>,
    ) {
        match recorded {
            Ok(Recorded::Other | Recorded::Redacted) => {}
            Ok(Recorded::Event(recorded)) => self.changed_by(recorded, event.seq),
            Ok(Recorded::Results(adoption)) => {
                self.ungrounded.extend(&adoption.redacted);
                for (_, plain) in &adoption.results {
                    self.adopt(plain.adopted(), event.seq);
                }
            }
            Err(_) => self.odd.push(Odd::of(event)),
        }
    }

    fn changed_by(&mut self, recorded: &FirewallEvent, seq: u64) {
        match recorded {
            FirewallEvent::Adopted(adopted) => self.adopt(adopted, seq),
            FirewallEvent::Moved(moved) => {
                for change in &moved.changes {
                    self.change(change, seq);
                }
            }
            FirewallEvent::Promoted(promoted) => self.change(&promoted.change, seq),
            FirewallEvent::ResultsAdopted(_)
            | FirewallEvent::ReadPrivileged(_)
            | FirewallEvent::Reflected(_)
            | FirewallEvent::Revised(_) => {}
        }
    }

    fn adopt(&mut self, adopted: &Adopted, seq: u64) {
        for (claim, belief) in adopted.claims.iter().zip(&adopted.beliefs) {
            let sources = claim.source_observations.iter();
            let sources = sources.filter_map(|id| self.observed.get(id)).copied();
            self.counts.beliefs += 1;
            self.belief_of.insert(belief.id, self.beliefs.len());
            self.beliefs.push(Belief {
                id: belief.id,
                seq,
                statement: self.shown(&claim.statement, VALUE, belief.sensitivity),
                confidence: belief.confidence,
                authority: belief.authority,
                quality: claim.lineage.quality(),
                sensitivity: belief.sensitivity,
                axes: belief.axes,
                sources: sources.collect(),
                moves: Vec::new(),
            });
        }
        for change in &adopted.changes {
            self.change(change, seq);
        }
    }

    fn change(&mut self, change: &Change, seq: u64) {
        if !self.belief_of.contains_key(&change.belief) {
            let promotes = change.moves.iter().any(|step| {
                let supported = lodestar_core::chain::transition::State::Truth(Truth::Supported);
                step.to() == supported
            });
            let on_a_word = matches!(
                change.authority,
                AuthorityKind::User | AuthorityKind::Policy
            );
            if promotes && on_a_word {
                self.promoted_elsewhere.push((seq, change.belief));
            }
            return;
        }
        self.moved(Changed::new(change, seq, None));
    }

    /// Takes in a change of a belief of this session.
    pub(crate) fn moved(&mut self, mut changed: Changed) {
        let Some(at) = self.belief_of.get(&changed.belief).copied() else {
            return;
        };
        let level = self.beliefs[at].sensitivity;
        if changed.is_found && level > self.ceiling {
            for one in &mut changed.moves {
                one.cause = self.reason(&one.cause, level);
            }
        }
        let belief = &mut self.beliefs[at];
        let moved = self.moved.entry(at).or_insert_with(|| Moved {
            from: belief.axes,
            changes: Vec::new(),
        });
        let last = moved.changes.last().map(|(revision, _)| *revision);
        if last > Some(changed.revision) {
            self.unsettled.insert(at);
        } else {
            belief.axes = stands(belief.axes, &changed.moves);
            belief.moves.extend_from_slice(&changed.moves);
        }
        moved.changes.push((changed.revision, changed.moves));
    }

    /// Puts changes in the order of their revisions that came in another.
    pub(crate) fn settle(&mut self) {
        for at in std::mem::take(&mut self.unsettled) {
            let Some(moved) = self.moved.get_mut(&at) else {
                continue;
            };
            moved.changes.sort_by_key(|(revision, _)| *revision);
            let moves = moved.changes.iter().flat_map(|(_, moves)| moves.clone());
            let belief = &mut self.beliefs[at];
            belief.moves = moves.collect();
            belief.axes = stands(moved.from, &belief.moves);
        }
    }

    /// Whether this session adopted it.
    pub(crate) fn knows(&self, belief: BeliefId) -> bool {
        self.belief_of.contains_key(&belief)
    }

    pub(super) fn adopted(&self, belief: BeliefId) -> Option<u64> {
        let at = self.belief_of.get(&belief)?;
        Some(self.beliefs[*at].seq)
    }

    pub(super) fn decided(&mut self, event: &Event) {
        let Some(decision) = self.read::<Declared>(event) else {
            return;
        };
        self.settle();
        let grounds = decision.belief_dependencies.iter().map(|id| {
            let belief = self.belief_of.get(id).map(|at| &self.beliefs[*at]);
            Ground {
                belief: *id,
                adopted: belief.map(|one| one.seq),
                truth: belief.map(|one| one.axes.truth),
                security: belief.map(|one| one.axes.security),
                rests_on_reading: belief.map(Belief::was_read),
            }
        });
        let sensitivity = self.default_sensitivity();
        let decision = Decision {
            id: decision.id,
            seq: event.seq,
            question: self.shown(&decision.question, VALUE, sensitivity),
            chosen: self.shown(decision.choice.chosen(), VALUE, sensitivity),
            origin: decision.origin,
            made_by: decision.made_by.to_string(),
            rests_on: grounds.collect(),
            actions: Vec::new(),
        };
        self.decision_of.insert(decision.id, self.decisions.len());
        self.decisions.push(decision);
    }
}

/// Where a belief stands after its changes, in their order.
fn stands(mut axes: Axes, moves: &[Move]) -> Axes {
    for one in moves {
        axes = axes.with(one.step.to());
    }
    axes
}

fn in_words(cause: &Cause) -> String {
    match cause {
        Cause::Claim(claim) => format!("a direct claim, {claim}"),
        Cause::Belief(belief) => format!("a direct belief that says otherwise, {belief}"),
        Cause::Statement(digest) => format!("a signed statement, {digest}"),
        Cause::Rule(rule) => format!("the operator's rule {}", rule.as_str()),
        Cause::Finding(found) => bounded(found, VALUE),
        Cause::Clock => "the passing of time".to_owned(),
    }
}
