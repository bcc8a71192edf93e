//! After a crash: how far a file is whole, and what to do with the rest.
//!
//! Everything from the first byte that is not a valid continuation is copied aside, the file is
//! cut back, and a record says so. Nothing is thrown away, and nothing that a checkpoint covers
//! may be missing: that is no crash.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use lodestar_core::digest::{Digest, Hasher};
use serde::{Deserialize, Serialize};

use crate::chain::{Anchor, Chain, Link, Tip};
use crate::disk;
use crate::layout::ProjectLog;
use crate::ledger::LEDGER_NAME;
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

/// How far a file is a valid chain, and the first problem, if it is not to its end.
pub(crate) struct Prefix {
    pub(crate) tip: Tip,
    pub(crate) problem: Option<Problem>,
}

/// Follows the chain until the first problem, the `limit`-th event, or the end.
pub(crate) fn valid_prefix(
    file: &File,
    name: &str,
    names: (&str, &str),
    opening: Digest,
    anchors: Vec<Anchor>,
    limit: u64,
) -> io::Result<Prefix> {
    let mut chain = Chain::new(name, Some(opening), anchors);
    let mut tip = chain.tip.clone();
    let mut problems = Problems::default();
    let len = file.metadata()?.len();
    scan::scan(
        file,
        len,
        |_, line| Link::new(line, names.0, names.1),
        |entry| {
            if tip.tree.size() >= limit {
                return ControlFlow::Break(());
            }
            match entry.outcome {
                Ok(mut link) => {
                    let end = entry.offset + entry.bytes + 1;
                    chain.follow(&mut link, entry.offset, end, &mut problems);
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
        problem: problems.finish().into_iter().next(),
    })
}

/// The ledger's first `size` records.
pub(crate) fn covered_prefix(log: &ProjectLog, size: u64, genesis: Digest) -> io::Result<Tip> {
    let file = File::open(log.ledger_path())?;
    let names = (log.project().as_str(), LEDGER_NAME);
    Ok(valid_prefix(
        &file,
        crate::layout::LEDGER,
        names,
        genesis,
        Vec::new(),
        size,
    )?
    .tip)
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
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(dir.join(&name))
        {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((file?, name)),
        }
    }
    Err(io::Error::other("no unused name is left"))
}
