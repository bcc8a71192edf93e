//! Killed processes and torn tails: nothing that was acknowledged is lost.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lodestar_core::key::SecretKey;
use lodestar_log::verify::{Remark, SessionState};
use lodestar_log::{Barrier, LogWriter, OpenError, WriterOptions};
use serde_json::json;

use crate::support::{Dice, World, actor, append, close, full_matrix, id, project_log};

const CHILD: &str = "LODESTAR_TEST_CHILD";
const FOLDER: &str = "LODESTAR_TEST_FOLDER";

/// This test binary again, as a process of its own that runs one of the `child` jobs below.
pub(crate) fn spawn_child(job: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["crash::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, job)
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn open_any(folder: &Path, session: &str) -> LogWriter {
    let log = project_log(folder);
    let options = WriterOptions::new(Arc::new(SecretKey::from_seed([7; 32])));
    match LogWriter::reopen(&log, &id(session), &options) {
        Ok(writer) => writer,
        // Never begun, or killed before its first event was told to anybody.
        Err(OpenError::NotFound { .. }) => {
            LogWriter::create(&log, &id(session), &actor(), &json!({}), &options).unwrap()
        }
        Err(error) => panic!("{error}"),
    }
}

/// Does nothing in an ordinary run; in a child process it is the program.
#[test]
fn child() {
    let Ok(job) = std::env::var(CHILD) else {
        return;
    };
    let folder = std::env::var(FOLDER).unwrap();
    let folder = Path::new(&folder);
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
    };
    let words: Vec<&str> = job.split_whitespace().collect();
    match words[..] {
        // Appends without end from several threads, saying what is durable as soon as it is.
        ["load", session] => {
            let writer = open_any(folder, session);
            say("open".to_owned());
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let writer = &writer;
                    scope.spawn(move || {
                        for i in 0.. {
                            let receipt = append(writer, 1);
                            if i % 3 == thread % 3 {
                                let barrier = match i % 2 {
                                    0 => Barrier::Disk,
                                    _ => Barrier::Checkpoint,
                                };
                                receipt.wait(barrier).unwrap();
                                say(format!("durable {}", receipt.seq()));
                            }
                        }
                    });
                }
            });
        }
        // Opens and closes one session after another.
        ["sessions", prefix, count] => {
            say("open".to_owned());
            let count: u32 = count.parse().unwrap();
            for i in 0..count {
                let session = format!("{prefix}-{i}");
                let writer = open_any(folder, &session);
                append(&writer, 1);
                close(&writer);
                say(format!("closed {session}"));
            }
        }
        ["hold", session] => {
            let writer = open_any(folder, session);
            say("open".to_owned());
            std::thread::sleep(Duration::from_secs(60));
            drop(writer);
        }
        _ => panic!("no such job: {job}"),
    }
}

/// Lets a child run for a moment after it has opened its session, kills it, and returns what it said.
fn run_and_kill(job: &str, folder: &Path, after: Duration) -> Vec<String> {
    let mut child = spawn_child(job, folder);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.ends_with("open\n") {
        line.clear();
        assert!(
            out.read_line(&mut line).unwrap() > 0,
            "the child never opened its session"
        );
    }
    std::thread::sleep(after);
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    out.lines().map_while(Result::ok).collect()
}

fn any_world(round: u32) -> World {
    match round % 2 {
        0 => World::new(),
        _ => World::fast(),
    }
}

#[test]
fn matrix_kill_9_under_load_loses_nothing_acknowledged() {
    let rounds = if full_matrix() { 1000 } else { 40 };
    let mut dice = Dice::new(9);
    let mut acknowledged = 0u64;
    let mut world = World::new();
    for round in 0..rounds {
        // A session grows over ten kills, then a new project begins: on a disk, where syncs are
        // slow, and in memory, where much more is under way when the kill comes.
        if round % 10 == 0 {
            world = any_world(round / 10);
        }
        let after = Duration::from_micros(dice.roll(25_000));
        let said = run_and_kill("load s1", world.folder(), after);
        let last = said
            .iter()
            .filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok())
            .max();
        acknowledged += said.len() as u64;

        let writer = LogWriter::reopen(&world.log(), &id("s1"), &world.options())
            .unwrap_or_else(|e| panic!("round {round}: {e}"));
        let (events, _) = writer.head();
        if let Some(last) = last {
            assert!(
                events > last,
                "round {round}: #{last} was acknowledged, {events} are left"
            );
        }
        let next = append(&writer, 1);
        assert_eq!(next.seq(), events, "the next event continues the chain");
        drop(writer);
        let report = world.verify();
        assert!(report.is_intact(), "round {round}: {report:#?}");
    }
    println!("kill -9: {rounds} kills, {acknowledged} events acknowledged durable, 0 lost");
}

#[test]
fn matrix_kill_9_between_sessions_leaves_a_whole_ledger() {
    let rounds = if full_matrix() { 200 } else { 15 };
    let mut dice = Dice::new(10);
    let mut closed = 0;
    for round in 0..rounds {
        let world = any_world(round);
        let after = Duration::from_micros(dice.roll(30_000));
        let said = run_and_kill("sessions s 1000", world.folder(), after);
        // Nothing that a kill leaves looks like tampering, where there is anything at all.
        fs::create_dir_all(world.log().dir()).unwrap();
        let report = world.verify();
        assert!(
            report.is_intact(),
            "round {round}, before healing: {report:#?}"
        );
        // Whoever comes next heals what the kill left, by going on with the same names.
        let sessions: Vec<String> = (0..=said.len()).map(|i| format!("s-{i}")).collect();
        let last = open_any(world.folder(), sessions.last().unwrap());
        close(&last);
        drop(last);
        let report = world.verify();
        assert!(report.is_intact(), "round {round}: {report:#?}");
        for session in said.iter().filter_map(|line| line.strip_prefix("closed ")) {
            let found = report
                .sessions
                .iter()
                .find(|s| s.session.as_str() == session)
                .unwrap();
            assert_eq!(found.state, SessionState::Closed, "{session}");
            closed += 1;
        }
    }
    println!(
        "kill -9 between sessions: {rounds} kills, {closed} closed sessions, all still closed"
    );
}

#[test]
fn matrix_torn_tails_of_every_length_are_recovered() {
    let world = World::fast();
    let writer = world.create("s1");
    (1..6).for_each(|i| drop(append(&writer, i)));
    append(&writer, 6).wait(Barrier::Checkpoint).unwrap();
    // Behind the checkpoint: what a crash can tear.
    append(&writer, 7).wait(Barrier::Disk).unwrap();
    append(&writer, 8).wait(Barrier::Disk).unwrap();
    let live = world.copy();
    drop(writer);
    let events = live.log().session(&id("s1")).events_path();
    let whole = fs::read(&events).unwrap();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            whole
                .iter()
                .enumerate()
                .filter(|(_, b)| **b == b'\n')
                .map(|(i, _)| i + 1),
        )
        .collect();
    let torn_from = starts[7];
    let mut tried = 0;
    for len in torn_from..=whole.len() {
        let world = live.copy();
        let path = world.log().session(&id("s1")).events_path();
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(len as u64)
            .unwrap();
        let writer = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
        let kept = if len == whole.len() {
            9
        } else if len >= starts[8] {
            8
        } else {
            7
        };
        let torn = !starts.contains(&len);
        assert_eq!(
            writer.head().0,
            kept + u64::from(torn),
            "cut to {len} bytes"
        );
        append(&writer, 1);
        close(&writer);
        drop(writer);
        let report = world.verify();
        assert!(report.is_intact(), "cut to {len} bytes: {report:#?}");
        let remarks = &report.sessions[0].remarks;
        let recovered = remarks
            .iter()
            .any(|r| matches!(r, Remark::Recovered { .. }));
        assert_eq!(recovered, torn, "cut to {len} bytes: {remarks:?}");
        tried += 1;
    }
    println!("torn tails: {tried} lengths tried, all recovered");
}

#[test]
fn what_a_recovery_cut_off_is_kept_and_watched_over() {
    let world = World::new();
    let writer = world.create("s1");
    append(&writer, 1);
    drop(writer);
    let dir = world.log().session(&id("s1"));
    let torn = b"{\"head\":{\"actor\":\"agent-1\",\"par".repeat(3);
    fs::OpenOptions::new()
        .append(true)
        .open(dir.events_path())
        .unwrap()
        .write_all(&torn)
        .unwrap();
    let report = world.verify();
    assert!(report.is_intact());
    assert_eq!(
        report.sessions[0].remarks,
        [Remark::TornTail {
            bytes: torn.len() as u64
        }]
    );
    drop(LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap());
    let kept = crate::support::files_below(&dir.recovered_dir());
    assert_eq!(fs::read(&kept[0]).unwrap(), torn);
    assert!(world.verify().is_intact());
    fs::write(&kept[0], b"something else").unwrap();
    assert!(!world.verify().is_intact());
}

#[test]
fn a_log_that_lost_more_than_a_crash_explains_is_not_continued() {
    let world = World::new();
    let writer = world.create("s1");
    (1..10).for_each(|i| drop(append(&writer, i)));
    drop(writer);
    let path = world.log().session(&id("s1")).events_path();
    let whole = fs::read(&path).unwrap();
    let reopen = || LogWriter::reopen(&world.log(), &id("s1"), &world.options());
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(reopen(), Err(OpenError::Tampered { .. })));
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    fs::write(&path, &flipped).unwrap();
    assert!(matches!(reopen(), Err(OpenError::Tampered { .. })));
    // The refusals changed nothing.
    assert_eq!(fs::read(&path).unwrap(), flipped);
    fs::write(&path, &whole).unwrap();
    assert!(reopen().is_ok());
}
