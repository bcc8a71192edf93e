//! Whether a belief may move: the table of core, and the grounds that its conditions ask for.
//!
//! The one place where a move is permitted. Pure: it looks at where the belief stands, who wants to
//! move it and on what grounds, and at nothing else.

use lodestar_core::chain::transition::{self, AuthorityKind, AxisMove, Condition, State};
use lodestar_core::chain::{Axes, Retrieval, Rigour, Security, Truth};
use lodestar_core::defence::Defence;
use thiserror::Error;

/// What stands behind a move. Made only inside this crate, where it was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grounds {
    /// Nothing but the authority.
    Authority,
    /// The gate weighed the evidence, and this is what came out.
    Gate(Truth),
    /// A promotion rule that holds and names the belief.
    Rule,
    /// A supported direct belief with the same key says otherwise.
    DirectEvidence,
    /// A direct observation with the same key that is not older.
    NewerDirectObservation,
    /// The clock.
    Clock,
}

/// A move was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "`{authority}` may not move {} from `{}` to `{}`: {why}",
    .step.axis(), .step.from().word(), .step.to().word()
)]
pub struct MoveRefused {
    /// Which axis, from where, to where.
    pub step: AxisMove,
    /// Who wanted to.
    pub authority: AuthorityKind,
    /// Why not.
    pub why: WhyRefused,
}

/// Why a move was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WhyRefused {
    /// The table has no such row.
    #[error("no such move is permitted")]
    NotInTable,
    /// The belief stands elsewhere.
    #[error("the belief does not stand there")]
    StandsElsewhere,
    /// The evidence does not carry it.
    #[error("the gate does not find it supported by direct evidence")]
    NeedsGate,
    /// No rule.
    #[error("only a promotion rule that names tool, subject and expiry may do so")]
    NeedsRule,
    /// Documents cannot.
    #[error("only direct evidence may do so")]
    NeedsDirectEvidence,
    /// Nothing newer is there.
    #[error("only a newer direct observation may do so")]
    NeedsNewerDirectObservation,
    /// Not yet.
    #[error("only the clock may do so")]
    NeedsClock,
}

/// As [`permit`]; in a harness that takes [`Defence::TransitionTable`] out, everybody may make every move.
pub(crate) fn permit_by(
    rigour: Rigour,
    axes: Axes,
    step: AxisMove,
    authority: AuthorityKind,
    grounds: Grounds,
) -> Result<Axes, MoveRefused> {
    match rigour.keeps(Defence::TransitionTable) {
        true => permit(axes, step, authority, grounds),
        false => Ok(axes.with(step.to())),
    }
}

/// Permits one move of a belief that stands so, or refuses it.
pub(crate) fn permit(
    axes: Axes,
    step: AxisMove,
    authority: AuthorityKind,
    grounds: Grounds,
) -> Result<Axes, MoveRefused> {
    let refuse = |why| {
        Err(MoveRefused {
            step,
            authority,
            why,
        })
    };
    if axes.on(step.axis()) != step.from() {
        return refuse(WhyRefused::StandsElsewhere);
    }
    let Ok(condition) = transition::condition(step, authority) else {
        return refuse(WhyRefused::NotInTable);
    };
    let missing = match condition {
        Condition::None => None,
        Condition::ThroughGate => {
            (grounds != Grounds::Gate(Truth::Supported)).then_some(WhyRefused::NeedsGate)
        }
        Condition::ThroughPolicyRule => (grounds != Grounds::Rule).then_some(WhyRefused::NeedsRule),
        Condition::DirectEvidenceOnly => {
            (grounds != Grounds::DirectEvidence).then_some(WhyRefused::NeedsDirectEvidence)
        }
        Condition::NewerDirectObservation => (grounds != Grounds::NewerDirectObservation)
            .then_some(WhyRefused::NeedsNewerDirectObservation),
        Condition::ByClock => (grounds != Grounds::Clock).then_some(WhyRefused::NeedsClock),
    };
    match missing {
        Some(why) => refuse(why),
        None => Ok(axes.with(step.to())),
    }
}

/// The moves of a promotion that came through the gate or a rule: to supported, and, where the
/// promotion lifts, out of restriction.
///
/// The lift is part of the promotion and no move of its own: the table leaves it to people, so
/// neither evidence nor a rule can lift anything but what it promotes in the same act, and only
/// what nobody hid, blocked or set apart.
pub(crate) fn promotion(
    axes: Axes,
    authority: AuthorityKind,
    grounds: Grounds,
    lifts: bool,
) -> Result<Vec<AxisMove>, MoveRefused> {
    let step = between(axes.on(transition::Axis::Truth), Truth::Supported.into());
    let supported = permit(axes, step, authority, grounds)?;
    let mut moves = vec![step];
    if lifts
        && supported.retrieval == Retrieval::Restricted
        && supported.security == Security::Clean
    {
        moves.push(between(
            Retrieval::Restricted.into(),
            Retrieval::Normal.into(),
        ));
    }
    Ok(moves)
}

/// A move between two states of one axis.
pub(crate) fn between(from: State, to: State) -> AxisMove {
    AxisMove::new(from, to).expect("INVARIANT: both states are on one axis")
}

#[cfg(test)]
mod tests {
    use lodestar_core::chain::{Freshness, transition::Axis};

    use super::*;

    fn all_axes() -> impl Iterator<Item = Axes> {
        Truth::ALL.iter().flat_map(|&truth| {
            Retrieval::ALL.iter().flat_map(move |&retrieval| {
                Security::ALL.iter().flat_map(move |&security| {
                    Freshness::ALL.iter().map(move |&freshness| Axes {
                        truth,
                        retrieval,
                        security,
                        freshness,
                    })
                })
            })
        })
    }

    const ALL_GROUNDS: [Grounds; 7] = [
        Grounds::Authority,
        Grounds::Gate(Truth::Supported),
        Grounds::Gate(Truth::Unverified),
        Grounds::Rule,
        Grounds::DirectEvidence,
        Grounds::NewerDirectObservation,
        Grounds::Clock,
    ];

    /// What the table says, as the firewall must see it: the ground that each row asks for.
    fn wanted(condition: Condition, grounds: Grounds) -> bool {
        match condition {
            Condition::None => true,
            Condition::ThroughGate => grounds == Grounds::Gate(Truth::Supported),
            Condition::ThroughPolicyRule => grounds == Grounds::Rule,
            Condition::DirectEvidenceOnly => grounds == Grounds::DirectEvidence,
            Condition::NewerDirectObservation => grounds == Grounds::NewerDirectObservation,
            Condition::ByClock => grounds == Grounds::Clock,
        }
    }

    #[test]
    fn out_of_every_state_to_every_state_by_everybody_on_all_grounds_the_table_decides() {
        let (mut asked, mut permitted) = (0, 0);
        let rows: Vec<_> = transition::rows().collect();
        for axes in all_axes() {
            for to in Axis::ALL.iter().flat_map(|&axis| State::all(axis)) {
                let step = between(axes.on(to.axis()), to);
                for &authority in AuthorityKind::ALL {
                    let row = rows
                        .iter()
                        .find(|row| row.step == step && row.authority == authority);
                    for grounds in ALL_GROUNDS {
                        asked += 1;
                        let expected = row.is_some_and(|row| wanted(row.condition, grounds));
                        let found = permit(axes, step, authority, grounds);
                        assert_eq!(found.is_ok(), expected, "{axes:?} {step:?} {authority}");
                        match found {
                            Ok(after) => {
                                permitted += 1;
                                assert_eq!(after, axes.with(to));
                            }
                            Err(refused) => {
                                let text = refused.to_string();
                                for part in [
                                    step.axis().as_str(),
                                    step.from().word(),
                                    step.to().word(),
                                    authority.as_str(),
                                ] {
                                    assert!(text.contains(part), "{text}");
                                }
                            }
                        }
                    }
                }
            }
        }
        println!(
            "{permitted} of {asked} moves permitted: 240 states, 16 targets, 7 authorities, 7 grounds"
        );
        assert_eq!(asked, 240 * 16 * 7 * 7);
    }

    #[test]
    fn a_promotion_lifts_only_what_is_restricted_and_clean() {
        for axes in all_axes().filter(|axes| axes.truth == Truth::Unverified) {
            let grounds = Grounds::Gate(Truth::Supported);
            let moves = promotion(axes, AuthorityKind::AutoObservation, grounds, true).unwrap();
            let lifts = axes.retrieval == Retrieval::Restricted && axes.security == Security::Clean;
            assert_eq!(moves.len(), 1 + usize::from(lifts), "{axes:?}");
            let unlifted = promotion(axes, AuthorityKind::Policy, Grounds::Rule, false).unwrap();
            assert_eq!(unlifted.len(), 1);
        }
    }

    #[test]
    fn nothing_but_the_gate_promotes_new_evidence() {
        for axes in all_axes() {
            for grounds in ALL_GROUNDS {
                let promoted = promotion(axes, AuthorityKind::AutoObservation, grounds, true);
                let through =
                    grounds == Grounds::Gate(Truth::Supported) && axes.truth == Truth::Unverified;
                assert_eq!(promoted.is_ok(), through);
            }
        }
    }

    #[test]
    fn a_refusal_names_axis_from_to_and_authority() {
        let axes = Axes {
            truth: Truth::Unverified,
            retrieval: Retrieval::Restricted,
            security: Security::Clean,
            freshness: Freshness::Fresh,
        };
        let step = between(axes.on(Axis::Retrieval), Retrieval::Normal.into());
        let refused = permit(axes, step, AuthorityKind::Reflection, Grounds::Authority);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "`reflection` may not move retrieval from `restricted` to `normal`: no such move is permitted"
        );
    }
}
