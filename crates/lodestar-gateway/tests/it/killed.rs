//! A gateway that is killed under load, again and again: nothing that it acknowledged is lost, and nothing is graded
//! or earned twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lodestar_core::digest::sha256;
use lodestar_core::id::{ContenderId, DeviceId, RunId};
use lodestar_core::name::ActorId;
use lodestar_core::statement::{Attestation, Envelope};
use lodestar_gateway::client::{GatewayClient, GatewayError, PlatformClient};
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use lodestar_log::Trust;
use lodestar_log::verify::{VerifyOptions, verify_project};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::process::{Served, configured};
use lodestar_harness::world::fleet::{self, Account, Claims, Hands, Machine, Made, Workplace};

const ROUNDS: u64 = 6;
const BEATING: usize = 4;
const RUNS: usize = 18;

/// What was acknowledged.
#[derive(Default)]
struct Acknowledged {
    agents: BTreeSet<ContenderId>,
    runs: BTreeSet<RunId>,
    beats: Vec<(DeviceId, Envelope)>,
    attested: BTreeMap<RunId, wire::Attested>,
    submissions: BTreeSet<lodestar_core::id::SubmissionId>,
    /// Requests that nobody knows the end of.
    unknown: usize,
}

/// Whether the other end was gone, so that nobody knows.
fn is_gone(problem: &GatewayError) -> bool {
    matches!(problem, GatewayError::Unreached(_))
        || problem
            .code()
            .is_some_and(|code| matches!(code, Code::ShuttingDown | Code::Overloaded))
}

/// Everything that is asked while the service lives.
struct Load {
    account: Account,
    made: Made,
    machines: Vec<Machine>,
    /// Runs that are over and handed in, with the word on each: still to be attested.
    words: Vec<(RunId, Attestation, Envelope)>,
    told: Mutex<Acknowledged>,
    over: AtomicBool,
}

impl Load {
    async fn unknown(&self, problem: &GatewayError) {
        assert!(is_gone(problem), "{problem}");
        self.told.lock().await.unknown += 1;
    }

    async fn beat(&self, machine: &Machine) {
        while !self.over.load(Ordering::Acquire) {
            let beat = machine.heartbeat(&[self.made.runner]).unwrap();
            let envelope = machine.says(beat).unwrap();
            match machine.client.heartbeat(machine.id, &envelope).await {
                Ok(_) => self.told.lock().await.beats.push((machine.id, envelope)),
                Err(problem) => {
                    self.unknown(&problem).await;
                    return;
                }
            }
        }
    }

    async fn register(&self, machine: &Machine) {
        for n in 0.. {
            if self.over.load(Ordering::Acquire) {
                return;
            }
            let name = format!("agent-{n}-{}", fleet::fresh_nonce().unwrap());
            let named = wire::Named {
                name: ActorId::new(&name).unwrap(),
            };
            match self.account.client.register_agent(&named).await {
                Ok(agent) => {
                    self.told.lock().await.agents.insert(agent.id);
                }
                Err(problem) => return self.unknown(&problem).await,
            }
            match machine
                .client
                .register_run(&Machine::asking(self.made))
                .await
            {
                Ok(run) => {
                    self.told.lock().await.runs.insert(run.run);
                }
                Err(problem) => return self.unknown(&problem).await,
            }
            let handed = wire::HandIn {
                content: sha256(name.as_bytes()),
                run: None,
                battle: None,
            };
            match self.account.client.hand_in(&handed).await {
                Ok(submission) => {
                    self.told.lock().await.submissions.insert(submission.id);
                }
                Err(problem) => return self.unknown(&problem).await,
            }
        }
    }

    /// Attests what is not attested yet, with the same words every time, each twice at once.
    async fn attest(&self, client: &GatewayClient) {
        for (run, _, envelope) in &self.words {
            if self.over.load(Ordering::Acquire) {
                return;
            }
            if self.told.lock().await.attested.contains_key(run) {
                continue;
            }
            let asked = wire::Attest {
                envelope: envelope.clone(),
                device_trusted: None,
                gateway_verified: None,
                policy_passed: None,
            };
            let (first, second) =
                tokio::join!(client.attest(*run, &asked), client.attest(*run, &asked));
            for answer in [first, second] {
                match answer {
                    Ok(attested) => {
                        let before = self.told.lock().await.attested.insert(*run, attested);
                        assert!(before.is_none(), "one word was taken twice");
                    }
                    // It was taken, and nobody heard of it before the service was gone; or just now.
                    Err(problem) if problem.code() == Some(Code::AttestationReused) => {}
                    Err(problem) if problem.code() == Some(Code::NonceReused) => {}
                    Err(problem) => {
                        self.unknown(&problem).await;
                        return;
                    }
                }
            }
        }
    }
}

async fn prepare(platform: &PlatformClient, served: &Served, place: &Path) -> Load {
    let workplace = Arc::new(Workplace::new(place.to_owned()));
    let hands = Hands::default();
    let at = (platform, served.address);
    let account = Account::open(at, &hands, &workplace, "owner")
        .await
        .unwrap();
    let made = account.made().await.unwrap();
    let mut machines = Vec::new();
    for n in 0..BEATING {
        machines.push(account.approved(&format!("machine-{n}")).await.unwrap());
    }
    let machine = &machines[0];
    let mut given = Vec::new();
    for _ in 0..RUNS {
        let job = machine.register(made).await.unwrap();
        let ran = machine.work(&job).await.unwrap();
        let (word, _) = machine.deliver(&job, &ran).await.unwrap();
        given.push((job.run, word));
    }
    // Words are given when all the work is done: they do not last.
    let sign = |(run, mut word): (RunId, Attestation)| {
        word.predicate.issued_at = machine.now();
        let envelope = Envelope::attest(&word, &machine.key).unwrap();
        (run, word, envelope)
    };
    let words = given.into_iter().map(sign).collect();
    Load {
        account,
        made,
        machines,
        words,
        told: Mutex::default(),
        over: AtomicBool::new(false),
    }
}

/// One life of the service: load, and a power cut in the midst of it.
async fn live_and_die(load: &mut Load, served: Served, round: u64) {
    load.account.reach(served.address).unwrap();
    for machine in &mut load.machines {
        machine.reach(served.address).unwrap();
    }
    load.over.store(false, Ordering::Release);
    let this: &Load = load;
    // Each life is longer than the one before, by a time that is no multiple of anything.
    let cut = async {
        tokio::time::sleep(Duration::from_millis(70 + 83 * round)).await;
        this.over.store(true, Ordering::Release);
        served.kill();
    };
    let beating = futures_util::future::join_all(this.machines.iter().map(|one| this.beat(one)));
    let registering = this.register(&this.machines[1]);
    let attesting = this.attest(&this.machines[0].client);
    tokio::join!(cut, beating, registering, attesting);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matrix_a_kill_under_load_loses_nothing_acknowledged_and_grades_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (config, data) = configured(folder.path(), "");
    let place = folder.path().join("workplace");
    std::fs::create_dir(&place).unwrap();
    let platform = PlatformClient::of_folder(&data);
    let served = Served::by(&config);
    let mut load = prepare(&platform, &served, &place).await;
    served.end();
    for round in 0..ROUNDS {
        live_and_die(&mut load, Served::by(&config), round).await;
    }
    let served = Served::by(&config);
    load.account.reach(served.address).unwrap();
    for machine in &mut load.machines {
        machine.reach(served.address).unwrap();
    }
    // What was left is attested now; what had been is known.
    load.over.store(false, Ordering::Release);
    load.attest(&load.machines[0].client).await;
    whole(&load).await;
    served.end();
    once(&load, &data).await;
}

/// Everything that was acknowledged is there.
async fn whole(load: &Load) {
    let told = load.told.lock().await;
    let client = &load.account.client;
    let mut agents = BTreeSet::new();
    let mut after = None;
    loop {
        let page = client.agents(after).await.unwrap();
        agents.extend(page.items.iter().map(|agent| agent.id));
        match page.next {
            Some(next) => after = Some(next.parse().unwrap()),
            None => break,
        }
    }
    assert!(told.agents.is_subset(&agents));
    for run in &told.runs {
        client.run(*run).await.unwrap();
    }
    for (run, attested) in &told.attested {
        let shown = client.run(*run).await.unwrap();
        assert_eq!(shown.evaluation.unwrap().id, attested.evaluation.id);
    }
    for submission in &told.submissions {
        let shown = client.submission(*submission).await.unwrap();
        assert_eq!(shown.effects, ["BATTLE_SUBMISSION_COMPLETED"]);
    }
    // Their nonces are spent, also across a power cut.
    let mut replayed = 0;
    for (device, envelope) in told.beats.iter().rev().step_by(told.beats.len() / 200 + 1) {
        let machine = load
            .machines
            .iter()
            .find(|machine| machine.id == *device)
            .unwrap();
        let answer = machine.client.heartbeat(*device, envelope).await;
        assert_eq!(answer.unwrap_err().code(), Some(Code::NonceReused));
        replayed += 1;
    }
    println!(
        "{ROUNDS} kills: {} heartbeats, {} agents, {} runs, {} submissions, {} attestations acknowledged and there, \
         {} requests cut off, {replayed} heartbeats replayed in vain",
        told.beats.len(),
        told.agents.len(),
        told.runs.len(),
        told.submissions.len(),
        told.attested.len(),
        told.unknown
    );
    assert!(told.beats.len() > 50 && told.agents.len() > 5 && told.unknown > 0);
    let (run, word, _) = &load.words[0];
    let mut again = word.clone();
    again.predicate.nonce = fleet::fresh_nonce().unwrap();
    again.predicate.issued_at = load.machines[0].now();
    let anew = load.machines[0]
        .vouch(*run, &again, Claims::default())
        .await;
    assert!(anew.is_ok(), "{anew:?}");
}

/// Every word was graded once, every effect is there once, and the log has each exactly once, in order.
async fn once(load: &Load, data: &Path) {
    let rows = rusqlite::Connection::open(data.join("gateway.db")).unwrap();
    let number = |text: &str| -> i64 { rows.query_row(text, [], |row| row.get(0)).unwrap() };
    let words = i64::try_from(load.words.len()).unwrap();
    assert_eq!(number("SELECT count(*) FROM attestations"), words + 1);
    assert_eq!(
        number("SELECT count(*) FROM evaluations WHERE cause = 'attestation'"),
        words + 1
    );
    assert_eq!(
        number(
            "SELECT count(*) FROM (SELECT run FROM evaluations GROUP BY run HAVING count(*) > 1)"
        ),
        1,
        "the one that was attested anew"
    );
    let submissions = number("SELECT count(*) FROM submissions");
    assert_eq!(number("SELECT count(*) FROM effects"), submissions);
    assert_eq!(
        number("SELECT count(*) FROM outbox"),
        0,
        "everything is in the log"
    );
    drop(rows);
    let key = std::fs::read_to_string(data.join("keys/log.pub")).unwrap();
    let key: lodestar_core::note::NoteKey = key.trim_end().parse().unwrap();
    let trust = Trust::only(*key.public_key());
    let project = lodestar_core::name::ProjectId::new("gateway").unwrap();
    let log = lodestar_log::LogRoot::at(data.join("log")).project(&project);
    let report = verify_project(&log, &trust, &VerifyOptions::default(), &|_| {}).unwrap();
    assert!(
        report.is_intact(),
        "{:?}",
        report.all_problems().collect::<Vec<_>>()
    );
    let events = fleet::events(data, trust).unwrap();
    let numbers: Vec<u64> = events
        .iter()
        .filter_map(|(_, payload)| payload.get("n").and_then(Value::as_u64))
        .collect();
    let rising = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(rising, "no event twice, and none behind a later one");
    let count = |kind: &str| events.iter().filter(|(found, _)| found == kind).count();
    assert_eq!(i64::try_from(count("run.graded@1")).unwrap(), words + 1);
    assert_eq!(
        i64::try_from(count("submission.rewarded@1")).unwrap(),
        submissions
    );
    let told = load.told.lock().await;
    assert!(count("run.registered@1") >= told.runs.len() + RUNS);
}
