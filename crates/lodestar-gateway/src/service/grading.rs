//! What a run amounts to: the facts that the service found, the level that follows, and what that earns.

use lodestar_core::defence::Defence;
use lodestar_core::device::DeviceLevel;
use lodestar_core::event::EventType;
use lodestar_core::execution::{
    EXECUTION_LEVELS, ExecutionFact, ExecutionLevel, FactSet, evaluate,
};
use lodestar_core::id::{EvaluationId, RunId, SubmissionId};
use lodestar_core::time::Timestamp;
use serde_json::json;

use super::desk::{Desk, Stop, new_id};
use crate::code::Code;
use crate::store::attestations::{self, AttestationRow};
use crate::store::devices::Device;
use crate::store::effects::{self, EffectRow};
use crate::store::evaluations::{self, EvaluationRow};
use crate::store::runs::{self, Run};
use crate::store::submissions;
use crate::wire;

/// What an attestation stands for, by what was found when it came. One from when its device may have been
/// somebody else's is none of a trusted device's.
fn facts(run: &Run, attestation: &AttestationRow, doubted: Option<Timestamp>) -> FactSet {
    use ExecutionFact::*;
    let in_doubt = doubted.is_some_and(|since| attestation.received_at >= since);
    let trusted = attestation.device_level == DeviceLevel::Trusted && !in_doubt;
    owned_facts(run)
        .with(AttestationPresent)
        .set(AttestationValid, attestation.valid)
        .set(DeviceTrusted, trusted)
        .set(RunnerBound, attestation.runner_bound)
        .set(RunnerFresh, attestation.runner_fresh)
        .set(SignatureVerifies, attestation.signature_ok)
        .set(GatewayVerified, attestation.gateway_verified)
        .set(PolicyPassed, attestation.policy_passed)
}

/// What holds of a run that its own account hands in, attested or not: the store takes no other.
fn owned_facts(run: &Run) -> FactSet {
    use ExecutionFact::*;
    FactSet::EMPTY
        .with(AccountOwnsRun)
        .with(ContenderOwned)
        .set(WorkflowRecorded, run.workflow_hash.is_some())
        .set(LensRecorded, run.lens_hash.is_some())
}

/// Evaluates a run by the best word there is on it, keeps that, and grants what it earns. A bad attestation
/// never takes away what a good one earned.
pub(super) fn grade(
    desk: &mut Desk<'_>,
    run: &Run,
    doubted: Option<Timestamp>,
    cause: &str,
) -> Result<EvaluationRow, Stop> {
    let attested = attestations::of_run(desk.sql, run.id)?;
    let mut judged = attested.iter().map(|attestation| {
        let evaluation = evaluate(facts(run, attestation, doubted));
        (evaluation, Some(attestation.id))
    });
    // Of two that come to the same, the later one: it is the device's last word.
    let best = match desk.lacks(Defence::BestAttestation) {
        true => judged.next_back(),
        false => judged.max_by_key(|(evaluation, _)| (evaluation.level(), evaluation.held().len())),
    };
    let (evaluation, attestation) = best.unwrap_or_else(|| (evaluate(owned_facts(run)), None));
    let level = match desk.lacks(Defence::CumulativeLadder) {
        true => by_its_own_facts(evaluation.held()),
        false => evaluation.level(),
    };
    let row = EvaluationRow {
        id: new_id!(EvaluationId, desk.now),
        run: run.id,
        account: run.account,
        attestation,
        facts: evaluation.held(),
        level,
        stopped_by: evaluation.stopped_by(),
        cause: cause.to_owned(),
        at: desk.now,
    };
    evaluations::add(desk.sql, &row)?;
    let payload = json!({
        "account": run.account,
        "run": run.id,
        "evaluation": row.id,
        "attestation": attestation,
        "level": row.level,
        "facts": row.facts,
        "stopped_by": row.stopped_by,
        "cause": cause,
    });
    desk.record(EventType::RUN_GRADED, &payload)?;
    for submission in submissions::of_run(desk.sql, run.id)? {
        reward(desk, submission.id, Some(&row))?;
    }
    Ok(row)
}

/// For a harness that takes [`Defence::CumulativeLadder`] out: the highest level whose own facts hold,
/// whatever is missing below it.
fn by_its_own_facts(held: FactSet) -> ExecutionLevel {
    let holds = |fact: &ExecutionFact| held.contains(*fact);
    let mut from_the_top = EXECUTION_LEVELS.iter().rev();
    let found = from_the_top.find(|spec| spec.needs.iter().all(holds));
    found.map_or(ExecutionLevel::Unverified, |spec| spec.level)
}

/// Grants a submission what it earned, each once.
pub(super) fn reward(
    desk: &mut Desk<'_>,
    submission: SubmissionId,
    evaluation: Option<&EvaluationRow>,
) -> Result<(), Stop> {
    let level = evaluation.map_or(ExecutionLevel::Unverified, |evaluation| evaluation.level);
    let mut granted = Vec::new();
    for effect in level.effects() {
        let row = EffectRow {
            submission,
            effect,
            evaluation: evaluation.map(|evaluation| evaluation.id),
            at: desk.now,
        };
        if effects::grant(desk.sql, &row)? {
            granted.push(effect);
        }
    }
    if granted.is_empty() {
        return Ok(());
    }
    let payload = json!({
        "submission": submission,
        "evaluation": evaluation.map(|evaluation| evaluation.id),
        "level": level,
        "effects": granted,
    });
    Ok(desk.record(EventType::SUBMISSION_REWARDED, &payload)?)
}

/// Evaluates again what a device attested since it may have been somebody else's; how many runs.
pub(super) fn doubt(desk: &mut Desk<'_>, device: &Device, since: Timestamp) -> Result<u32, Stop> {
    let doubted = attestations::of_device_since(desk.sql, device.id, since)?;
    let mut seen: Vec<RunId> = doubted.iter().map(|attestation| attestation.run).collect();
    seen.sort_unstable();
    seen.dedup();
    for id in &seen {
        let run = runs::get(desk.sql, *id)?.ok_or(Code::Internal)?;
        grade(desk, &run, Some(since), "revocation")?;
    }
    Ok(u32::try_from(seen.len()).unwrap_or(u32::MAX))
}

/// What holds of a run now, for whoever asks.
pub(super) fn latest(desk: &mut Desk<'_>, run: RunId) -> Result<Option<wire::Evaluation>, Stop> {
    let found = evaluations::latest(desk.sql, run)?;
    Ok(found.as_ref().map(shown))
}

pub(super) fn shown(row: &EvaluationRow) -> wire::Evaluation {
    wire::Evaluation {
        id: row.id,
        level: row.level,
        facts: row.facts.iter().collect(),
        stopped_by: row.stopped_by,
        cause: row.cause.clone(),
        at: row.at,
    }
}
