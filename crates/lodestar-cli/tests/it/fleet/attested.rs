//! From three machines that nobody knows to runs that are fully trusted, and what each missing fact costs.

use serde_json::json;

use super::world::{Fleet, facts, mode, none, session, session_as, text};

#[test]
fn three_machines_become_devices_and_one_of_them_makes_runs_that_are_fully_trusted() {
    let fleet = Fleet::new(3);
    let names = ["build-1", "build-2", "laptop"];
    for (n, name) in names.into_iter().enumerate() {
        let enrolled = fleet.enrol(n, name);
        assert_eq!(enrolled["challenge"], "answered");
        let shown = fleet.shown(name);
        assert_eq!(shown["level"], "pending");
        assert_eq!(shown["key"], enrolled["key"]);
        let device = &fleet.devices[n];
        for private in ["device.key", "token", "device.json"] {
            assert_eq!(
                mode(&device.path(&format!("config/device/{private}"))),
                0o600,
                "{private}"
            );
        }
        // Another key than the one that was seen is not signed for.
        let other = "a".repeat(64);
        let refused =
            fleet
                .owner
                .run(&["device", "approve", name, "--device-key", &other, "--yes"]);
        assert!([1, 2].contains(&refused.code), "{refused:?}");
        assert_eq!(fleet.shown(name)["level"], "pending");
        let done = fleet.owner.json(&[
            "device",
            "approve",
            name,
            "--yes",
            "--device-key",
            text(&enrolled["key"]),
        ]);
        assert_eq!(done["level"], "approved");
    }
    let listed = fleet
        .owner
        .run(&["device", "list", "--json"])
        .expect(0)
        .ndjson();
    let listed: Vec<_> = listed.iter().map(|it| text(&it["name"])).collect();
    assert_eq!(listed, names);
    let daemons: Vec<_> = fleet.devices.iter().map(|device| device.daemon()).collect();
    fleet.ready_to_run(0, "build-1");
    let device = &fleet.devices[0];

    // Nobody has attested yet, so nobody is trusted yet.
    let first = session(device).expect(0);
    let run = &first.json()["run"];
    assert_eq!(run["level"], "agent_verified", "{first:?}");
    assert!(
        first.err.contains("more needs `device_trusted`"),
        "{}",
        first.err
    );
    fleet.wait_for_level("build-1", "trusted");
    for name in ["build-2", "laptop"] {
        assert_eq!(
            fleet.shown(name)["level"],
            "approved",
            "nothing attested by {name}"
        );
    }

    let second = session(device).expect(0);
    let run = &second.json()["run"];
    assert_eq!(run["level"], "fully_trusted", "{second:?}");
    let shown = device.json(&["run", "show", text(&run["run"])]);
    assert_eq!(shown["evaluation"]["level"], "fully_trusted");
    assert_eq!(facts(&shown["evaluation"]).len(), 12);
    assert_eq!(shown["evaluation"].get("stopped_by"), None);
    // The owner sees the same from elsewhere.
    let owners = fleet.owner.json(&["run", "show", text(&run["run"])]);
    assert_eq!(owners["evaluation"], shown["evaluation"]);

    // Work that came from it earns what the level earns, once.
    let file = fleet.owner.write("result.txt", "done");
    let file = file.to_str().expect("UTF-8");
    let submission = fleet
        .owner
        .json(&["submission", "add", file, "--run", text(&run["run"])]);
    assert_eq!(submission["level"], "fully_trusted");
    let earned = submission["effects"].as_array().expect("a list").len();
    assert_eq!(earned, 4, "{submission}");
    let again = fleet
        .owner
        .run(&["submission", "add", file, "--run", text(&run["run"])]);
    assert_eq!(again.code, 1, "{again:?}");
    drop(daemons);
}

#[test]
fn a_run_is_as_far_proved_as_its_first_missing_fact_allows() {
    let fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let device = &fleet.devices[0];
    let daemon = device.daemon();
    session(device).expect(0);
    fleet.wait_for_level("build-1", "trusted");
    let config = std::fs::read_to_string(device.path("work/lodestar.toml")).expect("there");

    let became = |config: &str| {
        device.write("work/lodestar.toml", config);
        session(device).expect(0).json()["run"].clone()
    };
    let level_of = |config: &str| {
        let run = became(config);
        (text(&run["level"]).to_owned(), run["problem"].clone())
    };
    let without = |line: &str| -> String {
        let kept = config.lines().filter(|it| !it.starts_with(line));
        kept.map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(level_of(&config), ("fully_trusted".to_owned(), none()));
    for missing in ["workflow_file", "task_file"] {
        assert_eq!(
            level_of(&without(missing)).0,
            "execution_verified",
            "{missing}"
        );
    }
    // A tool that nobody registered: it is not by the terms.
    let (level, problem) = level_of(&format!("{config}\n[tools.\"fs.write\"]\nroot = \".\"\n"));
    assert_eq!(level, "execution_verified");
    assert!(text(&problem).contains("fs.write"), "{problem}");
    // Another policy than was registered: the device's word is not taken at all.
    let run = became(&config.replace("ceiling = 2", "ceiling = 3"));
    assert_eq!(run.get("level"), None);
    assert!(text(&run["problem"]).contains("policy"), "{run}");
    let shown = fleet.owner.json(&["run", "show", text(&run["run"])]);
    assert_eq!(shown.get("evaluation"), None);
    fleet
        .owner
        .json(&["runner", "unbind", "nightly-0", "build-1", "--yes"]);
    assert_eq!(level_of(&config).0, "device_verified");
    drop(daemon);
}

#[test]
fn a_run_that_was_registered_beforehand_is_one_session_and_no_other() {
    let fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let device = &fleet.devices[0];
    let record = device.json(&["run", "start"]);
    let run = text(&record["ticket"]["id"]);
    assert_eq!(record["stage"], "registered");
    // No session was opened as it: there is nothing to attest.
    device.run(&["run", "attest", run]).expect(3);
    let args = [
        "guard",
        "run",
        "--config",
        "lodestar.toml",
        "--script",
        "script.toml",
        "--json",
        "--run",
        run,
    ];
    let done = device.run(&args).expect(0).json();
    assert_eq!(done["run"]["run"], run);
    assert_eq!(done["run"]["level"], "agent_verified");
    let again = device.run(&args).expect(2);
    assert!(again.err.contains("opened as"), "{}", again.err);
    let listed = device
        .run(&["run", "list", "--here", "--json"])
        .expect(0)
        .ndjson();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["stage"], "attested");
    // A session that was none cannot be said to have been one.
    let other = device.json(&["run", "start"]);
    let other = text(&other["ticket"]["id"]);
    let refused = device
        .run(&["run", "attest", other, "--session", "latest"])
        .expect(1);
    assert!(refused.err.contains("is not this run"), "{}", refused.err);
}

#[test]
fn a_key_is_rotated_by_three_signatures_and_the_daemon_takes_it_up() {
    let fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    let device = &fleet.devices[0];
    let daemon = device.daemon();
    let before = fleet.shown("build-1");
    let owner =
        std::fs::read_to_string(fleet.owner.path("config/operators/anna.pub")).expect("there");
    let file = fleet.path("rotation.json");
    let file = file.to_str().expect("UTF-8");
    let made = device.json(&[
        "device",
        "rotate",
        "--owner-key",
        owner.trim(),
        "--out",
        file,
    ]);
    assert_eq!(made["old_key"], before["key"]);
    // Nobody else's key will do.
    let stranger = &fleet.owner;
    stranger.json(&["approve", "keygen", "--name", "ben", "--no-passphrase"]);
    stranger
        .run(&[
            "device",
            "rotate",
            "--sign",
            file,
            "--yes",
            "--operator",
            "ben",
        ])
        .expect(4);
    let args = [
        "device",
        "rotate",
        "--sign",
        file,
        "--yes",
        "--operator",
        "anna",
    ];
    let done = fleet.owner.json(&args);
    assert_eq!(
        (&done["level"], &done["new_key"]),
        (&json!("approved"), &made["new_key"])
    );
    let after = fleet.shown("build-1");
    assert_eq!(after["key"], made["new_key"]);
    assert_eq!(after["log_key"], before["log_key"]);
    // Once is enough, and no heartbeat with the old key counts against the device.
    fleet.owner.run(&args).expect(1);
    super::world::wait_until(super::world::PATIENCE, "it beats with the new key", || {
        !device.path("config/device/next.key").exists()
            && fleet.shown("build-1")["last_heartbeat"] != after["last_heartbeat"]
    });
    assert_eq!(fleet.shown("build-1")["level"], "approved");
    drop(daemon);
}

#[test]
fn another_session_does_not_take_the_place_of_the_one_that_a_run_was() {
    let mut fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let first = session(&fleet.devices[0]).expect(0).json();
    let run = fleet.devices[0].start();
    fleet.stop();
    let device = &fleet.devices[0];
    session_as(device, &run).expect(0);
    let before = device.record(&run);
    assert_eq!(before["stage"], "opened");

    let args = ["run", "attest", &run, "--session", text(&first["session"])];
    let refused = device.run(&args).expect(1);
    assert!(refused.err.contains("is not this run"), "{}", refused.err);
    assert_eq!(device.record(&run)["session"], before["session"]);

    // A program of one's own opened it: the record says nothing of a session until somebody does.
    let mut bare = before.clone();
    bare["stage"] = json!("registered");
    let fields = bare.as_object_mut().expect("an object");
    fields.remove("session");
    fields.remove("problem");
    device.keep_record(&run, &bare);
    let named = text(&before["session"]["session"]);
    let args = ["run", "attest", &run, "--root", "work", "--session", named];
    let outside = device.command(&args).current_dir(device.path("")).output();
    let outside = outside.expect("started");
    assert_eq!(outside.status.code(), Some(2), "{outside:?}");
    let kept = device.record(&run);
    assert_eq!(kept["stage"], "opened", "it is tried again from now on");
    let log = std::path::Path::new(text(&kept["session"]["log"]));
    assert!(log.is_absolute(), "{log:?}");

    fleet.serve();
    let device = &fleet.devices[0];
    assert_eq!(device.json(&["run", "attest"])["run"], run.as_str());
    // What was done is not done twice.
    let again = device.json(&["run", "attest", &run]);
    assert_eq!(
        (&again["already_attested"], &again["level"]),
        (&json!(true), &json!("agent_verified"))
    );
    assert_eq!(device.record(&run)["stage"], "attested");
}

#[test]
fn a_run_is_attested_with_the_key_that_the_gateway_has_or_nothing_is_signed() {
    let fleet = Fleet::new(2);
    fleet.approved(0, "build-1");
    fleet.enrol(1, "build-2");
    fleet.ready_to_run(0, "build-1");
    let device = &fleet.devices[0];
    let owner =
        std::fs::read_to_string(fleet.owner.path("config/operators/anna.pub")).expect("there");
    let file = fleet.path("rotation.json");
    let file = file.to_str().expect("UTF-8");
    let args = [
        "device",
        "rotate",
        "--owner-key",
        owner.trim(),
        "--out",
        file,
    ];
    device.json(&args);
    fleet
        .owner
        .json(&["device", "rotate", "--sign", file, "--yes"]);
    // No daemon runs that would take the new key up.
    let done = session(device).expect(0);
    assert_eq!(done.json()["run"]["level"], "agent_verified", "{done:?}");
    assert!(!device.path("config/device/next.key").exists());

    let own = device.path("config/device/device.key");
    let kept = std::fs::read(&own).expect("there");
    let other = fleet.devices[1].path("config/device/device.key");
    std::fs::copy(other, &own).expect("copied");
    // More often than bad signatures are forgiven.
    for _ in 0..4 {
        let done = session(device).expect(0);
        assert!(
            done.err.contains("another key of this device"),
            "{}",
            done.err
        );
    }
    assert_eq!(fleet.shown("build-1")["level"], "approved");
    std::fs::write(&own, kept).expect("written");
    let attested = device.run(&["run", "attest", "--json"]).expect(0).ndjson();
    assert_eq!(attested.len(), 4);
}

#[test]
fn a_log_that_is_larger_than_the_gateway_takes_is_told_by_the_limit_to_raise() {
    let mut fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let config = fleet.path("gateway.toml");
    let text = std::fs::read_to_string(&config).expect("there");
    let text = text.replace("[http]", "[http]\nbundle_bytes = 1024");
    std::fs::write(&config, text).expect("written");
    fleet.stop();
    fleet.serve();
    let done = session(&fleet.devices[0]).expect(0);
    assert!(done.err.contains("`bundle_bytes`"), "{}", done.err);
    assert_eq!(done.json()["run"].get("level"), None);
}

#[test]
fn an_owner_sees_whose_approvals_count_before_signing_for_them() {
    let fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    let device = &fleet.devices[0];
    let made = ["approve", "keygen", "--name", "cleo", "--no-passphrase"];
    let made = fleet.owner.json(&made);
    let key = text(&made["public_key"]);
    let config = "project_id = \"notes\"\nactor_id = \"coder\"\nauto_approve_ceiling = 2\n\
                  [tools.\"fs.read\"]\nroot = \".\"\n[[approvals.authorized_keys]]\n\
                  actor_id = \"cleo\"\nroles = [\"lead\"]\n";
    device.write(
        "work/lodestar.toml",
        &format!("{config}public_key = \"{key}\"\n"),
    );
    device.write("work/plan.md", "ship on Friday");
    device.write(
        "work/script.toml",
        "[[step]]\ncall = \"fs.read\"\nargs = { path = \"plan.md\" }\n",
    );
    session(device).expect(0);
    let file = device.path("terms.json");
    let file = file.to_str().expect("UTF-8");
    let made = device
        .run(&["run", "terms", "latest", "--out", file])
        .expect(0);
    assert!(
        made.out.contains("cleo up to L4 as lead, key "),
        "{}",
        made.out
    );
    assert!(made.out.contains("quorum     1 of them"), "{}", made.out);
}
