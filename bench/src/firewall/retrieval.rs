//! Retrieval for a planner's context, against the bare SQL behind it, and over a large store against
//! a small one.

use std::path::Path;
use std::time::Duration;

use lodestar_core::chain::{BeliefRecord, Claim, EvidenceSet};
use lodestar_core::digest::leaf_hash;
use lodestar_core::id::{BeliefId, ClaimId, EvidenceId, EvidenceSetId};
use lodestar_core::scope::Scope;
use lodestar_firewall::event::{Adopted, FirewallEvent};
use lodestar_firewall::row::keys::Standing;
use lodestar_firewall::store::{MemoryStore, Store as _};
use lodestar_firewall::{Context, ContextPolicy, Measurement, around};

use super::bare::{self, MAX_WAITING, Selects};
use super::world::{self, Tape, Weather, World};
use super::{Rounds, SMALL, timed};
use crate::{Bound, Figure};

const ROUNDS: usize = 21;
const LIMIT: usize = 50;

/// Each belief is about one of so many topics, so a query for one matches 1 %.
const TOPICS: u64 = 100;

/// Facts of an event, and events of a transaction, while a store is filled.
const FACTS: u64 = 8;
const EVENTS: u64 = 1000;

pub(crate) fn measure(beliefs: u64) -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let weather = Weather::new();
    let path = folder.path().join("large");
    // As many as in the small store wait for the index: a search looks through them one by one.
    let beliefs = beliefs - beliefs % MAX_WAITING + SMALL % MAX_WAITING;
    fill(&path, beliefs, &weather);
    let small_path = folder.path().join("small");
    fill(&small_path, SMALL, &weather);
    let mut large = World::over(Box::new(world::sqlite(&path)), &weather);
    let mut small = World::over(Box::new(world::sqlite(&small_path)), &weather);
    let connection = bare::open(&path);
    let mut selects = Selects::prepare(&connection);
    let scopes = around(&world::scope());

    let mut to_sql = Rounds::default();
    let mut to_small = Rounds::default();
    for round in 0..=ROUNDS {
        let [mut of_large, mut of_small, mut of_sql] = [Duration::ZERO; 3];
        for topic in 0..TOPICS {
            let word = word(topic);
            let found = timed(&mut of_large, || retrieve(&mut large, &word));
            assert_eq!(found.beliefs.len(), LIMIT, "of {word}");
            let found = timed(&mut of_sql, || selects.run(&word, &scopes, LIMIT));
            assert_eq!(found, Ok(LIMIT));
            let found = timed(&mut of_small, || retrieve(&mut small, &word));
            assert_eq!(found.beliefs.len(), LIMIT, "of {word}");
        }
        // The first warms up.
        if round > 0 {
            to_sql.0.push((of_large, of_sql));
            to_small.0.push((of_large, of_small));
        }
    }
    let (context, sql) = to_sql.each(TOPICS);
    let (_, of_small) = to_small.each(TOPICS);
    vec![
        Figure {
            name: "firewall retrieval ÷ bare SQL",
            value: to_sql.ratio(),
            bound: Bound::AtMost(3.0),
            detail: format!("{LIMIT} of {beliefs}, 1 % match: {context:.1?} against {sql:.1?}"),
        },
        Figure {
            name: "firewall retrieval: large store ÷ small",
            value: to_small.ratio(),
            bound: Bound::AtMost(1.5),
            detail: format!("{beliefs} against {SMALL}: {context:.1?} against {of_small:.1?}"),
        },
        signatures(&path, &retrieve(&mut large, &word(0))),
    ]
}

fn retrieve(world: &mut World, word: &str) -> Context {
    let policy = ContextPolicy::default();
    let found = world
        .firewall
        .context(&policy, &world::scope(), Some(word), LIMIT);
    found.expect("a store that works")
}

/// What it would cost to check the rows of a context by their signatures, without seals.
fn signatures(path: &Path, context: &Context) -> Figure {
    let keys = world::keys();
    let mut store = world::sqlite(path);
    let rows: Vec<_> = context
        .beliefs
        .iter()
        .map(|belief| store.row(&belief.id).expect("a store that works"))
        .map(|row| row.expect("a row that was just found"))
        .collect();
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let mut times = (Duration::ZERO, Duration::ZERO);
        timed(&mut times.0, || {
            assert!(rows.iter().all(|row| keys.has_right_signature(row)));
        });
        timed(&mut times.1, || {
            let genuine = |row| keys.standing(row) == Standing::Genuine;
            assert!(rows.iter().all(genuine));
        });
        rounds.0.push(times);
    }
    let (signed, sealed) = rounds.each(1);
    Figure {
        name: "firewall retrieval: signatures ÷ seals",
        value: rounds.ratio(),
        bound: Bound::None,
        detail: format!("checking {LIMIT} rows: {signed:.1?} against {sealed:.1?}"),
    }
}

fn word(topic: u64) -> String {
    format!("topic{topic}")
}

/// Half of the beliefs are about the place that is asked about, some hold everywhere, and the rest
/// is about other places, with the same words.
fn place(number: u64) -> Scope {
    let place = match number / TOPICS % 20 {
        0..10 => return world::scope(),
        10..12 => return Scope::global(),
        other => format!("project:web-{other}"),
    };
    place.parse().expect("a valid scope")
}

/// Fills a new store with measured facts.
fn fill(path: &Path, beliefs: u64, weather: &Weather) {
    let keys = world::keys();
    let mut store = world::sqlite(path);
    let sample = sample(weather);
    let mut tape = Tape::new();
    let mut numbers = 0..beliefs;
    while !numbers.is_empty() {
        let mut batch = Vec::with_capacity(EVENTS as usize);
        for _ in 0..EVENTS {
            let some: Vec<_> = numbers.by_ref().take(FACTS as usize).collect();
            if some.is_empty() {
                break;
            }
            weather.pass();
            let leaf = leaf_hash(&some[0].to_be_bytes());
            let event = FirewallEvent::Adopted(facts(&sample, &some, weather));
            batch.push((event, tape.place(leaf)));
        }
        world::keep(&mut store, &keys, &batch);
    }
}

/// One measured fact, as the firewall adopts it.
fn sample(weather: &Weather) -> Adopted {
    let mut world = World::over(Box::new(MemoryStore::new()), weather);
    let observation = world::observation(weather, "measure", String::new());
    let measurement = Measurement {
        observation: &observation,
        scope: &world::scope(),
        subject: "file:src/topic/0.ts",
        relation: "length",
        object: 0.into(),
    };
    let seat = &world.seats.measuring;
    let outcome = world.firewall.measure(seat, measurement, &mut world.tape);
    outcome.expect("an honest measurement").adopted
}

/// Facts like the sample, each about a file of its own.
fn facts(sample: &Adopted, numbers: &[u64], weather: &Weather) -> Adopted {
    let mut event = Adopted {
        claims: Vec::with_capacity(numbers.len()),
        evidence: Vec::with_capacity(numbers.len()),
        beliefs: Vec::with_capacity(numbers.len()),
        ..sample.clone()
    };
    for &number in numbers {
        let mut claim: Claim = sample.claims[0].clone();
        let mut evidence: EvidenceSet = sample.evidence[0].clone();
        let mut belief: BeliefRecord = sample.beliefs[0].clone();
        claim.id = weather.id(ClaimId::from_parts);
        claim.scope = place(number);
        claim.predicate.subject = format!("file:src/{}/{number}.ts", word(number % TOPICS));
        claim.predicate.object = number.into();
        claim.statement = format!("`{}`: `length` is `{number}`", claim.predicate.subject);
        evidence.id = weather.id(EvidenceSetId::from_parts);
        evidence.claim = claim.id;
        evidence.items[0].id = weather.id(EvidenceId::from_parts);
        evidence.assembled_at = weather.now_is();
        belief.id = weather.id(BeliefId::from_parts);
        belief.claim = claim.id;
        belief.evidence_set = evidence.id;
        belief.scope = claim.scope.clone();
        belief.observed_at = weather.now_is();
        belief.adopted_at = weather.now_is();
        event.claims.push(claim);
        event.evidence.push(evidence);
        event.beliefs.push(belief);
    }
    event
}
