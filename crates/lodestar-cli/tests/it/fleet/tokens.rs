//! Tokens are files that nobody else can read, or the environment; never arguments. No token elevates.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::world::{Fleet, mode, session, text};
use crate::world::World;

#[test]
fn a_token_in_an_argument_is_refused_and_not_repeated() {
    let world = World::bare();
    let token = format!("lsgw_{}", "7".repeat(64));
    for args in [
        vec![
            "device".to_owned(),
            "list".to_owned(),
            "--token".to_owned(),
            token.clone(),
        ],
        vec![
            "device".to_owned(),
            "list".to_owned(),
            format!("--token={token}"),
        ],
        vec!["token".to_owned(), "use".to_owned(), token.clone()],
        vec![
            "gateway".to_owned(),
            "doctor".to_owned(),
            format!("--gateway=https://x/{token}"),
        ],
    ] {
        let refused = world.run(&args).expect(2);
        assert!(
            refused.err.contains("an argument holds a gateway's token"),
            "{}",
            refused.err
        );
        assert!(!refused.err.contains(&token) && refused.out.is_empty());
        let mut args = args;
        args.push("--json".to_owned());
        assert_eq!(world.run(&args).expect(2).error()["code"], "usage");
    }
}

#[test]
fn a_database_password_in_an_argument_is_refused() {
    let world = World::bare();
    let args = [
        "gateway",
        "serve",
        "--database",
        "postgres://me:hunter2@127.0.0.1/x",
    ];
    let refused = world.run(&args).expect(2);
    assert!(refused.err.contains("--database-file"), "{}", refused.err);
    assert!(!refused.err.contains("hunter2"));
}

#[test]
fn tokens_are_private_files_and_each_opens_what_it_is_for() {
    let fleet = Fleet::new(2);
    let owner_token = fleet.owner.path("owner.token");
    assert_eq!(mode(&owner_token), 0o600);
    let kept = fleet.owner.path("config/gateway/owner.json");
    assert_eq!(mode(&kept), 0o600);
    // What others could have read is refused there too.
    fs::set_permissions(&kept, Permissions::from_mode(0o644)).expect("changed");
    fleet.owner.run(&["device", "list"]).expect(4);
    fs::set_permissions(&kept, Permissions::from_mode(0o600)).expect("changed");
    // What others could have read is refused, whoever it is of.
    fs::set_permissions(&owner_token, Permissions::from_mode(0o640)).expect("changed");
    let path = owner_token.to_str().expect("UTF-8");
    let refused = fleet
        .owner
        .run(&["device", "list", "--token-file", path])
        .expect(4);
    assert!(refused.err.contains("open to others"), "{}", refused.err);
    fs::set_permissions(&owner_token, Permissions::from_mode(0o600)).expect("changed");

    fleet.approved(0, "build-1");
    let device = &fleet.devices[0];
    let device_token = device.path("config/device/token");
    fs::set_permissions(&device_token, Permissions::from_mode(0o644)).expect("changed");
    device.run(&["device", "show"]).expect(4);
    fs::set_permissions(&device_token, Permissions::from_mode(0o600)).expect("changed");

    // The environment will do, and a token that was kept for one gateway is shown to no other.
    let secret = fs::read_to_string(&owner_token).expect("there");
    let listed = fleet.devices[1]
        .command(&[
            "device",
            "list",
            "--json",
            "--gateway",
            &fleet.url(),
            "--allow-loopback-http",
        ])
        .env("LODESTAR_GATEWAY_TOKEN", secret.trim())
        .output()
        .expect("started");
    assert!(listed.status.success());
    let elsewhere = [
        "device",
        "list",
        "--gateway",
        "http://127.0.0.1:1",
        "--allow-loopback-http",
    ];
    let refused = fleet.owner.run(&elsewhere).expect(4);
    assert!(refused.err.contains("no token to show"), "{}", refused.err);

    // The gateway that is kept is the same one however it is spelt, and reached as it was kept.
    let spelt = format!("{}/", fleet.url());
    fleet
        .owner
        .run(&["device", "list", "--gateway", &spelt])
        .expect(0);
    let none = ["device", "list", "--ca-file", "/nonexistent/ca.pem"];
    let refused = fleet.owner.run(&none);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains("ca.pem"), "{}", refused.err);

    // A device's token neither approves nor lists nor makes tokens, an enrol token works once.
    let device_token = device_token.to_str().expect("UTF-8");
    for args in [
        vec!["device", "list"],
        vec!["token", "list"],
        vec!["token", "issue", "--out", "/nonexistent/x"],
        vec!["agent", "add", "mine"],
        vec!["runner", "bind", "x", "build-1", "--yes"],
        vec!["device", "revoke", "build-1", "--reason", "x", "--yes"],
    ] {
        let mut args = args;
        args.extend(["--token-file", device_token]);
        let refused = fleet.owner.run(&args).expect(4);
        assert!(
            refused.err.contains("token_kind"),
            "{args:?}: {}",
            refused.err
        );
    }
    let spent = fleet.owner.path("enrol-0.token");
    let url = fleet.url();
    let args = [
        "device",
        "enroll",
        "build-2",
        "--gateway",
        &url,
        "--allow-loopback-http",
        "--token-file",
        spent.to_str().expect("UTF-8"),
    ];
    let refused = fleet.devices[1].run(&args).expect(4);
    assert!(refused.err.contains("token_invalid"), "{}", refused.err);

    // One that is taken back opens nothing.
    let second = fleet.owner.path("second.token");
    let second = second.to_str().expect("UTF-8");
    let made = fleet
        .owner
        .json(&["token", "issue", "--kind", "owner", "--out", second]);
    fleet
        .owner
        .json(&["device", "show", "build-1", "--token-file", second]);
    fleet.owner.json(&["token", "revoke", text(&made["id"])]);
    fleet
        .owner
        .run(&["device", "list", "--token-file", second])
        .expect(4);
    // A token is shown once, so nothing is written over it.
    fleet
        .owner
        .run(&["token", "issue", "--out", second])
        .expect(2);
}

#[test]
fn no_project_and_no_link_leads_to_a_devices_token() {
    let fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let device = &fleet.devices[0];
    let config = fs::read_to_string(device.path("work/lodestar.toml")).expect("there");
    // A folder that somebody put into the project, with links to what only this user can read.
    let theirs = device.path("work/dev");
    fs::create_dir(&theirs).expect("made");
    let own = device.path("config/device");
    fs::copy(own.join("device.json"), theirs.join("device.json")).expect("copied");
    for secret in ["device.key", "token"] {
        std::os::unix::fs::symlink(own.join(secret), theirs.join(secret)).expect("linked");
    }
    for named in ["device_dir = \"dev\"", "ca_file = \"dev/ca.pem\""] {
        device.write("work/lodestar.toml", &format!("{config}{named}\n"));
        session(device).expect(2);
    }
    // Another gateway than the one that this device is enrolled at is not spoken to.
    let other = config.replace(&fleet.url(), "http://127.0.0.1:9");
    assert_ne!(other, config);
    device.write("work/lodestar.toml", &other);
    let refused = session(device).expect(2);
    assert!(
        refused.err.contains("this device is one of"),
        "{}",
        refused.err
    );
    // Named on the command line, the folder is used, and what is a link in it is not.
    device.write("work/lodestar.toml", &config);
    let args = ["device", "show", "--device-dir", "dev"];
    let refused = device.run(&args);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains("not a link"), "{}", refused.err);
}
