//! Three devices and their gateway, a process of its own, whose clock is set: through every level there is, over a
//! restart, and with a run that is fully trusted on the way.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lodestar_core::device::DeviceLevel;
use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use lodestar_core::statement::Order;
use lodestar_gateway::client::PlatformClient;
use lodestar_gateway::code::Code;
use lodestar_harness::world::fleet::{
    Account, Hands, Machine, Workplace, fresh_key, fresh_nonce, signed,
};

use crate::process::{Served, configured};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The clock of the gateway, which is a file, and of the devices, which is not.
struct Time {
    hands: Hands,
    file: PathBuf,
    /// By how many seconds it differs from the system's.
    by: i64,
}

impl Time {
    fn late_by(time: Duration, folder: &Path) -> Self {
        let hands = Hands::default();
        hands.back(time);
        let by = -i64::try_from(time.as_secs()).unwrap();
        let file = folder.join("clock");
        std::fs::write(&file, by.to_string()).unwrap();
        Self { hands, file, by }
    }

    fn pass(&mut self, time: Duration) {
        self.by += i64::try_from(time.as_secs()).unwrap();
        // Replaced, not rewritten: it is read at any moment.
        let next = self.file.with_extension("next");
        std::fs::write(&next, self.by.to_string()).unwrap();
        std::fs::rename(&next, &self.file).unwrap();
        self.hands.forward(time);
    }

    /// Lets time pass in which these machines beat every ten minutes.
    async fn pass_beating(&mut self, time: Duration, machines: &[&Machine]) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(10 * MINUTE);
            self.pass(step);
            left -= step;
            for machine in machines {
                machine.beat(&[]).await.unwrap();
            }
        }
    }
}

async fn levels(owner: &Account, machines: [&Machine; 3]) -> [DeviceLevel; 3] {
    let mut found = [DeviceLevel::Pending; 3];
    for (level, machine) in found.iter_mut().zip(machines) {
        *level = owner.device(machine.id).await.unwrap().level;
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_devices_go_through_every_level_under_a_clock_that_is_set() {
    use DeviceLevel::{Approved, Blocked, Offline, Pending, Revoked, Trusted, Unhealthy};
    let folder = tempfile::tempdir().unwrap();
    let (config, data) = configured(folder.path(), "");
    // What is written in the logs of runs is the system's time: it is the gateway's when trust is earned.
    let mut time = Time::late_by(DAY, folder.path());
    let served = Served::by(&config);
    let platform = PlatformClient::of_folder(&data);
    let place = folder.path().join("workplace");
    std::fs::create_dir(&place).unwrap();
    let workplace = Arc::new(Workplace::new(place));
    let at = (&platform, served.address);
    let mut owner = Account::open(at, &time.hands, &workplace, "owner")
        .await
        .unwrap();
    let made = owner.made().await.unwrap();

    let mut one = owner.enrolled("one").await.unwrap();
    let mut two = owner.enrolled("two").await.unwrap();
    let mut three = owner.enrolled("three").await.unwrap();
    for machine in [&one, &two, &three] {
        let early = owner.order(Account::approval(machine)).await.unwrap_err();
        assert_eq!(early.code(), Some(Code::ChallengeNotPassed));
        assert_eq!(machine.answer().await.unwrap().level, Pending);
        let done = owner.order(Account::approval(machine)).await.unwrap();
        assert_eq!(done.level, Some(Approved));
        machine.beat(&[]).await.unwrap();
    }
    let bind = Order::Bind {
        device: one.id,
        runner: made.runner,
    };
    owner.order(bind).await.unwrap();

    // A day without a gap is not enough: nothing was attested.
    time.pass_beating(DAY, &[&one, &two, &three]).await;
    assert_eq!(levels(&owner, [&one, &two, &three]).await, [Approved; 3]);
    for machine in [&one, &two] {
        let job = machine.register(made).await.unwrap();
        let ran = machine.work(&job).await.unwrap();
        let attested = machine.hand_over(&job, &ran).await.unwrap();
        assert_eq!(attested.level, ExecutionLevel::AgentVerified);
        machine.beat(&[]).await.unwrap();
    }
    let now = levels(&owner, [&one, &two, &three]).await;
    assert_eq!(now, [Trusted, Trusted, Approved]);

    // Now the one with the runner goes all the way, and the one without it no further than its device.
    one.beat(&[made.runner]).await.unwrap();
    let expected = [
        (&one, ExecutionLevel::FullyTrusted, None),
        (
            &two,
            ExecutionLevel::DeviceVerified,
            Some(ExecutionFact::RunnerBound),
        ),
    ];
    for (machine, level, stopped_by) in expected {
        let job = machine.register(made).await.unwrap();
        let ran = machine.work(&job).await.unwrap();
        let attested = machine.hand_over(&job, &ran).await.unwrap();
        assert_eq!(attested.level, level, "{attested:?}");
        assert_eq!(attested.evaluation.stopped_by, stopped_by);
    }

    // A day in which the third says nothing; and the gateway is cut off and comes back.
    time.pass_beating(12 * HOUR, &[&one, &two]).await;
    served.kill();
    let served = Served::by(&config);
    owner.reach(served.address).unwrap();
    for machine in [&mut one, &mut two, &mut three] {
        machine.reach(served.address).unwrap();
    }
    time.pass_beating(12 * HOUR, &[&one, &two]).await;
    let now = levels(&owner, [&one, &two, &three]).await;
    assert_eq!(now, [Trusted, Trusted, Offline]);
    assert_eq!(three.beat(&[]).await.unwrap().level, Approved);

    // Three signatures of somebody else's key, with the device's own token.
    for _ in 0..3 {
        let beat = two.heartbeat(&[]).unwrap();
        let nonce = fresh_nonce().unwrap();
        let forged = signed(beat, &fresh_key().unwrap(), two.now(), nonce).unwrap();
        let refused = two.client.heartbeat(two.id, &forged).await.unwrap_err();
        assert_eq!(refused.code(), Some(Code::SignatureInvalid));
    }
    let now = levels(&owner, [&one, &two, &three]).await;
    assert_eq!(now, [Trusted, Unhealthy, Approved]);
    let refused = two.register(made).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::DeviceUnhealthy));
    time.pass_beating(50 * MINUTE, &[&one, &two, &three]).await;
    assert_eq!(levels(&owner, [&one, &two, &three]).await[1], Unhealthy);
    time.pass_beating(20 * MINUTE, &[&one, &two, &three]).await;
    let now = levels(&owner, [&one, &two, &three]).await;
    assert_eq!(now, [Trusted, Approved, Approved]);
    // It attested within thirty days, so that a day without a gap makes it trusted anew.
    time.pass_beating(DAY, &[&one, &two, &three]).await;
    let now = levels(&owner, [&one, &two, &three]).await;
    assert_eq!(now, [Trusted, Trusted, Approved]);

    let keys = (fresh_key().unwrap(), fresh_key().unwrap());
    let rotation = owner.rotation(&one, (&keys.0, &keys.1)).unwrap();
    let rotated = owner.client.rotate(one.id, &rotation).await.unwrap();
    assert_eq!(rotated.level, Approved);
    let old = one.beat(&[]).await.unwrap_err();
    assert_eq!(old.code(), Some(Code::SignatureInvalid));
    one.key = Arc::new(keys.0);
    assert_eq!(one.beat(&[]).await.unwrap().level, Approved);

    let revoke = Order::Revoke {
        compromised_since: None,
        device: two.id,
        reason: "sold".to_owned(),
    };
    owner.order(revoke).await.unwrap();
    platform.block(three.id, "abuse").await.unwrap();
    let now = levels(&owner, [&one, &two, &three]).await;
    assert_eq!(now, [Approved, Revoked, Blocked]);
    time.pass(DAY);
    for (machine, code) in [(&two, Code::DeviceRevoked), (&three, Code::DeviceBlocked)] {
        assert_eq!(machine.beat(&[]).await.unwrap_err().code(), Some(code));
        assert_eq!(machine.register(made).await.unwrap_err().code(), Some(code));
    }
    served.end();
}
