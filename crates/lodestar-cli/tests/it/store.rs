//! `lodestar store status` and `rebuild`

use std::fs;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::governed::{stable, state_db, told};
use crate::world::World;

/// Everything that the store holds, but for the order in which it came.
fn rows(world: &World) -> Vec<Vec<String>> {
    let db = Connection::open(state_db(world)).expect("opened");
    let mut all = Vec::new();
    for table in ["beliefs", "history", "contradictions", "logs"] {
        let mut query = db
            .prepare(&format!("SELECT * FROM {table}"))
            .expect("a table");
        let columns: Vec<usize> = query
            .column_names()
            .enumerate()
            .filter(|(_, name)| *name != "n")
            .map(|(at, _)| at)
            .collect();
        let found = query.query_map([], |row| {
            let value = |at: &usize| Ok(format!("{:?}", row.get_ref(*at)?));
            columns.iter().map(value).collect::<Result<Vec<_>, _>>()
        });
        all.extend(found.expect("rows").map(|row| row.expect("a row")));
    }
    all.sort();
    all
}

fn findings(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("a list");
    findings
        .iter()
        .map(|finding| finding["finding"].as_str().expect("a code"))
        .collect()
}

#[test]
fn a_store_that_says_what_the_log_says_is_sound() {
    let world = World::new();
    told(&world);
    let run = world.run(&["store", "status"]).expect(0);
    insta::assert_snapshot!(stable(&world, &run.out));
    let report = world.run(&["store", "status", "--json"]).expect(0).json();
    assert_eq!(report["sound"], true);
    assert_eq!(report["findings"], json!([]));
}

#[test]
fn an_edited_row_is_named_and_in_no_list() {
    let world = World::new();
    let told = told(&world);
    let id = told.content.to_string();
    let db = Connection::open(state_db(&world)).expect("opened");
    let edited = db.execute(
        "UPDATE beliefs SET truth = 'supported', retrieval = 'normal' WHERE id = ?1",
        [&id],
    );
    assert_eq!(edited.expect("edited"), 1);
    drop(db);
    let list = world.run(&["belief", "list", "--json"]).expect(0).json();
    let beliefs = list["context"]["beliefs"].as_array().expect("a list");
    assert!(beliefs.iter().all(|belief| belief["id"] != id));
    let why = world.run(&["belief", "why", &id]).expect(1);
    assert!(why.out.contains("✗ the row is edited"), "{}", why.out);
    let run = world.run(&["store", "status"]).expect(1);
    assert!(
        run.out
            .contains(&format!("belief `{id}`: its row was edited")),
        "{}",
        run.out
    );
    let report = world.run(&["store", "status", "--json"]).expect(1).json();
    assert_eq!(findings(&report), ["edited"]);
    let all = world
        .run(&["belief", "list", "--all", "--session", "s-1", "--json"])
        .expect(0)
        .json();
    let rows = all["rows"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["id"] == id).expect("listed");
    assert_eq!(row["standing"], "edited");
    assert_eq!(row["counts_as"]["truth"], "unverified");
    world.run(&["store", "rebuild"]).expect(0);
    world.run(&["store", "status"]).expect(0);
}

#[test]
fn a_lost_store_is_made_again_and_equals_the_one_that_was_lost() {
    let world = World::new();
    world.add_operator();
    let told = told(&world);
    let id = told.content.to_string();
    world.run(&["belief", "promote", &id, "--yes"]).expect(0);
    let before = rows(&world);
    assert!(before.len() > 5, "{before:?}");
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = fs::remove_file(world.root().join(".lodestar").join(name));
    }
    let run = world.run(&["store", "status"]).expect(3);
    assert!(run.err.contains("lodestar store rebuild"), "{}", run.err);
    assert!(!state_db(&world).exists());
    let run = world.run(&["store", "rebuild"]).expect(0);
    insta::assert_snapshot!(stable(&world, &run.out));
    assert!(rows(&world) == before, "not the same rows");
    world.run(&["store", "status"]).expect(0);
}

#[test]
fn a_planted_session_is_named_and_ignored() {
    let world = World::new();
    let told = told(&world);
    let session = world.session("web", "s-1");
    let planted = world.session("web", "planted");
    fs::create_dir_all(planted.dir()).expect("created");
    for entry in fs::read_dir(session.dir()).expect("readable") {
        let entry = entry.expect("readable");
        if entry.path().is_file() {
            fs::copy(entry.path(), planted.dir().join(entry.file_name())).expect("copied");
        }
    }
    // A closed session is followed to its end, which no belief's event is.
    world.run(&["belief", "list"]).expect(0);
    let before = rows(&world);
    let run = world.run(&["store", "status"]).expect(1);
    assert!(
        run.out.contains("session `planted` does not count"),
        "{}",
        run.out
    );
    let run = world.run(&["store", "rebuild"]).expect(1);
    assert!(
        run.out.contains("session `planted` does not count"),
        "{}",
        run.out
    );
    assert!(rows(&world) == before, "not the same rows");
    let report = world.run(&["store", "rebuild", "--json"]).expect(1).json();
    assert_eq!(report["refused"][0]["session"], "planted");
    world.run(&["reflect", "planted"]).expect(1);
    world
        .run(&["belief", "why", &told.measured.to_string()])
        .expect(0);
}

#[test]
fn a_log_that_was_changed_stops_the_rebuild_at_its_session() {
    let world = World::new();
    told(&world);
    let path = world.session("web", "s-1").events_path();
    let text = fs::read_to_string(&path).expect("readable");
    fs::write(&path, text.replace("evil.example", "good.example")).expect("written");
    let run = world.run(&["store", "rebuild"]).expect(1);
    assert!(
        run.out.contains("session `s-1` does not count"),
        "{}",
        run.out
    );
    let list = world.run(&["belief", "list"]).expect(0);
    assert!(list.out.contains("nothing is believed"), "{}", list.out);
    let id = "blf_01890a5d-ac96-774b-bcce-b302099a8057";
    let show = world.run(&["belief", "show", id]).expect(3);
    assert_eq!(show.err.matches("`s-1` does not count").count(), 1);
    assert!(
        list.err.contains("session `s-1` does not count"),
        "{}",
        list.err
    );
}

#[test]
fn a_file_that_is_no_store_is_exit_2_and_stays_as_it_is() {
    let world = World::new();
    told(&world);
    let path = world.write("other.db", &"no database ".repeat(100));
    let path = path.to_str().expect("UTF-8");
    let run = world.run(&["belief", "list", "--store", path]).expect(2);
    assert!(run.err.contains("cannot be opened"), "{}", run.err);
    assert!(
        fs::read_to_string(path)
            .expect("readable")
            .starts_with("no database")
    );
}

#[test]
fn rows_of_another_installation_count_once_it_is_pinned() {
    let theirs = World::new();
    let told = told(&theirs);
    let shared = state_db(&theirs);
    let shared = shared.to_str().expect("UTF-8");
    let ours = World::bare();
    fs::create_dir(ours.root().join(".lodestar")).expect("created");
    let memories = ours.write(
        "mem0.json",
        r#"{"results": [{"id": "1", "memory": "a memory"}]}"#,
    );
    let memories = memories.to_str().expect("UTF-8");
    ours.run(&[
        "import",
        "mem0",
        memories,
        "--project",
        "web",
        "--store",
        shared,
    ])
    .expect(0);
    let list = ["belief", "list", "--store", shared];
    let run = ours.run(&list).expect(0);
    let id = told.measured.to_string();
    assert!(
        run.out.contains(&format!("left out: {id}, foreign")),
        "{}",
        run.out
    );
    assert!(!run.out.contains("exists"), "{}", run.out);
    let status = ["store", "status", "--store", shared, "--json"];
    let report = ours.run(&status).expect(0).json();
    assert!(
        findings(&report).iter().all(|code| *code == "foreign"),
        "{report}"
    );
    let pin = fs::read_to_string(theirs.path("config/keys/log.pub")).expect("readable");
    ours.write("config/installations/theirs.pub", &pin);
    let run = ours.run(&list).expect(0);
    assert!(run.out.contains(&id[..27]), "{}", run.out);
    assert!(!run.out.contains("left out"), "{}", run.out);
    assert!(findings(&ours.run(&status).expect(0).json()).is_empty());
    // And theirs is still what their log says.
    theirs.run(&["store", "status"]).expect(0);
}
