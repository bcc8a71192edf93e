//! A granted request whose process is gone: two others take up the session, and one of them runs the
//! call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_guard::channel::Channel;
use lodestar_guard::{Holds, OpenError, Session, Setup};
use lodestar_log::OpenError as LogOpenError;

use super::{FOLDER, Racer, both, rounds, told};
use crate::governed::{CountingTool, Project, count};
use crate::people::{GRANT, Pigeon, config, send, times_out};
use crate::steps::tracing;

/// The project of a round; what its tool did lies beside it.
struct Place {
    project: Project,
    traces: PathBuf,
}

impl Place {
    fn at(folder: &Path) -> Self {
        let root = folder.join("project");
        std::fs::create_dir_all(&root).unwrap();
        let project = Project::at(&root);
        // The other process may be writing when this one looks back.
        project.will_be_edited();
        Self {
            project,
            traces: folder.join("traces"),
        }
    }

    fn setup(&self, named: &str) -> (Setup, Arc<Pigeon>) {
        let pigeon = Arc::new(Pigeon::default());
        let others = ["box.read", "box.write"].map(CountingTool::new);
        let config = format!("{named}\n{}", config(0, ""));
        let setup = self.project.setup(&config, &others);
        let setup = setup.tool(tracing("box.send", &self.traces));
        let channel: Arc<dyn Channel> = pigeon.clone();
        (setup.holds(Holds::Tell(vec![channel])), pigeon)
    }

    /// A session that heard a grant, and whose process went before it was spent.
    async fn granted(&self, named: &str) -> Session {
        let (setup, pigeon) = self.setup(named);
        let session = setup.open().await.unwrap();
        times_out(&session, send()).await;
        pigeon.say(&pigeon.requests()[0], 1, GRANT);
        pigeon.heard(1).await;
        session
    }
}

/// The session's name is given by the configuration in every second round, and made in the others.
fn named(round: u32) -> &'static str {
    match round % 2 {
        0 => "session_id = \"s1\"",
        _ => "",
    }
}

#[tokio::test]
#[ignore = "is started by the test below, as one of two processes"]
async fn racer() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("started by another test"));
    for line in told() {
        let round: u32 = line.parse().unwrap();
        let place = Place::at(&folder.join(&line));
        let (setup, _) = place.setup(named(round));
        let session = match setup.open().await {
            Ok(session) => session,
            Err(OpenError::Guard(lodestar_guard::GuardError::Open(
                LogOpenError::Busy { .. } | LogOpenError::Exists { .. },
            ))) => {
                println!("refused");
                continue;
            }
            Err(problem) => panic!("{problem}"),
        };
        let ran = session.call("box.send", send()).await.unwrap().ran();
        session.close("done").await.unwrap();
        println!("{}", if ran { "ran" } else { "held" });
    }
}

#[tokio::test]
async fn matrix_of_two_processes_one_takes_up_a_granted_request_and_runs_it_once() {
    let scratch = tempfile::tempdir().unwrap();
    let start = |name| Racer::start("races::grant::racer", name, scratch.path(), &[]);
    let mut racers = [start("a"), start("b")];
    let (mut won, mut refused, mut held) = ([0, 0], 0, 0);
    let rounds = rounds(30);
    for round in 0..rounds {
        let folder = scratch.path().join(round.to_string());
        let place = Place::at(&folder);
        let session = place.granted(named(round)).await;
        let id = session.id().clone();
        // Half of them end properly, half do not.
        if round % 4 < 2 {
            session.close("client went away").await.unwrap();
        }
        drop(session);
        let answers = both(round, &mut racers, &round.to_string());
        let traces = std::fs::read_to_string(&place.traces).unwrap_or_default();
        assert_eq!(traces.lines().count(), 1, "round {round}: {answers:?}");
        let ran: Vec<usize> = (0..2).filter(|n| answers[*n] == "ran").collect();
        let [winner] = ran[..] else {
            panic!("round {round}: {answers:?}")
        };
        won[winner] += 1;
        match answers[1 - winner].as_str() {
            "refused" => refused += 1,
            _ => held += 1,
        }
        let events = place.project.events(&id);
        assert_eq!(count(&events, "approval.granted"), 1);
        assert_eq!(count(&events, "action.cleared"), 1);
        assert_eq!(count(&events, "action.completed"), 1);
        place.project.assert_sound(&id);
        drop(place);
        std::fs::remove_dir_all(folder).unwrap();
    }
    for racer in racers {
        racer.end();
    }
    println!(
        "two processes raced for one granted request {rounds} times: it ran once each time ({} and \
         {}); the other was refused the session {refused} times and asked anew {held} times",
        won[0], won[1]
    );
}

#[tokio::test]
async fn a_session_that_is_open_elsewhere_is_not_opened_again() {
    let scratch = tempfile::tempdir().unwrap();
    let place = Place::at(&scratch.path().join("0"));
    let session = place.granted(named(0)).await;
    let mut racer = Racer::start("races::grant::racer", "a", scratch.path(), &[]);
    racer.tell("0");
    assert_eq!(racer.answer(), "refused");
    assert!(!place.traces.exists());
    assert!(session.call("box.send", send()).await.unwrap().ran());
    session.close("done").await.unwrap();
    racer.end();
}
