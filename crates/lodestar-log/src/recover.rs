//! After a crash: how far a file is whole, and what to do with the rest.
//!
//! Everything from the first byte that is not a valid continuation is copied aside, the file is
//! cut back, and a record says so. Nothing is thrown away, and nothing that a checkpoint covers
//! may be missing: that is no crash.

use std::fs::File;
use std::io::{self, BufRead as _, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use lodestar_core::digest::{Digest, Hasher};
use lodestar_core::event::EventType;
use lodestar_core::name::is_valid_name;
use serde::{Deserialize, Serialize};

use crate::chain::{Anchor, Chain, Link, Tip};
use crate::disk;
use crate::line::{Line, MAX_LINE_BYTES};
use crate::problem::{Problem, Problems};
use crate::scan;

/// What a recovery cut off: the payload of `log.recovered@1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveredRecord {
    /// Where the file was cut.
    pub offset: u64,
    /// How many bytes were taken off.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: Digest,
    /// The file they were moved to, in the session's `recovered/` (or beside the ledger).
    pub kept: String,
}

impl RecoveredRecord {
    /// Whether what was cut off is still there, unchanged.
    pub(crate) fn check_kept(&self, dir: &Path) -> Result<(), String> {
        if !is_valid_name(self.kept.as_bytes()) {
            return Err("its name is not a file name".to_owned());
        }
        let mut file = disk::open_read(&dir.join(&self.kept)).map_err(|e| e.to_string())?;
        let mut hash = HashWriter(Hasher::new());
        let bytes = io::copy(&mut file, &mut hash).map_err(|e| e.to_string())?;
        match bytes == self.bytes && hash.0.finish() == self.sha256 {
            true => Ok(()),
            false => Err("it does not have the recorded hash".to_owned()),
        }
    }
}

struct HashWriter(Hasher);

impl io::Write for HashWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.update(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How far a file is a valid chain, and the first problem, if it is not to its end.
pub(crate) struct Prefix {
    pub(crate) tip: Tip,
    /// Whether there are redactions among the events.
    pub(crate) redacted: bool,
    pub(crate) problem: Option<Problem>,
}

/// Follows the chain until the first problem or the end. What lies behind the `proven` events
/// nobody has signed yet, so it is looked at more closely.
pub(crate) fn valid_prefix(
    file: &File,
    name: &str,
    names: (&str, &str),
    opening: Digest,
    anchors: Vec<Anchor>,
    proven: u64,
) -> io::Result<Prefix> {
    let mut chain = Chain::new(name, Some(opening), anchors);
    let mut tip = chain.tip.clone();
    let mut problems = Problems::default();
    let mut redacted = false;
    let len = file.metadata()?.len();
    scan::scan(
        file,
        len,
        |_, line| {
            let mut link = Link::new(line, names.0, names.1);
            link.check_unproven(line, proven);
            link
        },
        |entry| {
            match entry.outcome {
                Ok(mut link) => {
                    let end = entry.offset + entry.bytes + 1;
                    chain.follow(&mut link, entry.offset, end, &mut problems);
                    redacted |= link
                        .record
                        .is_some_and(|record| record.kind == EventType::LOG_REDACTED.as_str());
                }
                Err(error) => chain.unreadable(entry.offset, error, &mut problems),
            }
            if !problems.is_empty() {
                return ControlFlow::Break(());
            }
            tip = chain.tip.clone();
            ControlFlow::Continue(())
        },
    )?;
    if problems.is_empty() {
        chain.end(&mut problems);
    }
    Ok(Prefix {
        tip,
        redacted,
        problem: problems.finish().into_iter().next(),
    })
}

/// Whether whole, well-formed lines follow the first bad one behind `end`. A process that was
/// killed leaves none: it tears the last line and nothing else.
pub(crate) fn lines_follow(mut file: &File, end: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(end))?;
    let mut lines = io::BufReader::new(file);
    let mut line = Vec::new();
    for number in 0u64.. {
        line.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        if (&mut lines).take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        let whole = line
            .strip_suffix(b"\n")
            .is_some_and(|line| Line::parse(line).is_ok());
        if number > 0 && whole {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Moves everything from `end` on into `dir/<stem>-<end>` and cuts the file there. `None` where
/// there is nothing to cut.
pub(crate) fn set_aside(
    mut file: &File,
    end: u64,
    dir: &Path,
    stem: &str,
) -> io::Result<Option<RecoveredRecord>> {
    let len = file.metadata()?.len();
    if len <= end {
        return Ok(None);
    }
    disk::create_dirs(dir)?;
    let (mut kept, name) = create_unused(dir, &format!("{stem}-{end}"))?;
    file.seek(SeekFrom::Start(end))?;
    let mut hash = Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
        kept.write_all(&buffer[..n])?;
    }
    kept.sync_all()?;
    disk::sync_dir(dir)?;
    // Only now that the copy is safe.
    file.set_len(end)?;
    file.sync_all()?;
    Ok(Some(RecoveredRecord {
        offset: end,
        bytes: len - end,
        sha256: hash.finish(),
        kept: name,
    }))
}

fn create_unused(dir: &Path, stem: &str) -> io::Result<(File, String)> {
    for attempt in 1u32.. {
        let name = match attempt {
            1 => stem.to_owned(),
            n => format!("{stem}.{n}"),
        };
        if dir.join(&name).symlink_metadata().is_ok() {
            continue;
        }
        match disk::create_new(&dir.join(&name)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((file?, name)),
        }
    }
    Err(io::Error::other("no unused name is left"))
}
