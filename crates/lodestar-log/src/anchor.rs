//! Making the ledger's head known to others, and keeping what they sign.
//!
//! Whoever can replace session, ledger and checkpoint together by older copies goes unnoticed by
//! the files alone. A witness who signed a newer head does notice.

use std::collections::BTreeSet;

use lodestar_core::event::EventType;
use lodestar_core::note::{Checkpoint, NoteKey};

use crate::error::LedgerError;
use crate::layout::ProjectLog;
use crate::ledger::{AnchoredRecord, Ledger, LockedLedger};
use crate::problem::Problems;
use crate::trust::{Trust, open_checkpoint};
use crate::writer::WriterOptions;

/// Why a co-signed head was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    /// It is not a head of this ledger.
    #[error("this is not a signed head of this project's ledger: {0}")]
    NotOurs(String),
    /// The ledger does not have that root at that size.
    #[error("the ledger's first {size} records do not have the root of this head")]
    OtherHistory {
        /// The head's size.
        size: u64,
    },
    /// None of the given witnesses signed it.
    #[error("none of the given witness keys signed this head: {0}")]
    NotWitnessed(String),
    /// The ledger refuses.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Records a head that witnesses signed, after checking that it is this ledger's and that they
/// did. Gives the names of those who did.
pub fn record_anchor(
    log: &ProjectLog,
    cosigned: &[u8],
    witnesses: &[NoteKey],
    options: &WriterOptions,
) -> Result<Vec<String>, AnchorError> {
    let trust = Trust::only(options.key.public());
    let ledger_origin = log.ledger_origin();
    let (head, note) =
        open_checkpoint(cosigned, &ledger_origin, &trust).map_err(AnchorError::NotOurs)?;
    let mut signers = Vec::new();
    let mut reason = String::from("no key was given");
    for key in witnesses {
        match key.verify(&note) {
            Ok(_) => signers.push(key),
            Err(error) => reason = error.to_string(),
        }
    }
    if signers.is_empty() {
        return Err(AnchorError::NotWitnessed(reason));
    }
    let mut ledger = LockedLedger::open(log, &options.key, &options.clock)?;
    check_history(log, &trust, &head)?;
    ledger.append(
        EventType::LOG_ANCHORED,
        &AnchoredRecord {
            head: note.to_string(),
            witnesses: signers.iter().map(|key| key.to_string()).collect(),
        },
    )?;
    Ok(signers.iter().map(|key| key.name().to_owned()).collect())
}

fn check_history(log: &ProjectLog, trust: &Trust, head: &Checkpoint) -> Result<(), AnchorError> {
    let ledger = Ledger::fold(
        log,
        trust,
        &BTreeSet::from([head.size]),
        &mut Problems::default(),
    )
    .map_err(LedgerError::io(log.ledger_path()))?;
    match ledger.roots.get(&head.size) {
        Some(root) if *root == head.root => Ok(()),
        _ => Err(AnchorError::OtherHistory { size: head.size }),
    }
}
