//! The end of a run: its log is shipped and attested, and what the gateway says of it is kept beside the log.

use std::path::PathBuf;

use lodestar_core::event::EventType;
use lodestar_core::execution::{FactSet, evaluate};
use lodestar_core::key::SecretKey;
use lodestar_core::statement::{Envelope, Issued, RunGrade, StatementError};
use lodestar_kernel::opening::Opening;
use lodestar_log::{Clock, Reader, SessionDir};
use thiserror::Error;

use super::record::{Place, RunBook, RunRecord, Stage};
use super::{AskError, allowed, follow};
use crate::bundle::{PackError, Packed, pack};
use crate::client::{GatewayClient, GatewayError};
use crate::device::{
    DeviceError, DeviceFolder, FileError, SignError, Signer, Stopped, Vouched, files, nonce,
};
use crate::wire;

/// Why a run is not attested, or not yet.
#[derive(Debug, Error)]
pub enum FinishError {
    /// No session was opened as this run.
    #[error("no session was opened as this run; name the one that was")]
    NoSession,
    /// The session is another run, or none.
    #[error("session `{}` is not this run: {problem}", place.display())]
    OtherRun {
        /// The session's folder.
        place: PathBuf,
        /// What it says instead.
        problem: String,
    },
    /// The log cannot be read.
    #[error("the log cannot be read: {0}")]
    Read(String),
    /// The log cannot be packed.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The log is signed by another key than the device's.
    #[error("this installation's log key is not the one that the device was enrolled with")]
    OtherLogKey,
    /// The device does not sign now.
    #[error("{0}; nothing was signed")]
    Stopped(Stopped),
    /// The device's folder cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device's key cannot sign.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The checkpoint did not arrive.
    #[error("the checkpoint did not arrive: {0}")]
    Checkpoint(String),
    /// The gateway was not reached, or refused.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// What the gateway says does not follow from what it says.
    #[error("the gateway says `{level}`, and the facts that it names come to something else")]
    DoesNotFollow {
        /// What it says.
        level: String,
    },
    /// The answer cannot be kept.
    #[error("the gateway's answer cannot be kept: {0}")]
    Keep(String),
}

impl FinishError {
    /// Whether it may work later, without anybody's doing anything.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Gateway(problem) => problem.may_pass(),
            Self::Checkpoint(_) => true,
            Self::Stopped(stopped) => !stopped.is_for_good(),
            _ => false,
        }
    }
}

impl From<AskError> for FinishError {
    fn from(problem: AskError) -> Self {
        match problem {
            AskError::Device(problem) => Self::Device(problem),
            AskError::Gateway(problem) => Self::Gateway(problem),
        }
    }
}

impl From<StatementError> for FinishError {
    fn from(problem: StatementError) -> Self {
        Self::Sign(problem.into())
    }
}

/// A run that is attested.
#[derive(Debug, Clone)]
pub struct Finished {
    /// What the gateway answered.
    pub attested: wire::Attested,
    /// Where what it said is kept.
    pub grade: PathBuf,
}

/// Ships and attests a run whose session is closed, and keeps what came of it in its record either way.
pub async fn finish(
    folder: &DeviceFolder,
    client: &GatewayClient,
    record: &mut RunRecord,
    log_key: &SecretKey,
) -> Result<Finished, FinishError> {
    let done = attempt(folder, client, record, log_key).await;
    match &done {
        Ok(finished) => {
            record.stage = Stage::Attested;
            record.level = Some(finished.attested.level);
            record.problem = None;
        }
        Err(problem) => record.problem = Some(problem.to_string()),
    }
    RunBook::of(folder).keep(record)?;
    done
}

async fn attempt(
    folder: &DeviceFolder,
    client: &GatewayClient,
    record: &RunRecord,
    log_key: &SecretKey,
) -> Result<Finished, FinishError> {
    let place = record.session.as_ref().ok_or(FinishError::NoSession)?;
    let dir = place.dir();
    let identity = folder.identity()?;
    if identity.log_key != log_key.public() {
        return Err(FinishError::OtherLogKey);
    }
    let opening = opening_of(&dir)?;
    is_this_run(&dir, &opening, record)?;
    if let Err(stopped) = allowed(folder, client).await? {
        return Err(FinishError::Stopped(stopped));
    }
    let (packed, bytes) = packed(&dir, identity.log_key).await?;
    let run = record.ticket.id;
    follow::send(client, run, &dir, &mut String::new())
        .await
        .map_err(FinishError::Checkpoint)?;
    let signer = Signer::new(identity, folder.key()?);
    let statement = signer.bundle(run, &packed)?;
    client.bundle(run, &statement, &bytes).await?;
    drop(bytes);
    // A pause that came meanwhile is obeyed, too.
    if let Err(stopped) = allowed(folder, client).await? {
        return Err(FinishError::Stopped(stopped));
    }
    let vouched = Vouched {
        agent: record.plan.agent,
        runner: record.plan.runner,
        workflow_hash: record.plan.workflow_hash,
        lens_hash: record.plan.lens_hash,
    };
    let policy = opening.policy.digest;
    let envelope = signer.attest(dir.session(), &record.ticket, &packed, policy, vouched)?;
    let asked = wire::Attest {
        envelope,
        device_trusted: None,
        gateway_verified: None,
        policy_passed: None,
    };
    let attested = client.attest(run, &asked).await?;
    let grade = grade(&signer, client, place, &packed, run, &attested)?;
    let grade = keep(&dir, grade, log_key)?;
    Ok(Finished { attested, grade })
}

async fn packed(
    dir: &SessionDir,
    log_key: lodestar_core::key::PublicKey,
) -> Result<(Packed, Vec<u8>), FinishError> {
    let dir = dir.clone();
    let packing = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let packed = pack(&dir, &log_key, &mut bytes)?;
        Ok::<_, PackError>((packed, bytes))
    });
    let packed = packing.await;
    let packed = packed.map_err(|problem| PackError::Io(std::io::Error::other(problem)))?;
    Ok(packed?)
}

/// What a session was opened with.
pub fn opening_of(dir: &SessionDir) -> Result<Opening, FinishError> {
    let other = |problem: &str| FinishError::OtherRun {
        place: dir.dir().to_owned(),
        problem: problem.to_owned(),
    };
    let unread = |problem: &dyn std::fmt::Display| FinishError::Read(problem.to_string());
    let mut reader = Reader::open(dir).map_err(|problem| unread(&problem))?;
    let first = reader.next_event().map_err(|problem| unread(&problem))?;
    let opening = Some(EventType::SESSION_OPENED);
    let first = first.filter(|event| EventType::parse(event.kind.as_bytes()) == opening);
    let first = first.ok_or_else(|| other("it has no opening"))?;
    let payload = first.whole(dir).map_err(|problem| unread(&problem))?;
    let payload = payload.ok_or_else(|| other("its opening was redacted"))?;
    serde_json::from_value(payload).map_err(|problem| other(&problem.to_string()))
}

fn is_this_run(dir: &SessionDir, opening: &Opening, record: &RunRecord) -> Result<(), FinishError> {
    let problem = match opening.run {
        Some(ticket) if ticket == record.ticket => return Ok(()),
        Some(ticket) => format!("its opening says `{}`", ticket.id),
        None => "its opening says that it is none".to_owned(),
    };
    Err(FinishError::OtherRun {
        place: dir.dir().to_owned(),
        problem,
    })
}

/// What the gateway said, if it follows from the facts that it names.
fn grade(
    signer: &Signer,
    client: &GatewayClient,
    place: &Place,
    packed: &Packed,
    run: lodestar_core::id::RunId,
    attested: &wire::Attested,
) -> Result<RunGrade, FinishError> {
    let said = &attested.evaluation;
    let evaluation = evaluate(said.facts.iter().copied().collect::<FactSet>());
    let follows = evaluation.level() == said.level
        && evaluation.stopped_by() == said.stopped_by
        && said.level == attested.level;
    if !follows {
        let level = attested.level.to_string();
        return Err(FinishError::DoesNotFollow { level });
    }
    let identity = signer.identity();
    Ok(RunGrade {
        account: identity.account,
        attestation: attested.attestation,
        device: identity.device,
        evaluation,
        evaluated_at: said.at,
        evaluation_id: said.id,
        gateway: client.url().to_string(),
        project: place.project.clone(),
        reason: attested.found.reason.clone(),
        root: packed.root,
        run,
        session: place.session.clone(),
        size: packed.size,
    })
}

/// Keeps it beside the log, signed with the log's key: nobody changes it unseen.
fn keep(dir: &SessionDir, grade: RunGrade, log_key: &SecretKey) -> Result<PathBuf, FinishError> {
    let issued = Issued {
        expires_at: None,
        issued_at: Clock::system().now(),
        key_id: log_key.public().key_id(),
        nonce: nonce()?,
        subject: grade,
    };
    let envelope = Envelope::sign(&issued, log_key)?;
    let text = String::from_utf8_lossy(&envelope.to_json()).into_owned();
    let path = dir.grade_path();
    files::replace_private(&path, &format!("{text}\n"))
        .map_err(|problem: FileError| FinishError::Keep(problem.to_string()))?;
    Ok(path)
}
