use super::*;
use crate::tool::{Effect, Tool, ToolErrorKind};

#[test]
fn a_pinned_branch_goes_to_the_pinned_place_and_again_is_nothing_new() {
    let world = World::new();
    let output = world.push().unwrap();
    assert_eq!(value(&output)["result"], "updated");
    let head = world.git(&["rev-parse", "HEAD"]);
    assert_eq!(value(&output)["commit"], head.as_str());
    assert_eq!(world.remote_head("remote.git"), Some(head));
    assert_eq!(value(&world.push().unwrap())["result"], "up to date");
}

#[test]
fn the_repositorys_remotes_and_rewritten_addresses_do_not_count() {
    let world = World::new();
    let elsewhere = format!("file://{}", world.at("elsewhere.git").display());
    let remote = world.push_config().url;
    world.git(&["remote", "add", "origin", &elsewhere]);
    world.git(&["config", "remote.origin.pushurl", &elsewhere]);
    world.git(&["config", &format!("url.{elsewhere}.insteadOf"), &remote]);
    world.git(&["config", &format!("url.{elsewhere}.pushInsteadOf"), &remote]);
    world.push().unwrap();
    assert!(world.remote_head("remote.git").is_some());
    assert_eq!(world.remote_head("elsewhere.git"), None);
    // Plain git does go elsewhere with it.
    world.git(&["push", "-q", &remote, "main"]);
    assert!(world.remote_head("elsewhere.git").is_some());
}

#[test]
fn history_is_rewritten_only_where_that_is_pinned() {
    let world = World::new();
    world.push().unwrap();
    let before = world.remote_head("remote.git");
    world.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    let error = world.push().unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::None)
    );
    assert!(
        error.to_string().contains("non-fast-forward") || error.to_string().contains("fetch first"),
        "{error}"
    );
    assert_eq!(world.remote_head("remote.git"), before);

    let mut config = world.push_config();
    config.refs[0].update = Update::Force;
    let tool = GitPush::new(config, Scope::default()).unwrap();
    run(&tool, json!({})).unwrap();
    assert_eq!(
        world.remote_head("remote.git"),
        Some(world.git(&["rev-parse", "HEAD"]))
    );
}

#[test]
fn only_pinned_branches_can_be_chosen() {
    let world = World::new();
    let mut config = world.push_config();
    config.refs.push(PinnedRef {
        branch: "side".to_owned(),
        to: "refs/heads/review/side".to_owned(),
        update: Update::FastForward,
    });
    let tool = GitPush::new(config, Scope::default()).unwrap();
    world.git(&["branch", "other"]);
    let push = |arguments| run(&tool, arguments).map_err(|error| error.kind);
    assert_eq!(push(json!({})), Err(ToolErrorKind::InvalidArguments));
    for branch in [
        "other",
        "",
        "--force",
        "+main",
        "main:x",
        "refs/heads/main",
        "HEAD",
        ":main",
    ] {
        let answer = push(json!({ "branch": branch }));
        assert_eq!(answer, Err(ToolErrorKind::Refused), "{branch}");
    }
    assert_eq!(
        push(json!({ "branch": "side" })),
        Err(ToolErrorKind::Refused)
    );
    for extra in ["url", "remote", "force"] {
        let answer = push(json!({ "branch": "main", extra: "x" }));
        assert_eq!(answer, Err(ToolErrorKind::InvalidArguments));
    }
    world.git(&["branch", "side"]);
    push(json!({ "branch": "side" })).unwrap();
    let remote = world.at("remote.git");
    let refs = world.git(&["ls-remote", remote.to_str().unwrap()]);
    assert!(
        refs.ends_with("refs/heads/review/side") && refs.lines().count() == 1,
        "{refs}"
    );
}

#[test]
fn a_tag_or_branch_that_looks_like_another_is_not_confused_with_it() {
    let world = World::new();
    let main = world.git(&["rev-parse", "main"]);
    world.write("b.txt", "x");
    world.git(&["checkout", "-q", "-b", "decoy"]);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "decoy"]);
    world.git(&["tag", "main"]);
    world.git(&["branch", "refs/heads/main"]);
    world.push().unwrap();
    assert_eq!(world.remote_head("remote.git"), Some(main));
}

#[test]
fn references_that_are_patterns_or_options_cannot_be_pinned() {
    let world = World::new();
    for (branch, to) in [
        ("main", "main"),
        ("main", "refs/heads/*"),
        ("main", "refs/heads/a:refs/heads/b"),
        ("+main", "refs/heads/main"),
        ("--all", "refs/heads/main"),
        ("main", "refs/heads/a b"),
        ("", "refs/heads/main"),
    ] {
        let mut config = world.push_config();
        config.refs[0].branch = branch.to_owned();
        config.refs[0].to = to.to_owned();
        GitPush::new(config, Scope::default()).unwrap_err();
    }
    let mut config = world.push_config();
    config.refs.clear();
    GitPush::new(config, Scope::default()).unwrap_err();
    let mut config = world.push_config();
    config.protocols = vec![Protocol::Https];
    let error = GitPush::new(config, Scope::default()).unwrap_err();
    assert!(
        error.to_string().contains("needs `file` in `protocols`"),
        "{error}"
    );
}

/// Answers one connection with a redirect elsewhere, and keeps what it was asked.
fn listen(answer: &'static str) -> (u16, std::thread::JoinHandle<String>) {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = vec![0; 8192];
        let read = stream.read(&mut asked).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8_lossy(&asked[..read]).into_owned()
    });
    (port, thread)
}

#[test]
fn a_remote_that_does_not_answer_as_one_leaves_a_clear_error() {
    let world = World::new();
    let (port, thread) = listen("HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\n\r\n");
    let mut config = world.push_config();
    config.url = format!("https://127.0.0.1:{port}/repo.git");
    config.protocols = vec![Protocol::Https];
    let tool = GitPush::new(config, Scope::default()).unwrap();
    let error = run(&tool, json!({})).unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Failed, Effect::Unknown)
    );
    assert!(
        error.to_string().starts_with("`git push` failed: "),
        "{error}"
    );
    thread.join().unwrap();
}

#[test]
fn nothing_is_sent_without_the_token() {
    let world = World::new();
    let mut config = world.push_config();
    config.url = "https://127.0.0.1:1/repo.git".to_owned();
    config.protocols = vec![Protocol::Https];
    config.credentials = Some(Credentials::Token {
        env: "SURELY_NOT_SET_TOKEN".to_owned(),
        username: "x".to_owned(),
    });
    let tool = GitPush::new(config, Scope::default()).unwrap();
    let error = run(&tool, json!({})).unwrap_err();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Refused, Effect::None)
    );
    assert!(error.to_string().contains("SURELY_NOT_SET_TOKEN"));
}

#[test]
fn a_push_is_an_external_act_that_cannot_be_undone() {
    use lodestar_core::contract::{BlastRadius, Permission, Reversibility};
    use lodestar_core::ladder::Rung;
    let world = World::new();
    let tool = GitPush::new(world.push_config(), Scope::default()).unwrap();
    let contract = &tool.definition().minimum;
    assert_eq!(contract.required_level, Rung::L4);
    assert_eq!(contract.blast_radius, BlastRadius::External);
    assert_eq!(contract.reversibility, Reversibility::Irreversible);
    for permission in [
        Permission::Push,
        Permission::Network,
        Permission::Credentials,
    ] {
        assert!(contract.permissions.contains(&permission));
    }
    let schema = &tool.definition().input_schema;
    assert_eq!(schema["properties"]["branch"]["enum"], json!(["main"]));
    assert_eq!(schema["additionalProperties"], false);
}
