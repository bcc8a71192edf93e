//! The end of a run: its log is shipped and attested, and what the gateway says of it is kept beside the log.

use std::path::PathBuf;

use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::execution::{FactSet, evaluate};
use lodestar_core::id::RunId;
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::SessionId;
use lodestar_core::statement::{Envelope, Issued, RunGrade, StatementError};
use lodestar_kernel::opening::Opening;
use lodestar_log::{Clock, Reader, SessionDir};
use thiserror::Error;

use super::follow::{self, SendError};
use super::record::{Place, RunBook, RunRecord, Stage};
use crate::bundle::{Limits, PackError, Packed, pack};
use crate::client::{GatewayClient, GatewayError, bundle_body};
use crate::code::Code;
use crate::device::{
    AskError, DeviceError, DeviceFolder, DeviceIdentity, FileError, SignError, Stopped, Vouched,
    files, nonce,
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
    /// The session goes on.
    #[error("session `{0}` goes on; a run is attested when it is over")]
    Live(SessionId),
    /// Somebody else ships it now.
    #[error("another process ships and attests this run now")]
    Busy,
    /// Somebody attested it meanwhile, or long ago.
    #[error("this run is attested")]
    Attested,
    /// The log cannot be read.
    #[error("the log cannot be read: {0}")]
    Read(String),
    /// The log is larger than the gateway takes.
    #[error(
        "the run's log is a bundle of {bytes} bytes, which is more than the gateway takes; whoever runs it may raise `bundle_bytes` under `[http]`, up to {} bytes", Limits::default().bytes
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// The session is another run's.
    #[error(
        "another run of the account is a session of this name already, so this run can never be attested; every run is a session of its own"
    )]
    SessionTaken,
    /// The session had another policy than the run's terms.
    #[error(
        "the session ran under the policy {ran}, and the run's terms say {terms}, so this run can never be attested; register terms of a session with the new policy, and name them in `[run]`"
    )]
    OtherPolicy {
        /// What it ran under.
        ran: Digest,
        /// What the owner registered.
        terms: Digest,
    },
    /// The log cannot be packed.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The log is signed by another key than the device's.
    #[error("this installation's log key is not the one that the device was enrolled with")]
    OtherLogKey,
    /// The device does not sign now.
    #[error("{0}; nothing was signed")]
    Stopped(Stopped),
    /// The gateway has another key of the device.
    #[error(transparent)]
    OtherKey(AskError),
    /// The device's folder cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device's key cannot sign.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The checkpoint did not arrive.
    #[error("the checkpoint did not arrive: {0}")]
    Checkpoint(SendError),
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
            Self::Checkpoint(problem) => !problem.is_final(),
            Self::Live(_) | Self::Busy => true,
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
            AskError::Stopped(stopped) | AskError::StoppedBefore { stopped, .. } => {
                Self::Stopped(stopped)
            }
            AskError::OtherKey => Self::OtherKey(problem),
        }
    }
}

impl From<SendError> for FinishError {
    fn from(problem: SendError) -> Self {
        match problem {
            SendError::Gateway(problem) if problem.code() == Some(Code::SessionTaken) => {
                Self::SessionTaken
            }
            problem => Self::Checkpoint(problem),
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

impl RunRecord {
    /// Says which session the run was, if that session's opening says so too.
    pub fn was(&mut self, dir: &SessionDir) -> Result<(), FinishError> {
        is_this_run(dir, &opening_of(dir)?, self)?;
        self.session = Some(Place::of(dir));
        if self.stage == Stage::Registered {
            self.stage = Stage::Opened;
        }
        Ok(())
    }
}

/// Ships and attests a run whose session is closed, once, and keeps what came of it in its record either way.
pub async fn finish(
    folder: &DeviceFolder,
    client: &GatewayClient,
    record: &mut RunRecord,
    log_key: &SecretKey,
) -> Result<Finished, FinishError> {
    let book = RunBook::of(folder);
    let run = record.ticket.id;
    let held = book.hold(run)?.ok_or(FinishError::Busy)?;
    // Whoever held it before may have done it.
    if let Some(kept) = book.get(run)?
        && kept.stage == Stage::Attested
    {
        *record = kept;
        held.done();
        return Err(FinishError::Attested);
    }
    let place = record.session.as_ref().ok_or(FinishError::NoSession)?;
    if record.is_live() {
        return Err(FinishError::Live(place.session.clone()));
    }
    let done = attempt(folder, client, record, log_key).await;
    match &done {
        Ok(finished) => {
            record.stage = Stage::Attested;
            record.level = Some(finished.attested.level);
            record.problem = None;
        }
        Err(problem) => {
            let is_final = matches!(
                problem,
                FinishError::SessionTaken | FinishError::OtherPolicy { .. }
            );
            if is_final {
                record.stage = Stage::Refused;
            }
            record.problem = Some(problem.to_string());
        }
    }
    book.keep(record)?;
    if record.stage == Stage::Attested {
        held.done();
    }
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
    // Before anything is read at length.
    folder.ask(client).await?;
    let run = record.ticket.id;
    let packed = measured(&dir, identity.log_key).await?;
    follow::send(client, run, &dir, &mut String::new()).await?;
    let (ran, terms) = (opening.policy.digest, client.run(run).await?.policy);
    if ran != terms {
        return Err(FinishError::OtherPolicy { ran, terms });
    }
    ship(folder, client, run, &dir, &packed).await?;
    let vouched = Vouched {
        agent: record.plan.agent,
        runner: record.plan.runner,
        workflow_hash: record.plan.workflow_hash,
        lens_hash: record.plan.lens_hash,
    };
    let policy = opening.policy.digest;
    // A pause or another key that came meanwhile is obeyed, too.
    let signer = folder.signer(client).await?;
    let envelope = signer.attest(dir.session(), &record.ticket, &packed, policy, vouched)?;
    let asked = wire::Attest {
        envelope,
        device_trusted: None,
        gateway_verified: None,
        policy_passed: None,
    };
    let attested = client.attest(run, &asked).await?;
    let grade = grade(signer.identity(), client, place, &packed, run, &attested)?;
    let grade = keep(&dir, grade, log_key)?;
    Ok(Finished { attested, grade })
}

/// What a session's bundle comes to. It has one spelling, so nothing of it has to be held to know that.
async fn measured(dir: &SessionDir, log_key: PublicKey) -> Result<Packed, FinishError> {
    let dir = dir.clone();
    let measured = blocking(move || pack(&dir, &log_key, &mut std::io::sink())).await?;
    match measured.bytes > Limits::default().bytes {
        true => Err(FinishError::TooLarge {
            bytes: measured.bytes,
        }),
        false => Ok(measured),
    }
}

/// Sends the bundle, which is held once, behind the statement that tells of it.
async fn ship(
    folder: &DeviceFolder,
    client: &GatewayClient,
    run: RunId,
    dir: &SessionDir,
    expected: &Packed,
) -> Result<(), FinishError> {
    let signer = folder.signer(client).await?;
    let statement = signer.bundle(run, expected)?;
    let (dir, log_key) = (dir.clone(), signer.identity().log_key);
    let bytes = usize::try_from(expected.bytes).unwrap_or(usize::MAX);
    let (packed, body) = blocking(move || {
        let mut body = bundle_body(&statement, bytes);
        let packed = pack(&dir, &log_key, &mut body)?;
        Ok((packed, body))
    })
    .await?;
    if packed != *expected {
        return Err(PackError::Changed.into());
    }
    match client.bundle_with_statement(run, body).await {
        Err(problem) if problem.code() == Some(Code::BodyTooLarge) => Err(FinishError::TooLarge {
            bytes: expected.bytes,
        }),
        sent => Ok(sent.map(drop)?),
    }
}

async fn blocking<T: Send + 'static>(
    doing: impl FnOnce() -> Result<T, PackError> + Send + 'static,
) -> Result<T, PackError> {
    let done = tokio::task::spawn_blocking(doing).await;
    done.map_err(|problem| PackError::Io(std::io::Error::other(problem)))?
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
    identity: &DeviceIdentity,
    client: &GatewayClient,
    place: &Place,
    packed: &Packed,
    run: RunId,
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
