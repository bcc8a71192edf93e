//! What stands behind the last head, or instead of it: what a kill leaves is told from a forgery.

use std::fs;

use lodestar_core::key::SecretKey;
use lodestar_core::merkle::Frontier;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_log::verify::Remark;
use lodestar_log::{LogWriter, ProblemKind, Trust};

use crate::rules::{self, note, opened, opening, project, row};
use crate::support::{World, append, id, verify_folder};

/// A ledger of four records.
fn ledger() -> World {
    let world = World::fast();
    world.closed("s1", 4);
    world.closed("s2", 4);
    world
}

/// A head over the first records of the ledger, by its own key.
fn head(world: &World, size: u64) -> String {
    let text = fs::read_to_string(world.log().ledger_path()).unwrap();
    let mut tree = Frontier::new();
    for line in text.lines().take(size as usize) {
        let end = line.find(",\"payload\":").unwrap();
        let head = &line["{\"head\":".len()..end];
        tree.push(lodestar_core::digest::leaf_hash(head.as_bytes()));
    }
    let checkpoint = Checkpoint {
        origin: world.log().ledger_origin(),
        size,
        root: tree.root(),
    };
    checkpoint.sign(&world.key).to_string()
}

/// What is found with this head in place and this one announced, and some bytes behind the records.
fn found(in_place: u64, announced: Option<String>, torn: &str) -> (Vec<&'static str>, bool) {
    let world = ledger();
    fs::write(world.log().ledger_checkpoint_path(), head(&world, in_place)).unwrap();
    if let Some(announced) = announced {
        fs::write(world.log().dir().join("ledger.next"), announced).unwrap();
    }
    let mut text = fs::read_to_string(world.log().ledger_path()).unwrap();
    text += torn;
    fs::write(world.log().ledger_path(), text).unwrap();
    let report = world.verify();
    let codes = report.all_problems().map(|p| p.kind.code()).collect();
    let interrupted = report.remarks.contains(&Remark::LedgerAppendInterrupted);
    (codes, interrupted)
}

/// The same history every time, whatever the clock shows: heads of one world fit another's only so far.
fn of_another_history(size: u64) -> String {
    let other = World::fast();
    other.closed("s1", 4);
    other.closed("s2", 4);
    head(&other, size)
}

#[test]
fn an_append_was_cut_short_only_where_its_own_head_was_announced() {
    // One record more than the head covers, and exactly its head announced.
    let world = ledger();
    fs::write(world.log().ledger_checkpoint_path(), head(&world, 3)).unwrap();
    fs::write(world.log().dir().join("ledger.next"), head(&world, 4)).unwrap();
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.remarks, [Remark::LedgerAppendInterrupted]);

    // No head is announced, one of another history, or one of another size.
    let forged = (vec!["ledger_tail"], false);
    assert_eq!(found(3, None, ""), forged);
    assert_eq!(found(3, Some(of_another_history(4)), ""), forged);
    let world = ledger();
    fs::write(world.log().ledger_checkpoint_path(), head(&world, 3)).unwrap();
    fs::write(world.log().dir().join("ledger.next"), head(&world, 3)).unwrap();
    let codes = |world: &World| {
        let report = world.verify();
        let codes = report.all_problems().map(|p| p.kind.code());
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes(&world), ["ledger_tail"]);
    // Two records at once were never appended, whoever announced it.
    fs::write(world.log().ledger_checkpoint_path(), head(&world, 2)).unwrap();
    fs::write(world.log().dir().join("ledger.next"), head(&world, 4)).unwrap();
    assert_eq!(codes(&world), ["ledger_tail"]);
}

#[test]
fn a_torn_record_was_cut_short_only_where_the_next_head_was_announced() {
    let announced = |size: u64| Some(of_another_history(size.min(4)));
    assert_eq!(
        found(4, None, "{\"head\":"),
        (vec!["unterminated_line"], false)
    );
    // A head that covers what is there announces nothing.
    let covered = found(4, announced(4), "{\"head\":");
    assert_eq!(covered, (vec!["unterminated_line"], false));
    // The one that would come next does.
    let world = ledger();
    let five = Checkpoint {
        origin: world.log().ledger_origin(),
        size: 5,
        root: Frontier::new().root(),
    };
    let five = five.sign(&world.key).to_string();
    assert_eq!(found(4, Some(five), "{\"head\":"), (vec![], true));
    // But not where another record stands in between.
    let four = announced(4);
    let both = found(3, four, "{\"head\":");
    assert_eq!(both, (vec!["unterminated_line", "ledger_tail"], false));
}

#[test]
fn a_ledger_without_a_head_is_told_so_once() {
    let world = ledger();
    let path = world.log().ledger_checkpoint_path();
    let codes = |world: &World| {
        let report = world.verify();
        let codes = report.all_problems().map(|p| p.kind.code());
        codes.collect::<Vec<_>>()
    };
    let whole = fs::read(&path).unwrap();
    fs::write(&path, "nonsense").unwrap();
    assert_eq!(codes(&world), ["checkpoint_invalid"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(codes(&world), ["checkpoint_missing"]);
    fs::write(&path, whole).unwrap();
    assert_eq!(codes(&world), [""; 0]);
    // The very first record, torn: there is nothing that a head could cover.
    let world = World::fast();
    fs::create_dir_all(world.log().dir()).unwrap();
    fs::write(world.log().ledger_path(), "{\"head\":").unwrap();
    assert_eq!(codes(&world), ["unterminated_line"]);
}

#[test]
fn a_folder_is_a_session_that_nobody_opened_as_soon_as_it_holds_more_than_a_start_makes() {
    let found = |put: &dyn Fn(&World)| {
        let world = ledger();
        put(&world);
        let report = world.verify();
        let codes: Vec<_> = report.all_problems().map(|p| p.kind.code()).collect();
        (codes, report.remarks.len())
    };
    let dir = |world: &World| world.log().session(&id("s9"));
    let checkpoint = |world: &World, size: u64| {
        let checkpoint = Checkpoint {
            origin: dir(world).origin(),
            size,
            root: Frontier::new().root(),
        };
        fs::create_dir_all(dir(world).dir()).unwrap();
        let text = checkpoint.sign(&world.key).to_string();
        fs::write(dir(world).checkpoint_path(), text).unwrap();
    };
    let not_started = (vec![], 1);
    let unknown = (vec!["unknown_session"], 0);
    assert_eq!(
        found(&|world| fs::create_dir_all(dir(world).dir()).unwrap()),
        not_started
    );
    assert_eq!(found(&|world| checkpoint(world, 0)), not_started);
    assert_eq!(found(&|world| checkpoint(world, 3)), unknown);
    assert_eq!(
        found(&|world| {
            fs::create_dir_all(dir(world).dir()).unwrap();
            fs::write(dir(world).events_path(), "").unwrap();
        }),
        unknown
    );
    assert_eq!(
        found(&|world| {
            fs::create_dir_all(dir(world).dir()).unwrap();
            fs::write(dir(world).checkpoint_path(), "nonsense").unwrap();
        }),
        unknown
    );
    assert_eq!(
        found(&|world| {
            let empty = world.folder().join("elsewhere");
            fs::create_dir_all(&empty).unwrap();
            std::os::unix::fs::symlink(empty, dir(world).dir()).unwrap();
        }),
        unknown
    );
}

#[test]
fn a_session_that_has_events_or_a_proof_of_them_was_started() {
    let not_started = |world: &World| {
        let report = world.verify();
        let remarks = &report.sessions[0].remarks;
        remarks
            .iter()
            .any(|remark| matches!(remark, Remark::NotStarted { .. }))
    };
    let world = World::fast();
    let writer = world.create("s1");
    append(&writer, 1);
    drop(writer);
    assert!(!not_started(&world));
    // The checkpoint covers something, and the events are gone.
    world.closed("s2", 4);
    let world = World::fast();
    world.closed("s1", 4);
    fs::write(world.log().session(&id("s1")).events_path(), "").unwrap();
    assert!(!not_started(&world));
    assert!(!world.verify().is_intact());
}

#[test]
fn what_is_cut_off_is_missing_from_where_the_file_ends() {
    let world = World::fast();
    world.closed("s1", 8);
    let path = world.log().session(&id("s1")).events_path();
    let text = fs::read_to_string(&path).unwrap();
    let kept: String = text.split_inclusive('\n').take(5).collect();
    fs::write(&path, &kept).unwrap();
    let report = world.verify();
    let cut = report
        .all_problems()
        .find(|problem| matches!(problem.kind, ProblemKind::Truncated { found: 5, .. }));
    assert_eq!(cut.unwrap().offset, Some(kept.len() as u64), "{report:#?}");
}

#[test]
fn signatures_on_a_sessions_checkpoint_are_looked_at_too() {
    let world = World::fast();
    world.closed("s1", 4);
    let path = world.log().session(&id("s1")).checkpoint_path();
    let mut note = Note::parse(&fs::read(&path).unwrap()).unwrap();
    let witness = SecretKey::from_seed([3; 32]);
    Checkpoint::cosign(&mut note, "witness.example", &witness, 1_800_000_000).unwrap();
    fs::write(&path, note.to_string()).unwrap();
    let key = lodestar_core::note::NoteKey::cosignature("witness.example", &witness.public());
    let trust = Trust {
        witnesses: vec![key.unwrap()],
        ..world.trust()
    };
    let report = verify_folder(world.folder(), &trust, None);
    let unknown = Remark::UnknownSignature {
        name: "witness.example".to_owned(),
    };
    assert!(!report.sessions[0].remarks.contains(&unknown));
    assert!(world.verify().sessions[0].remarks.contains(&unknown));
}

#[test]
fn a_close_was_interrupted_where_nothing_but_the_log_itself_came_after_it() {
    let closed = || row("session.closed@1", serde_json::json!({}));
    let interrupted = |rows: Vec<rules::Row>| {
        let world = project(|w| vec![opening(w)], rows);
        let report = world.verify();
        report.sessions[0]
            .remarks
            .contains(&Remark::CloseInterrupted)
    };
    assert!(interrupted(vec![opened(), note(), closed()]));
    assert!(!interrupted(vec![opened(), note()]));
    assert!(!interrupted(vec![opened(), closed(), note()]));
    let of_the_log = || row("log.anchored@1", serde_json::json!({}));
    assert!(interrupted(vec![opened(), closed(), of_the_log()]));
}

#[test]
fn a_session_that_was_closed_or_taken_up_again_does_not_start_anew_in_an_emptied_folder() {
    let again = |world: &World| {
        let dir = world.log().session(&id("s1"));
        fs::remove_dir_all(dir.dir()).unwrap();
        fs::create_dir_all(dir.dir()).unwrap();
        // As a start that was interrupted leaves it.
        let nothing = Checkpoint {
            origin: dir.origin(),
            size: 0,
            root: Frontier::new().root(),
        };
        fs::write(dir.checkpoint_path(), nothing.sign(&world.key).to_string()).unwrap();
        let opened = serde_json::json!({});
        let actor = crate::support::actor();
        let options = world.options();
        LogWriter::create(&world.log(), &id("s1"), &actor, &opened, &options).is_ok()
    };
    let world = World::fast();
    drop(world.create("s1"));
    assert!(again(&world), "only its start is known");

    let world = World::fast();
    world.closed("s1", 4);
    assert!(!again(&world));

    let world = World::fast();
    let writer = world.create("s1");
    append(&writer, 1);
    drop(writer);
    drop(LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap());
    assert!(!again(&world));
}
