use std::os::unix::fs::symlink;

use lodestar_core::ladder::Rung;
use lodestar_core::scope::Scope;
use serde_json::json;

use super::*;

struct Project {
    _dir: tempfile::TempDir,
    root: PathBuf,
    protected: Protected,
}

/// A project with Lodestar in it, a policy of its own name, and links that lead there.
fn project() -> Project {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("work");
    for folder in [".lodestar/log", ".git/hooks", "src", "docs/deep"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in [
        ".lodestar/state.db",
        ".git/config",
        "rules.cedar",
        "src/main.rs",
        "README.md",
    ] {
        std::fs::write(root.join(file), "x").unwrap();
    }
    symlink(".lodestar", root.join("innocent")).unwrap();
    symlink("../../.lodestar/state.db", root.join("docs/deep/notes.md")).unwrap();
    symlink(".lodestar/not-there-yet", root.join("new-file")).unwrap();
    std::fs::create_dir(root.join(".git/refs")).unwrap();
    symlink(".git/refs", root.join("refs")).unwrap();
    symlink(&root, dir.path().join("elsewhere")).unwrap();
    std::fs::hard_link(root.join("rules.cedar"), root.join("src/table.txt")).unwrap();
    let protected = Protected::new(&root, [PathBuf::from("rules.cedar")]);
    Project {
        root,
        protected,
        _dir: dir,
    }
}

fn contract(sandbox: Sandbox) -> Contract {
    let mut contract = Contract::ungraded(Scope::global());
    contract.required_level = Rung::L0;
    contract.sandbox = sandbox;
    contract
}

fn by_path(project: &Project, path: &str) -> Option<Reach> {
    let Value::Object(arguments) = json!({"path": path, "content": "hello"}) else {
        unreachable!()
    };
    let roles = BTreeMap::from([
        ("path".to_owned(), ArgumentRole::Path),
        ("content".to_owned(), ArgumentRole::Payload),
    ]);
    project.protected.reached_by(
        &arguments,
        &roles,
        &Value::Null,
        &contract(Sandbox::WriteLocal),
        &project.root,
    )
}

fn by_argv(project: &Project, args: &[&str]) -> Option<Reach> {
    let Value::Object(arguments) = json!({"program": "tar", "args": args}) else {
        unreachable!()
    };
    let roles = BTreeMap::from([("args".to_owned(), ArgumentRole::Argv)]);
    project.protected.reached_by(
        &arguments,
        &roles,
        &Value::Null,
        &contract(Sandbox::ControlledShell),
        &project.root,
    )
}

fn by_command(project: &Project, command: &str) -> Option<Reach> {
    let Value::Object(arguments) = json!({"command": command}) else {
        unreachable!()
    };
    project.protected.reached_by(
        &arguments,
        &BTreeMap::new(),
        &Value::Null,
        &contract(Sandbox::ControlledShell),
        &project.root,
    )
}

#[test]
fn every_spelling_of_a_path_to_lodestar_is_found() {
    let project = project();
    let root = project.root.display().to_string();
    let parent = project.root.parent().unwrap().display().to_string();
    let ways = [
        ".lodestar".to_owned(),
        ".lodestar/".to_owned(),
        ".lodestar/log/p/s/events.ndjson".to_owned(),
        "./.lodestar/state.db".to_owned(),
        "src/../.lodestar/state.db".to_owned(),
        "src/.././../work/.lodestar".to_owned(),
        ".//.lodestar///state.db".to_owned(),
        "docs/deep/../../.lodestar".to_owned(),
        format!("{root}/.lodestar/state.db"),
        format!("{root}/src/../.lodestar"),
        format!("/{root}/.lodestar"),
        format!("{parent}/elsewhere/.lodestar/state.db"),
        "innocent".to_owned(),
        "innocent/log".to_owned(),
        "docs/deep/notes.md".to_owned(),
        "new-file".to_owned(),
        ".LODESTAR/state.db".to_owned(),
        ".LodeStar".to_owned(),
        ".lodestar./state.db".to_owned(),
        "%2elodestar/state.db".to_owned(),
        "%2Elodestar%2fstate.db".to_owned(),
        "%252elodestar/state.db".to_owned(),
        format!("file://{root}/.lodestar/state.db"),
        format!("FILE:{root}/.lodestar"),
        "\".lodestar/state.db\"".to_owned(),
        " .lodestar/state.db ".to_owned(),
        ".\\.lodestar\\state.db".to_owned(),
        ".lode\\star/state.db".to_owned(),
        ".\u{ff4c}odestar".to_owned(),
        ".lode\u{200b}star".to_owned(),
        ".lode*/state.db".to_owned(),
        ".lodesta?".to_owned(),
        ".[l]odestar".to_owned(),
        "{.lodestar,src}/state.db".to_owned(),
        "./".repeat(2100) + ".git/hooks/pre-commit",
        "x/../".repeat(2000) + ".lodestar/evil",
        ".git".to_owned(),
        ".git/HEAD".to_owned(),
        ".git/commondir".to_owned(),
        ".git/modules/m/hooks/x".to_owned(),
        "sub/.git".to_owned(),
        ".claude".to_owned(),
        "refs/../hooks/pre-push".to_owned(),
        "/proc/self/cwd/x".to_owned(),
        "/proc/1/root/etc".to_owned(),
        "/dev/fd/3".to_owned(),
        ".l*/state.db".to_owned(),
        ".git/?ooks/x".to_owned(),
        "{a,.git}{/hooks,b}/x".to_owned(),
        "a\n/../.lodestar/state.db".to_owned(),
        "a b/../.lodestar/state.db".to_owned(),
        ".git/config".to_owned(),
        ".git/hooks/pre-commit".to_owned(),
        ".GIT/HOOKS/pre-push".to_owned(),
        ".mcp.json".to_owned(),
        ".cursor/mcp.json".to_owned(),
        ".vscode/mcp.json".to_owned(),
        ".claude/settings.json".to_owned(),
        ".claude/settings.local.json".to_owned(),
        "/etc/claude-code/managed-settings.json".to_owned(),
        ".cursor/hooks.json".to_owned(),
        ".codex/config.toml".to_owned(),
        ".codex/hooks.json".to_owned(),
        "~/.codex/hooks.json".to_owned(),
        ".codex/managed_config.toml".to_owned(),
        ".codex/requirements.toml".to_owned(),
        ".gemini/settings.json".to_owned(),
        ".gemini/trustedFolders.json".to_owned(),
        ".gemini/.env".to_owned(),
        "lodestar.toml".to_owned(),
        "rules.cedar".to_owned(),
        "./src/../rules.cedar".to_owned(),
        "src/table.txt".to_owned(),
    ];
    assert!(ways.len() >= 30);
    for way in &ways {
        assert!(by_path(&project, way).is_some(), "{way:?} was let through");
    }
}

#[test]
fn one_word_among_others_is_found() {
    let project = project();
    for args in [
        &["czf", "out.tgz", "src", ".lodestar"][..],
        &["--directory=.lodestar", "-x"],
        &["-C.lodestar"],
        &["if=.lodestar/state.db", "of=x"],
        &["README.md", "host:.lodestar/state.db"],
        &["-d", "@.lodestar/state.db"],
        &["src,.git/hooks"],
        &["--", "src/../.git/config"],
    ] {
        assert!(
            by_argv(&project, args).is_some(),
            "{args:?} was let through"
        );
    }
}

#[test]
fn a_command_line_is_taken_apart() {
    let project = project();
    for command in [
        "cat .lodestar/state.db",
        "ls;cat<.lodestar/state.db",
        "echo x>.git/hooks/pre-commit",
        "cat \".lodestar\"/state.db",
        "cat .lode\"star\"/state.db",
        "cat .lode''star/state.db",
        "cat .lode\\star/state.db",
        "cd src && rm -rf ../.lodestar",
        "cat $(echo .lodestar/state.db)",
        "grep -r key .lode*",
    ] {
        assert!(
            by_command(&project, command).is_some(),
            "{command:?} was let through"
        );
    }
}

#[test]
fn what_lies_elsewhere_and_what_only_mentions_is_let_through() {
    let project = project();
    for path in [
        "src/main.rs",
        "README.md",
        "docs/lodestar.md",
        "lodestar",
        ".lodestarx",
        "x.lodestar",
        ".gitignore",
        "src/config",
        "hooks/pre-commit",
        "notes about .lodestar and .git/config.txt",
        "*",
        "src/*.rs",
    ] {
        assert_eq!(by_path(&project, path), None, "{path:?} was stopped");
    }
    let Value::Object(arguments) = json!({
        "path": "docs/security.md",
        "content": ".lodestar/state.db",
        "message": "delete .lodestar, then edit .git/config",
    }) else {
        unreachable!()
    };
    let roles = BTreeMap::from([
        ("path".to_owned(), ArgumentRole::Path),
        ("content".to_owned(), ArgumentRole::Payload),
        ("message".to_owned(), ArgumentRole::Payload),
    ]);
    let contract = contract(Sandbox::WriteLocal);
    let reached =
        project
            .protected
            .reached_by(&arguments, &roles, &Value::Null, &contract, &project.root);
    assert_eq!(reached, None);
    assert_eq!(by_argv(&project, &["test", "--workspace", "src"]), None);
    assert_eq!(by_command(&project, "cargo test -p x -- --nocapture"), None);
}

#[test]
fn a_folder_among_the_arguments_is_where_others_may_start() {
    let project = project();
    std::fs::create_dir_all(project.root.join("a/b")).unwrap();
    let Value::Object(arguments) = json!({"cwd": "a/b", "path": "../../rules.cedar"}) else {
        unreachable!()
    };
    let roles = BTreeMap::new();
    let contract = contract(Sandbox::WriteLocal);
    let reached =
        project
            .protected
            .reached_by(&arguments, &roles, &Value::Null, &contract, &project.root);
    assert!(reached.is_some());
}

#[test]
fn an_argument_without_a_role_is_a_path_or_a_mention_by_what_it_is() {
    let project = project();
    let reached = |value: Value| {
        let Value::Object(arguments) = json!({"value": value}) else {
            unreachable!()
        };
        let contract = contract(Sandbox::WriteLocal);
        project
            .protected
            .reached_by(
                &arguments,
                &BTreeMap::new(),
                &Value::Null,
                &contract,
                &project.root,
            )
            .is_some()
    };
    std::fs::create_dir(project.root.join("my folder")).unwrap();
    assert!(reached(json!(".lodestar/state.db")));
    assert!(reached(json!({".lodestar/state.db": "x"})));
    assert!(reached(json!([[{"a": ["innocent"]}]])));
    assert!(reached(json!("my folder/../.lodestar")));
    assert!(!reached(json!(
        "please look at docs/.lodestar/notes and tell me"
    )));
    assert!(!reached(json!("first line\nsecond/.git/config/line\n")));
}

#[test]
fn long_and_strange_texts_cost_little_and_open_nothing() {
    let project = project();
    for text in [
        "x".repeat(1 << 20),
        "%2e".repeat(1000),
        "{".repeat(3000),
        "*".repeat(4000),
        "../".repeat(1200) + ".lodestar",
        "\0.lodestar".to_owned(),
    ] {
        by_path(&project, &text);
    }
    let deep = "../".repeat(1200) + &project.root.display().to_string()[1..] + "/.lodestar";
    assert!(by_path(&project, &deep).is_some());
}

#[test]
fn what_only_reads_may_look_into_git_and_no_further() {
    let project = project();
    let reached = |path: &str| {
        let Value::Object(arguments) = json!({"path": path}) else {
            unreachable!()
        };
        let roles = BTreeMap::from([("path".to_owned(), ArgumentRole::Path)]);
        let contract = contract(Sandbox::Read);
        project
            .protected
            .reached_by(&arguments, &roles, &Value::Null, &contract, &project.root)
            .is_some()
    };
    assert!(!reached(".git/HEAD"));
    assert!(reached(".git/config"));
    assert!(reached(".git/hooks/pre-push"));
}

#[test]
fn a_tool_with_a_root_of_its_own_is_judged_from_there() {
    let project = project();
    let roles = BTreeMap::from([("path".to_owned(), ArgumentRole::Path)]);
    let reached = |path: &str, base: &Path| {
        let Value::Object(arguments) = json!({"path": path}) else {
            unreachable!()
        };
        let contract = contract(Sandbox::WriteLocal);
        project
            .protected
            .reached_by(&arguments, &roles, &Value::Null, &contract, base)
            .is_some()
    };
    let above = project.root.parent().unwrap().to_owned();
    assert!(reached("work/rules.cedar", &above));
    assert!(reached("../rules.cedar", &project.root.join("src")));
    assert!(!reached("other/rules.txt", &above));
}

#[test]
fn links_into_a_process_and_paths_with_blanks_lead_there_too() {
    let project = project();
    symlink("/proc/self/cwd/known.txt", project.root.join("report")).unwrap();
    symlink("/dev/fd/3", project.root.join("pipe")).unwrap();
    for word in ["report", "pipe", "src/../report"] {
        assert!(by_argv(&project, &[word]).is_some(), "{word}");
    }
    let root = project.root.display();
    let reached = |text: &str| {
        let Value::Object(arguments) = json!({"destination": text, "other": "x"}) else {
            unreachable!()
        };
        let contract = contract(Sandbox::WriteLocal);
        let (roles, schema) = (BTreeMap::new(), Value::Null);
        project
            .protected
            .reached_by(&arguments, &roles, &schema, &contract, &project.root)
            .is_some()
    };
    for text in [
        "a b/../.git/hooks/pre-push".to_owned(),
        format!("{root}/a b/../.lodestar/state.db"),
        ".lodestar/new file".to_owned(),
    ] {
        assert!(reached(&text), "{text}");
    }
    for text in ["see docs/.git/config", "a b/c d", "the .lodestar folder"] {
        assert!(!reached(text), "{text}");
    }
    // More than can be looked at is not let through unseen.
    let Value::Object(arguments) = json!({"paths": vec!["docs"; 200_000]}) else {
        unreachable!()
    };
    let contract = contract(Sandbox::WriteLocal);
    let none = (BTreeMap::new(), Value::Null);
    let protected = &project.protected;
    let reach = protected.reached_by(&arguments, &none.0, &none.1, &contract, &project.root);
    assert!(reach.is_some());
}
