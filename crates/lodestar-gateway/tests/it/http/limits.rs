//! How much may be asked, how fast, and for how long.

use std::time::{Duration, Instant};

use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{World, key, name, signed, sqlite, stated};

async fn connected(world: &World) -> TcpStream {
    let address = world.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

async fn rest(mut stream: TcpStream) -> String {
    let mut read = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut read)).await;
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn one_token_cannot_ask_for_more_than_its_share_and_others_can_still() {
    let mut world = World::with(sqlite(), |config| {
        config.http.token_per_second = 1;
        config.http.token_burst = 5;
    })
    .await;
    let (anna, berta) = (
        world.owner("anna", 10).await,
        world.owner("berta", 11).await,
    );
    let mut refused = 0;
    for _ in 0..20 {
        match anna.client.account().await {
            Ok(_) => {}
            Err(problem) => {
                assert_eq!(problem.code(), Some(Code::RateLimited));
                assert!(problem.may_pass());
                refused += 1;
            }
        }
    }
    assert!((10..=15).contains(&refused), "{refused}");
    assert!(berta.client.account().await.is_ok());
    // A flood is on record, all of it, and does not fill it.
    let events = world.events().await;
    let flood = events
        .iter()
        .filter(|(_, payload)| payload["code"] == "rate_limited");
    let times: Vec<u64> = flood
        .map(|(_, payload)| payload["times"].as_u64().unwrap_or(1))
        .collect();
    assert_eq!((times.len(), times.iter().sum()), (2, refused));
}

#[tokio::test]
async fn a_refusal_is_recorded_also_of_whoever_hung_up() {
    const TIMES: usize = 30;
    let mut world = World::on(sqlite()).await;
    let owner = world.owner("anna", 10).await;
    let machine = owner.approved(&world, "laptop", 20).await;
    let (id, token) = (machine.id, &machine.token);
    for _ in 0..TIMES {
        let forged = signed(machine.beating(&[]), &key(66), world.now());
        let body = stated(&forged).to_string();
        let long = body.len();
        let mut stream = connected(&world).await;
        let request = format!(
            "POST /v1/devices/{id}/heartbeats HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {long}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        // Whether it was read is not known; that it was sent whole is.
        stream.shutdown().await.unwrap();
        drop(stream);
    }
    // Others are answered behind them.
    tokio::time::sleep(Duration::from_millis(300)).await;
    owner.client.account().await.unwrap();
    let events = world.events().await;
    let refused = events
        .iter()
        .filter_map(|(_, payload)| payload["code"].as_str())
        // Whose body was not read before the connection was gone broke off, whatever was in it.
        .filter(|code| ["signature_invalid", "body_broken"].contains(code));
    assert_eq!(refused.count(), TIMES);
}

#[tokio::test]
async fn guessing_tokens_is_slow() {
    let world = World::with(sqlite(), |config| {
        config.http.address_per_second = 1;
        config.http.address_burst = 50;
    })
    .await;
    let mut codes = Vec::new();
    for guess in 0..10u8 {
        let token = lodestar_gateway::token::TokenText::from_bytes([guess; 32]);
        let answer = world
            .raw("GET", "/v1/account", Some(token.expose()), None, "")
            .await;
        codes.push(answer.code().unwrap());
        if answer.code() == Some(Code::RateLimited) {
            assert!(answer.headers.contains_key("retry-after"));
        }
    }
    let guesses = codes.iter().filter(|code| **code == Code::TokenInvalid);
    assert_eq!(guesses.count(), 5, "{codes:?}");
}

#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let world = World::with(sqlite(), |config| config.http.head_seconds = 1).await;
    let mut stream = connected(&world).await;
    stream.write_all(b"GET /v1/health HT").await.unwrap();
    let started = Instant::now();
    let _ = rest(stream).await;
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_refused_in_time() {
    let world = World::with(sqlite(), |config| config.http.deadline_seconds = 1).await;
    let owner = world.owner("anna", 10).await;
    let mut stream = connected(&world).await;
    let head = format!(
        "POST /v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{{",
        owner.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("body_too_slow"), "{answer}");
}

#[tokio::test]
async fn a_body_without_a_length_is_held_to_the_same_bound() {
    let world = World::on(sqlite()).await;
    let owner = world.owner("anna", 10).await;
    let mut stream = connected(&world).await;
    let head = format!(
        "POST /v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        owner.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "a".repeat(0x1000));
    for _ in 0..64 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn what_was_accepted_is_finished_when_the_service_ends() {
    let mut world = World::on(sqlite()).await;
    let owner = world.owner("anna", 10).await;
    // A request whose body is still on its way.
    let mut stream = connected(&world).await;
    let body = json!({"name": "late"}).to_string();
    let head = format!(
        "POST /v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        owner.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let url = world.url.clone();
    let finishing = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        rest(stream).await
    });
    world.stop().await;
    let answer = finishing.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let address = url.strip_prefix("http://").unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nothing new");
    world.start().await;
    let again = world.client(Some(&owner.token));
    let agents = again.agents(None).await.unwrap().items;
    assert_eq!(agents.len(), 1);
}

#[tokio::test]
async fn more_connections_than_may_be_wait_and_are_served_later() {
    let world = World::with(sqlite(), |config| config.http.connections = 2).await;
    let held = [connected(&world).await, connected(&world).await];
    tokio::time::sleep(Duration::from_millis(100)).await;
    let client = world.client(None).within(Duration::from_millis(300));
    assert!(client.health().await.is_err());
    drop(held);
    let client = world.client(None);
    assert!(client.health().await.is_ok());
}

#[tokio::test]
async fn many_at_once_are_all_answered() {
    let world = World::on(sqlite()).await;
    let owner = world.owner("anna", 10).await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..200 {
        let client = world.client(Some(&owner.token));
        asking.spawn(async move {
            let asked = wire::RegisterDevice {
                // Half of them want a name that another has.
                name: name(&format!("device-{}", number % 100)),
                key: Some(key(20).public()),
                log_key: Some(key(21).public()),
            };
            client.register_device(&asked).await
        });
    }
    let answers = asking.join_all().await;
    let registered = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(registered, 100);
    for refused in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        assert_eq!(refused.code(), Some(Code::DeviceNameTaken));
    }
}
