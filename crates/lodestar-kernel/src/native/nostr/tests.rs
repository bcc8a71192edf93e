use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use k256::schnorr::{Signature, VerifyingKey};
use lodestar_core::chain::ContentBlock;
use lodestar_core::digest::sha256;
use lodestar_core::scope::Scope;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::native::net::testing::{
    Identity, Names, Server, call, call_until, http_server, private_file,
};
use crate::stop::Stop;
use crate::tool::{Effect, ToolErrorKind};

const SECRET: &str = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa";
const NSEC: &str = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap())
        .collect()
}

fn key(text: &str) -> Result<Key, KeyError> {
    let file = private_file(text);
    Key::parse(&Source::File(file.path().to_owned()).read().unwrap())
}

#[test]
fn the_official_vectors_of_bip_340_hold() {
    let mut signed = 0;
    let lines: Vec<_> = include_str!("bip340.csv").lines().skip(1).collect();
    assert_eq!(lines.len(), 19);
    for line in lines {
        let [index, secret, public, random, message, signature, valid] =
            line.split(',').collect::<Vec<_>>().try_into().unwrap();
        let (message, expected) = (bytes(message), bytes(signature));
        let verified = VerifyingKey::from_slice(&bytes(public)).is_ok_and(|public| {
            Signature::try_from(expected.as_slice())
                .is_ok_and(|signature| public.verify_raw(&message, &signature).is_ok())
        });
        assert_eq!(verified, valid == "TRUE", "vector {index}");
        if !secret.is_empty() {
            let key = key(secret).unwrap();
            assert_eq!(key.public(), public.to_ascii_lowercase(), "vector {index}");
            let random = bytes(random).try_into().unwrap();
            assert_eq!(
                key.signature(&message, &random).unwrap().to_vec(),
                expected,
                "vector {index}"
            );
            signed += 1;
        }
    }
    assert_eq!(signed, 8);
}

#[test]
fn a_key_is_hex_or_nsec_and_never_shown() {
    let of_hex = key(SECRET).unwrap();
    assert_eq!(of_hex.public(), key(NSEC).unwrap().public());
    assert!(!format!("{of_hex:?}").contains(&SECRET[..16]));
    let wrong_sum = NSEC.replace("e5", "e6");
    for (text, error) in [
        (
            "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6",
            KeyError::Malformed,
        ),
        (wrong_sum.as_str(), KeyError::Malformed),
        (&SECRET[1..], KeyError::Malformed),
        (&"0".repeat(64), KeyError::OutOfRange),
        (&"f".repeat(64), KeyError::OutOfRange),
    ] {
        assert_eq!(key(text).unwrap_err(), error, "{text}");
    }
}

/// NIP-01's canonical form, written out here by its own words.
fn canonical(event: &Value) -> String {
    fn quoted(text: &str) -> String {
        let mut out = String::from("\"");
        for c in text.chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                other => out.push(other),
            }
        }
        out + "\""
    }
    let tags: Vec<_> = event["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| {
            let words: Vec<_> = tag
                .as_array()
                .unwrap()
                .iter()
                .map(|w| quoted(w.as_str().unwrap()))
                .collect();
            format!("[{}]", words.join(","))
        })
        .collect();
    format!(
        "[0,{},{},{},[{}],{}]",
        quoted(event["pubkey"].as_str().unwrap()),
        event["created_at"],
        event["kind"],
        tags.join(","),
        quoted(event["content"].as_str().unwrap())
    )
}

/// What is wrong with an event, by a reader that shares nothing with the writer.
fn fault(event: &Value) -> Option<&'static str> {
    let id = sha256(canonical(event).as_bytes());
    if event["id"] != id.to_string() {
        return Some("invalid: id");
    }
    let public = VerifyingKey::from_slice(&bytes(event["pubkey"].as_str()?)).ok()?;
    let signature = bytes(event["sig"].as_str()?);
    let signature = Signature::try_from(signature.as_slice()).ok()?;
    match public.verify_raw(id.as_bytes(), &signature) {
        Ok(()) => None,
        Err(_) => Some("invalid: signature"),
    }
}

#[derive(Clone, Copy)]
enum Manner {
    Fair,
    Refusing,
    Silent,
    Chatty,
    Closing,
    OtherId,
    Huge,
}

type Events = Arc<Mutex<Vec<Value>>>;

async fn relay(tls: Option<Arc<ServerConfig>>, manner: Manner) -> (Server, Events) {
    let events = Events::default();
    let log = Arc::clone(&events);
    let server = Server::start(tls, move |stream| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
                return;
            };
            let Some(Ok(Message::Text(text))) = socket.next().await else {
                return;
            };
            let parsed: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed[0], "EVENT");
            let event = parsed[1].clone();
            let id = event["id"].clone();
            let fault = fault(&event);
            log.lock().unwrap().push(event);
            let say = |value: Value| Message::text(value.to_string());
            let _ = match manner {
                Manner::Fair => {
                    let _ = socket.send(say(json!(["NOTICE", "hello"]))).await;
                    socket
                        .send(say(json!(["OK", id, fault.is_none(), fault.unwrap_or("")])))
                        .await
                }
                Manner::Refusing => {
                    socket
                        .send(say(json!(["OK", id, false, "blocked: not you"])))
                        .await
                }
                Manner::OtherId => {
                    socket
                        .send(say(json!(["OK", "00".repeat(32), true, ""])))
                        .await
                }
                Manner::Huge => {
                    socket
                        .send(say(json!(["OK", id, true, "x".repeat(1 << 20)])))
                        .await
                }
                Manner::Closing => return,
                Manner::Silent => Ok(()),
                Manner::Chatty => loop {
                    if socket
                        .send(say(json!(["NOTICE", "and another thing"])))
                        .await
                        .is_err()
                    {
                        return;
                    }
                },
            };
            while let Some(Ok(_)) = socket.next().await {}
        })
    })
    .await;
    (server, events)
}

fn url(server: &Server) -> String {
    format!("ws://relay.test:{}/", server.port())
}

fn tool(relays: &[String], network: Value) -> NostrPublish {
    let file = private_file(NSEC);
    let config = json!({
        "relays": relays,
        "kinds": [1, 30023],
        "credential_file": file.path(),
        "network": network,
        "max_content_bytes": 1000,
    });
    let config = serde_json::from_value(config).unwrap();
    NostrPublish::new(
        config,
        Scope::global(),
        Names::local(&["relay.test", "other.test"]),
    )
    .unwrap()
}

fn open() -> Value {
    json!({ "allow_addresses": ["127.0.0.0/8"], "timeout_ms": 2000 })
}

fn report_of(output: &Output) -> &Value {
    match &output.content[0] {
        ContentBlock::Structured { value } => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_relay_accepts_what_it_checked_itself() {
    let identity = Identity::of(&["relay.test"]);
    let (server, events) = relay(Some(identity.server.clone()), Manner::Fair).await;
    let network = json!({ "allow_addresses": ["127.0.0.0/8"], "ca_file": identity.ca_file.path() });
    let tool = tool(&[format!("wss://relay.test:{}/", server.port())], network);
    let content = "Quotes \" and \\ and\nlines\tand ünïcödé \u{2028} \u{7f} 🧭 </script>";
    let output = call(
        &tool,
        json!({ "content": content, "kind": 1, "tags": [["t", "a \"b\""], ["p", "00ff", "wss://x"]] }),
    )
    .await
    .unwrap();
    assert!(!output.is_error, "{output:?}");
    let report = report_of(&output);
    assert_eq!(report["relays"][0]["answer"], "accepted");
    let seen = events.lock().unwrap();
    assert_eq!(seen[0]["content"], content);
    assert_eq!(seen[0], report["event"]);
    assert_eq!(
        seen[0]["tags"],
        json!([["t", "a \"b\""], ["p", "00ff", "wss://x"]])
    );
    assert!(!format!("{output:?} {tool:?}").contains(&SECRET[..16]));
}

#[tokio::test]
async fn every_relay_is_reported_for_itself() {
    let (fair, _) = relay(None, Manner::Fair).await;
    let (refusing, _) = relay(None, Manner::Refusing).await;
    let (silent, _) = relay(None, Manner::Silent).await;
    let (chatty, _) = relay(None, Manner::Chatty).await;
    let (closing, _) = relay(None, Manner::Closing).await;
    let (other_id, _) = relay(None, Manner::OtherId).await;
    let (huge, _) = relay(None, Manner::Huge).await;
    let (plain, _) = http_server(None, |_| {
        crate::native::net::testing::answer("200 OK", "", "")
    })
    .await;
    let all = [
        &fair, &refusing, &silent, &chatty, &closing, &other_id, &huge, &plain,
    ];
    let urls: Vec<_> = all.iter().map(|server| url(server)).collect();
    let begun = Instant::now();
    let output = call(&tool(&urls, open()), json!({ "content": "x", "kind": 1 }))
        .await
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(8));
    assert!(!output.is_error);
    let words: Vec<_> = report_of(&output)["relays"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["answer"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        words,
        [
            "accepted",
            "rejected",
            "silent",
            "broken",
            "broken",
            "silent",
            "broken",
            "unreached"
        ]
    );
    // Without the fair one, nobody took it: an error, though something went out.
    let output = call(
        &tool(&urls[1..2], open()),
        json!({ "content": "x", "kind": 1 }),
    )
    .await
    .unwrap();
    assert!(output.is_error);
    assert_eq!(
        report_of(&output)["relays"][0]["message"],
        "blocked: not you"
    );
}

#[tokio::test]
async fn nothing_reached_is_a_failure_without_effect() {
    let (server, events) = relay(None, Manner::Fair).await;
    // Its address is not open.
    let error = call(
        &tool(&[url(&server)], json!({})),
        json!({ "content": "x", "kind": 1 }),
    )
    .await
    .unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Refused, Effect::None)
    );
    assert!(error.message.contains("loopback"), "{}", error.message);
    // It cannot prove its name.
    let identity = Identity::of(&["evil.test"]);
    let (wrong, wrong_events) = relay(Some(identity.server.clone()), Manner::Fair).await;
    let network = json!({ "allow_addresses": ["127.0.0.0/8"], "ca_file": identity.ca_file.path() });
    let tool = tool(&[format!("wss://relay.test:{}/", wrong.port())], network);
    let error = call(&tool, json!({ "content": "x", "kind": 1 }))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::None)
    );
    assert!(events.lock().unwrap().is_empty() && wrong_events.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_was_not_pinned_is_refused() {
    let (server, events) = relay(None, Manner::Fair).await;
    let tool = tool(&[url(&server)], open());
    let other = format!("ws://other.test:{}/", server.port());
    for (arguments, kind) in [
        (json!({ "content": "x", "kind": 0 }), ToolErrorKind::Refused),
        (json!({ "content": "x", "kind": 4 }), ToolErrorKind::Refused),
        (
            json!({ "content": "x", "kind": 65537 }),
            ToolErrorKind::InvalidArguments,
        ),
        (
            json!({ "content": "x", "kind": 1.5 }),
            ToolErrorKind::InvalidArguments,
        ),
        (
            json!({ "content": "x", "kind": "1" }),
            ToolErrorKind::InvalidArguments,
        ),
        (json!({ "content": "x" }), ToolErrorKind::InvalidArguments),
        (json!({ "kind": 1 }), ToolErrorKind::InvalidArguments),
        (
            json!({ "content": "x", "kind": 1, "relays": [other] }),
            ToolErrorKind::Refused,
        ),
        (
            json!({ "content": "x", "kind": 1, "relays": [] }),
            ToolErrorKind::InvalidArguments,
        ),
        (
            json!({ "content": "x", "kind": 1, "relays": ["ws://u@relay.test/"] }),
            ToolErrorKind::Refused,
        ),
        (
            json!({ "content": "x", "kind": 1, "key": SECRET }),
            ToolErrorKind::InvalidArguments,
        ),
        (
            json!({ "content": "x", "kind": 1, "tags": ["t"] }),
            ToolErrorKind::InvalidArguments,
        ),
        (
            json!({ "content": "x", "kind": 1, "tags": [[]] }),
            ToolErrorKind::Refused,
        ),
        (
            json!({ "content": "x", "kind": 1, "tags": [["t", "\u{1}"]] }),
            ToolErrorKind::InvalidArguments,
        ),
        (
            json!({ "content": "\u{8}", "kind": 1 }),
            ToolErrorKind::InvalidArguments,
        ),
        (
            json!({ "content": "x".repeat(1001), "kind": 1 }),
            ToolErrorKind::Refused,
        ),
    ] {
        let error = call(&tool, arguments.clone()).await.unwrap_err();
        assert_eq!(
            (error.kind, error.effect),
            (kind, Effect::None),
            "{arguments}"
        );
    }
    assert!(events.lock().unwrap().is_empty());
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_stop_while_a_relay_is_silent_leaves_the_effect_unknown() {
    let (server, events) = relay(None, Manner::Silent).await;
    let tool = tool(
        &[url(&server)],
        json!({ "allow_addresses": ["127.0.0.0/8"] }),
    );
    let stop = Stop::new();
    let calling = call_until(
        &tool,
        json!({ "content": "x", "kind": 1 }),
        &stop,
        Duration::from_secs(20),
    );
    let stopping = async {
        while events.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.stop();
    };
    let (result, ()) = tokio::join!(calling, stopping);
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Stopped, Effect::Unknown)
    );
}

#[test]
fn configurations_without_a_key_a_kind_or_a_relay_make_no_tool() {
    let file = private_file(NSEC);
    let build = |relays: Value, kinds: Value, key: Value| {
        let mut config = json!({ "relays": relays, "kinds": kinds });
        for (name, value) in key.as_object().unwrap() {
            config[name] = value.clone();
        }
        let config: NostrConfig = serde_json::from_value(config).unwrap();
        NostrPublish::new(config, Scope::global(), Names::local(&[]))
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    let key = || json!({ "credential_file": file.path() });
    for (result, words) in [
        (build(json!([]), json!([1]), key()), "0 relays"),
        (
            build(json!(["https://relay.test/"]), json!([1]), key()),
            "not of WebSocket",
        ),
        (build(json!(["relay.test"]), json!([1]), key()), "no url"),
        (
            build(
                json!(["wss://relay.test", "wss://relay.test/"]),
                json!([1]),
                key(),
            ),
            "twice",
        ),
        (
            build(json!(["wss://relay.test/"]), json!([]), key()),
            "`kinds` is empty",
        ),
        (
            build(json!(["wss://relay.test/"]), json!([1]), json!({})),
            "no key",
        ),
        (
            build(
                json!(["wss://relay.test/"]),
                json!([1]),
                json!({ "credential_env": "PATH" }),
            ),
            "neither 64 hex",
        ),
    ] {
        let error = result.expect_err(words);
        assert!(error.contains(words), "{error}");
    }
    assert!(build(json!(["wss://relay.test/"]), json!([1]), key()).is_ok());
}
