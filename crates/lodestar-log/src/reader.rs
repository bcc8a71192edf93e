//! Reading a session as it stands, one event at a time, also while it is being written.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use lodestar_core::canonical;
use lodestar_core::digest::Digest;
use lodestar_core::time::Timestamp;
use serde_json::Value;

use crate::blob::{self, RestoreError};
use crate::disk;
use crate::layout::{ProjectLog, SessionDir};
use crate::line::{Body, Line, LineError, MAX_LINE_BYTES, SALT_BYTES};

/// How much is read at a time.
const READ_BYTES: usize = 64 << 10;

/// One event, read.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its place in the session.
    pub seq: u64,
    /// When it was written.
    pub time: Timestamp,
    /// Its type, `name@version`.
    pub kind: String,
    /// Who caused it.
    pub actor: String,
    /// Earlier events that caused it.
    pub parents: Vec<u64>,
    /// Its leaf hash.
    pub leaf_hash: Digest,
    /// Where its line starts.
    pub offset: u64,
    /// What it says.
    pub payload: Payload,
    /// What the hash of its payload starts with, which nobody can guess; gone where it was redacted.
    pub salt: Option<[u8; SALT_BYTES]>,
}

/// What an event says.
#[derive(Debug, Clone)]
pub enum Payload {
    /// Canonical JSON; large values may be in blobs.
    Present(Vec<u8>),
    /// Taken away by this `log.redacted@1` event.
    Redacted {
        /// Which.
        by: u64,
    },
}

impl Event {
    fn new(line: &Line<'_>, offset: u64) -> Self {
        Self {
            seq: line.seq,
            time: line.time,
            kind: line.kind().to_owned(),
            actor: line.actor().to_owned(),
            parents: line.parents().collect(),
            leaf_hash: line.leaf_hash(),
            offset,
            payload: match line.body {
                Body::Payload { bytes, .. } => Payload::Present(bytes.to_vec()),
                Body::Tombstone { redaction } => Payload::Redacted { by: redaction },
            },
            salt: match line.body {
                Body::Payload { salt, .. } => Some(salt),
                Body::Tombstone { .. } => None,
            },
        }
    }

    /// The payload as it stands in the line; `None` where it was redacted.
    pub fn inline(&self) -> Result<Option<Value>, RestoreError> {
        match &self.payload {
            Payload::Present(bytes) => canonical::parse(bytes)
                .map(Some)
                .map_err(|e| RestoreError::Payload(e.to_string())),
            Payload::Redacted { .. } => Ok(None),
        }
    }

    /// The payload with the values that lie in blobs back in their places.
    pub fn whole(&self, dir: &SessionDir) -> Result<Option<Value>, RestoreError> {
        match &self.payload {
            Payload::Present(bytes) => blob::restore(&dir.blobs_dir(), bytes).map(Some),
            Payload::Redacted { .. } => Ok(None),
        }
    }
}

/// Why reading cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The next line is none.
    #[error("byte {offset}: {error}")]
    Line {
        /// Where it starts.
        offset: u64,
        /// What is wrong with it.
        error: LineError,
    },
}

/// Reads a session from its beginning. It checks the form of each line, not the chain; that is
/// what verification is for.
#[derive(Debug)]
pub struct Reader {
    dir: SessionDir,
    file: File,
    /// Bytes read and not yet given out, from `at` on.
    buffer: Vec<u8>,
    at: usize,
    /// The file offset of `buffer[at]`.
    offset: u64,
    /// The event that comes next; after a redaction the file is a new one, and reading goes on here.
    next: u64,
}

impl Reader {
    /// Opens a session.
    pub fn open(dir: &SessionDir) -> io::Result<Self> {
        Ok(Self {
            file: disk::open_read(&dir.events_path())?,
            dir: dir.clone(),
            buffer: Vec::new(),
            at: 0,
            offset: 0,
            next: 0,
        })
    }

    /// The next event; `None` when there is none yet. A line that is still being written counts
    /// as not there; asking again later finds it.
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        let mut looked_again = false;
        loop {
            let Some(len) = self.buffer_line()? else {
                if self.changed_on_disk()? {
                    self.start_over()?;
                    continue;
                }
                return Ok(None);
            };
            let offset = self.offset;
            let parsed = Line::parse(&self.buffer[self.at..self.at + len])
                .map(|line| Event::new(&line, offset));
            let event = match parsed {
                Ok(event) => event,
                // A recovery may have cut off what was read ahead, a redaction replaced the file.
                Err(_) if !looked_again => {
                    looked_again = true;
                    self.start_over()?;
                    continue;
                }
                Err(error) => return Err(ReadError::Line { offset, error }),
            };
            self.at += len + 1;
            self.offset += len as u64 + 1;
            if event.seq >= self.next {
                self.next = event.seq + 1;
                return Ok(Some(event));
            }
        }
    }

    /// Bytes behind the last whole line.
    pub fn unfinished(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// Reads until the buffer holds a whole line and gives its length.
    fn buffer_line(&mut self) -> Result<Option<usize>, ReadError> {
        let mut searched = 0;
        loop {
            let waiting = &self.buffer[self.at..];
            if let Some(found) = memchr::memchr(b'\n', &waiting[searched..]) {
                return Ok(Some(searched + found));
            }
            searched = waiting.len();
            if searched > MAX_LINE_BYTES {
                return Err(ReadError::Line {
                    offset: self.offset,
                    error: LineError::TooLong { bytes: searched },
                });
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let mut piece = (&self.file).take(READ_BYTES as u64);
            if piece.read_to_end(&mut self.buffer)? == 0 {
                return Ok(None);
            }
        }
    }

    /// Whether the file at the path is another than the one that is open, or shorter than what
    /// was read of it.
    fn changed_on_disk(&self) -> io::Result<bool> {
        let open = self.file.metadata()?;
        let there = match std::fs::metadata(self.dir.events_path()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            there => there?,
        };
        let read = self.offset + (self.buffer.len() - self.at) as u64;
        Ok(open.ino() != there.ino() || open.dev() != there.dev() || there.len() < read)
    }

    /// Reads the file that is there now. What was given out already is passed over.
    fn start_over(&mut self) -> io::Result<()> {
        self.file = disk::open_read(&self.dir.events_path())?;
        self.buffer.clear();
        self.at = 0;
        self.offset = 0;
        Ok(())
    }
}

impl Iterator for Reader {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

/// Shows each line of a session as it stands, until told to stop: for whoever needs its very bytes. It
/// checks the form of each line, not the chain.
pub fn each_line(
    dir: &SessionDir,
    look: &mut dyn FnMut(&Line<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    lines_of(&dir.events_path(), look)
}

/// Shows each record of a project's ledger as it stands, until told to stop.
pub fn each_record(
    log: &ProjectLog,
    look: &mut dyn FnMut(&Line<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    lines_of(&log.ledger_path(), look)
}

fn lines_of(
    path: &Path,
    look: &mut dyn FnMut(&Line<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let mut file = BufReader::with_capacity(READ_BYTES, disk::open_read(path)?);
    let (mut line, mut offset) = (Vec::new(), 0);
    loop {
        line.clear();
        let most = MAX_LINE_BYTES as u64 + 1;
        let read = (&mut file).take(most).read_until(b'\n', &mut line)?;
        // What has no end is still being written, or torn.
        if line.pop() != Some(b'\n') {
            return match read > MAX_LINE_BYTES {
                true => Err(ReadError::Line {
                    offset,
                    error: LineError::TooLong { bytes: read },
                }),
                false => Ok(()),
            };
        }
        let parsed = Line::parse(&line).map_err(|error| ReadError::Line { offset, error })?;
        if look(&parsed).is_break() {
            return Ok(());
        }
        offset += read as u64;
    }
}
