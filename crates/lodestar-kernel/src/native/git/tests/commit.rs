use super::*;
use crate::tool::{Effect, ToolErrorKind};

#[test]
fn exactly_the_named_paths_are_committed_by_the_configured_author() {
    let world = World::new();
    world.write("a.txt", "two\n");
    world.write("b.txt", "staged by somebody\n");
    world.write("dir/c.txt", "new\n");
    world.git(&["add", "b.txt"]);
    let message = "Say why\n\n# not a comment\n  -- as it is  \n";
    let output = world
        .commit(json!({ "message": message, "paths": ["a.txt", "./dir"] }))
        .unwrap();
    assert_eq!(value(&output)["commit"], world.git(&["rev-parse", "HEAD"]));
    assert_eq!(value(&output)["branch"], "main");
    let names = world.git(&[
        "show",
        "--name-only",
        "--format=%an <%ae> %cn <%ce>",
        "HEAD",
    ]);
    let who = "Agent Smith <agent@example.org>";
    assert_eq!(names, format!("{who} {who}\n\na.txt\ndir/c.txt"));
    assert_eq!(world.git(&["status", "--porcelain"]), "A  b.txt");
    let raw = world.plain(&["log", "-1", "--format=%B"]).stdout;
    assert_eq!(
        String::from_utf8(raw).unwrap().trim_end_matches('\n'),
        message.trim_end_matches('\n')
    );
    assert!(world.git(&["reflog", "-1"]).contains("Say why"));
    world.git(&["fsck", "--strict"]);
}

#[test]
fn deletions_and_first_commits_work() {
    let world = World::new();
    fs::remove_file(world.root.join("a.txt")).unwrap();
    world
        .commit(json!({ "message": "gone", "paths": ["a.txt"] }))
        .unwrap();
    assert_eq!(world.git(&["ls-files"]), "");
    fs::remove_dir_all(world.root.join(".git")).unwrap();
    world.git(&["init", "-q", "-b", "main"]);
    world.write("a.txt", "again\n");
    world.commit_all().unwrap();
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "1");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn nothing_to_commit_is_refused_without_effect() {
    let world = World::new();
    let head = world.git(&["rev-parse", "HEAD"]);
    for paths in [json!(["."]), json!(["a.txt"]), json!(["missing"])] {
        let error = world
            .commit(json!({ "message": "x", "paths": paths }))
            .unwrap_err();
        assert_eq!(
            (error.kind, error.effect),
            (ToolErrorKind::Refused, Effect::None)
        );
    }
    assert_eq!(world.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn paths_and_messages_that_mean_something_else_to_git_are_refused_or_taken_as_they_are() {
    let world = World::new();
    world.write("a.txt", "two\n");
    world.write(":(top)x", "odd\n");
    world.write("-f", "odd\n");
    world.write("*", "odd\n");
    for paths in [
        json!([]),
        json!("a.txt"),
        json!([1]),
        json!([""]),
        json!([".."]),
        json!(["../beside"]),
        json!(["/etc/passwd"]),
        json!([".git/config"]),
        json!(["sub/.GIT/hooks"]),
        json!(["a\0b"]),
    ] {
        let error = world
            .commit(json!({ "message": "x", "paths": paths }))
            .unwrap_err();
        assert_eq!(error.effect, Effect::None, "{error}");
    }
    for message in ["", " \n", "a\0b", &"x".repeat(70_000)] {
        let error = world
            .commit(json!({ "message": message, "paths": ["a.txt"] }))
            .unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    }
    let odd = json!([":(top)x", "-f", "*"]);
    world
        .commit(json!({ "message": "--amend", "paths": odd }))
        .unwrap();
    let names = world.git(&["show", "--name-only", "--format=%s", "HEAD"]);
    assert_eq!(names, "--amend\n\n*\n-f\n:(top)x");
    assert_eq!(world.git(&["status", "--porcelain"]), "M a.txt");
}

#[test]
fn a_commit_stays_out_of_what_is_under_way() {
    let world = World::new();
    world.git(&["checkout", "-q", "-b", "side"]);
    world.write("a.txt", "side\n");
    world.git(&["commit", "-q", "-a", "-m", "side"]);
    world.git(&["checkout", "-q", "main"]);
    world.write("a.txt", "main\n");
    world.git(&["commit", "-q", "-a", "-m", "main"]);
    world.plain(&["merge", "side"]);
    let error = world.commit_all().unwrap_err();
    assert!(error.to_string().contains("MERGE_HEAD"), "{error}");
    world.git(&["merge", "--abort"]);
    world.git(&["checkout", "-q", "--detach"]);
    world.write("a.txt", "more\n");
    let error = world.commit_all().unwrap_err();
    assert!(error.to_string().contains("no branch"), "{error}");
}

#[test]
fn a_path_behind_a_link_is_not_committed() {
    let world = World::new();
    let beside = world.at("beside");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(&beside, world.root.join("link")).unwrap();
    world
        .commit(json!({ "message": "x", "paths": ["link/secret"] }))
        .unwrap_err();
    world
        .commit(json!({ "message": "x", "paths": ["link"] }))
        .unwrap();
    let kind = world.git(&["ls-tree", "HEAD", "link"]);
    assert!(kind.starts_with("120000"), "{kind}");
}

#[test]
fn an_author_that_would_break_a_commit_is_refused() {
    let world = World::new();
    for (name, email) in [("", "a@b"), ("A\nB", "a@b"), ("A", "a>b"), ("A", " ")] {
        let config = GitCommitConfig {
            repository: world.config(),
            author: Person {
                name: name.into(),
                email: email.into(),
            },
        };
        assert!(matches!(
            GitCommit::new(config, Scope::default()),
            Err(GitError::Person { .. })
        ));
    }
}
