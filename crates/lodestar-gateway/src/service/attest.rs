//! A device's word on a run, and what the service finds out itself.
//!
//! The word is compared, field by field, with what is stored. Then the bundle is taken apart, verified and
//! judged, off the thread that decides; what was looked at for that is looked at again when it is decided, so
//! that nothing came in between.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::sync::{Arc, Mutex, PoisonError};

use lodestar_core::defence::Defence;
use lodestar_core::device::{DeviceLevel, StrikeKind};
use lodestar_core::event::EventType;
use lodestar_core::id::{AccountId, AttestationId, RunId};
use lodestar_core::key::PublicKey;
use lodestar_core::name::SessionId;
use lodestar_core::statement::{RunPredicate, VerifiedAttestation};
use lodestar_kernel::opening::RunTicket;
use lodestar_replay::Patience;
use lodestar_replay::terms::{Judgement, Moments, Reason, Terms, judge};
use serde_json::{Value, json};

use super::desk::{Desk, Stop, new_id};
use super::devices::{compare, may_attest, owned, same_key, spend};
use super::folder::Folder;
use super::known::Identity;
use super::ladder::settle;
use super::runs::{log_key, owned_run};
use super::statement::refusal_of;
use super::{Service, grading};
use crate::bundle::{self, BundleError, Expected, Limits, patience};
use crate::code::{Code, Refusal};
use crate::store::attestations::{self, AttestationRow};
use crate::store::bundles::{self, BundleRow};
use crate::store::devices::Device;
use crate::store::runs::{self, Run};
use crate::store::strikes::{self, Strike};
use crate::store::{bindings, runners, terms};
use crate::wire;

/// Reasons that are told of a run that did not pass; the rest is found by `lodestar replay` over the log.
const REASONS: usize = 3;

/// What an attestation is about, as it was stored.
struct Looked {
    run: Run,
    /// The device that vouches for it, as it stands.
    device: Device,
    bundle: BundleRow,
}

/// Everything that a bundle is judged by, as it was stored.
struct Case {
    run: Run,
    session: SessionId,
    bundle: BundleRow,
    checkpoints: Vec<String>,
    terms: String,
    log_key: PublicKey,
}

/// What came of it.
struct Findings {
    gateway_verified: bool,
    policy_passed: bool,
    /// Whether the run broke the policy that it was registered under.
    violated: bool,
    reason: Option<String>,
    /// The same for the event log: codes, and nothing that anybody wrote.
    codes: Vec<String>,
}

impl Findings {
    fn passed() -> Self {
        Self {
            gateway_verified: true,
            policy_passed: true,
            violated: false,
            reason: None,
            codes: Vec::new(),
        }
    }

    /// For a harness that takes [`Defence::DerivedFacts`] out: what the client says is so.
    fn believing(self, asked: &wire::Attest) -> Self {
        Self {
            gateway_verified: asked.gateway_verified.unwrap_or(self.gateway_verified),
            policy_passed: asked.policy_passed.unwrap_or(self.policy_passed),
            ..self
        }
    }

    fn refused(code: &'static str, reason: String) -> Self {
        Self {
            gateway_verified: false,
            policy_passed: false,
            violated: false,
            reason: Some(reason),
            codes: vec![format!("bundle:{code}")],
        }
    }
}

impl Service {
    /// Takes an attestation.
    pub async fn attest(
        &self,
        caller: Identity,
        id: RunId,
        asked: wire::Attest,
    ) -> Result<wire::Attested, Refusal> {
        let device = caller.device.ok_or(Code::TokenKind)?;
        let key = self.device_key(&caller, device).await?;
        let (now, window) = (self.now(), self.settings().issued_at_window);
        let said = asked.envelope.verify_attestation(&[key], now, window);
        let said = Arc::new(said.map_err(|problem| refusal_of(problem, Some(device)))?);
        let one = OneAtATime::begin(&self.judged, (caller.account, id))?;
        let (known, word) = (caller.clone(), Arc::clone(&said));
        self.ask(move |desk| {
            desk.act_for(&known)?;
            look_up(desk, &known, id, &word).map(drop)
        })
        .await?;
        // As many at a time as there are processors; others wait their turn, and what a run is judged by is read
        // when it has come.
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| Refusal::of(Code::ShuttingDown))?;
        let (known, word) = (caller.clone(), Arc::clone(&said));
        let case = self
            .ask(move |desk| {
                desk.act_for(&known)?;
                let looked = look_up(desk, &known, id, &word)?;
                gather(desk, looked, word.attestation().session.clone())
            })
            .await?;
        let checkpoints = case.checkpoints.len();
        let folder = Arc::clone(&self.folder);
        let judged = !self.lacks(Defence::RunJudgement);
        let judging = tokio::task::spawn_blocking(move || {
            let found = find(&folder, &case, judged);
            // Not before it is over, whether or not somebody still waits for it.
            drop(turn);
            (found, one)
        });
        let (found, one) = judging.await.map_err(|_| Refusal::of(Code::Internal))?;
        let found = found?;
        let decided = self.ask(move |desk| {
            desk.act_for(&caller)?;
            decide(desk, &caller, id, &said, &asked, found, checkpoints)
        });
        let decided = decided.await;
        drop(one);
        decided
    }
}

/// A run is judged by one word at a time: judging takes long, and a nonce is spent only when it is over.
struct OneAtATime {
    all: Arc<Mutex<BTreeSet<(AccountId, RunId)>>>,
    run: (AccountId, RunId),
}

impl OneAtATime {
    fn begin(
        all: &Arc<Mutex<BTreeSet<(AccountId, RunId)>>>,
        run: (AccountId, RunId),
    ) -> Result<Self, Refusal> {
        let mut runs = all.lock().unwrap_or_else(PoisonError::into_inner);
        match runs.insert(run) {
            true => Ok(Self {
                all: Arc::clone(all),
                run,
            }),
            false => Err(Refusal::of(Code::BeingJudged)),
        }
    }
}

impl Drop for OneAtATime {
    fn drop(&mut self) {
        let mut runs = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(&self.run);
    }
}

/// Compares an attestation with what is stored.
fn look_up(
    desk: &mut Desk<'_>,
    caller: &Identity,
    id: RunId,
    said: &VerifiedAttestation,
) -> Result<Looked, Stop> {
    let (run, mut device) = vouched(desk, caller, id)?;
    settle(desk, &mut device)?;
    may_attest(desk, &device)?;
    same_key(&device, *said.key())?;
    if attestations::by_statement(desk.sql, said.statement())?.is_some() {
        return Err(Code::AttestationReused.into());
    }
    let attestation = said.attestation();
    if !desk.lacks(Defence::AttestationFields) {
        same_run(&run, &attestation.predicate)?;
    }
    let bundle = bundles::get(desk.sql, id, attestation.predicate.bundle)?;
    let Some(bundle) = bundle else {
        return match bundles::of_run(desk.sql, id)?.is_empty() {
            true => Err(Code::BundleMissing.into()),
            false => Err(Refusal::differs("bundle").into()),
        };
    };
    compare(&[
        ("root", attestation.root == bundle.root),
        ("size", attestation.predicate.size == bundle.size),
    ])?;
    if !desk.lacks(Defence::AttestationFields) {
        let session = runs::session(desk.sql, id)?;
        let is_its = session.is_some_and(|known| known.session == attestation.session);
        compare(&[("session", is_its)])?;
    }
    Ok(Looked {
        run,
        device,
        bundle,
    })
}

/// Gathers what a run is judged by.
fn gather(desk: &mut Desk<'_>, looked: Looked, session: SessionId) -> Result<Case, Stop> {
    let Looked {
        run,
        device: _,
        bundle,
    } = looked;
    let log_key = log_key(desk, &run)?;
    let checkpoints = runs::checkpoints(desk.sql, run.id)?;
    let before = checkpoints.into_iter();
    let before = before.filter(|checkpoint| checkpoint.received_at <= bundle.received_at);
    let checkpoints: Vec<_> = before.map(|checkpoint| checkpoint.note).collect();
    let terms = terms::get(desk.sql, run.terms)?.ok_or(Code::TermsUnknown)?;
    Ok(Case {
        session,
        log_key,
        checkpoints,
        terms: terms.document,
        bundle,
        run,
    })
}

/// A run, and the device that vouches for it: the one that registered it.
fn vouched(desk: &mut Desk<'_>, caller: &Identity, id: RunId) -> Result<(Run, Device), Stop> {
    if desk.lacks(Defence::OwnDevices) {
        let run = runs::get(desk.sql, id)?.ok_or(Code::RunUnknown)?;
        let device = caller.device.ok_or(Code::TokenKind)?;
        return Ok((run, owned(desk, caller.account, device)?));
    }
    let run = owned_run(desk, caller, id)?;
    let device = owned(desk, caller.account, run.device)?;
    Ok((run, device))
}

/// Every field that the server stored, too.
fn same_run(run: &Run, said: &RunPredicate) -> Result<(), Refusal> {
    compare(&[
        ("run", said.run == run.id),
        ("run_nonce", said.run_nonce == run.nonce),
        ("account", said.account == run.account),
        ("device", said.device == run.device),
        ("runner", said.runner == run.runner),
        ("agent", said.agent == run.agent),
        ("policy", said.policy == run.policy),
        ("workflow_hash", said.workflow_hash == run.workflow_hash),
        ("lens_hash", said.lens_hash == run.lens_hash),
    ])
}

/// Takes the bundle apart, verifies it, and judges the run by its terms; for a harness that takes
/// [`Defence::RunJudgement`] out, that is left out.
fn find(folder: &Folder, case: &Case, is_judged: bool) -> Result<Findings, Refusal> {
    let unavailable = |why: String| Refusal::saying(Code::Unavailable, why);
    let file = File::open(folder.bundle(case.bundle.digest))
        .map_err(|problem| unavailable(problem.kind().to_string()))?;
    let limits = Limits::default();
    let terms = Terms::parse(case.terms.as_bytes()).map_err(|_| Refusal::of(Code::Internal))?;
    let ticket = RunTicket {
        id: case.run.id,
        nonce: case.run.nonce,
    };
    let mut from = BufReader::with_capacity(1 << 16, file);
    let unpacked = bundle::unpack(&mut from, &folder.scratch(), &limits);
    let expected = Expected {
        bundle: case.bundle.digest,
        log_key: &case.log_key,
        operators: &terms.operators,
        session: Some(&case.session),
        root: case.bundle.root,
        size: case.bundle.size,
        checkpoints: &case.checkpoints,
        ticket,
    };
    let verified = unpacked.and_then(|unpacked| {
        let verified = bundle::verify(&unpacked, &expected, &limits)?;
        Ok((unpacked, verified))
    });
    let (unpacked, verified) = match verified {
        Ok(verified) => verified,
        Err(BundleError::Fault(fault)) => {
            return Ok(Findings::refused(fault.code(), fault.to_string()));
        }
        Err(problem) => return Err(unavailable(problem.to_string())),
    };
    if !is_judged {
        return Ok(Findings::passed());
    }
    let moments = Moments {
        registered_at: case.run.registered_at,
        received_at: case.bundle.received_at,
    };
    let judgement = judge(
        &unpacked.log(),
        unpacked.session(),
        &terms,
        &ticket,
        moments,
        Patience::of(patience(verified.size)),
    );
    Ok(match judgement {
        Ok(judgement) => judged(&judgement),
        // It is whole, but nobody could follow it, or not in time.
        Err(problem) => Findings {
            gateway_verified: true,
            policy_passed: false,
            violated: false,
            reason: Some(problem.to_string()),
            codes: vec!["terms:not_followed".to_owned()],
        },
    })
}

fn judged(judgement: &Judgement) -> Findings {
    let told = judgement.reasons.iter().take(REASONS);
    let told: Vec<_> = told.map(Reason::to_string).collect();
    let codes = judgement.reasons.iter();
    let mut codes: Vec<_> = codes.map(|it| format!("terms:{}", it.code())).collect();
    codes.sort_unstable();
    codes.dedup();
    // A run of other terms is none that can be judged; one that went past those it had broke them.
    let violated = judgement.reasons.iter().any(|reason| {
        matches!(
            reason,
            Reason::Differs { .. } | Reason::Promotion { .. } | Reason::DefencesOff { .. }
        )
    });
    Findings {
        gateway_verified: true,
        policy_passed: judgement.passed(),
        violated,
        reason: (!told.is_empty()).then(|| told.join("; ")),
        codes,
    }
}

/// Keeps an attestation with what was found, and evaluates its run.
fn decide(
    desk: &mut Desk<'_>,
    caller: &Identity,
    id: RunId,
    said: &VerifiedAttestation,
    asked: &wire::Attest,
    found: Findings,
    checkpoints: usize,
) -> Result<wire::Attested, Stop> {
    let Looked {
        run, mut device, ..
    } = look_up(desk, caller, id, said)?;
    // None may have come in between that was not looked at; behind a bundle, none does.
    if runs::count_checkpoints(desk.sql, id)? != checkpoints as u64 {
        return Err(Code::Unavailable.into());
    }
    let found = match desk.lacks(Defence::DerivedFacts) {
        true => found.believing(asked),
        false => found,
    };
    let predicate = &said.attestation().predicate;
    spend(desk, device.id, predicate.nonce)?;
    let bound = bindings::active(desk.sql, run.device, run.runner)?.is_some()
        || desk.lacks(Defence::RunnerBindings);
    let runner = runners::get(desk.sql, run.runner)?;
    let heard = runner.and_then(|runner| runner.last_heartbeat);
    let row = AttestationRow {
        id: new_id!(AttestationId, desk.now),
        account: run.account,
        run: run.id,
        device: run.device,
        statement: said.statement(),
        nonce: predicate.nonce,
        root: said.attestation().root,
        size: predicate.size,
        device_level: device.level,
        valid: true,
        signature_ok: true,
        gateway_verified: found.gateway_verified,
        policy_passed: found.policy_passed,
        runner_bound: bound,
        runner_fresh: desk.settings.is_runner_fresh(heard, desk.now),
        envelope: String::from_utf8_lossy(&asked.envelope.to_json()).into_owned(),
        received_at: desk.now,
    };
    if !attestations::add(desk.sql, &row)? {
        return Err(Code::AttestationReused.into());
    }
    device.last_attested = device.last_attested.max(Some(desk.now));
    let device_trusted = device.level == DeviceLevel::Trusted;
    let payload = json!({
        "account": run.account,
        "run": run.id,
        "device": run.device,
        "attestation": row.id,
        "statement": row.statement,
        "device_level": row.device_level,
        "gateway_verified": row.gateway_verified,
        "policy_passed": row.policy_passed,
        "runner_bound": row.runner_bound,
        "runner_fresh": row.runner_fresh,
        "findings": found.codes,
    });
    desk.record(EventType::ATTESTATION_ACCEPTED, &payload)?;
    overwritten(desk, &row, device_trusted, asked)?;
    let doubted = device.compromised_since;
    let evaluation = grading::grade(desk, &run, doubted, "attestation")?;
    if found.violated {
        violated(desk, &mut device)?;
    }
    settle(desk, &mut device)?;
    Ok(wire::Attested {
        attestation: row.id,
        level: evaluation.level,
        evaluation: grading::shown(&evaluation),
        found: wire::Found {
            device_trusted,
            gateway_verified: row.gateway_verified,
            policy_passed: row.policy_passed,
            reason: found.reason,
        },
    })
}

/// Records what a client said of facts that are not its to say, where it was wrong.
fn overwritten(
    desk: &mut Desk<'_>,
    row: &AttestationRow,
    device_trusted: bool,
    asked: &wire::Attest,
) -> Result<(), Stop> {
    let facts = [
        ("device_trusted", asked.device_trusted, device_trusted),
        (
            "gateway_verified",
            asked.gateway_verified,
            row.gateway_verified,
        ),
        ("policy_passed", asked.policy_passed, row.policy_passed),
    ];
    let mut changed = serde_json::Map::new();
    for (fact, sent, found) in facts {
        if let Some(sent) = sent
            && sent != found
        {
            changed.insert(fact.to_owned(), json!({"sent": sent, "found": found}));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    let payload = json!({
        "account": row.account,
        "run": row.run,
        "device": row.device,
        "attestation": row.id,
        "facts": Value::Object(changed),
    });
    Ok(desk.record(EventType::ATTESTATION_OVERWRITTEN, &payload)?)
}

fn violated(desk: &mut Desk<'_>, device: &mut Device) -> Result<(), Stop> {
    let strike = Strike {
        device: device.id,
        kind: StrikeKind::Violation,
        at: desk.now,
    };
    strikes::add(desk.sql, strike)?;
    Ok(())
}
