//! Whatever else comes to the socket, and agents that try to get at Lodestar itself.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::*;

fn in_folder(hooked: &Hooked, ending: &str) -> PathBuf {
    let folder = hooked.user.path().join("hook");
    let mut found = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    found
        .find(|path| path.extension().is_some_and(|found| found == ending))
        .unwrap()
}

/// What a hook asks, without the pass.
pub(super) fn asked(incoming: &Incoming) -> String {
    json!({"said": incoming}).to_string()
}

/// Shows the pass and says a line.
pub(super) async fn say_raw(hooked: &Hooked, line: &str) -> UnixStream {
    let pass = std::fs::read_to_string(in_folder(hooked, "pass")).unwrap();
    say_with(hooked, &pass, line).await
}

async fn say_with(hooked: &Hooked, pass: &str, line: &str) -> UnixStream {
    let mut stream = UnixStream::connect(in_folder(hooked, "sock"))
        .await
        .unwrap();
    let said = format!("{pass}\n{line}\n");
    // Whoever is not let in may find the door closed while still speaking.
    let _ = stream.write_all(said.as_bytes()).await;
    stream
}

async fn heard(mut stream: UnixStream) -> String {
    let mut heard = String::new();
    let reading = stream.read_to_string(&mut heard);
    let _ = tokio::time::timeout(Duration::from_secs(15), reading)
        .await
        .unwrap();
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_can_reach_the_socket() {
    let mut hooked = Hooked::new().await;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&hooked.user.path().join("hook")), 0o700);
    assert_eq!(mode(&in_folder(&hooked, "sock")), 0o600);
    assert_eq!(mode(&in_folder(&hooked, "pass")), 0o600);
    let incoming = hooked.incoming("c", Event::Started);
    for pass in ["", "x", &"0".repeat(64), &"y".repeat(100_000)] {
        let answer = heard(say_with(&hooked, pass, &asked(&incoming)).await).await;
        assert!(!answer.contains("proceed"), "{answer}");
    }
    assert!(hooked.sessions("c").is_empty());
    hooked.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_no_question_get_an_error_and_open_nothing() {
    let mut hooked = Hooked::new().await;
    let good = asked(&hooked.incoming("c", Event::Started));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let lines = [
        "",
        "{}",
        "null",
        "\u{0}",
        "{\"said\":{}}",
        &good[..good.len() - 2],
        &good.replace("claude-code", "other-client"),
        &good.replace("started", "begun"),
        &deep,
    ];
    for line in lines {
        let answer = heard(say_raw(&hooked, line).await).await;
        assert!(answer.contains("problem"), "{line:.40}: {answer}");
    }
    assert_eq!(
        hooked
            .project
            .log()
            .sessions_on_disk()
            .unwrap_or_default()
            .len(),
        0
    );
    hooked.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_end_is_cut_off() {
    let mut hooked = Hooked::new().await;
    hooked.say("c", Event::Started).await;
    let line = format!("{{\"said\":\"{}", "x".repeat(25 << 20));
    let answer = heard(say_raw(&hooked, &line).await).await;
    assert!(answer.is_empty() || answer.contains("bytes"), "{answer}");
    hooked.runs("c", &read("1", "a.md"), json!("x")).await;
    hooked.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_say_nothing_keep_nobody_waiting() {
    let mut hooked = Hooked::new().await;
    hooked.say("c", Event::Started).await;
    let socket = in_folder(&hooked, "sock");
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(UnixStream::connect(&socket).await.unwrap());
    }
    let began = Instant::now();
    hooked.runs("c", &read("1", "a.md"), json!("x")).await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    drop(silent);
    hooked.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_built_in_tool_reaches_lodestar_itself() {
    let mut hooked = Hooked::new().await;
    let root = hooked.project.root.clone();
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::os::unix::fs::symlink(root.join(".lodestar"), root.join("src/innocent")).unwrap();
    let key = hooked.user.path().join("keys/log.key");
    let pass = in_folder(&hooked, "pass");
    let uses = [
        read("1", root.join(".lodestar/state.db")),
        read("2", "src/innocent/state.db"),
        read("3", &key),
        read("4", &pass),
        used(
            "Write",
            Kind::Write,
            None,
            json!({"file_path": "lodestar.toml", "content": "x"}),
        ),
        used(
            "Edit",
            Kind::Edit,
            None,
            json!({"filePath": "src/../.git/hooks/pre-commit", "old_string": "a", "new_string": "b"}),
        ),
        used(
            "apply_patch",
            Kind::Edit,
            None,
            json!({"input": "*** Begin Patch\n*** Add File: .claude/settings.json\n+{}\n*** End Patch"}),
        ),
        used("Glob", Kind::Find, None, json!({"pattern": ".lodestar/**"})),
        shell("8", "cat .lodestar/log/x"),
        shell("9", &format!("cat {}", key.display())),
        shell("10", "lodestar approve grant"),
        used(
            "Whatever",
            Kind::Other,
            None,
            json!({"deep": {"er": [".lodestar"]}}),
        ),
        used(
            "mcp__files__read",
            Kind::Mcp,
            None,
            json!({"where": ".lodestar/state.db"}),
        ),
    ];
    for one in &uses {
        let answer = hooked.before("c", one).await;
        let words = refused(&answer);
        assert!(words.contains("policy_denied"), "{one:?}: {words}");
    }
    // From a folder inside, relative paths start there.
    let mut inside = hooked.incoming(
        "c",
        Event::Before {
            r#use: read("20", "../.lodestar/x"),
        },
    );
    inside.cwd = Some(root.join("src"));
    refused(&hooked.try_say(inside).await.unwrap());
    // Writing about it is no crime.
    let about = json!({"file_path": "README.md", "content": "logs lie in .lodestar/log"});
    hooked
        .runs(
            "c",
            &used("Write", Kind::Write, Some("21"), about),
            json!("ok"),
        )
        .await;
    hooked.end().await;
    let events = hooked.events("c");
    let reaching = of(&events, "action.proposed");
    let reaching = reaching.iter().filter(|one| one.get("reaches").is_some());
    assert_eq!(reaching.count(), uses.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_calls_itself_the_proxy_is_held() {
    let mut hooked = Hooked::new().await;
    let faked = used(
        "mcp__lodestar__files__read",
        Kind::Mcp,
        None,
        json!({"path": "a.md"}),
    );
    let answer = hooked.before("c", &faked).await;
    assert!(refused(&answer).contains("approval_required"), "{answer:?}");
    hooked.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_configuration_nothing_is_answered_and_the_words_say_how_to_make_one() {
    let hooked = Hooked::new().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let mut incoming = hooked.incoming("c", Event::Started);
    incoming.cwd = Some(elsewhere.path().to_owned());
    let problem = hooked.try_say(incoming).await.unwrap_err();
    assert!(problem.to_string().contains("lodestar init"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_goes_elsewhere_stays_under_the_same_rules() {
    let mut hooked = Hooked::new().await;
    hooked.say("c", Event::Started).await;
    let inner = hooked.file("vendor/evil");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(inner.join("lodestar.toml"), CONFIG.replace("notes", "evil")).unwrap();
    let mut incoming = hooked.incoming(
        "c",
        Event::Before {
            r#use: read("1", "a.md"),
        },
    );
    incoming.cwd = Some(inner.clone());
    assert_eq!(hooked.try_say(incoming).await.unwrap(), Answer::Proceed);
    hooked.end().await;
    assert!(!inner.join(".lodestar").exists());
    assert_eq!(count(&hooked.events("c"), "action.proposed"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_one_daemon() {
    let mut hooked = Hooked::new().await;
    let settings = Settings::new(hooked.installation(), &hooked.project.root).unwrap();
    let second = Daemon::bind(settings).map(drop);
    assert!(second.unwrap_err().to_string().contains("already"));
    hooked.end().await;
}
