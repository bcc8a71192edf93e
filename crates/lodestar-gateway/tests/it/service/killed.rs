//! A real process, under load, killed without a word: nothing that was acknowledged is lost, and nothing is
//! graded twice.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lodestar_core::statement::Envelope;
use lodestar_gateway::client::GatewayError;
use lodestar_gateway::code::Code;
use lodestar_gateway::service::Folder;
use lodestar_gateway::wire;
use tokio::task::JoinSet;

use crate::lab::Lab;
use crate::world::{Process, World, attest, logged, name, stated};

/// The gateway whose clock is a file.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent).unwrap();
    let program = target.join("examples/gateway_at");
    assert!(
        program.exists(),
        "build the examples: {}",
        program.display()
    );
    program
}

fn start(folder: &Path) -> (Child, String) {
    let config = folder.join("gateway.toml");
    let clock = folder.join("clock");
    if !config.exists() {
        let text = "data = \"data\"\nsweep_seconds = 1\n[http]\nlisten = \"127.0.0.1:0\"\n\
                    token_per_second = 100000\ntoken_burst = 100000\n\
                    address_per_second = 100000\naddress_burst = 100000\n";
        std::fs::write(&config, text).unwrap();
        std::fs::write(&clock, "0").unwrap();
    }
    let mut child = Command::new(program())
        .arg(&config)
        .arg(&clock)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let said = child.stdout.take().unwrap();
    BufReader::new(said).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening at ").unwrap();
    (child, url.to_owned())
}

/// What was acknowledged.
#[derive(Default)]
struct Heard {
    agents: BTreeSet<String>,
    beats: Vec<Envelope>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_kill_and_nothing_is_graded_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, url) = start(folder.path());
    let world = World::outside(Process {
        url,
        data: folder.path().join("data"),
    });
    let mut lab = Lab::approved_in(world).await;
    let heard = Arc::new(Mutex::new(Heard::default()));
    let mut graded = BTreeSet::new();
    for round in 0..3 {
        // A run that is attested while the process dies.
        let made = lab.make(true).await;
        lab.machine.ship(made.run.id, &made.ran).await;
        let said = lab.machine.attesting(&made.run, &made.ran);
        let word = attest(Envelope::attest(&said, &lab.machine.key).unwrap());
        let mut load = JoinSet::new();
        for worker in 0..6 {
            let owner = lab.world.client(Some(&lab.owner.token));
            let device = lab.world.client(Some(&lab.machine.token));
            let heard = Arc::clone(&heard);
            let machine = lab.machine.speaker();
            load.spawn(async move {
                for number in 0.. {
                    let called = format!("agent-{round}-{worker}-{number}");
                    let asked = wire::Named {
                        name: name(&called),
                    };
                    if owner.register_agent(&asked).await.is_err() {
                        return;
                    }
                    heard.lock().unwrap().agents.insert(called);
                    let beat = machine.beat(&[]);
                    if device.heartbeat(machine.id, &beat).await.is_err() {
                        return;
                    }
                    heard.lock().unwrap().beats.push(beat);
                }
            });
        }
        let attesting = {
            let client = lab.world.client(Some(&lab.machine.token));
            let (run, word) = (made.run.id, word.clone());
            tokio::spawn(async move { client.attest(run, &word).await })
        };
        tokio::time::sleep(Duration::from_millis(150 + 100 * round)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        load.join_all().await;
        let first = attesting.await.unwrap();
        let (next, url) = start(folder.path());
        child = next;
        lab.moved_to(url);
        // Whether it was heard or not: handed in again, it counts once.
        let again = lab.machine.client.attest(made.run.id, &word).await;
        match (&first, &again) {
            (Ok(_), Err(refused)) => assert_eq!(refused.code(), Some(Code::AttestationReused)),
            (Err(GatewayError::Unreached(_)), Ok(_)) => {}
            (Err(GatewayError::Unreached(_)), Err(refused)) => {
                assert_eq!(refused.code(), Some(Code::AttestationReused));
            }
            other => panic!("{other:?}"),
        }
        graded.insert(made.run.id.to_string());
        // Every acknowledged heartbeat is known.
        let last = heard.lock().unwrap().beats.clone();
        let path = format!("/v1/devices/{}/heartbeats", lab.machine.id);
        for beat in last.iter().rev().take(50) {
            let answer = lab
                .world
                .post(&path, &lab.machine.token, &stated(beat))
                .await;
            assert_eq!(answer.code(), Some(Code::NonceReused));
        }
    }
    let mut there = BTreeSet::new();
    let mut after = None;
    loop {
        let page = lab.owner.client.agents(after).await.unwrap();
        there.extend(page.items.iter().map(|agent| agent.name.to_string()));
        match page.next {
            Some(next) => after = Some(next.parse().unwrap()),
            None => break,
        }
    }
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    assert!(heard.agents.len() > 10, "there was load");
    let lost: Vec<_> = heard.agents.difference(&there).collect();
    assert!(lost.is_empty(), "{lost:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    // One more start brings the log up to the database; then both say the same.
    let (mut child, _) = start(folder.path());
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    let data = folder.path().join("data");
    let key = Folder::open(&data).unwrap().log_key().unwrap().public();
    let events = logged(&data.join("log"), key);
    let numbers: Vec<_> = events
        .iter()
        .filter_map(|(_, payload)| payload["n"].as_u64())
        .collect();
    assert!(
        numbers.is_sorted_by(|a, b| a < b),
        "once, and in their order"
    );
    let logged: BTreeSet<_> = events
        .iter()
        .filter(|(kind, _)| kind == "run.agent_registered@1")
        .map(|(_, payload)| payload["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(logged, there);
    for run in graded {
        let of_run = |kind: &str| {
            let found = events.iter();
            found
                .filter(|(found, payload)| found == kind && payload["run"] == run)
                .count()
        };
        assert_eq!(of_run("attestation.accepted@1"), 1, "{run}");
        assert_eq!(of_run("run.graded@1"), 1, "{run}");
    }
    println!(
        "3 kills under load: {} registrations and {} heartbeats acknowledged, none lost; 3 runs, each graded once",
        heard.agents.len(),
        heard.beats.len()
    );
}
