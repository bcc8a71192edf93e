//! Spent confirmations: whoever is first has it, in one process or in many.
//!
//! A racer is this test program again, told by its environment where the ledger is and by its input
//! which confirmation is next.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lodestar_core::digest::sha256;
use lodestar_core::id::ActionId;
use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::{ConsumeLedger, Consumption, MemoryLedger, Spent};
use lodestar_firewall::store::{
    PostgresLedger, SqliteLedger, SqliteStore, Store, StoreError, Verdict,
};

use super::cluster::Schema;
use super::rows::{self, at};

const LEDGER: &str = "LODESTAR_TEST_LEDGER";
const ROUNDS: u32 = 1_000;

fn consumption(n: u32) -> Consumption {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&n.to_be_bytes());
    Consumption {
        id: ConfirmationId::from_bytes(id),
        statement: sha256(b"statement"),
        operator: "alice".parse().unwrap(),
        session: "s-1".parse().unwrap(),
        action: ActionId::from_parts(1, [1; 10]),
        at: at(7),
    }
}

fn open(place: &str) -> Box<dyn ConsumeLedger> {
    match place.rsplit_once(' ') {
        Some((url, schema)) => Box::new(PostgresLedger::connect(url, Some(schema)).unwrap()),
        None => Box::new(SqliteLedger::open(Path::new(place)).unwrap()),
    }
}

fn first_has_it(ledger: &mut dyn ConsumeLedger, other: &mut dyn ConsumeLedger) {
    let mut one = consumption(1);
    assert!(!ledger.is_spent(one.id).unwrap());
    assert_eq!(ledger.consume(&one).unwrap(), Spent::Now);
    assert!(ledger.is_spent(one.id).unwrap());
    assert!(other.is_spent(one.id).unwrap());
    // Whatever else is said of it, it is the same confirmation.
    one.operator = "bob".parse().unwrap();
    one.session = "s-2".parse().unwrap();
    one.statement = sha256(b"another envelope");
    assert_eq!(ledger.consume(&one).unwrap(), Spent::Before);
    assert_eq!(other.consume(&one).unwrap(), Spent::Before);
    assert_eq!(other.consume(&consumption(2)).unwrap(), Spent::Now);
    assert!(!ledger.is_spent(consumption(3).id).unwrap());
}

#[test]
fn whoever_spends_a_confirmation_first_has_it() {
    let mut memory = MemoryLedger::default();
    assert_eq!(memory.consume(&consumption(1)).unwrap(), Spent::Now);
    assert_eq!(memory.consume(&consumption(1)).unwrap(), Spent::Before);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let place = path.to_str().unwrap();
    first_has_it(&mut *open(place), &mut *open(place));
    assert!(
        open(place).is_spent(consumption(1).id).unwrap(),
        "it stays so"
    );

    let Some(schema) = Schema::new() else { return };
    let place = format!("{} {}", schema.url(), schema.name());
    first_has_it(&mut *open(&place), &mut *open(&place));
    assert!(
        open(&place).is_spent(consumption(1).id).unwrap(),
        "it stays so"
    );
}

/// The ledger lies in the belief store's file, and has nothing to do with what is believed.
#[test]
fn forgetting_beliefs_forgets_no_spending() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let mut ledger = SqliteLedger::open(&path).unwrap();
    ledger.consume(&consumption(1)).unwrap();
    let signer = rows::keys(1).own_id().to_string();
    store
        .write(&mut |writing| {
            writing.insert(&rows::rows(0..3))?;
            writing.forget(&signer, "web")?;
            Ok(Verdict::Commit)
        })
        .unwrap();
    assert_eq!(ledger.consume(&consumption(1)).unwrap(), Spent::Before);
}

#[test]
fn a_store_of_the_version_before_gets_its_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(SqliteStore::open(&path).unwrap());
    let past = rusqlite::Connection::open(&path).unwrap();
    past.execute_batch("DROP TABLE confirmations; PRAGMA user_version = 1")
        .unwrap();
    drop(past);
    let mut ledger = SqliteLedger::open(&path).unwrap();
    assert_eq!(ledger.consume(&consumption(1)).unwrap(), Spent::Now);

    let Some(schema) = Schema::new() else { return };
    schema.open();
    schema
        .client()
        .batch_execute("DROP TABLE confirmations; UPDATE schema_version SET version = 1")
        .unwrap();
    let mut ledger = PostgresLedger::connect(schema.url(), Some(schema.name())).unwrap();
    assert_eq!(ledger.consume(&consumption(1)).unwrap(), Spent::Now);
}

#[test]
fn a_ledger_that_cannot_answer_says_so_and_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let refused = SqliteLedger::open(&folder.path().join("missing/state.db"));
    assert!(matches!(refused, Err(StoreError::Open { .. })));
    let path = folder.path().join("state.db");
    let mut ledger = SqliteLedger::open(&path).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("DROP TABLE confirmations").unwrap();
    assert!(ledger.consume(&consumption(1)).is_err());
    assert!(ledger.is_spent(consumption(1).id).is_err());
}

#[test]
#[ignore = "is started by the tests below, as one of two processes"]
fn racer() {
    let place = std::env::var(LEDGER).expect("started by another test");
    let mut ledger = open(&place);
    // What the test runner has written stands on the line before.
    println!("\nready");
    for line in std::io::stdin().lines() {
        let n = line.unwrap().parse().unwrap();
        match ledger.consume(&consumption(n)).unwrap() {
            Spent::Now => println!("now"),
            Spent::Before => println!("before"),
        }
    }
}

struct Racer {
    child: Child,
    told: ChildStdin,
    says: BufReader<ChildStdout>,
}

impl Racer {
    fn start(place: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "store::ledger::racer",
                "--ignored",
                "--nocapture",
            ])
            .env(LEDGER, place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = child.stdin.take().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        let mut racer = Self { child, told, says };
        while racer.answer() != "ready" {}
        racer
    }

    fn tell(&mut self, n: u32) {
        self.told.write_all(format!("{n}\n").as_bytes()).unwrap();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.says.read_line(&mut line).unwrap(), 0, "it went away");
        line.trim().to_owned()
    }

    fn end(mut self) {
        drop(self.told);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Both are told of the same confirmation at the same moment; exactly one of them has it.
fn race(place: &str, what: &str) {
    open(place);
    let (mut one, mut other) = (Racer::start(place), Racer::start(place));
    let (mut by_one, mut by_other) = (0, 0);
    for n in 0..ROUNDS {
        if n % 2 == 0 {
            one.tell(n);
            other.tell(n);
        } else {
            other.tell(n);
            one.tell(n);
        }
        match (one.answer().as_str(), other.answer().as_str()) {
            ("now", "before") => by_one += 1,
            ("before", "now") => by_other += 1,
            both => panic!("round {n}: {both:?}"),
        }
    }
    one.end();
    other.end();
    assert_eq!(by_one + by_other, ROUNDS);
    let mut ledger = open(place);
    assert!((0..ROUNDS).all(|n| ledger.is_spent(consumption(n).id).unwrap()));
    println!(
        "{what}: two processes raced for one confirmation {ROUNDS} times, one won each time ({by_one} and {by_other})"
    );
}

#[test]
fn of_two_processes_one_spends_a_confirmation_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    race(path.to_str().unwrap(), "SQLite");
}

#[test]
fn of_two_processes_one_spends_a_confirmation_on_postgres() {
    let Some(schema) = Schema::new() else { return };
    race(&format!("{} {}", schema.url(), schema.name()), "PostgreSQL");
}
