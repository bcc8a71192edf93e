//! What is wrong with a policy, and where.

use std::fmt;
use std::fmt::Write as _;

use lodestar_core::name::PolicyId;
use serde::Serialize;

use crate::location::Location;
use crate::text::{inert, push_inert};

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gravity {
    /// The policy does not load.
    Error,
    /// It loads, and probably does not say what was meant.
    Warning,
}

impl Gravity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Something that is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How grave.
    pub gravity: Gravity,
    /// In which policy; none where the text could not be read.
    pub policy: Option<PolicyId>,
    /// On which line, from 1.
    pub line: usize,
    /// At which character of the line, from 1.
    pub column: usize,
    /// How many characters it spans.
    pub width: usize,
    /// What is wrong, inert.
    pub message: String,
    /// What to do about it, inert.
    pub help: Option<String>,
}

impl Finding {
    pub(crate) fn new(
        gravity: Gravity,
        policy: Option<PolicyId>,
        source: &str,
        (offset, len): (usize, usize),
        message: &str,
    ) -> Self {
        let Location { line, column } = Location::of(source, offset);
        // A caret below several lines would say less than one below the first.
        let spanned = source.get(offset..offset.saturating_add(len));
        let first = spanned.and_then(|text| text.lines().next());
        Self {
            gravity,
            policy,
            line,
            column,
            width: first.map_or(1, |text| text.chars().count().max(1)),
            message: inert(message),
            help: None,
        }
    }

    pub(crate) fn with_help(mut self, help: impl AsRef<str>) -> Self {
        self.help = Some(inert(help.as_ref()));
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gravity = self.gravity.as_str();
        write!(f, "{gravity} at {}:{}", self.line, self.column)?;
        if let Some(policy) = &self.policy {
            write!(f, " in policy `{}`", policy.shown())?;
        }
        write!(f, ": {}", self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// The findings with the lines they are about, for a person to read.
pub fn render(findings: &[Finding], source: &str, file: &str) -> String {
    let file = inert(file);
    let mut text = String::new();
    for finding in findings {
        let gravity = finding.gravity.as_str();
        let _ = writeln!(text, "{gravity}: {}", finding.message);
        let line = source.lines().nth(finding.line - 1).unwrap_or_default();
        let number = finding.line.to_string();
        let gutter = " ".repeat(number.len());
        let _ = write!(text, "{gutter}--> {file}:{number}:{}", finding.column);
        if let Some(policy) = &finding.policy {
            let _ = write!(text, " in policy `{}`", policy.shown());
        }
        let (shown, indent, width) = excerpt(line, finding.column, finding.width);
        let carets = "^".repeat(width.max(1));
        let indent = " ".repeat(indent);
        let _ = write!(
            text,
            "\n{gutter} |\n{number} | {shown}\n{gutter} | {indent}{carets}\n"
        );
        if let Some(help) = &finding.help {
            let _ = writeln!(text, "{gutter} = help: {help}");
        }
        text.push('\n');
    }
    text
}

/// Longest part of a source line that is shown, in characters of the source.
const MAX_SHOWN: usize = 160;

/// A line made inert, how far to indent below it, and how many carets to draw.
fn excerpt(line: &str, column: usize, width: usize) -> (String, usize, usize) {
    let (mut shown, mut indent, mut carets) = (String::new(), 0, 0);
    let first = column.saturating_sub(MAX_SHOWN / 2);
    for (at, c) in line.chars().enumerate().skip(first).take(MAX_SHOWN) {
        let before = shown.chars().count();
        push_inert(&mut shown, c);
        let took = shown.chars().count() - before;
        if at + 1 < column {
            indent += took;
        } else if at + 1 < column + width {
            carets += took;
        }
    }
    (shown, indent, carets)
}
