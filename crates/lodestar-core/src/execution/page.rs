//! The execution ladder as a page of the reference, in Markdown.

use std::fmt::Write as _;

use super::{EXECUTION_LEVELS, Effect, ExecutionFact, ExecutionLevel};

/// The execution ladder as a page of the reference, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Execution ladder\n\n\
         How far a run is proved. This page is generated from the table that the gateway evaluates runs with. \
         It is cumulative: a level needs its facts and those of every level above it in this table. The first \
         fact that does not hold, in the order in which they stand here, is the one that stopped the run.\n\n\
         ## Levels\n\n| level | meaning | facts that it adds |\n|---|---|---|\n",
    );
    for spec in &EXECUTION_LEVELS {
        let needs: Vec<_> = spec.needs.iter().map(|fact| format!("`{fact}`")).collect();
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            spec.level,
            spec.meaning,
            needs.join(", ")
        );
    }
    page.push_str("\n## Facts\n\n| fact | holds where | first needed by |\n|---|---|---|\n");
    for &fact in ExecutionFact::ALL {
        let _ = writeln!(
            page,
            "| `{fact}` | {} | {} |",
            fact.phrase(),
            fact.needed_from()
        );
    }
    page.push_str(
        "\nThe server derives every fact itself. `device_trusted`, `gateway_verified` and `policy_passed` may \
         be sent by a client; they are overwritten, and the difference is recorded.\n\n\
         ## What a level earns\n\n| effect | what it is | earned from |\n|---|---|---|\n",
    );
    for &effect in Effect::ALL {
        let _ = writeln!(
            page,
            "| `{effect}` | {} | {} |",
            effect.phrase(),
            effect.earned_from()
        );
    }
    page.push_str("\n| level | effects |\n|---|---|\n");
    for &level in ExecutionLevel::ALL {
        let effects: Vec<_> = level.effects().map(|e| format!("`{e}`")).collect();
        let _ = writeln!(page, "| {level} | {} |", effects.join(", "));
    }
    page.push_str("\nThe same submission never earns the same effect twice.\n");
    page
}
