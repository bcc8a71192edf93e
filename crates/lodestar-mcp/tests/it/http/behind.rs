//! Servers elsewhere that end, refuse, send away and answer too much.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::world::{Came, Raw, World, call, greet};

/// Status, content type and body for a message and how many came before it.
type Answering = dyn Fn(&Value, usize) -> (u16, &'static str, String) + Send + Sync;

/// A server that answers as it is told.
#[derive(Clone)]
struct Told {
    answer: Arc<Answering>,
    seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    calls: Arc<AtomicUsize>,
    sessions: Arc<AtomicUsize>,
}

async fn told(
    State(told): State<Told>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = message["method"].as_str().unwrap_or_default();
    let line = format!("{method} {name}");
    told.seen.lock().unwrap().push((line, headers));
    let id = &message["id"];
    let ok = |result: Value| {
        let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        (200, "application/json", text)
    };
    let mut session = None;
    let (status, form, text) = match (method.as_str(), name) {
        ("POST", "initialize") => {
            let number = told.sessions.fetch_add(1, Ordering::SeqCst) + 1;
            session = Some(format!("session-{number}"));
            ok(
                json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "told", "version": "1"}}),
            )
        }
        ("POST", "tools/list") => {
            ok(json!({"tools": [{"name": "do", "inputSchema": {"type": "object"}}]}))
        }
        ("POST", "tools/call") => {
            let number = told.calls.fetch_add(1, Ordering::SeqCst) + 1;
            (told.answer)(&message, number)
        }
        ("POST", _) => (202, "", String::new()),
        ("DELETE", _) => (204, "", String::new()),
        _ => (405, "", String::new()),
    };
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    if !form.is_empty() {
        response = response.header("content-type", form);
    }
    if let Some(session) = session {
        response = response.header("mcp-session-id", session);
    }
    if (300..400).contains(&status) {
        response = response.header("location", "http://127.0.0.1:1/elsewhere");
    }
    response.body(Body::from(text)).unwrap()
}

async fn server(
    answer: impl Fn(&Value, usize) -> (u16, &'static str, String) + Send + Sync + 'static,
) -> (String, Told) {
    let state = Told {
        answer: Arc::new(answer),
        seen: Arc::default(),
        calls: Arc::default(),
        sessions: Arc::default(),
    };
    let router = axum::Router::new()
        .route("/mcp", axum::routing::any(told))
        .with_state(state.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, state)
}

async fn done(world: &World, session: &str, id: u64) -> Came {
    let raw = Raw::post(&call(id, "far__do", json!({})));
    let raw = raw.token().with("Mcp-Session-Id", session);
    raw.send(world.address).await
}

fn text(came: &Came) -> String {
    let message = came.json();
    let text = message["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{message}")).to_owned()
}

fn answered(message: &Value, text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": message["id"],
        "result": {"content": [{"type": "text", "text": text}]}})
    .to_string()
}

#[tokio::test]
async fn a_failed_exchange_fails_its_own_call_and_says_why() {
    let (url, _) = server(|message, number| match number {
        1 => (401, "", String::new()),
        2 => (403, "", String::new()),
        3 => (500, "text/plain", "secret words of the server".to_owned()),
        4 => (302, "", String::new()),
        5 => (200, "text/html", "<p>hello".to_owned()),
        6 => (200, "application/json", "{".to_owned()),
        7 => (202, "", String::new()),
        _ => (200, "application/json", answered(message, "well")),
    })
    .await;
    let world = World::before(&url, &["mcp.far.do"], "").await;
    let session = greet(world.address).await;
    let words = [
        "401",
        "403",
        "500",
        "not followed",
        "neither",
        "cannot be taken",
        "neither",
        "well",
    ];
    for (id, word) in (2..).zip(words) {
        let said = text(&done(&world, &session, id).await);
        assert!(said.contains(word), "{word}: {said}");
        assert!(!said.contains("secret words"), "{said}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_taken() {
    let (url, _) = server(|message, number| {
        let text = answered(message, &"x".repeat(20_000));
        match number {
            1 => (200, "application/json", text),
            2 => (200, "text/event-stream", format!("data: {text}\n\n")),
            _ => (200, "application/json", answered(message, "well")),
        }
    })
    .await;
    let world = World::before(&url, &["mcp.far.do"], "[limits]\nmessage_bytes = 8192").await;
    let session = greet(world.address).await;
    for id in [2, 3] {
        let said = text(&done(&world, &session, id).await);
        assert!(said.contains("8192"), "{said}");
    }
    assert_eq!(text(&done(&world, &session, 4).await), "well");
}

#[tokio::test]
async fn events_are_answers_too() {
    let (url, _) = server(|message, _| {
        let text = answered(message, "well");
        let before = "id: 1\ndata:\n\nevent: message\nid: 2\n";
        (
            200,
            "text/event-stream",
            format!("{before}data: {text}\n\n"),
        )
    })
    .await;
    let world = World::before(&url, &["mcp.far.do"], "").await;
    let session = greet(world.address).await;
    assert_eq!(text(&done(&world, &session, 2).await), "well");
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_begun_again() {
    let (url, told) = server(|message, number| match number {
        1 => (404, "", String::new()),
        _ => (200, "application/json", answered(message, "well")),
    })
    .await;
    let world = World::before(&url, &["mcp.far.do"], "").await;
    let session = greet(world.address).await;
    let said = text(&done(&world, &session, 2).await);
    assert!(said.contains("404"), "{said}");
    for id in 3..40 {
        let said = text(&done(&world, &session, id).await);
        if said == "well" {
            assert_eq!(told.sessions.load(Ordering::SeqCst), 2);
            // Nothing is called twice: the one that failed, and this one.
            assert_eq!(told.calls.load(Ordering::SeqCst), 2);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    panic!("it was not begun again");
}

#[tokio::test]
async fn every_request_names_the_session_and_the_end_is_told() {
    let (url, told) =
        server(|message, _| (200, "application/json", answered(message, "well"))).await;
    let mut world = World::before(&url, &["mcp.far.do"], "").await;
    let session = greet(world.address).await;
    done(&world, &session, 2).await;
    world.log().await;
    let seen = told.seen.lock().unwrap();
    let (greeting, rest) = seen.split_first().unwrap();
    assert_eq!(greeting.0, "POST initialize");
    assert!(!greeting.1.contains_key("mcp-session-id"));
    assert_eq!(rest.first().unwrap().0, "POST notifications/initialized");
    for (line, headers) in rest {
        assert_eq!(headers["mcp-session-id"], "session-1", "{line}");
        assert_eq!(headers["mcp-protocol-version"], "2025-06-18", "{line}");
    }
    assert_eq!(rest.last().unwrap().0, "DELETE ");
}

#[tokio::test]
async fn a_server_that_is_not_there_costs_its_own_tools_alone() {
    let world = World::before("http://127.0.0.1:9/mcp", &[], "").await;
    let session = greet(world.address).await;
    let listing = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let raw = Raw::post(&listing).token().with("Mcp-Session-Id", &session);
    let came = raw.send(world.address).await;
    assert_eq!(came.json()["result"]["tools"], json!([]), "{came:?}");
}
