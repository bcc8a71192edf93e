//! Laws of signed notes and checkpoints.

use lodestar_core::note::{Checkpoint, MAX_NOTE_SIGNATURES, Note, NoteKey};

use crate::sample;

/// A note that is accepted prints as the bytes it was read from; so does the checkpoint in it. It
/// opens with a key only if that key's owner signed this very text.
pub fn checkpoint(data: &[u8]) {
    let Ok(note) = Note::parse(data) else {
        return;
    };
    assert_eq!(note.to_string().as_bytes(), data);
    assert!((1..=MAX_NOTE_SIGNATURES).contains(&note.signatures().len()));
    let Ok(checkpoint) = Checkpoint::parse_body(note.text()) else {
        return;
    };
    assert_eq!(checkpoint.body(), note.text());
    let Ok(stranger) = NoteKey::ed25519(&checkpoint.origin, &sample::stranger_key().public())
    else {
        return;
    };
    assert!(Checkpoint::open(data, &stranger).is_err());
    let log = NoteKey::ed25519(&checkpoint.origin, &sample::log_key().public())
        .expect("the name was good for a key already");
    if let Ok((opened, _)) = Checkpoint::open(data, &log) {
        assert_eq!(opened, checkpoint);
        assert!(
            sample::signed_checkpoints().contains(&opened),
            "nobody signed this"
        );
    }
}
