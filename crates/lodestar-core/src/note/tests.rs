//! Published notes, and texts that are nearly notes.

mod checkpoints;
mod keys;
mod notes;

use super::*;
use crate::digest::sha256;
use crate::key::SecretKey;

/// The example of the Go package that the format comes from.
const NEUMANN_KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const NEUMANN_SECRET: &str =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const NEUMANN_TEXT: &str = "If you think cryptography is the answer to your problem,\n\
                            then you don't know what your problem is.\n";
const NEUMANN_LINE: &str = "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

fn neumann() -> String {
    format!("{NEUMANN_TEXT}\n{NEUMANN_LINE}")
}

fn key(text: &str) -> NoteKey {
    text.parse().unwrap()
}

fn parse(text: &str) -> Result<Note, NoteError> {
    Note::parse(text.as_bytes())
}

fn secret(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        origin: "lodestar/demo/session-1".to_owned(),
        size: 42,
        root: sha256(b"root"),
    }
}

fn log_key() -> NoteKey {
    NoteKey::ed25519(&checkpoint().origin, &secret(1).public()).unwrap()
}
