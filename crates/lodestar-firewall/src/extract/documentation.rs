//! Documentation: what a document says there is, item by item.
//!
//! Headings, shell commands, dependencies and function signatures of Markdown, reStructuredText and
//! plain text; dependencies of package manifests; signatures of source files. Each item is a claim
//! `documents/<kind>/…` about the document: that it says so, and nothing about whether it is so. A
//! command in a document is data here as everywhere.

mod commands;
mod dependencies;
mod found;
mod manifests;
mod markup;
mod signatures;

#[cfg(test)]
mod tests;

use lodestar_core::chain::Observation;

use self::commands::Commands;
use self::dependencies::Dependencies;
use self::found::{Found, Kind};
use self::manifests::Manifest;
use self::markup::{Markup, Piece};
use self::signatures::Signatures;
use super::language::{language, name_and_extension};
use super::lines::{lines, texts};
use super::subject::{Reading, Thing};
use super::tool_words::may_read;
use super::{ContentDraft, Extractor, ToolCall};

/// Claims about a document that was read: `documents/heading/…`, `documents/command/…`,
/// `documents/dependency/…`, `documents/signature/…`.
#[derive(Debug, Clone, Copy)]
pub struct Documentation;

impl Extractor for Documentation {
    fn name(&self) -> &'static str {
        "documentation"
    }

    fn applies(&self, call: &ToolCall<'_>, observation: &Observation) -> bool {
        !call.is_error
            && may_read(call.tool.as_str())
            && Format::of(&Reading::of(call).thing).is_some()
            && texts(observation).next().is_some()
    }

    fn extract(&self, call: &ToolCall<'_>, observation: &Observation) -> Vec<ContentDraft> {
        let reading = Reading::of(call);
        let Some(format) = Format::of(&reading.thing) else {
            return Vec::new();
        };
        let mut items = Items::new();
        for (_, text) in texts(observation) {
            items.read(format, text);
        }
        items.claims(&reading)
    }
}

/// How a document is written, as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Markup(Markup),
    Manifest(Manifest),
    Source(&'static str),
}

impl Format {
    /// `None` for what has no form that is known here.
    fn of(thing: &Thing) -> Option<Self> {
        let path = match thing {
            Thing::File(path) => path.as_str(),
            Thing::Resource(uri) => uri.split(['?', '#']).next().unwrap_or(uri),
            Thing::CallResult => return None,
        };
        let (name, extension) = name_and_extension(path);
        if let Some(manifest) = Manifest::of_name(name) {
            return Some(Self::Manifest(manifest));
        }
        let plain = Self::Markup(Markup::Plain);
        match (extension.map(language), thing) {
            (Some(Some("markdown")), _) => Some(Self::Markup(Markup::Markdown)),
            (Some(Some("restructuredtext")), _) => Some(Self::Markup(Markup::Rest)),
            (Some(Some("text")), _) => Some(plain),
            (Some(Some(language)), _) if Signatures::knows(language) => {
                Some(Self::Source(language))
            }
            // Pages reach an agent as Markdown, whatever their address ends in.
            (_, Thing::Resource(_)) => Some(Self::Markup(Markup::Markdown)),
            (None, _) => Some(Self::Markup(Markup::Markdown)),
            (Some(_), _) => None,
        }
    }
}

/// Everything found in one document.
struct Items {
    headings: Found,
    commands: Commands,
    dependencies: Dependencies,
    signatures: Signatures,
}

impl Items {
    fn new() -> Self {
        Self {
            headings: Found::new(Kind::Heading),
            commands: Commands::new(),
            dependencies: Dependencies::new(),
            signatures: Signatures::new(),
        }
    }

    fn read(&mut self, format: Format, text: &str) {
        match format {
            Format::Markup(markup) => {
                markup::walk(text, markup, &mut |piece| self.piece(piece));
                // A command that the end of the text cuts off is not continued by the next text.
                self.piece(Piece::CodeEnd);
            }
            Format::Manifest(manifest) => {
                self.dependencies.begin(manifest);
                if manifest == Manifest::Npm {
                    self.dependencies.whole(text);
                } else {
                    lines(text).for_each(|line| self.dependencies.line(line));
                }
                self.dependencies.end();
            }
            Format::Source(language) => {
                self.signatures.begin(language);
                lines(text).for_each(|line| self.signatures.line(line));
                self.signatures.end();
            }
        }
    }

    fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Heading { level, text } => self.headings.heading(level, text),
            Piece::Prose(line) => self.commands.prose(line),
            Piece::CodeStart { tag } => {
                let language = language(tag).unwrap_or("");
                self.commands.begin(language);
                self.signatures.begin(language);
                if let Some(manifest) = Manifest::of_tag(tag) {
                    self.dependencies.begin(manifest);
                }
            }
            Piece::Code(line) => {
                self.commands.line(line);
                self.signatures.line(line);
                self.dependencies.line(line);
            }
            Piece::CodeEnd => {
                self.commands.end();
                self.signatures.end();
                self.dependencies.end();
            }
        }
        for command in self.commands.fresh() {
            self.dependencies.command(&command);
        }
    }

    fn claims(self, reading: &Reading) -> Vec<ContentDraft> {
        [
            self.headings,
            self.commands.into_found(),
            self.dependencies.into_found(),
            self.signatures.into_found(),
        ]
        .into_iter()
        .flat_map(|found| found.claims(reading))
        .collect()
    }
}
