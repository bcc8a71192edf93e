//! The gateway is away: nothing is lost, and everything goes on when it is back.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::world::{AS_RUN, Fleet, PATIENCE, Process, session, session_as, text, wait_until};

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

    // While somebody writes the session it does not wait, and nobody touches its record.
    let record = device.record(&run);
    let writing = File::open(device.session_of(&run)).expect("there");
    writing.lock().expect("nobody else writes it");
    let told = device.run(&["run", "attest"]).expect(0);
    assert!(told.err.contains("goes on"), "{}", told.err);
    device.run(&["run", "attest", &run]).expect(2);
    assert_eq!(device.record(&run), record);
    drop(writing);
    // A session that was killed leaves no word on why it was not attested.
    let mut killed = record.clone();
    killed.as_object_mut().expect("an object").remove("problem");
    device.keep_record(&run, &killed);

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
    let private = || std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, private()).expect("changed");
    let token = device.path("config/device/token");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&token, open).expect("changed");
    let found = codes(1);
    assert!(found.contains(&"token_unreadable".to_owned()), "{found:?}");
    assert!(
        !found.contains(&"gateway_unreached".to_owned()),
        "{found:?}"
    );
    std::fs::set_permissions(&token, private()).expect("changed");
    let identity = device.path("config/device/device.json");
    let kept = std::fs::read(&identity).expect("there");
    std::fs::write(&identity, "{").expect("written");
    assert_eq!(codes(1), ["identity_unreadable"]);
    std::fs::write(&identity, kept).expect("written");
    assert_eq!(device.state()["heartbeat_seconds"], 1);
    fleet
        .owner
        .json(&["runner", "unbind", "nightly-0", "build-1", "--yes"]);
    assert!(codes(1).contains(&"not_bound".to_owned()));
    drop(daemon);
}

#[test]
fn a_gateway_that_never_answers_holds_up_neither_the_beginning_nor_the_end_of_a_session() {
    let mut fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let run = fleet.devices[0].start();
    fleet.stop();
    // It takes connections, and nothing else.
    let silent = TcpListener::bind(fleet.address()).expect("the gateway's port");
    let device = &fleet.devices[0];
    let begun = Instant::now();
    let alone = session(device).expect(0);
    assert!(
        alone.err.contains("took longer than 5 seconds"),
        "{}",
        alone.err
    );
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );

    let told = device.path("session.log");
    let mut args = AS_RUN.to_vec();
    args.push(&run);
    let mut command = device.command(&args);
    let errors = File::create(&told).expect("made");
    let process = Process::start(command.stdout(Stdio::null()).stderr(errors));
    wait_until(PATIENCE, "its session is over", || {
        device.record(&run)["stage"] == "opened"
            && File::open(device.session_of(&run).join("events.ndjson")).is_ok_and(|mut events| {
                let mut text = String::new();
                events.read_to_string(&mut text).expect("read");
                text.contains("session.closed")
            })
    });
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    assert_eq!(process.terminate(), Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    let told = std::fs::read_to_string(told).expect("there");
    assert!(told.contains("told to end"), "{told}");
    assert!(
        told.contains(&format!("lodestar run attest {run}")),
        "{told}"
    );
    assert!(text(&device.record(&run)["problem"]).contains("told to end"));
    drop(silent);
    fleet.serve();
    fleet.devices[0].json(&["run", "attest", &run]);
}

/// Lets the device sign, and says of every checkpoint that its session is another run's.
fn refuse(mut stream: TcpStream, checkpoints: &AtomicUsize) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    let length = |request: &str| -> Option<usize> {
        let (head, _) = request.split_once("\r\n\r\n")?;
        let head_bytes = head.len() + 4;
        let body = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse().ok()).flatten()
        });
        Some(head_bytes + body.unwrap_or(0))
    };
    while length(&String::from_utf8_lossy(&request)).is_none_or(|whole| request.len() < whole) {
        match stream.read(&mut piece) {
            Ok(read @ 1..) => request.extend_from_slice(&piece[..read]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let (status, body) = match request.lines().next() {
        Some(line) if line.contains("/directives") => {
            ("200 OK", json!({"kill_switch": false, "paused": false}))
        }
        _ => {
            checkpoints.fetch_add(1, Ordering::Relaxed);
            let error = json!({"code": "session_taken", "message": "another run is this session"});
            ("409 Conflict", json!({"error": error}))
        }
    };
    let body = body.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}

#[test]
fn a_run_whose_session_is_anothers_fails_once_and_waits_for_nothing() {
    let mut fleet = Fleet::new(1);
    fleet.approved(0, "build-1");
    fleet.ready_to_run(0, "build-1");
    let run = fleet.devices[0].start();
    fleet.stop();
    let listener = TcpListener::bind(fleet.address()).expect("the gateway's port");
    let checkpoints = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&checkpoints);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            refuse(stream, &counted);
        }
    });
    let device = &fleet.devices[0];
    let done = session_as(device, &run).expect(0);
    assert!(done.err.contains("can never be attested"), "{}", done.err);
    assert!(!done.err.contains("it is tried again"), "{}", done.err);
    // Once by whoever followed it at most, and once at the end.
    assert!((1..=2).contains(&checkpoints.load(Ordering::Relaxed)));
    assert_eq!(device.record(&run)["stage"], "refused");
    let told = device.run(&["run", "attest"]).expect(0);
    assert!(told.err.contains("no run waits"), "{}", told.err);
    let refused = device.run(&["run", "attest", &run]).expect(1);
    assert!(
        refused.err.contains("can never be attested"),
        "{}",
        refused.err
    );
}
