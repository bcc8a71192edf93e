//! A kill switch and a pause are obeyed within ten seconds, by everything that signs.

use super::world::{Fleet, OBEYED, PATIENCE, mode, session, text, wait_until};

/// Waits until the device stopped, and sees that nothing of it is heard any more.
fn obeyed(fleet: &Fleet, why: &str) {
    let device = &fleet.devices[0];
    let took = wait_until(OBEYED, &format!("{why} is obeyed"), || {
        device.state()["stopped"] == why
    });
    eprintln!("{why} was obeyed after {took:?}");
    let beat = fleet.shown("build-1")["last_heartbeat"].clone();
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(
        fleet.shown("build-1")["last_heartbeat"],
        beat,
        "something was signed"
    );
}

fn goes_on(fleet: &Fleet) {
    let device = &fleet.devices[0];
    let beat = fleet.shown("build-1")["last_heartbeat"].clone();
    wait_until(OBEYED, "signing goes on", || {
        device.state().get("stopped").is_none()
    });
    wait_until(PATIENCE, "it beats again", || {
        fleet.shown("build-1")["last_heartbeat"] != beat
    });
}

#[test]
fn the_kill_switch_and_a_pause_stop_all_signing_within_ten_seconds() {
    let fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let device = &fleet.devices[0];
    let daemon = device.daemon();
    wait_until(PATIENCE, "it beats", || {
        fleet.shown("build-1")["last_heartbeat"].is_string()
    });
    let record = device.json(&["run", "start"]);
    let run = text(&record["ticket"]["id"]);

    fleet.platform(&["kill-switch", "on", "--reason", "a rehearsal"]);
    obeyed(&fleet, "kill_switch");
    // A session is governed and logged all the same, and says that it is no run.
    let done = session(device).expect(0);
    assert!(done.err.contains("no run"), "{}", done.err);
    assert!(done.err.contains("stopped all signing"), "{}", done.err);
    assert_eq!(done.json()["met"], true);
    device.run(&["log", "verify"]).expect(0);
    // One that was registered before runs, and is attested later.
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
    let done = device.run(&args).expect(0);
    assert!(done.err.contains("is not attested"), "{}", done.err);
    let refused = device.run(&["run", "attest", run]).expect(4);
    assert!(
        refused.err.contains("nothing was signed"),
        "{}",
        refused.err
    );
    device.run(&["run", "start"]).expect(4);
    let doctor = device
        .run(&["gateway", "doctor", "--json"])
        .expect(1)
        .json();
    let codes = doctor["findings"].as_array().expect("a list");
    assert!(
        codes.iter().any(|it| it["code"] == "signing_stopped"),
        "{doctor}"
    );
    fleet.platform(&["kill-switch", "off", "--reason", "it is over"]);
    goes_on(&fleet);
    let attested = device.json(&["run", "attest", run]);
    assert_eq!(attested["attested"]["level"], "agent_verified");

    fleet.owner.json(&[
        "device",
        "pause",
        "build-1",
        "--reason",
        "looking into it",
        "--yes",
    ]);
    obeyed(&fleet, "paused");
    device.run(&["run", "start"]).expect(4);
    fleet.owner.json(&["device", "resume", "build-1", "--yes"]);
    goes_on(&fleet);
    assert_eq!(daemon.terminate(), Some(0));
}

#[test]
fn a_device_that_is_revoked_or_blocked_stops_for_good() {
    let fleet = Fleet::new(2);
    let ids = [fleet.approved(0, "build-1"), fleet.approved(1, "build-2")];
    let mut daemons: Vec<_> = fleet.devices.iter().map(|device| device.daemon()).collect();
    for name in ["build-1", "build-2"] {
        wait_until(PATIENCE, "it beats", || {
            fleet.shown(name)["last_heartbeat"].is_string()
        });
    }
    let revoked = fleet
        .owner
        .json(&["device", "revoke", "build-1", "--reason", "sold", "--yes"]);
    assert_eq!(revoked["level"], "revoked");
    let blocked = fleet.platform(&["block", &ids[1], "--reason", "abuse"]);
    assert_eq!(blocked["level"], "blocked");
    for (daemon, (device, why)) in daemons
        .iter_mut()
        .zip(fleet.devices.iter().zip(["revoked", "blocked"]))
    {
        wait_until(OBEYED, "the daemon ends", || !daemon.is_running());
        assert_eq!(device.state()["stopped"], why);
        device.run(&["device", "daemon"]).expect(4);
    }
    // There is no way back, for anybody.
    fleet
        .owner
        .run(&["device", "approve", "build-1", "--yes"])
        .expect(4);
}

#[test]
fn neither_a_challenge_nor_a_rotation_is_signed_while_signing_is_stopped() {
    let fleet = Fleet::new(2);
    fleet.approved(0, "build-1");
    // No daemon runs that could have heard of it.
    fleet.platform(&["kill-switch", "on", "--reason", "a rehearsal"]);
    let enrolled = fleet.enrol(1, "build-2");
    assert_eq!(enrolled["challenge"], "open");
    let owner =
        std::fs::read_to_string(fleet.owner.path("config/operators/anna.pub")).expect("there");
    let file = fleet.path("rotation.json");
    let out = file.to_str().expect("UTF-8");
    let args = [
        "device",
        "rotate",
        "--owner-key",
        owner.trim(),
        "--out",
        out,
    ];
    let refused = fleet.devices[0].run(&args).expect(4);
    assert!(
        refused.err.contains("stopped all signing"),
        "{}",
        refused.err
    );
    assert!(!file.exists());
    assert_eq!(fleet.devices[0].state()["stopped"], "kill_switch");

    fleet.platform(&["kill-switch", "off", "--reason", "it is over"]);
    fleet.devices[0].json(&args);
    assert_eq!(fleet.devices[0].state().get("stopped"), None);
    let daemon = fleet.devices[1].daemon();
    wait_until(PATIENCE, "the challenge is answered", || {
        fleet.shown("build-2")["challenge_passed_at"].is_string()
    });
    drop(daemon);
}

#[test]
fn a_machine_whose_device_is_revoked_becomes_another_with_another_key() {
    let fleet = Fleet::new(1);
    let id = fleet.approved(0, "build-1");
    let device = &fleet.devices[0];
    let before = fleet.shown("build-1");
    let refused = fleet.enrol_anew(0, "build-2").expect(2);
    let help = refused.error()["help"].clone();
    assert!(text(&help).contains("revoked"), "{help}");

    // Nothing here has heard of it yet.
    fleet
        .owner
        .json(&["device", "revoke", "build-1", "--reason", "stolen", "--yes"]);
    let enrolled = fleet.enrol_anew(0, "build-3").expect(0).json();
    assert_eq!(enrolled["challenge"], "answered");
    assert_ne!(enrolled["key"], before["key"]);
    let aside = device.path(&format!("config/device/device.{id}"));
    assert_eq!(mode(&aside), 0o700);
    for kept in ["device.json", "device.key", "token", "state.json"] {
        assert_eq!(mode(&aside.join(kept)), 0o600, "{kept}");
    }
    fleet.owner.json(&["device", "approve", "build-3", "--yes"]);
    let daemon = device.daemon();
    wait_until(PATIENCE, "it beats", || {
        fleet.shown("build-3")["last_heartbeat"].is_string()
    });
    assert_eq!(fleet.shown("build-1")["level"], "revoked");
    drop(daemon);
}
