//! Private key files that others can read are not used.

use std::fs;

use crate::world::World;

#[test]
fn a_log_key_open_to_others_is_refused_with_the_remedy() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    let key = world.path("config/keys/log.key");
    let args = [
        "log", "redact", "s-1", "--seq", "1", "--reason", "r", "--yes",
    ];
    for mode in [0o640, 0o604, 0o644, 0o660, 0o666, 0o610] {
        world.chmod(&key, mode);
        let run = world.run(&args).expect(4);
        assert!(run.err.contains("chmod 600"), "{}", run.err);
        assert!(run.err.contains(&format!("mode {mode:04o}")), "{}", run.err);
    }
    world.chmod(&key, 0o400);
    world.run(&args).expect(0);
    // Reading what is public does not need the private part.
    world.chmod(&key, 0o666);
    world.run(&["log", "verify"]).expect(0);
}

#[test]
fn an_operator_key_or_passphrase_file_open_to_others_is_refused() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    world.chmod(&world.path("config/keys/alice.key"), 0o640);
    let run = world
        .run(&[
            "log", "redact", "s-1", "--seq", "1", "--reason", "r", "--yes", "--json",
        ])
        .expect(4);
    let error = run.error();
    assert_eq!(error["code"], "not_authorised");
    assert!(
        error["help"]
            .as_str()
            .is_some_and(|help| help.contains("chmod 600"))
    );
}

#[test]
fn a_key_file_that_is_none_is_named_and_not_repeated() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    let args = [
        "log", "redact", "s-1", "--seq", "1", "--reason", "r", "--yes",
    ];
    for name in ["config/keys/alice.key", "config/keys/log.key"] {
        let kept = fs::read_to_string(world.path(name)).expect("readable");
        world.write_private(name, "hunter2hunter2");
        let run = world.run(&args).expect(2);
        assert!(
            run.err.contains(name.rsplit('/').next().expect("a name")),
            "{}",
            run.err
        );
        assert!(!run.err.contains("hunter2"), "{}", run.err);
        world.write_private(name, &kept);
    }
    world.write("config/keys/log.pub", "nonsense\x1b[31m\n");
    let run = world.run(&["log", "verify"]).expect(2);
    crate::world::assert_inert(&run.err);
    world.write("config/operators/bad.pub", "nonsense");
}

#[test]
fn without_the_public_file_the_pair_is_completed_from_the_private_one() {
    let world = World::new();
    world.closed("web", "s-1");
    fs::remove_file(world.path("config/keys/log.pub")).expect("removed");
    world.run(&["log", "verify"]).expect(0);
}

#[test]
fn the_configuration_directory_is_looked_for_in_three_places() {
    let world = World::new();
    world.closed("web", "s-1");
    let config = world.path("config");
    let verify = |variables: &[(&str, &std::path::Path)]| {
        let mut command = world.command(&["log", "verify"]);
        command.env_remove("HOME").env_remove("LODESTAR_CONFIG_DIR");
        command.envs(variables.iter().copied());
        command.output().expect("started").status.code()
    };
    let xdg = world.path("xdg");
    fs::create_dir_all(&xdg).expect("created");
    let home = world.path("home");
    fs::create_dir_all(home.join(".config")).expect("created");
    assert_eq!(verify(&[("LODESTAR_CONFIG_DIR", &config)]), Some(0));
    assert_eq!(verify(&[("XDG_CONFIG_HOME", &xdg)]), Some(2));
    std::os::unix::fs::symlink(&config, xdg.join("lodestar")).expect("linked");
    assert_eq!(
        verify(&[("XDG_CONFIG_HOME", &xdg), ("HOME", &home)]),
        Some(0)
    );
    assert_eq!(verify(&[("HOME", &home)]), Some(2));
    std::os::unix::fs::symlink(&config, home.join(".config/lodestar")).expect("linked");
    assert_eq!(verify(&[("HOME", &home)]), Some(0));
}
