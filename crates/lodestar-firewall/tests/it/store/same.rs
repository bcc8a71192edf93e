//! All stores are one: after any work, every question has the same answer in each.

use lodestar_core::chain::{Axes, Freshness, Retrieval, Security, Truth};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{
    ContextQuery, ListQuery, MemoryStore, SqliteStore, Store, StoreError, Verdict, Writing,
};
use proptest::prelude::*;

use super::cluster::Schema;
use super::rows::{Sketch, WEB, against, ageing, at, changed, id, keys, log};

/// Few beliefs, so that operations meet.
const BELIEFS: u64 = 6;
const PROJECTS: [&str; 2] = ["web", "api"];
const SESSIONS: [&str; 2] = ["s-1", "s-2"];
const SCOPES: [&str; 3] = ["global", WEB, "project:web/session:s-1"];
const STATEMENTS: [&str; 4] = ["The Red house", "a red Door\0", "ÄPFEL und red", "nothing"];

/// A row by small numbers.
#[derive(Debug, Clone)]
struct Shape {
    belief: u64,
    revision: i64,
    axes: [usize; 4],
    scope: usize,
    statement: usize,
    subject: u64,
    observed: u64,
    sensitivity: usize,
    signer: u8,
    place: [usize; 2],
}

impl Shape {
    fn row(&self, keys: &[Keyring; 2]) -> StoredRow {
        let [truth, retrieval, security, freshness] = self.axes;
        let mut sketch = Sketch::new(self.belief)
            .within(SCOPES[self.scope])
            .says(STATEMENTS[self.statement])
            .about(match self.subject {
                0 => "call:1".to_owned(),
                n => format!("file:{n}"),
            })
            .observed(self.observed)
            .sensitive(Sensitivity::ALL[self.sensitivity])
            .in_log(PROJECTS[self.place[0]], SESSIONS[self.place[1]]);
        sketch.axes = Axes {
            truth: Truth::ALL[truth],
            retrieval: Retrieval::ALL[retrieval],
            security: Security::ALL[security],
            freshness: Freshness::ALL[freshness],
        };
        let mut row = sketch.row_by(&keys[usize::from(self.signer)]);
        row.revision = self.revision;
        row
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<Shape>),
    Replace(Shape),
    History(u64, u64),
    Contradict(u64, u64),
    Advance(u8, [usize; 2], u64),
    Forget(u8, usize),
}

fn shape() -> impl Strategy<Value = Shape> {
    // Eligible more often than chance would have it.
    let axes = prop_oneof![
        Just([1, 2, 0, 0]),
        (0..4_usize, 0..5_usize, 0..4_usize, 0..3_usize).prop_map(|(t, r, s, f)| [t, r, s, f]),
    ];
    let what = (0..BELIEFS, 0..3_i64, axes, 0..SCOPES.len());
    let text = (0..STATEMENTS.len(), 0..3_u64, 0..4_u64, 0..4_usize);
    let whose = (0..2_u8, 0..2_usize, 0..2_usize);
    (what, text, whose).prop_map(
        |(
            (belief, revision, axes, scope),
            (statement, subject, observed, sensitivity),
            (signer, project, session),
        )| Shape {
            belief,
            revision,
            axes,
            scope,
            statement,
            subject,
            observed,
            sensitivity,
            signer,
            place: [project, session],
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let place = (0..2_usize, 0..2_usize).prop_map(|(project, session)| [project, session]);
    prop_oneof![
        4 => prop::collection::vec(shape(), 0..3).prop_map(Step::Insert),
        4 => shape().prop_map(Step::Replace),
        1 => (0..BELIEFS, 1..4_u64).prop_map(|(belief, revision)| Step::History(belief, revision)),
        2 => (0..BELIEFS, 0..BELIEFS).prop_map(|(one, other)| Step::Contradict(one, other)),
        1 => (0..2_u8, place, 0..9_u64).prop_map(|(by, place, next)| Step::Advance(by, place, next)),
        1 => (0..2_u8, 0..2_usize).prop_map(|(by, project)| Step::Forget(by, project)),
    ]
}

fn take(step: &Step, writing: &mut dyn Writing, keys: &[Keyring; 2]) -> Result<(), StoreError> {
    let signer = |by: &u8| keys[usize::from(*by)].own_id().as_str().to_owned();
    match step {
        Step::Insert(shapes) => {
            let rows: Vec<_> = shapes.iter().map(|shape| shape.row(keys)).collect();
            writing.insert(&rows)
        }
        Step::Replace(shape) => writing.replace(&shape.row(keys)),
        Step::History(belief, revision) => {
            let (_, mut history) = changed(&Sketch::new(*belief).row_by(&keys[0]), ageing());
            history.change.revision = *revision;
            writing.add_history(&history)
        }
        Step::Contradict(one, other) => writing.add_contradictions(&[against(*one, *other)]),
        Step::Advance(by, [project, session], next) => {
            let log = log(PROJECTS[*project], SESSIONS[*session]);
            writing.advance(&signer(by), &log, *next)
        }
        Step::Forget(by, project) => writing.forget(&signer(by), PROJECTS[*project]),
    }
}

/// Runs a transaction and says what came of it, and what the work saw meanwhile.
fn run(store: &mut dyn Store, steps: &[Step], commit: bool, keys: &[Keyring; 2]) -> String {
    let mut seen = Vec::new();
    let outcome = store.write(&mut |writing| {
        for step in steps {
            take(step, writing, keys)?;
            seen.push(within(writing)?);
        }
        Ok(match commit {
            true => Verdict::Commit,
            false => Verdict::Rollback,
        })
    });
    match outcome {
        Ok(()) => seen.join("\n"),
        Err(error) => format!("{error} after {}", seen.join("\n")),
    }
}

fn within(writing: &mut dyn Writing) -> Result<String, StoreError> {
    let mut seen = Vec::new();
    for n in 0..3 {
        let sketch = Sketch::new(0).about(format!("file:{n}"));
        seen.push(writing.settled(&sketch.key(), 4)?);
        seen.push(writing.unverified(&sketch.key(), 4)?);
    }
    seen.push(writing.due(at(8 * 86_400), 3)?);
    Ok(format!("{seen:?}"))
}

/// Every question there is.
fn answers(store: &mut dyn Store) -> Result<Vec<String>, StoreError> {
    let mut all = Vec::new();
    for n in 0..BELIEFS {
        all.push(format!("{:?}", store.row(&id(n))?));
        all.push(format!("{:?}", store.history(&id(n))?));
    }
    for words in [&[][..], &["red"], &["red", "house"], &["äpfel"], &["file"]] {
        for scopes in [&SCOPES[..], &SCOPES[1..2], &[]] {
            let query = ContextQuery {
                scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
                words: words.iter().map(|word| (*word).to_owned()).collect(),
                not_before: at(1),
                ceiling: Sensitivity::Confidential,
                limit: 3,
            };
            all.push(format!("{words:?} {:?}", store.context(&query)?));
        }
    }
    let lists = [
        ListQuery::default(),
        ListQuery {
            containing: Some("äpfel".to_owned()),
            ..ListQuery::default()
        },
        ListQuery {
            truth: Some(Truth::Unverified),
            session: Some("s-1".to_owned()),
            ..ListQuery::default()
        },
    ];
    for list in lists {
        all.push(format!(
            "{:?}",
            store.list(&ListQuery { limit: 4, ..list })?
        ));
    }
    let beliefs: Vec<_> = (0..BELIEFS).map(id).collect();
    all.push(format!("{:?}", store.disputes(&beliefs, 2)?));
    all.push(format!("{:?}", store.scan(None, 99)?));
    all.push(format!("{:?}", store.scan(Some(&id(2).to_string()), 2)?));
    all.push(format!("{:?}", store.rows_starting(&id(2).to_string(), 2)?));
    all.push(format!("{:?}", store.scan_contradictions(None, 99)?));
    let after = Some(against(2, 3));
    all.push(format!("{:?}", store.scan_contradictions(after, 3)?));
    all.push(format!("{:?}", store.logs()?));
    all.push(format!("{:?}", store.tally()?));
    let mut inside = String::new();
    store.write(&mut |writing| {
        inside = within(writing)?;
        Ok(Verdict::Rollback)
    })?;
    all.push(inside);
    Ok(all)
}

/// Does the same to a store as to one in memory, and compares after each transaction.
fn compare(other: &mut dyn Store, work: &[(Vec<Step>, bool)]) -> Result<(), TestCaseError> {
    let mut memory = MemoryStore::new();
    let keys = [keys(1), keys(2)];
    for (steps, commit) in work {
        let wanted = run(&mut memory, steps, *commit, &keys);
        prop_assert_eq!(run(other, steps, *commit, &keys), wanted);
        let (wanted, found) = (answers(&mut memory).unwrap(), answers(other).unwrap());
        for (wanted, found) in wanted.into_iter().zip(found) {
            prop_assert_eq!(found, wanted);
        }
    }
    Ok(())
}

fn work() -> impl Strategy<Value = Vec<(Vec<Step>, bool)>> {
    let transaction = (
        prop::collection::vec(step(), 1..4),
        prop::bool::weighted(0.8),
    );
    prop::collection::vec(transaction, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_answers_as_memory_does(work in work()) {
        compare(&mut SqliteStore::in_memory().unwrap(), &work)?;
    }
}

#[test]
fn postgres_answers_as_memory_does() {
    let config = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if Schema::new().is_none() {
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&work(), |work| {
            let schema = Schema::new().expect("it was there before");
            compare(&mut schema.open(), &work)
        })
        .unwrap();
}
