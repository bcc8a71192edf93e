//! Many processes write to one store at once; one of them is killed in the middle.
//!
//! A process is this test program again, told by its environment what to do.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lodestar_core::chain::Freshness;
use lodestar_core::chain::transition::{AuthorityKind, AxisMove, State};
use lodestar_firewall::event::{Cause, Change, FirewallEvent, LogName, Moved};
use lodestar_firewall::fold;
use lodestar_firewall::row::keys::Standing;
use lodestar_firewall::store::{PostgresStore, SqliteStore, Store, StoreError, Verdict, Writing};

use super::cluster::Schema;
use super::rows::{Sketch, adoption, at, id, keys, log, position};

/// Beliefs that all processes change.
const SHARED: u64 = 3;
/// Events per process: adoptions and changes in turn.
const EVENTS: u64 = 40;
/// Beliefs that an adoption gives.
const PER_EVENT: u64 = 3;

const STORE: &str = "LODESTAR_TEST_STORE";
const WRITER: &str = "LODESTAR_TEST_WRITER";
/// A writer that does not end by itself when it is done: it is going to be killed.
const LINGERS: &str = "LODESTAR_TEST_LINGERS";

fn session(writer: u64) -> LogName {
    log("web", &format!("writer-{writer}"))
}

/// The number of a belief that is one writer's own.
fn own(writer: u64, event: u64, place: u64) -> u64 {
    1_000 * (writer + 1) + PER_EVENT * event + place
}

fn fold_failed(error: fold::FoldError) -> StoreError {
    StoreError::Database(Box::new(error))
}

/// A file, or a server and a schema with a blank between.
fn open(place: &str) -> Box<dyn Store> {
    match place.rsplit_once(' ') {
        Some((url, schema)) => Box::new(PostgresStore::connect(url, Some(schema)).unwrap()),
        None => Box::new(SqliteStore::open(Path::new(place)).unwrap()),
    }
}

/// The next change of a shared belief, decided by what stands there now.
fn next_change(writing: &mut dyn Writing, belief: u64) -> Result<Change, StoreError> {
    let row = writing.row(&id(belief))?.unwrap();
    let now = row.open().unwrap();
    let from = now.record.axes.freshness;
    let (to, authority) = match from {
        Freshness::Fresh => (Freshness::Stale, AuthorityKind::System),
        _ => (Freshness::Fresh, AuthorityKind::AutoObservation),
    };
    Ok(Change {
        belief: id(belief),
        revision: now.revision + 1,
        moves: vec![AxisMove::new(State::from(from), State::from(to)).unwrap()],
        authority,
        cause: Cause::Clock,
        at: at(5_000),
        evidence: Vec::new(),
    })
}

fn apply(
    writing: &mut dyn Writing,
    event: &FirewallEvent,
    log: &LogName,
    seq: u64,
) -> Result<Verdict, StoreError> {
    let waiting =
        fold::apply(writing, &keys(1), event, &position(log, seq)).map_err(fold_failed)?;
    assert_eq!(waiting, [], "no other writer comes between");
    Ok(Verdict::Commit)
}

fn write_from(store: &mut dyn Store, writer: u64, first: u64) {
    let log = session(writer);
    for seq in first..EVENTS {
        store
            .write(&mut |writing| {
                let event = match seq % 2 {
                    0 => {
                        let of = |place| Sketch::new(own(writer, seq, place));
                        adoption(&(0..PER_EVENT).map(of).collect::<Vec<_>>())
                    }
                    _ => FirewallEvent::Moved(Moved {
                        changes: vec![next_change(writing, (writer + seq) % SHARED)?],
                    }),
                };
                apply(writing, &event, &log, seq)
            })
            .unwrap();
    }
}

#[test]
#[ignore = "is started by the tests below, as one of many processes"]
fn writer() {
    let told = |name| std::env::var(name).expect("started by another test");
    let (place, writer) = (told(STORE), told(WRITER));
    write_from(&mut *open(&place), writer.parse().unwrap(), 0);
    if std::env::var_os(LINGERS).is_some() {
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn start(place: &str, writer: u64) -> Child {
    command(place, writer).spawn().unwrap()
}

fn command(place: &str, writer: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "store::processes::writer",
            "--ignored",
            "--nocapture",
        ])
        .env(STORE, place)
        .env(WRITER, writer.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn share(place: &str) {
    let shared: Vec<_> = (0..SHARED).map(Sketch::new).collect();
    open(place)
        .write(&mut |writing| apply(writing, &adoption(&shared), &session(99), 0))
        .unwrap();
}

/// Nothing lost, nothing twice, and every chain of revisions whole.
fn check(store: &mut dyn Store, progress: &[u64]) {
    let rows = store.scan(None, usize::MAX).unwrap();
    let ring = keys(1);
    assert!(
        rows.iter()
            .all(|row| ring.standing(row) == Standing::Genuine)
    );

    let mut wanted: Vec<_> = (0..SHARED).map(|n| id(n).to_string()).collect();
    let mut changes = 0;
    for (writer, events) in (0..).zip(progress) {
        changes += events / 2;
        for seq in (0..*events).step_by(2) {
            wanted.extend((0..PER_EVENT).map(|place| id(own(writer, seq, place)).to_string()));
        }
    }
    wanted.sort();
    let found: Vec<_> = rows.iter().map(|row| row.id.clone()).collect();
    assert_eq!(found, wanted);

    let mut made = 0;
    for n in 0..SHARED {
        let history = store.history(&id(n)).unwrap();
        let revisions: Vec<_> = history.iter().map(|row| row.change.revision).collect();
        let count = revisions.len() as u64;
        assert_eq!(revisions, (1..=count).collect::<Vec<_>>(), "chain of {n}");
        let row = store.row(&id(n)).unwrap().unwrap();
        assert_eq!(row.revision.cast_unsigned(), count);
        made += count;
    }
    assert_eq!(made, changes, "every change was made once");
}

/// How far each writer came, by the store itself.
fn progress(store: &mut dyn Store, writers: u64) -> Vec<u64> {
    let logs = store.logs().unwrap();
    let of = |writer| {
        let own = logs.iter().find(|applied| applied.log == session(writer));
        own.map_or(0, |applied| applied.next)
    };
    (0..writers).map(of).collect()
}

fn together(place: &str, writers: u64) {
    share(place);
    let children: Vec<_> = (0..writers).map(|writer| start(place, writer)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut store = open(place);
    let progress = progress(&mut *store, writers);
    assert!(progress.iter().all(|events| *events == EVENTS));
    check(&mut *store, &progress);
}

/// Kills one writer when it is well under way, lets the others finish, and then has it finish too.
fn with_a_kill(place: &str, writers: u64) {
    share(place);
    let doomed = command(place, 0).env(LINGERS, "1").spawn().unwrap();
    let others = (1..writers).map(|writer| start(place, writer));
    let mut children: Vec<_> = std::iter::once(doomed).chain(others).collect();
    let mut store = open(place);
    let begun = Instant::now();
    while progress(&mut *store, 1)[0] < 5 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    children[0].kill().unwrap();
    for (writer, child) in children.iter_mut().enumerate() {
        assert_eq!(child.wait().unwrap().success(), writer != 0);
    }
    let halfway = progress(&mut *store, writers);
    assert!(halfway[1..].iter().all(|events| *events == EVENTS));
    check(&mut *store, &halfway);

    write_from(&mut *store, 0, halfway[0]);
    check(&mut *store, &vec![EVENTS; writers as usize]);
}

#[test]
fn four_processes_share_one_sqlite_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    together(path.to_str().unwrap(), 4);
}

#[test]
fn a_killed_process_takes_nothing_of_a_sqlite_file_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    with_a_kill(path.to_str().unwrap(), 4);
}

#[test]
fn eight_processes_share_one_postgres_store() {
    let Some(schema) = Schema::new() else { return };
    together(&format!("{} {}", schema.url(), schema.name()), 8);
}

#[test]
fn a_killed_process_takes_nothing_of_a_postgres_store_with_it() {
    let Some(schema) = Schema::new() else { return };
    with_a_kill(&format!("{} {}", schema.url(), schema.name()), 4);
}
