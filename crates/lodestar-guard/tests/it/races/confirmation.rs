//! One confirmation, and two sessions that could both spend it: those of two projects in one folder,
//! with one ledger between them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::statement::ConfirmationId;
use lodestar_guard::channel::Channel;
use lodestar_guard::confirmations::file_name;
use lodestar_guard::{Config, Holds, Keys, Session, Setup};
use lodestar_log::{LogRoot, Reader};
use lodestar_policy::ApprovalRequest;
use serde_json::{Value, json};

use super::{FOLDER, NAME, Racer, both, rounds, say, told};
use crate::beforehand::{YES, confirming, word};
use crate::governed::{CountingTool, log_key};
use crate::people::{Pigeon, random};
use crate::steps::tracing;

#[path = "../../../../lodestar-firewall/tests/it/store/cluster.rs"]
#[allow(dead_code, reason = "the tests of the store use more of it")]
mod cluster;
#[path = "../../../../lodestar-firewall/tests/it/store/server.rs"]
mod server;

const POSTGRES: &str = "LODESTAR_TEST_RACE_POSTGRES";
const PROJECTS: &str = "LODESTAR_TEST_RACE_PROJECTS";

/// A session of one project of the folder, of the same name and scope as that of the other.
async fn open(folder: &Path) -> (Session, Arc<Pigeon>) {
    let name = std::env::var(NAME).unwrap();
    let projects = std::env::var(PROJECTS).unwrap();
    let backend = match std::env::var_os(POSTGRES) {
        Some(_) => format!(
            "[persistence]\nbackend = \"postgres\"\nconnection_string_env = \"{POSTGRES}\"\n"
        ),
        None => String::new(),
    };
    let scope = "[default_scope]\nlevel = \"project\"\nidentifier = \"both\"\n";
    let config = confirming(0, "enforce", &format!("{backend}{scope}"));
    let config = config.replace(
        "project_id = \"notes\"",
        &format!("session_id = \"s1\"\nproject_id = \"{projects}-{name}\""),
    );
    let config = Config::parse(&config, folder.join("project")).unwrap();
    let pigeon = Arc::new(Pigeon::default());
    let channel: Arc<dyn Channel> = pigeon.clone();
    let mut setup = Setup::new(config, Keys::new(log_key()));
    for tool in ["box.read", "box.write"].map(CountingTool::new) {
        setup = setup.tool(tool);
    }
    let setup = setup.tool(tracing("box.send", &folder.join("traces")));
    let session = setup.holds(Holds::Tell(vec![channel])).open().await;
    (session.unwrap(), pigeon)
}

/// Told `ask` and a round it makes the call and tells its request; told `go` it makes it again.
#[tokio::test]
#[ignore = "is started by the tests below, as one of two processes"]
async fn racer() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("started by another test"));
    let (session, pigeon) = open(&folder).await;
    for line in told() {
        let (order, round) = line.split_once(' ').unwrap();
        let call = json!({"to": "anna@corp.example", "text": round});
        let ran = session.call("box.send", call).await.unwrap().ran();
        match (order, ran) {
            ("ask", false) => {
                let request = pigeon.requests().pop().unwrap();
                say(&serde_json::to_string(&request).unwrap());
            }
            ("go", ran) => say(if ran { "ran" } else { "held" }),
            _ => panic!("{line}: it ran unasked"),
        }
    }
    session.close("done").await.unwrap();
}

/// The confirmation lies there twice, so that both sessions find it whoever is first.
fn confirm(folder: &Path, request: &ApprovalRequest) {
    let evidence = word(request, 1, YES).details().to_json();
    let place = folder.join("project/.lodestar/confirmations");
    std::fs::create_dir_all(&place).unwrap();
    for _ in 0..2 {
        let id = ConfirmationId::from_bytes(random());
        let name = file_name(request.card.action.fingerprint, id);
        let temporary = place.join("new");
        std::fs::write(&temporary, &evidence).unwrap();
        std::fs::rename(&temporary, place.join(name)).unwrap();
    }
}

fn events(folder: &Path, project: &str) -> Vec<(String, Value)> {
    let project = ProjectId::new(project).unwrap();
    let log = LogRoot::in_folder(folder.join("project")).project(&project);
    let dir = log.session(&SessionId::new("s1").unwrap());
    let replay = lodestar_replay::derive(&log, dir.session(), &[], None).unwrap();
    assert!(replay.agrees(), "{:?}", replay.differences);
    let whole = |event: lodestar_log::Event| {
        (
            event.kind.clone(),
            lodestar_kernel::terse::whole(&event, &dir, None).unwrap(),
        )
    };
    let events = Reader::open(&dir)
        .unwrap()
        .map(|event| whole(event.unwrap()));
    events
        .map(|(kind, payload)| (kind, payload.unwrap_or_default()))
        .collect()
}

/// Everything that both logs say.
fn told_by_both(folder: &Path, projects: &str) -> Vec<(String, Value)> {
    let mut all = events(folder, &format!("{projects}-a"));
    all.extend(events(folder, &format!("{projects}-b")));
    all
}

fn race(what: &str, environment: &[(&str, &str)]) {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().canonicalize().unwrap();
    std::fs::create_dir(folder.join("project")).unwrap();
    let number: String = random()[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let projects = format!("race-{number}");
    let environment = [environment, &[(PROJECTS, projects.as_str())]].concat();
    let test = "races::confirmation::racer";
    let start = |name| Racer::start(test, name, &folder, &environment);
    let mut racers = [start("a"), start("b")];
    let (mut won, rounds) = ([0, 0], rounds(40));
    for round in 0..rounds {
        let asked = both(round, &mut racers, &format!("ask {round}"));
        let [one, other] =
            asked.map(|text| serde_json::from_str::<ApprovalRequest>(&text).unwrap());
        assert_eq!(one.card.action.fingerprint, other.card.action.fingerprint);
        confirm(&folder, &one);
        match both(round, &mut racers, &format!("go {round}")).map(|it| it == "ran") {
            [true, false] => won[0] += 1,
            [false, true] => won[1] += 1,
            both => panic!("round {round}: {both:?}"),
        }
    }
    for racer in racers {
        racer.end();
    }
    let traces = std::fs::read_to_string(folder.join("traces")).unwrap();
    assert_eq!(traces.lines().count(), rounds as usize);
    let all = told_by_both(&folder, &projects);
    let consumed = crate::governed::count(&all, "confirmation.consumed");
    assert_eq!(consumed, rounds as usize);
    let late = crate::governed::count(&all, "confirmation.refused");
    println!(
        "{what}: two sessions raced for one confirmation {rounds} times; it opened one call each \
         time ({} and {}), and was found spent {late} times",
        won[0], won[1]
    );
}

#[test]
fn matrix_of_two_sessions_one_spends_a_confirmation_on_sqlite() {
    race("SQLite", &[]);
}

#[test]
fn matrix_of_two_sessions_one_spends_a_confirmation_on_postgres() {
    let Some(schema) = cluster::Schema::new() else {
        return;
    };
    race("PostgreSQL", &[(POSTGRES, schema.url())]);
}
