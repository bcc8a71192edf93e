//! The tools in the box, through a configuration and the gate, against a real folder and repository.

use std::process::Command;

use lodestar_core::key::SecretKey;
use lodestar_core::statement::Nonce;
use lodestar_guard::config::ConfigError;
use lodestar_guard::{Config, Holds, Keys, OpenError, Outcome, Session, Setup};
use lodestar_kernel::record::Rejection;
use lodestar_log::Clock;
use serde_json::{Value, json};

use crate::governed::{Project, count, git, log_key};

const CONFIG: &str = r#"
project_id = "notes"
actor_id = "agent"
auto_approve_ceiling = 3

[tools."fs.read"]
root = "."

[tools."fs.write"]
root = "."

[tools."shell.run"]
root = "."
[tools."shell.run".programs.echo]
path = "/bin/echo"

[tools."git.status"]
root = "."

[tools."git.commit"]
repository = { root = "." }
author = { name = "Agent", email = "agent@example.org" }
"#;

fn repository() -> Project {
    let project = Project::new();
    std::fs::write(project.root.join("note.ts"), "export {}\n").unwrap();
    std::fs::write(project.root.join(".gitignore"), ".lodestar\n").unwrap();
    git(&project.root, &["init", "-q", "-b", "main"]);
    git(&project.root, &["add", "."]);
    git(&project.root, &["commit", "-q", "-m", "one"]);
    project
}

async fn open(project: &Project, config: &str) -> Session {
    let setup = project.setup(config, &[]).holds(Holds::Leave);
    setup.open().await.unwrap()
}

async fn call(session: &Session, tool: &str, arguments: Value) -> Outcome {
    session.call(tool, arguments).await.unwrap().outcome
}

fn returned(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Returned(output) if !output.is_error)
}

#[tokio::test]
async fn reading_editing_running_and_committing_work_unasked_below_l4() {
    let project = repository();
    let session = open(&project, CONFIG).await;
    for (tool, arguments) in [
        ("fs.read", json!({"path": "note.ts"})),
        (
            "fs.write",
            json!({"path": "note.ts", "content": "export const a = 1\n"}),
        ),
        (
            "shell.run",
            json!({"program": "echo", "args": ["tests", "pass"]}),
        ),
        ("git.status", json!({})),
        (
            "git.commit",
            json!({"message": "two", "paths": ["note.ts"]}),
        ),
    ] {
        let outcome = call(&session, tool, arguments).await;
        assert!(returned(&outcome), "{tool}: {outcome:?}");
    }
    assert_eq!(
        git(&project.root, &["log", "-1", "--format=%an %s"]),
        "Agent two\n"
    );
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert_eq!(count(&events, "action.completed"), 5);
    assert_eq!(count(&events, "action.notified"), 3);
    project.assert_sound(session.id());
}

#[tokio::test]
async fn what_leads_out_of_the_root_or_to_lodestar_does_not_run() {
    let project = repository();
    std::fs::write(project.root.parent().unwrap().join("outside.txt"), "x").unwrap();
    let session = open(&project, CONFIG).await;
    for (tool, arguments) in [
        ("fs.read", json!({"path": "../outside.txt"})),
        ("fs.read", json!({"path": "/etc/passwd"})),
        ("fs.read", json!({"path": ".lodestar/state.db"})),
        ("fs.write", json!({"path": ".git/config", "content": "x"})),
        (
            "shell.run",
            json!({"program": "echo", "args": ["x", ".lodestar/state.db"]}),
        ),
        ("shell.run", json!({"program": "sh", "args": ["-c", "id"]})),
        (
            "git.commit",
            json!({"message": "m", "paths": [".git/hooks"]}),
        ),
    ] {
        let outcome = call(&session, tool, arguments.clone()).await;
        assert!(!returned(&outcome), "{tool} {arguments}: {outcome:?}");
    }
    let mention = json!({"path": "docs/a.md", "content": "see .lodestar", "create_dirs": true});
    assert!(returned(&call(&session, "fs.write", mention).await));
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_push_is_held_with_what_would_go_out_on_its_card() {
    let project = repository();
    let bare = tempfile::tempdir().unwrap();
    git(bare.path(), &["init", "-q", "--bare", "-b", "main"]);
    let config = format!(
        "{CONFIG}\n[tools.\"git.push\"]\nrepository = {{ root = \".\" }}\nurl = \"file://{}\"\nprotocols = [\"file\"]\nrefs = [{{ branch = \"main\", to = \"refs/heads/main\" }}]\n",
        bare.path().display()
    );
    let session = open(&project, &config).await;
    let reply = session
        .call("git.push", json!({"branch": "main"}))
        .await
        .unwrap();
    let refusal = reply.refusal().unwrap();
    assert!(
        matches!(refusal, Rejection::ApprovalRequired { .. }),
        "{refusal:?}"
    );
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    let request = &events
        .iter()
        .find(|(kind, _)| kind == "approval.requested@1")
        .unwrap()
        .1;
    let lines: Vec<_> = request["card"]["going_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    assert!(
        lines.iter().any(|line| line.starts_with("1 commits")),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("one (t)")),
        "{lines:?}"
    );
    let nothing = Command::new("git")
        .args(["rev-parse", "main"])
        .current_dir(bare.path())
        .output()
        .unwrap();
    assert!(!nothing.status.success(), "nothing arrived");
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_signed_policy_loads_and_an_edited_one_does_not() {
    let project = repository();
    let text = "@id(\"read\")\npermit(principal, action in Action::\"run\", resource == Tool::\"fs.read\");\n";
    let key = SecretKey::from_seed([5; 32]);
    let path = project.root.join("rules.cedar");
    let now = Clock::system().now();
    std::fs::write(&path, text).unwrap();
    let envelope =
        lodestar_policy::sign(text.as_bytes(), &key, Nonce::from_bytes([1; 16]), now, None)
            .unwrap();
    std::fs::write(lodestar_policy::signature_path(&path), envelope.to_json()).unwrap();
    let config = CONFIG.replace(
        "auto_approve_ceiling = 3",
        &format!(
            "policy = {{ file = \"rules.cedar\", keys = [\"{}\"] }}",
            key.public()
        ),
    );
    let session = open(&project, &config).await;
    assert!(returned(
        &call(&session, "fs.read", json!({"path": "note.ts"})).await
    ));
    let write = json!({"path": "a.md", "content": "x"});
    assert!(
        !returned(&call(&session, "fs.write", write).await),
        "nothing matched"
    );
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
    std::fs::write(&path, text.replace("fs.read", "fs.write")).unwrap();
    let edited = project.setup(&config, &[]).holds(Holds::Leave).open().await;
    assert!(
        matches!(edited, Err(OpenError::Policy { .. })),
        "{edited:?}"
    );
    std::fs::remove_file(lodestar_policy::signature_path(&path)).unwrap();
    let unsigned = project.setup(&config, &[]).holds(Holds::Leave).open().await;
    assert!(
        matches!(unsigned, Err(OpenError::Policy { .. })),
        "{unsigned:?}"
    );
}

#[test]
fn what_is_wrong_in_a_configuration_is_named_with_its_place() {
    let base = "project_id = \"p\"\nactor_id = \"a\"\n";
    for (text, expected) in [
        ("auto_approve_ceiling = 4\n", "a ceiling is 0 to 3, not 4"),
        ("auto_approve_ceiling = 5\n", "a ceiling is 0 to 3, not 5"),
        (
            "auto_aprove_ceiling = 3\n",
            "unknown field `auto_aprove_ceiling`",
        ),
        ("sentinels = [\"nobody\"]\n", "nobody"),
        ("[approvals]\nallow_unsigned = true\n", "never accepted"),
        ("[tools.\"fs.raed\"]\nroot = \".\"\n", "fs.raed"),
        ("[approvals.default]\nexpires = \"15x\"\n", "15x"),
    ] {
        let error = Config::parse(&format!("{base}{text}"), ".").unwrap_err();
        let said = error.to_string();
        assert!(said.contains(expected), "{text}: {said}");
        assert!(said.contains("line"), "{text}: {said}");
    }
    let two = "auto_approve_ceiling = 1\npolicy = { file = \"x\" }\n";
    let two = Config::parse(&format!("{base}{two}"), ".");
    assert!(matches!(two, Err(ConfigError::TwoPolicies)));
}

#[tokio::test]
async fn a_grade_for_a_tool_that_is_not_there_names_its_line() {
    let project = repository();
    let config = format!("{CONFIG}\n[tool_defaults.\"fs.raed\"]\nrequired_trust_level = \"L0\"\n");
    let path = project.root.join("lodestar.toml");
    std::fs::write(&path, config).unwrap();
    let config = Config::read(&path).unwrap();
    let setup = Setup::new(config, Keys::new(log_key())).holds(Holds::Leave);
    let error = setup.open().await.unwrap_err().to_string();
    assert!(error.starts_with("lodestar.toml:"), "{error}");
    assert!(error.contains("did you mean `fs.read`?"), "{error}");
}
