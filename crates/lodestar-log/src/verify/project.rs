//! A project: its ledger, its sessions, and what witnesses signed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use lodestar_core::defence::Defence;
use lodestar_core::name::SessionId;
use lodestar_core::note::{Checkpoint, Note};

use super::session::{is_live, verify_session};
use super::{Progress, ProjectReport, Remark, SessionReport, SessionState};
use crate::disk;
use crate::layout::{LEDGER, MAX_CHECKPOINT_BYTES, ProjectLog, SessionDir};
use crate::ledger::{Ledger, SessionFacts, lock_shared};
use crate::problem::{ProblemKind, Problems};
use crate::trust::{Trust, open_checkpoint, other_signatures};

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Only this session; the ledger is checked in any case.
    pub session: Option<SessionId>,
    /// A ledger head that a witness signed earlier: the ledger must be an extension of it.
    pub witnessed: Option<Vec<u8>>,
    /// For a harness that takes defences out: what [these](ProblemKind::found_by) find is not looked at;
    /// without [`Defence::LogVerification`], nothing is.
    pub taken_out: BTreeSet<Defence>,
}

/// Checks a project's ledger and its sessions.
pub fn verify_project(
    log: &ProjectLog,
    trust: &Trust,
    options: &VerifyOptions,
    progress: &dyn Fn(Progress<'_>),
) -> io::Result<ProjectReport> {
    let mut problems = Problems::default();
    let mut remarks = Vec::new();
    let lock = lock_shared(log)?;
    let witnessed = options
        .witnessed
        .as_deref()
        .and_then(|bytes| witnessed_head(log, trust, bytes, &mut problems));
    let ledger = read_ledger(log, trust, witnessed.as_ref(), &mut problems)?;
    let on_disk = log.sessions_on_disk()?;
    drop(lock);

    if !log.ledger_path().exists() && on_disk.iter().any(|s| has_begun(&log.session(s))) {
        problems.add(LEDGER, None, None, ProblemKind::LedgerMissing);
    }
    for (seq, record) in &ledger.recovered {
        match record.check_kept(log.dir()) {
            Ok(()) => remarks.push(Remark::Recovered {
                seq: *seq,
                bytes: record.bytes,
                kept: record.kept.clone(),
            }),
            Err(reason) => {
                let kind = ProblemKind::RecoveredPartChanged { reason };
                problems.add(LEDGER, Some(*seq), None, kind);
            }
        }
    }
    for name in unknown_signatures(log, &ledger, trust) {
        remarks.push(Remark::UnknownSignature { name });
    }
    if ledger.interrupted.is_some() {
        remarks.push(Remark::LedgerAppendInterrupted);
    }
    if let Some(head) = &witnessed {
        check_extends(&ledger, head, None, &mut problems);
    }
    check_anchored(log, &ledger, trust, &mut problems, &mut remarks);
    compare_with_disk(log, &ledger, &on_disk, &mut problems, &mut remarks)?;

    let mut sessions = Vec::new();
    for (session, facts) in ledger.sessions() {
        let wanted = options.session.as_ref().is_none_or(|only| only == session);
        let dir = log.session(session);
        if wanted && dir.dir().is_dir() {
            sessions.push(verify_at_rest(log, &dir, facts, trust, progress)?);
        }
    }
    let report = ProjectReport {
        project: log.project().clone(),
        ledger_records: ledger.size(),
        ledger_root: ledger.tip.tree.root(),
        problems: problems.finish(),
        remarks,
        sessions,
    };
    Ok(match options.taken_out.is_empty() {
        true => report,
        false => report.without(&options.taken_out),
    })
}

/// Lines on the ledger's head that are neither the log's nor a known witness's.
fn unknown_signatures(log: &ProjectLog, ledger: &Ledger, trust: &Trust) -> Vec<String> {
    let note = ledger
        .head()
        .and_then(|(_, note)| Note::parse(note.as_bytes()).ok());
    note.iter()
        .flat_map(|note| other_signatures(note, &log.ledger_origin(), trust))
        .filter(|(_, verified)| verified.is_none())
        .map(|(name, _)| name)
        .collect()
}

/// How long, and how far apart, a session is looked at again while somebody works on it: a
/// redaction of a large session takes seconds.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A session may be closed, reopened or redacted while it is checked; then facts, checkpoint and
/// events are of different moments and do not fit. Only what is wrong while nothing moves, and
/// nobody holds the session, counts; or what stays wrong for as long as we look.
fn verify_at_rest(
    log: &ProjectLog,
    dir: &SessionDir,
    facts: &SessionFacts,
    trust: &Trust,
    progress: &dyn Fn(Progress<'_>),
) -> io::Result<SessionReport> {
    let mut facts = facts.clone();
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let before = Moment::of(dir);
        let report = verify_session(dir, Some(&facts), trust, progress)?;
        if report.is_intact() {
            return Ok(report);
        }
        let (ledger, _) = Ledger::read(log, trust, &BTreeSet::new())?;
        let now = ledger.session(dir.session()).cloned();
        let unchanged = now.as_ref() == Some(&facts) && before == Moment::of(dir);
        let at_rest = report.state != SessionState::Live && !is_live(dir)?;
        if unchanged && at_rest {
            return Ok(report);
        }
        if unchanged {
            std::thread::sleep(PAUSE);
        }
        facts = now.unwrap_or(facts);
    }
    verify_session(dir, Some(&facts), trust, progress)
}

/// What changes when somebody closes, reopens or redacts a session.
#[derive(PartialEq, Eq)]
struct Moment {
    events: Option<u64>,
    checkpoint: Option<Vec<u8>>,
}

impl Moment {
    fn of(dir: &SessionDir) -> Self {
        Self {
            events: fs::metadata(dir.events_path()).ok().map(|m| m.ino()),
            checkpoint: disk::read_small(&dir.checkpoint_path(), MAX_CHECKPOINT_BYTES)
                .ok()
                .flatten(),
        }
    }
}

/// A witness's head commits to an earlier root, which is known only to a pass that looks for it;
/// which heads were recorded is known only after a pass.
fn read_ledger(
    log: &ProjectLog,
    trust: &Trust,
    witnessed: Option<&Checkpoint>,
    problems: &mut Problems,
) -> io::Result<Ledger> {
    let mut wanted: BTreeSet<u64> = witnessed.iter().map(|c| c.size).collect();
    let ledger = Ledger::fold(log, trust, &wanted, problems)?;
    let recorded: BTreeSet<u64> = ledger
        .anchored()
        .iter()
        .filter_map(|(_, record)| Note::parse(record.head.as_bytes()).ok())
        .filter_map(|note| Checkpoint::parse_body(note.text()).ok())
        .map(|checkpoint| checkpoint.size)
        .collect();
    if recorded.is_empty() {
        return Ok(ledger);
    }
    wanted.extend(recorded);
    Ledger::fold(log, trust, &wanted, &mut Problems::default())
}

fn witnessed_head(
    log: &ProjectLog,
    trust: &Trust,
    bytes: &[u8],
    problems: &mut Problems,
) -> Option<Checkpoint> {
    let mut bad = |reason: String| {
        problems.add(
            "witnessed head",
            None,
            None,
            ProblemKind::BadWitnessedHead { reason },
        );
        None
    };
    let (checkpoint, note) = match open_checkpoint(bytes, &log.ledger_origin(), trust) {
        Ok(opened) => opened,
        Err(reason) => return bad(reason),
    };
    // One witness is enough; that several are known does not mean that all were asked.
    let mut refusals = trust.witnesses.iter().map(|key| key.verify(&note).err());
    match refusals.next() {
        None | Some(None) => Some(checkpoint),
        Some(Some(first)) => match refusals.any(|refusal| refusal.is_none()) {
            true => Some(checkpoint),
            false => bad(first.to_string()),
        },
    }
}

/// `seq` is the record that holds the head, where it is one that was recorded.
fn check_extends(ledger: &Ledger, head: &Checkpoint, seq: Option<u64>, problems: &mut Problems) {
    let size = head.size;
    if size > ledger.size() {
        problems.add(
            LEDGER,
            seq,
            None,
            ProblemKind::RolledBack {
                size,
                found: ledger.size(),
            },
        );
    } else if size > 0 && ledger.roots.get(&size) != Some(&head.root) {
        problems.add(LEDGER, seq, None, ProblemKind::NotWhatWasWitnessed { size });
    }
}

/// Co-signatures that were recorded must still be about this ledger.
fn check_anchored(
    log: &ProjectLog,
    ledger: &Ledger,
    trust: &Trust,
    problems: &mut Problems,
    remarks: &mut Vec<Remark>,
) {
    let ledger_origin = log.ledger_origin();
    for (seq, record) in ledger.anchored() {
        let opened = open_checkpoint(record.head.as_bytes(), &ledger_origin, trust);
        let (head, note) = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                problems.add(
                    LEDGER,
                    Some(*seq),
                    None,
                    ProblemKind::BadWitnessedHead { reason },
                );
                continue;
            }
        };
        check_extends(ledger, &head, Some(*seq), problems);
        let mut known = Vec::new();
        for (name, verified) in other_signatures(&note, &ledger_origin, trust) {
            match verified {
                Some(Ok(())) => known.push(name),
                Some(Err(reason)) => {
                    let kind = ProblemKind::BadWitnessedHead { reason };
                    problems.add(LEDGER, Some(*seq), None, kind);
                }
                None => remarks.push(Remark::UnknownWitness { seq: *seq, name }),
            }
        }
        if !known.is_empty() {
            remarks.push(Remark::Witnessed {
                seq: *seq,
                size: head.size,
                names: known.join(", "),
            });
        }
    }
}

/// Whether there is more than a start makes before it enters the session in the ledger: its
/// directory, and a checkpoint over nothing. Another process may be there right now.
fn has_begun(dir: &SessionDir) -> bool {
    let proven = disk::read_small(&dir.checkpoint_path(), MAX_CHECKPOINT_BYTES)
        .ok()
        .flatten()
        .and_then(|bytes| Note::parse(&bytes).ok())
        .and_then(|note| Checkpoint::parse_body(note.text()).ok())
        .map(|checkpoint| checkpoint.size);
    let nothing = match proven {
        None => !dir.checkpoint_path().exists(),
        Some(size) => size == 0,
    };
    !nothing || dir.dir().is_symlink() || dir.events_path().exists()
}

fn compare_with_disk(
    log: &ProjectLog,
    ledger: &Ledger,
    on_disk: &[SessionId],
    problems: &mut Problems,
    remarks: &mut Vec<Remark>,
) -> io::Result<()> {
    for (session, facts) in ledger.sessions() {
        if !log.session(session).dir().is_dir() {
            problems.add(
                LEDGER,
                Some(facts.opened_seq),
                None,
                ProblemKind::SessionMissing {
                    session: session.to_string(),
                    opened: facts.opened_seq,
                },
            );
        }
    }
    for session in on_disk.iter().filter(|s| ledger.session(s).is_none()) {
        let dir = log.session(session);
        if has_begun(&dir) {
            problems.add(
                session.as_str(),
                None,
                None,
                ProblemKind::UnknownSession {
                    session: session.to_string(),
                },
            );
        } else {
            remarks.push(Remark::NotStarted {
                name: session.to_string(),
            });
        }
    }
    Ok(())
}
