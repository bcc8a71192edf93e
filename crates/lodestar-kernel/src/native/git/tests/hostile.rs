//! Each thing in a repository by which git can be made to run something, with a canary.

use super::*;
use crate::native::fs::tests::text;

/// Everything that the tools and the kernel ask git to do.
fn use_everything(world: &World) {
    world.write("a.txt", "two\n");
    world.write("new.txt", "new\n");
    let status = world.status().unwrap();
    assert!(text(&status).contains(" M a.txt") && text(&status).contains("?? new.txt"));
    let repository = world.repository();
    repository.is_clean().unwrap();
    repository.status_digest().unwrap();
    // Some of the settings break it; none may run anything.
    let _ = repository.remote_url("origin");
    world.commit_all().unwrap();
    let outgoing = repository.outgoing(Some("HEAD~1"), "HEAD").unwrap();
    assert_eq!((outgoing.commits_total, outgoing.files_total), (1, 2));
    world.push().unwrap();
    let head = repository.head().unwrap();
    assert_eq!(world.remote_head("remote.git"), Some(head));
    assert_eq!(world.remote_head("elsewhere.git"), None);
}

/// What a person would type, which obeys the configuration.
fn use_plainly(world: &World) {
    world.write("a.txt", "three\n");
    world.plain(&["status"]);
    world.plain(&["diff"]);
    world.plain(&["add", "-A"]);
    world.plain(&["commit", "-m", "third"]);
    world.plain(&["log", "-p", "-1"]);
    world.plain(&["push", "origin", "main"]);
}

/// Whether the canary is known to sing when git obeys: a test of the test.
#[derive(Clone, Copy, PartialEq)]
enum Plainly {
    Sings,
    /// Git needs more for it than a plain session has: a terminal, an `ssh`, a conflict.
    Perhaps,
}

#[test]
fn matrix_no_setting_of_the_repository_runs_anything_or_changes_where_things_go() {
    use Plainly::{Perhaps, Sings};
    let settings: &[(&str, &str, Plainly)] = &[
        ("core.fsmonitor", "{canary}", Sings),
        ("core.sshCommand", "{canary}", Perhaps),
        ("core.gitProxy", "{canary}", Perhaps),
        ("core.pager", "{canary}", Perhaps),
        ("core.editor", "{canary}", Perhaps),
        ("core.askPass", "{canary}", Perhaps),
        ("core.alternateRefsCommand", "{canary}", Perhaps),
        ("core.worktree", "{elsewhere}", Perhaps),
        ("core.hooksPath", "{hooks}", Sings),
        ("core.attributesFile", "{attributes}", Perhaps),
        ("core.bare", "true", Perhaps),
        ("core.repositoryFormatVersion", "0", Perhaps),
        ("diff.external", "{canary}", Sings),
        ("diff.evil.command", "{canary}", Sings),
        ("diff.evil.textconv", "{canary}", Sings),
        ("merge.evil.driver", "{canary}", Perhaps),
        ("alias.status", "!{canary}", Perhaps),
        ("alias.push", "!{canary}", Perhaps),
        ("pager.status", "{canary}", Perhaps),
        ("credential.helper", "!{canary}", Perhaps),
        ("gpg.program", "{canary}", Sings),
        ("gpg.ssh.program", "{canary}", Perhaps),
        ("log.showSignature", "true", Perhaps),
        ("include.path", "{included}", Sings),
        ("includeIf.gitdir:**.path", "{included}", Perhaps),
        ("remote.origin.pushurl", "{elsewhere}", Perhaps),
        ("remote.origin.receivepack", "{canary}", Sings),
        ("remote.origin.vcs", "evil", Perhaps),
        ("remote.origin.proxy", "http://127.0.0.1:1", Perhaps),
        ("url.{elsewhere}.insteadOf", "{remote}", Perhaps),
        ("url.{elsewhere}.pushInsteadOf", "file://", Perhaps),
        ("url.ext::{canary} .insteadOf", "file://", Perhaps),
        ("url.ext::{canary} %S.pushInsteadOf", "{remote}", Perhaps),
        ("protocol.ext.allow", "always", Perhaps),
        ("push.gpgSign", "true", Perhaps),
        ("push.recurseSubmodules", "on-demand", Perhaps),
        ("submodule.recurse", "true", Perhaps),
        ("submodule.evil.update", "!{canary}", Perhaps),
        ("commit.template", "{canary}", Perhaps),
        ("trailer.evil.command", "{canary}", Perhaps),
        ("gc.recentObjectsHook", "{canary}", Perhaps),
        ("uploadpack.packObjectsHook", "{canary}", Perhaps),
        ("receive.procReceiveRefs", "refs", Perhaps),
        ("sequence.editor", "{canary}", Perhaps),
        ("interactive.diffFilter", "{canary}", Perhaps),
        ("tar.evil.command", "{canary}", Perhaps),
        ("http.proxy", "http://127.0.0.1:1", Perhaps),
        ("safe.directory", "*", Perhaps),
        ("extensions.partialClone", "origin", Perhaps),
        ("i18n.commitEncoding", "utf-16", Perhaps),
    ];
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let (mut sung_plainly, mut tried) = (0, 0);
    for (key, value, plainly) in settings {
        let world = World::new();
        let canary = world.canary("setting");
        fs::create_dir(world.at("hooks")).unwrap();
        fs::copy(&canary, world.at("hooks/pre-commit")).unwrap();
        fs::write(
            world.at("included"),
            format!("[core]\n\tfsmonitor = {canary}\n"),
        )
        .unwrap();
        fs::write(world.at("attributes"), "* diff=evil merge=evil\n").unwrap();
        world.write(".gitattributes", "*.txt diff=evil merge=evil\n");
        let remote = format!("file://{}", world.at("remote.git").display());
        world.git(&["remote", "add", "origin", &remote]);
        world.git(&["add", ".gitattributes"]);
        world.git(&["commit", "-q", "-m", "attributes"]);
        if key.starts_with("gpg") || *key == "log.showSignature" {
            world.git(&["config", "commit.gpgSign", "true"]);
            world.git(&["config", "gpg.program", &canary]);
        }
        if key.starts_with("url.ext") {
            world.git(&["config", "protocol.ext.allow", "always"]);
        }
        let elsewhere = world.at("elsewhere.git");
        let fill = |text: &str| {
            text.replace("{canary}", &canary)
                .replace("{elsewhere}", elsewhere.to_str().unwrap())
                .replace("{hooks}", world.at("hooks").to_str().unwrap())
                .replace("{attributes}", world.at("attributes").to_str().unwrap())
                .replace("{included}", world.at("included").to_str().unwrap())
                .replace("{remote}", &remote)
        };
        world.git(&["config", &fill(key), &fill(value)]);
        world.sung();
        use_everything(&world);
        assert_eq!(world.sung(), [""; 0], "{key} was obeyed");
        tried += 1;
        if *plainly == Perhaps && !full {
            continue;
        }
        use_plainly(&world);
        let sings = !world.sung().is_empty();
        sung_plainly += usize::from(sings);
        assert!(sings || *plainly == Perhaps, "{key} should sing plainly");
    }
    println!("{tried} settings, none obeyed; plain git obeyed {sung_plainly} canaries");
}

#[test]
fn no_hook_runs() {
    let hooks = [
        "applypatch-msg",
        "commit-msg",
        "fsmonitor-watchman",
        "post-checkout",
        "post-commit",
        "post-index-change",
        "post-rewrite",
        "pre-auto-gc",
        "pre-commit",
        "pre-merge-commit",
        "pre-push",
        "prepare-commit-msg",
        "reference-transaction",
    ];
    let world = World::new();
    let remote = format!("file://{}", world.at("remote.git").display());
    world.git(&["remote", "add", "origin", &remote]);
    for hook in hooks {
        let canary = world.canary(hook);
        let path = world.root.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(canary, &path).unwrap();
        make_executable(&path);
    }
    use_everything(&world);
    assert_eq!(world.sung(), [""; 0]);
    use_plainly(&world);
    let sung = world.sung();
    for hook in [
        "pre-commit",
        "post-commit",
        "pre-push",
        "reference-transaction",
    ] {
        assert!(sung.iter().any(|name| name == hook), "{hook}: {sung:?}");
    }
}

#[test]
fn no_filter_runs_and_a_path_with_one_is_not_committed() {
    for (driver, sings) in [("clean", true), ("process", true), ("smudge", false)] {
        let world = World::new();
        let canary = world.canary(driver);
        world.git(&["config", &format!("filter.evil.{driver}"), &canary]);
        world.git(&["config", "filter.evil.required", "true"]);
        world.write(".gitattributes", "*.txt filter=evil\n");
        world.write("a.txt", "two\n");
        world.status().unwrap();
        world.repository().status_digest().unwrap();
        let error = world.commit_all().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`a.txt` goes through the filter `evil`, which is not run here; commit it by hand"
        );
        world
            .commit(json!({ "message": "x", "paths": [".gitattributes"] }))
            .unwrap();
        world.push().unwrap();
        assert_eq!(world.sung(), [""; 0], "{driver}");
        use_plainly(&world);
        assert_eq!(!world.sung().is_empty(), sings, "{driver}");
    }
}

#[test]
fn configuration_of_a_single_working_tree_is_not_obeyed_either() {
    let world = World::new();
    let canary = world.canary("worktree");
    world.git(&["config", "extensions.worktreeConfig", "true"]);
    world.git(&["config", "--worktree", "core.fsmonitor", &canary]);
    world.sung();
    use_everything(&world);
    assert_eq!(world.sung(), [""; 0]);
    world.plain(&["status"]);
    assert_eq!(world.sung(), ["worktree"]);
}

#[test]
fn what_lies_in_a_submodule_is_not_obeyed() {
    let world = World::new();
    let canary = world.canary("submodule");
    world.git(&["init", "-q", "-b", "main", "sub"]);
    world.write("sub/file", "x");
    world.git(&["-C", "sub", "add", "-A"]);
    world.git(&["-C", "sub", "commit", "-q", "-m", "sub"]);
    world.write(
        ".gitmodules",
        "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n",
    );
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "with a submodule"]);
    world.git(&["-C", "sub", "config", "core.fsmonitor", &canary]);
    world.write("sub/file", "changed");
    world.sung();
    use_everything(&world);
    assert_eq!(world.sung(), [""; 0]);
    world.plain(&["status"]);
    assert_eq!(world.sung(), ["submodule"]);
}

#[test]
fn a_repository_that_leads_elsewhere_is_refused() {
    let world = World::new();
    let other = World::new();
    let moved = world.at("moved");
    fs::rename(world.root.join(".git"), &moved).unwrap();
    let refused = || Repository::open(&world.root).unwrap_err();

    assert!(matches!(refused(), GitError::NotARepository { .. }));
    let dot_git = world.root.join(".git");
    let to = other.root.join(".git");
    fs::write(&dot_git, format!("gitdir: {}\n", to.display())).unwrap();
    assert!(matches!(refused(), GitError::Elsewhere { .. }));
    let pinned = |to: &Path| {
        Repository::with(GitConfig {
            git_dir: Some(to.to_owned()),
            ..world.config()
        })
    };
    pinned(&to).unwrap();
    pinned(&moved).unwrap_err();
    fs::remove_file(&dot_git).unwrap();
    std::os::unix::fs::symlink(&moved, &dot_git).unwrap();
    assert!(matches!(refused(), GitError::Odd { .. }));
    fs::remove_file(&dot_git).unwrap();
    fs::rename(&moved, &dot_git).unwrap();
    world.repository().head().unwrap();

    for part in ["objects", "refs", "HEAD", "index"] {
        let (part, aside) = (dot_git.join(part), world.at("aside"));
        fs::rename(&part, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &part).unwrap();
        assert!(matches!(refused(), GitError::Odd { .. }), "{part:?}");
        fs::remove_file(&part).unwrap();
        fs::rename(&aside, &part).unwrap();
    }
    fs::write(dot_git.join("commondir"), "/tmp\n").unwrap();
    assert!(matches!(refused(), GitError::Odd { .. }));
}

#[test]
fn a_commit_does_not_write_through_links_in_the_repository() {
    for part in ["refs/heads/main", "logs/refs/heads/main", "logs/HEAD"] {
        let world = World::new();
        let path = world.root.join(".git").join(part);
        let aside = world.at("aside");
        fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        let before = fs::read(&aside).unwrap();
        world.write("a.txt", "two\n");
        let error = world.commit_all().unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert_eq!(fs::read(&aside).unwrap(), before);
    }
}

#[test]
fn a_configuration_that_is_no_file_or_no_configuration_hangs_nobody() {
    let world = World::new();
    let path = world.root.join(".git/config");
    fs::write(&path, "[core\nbroken").unwrap();
    world.repository().head().unwrap_err();
    fs::remove_file(&path).unwrap();
    let directory = fs::File::open(world.root.join(".git")).unwrap();
    rustix::fs::mkfifoat(&directory, "config", rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    assert!(matches!(
        world.repository().head().unwrap_err(),
        GitError::Odd { .. }
    ));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "x".repeat(2_000_000)).unwrap();
    assert!(matches!(
        world.repository().head().unwrap_err(),
        GitError::Odd { .. }
    ));
}
