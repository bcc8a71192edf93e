//! The project's ledger: which sessions there are, how each began and how it ended.
//!
//! It has the format of a session's log and its own signed checkpoint, renewed with every record,
//! so a session that was deleted, swapped or rolled back shows. Appending happens under a lock on
//! the project's directory; many processes may open sessions of one project at once.

mod append;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::ControlFlow;

use lodestar_core::digest::{Digest, sha256};
use lodestar_core::event::EventType;
use lodestar_core::key::PublicKey;
use lodestar_core::name::SessionId;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use self::append::LockedLedger;
use crate::chain::{Anchor, Chain, Link, Record, Tip};
use crate::layout::{LEDGER, LEDGER_CHECKPOINT, LEDGER_NEXT, MAX_CHECKPOINT_BYTES, ProjectLog};
use crate::line::LineError;
use crate::problem::{Commitment, Problem, ProblemKind, Problems};
use crate::recover::RecoveredRecord;
use crate::trust::{Trust, open_checkpoint};
use crate::{disk, scan};

/// What stands in the ledger's heads where a session's name would; no session can have it.
pub const LEDGER_NAME: &str = "_ledger";
/// The format this crate writes.
pub const FORMAT: &str = "lodestar-log/1";
/// Who writes the log's own events.
pub(crate) const OWN_ACTOR: &str = "lodestar";

/// How a session began: the payload of `ledger.session_opened@1`. The leaf hash of that ledger
/// event is the `prev` of the session's first event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpeningRecord {
    /// [`FORMAT`].
    pub format: String,
    /// The session.
    pub session: SessionId,
    /// The key that signs its checkpoints.
    pub log_key: PublicKey,
}

/// A session was taken up again: the payload of `ledger.session_reopened@1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReopeningRecord {
    /// The session.
    pub session: SessionId,
    /// How many events it had.
    pub size: u64,
    /// Their root.
    pub root: Digest,
    /// How many of them a checkpoint covered; the rest was signed only now.
    pub proven: u64,
}

/// A session ended: the payload of `ledger.session_closed@1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosingRecord {
    /// The session.
    pub session: SessionId,
    /// The closing checkpoint, a signed note.
    pub checkpoint: String,
}

/// A witness's signature on the ledger's head: the payload of `log.anchored@1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchoredRecord {
    /// The ledger's head as the witness signed it: a signed note with its lines.
    pub head: String,
    /// The witnesses' keys the signatures were checked with when they were recorded.
    pub witnesses: Vec<String>,
}

/// Where a session stands, according to the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerState {
    /// Opened, or reopened, and not closed since.
    Open,
    /// Closed with this checkpoint.
    Closed(Checkpoint),
}

/// What the ledger says of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// The ledger record that opened it.
    pub opened_seq: u64,
    /// When.
    pub opened_at: Timestamp,
    /// The leaf hash of that record: the first event's `prev`.
    pub opening: Digest,
    /// Open or closed.
    pub state: LedgerState,
    pub(crate) anchors: Vec<Anchor>,
    /// Events that were signed only when the session was taken up again: from, to, which record.
    pub(crate) late: Vec<(u64, u64, u64)>,
}

impl SessionFacts {
    /// Nothing but the opening is known of it: nobody closed it or took it up again.
    pub(crate) fn is_untouched(&self) -> bool {
        self.state == LedgerState::Open && self.anchors.is_empty()
    }
}

/// What an append that was cut short left behind. The head it announced tells it from a forgery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// The record is whole; its head was not put in place.
    HeadNotInPlace,
    /// The record is not whole.
    TornRecord { bytes: u64 },
}

/// The ledger, read.
#[derive(Debug)]
pub struct Ledger {
    sessions: BTreeMap<SessionId, SessionFacts>,
    anchored: Vec<(u64, AnchoredRecord)>,
    /// What recoveries of the ledger cut off.
    pub(crate) recovered: Vec<(u64, RecoveredRecord)>,
    pub(crate) tip: Tip,
    /// The signed head, where there is one and it verifies.
    pub(crate) head: Option<(Checkpoint, String)>,
    /// Roots at the sizes that were asked for.
    pub(crate) roots: BTreeMap<u64, Digest>,
    pub(crate) interrupted: Option<Interruption>,
}

impl Ledger {
    /// What it says of a session.
    pub fn session(&self, session: &SessionId) -> Option<&SessionFacts> {
        self.sessions.get(session)
    }

    /// All sessions, in the order they were opened.
    pub fn sessions(&self) -> Vec<(&SessionId, &SessionFacts)> {
        let mut all: Vec<_> = self.sessions.iter().collect();
        all.sort_by_key(|(_, facts)| facts.opened_seq);
        all
    }

    /// The number of records.
    pub fn size(&self) -> u64 {
        self.tip.tree.size()
    }

    /// The signed head: checkpoint and note.
    pub fn head(&self) -> Option<(&Checkpoint, &str)> {
        self.head.as_ref().map(|(c, n)| (c, n.as_str()))
    }

    /// The co-signatures that were recorded, each with the record that holds it.
    pub fn anchored(&self) -> &[(u64, AnchoredRecord)] {
        &self.anchored
    }

    /// What the first record's `prev` is: nothing comes before it.
    fn genesis(log: &ProjectLog) -> Digest {
        sha256(log.ledger_origin().as_bytes())
    }

    /// Reads the ledger as it stands and says what is wrong with it. Nobody appends meanwhile, so
    /// what is read is a whole state of it. `roots_at` lists sizes whose roots the caller will
    /// want to compare.
    pub fn read(
        log: &ProjectLog,
        trust: &Trust,
        roots_at: &BTreeSet<u64>,
    ) -> std::io::Result<(Self, Vec<Problem>)> {
        let mut problems = Problems::default();
        let _lock = lock_shared(log)?;
        let ledger = Self::fold(log, trust, roots_at, &mut problems)?;
        Ok((ledger, problems.finish()))
    }

    pub(crate) fn fold(
        log: &ProjectLog,
        trust: &Trust,
        roots_at: &BTreeSet<u64>,
        problems: &mut Problems,
    ) -> std::io::Result<Self> {
        let mut ledger = Self {
            sessions: BTreeMap::new(),
            anchored: Vec::new(),
            recovered: Vec::new(),
            tip: Tip::start(Self::genesis(log)),
            head: None,
            roots: BTreeMap::new(),
            interrupted: None,
        };
        let file = match disk::open_read(&log.ledger_path()) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(ledger),
            Err(e) => {
                problems.add(LEDGER, None, None, unreadable(&e));
                return Ok(ledger);
            }
        };
        ledger.head = read_head(log, trust, problems);
        let anchors = ledger
            .head
            .iter()
            .map(|(checkpoint, _)| Anchor {
                size: checkpoint.size,
                root: checkpoint.root,
                source: Commitment::Checkpoint,
            })
            .collect();
        let mut chain = Chain::new(LEDGER, Some(Self::genesis(log)), anchors);
        let len = file.metadata()?.len();
        let mut torn = None;
        scan::scan(
            &file,
            len,
            |_, line| Link::new(line, log.project().as_str(), LEDGER_NAME),
            |entry| {
                match entry.outcome {
                    Ok(mut link) => {
                        let end = entry.offset + entry.bytes + 1;
                        chain.follow(&mut link, entry.offset, end, problems);
                        if let Err(kind) = ledger.take(&link) {
                            problems.add(LEDGER, Some(link.seq), Some(entry.offset), kind);
                        }
                        if roots_at.contains(&chain.tip.tree.size()) {
                            let root = chain.tip.tree.root();
                            ledger.roots.insert(chain.tip.tree.size(), root);
                        }
                    }
                    Err(LineError::Unterminated) => torn = Some((entry.offset, entry.bytes)),
                    Err(error) => chain.unreadable(entry.offset, error, problems),
                }
                ControlFlow::Continue(())
            },
        )?;
        chain.end(problems);
        ledger.tip = chain.tip;
        ledger.settle(log, trust, torn, problems)?;
        Ok(ledger)
    }

    /// Looks at what stands behind the checkpoint: an append that was cut short, or a forgery.
    fn settle(
        &mut self,
        log: &ProjectLog,
        trust: &Trust,
        torn: Option<(u64, u64)>,
        problems: &mut Problems,
    ) -> std::io::Result<()> {
        let proven = self.head.as_ref().map_or(0, |(head, _)| head.size);
        let behind = self.size().saturating_sub(proven);
        if behind == 0 && torn.is_none() {
            return Ok(());
        }
        // A head that does not verify was reported, and says nothing of what it covers.
        let unknown = self.head.is_none() && log.ledger_checkpoint_path().exists();
        let announced = disk::read_small(&log.dir().join(LEDGER_NEXT), MAX_CHECKPOINT_BYTES)
            .ok()
            .flatten()
            .and_then(|bytes| open_checkpoint(&bytes, &log.ledger_origin(), trust).ok());
        match (announced, torn) {
            (Some((next, note)), None)
                if behind == 1 && next.size == self.size() && next.root == self.tip.tree.root() =>
            {
                self.head = Some((next, note.to_string()));
                self.interrupted = Some(Interruption::HeadNotInPlace);
            }
            (Some((next, _)), Some((_, bytes))) if behind == 0 && next.size == proven + 1 => {
                self.interrupted = Some(Interruption::TornRecord { bytes });
            }
            _ => {
                if let Some((offset, _)) = torn {
                    let kind = LineError::Unterminated.into();
                    problems.add(LEDGER, Some(self.size()), Some(offset), kind);
                }
                if behind > 0 && self.head.is_some() {
                    let kind = ProblemKind::LedgerTail { count: behind };
                    problems.add(LEDGER, Some(proven), None, kind);
                } else if behind > 0 && !unknown {
                    let kind = ProblemKind::CheckpointMissing;
                    problems.add(LEDGER_CHECKPOINT, None, None, kind);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, link: &Link) -> Result<(), ProblemKind> {
        fn read<'de, T: Deserialize<'de>>(record: &'de Record) -> Result<T, ProblemKind> {
            serde_json::from_slice(&record.payload).map_err(|e| ProblemKind::BadRecord {
                reason: e.to_string(),
            })
        }
        let Some(record) = &link.record else {
            return Err(ProblemKind::BadRecord {
                reason: "the ledger holds only records of its own types".to_owned(),
            });
        };
        match EventType::parse(record.kind.as_bytes()) {
            Some(EventType::LEDGER_SESSION_OPENED) => {
                let opening: OpeningRecord = read(record)?;
                if opening.format != FORMAT {
                    return Err(ProblemKind::BadRecord {
                        reason: format!("its format is not `{FORMAT}`; a newer program wrote it"),
                    });
                }
                if self.sessions.contains_key(&opening.session) {
                    return Err(ProblemKind::OpenedTwice {
                        session: opening.session.to_string(),
                    });
                }
                self.sessions.insert(
                    opening.session,
                    SessionFacts {
                        opened_seq: link.seq,
                        opened_at: link.time,
                        opening: link.leaf,
                        state: LedgerState::Open,
                        anchors: Vec::new(),
                        late: Vec::new(),
                    },
                );
            }
            Some(EventType::LEDGER_SESSION_REOPENED) => {
                let reopening: ReopeningRecord = read(record)?;
                let facts = self.known(&reopening.session)?;
                facts.state = LedgerState::Open;
                if reopening.proven < reopening.size {
                    facts
                        .late
                        .push((reopening.proven, reopening.size, link.seq));
                }
                facts.anchors.push(Anchor {
                    size: reopening.size,
                    root: reopening.root,
                    source: Commitment::Ledger { seq: link.seq },
                });
            }
            Some(EventType::LEDGER_SESSION_CLOSED) => {
                let closing: ClosingRecord = read(record)?;
                let bad = |e: &dyn std::fmt::Display| ProblemKind::BadRecord {
                    reason: e.to_string(),
                };
                let note = Note::parse(closing.checkpoint.as_bytes()).map_err(|e| bad(&e))?;
                let checkpoint = Checkpoint::parse_body(note.text()).map_err(|e| bad(&e))?;
                let facts = self.known(&closing.session)?;
                facts.anchors.push(Anchor {
                    size: checkpoint.size,
                    root: checkpoint.root,
                    source: Commitment::Ledger { seq: link.seq },
                });
                facts.state = LedgerState::Closed(checkpoint);
            }
            Some(EventType::LOG_ANCHORED) => self.anchored.push((link.seq, read(record)?)),
            Some(EventType::LOG_RECOVERED) => self.recovered.push((link.seq, read(record)?)),
            // A later version may know more record types; they carry nothing this one checks.
            _ => {}
        }
        Ok(())
    }

    fn known(&mut self, session: &SessionId) -> Result<&mut SessionFacts, ProblemKind> {
        self.sessions
            .get_mut(session)
            .ok_or_else(|| ProblemKind::NeverOpened {
                session: session.to_string(),
            })
    }
}

/// Keeps appenders out while the value lives; readers do not disturb each other.
pub(crate) fn lock_shared(log: &ProjectLog) -> std::io::Result<File> {
    let lock = File::open(log.dir())?;
    disk::wait_for_lock(|| lock.try_lock_shared())?;
    Ok(lock)
}

/// Reads and checks the ledger's signed head. A missing one is reported by whoever knows whether
/// there should be one.
fn read_head(
    log: &ProjectLog,
    trust: &Trust,
    problems: &mut Problems,
) -> Option<(Checkpoint, String)> {
    let kind = match disk::read_small(&log.ledger_checkpoint_path(), MAX_CHECKPOINT_BYTES) {
        Ok(None) => return None,
        Err(e) => unreadable(&e),
        Ok(Some(bytes)) => match open_checkpoint(&bytes, &log.ledger_origin(), trust) {
            Ok((checkpoint, note)) => return Some((checkpoint, note.to_string())),
            Err(reason) => ProblemKind::CheckpointInvalid { reason },
        },
    };
    problems.add(LEDGER_CHECKPOINT, None, None, kind);
    None
}

fn unreadable(error: &std::io::Error) -> ProblemKind {
    ProblemKind::Unreadable {
        reason: error.to_string(),
    }
}
