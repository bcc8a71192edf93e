//! Attacks that once worked, or were expected to: each shown to fail, against real folders,
//! repositories and programs.

use std::path::Path;
use std::sync::Arc;

use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{ApprovalDecision, Envelope, Nonce};
use lodestar_guard::{Config, Holds, Keys, Resolver, Resolving, Session, Setup};
use lodestar_kernel::record::Rejection;
use lodestar_log::Clock;
use lodestar_policy::{ApprovalRequest, Signed};
use serde_json::{Value, json};

use crate::governed::{CountingTool, GRADES, Project, git, log_key};

const BOX: &str = r#"
project_id = "notes"
actor_id = "agent"
auto_approve_ceiling = 3
approval_timeout_ms = 5000
[tools."fs.read"]
root = "."
[tools."fs.write"]
root = "."
[tools."shell.run"]
root = "."
[tools."shell.run".programs.cp]
path = "/bin/cp"
[tools."shell.run".programs.cat]
path = "/bin/cat"
[tools."shell.run".programs.mv]
path = "/bin/mv"
[tools."shell.run".programs.ln]
path = "/bin/ln"
"#;

fn commit(root: &Path, subject: &str) {
    std::fs::write(root.join("file.txt"), subject).unwrap();
    git(root, &["add", "file.txt"]);
    git(root, &["commit", "-q", "-m", subject]);
}

async fn open(project: &Project, config: &str) -> Session {
    let setup = project.setup(config, &[]).holds(Holds::Leave);
    setup.open().await.unwrap()
}

async fn refused(session: &Session, tool: &str, arguments: Value) {
    let reply = session.call(tool, arguments.clone()).await.unwrap();
    assert!(
        reply.refusal().is_some(),
        "{tool} {arguments}: {:?}",
        reply.outcome
    );
}

fn approver(name: &str, seed: u8, more: &str) -> String {
    let key = SecretKey::from_seed([seed; 32]).public();
    format!(
        "[[approvals.authorized_keys]]\nactor_id = \"{name}\"\npublic_key = \"{key}\"\n{more}\n"
    )
}

fn yes(request: &ApprovalRequest, name: &str, seed: u8) -> Envelope {
    let key = SecretKey::from_seed([seed; 32]);
    let signed = Signed {
        key: &key,
        at: Clock::system().now(),
        nonce: Nonce::from_bytes([seed; 16]),
    };
    let name = ActorId::new(name).unwrap();
    let grant = ApprovalDecision::Grant;
    request
        .answer(&name, grant, "looked at it", signed)
        .unwrap()
}

struct Answering<F>(F);

impl<F: Fn(&ApprovalRequest) -> Vec<Envelope> + Send + Sync> Resolver for Answering<F> {
    fn resolve<'a>(&'a self, request: &'a ApprovalRequest) -> Resolving<'a> {
        Box::pin(async move { (self.0)(request) })
    }
}

fn asking(answer: impl Fn(&ApprovalRequest) -> Vec<Envelope> + Send + Sync + 'static) -> Holds {
    Holds::Ask(Arc::new(Answering(answer)))
}

#[tokio::test]
async fn detours_that_make_a_path_too_long_do_not_hide_where_it_leads() {
    let project = Project::new();
    git(&project.root, &["init", "-q"]);
    let session = open(&project, BOX).await;
    for place in [
        ".git/hooks/pre-commit",
        ".lodestar/evil",
        ".lodestar/state.db",
    ] {
        for detour in ["./", "x/../"] {
            let path = detour.repeat(2100) + place;
            refused(&session, "fs.write", json!({"path": path, "content": "x"})).await;
            refused(&session, "fs.read", json!({"path": path})).await;
        }
    }
    assert!(!project.root.join(".lodestar/evil").exists());
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_root_named_by_a_link_stays_where_it_led() {
    let scratch = tempfile::tempdir().unwrap();
    let (real, other) = (scratch.path().join("real"), scratch.path().join("other"));
    let link = scratch.path().join("link");
    std::fs::create_dir_all(&real).unwrap();
    std::fs::create_dir_all(other.join(".lodestar")).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let project = Project::at(&real);
    let config = Config::parse(BOX, &link).unwrap();
    let setup = Setup::new(config, Keys::new(log_key())).holds(Holds::Leave);
    let session = setup.open().await.unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    for root in [&real, &link] {
        let path = root.join(".lodestar/state.db");
        refused(&session, "fs.read", json!({"path": path})).await;
    }
    let arguments = json!({"path": "a.md", "content": "here"});
    assert!(session.call("fs.write", arguments).await.unwrap().ran());
    assert!(real.join("a.md").exists() && !other.join("a.md").exists());
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn nothing_is_planted_where_git_would_run_it() {
    let project = Project::new();
    git(&project.root, &["init", "-q"]);
    let session = open(&project, BOX).await;
    for path in [
        ".git/commondir",
        ".git/modules/m/hooks/post-checkout",
        ".git/info/attributes",
        ".git/refs/remotes/origin/main",
        "sub/.git",
    ] {
        let write = json!({"path": path, "content": "x", "create_dirs": true});
        refused(&session, "fs.write", write).await;
    }
    std::os::unix::fs::symlink(".git/refs", project.root.join("lnk")).unwrap();
    for args in [
        json!([".git", "g"]),
        json!(["-t", "lnk/../hooks", "payload"]),
        json!(["payload", "/proc/self/cwd/../hooks/pre-commit"]),
    ] {
        refused(
            &session,
            "shell.run",
            json!({"program": "mv", "args": args}),
        )
        .await;
    }
    let through = json!({"program": "cp", "args": ["payload", "lnk/../hooks/pre-push"]});
    refused(&session, "shell.run", through).await;
    let link = json!({"program": "ln", "args": ["-s", ".git/refs", "other"]});
    refused(&session, "shell.run", link).await;
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_tool_with_another_root_is_judged_and_measured_from_there() {
    let outer = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(outer.path().join("proj/sub")).unwrap();
    let project = Project::at(&outer.path().join("proj"));
    std::fs::write(project.root.join("known.txt"), "a\n").unwrap();
    std::fs::write(project.root.join("sub/a.txt"), "one").unwrap();
    let config = BOX
        .replace(
            "[tools.\"fs.write\"]\nroot = \".\"",
            "[tools.\"fs.write\"]\nroot = \"..\"",
        )
        .replace(
            "[tools.\"shell.run\"]\nroot = \".\"",
            "[tools.\"shell.run\"]\nroot = \"sub\"",
        );
    let config = format!("{config}[known_values]\nfile = \"known.txt\"\n");
    let session = open(&project, &config).await;
    let write = json!({"path": "proj/known.txt", "content": "evil\n"});
    refused(&session, "fs.write", write).await;
    let cat = json!({"program": "cat", "args": ["../known.txt"]});
    refused(&session, "shell.run", cat).await;
    session.close("done").await.unwrap();

    std::fs::write(
        project.root.join("p.cedar"),
        "permit(principal, action in Action::\"ask\", resource);\n",
    )
    .unwrap();
    let config = format!(
        "project_id = \"notes\"\nactor_id = \"agent\"\napproval_timeout_ms = 5000\n[policy]\nfile = \"p.cedar\"\nallow_unsigned = true\n{}[tools.\"fs.write\"]\nroot = \"sub\"\n",
        approver("anna", 1, "")
    );
    let file = project.root.join("sub/a.txt");
    let setup = project.setup(&config, &[]).holds(asking(move |request| {
        std::fs::write(&file, "somebody's new work").unwrap();
        vec![yes(request, "anna", 1)]
    }));
    let session = setup.open().await.unwrap();
    let write = json!({"path": "a.txt", "content": "two"});
    let reply = session.call("fs.write", write).await.unwrap();
    let why = reply.refusal();
    assert!(
        matches!(why, Some(Rejection::PreconditionFailed { .. })),
        "{why:?}"
    );
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn one_place_has_one_spelling_for_policies() {
    let project = Project::new();
    std::fs::write(project.root.join("secret.txt"), "s3cret\n").unwrap();
    std::fs::write(
        project.root.join("p.cedar"),
        "permit(principal, action in Action::\"run\", resource);\n\
         forbid(principal, action in Action::\"run\", resource)\n\
         when { context.paths.contains(\"secret.txt\") };\n",
    )
    .unwrap();
    let policy = "policy = { file = \"p.cedar\", allow_unsigned = true }";
    let session = open(&project, &BOX.replace("auto_approve_ceiling = 3", policy)).await;
    let absolute = project.root.join("secret.txt").display().to_string();
    for path in ["secret.txt", "./a/../secret.txt", &absolute] {
        refused(&session, "fs.read", json!({"path": path})).await;
    }
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

fn pushing(root: &str, bare: &Path) -> String {
    format!(
        "{BOX}{}[tools.\"git.push\"]\nrepository = {{ root = \"{root}\" }}\nurl = \"file://{}\"\nprotocols = [\"file\"]\nrefs = [{{ branch = \"main\", to = \"refs/heads/main\" }}]\n",
        approver("anna", 1, ""),
        bare.display()
    )
}

#[tokio::test]
async fn an_approved_push_carries_what_its_card_showed_and_nothing_that_came_after() {
    let project = Project::new();
    let sub = project.root.join("sub");
    std::fs::create_dir(&sub).unwrap();
    for (root, subject) in [(&project.root, "harmless"), (&sub, "the real one")] {
        git(root, &["init", "-q", "-b", "main"]);
        commit(root, subject);
    }
    let bare = tempfile::tempdir().unwrap();
    git(bare.path(), &["init", "-q", "--bare"]);
    let config = pushing("sub", bare.path());
    let later = sub.clone();
    let setup = project.setup(&config, &[]).holds(asking(move |request| {
        let card = request.card.going_out.join("\n");
        assert!(
            card.contains("the real one") && !card.contains("harmless"),
            "{card}"
        );
        commit(&later, "after the approval");
        vec![yes(request, "anna", 1)]
    }));
    let session = setup.open().await.unwrap();
    refused(&session, "git.push", json!({"branch": "main"})).await;
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
    let honest = project
        .setup(&config, &[])
        .holds(asking(|request| vec![yes(request, "anna", 1)]));
    let session = honest.open().await.unwrap();
    let reply = session
        .call("git.push", json!({"branch": "main"}))
        .await
        .unwrap();
    assert!(reply.ran(), "{:?}", reply.outcome);
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_tracking_branch_that_says_all_is_known_hides_no_commit_from_the_card() {
    let project = Project::new();
    std::fs::write(project.root.join(".gitignore"), ".lodestar\n").unwrap();
    git(&project.root, &["init", "-q", "-b", "main"]);
    commit(&project.root, "harmless");
    commit(&project.root, "SECRET");
    git(
        &project.root,
        &["update-ref", "refs/remotes/origin/main", "HEAD"],
    );
    let bare = tempfile::tempdir().unwrap();
    git(bare.path(), &["init", "-q", "--bare"]);
    let config = pushing(".", bare.path());
    let session = open(&project, &config).await;
    refused(&session, "git.push", json!({"branch": "main"})).await;
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    let request = events
        .iter()
        .find(|(kind, _)| kind == "approval.requested@1");
    let card = request.unwrap().1["card"]["going_out"].to_string();
    assert!(
        card.contains("SECRET") && card.contains("everything"),
        "{card}"
    );
}

#[tokio::test]
async fn a_revoked_key_lends_no_role_and_a_key_is_listed_once() {
    let project = Project::new();
    let config = format!(
        "approval_timeout_ms = 5000\n{GRADES}\n[approvals.default]\nroles = [\"release\", \"dev\"]\n{}{}",
        approver(
            "anna",
            1,
            "roles = [\"release\"]\nrevoked_at = \"2020-01-01T00:00:00.000000Z\""
        ),
        approver("anna", 2, "roles = [\"dev\"]")
    );
    let tools = ["box.read", "box.write", "box.send"].map(CountingTool::new);
    let setup = project.setup(&config, &tools);
    let setup = setup.holds(asking(|request| vec![yes(request, "anna", 2)]));
    let session = setup.open().await.unwrap();
    refused(&session, "box.send", json!({"to": "a@b.example"})).await;
    assert_eq!(tools[2].ran(), 0);
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
    let twice = format!(
        "{GRADES}{}{}",
        approver("anna", 1, ""),
        approver("anna", 1, "")
    );
    let error = Config::parse(&twice, &project.root)
        .unwrap_err()
        .to_string();
    assert!(error.contains("list each key once"), "{error}");
}

#[tokio::test]
async fn a_log_that_hides_what_an_approval_needed_does_not_follow() {
    type Edit = fn(&str, &mut Value);
    let edits: [Edit; 5] = [
        |kind, payload| {
            if kind == "approval.requested@1" {
                payload["requirement"]["quorum"] = json!(1);
            }
        },
        |kind, payload| {
            if kind == "approval.granted@1" {
                payload["heard_at"] = json!("2020-01-01T00:00:00.000000Z");
            }
        },
        |kind, payload| {
            if kind == "action.cleared@1" {
                payload["measured"] = json!([]);
            }
        },
        |kind, payload| {
            if kind == "approval.requested@1" {
                payload["expires_at"] = json!("2096-01-01T00:00:00.000000Z");
            }
        },
        |kind, payload| {
            if kind == "approval.granted@1" {
                payload["missing"] = json!(0);
            }
        },
    ];
    for (number, change) in edits.into_iter().enumerate() {
        let project = Project::new();
        project.will_be_edited();
        let config = format!(
            "approval_timeout_ms = 5000\n{GRADES}\n[approvals.default]\nquorum = 2\n{}{}",
            approver("anna", 1, ""),
            approver("bert", 2, "")
        );
        let tools = ["box.read", "box.write", "box.send"].map(CountingTool::new);
        let setup = project.setup(&config, &tools);
        let setup = setup.holds(asking(|request| {
            vec![yes(request, "anna", 1), yes(request, "bert", 2)]
        }));
        let session = setup.open().await.unwrap();
        let send = json!({"to": "a@b.example", "text": "x"});
        assert!(session.call("box.send", send).await.unwrap().ran());
        session.close("done").await.unwrap();
        project.assert_sound(session.id());
        let path = project.log().session(session.id()).events_path();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let kind = line["head"]["type"].as_str().unwrap().to_owned();
            change(&kind, &mut line["payload"]);
            String::from_utf8(lodestar_core::canonical::to_vec(&line).unwrap()).unwrap() + "\n"
        });
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        assert!(!project.replay(session.id()).agrees(), "edit {number}");
    }
}
