//! A device that earned its trust, and everything that a run of its needs.

use std::time::Duration;

use lodestar_core::device::DeviceLevel;
use lodestar_core::digest::sha256;
use lodestar_core::id::{ContenderId, RunnerId, TermsId};
use lodestar_core::statement::Order;
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;
use lodestar_guard::Session;
use serde_json::{Value, json};

use crate::ran::{Ran, Workshop, ticket};
use crate::store::place::Place;
use crate::world::{Apart, Machine, Owner, World, ticket_of};

/// The seed whose successor is the key that the workshop's logs are signed with.
const DEVICE: u8 = 6;

/// An account with a device, a runner, an agent and terms, on a server where trust is earned in minutes: runs are
/// made by the system's clock, which a gateway may not be far ahead of.
pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) owner: Owner,
    pub(crate) machine: Machine,
    pub(crate) agent: ContenderId,
    pub(crate) runner: RunnerId,
    pub(crate) terms: TermsId,
    pub(crate) workshop: Workshop,
}

/// A run, with its log.
pub(crate) struct Made {
    pub(crate) run: wire::Run,
    pub(crate) ran: Ran,
}

/// What an honest agent does.
pub(crate) async fn honest(session: Session) -> Session {
    for (tool, arguments) in [
        ("box.read", json!({"path": "a.md"})),
        ("box.send", json!({"to": "anna@corp.example"})),
    ] {
        assert!(session.call(tool, arguments).await.unwrap().ran());
    }
    session
}

impl Lab {
    /// With a device that is approved and bound.
    pub(crate) async fn approved(place: Apart<Place>) -> Self {
        let world = World::with(place, |config| {
            config.devices.heartbeat = Duration::from_secs(10);
            config.devices.max_gap = Duration::from_secs(60);
            config.devices.continuity = Duration::from_secs(150);
        })
        .await;
        let owner = world.owner("anna", 10).await;
        let machine = owner.approved(&world, "laptop", DEVICE).await;
        let (agent, runner) = (owner.agent("helper").await, owner.runner("local").await);
        let bind = Order::Bind {
            device: machine.id,
            runner,
        };
        owner.order(bind).await.unwrap();
        let workshop = Workshop::new();
        // What the owner looked at before.
        let seen = workshop.run(ticket(1), honest).await;
        let terms = owner.register_terms(&seen).await;
        Self {
            world,
            owner,
            machine,
            agent,
            runner,
            terms,
            workshop,
        }
    }

    /// With a device that is trusted, too.
    pub(crate) async fn trusted(place: Apart<Place>) -> Self {
        let lab = Self::approved(place).await;
        lab.earn_trust().await;
        lab
    }

    /// An attestation that counts, and heartbeats for as long as it takes.
    pub(crate) async fn earn_trust(&self) {
        let first = self.make(true).await;
        let attested = self.ship_and_attest(&first).await.unwrap();
        assert!(!attested.found.device_trusted);
        let mut level = DeviceLevel::Approved;
        for _ in 0..3 {
            level = self.beat().await;
            self.world.hands.forward(Duration::from_secs(55));
        }
        assert_eq!(level, DeviceLevel::Approved);
        assert_eq!(self.beat().await, DeviceLevel::Trusted);
    }

    pub(crate) async fn beat(&self) -> DeviceLevel {
        self.machine.heartbeat(&[self.runner]).await.unwrap().level
    }

    pub(crate) fn registering(&self, with_hashes: bool) -> wire::RegisterRun {
        let hash = |what: &[u8]| with_hashes.then(|| sha256(what));
        wire::RegisterRun {
            agent: self.agent,
            runner: self.runner,
            terms: self.terms,
            workflow_hash: hash(b"workflow"),
            lens_hash: hash(b"lens"),
        }
    }

    pub(crate) async fn register(
        &self,
        asked: &wire::RegisterRun,
    ) -> Result<wire::RunRegistered, Option<Code>> {
        let done = self.machine.client.register_run(asked).await;
        done.map_err(|problem| problem.code())
    }

    /// A run that was registered and made, and is not handed in yet.
    pub(crate) async fn make(&self, with_hashes: bool) -> Made {
        self.make_of(&self.registering(with_hashes)).await
    }

    pub(crate) async fn make_of(&self, asked: &wire::RegisterRun) -> Made {
        let registered = self.register(asked).await.unwrap();
        let ran = self.workshop.run(ticket_of(&registered), honest).await;
        let run = self.machine.client.run(registered.run).await.unwrap();
        Made { run, ran }
    }

    pub(crate) async fn ship_and_attest(
        &self,
        made: &Made,
    ) -> Result<wire::Attested, Option<Code>> {
        self.machine.ship(made.run.id, &made.ran).await;
        self.machine.attest(&made.run, &made.ran).await
    }

    /// A run whose log was changed by somebody who has the device's log key, before anybody heard of it.
    pub(crate) async fn forged(&self, change: impl FnOnce(&mut Vec<Value>)) -> Made {
        let made = self.make(true).await;
        made.ran.forge(change);
        made
    }
}
