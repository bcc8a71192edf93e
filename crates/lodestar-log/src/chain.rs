//! The rules that tie one event to the next: a fold over the lines of one file.
//!
//! [`Link`] is what a worker thread takes from a line (the hashing happens there); [`Chain`] is
//! the state that the consumer carries along. Verification, recovery and the ledger all use it.

use lodestar_core::canonical;
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::merkle::Frontier;
use lodestar_core::time::Timestamp;

use crate::line::{Body, HeadFields, Line, SALT_BYTES, write_line};
use crate::problem::{Commitment, ProblemKind, Problems};

/// What one line contributes to the chain.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    prev: Digest,
    pub(crate) leaf: Digest,
    pub(crate) time: Timestamp,
    pub(crate) tombstone: Option<u64>,
    faults: Vec<ProblemKind>,
    /// Events the log itself gives a meaning to; everything else is opaque here.
    pub(crate) record: Option<Record>,
    /// The blobs the payload names, where somebody looked for them.
    pub(crate) blobs: Vec<Digest>,
}

/// A line whose type the log itself understands.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) kind: String,
    /// Empty where it was redacted.
    pub(crate) payload: Vec<u8>,
}

impl Link {
    /// Hashes the line and notes what is wrong with it taken alone.
    pub(crate) fn new(line: &Line<'_>, project: &str, session: &str) -> Self {
        let mut faults = Vec::new();
        if !line.belongs_to(project, session) {
            if line.project() != project {
                let found = line.project().to_owned();
                faults.push(ProblemKind::WrongProject { found });
            }
            if line.session() != session {
                let found = line.session().to_owned();
                faults.push(ProblemKind::WrongSession { found });
            }
        }
        if let Some(parent) = line.parents().find(|parent| *parent >= line.seq) {
            faults.push(ProblemKind::ParentAhead { parent });
        }
        if !line.payload_matches() {
            faults.push(ProblemKind::PayloadChanged);
        }
        let record = line.is_own().then(|| Record {
            kind: line.kind().to_owned(),
            payload: line.payload().unwrap_or_default().to_vec(),
        });
        Self {
            seq: line.seq,
            prev: line.prev,
            leaf: line.leaf_hash(),
            time: line.time,
            tombstone: match line.body {
                Body::Tombstone { redaction } => Some(redaction),
                Body::Payload { .. } => None,
            },
            faults,
            record,
            blobs: Vec::new(),
        }
    }

    /// A payload that no checkpoint covers may be anybody's: it must be what a writer would write.
    pub(crate) fn check_unproven(&mut self, line: &Line<'_>, proven: u64) {
        if line.seq >= proven
            && self.is_sound()
            && !line.payload().is_none_or(canonical::is_canonical)
        {
            self.faults.push(ProblemKind::NotCanonical);
        }
    }

    /// Whether nothing is wrong with the line taken alone.
    pub(crate) fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds what a closer look at the payload found.
    pub(crate) fn fault(&mut self, kind: ProblemKind) {
        self.faults.push(kind);
    }
}

/// Somebody committed to the root of the first `size` events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) size: u64,
    pub(crate) root: Digest,
    pub(crate) source: Commitment,
}

/// The state after a number of events.
#[derive(Debug, Clone)]
pub(crate) struct Tip {
    pub(crate) tree: Frontier,
    /// The leaf hash of the last event; what the next one's `prev` must be.
    pub(crate) last: Digest,
    pub(crate) time: Timestamp,
    /// Where the next line starts.
    pub(crate) end: u64,
}

impl Tip {
    /// Before the first event; `opening` is what its `prev` must be.
    pub(crate) fn start(opening: Digest) -> Self {
        Self {
            tree: Frontier::new(),
            last: opening,
            time: Timestamp::MIN,
            end: 0,
        }
    }
}

/// An event on its way into a file; number, `prev` and hashes are the tip's to give.
pub(crate) struct NewEvent<'a> {
    pub(crate) actor: &'a str,
    pub(crate) parents: &'a [u64],
    pub(crate) project: &'a str,
    pub(crate) session: &'a str,
    pub(crate) kind: EventType,
    /// What the clock shows; the event gets a later time if the one before it has.
    pub(crate) now: Timestamp,
    pub(crate) payload: &'a [u8],
    pub(crate) payload_hash: Digest,
    pub(crate) salt: &'a [u8; SALT_BYTES],
}

impl Tip {
    /// Writes the event's line behind the last one and moves on.
    pub(crate) fn append(&mut self, out: &mut Vec<u8>, event: &NewEvent<'_>) -> Digest {
        let before = out.len();
        self.time = self.time.max(event.now);
        let head = HeadFields {
            actor: event.actor,
            parents: event.parents,
            payload_hash: &event.payload_hash,
            prev: &self.last,
            project: event.project,
            seq: self.tree.size(),
            session: event.session,
            time: self.time,
            kind: event.kind.as_str(),
        };
        self.last = write_line(out, &head, event.payload, event.salt);
        self.tree.push(self.last);
        self.end += (out.len() - before) as u64;
        self.last
    }
}

/// Follows the links of one file and compares them with what was committed to.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    file: &'a str,
    pub(crate) tip: Tip,
    next_seq: u64,
    /// False after a place that could not be read: what follows cannot be tied to what came before.
    tied: bool,
    anchors: Vec<Anchor>,
    checked: usize,
}

impl<'a> Chain<'a> {
    /// `opening` is `None` where nobody knows it; then the first event's `prev` is taken as it is.
    pub(crate) fn new(file: &'a str, opening: Option<Digest>, mut anchors: Vec<Anchor>) -> Self {
        // The checkpoint that every session starts with commits to nothing.
        anchors.retain(|anchor| anchor.size > 0);
        anchors.sort_by_key(|anchor| anchor.size);
        Self {
            file,
            tied: opening.is_some(),
            tip: Tip::start(opening.unwrap_or(Digest::from_bytes([0; 32]))),
            next_seq: 0,
            anchors,
            checked: 0,
        }
    }

    /// Takes the next line; `end` is the offset behind its newline.
    pub(crate) fn follow(&mut self, link: &mut Link, offset: u64, end: u64, out: &mut Problems) {
        let mut add = |kind| out.add(self.file, Some(link.seq), Some(offset), kind);
        link.faults.drain(..).for_each(&mut add);
        if link.seq != self.next_seq {
            add(ProblemKind::WrongSeq {
                expected: self.next_seq,
                found: link.seq,
            });
        }
        if self.tied && link.prev != self.tip.last {
            add(match self.tip.tree.size() {
                0 => ProblemKind::WrongOpening,
                _ => ProblemKind::BrokenChain,
            });
        }
        if link.time < self.tip.time {
            add(ProblemKind::TimeRunsBackwards);
        }
        self.next_seq = link.seq.saturating_add(1);
        self.tied = true;
        self.tip.last = link.leaf;
        self.tip.time = self.tip.time.max(link.time);
        self.tip.end = end;
        self.tip.tree.push(link.leaf);
        while let Some(anchor) = self.anchors.get(self.checked)
            && anchor.size <= self.tip.tree.size()
        {
            if anchor.size == self.tip.tree.size() && anchor.root != self.tip.tree.root() {
                add(ProblemKind::Rewritten {
                    by: anchor.source,
                    size: anchor.size,
                });
            }
            self.checked += 1;
        }
    }

    /// A place that is no line.
    pub(crate) fn unreadable(&mut self, offset: u64, error: crate::LineError, out: &mut Problems) {
        out.add(self.file, Some(self.next_seq), Some(offset), error.into());
        self.next_seq += 1;
        self.tied = false;
    }

    /// The file has ended; what was committed to and did not come is missing.
    pub(crate) fn end(&self, out: &mut Problems) {
        let found = self.tip.tree.size();
        for anchor in &self.anchors[self.checked..] {
            out.add(
                self.file,
                None,
                Some(self.tip.end),
                ProblemKind::Truncated {
                    by: anchor.source,
                    size: anchor.size,
                    found,
                },
            );
        }
    }
}
