//! What `--help` says, word for word.

use crate::world::World;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["demo"],
    &["init"],
    &["doctor"],
    &["guard"],
    &["guard", "mcp-proxy"],
    &["guard", "run"],
    &["hook"],
    &["hook", "daemon"],
    &["hook", "stop"],
    &["policy"],
    &["policy", "show"],
    &["policy", "check"],
    &["policy", "sign"],
    &["policy", "verify"],
    &["policy", "explain"],
    &["policy", "test"],
    &["tools"],
    &["tools", "list"],
    &["tools", "review"],
    &["tools", "grade"],
    &["halt"],
    &["undo"],
    &["replay"],
    &["report"],
    &["log"],
    &["log", "list"],
    &["log", "show"],
    &["log", "verify"],
    &["log", "prove"],
    &["log", "check-proof"],
    &["log", "redact"],
    &["log", "anchor"],
    &["log", "export"],
    &["otel"],
    &["otel", "export"],
    &["belief"],
    &["belief", "list"],
    &["belief", "show"],
    &["belief", "why"],
    &["belief", "promote"],
    &["belief", "quarantine"],
    &["reflect"],
    &["import"],
    &["store"],
    &["store", "status"],
    &["store", "rebuild"],
    &["approve"],
    &["approve", "keygen"],
    &["approve", "list"],
    &["approve", "show"],
    &["approve", "grant"],
    &["approve", "deny"],
    &["approve", "watch"],
    &["confirm"],
    &["confirm", "plan"],
    &["harness"],
    &["harness", "run"],
    &["harness", "list"],
    &["harness", "calibrate"],
    &["harness", "attack"],
    &["probe"],
    &["pack"],
    &["pack", "new"],
    &["pack", "check"],
    &["pack", "sign"],
    &["pack", "verify"],
    &["gateway"],
    &["gateway", "serve"],
    &["gateway", "doctor"],
    &["device"],
    &["device", "enroll"],
    &["device", "approve"],
    &["device", "list"],
    &["device", "show"],
    &["device", "pause"],
    &["device", "resume"],
    &["device", "revoke"],
    &["device", "rotate"],
    &["device", "daemon"],
    &["agent"],
    &["agent", "add"],
    &["agent", "list"],
    &["runner"],
    &["runner", "add"],
    &["runner", "bind"],
    &["runner", "unbind"],
    &["runner", "list"],
    &["run"],
    &["run", "terms"],
    &["run", "start"],
    &["run", "attest"],
    &["run", "show"],
    &["run", "list"],
    &["hook"],
    &["hook", "install"],
    &["hook", "uninstall"],
    &["hook", "status"],
    &["hook", "claude-code"],
    &["token"],
    &["token", "use"],
    &["token", "issue"],
    &["token", "list"],
    &["token", "revoke"],
    &["submission"],
    &["submission", "add"],
    &["submission", "link"],
    &["submission", "list"],
    &["submission", "show"],
    &["submission", "standings"],
    &["platform"],
    &["platform", "account"],
    &["platform", "token"],
    &["platform", "block"],
    &["platform", "kill-switch"],
    &["platform", "battle"],
    &["completions"],
    &["man"],
];

#[test]
fn every_command_explains_itself_with_an_example() {
    let world = World::bare();
    for command in COMMANDS {
        let mut args = command.to_vec();
        args.push("--help");
        let run = world.run(&args).expect(0);
        assert!(run.out.contains("\nExamples:\n  lodestar "), "{command:?}");
        assert!(run.err.is_empty());
        let name = match command {
            [] => "lodestar".to_owned(),
            parts => parts.join("-"),
        };
        insta::assert_snapshot!(format!("help-{name}"), run.out);
    }
}

#[test]
fn the_version_is_the_packages() {
    let run = World::bare().run(&["--version"]).expect(0);
    assert_eq!(run.out, format!("lodestar {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_arguments_are_exit_2_and_say_so_in_json_too() {
    let world = World::bare();
    for args in [
        &[][..],
        &["nonsense"],
        &["log"],
        &["log", "nonsense"],
        &["log", "show", "--limit", "many"],
        &["log", "prove"],
        &["log", "prove", "1", "--since", "1"],
        &["log", "redact", "latest"],
        &["log", "anchor", "--witness-key", "x"],
        &["approve", "keygen"],
        &["belief"],
        &["belief", "show"],
        &["belief", "list", "--truth", "supported"],
        &["belief", "list", "--all", "--truth", "true"],
        &["belief", "list", "--scope", "nowhere"],
        &["belief", "quarantine", "blf_0", "--malicious", "--release"],
        &["import", "mem1", "x.json"],
        &["import", "mem0", "x.json", "--sensitivity", "none"],
        &["reflect"],
        &["store"],
        &["guard", "run", "--config", "x.toml"],
        &["policy"],
        &["policy", "show", "--ceiling", "4"],
        &["policy", "show", "--ceiling", "two"],
        &["policy", "show", "--ceiling", "1", "--config", "x.toml"],
        &["policy", "explain", "latest"],
        &["policy", "explain", "latest", "#x"],
        &["tools", "grade", "fs.read"],
        &["tools", "grade", "fs.read", "--level", "L6"],
        &[
            "tools",
            "grade",
            "fs.read",
            "--level",
            "L1",
            "--sensitivity",
            "none",
        ],
        &["tools", "list", "--project", "web"],
        &["halt"],
        &["undo"],
        &["replay"],
        &["report"],
        &["completions", "cmd"],
        &["gateway"],
        &["gateway", "serve", "--listen", "here"],
        &["device", "enroll"],
        &["device", "rotate"],
        &["device", "revoke", "x"],
        &["device", "daemon", "--heartbeat", "0"],
        &["runner", "bind", "x"],
        &["run", "attest", "latest"],
        &["run", "terms"],
        &["token", "issue"],
        &["token", "issue", "--kind", "device", "--out", "x"],
        &["token", "revoke", "tok_1"],
        &["platform", "kill-switch", "on"],
        &["platform", "battle", "x", "--participant", "acc"],
    ] {
        let run = world.run(args).expect(2);
        assert!(run.out.is_empty(), "{args:?}: {}", run.out);
        assert!(!run.err.is_empty(), "{args:?}");
        let mut args = args.to_vec();
        args.push("--json");
        let error = world.run(&args).expect(2).error();
        assert_eq!(error["code"], "usage", "{args:?}");
        assert_eq!(error["exit"], 2);
    }
}

#[test]
fn what_was_typed_wrong_is_repeated_inertly() {
    let world = World::bare();
    for args in [
        &["\x1b[31mred\u{202e}"][..],
        &["log", "show", "--\x1b]0;x\x07"],
        &["log", "show", "--from", "\u{9b}31m\u{202e}"],
        &["completions", "\x1bzsh"],
        &["policy", "explain", "latest", "\x1b[31m\u{202e}"],
        &["tools", "grade", "fs.read", "--level", "\x1b[31m\u{202e}"],
    ] {
        crate::world::assert_inert(&world.run(args).expect(2).err);
    }
}
