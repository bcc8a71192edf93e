//! Whoever has no business here.

use std::time::{Duration, Instant};

use lodestar_mcp::HttpFace;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::world::{Far, OTHER, Raw, TOKEN, World, call, came, far, greet, greeting, settings};

async fn world(more: &str) -> World {
    World::before(&far(Far::default()).await, &["mcp.far.echo"], more).await
}

#[tokio::test]
async fn without_the_token_nobody_is_let_in() {
    let world = world("").await;
    let tries = [
        Raw::post(&greeting()),
        Raw::post(&greeting()).with("Authorization", "Bearer wrong"),
        Raw::post(&greeting()).with("Authorization", &format!("Basic {TOKEN}")),
        Raw::post(&greeting()).with("Authorization", &format!("Bearer {TOKEN}x")),
        Raw::post(&greeting()).with("Authorization", &format!("Bearer {}", &TOKEN[1..])),
        Raw::post(&greeting()).token().token(),
        Raw::new("GET"),
        Raw::new("DELETE"),
    ];
    for raw in tries {
        let came = raw.send(world.address).await;
        assert_eq!(came.status, 401, "{came:?}");
        assert_eq!(came.header("www-authenticate").as_deref(), Some("Bearer"));
        assert!(!came.body.contains(TOKEN));
    }
}

#[tokio::test]
async fn a_token_that_others_can_read_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let here = "127.0.0.1:0".parse().unwrap();
    let settings = settings(folder.path(), "http://127.0.0.1:1/mcp", &[], "");
    let token = folder.path().join("token");
    let bind = || HttpFace::bind(settings.clone(), here);
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o640)).unwrap();
    let problem = bind().await.unwrap_err().to_string();
    assert!(problem.contains("chmod 600"), "{problem}");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&token, "short").unwrap();
    let problem = bind().await.unwrap_err().to_string();
    assert!(problem.contains("openssl rand"), "{problem}");
    std::fs::remove_file(&token).unwrap();
    assert!(bind().await.is_err());
}

#[tokio::test]
async fn without_a_token_in_the_configuration_nothing_listens() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path(), "http://127.0.0.1:1/mcp", &[], "");
    settings.config.http = None;
    let here = "127.0.0.1:0".parse().unwrap();
    let problem = HttpFace::bind(settings, here).await.unwrap_err();
    assert!(problem.to_string().contains("token_file"), "{problem}");
}

#[tokio::test]
async fn a_name_that_was_made_to_lead_here_is_not_let_in() {
    let world = world("").await;
    for host in ["evil.example", "evil.example:80", "localhost.evil.example"] {
        let raw = Raw::post(&greeting()).token().with("Host", host);
        let came = raw.send(world.address).await;
        assert_eq!(came.status, 403, "{came:?}");
    }
    let port = world.address.port();
    let raw = Raw::post(&greeting())
        .token()
        .with("Host", &format!("localhost:{port}"));
    assert_eq!(raw.send(world.address).await.status, 200);
}

#[tokio::test]
async fn a_page_from_elsewhere_is_not_let_in() {
    let world = world("allowed_origins = [\"https://page.example\"]").await;
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        let raw = Raw::post(&greeting()).token().with("Origin", origin);
        assert_eq!(raw.send(world.address).await.status, 403, "{origin}");
    }
    let own = format!("http://{}", world.address);
    for origin in ["https://page.example", &own] {
        let raw = Raw::post(&greeting()).token().with("Origin", origin);
        assert_eq!(raw.send(world.address).await.status, 200, "{origin}");
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_is_not_read() {
    let world = world("[limits]\nmessage_bytes = 4096").await;
    let session = greet(world.address).await;
    let large = call(2, "far__echo", json!({"text": "x".repeat(5000)}));
    let said = Raw::post(&large).token().with("Mcp-Session-Id", &session);
    assert_eq!(said.send(world.address).await.status, 413);
    // Without saying how long it is.
    let piece = "x".repeat(1000);
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = Raw::new("POST")
        .token()
        .with("Content-Type", "application/json")
        .with("Mcp-Session-Id", &session)
        .text(world.address)
        .replace("Content-Length: 0", "Transfer-Encoding: chunked");
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..6 {
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    assert_eq!(came(stream).await.status, 413);
}

#[tokio::test]
async fn a_message_that_drips_is_given_up() {
    let world = world("body_ms = 300").await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = Raw::new("POST")
        .token()
        .with("Content-Type", "application/json")
        .with("Content-Length", "100");
    let began = Instant::now();
    stream
        .write_all(head.text(world.address).as_bytes())
        .await
        .unwrap();
    stream.write_all(b"{").await.unwrap();
    assert_eq!(came(stream).await.status, 408);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn the_session_of_another_client_is_not_there() {
    let world = world("").await;
    let session = greet(world.address).await;
    let other = format!("Bearer {OTHER}");
    let listing = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    for raw in [Raw::post(&listing), Raw::new("GET"), Raw::new("DELETE")] {
        let raw = raw
            .with("Authorization", &other)
            .with("Mcp-Session-Id", &session);
        assert_eq!(raw.send(world.address).await.status, 404);
    }
    let own = Raw::post(&listing).token().with("Mcp-Session-Id", &session);
    assert_eq!(own.send(world.address).await.status, 200);
}

#[tokio::test]
async fn ids_of_sessions_cannot_be_guessed() {
    let world = world("").await;
    let (one, two) = (greet(world.address).await, greet(world.address).await);
    assert_eq!((one.len(), two.len()), (32, 32));
    let same = one.bytes().zip(two.bytes()).filter(|(a, b)| a == b);
    assert!(same.count() < 16, "{one} {two}");
    let listing = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    for guess in ["0", "1", "", &one[..31], &one.to_uppercase(), "../x"] {
        if guess == one {
            continue;
        }
        let raw = Raw::post(&listing).token().with("Mcp-Session-Id", guess);
        assert_eq!(raw.send(world.address).await.status, 404, "{guess}");
    }
}

#[tokio::test]
async fn without_a_session_there_is_nothing_to_listen_to() {
    let world = world("").await;
    for method in ["GET", "DELETE"] {
        let raw = Raw::new(method).token();
        assert_eq!(raw.send(world.address).await.status, 400);
    }
    let listing = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let came = Raw::post(&listing).token().send(world.address).await;
    assert_eq!(came.status, 400);
}

#[tokio::test]
async fn a_flood_of_sessions_ends_at_the_bound_and_begins_again_when_one_leaves() {
    let world = world("max_sessions = 2").await;
    let first = greet(world.address).await;
    greet(world.address).await;
    for _ in 0..5 {
        let came = Raw::post(&greeting()).token().send(world.address).await;
        assert_eq!(came.status, 503, "{came:?}");
        assert!(came.header("retry-after").is_some());
    }
    let leave = Raw::new("DELETE").token().with("Mcp-Session-Id", &first);
    assert_eq!(leave.send(world.address).await.status, 204);
    greet(world.address).await;
}

#[tokio::test]
async fn who_is_silent_for_too_long_has_to_begin_again() {
    let world = world("idle_ms = 400").await;
    let session = greet(world.address).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let listing = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let raw = Raw::post(&listing).token().with("Mcp-Session-Id", &session);
    assert_eq!(raw.send(world.address).await.status, 404);
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_harms_nobody() {
    let world = world("").await;
    let session = greet(world.address).await;
    for (text, code) in [("[]", -32600), ("{", -32700), ("{\"id\":1}", -32600)] {
        let mut raw = Raw::new("POST")
            .token()
            .with("Content-Type", "application/json")
            .with("Mcp-Session-Id", &session)
            .with("Content-Length", &text.len().to_string())
            .text(world.address);
        raw += text;
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(raw.as_bytes()).await.unwrap();
        let came = came(stream).await;
        assert_eq!(came.status, 400, "{came:?}");
        assert_eq!(came.json()["error"]["code"], code);
    }
    let unknown = Raw::post(&greeting())
        .token()
        .with("MCP-Protocol-Version", "1999-01-01");
    assert_eq!(unknown.send(world.address).await.status, 400);
    let echo = Raw::post(&call(2, "far__echo", json!({"a": 1})))
        .token()
        .with("Mcp-Session-Id", &session);
    let came = echo.send(world.address).await;
    assert_eq!(came.json()["result"]["content"][0]["text"], "{\"a\":1}");
}
