//! Who may vouch for which run, and what of it is believed.

use std::sync::Arc;

use lodestar_core::event::EventType;
use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use lodestar_core::statement::{Attestation, Envelope, Order};
use lodestar_gateway::code::Code;

use super::{Trusted, no_more, play, refused};
use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::fleet::{Claims, Machine, SCRIPT, Work, fresh_key, fresh_nonce};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "client-flags-are-overridden",
            pack: CORE,
            section: Devices,
            scenario: "A trusted machine makes a run in which somebody approved whom its owner never named, and sends \
                       with its attestation that the device is trusted, the log verified and the policy kept. Another, \
                       which is not trusted, sends the same of an honest run; and an honest run is sent with all three \
                       denied.",
            asserts: "What is stored and graded is what the gateway found: the first run is not fully trusted, the \
                      second is no trusted device's, the third is fully trusted; and the log tells of each difference.",
            does_not_claim: "That the gateway finds out what a machine left out of its log.",
            class: "ASI03 AML.T0048",
            defence: DerivedFacts,
            deadline_s: 60,
            run: client_flags,
        },
        probe! {
            name: "other-owners-device-cannot-attest",
            pack: CORE,
            section: Devices,
            scenario: "A machine registers a run and hands in its log, and does not vouch for it. A trusted machine of \
                       another account does, naming everything as it was registered; it does so in its own name; and \
                       it hands in what the first machine signed. A second machine of the first account tries as well.",
            asserts: "All of it is refused, nothing is known of the run outside of its account, and it is not graded.",
            does_not_claim: "That two accounts are two people.",
            class: "ASI03 AML.T0012",
            defence: OwnDevices,
            deadline_s: 60,
            run: other_owner,
        },
        probe! {
            name: "attestation-cannot-be-reused-for-another-run",
            pack: CORE,
            section: Devices,
            scenario: "A trusted machine makes one honest run and registers a second one, for which it shows \
                       the session of the first, then its log behind a checkpoint of another. It hands in its word on the first run for the second, signs a \
                       new one for the second over the log of the first, and hands in each a second time.",
            asserts: "A session is one run. A word counts for the run that it names, once; and a log that was opened for another run is not \
                      verified, so that the second run never reaches execution_verified.",
            does_not_claim: "That the work was not done before and only repeated for the second run.",
            class: "ASI03 AML.T0073",
            defence: AttestationFields,
            deadline_s: 60,
            run: reused,
        },
        probe! {
            name: "revoked-device-cannot-attest",
            pack: CORE,
            section: Devices,
            scenario: "A trusted machine makes a run and hands in its log. Its owner revokes it, and it vouches for the \
                       run; and it beats, registers, sends checkpoints and bundles. Another machine is blocked by the \
                       platform and does the same.",
            asserts: "All of it is refused, and the runs are not graded.",
            does_not_claim: "That what it attested before was honest: for that the owner says since when the machine \
                             may have been somebody else's.",
            class: "ASI03 AML.T0012",
            defence: AttestingLevels,
            deadline_s: 60,
            run: revoked,
        },
    ]
}

/// What is done where somebody approves whom the owner never named.
fn others_approve() -> Outcome<Work> {
    Ok(Work {
        approver: Some(Arc::new(fresh_key()?)),
        ..Work::from(SCRIPT)
    })
}

fn client_flags(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let owner = Trusted::of(&fleet, "owner").await?;
        let Trusted {
            account,
            made,
            machine,
        } = &owner;
        let (yes, no) = (Claims(Some(true)), Claims(Some(false)));

        let job = machine.register(*made).await?;
        let ticket = Some(job.ticket());
        let work = others_approve()?;
        let ran = fleet.workplace.run(ticket, &machine.log_key, &work).await?;
        let (word, _) = machine.deliver(&job, &ran).await?;
        let attested = machine.vouch(job.run, &word, yes).await?;
        no_more(
            &attested,
            ExecutionLevel::ExecutionVerified,
            "a run that kept to other terms",
        )?;
        hold(
            !attested.found.policy_passed,
            || "the policy is said to have been kept",
        )?;

        let young = account.approved("young").await?;
        let job = young.register(*made).await?;
        let (word, _) = young.deliver(&job, &young.work(&job).await?).await?;
        let attested = young.vouch(job.run, &word, yes).await?;
        no_more(
            &attested,
            ExecutionLevel::AgentVerified,
            "a run of a machine that is not trusted",
        )?;
        let facts = &attested.evaluation.facts;
        hold(
            !facts.contains(&ExecutionFact::DeviceTrusted),
            || "the machine is said to be trusted",
        )?;

        let job = machine.register(*made).await?;
        let (word, _) = machine.deliver(&job, &machine.work(&job).await?).await?;
        let attested = machine.vouch(job.run, &word, no).await?;
        settle(attested.level == ExecutionLevel::FullyTrusted, || {
            format!(
                "an honest run is graded {}: {:?}",
                attested.level, attested.found.reason
            )
        })?;

        let events = fleet.close().await?;
        let overwritten = EventType::ATTESTATION_OVERWRITTEN;
        let told = events
            .iter()
            .filter(|(kind, _)| kind == overwritten.as_str());
        let told = told.count();
        hold(told == 3, || {
            format!("the log tells of {told} differences, and not of 3")
        })
    })
}

fn other_owner(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let others = Trusted::of(&fleet, "other").await?;
        let account = fleet.account("owner").await?;
        let made = account.made().await?;
        let machine = account.approved("machine").await?;
        let second = account.approved("second").await?;
        let job = machine.register(made).await?;
        let ran = machine.work(&job).await?;
        let (word, _) = machine.deliver(&job, &ran).await?;
        let as_signed_by = |other: &Machine| -> Outcome<Attestation> {
            let mut word = word.clone();
            word.predicate.key_id = other.key.public().key_id();
            word.predicate.nonce = fresh_nonce()?;
            Ok(word)
        };
        let none = Claims::default();
        let naming = as_signed_by(&others.machine)?;
        let answer = others.machine.vouch(job.run, &naming, none).await;
        refused(
            answer,
            Code::RunUnknown,
            "the word of another account's machine",
        )?;
        let mut own = naming;
        own.predicate.account = others.account.id;
        own.predicate.device = others.machine.id;
        own.predicate.nonce = fresh_nonce()?;
        let answer = others.machine.vouch(job.run, &own, none).await;
        refused(answer, Code::RunUnknown, "its word in its own name")?;
        let handed = Envelope::attest(&word, &machine.key)?;
        let answer = others.machine.vouch_by(job.run, handed, none).await;
        let code = answer.as_ref().err().and_then(|problem| problem.code());
        hold(
            answer.is_err() && code.is_some(),
            || "it hands in another's word",
        )?;
        let answer = second.vouch(job.run, &as_signed_by(&second)?, none).await;
        refused(
            answer,
            Code::OtherDevice,
            "the word of another machine of the account",
        )?;
        let shown = account.run(&job).await?;
        hold(shown.evaluation.is_none(), || "the run is graded")?;
        let attested = machine.vouch(job.run, &word, none).await?;
        settle(attested.found.gateway_verified, || {
            format!(
                "its own machine's word is worth nothing: {:?}",
                attested.found
            )
        })
    })
}

fn reused(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let owner = Trusted::of(&fleet, "owner").await?;
        let Trusted {
            account,
            made,
            machine,
        } = &owner;
        let (first, second) = (
            machine.register(*made).await?,
            machine.register(*made).await?,
        );
        let ran = machine.work(&first).await?;
        let (word, packed) = machine.deliver(&first, &ran).await?;
        // The machine is its owner's enemy: it shows the same session for the second run, and, that being in vain, the
        // same log behind a checkpoint of another session.
        let answer = machine.client.checkpoint(second.run, &ran.note()?).await;
        refused(answer, Code::SessionTaken, "the session of another run")?;
        let own = machine.work(&second).await?;
        machine.client.checkpoint(second.run, &own.note()?).await?;
        machine.send(&second, &ran.packed()?.0, &packed).await?;
        let none = Claims::default();
        let answer = machine.vouch(second.run, &word, none).await;
        refused(answer, Code::StatementMismatch, "the word on another run")?;
        let shown = account.run(&second).await?;
        hold(
            shown.evaluation.is_none(),
            || "the second run is graded by it",
        )?;
        let attested = machine.vouch(first.run, &word, none).await?;
        settle(attested.level == ExecutionLevel::FullyTrusted, || {
            format!(
                "the first run is graded {}: {:?}",
                attested.level, attested.found.reason
            )
        })?;
        for run in [first.run, second.run] {
            let answer = machine.vouch(run, &word, none).await;
            refused(answer, Code::AttestationReused, "a word that was given")?;
        }
        let mut anew = machine.word(&second, &ran, &packed)?;
        anew.session = own.dir.session().clone();
        let attested = machine.vouch(second.run, &anew, none).await?;
        no_more(
            &attested,
            ExecutionLevel::RunnerVerified,
            "a run with the log of another",
        )?;
        hold(
            !attested.found.gateway_verified,
            || "the log of another run is verified",
        )
    })
}

fn revoked(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let owner = Trusted::of(&fleet, "owner").await?;
        let Trusted {
            account,
            made,
            machine,
        } = &owner;
        let blocked = account.approved("blocked").await?;
        let mut prepared = Vec::new();
        for machine in [machine, &blocked] {
            let job = machine.register(*made).await?;
            let ran = machine.work(&job).await?;
            let (word, _) = machine.deliver(&job, &ran).await?;
            prepared.push((job, ran, word));
        }
        account
            .order(Order::Revoke {
                compromised_since: None,
                device: machine.id,
                reason: "lost".to_owned(),
            })
            .await?;
        fleet.platform().block(blocked.id, "abuse").await?;
        let gone = [
            (machine, Code::DeviceRevoked),
            (&blocked, Code::DeviceBlocked),
        ];
        for ((machine, code), (job, ran, word)) in gone.into_iter().zip(&prepared) {
            let answer = machine.vouch(job.run, word, Claims::default()).await;
            refused(answer, code, "the word of a machine that is gone")?;
            refused(machine.beat(&[made.runner]).await, code, "its heartbeat")?;
            refused(machine.register(*made).await, code, "a run of it")?;
            let note = ran.note()?;
            let answer = machine.client.checkpoint(job.run, &note).await;
            refused(answer, code, "its checkpoint")?;
            let (bytes, packed) = ran.packed()?;
            refused(machine.send(job, &bytes, &packed).await, code, "its bundle")?;
            let shown = account.run(job).await?;
            hold(shown.evaluation.is_none(), || "its run is graded")?;
        }
        Ok(())
    })
}
