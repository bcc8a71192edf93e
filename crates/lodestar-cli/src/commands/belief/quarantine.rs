//! `lodestar belief quarantine`: a person sets a belief apart, or lets it out again.

use clap::Args;
use lodestar_core::chain::transition::{Axis, AxisMove};
use lodestar_core::chain::{Axes, Retrieval, Security};

use super::order::{self, Order, between};
use crate::beliefs::BeliefsArgs;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::operator::OperatorArgs;

const AFTER_HELP: &str = "\
What is quarantined is in no context. --malicious says that it is an attack, for good; --release
says that it is none. Refusals name axis, from, to and authority, and exit with 1.

Examples:
  lodestar belief quarantine blf_019a8f3c-1234-7abc-89ab --reason \"planted in DEVELOPMENT.md\"
  lodestar belief quarantine blf_019a8f3c-1234-7abc-89ab --malicious --block --yes
  lodestar belief quarantine blf_019a8f3c-1234-7abc-89ab --release --operator alice";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct QuarantineArgs {
    /// The belief: its id, or the beginning of it
    belief: String,

    /// Why; it is kept in the log, signed
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Call it malicious: it is never released again
    #[arg(long, conflicts_with = "release")]
    malicious: bool,

    /// Take a suspicion or a quarantine back
    #[arg(long)]
    release: bool,

    /// Also block it from every retrieval
    #[arg(long, conflicts_with = "release")]
    block: bool,

    #[command(flatten)]
    operator: OperatorArgs,

    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Where a belief is to stand on security.
#[derive(Debug, Clone, Copy)]
enum To {
    Quarantined,
    Malicious,
    Clean,
}

pub(crate) fn run(
    args: &QuarantineArgs,
    beliefs: &BeliefsArgs,
    app: &mut App,
) -> Result<Exit, Failure> {
    let to = match (args.malicious, args.release) {
        (true, _) => To::Malicious,
        (false, true) => To::Clean,
        (false, false) => To::Quarantined,
    };
    let order = Order {
        belief: &args.belief,
        operator: &args.operator,
        reason: args.reason.as_deref(),
        yes: args.yes,
        moves: &|axes| moves(axes, to, args.block),
    };
    order::give(&order, beliefs, app)
}

/// The way there; what the table refuses is refused when the order is followed.
fn moves(axes: Axes, to: To, block: bool) -> Vec<AxisMove> {
    let here = axes.on(Axis::Security);
    let quarantined = Security::Quarantined;
    let mut moves = match (to, axes.security) {
        (To::Quarantined, _) => vec![between(here, quarantined)],
        (To::Clean, _) => vec![between(here, Security::Clean)],
        // Nothing becomes malicious that was not set apart before.
        (To::Malicious, Security::Clean | Security::Suspicious) => vec![
            between(here, quarantined),
            between(quarantined.into(), Security::Malicious),
        ],
        (To::Malicious, _) => vec![between(here, Security::Malicious)],
    };
    if block {
        moves.push(between(axes.on(Axis::Retrieval), Retrieval::Blocked));
    }
    moves
}

#[cfg(test)]
mod tests {
    use lodestar_core::chain::{Freshness, Truth};

    use super::*;
    use crate::commands::belief::text;

    #[test]
    fn the_way_to_malicious_leads_through_quarantine() {
        let axes = |security| Axes {
            truth: Truth::Unverified,
            retrieval: Retrieval::Restricted,
            security,
            freshness: Freshness::Fresh,
        };
        for (security, to, block, expected) in [
            (
                Security::Clean,
                To::Quarantined,
                true,
                "security clean → quarantined, retrieval restricted → blocked",
            ),
            (
                Security::Suspicious,
                To::Malicious,
                false,
                "security suspicious → quarantined, security quarantined → malicious",
            ),
            (
                Security::Quarantined,
                To::Malicious,
                false,
                "security quarantined → malicious",
            ),
            (
                Security::Quarantined,
                To::Clean,
                false,
                "security quarantined → clean",
            ),
            (
                Security::Malicious,
                To::Clean,
                false,
                "security malicious → clean",
            ),
        ] {
            assert_eq!(text::moves(&moves(axes(security), to, block)), expected);
        }
    }
}
