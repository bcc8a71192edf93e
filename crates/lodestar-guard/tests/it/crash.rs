//! Killed at any moment: the store follows its log again.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{World, measure, read, rows};

const FOLDER: &str = "LODESTAR_TEST_FOLDER";

#[test]
#[ignore = "is started by the test below, in a process of its own"]
fn a_process_that_is_going_to_be_killed() {
    let folder = std::env::var_os(FOLDER).expect("started by the other test");
    let world = World::at(Path::new(&folder));
    let mut session = world.open();
    for number in 0_u64.. {
        measure(
            &mut session,
            &format!("{}.md", number % 5),
            "status",
            json!(number),
        );
        read(&mut session, "a.md", "# Heading");
        std::fs::write(world.folder.join("begun"), "").unwrap();
    }
}

fn kill_after(world: &World, time: Duration) {
    let begun = world.folder.join("begun");
    let _ = std::fs::remove_file(&begun);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "crash::a_process_that_is_going_to_be_killed",
            "--exact",
            "--ignored",
        ])
        .env(FOLDER, &world.folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !begun.exists() && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn matrix_a_store_follows_its_log_again_after_a_kill() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let kills = if full { 200 } else { 8 };
    let world = World::new();
    let mut ahead = 0;
    for number in 0..kills {
        kill_after(&world, Duration::from_micros(number * 977 % 40_000));
        let before = rows(&mut world.store()).len();
        let session = world.open();
        session.close("done").unwrap();
        let report = world.examine();
        assert!(
            report.is_sound() && report.findings.is_empty(),
            "{:?}",
            report.findings
        );
        ahead += u32::from(rows(&mut world.store()).len() < before);
    }
    println!("{kills} kills; {ahead} times the store knew more than the log, and was made again");
}
