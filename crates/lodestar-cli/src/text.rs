//! Lines of a card or a screen: what a piece of one means, and how it fits.

use crate::inert;
use crate::paint::Paint;

/// What a piece of a line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Dim,
    Good,
    Accent,
    Warn,
    Bad,
}

/// A line whose text is inert.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line(Vec<(Tone, String)>);

impl Line {
    pub(crate) fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().and(tone, text)
    }

    pub(crate) fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    pub(crate) fn followed_by(mut self, line: Self) -> Self {
        self.0.extend(line.0);
        self
    }

    pub(crate) fn painted(&self, paint: Paint) -> String {
        let pieces = self.0.iter().map(|(tone, text)| match tone {
            Tone::Plain => text.clone(),
            Tone::Strong => paint.strong(text),
            Tone::Dim => paint.dim(text),
            Tone::Good => paint.good(text),
            Tone::Accent => paint.accent(text),
            Tone::Warn => paint.warn(text),
            Tone::Bad => paint.bad(text),
        });
        pieces.collect()
    }

    /// The columns that it takes.
    pub(crate) fn columns(&self) -> usize {
        self.0.iter().map(|(_, text)| columns_of(text)).sum()
    }

    /// Cut to a number of columns, and says so.
    pub(crate) fn cut(self, columns: usize) -> Self {
        match self.columns() > columns {
            true => self.fitted(columns.saturating_sub(1)).and(Tone::Dim, "…"),
            false => self,
        }
    }

    /// Cut to a number of columns.
    pub(crate) fn fitted(self, columns: usize) -> Self {
        let mut left = columns;
        let mut pieces = Vec::new();
        for (tone, text) in self.0 {
            let mut fits = String::new();
            for c in text.chars() {
                let width = inert::width(c);
                if width > left {
                    left = 0;
                    break;
                }
                left -= width;
                fits.push(c);
            }
            pieces.push((tone, fits));
            if left == 0 {
                break;
            }
        }
        Self(pieces)
    }
}

/// The rows of a text that is inert already, broken behind a space where one is near. Every character
/// stands in one of them.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut taken = 0;
    for c in text.chars() {
        let width = inert::width(c);
        if taken + width > columns {
            let near = row.rfind(' ').map(|at| at + 1);
            let fits = |at: &usize| columns_of(&row[*at..]) + width <= columns;
            let near = near.filter(|at| *at >= row.len() / 3 && fits(at));
            let rest = near.map_or_else(String::new, |at| row.split_off(at));
            taken = columns_of(&rest);
            rows.push(std::mem::replace(&mut row, rest));
        }
        taken += width;
        row.push(c);
    }
    rows.push(row);
    rows
}

fn columns_of(text: &str) -> usize {
    text.chars().map(inert::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_loses_nothing_and_keeps_to_the_columns() {
        let spaced = "a person agrees to exactly this ".repeat(9);
        let mixed = "日本 語x ".repeat(30);
        for text in [
            "",
            "x",
            "no-space-anywhere-in-this-word",
            &spaced,
            &mixed,
            "   ",
        ] {
            for columns in 2..50 {
                let rows = wrapped(text, columns);
                assert_eq!(rows.concat(), text);
                for row in rows {
                    assert!(columns_of(&row) <= columns, "{row:?} in {columns}");
                }
            }
        }
        assert_eq!(
            wrapped("roles: release-manager", 16),
            ["roles: ", "release-manager"]
        );
    }
}
