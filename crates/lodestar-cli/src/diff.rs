//! What differs between two texts, line by line, as people read it.

use similar::{ChangeTag, TextDiff};

use crate::inert;
use crate::paint::Paint;

/// Lines that stay and are shown around those that do not.
const AROUND: usize = 3;

/// The changed parts, with `-` and `+` before their lines, inert. Nothing where nothing differs.
pub(crate) fn shown(before: &str, after: &str, paint: Paint) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut text = String::new();
    for (at, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if at > 0 {
            text.push_str(&format!("{}\n", paint.dim("  …")));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = inert::whole(change.value().trim_end_matches(['\n', '\r']));
            let line = match change.tag() {
                ChangeTag::Delete => paint.bad(format!("- {line}")),
                ChangeTag::Insert => paint.good(format!("+ {line}")),
                ChangeTag::Equal => format!("  {line}"),
            };
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_marked_and_inert() {
        let paint = Paint::none();
        assert_eq!(shown("a\nb\n", "a\nb\n", paint), "");
        assert_eq!(
            shown("a\nb\nc\n", "a\n\u{1b}[2Kx\nc\n", paint),
            "  a\n- b\n+ ␛[2Kx\n  c\n"
        );
    }
}
