//! Everything that somebody may try by HTTP, with counts: nothing elevates, every refusal has its code and stands in
//! the event log, and the service stays up. Once over SQLite, once over PostgreSQL.

mod bodies;
mod devices;
mod logs;
mod others;
mod post;
mod statements;

use std::collections::BTreeMap;
use std::sync::Mutex;

use lodestar_core::device::{DeviceLevel, DeviceSettings};
use lodestar_core::digest::sha256;
use lodestar_core::execution::ExecutionLevel;
use lodestar_gateway::client::GatewayError;
use lodestar_gateway::code::Code;
use lodestar_gateway::store::Sql;
use lodestar_gateway::wire;
use serde_json::{Map, Value, json};

use crate::store::place::Place;
use lodestar_harness::world::fleet::{self, Account, Fleet, Job, Machine, Made};

/// Everything that was tried, by what kind of attack it was and what came of it.
#[derive(Default)]
struct Tally(Mutex<BTreeMap<&'static str, BTreeMap<String, usize>>>);

impl Tally {
    fn note(&self, attack: &'static str, outcome: String) {
        let mut all = self.0.lock().unwrap();
        *all.entry(attack).or_default().entry(outcome).or_default() += 1;
    }

    /// A request that has to be refused by one of these codes.
    #[track_caller]
    fn refused<T: std::fmt::Debug>(
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

    fn print(&self, place: &str) -> BTreeMap<String, usize> {
        let all = self.0.lock().unwrap();
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
}

impl Scene {
    async fn set(fleet: Fleet) -> Self {
        let owner = fleet.account("owner").await.unwrap();
        let made = owner.made().await.unwrap();
        let machine = owner.trusted("machine", made).await.unwrap();
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
        let mallory = fleet.account("mallory").await.unwrap();
        let hers = mallory.made().await.unwrap();
        let rogue = mallory.approved("rogue").await.unwrap();
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
        }
    }

    /// Whatever could have been raised of an account, or taken from it.
    async fn standing(&self, account: &Account) -> Value {
        let client = &account.client;
        let devices = client.devices(None).await.unwrap().items;
        let devices = devices.into_iter().map(|device| {
            json!({
                "id": device.id, "level": device.level, "key": device.key, "log_key": device.log_key,
                "passed": device.challenge_passed_at.is_some(), "paused": device.paused,
                "runners": device.runners,
            })
        });
        let runs = client.runs(None).await.unwrap().items;
        let runs = runs.into_iter().map(|run| {
            let level = run.evaluation.map(|evaluation| evaluation.level);
            json!({"id": run.id, "level": level})
        });
        let submissions = client.submissions(None).await.unwrap().items;
        let tokens = client.tokens(None).await.unwrap().items;
        let tokens = tokens
            .into_iter()
            .map(|token| json!({"id": token.id, "revoked": token.revoked_at}));
        json!({
            "devices": devices.collect::<Vec<_>>(),
            "runs": runs.collect::<Vec<_>>(),
            "submissions": serde_json::to_value(submissions).unwrap(),
            "terms": serde_json::to_value(client.all_terms(None).await.unwrap().items).unwrap(),
            "agents": serde_json::to_value(client.agents(None).await.unwrap().items).unwrap(),
            "tokens": tokens.collect::<Vec<_>>(),
        })
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
    let before = scene.standing(&scene.owner).await;
    let alive = || async { scene.machine.beat(&[scene.made.runner]).await.unwrap() };
    devices::attack(&scene).await;
    alive().await;
    statements::attack(&scene).await;
    alive().await;
    others::attack(&scene).await;
    bodies::attack(&scene).await;
    let after = scene.standing(&scene.owner).await;
    for kept in ["submissions", "terms", "agents"] {
        assert_eq!(before[kept], after[kept], "{kept}");
    }
    assert_eq!(
        scene.level(&scene.owner, &scene.best).await,
        Some(ExecutionLevel::FullyTrusted)
    );
    alive().await;
    logs::attack(&scene).await;
    devices::attack_gone(&scene).await;
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
