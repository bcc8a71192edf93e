//! Shell commands that a document shows: lines of shell blocks, and lines behind a prompt.

use super::found::{Found, Kind};

/// Lines that one command may be continued over, and its longest text in bytes.
const MAX_CONTINUED: usize = 16;
const MAX_COMMAND: usize = 2048;

/// Reads commands line by line.
pub(super) struct Commands {
    found: Found,
    fresh: Vec<String>,
    block: Block,
    /// A command whose line ended in a backslash, and how many lines it has.
    open: Option<(String, usize)>,
}

/// The code block that lines stand in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    /// Of another language, or of none: only what stands behind a prompt is a command.
    Other,
    /// A shell's: every line is a command.
    Shell,
    /// A session: what has no prompt is output.
    Session,
}

impl Commands {
    pub(super) fn new() -> Self {
        Self {
            found: Found::new(Kind::Command),
            fresh: Vec::new(),
            block: Block::None,
            open: None,
        }
    }

    pub(super) fn begin(&mut self, language: &str) {
        self.finish();
        self.block = match language {
            "shell" => Block::Shell,
            "console" => Block::Session,
            _ => Block::Other,
        };
    }

    pub(super) fn end(&mut self) {
        self.finish();
        self.block = Block::None;
    }

    pub(super) fn prose(&mut self, line: &str) {
        self.line(line);
    }

    pub(super) fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some((mut command, count)) = self.open.take() {
            command.push(' ');
            command.push_str(line.strip_prefix("> ").unwrap_or(line));
            return self.take(command, count + 1);
        }
        let prompt = line.strip_prefix("$ ").or_else(|| {
            let root = self.block == Block::Session;
            line.strip_prefix("# ").filter(|_| root)
        });
        if let Some(command) = prompt {
            if self.block == Block::Shell {
                self.block = Block::Session;
            }
            self.take(command.trim_start().to_owned(), 1);
        } else if self.block == Block::Shell && !line.is_empty() && !line.starts_with('#') {
            self.take(line.to_owned(), 1);
        }
    }

    fn take(&mut self, mut command: String, lines: usize) {
        let room = command.len() < MAX_COMMAND && lines < MAX_CONTINUED;
        let continued = command.ends_with('\\');
        if continued {
            command.pop();
            command.truncate(command.trim_end().len());
        }
        self.open = Some((command, lines));
        if !(continued && room) {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if let Some((command, _)) = self.open.take().filter(|(text, _)| !text.is_empty()) {
            self.found.command(&command);
            self.fresh.push(command);
        }
    }

    /// The commands that were completed since the last time.
    pub(super) fn fresh(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh)
    }

    pub(super) fn into_found(mut self) -> Found {
        self.finish();
        self.found
    }
}
