//! How deep a policy's expressions may lie in each other.
//!
//! Cedar's parser recurses without a bound, and would take the process down with the stack. Its
//! validator has one, and says *nothing* about a policy once the stack runs low: the policy would
//! load unchecked. So the text is measured before Cedar sees it, by brackets and operators alone.

/// The greatest depth, in operators; measured to need less than 1 MiB of stack, which every thread
/// that loads a policy has.
const MAX_DEPTH: usize = 160;

/// A bracket takes the parser through every level of its grammar: as much as several operators.
const BRACKET: usize = 5;

/// What lies open at one level of brackets.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Operators in a row, each of which takes what stands before it as an operand.
    chain: usize,
    /// Attributes and methods in a row, on one operand.
    dots: usize,
}

/// Where the text first goes deeper than is taken, in bytes.
pub(super) fn too_deep(source: &str) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut level = Level::default();
    let mut around: Vec<Level> = Vec::new();
    let mut below = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let mut step = 1;
        match byte {
            b'"' => step = string_len(rest),
            b'/' if rest.starts_with(b"//") => {
                step = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            }
            b'(' | b'[' | b'{' => {
                below += level.depth() + BRACKET;
                around.push(std::mem::take(&mut level));
            }
            b')' | b']' | b'}' => {
                if let Some(outer) = around.pop() {
                    level = outer;
                    below -= level.depth() + BRACKET;
                }
            }
            b',' | b';' => level = Level::default(),
            b'.' => level.dots += 1,
            b'&' | b'|' if rest.get(1) == Some(&byte) => {
                step = 2;
                level.operator();
            }
            b'+' | b'-' | b'*' | b'!' => level.operator(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                step = word_len(rest);
                if &rest[..step] == b"if" {
                    level.operator();
                    level.operator();
                }
            }
            _ => {}
        }
        if below + level.depth() > MAX_DEPTH {
            return Some(at);
        }
        at += step;
    }
    None
}

impl Level {
    fn depth(self) -> usize {
        self.chain + self.dots
    }

    fn operator(&mut self) {
        self.chain += 1;
        self.dots = 0;
    }
}

/// The length of a string literal with its quotes; to the end if it has none.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn word_len(text: &[u8]) -> usize {
    text.iter()
        .position(|b| !b.is_ascii_alphanumeric() && *b != b'_')
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_operators_and_attributes_add_up() {
        for (open, most) in [
            ("(", 32),
            ("[", 32),
            ("{a:", 32),
            ("!", 160),
            ("true && ", 160),
            ("1 + ", 160),
            ("if x then y else ", 80),
            (".a", 160),
            ("f(x).", 156),
            ("!(", 26),
        ] {
            assert_eq!(too_deep(&open.repeat(most)), None, "{open}");
            assert!(too_deep(&open.repeat(most + 1)).is_some(), "{open}");
        }
    }

    #[test]
    fn what_only_stands_side_by_side_is_not_deep() {
        for flat in [
            "permit (principal, action, resource);",
            "\"((((\"",
            "\"\\\"((\"",
            "// ((((((((((((\n",
            "1, (2 + 3), a.b.c, ",
            "when { a.b.c } ",
        ] {
            assert_eq!(too_deep(&flat.repeat(10_000)), None, "{flat}");
        }
        assert_eq!(too_deep(&"a.b.c.d.e || ".repeat(150)), None);
        assert_eq!(too_deep(&")".repeat(1000)), None);
        assert_eq!(too_deep("\"\\"), None);
    }
}
