//! How a device moves on its ladder: what is due, who moved it and why, and what counts against it.

use lodestar_core::defence::Defence;
use lodestar_core::device::{
    DeviceActor, DeviceEvent, DeviceLevel, RefusalReason, Standing, StrikeKind, Strikes,
    TransitionRefused, rows,
};
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::id::DeviceId;
use lodestar_core::time::Timestamp;
use serde_json::{Value, json};

use super::desk::{Desk, Stop};
use crate::code::{Code, Refusal};
use crate::store::StoreError;
use crate::store::devices::{self, Device};
use crate::store::levels::{self, Transition};
use crate::store::strikes::{self, Strike};

fn struck(desk: &mut Desk<'_>, device: &Device) -> Result<Strikes, StoreError> {
    let since = desk.ago(desk.settings.strikes_kept());
    let found = strikes::since(desk.sql, device.id, since)?;
    let found = found.into_iter().map(|strike| (strike.kind, strike.at));
    Ok(Strikes::count(found, desk.settings, desk.now))
}

/// Whether something is due for a device.
pub(super) fn is_due(desk: &mut Desk<'_>, device: &Device) -> Result<bool, StoreError> {
    let strikes = struck(desk, device)?;
    let due = device.standing().due(&strikes, desk.settings, desk.now);
    Ok(due.is_some())
}

/// Does what is due for a device, until nothing is.
pub(super) fn settle(desk: &mut Desk<'_>, device: &mut Device) -> Result<(), Stop> {
    // From silence to a return and on to health there are fewer steps than levels.
    for _ in DeviceLevel::ALL {
        let strikes = struck(desk, device)?;
        let due = device.standing().due(&strikes, desk.settings, desk.now);
        let Some(due) = due else {
            return Ok(());
        };
        let mut facts = serde_json::to_value(due.cause).unwrap_or_default();
        if due.event == DeviceEvent::GoUnhealthy {
            facts["strikes"] = serde_json::to_value(strikes).unwrap_or_default();
        }
        let because = Because {
            actor: DeviceActor::Server,
            cause: &due.cause.to_string(),
            order: None,
            facts,
        };
        step(desk, device, due.event, because)?;
    }
    Ok(())
}

/// What is behind a move.
#[derive(Debug)]
pub(super) struct Because<'a> {
    pub(super) actor: DeviceActor,
    /// In words.
    pub(super) cause: &'a str,
    /// The owner's word, where the owner acts.
    pub(super) order: Option<Digest>,
    /// What is recorded beside the move.
    pub(super) facts: Value,
}

/// Moves a device, if it may be moved, and records it.
pub(super) fn step(
    desk: &mut Desk<'_>,
    device: &mut Device,
    event: DeviceEvent,
    because: Because<'_>,
) -> Result<(), Stop> {
    let actor = because.actor;
    let before = device.standing();
    let after = match before.apply(event, actor, desk.now) {
        Err(_) if desk.lacks(Defence::DeviceMoves) => anyhow(before, event, desk.now),
        after => after.map_err(not_moved)?,
    };
    levels::set_level(
        desk.sql,
        &Transition {
            device: device.id,
            from: Some(before.level),
            to: after.level,
            event,
            actor,
            at: desk.now,
            cause: because.cause.to_owned(),
            order: because.order,
        },
    )?;
    moved(desk, device, event, after, because)
}

/// For a harness that takes [`Defence::DeviceMoves`] out: what is asked happens, from wherever it is asked.
fn anyhow(before: Standing, event: DeviceEvent, now: Timestamp) -> Standing {
    let to = rows().find(|row| row.event == event).map(|row| row.to);
    Standing {
        level: to.unwrap_or(before.level),
        level_since: now,
        ..before
    }
}

/// Keeps what a move, which the store has, means for the rest of a device, and records it.
pub(super) fn moved(
    desk: &mut Desk<'_>,
    device: &mut Device,
    event: DeviceEvent,
    after: Standing,
    because: Because<'_>,
) -> Result<(), Stop> {
    let before = device.standing();
    if after.continuous_since != before.continuous_since {
        devices::note_standing(desk.sql, device.id, &after)?;
    }
    device.level = after.level;
    device.level_since = after.level_since;
    device.continuous_since = after.continuous_since;
    if !after.challenge_passed {
        device.challenge_passed_at = None;
    }
    let mut payload = json!({
        "account": device.account,
        "device": device.id,
        "from": before.level,
        "to": after.level,
        "actor": because.actor,
    });
    if let (Some(payload), Some(facts)) = (payload.as_object_mut(), because.facts.as_object()) {
        payload.extend(facts.clone());
    }
    desk.record(event_type(event), &payload)?;
    Ok(())
}

/// What a move is recorded as.
fn event_type(event: DeviceEvent) -> EventType {
    match event {
        DeviceEvent::Register => EventType::DEVICE_REGISTERED,
        DeviceEvent::Approve => EventType::DEVICE_APPROVED,
        DeviceEvent::Promote => EventType::DEVICE_TRUSTED,
        DeviceEvent::Demote => EventType::DEVICE_DEMOTED,
        DeviceEvent::GoOffline => EventType::DEVICE_WENT_OFFLINE,
        DeviceEvent::Return => EventType::DEVICE_RETURNED,
        DeviceEvent::GoUnhealthy => EventType::DEVICE_WENT_UNHEALTHY,
        DeviceEvent::Recover => EventType::DEVICE_RECOVERED,
        DeviceEvent::RotateKey => EventType::DEVICE_KEY_ROTATED,
        DeviceEvent::Revoke => EventType::DEVICE_REVOKED,
        DeviceEvent::Block => EventType::DEVICE_BLOCKED,
    }
}

/// Why a device is not moved, as a code.
pub(super) fn not_moved(refused: TransitionRefused) -> Refusal {
    let code = match (refused.reason, refused.level) {
        (RefusalReason::NotRegistered, _) => Code::DeviceUnknown,
        (RefusalReason::Permanent, Some(DeviceLevel::Revoked)) => Code::DeviceRevoked,
        (RefusalReason::Permanent, _) => Code::DeviceBlocked,
        (RefusalReason::ChallengeOpen, _) => Code::ChallengeNotPassed,
        (RefusalReason::NotFromHere, _) if refused.event == DeviceEvent::Approve => {
            Code::DeviceNotPending
        }
        _ => Code::NotAllowedNow,
    };
    Refusal::saying(code, refused.to_string())
}

/// Counts a bad signature against a device, and does what follows.
pub(super) fn strike(desk: &mut Desk<'_>, id: DeviceId) -> Result<(), Stop> {
    let Some(mut device) = devices::get(desk.sql, id)? else {
        return Ok(());
    };
    if !device.level.gathers_strikes() {
        return Ok(());
    }
    let strike = Strike {
        device: id,
        kind: StrikeKind::BadSignature,
        at: desk.now,
    };
    strikes::add(desk.sql, strike)?;
    settle(desk, &mut device)
}
