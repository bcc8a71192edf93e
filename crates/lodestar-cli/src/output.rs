//! Standard output: buffered, coloured where it is a terminal, and quiet when its reader leaves.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write};
use std::os::fd::AsFd;

use serde::Serialize;

use crate::json;
use crate::paint::Paint;

/// Columns of a line that is not written to a terminal.
const PIPE_COLUMNS: usize = 120;
/// Narrower than this tables cannot be laid out; the terminal may wrap.
const FEWEST_COLUMNS: usize = 60;
/// Cards are laid out down to this.
const NARROWEST_CARD: usize = 20;
/// Columns of a card where nobody knows how wide the terminal is that will show it.
const CARD_COLUMNS: usize = 80;

/// Where results go.
pub(crate) struct Out {
    stdout: BufWriter<Stdout>,
    /// The reader has left: a pager that was quit, a `head` that has enough. What is still written
    /// goes nowhere, and the command's exit code stays its own.
    closed: bool,
    pub(crate) is_terminal: bool,
    pub(crate) paint: Paint,
    pub(crate) columns: usize,
}

impl Out {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        Self {
            is_terminal: stdout.is_terminal(),
            columns: columns(&stdout),
            stdout: BufWriter::new(stdout),
            closed: false,
            paint: Paint::stdout(),
        }
    }

    /// The columns of a card: what others wrote must not be wrapped by the terminal. A pipe most likely
    /// ends in a pager on the same terminal.
    pub(crate) fn card_columns(&self) -> usize {
        let shown = match self.is_terminal {
            true => real_columns(io::stdout()),
            false => terminal_columns(),
        };
        card(shown)
    }

    /// The columns of a card that is shown on the controlling terminal, wherever the output goes.
    pub(crate) fn columns_of_terminal() -> usize {
        card(terminal_columns())
    }

    /// The columns of a list of cards: those of the terminal, or as many as it likes.
    pub(crate) fn list_columns(&self) -> usize {
        match self.is_terminal {
            true => self.card_columns(),
            false => self.columns,
        }
    }

    /// Whether anyone still reads. Streams stop when nobody does.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// One JSON document on one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        writeln!(self, "{}", json::compact(value))
    }

    fn quietly<T>(&mut self, result: io::Result<T>, otherwise: T) -> io::Result<T> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(otherwise)
            }
            result => result,
        }
    }
}

impl Write for Out {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(buf.len());
        }
        let written = self.stdout.write(buf);
        self.quietly(written, buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.stdout.flush();
        self.quietly(flushed, ())
    }
}

fn columns(stdout: &Stdout) -> usize {
    if !stdout.is_terminal() {
        return PIPE_COLUMNS;
    }
    real_columns(stdout).map_or(PIPE_COLUMNS, |columns| columns.max(FEWEST_COLUMNS))
}

fn card(columns: Option<usize>) -> usize {
    columns.map_or(CARD_COLUMNS, |columns| columns.max(NARROWEST_CARD))
}

fn terminal_columns() -> Option<usize> {
    real_columns(File::open("/dev/tty").ok()?)
}

/// The columns that a terminal says it has.
fn real_columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
