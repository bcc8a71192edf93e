//! Links laid in between, edited logs, redacted images, and places that nobody restores to.

use std::fs;
use std::os::unix::fs::symlink;

use lodestar_core::scope::Scope;
use lodestar_guard::{Keys, Setup, config::Config};
use lodestar_kernel::native::fs::FsRestore;
use serde_json::json;

use super::agent::{project, setup, write};
use super::read;
use crate::gated::events;
use crate::world::World;

fn session_of(world: &World) -> String {
    let list = world.run(&["log", "list", "--json"]).expect(0).json();
    let text = list.to_string();
    let at = text.find("\"s-").expect("a session") + 1;
    text[at..].split('"').next().expect("a name").to_owned()
}

#[test]
fn a_link_in_place_of_a_folder_leads_nowhere() {
    let world = project();
    world.write("work/sub/file.txt", "before");
    let action = write(&world, "sub/file.txt", "after");
    world.write("outside/file.txt", "after");
    fs::rename(world.path("work/sub"), world.path("work/old")).expect("moved");
    symlink(world.path("outside"), world.path("work/sub")).expect("linked");
    for force in [&["undo", &action][..], &["undo", &action, "--force"]] {
        world.run(force).expect(1);
    }
    assert_eq!(read(&world, "outside/file.txt"), b"after");
    assert_eq!(read(&world, "work/old/file.txt"), b"after");
}

#[test]
fn a_link_in_place_of_a_file_is_a_change_and_is_never_written_through() {
    let world = project();
    world.write("work/file.txt", "before");
    let action = write(&world, "file.txt", "after");
    world.write("outside.txt", "after");
    fs::remove_file(world.path("work/file.txt")).expect("removed");
    symlink(world.path("outside.txt"), world.path("work/file.txt")).expect("linked");
    world.run(&["undo", &action]).expect(1);
    world.run(&["undo", &action, "--force"]).expect(0);
    assert_eq!(read(&world, "outside.txt"), b"after");
    assert!(!world.path("work/file.txt").is_symlink());
    assert_eq!(read(&world, "work/file.txt"), b"before");
}

#[test]
fn a_write_through_a_link_that_leads_out_is_not_run_at_l3() {
    let world = project();
    world.write("outside.txt", "theirs");
    symlink(world.path("outside.txt"), world.path("work/link")).expect("linked");
    let arguments = json!({"edits": [{"path": "link", "hex": "77"}]});
    let why = super::agent::refused(&world, "editor.edit", arguments);
    assert_eq!(why.kind(), "irreversible");
    assert_eq!(read(&world, "outside.txt"), b"theirs");
    let arguments = json!({"edits": [{"path": "../outside.txt", "hex": "77"}]});
    let why = super::agent::refused(&world, "editor.edit", arguments);
    assert_eq!(why.kind(), "irreversible");
}

#[test]
fn nothing_is_restored_out_of_a_log_that_was_edited() {
    let world = project();
    world.will_be_edited();
    world.write("work/notes.md", "before");
    let action = write(&world, "notes.md", "after");
    let session = session_of(&world);
    let file = world.session("web", &session).events_path();
    let text = fs::read_to_string(&file).expect("readable");
    let edited = text.replace("\"before\"", "\"forged\"");
    assert_ne!(edited, text);
    fs::write(&file, edited).expect("written");
    let run = world.run(&["undo", &action]).expect(1);
    assert!(run.err.contains("not intact"), "{}", run.err);
    assert_eq!(read(&world, "work/notes.md"), b"after");
}

#[test]
fn nothing_is_restored_out_of_a_blob_that_was_exchanged() {
    let world = project();
    world.will_be_edited();
    world.write("work/notes.md", &"long ".repeat(10_000));
    let action = write(&world, "notes.md", "after");
    let session = session_of(&world);
    let blobs = world.session("web", &session).events_path();
    let blobs = blobs.parent().expect("a folder").join("blobs");
    for blob in fs::read_dir(blobs).expect("a folder") {
        fs::write(blob.expect("a file").path(), b"other").expect("written");
    }
    world.run(&["undo", &action]).expect(1);
    assert_eq!(read(&world, "work/notes.md"), b"after");
}

#[test]
fn an_image_that_was_redacted_is_said_to_be() {
    let world = project();
    world.add_operator();
    world.write("work/secret.md", &"the password is swordfish ".repeat(2000));
    let action = write(&world, "secret.md", "after");
    let session = session_of(&world);
    let all = events(&world, &session);
    let imaged = all.iter().find(|(_, kind, _)| kind == "action.imaged@1");
    let imaged = imaged.expect("an image").0.to_string();
    let yes = ["--reason", "a password", "--yes"];
    let mut args = vec!["log", "redact", &session, "--seq", &imaged];
    args.extend(yes);
    world.run(&args).expect(0);
    let run = world.run(&["undo", &action]).expect(1);
    assert!(run.err.contains("was redacted"), "{}", run.err);
    assert_eq!(read(&world, "work/secret.md"), b"after");
    let report = world.run(&["report", &session, "--format", "md"]).expect(0);
    assert!(report.out.contains("was redacted"), "{}", report.out);
    world.run(&["replay", &session]).expect(0);
    let blobs = world.session("web", &session).events_path();
    let blobs = blobs.parent().expect("a folder").join("blobs");
    let left = fs::read_dir(blobs).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the content goes with the event");
}

#[test]
fn protected_places_are_not_restored_to() {
    let world = project();
    world.write("work/.git/config", "[core]");
    let tool = FsRestore::new(&world.root(), [b"x".to_vec()], Scope::global()).expect("a root");
    let sha256 = lodestar_core::digest::sha256(b"x");
    let config = Config::read(world.path("work/lodestar.toml")).expect("a configuration");
    let keys = Keys::at(world.path("config")).expect("keys");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let session = Setup::new(config, keys)
            .holds(lodestar_guard::Holds::Leave)
            .tool_graded(tool, FsRestore::grade());
        let session = session.open().await.expect("opened");
        for place in [
            json!(".lodestar/x"),
            json!(".git/config"),
            json!("lodestar.toml"),
            json!({"escaped": ".lodestar/%FF"}),
        ] {
            let arguments = json!({
                "action": "act_01a1ea8e-1c29-74e3-b2d8-fa953af38f27",
                "session": "s-1",
                "paths": [place],
                "to": [{"kind": "file", "mode": 420, "sha256": sha256}],
                "from": [{"kind": "nothing"}],
            });
            let reply = session
                .call("fs.restore", arguments)
                .await
                .expect("answered");
            let why = reply.refusal().expect("refused");
            assert_eq!(why.kind(), "policy_denied", "{why}");
        }
        for place in ["../out.txt", "/tmp/out.txt", "a/../b.txt", ""] {
            let arguments = json!({
                "action": "act_01a1ea8e-1c29-74e3-b2d8-fa953af38f27",
                "session": "s-1",
                "paths": [place],
                "to": [{"kind": "file", "mode": 420, "sha256": sha256}],
                "from": [{"kind": "nothing"}],
            });
            let reply = session
                .call("fs.restore", arguments)
                .await
                .expect("answered");
            assert!(!reply.ran(), "{place}");
        }
        session.close("done").await.expect("closed");
    });
    assert!(!world.path("work/b.txt").exists());
    assert_eq!(read(&world, "work/.git/config"), b"[core]");
}

#[test]
fn a_request_that_waits_in_an_agents_session_goes_on_waiting() {
    let world = project();
    world.write("work/notes.md", "before");
    let action = write(&world, "notes.md", "after");
    let graded = format!(
        "{}\n[tool_defaults.\"fs.write\"]\nrequired_trust_level = \"L4\"\n",
        super::agent::CONFIG
    );
    world.write("work/lodestar.toml", &graded);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let session = setup(&world).open().await.expect("opened");
        let arguments = json!({"path": "other.md", "content": "x"});
        let reply = session.call("fs.write", arguments).await.expect("answered");
        assert_eq!(
            reply.refusal().map(|why| why.kind()),
            Some("approval_required")
        );
        session.close("done").await.expect("closed");
    });
    world.run(&["undo", &action]).expect(0);
    assert_eq!(read(&world, "work/notes.md"), b"before");
    let sessions = world
        .run(&["log", "list", "--json"])
        .expect(0)
        .json()
        .to_string();
    assert!(sessions.contains("undo-"), "{sessions}");
    let expired = fs::read_dir(world.log("web").dir()).expect("a folder");
    for session in expired
        .filter_map(Result::ok)
        .filter(|one| one.path().is_dir())
    {
        let events = fs::read_to_string(session.path().join("events.ndjson")).expect("readable");
        assert!(!events.contains("approval.expired"), "abandoned");
    }
}
