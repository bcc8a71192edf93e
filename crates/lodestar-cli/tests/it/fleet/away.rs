//! The gateway is away: nothing is lost, and everything goes on when it is back.

use std::time::{Duration, Instant};

use super::world::{Fleet, PATIENCE, session, text, wait_until};

#[test]
fn a_daemon_survives_the_gateway_and_its_own_end() {
    let mut fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    let mut daemon = fleet.devices[0].daemon();
    wait_until(PATIENCE, "it beats", || {
        fleet.shown("build-1")["last_heartbeat"].is_string()
    });
    // One is enough.
    let second = fleet.devices[0].run(&["device", "daemon"]).expect(2);
    let pid = daemon.pid().to_string();
    assert!(second.err.contains(&pid), "{}", second.err);

    for end in 0..2 {
        let beat = fleet.shown("build-1")["last_heartbeat"].clone();
        match end {
            0 => assert_eq!(fleet.stop(), Some(0), "told to end, it ends well"),
            _ => fleet.kill(),
        }
        wait_until(PATIENCE, "the daemon notices", || {
            fleet.devices[0].state()["problem"].is_string()
        });
        assert!(daemon.is_running());
        fleet.serve();
        wait_until(PATIENCE, "it beats again", || {
            fleet.shown("build-1")["last_heartbeat"] != beat
        });
        wait_until(PATIENCE, "nothing is wrong any more", || {
            fleet.devices[0].state().get("problem").is_none()
        });
    }
    assert!(daemon.is_running());

    // It ends when it is told to, and another takes over; killed, it leaves nothing in the way.
    assert_eq!(daemon.terminate(), Some(0));
    fleet.devices[0].daemon().kill();
    let daemon = fleet.devices[0].daemon();
    let beat = fleet.shown("build-1")["last_heartbeat"].clone();
    wait_until(PATIENCE, "it beats again", || {
        fleet.shown("build-1")["last_heartbeat"] != beat
    });
    assert_eq!(daemon.terminate(), Some(0));
}

#[test]
fn a_session_outlives_the_gateway_and_is_attested_later() {
    let mut fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let record = fleet.devices[0].json(&["run", "start"]);
    let run = text(&record["ticket"]["id"]).to_owned();
    fleet.stop();
    let device = &fleet.devices[0];

    // Without the gateway no run can be registered: the session says so, and is governed and logged.
    let alone = session(device).expect(0);
    assert!(alone.err.contains("but is no run"), "{}", alone.err);
    assert_eq!(alone.json()["met"], true);
    // One that was registered before goes on, and its end waits.
    let args = [
        "guard",
        "run",
        "--config",
        "lodestar.toml",
        "--script",
        "script.toml",
        "--json",
        "--run",
        &run,
    ];
    let done = device.run(&args).expect(0);
    assert!(done.err.contains("did not arrive"), "{}", done.err);
    assert!(
        done.err.contains(&format!("lodestar run attest {run}")),
        "{}",
        done.err
    );
    device.run(&["log", "verify"]).expect(0);
    device.run(&["run", "attest", &run]).expect(2);
    device.run(&["run", "attest"]).expect(1);

    let begun = Instant::now();
    let doctor = device
        .run(&["gateway", "doctor", "--json"])
        .expect(1)
        .json();
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    let findings = doctor["findings"].as_array().expect("a list");
    let code_of = |check: &str| {
        findings
            .iter()
            .find(|it| it["check"] == check)
            .map(|it| it["code"].clone())
    };
    assert_eq!(code_of("clock"), Some("gateway_unreached".into()));
    assert_eq!(code_of("daemon"), Some("daemon_not_running".into()));
    assert_eq!(code_of("sync"), Some("runs_waiting".into()));

    fleet.serve();
    let device = &fleet.devices[0];
    let attested = device.json(&["run", "attest"]);
    assert_eq!(attested["run"], run.as_str());
    assert_eq!(attested["attested"]["level"], "agent_verified");
    let found = &attested["attested"]["found"];
    assert_eq!(
        (&found["gateway_verified"], &found["policy_passed"]),
        (&true.into(), &true.into())
    );
    // Nothing waits any more.
    assert_eq!(device.run(&["run", "attest", "--json"]).expect(0).out, "");
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_device_that_is_well_and_says_what_is() {
    let fleet = Fleet::new(1);
    let device = &fleet.devices[0];
    let begun = device
        .run(&["gateway", "doctor", "--json"])
        .expect(1)
        .json();
    assert_eq!(begun["findings"][0]["code"], "not_enrolled");
    fleet.enrol(0, "build-1");
    let codes = |expected: i32| {
        let told = device
            .run(&["gateway", "doctor", "--json"])
            .expect(expected)
            .json();
        let told = told["findings"].as_array().expect("a list").clone();
        told.iter()
            .map(|it| text(&it["code"]).to_owned())
            .collect::<Vec<_>>()
    };
    assert!(codes(1).contains(&"device_not_approved".to_owned()));
    fleet.owner.json(&["device", "approve", "build-1", "--yes"]);
    fleet.ready_to_run(0, "build-1");
    let daemon = device.daemon();
    wait_until(PATIENCE, "it beats", || {
        device.state()["beat_at"].is_string()
    });
    assert_eq!(codes(0), ["ok"; 6]);
    let shown = device.run(&["gateway", "doctor"]).expect(0);
    assert_eq!(shown.out.matches('✓').count(), 6, "{}", shown.out);

    let key = device.path("config/device/device.key");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&key, open).expect("changed");
    assert!(codes(1).contains(&"key_open_to_others".to_owned()));
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, private).expect("changed");
    fleet
        .owner
        .json(&["runner", "unbind", "nightly-0", "build-1", "--yes"]);
    assert!(codes(1).contains(&"not_bound".to_owned()));
    drop(daemon);
}
