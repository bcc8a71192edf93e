//! Everything that somebody may try by HTTP, with counts: nothing elevates, every refusal has its code and stands in
//! the event log, and the service stays up. Once over SQLite, once over PostgreSQL.

mod bodies;
mod devices;
mod logs;
mod others;
mod post;
mod statements;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Mutex;

use lodestar_core::device::{DeviceLevel, DeviceSettings};
use lodestar_core::digest::sha256;
use lodestar_core::execution::ExecutionLevel;
use lodestar_core::id::RunId;
use lodestar_gateway::client::GatewayError;
use lodestar_gateway::code::Code;
use lodestar_gateway::store::Sql;
use lodestar_gateway::wire;
use serde_json::{Map, Value, json};

use crate::store::place::Place;
use lodestar_harness::world::fleet::{self, Account, CONTINUITY, Fleet, Job, Machine, Made};

/// Everything that was tried, by what kind of attack it was and what came of it.
#[derive(Default)]
struct Tally {
    tried: Mutex<BTreeMap<&'static str, BTreeMap<String, usize>>>,
    /// What has to be found out about runs.
    findings: Mutex<BTreeMap<String, &'static str>>,
}

impl Tally {
    fn note(&self, attack: &'static str, outcome: String) {
        let mut all = self.tried.lock().unwrap();
        *all.entry(attack).or_default().entry(outcome).or_default() += 1;
    }

    /// A request that has to be refused by one of these codes.
    #[track_caller]
    fn refused<T: Debug>(
        &self,
        attack: &'static str,
        answer: Result<T, GatewayError>,
        codes: &[Code],
    ) {
        match answer {
            Err(GatewayError::Refused { code, .. }) if codes.contains(&code) => {
                self.note(attack, code.to_string());
            }
            other => panic!("{attack}: {other:?}, and not {codes:?}"),
        }
    }

    /// An answer that is no refusal, and elevates nothing.
    fn taken(&self, attack: &'static str) {
        self.note(attack, "taken, worth nothing".to_owned());
    }

    /// An attestation whose bundle comes to this finding.
    fn found(&self, run: RunId, finding: &'static str) {
        let mut all = self.findings.lock().unwrap();
        let before = all.insert(run.to_string(), finding);
        assert_eq!(before, None, "a run for each");
    }

    /// That the log tells of every finding, on the run that it is about.
    fn are_told(&self, events: &[(String, Map<String, Value>)]) {
        for (run, finding) in self.findings.lock().unwrap().iter() {
            let told = events.iter().filter(|(kind, payload)| {
                kind == "attestation.accepted@1" && payload["run"] == json!(run)
            });
            let told: Vec<_> = told.map(|(_, payload)| &payload["findings"]).collect();
            let is_told = told.iter().any(|told| {
                let codes = told.as_array().into_iter().flatten();
                codes.into_iter().any(|code| code == finding)
            });
            assert!(is_told, "{run}: {told:?}, and not {finding}");
        }
    }

    fn print(&self, place: &str) -> BTreeMap<String, usize> {
        let all = self.tried.lock().unwrap();
        let mut codes = BTreeMap::new();
        let mut total = 0;
        println!("attacks by HTTP, {place}:");
        for (attack, outcomes) in all.iter() {
            let count: usize = outcomes.values().sum();
            total += count;
            let outcomes = outcomes.iter().map(|(code, count)| {
                *codes.entry(code.clone()).or_default() += count;
                format!("{code} {count}")
            });
            println!(
                "  {count:>5}  {attack}: {}",
                outcomes.collect::<Vec<_>>().join(", ")
            );
        }
        println!("  {total:>5}  in all");
        codes
    }
}

/// Every page of a list.
async fn all<T, I: FromStr<Err: Debug>>(
    ask: impl AsyncFn(Option<I>) -> Result<wire::Page<T>, GatewayError>,
) -> Vec<T> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = ask(after).await.unwrap();
        found.extend(page.items);
        match page.next {
            Some(next) => after = Some(next.parse().unwrap()),
            None => return found,
        }
    }
}

/// What an account has, and how it stands: by kind, and by id.
#[derive(Debug, PartialEq)]
struct Standing(BTreeMap<&'static str, BTreeMap<String, Value>>);

impl Standing {
    /// Nothing that was there is gone, is another, or stands higher than it did; what came since is nobody's gain.
    fn still(&self, before: &Self) {
        for (kind, were) in &before.0 {
            for (id, was) in were {
                let is = self.0[kind].get(id);
                let is = is.unwrap_or_else(|| panic!("{kind}: {id} is gone"));
                let mut is = is.clone();
                if *kind == "devices" && height(&is["level"]) < height(&was["level"]) {
                    is["level"] = was["level"].clone();
                }
                assert_eq!(&is, was, "{kind}: {id}");
            }
        }
        // A new token is a new device's, or of no device: none speaks for one that was there.
        for (id, token) in &self.0["tokens"] {
            let device = token["device"].as_str();
            let is_new = !before.0["tokens"].contains_key(id);
            let was_there = device.is_some_and(|id| before.0["devices"].contains_key(id));
            assert!(!(is_new && was_there), "{id}: {token}");
        }
    }

    /// The same, and not one more of what nobody was let make.
    fn no_more(&self, before: &Self) {
        self.still(before);
        for kind in ["submissions", "terms", "agents"] {
            assert_eq!(self.0[kind], before.0[kind], "{kind}");
        }
    }
}

/// What a device's level is worth: less may follow from an attack, and more never.
fn height(level: &Value) -> u8 {
    match level.as_str() {
        Some("trusted") => 2,
        Some("approved") => 1,
        _ => 0,
    }
}

/// Whoever is attacked, whoever attacks, and what there is.
struct Scene {
    fleet: Fleet,
    tally: Tally,
    owner: Account,
    made: Made,
    machine: Machine,
    /// A run of the owner's that is fully trusted.
    best: Job,
    submission: wire::Submission,
    mallory: Account,
    hers: Made,
    /// Her machine: approved, and honest until now.
    rogue: Machine,
    /// More of hers: trusted, so that only their logs are in the way of more.
    forgers: Vec<Machine>,
}

/// How many machines write their logs anew: what breaks a policy makes one unhealthy, so that each does it once.
const FORGERS: usize = logs::FORGED;

impl Scene {
    async fn set(fleet: Fleet) -> Self {
        let owner = fleet.account("owner").await.unwrap();
        let made = owner.made().await.unwrap();
        let mallory = fleet.account("mallory").await.unwrap();
        let hers = mallory.made().await.unwrap();
        let rogue = mallory.approved("rogue").await.unwrap();
        // All in the same hour: the logs that they write are dated by the system's clock.
        let mut forgers = Vec::new();
        for n in 0..FORGERS {
            let name = format!("forger-{n}");
            forgers.push(mallory.bound(&name, hers.runner).await.unwrap());
        }
        let machine = owner.bound("machine", made.runner).await.unwrap();
        let beating = forgers.iter().map(|it| (it, hers.runner));
        let beating: Vec<_> = beating.chain([(&machine, made.runner)]).collect();
        fleet.beat_for(CONTINUITY, &beating).await.unwrap();
        for forger in &forgers {
            forger.earn(hers).await.unwrap();
        }
        machine.earn(made).await.unwrap();
        let best = machine.register(made).await.unwrap();
        let ran = machine.work(&best).await.unwrap();
        let attested = machine.hand_over(&best, &ran).await.unwrap();
        assert_eq!(attested.level, ExecutionLevel::FullyTrusted, "{attested:?}");
        let handed = wire::HandIn {
            content: sha256(b"work"),
            run: Some(best.run),
            battle: None,
        };
        let submission = owner.client.hand_in(&handed).await.unwrap();
        Self {
            fleet,
            tally: Tally::default(),
            owner,
            made,
            machine,
            best,
            submission,
            mallory,
            hers,
            rogue,
            forgers,
        }
    }

    /// Whatever could have been raised of an account, or taken from it: by kind, and by id.
    async fn standing(&self, account: &Account) -> Standing {
        let client = &account.client;
        let devices = all(async |after| client.devices(after).await).await;
        let devices = devices.into_iter().map(|device| {
            let shown = json!({
                "level": device.level, "key": device.key, "log_key": device.log_key,
                "passed": device.challenge_passed_at.is_some(), "paused": device.paused,
                "runners": device.runners,
            });
            (device.id.to_string(), shown)
        });
        let runs = all(async |after| client.runs(after).await).await;
        let runs = runs.into_iter().map(|run| {
            let level = run.evaluation.map(|evaluation| evaluation.level);
            (run.id.to_string(), json!({ "level": level }))
        });
        let tokens = all(async |after| client.tokens(after).await).await;
        let tokens = tokens.into_iter().map(|token| {
            let shown = json!({"device": token.device, "revoked": token.revoked_at});
            (token.id.to_string(), shown)
        });
        let runners = all(async |after| client.runners(after).await).await;
        let runners = runners
            .into_iter()
            .map(|runner| (runner.id.to_string(), json!(runner.name)));
        let submissions = all(async |after| client.submissions(after).await).await;
        let submissions = submissions
            .into_iter()
            .map(|it| (it.id.to_string(), json!(it)));
        let terms = all(async |after| client.all_terms(after).await).await;
        let terms = terms.into_iter().map(|it| (it.id.to_string(), json!(it)));
        let agents = all(async |after| client.agents(after).await).await;
        let agents = agents.into_iter().map(|it| (it.id.to_string(), json!(it)));
        Standing(BTreeMap::from([
            ("devices", devices.collect()),
            ("runs", runs.collect()),
            ("tokens", tokens.collect()),
            ("runners", runners.collect()),
            ("submissions", submissions.collect()),
            ("terms", terms.collect()),
            ("agents", agents.collect()),
        ]))
    }

    async fn standings(&self) -> [Standing; 2] {
        [
            self.standing(&self.owner).await,
            self.standing(&self.mallory).await,
        ]
    }

    async fn level(&self, account: &Account, job: &Job) -> Option<ExecutionLevel> {
        let run = account.client.run(job.run).await.unwrap();
        run.evaluation.map(|evaluation| evaluation.level)
    }
}

/// Bad signatures by the thousand are what this is about: they are not to end it after three.
fn patient() -> DeviceSettings {
    DeviceSettings {
        bad_signatures: 1_000_000,
        ..fleet::settings()
    }
}

async fn attack(place: &str, open: impl FnOnce() -> Box<dyn Sql> + Send + 'static) {
    let folder = tempfile::tempdir().unwrap();
    let fleet = Fleet::over(folder.path(), patient(), open).await.unwrap();
    let scene = Scene::set(fleet).await;
    let before = scene.standings().await;
    let alive = || async { scene.machine.beat(&[scene.made.runner]).await.unwrap() };
    devices::attack(&scene).await;
    alive().await;
    statements::attack(&scene).await;
    alive().await;
    others::attack(&scene).await;
    bodies::attack(&scene).await;
    for (after, before) in scene.standings().await.iter().zip(&before) {
        after.no_more(before);
    }
    alive().await;
    logs::attack(&scene).await;
    devices::attack_gone(&scene).await;
    for (after, before) in scene.standings().await.iter().zip(&before) {
        after.still(before);
    }
    assert_eq!(
        scene.level(&scene.owner, &scene.best).await,
        Some(ExecutionLevel::FullyTrusted)
    );
    // It stays up, and whoever is honest is served.
    let health = scene.owner.client.health().await.unwrap();
    assert_eq!(health.status, "ok");
    let beaten = scene.machine.beat(&[scene.made.runner]).await.unwrap();
    assert_eq!(beaten.level, DeviceLevel::Trusted);
    let job = scene.machine.register(scene.made).await.unwrap();
    let ran = scene.machine.work(&job).await.unwrap();
    let attested = scene.machine.hand_over(&job, &ran).await.unwrap();
    assert_eq!(attested.level, ExecutionLevel::FullyTrusted, "{attested:?}");
    let Scene { fleet, tally, .. } = scene;
    let events = fleet.close().await.unwrap();
    tally.are_told(&events);
    let mut codes = tally.print(place);
    codes.remove("taken, worth nothing");
    assert_eq!(
        logged(&events),
        codes,
        "every refusal is in the log, and nothing else"
    );
}

/// The refusals that a log tells of, by code.
fn logged(events: &[(String, Map<String, Value>)]) -> BTreeMap<String, usize> {
    let mut codes = BTreeMap::new();
    for (kind, payload) in events {
        if kind.ends_with("refused@1") {
            let code = payload["code"].as_str().unwrap().to_owned();
            let times = payload.get("times").and_then(Value::as_u64).unwrap_or(1);
            *codes.entry(code).or_default() += usize::try_from(times).unwrap();
            let text = Value::Object(payload.clone()).to_string();
            assert!(
                !text.contains("lsgw_") && !text.contains("payloadType"),
                "{text}"
            );
        }
    }
    codes
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn matrix_of_attacks_by_http_over_sqlite() {
    let place = Place::sqlite();
    let store = place.open();
    runtime().block_on(attack("SQLite", move || store));
}

#[test]
fn matrix_of_attacks_by_http_over_postgresql() {
    let Some(place) = Place::postgres() else {
        return;
    };
    let store = place.open();
    runtime().block_on(attack("PostgreSQL", move || store));
}
