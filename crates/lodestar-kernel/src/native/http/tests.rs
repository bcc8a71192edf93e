use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestar_core::chain::ContentBlock;
use lodestar_core::scope::Scope;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;
use crate::native::net::credential::SCRUBBED;
use crate::native::net::resolve::{Resolver, Resolving, SystemResolver};
use crate::native::net::testing::{
    Identity, Names, Server, Step, answer, call, call_until, http_server, private_file,
};
use crate::stop::Stop;
use crate::tool::{Effect, Tool, ToolError, ToolErrorKind};

fn request(config: Value, resolver: Arc<dyn Resolver>) -> HttpRequest {
    let config = serde_json::from_value(config).unwrap();
    HttpRequest::new(config, Scope::global(), resolver).unwrap()
}

fn fetch(config: Value, resolver: Arc<dyn Resolver>) -> HttpFetch {
    let config = serde_json::from_value(config).unwrap();
    HttpFetch::new(config, Scope::global(), resolver).unwrap()
}

/// `http.request` for a server in the clear that is called `good.test`.
fn plain(port: u16) -> HttpRequest {
    request(
        json!({
            "hosts": [{ "host": format!("good.test:{port}"), "scheme": "http" }],
            "network": { "allow_addresses": [format!("127.0.0.1:{port}")], "timeout_ms": 5000 },
            "max_response_bytes": 10_000,
        }),
        Names::local(&["good.test"]),
    )
}

/// `http.fetch` for a server in the clear that is called `good.test`.
fn plain_fetch(port: u16) -> HttpFetch {
    fetch(
        json!({
            "fetch_allow": [{
                "host": format!("good.test:{port}"),
                "scheme": "http",
                "path_prefix": "/docs",
                "query": { "page": "*", "lang": "en" },
            }],
            "network": { "allow_addresses": [format!("127.0.0.1:{port}")] },
        }),
        Names::local(&["good.test"]),
    )
}

fn get(port: u16) -> Value {
    json!({ "method": "GET", "url": format!("http://good.test:{port}/") })
}

fn head(output: &Output) -> &Value {
    match &output.content[0] {
        ContentBlock::Structured { value } => value,
        other => panic!("{other:?}"),
    }
}

fn body(output: &Output) -> &str {
    match output.content.get(1) {
        Some(ContentBlock::Text { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_refused(result: Result<Output, ToolError>, words: &str) {
    let error = result.unwrap_err();
    assert!(error.message.contains(words), "{}", error.message);
    assert_eq!(error.kind, ToolErrorKind::Refused, "{}", error.message);
    assert_eq!(error.effect, Effect::None, "{}", error.message);
}

#[tokio::test]
async fn a_request_arrives_as_it_was_written() {
    let (server, seen) = http_server(None, |_| {
        answer(
            "201 Created",
            "content-type: text/plain\r\nx-one: 1\r\n",
            "made",
        )
    })
    .await;
    let port = server.port();
    let output = call(
        &plain(port),
        json!({
            "method": "POST",
            "url": format!("http://good.test:{port}/a/b?c=d"),
            "headers": { "X-Kind": "test", "Content-Type": "application/json" },
            "body": "{\"a\":1}",
        }),
    )
    .await
    .unwrap();
    assert_eq!(head(&output)["status"], 201);
    assert_eq!(body(&output), "made");
    assert!(!output.is_error);
    let headers = head(&output)["headers"].as_array().unwrap();
    assert!(headers.contains(&json!(["x-one", "1"])));
    let seen = seen.lock().unwrap();
    assert!(
        seen[0].starts_with("POST /a/b?c=d HTTP/1.1\r\n"),
        "{}",
        seen[0]
    );
    assert!(seen[0].contains(&format!("host: good.test:{port}\r\n")));
    assert!(seen[0].contains("x-kind: test\r\n"));
    assert!(seen[0].contains("content-length: 7\r\n"));
    assert!(seen[0].contains("connection: close\r\n"));
    assert!(seen[0].ends_with("\r\n\r\n{\"a\":1}"));
}

#[tokio::test]
async fn an_error_of_the_server_is_an_answer() {
    let (server, _) = http_server(None, |_| answer("404 Not Found", "", "no")).await;
    let output = call(&plain(server.port()), get(server.port()))
        .await
        .unwrap();
    assert!(output.is_error);
    assert_eq!(head(&output)["status"], 404);
}

#[tokio::test]
async fn a_binary_answer_comes_as_a_blob() {
    let (server, _) = http_server(None, |_| {
        vec![Step::Send(
            b"HTTP/1.1 200 OK\r\ncontent-type: image/x\r\ncontent-length: 3\r\n\r\n\xff\x00\xfe"
                .to_vec(),
        )]
    })
    .await;
    let output = call(&plain(server.port()), get(server.port()))
        .await
        .unwrap();
    let ContentBlock::Resource { resource, .. } = &output.content[1] else {
        panic!("{output:?}");
    };
    assert_eq!(resource["blob"], "/wD+");
    assert_eq!(resource["mimeType"], "image/x");
}

#[tokio::test]
async fn hosts_schemes_and_ports_outside_the_list_are_refused() {
    let (server, seen) = http_server(None, |_| answer("200 OK", "", "")).await;
    let port = server.port();
    let tool = plain(port);
    for url in [
        format!("https://good.test:{port}/"),
        "http://good.test/".to_owned(),
        format!("http://evil.test:{port}/"),
        format!("http://good.test.evil.test:{port}/"),
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("ws://good.test:{port}/"),
    ] {
        let result = call(&tool, json!({ "method": "GET", "url": url })).await;
        assert_refused(result, "not among the hosts");
    }
    for url in [
        format!("http://good.test:{port}@evil.test/"),
        format!("http://evil.test@good.test:{port}/"),
        format!("http://good.test.:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://good.test:{port}/\r\nx: y"),
    ] {
        let error = call(&tool, json!({ "method": "GET", "url": url }))
            .await
            .unwrap_err();
        assert_eq!(error.effect, Effect::None, "{url}");
        assert_eq!(error.kind, ToolErrorKind::Refused, "{url}");
    }
    assert_eq!(server.connections(), 0);
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_literal_address_on_the_list_is_still_checked() {
    let (server, _) = http_server(None, |_| answer("200 OK", "", "")).await;
    let port = server.port();
    for (host, class) in [
        ("127.0.0.1", "loopback"),
        ("[::1]", "loopback"),
        ("[::ffff:7f00:1]", "loopback"),
        ("169.254.169.254", "link-local"),
        ("10.0.0.1", "private"),
        ("0.0.0.0", "unspecified"),
        ("[64:ff9b::7f00:1]", "loopback"),
        ("[2002:7f00:1::]", "tunnel"),
    ] {
        let tool = request(
            json!({ "hosts": [{ "host": format!("{host}:{port}"), "scheme": "http" }] }),
            Arc::new(SystemResolver),
        );
        let url = format!("http://{host}:{port}/");
        assert_refused(
            call(&tool, json!({ "method": "GET", "url": url })).await,
            class,
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn localhost_by_the_system_resolver_is_refused() {
    let (server, _) = http_server(None, |_| answer("200 OK", "", "")).await;
    let host = format!("localhost:{}", server.port());
    let tool = request(
        json!({ "hosts": [{ "host": host, "scheme": "http" }] }),
        Arc::new(SystemResolver),
    );
    let arguments = json!({ "method": "GET", "url": format!("http://{host}/") });
    assert_refused(call(&tool, arguments).await, "loopback");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn one_refused_address_among_the_answers_refuses_the_call() {
    let (server, _) = http_server(None, |_| answer("200 OK", "", "")).await;
    let port = server.port();
    let names = Names::default().with("mixed.test", &[&["127.0.0.1", "10.0.0.1"]]);
    let tool = request(
        json!({
            "hosts": [{ "host": format!("mixed.test:{port}"), "scheme": "http" }],
            "network": { "allow_addresses": [format!("127.0.0.1:{port}")] },
        }),
        Arc::new(names),
    );
    let url = format!("http://mixed.test:{port}/");
    assert_refused(
        call(&tool, json!({ "method": "GET", "url": url })).await,
        "10.0.0.1",
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_that_rebinds_is_resolved_once_and_leads_nowhere() {
    let (server, _) = http_server(None, |_| answer("200 OK", "", "secret")).await;
    let port = server.port();
    // The first answer is open and nobody listens there; the second would be the server.
    let names = Arc::new(Names::default().with("rebind.test", &[&["127.0.0.9"], &["127.0.0.1"]]));
    let tool = request(
        json!({
            "hosts": [{ "host": format!("rebind.test:{port}"), "scheme": "http" }],
            "network": { "allow_addresses": ["127.0.0.9/32"] },
        }),
        names.clone(),
    );
    let arguments = json!({ "method": "GET", "url": format!("http://rebind.test:{port}/") });
    let error = call(&tool, arguments.clone()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::None)
    );
    assert_eq!(names.asked(), 1);
    assert_refused(call(&tool, arguments).await, "loopback");
    assert_eq!(names.asked(), 2);
    assert_eq!(server.connections(), 0);
}

#[derive(Debug)]
struct Mute;

impl Resolver for Mute {
    fn resolve<'a>(&'a self, _name: &'a str) -> Resolving<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_resolver_that_never_answers_does_not_hold_a_call() {
    let tool = request(
        json!({ "hosts": [{ "host": "good.test" }], "network": { "connect_timeout_ms": 100 } }),
        Arc::new(Mute),
    );
    let arguments = json!({ "method": "GET", "url": "https://good.test/" });
    let error = call(&tool, arguments).await.unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::None)
    );
}

#[tokio::test]
async fn nothing_is_smuggled_into_a_request() {
    let (server, _) = http_server(None, |_| answer("200 OK", "", "")).await;
    let port = server.port();
    let tool = plain(port);
    let url = format!("http://good.test:{port}/");
    for (name, value) in [
        ("x\r\ny", "1"),
        ("x: y\r\nz", "1"),
        ("", "1"),
        ("x y", "1"),
        ("x\0", "1"),
        ("x", "1\r\ny: 2"),
        ("x", "1\ny: 2"),
        ("x", "1\0"),
        ("x", "ключ"),
        ("x", "\u{7f}"),
        ("Authorization", "Bearer x"),
        ("COOKIE", "a=b"),
        ("host", "evil.test"),
        ("Content-Length", "0"),
        ("transfer-encoding", "chunked"),
        ("Connection", "keep-alive"),
        ("Proxy-Authorization", "x"),
        ("proxy-anything", "x"),
        ("te", "trailers"),
        ("upgrade", "h2c"),
        ("expect", "100-continue"),
        ("accept-encoding", "gzip"),
    ] {
        let error = call(
            &tool,
            json!({ "method": "POST", "url": url, "headers": { name: value }, "body": "" }),
        )
        .await
        .unwrap_err();
        assert_eq!(error.effect, Effect::None, "{name:?} {value:?}");
    }
    for method in [
        "get",
        "GET / HTTP/1.1\r\nx:",
        "CONNECT",
        "TRACE",
        "",
        "GET ",
    ] {
        let error = call(&tool, json!({ "method": method, "url": url }))
            .await
            .unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{method:?}");
    }
    for arguments in [
        json!({ "method": "GET", "url": url, "proxy": "x" }),
        json!({ "method": "GET", "url": url, "body": "x" }),
        json!({ "method": "GET", "url": url, "headers": ["x"] }),
        json!({ "method": "GET", "url": url, "headers": { "X": "1", "x": "2" } }),
        json!({ "method": "GET", "url": url, "headers": { "x": 1 } }),
        json!({ "method": "GET", "url": 1 }),
        json!({ "method": "GET" }),
    ] {
        let error = call(&tool, arguments.clone()).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments, "{arguments}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_request_follows_no_redirect() {
    let (server, seen) = http_server(None, |_| {
        answer("302 Found", "location: http://169.254.169.254/\r\n", "")
    })
    .await;
    let output = call(&plain(server.port()), get(server.port()))
        .await
        .unwrap();
    assert_eq!(head(&output)["status"], 302);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn bodies_beyond_the_caps_are_refused_whole() {
    let declared = |_: &str| {
        vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx".to_vec()),
            Step::Hold,
        ]
    };
    let endless = |_: &str| {
        vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()),
            Step::Forever(
                format!("1000\r\n{}\r\n", "a".repeat(0x1000)).into_bytes(),
                Duration::ZERO,
            ),
        ]
    };
    let until_close = |_: &str| {
        vec![
            Step::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
            Step::Forever(vec![b'a'; 1000], Duration::ZERO),
        ]
    };
    for (server, _) in [
        http_server(None, declared).await,
        http_server(None, endless).await,
        http_server(None, until_close).await,
    ] {
        let error = call(&plain(server.port()), get(server.port()))
            .await
            .unwrap_err();
        assert!(
            error.message.contains("larger than 10000"),
            "{}",
            error.message
        );
        assert_eq!(
            (error.kind, error.effect),
            (ToolErrorKind::Refused, Effect::Unknown)
        );
    }
    let (server, seen) = http_server(None, |_| answer("200 OK", "", "")).await;
    let tool = request(
        json!({
            "hosts": [{ "host": format!("good.test:{}", server.port()), "scheme": "http" }],
            "max_request_bytes": 3,
        }),
        Names::local(&["good.test"]),
    );
    let url = format!("http://good.test:{}/", server.port());
    let result = call(
        &tool,
        json!({ "method": "POST", "url": url, "body": "four" }),
    )
    .await;
    assert_refused(result, "at most 3");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_that_drips_ends_with_the_deadline() {
    let (server, _) = http_server(None, |_| {
        vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n".to_vec()),
            Step::Forever(b"a".to_vec(), Duration::from_millis(20)),
        ]
    })
    .await;
    let begun = Instant::now();
    let error = call_until(
        &plain(server.port()),
        get(server.port()),
        &Stop::new(),
        Duration::from_millis(300),
    )
    .await
    .unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::DeadlinePassed, Effect::Unknown)
    );
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_head_that_never_ends_ends_with_the_time_cap() {
    let (server, _) = http_server(None, |_| {
        vec![
            Step::Send(b"HTTP/1.1 200 OK\r\nx: ".to_vec()),
            Step::Forever(b"a".to_vec(), Duration::from_millis(20)),
        ]
    })
    .await;
    let port = server.port();
    let tool = request(
        json!({
            "hosts": [{ "host": format!("good.test:{port}"), "scheme": "http" }],
            "network": { "allow_addresses": [format!("127.0.0.1:{port}")], "timeout_ms": 300 },
        }),
        Names::local(&["good.test"]),
    );
    let error = call(&tool, get(port)).await.unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::DeadlinePassed, Effect::Unknown)
    );
}

#[tokio::test]
async fn a_stop_in_mid_body_closes_the_connection() {
    let closed = Arc::new(Notify::new());
    let told = Arc::clone(&closed);
    let (server, _) = http_server(None, move |_| {
        vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\nabc".to_vec()),
            Step::UntilClosed(Arc::clone(&told)),
        ]
    })
    .await;
    let stop = Stop::new();
    let tool = plain(server.port());
    let calling = call_until(&tool, get(server.port()), &stop, Duration::from_secs(20));
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stop.stop();
    };
    let begun = Instant::now();
    let (result, ()) = tokio::join!(calling, stopping);
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Stopped, Effect::Unknown)
    );
    tokio::time::timeout(Duration::from_secs(3), closed.notified())
        .await
        .expect("the server sees the end of the connection");
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_stop_before_anything_went_out_had_no_effect() {
    let (server, seen) = http_server(None, |_| answer("200 OK", "", "")).await;
    let stop = Stop::new();
    stop.stop();
    let error = call_until(
        &plain(server.port()),
        get(server.port()),
        &stop,
        Duration::from_secs(9),
    )
    .await
    .unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Stopped, Effect::None)
    );
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn answers_that_lie_about_themselves_are_failures() {
    let flood: String = (0..5000).map(|n| format!("x-{n}: y\r\n")).collect();
    for (answer, what) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort".to_owned(), "short body"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!".to_owned(), "two lengths"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_owned(), "length and chunks"),
        ("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nhello".to_owned(), "negative length"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n".to_owned(), "bad chunk"),
        (format!("HTTP/1.1 200 OK\r\n{flood}\r\n"), "flood of headers"),
        (format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)), "huge header"),
        ("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".to_owned(), "upgrade"),
        ("hello".to_owned(), "no http"),
        (String::new(), "nothing"),
    ] {
        let (server, _) = http_server(None, move |_| vec![Step::Send(answer.clone().into_bytes())]).await;
        let error = call(&plain(server.port()), get(server.port())).await.expect_err(what);
        assert_eq!(error.effect, Effect::Unknown, "{what}: {}", error.message);
    }
}

#[tokio::test]
async fn what_follows_the_said_length_is_not_read() {
    let (server, _) = http_server(None, |_| {
        vec![Step::Send(
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\nsmuggled"
                .to_vec(),
        )]
    })
    .await;
    let output = call(&plain(server.port()), get(server.port()))
        .await
        .unwrap();
    assert_eq!(body(&output), "hello");
}

#[tokio::test]
async fn nobody_listening_is_a_failure_without_effect() {
    let (server, _) = http_server(None, |_| answer("200 OK", "", "")).await;
    let port = server.port();
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let error = call(&plain(port), get(port)).await.unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::None)
    );
}

/// `http.request` over TLS with a credential; `trusted` is whose certificate it believes in.
fn secured(port: u16, trusted: &Identity, token: &std::path::Path) -> HttpRequest {
    request(
        json!({
            "hosts": [{
                "host": format!("good.test:{port}"),
                "credential_file": token,
                "credential_prefix": "Bearer ",
            }],
            "network": {
                "allow_addresses": [format!("127.0.0.1:{port}")],
                "ca_file": trusted.ca_file.path(),
            },
        }),
        Names::local(&["good.test"]),
    )
}

#[tokio::test]
async fn a_credential_goes_out_in_its_header_and_an_echo_of_it_comes_back_removed() {
    const TOKEN: &str = "tok_5ecret-0123456789";
    let identity = Identity::of(&["good.test"]);
    let (server, seen) = http_server(Some(identity.server.clone()), |request| {
        let line = request
            .lines()
            .find(|l| l.starts_with("authorization"))
            .unwrap();
        answer(
            "200 OK",
            &format!("x-echo: {line}\r\nx-{TOKEN}: 1\r\n"),
            &format!("you sent {line}"),
        )
    })
    .await;
    let port = server.port();
    let token = private_file(TOKEN);
    let tool = secured(port, &identity, token.path());
    let url = format!("https://good.test:{port}/");
    let output = call(&tool, json!({ "method": "GET", "url": url }))
        .await
        .unwrap();
    assert!(seen.lock().unwrap()[0].contains(&format!("authorization: Bearer {TOKEN}\r\n")));
    assert_eq!(
        body(&output),
        format!("you sent authorization: Bearer {SCRUBBED}")
    );
    assert_eq!(head(&output)["credentials_removed"], 3);
    assert!(
        !format!("{output:?} {tool:?}")
            .to_lowercase()
            .contains("5ecret")
    );
}

#[tokio::test]
async fn an_encoded_answer_to_a_credential_is_not_read() {
    let identity = Identity::of(&["good.test"]);
    let (server, _) = http_server(Some(identity.server.clone()), |_| {
        answer("200 OK", "content-encoding: gzip\r\n", "zipped")
    })
    .await;
    let token = private_file("tok_5ecret-0123456789");
    let tool = secured(server.port(), &identity, token.path());
    let url = format!("https://good.test:{}/", server.port());
    let error = call(&tool, json!({ "method": "GET", "url": url }))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Refused, Effect::Unknown)
    );
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_gets_nothing() {
    let token = private_file("tok_5ecret-0123456789");
    let good = Identity::of(&["good.test"]);
    let other_name = Identity::of(&["evil.test"]);
    let other_maker = Identity::of(&["good.test"]);
    for (serving, trusted) in [(&other_name, &other_name), (&other_maker, &good)] {
        let (server, seen) =
            http_server(Some(serving.server.clone()), |_| answer("200 OK", "", "")).await;
        let tool = secured(server.port(), trusted, token.path());
        let url = format!("https://good.test:{}/", server.port());
        let error = call(&tool, json!({ "method": "GET", "url": url }))
            .await
            .unwrap_err();
        assert!(error.message.contains("tls"), "{}", error.message);
        assert_eq!(
            (error.kind, error.effect),
            (ToolErrorKind::Failed, Effect::None)
        );
        assert!(seen.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_server_that_never_begins_tls_had_nothing_from_us() {
    let identity = Identity::of(&["good.test"]);
    let server = Server::start(None, |stream| {
        Box::pin(async move {
            let _open = stream;
            std::future::pending().await
        })
    })
    .await;
    let port = server.port();
    let tool = request(
        json!({
            "hosts": [{ "host": format!("good.test:{port}") }],
            "network": {
                "allow_addresses": [format!("127.0.0.1:{port}")],
                "ca_file": identity.ca_file.path(),
                "connect_timeout_ms": 200,
            },
        }),
        Names::local(&["good.test"]),
    );
    let url = format!("https://good.test:{port}/");
    let error = call(&tool, json!({ "method": "POST", "url": url, "body": "x" }))
        .await
        .unwrap_err();
    assert!(error.message.contains("within 200 ms"), "{}", error.message);
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::None)
    );
}

#[tokio::test]
async fn arguments_cannot_use_the_header_of_the_credential() {
    let identity = Identity::of(&["good.test"]);
    let token = private_file("tok_5ecret-0123456789");
    let tool = request(
        json!({
            "hosts": [{
                "host": "good.test",
                "credential_file": token.path(),
                "credential_header": "X-Api-Key",
            }],
            "network": { "ca_file": identity.ca_file.path() },
        }),
        Names::local(&["good.test"]),
    );
    let arguments =
        json!({ "method": "GET", "url": "https://good.test/", "headers": { "x-api-key": "mine" } });
    assert_refused(call(&tool, arguments).await, "x-api-key");
}

#[tokio::test]
async fn a_fetch_stays_within_its_places() {
    let (server, seen) = http_server(None, |_| answer("200 OK", "", "page")).await;
    let port = server.port();
    let tool = plain_fetch(port);
    let base = format!("http://good.test:{port}");
    for path in [
        "/docs",
        "/docs/",
        "/docs/a/b?page=2",
        "/docs?lang=en&page=*",
        "/docs/x/../y",
    ] {
        let output = call(&tool, json!({ "url": format!("{base}{path}") }))
            .await
            .unwrap();
        assert_eq!(body(&output), "page", "{path}");
    }
    let output = call(
        &tool,
        json!({ "url": format!("{base}/docs"), "query": { "page": "a b&c" } }),
    )
    .await;
    assert_eq!(head(&output.unwrap())["status"], 200);
    let before = seen.lock().unwrap().len();
    assert!(seen.lock().unwrap()[before - 1].starts_with("GET /docs?page=a+b%26c HTTP/1.1\r\n"));
    for path in [
        "/",
        "/docsx",
        "/docs/../secret",
        "/docs/%2e%2e/secret",
        "/docs/%2E./secret",
        "/docs/..%2fsecret",
        "/docs/%252e%252e/secret",
        "/docs/..;/secret",
        "/docs//secret",
        "/docs?other=1",
        "/docs?lang=de",
        "/docs?page=1&page=2",
        "/docs?%70age=1&page=2",
        "/docs?page=1&x",
        "/docs?page=1;other=2",
    ] {
        let error = call(&tool, json!({ "url": format!("{base}{path}") }))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind, error.effect),
            (ToolErrorKind::Refused, Effect::None),
            "{path}"
        );
    }
    let error = call(
        &tool,
        json!({ "url": format!("{base}/docs"), "query": { "other": "1" } }),
    )
    .await;
    assert_refused(error, "other");
    let error = call(
        &tool,
        json!({ "url": format!("{base}/docs"), "method": "POST" }),
    )
    .await
    .unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    assert_eq!(seen.lock().unwrap().len(), before);
}

#[tokio::test]
async fn a_fetch_follows_redirects_within_its_places_only() {
    let (server, seen) = http_server(None, |request| {
        let target = request.split(' ').nth(1).unwrap();
        let to = |place: &str| answer("302 Found", &format!("location: {place}\r\n"), "");
        match target {
            "/docs/ok" => to("end"),
            "/docs/end" => answer("200 OK", "", "arrived"),
            "/docs/loop" => to("/docs/loop"),
            "/docs/loopback" => to("http://127.0.0.1/"),
            "/docs/metadata" => to("http://169.254.169.254/latest/meta-data/"),
            "/docs/decimal" => to("http://2852039166/latest/"),
            "/docs/other" => to("http://evil.test/docs/"),
            "/docs/relative" => to("//evil.test/docs/"),
            "/docs/outside" => to("/secret"),
            "/docs/climb" => to("../secret"),
            "/docs/query" => to("/docs?leak=1"),
            "/docs/user" => to("http://u:p@good.test/docs"),
            "/docs/file" => to("file:///etc/passwd"),
            "/docs/script" => to("javascript:alert(1)"),
            "/docs/backslash" => to("\\\\evil.test\\docs"),
            "/docs/tab" => to("/do\tcs"),
            other => panic!("{other}"),
        }
    })
    .await;
    let port = server.port();
    let tool = plain_fetch(port);
    let fetched = |path: &str| json!({ "url": format!("http://good.test:{port}/docs/{path}") });
    let output = call(&tool, fetched("ok")).await.unwrap();
    assert_eq!(body(&output), "arrived");
    assert_eq!(head(&output)["redirects"].as_array().unwrap().len(), 1);
    seen.lock().unwrap().clear();
    for path in [
        "loopback",
        "metadata",
        "decimal",
        "other",
        "relative",
        "outside",
        "climb",
        "query",
        "user",
        "file",
        "script",
        "backslash",
        "tab",
    ] {
        let error = call(&tool, fetched(path)).await.unwrap_err();
        assert_eq!(
            (error.kind, error.effect),
            (ToolErrorKind::Refused, Effect::Unknown),
            "{path}"
        );
        assert!(
            error.message.contains("redirected"),
            "{path}: {}",
            error.message
        );
        assert_eq!(seen.lock().unwrap().drain(..).count(), 1, "{path}");
    }
    let error = call(&tool, fetched("loop")).await.unwrap_err();
    assert!(error.message.contains("do not end"), "{}", error.message);
    assert_eq!(seen.lock().unwrap().len(), 1 + MAX_HOPS);
}

#[tokio::test]
async fn a_redirect_to_an_open_host_with_a_refused_address_is_refused() {
    let (server, seen) = http_server(None, |request| {
        let port = request
            .lines()
            .find_map(|l| l.strip_prefix("host: good.test:"))
            .unwrap();
        answer(
            "302 Found",
            &format!("location: http://inner.test:{port}/\r\n"),
            "",
        )
    })
    .await;
    let port = server.port();
    let names = Names::default()
        .with("good.test", &[&["127.0.0.1"]])
        .with("inner.test", &[&["169.254.169.254"]]);
    let tool = fetch(
        json!({
            "fetch_allow": [
                { "host": format!("good.test:{port}"), "scheme": "http", "path_prefix": "/" },
                { "host": format!("inner.test:{port}"), "scheme": "http", "path_prefix": "/" },
            ],
            "network": { "allow_addresses": [format!("127.0.0.1:{port}")] },
        }),
        Arc::new(names),
    );
    let error = call(&tool, json!({ "url": format!("http://good.test:{port}/") }))
        .await
        .unwrap_err();
    assert!(error.message.contains("link-local"), "{}", error.message);
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Refused, Effect::Unknown)
    );
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_redirect_takes_no_credential_along_and_never_leaves_encryption() {
    const TOKEN: &str = "tok_5ecret-0123456789";
    let identity = Identity::of(&["good.test", "other.test"]);
    let (clear, clear_seen) = http_server(None, |_| answer("200 OK", "", "in the clear")).await;
    let clear_port = clear.port();
    let (other, other_seen) = http_server(Some(identity.server.clone()), |_| {
        answer("200 OK", "", "other")
    })
    .await;
    let other_port = other.port();
    let (server, _) = http_server(Some(identity.server.clone()), move |request| {
        let place = match request.split(' ').nth(1).unwrap() {
            "/down" => format!("http://clear.test:{clear_port}/"),
            "/leak" => format!("https://other.test:{other_port}/{TOKEN}"),
            _ => format!("https://other.test:{other_port}/"),
        };
        answer(
            "307 Temporary Redirect",
            &format!("location: {place}\r\n"),
            "",
        )
    })
    .await;
    let port = server.port();
    let token = private_file(TOKEN);
    let tool = fetch(
        json!({
            "fetch_allow": [
                { "host": format!("good.test:{port}"), "path_prefix": "/", "credential_file": token.path() },
                { "host": format!("other.test:{other_port}"), "path_prefix": "/" },
                { "host": format!("clear.test:{clear_port}"), "scheme": "http", "path_prefix": "/" },
            ],
            "network": { "allow_addresses": ["127.0.0.0/8"], "ca_file": identity.ca_file.path() },
        }),
        Names::local(&["good.test", "other.test", "clear.test"]),
    );
    let output = call(
        &tool,
        json!({ "url": format!("https://good.test:{port}/") }),
    )
    .await
    .unwrap();
    assert_eq!(body(&output), "other");
    assert!(!other_seen.lock().unwrap()[0].contains("authorization"));
    let error = call(
        &tool,
        json!({ "url": format!("https://good.test:{port}/down") }),
    )
    .await
    .unwrap_err();
    assert!(error.message.contains("not encrypted"), "{}", error.message);
    assert!(clear_seen.lock().unwrap().is_empty());
    // A redirect that carries the credential away is scrubbed before it is read, and so leads nowhere.
    let error = call(
        &tool,
        json!({ "url": format!("https://good.test:{port}/leak") }),
    )
    .await
    .unwrap_err();
    assert!(!error.message.contains("5ecret"), "{}", error.message);
    assert_eq!(other_seen.lock().unwrap().len(), 1);
}

#[test]
fn configurations_that_open_too_much_make_no_tool() {
    let token = private_file("tok_5ecret-0123456789");
    let build = |config: Value| {
        let config: RequestConfig = serde_json::from_value(config).map_err(|e| e.to_string())?;
        HttpRequest::new(config, Scope::global(), Arc::new(SystemResolver))
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    let host = |entry: Value| json!({ "hosts": [entry] });
    for (config, words) in [
        (host(json!({ "host": "*.test" })), "*.test"),
        (host(json!({ "host": "a.test/path" })), "no url"),
        (host(json!({ "host": "0x7f.1" })), "127.0.0.1"),
        (
            host(json!({ "host": "a.test", "scheme": "wss" })),
            "`https` or `http`",
        ),
        (
            host(json!({ "host": "a.test", "scheme": "ftp" })),
            "unknown variant",
        ),
        (
            host(json!({ "host": "a.test", "nonsense": 1 })),
            "unknown field",
        ),
        (
            json!({ "hosts": [{ "host": "a.test" }, { "host": "A.test:443" }] }),
            "twice",
        ),
        (
            host(json!({ "host": "a.test", "scheme": "http", "credential_file": token.path() })),
            "use `https`",
        ),
        (
            host(
                json!({ "host": "a.test", "credential_file": token.path(), "credential_header": "host" }),
            ),
            "`host`",
        ),
        (
            host(
                json!({ "host": "a.test", "credential_file": token.path(), "credential_prefix": "a\r\nb" }),
            ),
            "cannot be sent",
        ),
        (
            host(json!({ "host": "a.test", "credential_env": "LODESTAR_TEST_NOT_SET" })),
            "not set",
        ),
        (
            host(json!({ "host": "a.test", "credential_env": "A", "credential_file": "b" })),
            "not both",
        ),
        (json!({ "hosts": [], "methods": [] }), "`methods` is empty"),
        (
            json!({ "hosts": [], "max_response_bytes": 0 }),
            "`max_response_bytes` is 0",
        ),
        (
            json!({ "hosts": [], "network": { "timeout_ms": 0 } }),
            "`timeout_ms` is 0",
        ),
        (
            json!({ "hosts": [], "network": { "ca_file": "/nowhere" } }),
            "`/nowhere`",
        ),
        (
            json!({ "hosts": [], "network": { "ca_file": token.path() } }),
            "no certificate",
        ),
        (
            json!({ "hosts": [], "network": { "allow_addresses": ["0.0.0.0/0"] } }),
            "too wide",
        ),
    ] {
        let error = build(config.clone()).expect_err(&config.to_string());
        assert!(error.contains(words), "{config}: {error}");
        assert!(!error.contains("5ecret"));
    }
    for prefix in ["docs", "", "/docs/../x", "/%2e", "/a?b", "//"] {
        let config = json!({ "fetch_allow": [{ "host": "a.test", "path_prefix": prefix }] });
        let config: FetchConfig = serde_json::from_value(config).unwrap();
        let made = HttpFetch::new(config, Scope::global(), Arc::new(SystemResolver));
        assert!(
            matches!(made, Err(HttpError::PathPrefix { .. })),
            "{prefix}"
        );
    }
}

#[test]
fn the_definitions_name_every_argument_and_their_floor() {
    use lodestar_core::contract::{Permission, Reversibility};
    use lodestar_core::ladder::Rung;
    let names = || Names::local(&[]);
    let all = request(json!({ "hosts": [] }), names());
    let safe = request(json!({ "hosts": [], "methods": ["GET", "HEAD"] }), names());
    let reading = fetch(json!({ "fetch_allow": [] }), names());
    for definition in [all.definition(), safe.definition(), reading.definition()] {
        let schema = &definition.input_schema;
        assert_eq!(schema["additionalProperties"], false);
        let properties: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        let mut roles: Vec<_> = definition.roles.keys().collect();
        roles.sort();
        let mut properties = properties;
        properties.sort();
        assert_eq!(properties, roles);
        assert!(definition.digest().is_ok());
    }
    assert_eq!(all.definition().minimum.required_level, Rung::L4);
    assert_eq!(
        all.definition().minimum.reversibility,
        Reversibility::Irreversible
    );
    assert_eq!(
        safe.definition().minimum.reversibility,
        Reversibility::Reversible
    );
    assert_eq!(reading.definition().minimum.required_level, Rung::L1);
    assert!(
        !reading
            .definition()
            .minimum
            .permissions
            .contains(&Permission::Credentials)
    );
}
