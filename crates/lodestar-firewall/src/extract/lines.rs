//! Lines of text that anyone may have written.

use lodestar_core::chain::Observation;

use super::block::readable;

/// Longest line in bytes that is read for items: people write shorter ones, and a bound per line keeps
/// every scanner linear.
pub(super) const MAX_LINE: usize = 4096;

/// The lines of a text without their ends, be they LF or CRLF, and without a byte order mark. What is
/// longer than [`MAX_LINE`] comes out as an empty line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines()
        .map(|line| if line.len() > MAX_LINE { "" } else { line })
}

/// The texts of a result that a reader sees, with the place of their block.
pub(super) fn texts(observation: &Observation) -> impl Iterator<Item = (usize, &str)> {
    let blocks = observation.content.iter().enumerate();
    blocks.filter_map(|(index, block)| Some((index, readable(block)?)))
}
