use super::*;
use crate::native::fs::tests::text;
use crate::native::git::repository::limit;

#[test]
fn head_and_status_follow_the_repository() {
    let world = World::new();
    let repository = world.repository();
    assert_eq!(
        repository.head().unwrap(),
        world.git(&["rev-parse", "HEAD"])
    );
    assert!(repository.is_clean().unwrap());
    let clean = repository.status_digest().unwrap();

    world.write("new.txt", "x");
    assert!(!repository.is_clean().unwrap());
    let untracked = repository.status_digest().unwrap();
    world.git(&["add", "new.txt"]);
    let staged = repository.status_digest().unwrap();
    assert!(clean != untracked && untracked != staged);
    assert_eq!(text(&world.status().unwrap()), "## main\nA  new.txt\n");
    world.git(&["commit", "-q", "-m", "x"]);
    assert_eq!(repository.status_digest().unwrap(), clean);
}

#[test]
fn ignored_files_do_not_count() {
    let world = World::new();
    world.write(".gitignore", "*.log\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "ignore"]);
    fs::write(world.root.join(".git/info/exclude"), "*.tmp\n").unwrap();
    world.write("x.log", "x");
    world.write("x.tmp", "x");
    assert!(world.repository().is_clean().unwrap());
}

#[test]
fn a_repository_without_commits_is_unborn() {
    let world = World::new();
    let root = world.at("fresh");
    world.git(&["init", "-q", root.to_str().unwrap()]);
    assert_eq!(Repository::open(&root).unwrap().head().unwrap(), UNBORN);
}

#[test]
fn a_linked_worktree_works_when_the_operator_names_its_repository() {
    let world = World::new();
    let linked = world.at("linked");
    world.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    assert!(matches!(
        Repository::open(&linked),
        Err(GitError::Elsewhere { .. })
    ));
    let config = GitConfig {
        git_dir: Some(world.root.join(".git/worktrees/linked")),
        ..GitConfig::new(&linked)
    };
    let repository = Repository::with(config.clone()).unwrap();
    assert_eq!(
        repository.head().unwrap(),
        world.git(&["rev-parse", "side"])
    );
    fs::write(linked.join("a.txt"), "side\n").unwrap();
    let author = Person {
        name: "A".into(),
        email: "a@b".into(),
    };
    let tool = GitCommit::new(
        GitCommitConfig {
            repository: config,
            author,
        },
        Scope::default(),
    )
    .unwrap();
    let output = run(&tool, json!({ "message": "side", "paths": ["a.txt"] })).unwrap();
    assert_eq!(value(&output)["branch"], "side");
    assert_eq!(value(&output)["commit"], world.git(&["rev-parse", "side"]));
    assert!(repository.is_clean().unwrap() && world.repository().is_clean().unwrap());
}

#[test]
fn a_repository_with_longer_names_of_objects_works() {
    let world = World::new();
    fs::remove_dir_all(world.root.join(".git")).unwrap();
    world.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    world.commit_all().unwrap();
    assert_eq!(world.repository().head().unwrap().len(), 64);
    let outgoing = world.repository().outgoing(None, "HEAD").unwrap();
    assert_eq!(outgoing.files_total, 1);
}

#[test]
fn the_address_of_a_push_is_the_one_that_git_would_use() {
    let world = World::new();
    let repository = world.repository();
    let url = || repository.remote_url("origin").unwrap();
    assert_eq!(url(), None);
    world.git(&["remote", "add", "origin", "https://good.example/repo"]);
    assert_eq!(url().unwrap(), "https://good.example/repo");
    world.git(&[
        "config",
        "url.https://evil.example/.insteadOf",
        "https://good.example/",
    ]);
    assert_eq!(url().unwrap(), "https://evil.example/repo");
    world.git(&[
        "config",
        "url.https://worse.example/.pushInsteadOf",
        "https://good.example/",
    ]);
    assert_eq!(url().unwrap(), "https://worse.example/repo");
    world.git(&[
        "config",
        "remote.origin.pushurl",
        "https://pushed.example/repo",
    ]);
    assert_eq!(url().unwrap(), "https://pushed.example/repo");
    world.git(&[
        "config",
        "--add",
        "remote.origin.pushurl",
        "https://too.example/repo",
    ]);
    assert_eq!(
        url().unwrap(),
        "https://pushed.example/repo\nhttps://too.example/repo"
    );
    let plain = world.git(&["remote", "get-url", "--push", "--all", "origin"]);
    assert_eq!(url().unwrap(), plain);
    fs::write(
        world.at("included"),
        "[remote \"origin\"]\n\tpushurl = https://included.example/\n",
    )
    .unwrap();
    world.git(&[
        "config",
        "include.path",
        world.at("included").to_str().unwrap(),
    ]);
    assert!(url().unwrap().contains("included.example"));
    world.git(&["config", "remote.origin.vcs", "ext"]);
    assert!(url().unwrap().starts_with("ext::"));
    for name in ["", "--all", "a b", "a\nb"] {
        assert!(matches!(
            repository.remote_url(name),
            Err(GitError::Name { .. })
        ));
    }
}

#[test]
fn what_would_go_out_is_counted_whole_and_listed_up_to_a_limit() {
    let world = World::new();
    for n in 0..3 {
        world.write(&format!("dir/{n} é.txt"), "a\nb\n");
        world.git(&["add", "-A"]);
        world.git(&["commit", "-q", "-m", &format!("commit {n}\n\nmore words")]);
    }
    fs::write(world.root.join("bin"), [0, 1, 2]).unwrap();
    world.write("a.txt", "");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "last"]);
    let repository = world.repository();
    let outgoing = repository.outgoing(Some("HEAD~4"), "HEAD").unwrap();
    let subjects: Vec<&str> = outgoing
        .commits
        .iter()
        .map(|c| c.subject.as_str())
        .collect();
    assert_eq!(subjects, ["last", "commit 2", "commit 1", "commit 0"]);
    assert_eq!(outgoing.commits[0].id, repository.head().unwrap());
    assert_eq!(outgoing.commits[0].email, "test@example.org");
    assert_eq!((outgoing.added, outgoing.removed), (6, 1));
    assert_eq!(outgoing.files_total, 5);
    let binary = outgoing
        .files
        .iter()
        .find(|file| file.path == "bin")
        .unwrap();
    assert_eq!(binary.lines, None);
    assert!(outgoing.files.iter().any(|file| file.path == "dir/0 é.txt"));
    let all = repository.outgoing(None, "main").unwrap();
    assert_eq!((all.commits_total, all.files_total), (5, 5));
    assert_eq!(
        repository.outgoing(Some("HEAD"), "HEAD").unwrap(),
        Outgoing::default()
    );
    for (from, to) in [(None, "missing"), (Some("missing"), "HEAD")] {
        assert!(matches!(
            repository.outgoing(from, to),
            Err(GitError::NoCommit { .. })
        ));
    }
    for to in ["", "-p", "--output=x", "HEAD HEAD"] {
        assert!(matches!(
            repository.outgoing(None, to),
            Err(GitError::Name { .. })
        ));
    }
}

#[test]
fn nothing_is_left_of_the_private_directories() {
    let world = World::new();
    let desk = world.repository();
    let path = {
        let desk = desk.desk(&limit()).unwrap();
        let path = desk.private.path().to_owned();
        assert!(path.exists());
        path
    };
    assert!(!path.exists());
}
