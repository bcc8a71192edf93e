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
use lodestar_core::statement::{Attestation, Envelope, Nonce};
use lodestar_gateway::client::{GatewayClient, GatewayError, PlatformClient};
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use lodestar_log::Trust;
use lodestar_log::verify::{VerifyOptions, verify_project};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::process::{Served, configured};
use lodestar_harness::world::fleet::{self, Account, Hands, Machine, Made, Workplace};

const BEATING: usize = 4;
const RUNS: usize = 4;

/// So many lives of the service; two hundred with `LODESTAR_MATRIX=full`.
fn rounds() -> u64 {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    if full { 200 } else { 12 }
}

/// What was acknowledged.
#[derive(Default)]
struct Acknowledged {
    agents: BTreeSet<ContenderId>,
    runs: BTreeSet<RunId>,
    beats: Vec<(DeviceId, Envelope)>,
    /// Words that were given, by their nonce, and what was answered.
    attested: BTreeMap<Nonce, wire::Attested>,
    submissions: BTreeSet<lodestar_core::id::SubmissionId>,
    /// Requests that nobody knows the end of.
    unknown: usize,
    /// Words of which nobody knew whether they were taken when the service was gone.
    cut_off: usize,
    /// Those of them that had been taken.
    taken_unheard: usize,
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
    /// Runs that are over and handed in, with a word on each: to be given again and again, anew each time.
    handed_in: Vec<(RunId, Attestation)>,
    /// Every word that was given.
    given: Mutex<BTreeSet<Nonce>>,
    /// The word that nobody has heard the end of.
    open: Mutex<Option<(RunId, Nonce, Envelope)>>,
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

    /// Gives one word after the other, each twice at once; the one that was cut off first, as it was.
    async fn attest(&self, client: &GatewayClient) {
        let left = self.open.lock().await.take();
        if let Some(word) = left
            && !self.give(client, word, true).await
        {
            return;
        }
        for (run, word) in self.handed_in.iter().cycle() {
            if self.over.load(Ordering::Acquire) {
                return;
            }
            let mut word = word.clone();
            word.predicate.nonce = fleet::fresh_nonce().unwrap();
            word.predicate.issued_at = self.machines[0].now();
            let envelope = Envelope::attest(&word, &self.machines[0].key).unwrap();
            let nonce = word.predicate.nonce;
            self.given.lock().await.insert(nonce);
            if !self.give(client, (*run, nonce, envelope), false).await {
                return;
            }
        }
    }

    /// Gives a word twice at once; `false` if nobody knows what came of it.
    async fn give(
        &self,
        client: &GatewayClient,
        (run, nonce, envelope): (RunId, Nonce, Envelope),
        is_again: bool,
    ) -> bool {
        let asked = wire::Attest {
            envelope,
            device_trusted: None,
            gateway_verified: None,
            policy_passed: None,
        };
        let (first, second) = tokio::join!(client.attest(run, &asked), client.attest(run, &asked));
        let (mut taken, mut known) = (false, 0);
        for answer in [first, second] {
            match answer {
                Ok(attested) => {
                    let before = self.told.lock().await.attested.insert(nonce, attested);
                    assert!(before.is_none(), "one word was taken twice");
                    taken = true;
                }
                Err(problem) => match problem.code() {
                    // It was taken: just now, or before the service was gone.
                    Some(Code::AttestationReused | Code::NonceReused) => known += 1,
                    // Nobody knows yet what comes of the other.
                    Some(Code::BeingJudged) => {}
                    _ => self.unknown(&problem).await,
                },
            }
        }
        let mut told = self.told.lock().await;
        match (taken, known) {
            (true, _) => true,
            // Once is enough to know; who was first was not heard.
            (false, 1..) => {
                told.taken_unheard += 1;
                assert!(is_again || known == 1, "a new word was known");
                true
            }
            (false, _) => {
                told.cut_off += 1;
                *self.open.lock().await = Some((run, nonce, asked.envelope));
                false
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
    let mut handed_in = Vec::new();
    for _ in 0..RUNS {
        let job = machine.register(made).await.unwrap();
        let ran = machine.work(&job).await.unwrap();
        let (word, _) = machine.deliver(&job, &ran).await.unwrap();
        handed_in.push((job.run, word));
    }
    Load {
        account,
        made,
        machines,
        handed_in,
        given: Mutex::default(),
        open: Mutex::default(),
        told: Mutex::default(),
        over: AtomicBool::new(false),
    }
}

/// One life of the service: load, and a SIGKILL in the midst of it.
async fn live_and_die(load: &mut Load, served: Served, round: u64) {
    load.account.reach(served.address).unwrap();
    for machine in &mut load.machines {
        machine.reach(served.address).unwrap();
    }
    load.over.store(false, Ordering::Release);
    let this: &Load = load;
    // Lives of many lengths, none a multiple of another.
    let life = Duration::from_millis(60 + 83 * round % 331);
    let kill = async {
        tokio::time::sleep(life).await;
        // First the kill: whatever is asked at that moment is cut off.
        served.kill();
        this.over.store(true, Ordering::Release);
    };
    let beating = futures_util::future::join_all(this.machines.iter().map(|one| this.beat(one)));
    let registering = this.register(&this.machines[1]);
    let attesting = this.attest(&this.machines[0].client);
    tokio::join!(kill, beating, registering, attesting);
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
    for round in 0..rounds() {
        live_and_die(&mut load, Served::by(&config), round).await;
    }
    let served = Served::by(&config);
    load.account.reach(served.address).unwrap();
    for machine in &mut load.machines {
        machine.reach(served.address).unwrap();
    }
    // The last word that was cut off is given again; what had been taken is known.
    load.over.store(true, Ordering::Release);
    load.attest(&load.machines[0].client).await;
    assert!(load.open.lock().await.is_none());
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
    for (run, _) in &load.handed_in {
        let shown = client.run(*run).await.unwrap();
        let level = shown.evaluation.unwrap().level;
        assert!(told.attested.values().all(|it| it.level == level));
    }
    for submission in &told.submissions {
        let shown = client.submission(*submission).await.unwrap();
        assert_eq!(shown.effects, ["BATTLE_SUBMISSION_COMPLETED"]);
    }
    // Their nonces are spent, also when the process is killed.
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
        "{} kills: {} heartbeats, {} agents, {} runs, {} submissions, {} attestations acknowledged and there, \
         {} requests cut off, {} of them attestations ({} words had been taken unheard), \
         {replayed} heartbeats replayed in vain",
        rounds(),
        told.beats.len(),
        told.agents.len(),
        told.runs.len(),
        told.submissions.len(),
        told.attested.len(),
        told.unknown,
        told.cut_off,
        told.taken_unheard
    );
    assert!(told.beats.len() > 50 && told.agents.len() > 5 && told.unknown > 0);
    assert!(
        told.cut_off + told.taken_unheard > 0,
        "no kill came while an attestation was under way"
    );
}

/// Every word was graded once, every effect is there once, and the log has each exactly once, in order.
async fn once(load: &Load, data: &Path) {
    let rows = rusqlite::Connection::open(data.join("gateway.db")).unwrap();
    let number = |text: &str| -> i64 { rows.query_row(text, [], |row| row.get(0)).unwrap() };
    let told = load.told.lock().await;
    let given = load.given.lock().await;
    let words = i64::try_from(given.len()).unwrap();
    assert_eq!(number("SELECT count(*) FROM attestations"), words);
    assert_eq!(
        number("SELECT count(*) FROM evaluations WHERE cause = 'attestation'"),
        words
    );
    for attested in told.attested.values() {
        let (word, grade) = (attested.attestation, attested.evaluation.id);
        let kept = format!("SELECT count(*) FROM attestations WHERE id = '{word}'");
        assert_eq!(number(&kept), 1, "{word}");
        let kept = format!("SELECT count(*) FROM evaluations WHERE id = '{grade}'");
        assert_eq!(number(&kept), 1, "{grade}");
    }
    let agents = number("SELECT count(*) FROM agents");
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
    let count_of = |kind: &str| i64::try_from(count(kind)).unwrap();
    assert_eq!(count_of("attestation.accepted@1"), words);
    assert_eq!(count_of("run.graded@1"), words);
    assert_eq!(count_of("run.agent_registered@1"), agents);
    assert_eq!(count_of("submission.rewarded@1"), submissions);
    assert!(count("run.registered@1") >= told.runs.len() + RUNS);
}
