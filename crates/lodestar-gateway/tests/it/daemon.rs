//! The daemon against a real service: it beats, obeys in time, waits for a service that is away, and ends with its
//! device.

use std::time::{Duration, Instant};

use lodestar_core::device::DeviceLevel;
use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::Order;
use lodestar_gateway::daemon::{Daemon, DaemonError, DaemonSettings};
use lodestar_gateway::device::{DeviceFolder, DeviceIdentity, Stopped, Whereabouts, running};
use lodestar_gateway::service::Report;
use lodestar_gateway::token::TokenText;

use crate::world::{World, sqlite};

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
    let folder = DeviceFolder::at(place.path().join("device"));
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
    folder
        .enrol(&identity, &TokenText::parse(&machine.token).unwrap())
        .unwrap();
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
