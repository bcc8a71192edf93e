//! Many results in one transaction.

use lodestar_core::chain::{Observation, Truth};
use lodestar_core::defence::Defence;
use lodestar_core::digest::sha256;
use lodestar_core::name::ServerIdentity;
use lodestar_firewall::event::{FirewallEvent, LogPosition, NotRecorded, Recorder};
use lodestar_firewall::extract::ToolCall;
use lodestar_firewall::row::keys::{Keyring, Standing};
use lodestar_firewall::store::{SqliteStore, Store};
use lodestar_firewall::{FirewallError, Intake, Outcome};
use serde_json::{Value, json};

use crate::world::{Tape, World, scope};

/// Files that are read one after the other, some of them twice.
fn readings(number: usize) -> Vec<(Value, String)> {
    let reading = |at: usize| {
        let path = format!("part{}.md", at % 7 * (at % 3));
        (json!({"path": path}), format!("status = {}", at % 4))
    };
    (0..number).map(reading).collect()
}

fn take_in(
    world: &mut World,
    readings: &[(Value, String)],
    recorder: Option<&mut dyn Recorder>,
) -> Result<Vec<Outcome>, FirewallError> {
    let observations: Vec<Observation> = readings
        .iter()
        .map(|(_, text)| world.observation("read_file", text))
        .collect();
    let (server, scope) = (ServerIdentity::new("files").unwrap(), scope());
    let intakes = (0..).zip(observations.iter().zip(readings));
    let intakes: Vec<_> = intakes
        .map(|(place, (observation, (arguments, _)))| Intake {
            call: ToolCall {
                invocation: observation.invocation_id,
                server: &server,
                tool: &observation.tool,
                arguments,
                definition: sha256(b"definition"),
                reviewed: true,
                is_error: false,
            },
            observation,
            scope: &scope,
            recorded: Some(place),
        })
        .collect();
    match recorder {
        Some(recorder) => world.firewall.observe_all(&intakes, recorder),
        None => world.firewall.observe_all(&intakes, &mut world.tape),
    }
}

/// What an outcome says, without the ids that were drawn for it.
fn said(outcome: &Outcome) -> (Vec<(String, String, Truth)>, usize, usize) {
    let adopted = &outcome.adopted;
    let claims = adopted.claims.iter().zip(&adopted.beliefs);
    let claims = claims.filter(|(claim, _)| !claim.predicate.subject.starts_with("call:"));
    let claims = claims.map(|(claim, belief)| {
        let about = format!("{} {}", claim.predicate.subject, claim.predicate.relation);
        (about, claim.predicate.object.to_string(), belief.axes.truth)
    });
    let (changes, against) = (&adopted.changes, &adopted.contradictions);
    (claims.collect(), changes.len(), against.len())
}

#[test]
fn results_taken_in_together_stand_as_if_they_had_come_one_by_one() {
    let readings = readings(100);
    let [mut together, mut alone] = [World::new(), World::new()];
    for world in [&mut together, &mut alone] {
        world.measure("probe", "part0.md", "status", json!("2"));
    }
    let at_once = take_in(&mut together, &readings, None).unwrap();
    let one_by_one: Vec<_> = readings
        .chunks(1)
        .flat_map(|one| take_in(&mut alone, one, None).unwrap())
        .collect();
    let said_of = |outcomes: &[Outcome]| outcomes.iter().map(said).collect::<Vec<_>>();
    assert_eq!(said_of(&at_once), said_of(&one_by_one));
    assert!(said_of(&at_once).iter().any(|(.., against)| *against > 0));
    assert!(together.tape.events.len() < alone.tape.events.len());
}

/// Where a harness takes texts for facts, what gathered has a say in what comes next.
#[test]
fn results_that_are_taken_for_facts_stand_together_as_they_stand_alone() {
    let readings = readings(60);
    let [mut together, mut alone] = [0, 1].map(|_| World::without(&[Defence::ContentSplit]));
    let at_once = take_in(&mut together, &readings, None).unwrap();
    let one_by_one: Vec<_> = readings
        .chunks(1)
        .flat_map(|one| take_in(&mut alone, one, None).unwrap())
        .collect();
    let said_of = |outcomes: &[Outcome]| outcomes.iter().map(said).collect::<Vec<_>>();
    assert_eq!(said_of(&at_once), said_of(&one_by_one));
    assert!(said_of(&at_once).iter().any(|(_, changes, _)| *changes > 0));
}

#[test]
fn every_row_of_many_that_were_signed_together_has_its_own_way_to_the_signature() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    let store = Box::new(SqliteStore::open(&file).unwrap());
    let weather = World::new().weather;
    let mut world = World::over(store, "s1", weather);
    let outcomes = take_in(&mut world, &readings(100), None).unwrap();
    let believed: usize = outcomes.iter().map(|outcome| outcome.beliefs().len()).sum();
    let keys = Keyring::new(world.installation.clone());
    let rows = SqliteStore::open(&file).unwrap().scan(None, 1000).unwrap();
    assert_eq!(rows.len(), believed);
    assert!(believed >= 200, "{believed}");
    for row in rows {
        assert!(keys.has_right_signature(&row), "{}", row.id);
        assert_eq!(keys.standing(&row), Standing::Genuine);
        let edited = lodestar_firewall::row::StoredRow {
            truth: "supported".to_owned(),
            statement: "otherwise".to_owned(),
            ..row
        };
        assert_eq!(keys.standing(&edited), Standing::Edited);
    }
}

/// A log that takes some events and then no more.
struct Full<'a>(&'a mut Tape, usize);

impl Recorder for Full<'_> {
    fn record(&mut self, event: &FirewallEvent) -> Result<LogPosition, NotRecorded> {
        if self.1 == 0 {
            return Err(NotRecorded("the disk is full".into()));
        }
        self.1 -= 1;
        self.0.record(event)
    }
}

#[test]
fn a_log_that_is_full_in_the_middle_leaves_a_store_that_follows_nothing_more() {
    let mut world = World::new();
    world.measure("probe", "part0.md", "status", json!("9"));
    let mut tape = Tape::new("s2");
    let refused = take_in(&mut world, &readings(10), Some(&mut Full(&mut tape, 3)));
    assert!(matches!(refused, Err(FirewallError::NotRecorded(_))));
    assert_eq!(tape.events.len(), 3);
    assert_eq!(world.context(None).beliefs.len(), 1);
    let after = take_in(&mut world, &readings(1), None);
    assert!(matches!(after, Err(FirewallError::Stopped)), "{after:?}");
}
