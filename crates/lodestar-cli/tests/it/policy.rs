//! `lodestar policy show`, `check` and `test`.

use std::fs;

use serde_json::Value;

use crate::gated::{CONFIG, configure, project};
use crate::world::{HOSTILE, World, assert_inert};

#[test]
fn a_preset_is_shown_as_cedar_text() {
    let world = World::bare();
    let run = world.run(&["policy", "show", "--ceiling", "2"]).expect(0);
    insta::assert_snapshot!(world.stable(&run.out));
    assert!(run.err.is_empty(), "{}", run.err);
    let report = world.run(&["policy", "show", "--json"]).expect(0).json();
    assert_eq!(report["signature"]["state"], "preset");
    assert!(run.out.starts_with(report["text"].as_str().expect("text")));
    // What is shown checks.
    let shown = world.write("work/shown.cedar", &run.out);
    let shown = shown.to_str().expect("UTF-8");
    world.run(&["policy", "check", shown, "--strict"]).expect(0);
}

#[test]
fn the_policy_in_force_is_the_configurations() {
    let world = project();
    let of = |args: &[&str]| world.run(args).expect(0).json()["text"].to_string();
    let two = of(&["policy", "show", "--ceiling", "2", "--json"]);
    assert_eq!(of(&["policy", "show", "--json"]), two);
    assert_eq!(
        of(&["policy", "show", "--config", "lodestar.toml", "--json"]),
        two
    );
    assert_ne!(of(&["policy", "show", "--ceiling", "3", "--json"]), two);
    configure(
        &world,
        "s",
        "[policy]\nfile = \"own.cedar\"\nallow_unsigned = true",
    );
    world.write(
        "work/own.cedar",
        "permit (principal, action, resource); // \u{202e}\n",
    );
    let run = world.run(&["policy", "show"]).expect(0);
    assert_inert(&run.out);
    assert!(run.out.contains("nobody signed it"), "{}", run.out);
    assert!(run.out.contains("own.cedar"), "{}", run.out);
}

#[test]
fn a_ceiling_of_four_is_refused_with_its_line() {
    let world = World::bare();
    world.write(
        "work/lodestar.toml",
        &CONFIG.replace("ceiling = 2", "ceiling = 4"),
    );
    let run = world.run(&["policy", "show"]).expect(2);
    insta::assert_snapshot!(world.stable(&run.err));
    for command in [
        &["policy", "check"][..],
        &["tools", "list"],
        &["policy", "show", "--schema"],
    ] {
        let mut args = command.to_vec();
        args.push("--json");
        assert_eq!(world.run(&args).expect(2).error()["code"], "usage");
    }
}

#[test]
fn the_schema_names_the_tools_and_says_which_are_missing() {
    let world = project();
    let run = world.run(&["policy", "show", "--schema"]).expect(0);
    assert!(run.out.contains("run:fs.read"), "{}", run.out);
    assert!(!run.out.contains("shell.run"), "{}", run.out);
    assert!(run.err.is_empty(), "{}", run.err);
    let bare = World::bare();
    let run = bare.run(&["policy", "show", "--schema"]).expect(0);
    assert!(run.out.contains("run:shell.run"), "{}", run.out);
    for missing in ["git.status", "git.commit", "git.push", "nostr.publish"] {
        assert!(
            run.err
                .contains(&format!("`{missing}` is not among them: ")),
            "{}",
            run.err
        );
    }
    let report = bare
        .run(&["policy", "show", "--schema", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        report["tools"]["left_out"].as_array().map(Vec::len),
        Some(4)
    );
}

const WRONG: &str = "\
@id(\"misspelt\")
permit (principal, action in Action::\"run\", resource)
when { context.levle <= 2 };

@id(\"argument\")
permit (principal, action == Action::\"run:fs.read\", resource)
when { context.arguments.pth == \"a\" };

@id(\"unknown\")
permit (principal, action == Action::\"run:fs.raed\", resource);

@id(\"all\")
forbid (principal, action, resource);

@id(\"shadowed\")
permit (principal, action in Action::\"ask\", resource);
";

#[test]
fn what_is_wrong_is_shown_with_its_line() {
    let world = project();
    world.write("work/wrong.cedar", WRONG);
    let run = world.run(&["policy", "check", "wrong.cedar"]).expect(1);
    insta::assert_snapshot!(world.stable(&run.out));
    let report = world
        .run(&["policy", "check", "wrong.cedar", "--json"])
        .expect(1)
        .json();
    assert_eq!(report["passed"], false);
    let findings = report["findings"].as_array().expect("a list");
    let of = |id: &str| {
        let is_meant = |one: &&Value| one["policy"] == id && one["gravity"] == "error";
        findings.iter().find(is_meant).expect("found")["line"].clone()
    };
    assert_eq!([of("misspelt"), of("argument"), of("unknown")], [3, 7, 10]);
}

#[test]
fn warnings_fail_only_where_they_are_asked_to() {
    let world = project();
    let text = "@id(\"all\")\nforbid (principal, action, resource);\n\n@id(\"in vain\")\npermit (principal, action in Action::\"ask\", resource);\n";
    world.write("work/odd.cedar", text);
    let run = world.run(&["policy", "check", "odd.cedar"]).expect(0);
    assert!(run.out.contains("0 errors, 1 warning"), "{}", run.out);
    world
        .run(&["policy", "check", "odd.cedar", "--strict"])
        .expect(1);
}

#[test]
fn a_policy_that_is_no_text_or_no_cedar_is_named() {
    let world = project();
    fs::write(world.path("work/binary.cedar"), b"permit\n\xff").expect("written");
    let run = world.run(&["policy", "check", "binary.cedar"]).expect(2);
    assert!(run.err.contains("not UTF-8 at 2:1"), "{}", run.err);
    world.run(&["policy", "check", "none.cedar"]).expect(3);
    world.write(
        "work/torn.cedar",
        &format!("permit (principal, action, resource) {HOSTILE}"),
    );
    let run = world.run(&["policy", "check", "torn.cedar"]).expect(1);
    assert_inert(&run.out);
    fs::write(world.path("work/long.cedar"), vec![b' '; (1 << 20) + 1]).expect("written");
    world.run(&["policy", "check", "long.cedar"]).expect(2);
    let bare = World::bare();
    let run = bare.run(&["policy", "check"]).expect(2);
    assert!(run.err.contains("no file was named"), "{}", run.err);
}

const CASES: &str = "\
[[case]]
name = \"reading runs\"
tool = \"fs.read\"
args = { path = \"a\" }
expect = \"allow\"
decided_by = [\"preset-run\"]

[[case]]
name = \"writing is asked for\"
tool = \"fs.write\"
args = { path = \"a\", content = \"b\" }
expect = \"hold\"
";

#[test]
fn a_policy_is_tested_like_code() {
    let world = project();
    world.write("work/cases.toml", CASES);
    let run = world.run(&["policy", "test", "cases.toml"]).expect(0);
    insta::assert_snapshot!("passed", run.out);
    world.write(
        "work/closed.cedar",
        "forbid (principal, action, resource);\n",
    );
    let run = world
        .run(&["policy", "test", "cases.toml", "--policy", "closed.cedar"])
        .expect(1);
    insta::assert_snapshot!("failed", run.out);
    let report = world
        .run(&["policy", "test", "cases.toml", "--json"])
        .expect(0)
        .json();
    assert_eq!(report["passed"], 2);
    assert_eq!(report["cases"][0]["judgement"]["verdict"], "allow");
    // The box has the same tools, under their own grades.
    let bare = World::bare();
    bare.write("work/cases.toml", CASES);
    bare.run(&["policy", "test", "cases.toml"]).expect(0);
}

#[test]
fn a_broken_or_empty_suite_is_no_success() {
    let world = project();
    world.write("work/empty.toml", "");
    let run = world.run(&["policy", "test", "empty.toml"]).expect(1);
    assert_eq!(run.out, "0 passed, 0 failed\n");
    world.write(
        "work/odd.toml",
        "[[case]]\nname = \"a\"\ntoll = \"fs.read\"\n",
    );
    let run = world.run(&["policy", "test", "odd.toml"]).expect(2);
    assert!(run.err.contains("`odd.toml`:3:1: "), "{}", run.err);
    world.write("work/ungraded.toml", &CASES.replace("fs.read", "no.such"));
    let run = world.run(&["policy", "test", "ungraded.toml"]).expect(1);
    assert!(run.out.contains("1 passed, 1 failed"), "{}", run.out);
    fs::write(world.path("work/binary.toml"), b"\xff").expect("written");
    world.run(&["policy", "test", "binary.toml"]).expect(2);
    world.run(&["policy", "test", "none.toml"]).expect(3);
}
