//! Opening a session where another one ended badly.

use lodestar_core::merkle::Frontier;
use lodestar_core::note::Checkpoint;
use lodestar_guard::Holds;

use crate::governed::{GRADES, Project, count, log_key, three};

fn named(name: &str) -> String {
    format!("session_id = \"{name}\"\n{GRADES}")
}

#[tokio::test]
async fn a_crashed_session_that_cannot_be_ended_is_named_and_nothing_is_built_on_it() {
    let project = Project::new();
    project.will_be_edited();
    let crashed = project.open(&named("crashed"), &three()).await;
    let id = crashed.id().clone();
    // All handles go without a close: as after a crash.
    drop(crashed);
    std::fs::remove_file(project.log().session(&id).checkpoint_path()).unwrap();
    let setup = project.setup(&named("next"), &three());
    let problem = setup.holds(Holds::Leave).open().await.unwrap_err();
    assert!(problem.to_string().contains("`crashed`"), "{problem}");
}

/// Killed after the ledger knew of the session and before its log was there.
#[tokio::test]
async fn a_session_of_which_nobody_was_told_is_not_in_the_way() {
    for is_torn in [false, true] {
        let project = Project::new();
        project.will_be_edited();
        let begun = project.open(&named("begun"), &three()).await;
        let dir = project.log().session(begun.id());
        drop(begun);
        let nothing = Checkpoint {
            origin: dir.origin(),
            size: 0,
            root: Frontier::new().root(),
        };
        std::fs::write(dir.checkpoint_path(), nothing.sign(&log_key()).to_string()).unwrap();
        match is_torn {
            true => std::fs::write(dir.events_path(), "{\"head\":").unwrap(),
            false => std::fs::remove_file(dir.events_path()).unwrap(),
        }
        let next = project.open(&named("next"), &three()).await;
        next.close("done").await.unwrap();
        let again = project.open(&named("begun"), &three()).await;
        again.close("done").await.unwrap();
        project.assert_sound(again.id());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_that_start_at_once_after_a_crash_all_open() {
    for _ in 0..5 {
        let project = Project::new();
        let crashed = project.open(&named("crashed"), &three()).await;
        drop(crashed);
        let starting = (0..6).map(|at| {
            let setup = project.setup(&named(&format!("s-{at}")), &three());
            tokio::spawn(setup.holds(Holds::Leave).open())
        });
        let starting: Vec<_> = starting.collect();
        for one in starting {
            one.await.unwrap().unwrap().close("done").await.unwrap();
        }
        let closed = project.events(&"crashed".parse().unwrap());
        assert_eq!(count(&closed, "session.closed"), 1);
    }
}

const ROOT: &str = "LODESTAR_TEST_ROOT";

#[tokio::test]
#[ignore = "is started by the test below, in a process of its own"]
async fn a_process_that_is_killed_while_it_opens() {
    let root = std::env::var_os(ROOT).expect("started by the other test");
    let project = Project::at(std::path::Path::new(&root));
    project.will_be_edited();
    let session = project.open(GRADES, &three()).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    drop(session);
}

#[tokio::test]
async fn matrix_a_kill_while_a_session_is_opened_leaves_a_project_that_opens() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let kills = if full { 200 } else { 8 };
    for kill in 0..kills {
        let project = Project::new();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "opening::a_process_that_is_killed_while_it_opens",
                "--exact",
                "--ignored",
            ])
            .env(ROOT, &project.root)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let ledger = project.log().ledger_path();
        let started = std::time::Instant::now();
        while !ledger.exists() && started.elapsed() < std::time::Duration::from_secs(60) {
            std::hint::spin_loop();
        }
        std::thread::sleep(std::time::Duration::from_micros(kill * 977 % 9_000));
        child.kill().unwrap();
        child.wait().unwrap();
        project.will_be_edited();
        for name in ["next", "and-next"] {
            let session = project.open(&named(name), &three()).await;
            session.close("done").await.unwrap();
            project.assert_sound(session.id());
        }
    }
    println!("{kills} kills");
}
