//! Colour, where a person looks at a terminal that has it. `NO_COLOR` and its kin are obeyed.

use std::fmt::Display;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// Whether to colour one of the two output streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn stdout() -> Self {
        Self {
            on: AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
        }
    }

    pub(crate) fn stderr() -> Self {
        Self {
            on: AutoStream::choice(&std::io::stderr()) != ColorChoice::Never,
        }
    }

    /// No colour, wherever it goes.
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    fn with(self, style: Style, text: impl Display) -> String {
        match self.on {
            true => format!("{style}{text}{style:#}"),
            false => text.to_string(),
        }
    }

    pub(crate) fn good(self, text: impl Display) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn bad(self, text: impl Display) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn warn(self, text: impl Display) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    pub(crate) fn accent(self, text: impl Display) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }

    pub(crate) fn strong(self, text: impl Display) -> String {
        self.with(Style::new().bold(), text)
    }

    pub(crate) fn dim(self, text: impl Display) -> String {
        self.with(Style::new().dimmed(), text)
    }
}
