//! Witnesses: their signatures are checked, kept, and still fit later.

use std::fs;

use lodestar_core::key::SecretKey;
use lodestar_core::note::{Checkpoint, Note, NoteKey};
use lodestar_log::verify::Remark;
use lodestar_log::{AnchorError, Trust, record_anchor};

use crate::support::{World, verify_folder};

const WITNESS: &str = "witness.example";

/// The ledger's head, signed by a witness who looked at it.
fn cosigned(world: &World, witness: &SecretKey) -> Vec<u8> {
    let head = fs::read(world.log().ledger_checkpoint_path()).unwrap();
    let mut note = Note::parse(&head).unwrap();
    Checkpoint::cosign(&mut note, WITNESS, witness, 1_800_000_000).unwrap();
    note.to_string().into_bytes()
}

#[test]
fn a_cosigned_head_is_recorded_and_verified_with_the_ledger() {
    let world = World::fast();
    world.closed("s1", 5);
    let witness = SecretKey::from_seed([3; 32]);
    let key = NoteKey::cosignature(WITNESS, &witness.public()).unwrap();
    let head = cosigned(&world, &witness);
    world.closed("s2", 5);
    let names = record_anchor(
        &world.log(),
        &head,
        std::slice::from_ref(&key),
        &world.options(),
    )
    .unwrap();
    assert_eq!(names, [WITNESS]);
    let trust = Trust {
        witnesses: vec![key],
        ..world.trust()
    };
    let report = verify_folder(world.folder(), &trust, Some(head));
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(
        report.remarks,
        [Remark::Witnessed {
            seq: 4,
            size: 2,
            names: WITNESS.to_owned()
        }]
    );
    // Who does not know the witness is told so.
    assert!(matches!(
        &world.verify().remarks[..],
        [Remark::UnknownWitness { seq: 4, .. }]
    ));
}

#[test]
fn a_head_that_is_foreign_unsigned_or_of_another_history_is_refused() {
    let world = World::fast();
    world.closed("s1", 5);
    let witness = SecretKey::from_seed([3; 32]);
    let key = NoteKey::cosignature(WITNESS, &witness.public()).unwrap();
    let record = |head: &[u8]| {
        record_anchor(
            &world.log(),
            head,
            std::slice::from_ref(&key),
            &world.options(),
        )
    };
    let plain = fs::read(world.log().ledger_checkpoint_path()).unwrap();
    assert!(matches!(record(&plain), Err(AnchorError::NotWitnessed(_))));
    let forged = cosigned(&world, &SecretKey::from_seed([4; 32]));
    assert!(matches!(record(&forged), Err(AnchorError::NotWitnessed(_))));
    assert!(matches!(record(b"nonsense"), Err(AnchorError::NotOurs(_))));
    let elsewhere = World::fast();
    elsewhere.closed("s1", 5);
    let other = cosigned(&elsewhere, &witness);
    assert!(matches!(
        record(&other),
        Err(AnchorError::OtherHistory { size: 2 })
    ));
    let before = world.verify().ledger_records;
    assert_eq!(before, 2, "nothing was recorded");
}
