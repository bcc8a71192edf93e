//! Names that could be paths, sequences or floods are refused wherever one is taken.

use crate::world::{World, assert_inert};

fn hostile() -> Vec<String> {
    [
        "",
        "..",
        "../x",
        "../../etc/passwd",
        "/etc/passwd",
        "a/b",
        ".hidden",
        "a..b",
        "-x\u{0}".trim_end_matches('\0'),
        "a\nb",
        "\n",
        "a\rb",
        "a\x1b[31mb",
        "a\u{202e}b",
        "a b",
        "ä",
        "_ledger",
        "ledger.ndjson",
        "LEDGER.x",
        "a\u{200b}b",
        "*",
        "~",
        "$(id)",
        "a;b",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain(["x".repeat(129), "y".repeat(100_000)])
    .collect()
}

#[test]
fn hostile_ids_are_refused_everywhere_and_nothing_is_made() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    let before = files_below(&world);
    for name in hostile() {
        let n = name.as_str();
        let project = format!("--project={n}");
        let session = format!("--session={n}");
        let operator = format!("--operator={n}");
        let key_name = format!("--name={n}");
        for args in [
            vec!["log", "show", "--", n],
            vec!["log", "verify", "--", n],
            vec!["log", "export", "--", n],
            vec!["log", "prove", "1", &session],
            vec!["log", "redact", "--seq=1", "--reason=r", "--yes", "--", n],
            vec![
                "log",
                "redact",
                "--seq=1",
                "--reason=r",
                "--yes",
                &operator,
                "s-1",
            ],
            vec!["log", "list", &project],
            vec!["log", "show", "s-1", &project],
            vec!["log", "verify", &project],
            vec!["log", "anchor", &project],
            vec!["approve", "keygen", "--no-passphrase", &key_name],
        ] {
            // Names of operators are never beside the ledger, so the ledger's own are free there.
            let for_people = args.iter().any(|a| *a == operator || *a == key_name);
            if for_people && n.to_lowercase().starts_with("ledger.") {
                continue;
            }
            let run = world.run(&args).expect(2);
            assert_inert(&run.err);
            assert!(run.out.is_empty());
            assert!(run.err.len() < 2000, "{} bytes", run.err.len());
        }
    }
    assert_eq!(before, files_below(&world));
}

#[test]
fn a_name_is_judged_before_the_disk_is_looked_at() {
    let world = World::bare();
    world.run(&["log", "show", "../x"]).expect(2);
    world.run(&["log", "verify", "a/b"]).expect(2);
    world.run(&["log", "list", "--project", "a/b"]).expect(2);
    world.run(&["log", "list"]).expect(3);
}

#[test]
fn the_error_names_what_is_wrong_with_the_name() {
    let world = World::new();
    let error = world
        .run(&["log", "show", "a/b", "--json"])
        .expect(2)
        .error();
    assert_eq!(error["code"], "usage");
    insta::assert_snapshot!(error["message"].as_str().expect("text"));
    for (args, of) in [
        (&["log", "list", "--project", "a/b"][..], "project"),
        (&["approve", "keygen", "--name", "a/b"], "operator"),
        (&["log", "show", ""], "session"),
    ] {
        let run = world.run(args).expect(2);
        let begin = format!("error: the {of}'s name ");
        assert!(run.err.starts_with(&begin), "{}", run.err);
    }
}

#[test]
fn the_beginning_of_a_name_is_enough_where_one_session_begins_so() {
    let world = World::new();
    for session in ["alpha-1", "alpha-2", "beta", "beta-2"] {
        world.closed("web", session);
    }
    world.closed("api", "alpha-1");
    world.closed("api", "gamma");
    let shown = |args: &[&str]| {
        let mut all = vec!["log", "export"];
        all.extend(args);
        let events = world.run(&all).expect(0).ndjson();
        let of = |key: &str| events[0][key].as_str().expect("text").to_owned();
        (of("project"), of("session"))
    };
    let is = |project: &str, session: &str| (project.to_owned(), session.to_owned());
    assert_eq!(shown(&["g"]), is("api", "gamma"));
    assert_eq!(shown(&["alpha-2"]), is("web", "alpha-2"));
    // A whole id wins over being the beginning of another.
    assert_eq!(shown(&["beta"]), is("web", "beta"));
    assert_eq!(shown(&["alpha", "--project", "api"]), is("api", "alpha-1"));
    assert_eq!(shown(&["latest"]), is("api", "gamma"));
    assert_eq!(shown(&[]), is("api", "gamma"));
    assert_eq!(shown(&["latest", "--project", "web"]), is("web", "beta-2"));

    let run = world.run(&["log", "show", "alpha"]).expect(2);
    insta::assert_snapshot!("ambiguous", run.err);
    world.run(&["log", "show", "alpha-1"]).expect(2);
    let run = world.run(&["log", "show", "zeta"]).expect(3);
    insta::assert_snapshot!("unknown", run.err);
    let run = world.run(&["log", "show", "--project", "nope"]).expect(3);
    assert!(run.err.contains("projects here: api, web"), "{}", run.err);
}

#[test]
fn the_log_is_found_from_below_and_through_root() {
    let world = World::new();
    world.closed("web", "s-1");
    let below = world.path("work/a/b");
    std::fs::create_dir_all(&below).expect("created");
    let mut command = world.command(&["log", "list"]);
    let output = command.current_dir(&below).output().expect("started");
    assert!(output.status.success());
    let root = world.root();
    let root = root.to_str().expect("UTF-8");
    let elsewhere = world.path("config");
    for (root, code) in [
        (root, 0),
        ("/nonexistent", 3),
        (&format!("{root}/.lodestar"), 3),
    ] {
        let mut command = world.command(&["--root", root, "log", "list"]);
        let output = command.current_dir(&elsewhere).output().expect("started");
        assert_eq!(output.status.code(), Some(code), "{root}");
    }
}

fn files_below(world: &World) -> Vec<String> {
    fn walk(dir: &std::path::Path, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                walk(&path, out);
            }
            out.push(path.to_string_lossy().into_owned());
        }
    }
    let mut all = Vec::new();
    walk(&world.path("."), &mut all);
    all.sort();
    all
}
