//! Submissions, what they earn, and where everybody stands.

use lodestar_core::digest::sha256;
use lodestar_core::execution::{Effect, ExecutionLevel};
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;

use crate::lab::Lab;
use crate::world::{World, name, on_both};

fn hand_in(run: Option<lodestar_core::id::RunId>) -> wire::HandIn {
    wire::HandIn {
        content: sha256(b"work"),
        run,
        battle: None,
    }
}

fn effects(earned: &[Effect]) -> Vec<String> {
    earned.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_submission_earns_by_what_its_run_is_worth_and_each_thing_once() {
    on_both(|place| async move {
        let mut lab = Lab::trusted(place).await;
        let client = &lab.owner.client;
        let plain = client.hand_in(&hand_in(None)).await.unwrap();
        assert_eq!(plain.effects, effects(&[Effect::SubmissionCompleted]));
        let made = lab.make(true).await;
        lab.beat().await;
        let submitted = client.hand_in(&hand_in(Some(made.run.id))).await.unwrap();
        assert_eq!(submitted.level, ExecutionLevel::Unverified);
        assert_eq!(submitted.effects, effects(&[Effect::SubmissionCompleted]));
        // The run is worth more once it is attested, and so is what came of it.
        lab.ship_and_attest(&made).await.unwrap();
        let all = effects(Effect::ALL);
        let earned = client.submission(submitted.id).await.unwrap();
        assert_eq!(earned.level, ExecutionLevel::FullyTrusted);
        let mut sorted = (earned.effects.clone(), all.clone());
        sorted.0.sort();
        sorted.1.sort();
        assert_eq!(sorted.0, sorted.1);
        // Attested again, and handed in again: nothing more.
        lab.machine.attest(&made.run, &made.ran).await.unwrap();
        let again = client
            .hand_in(&hand_in(Some(made.run.id)))
            .await
            .unwrap_err();
        assert_eq!(again.code(), Some(Code::RunSubmitted));
        let link = client.link_run(plain.id, made.run.id).await.unwrap_err();
        assert_eq!(link.code(), Some(Code::RunSubmitted));
        let events = lab.world.events().await;
        let rewards = events
            .iter()
            .filter(|(kind, _)| kind == "submission.rewarded@1")
            .flat_map(|(_, payload)| payload["effects"].as_array().unwrap().clone())
            .count();
        assert_eq!(rewards, all.len() + 1, "each once, and the plain one's");
    })
    .await;
}

#[tokio::test]
async fn a_battle_is_won_by_who_is_proved_and_ties_by_who_is_fully_trusted() {
    on_both(|place| async move {
        let lab = Lab::trusted(place).await;
        let (world, anna) = (&lab.world, &lab.owner);
        let berta = world.owner("berta", 12).await;
        let other = berta.agent("other").await;
        let part = |account, agent| wire::Participant { account, agent };
        let asked = wire::HoldBattle {
            name: name("first"),
            participants: vec![part(berta.account, other), part(anna.account, lab.agent)],
        };
        let battle = world.platform().hold_battle(&asked).await.unwrap().battle;
        let wrong = wire::HoldBattle {
            name: name("second"),
            participants: vec![part(berta.account, lab.agent)],
        };
        let wrong = world.platform().hold_battle(&wrong).await.unwrap_err();
        assert_eq!(wrong.code(), Some(Code::AgentUnknown));
        let carla = world.owner("carla", 13).await;
        let entry = |run| wire::HandIn {
            battle: Some(battle),
            ..hand_in(run)
        };
        let outside = carla.client.hand_in(&entry(None)).await.unwrap_err();
        assert_eq!(outside.code(), Some(Code::NotInBattle));
        let outside = carla.client.standings(battle).await.unwrap_err();
        assert_eq!(outside.code(), Some(Code::NotInBattle));
        // Berta is first, and proves nothing; Anna's run is fully trusted.
        berta.client.hand_in(&entry(None)).await.unwrap();
        let made = lab.make(true).await;
        lab.beat().await;
        lab.ship_and_attest(&made).await.unwrap();
        let handed = anna
            .client
            .hand_in(&entry(Some(made.run.id)))
            .await
            .unwrap();
        let standings = berta.client.standings(battle).await.unwrap();
        let agents: Vec<_> = standings.places.iter().map(|place| place.agent).collect();
        assert_eq!(agents, [lab.agent, other]);
        assert!(standings.places[0].tie_break);
        assert_eq!(standings.places[0].submission, Some(handed.id));
        // Another account's submission is nobody else's to see.
        let theirs = berta.client.submission(handed.id).await.unwrap_err();
        assert_eq!(theirs.code(), Some(Code::SubmissionUnknown));
    })
    .await;
}

#[tokio::test]
async fn a_lost_token_is_replaced_by_whoever_runs_the_service() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let again = world.platform().reissue(owner.account).await.unwrap();
        let client = world.client(Some(&again.token));
        assert_eq!(client.account().await.unwrap().id, owner.account);
        let taken = wire::OpenAccount {
            name: name("anna"),
            owner_key: owner.key.public(),
        };
        let taken = world.platform().open_account(&taken).await.unwrap_err();
        assert_eq!(taken.code(), Some(Code::AccountNameTaken));
    })
    .await;
}
