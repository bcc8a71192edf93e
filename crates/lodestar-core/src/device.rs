//! How far a device is trusted: the levels, what moves a device between them, and who may.
//!
//! The table of moves stands here once, as data; whatever it does not have is refused. [`step`] answers
//! what is permitted. [`Standing`] is what a gateway keeps of one device, and says what is due; the limits
//! are in [`health`]. Nothing here has a clock: times are the server's, and come in.

pub mod health;
mod page;
mod standing;
mod table;

#[cfg(test)]
mod tests;

pub use health::{DeviceSettings, HEARTBEAT, ISSUED_AT_WINDOW, SettingsError};
pub use page::reference_page;
pub use standing::{Beat, Cause, Due, Standing, StrikeKind, Strikes};
pub use table::{LevelSpec, Move, is_legal, levels, moves, rows};

use thiserror::Error;

use crate::event::EventType;
use crate::name::words;

words! {
    /// How far a device is trusted.
    #[derive(PartialOrd, Ord)]
    pub enum DeviceLevel: "device level" {
        /// Registered, and nothing more.
        Pending = "pending",
        /// The owner approved it, and it signed the server's challenge with its key.
        Approved = "approved",
        /// It beat without a gap and attested lately.
        Trusted = "trusted",
        /// Nothing was heard of it for long.
        Offline = "offline",
        /// It failed too often, or broke a policy.
        Unhealthy = "unhealthy",
        /// The owner revoked it, for good.
        Revoked = "revoked",
        /// The platform blocked it, for good.
        Blocked = "blocked",
    }
}

impl DeviceLevel {
    /// The level in words.
    pub fn spec(self) -> &'static LevelSpec {
        table::spec(self)
    }

    /// Whether nothing leads out of it.
    pub fn is_permanent(self) -> bool {
        self.spec().permanent
    }

    /// Whether heartbeats are taken from a device on this level.
    pub fn may_heartbeat(self) -> bool {
        self.spec().heartbeats
    }

    /// Whether attestations are taken from a device on this level.
    pub fn may_attest(self) -> bool {
        self.spec().attests
    }

    /// Whether bad signatures, gaps and violations count against a device on this level.
    pub fn gathers_strikes(self) -> bool {
        self.spec().strikes
    }
}

words! {
    /// What happens to a device.
    pub enum DeviceEvent: "device event" {
        /// It is made known.
        Register = "register",
        /// The owner approves it, after it passed its challenge.
        Approve = "approve",
        /// It earned trust.
        Promote = "promote",
        /// What its trust rested on holds no longer.
        Demote = "demote",
        /// It fell silent.
        GoOffline = "go_offline",
        /// A heartbeat came back.
        Return = "return",
        /// A limit was passed.
        GoUnhealthy = "go_unhealthy",
        /// The health check passed after the cooldown.
        Recover = "recover",
        /// Its key is replaced.
        RotateKey = "rotate_key",
        /// The owner gives it up, for good.
        Revoke = "revoke",
        /// The platform shuts it out, for good.
        Block = "block",
    }
}

impl DeviceEvent {
    /// What a gateway's log says when it happened.
    pub const fn event_type(self) -> EventType {
        match self {
            Self::Register => EventType::DEVICE_REGISTERED,
            Self::Approve => EventType::DEVICE_APPROVED,
            Self::Promote => EventType::DEVICE_TRUSTED,
            Self::Demote => EventType::DEVICE_DEMOTED,
            Self::GoOffline => EventType::DEVICE_WENT_OFFLINE,
            Self::Return => EventType::DEVICE_RETURNED,
            Self::GoUnhealthy => EventType::DEVICE_WENT_UNHEALTHY,
            Self::Recover => EventType::DEVICE_RECOVERED,
            Self::RotateKey => EventType::DEVICE_KEY_ROTATED,
            Self::Revoke => EventType::DEVICE_REVOKED,
            Self::Block => EventType::DEVICE_BLOCKED,
        }
    }
}

words! {
    /// In whose name something happens to a device.
    pub enum DeviceActor: "device actor" {
        /// The account that owns it, by a statement its key signed; registering takes its token.
        Owner = "owner",
        /// The device, by its token. It moves nothing.
        Device = "device",
        /// The gateway, out of what it counted itself.
        Server = "server",
        /// Whoever runs the gateway.
        Platform = "platform",
    }
}

words! {
    /// Why something does not happen to a device.
    pub enum RefusalReason: "refusal reason" {
        /// It is for somebody else to do.
        WrongActor = "wrong_actor",
        /// There is no such device.
        NotRegistered = "not_registered",
        /// There is such a device already.
        AlreadyRegistered = "already_registered",
        /// Nothing leads out of its level.
        Permanent = "permanent",
        /// The table has no such move from its level.
        NotFromHere = "not_from_here",
        /// It has yet to sign the server's challenge with the key that it has.
        ChallengeOpen = "challenge_open",
    }
}

impl RefusalReason {
    /// The reason in words.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::WrongActor => "it is for somebody else to do",
            Self::NotRegistered => "there is no such device",
            Self::AlreadyRegistered => "the device is registered already",
            Self::Permanent => "nothing leads out of its level",
            Self::NotFromHere => "its level does not lead there",
            Self::ChallengeOpen => "it has yet to sign the challenge with the key that it has",
        }
    }
}

/// Something does not happen to a device, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("`{event}` by `{actor}` is refused for a device that is {}: {}", at(.level), .reason.phrase())]
pub struct TransitionRefused {
    /// Where the device stands; nowhere, if there is none.
    pub level: Option<DeviceLevel>,
    /// What should have happened.
    pub event: DeviceEvent,
    /// In whose name.
    pub actor: DeviceActor,
    /// Why it does not.
    pub reason: RefusalReason,
}

fn at(level: &Option<DeviceLevel>) -> String {
    level.map_or_else(|| "not registered".to_owned(), |level| format!("`{level}`"))
}

/// Where a device stands after this happened to it, if it may happen.
///
/// Who may is asked first, so that nobody learns of a device by trying what is not theirs to do.
pub fn step(
    level: Option<DeviceLevel>,
    event: DeviceEvent,
    actor: DeviceActor,
) -> Result<DeviceLevel, TransitionRefused> {
    let refused = |reason| TransitionRefused {
        level,
        event,
        actor,
        reason,
    };
    if table::actor(event) != actor {
        return Err(refused(RefusalReason::WrongActor));
    }
    if let Some(row) = rows().find(|row| row.event == event && row.from == level) {
        return Ok(row.to);
    }
    Err(refused(match level {
        None => RefusalReason::NotRegistered,
        Some(_) if event == DeviceEvent::Register => RefusalReason::AlreadyRegistered,
        Some(level) if level.is_permanent() => RefusalReason::Permanent,
        Some(_) => RefusalReason::NotFromHere,
    }))
}
