//! Packing a session that is closed.

use std::collections::BTreeSet;
use std::fs::File as DiskFile;
use std::io::{self, Read as _, Write};
use std::ops::ControlFlow;

use lodestar_core::canonical::{self, CanonicalError};
use lodestar_core::digest::{Digest, Hasher};
use lodestar_core::event::EventType;
use lodestar_core::key::PublicKey;
use lodestar_core::name::SessionId;
use lodestar_log::verify::is_live;
use lodestar_log::{
    BlobEncoding, Line, ProveError, ReadError, RecoveredRecord, SessionDir, SignedCheckpoint,
    Trust, each_line,
};
use thiserror::Error;

use super::header::{FORMAT, File, Header, Name};

/// What was packed: what a device signs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    /// SHA-256 of the whole bundle.
    pub bundle: Digest,
    /// How long it is.
    pub bytes: u64,
    /// The root over the session's events.
    pub root: Digest,
    /// How many there are.
    pub size: u64,
}

/// Why there is no bundle.
#[derive(Debug, Error)]
pub enum PackError {
    /// A file cannot be read, or the bundle not written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The log cannot be read.
    #[error("the log cannot be read: {0}")]
    Read(#[from] ReadError),
    /// The checkpoint is not signed with the device's log key.
    #[error(transparent)]
    Checkpoint(#[from] ProveError),
    /// The session goes on, or ended without being closed.
    #[error("session `{0}` is not closed; a run is shipped when it is over")]
    NotClosed(SessionId),
    /// Its checkpoint does not cover all its events.
    #[error("the checkpoint covers {proven} of {events} events")]
    Unproven {
        /// What it covers.
        proven: u64,
        /// What there is.
        events: u64,
    },
    /// Events or files changed while they were packed.
    #[error("the session changed while it was packed; try again")]
    Changed,
    /// Its head has no canonical form.
    #[error("the bundle's head: {0}")]
    Header(#[from] CanonicalError),
}

/// Packs a closed session. Its events are read twice, so that the bundle's head can say what comes.
pub fn pack(
    dir: &SessionDir,
    log_key: &PublicKey,
    out: &mut dyn Write,
) -> Result<Packed, PackError> {
    if is_live(dir)? {
        return Err(PackError::NotClosed(dir.session().clone()));
    }
    let signed = SignedCheckpoint::of_session(dir, &Trust::only(*log_key))?;
    let contents = Contents::of(dir, u64::MAX)?;
    let checkpoint = signed.checkpoint();
    if !contents.is_closed {
        return Err(PackError::NotClosed(dir.session().clone()));
    }
    if checkpoint.size != contents.events {
        return Err(PackError::Unproven {
            proven: checkpoint.size,
            events: contents.events,
        });
    }
    let names = contents.names.into_iter().filter(|name| match name {
        // A redaction takes such parts too, and only it; the record of what was cut off stays.
        Name::Recovered(_) => is_there(dir, name),
        _ => true,
    });
    let mut names: Vec<(String, Name)> = names.map(|name| (name.text(), name)).collect();
    names.sort();
    let mut files = Vec::with_capacity(names.len());
    for (text, name) in &names {
        let mut hasher = Hasher::new();
        let bytes = copy(dir, name, &mut |piece| {
            hasher.update(piece);
            Ok(())
        })?;
        files.push(File {
            bytes,
            name: text.clone(),
            sha256: hasher.finish(),
        });
    }
    let header = Header {
        files,
        format: FORMAT.to_owned(),
        project: dir.project().clone(),
        session: dir.session().clone(),
    };
    let mut line = canonical::to_vec(&header)?;
    line.push(b'\n');
    let mut whole = Hasher::new();
    let mut bytes = line.len() as u64;
    whole.update(&line);
    out.write_all(&line)?;
    for ((_, name), file) in names.iter().zip(&header.files) {
        let mut hasher = Hasher::new();
        let copied = copy(dir, name, &mut |piece| {
            hasher.update(piece);
            whole.update(piece);
            out.write_all(piece)
        })?;
        if copied != file.bytes || hasher.finish() != file.sha256 {
            return Err(PackError::Changed);
        }
        bytes += copied;
    }
    out.flush()?;
    Ok(Packed {
        bundle: whole.finish(),
        bytes,
        root: checkpoint.root,
        size: checkpoint.size,
    })
}

fn is_there(dir: &SessionDir, name: &Name) -> bool {
    dir.dir().join(name.path()).symlink_metadata().is_ok()
}

/// Reads a file of the session piece by piece.
fn copy(
    dir: &SessionDir,
    name: &Name,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut file = DiskFile::open(dir.dir().join(name.path()))?;
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(bytes);
        }
        take(&buffer[..read])?;
        bytes += read as u64;
    }
}

/// What the events of a session say of its files.
pub(super) struct Contents {
    pub(super) events: u64,
    /// Every file that belongs to it.
    pub(super) names: BTreeSet<Name>,
    /// Bytes that the blobs unpack to, counted each time that an event names one.
    pub(super) unpacked: u64,
    /// The event with the most structure, and how many bytes that is.
    pub(super) densest: (u64, u64),
    /// Whether the last event that is not the log's own closes it.
    pub(super) is_closed: bool,
}

impl Contents {
    /// Looks at no more than this many events.
    pub(super) fn of(dir: &SessionDir, most: u64) -> Result<Self, ReadError> {
        let mut contents = Self {
            events: 0,
            names: BTreeSet::from([Name::Events, Name::Checkpoint]),
            unpacked: 0,
            densest: (0, 0),
            is_closed: false,
        };
        each_line(dir, &mut |line| {
            contents.take(line);
            match contents.events < most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(contents)
    }

    fn take(&mut self, line: &Line<'_>) {
        let mut structure = line.payload().map_or(0, <[u8]>::len) as u64;
        // A list that cannot be read names nothing; whoever verifies the log says so.
        for blob in line.blobs().unwrap_or_default() {
            self.names.insert(Name::Blob(blob.sha256));
            self.unpacked = self.unpacked.saturating_add(blob.raw_bytes);
            if blob.encoding == BlobEncoding::Json {
                structure = structure.saturating_add(blob.raw_bytes);
            }
        }
        if structure > self.densest.1 {
            self.densest = (self.events, structure);
        }
        self.events += 1;
        match EventType::parse(line.kind().as_bytes()) {
            Some(EventType::SESSION_CLOSED) => self.is_closed = true,
            Some(EventType::LOG_RECOVERED) => {
                let record = line
                    .payload()
                    .map(serde_json::from_slice::<RecoveredRecord>);
                if let Some(Ok(record)) = record
                    && let Some(name) = Name::recovered(&record.kept)
                {
                    self.names.insert(name);
                }
            }
            Some(EventType::LOG_REDACTED | EventType::LOG_ANCHORED) => {}
            _ => self.is_closed = false,
        }
    }
}
