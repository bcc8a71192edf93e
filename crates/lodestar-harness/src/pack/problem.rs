//! What is wrong with a pack, and where.

use std::fmt;

use lodestar_policy::Location;
use serde::Serialize;

/// One thing that is wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The file, below the pack's folder.
    pub file: String,
    /// The line, from 1; none where the whole file is meant.
    pub line: Option<usize>,
    /// The character of the line, from 1.
    pub column: Option<usize>,
    /// What is wrong. It may quote the file: show it inert.
    pub problem: String,
}

impl Problem {
    /// With a file as a whole.
    pub(super) fn of_file(file: &str, problem: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            problem: problem.into(),
        }
    }

    /// At a place of a file.
    pub(super) fn at(file: &str, text: &str, offset: usize, problem: impl Into<String>) -> Self {
        let at = Location::of(text, offset);
        Self {
            file: file.to_owned(),
            line: Some(at.line),
            column: Some(at.column),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, problem, .. } = self;
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "{file}:{line}:{column}: {problem}"),
            _ => write!(f, "{file}: {problem}"),
        }
    }
}

/// Reads TOML as a type; a key that means nothing is a problem at its place.
pub(super) fn read<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, Problem> {
    toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        Problem::at(file, text, offset, error.message())
    })
}
