//! Answers that broke off.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::world::{Far, OTHER, Raw, World, call, far, greet, greeting, listen};

/// Calls something that takes a moment, and goes when the answer has said its name; gives the name.
async fn broken_off(world: &World, session: &str) -> String {
    let raw = Raw::post(&call(7, "far__nap", json!({})));
    let raw = raw.token().with("Mcp-Session-Id", session);
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let text = raw.text(world.address);
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.contains("data: ") {
            assert!(text.contains("retry: "), "{text}");
            let mut ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
            return ids.next().expect("a name").to_owned();
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{text}");
    }
}

#[tokio::test]
async fn a_client_whose_connection_breaks_off_does_not_lose_its_answer() {
    let server = Far::default();
    let world = World::before(&far(server.clone()).await, &["mcp.far.nap"], "").await;
    let session = greet(world.address).await;
    let name = broken_off(&world, &session).await;
    // Before it is there, and again when it was heard: it is the same answer, and the call ran once.
    for _ in 0..2 {
        let heard = listen(world.address, &session, Some(&name), 1).await;
        assert_eq!(heard[0].1["id"], 7);
        assert_eq!(heard[0].1["result"]["content"][0]["text"], "napped");
        assert!(heard[0].0.starts_with(name.trim_end_matches('0')));
    }
    assert_eq!(server.calls.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_answer_is_taken_up_again_by_its_own_client_alone() {
    let world = World::before(&far(Far::default()).await, &["mcp.far.nap"], "").await;
    let session = greet(world.address).await;
    let name = broken_off(&world, &session).await;
    let get = |session: &str, last: &str| {
        let raw = Raw::new("GET").with("Mcp-Session-Id", session);
        raw.with("Last-Event-ID", last)
    };
    // Another session of the same client has nothing of that name; another client has no such session.
    let other = greet(world.address).await;
    let came = get(&other, &name).token().send(world.address).await;
    assert_eq!(came.status, 400, "{came:?}");
    let stranger = get(&session, &name).with("Authorization", &format!("Bearer {OTHER}"));
    assert_eq!(stranger.send(world.address).await.status, 404);
    let ahead = name.trim_end_matches('0').to_owned() + "77";
    for unknown in ["9999-0", "nothing", "-", "18446744073709551616-1", &ahead] {
        let came = get(&session, unknown).token().send(world.address).await;
        assert_eq!(came.status, 400, "{unknown}: {came:?}");
    }
}

#[tokio::test]
async fn clients_from_before_streams_had_names_are_not_shown_one() {
    let world = World::before(&far(Far::default()).await, &["mcp.far.nap"], "").await;
    let mut before = greeting();
    before["params"]["protocolVersion"] = json!("2025-06-18");
    let came = Raw::post(&before).token().send(world.address).await;
    let session = came.header("mcp-session-id").expect("a session");
    let raw = Raw::post(&call(7, "far__nap", json!({}))).token();
    let came = raw
        .with("Mcp-Session-Id", &session)
        .send(world.address)
        .await;
    assert_eq!(
        came.header("content-type").as_deref(),
        Some("application/json")
    );
}
