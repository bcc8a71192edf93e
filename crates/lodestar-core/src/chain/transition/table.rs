//! The table itself. Each rule stands for all moves from one of its `from` to one of its `to`.

use super::AuthorityKind::{
    self, AutoObservation, Policy, Probe, Reflection, Sentinel, System, User,
};
use super::Condition::{
    self, ByClock, DirectEvidenceOnly, NewerDirectObservation, None as Always, ThroughGate,
    ThroughPolicyRule,
};
use super::{AxisMove, State};
use crate::chain::belief::{Freshness, Retrieval, Security, Truth};

/// Moves that the same authorities may make under the same conditions.
pub(super) struct Rule {
    from: &'static [State],
    to: &'static [State],
    pub(super) by: &'static [(AuthorityKind, Condition)],
}

impl Rule {
    pub(super) fn steps(&self) -> impl Iterator<Item = AxisMove> {
        self.from.iter().flat_map(|&from| {
            self.to.iter().map(move |&to| {
                AxisMove::new(from, to).expect("INVARIANT: a rule stays on one axis")
            })
        })
    }
}

const UNVERIFIED: State = State::Truth(Truth::Unverified);
const SUPPORTED: State = State::Truth(Truth::Supported);
const CONTRADICTED: State = State::Truth(Truth::Contradicted);
const SUPERSEDED: State = State::Truth(Truth::Superseded);

const HIDDEN: State = State::Retrieval(Retrieval::Hidden);
const RESTRICTED: State = State::Retrieval(Retrieval::Restricted);
const NORMAL: State = State::Retrieval(Retrieval::Normal);
const PRIVILEGED_ONLY: State = State::Retrieval(Retrieval::PrivilegedOnly);
const BLOCKED: State = State::Retrieval(Retrieval::Blocked);

const CLEAN: State = State::Security(Security::Clean);
const SUSPICIOUS: State = State::Security(Security::Suspicious);
const QUARANTINED: State = State::Security(Security::Quarantined);
const MALICIOUS: State = State::Security(Security::Malicious);

const FRESH: State = State::Freshness(Freshness::Fresh);
const STALE: State = State::Freshness(Freshness::Stale);
const EXPIRED: State = State::Freshness(Freshness::Expired);

#[rustfmt::skip]
pub(super) static TABLE: &[Rule] = &[
    // Only the gate, a rule that is named each time, or a person's signature leads to `supported`.
    Rule { from: &[UNVERIFIED], to: &[SUPPORTED],
        by: &[(User, Always), (Probe, Always), (AutoObservation, ThroughGate), (Policy, ThroughPolicyRule)] },
    // Documents cannot contradict: whoever reacts to content needs direct evidence.
    Rule { from: &[UNVERIFIED, SUPPORTED], to: &[CONTRADICTED],
        by: &[(User, Always), (Probe, Always), (Sentinel, DirectEvidenceOnly), (Reflection, DirectEvidenceOnly)] },
    Rule { from: &[SUPPORTED, CONTRADICTED], to: &[SUPERSEDED],
        by: &[(User, Always), (Reflection, Always), (AutoObservation, NewerDirectObservation)] },
    Rule { from: &[CONTRADICTED], to: &[SUPPORTED],
        by: &[(User, Always), (Probe, Always)] },

    Rule { from: &[HIDDEN], to: &[RESTRICTED],
        by: &[(User, Always), (Reflection, Always)] },
    // Reflection stops at `restricted`: it can never bring gated content into the default context.
    Rule { from: &[RESTRICTED], to: &[NORMAL],
        by: &[(User, Always), (Probe, Always)] },
    Rule { from: &[NORMAL], to: &[PRIVILEGED_ONLY],
        by: &[(User, Always), (Policy, Always)] },
    Rule { from: &[NORMAL], to: &[RESTRICTED, HIDDEN],
        by: &[(User, Always), (Policy, Always), (Sentinel, Always)] },
    Rule { from: &[RESTRICTED], to: &[HIDDEN],
        by: &[(User, Always), (Policy, Always), (Sentinel, Always)] },
    Rule { from: &[PRIVILEGED_ONLY], to: &[RESTRICTED],
        by: &[(User, Always), (Policy, Always)] },
    Rule { from: &[HIDDEN, RESTRICTED, NORMAL, PRIVILEGED_ONLY], to: &[BLOCKED],
        by: &[(User, Always), (Policy, Always), (Sentinel, Always)] },
    Rule { from: &[BLOCKED], to: &[HIDDEN],
        by: &[(User, Always)] },

    Rule { from: &[CLEAN], to: &[SUSPICIOUS, QUARANTINED],
        by: &[(Sentinel, Always), (Probe, Always), (User, Always)] },
    Rule { from: &[SUSPICIOUS], to: &[QUARANTINED],
        by: &[(Sentinel, Always), (Probe, Always), (User, Always)] },
    Rule { from: &[QUARANTINED], to: &[MALICIOUS],
        by: &[(Sentinel, Always), (User, Always)] },
    // Only a person declares something harmless again.
    Rule { from: &[SUSPICIOUS, QUARANTINED], to: &[CLEAN],
        by: &[(User, Always)] },

    Rule { from: &[FRESH], to: &[STALE],
        by: &[(System, ByClock)] },
    Rule { from: &[STALE], to: &[EXPIRED],
        by: &[(System, ByClock)] },
    Rule { from: &[STALE, EXPIRED], to: &[FRESH],
        by: &[(User, Always), (Probe, Always), (AutoObservation, Always)] },
];
