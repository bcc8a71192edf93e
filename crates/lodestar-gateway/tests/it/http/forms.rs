//! Requests that are none: malformed, oversized, unknown; each with its code, and none with a failure.

use lodestar_gateway::code::Code;
use serde_json::json;

use crate::world::{World, on_both, sqlite, stated};

/// Method, path, token, media type, body, and the code that is answered.
type Case<'a> = (
    &'a str,
    String,
    Option<&'a str>,
    Option<&'a str>,
    &'a [u8],
    Code,
);

#[tokio::test]
async fn what_is_no_request_has_its_code() {
    on_both(|place| async move {
        let world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let token = Some(owner.token.as_str());
        let json = Some("application/json");
        let long = format!("{{\"name\":\"{}\"}}", "a".repeat(40 << 10));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let device = "dev_01890a5d-ac96-774b-bcce-b302099a8057";
        let cases: Vec<Case<'_>> = vec![
            ("GET", "/".into(), token, None, b"", Code::NoSuchRoute),
            (
                "GET",
                "/v1/nothing".into(),
                token,
                None,
                b"",
                Code::NoSuchRoute,
            ),
            (
                "POST",
                "/v1/platform/accounts".into(),
                token,
                json,
                b"{}",
                Code::NoSuchRoute,
            ),
            (
                "POST",
                "/v1/platform/kill-switch".into(),
                token,
                json,
                b"{}",
                Code::NoSuchRoute,
            ),
            (
                "PATCH",
                "/v1/devices".into(),
                token,
                None,
                b"",
                Code::MethodNotAllowed,
            ),
            (
                "DELETE",
                "/v1/devices".into(),
                token,
                None,
                b"",
                Code::MethodNotAllowed,
            ),
            (
                "GET",
                "/v1/devices".into(),
                None,
                None,
                b"",
                Code::TokenMissing,
            ),
            (
                "GET",
                "/v1/devices".into(),
                Some("lsgw_x"),
                None,
                b"",
                Code::TokenInvalid,
            ),
            (
                "GET",
                "/v1/devices/x".into(),
                token,
                None,
                b"",
                Code::InvalidParameter,
            ),
            (
                "GET",
                "/v1/devices/%ff".into(),
                token,
                None,
                b"",
                Code::InvalidParameter,
            ),
            (
                "GET",
                "/v1/devices/run_01890a5d-ac96-774b-bcce-b302099a8057".into(),
                token,
                None,
                b"",
                Code::InvalidParameter,
            ),
            (
                "GET",
                "/v1/devices/'%20OR%20'1'='1".into(),
                token,
                None,
                b"",
                Code::InvalidParameter,
            ),
            (
                "GET",
                format!("/v1/devices/{device}"),
                token,
                None,
                b"",
                Code::DeviceUnknown,
            ),
            (
                "GET",
                "/v1/devices?limit=0".into(),
                token,
                None,
                b"",
                Code::InvalidParameter,
            ),
            (
                "GET",
                "/v1/devices?limit=1&limit=2".into(),
                token,
                None,
                b"",
                Code::InvalidParameter,
            ),
            (
                "GET",
                "/v1/devices?after=';--".into(),
                token,
                None,
                b"",
                Code::InvalidParameter,
            ),
            (
                "GET",
                "/v1/account?x=1".into(),
                token,
                None,
                b"",
                Code::InvalidParameter,
            ),
            (
                "GET",
                "/v1/account".into(),
                token,
                None,
                b"x",
                Code::BodyTooLarge,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                None,
                b"{}",
                Code::UnsupportedMediaType,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                Some("text/plain"),
                b"{}",
                Code::UnsupportedMediaType,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                b"",
                Code::MalformedJson,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                b"{",
                Code::MalformedJson,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                b"\xff",
                Code::MalformedJson,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                br#"{"name":"a","name":"b"}"#,
                Code::MalformedJson,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                deep.as_bytes(),
                Code::MalformedJson,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                long.as_bytes(),
                Code::BodyTooLarge,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                br#"{"name":"a","id":1}"#,
                Code::InvalidBody,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                br#"{"name":"a\u0000"}"#,
                Code::InvalidBody,
            ),
            (
                "POST",
                "/v1/agents".into(),
                token,
                json,
                br#"{"name":"x'); DROP TABLE agents; --"}"#,
                Code::InvalidBody,
            ),
            (
                "POST",
                "/v1/devices".into(),
                token,
                json,
                br#"{"name":"a","key":"00"}"#,
                Code::InvalidBody,
            ),
            (
                "POST",
                "/v1/orders".into(),
                token,
                json,
                br#"{"envelope":{}}"#,
                Code::InvalidBody,
            ),
            (
                "POST",
                "/v1/tokens".into(),
                token,
                json,
                br#"{"kind":"platform"}"#,
                Code::InvalidBody,
            ),
            (
                "POST",
                "/v1/tokens".into(),
                token,
                json,
                br#"{"kind":"device"}"#,
                Code::InvalidBody,
            ),
            (
                "POST",
                "/v1/submissions".into(),
                token,
                json,
                br#"{"content":"x"}"#,
                Code::InvalidBody,
            ),
        ];
        let count = cases.len();
        for (method, path, token, form, body, code) in cases {
            let body = body.to_vec();
            let answer = world.raw(method, &path, token, form, body).await;
            assert_eq!(answer.code(), Some(code), "{method} {path}: {answer:?}");
        }
        let answer = world.raw("PATCH", "/v1/devices", token, None, "").await;
        let allowed = answer.headers["allow"].to_str().unwrap();
        assert!(
            allowed.contains("GET") && allowed.contains("POST"),
            "{allowed}"
        );
        let answer = world.raw("GET", "/v1/devices", None, None, "").await;
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        println!("{count} requests that are none: each has its code");
    })
    .await;
}

#[tokio::test]
async fn every_refusal_is_in_the_log_by_its_code_and_nothing_that_somebody_wrote() {
    on_both(|place| async move {
        let mut world = World::on(place).await;
        let owner = world.owner("anna", 10).await;
        let machine = owner.approved(&world, "laptop", 20).await;
        let secret = "c0ffee-should-never-be-logged";
        let token = owner.token.clone();
        let json = Some("application/json");
        let body = json!({"name": secret, "name2": secret}).to_string();
        world
            .raw("POST", "/v1/agents", Some(&token), json, body)
            .await;
        let path = format!("/v1/{secret}");
        world.raw("GET", &path, Some(&token), None, "").await;
        let path = format!("/v1/devices/{secret}");
        world.raw("GET", &path, Some(&token), None, "").await;
        let path = format!("/v1/devices/{}/heartbeats", machine.id);
        let mut beat = machine.beating(&[]);
        beat.daemon_version = lodestar_core::statement::DaemonVersion::new(secret).unwrap();
        let forged = crate::world::signed(beat, &crate::world::key(66), world.now());
        world.post(&path, &machine.token, &stated(&forged)).await;
        let device_token = machine.token.clone();
        let events = world.events().await;
        let refused: Vec<_> = events
            .iter()
            .filter(|(kind, _)| kind.contains("refused"))
            .map(|(kind, payload)| (kind.as_str(), payload["code"].as_str().unwrap()))
            .collect();
        assert_eq!(
            refused,
            [
                ("run.refused@1", "invalid_body"),
                ("gateway.refused@1", "no_such_route"),
                ("device.refused@1", "invalid_parameter"),
                ("device.heartbeat_refused@1", "signature_invalid"),
            ]
        );
        let all = serde_json::to_string(&events).unwrap();
        for never in [secret, &token, &device_token] {
            assert!(!all.contains(never), "{never}");
        }
        let numbers: Vec<_> = events
            .iter()
            .filter_map(|(_, payload)| payload["n"].as_u64())
            .collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    })
    .await;
}

#[tokio::test]
async fn the_document_that_is_served_is_the_one_of_the_routes() {
    let world = World::on(sqlite()).await;
    let answer = world.raw("GET", "/v1/openapi.json", None, None, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, lodestar_gateway::openapi::document());
    let health = world.client(None).health().await.unwrap();
    assert_eq!(health.status, "ok");
}

#[tokio::test]
async fn the_platform_is_reached_by_its_user_over_the_socket_and_nowhere_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::on(sqlite()).await;
    let socket = world.config.data.join(lodestar_gateway::http::SOCKET);
    let mode = socket.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let folder = world.config.data.metadata().unwrap().permissions().mode();
    assert_eq!(folder & 0o777, 0o700);
    for route in lodestar_gateway::http::routes() {
        if route.face != lodestar_gateway::http::Face::Platform {
            continue;
        }
        let path = route.path.replace(['{', '}'], "");
        let answer = world.raw(route.method, &path, None, None, "").await;
        assert_eq!(answer.code(), Some(Code::NoSuchRoute), "{path}");
    }
    // And there is nothing else on the socket.
    let owner = world.owner("anna", 10).await;
    assert!(owner.client.account().await.is_ok());
    world.platform().health().await.unwrap();
}
