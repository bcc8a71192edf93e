//! What beliefs about the same thing mean for each other.

use lodestar_core::chain::Truth;
use lodestar_core::digest::sha256;
use lodestar_core::id::BeliefId;
use lodestar_core::name::ServerIdentity;
use lodestar_firewall::event::Contradiction;
use lodestar_firewall::extract::ToolCall;
use lodestar_firewall::reflect::{Window, propose};
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::store::{
    AppliedLog, ContextQuery, Disputes, HistoryRow, ListQuery, MemoryStore, Store, StoreError,
    Tally, Verdict, Writing,
};
use lodestar_firewall::{Intake, MAX_WORD_AGE};
use serde_json::json;

use crate::world::{DAY, World, about, project, scope};

#[test]
fn a_measurement_is_weighed_by_its_own_evidence_whatever_was_read_before() {
    let mut world = World::new();
    world.read("a.md", "status = EVIL");
    let measured = world.measure("fs", "a.md", "status", json!("open"));
    assert_eq!(world.truth(measured.id), Truth::Supported);
    assert_eq!(world.belief(measured.id).evidence.items.len(), 1);
}

#[test]
fn a_word_that_a_measurement_speaks_against_lifts_no_rumour() {
    let mut world = World::new();
    world.measure("fs", "a.md", "status", json!("open"));
    let read = world.read("a.md", "status = EVIL");
    let rumour = about(&read, "status");
    let said = world.assertion("file:a.md", "status", json!("EVIL"));
    let said = world.assert(said);
    assert_ne!(world.truth(said.id), Truth::Supported);
    assert_eq!(world.truth(rumour), Truth::Unverified);
}

#[test]
fn what_says_the_same_contradicts_nothing() {
    let mut world = World::new();
    world.measure("fs", "a.md", "status", json!("open"));
    let read = world.read("a.md", "status = open");
    assert!(read.adopted.contradictions.is_empty());
    let other = world.read("a.md", "status = EVIL");
    assert_eq!(other.adopted.contradictions.len(), 1);
}

#[test]
fn a_result_that_contradicts_what_somebody_promoted_is_written_out() {
    let mut world = World::new();
    let read = world.read("a.md", "status = open");
    world.promote(about(&read, "status")).unwrap();
    let observation = world.observation("read_file", "status = EVIL");
    let (server, scope) = (ServerIdentity::new("files").unwrap(), scope());
    let arguments = json!({"path": "a.md"});
    let intake = Intake {
        call: ToolCall {
            invocation: observation.invocation_id,
            server: &server,
            tool: &observation.tool,
            arguments: &arguments,
            definition: sha256(b"definition"),
            reviewed: true,
            is_error: false,
        },
        observation: &observation,
        scope: &scope,
        // It would be named, were there nothing to say of it.
        recorded: Some(7),
    };
    let outcome = world.firewall.observe_all(&[intake], &mut world.tape);
    assert_eq!(outcome.unwrap()[0].adopted.contradictions.len(), 1);
    let (event, _) = world.tape.events.last().unwrap();
    assert_eq!(event.event_type().as_str(), "belief.adopted@1");
}

#[test]
fn ids_begin_with_the_moment_that_they_were_made_in() {
    let mut world = World::new();
    world.weather.pass(3 * DAY);
    let millis = u64::try_from(world.weather.now_is().unix_micros() / 1000).unwrap();
    let measured = world.measure("fs", "a.md", "status", json!("open"));
    assert_eq!(world.belief(measured.id).claim.id.unix_millis(), millis);
    let said = world.assertion("file:b.md", "status", json!("done"));
    let said = world.assert(said);
    assert_eq!(said.id.unix_millis(), millis);
}

#[test]
fn a_persons_word_counts_up_to_its_greatest_age_and_no_longer() {
    for (age, counts) in [(MAX_WORD_AGE, true), (MAX_WORD_AGE + DAY, false)] {
        let mut world = World::new();
        let read = world.read("notes.md", "status = done");
        let id = about(&read, "status");
        let order = world.promotion(id);
        let envelope = world.sign(order, &world.operator);
        world.weather.pass(age);
        assert_eq!(world.follow(&envelope).is_ok(), counts, "{age:?}");
    }
}

#[test]
fn what_is_overdue_is_shown_as_stale_before_anybody_lets_it_grow_old() {
    let mut world = World::new();
    let measured = world.measure("fs", "a.md", "size", json!(1));
    let fresh = world.context(None);
    assert!(fresh.uncertainties.is_empty());
    world.weather.pass(8 * DAY);
    let later = world.context(None);
    assert_eq!(later.uncertainties, [measured.id]);
    assert_eq!(later.beliefs[0].freshness.as_str(), "stale");
}

#[test]
fn where_nothing_is_due_nothing_is_recorded() {
    let mut world = World::new();
    world.measure("fs", "a.md", "size", json!(1));
    let before = world.tape.events.len();
    let aged = world.firewall.age(&project(), &mut world.tape);
    assert_eq!(aged.unwrap(), 0);
    assert_eq!(world.tape.events.len(), before);
}

#[test]
fn rows_of_another_project_do_not_keep_ours_from_growing_old() {
    let dir = tempfile::tempdir().unwrap();
    let store = || {
        let store = lodestar_firewall::store::SqliteStore::open(&dir.path().join("state.db"));
        Box::new(store.unwrap())
    };
    let weather = World::new().weather;
    let mut theirs = World::over(store(), "t", weather.clone());
    theirs.tape.log.project = "other".parse().unwrap();
    let other = |world: &World, number: usize| {
        let mut observation = world.observation("read_file", &format!("status = {number}"));
        observation.project = "other".parse().unwrap();
        observation
    };
    for number in 0..600 {
        let observation = other(&theirs, number);
        let path = json!({"path": format!("{number}.md")});
        theirs.take_in("files", &observation, &path).unwrap();
    }
    weather.pass(DAY);
    let mut ours = World::over(store(), "o", weather.clone());
    for number in 0..3 {
        ours.measure("fs", &format!("{number}.md"), "size", json!(number));
    }
    weather.pass(8 * DAY);
    let aged = ours.firewall.age(&project(), &mut ours.tape);
    assert_eq!(aged.unwrap(), 3);
}

#[test]
fn reflection_lets_nothing_take_a_place_that_is_not_believed_clean_and_handed_out() {
    use lodestar_core::chain::transition::AxisMove;
    use lodestar_core::chain::{Retrieval, Security};
    let moves = [
        AxisMove::new(Security::Clean, Security::Suspicious),
        AxisMove::new(Retrieval::Normal, Retrieval::Blocked),
    ];
    for step in moves {
        let mut world = World::new();
        let [one, two] = ["ann", "bob"].map(|owner| {
            let read = world.read("a.md", &format!("owner = {owner}"));
            let id = about(&read, "owner");
            world.promote(id).unwrap();
            id
        });
        let order = world.order(two, vec![step.unwrap()]);
        let envelope = world.sign(order, &world.operator);
        world.follow(&envelope).unwrap();
        let window = Window {
            beliefs: vec![(0, one), (1, two)],
            until: 9,
            ..Window::default()
        };
        let log = world.tape.log.clone();
        let reflected = propose(&mut world.firewall, &log, &window).unwrap();
        assert_eq!(reflected.proposals, [], "{:?}", world.axes(two));
    }
}

#[test]
fn reflection_leaves_what_was_contradicted_where_it_is() {
    use lodestar_core::chain::transition::AxisMove;
    let mut world = World::new();
    let [one, two] = ["ann", "bob"].map(|owner| {
        let read = world.read("a.md", &format!("owner = {owner}"));
        let id = about(&read, "owner");
        world.promote(id).unwrap();
        id
    });
    let wrong = AxisMove::new(Truth::Supported, Truth::Contradicted).unwrap();
    let order = world.order(one, vec![wrong]);
    let envelope = world.sign(order, &world.operator);
    world.follow(&envelope).unwrap();
    let window = Window {
        beliefs: vec![(0, one), (1, two)],
        until: 9,
        ..Window::default()
    };
    let log = world.tape.log.clone();
    let reflected = propose(&mut world.firewall, &log, &window).unwrap();
    assert_eq!(reflected.proposals, []);
}

/// A store whose index finds every row, whatever it is asked.
#[derive(Debug)]
struct Lying(MemoryStore);

impl Store for Lying {
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn write(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Writing) -> Result<Verdict, StoreError>,
    ) -> Result<(), StoreError> {
        self.0.write(work)
    }
    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError> {
        Store::row(&mut self.0, id)
    }
    fn rows_starting(&mut self, prefix: &str, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        self.0.rows_starting(prefix, limit)
    }
    fn context(&mut self, query: &ContextQuery) -> Result<Vec<StoredRow>, StoreError> {
        self.0.scan(None, query.limit)
    }
    fn list(&mut self, query: &ListQuery) -> Result<Vec<StoredRow>, StoreError> {
        self.0.list(query)
    }
    fn disputes(&mut self, ids: &[BeliefId], limit: usize) -> Result<Vec<Disputes>, StoreError> {
        self.0.disputes(ids, limit)
    }
    fn history(&mut self, belief: &BeliefId) -> Result<Vec<HistoryRow>, StoreError> {
        self.0.history(belief)
    }
    fn scan(&mut self, after: Option<&str>, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        self.0.scan(after, limit)
    }
    fn scan_contradictions(
        &mut self,
        after: Option<Contradiction>,
        limit: usize,
    ) -> Result<Vec<Contradiction>, StoreError> {
        self.0.scan_contradictions(after, limit)
    }
    fn logs(&mut self) -> Result<Vec<AppliedLog>, StoreError> {
        self.0.logs()
    }
    fn tally(&mut self) -> Result<Vec<Tally>, StoreError> {
        self.0.tally()
    }
}

#[test]
fn an_index_that_lies_brings_nothing_into_a_context() {
    let store = Box::new(Lying(MemoryStore::new()));
    let mut world = World::over(store, "s1", World::new().weather);
    let measured = world.measure("fs", "a.md", "size", json!(1));
    world.read("b.md", "status = EVIL");
    let context = world.context(None);
    let found: Vec<_> = context.beliefs.iter().map(|belief| belief.id).collect();
    assert!(found.contains(&measured.id));
    let evil = |belief: &lodestar_firewall::ContextBelief| belief.predicate.object == json!("EVIL");
    assert!(!context.beliefs.iter().any(evil), "{context:?}");
    assert!(context.left_out.is_empty());
}
