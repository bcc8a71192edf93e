//! That a device moves as the table says, whoever asks.

use std::time::Duration;

use lodestar_core::device::{DeviceActor, DeviceEvent, DeviceLevel, step};
use lodestar_core::name::ActorId;
use lodestar_core::statement::Order;
use lodestar_gateway::client::GatewayError;
use lodestar_gateway::wire;

use super::play;
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::fleet::{Account, Fleet, Machine, fresh_key, fresh_nonce, signed};

pub(super) fn probes() -> Vec<Probe> {
    vec![probe! {
        name: "every-illegal-device-transition-refused",
        pack: CORE,
        section: Devices,
        scenario: "Seven machines stand on the seven levels. For each, everybody asks by every route there is for every \
                   move that the table does not have from there: the owner by signed orders, the machine by its token \
                   and its key, whoever runs the gateway by its socket.",
        asserts: "Every one is refused by its code, and no machine moves.",
        does_not_claim: "That moves which the table has are wise: an owner may approve a machine that is not theirs.",
        class: "ASI03 AML.T0012",
        defence: DeviceMoves,
        deadline_s: 120,
        run: illegal_moves,
    }]
}

/// One machine on each level.
async fn seven(fleet: &Fleet, account: &Account) -> Outcome<Vec<(DeviceLevel, Machine)>> {
    let made = account.made().await?;
    let offline = account.approved("offline").await?;
    offline.beat(&[]).await?;
    account.wait(Duration::from_secs(25 * 3600));
    let trusted = account.trusted("trusted", made).await?;
    let pending = account.enrolled("pending").await?;
    let approved = account.approved("approved").await?;
    let unhealthy = account.approved("unhealthy").await?;
    let stranger = fresh_key()?;
    for _ in 0..3 {
        let beat = unhealthy.heartbeat(&[])?;
        let bad = signed(beat, &stranger, unhealthy.now(), fresh_nonce()?)?;
        let answer = unhealthy.client.heartbeat(unhealthy.id, &bad).await;
        settle(answer.is_err(), || "a heartbeat by another key is taken")?;
    }
    let revoked = account.approved("revoked").await?;
    let order = Order::Revoke {
        compromised_since: None,
        device: revoked.id,
        reason: "lost".to_owned(),
    };
    account.order(order).await?;
    let blocked = account.approved("blocked").await?;
    fleet.platform().block(blocked.id, "abuse").await?;
    let mut fleet = Vec::new();
    for (level, machine) in [
        (DeviceLevel::Pending, pending),
        (DeviceLevel::Approved, approved),
        (DeviceLevel::Trusted, trusted),
        (DeviceLevel::Offline, offline),
        (DeviceLevel::Unhealthy, unhealthy),
        (DeviceLevel::Revoked, revoked),
        (DeviceLevel::Blocked, blocked),
    ] {
        let found = account.device(machine.id).await?.level;
        settle(found == level, || {
            format!("the one that should be {level} is {found}")
        })?;
        fleet.push((level, machine));
    }
    Ok(fleet)
}

/// A request, what it would do, and in whose name; nothing, where no move is its own name for it.
type Asked = (
    &'static str,
    DeviceEvent,
    DeviceActor,
    Result<(), GatewayError>,
);

fn illegal_moves(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let account = fleet.account("owner").await?;
        let mut asked = 0;
        for (level, machine) in &seven(&fleet, &account).await? {
            for (what, event, actor, answer) in ask_all(&fleet, &account, *level, machine).await? {
                asked += 1;
                let found = account.device(machine.id).await?.level;
                hold(answer.is_err() && found == *level, || {
                    format!("{what} ({event} by {actor}) moves a device from {level} to {found}")
                })?;
                if let Err(problem) = answer
                    && problem.code().is_none()
                {
                    return Err(Broken::Failed(format!("{what}: {problem}")));
                }
            }
        }
        settle(asked >= 60, || format!("only {asked} moves were asked for"))
    })
}

/// Asks for everything that the table does not have from this level.
async fn ask_all(
    fleet: &Fleet,
    account: &Account,
    level: DeviceLevel,
    machine: &Machine,
) -> Outcome<Vec<Asked>> {
    use DeviceActor::{Device, Owner, Platform};
    use DeviceEvent::{Approve, Block, Register, Return, Revoke, RotateKey};
    let is_legal = |event, actor| {
        let open = event == Approve && level == DeviceLevel::Pending;
        step(Some(level), event, actor).is_ok() && !open
    };
    let mut done: Vec<Asked> = Vec::new();
    let revoke = || Order::Revoke {
        compromised_since: None,
        device: machine.id,
        reason: "asked".to_owned(),
    };
    let by_device = |order| wire_order(account.signed(order, &machine.key, machine.now()));
    let by_token = |order| wire_order(account.ordered(order));
    if !is_legal(Approve, Owner) {
        let answer = account.order(Account::approval(machine)).await.map(drop);
        done.push(("the owner's approval", Approve, Owner, answer));
    }
    if !is_legal(Revoke, Owner) {
        let answer = account.order(revoke()).await.map(drop);
        done.push(("the owner's revocation", Revoke, Owner, answer));
    }
    let new = (fresh_key()?, fresh_key()?);
    let rotation = account.rotation(machine, (&new.0, &new.1))?;
    if !is_legal(RotateKey, Owner) {
        let answer = account.client.rotate(machine.id, &rotation).await.map(drop);
        done.push(("the owner's rotation", RotateKey, Owner, answer));
    }
    if !is_legal(Block, Platform) {
        let answer = fleet.platform().block(machine.id, "asked").await.map(drop);
        done.push(("the platform's block", Block, Platform, answer));
    }
    // By a machine's token, by its key, and by both.
    for (event, order) in [(Approve, Account::approval(machine)), (Revoke, revoke())] {
        let answer = machine
            .client
            .order(&by_token(order.clone())?)
            .await
            .map(drop);
        done.push((
            "the owner's order under a machine's token",
            event,
            Device,
            answer,
        ));
        let answer = machine
            .client
            .order(&by_device(order.clone())?)
            .await
            .map(drop);
        done.push(("an order by a machine", event, Device, answer));
        let answer = account.client.order(&by_device(order)?).await.map(drop);
        done.push(("an order that a machine signed", event, Device, answer));
    }
    let answer = machine.client.rotate(machine.id, &rotation).await.map(drop);
    done.push((
        "a rotation under a machine's token",
        RotateKey,
        Device,
        answer,
    ));
    let again = wire::RegisterDevice {
        name: ActorId::new(&*level.to_string())?,
        key: Some(machine.key.public()),
        log_key: Some(machine.log_key.public()),
    };
    let answer = account.client.register_device(&again).await.map(drop);
    done.push(("a second registration", Register, Owner, answer));
    let answer = machine.client.register_device(&again).await.map(drop);
    done.push(("a registration by a machine", Register, Device, answer));
    if level.is_permanent() {
        let answer = machine.beat(&[]).await.map(drop);
        done.push(("a heartbeat", Return, Device, answer));
        let answer = machine.answer().await.map(drop);
        done.push(("an answer to its challenge", Approve, Device, answer));
        let answer = account.client.challenge(machine.id).await.map(drop);
        done.push(("a new challenge", Approve, Owner, answer));
    }
    Ok(done)
}

fn wire_order(
    envelope: crate::world::fleet::Prepared<lodestar_core::statement::Envelope>,
) -> Outcome<wire::HandInOrder> {
    Ok(wire::HandInOrder {
        envelope: envelope?,
        terms: None,
    })
}
