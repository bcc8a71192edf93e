//! Bodies that are none, and texts that mean something to somebody else.

use lodestar_core::statement::{DaemonVersion, GatewayStatus, Order};
use lodestar_gateway::code::Code;
use lodestar_gateway::http::{Face, Takes, Who, routes};
use serde_json::{Value, json};

use super::Scene;
use super::post::Post;

pub(super) async fn attack(scene: &Scene) {
    let before = scene.standing(&scene.owner).await;
    malformed(scene).await;
    oversized(scene).await;
    metacharacters(scene).await;
    assert_eq!(scene.standing(&scene.owner).await, before, "nothing moved");
    texts(scene).await;
}

/// Where any text may stand, a text is what it stays.
async fn texts(scene: &Scene) {
    let owner = &scene.owner;
    let machine = owner.approved("hostile").await.unwrap();
    for text in TEXTS.iter().filter(|text| text.len() <= 32) {
        let mut beat = machine.heartbeat(&[]).unwrap();
        let (Ok(status), Ok(version)) = (GatewayStatus::new(*text), DaemonVersion::new(*text))
        else {
            continue;
        };
        (beat.gateway_status, beat.daemon_version) = (status, version);
        let envelope = machine.says(beat).unwrap();
        machine
            .client
            .heartbeat(machine.id, &envelope)
            .await
            .unwrap();
        let shown = owner.device(machine.id).await.unwrap();
        assert_eq!(
            (&*shown.gateway_status, &*shown.daemon_version),
            (*text, *text)
        );
        let pause = Order::Pause {
            device: machine.id,
            reason: format!("{text} 'x' \u{1f980}"),
        };
        owner.order(pause).await.unwrap();
        let resume = Order::Resume { device: machine.id };
        owner.order(resume).await.unwrap();
        scene.tally.taken("SQL metacharacters where text may stand");
    }
}

/// The token that opens a route, and its path with ids that are the token's.
fn opened<'a>(scene: &'a Scene, who: Who, path: &str) -> (&'a str, String) {
    let token = match who {
        Who::Device => &scene.machine.token,
        _ => &scene.owner.token,
    };
    let path = path
        .replace("{device}", &scene.machine.id.to_string())
        .replace("{run}", &scene.best.run.to_string())
        .replace("{submission}", &scene.submission.id.to_string());
    (token, path)
}

async fn malformed(scene: &Scene) {
    let what = "malformed bodies";
    let (tally, address) = (&scene.tally, scene.fleet.address());
    let deep = "[".repeat(20_000);
    let wide = format!(
        "{{{}}}",
        (0..2000)
            .map(|n| format!("\"k{n}\":{n}"))
            .collect::<Vec<_>>()
            .join(",")
    );
    let bodies: Vec<Vec<u8>> = [
        "", "{", "}", "nul", "null", "[]", "7", "\"text\"", "{}{}", "{\"name\":}", "{\"name\":\"a\",}",
        "{\"name\":\"a\",\"name\":\"b\"}", "{\"__proto__\":{}}", "{\"envelope\":[]}", "{\"envelope\":null}",
        "{\"envelope\":{\"payload\":\"!\",\"payloadType\":\"x\",\"signatures\":[]}}",
        "{\"envelope\":{\"payload\":\"e30=\",\"payloadType\":\"x\",\"signatures\":[{\"keyid\":\"\",\"sig\":\"\"}]}}",
        "{\"note\":7}", "{\"kind\":\"platform\"}", "{\"name\":\"\\ud800\"}", "{\"name\":\"\\u0000\"}",
        "\u{feff}{}", &deep, &wide, "1e999", "{\"n\":1e400}",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .chain([b"\xff\xfe\x00".to_vec(), b"{\"name\":\"\xc0\xaf\"}".to_vec(), vec![0; 64]])
    .collect();
    let public = routes()
        .into_iter()
        .filter(|route| route.face == Face::Public);
    for route in public {
        let (token, path) = opened(scene, route.who, route.path);
        let post = Post::new(route.method, &path).token(token);
        match route.takes {
            Takes::Nothing => {}
            Takes::Json(_) => {
                for body in &bodies {
                    let answer = post.clone().json(body.clone()).send(address).await;
                    let codes = [
                        Code::MalformedJson,
                        Code::InvalidBody,
                        Code::EnvelopeMalformed,
                    ];
                    tally.refused(what, answer, &codes);
                }
                for kind in [
                    None,
                    Some("text/plain"),
                    Some("application/json2"),
                    Some("multipart/form-data"),
                ] {
                    let mut post = post.clone().json("{}");
                    post.content_type = kind;
                    tally.refused(
                        what,
                        post.send(address).await,
                        &[Code::UnsupportedMediaType],
                    );
                }
            }
            Takes::Bytes(_) => {
                for body in &bodies {
                    let answer = post.clone().bytes(body.clone()).send(address).await;
                    tally.refused(what, answer, &[Code::EnvelopeMalformed]);
                }
                let answer = post.clone().json("{}\n").send(address).await;
                tally.refused(what, answer, &[Code::UnsupportedMediaType]);
            }
        }
    }
    // One that breaks off.
    let mut broken = Post::new("POST", "/v1/agents")
        .token(&scene.owner.token)
        .json("{\"name\":");
    broken.said_length = Some(500);
    let answer = broken.send(address).await;
    tally.refused(what, answer, &[Code::BodyBroken]);
}

async fn oversized(scene: &Scene) {
    let what = "oversized bodies";
    let (tally, address) = (&scene.tally, scene.fleet.address());
    let public = routes()
        .into_iter()
        .filter(|route| route.face == Face::Public);
    for route in public {
        let (token, path) = opened(scene, route.who, route.path);
        let mut post = Post::new(route.method, &path).token(token);
        let limit = match route.takes {
            // Whatever takes nothing takes nothing.
            Takes::Nothing => 0,
            Takes::Json(_) => {
                post = post.json("");
                route.limit
            }
            Takes::Bytes(_) => {
                post = post.bytes("");
                64 << 20
            }
        };
        for said in [limit + 1, u64::from(u32::MAX) + 1] {
            if route.who == Who::Anybody || path.contains('{') {
                continue;
            }
            let mut post = post.clone();
            post.said_length = Some(said);
            tally.refused(what, post.send(address).await, &[Code::BodyTooLarge]);
        }
    }
}

const TEXTS: &[&str] = &[
    "'; DROP TABLE devices; --",
    "\" OR \"\"=\"",
    "x' OR '1'='1",
    "1; UPDATE devices SET level='trusted'",
    "\\'; --",
    "%27%20OR%201=1",
    "%00",
    "$1",
    "?",
    "/*",
    "); --",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "../../etc/passwd",
    "\u{1b}[2J",
    "\u{202e}",
    "' UNION SELECT hash FROM tokens --",
];

/// As one segment of a path.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// A body with a text in the place of each of its texts, one after the other.
fn with_text(body: &Value, text: &str) -> Vec<Value> {
    let Value::Object(members) = body else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, value) in members {
        let changed = match value {
            Value::String(_) => vec![json!(text)],
            inner @ Value::Object(_) => with_text(inner, text),
            _ => Vec::new(),
        };
        for changed in changed {
            let mut members = members.clone();
            members.insert(name.clone(), changed);
            found.push(Value::Object(members));
        }
    }
    let mut more = members.clone();
    more.insert(text.to_owned(), json!(1));
    found.push(Value::Object(more));
    found
}

async fn metacharacters(scene: &Scene) {
    let what = "SQL metacharacters everywhere";
    let (tally, address) = (&scene.tally, scene.fleet.address());
    let heartbeat = scene
        .machine
        .says(scene.machine.heartbeat(&[]).unwrap())
        .unwrap();
    let bodies = [
        (
            "POST",
            "/v1/devices",
            json!({"name": "a", "key": "b", "log_key": "c"}),
        ),
        (
            "PUT",
            "/v1/devices/{device}/key",
            json!({"key": "a", "log_key": "b"}),
        ),
        ("POST", "/v1/agents", json!({"name": "a"})),
        ("POST", "/v1/runners", json!({"name": "a"})),
        (
            "POST",
            "/v1/tokens",
            json!({"kind": "device", "device": "a"}),
        ),
        ("POST", "/v1/orders", json!({"envelope": heartbeat})),
        (
            "POST",
            "/v1/submissions",
            json!({"content": "a", "run": "b", "battle": "c"}),
        ),
        (
            "POST",
            "/v1/submissions/{submission}/runs",
            json!({"run": "a"}),
        ),
        (
            "POST",
            "/v1/devices/{device}/heartbeats",
            json!({"envelope": heartbeat}),
        ),
        (
            "POST",
            "/v1/runs",
            json!({
                "agent": "a", "runner": "b", "terms": "c", "workflow_hash": "d", "lens_hash": "e",
            }),
        ),
        ("POST", "/v1/runs/{run}/checkpoints", json!({"note": "a"})),
        (
            "POST",
            "/v1/runs/{run}/attestations",
            json!({"envelope": heartbeat}),
        ),
    ];
    let codes = [
        Code::InvalidBody,
        Code::EnvelopeMalformed,
        Code::StatementKind,
        Code::SignatureInvalid,
        Code::CheckpointInvalid,
    ];
    for text in TEXTS {
        for (method, path, body) in &bodies {
            let who = match *path {
                "/v1/devices/{device}/heartbeats" => Who::Device,
                path if path.starts_with("/v1/runs") => Who::Device,
                _ => Who::Owner,
            };
            let (token, path) = opened(scene, who, path);
            for body in with_text(body, text) {
                let post = Post::new(method, &path).token(token).json(body.to_string());
                tally.refused(what, post.send(address).await, &codes);
            }
        }
        let segment = encoded(text);
        let parameter = [Code::InvalidParameter];
        let public = routes()
            .into_iter()
            .filter(|route| route.face == Face::Public);
        for route in public {
            for name in route.parameters() {
                let path = route.path.replace(&format!("{{{name}}}"), &segment);
                let (token, path) = opened(scene, route.who, &path);
                let mut post = Post::new(route.method, &path).token(token);
                post = match route.takes {
                    Takes::Nothing => post,
                    Takes::Json(_) => post.json(body_for(route.path)),
                    Takes::Bytes(_) => post.bytes("{}\n"),
                };
                let mut wanted = parameter.to_vec();
                wanted.push(Code::InvalidBody);
                tally.refused(what, post.send(address).await, &wanted);
            }
            if route.lists {
                let (token, path) = opened(scene, route.who, route.path);
                for query in [
                    format!("after={segment}"),
                    format!("limit={segment}"),
                    format!("{segment}=1"),
                    format!("limit=1&limit={segment}"),
                ] {
                    let path = format!("{path}?{query}");
                    let post = Post::new(route.method, &path).token(token);
                    tally.refused(what, post.send(address).await, &parameter);
                }
            }
        }
        // What cannot stand in a header is no header.
        if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            for shown in [
                format!("Bearer {text}"),
                format!("Bearer {}{text}", scene.owner.token),
                (*text).to_owned(),
            ] {
                let mut post = Post::new("GET", "/v1/devices");
                post.authorization = Some(shown);
                let codes = [Code::TokenInvalid, Code::TokenMissing];
                tally.refused(what, post.send(address).await, &codes);
            }
        }
    }
}

/// A body that a route can read, so that it is the path that is looked at.
fn body_for(path: &str) -> String {
    match path.rsplit('/').next() {
        Some("checkpoints") => json!({"note": "a"}).to_string(),
        _ => "{}".to_owned(),
    }
}
