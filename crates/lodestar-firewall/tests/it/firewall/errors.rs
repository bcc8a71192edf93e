//! What can go wrong beneath the rules, and how it is told.

use lodestar_core::chain::Truth;
use lodestar_core::chain::transition::{AuthorityKind, AxisMove};
use lodestar_core::digest::sha256;
use lodestar_firewall::FirewallError;
use lodestar_firewall::event::{Cause, Change, FirewallEvent, LogPosition, Moved};
use lodestar_firewall::fold::{self, FoldError};
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::{Keyring, Standing};
use lodestar_firewall::store::{MemoryStore, SqliteStore, Store, StoreError, Verdict};
use serde_json::json;

use crate::world::{World, key};

fn a_row() -> StoredRow {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let store = Box::new(SqliteStore::open(&path).unwrap());
    let mut world = World::over(store, "s", World::new().weather);
    world.read("a.md", "# Heading");
    let mut rows = SqliteStore::open(&path).unwrap().scan(None, 10).unwrap();
    rows.swap_remove(0)
}

#[test]
fn a_column_that_cannot_be_read_is_named() {
    type Spoil = fn(&mut StoredRow);
    let whole = a_row();
    assert!(whole.open().is_ok());
    let spoil: [(&str, Spoil); 17] = [
        ("id", |row| row.id = "blf_nonsense".to_owned()),
        ("scope", |row| row.scope = "planet:mars".to_owned()),
        ("object", |row| row.object = "{".to_owned()),
        ("claim", |row| row.claim = "[]".to_owned()),
        ("evidence", |row| row.evidence = "null".to_owned()),
        ("authority", |row| row.authority = "pope".to_owned()),
        ("confidence", |row| row.confidence = f64::NAN),
        ("class", |row| row.class = String::new()),
        ("sensitivity", |row| row.sensitivity = 4),
        ("truth", |row| row.truth = "true".to_owned()),
        ("retrieval", |row| row.retrieval = "always".to_owned()),
        ("security", |row| row.security = "fine".to_owned()),
        ("freshness", |row| row.freshness = "old".to_owned()),
        ("observed_at", |row| row.observed_at = -1),
        ("due_at", |row| row.due_at = Some(-5)),
        ("revision", |row| row.revision = -1),
        ("server", |row| row.server = None),
    ];
    for (column, spoil) in spoil {
        let mut row = whole.clone();
        spoil(&mut row);
        let bad = row.open().unwrap_err();
        assert_eq!(bad.column, column);
        assert!(
            bad.to_string().contains(&format!("column `{column}`")),
            "{bad}"
        );
        assert_ne!(
            Keyring::new(key(1)).standing(&row),
            Standing::Genuine,
            "{column}"
        );
    }
}

#[test]
fn hostile_text_in_a_row_is_inert_in_its_error() {
    let mut row = a_row();
    row.id = "blf_\u{1b}[2J\u{202e}".to_owned();
    let text = row.open().unwrap_err().to_string();
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{202e}'),
        "{text}"
    );
}

#[test]
fn a_right_signature_or_a_right_seal_makes_a_row_genuine_and_neither_does_not() {
    let keys = Keyring::new(key(1));
    let whole = a_row();
    assert_eq!(keys.standing(&whole), Standing::Genuine);
    let mut unsealed = whole.clone();
    unsealed.seal = [0; 32];
    assert_eq!(keys.standing(&unsealed), Standing::Genuine);
    let mut unsigned = whole.clone();
    unsigned.signature.clear();
    assert_eq!(keys.standing(&unsigned), Standing::Genuine);
    assert!(
        !keys.has_right_signature(&unsigned),
        "an audit looks at the signature"
    );
    for length in 0..whole.signature.len() {
        let mut neither = unsealed.clone();
        neither.signature.truncate(length);
        assert_eq!(keys.standing(&neither), Standing::Edited, "{length}");
    }
    for byte in 0..whole.signature.len() {
        let mut neither = unsealed.clone();
        neither.signature[byte] ^= 1;
        assert_eq!(keys.standing(&neither), Standing::Edited, "{byte}");
    }
    // Somebody else's seal or signature proves nothing here.
    let others = Keyring::new(key(2));
    assert_eq!(others.standing(&whole), Standing::Foreign);
    let mut resigned = [whole.clone()];
    others.sign(&mut resigned);
    resigned[0].signer.clone_from(&whole.signer);
    assert_eq!(keys.standing(&resigned[0]), Standing::Edited);
}

#[test]
fn an_event_that_is_recorded_and_cannot_be_followed_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Box::new(SqliteStore::open(&dir.path().join("state.db")).unwrap());
    // Two worlds with the same chance make the same ids.
    let mut one = World::over(open(), "one", World::new().weather);
    one.read("a.md", "text");
    let mut two = World::over(open(), "two", World::new().weather);
    let observation = two.observation("read_file", "text");
    let failed = two
        .take_in("files", &observation, &json!({"path": "a.md"}))
        .unwrap_err();
    let FirewallError::Behind { seq: 0, problem } = &failed else {
        panic!("{failed}");
    };
    assert!(
        matches!(problem, FoldError::Store(StoreError::Conflict { .. })),
        "{problem}"
    );
    assert!(
        failed
            .to_string()
            .starts_with("event #0 is recorded, but the store could not follow")
    );
    assert_eq!(
        two.tape.events.len(),
        1,
        "the log has it, so nothing is lost"
    );
    // Going on would say that the log was followed up to there.
    let observation = two.observation("read_file", "text");
    let stopped = two.take_in("files", &observation, &json!({"path": "b.md"}));
    assert!(matches!(stopped, Err(FirewallError::Stopped)));
    assert_eq!(two.tape.events.len(), 1);
}

#[test]
fn a_row_that_is_not_genuine_is_not_moved_and_not_derived_from() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Box::new(SqliteStore::open(&dir.path().join("state.db")).unwrap());
    let weather = World::new().weather;
    let mut theirs = World::with_keys(open(), "t", weather.clone(), key(2), vec![]);
    let fact = theirs.measure("fs", "a.md", "size", json!(1));
    let mut ours = World::with_keys(open(), "o", weather, key(1), vec![]);
    let refused = ours.promote(fact.id).unwrap_err();
    assert!(matches!(refused, FirewallError::NotGenuine(id) if id == fact.id));
    assert!(
        refused.to_string().contains("lodestar store status"),
        "{refused}"
    );
    let refused = ours
        .derive(&[fact.id], "file:b", "x", json!(1))
        .unwrap_err();
    assert!(matches!(refused, FirewallError::NotGenuine(_)));
}

#[test]
fn an_event_that_moves_a_belief_where_such_an_event_cannot_is_not_applied() {
    let mut world = World::new();
    let read = world.read("a.md", "status = done");
    let id = crate::world::about(&read, "status");
    let change = |authority, cause| Change {
        belief: id,
        revision: 1,
        moves: vec![AxisMove::new(Truth::Unverified, Truth::Supported).unwrap()],
        authority,
        cause,
        at: world.weather.now_is(),
        evidence: Vec::new(),
    };
    let forged = [
        change(AuthorityKind::User, Cause::Clock),
        change(AuthorityKind::User, Cause::Statement(sha256(b"none"))),
        change(
            AuthorityKind::AutoObservation,
            Cause::Finding("I say so".to_owned()),
        ),
        change(AuthorityKind::Policy, Cause::Rule("rule".parse().unwrap())),
        change(AuthorityKind::System, Cause::Clock),
    ];
    let keys = Keyring::new(key(1));
    let (adopted, at) = world.tape.events[0].clone();
    for change in forged {
        let mut store = MemoryStore::new();
        let event = FirewallEvent::Moved(Moved {
            changes: vec![change.clone()],
        });
        let later = LogPosition {
            seq: at.seq + 1,
            ..at.clone()
        };
        let mut refused = None;
        store
            .write(&mut |tx| {
                fold::apply(tx, &keys, &adopted, &at).unwrap();
                refused = fold::apply(tx, &keys, &event, &later).err();
                Ok(Verdict::Rollback)
            })
            .unwrap();
        assert!(
            matches!(refused, Some(FoldError::BadEvent { .. })),
            "{change:?}"
        );
    }
}
