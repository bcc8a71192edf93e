//! Writing a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write};
use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::canonical;
use lodestar_core::digest::{Digest, Hasher, sha256};
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::merkle::{ProofError, Tree};
use lodestar_core::note::{NoteError, NoteKey};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::{
    BlobRef, Body, Disclosure, Line, ProveError, ProvenEvent, ReadError, SessionDir,
    SignedCheckpoint, Trust, each_line, each_record,
};
use serde_json::Value;
use thiserror::Error;

use super::{
    BlobPart, End, EventPart, FORMAT, Forms, Head, Key, LedgerPart, MAX_BLOB, Piece, RecordPart,
    Without, seal,
};
use crate::model::Report;

/// Why there is no bundle.
#[derive(Debug, Error)]
pub enum BundleError {
    /// Something cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The log cannot be read.
    #[error("the log cannot be read: {0}")]
    Read(#[from] ReadError),
    /// A checkpoint does not verify.
    #[error(transparent)]
    Prove(#[from] ProveError),
    /// No event is under a checkpoint yet.
    #[error(
        "nothing is proven yet: no signed checkpoint covers any event of the session; try again when it has gone on"
    )]
    NothingProven,
    /// The log is another than the one that was reported on.
    #[error("the log changed since it was reported on; try again")]
    Changed,
    /// Who checks the bundle would not know who put it together.
    #[error(
        "the key that would seal it is not the log's: only the installation that wrote a log can vouch for proofs of it"
    )]
    NotTheLogsKey,
    /// The seal cannot be made.
    #[error("it cannot be sealed: {0}")]
    Seal(#[from] NoteError),
}

/// What went into a bundle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Events.
    pub events: u64,
    /// Of them, without their payload because it is above the ceiling.
    pub withheld: u64,
    /// Events that no checkpoint covers yet.
    pub unproven: u64,
    /// Blobs.
    pub blobs: u64,
    /// Blobs that are too large to travel.
    pub left_out: u64,
}

/// Writes the events that a report cites, with their proofs, sealed with the key of the log.
pub fn write(
    report: &Report,
    dir: &SessionDir,
    trust: &Trust,
    key: &SecretKey,
    out: &mut dyn Write,
) -> Result<Written, BundleError> {
    if !trust.log_keys.contains(&key.public()) {
        return Err(BundleError::NotTheLogsKey);
    }
    let signed = SignedCheckpoint::of_session(dir, trust)?;
    if signed.checkpoint().size == 0 {
        return Err(BundleError::NothingProven);
    }
    let mut sheet = Sheet {
        out,
        hasher: Hasher::new(),
    };
    sheet.line(&Piece::Bundle(Head {
        format: FORMAT.to_owned(),
        project: dir.project().clone(),
        session: dir.session().clone(),
        ceiling: report.ceiling,
        report: Forms::of(report)?,
        cited: report.cited().into_iter().collect(),
    }))?;
    sheet.line(&Piece::Keys(keys(dir, trust)))?;
    sheet.line(&Piece::Checkpoint(signed.note().to_owned()))?;
    sheet.line(&Piece::Ledger(ledger(dir, trust)?))?;
    let mut written = Written::default();
    let blobs = events(report, dir, &signed, &mut sheet, &mut written)?;
    for name in blobs {
        match stored(dir, name)? {
            Some(bytes) => {
                written.blobs += 1;
                sheet.line(&Piece::Blob(BlobPart {
                    sha256: name,
                    base64: BASE64.encode(bytes),
                }))?;
            }
            None => written.left_out += 1,
        }
    }
    let end = End {
        events: written.events,
        unproven: written.unproven,
        blobs: written.blobs,
        left_out: written.left_out,
        elsewhere: elsewhere(report),
    };
    sheet.line(&Piece::End(end))?;
    let digest = std::mem::replace(&mut sheet.hasher, Hasher::new()).finish();
    let seal = seal::make(dir.project(), dir.session(), digest, key)?;
    sheet.line(&Piece::Seal(seal))?;
    Ok(written)
}

/// Changes of beliefs that the report tells and that other sessions hold.
fn elsewhere(report: &Report) -> u64 {
    let moves = report.beliefs.list.iter().flat_map(|one| &one.moves);
    moves.filter(|one| one.session.is_some()).count() as u64
}

struct Sheet<'a> {
    out: &'a mut dyn Write,
    hasher: Hasher,
}

impl Sheet<'_> {
    fn line(&mut self, piece: &Piece) -> io::Result<()> {
        let mut bytes = canonical::to_vec(piece).map_err(io::Error::other)?;
        bytes.push(b'\n');
        self.hasher.update(&bytes);
        self.out.write_all(&bytes)
    }
}

fn keys(dir: &SessionDir, trust: &Trust) -> Vec<Key> {
    let log_keys = trust.log_keys.iter();
    let log_keys = log_keys.filter_map(|key| NoteKey::ed25519(&dir.origin(), key).ok());
    log_keys
        .map(|key| Key {
            signs: "checkpoints".to_owned(),
            vkey: key.to_string(),
        })
        .collect()
}

/// The ledger's head, the record that opened the session, and the latest that closed it.
fn ledger(dir: &SessionDir, trust: &Trust) -> Result<LedgerPart, BundleError> {
    let log = dir.project_log();
    let head = std::fs::read_to_string(log.ledger_checkpoint_path())?;
    let signed = SignedCheckpoint::open(&head, trust)?;
    let size = signed.checkpoint().size;
    let (mut leaves, mut kept) = (Vec::new(), BTreeMap::new());
    each_record(&log, &mut |record| {
        if record.seq >= size {
            return ControlFlow::Break(());
        }
        leaves.push(record.leaf_hash());
        let place = match EventType::parse(record.kind().as_bytes()) {
            Some(EventType::LEDGER_SESSION_OPENED) => Some(0),
            Some(EventType::LEDGER_SESSION_CLOSED) => Some(1),
            _ => None,
        };
        if let Some(place) = place
            && names(record, dir)
        {
            let event = ProvenEvent::of(record, Disclosure::Payload);
            kept.insert(place, (record.seq, event));
        }
        ControlFlow::Continue(())
    })?;
    let tree = Tree::of(leaves);
    if tree.size() != size || tree.root() != signed.checkpoint().root {
        return Err(BundleError::Changed);
    }
    let records = kept.into_values().map(|(seq, event)| {
        let path = tree.inclusion(seq)?;
        Ok(RecordPart { event, path })
    });
    let records: Result<Vec<_>, ProofError> = records.collect();
    Ok(LedgerPart {
        head: signed.note().to_owned(),
        records: records.map_err(|_| BundleError::Changed)?,
    })
}

/// Whether a record of the ledger is about this session.
fn names(record: &Line<'_>, dir: &SessionDir) -> bool {
    let payload = record
        .payload()
        .and_then(|bytes| canonical::parse(bytes).ok());
    payload.is_some_and(|payload| payload["session"] == dir.session().as_str())
}

fn events(
    report: &Report,
    dir: &SessionDir,
    signed: &SignedCheckpoint,
    sheet: &mut Sheet<'_>,
    written: &mut Written,
) -> Result<BTreeSet<Digest>, BundleError> {
    let size = signed.checkpoint().size;
    let mut leaves = Vec::new();
    each_line(dir, &mut |line| {
        leaves.push(line.leaf_hash());
        match leaves.len() as u64 >= size {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    let tree = Tree::of(leaves);
    if tree.size() != size || tree.root() != signed.checkpoint().root {
        return Err(BundleError::Changed);
    }
    let cited = report.cited();
    written.unproven = cited.range(size..).count() as u64;
    let levels = report.levels();
    let mut blobs = BTreeSet::new();
    let mut failed = None;
    each_line(dir, &mut |line| {
        if line.seq >= size {
            return ControlFlow::Break(());
        }
        if !cited.contains(&line.seq) {
            return ControlFlow::Continue(());
        }
        let level = level(line, levels.get(&line.seq), report);
        let without = match line.body {
            Body::Tombstone { .. } => Some(Without::Redacted),
            // Whose word took payloads away has to be there: without it nothing counts as redacted.
            Body::Payload { .. } if is_redaction(line) => None,
            Body::Payload { .. } if level > report.ceiling => Some(Without::Withheld(level)),
            Body::Payload { .. } => None,
        };
        let disclosure = match without {
            None => Disclosure::Payload,
            Some(_) => Disclosure::HeadOnly,
        };
        if without.is_none() {
            blobs.extend(named_blobs(line));
        }
        written.events += 1;
        written.withheld += u64::from(matches!(without, Some(Without::Withheld(_))));
        let entry = tree
            .inclusion(line.seq)
            .map_err(io::Error::other)
            .and_then(|path| {
                let event = ProvenEvent::of(line, disclosure);
                sheet.line(&Piece::Event(EventPart {
                    event,
                    path,
                    without,
                }))
            });
        match entry {
            Ok(()) => ControlFlow::Continue(()),
            Err(problem) => {
                failed = Some(problem);
                ControlFlow::Break(())
            }
        }
    })?;
    match failed {
        Some(problem) => Err(problem.into()),
        None => Ok(blobs),
    }
}

fn is_redaction(line: &Line<'_>) -> bool {
    EventType::parse(line.kind().as_bytes()) == Some(EventType::LOG_REDACTED)
}

/// How sensitive what an event says is: as the session, its action or its beliefs are, and as it says
/// itself. Where the report does not say, it is secret.
fn level(line: &Line<'_>, known: Option<&Sensitivity>, report: &Report) -> Sensitivity {
    let kind = EventType::parse(line.kind().as_bytes());
    let is_observation = kind == Some(EventType::OBSERVATION_RECORDED);
    let level = match known {
        Some(known) => *known,
        // What no call returned says all of it itself.
        None if is_observation && line.parents().next().is_none() => report.session.sensitivity,
        None => Sensitivity::Secret,
    };
    let level = level.stricter(report.session.sensitivity);
    if !is_observation {
        return level;
    }
    let payload = line
        .payload()
        .and_then(|bytes| canonical::parse(bytes).ok());
    let said = payload
        .as_ref()
        .and_then(|payload| payload["sensitivity"].as_str());
    match said.map(str::parse::<Sensitivity>) {
        None => level.stricter(Sensitivity::Internal),
        Some(Ok(said)) => level.stricter(said),
        Some(Err(_)) => Sensitivity::Secret,
    }
}

/// The blobs that a payload names.
pub(super) fn named_blobs(line: &Line<'_>) -> Vec<Digest> {
    let payload = line
        .payload()
        .and_then(|bytes| canonical::parse(bytes).ok());
    payload
        .map(|payload| blobs_of(&payload))
        .unwrap_or_default()
}

/// The same, of a payload that was read.
pub(super) fn blobs_of(payload: &Value) -> Vec<Digest> {
    let listed = payload.get("blobs").cloned().unwrap_or_default();
    let listed = serde_json::from_value::<Vec<BlobRef>>(listed).unwrap_or_default();
    listed.into_iter().map(|blob| blob.sha256).collect()
}

/// A blob as it is stored; nothing where it is too large to travel.
fn stored(dir: &SessionDir, name: Digest) -> Result<Option<Vec<u8>>, BundleError> {
    let path = dir.blobs_dir().join(name.to_string());
    let file = std::fs::File::open(path)?;
    if file.metadata()?.len() > MAX_BLOB {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MAX_BLOB + 1).read_to_end(&mut bytes)?;
    match sha256(&bytes) == name {
        true => Ok(Some(bytes)),
        false => Err(BundleError::Changed),
    }
}
