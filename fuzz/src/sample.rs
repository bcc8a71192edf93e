//! A small log whose keys are known here, so that a target can tell what was signed from what was
//! not. It lies in `docs/reference/sample`, where it is an example for whoever writes a verifier.
//! `cargo run --package lodestar-fuzz --example seeds` writes it, and the seeds, anew.

use lodestar_core::digest::Digest;
use lodestar_core::key::SecretKey;
use lodestar_core::merkle::Frontier;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_core::statement::Envelope;
use lodestar_log::Line;

const EVENTS: &[u8] = include_bytes!("../../docs/reference/sample/s1/events.ndjson");
const CHECKPOINT: &[u8] = include_bytes!("../../docs/reference/sample/s1/checkpoint");
const LEDGER_CHECKPOINT: &[u8] = include_bytes!("../../docs/reference/sample/ledger.checkpoint");
const COSIGNED: &[u8] = include_bytes!("../corpus/checkpoint/ok-cosigned");
const REDACTION: &[u8] = include_bytes!("../corpus/dsse_envelope/ok-redaction");

/// Signs the sample's checkpoints.
pub fn log_key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

/// Signed the sample's redaction.
pub fn operator_key() -> SecretKey {
    SecretKey::from_seed([8; 32])
}

/// Co-signed the sample's ledger.
pub fn witness_key() -> SecretKey {
    SecretKey::from_seed([9; 32])
}

/// Signed nothing.
pub fn stranger_key() -> SecretKey {
    SecretKey::from_seed([10; 32])
}

/// The checkpoints that the log key signed.
pub fn signed_checkpoints() -> [Checkpoint; 3] {
    [CHECKPOINT, LEDGER_CHECKPOINT, COSIGNED].map(|bytes| {
        let note = Note::parse(bytes).expect("the sample's checkpoint is a note");
        Checkpoint::parse_body(note.text()).expect("the sample's checkpoint is one")
    })
}

/// The leaf hashes of the sample session.
pub fn leaves() -> Vec<Digest> {
    EVENTS
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let line = Line::parse(line).expect("the sample's lines are lines");
            line.leaf_hash()
        })
        .collect()
}

/// The root over the first `size` events of the sample session.
pub fn root(size: u64) -> Option<Digest> {
    let leaves = leaves();
    let mut tree = Frontier::new();
    for leaf in leaves.get(..usize::try_from(size).ok()?)? {
        tree.push(*leaf);
    }
    Some(tree.root())
}

/// The statement that the operator signed.
pub fn redaction() -> Envelope {
    Envelope::from_json(REDACTION).expect("the sample's statement is one")
}
