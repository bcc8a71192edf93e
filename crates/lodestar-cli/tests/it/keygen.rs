//! `lodestar approve keygen`, and what its keys are good for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use lodestar_core::note::{NoteKey, parse_secret};

use crate::terminal::{at_terminal, python, without_terminal};
use crate::world::World;

const KEYGEN: [&str; 4] = ["approve", "keygen", "--name", "alice"];
const ONCE: &str = "new key of alice (8 characters or more): ";
const AGAIN: &str = "Once more: ";

fn mode(world: &World, name: &str) -> u32 {
    let metadata = fs::metadata(world.path(name)).expect("there");
    metadata.permissions().mode() & 0o777
}

#[test]
fn an_unsealed_key_is_private_and_pinned() {
    let world = World::bare();
    let mut args = KEYGEN.to_vec();
    args.push("--no-passphrase");
    let run = world.run(&args).expect(0);
    assert!(
        run.out.contains("whoever can read the file can sign"),
        "{}",
        run.out
    );
    assert_eq!(mode(&world, "config/keys/alice.key"), 0o600);
    assert_eq!(mode(&world, "config/keys"), 0o700);
    let text = fs::read_to_string(world.path("config/keys/alice.key")).expect("readable");
    let (name, key) = parse_secret(text.trim_end()).expect("a key");
    assert_eq!(name, "alice");
    let pin = fs::read_to_string(world.path("config/operators/alice.pub")).expect("readable");
    let pin: NoteKey = pin.trim_end().parse().expect("a key");
    assert_eq!(*pin.public_key(), key.public());
    assert!(!run.out.contains("PRIVATE"));
}

#[test]
fn keys_are_never_overwritten_not_even_half() {
    let world = World::bare();
    let mut args = KEYGEN.to_vec();
    args.extend(["--no-passphrase", "--json"]);
    let report = world.run(&args).expect(0).json();
    assert_eq!(report["name"], "alice");
    assert_eq!(report["passphrase"], false);
    let key = fs::read(world.path("config/keys/alice.key")).expect("readable");
    world.run(&args).expect(2);
    // A pin alone stands in the way as well: it may be somebody else's.
    fs::remove_file(world.path("config/keys/alice.key")).expect("removed");
    world.run(&args).expect(2);
    assert!(!world.path("config/keys/alice.key").exists());
    fs::remove_file(world.path("config/operators/alice.pub")).expect("removed");
    fs::write(world.path("config/keys/alice.key"), &key).expect("written");
    world.run(&args).expect(2);
    assert!(!world.path("config/operators/alice.pub").exists());
    assert_eq!(
        fs::read(world.path("config/keys/alice.key")).expect("readable"),
        key
    );
}

#[test]
fn without_a_terminal_a_passphrase_cannot_be_asked_for() {
    if !python() {
        return;
    }
    let world = World::bare();
    let run = without_terminal(&world, &KEYGEN).expect(2);
    insta::assert_snapshot!(run.err);
    assert!(!world.path("config/keys").exists());
}

#[test]
fn a_passphrase_is_asked_for_twice_and_never_shown() {
    if !python() {
        return;
    }
    let world = World::new();
    world.closed("web", "s-1");
    let passphrase = "correct hörse battery";
    let typed = format!("{passphrase}\r");
    let run = at_terminal(&world, &KEYGEN, &[], &[(ONCE, &typed), (AGAIN, &typed)]);
    assert_eq!(run.code, 0, "{}", run.screen);
    assert!(!run.screen.contains("battery"), "{}", run.screen);
    assert_eq!(mode(&world, "config/keys/alice.key"), 0o600);
    let text = fs::read_to_string(world.path("config/keys/alice.key")).expect("readable");
    assert!(
        text.starts_with("lodestar-operator-key-v1\npublic alice+"),
        "{text}"
    );
    assert!(
        text.contains("\nkdf argon2id m=65536 t=3 p=1 salt="),
        "{text}"
    );

    let redact = ["log", "redact", "s-1", "--seq", "1", "--reason", "r"];
    let ask = "Passphrase of alice: ";
    let go_on = "Type `yes` to go on: ";
    let run = at_terminal(&world, &redact, &[], &[(go_on, "no\r")]);
    assert_eq!(run.code, 2, "{}", run.screen);
    assert!(run.screen.contains("#1 2026-01-02T"), "{}", run.screen);
    let run = at_terminal(&world, &redact, &[], &[(go_on, "yes\r"), (ask, "wrong\r")]);
    assert_eq!(run.code, 4, "{}", run.screen);
    // Typing errors can be mended: erase a character, erase all.
    let mended = format!("oops\u{15}{passphrase}é\u{7f}\r");
    let run = at_terminal(&world, &redact, &[], &[(go_on, "yes\r"), (ask, &mended)]);
    assert_eq!(run.code, 0, "{}", run.screen);
    assert!(!run.screen.contains("battery"), "{}", run.screen);
    world.run(&["log", "verify"]).expect(0);
}

#[test]
fn differing_short_or_cancelled_passphrases_make_no_key() {
    if !python() {
        return;
    }
    let world = World::bare();
    for steps in [
        &[(ONCE, "long enough\r"), (AGAIN, "long enougH\r")][..],
        &[(ONCE, "short\r")],
        &[(ONCE, "\r")],
        &[(ONCE, "half\u{3}")],
        &[(ONCE, "\u{4}")],
    ] {
        let run = at_terminal(&world, &KEYGEN, &[], steps);
        assert_eq!(run.code, 2, "{}", run.screen);
        assert!(!world.path("config/keys/alice.key").exists());
    }
}

#[test]
fn automation_gives_the_passphrase_in_a_private_file() {
    if !python() {
        return;
    }
    let world = World::new();
    world.closed("web", "s-1");
    let typed = "an automated passphrase\r";
    let run = at_terminal(&world, &KEYGEN, &[], &[(ONCE, typed), (AGAIN, typed)]);
    assert_eq!(run.code, 0, "{}", run.screen);
    let redact = [
        "log", "redact", "s-1", "--seq", "1", "--reason", "r", "--yes",
    ];
    let run = without_terminal(&world, &redact).expect(2);
    assert!(run.err.contains("LODESTAR_PASSPHRASE_FILE"), "{}", run.err);
    let file = world.write_private("passphrase", "an automated passphrase\n");
    let with_file = || {
        let mut command = world.command(&redact);
        command.env("LODESTAR_PASSPHRASE_FILE", &file);
        crate::world::Run::of(command.output().expect("started"))
    };
    world.chmod(&file, 0o644);
    with_file().expect(4);
    world.chmod(&file, 0o600);
    with_file().expect(0);
    let run = without_terminal(
        &world,
        &["log", "redact", "s-1", "--seq", "2", "--reason", "r"],
    )
    .expect(2);
    assert!(run.err.contains("--yes"), "{}", run.err);
}
