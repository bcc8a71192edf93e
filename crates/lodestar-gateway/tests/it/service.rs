//! The service itself: what it records, and what is left of it after a crash.

use lodestar_gateway::wire;
use serde_json::Value;

use crate::world::{World, logged, name, on_both, sqlite};

fn numbers(events: &[(String, Value)]) -> Vec<u64> {
    let numbered = events.iter().filter(|(kind, _)| kind != "session.opened@1");
    numbered
        .filter_map(|(_, payload)| payload["n"].as_u64())
        .collect()
}

#[tokio::test]
async fn what_is_recorded_is_in_the_log_once_and_in_its_order_over_restarts() {
    on_both(|place| async move {
        let mut world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        for round in 0..3 {
            let client = world.client(Some(&owner.token));
            let agent = wire::Named {
                name: name(&format!("agent-{round}")),
            };
            client.register_agent(&agent).await.unwrap();
            world.restart().await;
        }
        let events = world.events().await;
        let kinds: Vec<_> = events.iter().map(|(kind, _)| kind.as_str()).collect();
        let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
        assert_eq!(count("gateway.started@1"), 4);
        assert_eq!(count("gateway.stopped@1"), 4);
        assert_eq!(count("session.closed@1"), 4);
        assert_eq!(count("run.agent_registered@1"), 3);
        let numbers = numbers(&events);
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    })
    .await;
}

#[tokio::test]
async fn a_log_that_lost_its_last_lines_gets_them_again_from_the_outbox() {
    // As after a crash of the machine: the database kept what the log had not yet on disk.
    let place = sqlite();
    let mut world = World::on(place).await;
    let owner = world.owner("anna", 10).await;
    world.stop().await;
    // What happened is recorded in the store by somebody who then crashes before the log has it.
    let now = world.now();
    world.place.with(|place| {
        let mut sql = place.open();
        lodestar_gateway::store::transaction(sql.as_mut(), |sql| {
            sql.act_as_server()?;
            for number in 0..5 {
                let payload = format!("{{\"account\":\"{}\",\"made\":{number}}}", owner.account);
                let kind = "run.agent_registered@1";
                lodestar_gateway::store::outbox::push(sql, kind, &payload, now)?;
            }
            Ok::<_, lodestar_gateway::store::StoreError>(())
        })
        .unwrap();
    });
    world.start().await;
    let events = world.events().await;
    let made: Vec<_> = events
        .iter()
        .filter_map(|(_, payload)| payload["made"].as_u64())
        .collect();
    assert_eq!(made, [0, 1, 2, 3, 4]);
    let waited = events
        .iter()
        .filter(|(kind, _)| kind == "gateway.started@1")
        .filter_map(|(_, payload)| payload["waited"].as_u64());
    assert_eq!(waited.collect::<Vec<_>>(), [0, 5]);
}

#[tokio::test]
async fn what_is_in_the_log_already_is_not_written_again() {
    // As after a crash between the log and the removal from the outbox.
    let place = sqlite();
    let mut world = World::on(place).await;
    let owner = world.owner("anna", 10).await;
    let agent = wire::Named {
        name: name("helper"),
    };
    owner.client.register_agent(&agent).await.unwrap();
    let key = world.service().log_key();
    world.stop().await;
    let before = logged(&world.config.data.join("log"), key);
    let last = before
        .iter()
        .rfind(|(kind, _)| kind == "gateway.stopped@1")
        .unwrap()
        .1["n"]
        .as_u64()
        .unwrap();
    world.place.with(|place| {
        // The last two come back into the outbox under the numbers that they had.
        let mut direct = place.direct();
        direct.begin(crate::store::place::As::Server);
        for n in [last - 1, last] {
            let again = format!(
                "INSERT INTO outbox (n, kind, payload, at) VALUES ({n}, 'gateway.stopped@1', '{{}}', 1)"
            );
            direct.run(&again).unwrap();
        }
        direct.run("COMMIT").unwrap();
    });
    world.start().await;
    let events = world.events().await;
    let mut numbers = numbers(&events);
    let all = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), all, "nothing twice");
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[tokio::test]
async fn a_log_that_somebody_changed_is_not_written_on() {
    let mut world = World::on(sqlite()).await;
    world.stop().await;
    let log = world.config.data.join("log/gateway/ledger.ndjson");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replacen("gateway", "gatevay", 1)).unwrap();
    let folder = lodestar_gateway::service::Folder::open(&world.config.data).unwrap();
    let refused = lodestar_gateway::service::Service::over(
        &world.config,
        folder,
        world.place.with(|place| place.open()),
        lodestar_gateway::service::Surroundings::default(),
    );
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("event log"), "{why}");
}

#[tokio::test]
async fn two_services_do_not_share_a_folder() {
    let world = World::on(sqlite()).await;
    let second = lodestar_gateway::service::Folder::open(&world.config.data);
    assert!(second.is_err());
}
