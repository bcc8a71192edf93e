//! The daemon against a real service: it beats, obeys in time, waits for a service that is away, and ends with its
//! device.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lodestar_core::device::DeviceLevel;
use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::Order;
use lodestar_gateway::daemon::{Daemon, DaemonError, DaemonSettings};
use lodestar_gateway::device::{
    AskError, DaemonLock, DeviceFolder, DeviceIdentity, Stopped, Whereabouts, running,
};
use lodestar_gateway::service::Report;
use lodestar_gateway::token::TokenText;

use crate::world::{Machine, World, sqlite};

/// How soon a directive has to be in force.
const OBEYED: Duration = Duration::from_secs(10);

/// How long it took until something was so.
async fn until(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    begun.elapsed()
}

/// The folder of a machine that is a device.
fn enrolled(world: &World, machine: &Machine, place: &Path) -> DeviceFolder {
    let folder = DeviceFolder::at(place.join("device"));
    let key = SecretKey::from_seed(*machine.key.seed());
    folder.prepare(key).unwrap();
    let identity = DeviceIdentity {
        gateway: Whereabouts {
            url: world.url.clone(),
            allow_loopback_http: true,
            ca_file: None,
        },
        account: machine.account,
        device: machine.id,
        name: ActorId::new("laptop").unwrap(),
        key: machine.key.public(),
        log_key: machine.log_key.public(),
    };
    let token = TokenText::parse(&machine.token).unwrap();
    folder.enrol(&identity, &token).unwrap();
    folder
}

/// As somebody else left it.
fn leave(folder: &DeviceFolder, state: &str) {
    std::fs::write(folder.path().join("state.json"), state).unwrap();
}

#[tokio::test]
async fn beside_a_daemon_whoever_asks_may_stop_signing_and_never_lets_it_go_on() {
    let world = World::on(sqlite()).await;
    let owner = world.owner("anna", 10).await;
    let machine = owner.approved(&world, "laptop", 20).await;
    let place = tempfile::tempdir().unwrap();
    let folder = enrolled(&world, &machine, place.path());
    let client = folder.client().unwrap();
    let stopped = || folder.state().unwrap().stopped;

    let daemon = DaemonLock::take(&folder).unwrap();
    // What the daemon heard since the gateway let go of this answer.
    leave(&folder, r#"{"stopped":"kill_switch"}"#);
    folder.ask(&client).await.unwrap();
    assert_eq!(stopped(), Some(Stopped::KillSwitch));
    leave(&folder, "{}");
    let platform = world.platform();
    platform.set_kill_switch(true, "an exercise").await.unwrap();
    let asked = folder.signer(&client).await;
    assert!(
        matches!(asked, Err(AskError::Stopped(Stopped::KillSwitch))),
        "{asked:?}"
    );
    assert_eq!(stopped(), Some(Stopped::KillSwitch));
    drop(daemon);
    platform.set_kill_switch(false, "over").await.unwrap();
    // Nobody else would lift it.
    folder.signer(&client).await.unwrap();
    assert_eq!(stopped(), None);
}

#[tokio::test]
async fn a_daemon_that_waited_for_another_begins_with_what_that_one_heard_last() {
    let world = World::on(sqlite()).await;
    let owner = world.owner("anna", 10).await;
    let machine = owner.approved(&world, "laptop", 20).await;
    let place = tempfile::tempdir().unwrap();
    let folder = enrolled(&world, &machine, place.path());
    let before = DaemonLock::take(&folder).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&told);
    let settings = DaemonSettings {
        report: Report::to(move |line| lines.lock().unwrap().push(line.to_owned())),
        clock: world.clock.clone(),
        ..DaemonSettings::default()
    };
    let waiting = folder.clone();
    let starting = tokio::task::spawn_blocking(move || Daemon::start(waiting, settings));
    tokio::time::sleep(Duration::from_millis(500)).await;
    leave(&folder, r#"{"stopped":"paused"}"#);
    drop(before);
    let daemon = starting.await.unwrap().unwrap();
    let task = tokio::spawn(daemon.run(std::future::pending()));
    until("it lifts what holds no more", || {
        told.lock()
            .unwrap()
            .iter()
            .any(|it| it == "signing goes on")
    })
    .await;
    assert_eq!(folder.state().unwrap().stopped, None);
    task.abort();
}

#[tokio::test]
async fn a_daemon_beats_obeys_waits_and_ends_with_its_device() {
    let mut world = World::on(sqlite()).await;
    let owner = world.owner("anna", 10).await;
    let machine = owner.approved(&world, "laptop", 20).await;
    let runner = owner.runner("local").await;
    let bind = Order::Bind {
        device: machine.id,
        runner,
    };
    owner.order(bind).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let folder = enrolled(&world, &machine, place.path());
    let settings = DaemonSettings {
        heartbeat: Duration::from_secs(1),
        report: Report::to(|_| {}),
        clock: world.clock.clone(),
        ..DaemonSettings::default()
    };
    let daemon = Daemon::start(folder.clone(), settings).unwrap();
    assert_eq!(running(&folder).unwrap(), Some(std::process::id()));
    let task = tokio::spawn(daemon.run(std::future::pending()));
    let state = || folder.state().unwrap();
    let stopped = || state().stopped;
    until("it beats", || {
        state().level == Some(DeviceLevel::Approved) && state().beat_at.is_some()
    })
    .await;
    let runners = owner.client.runners(None).await.unwrap().items;
    assert!(
        runners[0].last_heartbeat.is_some(),
        "the bound one is alive"
    );

    let platform = world.platform();
    platform.set_kill_switch(true, "an exercise").await.unwrap();
    let obeyed = until("it obeys the kill switch", || stopped().is_some()).await;
    assert!(obeyed < OBEYED, "{obeyed:?}");
    assert_eq!(stopped(), Some(Stopped::KillSwitch));
    let last = owner
        .client
        .device(machine.id)
        .await
        .unwrap()
        .last_heartbeat;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let now = owner
        .client
        .device(machine.id)
        .await
        .unwrap()
        .last_heartbeat;
    assert_eq!(now, last, "nothing was signed meanwhile");
    platform.set_kill_switch(false, "over").await.unwrap();
    until("it goes on", || stopped().is_none()).await;

    let pause = Order::Pause {
        device: machine.id,
        reason: "holidays".to_owned(),
    };
    owner.order(pause).await.unwrap();
    let obeyed = until("it obeys a pause", || stopped() == Some(Stopped::Paused)).await;
    assert!(obeyed < OBEYED, "{obeyed:?}");
    // What was heard last holds while nobody says otherwise.
    world.stop().await;
    until("it notices", || state().problem.is_some()).await;
    assert_eq!(stopped(), Some(Stopped::Paused));
    world.start().await;
    until("it is heard again", || state().problem.is_none()).await;
    let owner = crate::world::Owner {
        client: world.client(Some(&owner.token)),
        ..owner
    };
    let device = machine.id;
    owner.order(Order::Resume { device }).await.unwrap();
    until("it goes on", || stopped().is_none()).await;

    let revoke = Order::Revoke {
        compromised_since: None,
        device,
        reason: "sold".to_owned(),
    };
    owner.order(revoke).await.unwrap();
    let ended = task.await.unwrap();
    assert!(
        matches!(ended, Err(DaemonError::Gone(Stopped::Revoked))),
        "{ended:?}"
    );
    assert_eq!(stopped(), Some(Stopped::Revoked));
    assert_eq!(running(&folder).unwrap(), None);
}
