//! An account: its owner with a key, and what the owner has done to devices.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lodestar_core::id::{AccountId, ContenderId, DeviceId, RunnerId, TermsId};
use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{Envelope, Issued, KeyRotation, Order, OwnerOrder};
use lodestar_core::time::Timestamp;
use lodestar_gateway::client::{GatewayClient, GatewayError, PlatformClient};
use lodestar_gateway::wire;
use serde_json::Value;

use super::{
    CONTINUITY, Hands, Job, Machine, Prepared, Trouble, While, Workplace, fresh_key, fresh_nonce,
};

/// An account, in the hand of its owner.
#[derive(Debug)]
pub struct Account {
    /// Which.
    pub id: AccountId,
    /// What the owner signs with.
    pub owner: Arc<SecretKey>,
    /// The owner's token.
    pub token: String,
    /// Asks with it.
    pub client: GatewayClient,
    pub(super) address: SocketAddr,
    pub(super) hands: Hands,
    pub(super) workplace: Arc<Workplace>,
}

/// What runs of an account are made of.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// In whose name.
    pub agent: ContenderId,
    /// By what.
    pub runner: RunnerId,
    /// Under what.
    pub terms: TermsId,
}

impl Account {
    /// Opens an account with a gateway that somebody serves.
    pub async fn open(
        (platform, address): (&PlatformClient, SocketAddr),
        hands: &Hands,
        workplace: &Arc<Workplace>,
        name: &str,
    ) -> Prepared<Self> {
        let owner = Arc::new(fresh_key()?);
        let asked = wire::OpenAccount {
            name: ActorId::new(name).while_("naming an account")?,
            owner_key: owner.public(),
        };
        let opened = platform.open_account(&asked).await;
        let opened = opened.while_("opening an account")?;
        Ok(Self {
            id: opened.account,
            owner,
            client: super::client(address, Some(&opened.token))?,
            token: opened.token,
            address,
            hands: hands.clone(),
            workplace: Arc::clone(workplace),
        })
    }

    /// The same, where the gateway listens somewhere else by now.
    pub fn reach(&mut self, address: SocketAddr) -> Prepared<()> {
        self.address = address;
        self.client = super::client(address, Some(&self.token))?;
        Ok(())
    }

    /// An order that a key signs in this account's name.
    pub fn signed(&self, order: Order, key: &SecretKey, at: Timestamp) -> Prepared<Envelope> {
        let issued = Issued {
            expires_at: None,
            issued_at: at,
            key_id: key.public().key_id(),
            nonce: fresh_nonce()?,
            subject: OwnerOrder {
                account: self.id,
                order,
            },
        };
        Envelope::sign(&issued, key).while_("signing an order")
    }

    /// An order that the owner signs now.
    pub fn ordered(&self, order: Order) -> Prepared<Envelope> {
        self.signed(order, &self.owner, self.hands.clock().now())
    }

    /// Orders something.
    pub async fn order(&self, order: Order) -> Result<wire::Ordered, GatewayError> {
        let envelope = self
            .ordered(order)
            .map_err(|problem| GatewayError::Unreached(problem.to_string()))?;
        self.hand_in(envelope, None).await
    }

    /// Hands an order in.
    pub async fn hand_in(
        &self,
        envelope: Envelope,
        terms: Option<Value>,
    ) -> Result<wire::Ordered, GatewayError> {
        self.client
            .order(&wire::HandInOrder { envelope, terms })
            .await
    }

    /// A machine with fresh keys, pending.
    pub async fn enrolled(&self, name: &str) -> Prepared<Machine> {
        let (key, log_key) = (fresh_key()?, fresh_key()?);
        let asked = wire::RegisterDevice {
            name: ActorId::new(name).while_("naming a device")?,
            key: Some(key.public()),
            log_key: Some(log_key.public()),
        };
        let registered = self.client.register_device(&asked).await;
        let registered = registered.while_("registering a device")?;
        let challenge = registered.challenge;
        let challenge = challenge.ok_or_else(|| Trouble::new("a device without a challenge"))?;
        Ok(Machine {
            id: registered.device,
            account: self.id,
            client: super::client(self.address, Some(&registered.token))?,
            token: registered.token,
            key: Arc::new(key),
            log_key: Arc::new(log_key),
            challenge: challenge.nonce,
            hands: self.hands.clone(),
            workplace: Arc::clone(&self.workplace),
        })
    }

    /// The order that approves a machine.
    pub fn approval(machine: &Machine) -> Order {
        Order::Approve {
            device: machine.id,
            key: machine.key.public(),
            log_key: machine.log_key.public(),
        }
    }

    /// A machine that answered its challenge, and that the owner approved.
    pub async fn approved(&self, name: &str) -> Prepared<Machine> {
        let machine = self.enrolled(name).await?;
        machine.answer().await.while_("answering a challenge")?;
        let approved = self.order(Self::approval(&machine)).await;
        approved.while_("approving a device")?;
        Ok(machine)
    }

    /// An approved machine with a runner.
    pub async fn bound(&self, name: &str, runner: RunnerId) -> Prepared<Machine> {
        let machine = self.approved(name).await?;
        let bound = self.order(Order::Bind {
            device: machine.id,
            runner,
        });
        bound.await.while_("binding a runner")?;
        Ok(machine)
    }

    /// The same, which has beaten for as long as trust takes; the clock goes on by that.
    pub async fn steady(&self, name: &str, runner: RunnerId) -> Prepared<Machine> {
        let machine = self.bound(name, runner).await?;
        machine.beat_for(CONTINUITY, &[runner]).await?;
        Ok(machine)
    }

    /// A trusted machine: one that beat and attested. The clock goes on by as long as that takes.
    pub async fn trusted(&self, name: &str, made: Made) -> Prepared<Machine> {
        let machine = self.steady(name, made.runner).await?;
        machine.earn(made).await?;
        Ok(machine)
    }

    /// An agent, a runner and terms.
    pub async fn made(&self) -> Prepared<Made> {
        let named = |name: &str| -> Prepared<wire::Named> {
            let name = ActorId::new(name).while_("naming something")?;
            Ok(wire::Named { name })
        };
        let agent = self.client.register_agent(&named("agent")?).await;
        let runner = self.client.register_runner(&named("runner")?).await;
        Ok(Made {
            agent: agent.while_("registering an agent")?.id,
            runner: runner.while_("registering a runner")?.id,
            terms: self.registered_terms().await?,
        })
    }

    /// One more runner.
    pub async fn runner(&self, name: &str) -> Prepared<RunnerId> {
        let name = ActorId::new(name).while_("naming a runner")?;
        let runner = self.client.register_runner(&wire::Named { name }).await;
        Ok(runner.while_("registering a runner")?.id)
    }

    /// The workplace's terms, registered.
    async fn registered_terms(&self) -> Prepared<TermsId> {
        let terms = self.workplace.terms().await?;
        let order = Order::RegisterTerms {
            terms: terms.digest().while_("hashing terms")?,
        };
        let document = serde_json::to_value(&terms).while_("writing terms")?;
        let done = self.hand_in(self.ordered(order)?, Some(document)).await;
        let done = done.while_("registering terms")?;
        done.terms
            .ok_or_else(|| Trouble::new("terms without an id"))
    }

    /// New keys for a machine, by the word of all three.
    pub fn rotation(&self, machine: &Machine, to: (&SecretKey, &SecretKey)) -> Prepared<Envelope> {
        let (key, log_key) = to;
        let issued = Issued {
            expires_at: None,
            issued_at: self.hands.clock().now(),
            key_id: self.owner.public().key_id(),
            nonce: fresh_nonce()?,
            subject: KeyRotation {
                account: self.id,
                device: machine.id,
                new_key: key.public(),
                new_log_key: log_key.public(),
                old_key: machine.key.public(),
            },
        };
        let keys = [&*self.owner, &*machine.key, key];
        Envelope::sign_all(&issued, &keys).while_("signing a rotation")
    }

    /// A device as its owner sees it.
    pub async fn device(&self, id: DeviceId) -> Prepared<wire::Device> {
        self.client.device(id).await.while_("looking at a device")
    }

    /// A run as its owner sees it.
    pub async fn run(&self, job: &Job) -> Prepared<wire::Run> {
        self.client.run(job.run).await.while_("looking at a run")
    }

    /// Lets time pass.
    pub fn wait(&self, time: Duration) {
        self.hands.forward(time);
    }
}
