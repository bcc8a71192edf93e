//! Standard output: buffered, coloured where it is a terminal, and quiet when its reader leaves.

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write};

use serde::Serialize;

use crate::json;
use crate::paint::Paint;

/// Columns of a line that is not written to a terminal.
const PIPE_COLUMNS: usize = 120;
/// Narrower than this nothing can be laid out; the terminal may wrap.
const FEWEST_COLUMNS: usize = 60;

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
    let size = rustix::termios::tcgetwinsize(stdout);
    size.map_or(PIPE_COLUMNS, |size| {
        usize::from(size.ws_col).max(FEWEST_COLUMNS)
    })
}
