//! Whether `((…))` is an expression, or could be commands in two subshells.

use lodestar_core::ladder::Rung;

use super::programs;
use super::syntax::{Unit, Word};

/// Whether no two operands stand side by side and no operand is the name of a program that does anything.
pub(super) fn is_expression(word: &Word) -> bool {
    let mut operands: Vec<String> = Vec::new();
    let mut joined = false;
    let mut spaced = false;
    for unit in &word.units {
        let (c, part) = match unit {
            Unit::Bare(c) => (*c, c.is_ascii_alphanumeric() || *c == '_' || *c == '.'),
            Unit::Quoted(c) => (*c, true),
            Unit::Expansion(..) => ('$', true),
        };
        if part {
            match (joined, spaced, operands.last_mut()) {
                (true, false, Some(last)) => last.push(c),
                (true, true, _) => return false,
                _ => operands.push(c.to_string()),
            }
            joined = true;
            spaced = false;
        } else if c.is_whitespace() {
            spaced = true;
        } else {
            joined = false;
            spaced = false;
        }
    }
    let harmless =
        |name: &String| programs::find(name).is_none_or(|program| program.rung < Rung::L3);
    operands.iter().all(harmless)
}
