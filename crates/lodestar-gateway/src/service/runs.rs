//! Runs: registered before they begin, checkpointed while they go on, and handed in when they are over.

use std::io::Write as _;
use std::path::PathBuf;

use lodestar_core::digest::{Digest, Hasher};
use lodestar_core::event::EventType;
use lodestar_core::id::{RunId, TermsId};
use lodestar_core::key::PublicKey;
use lodestar_core::name::SessionId;
use lodestar_core::statement::{Envelope, Nonce, RunBundle, Verified};
use lodestar_replay::terms::Terms;
use serde_json::json;
use tempfile::NamedTempFile;

use super::desk::{Desk, Stop, new_id, random};
use super::devices::{compare, may_attest, not_gone, owned, same_key, spend};
use super::known::Identity;
use super::ladder::settle;
use super::{Service, grading, page};
use crate::bundle;
use crate::code::{Code, Refusal};
use crate::http::Pieces;
use crate::store::bundles::{self, BundleRow};
use crate::store::devices::Device;
use crate::store::runs::{self, Run, RunCheckpoint, RunSession};
use crate::store::{agents, keys, runners, terms};
use crate::wire::{self, MAX_NOTE};

/// Checkpoints that are kept of a run: all of them are read when it is judged. A device sends fewer as a run gets
/// long, so that this is more than a week.
const CHECKPOINTS: u64 = 1 << 14;

/// Bundles that are kept of a run: one that is right, and what went before.
const BUNDLES: usize = 4;

/// The statement before a bundle's bytes takes a few hundred bytes.
const STATEMENT: usize = 16 << 10;

/// A run of whoever asks; of a device that asks, its own.
pub(super) fn owned_run(desk: &mut Desk<'_>, caller: &Identity, id: RunId) -> Result<Run, Stop> {
    let found = runs::get(desk.sql, id)?;
    let found = found.filter(|run| run.account == caller.account);
    let run = found.ok_or(Code::RunUnknown)?;
    match caller.device {
        Some(device) if device != run.device => Err(Code::OtherDevice.into()),
        _ => Ok(run),
    }
}

/// The key that a run's log has to be signed with: the one that the device had when the run was registered.
pub(super) fn log_key(desk: &mut Desk<'_>, run: &Run) -> Result<PublicKey, Stop> {
    let history = keys::history(desk.sql, run.device)?;
    let then = history
        .iter()
        .rev()
        .find(|keys| keys.at <= run.registered_at);
    let keys = then.or(history.first()).ok_or(Code::DeviceWithoutKey)?;
    Ok(keys.log_key)
}

impl Service {
    /// Registers a run, and gives what its log has to open with.
    pub async fn register_run(
        &self,
        caller: Identity,
        asked: wire::RegisterRun,
    ) -> Result<wire::RunRegistered, Refusal> {
        let device = caller.device.ok_or(Code::TokenKind)?;
        let policy = self.policy_of(&caller, asked.terms).await?;
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let mut device = owned(desk, caller.account, device)?;
            settle(desk, &mut device)?;
            may_attest(desk, &device)?;
            let own = |account| account == caller.account;
            let agent = agents::get(desk.sql, asked.agent)?;
            agent
                .filter(|agent| own(agent.account))
                .ok_or(Code::AgentUnknown)?;
            let runner = runners::get(desk.sql, asked.runner)?;
            runner
                .filter(|runner| own(runner.account))
                .ok_or(Code::RunnerUnknown)?;
            let run = Run {
                id: new_id!(RunId, desk.now),
                account: caller.account,
                device: device.id,
                runner: asked.runner,
                agent: asked.agent,
                terms: asked.terms,
                policy,
                nonce: Nonce::from_bytes(random()?),
                workflow_hash: asked.workflow_hash,
                lens_hash: asked.lens_hash,
                registered_at: desk.now,
            };
            if !runs::add(desk.sql, &run)? {
                return Err(Code::Internal.into());
            }
            let payload = json!({
                "account": run.account,
                "run": run.id,
                "device": run.device,
                "runner": run.runner,
                "agent": run.agent,
                "terms": run.terms,
                "policy": run.policy,
                "nonce": run.nonce,
                "workflow_hash": run.workflow_hash,
                "lens_hash": run.lens_hash,
            });
            desk.record(EventType::RUN_REGISTERED, &payload)?;
            Ok(wire::RunRegistered {
                run: run.id,
                nonce: run.nonce,
                registered_at: run.registered_at,
            })
        })
        .await
    }

    /// The policy of terms that the account registered.
    async fn policy_of(&self, caller: &Identity, id: TermsId) -> Result<Digest, Refusal> {
        if let Some(policy) = self.known.policy(caller.account, id) {
            return Ok(policy);
        }
        let row = self.terms_row(caller.clone(), id).await?;
        let read = tokio::task::spawn_blocking(move || read_policy(&row));
        let policy = read.await.map_err(|_| Refusal::of(Code::Internal))??;
        self.known.remember_policy(caller.account, id, policy);
        Ok(policy)
    }

    /// Takes the head of a run's log, and stamps it with the service's time.
    pub async fn checkpoint(
        &self,
        caller: Identity,
        id: RunId,
        asked: wire::SendCheckpoint,
    ) -> Result<wire::CheckpointReceived, Refusal> {
        if asked.note.is_empty() || asked.note.len() > MAX_NOTE {
            let why = format!("a checkpoint has 1 to {MAX_NOTE} bytes");
            return Err(Refusal::saying(Code::InvalidBody, why).at("note"));
        }
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let run = owned_run(desk, &caller, id)?;
            let device = owned(desk, caller.account, run.device)?;
            not_gone(&device)?;
            let key = log_key(desk, &run)?;
            let read = bundle::checkpoint(&asked.note, &key);
            let read =
                read.map_err(|fault| Refusal::saying(Code::CheckpointInvalid, fault.to_string()))?;
            let behind = |why: &str| Stop::from(Refusal::saying(Code::CheckpointBehind, why));
            if let Some(last) = runs::last_checkpoint(desk.sql, id)? {
                if read.size <= last.size {
                    return Err(behind("there is one of this size, or of a longer log"));
                }
                let other = bundle::checkpoint(&last.note, &key);
                if other.is_ok_and(|other| other.origin != read.origin) {
                    return Err(behind("those before it are of another session"));
                }
            }
            if runs::count_checkpoints(desk.sql, id)? >= CHECKPOINTS {
                return Err(Code::TooMany.into());
            }
            if !bundles::of_run(desk.sql, id)?.is_empty() {
                return Err(Code::CheckpointAfterBundle.into());
            }
            is_its_session(desk, &run, &read.origin)?;
            let checkpoint = RunCheckpoint {
                run: id,
                size: read.size,
                root: read.root,
                note: asked.note,
                received_at: desk.now,
            };
            if !runs::add_checkpoint(desk.sql, &checkpoint)? {
                return Err(behind("there is one of this size"));
            }
            let payload = json!({
                "account": run.account,
                "run": id,
                "device": run.device,
                "size": read.size,
                "root": read.root,
            });
            desk.record(EventType::RUN_CHECKPOINTED, &payload)?;
            Ok(wire::CheckpointReceived {
                size: read.size,
                root: read.root,
                received_at: desk.now,
            })
        })
        .await
    }

    /// Takes a run's bundle: a statement that tells of it, the end of a line, and its bytes.
    pub(crate) async fn receive_bundle(
        &self,
        caller: Identity,
        id: RunId,
        mut pieces: Pieces,
    ) -> Result<wire::BundleReceived, Refusal> {
        let (statement, rest) = first_line(&mut pieces).await?;
        let envelope = Envelope::from_json(&statement)
            .map_err(|problem| super::statement::refusal_of(problem, None))?;
        let device = caller.device.ok_or(Code::TokenKind)?;
        let said: Verified<RunBundle> = self.heard(&caller, device, &envelope).await?;
        let subject = said.subject();
        compare(&[
            ("account", subject.account == caller.account),
            ("device", subject.device == device),
            ("run", subject.run == id),
        ])?;
        let known = caller.clone();
        let there = self
            .ask(move |desk| {
                desk.act_for(&known)?;
                may_receive(desk, &known, id)?;
                Ok(bundles::of_run(desk.sql, id)?)
            })
            .await?;
        if let Some(there) = there.iter().find(|there| there.digest == subject.bundle) {
            return Ok(received(there));
        }
        if there.len() >= BUNDLES {
            return Err(Code::TooMany.into());
        }
        let mut arriving = Arriving::begin(self.folder.scratch(), subject)?;
        arriving = arriving.take(rest).await?;
        while let Some(piece) = pieces.next().await? {
            arriving = arriving.take(piece.to_vec()).await?;
        }
        let path = self.folder.bundle(subject.bundle);
        let keeping = tokio::task::spawn_blocking(move || arriving.keep(path));
        keeping.await.map_err(|_| Refusal::of(Code::Internal))??;
        let digest = subject.bundle;
        let taken = self.ask(move |desk| {
            desk.act_for(&caller)?;
            let device = may_receive(desk, &caller, id)?;
            same_key(&device, *said.key())?;
            // Others may have come while this one did.
            if bundles::of_run(desk.sql, id)?.len() >= BUNDLES {
                return Err(Code::TooMany.into());
            }
            spend(desk, device.id, said.issued().nonce)?;
            let subject = said.subject();
            let row = BundleRow {
                run: id,
                digest: subject.bundle,
                bytes: subject.bytes,
                root: subject.root,
                size: subject.size,
                received_at: desk.now,
            };
            if !bundles::add(desk.sql, &row)? {
                return Err(Code::BundleExists.into());
            }
            let payload = json!({
                "account": caller.account,
                "run": id,
                "device": device.id,
                "bundle": row.digest,
                "bytes": row.bytes,
                "root": row.root,
                "size": row.size,
                "statement": said.digest(),
            });
            desk.record(EventType::RUN_BUNDLE_RECEIVED, &payload)?;
            Ok(received(&row))
        });
        let taken = taken.await;
        if taken.is_err() {
            self.forget_bundle(digest).await;
        }
        taken
    }

    /// Takes the file of a bundle out that was not taken, unless it is another run's too. What is left where that
    /// does not work is taken out at the next start.
    async fn forget_bundle(&self, digest: Digest) {
        let folder = std::sync::Arc::clone(&self.folder);
        let forgetting = self.ask(move |desk| {
            desk.sql.act_as_server()?;
            if !bundles::is_known(desk.sql, digest)? {
                let _ = folder.forget_bundles(&[digest]);
            }
            Ok(())
        });
        let _ = forgetting.await;
    }

    /// One run.
    pub async fn run(&self, caller: Identity, id: RunId) -> Result<wire::Run, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let run = owned_run(desk, &caller, id)?;
            shown(desk, run)
        })
        .await
    }

    /// The account's runs.
    pub async fn runs(
        &self,
        caller: Identity,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<wire::Page<wire::Run>, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = runs::list(desk.sql, caller.account, after, limit + 1)?;
            let mut items = Vec::with_capacity(found.len());
            for run in found {
                items.push(shown(desk, run)?);
            }
            Ok(page(items, limit, |run| run.id.to_string()))
        })
        .await
    }
}

fn read_policy(row: &terms::TermsRow) -> Result<Digest, Refusal> {
    let failed = || Refusal::of(Code::Internal);
    let terms = Terms::parse(row.document.as_bytes()).map_err(|_| failed())?;
    terms.policy.digest().map_err(|_| failed())
}

/// A run is one session, and a session of that name no other run: a device that shows the same session for a second
/// run shows approvals in it a second time.
fn is_its_session(desk: &mut Desk<'_>, run: &Run, origin: &str) -> Result<(), Stop> {
    let name = origin.rsplit_once('/').map_or(origin, |(_, name)| name);
    let invalid = |_| Refusal::saying(Code::CheckpointInvalid, "its origin names no session");
    let named = RunSession {
        run: run.id,
        account: run.account,
        session: SessionId::new(name).map_err(invalid)?,
        since: desk.now,
    };
    match runs::session(desk.sql, run.id)? {
        Some(known) if known.session == named.session => Ok(()),
        Some(_) => Err(Code::CheckpointBehind.into()),
        None if runs::name_session(desk.sql, &named)? => Ok(()),
        None => Err(Code::SessionTaken.into()),
    }
}

/// Whether a bundle of this run is taken now.
fn may_receive(desk: &mut Desk<'_>, caller: &Identity, id: RunId) -> Result<Device, Stop> {
    let run = owned_run(desk, caller, id)?;
    let mut device = owned(desk, caller.account, run.device)?;
    settle(desk, &mut device)?;
    may_attest(desk, &device)?;
    if runs::count_checkpoints(desk.sql, id)? == 0 {
        return Err(Code::CheckpointMissing.into());
    }
    Ok(device)
}

fn received(row: &BundleRow) -> wire::BundleReceived {
    wire::BundleReceived {
        bundle: row.digest,
        bytes: row.bytes,
        received_at: row.received_at,
    }
}

pub(super) fn shown(desk: &mut Desk<'_>, run: Run) -> Result<wire::Run, Stop> {
    let evaluation = grading::latest(desk, run.id)?;
    Ok(wire::Run {
        id: run.id,
        device: run.device,
        runner: run.runner,
        agent: run.agent,
        terms: run.terms,
        policy: run.policy,
        nonce: run.nonce,
        workflow_hash: run.workflow_hash,
        lens_hash: run.lens_hash,
        registered_at: run.registered_at,
        evaluation,
    })
}

/// What stands before the first end of a line, and what already came behind it.
async fn first_line(pieces: &mut Pieces) -> Result<(Vec<u8>, Vec<u8>), Refusal> {
    let mut read = Vec::new();
    loop {
        if let Some(at) = read.iter().position(|byte| *byte == b'\n') {
            let rest = read.split_off(at + 1);
            read.truncate(at);
            return Ok((read, rest));
        }
        if read.len() > STATEMENT {
            let why = "the first line, which tells of the bundle, is too long";
            return Err(Refusal::saying(Code::EnvelopeMalformed, why));
        }
        match pieces.next().await? {
            Some(piece) => read.extend_from_slice(&piece),
            None => {
                let why = "before the bundle's bytes comes a line that tells of them";
                return Err(Refusal::saying(Code::EnvelopeMalformed, why));
            }
        }
    }
}

/// A bundle on its way to the disk.
struct Arriving {
    file: NamedTempFile,
    hasher: Hasher,
    left: u64,
    wanted: Digest,
}

impl Arriving {
    fn begin(scratch: PathBuf, said: &RunBundle) -> Result<Self, Refusal> {
        Ok(Self {
            file: NamedTempFile::new_in(scratch).map_err(no_room)?,
            hasher: Hasher::new(),
            left: said.bytes,
            wanted: said.bundle,
        })
    }

    /// Takes the next bytes, off the threads that answer.
    async fn take(mut self, piece: Vec<u8>) -> Result<Self, Refusal> {
        let length = piece.len() as u64;
        if length > self.left {
            return Err(Refusal::of(Code::BundleMismatch).at("bytes"));
        }
        self.left -= length;
        let writing = tokio::task::spawn_blocking(move || {
            self.hasher.update(&piece);
            self.file.write_all(&piece).map_err(no_room)?;
            Ok(self)
        });
        writing.await.map_err(|_| Refusal::of(Code::Internal))?
    }

    /// Puts it in its place, if it is what was told of.
    fn keep(self, path: PathBuf) -> Result<(), Refusal> {
        if self.left > 0 {
            return Err(Refusal::of(Code::BundleMismatch).at("bytes"));
        }
        if self.hasher.finish() != self.wanted {
            return Err(Refusal::of(Code::BundleMismatch).at("bundle"));
        }
        self.file.as_file().sync_all().map_err(no_room)?;
        self.file
            .persist(&path)
            .map_err(|problem| no_room(problem.error))?;
        let folder = path.parent().map(std::fs::File::open);
        match folder {
            Some(Ok(folder)) => folder.sync_all().map_err(no_room),
            _ => Err(Refusal::of(Code::Unavailable)),
        }
    }
}

fn no_room(_: std::io::Error) -> Refusal {
    let why = "the bundle cannot be kept now; try again later";
    Refusal::saying(Code::Unavailable, why)
}
