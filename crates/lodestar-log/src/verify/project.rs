//! A project: its ledger, its sessions, and what witnesses signed.

use std::collections::BTreeSet;
use std::io;

use lodestar_core::name::SessionId;
use lodestar_core::note::{Checkpoint, Note};

use super::{Progress, ProjectReport, Remark, session::verify_session};
use crate::layout::{LEDGER, LEDGER_CHECKPOINT, ProjectLog, origin};
use crate::ledger::{LEDGER_NAME, Ledger, lock_shared};
use crate::problem::{ProblemKind, Problems};
use crate::trust::{Trust, open_checkpoint};

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Only this session; the ledger is checked in any case.
    pub session: Option<SessionId>,
    /// A ledger head that a witness signed earlier: the ledger must be an extension of it.
    pub witnessed: Option<Vec<u8>>,
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

    check_head(log, &ledger, on_disk.is_empty(), &mut problems);
    if let Some(head) = &witnessed {
        check_extends(&ledger, head, &mut problems);
    }
    check_anchored(log, &ledger, trust, &mut problems, &mut remarks);
    compare_with_disk(log, &ledger, &on_disk, &mut problems, &mut remarks)?;

    let mut sessions = Vec::new();
    for (session, facts) in ledger.sessions() {
        let wanted = options.session.as_ref().is_none_or(|only| only == session);
        let dir = log.session(session);
        if wanted && dir.dir().is_dir() {
            sessions.push(verify_session(&dir, Some(facts), trust, progress)?);
        }
    }
    Ok(ProjectReport {
        project: log.project().clone(),
        ledger_records: ledger.size(),
        ledger_root: ledger.tip.tree.root(),
        problems: problems.finish(),
        remarks,
        sessions,
    })
}

/// A witness's head commits to an earlier root, which is known only to a pass that looks for it;
/// which heads were recorded is known only after a pass.
fn read_ledger(
    log: &ProjectLog,
    trust: &Trust,
    witnessed: Option<&Checkpoint>,
    problems: &mut Problems,
) -> io::Result<Ledger> {
    let wanted: Vec<u64> = witnessed.iter().map(|c| c.size).collect();
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
    let wanted: Vec<u64> = wanted.into_iter().chain(recorded).collect();
    Ledger::fold(log, trust, &wanted, &mut Problems::default())
}

fn check_head(log: &ProjectLog, ledger: &Ledger, no_sessions: bool, problems: &mut Problems) {
    if !log.ledger_path().exists() {
        if !no_sessions {
            problems.add(LEDGER, None, None, ProblemKind::LedgerMissing);
        }
        return;
    }
    match ledger.head() {
        None if !log.ledger_checkpoint_path().exists() => {
            problems.add(
                LEDGER_CHECKPOINT,
                None,
                None,
                ProblemKind::CheckpointMissing,
            );
        }
        Some((head, _)) if head.size < ledger.size() => problems.add(
            LEDGER,
            Some(head.size),
            None,
            ProblemKind::LedgerTail {
                count: ledger.size() - head.size,
            },
        ),
        _ => {}
    }
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
    let (checkpoint, note) =
        match open_checkpoint(bytes, &origin(log.project(), LEDGER_NAME), trust) {
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

fn check_extends(ledger: &Ledger, head: &Checkpoint, problems: &mut Problems) {
    let size = head.size;
    if size > ledger.size() {
        problems.add(
            LEDGER,
            None,
            None,
            ProblemKind::RolledBack {
                size,
                found: ledger.size(),
            },
        );
    } else if size > 0 && ledger.roots.get(&size) != Some(&head.root) {
        problems.add(
            LEDGER,
            None,
            None,
            ProblemKind::NotWhatWasWitnessed { size },
        );
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
    let ledger_origin = origin(log.project(), LEDGER_NAME);
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
        check_extends(ledger, &head, problems);
        let mut known = Vec::new();
        for signature in note.signatures().iter().filter(|s| s.name != ledger_origin) {
            let key = trust
                .witnesses
                .iter()
                .find(|k| k.name() == signature.name && k.key_hash() == signature.key_hash);
            match key.map(|key| key.verify(&note)) {
                Some(Ok(_)) => known.push(signature.name.clone()),
                Some(Err(error)) => problems.add(
                    LEDGER,
                    Some(*seq),
                    None,
                    ProblemKind::BadWitnessedHead {
                        reason: error.to_string(),
                    },
                ),
                None => remarks.push(Remark::UnknownWitness {
                    seq: *seq,
                    name: signature.name.clone(),
                }),
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
        // Another process may be between making the directory and entering it in the ledger.
        let begun = dir.checkpoint_path().exists()
            || std::fs::metadata(dir.events_path()).is_ok_and(|m| m.len() > 0);
        if begun {
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
