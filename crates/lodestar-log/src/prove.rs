//! Proofs that stand alone: an event is in a session, or a session only grew.
//!
//! A proof carries the signed checkpoint it leads to, so that whoever holds the log's public key
//! can check it without the log.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;

use lodestar_core::canonical;
use lodestar_core::digest::Digest;
use lodestar_core::merkle::{
    ConsistencyProof, ConsistencyProver, Frontier, InclusionProof, InclusionProver, ProofError,
};
use lodestar_core::note::Checkpoint;
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::layout::{MAX_CHECKPOINT_BYTES, SessionDir, origin};
use crate::line::{Body, Line, MAX_LINE_BYTES};
use crate::scan;
use crate::trust::{Trust, open_checkpoint};

/// The largest proof file that is read: one line, its hashes and its checkpoint.
pub const MAX_PROOF_BYTES: usize = 2 * MAX_LINE_BYTES;

/// A proof, as written to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "proof", rename_all = "snake_case")]
pub enum Proof {
    /// This event is in the session.
    Inclusion(Inclusion),
    /// The session with that root is the beginning of the one with this checkpoint.
    Consistency(Consistency),
}

/// An event is part of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inclusion {
    /// The event's line as it stands in the log, with payload or without.
    pub event: ProvenEvent,
    /// The way from its leaf hash to the root.
    pub path: InclusionProof,
    /// The signed checkpoint with that root.
    pub checkpoint: String,
}

/// The event of an inclusion proof. The head is what is proven; payload and salt come along so
/// that the head's commitment can be opened, and may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProvenEvent {
    /// The whole line.
    Line(String),
    /// The head alone: the proof tells that the event happened, and not what it says.
    Head(String),
}

/// A session only grew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consistency {
    /// The root of the smaller tree.
    pub old_root: Digest,
    /// The way from there to the root of the larger.
    pub path: ConsistencyProof,
    /// The signed checkpoint of the larger.
    pub checkpoint: String,
}

/// Whether a proof shows the event's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disclosure {
    /// Head, payload and salt.
    Payload,
    /// The head alone.
    HeadOnly,
}

/// Why there is no proof, or why one does not hold.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The session has no checkpoint that verifies.
    #[error("the session's checkpoint does not verify: {0}")]
    Checkpoint(String),
    /// The checkpoint is older than the event.
    #[error("event {seq} is not yet under a checkpoint (which covers {size} events)")]
    NotProven {
        /// The event.
        seq: u64,
        /// What is covered.
        size: u64,
    },
    /// The checkpoint is over fewer events.
    #[error("the checkpoint covers {size} events, fewer than {since}")]
    TooFew {
        /// What was asked for.
        since: u64,
        /// What is covered.
        size: u64,
    },
    /// The events do not lead to the checkpoint.
    #[error(
        "the events do not have the root that the checkpoint commits to; run `lodestar log verify`"
    )]
    Tampered,
    /// The numbers or hashes of a proof do not work out.
    #[error("the proof does not hold: {0}")]
    Path(#[from] ProofError),
    /// The event in the proof is not the one the numbers speak of.
    #[error("the proof does not hold: {0}")]
    Event(String),
    /// A file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The proof file is no proof.
    #[error("this is no proof: {0}")]
    Malformed(String),
}

/// What a proof shows, once it has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proven {
    /// The signed checkpoint it leads to.
    pub origin: String,
    /// Its size.
    pub size: u64,
    /// Its root.
    pub root: Digest,
    /// The event, for an inclusion proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<ProvenHead>,
    /// The older size and root, for a consistency proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<Extends>,
}

/// The event of a checked inclusion proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProvenHead {
    /// Its place.
    pub seq: u64,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who caused it.
    pub actor: String,
    /// When.
    pub time: lodestar_core::time::Timestamp,
    /// The leaf hash of the event before, or of the record that opened the session.
    #[serde(skip)]
    pub prev: Digest,
    /// Its leaf hash.
    pub leaf_hash: Digest,
    /// The payload, where the proof shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<serde_json::Value>,
}

/// The smaller tree of a checked consistency proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Extends {
    /// Its size.
    pub size: u64,
    /// Its root.
    pub root: Digest,
}

fn own_checkpoint(dir: &SessionDir, trust: &Trust) -> Result<(Checkpoint, String), ProveError> {
    let bytes = disk::read_small(&dir.checkpoint_path(), MAX_CHECKPOINT_BYTES)?
        .ok_or_else(|| ProveError::Checkpoint("there is none".to_owned()))?;
    let (checkpoint, note) =
        open_checkpoint(&bytes, &dir.origin(), trust).map_err(ProveError::Checkpoint)?;
    Ok((checkpoint, note.to_string()))
}

/// Gives each leaf hash of the first `size` events to `push`, and what `keep` makes of a line.
fn leaves<T: Send>(
    dir: &SessionDir,
    size: u64,
    keep: impl Fn(&Line<'_>) -> Option<T> + Sync,
    mut push: impl FnMut(Digest),
) -> Result<(Digest, Option<T>), ProveError> {
    let file = disk::open_read(&dir.events_path())?;
    let len = file.metadata()?.len();
    let mut tree = Frontier::new();
    let mut kept = None;
    scan::scan(
        &file,
        len,
        |_, line| (line.leaf_hash(), keep(line)),
        |entry| {
            let Ok((leaf, found)) = entry.outcome else {
                return ControlFlow::Break(());
            };
            tree.push(leaf);
            push(leaf);
            kept = kept.take().or(found);
            match tree.size() < size {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        },
    )?;
    Ok((tree.root(), kept))
}

/// Proves that event `seq` is in the session, against its latest checkpoint.
pub fn prove_inclusion(
    dir: &SessionDir,
    seq: u64,
    disclosure: Disclosure,
    trust: &Trust,
) -> Result<Proof, ProveError> {
    let (checkpoint, note) = own_checkpoint(dir, trust)?;
    if seq >= checkpoint.size {
        return Err(ProveError::NotProven {
            seq,
            size: checkpoint.size,
        });
    }
    let mut prover = InclusionProver::new(seq, checkpoint.size)?;
    let keep = |line: &Line<'_>| (line.seq == seq).then(|| ProvenEvent::of(line, disclosure));
    let (root, event) = leaves(dir, checkpoint.size, keep, |leaf| prover.push(leaf))?;
    let event = event.ok_or(ProveError::Tampered)?;
    if root != checkpoint.root {
        return Err(ProveError::Tampered);
    }
    Ok(Proof::Inclusion(Inclusion {
        event,
        path: prover.finish()?,
        checkpoint: note,
    }))
}

impl ProvenEvent {
    /// A line of a log, or of it only the head.
    pub fn of(line: &Line<'_>, disclosure: Disclosure) -> Self {
        match (disclosure, line.body) {
            (Disclosure::Payload, Body::Payload { bytes, salt }) => whole_line(line, bytes, &salt),
            _ => Self::Head(String::from_utf8_lossy(line.head).into_owned()),
        }
    }
}

fn whole_line(line: &Line<'_>, payload: &[u8], salt: &[u8]) -> ProvenEvent {
    let mut bytes = b"{\"head\":".to_vec();
    bytes.extend_from_slice(line.head);
    bytes.extend_from_slice(b",\"payload\":");
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(b",\"salt\":\"");
    lodestar_core::digest::encode_hex(salt, &mut bytes);
    bytes.extend_from_slice(b"\"}");
    ProvenEvent::Line(String::from_utf8_lossy(&bytes).into_owned())
}

/// Proves that the session's first `since` events are still its beginning.
pub fn prove_consistency(dir: &SessionDir, since: u64, trust: &Trust) -> Result<Proof, ProveError> {
    let (checkpoint, note) = own_checkpoint(dir, trust)?;
    if since > checkpoint.size {
        return Err(ProveError::TooFew {
            since,
            size: checkpoint.size,
        });
    }
    let mut prover = ConsistencyProver::new(since, checkpoint.size)?;
    let mut old = Frontier::new();
    let (root, _) = leaves(
        dir,
        checkpoint.size,
        |_| None::<()>,
        |leaf| {
            prover.push(leaf);
            if old.size() < since {
                old.push(leaf);
            }
        },
    )?;
    if root != checkpoint.root {
        return Err(ProveError::Tampered);
    }
    Ok(Proof::Consistency(Consistency {
        old_root: old.root(),
        path: prover.finish()?,
        checkpoint: note,
    }))
}

impl Proof {
    /// Reads a proof file.
    pub fn parse(bytes: &[u8]) -> Result<Self, ProveError> {
        if bytes.len() > MAX_PROOF_BYTES {
            return Err(ProveError::Malformed(format!(
                "{} bytes are more than the limit of {MAX_PROOF_BYTES}",
                bytes.len()
            )));
        }
        serde_json::from_slice(bytes).map_err(|e| ProveError::Malformed(e.to_string()))
    }

    /// Checks the proof with nothing but the trusted keys.
    pub fn check(&self, trust: &Trust) -> Result<Proven, ProveError> {
        match self {
            Self::Inclusion(inclusion) => inclusion.check(trust),
            Self::Consistency(consistency) => consistency.check(trust),
        }
    }
}

fn same_size(path: u64, checkpoint: &Checkpoint) -> Result<(), ProveError> {
    if path == checkpoint.size {
        return Ok(());
    }
    Err(ProveError::Event(format!(
        "it leads to a tree of {path} events, the checkpoint has {}",
        checkpoint.size
    )))
}

/// A checkpoint that a trusted key signed: many proofs can be checked against it.
#[derive(Debug, Clone)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    note: String,
}

impl SignedCheckpoint {
    /// Reads a signed note. It names its own log; a trusted key must have signed it under that name.
    pub fn open(note: &str, trust: &Trust) -> Result<Self, ProveError> {
        let origin = note.lines().next().unwrap_or_default();
        let (checkpoint, note) =
            open_checkpoint(note.as_bytes(), origin, trust).map_err(ProveError::Checkpoint)?;
        Ok(Self {
            checkpoint,
            note: note.to_string(),
        })
    }

    /// The latest of a session.
    pub fn of_session(dir: &SessionDir, trust: &Trust) -> Result<Self, ProveError> {
        let (checkpoint, note) = own_checkpoint(dir, trust)?;
        Ok(Self { checkpoint, note })
    }

    /// What it commits to.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// As it was signed.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Checks that an event is among those that it commits to.
    pub fn check(
        &self,
        event: &ProvenEvent,
        path: &InclusionProof,
    ) -> Result<ProvenHead, ProveError> {
        let checkpoint = &self.checkpoint;
        same_size(path.size, checkpoint)?;
        // A head alone is put into the form of a redacted line, which the scanner knows.
        let text = match event {
            ProvenEvent::Line(line) => Cow::Borrowed(line.as_str()),
            ProvenEvent::Head(head) => Cow::Owned(format!(
                "{{\"head\":{head},\"tombstone\":{{\"redaction\":0}}}}"
            )),
        };
        let line = Line::parse(text.as_bytes()).map_err(|e| ProveError::Event(e.to_string()))?;
        let origin = origin(line.project(), line.session());
        if origin != checkpoint.origin {
            return Err(ProveError::Event(format!(
                "the event is of `{origin}`, the checkpoint of `{}`",
                checkpoint.origin
            )));
        }
        if line.seq != path.index {
            return Err(ProveError::Event(format!(
                "the event has number {}, the path starts at {}",
                line.seq, path.index
            )));
        }
        if !line.payload_matches() {
            return Err(ProveError::Event(
                "the payload is not the one the head commits to".to_owned(),
            ));
        }
        path.verify(&line.leaf_hash(), &checkpoint.root)?;
        let payload = line
            .payload()
            .map(canonical::parse)
            .transpose()
            .map_err(|e| ProveError::Event(e.to_string()))?;
        Ok(ProvenHead {
            seq: line.seq,
            kind: line.kind().to_owned(),
            actor: line.actor().to_owned(),
            time: line.time,
            prev: line.prev,
            leaf_hash: line.leaf_hash(),
            payload,
        })
    }
}

impl Inclusion {
    fn check(&self, trust: &Trust) -> Result<Proven, ProveError> {
        let signed = SignedCheckpoint::open(&self.checkpoint, trust)?;
        let event = signed.check(&self.event, &self.path)?;
        Ok(Proven {
            event: Some(event),
            ..Proven::of(signed.checkpoint)
        })
    }
}

impl Consistency {
    fn check(&self, trust: &Trust) -> Result<Proven, ProveError> {
        let checkpoint = SignedCheckpoint::open(&self.checkpoint, trust)?.checkpoint;
        same_size(self.path.new_size, &checkpoint)?;
        self.path.verify(&self.old_root, &checkpoint.root)?;
        Ok(Proven {
            extends: Some(Extends {
                size: self.path.old_size,
                root: self.old_root,
            }),
            ..Proven::of(checkpoint)
        })
    }
}

impl Proven {
    fn of(checkpoint: Checkpoint) -> Self {
        Self {
            origin: checkpoint.origin,
            size: checkpoint.size,
            root: checkpoint.root,
            event: None,
            extends: None,
        }
    }
}
