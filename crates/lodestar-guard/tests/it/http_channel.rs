//! The HTTP channel: real sockets, a server that keeps to the protocol, and many that do not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use lodestar_core::id::RequestId;
use lodestar_core::statement::{ApprovalDecision, Envelope, Nonce};
use lodestar_guard::channel::drop::Pile;
use lodestar_guard::channel::http::{HttpChannel, Told, ToldNotice};
use lodestar_guard::channel::{self, Channel, Closing};
use lodestar_guard::{Config, Holds, Reply, Session};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::governed::{CountingTool, Project, count};
use crate::hub::{Hub, Rude, answer, identity, until};
use crate::people::{GRANT, config, gone, random, said, send, times_out};

/// A variable that is set in every test: what it says is the token.
const TOKEN_ENV: &str = "CARGO_PKG_NAME";

fn token() -> String {
    std::env::var(TOKEN_ENV).unwrap()
}

fn table(url: &str, more: &str) -> String {
    format!(
        "[approvals.http]\nurl = \"{url}\"\ntoken_env = \"{TOKEN_ENV}\"\nallow_loopback_http = true\n{more}\n"
    )
}

fn plain(hub: &Hub, more: &str) -> String {
    table(&format!("http://{}/hub", hub.address), more)
}

const INTERNAL: &str = "ceiling = \"internal\"\nwait_ms = 2000\ntimeout_ms = 1000";

fn http(project: &Project, config: &str) -> HttpChannel {
    let config = Config::parse(config, &project.root).unwrap();
    HttpChannel::configured(&config).unwrap().unwrap()
}

async fn open_with(
    project: &Project,
    config: &str,
    tool: &CountingTool,
    channels: Vec<Arc<dyn Channel>>,
) -> Session {
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let setup = project.setup(config, &others).tool(tool.clone());
    setup.holds(Holds::Tell(channels)).open().await.unwrap()
}

async fn open(project: &Project, config: &str, tool: &CountingTool) -> Session {
    let channel: Arc<dyn Channel> = Arc::new(http(project, config));
    open_with(project, config, tool, vec![channel]).await
}

fn call(session: &Session, arguments: Value) -> JoinHandle<Reply> {
    let session = session.clone();
    tokio::spawn(async move { session.call("box.send", arguments).await.unwrap() })
}

fn text(number: usize) -> Value {
    json!({"to": "anna@corp.example", "text": format!("message {number}")})
}

async fn problem(session: &Session, part: &str) {
    until(part, || {
        session
            .channel_problem()
            .is_some_and(|told| told.contains(part))
    })
    .await;
}

#[tokio::test]
async fn a_grant_through_the_server_lets_the_waiting_call_run_once() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    let config = config(10_000, &plain(&hub, INTERNAL));
    let session = open(&project, &config, &tool).await;
    assert_eq!(hub.connections(), 0, "nothing is open, so nobody is asked");
    let waiting = call(&session, send());
    let request = hub.request(1).await;
    assert_eq!(tool.ran(), 0);
    hub.bring(request.id, said(&request, 1, GRANT));
    assert!(waiting.await.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    until("it is consumed", || hub.kept() == 0).await;
    until("it is withdrawn", || {
        hub.count("DELETE", "closing=spent") == 1
    })
    .await;
    session.close("done").await.unwrap();
    assert_eq!(session.channel_problem(), None);
    let place = format!("/hub/v1/notes/{}/requests/{}", session.id(), request.id);
    let seen = hub.seen();
    let last = seen.iter().rfind(|seen| seen.target().starts_with(&place));
    assert_eq!(last.unwrap().method(), "DELETE", "it stays withdrawn");
    assert!(seen.iter().all(|seen| {
        let bearer = format!("authorization: Bearer {}\r\n", token());
        seen.head.contains(&bearer) && !seen.target().contains(&token())
    }));
    assert_eq!(count(&project.events(session.id()), "approval.granted"), 1);
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_deny_ends_it_and_a_quorum_needs_two_people() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    let quorum = format!(
        "{}\n[approvals.default]\nquorum = 2\n",
        plain(&hub, INTERNAL)
    );
    let session = open(&project, &config(10_000, &quorum), &tool).await;
    let waiting = call(&session, send());
    let request = hub.request(1).await;
    hub.bring(request.id, said(&request, 1, GRANT));
    hub.bring(request.id, said(&request, 1, GRANT));
    until("people hear that one is missing", || {
        hub.told()
            .iter()
            .any(|told| matches!(told, Told::Whole(told) if told.missing == 1 && told.granted_by.len() == 1))
    })
    .await;
    until("both are in the log", || hub.kept() == 0).await;
    assert_eq!(tool.ran(), 0, "one person, twice");
    hub.bring(request.id, said(&request, 2, GRANT));
    assert!(waiting.await.unwrap().ran());
    let waiting = call(&session, text(2));
    let request = hub.request(2).await;
    hub.bring(request.id, said(&request, 1, GRANT));
    hub.bring(request.id, said(&request, 2, ApprovalDecision::Deny));
    assert!(!waiting.await.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    until("it is withdrawn", || {
        hub.count("DELETE", "closing=denied") == 1
    })
    .await;
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn over_tls_the_server_proves_who_it_is_before_it_hears_anything() {
    let (server, ca_file) = identity(&["127.0.0.1"]);
    let address = "127.0.0.1:0".parse().unwrap();
    let project = Project::new();
    let hub = Hub::at(address, Some(server)).await;
    let tool = CountingTool::new("box.send");
    let url = format!("https://{}", hub.address);
    let trusting = format!("{INTERNAL}\nca_file = \"{}\"", ca_file.path().display());
    let config_of = |more: &str| config(10_000, &table(&url, more));
    let session = open(&project, &config_of(&trusting), &tool).await;
    let waiting = call(&session, send());
    let request = hub.request(1).await;
    hub.bring(request.id, said(&request, 1, GRANT));
    assert!(waiting.await.unwrap().ran());
    session.close("done").await.unwrap();
    let seen = hub.seen().len();
    let other = Project::new();
    let config = config_of(INTERNAL).replace("= 10000", "= 300");
    let session = open(&other, &config, &tool).await;
    times_out(&session, send()).await;
    problem(&session, "tls with").await;
    assert_eq!(hub.seen().len(), seen, "a stranger hears nothing");
    session.close("done").await.unwrap();
}

fn on_answers(
    rude: impl Fn() -> Rude + Send + Sync + 'static,
) -> impl Fn(&crate::hub::Seen) -> Option<Rude> {
    move |seen| seen.is("GET", "/answers").then(&rude)
}

fn status(line: &str, headers: &str) -> Rude {
    Rude::Sends(format!("HTTP/1.1 {line}\r\n{headers}content-length: 0\r\n\r\n").into_bytes())
}

/// Servers that break the protocol, each with what the session says of it.
fn rudeness(elsewhere: &Hub, own: &Hub) -> Vec<(&'static str, Rude)> {
    let request = RequestId::from_parts(1, [0; 10]).to_string();
    let long = "x".repeat(10 << 20);
    let html = |body: &str| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}");
        Rude::Sends(format!("{head}\r\n\r\n{body}").into_bytes())
    };
    let typed = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.lodestar.answer.v1\r\n";
    let named = format!("{typed}lodestar-answer: a1\r\nlodestar-request: {request}\r\n");
    let pause = Duration::from_millis(20);
    let to = |place: String| status("302 Found", &format!("location: {place}\r\n"));
    let sends = |text: String| Rude::Sends(text.into_bytes());
    vec![
        (
            "redirects to `http://127.0.0.1",
            to(format!("http://{}/", elsewhere.address)),
        ),
        (
            "redirects to `http://169.254",
            to("http://169.254.169.254/latest/meta-data".into()),
        ),
        (
            "redirects to `http://127.0.0.1",
            to(format!("http://{}/hub/v1", own.address)),
        ),
        ("redirects", status("307 Temporary Redirect", "")),
        (
            "refuses the token (status 401)",
            status("401 Unauthorized", ""),
        ),
        ("status 500", status("500 Internal Server Error", "")),
        ("no such place (status 404)", status("404 Not Found", "")),
        ("it sent `text/html`", html("<p>sign in</p>")),
        ("it sent `text/html`", html(&long)),
        ("it sent ``", status("200 OK", "")),
        (
            "`lodestar-answer`",
            sends(format!(
                "{typed}lodestar-answer: ../x\r\nlodestar-request: {request}\r\n\r\n"
            )),
        ),
        (
            "`lodestar-request`",
            sends(format!(
                "{typed}lodestar-answer: a1\r\nlodestar-request: mine\r\n\r\n"
            )),
        ),
        (
            "failed",
            sends(format!("{named}content-length: 100\r\n\r\nhalf")),
        ),
        (
            "failed",
            sends(format!("{named}transfer-encoding: chunked\r\n\r\nzz\r\n")),
        ),
        (
            "says two things",
            sends(format!(
                "{named}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
            )),
        ),
        (
            "encoded its answer",
            sends(format!(
                "{named}content-encoding: gzip\r\ncontent-length: 4\r\n\r\nxxxx"
            )),
        ),
        (
            "switched to another protocol",
            sends(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"
                    .into(),
            ),
        ),
        ("failed", sends("nonsense \u{1b}[2J\r\n\r\n".into())),
        ("failed", Rude::Sends(vec![0xff; 4096])),
        ("failed", Rude::Sends(Vec::new())),
        (
            "failed",
            Rude::Drips(
                typed.into(),
                format!("x-{}: y\r\n", "x".repeat(2000)).into(),
                Duration::ZERO,
            ),
        ),
        (
            "in full after",
            Rude::Drips(typed.into(), b"x: y\r\n".into(), pause),
        ),
        (
            "in full after",
            Rude::Drips(
                format!("{named}content-length: 60000\r\n\r\n").into(),
                b"x".into(),
                pause,
            ),
        ),
        ("in full after", Rude::Drips(Vec::new(), Vec::new(), pause)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rude_server_runs_nothing_is_told_of_and_a_genuine_answer_still_works() {
    let elsewhere = Arc::new(Hub::start().await);
    let mut trials = Vec::new();
    let cases = rudeness(&elsewhere, &elsewhere).len();
    for number in 0..cases {
        let elsewhere = Arc::clone(&elsewhere);
        trials.push(async move {
            let (project, hub) = (Project::new(), Hub::start().await);
            let (told, rude) = rudeness(&elsewhere, &hub).swap_remove(number);
            hub.rude(on_answers(move || rude.clone()));
            let tool = CountingTool::new("box.send");
            let quick = "ceiling = \"internal\"\nwait_ms = 300\ntimeout_ms = 400";
            let session = open(&project, &config(30_000, &plain(&hub, quick)), &tool).await;
            let waiting = call(&session, send());
            let request = hub.request(1).await;
            problem(&session, told).await;
            assert_eq!(tool.ran(), 0, "{told}");
            let read = session.call("box.read", json!({"path": "a"})).await;
            assert!(read.unwrap().ran(), "the session goes on: {told}");
            let problem = session.channel_problem().unwrap();
            assert!(
                !problem.contains(&token()) && !problem.contains('\u{1b}'),
                "{problem}"
            );
            hub.polite();
            hub.bring(request.id, said(&request, 1, GRANT));
            assert!(waiting.await.unwrap().ran(), "{told}");
            assert_eq!(tool.ran(), 1, "{told}");
            session.close("done").await.unwrap();
            project.assert_sound(session.id());
        });
    }
    join_all(trials).await;
    assert_eq!(elsewhere.connections(), 0, "no redirect was followed");
    println!("{cases} rude servers: 0 executions without a grant, 1 each with one");
}

#[tokio::test]
async fn a_server_that_refuses_everything_for_a_while_is_told_once_it_listens() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    hub.rude(|_| Some(status("503 Service Unavailable", "")));
    let session = open(&project, &config(20_000, &plain(&hub, INTERNAL)), &tool).await;
    let waiting = call(&session, send());
    problem(&session, "status 503").await;
    let refused = hub.seen().len();
    hub.polite();
    until("it is announced again", || {
        hub.seen()[refused..]
            .iter()
            .any(|seen| seen.is("PUT", "/requests/"))
    })
    .await;
    let request = hub.request(1).await;
    hub.bring(request.id, said(&request, 1, GRANT));
    assert!(waiting.await.unwrap().ran());
    session.close("done").await.unwrap();
}

#[tokio::test]
async fn what_is_no_genuine_answer_is_recorded_consumed_and_opens_nothing() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    let session = open(&project, &config(20_000, &plain(&hub, INTERNAL)), &tool).await;
    let waiting = call(&session, send());
    let request = hub.request(1).await;
    let grant = said(&request, 1, GRANT);
    let mut other_session = request.clone();
    other_session.session = "another".parse().unwrap();
    let mut other_request = request.clone();
    other_request.id = RequestId::from_parts(7, [7; 10]);
    let mut too_long = grant.clone();
    too_long.extend(vec![b' '; 10 << 20]);
    let echo = format!("{{\"echo\": \"{}\"}}", token()).into_bytes();
    let echoes = token().repeat((10 << 20) / token().len()).into_bytes();
    let junk = [
        b"approved".to_vec(),
        Vec::new(),
        vec![0xff, 0xfe, 0x00, 0xc3],
        b"{\"decision\":\"match\"}".to_vec(),
        said(&request, 9, GRANT),
        said(&other_session, 1, GRANT),
        said(&other_request, 1, GRANT),
        too_long,
        echo,
        echoes,
    ];
    let brought = junk.len() + 1;
    for bytes in junk {
        hub.bring(request.id, bytes);
    }
    hub.bring(other_request.id, grant.clone());
    until("all is consumed", || hub.kept() == 0).await;
    assert_eq!(tool.ran(), 0);
    assert_eq!(session.channel_problem(), None);
    hub.bring(request.id, grant.clone());
    hub.bring(request.id, grant);
    assert!(waiting.await.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert_eq!(count(&events, "approval.refused"), brought);
    assert_eq!(count(&events, "approval.granted"), 1);
    let place = |kind: &str| events.iter().rposition(|(found, _)| found == kind);
    assert!(
        place("approval.refused@1") < place("approval.granted@1"),
        "what was padded, cut or sent elsewhere is refused, and then the genuine one counts"
    );
    let written = format!("{events:?}{session:?}");
    assert!(!written.contains(&token()), "the token is in the log");
    assert!(written.contains("[credential removed]"));
    project.assert_sound(session.id());
}

#[tokio::test]
async fn an_answer_that_comes_again_after_it_was_consumed_is_heard_once() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    let session = open(&project, &config(20_000, &plain(&hub, INTERNAL)), &tool).await;
    // Another request stays open, so that the server is asked on.
    let other = call(&session, text(1));
    let held = hub.request(1).await;
    let waiting = call(&session, send());
    let request = hub.request(2).await;
    hub.forgets_what_was_consumed();
    hub.bring(request.id, said(&request, 1, GRANT));
    assert!(waiting.await.unwrap().ran());
    problem(&session, "brought an answer again").await;
    assert_eq!(tool.ran(), 1);
    let again = call(&session, send());
    let third = hub.request(3).await;
    assert_ne!(third.id, request.id, "spent");
    hub.polite();
    hub.bring(held.id, said(&held, 1, GRANT));
    assert!(other.await.unwrap().ran());
    hub.bring(third.id, said(&third, 1, GRANT));
    assert!(again.await.unwrap().ran());
    assert_eq!(tool.ran(), 3);
    session.close("done").await.unwrap();
    assert_eq!(count(&project.events(session.id()), "approval.granted"), 3);
    assert_eq!(count(&project.events(session.id()), "approval.refused"), 0);
    project.assert_sound(session.id());
}

#[tokio::test]
async fn an_answer_that_was_not_recorded_before_a_restart_comes_again() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    let config = config(50, &plain(&hub, INTERNAL));
    let session = open(&project, &config, &tool).await;
    times_out(&session, send()).await;
    let request = hub.request(1).await;
    session.close("the client went away").await.unwrap();
    gone(&project, session).await;
    hub.bring(request.id, said(&request, 1, GRANT));
    let session = open(&project, &config, &tool).await;
    until("it is heard", || hub.kept() == 0).await;
    assert!(session.call("box.send", send()).await.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_is_heard_once_it_is_there() {
    let project = Project::new();
    let away = Hub::start().await;
    let (address, config) = (away.address, config(20_000, &plain(&away, INTERNAL)));
    drop(away);
    let tool = CountingTool::new("box.send");
    let session = open(&project, &config, &tool).await;
    let waiting = call(&session, send());
    problem(&session, "no connection to").await;
    let hub = Hub::at(address, None).await;
    let request = hub.request(1).await;
    hub.bring(request.id, said(&request, 1, GRANT));
    assert!(waiting.await.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    session.close("done").await.unwrap();
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_neither_the_drop_directory_nor_an_opening() {
    let (project, hub) = (Project::new(), Hub::start().await);
    hub.rude(|_| {
        Some(Rude::Drips(
            Vec::new(),
            Vec::new(),
            Duration::from_millis(50),
        ))
    });
    let tool = CountingTool::new("box.send");
    let slow = "ceiling = \"internal\"\ntimeout_ms = 60000";
    let config = config(100, &plain(&hub, slow));
    let session = open(&project, &config, &tool).await;
    for number in 0..20 {
        times_out(&session, text(number)).await;
    }
    session.close("restarted").await.unwrap();
    gone(&project, session).await;
    let channels = channel::configured(&Config::parse(&config, &project.root).unwrap()).unwrap();
    assert_eq!(channels.len(), 2);
    let started = Instant::now();
    let session = open_with(&project, &config, &tool, channels).await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(4), "20 open requests: {took:?}");
    let pile = Pile::below(&project.root).unwrap();
    assert_eq!(pile.requests().count(), 20);
    let shown = pile.requests().next().unwrap();
    let request = &shown.announcement().request;
    let grant = Envelope::from_json(&said(request, 1, GRANT)).unwrap();
    let started = Instant::now();
    pile.answer(shown, &grant, Nonce::from_bytes(random()))
        .unwrap();
    let arguments = Value::Object(request.card.action.arguments.clone());
    let call = async || session.call("box.send", arguments.clone()).await.unwrap();
    while !call().await.ran() {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "it is not heard"
        );
    }
    let took = started.elapsed();
    println!("a grant in the drop directory while the server hangs: {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    session.close("done").await.unwrap();
}

#[tokio::test]
async fn what_is_more_sensitive_than_the_ceiling_leaves_without_its_card_and_digests() {
    let secret_words = ["anna@corp.example", "hello", "notes-of-anna.md"];
    for (ceiling, default, grade, whole) in [
        ("internal", "internal", "private", true),
        ("public", "public", "public", true),
        ("secret", "secret", "secret", true),
        ("public", "internal", "public", false),
        ("public", "public", "private", false),
        ("internal", "confidential", "private", false),
        ("confidential", "internal", "secret", false),
    ] {
        let (project, hub) = (Project::new(), Hub::start().await);
        let tool = CountingTool::new("box.send");
        let limits = format!("ceiling = \"{ceiling}\"\nwait_ms = 2000");
        let config = config(50, &plain(&hub, &limits));
        let config = config.replace(
            "data_sensitivity = \"private\"",
            &format!("data_sensitivity = \"{grade}\""),
        );
        let config = format!("default_sensitivity = \"{default}\"\n{config}");
        let session = open(&project, &config, &tool).await;
        let written = session.call("box.write", json!({"path": secret_words[2], "text": "x"}));
        assert!(written.await.unwrap().ran());
        times_out(&session, send()).await;
        until("both are told", || {
            hub.told().len() == 1 && hub.count("POST", "/notices") == 1
        })
        .await;
        let case = format!("{ceiling} {default} {grade}");
        let request = project.events(session.id());
        let request = request
            .iter()
            .find(|(kind, _)| kind == "approval.requested@1");
        let request = &request.unwrap().1;
        match hub.told().remove(0) {
            Told::Whole(told) => {
                assert!(whole, "{case}");
                assert_eq!(serde_json::to_value(&told.request).unwrap(), *request);
            }
            Told::Withheld(told) => {
                assert!(!whole, "{case}");
                assert_eq!(told.tool.as_str(), "box.send");
                let everything: Vec<u8> =
                    hub.seen().into_iter().flat_map(|seen| seen.body).collect();
                let everything = String::from_utf8(everything).unwrap();
                assert!(everything.contains("\"shown\":\"withheld\""));
                for word in secret_words {
                    assert!(!everything.contains(word), "{case}: {word} left");
                }
                // Few words can be guessed from their digest.
                for digest in [
                    &request["card_digest"],
                    &request["card"]["action"]["fingerprint"],
                ] {
                    let digest = digest.as_str().unwrap();
                    assert!(!everything.contains(digest), "{case}: {digest} left");
                }
            }
        }
        let notice = hub.seen();
        let notice = notice.iter().find(|seen| seen.is("POST", "/notices"));
        let notice: ToldNotice = serde_json::from_slice(&notice.unwrap().body).unwrap();
        let what = (ceiling == "secret").then(|| "box.write notes-of-anna.md".to_owned());
        assert_eq!(notice.what, what, "{case}");
        session.close("done").await.unwrap();
    }
}

#[tokio::test]
async fn what_was_withdrawn_is_not_announced_again() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    let config = config(50, &plain(&hub, INTERNAL));
    let session = open(&project, &config, &tool).await;
    let id = times_out(&session, send()).await;
    hub.request(1).await;
    let Told::Whole(announcement) = hub.told().remove(0) else {
        panic!("it is internal")
    };
    session.close("done").await.unwrap();
    let channel = http(&project, &config);
    let before = hub.count("PUT", "/requests/");
    channel.announce(&announcement).await.unwrap();
    channel.withdraw(id, Closing::Spent).await.unwrap();
    channel.announce(&announcement).await.unwrap();
    // Whatever is on its way is there by the time that this is.
    let other = RequestId::from_parts(1, [1; 10]);
    channel.withdraw(other, Closing::Spent).await.unwrap();
    assert_eq!(hub.count("PUT", "/requests/"), before + 1);
}

#[tokio::test]
async fn what_other_sessions_left_is_cleared_away_without_waiting_and_where_it_lies() {
    let (project, hub) = (Project::new(), Hub::start().await);
    hub.rude(|_| {
        let pause = Duration::from_millis(50);
        Some(Rude::Drips(Vec::new(), Vec::new(), pause))
    });
    let channel = http(&project, &config(50, &plain(&hub, INTERNAL)));
    let id = RequestId::from_parts(1, [1; 10]);
    let sessions = ["one", "two", "three", "four", "five", "six"];
    let started = Instant::now();
    for session in sessions {
        let session = session.parse().unwrap();
        let _ = channel.clear_away(&session, id, Closing::Expired).await;
    }
    let took = started.elapsed();
    assert!(took < Duration::from_millis(500), "{took:?}");
    until("the server is asked", || hub.connections() > 0).await;
    hub.polite();
    let cleared = |session: &str| {
        let place = format!("/{session}/requests/{id}?closing=expired");
        hub.count("DELETE", &place) > 0
    };
    until("all are brought", || {
        sessions.iter().all(|session| cleared(session))
    })
    .await;
}

#[tokio::test]
async fn nothing_is_sent_to_where_clouds_keep_their_secrets() {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let config = config(30, &table("https://169.254.169.254", INTERNAL));
    let session = open(&project, &config, &tool).await;
    times_out(&session, send()).await;
    problem(&session, "leads to 169.254.169.254, which is link-local").await;
    session.close("done").await.unwrap();
}

#[test]
fn a_configuration_that_would_show_the_token_to_others_is_refused() {
    let project = Project::new();
    let parse = |url: &str, rest: &str| {
        let table = format!("[approvals.http]\nurl = \"{url}\"\n{rest}");
        let read = Config::parse(&config(0, &table), &project.root);
        read.map(drop).map_err(|problem| problem.to_string())
    };
    let rest = "token_env = \"T\"\nceiling = \"internal\"\n";
    let loopback = format!("{rest}allow_loopback_http = true\n");
    for fine in ["https://approvals.example", "https://10.1.2.3:8443/team/a"] {
        assert_eq!(parse(fine, rest), Ok(()));
    }
    for fine in ["http://127.0.0.1:8080", "http://[::1]:8080/x"] {
        assert_eq!(parse(fine, &loopback), Ok(()));
        let problem = parse(fine, rest).unwrap_err();
        assert!(problem.contains("allow_loopback_http"), "{problem}");
    }
    for (url, rest, told) in [
        (
            "http://approvals.example",
            loopback.as_str(),
            "everyone on the way",
        ),
        ("http://localhost:8080", &loopback, "everyone on the way"),
        ("http://10.0.0.1", &loopback, "everyone on the way"),
        (
            "http://127.0.0.1.evil.example",
            &loopback,
            "everyone on the way",
        ),
        ("http://0.0.0.0:80", &loopback, "everyone on the way"),
        ("http://0x7f.1/", &loopback, "another spelling"),
        (
            "https://anna:pass@approvals.example",
            rest,
            "has a user before its host",
        ),
        ("https://approvals.example/?key=1", rest, "has a query"),
        ("https://approvals.example/?", rest, "has a query"),
        ("https://approvals.example/#a", rest, "has a fragment"),
        ("ftp://approvals.example", rest, "scheme"),
        ("wss://approvals.example", rest, "scheme"),
        ("approvals.example", rest, "no url"),
        ("https://a.example/\\r\\nX: y", rest, "percent-encoded"),
        ("https://a.example", "ceiling = \"internal\"", "token_env"),
        ("https://a.example", "token_env = \"T\"", "ceiling"),
        (
            "https://a.example",
            "token_env = \"T-T\"\nceiling = \"internal\"",
            "no name of an environment variable",
        ),
        (
            "https://a.example",
            "token = \"abcdefghij\"\ntoken_env = \"T\"\nceiling = \"internal\"",
            "unknown field",
        ),
        (
            "https://a.example",
            "token_env = \"T\"\nceiling = \"low\"",
            "unknown",
        ),
        (
            "https://a.example",
            "token_env = \"T\"\nceiling = \"internal\"\nwait_ms = 0",
            "write 1 to",
        ),
        (
            "https://a.example",
            "token_env = \"T\"\nceiling = \"internal\"\ntimeout_ms = 9999999",
            "write 1 to",
        ),
    ] {
        let problem = parse(url, rest).expect_err(url);
        assert!(problem.contains(told), "{url}: {problem}");
    }
}

#[test]
fn the_token_comes_from_the_environment_and_is_never_shown() {
    let project = Project::new();
    let made = |more: &str| {
        let table = table("https://approvals.example", "ceiling = \"public\"");
        let text = config(0, &format!("{table}{more}"));
        let config = Config::parse(&text, &project.root).unwrap();
        let shown = format!("{config:?}");
        assert!(!shown.contains(&token()));
        HttpChannel::configured(&config)
    };
    let channel = made("").unwrap().unwrap();
    assert!(!format!("{channel:?}").contains(&token()));
    let not_set = config(0, &table("https://a.example", "ceiling = \"public\""));
    let not_set = not_set.replace(TOKEN_ENV, "LODESTAR_TEST_NOT_SET");
    let not_set = Config::parse(&not_set, &project.root).unwrap();
    let problem = HttpChannel::configured(&not_set).unwrap_err().to_string();
    assert!(
        problem.contains("`LODESTAR_TEST_NOT_SET` is not set"),
        "{problem}"
    );
    // It has blanks in it.
    let blanks = config(0, &table("https://a.example", "ceiling = \"public\""));
    let blanks = blanks.replace(TOKEN_ENV, "CARGO_PKG_DESCRIPTION");
    let blanks = Config::parse(&blanks, &project.root).unwrap();
    let problem = HttpChannel::configured(&blanks).unwrap_err().to_string();
    assert!(problem.contains("has a blank in it"), "{problem}");
    assert!(!problem.contains("governed"), "{problem}");
    let no_file = made("ca_file = \"no-such.pem\"\n").unwrap_err().to_string();
    assert!(no_file.contains("no-such.pem"), "{no_file}");
    let named = config(
        0,
        &format!(
            "{}ca_file = \"ca.pem\"\n",
            table("https://a.example", "ceiling = \"public\"")
        ),
    );
    let named = Config::parse(&named, &project.root).unwrap();
    assert!(
        named.files().contains(&project.root.join("ca.pem")),
        "out of reach for tools"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_seen_within_50_ms_at_the_median() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    let session = open(&project, &config(20_000, &plain(&hub, INTERNAL)), &tool).await;
    let mut took = Vec::new();
    for number in 1..=50 {
        let waiting = call(&session, text(number));
        let request = hub.request(number).await;
        let grant = said(&request, 1, GRANT);
        // A person takes longer than this to look.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let start = Instant::now();
        hub.bring(request.id, grant);
        assert!(waiting.await.unwrap().ran());
        took.push(start.elapsed());
    }
    took.sort();
    println!(
        "50 grants through a real socket, sent until the call had run: median {:?}, slowest {:?}",
        took[25], took[49]
    );
    assert!(took[25] <= Duration::from_millis(50), "{:?}", took[25]);
    assert_eq!(tool.ran(), 50);
    session.close("done").await.unwrap();
}

#[tokio::test]
async fn waiting_is_not_asking_again_and_again_whatever_the_server_does() {
    let (project, hub) = (Project::new(), Hub::start().await);
    let tool = CountingTool::new("box.send");
    let long = "ceiling = \"internal\"\nwait_ms = 25000";
    let session = open(&project, &config(30, &plain(&hub, long)), &tool).await;
    for number in 0..20 {
        times_out(&session, text(number)).await;
    }
    let hub_seen = || hub.count("GET", "/answers");
    let before = hub.seen().len();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = hub.seen().len() - before;
    println!(
        "20 open requests, 3 s of waiting: {asked} requests; {} long polls in all",
        hub_seen()
    );
    assert_eq!(asked, 0);
    assert_eq!(hub_seen(), 1);
    session.close("done").await.unwrap();
    // A server that does not wait, and one that brings the same thing for ever.
    let request = hub.requests().remove(0).id.to_string();
    let rude: [Rude; 2] = [
        status("204 No Content", ""),
        Rude::Sends(answer("a1", &request, b"again")),
    ];
    for rude in rude {
        let (project, hub) = (Project::new(), Hub::start().await);
        hub.rude(on_answers(move || rude.clone()));
        let session = open(&project, &config(30, &plain(&hub, long)), &tool).await;
        times_out(&session, text(1)).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let asked = hub.count("GET", "/answers");
        println!("a server that does not wait, 3 s: asked {asked} times");
        // Once, once more after an answer, and then at most once a second.
        assert!((3..=5).contains(&asked), "{asked}");
        session.close("done").await.unwrap();
    }
}
