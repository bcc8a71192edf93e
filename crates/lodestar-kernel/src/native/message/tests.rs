use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lodestar_core::chain::ContentBlock;
use lodestar_core::scope::Scope;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::native::net::credential::SCRUBBED;
use crate::native::net::testing::{
    Duplex, Identity, Names, Server, Step, answer, call, call_until, http_server, private_file,
};
use crate::stop::Stop;
use crate::tool::{Effect, ToolErrorKind};

const PASSWORD: &str = "correct-horse-battery";

/// What a mail server took.
#[derive(Debug, Default, Clone)]
struct Taken {
    login: Option<String>,
    from: String,
    to: Vec<String>,
    data: String,
    encrypted: bool,
}

/// How a mail server of the tests behaves.
#[derive(Clone, Default)]
struct Manner {
    starttls: Option<Arc<ServerConfig>>,
    /// Writes this right behind its answer to STARTTLS, in the clear.
    inject: &'static str,
    refuse_recipient: Option<&'static str>,
    /// What it says to the message; `250 taken` if nothing.
    verdict: &'static str,
    /// Says nothing to the message.
    silent: bool,
    /// Repeats the password when it refuses the login.
    echo: bool,
}

type Log = Arc<Mutex<Vec<Taken>>>;

/// A small mail server that speaks SMTP (RFC 5321), AUTH PLAIN and STARTTLS.
async fn mail_server(tls: Option<Arc<ServerConfig>>, manner: Manner) -> (Server, Log) {
    let log = Log::default();
    let taken = Arc::clone(&log);
    let encrypted = tls.is_some();
    let server = Server::start(tls, move |stream| {
        let manner = manner.clone();
        let taken = Arc::clone(&taken);
        Box::pin(async move {
            let mut session = Session {
                stream: BufReader::new(stream),
                mail: Taken {
                    encrypted,
                    ..Taken::default()
                },
            };
            session.say("220 mail.test ready").await;
            session.serve(&manner, &taken).await;
        })
    })
    .await;
    (server, log)
}

struct Session {
    stream: BufReader<Box<dyn Duplex>>,
    mail: Taken,
}

impl Session {
    async fn say(&mut self, line: &str) {
        let _ = self
            .stream
            .get_mut()
            .write_all(format!("{line}\r\n").as_bytes())
            .await;
        let _ = self.stream.get_mut().flush().await;
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.stream.read_line(&mut line).await.ok()?;
        (count > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
    }

    async fn serve(mut self, manner: &Manner, log: &Log) {
        while let Some(line) = self.line().await {
            let word = line.split(' ').next().unwrap().to_ascii_uppercase();
            match word.as_str() {
                "EHLO" if manner.starttls.is_some() && !self.mail.encrypted => {
                    self.say("250-mail.test\r\n250-8BITMIME\r\n250 STARTTLS")
                        .await;
                }
                "EHLO" => {
                    self.say("250-mail.test\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN")
                        .await
                }
                "STARTTLS" => {
                    let tls = manner.starttls.clone().unwrap();
                    let inject = manner.inject;
                    self.say(&format!("220 go ahead{inject}")).await;
                    let Ok(stream) = TlsAcceptor::from(tls)
                        .accept(self.stream.into_inner())
                        .await
                    else {
                        return;
                    };
                    self.stream = BufReader::new(Box::new(stream));
                    self.mail.encrypted = true;
                }
                "AUTH" => {
                    let given = STANDARD.decode(line.rsplit(' ').next().unwrap()).unwrap();
                    let given = String::from_utf8(given).unwrap().replace('\0', "|");
                    if given == format!("|lode|{PASSWORD}") {
                        self.mail.login = Some(given);
                        self.say("235 welcome").await;
                    } else if manner.echo {
                        let password = given.rsplit('|').next().unwrap().to_owned();
                        self.say(&format!("535 not with {password}")).await;
                    } else {
                        self.say("535 no").await;
                    }
                }
                "MAIL" => {
                    self.mail.from = line;
                    self.say("250 ok").await;
                }
                "RCPT"
                    if manner
                        .refuse_recipient
                        .is_some_and(|who| line.contains(who)) =>
                {
                    self.say("550 no such user").await;
                }
                "RCPT" => {
                    self.mail.to.push(line);
                    self.say("250 ok").await;
                }
                "DATA" => {
                    self.say("354 go on").await;
                    while let Some(line) = self.line().await.filter(|line| line != ".") {
                        let line = line.strip_prefix('.').unwrap_or(&line);
                        self.mail.data.push_str(line);
                        self.mail.data.push('\n');
                    }
                    log.lock().unwrap().push(self.mail.clone());
                    if manner.silent {
                        return std::future::pending().await;
                    }
                    let verdict = manner.verdict;
                    self.say(if verdict.is_empty() {
                        "250 taken"
                    } else {
                        verdict
                    })
                    .await;
                }
                "QUIT" => return self.say("221 bye").await,
                _ => self.say("502 what").await,
            }
        }
    }
}

fn mail_tool(port: u16, extra: Value, network: Value) -> MessageSend {
    let mut email = json!({
        "server": "mail.test",
        "port": port,
        "sender": "agent@lode.test",
        "recipients": ["Ann@Example.test", "bob@example.test"],
    });
    for (name, value) in extra.as_object().unwrap() {
        email[name] = value.clone();
    }
    let config =
        json!({ "channel": { "email": email }, "network": network, "max_body_bytes": 10_000 });
    let config = serde_json::from_value(config).unwrap();
    MessageSend::new(config, Scope::global(), Names::local(&["mail.test"])).unwrap()
}

fn plain_mail(port: u16) -> MessageSend {
    let network = json!({ "allow_addresses": ["127.0.0.0/8"], "timeout_ms": 5000 });
    mail_tool(port, json!({ "tls": "none" }), network)
}

fn hello() -> Value {
    json!({ "to": ["bob@example.test"], "subject": "Hello", "body": "How are you?" })
}

fn structured(output: &Output) -> &Value {
    match &output.content[0] {
        ContentBlock::Structured { value } => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_message_arrives_from_the_fixed_sender_at_the_named_recipients() {
    let (server, log) = mail_server(None, Manner::default()).await;
    let output = call(
        &plain_mail(server.port()),
        json!({
            "to": ["Ann@EXAMPLE.TEST", "bob@example.test", "bob@Example.test"],
            "subject": "Grüße",
            "body": "First line\n.\n.. dots\nBcc: evil@evil.test\nlast",
        }),
    )
    .await
    .unwrap();
    let report = structured(&output);
    assert_eq!(
        report["to"],
        json!(["Ann@example.test", "bob@example.test"])
    );
    assert!(
        report["answer"].as_str().unwrap().contains("taken"),
        "{report}"
    );
    let taken = log.lock().unwrap();
    assert_eq!(taken.len(), 1);
    assert!(
        taken[0].from.starts_with("MAIL FROM:<agent@lode.test>"),
        "{}",
        taken[0].from
    );
    assert_eq!(
        taken[0].to,
        ["RCPT TO:<Ann@example.test>", "RCPT TO:<bob@example.test>"]
    );
    let (head, body) = taken[0].data.split_once("\n\n").unwrap();
    assert!(head.contains("From: agent@lode.test"), "{head}");
    assert!(
        head.contains("To: Ann@example.test, bob@example.test"),
        "{head}"
    );
    assert!(head.contains("Subject: =?utf-8?b?"), "{head}");
    // A header of that name: the number of a message may have these letters in it.
    let mut headers = head.lines().map(str::to_lowercase);
    assert!(!headers.any(|line| line.starts_with("bcc")), "{head}");
    assert!(
        body.starts_with("First line\n.\n.. dots\nBcc: evil@evil.test\nlast"),
        "{body}"
    );
}

#[tokio::test]
async fn others_than_the_named_recipients_are_refused() {
    let (server, log) = mail_server(None, Manner::default()).await;
    let tool = plain_mail(server.port());
    for to in [
        "ann@example.test",
        "eve@example.test",
        "bob@example.test.evil.test",
        "bob@example.test, eve@evil.test",
        "Bob <bob@example.test>",
        "bob@example.test\r\nRCPT TO:<eve@evil.test>",
        " bob@example.test",
        "bob@exаmple.test",
        "",
    ] {
        let error = call(
            &tool,
            json!({ "to": ["bob@example.test", to], "body": "x" }),
        )
        .await
        .unwrap_err();
        assert_eq!(
            (error.kind, error.effect),
            (ToolErrorKind::Refused, Effect::None),
            "{to:?}"
        );
    }
    for arguments in [
        json!({ "to": "bob@example.test", "body": "x" }),
        json!({ "to": [], "body": "x" }),
        json!({ "body": "x" }),
        json!({ "to": ["bob@example.test"] }),
        json!({ "to": ["bob@example.test"], "body": "x", "cc": ["eve@evil.test"] }),
        json!({ "to": ["bob@example.test"], "body": "x", "headers": {} }),
        json!({ "to": ["bob@example.test"], "body": "a\0b" }),
    ] {
        let error = call(&tool, arguments.clone()).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments, "{arguments}");
    }
    for subject in [
        "a\r\nBcc: eve@evil.test",
        "a\nb",
        "a\rb",
        "a\0",
        "a\u{2028}b",
        &"x".repeat(257),
    ] {
        let arguments = json!({ "to": ["bob@example.test"], "subject": subject, "body": "x" });
        let error = call(&tool, arguments).await.unwrap_err();
        assert_eq!(
            (error.kind, error.effect),
            (ToolErrorKind::Refused, Effect::None),
            "{subject:?}"
        );
    }
    let long = json!({ "to": ["bob@example.test"], "body": "x".repeat(10_001) });
    assert_eq!(
        call(&tool, long).await.unwrap_err().kind,
        ToolErrorKind::Refused
    );
    assert_eq!(server.connections(), 0);
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_login_goes_over_tls_from_the_first_byte_or_after_starttls() {
    let identity = Identity::of(&["mail.test"]);
    let password = private_file(PASSWORD);
    let network = json!({ "allow_addresses": ["127.0.0.0/8"], "ca_file": identity.ca_file.path() });
    for mode in ["implicit", "starttls"] {
        let (server, log) = match mode {
            "implicit" => mail_server(Some(identity.server.clone()), Manner::default()).await,
            _ => {
                let manner = Manner {
                    starttls: Some(identity.server.clone()),
                    ..Manner::default()
                };
                mail_server(None, manner).await
            }
        };
        let login = json!({ "tls": mode, "username": "lode", "credential_file": password.path() });
        let tool = mail_tool(server.port(), login, network.clone());
        let output = call(&tool, hello()).await.unwrap();
        assert!(!output.is_error);
        let taken = log.lock().unwrap();
        assert!(taken[0].encrypted && taken[0].login.is_some(), "{mode}");
        assert!(!format!("{tool:?} {output:?}").contains(PASSWORD));
    }
}

#[tokio::test]
async fn a_server_that_spoils_starttls_gets_nothing() {
    let good = Identity::of(&["mail.test"]);
    let evil = Identity::of(&["evil.test"]);
    let password = private_file(PASSWORD);
    let login =
        json!({ "tls": "starttls", "username": "lode", "credential_file": password.path() });
    for (manner, words) in [
        (Manner::default(), "does not offer STARTTLS"),
        (
            Manner {
                starttls: Some(good.server.clone()),
                inject: "\r\n250 already in",
                ..Manner::default()
            },
            "said more than was asked",
        ),
        (
            Manner {
                starttls: Some(evil.server.clone()),
                ..Manner::default()
            },
            "tls",
        ),
    ] {
        let (server, log) = mail_server(None, manner).await;
        let network = json!({ "allow_addresses": ["127.0.0.0/8"], "ca_file": good.ca_file.path() });
        let error = call(&mail_tool(server.port(), login.clone(), network), hello())
            .await
            .unwrap_err();
        assert!(error.message.contains(words), "{}", error.message);
        assert_eq!(
            (error.kind, error.effect),
            (ToolErrorKind::Failed, Effect::None)
        );
        assert!(log.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_refused_login_does_not_repeat_the_password() {
    let identity = Identity::of(&["mail.test"]);
    let wrong = private_file("wrong-horse-battery");
    let (server, log) = mail_server(
        Some(identity.server.clone()),
        Manner {
            echo: true,
            ..Manner::default()
        },
    )
    .await;
    let tool = mail_tool(
        server.port(),
        json!({ "username": "lode", "credential_file": wrong.path() }),
        json!({ "allow_addresses": ["127.0.0.0/8"], "ca_file": identity.ca_file.path() }),
    );
    let error = call(&tool, hello()).await.unwrap_err();
    assert!(error.message.contains(SCRUBBED), "{}", error.message);
    assert!(!error.message.contains("wrong-horse"), "{}", error.message);
    assert_eq!(error.effect, Effect::None);
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn one_refused_recipient_keeps_the_message_from_all() {
    let (server, log) = mail_server(
        None,
        Manner {
            refuse_recipient: Some("bob"),
            ..Manner::default()
        },
    )
    .await;
    let arguments = json!({ "to": ["Ann@example.test", "bob@example.test"], "body": "x" });
    let error = call(&plain_mail(server.port()), arguments)
        .await
        .unwrap_err();
    assert!(
        error.message.contains("bob@example.test"),
        "{}",
        error.message
    );
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::None)
    );
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn once_the_message_went_out_a_failure_leaves_its_effect_unknown() {
    let (server, _) = mail_server(
        None,
        Manner {
            verdict: "451 try later",
            ..Manner::default()
        },
    )
    .await;
    let error = call(&plain_mail(server.port()), hello()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::Unknown)
    );
    let (server, log) = mail_server(
        None,
        Manner {
            silent: true,
            ..Manner::default()
        },
    )
    .await;
    let tool = plain_mail(server.port());
    let error = call_until(&tool, hello(), &Stop::new(), Duration::from_millis(500))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::DeadlinePassed, Effect::Unknown)
    );
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_mail_server_at_a_refused_address_is_not_reached() {
    let (server, _) = mail_server(None, Manner::default()).await;
    let tool = mail_tool(server.port(), json!({ "tls": "none" }), json!({}));
    let error = call(&tool, hello()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Refused, Effect::None)
    );
    assert_eq!(server.connections(), 0);
}

fn hook_tool(hooks: Value, identity: &Identity) -> Result<MessageSend, MessageError> {
    let config = json!({
        "channel": { "webhook": { "hooks": hooks } },
        "network": { "allow_addresses": ["127.0.0.0/8"], "ca_file": identity.ca_file.path() },
    });
    let config = serde_json::from_value(config).unwrap();
    MessageSend::new(config, Scope::global(), Names::local(&["hook.test"]))
}

#[tokio::test]
async fn a_hook_gets_the_text_and_its_url_stays_hidden() {
    let identity = Identity::of(&["hook.test"]);
    let (server, seen) = http_server(Some(identity.server.clone()), |request| {
        if request.starts_with("POST /T0/s3cret-path ") {
            answer("200 OK", "", "ok s3cret-path")
        } else {
            answer("302 Found", "location: http://127.0.0.1/\r\n", "")
        }
    })
    .await;
    let url = private_file(&format!(
        "https://hook.test:{}/T0/s3cret-path",
        server.port()
    ));
    let moved = format!("https://hook.test:{}/moved", server.port());
    let hooks =
        json!([{ "name": "ops", "url_file": url.path() }, { "name": "moved", "url": moved }]);
    let tool = hook_tool(hooks, &identity).unwrap();
    let output = call(
        &tool,
        json!({ "to": ["ops"], "subject": "Hi", "body": "a \"b\"\nc" }),
    )
    .await
    .unwrap();
    assert_eq!(
        structured(&output),
        &json!({ "hooks": [{ "hook": "ops", "status": 200 }] })
    );
    assert!(!output.is_error);
    let (_, body) = seen.lock().unwrap()[0]
        .split_once("\r\n\r\n")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&body).unwrap(),
        json!({ "text": "Hi\n\na \"b\"\nc" })
    );
    // A redirect is not followed and counts as an error.
    let output = call(&tool, json!({ "to": ["ops", "moved"], "body": "x" }))
        .await
        .unwrap();
    assert!(output.is_error);
    assert_eq!(structured(&output)["hooks"][1]["status"], 302);
    let error = call(&tool, json!({ "to": ["ops", "eve"], "body": "x" }))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Refused, Effect::None)
    );
    assert_eq!(seen.lock().unwrap().len(), 3);
    assert!(!format!("{tool:?} {output:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_hook_that_breaks_off_may_have_got_it() {
    let identity = Identity::of(&["hook.test"]);
    let (server, _) = http_server(Some(identity.server.clone()), |_| {
        vec![Step::Send(b"HTTP/1.1 2".to_vec())]
    })
    .await;
    let url = format!("https://hook.test:{}/", server.port());
    let tool = hook_tool(json!([{ "name": "ops", "url": url }]), &identity).unwrap();
    let error = call(&tool, json!({ "to": ["ops"], "body": "x" }))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::Unknown)
    );
}

#[test]
fn configurations_that_say_too_little_or_too_much_make_no_tool() {
    let identity = Identity::of(&["hook.test"]);
    let password = private_file(PASSWORD);
    let secret_url = private_file("http://hook.test/s3cret-path");
    for (hooks, words) in [
        (json!([]), "nobody"),
        (json!([{ "name": "ops" }]), "name one of"),
        (
            json!([{ "name": "ops", "url": "https://a.test/", "url_env": "X" }]),
            "name one of",
        ),
        (
            json!([{ "name": "ops", "url_env": "X", "url_file": "y" }]),
            "name one of",
        ),
        (
            json!([{ "name": "ops", "url_file": secret_url.path() }]),
            "not a plain",
        ),
        (
            json!([{ "name": "o p", "url": "https://a.test/" }]),
            "a name is",
        ),
        (
            json!([{ "name": "a", "url": "https://a.test/" }, { "name": "a", "url": "https://b.test/" }]),
            "twice",
        ),
    ] {
        let error = hook_tool(hooks.clone(), &identity)
            .expect_err(words)
            .to_string();
        assert!(error.contains(words), "{hooks}: {error}");
        assert!(!error.contains("s3cret"));
    }
    let build = |extra: Value| {
        let mut email =
            json!({ "server": "mail.test", "sender": "a@b.test", "recipients": ["c@d.test"] });
        for (name, value) in extra.as_object().unwrap() {
            email[name] = value.clone();
        }
        let config: MessageConfig =
            serde_json::from_value(json!({ "channel": { "email": email } }))
                .map_err(|e| e.to_string())?;
        MessageSend::new(config, Scope::global(), Names::local(&[]))
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(build(json!({})), Ok(()));
    for (extra, words) in [
        (json!({ "server": "mail.test:25" }), "mail.test:25"),
        (json!({ "server": "mail.test/x" }), "no host"),
        (
            json!({ "sender": "nobody" }),
            "`nobody` is no plain mail address",
        ),
        (
            json!({ "recipients": ["ann@exаmple.test"] }),
            "no plain mail address",
        ),
        (json!({ "recipients": [] }), "nobody"),
        (json!({ "recipients": ["c@d.test", "c@D.test"] }), "twice"),
        (json!({ "username": "lode" }), "both or neither"),
        (
            json!({ "credential_file": password.path() }),
            "both or neither",
        ),
        (
            json!({ "tls": "none", "username": "lode", "credential_file": password.path() }),
            "everyone on the way",
        ),
        (json!({ "tls": "maybe" }), "unknown variant"),
        (json!({ "bcc": ["x@y.test"] }), "unknown field"),
    ] {
        let error = build(extra.clone()).expect_err(words);
        assert!(error.contains(words), "{extra}: {error}");
        assert!(!error.contains(PASSWORD));
    }
}
