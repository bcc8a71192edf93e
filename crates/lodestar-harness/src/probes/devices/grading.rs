//! What a run amounts to.

use std::time::Duration;

use lodestar_core::digest::sha256;
use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use lodestar_core::statement::Order;
use lodestar_gateway::bundle::Packed;
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use serde_json::json;

use super::{Trusted, no_more, play, refused};
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::fleet::{Claims, Job, Machine, Ran, of_kind};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "ladder-is-cumulative",
            pack: CORE,
            section: Devices,
            scenario: "Honest runs of which everything holds but one fact: the machine is not trusted yet; its runner is \
                       not bound; its runner fell silent; the log is of another run; the workflow is not recorded.",
            asserts: "Each is graded just below the first level that needs the missing fact, however many facts of \
                      higher levels hold, and the evaluation names that fact.",
            does_not_claim: "That a run whose facts all hold was good work.",
            class: "ASI03 AML.T0048",
            defence: CumulativeLadder,
            deadline_s: 90,
            run: cumulative,
        },
        probe! {
            name: "unbound-runner-caps-level",
            pack: CORE,
            section: Devices,
            scenario: "A trusted machine makes runs with a runner that its owner never bound to it, although it says with \
                       every heartbeat that the runner is alive; and with one that its owner has just unbound.",
            asserts: "Neither run gets past device_verified, and what the machine says of a runner that is not bound to \
                      it is not noted; bound by the owner's order, the same runner counts.",
            does_not_claim: "That the runner which is named is the program that made the run: the machine says so.",
            class: "ASI03 AML.T0012",
            defence: RunnerBindings,
            deadline_s: 90,
            run: unbound,
        },
        probe! {
            name: "later-bad-attestation-does-not-lower",
            pack: CORE,
            section: Devices,
            scenario: "A run is fully trusted, and a submission earned by it. Then the machine attests it again when its \
                       runner is silent, with a bundle that was rewritten, and with signatures that do not verify.",
            asserts: "The run stays fully trusted by its first attestation, and the submission keeps what it earned, once.",
            does_not_claim: "That a level outlives its owner's word that the machine was somebody else's: that evaluates \
                             the run again.",
            class: "ASI03 AML.T0048",
            defence: BestAttestation,
            deadline_s: 90,
            run: later_bad,
        },
        probe! {
            name: "tampered-bundle-fails-policy-passed",
            pack: CORE,
            section: Devices,
            scenario: "A trusted machine tampers with logs before it hands them in. It changes a byte. Then, with its own \
                       log key and every hash right, it calls a tool harmless that its owner graded L4, and takes the \
                       approval of what was sent out of the log.",
            asserts: "No run has kept its policy: the first log is not verified, and the others are, but do not follow from \
                      what the owner registered. The last one makes the machine unhealthy.",
            does_not_claim: "That a machine which has its own log key cannot invent results of tools: it can.",
            class: "ASI10 AML.T0048",
            defence: RunJudgement,
            deadline_s: 90,
            run: tampered,
        },
    ]
}

/// That a run is graded exactly so, and why not higher.
fn graded(
    attested: &wire::Attested,
    level: ExecutionLevel,
    missing: ExecutionFact,
    what: &str,
) -> Outcome {
    no_more(attested, level, what)?;
    let (found, by) = (attested.level, attested.evaluation.stopped_by);
    hold((found, by) == (level, Some(missing)), || {
        format!("{what} is graded {found}, stopped by {by:?}")
    })
}

fn cumulative(stage: &Stage) -> Outcome {
    use ExecutionFact as Fact;
    use ExecutionLevel as Level;
    play(stage, |fleet| async move {
        let account = fleet.account("owner").await?;
        let made = account.made().await?;
        // Bound, heard of, and not trusted before this run.
        let machine = account.steady("machine", made.runner).await?;
        let job = machine.register(made).await?;
        let attested = machine.hand_over(&job, &machine.work(&job).await?).await?;
        let what = "a run of a machine that is not trusted";
        graded(&attested, Level::AgentVerified, Fact::DeviceTrusted, what)?;
        machine.beat(&[made.runner]).await?;

        let mut other = made;
        other.runner = account.runner("unbound").await?;
        let job = machine.register(other).await?;
        let attested = machine.hand_over(&job, &machine.work(&job).await?).await?;
        let what = "a run of a runner that is not bound";
        graded(&attested, Level::DeviceVerified, Fact::RunnerBound, what)?;

        let mut asked = Machine::asking(made);
        asked.workflow_hash = None;
        let job = machine.register_as(asked).await?;
        let attested = machine.hand_over(&job, &machine.work(&job).await?).await?;
        let what = "a run without its workflow";
        graded(
            &attested,
            Level::ExecutionVerified,
            Fact::WorkflowRecorded,
            what,
        )?;

        let (job, others) = (machine.register(made).await?, machine.register(made).await?);
        let ran = machine.work(&others).await?;
        let attested = machine.hand_over(&job, &ran).await?;
        let what = "a run with the log of another";
        graded(
            &attested,
            Level::RunnerVerified,
            Fact::GatewayVerified,
            what,
        )?;

        machine.beat(&[made.runner]).await?;
        let job = machine.register(made).await?;
        let attested = machine.hand_over(&job, &machine.work(&job).await?).await?;
        settle(attested.level == Level::FullyTrusted, || whole(&attested))?;

        // Last: a clock that is so far ahead is beyond what a log's own times may be off.
        account.wait(Duration::from_secs(301));
        machine.beat(&[]).await?;
        let job = machine.register(made).await?;
        let attested = machine.hand_over(&job, &machine.work(&job).await?).await?;
        let what = "a run of a runner that is silent";
        graded(&attested, Level::DeviceVerified, Fact::RunnerFresh, what)
    })
}

fn whole(attested: &wire::Attested) -> String {
    let (level, found) = (attested.level, &attested.found);
    format!("a run of which everything holds is graded {level}: {found:?}")
}

fn unbound(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let owner = Trusted::of(&fleet, "owner").await?;
        let Trusted {
            account,
            made,
            machine,
        } = &owner;
        let mut other = *made;
        other.runner = account.runner("other").await?;
        machine.beat(&[made.runner, other.runner]).await?;
        let job = machine.register(other).await?;
        let attested = machine.hand_over(&job, &machine.work(&job).await?).await?;
        let what = "a run of a runner that was never bound";
        no_more(&attested, ExecutionLevel::DeviceVerified, what)?;
        let facts = &attested.evaluation.facts;
        hold(
            !facts.contains(&ExecutionFact::RunnerFresh),
            || "what is not bound is said to be alive",
        )?;

        let job = machine.register(*made).await?;
        let (word, _) = machine.deliver(&job, &machine.work(&job).await?).await?;
        let (device, runner) = (machine.id, made.runner);
        account.order(Order::Unbind { device, runner }).await?;
        let attested = machine.vouch(job.run, &word, Claims::default()).await?;
        let what = "a run of a runner that was unbound";
        no_more(&attested, ExecutionLevel::DeviceVerified, what)?;

        account.order(Order::Bind { device, runner }).await?;
        machine.beat(&[runner]).await?;
        let job = machine.register(*made).await?;
        let attested = machine.hand_over(&job, &machine.work(&job).await?).await?;
        settle(attested.level == ExecutionLevel::FullyTrusted, || {
            whole(&attested)
        })
    })
}

fn later_bad(stage: &Stage) -> Outcome {
    let full = ExecutionLevel::FullyTrusted;
    play(stage, |fleet| async move {
        let owner = Trusted::of(&fleet, "owner").await?;
        let Trusted {
            account,
            made,
            machine,
        } = &owner;
        let job = machine.register(*made).await?;
        let ran = machine.work(&job).await?;
        let attested = machine.hand_over(&job, &ran).await?;
        settle(attested.level == full, || whole(&attested))?;
        let handed = wire::HandIn {
            content: sha256(b"some work"),
            run: Some(job.run),
            battle: None,
        };
        let submission = account.client.hand_in(&handed).await?;
        let stays = |after: &'static str| {
            let (id, before) = (submission.id, submission.effects.clone());
            let job = &job;
            async move {
                let level = account.run(job).await?.evaluation.map(|it| it.level);
                hold(level == Some(full), || {
                    format!("after {after} the run is {level:?}")
                })?;
                let now = account.client.submission(id).await?;
                hold((now.level, &now.effects) == (full, &before), || {
                    format!(
                        "after {after} the submission has {:?} of {}",
                        now.effects, now.level
                    )
                })
            }
        };
        stays("nothing").await?;

        account.wait(Duration::from_secs(301));
        machine.beat(&[]).await?;
        let (_, packed) = ran.packed()?;
        let none = Claims::default();
        let word = machine.word(&job, &ran, &packed)?;
        machine.vouch(job.run, &word, none).await?;
        stays("a word when the runner was silent").await?;

        ran.forge(|lines| lines[1]["payload"]["note"] = json!("rewritten"))?;
        let (forged, repacked) = ran.packed()?;
        machine.send(&job, &forged, &repacked).await?;
        let word = machine.word(&job, &ran, &repacked)?;
        let attested = machine.vouch(job.run, &word, none).await?;
        hold(
            !attested.found.gateway_verified,
            || "a rewritten log is verified",
        )?;
        stays("a rewritten log").await?;

        let mut word = machine.word(&job, &ran, &packed)?;
        word.predicate.size += 1;
        let answer = machine.vouch(job.run, &word, none).await;
        refused(answer, Code::StatementMismatch, "a word on another size")?;
        let other = crate::world::fleet::fresh_key()?;
        let mut word = machine.word(&job, &ran, &packed)?;
        word.predicate.key_id = other.public().key_id();
        let signed = lodestar_core::statement::Envelope::attest(&word, &other)?;
        let answer = machine.vouch_by(job.run, signed, none).await;
        refused(answer, Code::SignatureInvalid, "a word by another key")?;
        stays("a word by another key").await
    })
}

/// Hands in other bytes than a log's, as if they were it.
async fn swapped(
    machine: &Machine,
    job: &Job,
    ran: &Ran,
    change: impl FnOnce(&mut Vec<u8>),
) -> Outcome<wire::Attested> {
    let (mut bytes, packed) = ran.packed()?;
    change(&mut bytes);
    let packed = Packed {
        bundle: sha256(&bytes),
        bytes: bytes.len() as u64,
        ..packed
    };
    machine.client.checkpoint(job.run, &ran.note()?).await?;
    machine.send(job, &bytes, &packed).await?;
    let word = machine.word(job, ran, &packed)?;
    Ok(machine.vouch(job.run, &word, Claims::default()).await?)
}

fn tampered(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let owner = Trusted::of(&fleet, "owner").await?;
        let Trusted {
            account,
            made,
            machine,
        } = &owner;

        let job = machine.register(*made).await?;
        let ran = machine.work(&job).await?;
        let attested = swapped(machine, &job, &ran, |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        });
        let attested = attested.await?;
        let what = "a run with a changed byte in its log";
        no_more(&attested, ExecutionLevel::RunnerVerified, what)?;
        hold(
            !attested.found.gateway_verified,
            || "a changed log is verified",
        )?;

        let job = machine.register(*made).await?;
        let ran = machine.work(&job).await?;
        ran.forge(|lines| {
            let tools = lines[0]["payload"]["tools"].as_array_mut();
            for tool in tools.into_iter().flatten() {
                if tool["name"] == "box.send" {
                    tool["contract"]["required_level"] = json!("L1");
                }
            }
        })?;
        let attested = machine.hand_over(&job, &ran).await?;
        let what = "a run with grades of its own";
        no_more(&attested, ExecutionLevel::ExecutionVerified, what)?;
        hold(
            !attested.found.policy_passed,
            || "the policy is said to have been kept",
        )?;
        settle(attested.found.gateway_verified, || {
            format!(
                "a log that was sealed anew is not verified: {:?}",
                attested.found.reason
            )
        })?;

        let job = machine.register(*made).await?;
        let ran = machine.work(&job).await?;
        let mut found = None;
        ran.forge(|lines| {
            found = of_kind(lines, "approval.granted@1");
            if let Some(granted) = found {
                lines[granted]["head"]["type"] = json!("agent.note@1");
            }
        })?;
        if found.is_none() {
            return Err(Broken::Failed(
                "nobody approved anything in the log".to_owned(),
            ));
        }
        let attested = machine.hand_over(&job, &ran).await?;
        let what = "a run whose approval was taken out";
        no_more(&attested, ExecutionLevel::ExecutionVerified, what)?;
        hold(
            !attested.found.policy_passed,
            || "the policy is said to have been kept",
        )?;
        let level = account.device(machine.id).await?.level;
        hold(
            level == lodestar_core::device::DeviceLevel::Unhealthy,
            || format!("after a policy violation the machine is {level}"),
        )
    })
}
