//! A large run: its bundle verified, replayed under its terms, and graded, as a device waits for it.

use std::time::{Duration, Instant};

use lodestar_core::digest::sha256;
use lodestar_core::key::SecretKey;
use lodestar_gateway::wire;
use rusqlite::Connection;

use super::runtime;
use crate::{Bound, Figure, best_of};
use lodestar_harness::world::fleet::{CONTINUITY, Claims, Fleet, Machine, Work, fresh_nonce};

const TRIES: u32 = 3;
const EVENTS: u64 = 10_000;
const SECONDS: f64 = 1.0;

fn text<E: std::fmt::Display>(problem: E) -> String {
    problem.to_string()
}

/// Calls that leave about that many events.
fn work(calls: u64) -> Work {
    let reads = (0..calls).map(|n| ("box.read", format!("notes/{n}.md")));
    Work {
        calls: reads.collect(),
        ..Work::from(&[][..])
    }
}

pub(super) fn measure() -> Result<Vec<Figure>, String> {
    runtime()?.block_on(run())
}

async fn run() -> Result<Vec<Figure>, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let fleet = Fleet::open(folder.path(), &[]).await.map_err(text)?;
    // A fleet's clock begins late, so that devices can earn trust; logs have the system's time.
    fleet.hands.forward(CONTINUITY);
    let account = fleet.account("owner").await.map_err(text)?;
    let made = account.made().await.map_err(text)?;
    let machine = account.approved("machine").await.map_err(text)?;
    let job = machine.register(made).await.map_err(text)?;
    // How many events a call leaves is the guard's affair.
    let few = work(50);
    let few = fleet
        .workplace
        .run(Some(job.ticket()), &machine.log_key, &few);
    let events = few.await.map_err(text)?.packed().map_err(text)?.1.size;
    let calls = EVENTS * 50 / events;
    let job = machine.register(made).await.map_err(text)?;
    let many = work(calls);
    let ran = fleet
        .workplace
        .run(Some(job.ticket()), &machine.log_key, &many);
    let ran = ran.await.map_err(text)?;
    let (word, packed) = machine.deliver(&job, &ran).await.map_err(text)?;
    let (bytes, _) = ran.packed().map_err(text)?;
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let mut word = word.clone();
        word.predicate.nonce = fresh_nonce().map_err(text)?;
        word.predicate.issued_at = Machine::now(&machine);
        let started = Instant::now();
        let attested = machine.vouch(job.run, &word, Claims::default()).await;
        best = best.min(started.elapsed());
        passed(&attested.map_err(text)?)?;
    }
    let hashed = best_of(TRIES, || {
        std::hint::black_box(sha256(&bytes));
    });
    let checked = check(packed.size);
    let written = write(packed.size)?;
    let scaled = best.as_secs_f64() * EVENTS as f64 / packed.size as f64;
    let ratio = |other: Duration| best.as_secs_f64() / other.as_secs_f64();
    let mib = bytes.len() as f64 / f64::from(1 << 20);
    fleet.close().await.map_err(text)?;
    Ok(vec![
        Figure {
            name: "a run of 10,000 events graded by HTTP, s",
            value: scaled,
            bound: Bound::AtMost(SECONDS),
            detail: format!(
                "{} events, {mib:.1} MiB: verified, replayed, graded",
                packed.size
            ),
        },
        Figure {
            name: "the same ÷ a signature check an event",
            value: ratio(checked),
            bound: Bound::None,
            detail: format!(
                "{checked:.1?} for {} checks, one after the other",
                packed.size
            ),
        },
        Figure {
            name: "the same ÷ a bare row an event",
            value: ratio(written),
            bound: Bound::None,
            detail: format!("{written:.1?} for {} rows in one transaction", packed.size),
        },
        Figure {
            name: "the same ÷ hashing the bundle once",
            value: ratio(hashed),
            bound: Bound::None,
            detail: format!("{hashed:.1?}"),
        },
    ])
}

fn passed(attested: &wire::Attested) -> Result<(), String> {
    let found = &attested.found;
    match found.gateway_verified && found.policy_passed {
        true => Ok(()),
        false => Err(format!("the run did not pass: {:?}", found.reason)),
    }
}

fn check(count: u64) -> Duration {
    let key = SecretKey::from_seed([9; 32]);
    let message = [7; 300];
    let (public, signature) = (key.public(), key.sign(&message));
    best_of(TRIES, || {
        for _ in 0..count {
            assert!(public.verify(&message, &signature).is_ok());
        }
    })
}

fn write(count: u64) -> Result<Duration, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let mut rows = Connection::open(folder.path().join("rows.db")).map_err(text)?;
    rows.pragma_update(None, "journal_mode", "WAL")
        .map_err(text)?;
    rows.pragma_update(None, "synchronous", "FULL")
        .map_err(text)?;
    let table = "CREATE TABLE events (n INTEGER PRIMARY KEY, payload TEXT NOT NULL);";
    rows.execute_batch(table).map_err(text)?;
    let started = Instant::now();
    let transaction = rows.transaction().map_err(text)?;
    {
        let insert = "INSERT INTO events (payload) VALUES (?1)";
        let mut insert = transaction.prepare(insert).map_err(text)?;
        let payload = "x".repeat(500);
        for _ in 0..count {
            insert.execute([&payload]).map_err(text)?;
        }
    }
    transaction.commit().map_err(text)?;
    Ok(started.elapsed())
}
