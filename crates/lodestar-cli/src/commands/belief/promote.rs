//! `lodestar belief promote`: a person vouches for what was only read.

use clap::Args;
use lodestar_core::chain::transition::{Axis, AxisMove};
use lodestar_core::chain::{Axes, Retrieval, Truth};

use super::order::{self, Order, between};
use crate::beliefs::BeliefsArgs;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::operator::OperatorArgs;

const AFTER_HELP: &str = "\
The statement that is signed names this belief, what its claim says and where it stands now, so it
fits nothing else and nothing later. The belief becomes supported, and what was restricted becomes
normal: planners will use it. Refusals name axis, from, to and authority, and exit with 1.

Examples:
  lodestar belief promote blf_019a8f3c-1234-7abc-89ab
  lodestar belief promote blf_019a8f3c-1234-7abc-89ab --operator alice --reason \"asked the team\"
  lodestar belief promote blf_019a8f3c-1234-7abc-89ab --truth-only --yes";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PromoteArgs {
    /// The belief: its id, or the beginning of it
    belief: String,

    /// Why; it is kept in the log, signed
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Call it supported, and leave it out of the default context
    #[arg(long)]
    truth_only: bool,

    #[command(flatten)]
    operator: OperatorArgs,

    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(
    args: &PromoteArgs,
    beliefs: &BeliefsArgs,
    app: &mut App,
) -> Result<Exit, Failure> {
    let order = Order {
        belief: &args.belief,
        operator: &args.operator,
        reason: args.reason.as_deref(),
        yes: args.yes,
        moves: &|axes| moves(axes, args.truth_only),
    };
    order::give(&order, beliefs, app)
}

/// What is missing; where nothing is, the move that the table refuses.
fn moves(axes: Axes, truth_only: bool) -> Vec<AxisMove> {
    let truth = between(axes.on(Axis::Truth), Truth::Supported);
    let retrieval = between(axes.on(Axis::Retrieval), Retrieval::Normal);
    let lifts = !truth_only && axes.retrieval == Retrieval::Restricted;
    match (axes.truth == Truth::Supported, lifts) {
        (false, false) => vec![truth],
        (false, true) => vec![truth, retrieval],
        (true, true) => vec![retrieval],
        (true, false) => vec![truth],
    }
}

#[cfg(test)]
mod tests {
    use lodestar_core::chain::{Freshness, Security};

    use super::*;
    use crate::commands::belief::text;

    #[test]
    fn only_what_is_restricted_is_lifted() {
        let axes = |truth, retrieval| Axes {
            truth,
            retrieval,
            security: Security::Clean,
            freshness: Freshness::Fresh,
        };
        for (stands, truth_only, expected) in [
            (
                axes(Truth::Unverified, Retrieval::Restricted),
                false,
                "truth unverified → supported, retrieval restricted → normal",
            ),
            (
                axes(Truth::Unverified, Retrieval::Restricted),
                true,
                "truth unverified → supported",
            ),
            (
                axes(Truth::Contradicted, Retrieval::Blocked),
                false,
                "truth contradicted → supported",
            ),
            (
                axes(Truth::Supported, Retrieval::Restricted),
                false,
                "retrieval restricted → normal",
            ),
            (
                axes(Truth::Supported, Retrieval::Normal),
                false,
                "truth supported → supported",
            ),
        ] {
            assert_eq!(text::moves(&moves(stands, truth_only)), expected);
        }
    }
}
