//! Whether a bundle is the log of the run that was attested.

use std::collections::BTreeSet;

use lodestar_core::digest::Digest;
use lodestar_core::key::PublicKey;
use lodestar_core::name::{Excerpt, ProjectId, SessionId};
use lodestar_core::note::Checkpoint;
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::RunTicket;
use lodestar_log::verify::verify_shipped;
use lodestar_log::{
    Commitment, Event, Problem, ProblemKind, ReadError, Reader, SessionDir, SignedCheckpoint, Trust,
};
use serde::Deserialize;
use serde_json::Value;

use super::Limits;
use super::fault::{BundleError, Fault};
use super::pack::Contents;
use super::unpack::Unpacked;

/// What a bundle has to be. All of it comes from what was stored before, or from what the device signed.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The bundle's digest, as the device signed for it.
    pub bundle: Digest,
    /// The one key that the log may be signed with: the device's.
    pub log_key: &'a PublicKey,
    /// Whose redactions count: the operators of the terms.
    pub operators: &'a [PublicKey],
    /// The attested session; none where nothing is attested yet.
    pub session: Option<&'a SessionId>,
    /// The attested root.
    pub root: Digest,
    /// The attested number of events.
    pub size: u64,
    /// Every checkpoint that was received of the run before its bundle, as notes.
    pub checkpoints: &'a [String],
    /// What was given out when the run was registered.
    pub ticket: RunTicket,
}

/// A log of which everything held that was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The project that it names. With the session, it is one log: no other run may have the same.
    pub project: ProjectId,
    /// The session.
    pub session: SessionId,
    /// How many events it has.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
    /// When it says that it was opened, by the device's clock.
    pub opened_at: Timestamp,
    /// How many of the received checkpoints lie on its way.
    pub checkpoints: usize,
}

/// Reads a checkpoint that a device sends of a run, and checks that its log key signed it. Of which log it is, it
/// says itself.
pub fn checkpoint(note: &str, log_key: &PublicKey) -> Result<Checkpoint, Fault> {
    let signed = SignedCheckpoint::open(note, &Trust::only(*log_key));
    let signed = signed.map_err(|problem| Fault::Checkpoint {
        problem: problem.to_string(),
    })?;
    Ok(signed.checkpoint().clone())
}

/// Verifies everything: that it is the bundle that was signed for; that the log is whole, closed and signed with
/// the device's key; that it has the attested root; that every checkpoint that was received lies on its way; and
/// that it was opened for this run.
pub fn verify(
    unpacked: &Unpacked,
    expected: &Expected<'_>,
    limits: &Limits,
) -> Result<Verified, BundleError> {
    if unpacked.bundle() != expected.bundle {
        return Err(Fault::OtherBundle.into());
    }
    let dir = unpacked.dir();
    if expected.session.is_some_and(|name| name != dir.session()) {
        return Err(Fault::OtherSession.into());
    }
    let received = received(&dir, expected)?;
    check_contents(unpacked, limits)?;
    let trust = Trust {
        operators: expected.operators.to_vec(),
        ..Trust::only(*expected.log_key)
    };
    let report = verify_shipped(&dir, &received, &trust)?;
    if let Some(problem) = report.problems.first() {
        return Err(fault(problem).into());
    }
    if report.events != expected.size {
        let (size, found) = (expected.size, report.events);
        return Err(Fault::OtherSize { size, found }.into());
    }
    if report.root != expected.root {
        return Err(Fault::OtherRoot.into());
    }
    if report.proven != report.events {
        let (proven, events) = (report.proven, report.events);
        return Err(Fault::Unproven { proven, events }.into());
    }
    let opened_at = check_ticket(&dir, &expected.ticket)?;
    Ok(Verified {
        project: dir.project().clone(),
        session: dir.session().clone(),
        size: report.events,
        root: report.root,
        opened_at,
        checkpoints: received.len(),
    })
}

/// The checkpoints that were received, if there are any and all are of this log.
fn received(dir: &SessionDir, expected: &Expected<'_>) -> Result<Vec<Checkpoint>, Fault> {
    let mut received = Vec::with_capacity(expected.checkpoints.len());
    for note in expected.checkpoints {
        let checkpoint = checkpoint(note, expected.log_key)?;
        if checkpoint.origin != dir.origin() {
            return Err(Fault::OtherLog {
                origin: Excerpt::of(&checkpoint.origin),
            });
        }
        // The first of a session commits to nothing.
        if checkpoint.size > 0 {
            received.push(checkpoint);
        }
    }
    match received.is_empty() {
        true => Err(Fault::NoCheckpoint),
        false => Ok(received),
    }
}

/// Looks through the events for what costs whoever reads them closely, before anybody does.
fn check_contents(unpacked: &Unpacked, limits: &Limits) -> Result<(), BundleError> {
    let contents = Contents::of(&unpacked.dir(), limits.events.saturating_add(1));
    let contents = contents.map_err(unreadable)?;
    if contents.events > limits.events {
        return Err(Fault::TooManyEvents.into());
    }
    if contents.unpacked > limits.contents {
        return Err(Fault::TooMuchContent.into());
    }
    let (seq, bytes) = contents.densest;
    if bytes > limits.structure {
        return Err(Fault::TooMuchStructure { seq, bytes }.into());
    }
    let unnamed: BTreeSet<_> = unpacked.names.difference(&contents.names).collect();
    if let Some(name) = unnamed.first() {
        let name = name.text();
        return Err(Fault::Unnamed { name }.into());
    }
    match contents.is_closed {
        true => Ok(()),
        false => Err(Fault::NotClosed.into()),
    }
}

fn unreadable(problem: ReadError) -> BundleError {
    match problem {
        ReadError::Io(problem) => problem.into(),
        ReadError::Line { .. } => Fault::Log {
            code: "malformed_line",
            problem: problem.to_string(),
        }
        .into(),
    }
}

fn fault(problem: &Problem) -> Fault {
    match &problem.kind {
        ProblemKind::Rewritten {
            by: Commitment::Received,
            size,
        }
        | ProblemKind::Truncated {
            by: Commitment::Received,
            size,
            ..
        } => Fault::Inconsistent { size: *size },
        ProblemKind::CheckpointInvalid { reason } => Fault::Checkpoint {
            problem: reason.clone(),
        },
        kind => Fault::Log {
            code: kind.code(),
            problem: problem.to_string(),
        },
    }
}

#[derive(Deserialize)]
struct Opened {
    run: Option<RunTicket>,
}

/// Whether the log was opened for this run; gives when.
fn check_ticket(dir: &SessionDir, ticket: &RunTicket) -> Result<Timestamp, BundleError> {
    let first: Option<Event> = Reader::open(dir)?.next_event().map_err(unreadable)?;
    let bad = |problem: &str| Fault::Opening {
        problem: problem.to_owned(),
    };
    let first = first.ok_or_else(|| bad("there is none"))?;
    let payload = first
        .whole(dir)
        .map_err(|problem| bad(&problem.to_string()))?;
    let payload: Value = payload.ok_or_else(|| bad("it was redacted"))?;
    let opened: Opened =
        serde_json::from_value(payload).map_err(|problem| bad(&problem.to_string()))?;
    let fault = match opened.run {
        None => Fault::NoTicket,
        Some(found) if found.id != ticket.id => Fault::OtherRun,
        Some(found) if found.nonce != ticket.nonce => Fault::OtherNonce,
        Some(_) => return Ok(first.time),
    };
    Err(fault.into())
}
