//! How the axes of a belief may move: the whole table, once, as data.
//!
//! Whatever the table does not have is refused, with an error that names axis, from, to and
//! authority. This module only answers what is permitted. It moves nothing: an authority is a
//! capability that its owner alone can construct, and naming an [`AuthorityKind`] is not having one.

mod state;
mod table;

pub use state::{Axis, AxisMove, State, StateError};

use std::fmt::Write as _;

use thiserror::Error;

use crate::name::words;
use table::TABLE;

words! {
    /// What kind of authority stands behind a move.
    pub enum AuthorityKind: "authority" {
        /// A person, by a verified signature.
        User = "user",
        /// A rule of the operator's policy.
        Policy = "policy",
        /// A probe, in a world of its own.
        Probe = "probe",
        /// A sentinel that saw something.
        Sentinel = "sentinel",
        /// A reflection's proposal, applied.
        Reflection = "reflection",
        /// New evidence.
        AutoObservation = "auto_observation",
        /// The passing of time.
        System = "system",
    }
}

words! {
    /// What else has to hold for a permitted move.
    pub enum Condition: "condition" {
        /// Nothing else.
        None = "none",
        /// The gate weighs the evidence and finds the claim supported.
        ThroughGate = "through_gate",
        /// A promotion rule names tool, subject pattern and expiry, and is logged with its id.
        ThroughPolicyRule = "through_policy_rule",
        /// Direct evidence speaks; documents cannot.
        DirectEvidenceOnly = "direct_evidence_only",
        /// A newer direct observation of the same subject and relation is there.
        NewerDirectObservation = "newer_direct_observation",
        /// The clock says so.
        ByClock = "by_clock",
    }
}

/// One row of the table: a move, who may make it, and what else has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transition {
    /// Which axis moves, from where, to where.
    pub step: AxisMove,
    /// Who may make it.
    pub authority: AuthorityKind,
    /// What else has to hold.
    pub condition: Condition,
}

/// The table has no such row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "`{authority}` may not move {} from `{}` to `{}`",
    .step.axis(), .step.from().word(), .step.to().word()
)]
pub struct TransitionRefused {
    /// The move.
    pub step: AxisMove,
    /// Who wanted to make it.
    pub authority: AuthorityKind,
}

/// Every row of the table.
pub fn rows() -> impl Iterator<Item = Transition> {
    TABLE.iter().flat_map(|rule| {
        let permits = move |step| {
            rule.by
                .iter()
                .map(move |&(authority, condition)| Transition {
                    step,
                    authority,
                    condition,
                })
        };
        rule.steps().flat_map(permits)
    })
}

/// What has to hold for an authority of this kind to make the move, if it may make it at all.
pub fn condition(step: AxisMove, authority: AuthorityKind) -> Result<Condition, TransitionRefused> {
    rows()
        .find(|row| row.step == step && row.authority == authority)
        .map(|row| row.condition)
        .ok_or(TransitionRefused { step, authority })
}

/// Whether nothing leads out of a state.
pub fn is_terminal(state: State) -> bool {
    rows().all(|row| row.step.from() != state)
}

/// The table as a page of the reference, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Axis transitions\n\n\
         How the axes of a belief may move. This page is generated from the table that the firewall \
         looks moves up in; a move that it does not have is refused.\n",
    );
    for &axis in Axis::ALL {
        let _ = write!(
            page,
            "\n## {axis}\n\n| from | to | who may, and when |\n|---|---|---|\n"
        );
        for from in State::all(axis) {
            for to in State::all(axis) {
                let permits: Vec<_> = rows()
                    .filter(|row| row.step.from() == from && row.step.to() == to)
                    .map(|row| match phrase(row.condition) {
                        "" => row.authority.to_string(),
                        phrase => format!("{} ({phrase})", row.authority),
                    })
                    .collect();
                if !permits.is_empty() {
                    let _ = writeln!(
                        page,
                        "| {} | {} | {} |",
                        from.word(),
                        to.word(),
                        permits.join(", ")
                    );
                }
            }
        }
        let terminal: Vec<_> = State::all(axis)
            .filter(|&state| is_terminal(state))
            .map(|s| format!("`{}`", s.word()))
            .collect();
        if !terminal.is_empty() {
            let _ = write!(page, "\nNothing leads out of {}.\n", terminal.join(", "));
        }
    }
    page
}

fn phrase(condition: Condition) -> &'static str {
    match condition {
        Condition::None => "",
        Condition::ThroughGate => "through the gate",
        Condition::ThroughPolicyRule => "through a promotion rule",
        Condition::DirectEvidenceOnly => "only with direct evidence",
        Condition::NewerDirectObservation => "for a newer direct observation",
        Condition::ByClock => "by the clock",
    }
}

#[cfg(test)]
mod tests;
