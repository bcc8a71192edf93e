//! `lodestar otel export`, against a receiver that is built on the official protobufs, and against
//! servers that are none.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lodestar_core::event::EventType;
use lodestar_core::name::SessionId;
use lodestar_log::{LogWriter, WriterOptions};
use serde_json::{Value, json};

use crate::gated::{RUN, configure, followed, forge, project};
use crate::terminal::skip;
use crate::world::{Run, World, actor, assert_inert};

const SECRET: &str = "hunter2-correct-horse";

/// The receiver as a process, and what it was sent.
struct Receiver {
    child: Child,
    port: u16,
    file: PathBuf,
}

impl Receiver {
    /// None where what it is built on is not installed.
    fn start(world: &World, answers: &[&str]) -> Option<Self> {
        let Some(peers) = std::env::var_os("LODESTAR_PEERS") else {
            skip("LODESTAR_PEERS is not set: OpenTelemetry's protobufs are not installed");
            return None;
        };
        let python = PathBuf::from(peers).join("venv/bin/python");
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/otlp_receiver.py");
        let file = world.path("received.jsonl");
        let mut child = Command::new(python)
            .arg(script)
            .arg(&file)
            .args(answers)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let port = line.trim().parse().expect("a port");
        Some(Self { child, port, file })
    }

    fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    fn received(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.file).expect("readable");
        let read = |line| serde_json::from_str(line).expect("JSON");
        text.lines().map(read).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that answers every request with these bytes, and counts them.
fn server(answer: impl Fn(usize) -> Vec<u8> + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let number = count.fetch_add(1, Ordering::SeqCst);
            read_request(&stream);
            let answer = answer(number);
            match answer.is_empty() {
                true => std::thread::sleep(Duration::from_secs(30)),
                false => drop((&stream).write_all(&answer)),
            }
        }
    });
    (url, asked)
}

fn read_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

fn export(world: &World, args: &[&str]) -> Run {
    let all = ["otel", "export", "s-1"].iter().chain(args);
    world.run(&all.collect::<Vec<_>>())
}

/// Every span of an export.
fn spans(lines: &[Value]) -> Vec<Value> {
    let mut found = Vec::new();
    for line in lines {
        for resource in line["resourceSpans"].as_array().expect("a list") {
            for scope in resource["scopeSpans"].as_array().expect("a list") {
                found.extend(scope["spans"].as_array().expect("a list").iter().cloned());
            }
        }
    }
    found
}

/// Without what has its default, which one side writes and the other leaves out, and with numbers as the
/// texts that OTLP lets them be.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            let all = members.iter().map(|(name, member)| match member {
                Value::Number(number) if name == "intValue" => {
                    (name.clone(), json!(number.to_string()))
                }
                _ => (name.clone(), plain(member)),
            });
            let kept = all.filter(|(_, member)| {
                let defaults = [json!(null), json!(0), json!(""), json!([]), json!({})];
                !defaults.contains(member)
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {spans:#?}"))
}

fn attribute<'a>(span: &'a Value, name: &str) -> Option<&'a str> {
    let attributes = span["attributes"].as_array().expect("a list");
    let found = attributes.iter().find(|one| one["key"] == name)?;
    found["value"]["stringValue"].as_str()
}

#[test]
fn a_session_becomes_otlp_json_and_the_same_twice() {
    let world = project();
    followed(&world, "s-1");
    let run = export(&world, &[]).expect(0);
    let found = spans(&run.ndjson());
    let root = named(&found, "invoke_agent agent");
    assert_eq!(attribute(root, "gen_ai.conversation.id"), Some("s-1"));
    let held = named(&found, "execute_tool fs.write");
    assert_eq!(held["parentSpanId"], root["spanId"]);
    assert_eq!(attribute(held, "lodestar.verdict"), Some("hold"));
    assert_eq!(attribute(held, "lodestar.outcome"), Some("rejected"));
    let hold = named(&found, "lodestar.hold fs.write");
    assert_eq!(hold["parentSpanId"], held["spanId"]);
    assert_eq!(export(&world, &[]).expect(0).out, run.out);

    let out = world.path("trace.jsonl");
    let done = export(&world, &["--out", out.to_str().expect("UTF-8")]).expect(0);
    assert!(done.out.contains(" spans of "), "{}", done.out);
    assert_eq!(fs::read_to_string(&out).expect("written"), run.out);
    assert_inert(&run.out);
}

#[test]
fn what_is_secret_never_leaves_below_that_ceiling() {
    let world = project();
    let graded =
        "auto_approve_ceiling = 2\n[tool_defaults.\"fs.read\"]\ndata_sensitivity = \"secret\"\n";
    configure(&world, "s-1", graded);
    world.write("work/plan.md", &format!("the password is {SECRET}"));
    let script = "[[step]]\ncall = \"fs.read\"\nargs = { path = \"plan.md\" }\n";
    world.write("work/script.toml", script);
    world.run(&RUN).expect(0);
    for ceiling in ["public", "internal", "confidential"] {
        let run = export(&world, &["--ceiling", ceiling]).expect(0);
        assert!(!run.out.contains(SECRET), "{ceiling}: {}", run.out);
        assert!(!run.out.contains("plan.md"), "{ceiling}: {}", run.out);
        let found = spans(&run.ndjson());
        let read = named(&found, "execute_tool fs.read");
        let result = attribute(read, "gen_ai.tool.call.result").expect("a digest");
        assert!(
            result.starts_with("sha256:") && result.len() == 71,
            "{result}"
        );
        assert_eq!(attribute(read, "lodestar.result.form"), Some("withheld"));
    }
    let run = export(&world, &["--ceiling", "secret"]).expect(0);
    assert!(
        run.out.contains(SECRET),
        "the operator said so: {}",
        run.out
    );
}

#[test]
fn a_log_that_was_edited_or_does_not_follow_is_refused() {
    let world = project();
    world.will_be_edited();
    followed(&world, "s-1");
    forge(&world, "s-1", "s-2", |kind, payload| {
        if kind == "action.judged@1" && payload["verdict"] == "hold" {
            payload["verdict"] = "allow".into();
        }
    });
    let run = world.run(&["otel", "export", "s-2"]).expect(1);
    assert!(
        run.err.contains("does not follow from its own log"),
        "{}",
        run.err
    );
    assert_eq!(run.out, "");
    forge(&world, "s-1", "s-3", |kind, payload| {
        if kind == "session.opened@1" {
            payload["defences_off"] = json!(["provenance"]);
        }
    });
    let run = world.run(&["otel", "export", "s-3"]).expect(1);
    assert!(
        run.err.contains("defences taken out (provenance)"),
        "{}",
        run.err
    );
    assert_eq!(run.out, "");
    let path = world.session("web", "s-1").events_path();
    let text = fs::read_to_string(&path).expect("readable");
    fs::write(&path, text.replacen("\"hold\"", "\"deny\"", 1)).expect("written");
    let run = export(&world, &[]).expect(1);
    assert!(run.err.contains("the log is not intact"), "{}", run.err);
    assert_eq!(run.out, "");
}

#[test]
fn of_a_session_that_is_written_only_what_is_proven_is_exported() {
    let world = World::new();
    let options = WriterOptions {
        checkpoint_after: Duration::from_secs(3600),
        ..world.options()
    };
    let name = SessionId::new("s-1").expect("a name");
    let opening = json!({"purpose": "a test"});
    let writer = LogWriter::create(&world.log("web"), &name, &actor(), &opening, &options);
    let writer = writer.expect("opened");
    for _ in 0..5 {
        let note = json!({"says": "not yet signed"});
        let appended = writer.append(EventType::AGENT_NOTE, &actor(), &[], &note);
        appended.expect("appended");
    }
    // What is appended goes out a moment later.
    std::thread::sleep(Duration::from_millis(200));
    let run = export(&world, &[]).expect(0);
    assert!(
        run.err.contains("the session is live: its last"),
        "{}",
        run.err
    );
    assert!(run.err.contains("under no checkpoint yet"), "{}", run.err);
    let found = spans(&run.ndjson());
    assert_eq!(attribute(&found[0], "lodestar.session.state"), Some("live"));
    writer
        .close(&actor(), &json!({"reason": "done"}))
        .expect("closed");
    let run = export(&world, &[]).expect(0);
    assert_eq!(run.err, "");
    assert_eq!(spans(&run.ndjson())[0]["spanId"], found[0]["spanId"]);
}

#[test]
fn a_receiver_decodes_what_the_json_says() {
    let world = project();
    followed(&world, "s-1");
    let Some(receiver) = Receiver::start(&world, &["ok", "json", "remark"]) else {
        return;
    };
    world.write_private("work/token", &format!("Bearer {SECRET}\n"));
    let url = receiver.url();
    let args = ["--endpoint", &url, "--header", "authorization=file:token"];
    let run = export(&world, &args).expect(0);
    assert!(
        run.out.contains(" sent to http://127.0.0.1:"),
        "{}",
        run.out
    );
    let received = receiver.received();
    assert_eq!(received[0]["path"], "/v1/traces");
    let headers = &received[0]["headers"];
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["authorization"], format!("Bearer {SECRET}"));
    assert!(!run.out.contains(SECRET) && !run.err.contains(SECRET));

    let written = export(&world, &[]).expect(0).ndjson();
    let requests: Vec<Value> = received.iter().map(|one| one["request"].clone()).collect();
    let (sent, written) = (plain(&json!(requests)), plain(&json!(written)));
    assert_eq!(sent, written);

    // A second time, from the environment: the same spans.
    let mut command = world.command(&["otel", "export", "s-1", "--json"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url());
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%2Cc,tenant=web");
    let run = Run::of(command.output().expect("started")).expect(0);
    assert_eq!(run.json()["unproven"], 0);
    let received = receiver.received();
    assert_eq!(received[1]["headers"]["api-key"], "a b,c");
    assert_eq!(received[1]["headers"]["tenant"], "web");
    assert_eq!(received[1]["request"], received[0]["request"]);

    let run = export(&world, &["--endpoint", &url]).expect(0);
    assert!(
        run.err
            .contains("the receiver says: the clock of this host"),
        "{}",
        run.err
    );
}

#[test]
fn spans_that_a_receiver_rejects_are_a_failure_that_says_why() {
    let world = project();
    followed(&world, "s-1");
    let Some(receiver) = Receiver::start(&world, &["partial"]) else {
        return;
    };
    let run = export(&world, &["--endpoint", &receiver.url()]).expect(1);
    assert!(run.err.contains("rejected 3 of "), "{}", run.err);
    assert!(run.err.contains("too old"), "{}", run.err);
    assert!(run.err.contains("the same ids"), "{}", run.err);
    assert_inert(&run.err);
}

#[test]
fn servers_that_do_not_take_spans_give_each_an_exit_code_and_a_reason() {
    let world = project();
    followed(&world, "s-1");
    let protobuf = "content-type: application/x-protobuf\r\n";
    let html = "content-type: text/html\r\n";
    let cases: [(Vec<u8>, i32, &str); 8] = [
        (
            answer("401 Unauthorized", "", ""),
            4,
            "refuses the credentials (status 401)",
        ),
        (
            answer("404 Not Found", "", ""),
            3,
            "takes no spans (status 404)",
        ),
        (
            answer("400 Bad Request", "", "x"),
            1,
            "refuses the spans (status 400)",
        ),
        (
            answer("500 Oops", "", ""),
            1,
            "cannot take spans now (status 500)",
        ),
        (
            answer("302 Found", "location: http://evil.example/`\r\n", ""),
            3,
            "redirects to",
        ),
        (
            answer("200 OK", html, "<html>welcome</html>"),
            1,
            "no OTLP receiver says (`text/html`)",
        ),
        (
            answer("200 OK", protobuf, "no protobuf"),
            1,
            "no OTLP receiver says",
        ),
        (
            answer("200 OK", protobuf, &"x".repeat(50 << 20)),
            1,
            "no OTLP receiver says",
        ),
    ];
    for (said, code, words) in cases {
        let (url, asked) = server(move |_| said.clone());
        let run = export(&world, &["--endpoint", &url]).expect(code);
        assert!(run.err.contains(words), "{words}: {}", run.err);
        assert_inert(&run.err);
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{words}");
    }
}

#[test]
fn a_receiver_that_is_busy_is_asked_again_when_it_wants_to_be() {
    let world = project();
    followed(&world, "s-1");
    let busy = || answer("503 Busy", "retry-after: 1\r\n", "");
    let (url, asked) = server(move |number| match number {
        0 => busy(),
        _ => answer("200 OK", "content-type: application/x-protobuf\r\n", ""),
    });
    let begun = Instant::now();
    export(&world, &["--endpoint", &url]).expect(0);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(asked.load(Ordering::SeqCst), 2);

    let (url, _) = server(move |_| answer("503 Busy", "retry-after: 500\r\n", ""));
    let begun = Instant::now();
    let run = export(&world, &["--endpoint", &url, "--timeout", "2"]).expect(1);
    assert!(
        run.err.contains("(status 503); it asks to wait: `500`"),
        "{}",
        run.err
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn silence_and_closed_ports_end_in_time() {
    let world = project();
    followed(&world, "s-1");
    let (url, _) = server(|_| Vec::new());
    let begun = Instant::now();
    let run = export(&world, &["--endpoint", &url, "--timeout", "1"]).expect(1);
    assert!(run.err.contains("was not reached"), "{}", run.err);
    assert!(begun.elapsed() < Duration::from_secs(20));
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        format!("http://{}", listener.local_addr().expect("bound"))
    };
    let run = export(&world, &["--endpoint", &closed, "--timeout", "1"]).expect(1);
    assert!(run.err.contains("was not reached"), "{}", run.err);
}

#[test]
fn nothing_goes_in_the_clear_to_another_machine_and_no_secret_stands_on_a_command_line() {
    let world = project();
    followed(&world, "s-1");
    let run = export(&world, &["--endpoint", "http://192.0.2.1:4318"]).expect(2);
    assert!(run.err.contains("is not encrypted"), "{}", run.err);
    assert!(run.err.contains("--insecure"), "{}", run.err);
    let header = format!("authorization=Bearer {SECRET}");
    let args = ["--endpoint", "https://otlp.example", "--header", &header];
    let run = export(&world, &args).expect(2);
    assert!(!run.err.contains(SECRET), "{}", run.err);
    for (name, value) in [
        ("host", "evil.example"),
        ("content-length", "1"),
        ("a b", "c"),
    ] {
        let mut command = world.command(&["otel", "export", "s-1"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otlp.example");
        command.env("OTEL_EXPORTER_OTLP_HEADERS", format!("{name}={value}"));
        let run = Run::of(command.output().expect("started")).expect(2);
        assert!(
            run.err.contains("header") || run.err.contains("Lodestar's own"),
            "{}",
            run.err
        );
    }
}
