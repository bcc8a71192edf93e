//! Runs that are proved, step by step; and what is missing where they are not.

use lodestar_core::device::DeviceLevel;
use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use lodestar_core::statement::{Envelope, Order};
use lodestar_core::time::Timestamp;
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use serde_json::json;

use crate::lab::Lab;
use crate::ran::of_kind;
use crate::world::{HOUR, attest, on_both};

#[tokio::test]
async fn a_governed_run_of_a_trusted_device_is_fully_trusted() {
    on_both(|place| async move {
        let mut lab = Lab::trusted(place).await;
        let made = lab.make(true).await;
        lab.beat().await;
        let attested = lab.ship_and_attest(&made).await.unwrap();
        assert_eq!(attested.level, ExecutionLevel::FullyTrusted, "{attested:?}");
        assert_eq!(attested.evaluation.stopped_by, None);
        assert_eq!(attested.evaluation.facts.len(), ExecutionFact::ALL.len());
        assert_eq!(attested.found.reason, None);
        let run = lab.owner.client.run(made.run.id).await.unwrap();
        assert_eq!(run.evaluation.unwrap().level, ExecutionLevel::FullyTrusted);
        let events = lab.world.events().await;
        let kinds: Vec<_> = events.iter().map(|(kind, _)| kind.as_str()).collect();
        for kind in [
            "gateway.started@1",
            "gateway.account_opened@1",
            "gateway.token_issued@1",
            "device.registered@1",
            "device.challenged@1",
            "device.challenge_passed@1",
            "device.approved@1",
            "device.bound@1",
            "device.trusted@1",
            "run.agent_registered@1",
            "run.runner_registered@1",
            "run.terms_registered@1",
            "run.registered@1",
            "run.checkpointed@1",
            "run.bundle_received@1",
            "attestation.accepted@1",
            "run.graded@1",
            "gateway.stopped@1",
        ] {
            assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
        }
    })
    .await;
}

/// What a run comes to, and the first fact that it lacks.
fn stopped(attested: &wire::Attested) -> (ExecutionLevel, Option<ExecutionFact>) {
    (attested.level, attested.evaluation.stopped_by)
}

#[tokio::test]
async fn each_missing_fact_stops_a_run_just_below_the_level_that_needs_it() {
    on_both(|place| async move {
        let lab = Lab::approved(place).await;
        // Not attested at all.
        let made = lab.make(true).await;
        let submitted = lab
            .owner
            .client
            .hand_in(&wire::HandIn {
                content: lodestar_core::digest::sha256(b"work"),
                run: Some(made.run.id),
                battle: None,
            })
            .await
            .unwrap();
        assert_eq!(submitted.level, ExecutionLevel::Unverified);
        // A device that is not trusted yet.
        lab.beat().await;
        let attested = lab.ship_and_attest(&made).await.unwrap();
        let expected = (
            ExecutionLevel::AgentVerified,
            Some(ExecutionFact::DeviceTrusted),
        );
        assert_eq!(stopped(&attested), expected);
        lab.earn_trust().await;
        // No hash of the workflow, or none of the lens.
        for (field, fact) in [
            ("workflow", ExecutionFact::WorkflowRecorded),
            ("lens", ExecutionFact::LensRecorded),
        ] {
            let mut asked = lab.registering(true);
            match field {
                "workflow" => asked.workflow_hash = None,
                _ => asked.lens_hash = None,
            }
            let made = lab.make_of(&asked).await;
            lab.beat().await;
            let attested = lab.ship_and_attest(&made).await.unwrap();
            let expected = (ExecutionLevel::ExecutionVerified, Some(fact));
            assert_eq!(stopped(&attested), expected);
        }
        // A log that was rewritten behind a checkpoint.
        let made = lab.make(true).await;
        lab.beat().await;
        let note = made.ran.note_at(5);
        lab.machine
            .client
            .checkpoint(made.run.id, &note)
            .await
            .unwrap();
        made.ran
            .forge(|lines| lines[2]["payload"]["note"] = json!(1));
        let (statement, bytes) = lab.machine.bundle(made.run.id, &made.ran);
        let sent = lab.machine.client.bundle(made.run.id, &statement, &bytes);
        sent.await.unwrap();
        let attested = lab.machine.attest(&made.run, &made.ran).await.unwrap();
        let expected = (
            ExecutionLevel::RunnerVerified,
            Some(ExecutionFact::GatewayVerified),
        );
        assert_eq!(stopped(&attested), expected);
        assert!(attested.found.reason.is_some());
        // A runner of which nothing was heard.
        let made = lab.make(true).await;
        lab.machine.ship(made.run.id, &made.ran).await;
        let unheard = lab.owner.runner("unheard").await;
        let mut asked = lab.registering(true);
        asked.runner = unheard;
        let other = lab.make_of(&asked).await;
        lab.machine.ship(other.run.id, &other.ran).await;
        let attested = lab.machine.attest(&other.run, &other.ran).await.unwrap();
        let expected = (
            ExecutionLevel::DeviceVerified,
            Some(ExecutionFact::RunnerBound),
        );
        assert_eq!(stopped(&attested), expected);
        let bind = Order::Bind {
            device: lab.machine.id,
            runner: unheard,
        };
        lab.owner.order(bind).await.unwrap();
        let attested = lab.machine.attest(&other.run, &other.ran).await.unwrap();
        let expected = (
            ExecutionLevel::DeviceVerified,
            Some(ExecutionFact::RunnerFresh),
        );
        assert_eq!(stopped(&attested), expected);
        // The same with everything there, and the level rises; a worse word later takes nothing back.
        lab.machine.heartbeat(&[unheard]).await.unwrap();
        let attested = lab.machine.attest(&other.run, &other.ran).await.unwrap();
        assert_eq!(attested.level, ExecutionLevel::FullyTrusted);
        let unbind = Order::Unbind {
            device: lab.machine.id,
            runner: unheard,
        };
        lab.owner.order(unbind).await.unwrap();
        let attested = lab.machine.attest(&other.run, &other.ran).await.unwrap();
        assert_eq!(attested.level, ExecutionLevel::FullyTrusted);
        // A run that did what its policy does not allow; and what that means for the device.
        let made = lab
            .forged(|lines| {
                let granted = of_kind(lines, "approval.granted@1", 0);
                lines[granted]["head"]["type"] = json!("agent.note@1");
            })
            .await;
        lab.beat().await;
        let attested = lab.ship_and_attest(&made).await.unwrap();
        let expected = (
            ExecutionLevel::ExecutionVerified,
            Some(ExecutionFact::PolicyPassed),
        );
        assert_eq!(stopped(&attested), expected);
        let device = lab.owner.client.device(lab.machine.id).await.unwrap();
        assert_eq!(device.level, DeviceLevel::Unhealthy);
        let refused = lab.register(&lab.registering(true)).await;
        assert_eq!(refused, Err(Some(Code::DeviceUnhealthy)));
    })
    .await;
}

#[tokio::test]
async fn what_a_client_says_of_facts_is_overwritten_and_on_record() {
    on_both(|place| async move {
        let mut lab = Lab::approved(place).await;
        let made = lab
            .forged(|lines| {
                let lax = "permit (principal, action, resource);";
                lines[0]["payload"]["policy"]["text"] = json!(lax);
            })
            .await;
        lab.machine.ship(made.run.id, &made.ran).await;
        let said = lab.machine.attesting(&made.run, &made.ran);
        let envelope = Envelope::attest(&said, &lab.machine.key).unwrap();
        let asked = wire::Attest {
            device_trusted: Some(true),
            gateway_verified: Some(true),
            policy_passed: Some(true),
            ..attest(envelope)
        };
        let attested = lab
            .machine
            .client
            .attest(made.run.id, &asked)
            .await
            .unwrap();
        assert_eq!(attested.level, ExecutionLevel::AgentVerified);
        assert!(!attested.found.device_trusted && !attested.found.policy_passed);
        assert!(attested.found.gateway_verified);
        let events = lab.world.events().await;
        let overwritten = events
            .iter()
            .find(|(kind, _)| kind == "attestation.overwritten@1");
        let facts = &overwritten.unwrap().1["facts"];
        assert_eq!(
            facts["device_trusted"],
            json!({"sent": true, "found": false})
        );
        assert_eq!(
            facts["policy_passed"],
            json!({"sent": true, "found": false})
        );
        assert_eq!(facts.get("gateway_verified"), None);
    })
    .await;
}

#[tokio::test]
async fn a_revocation_since_a_moment_puts_in_doubt_what_was_attested_after_it() {
    on_both(|place| async move {
        let lab = Lab::trusted(place).await;
        let (before, after) = (lab.make(true).await, lab.make(true).await);
        lab.beat().await;
        lab.ship_and_attest(&before).await.unwrap();
        let since = lab.world.now();
        lab.ship_and_attest(&after).await.unwrap();
        let handed = wire::HandIn {
            content: lodestar_core::digest::sha256(b"earlier work"),
            run: Some(after.run.id),
            battle: None,
        };
        let handed = lab.owner.client.hand_in(&handed).await.unwrap();
        assert_eq!(handed.effects.len(), 4);
        let revoke = |compromised_since| Order::Revoke {
            compromised_since,
            device: lab.machine.id,
            reason: "stolen".to_owned(),
        };
        // Not of a time to come; and, once it is known, also later than the revocation itself, but once.
        let tomorrow = lab.world.now().unix_micros() + 86_400_000_000;
        let tomorrow = Timestamp::from_unix_micros(tomorrow).unwrap();
        let refused = lab.owner.order(revoke(Some(tomorrow))).await;
        assert_eq!(refused, Err(Some(Code::StatementMismatch)));
        assert_eq!(lab.owner.order(revoke(None)).await.unwrap().evaluated, 0);
        let done = lab.owner.order(revoke(Some(since))).await.unwrap();
        assert_eq!(done.evaluated, 1);
        for again in [None, Some(since)] {
            let refused = lab.owner.order(revoke(again)).await;
            assert_eq!(refused, Err(Some(Code::DeviceRevoked)));
        }
        // What it had earned counts as far as its level still covers it.
        let shown = lab.owner.client.submission(handed.id).await.unwrap();
        assert_eq!(shown.effects, ["BATTLE_SUBMISSION_COMPLETED"]);
        let level = async |run| {
            let run = lab.owner.client.run(run).await.unwrap();
            run.evaluation.unwrap().level
        };
        assert_eq!(level(before.run.id).await, ExecutionLevel::FullyTrusted);
        assert_eq!(level(after.run.id).await, ExecutionLevel::AgentVerified);
        assert_eq!(shown.level, ExecutionLevel::AgentVerified);
    })
    .await;
}

#[tokio::test]
async fn runs_and_attestations_stop_with_the_kill_switch_a_pause_and_a_revocation() {
    on_both(|place| async move {
        let lab = Lab::approved(place).await;
        let made = lab.make(true).await;
        lab.machine.ship(made.run.id, &made.ran).await;
        let platform = lab.world.platform();
        let both = async |code| {
            let run = lab.register(&lab.registering(true)).await;
            assert_eq!(run, Err(Some(code)));
            let word = lab.machine.attest(&made.run, &made.ran).await;
            assert_eq!(word, Err(Some(code)));
        };
        platform.set_kill_switch(true, "an exercise").await.unwrap();
        both(Code::KillSwitch).await;
        platform.set_kill_switch(false, "over").await.unwrap();
        let pause = Order::Pause {
            device: lab.machine.id,
            reason: "holidays".to_owned(),
        };
        lab.owner.order(pause).await.unwrap();
        both(Code::DevicePaused).await;
        let device = lab.machine.id;
        lab.owner.order(Order::Resume { device }).await.unwrap();
        lab.machine.attest(&made.run, &made.ran).await.unwrap();
        platform.block(device, "abuse").await.unwrap();
        both(Code::DeviceBlocked).await;
    })
    .await;
}

#[tokio::test]
async fn trust_that_rests_on_an_attestation_ends_with_it() {
    on_both(|place| async move {
        let lab = Lab::trusted(place).await;
        let level = lab.beat().await;
        assert_eq!(level, DeviceLevel::Trusted);
        // Thirty days on, and heard of all the time as far as gaps go.
        let settings = lab.world.settings();
        lab.world.hands.forward(settings.max_gap + HOUR / 60);
        let shown = lab.owner.client.device(lab.machine.id).await.unwrap();
        assert_eq!(shown.level, DeviceLevel::Approved, "a gap is enough");
    })
    .await;
}

#[tokio::test]
async fn a_bundle_that_came_is_not_sent_twice_and_stays() {
    on_both(|place| async move {
        let mut lab = Lab::approved(place).await;
        let made = lab.make(true).await;
        let (statement, bytes) = lab.machine.bundle(made.run.id, &made.ran);
        let early = lab.machine.client.bundle(made.run.id, &statement, &bytes);
        let early = early.await.unwrap_err();
        assert_eq!(early.code(), Some(Code::CheckpointMissing));
        let missing = lab.machine.attest(&made.run, &made.ran).await;
        assert_eq!(missing, Err(Some(Code::BundleMissing)));
        lab.machine.ship(made.run.id, &made.ran).await;
        // A device that did not hear the answer asks again.
        let (again, _) = lab.machine.bundle(made.run.id, &made.ran);
        let there = lab.machine.client.bundle(made.run.id, &again, &bytes);
        there.await.unwrap();
        let size = usize::try_from(made.ran.packed().1.size).unwrap();
        let late = made.ran.note_at(size);
        let late = lab.machine.client.checkpoint(made.run.id, &late).await;
        assert_eq!(late.unwrap_err().code(), Some(Code::CheckpointBehind));
        // And it is there after a restart.
        lab.world.restart().await;
        let machine = crate::world::Machine {
            client: lab.world.client(Some(&lab.machine.token)),
            ..lab.machine
        };
        let attested = machine.attest(&made.run, &made.ran).await.unwrap();
        assert!(attested.found.gateway_verified, "{attested:?}");
        let said = machine.attesting(&made.run, &made.ran);
        let envelope = Envelope::attest(&said, &machine.key).unwrap();
        let asked = attest(envelope);
        machine.client.attest(made.run.id, &asked).await.unwrap();
        let twice = machine.client.attest(made.run.id, &asked).await;
        assert_eq!(twice.unwrap_err().code(), Some(Code::AttestationReused));
    })
    .await;
}
