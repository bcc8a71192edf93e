//! The seal of a bundle: a signed note, by which the key of a log vouches for every byte before it.
//!
//! It is signed under a name of its own, so that no checkpoint passes for a seal and no seal for a checkpoint.

use lodestar_core::digest::Digest;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::note::{Note, NoteError, NoteKey};
use lodestar_log::Trust;

fn name(project: &ProjectId, session: &SessionId) -> String {
    format!("lodestar.bundle/{project}/{session}")
}

fn text(name: &str, digest: Digest) -> String {
    format!("{name}\n{digest}\n")
}

/// Signs what stands before the seal.
pub(super) fn make(
    project: &ProjectId,
    session: &SessionId,
    digest: Digest,
    key: &SecretKey,
) -> Result<String, NoteError> {
    let name = name(project, session);
    let mut note = Note::new(text(&name, digest))?;
    note.sign(&name, key)?;
    Ok(note.to_string())
}

/// Why a seal is none, in words.
pub(super) fn check(
    seal: &str,
    project: &ProjectId,
    session: &SessionId,
    digest: Digest,
    trust: &Trust,
) -> Result<(), String> {
    let nobody =
        |why: &dyn std::fmt::Display| format!("the bundle was put together by nobody known: {why}");
    let name = name(project, session);
    let note = Note::parse(seal.as_bytes()).map_err(|problem| nobody(&problem))?;
    let mut refused = String::from("no log key is trusted");
    let is_signed = trust.log_keys.iter().any(|key| {
        let verified = NoteKey::ed25519(&name, key).and_then(|key| key.verify(&note));
        verified
            .inspect_err(|problem| refused = problem.to_string())
            .is_ok()
    });
    if !is_signed {
        return Err(nobody(&refused));
    }
    match note.text() == text(&name, digest) {
        true => Ok(()),
        false => Err("what stands before the seal is not what was sealed".to_owned()),
    }
}
