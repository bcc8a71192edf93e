//! What a gateway keeps of one device, and what is due for it.
//!
//! A standing changes by what happens ([`Standing::apply`]), by heartbeats and by attestations; what the
//! server has to do next follows from it, the strikes and the time ([`Standing::due`]). All of it is a pure
//! function, so that it can be asked of every device after each request and in every sweep alike.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::health::{DeviceSettings, elapsed};
use super::{DeviceActor, DeviceEvent, DeviceLevel, RefusalReason, TransitionRefused, step};
use crate::name::words;
use crate::time::Timestamp;

words! {
    /// What counts against a device.
    #[derive(PartialOrd, Ord)]
    pub enum StrikeKind: "strike" {
        /// A signature that did not verify, in a request that authenticated to the device's account.
        BadSignature = "bad_signature",
        /// A silence beyond the longest that is allowed; it counts when a heartbeat ends it.
        Gap = "gap",
        /// A run of the device's that did not keep to its policy.
        Violation = "violation",
    }
}

/// What counts against a device now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strikes {
    /// Bad signatures within their time.
    pub bad_signatures: u32,
    /// Gaps within their time.
    pub gaps: u32,
    /// Policy violations within the cooldown.
    pub violations: u32,
}

impl Strikes {
    /// Counts those that are not too old. One that is as old as its time allows no longer counts.
    pub fn count(
        strikes: impl IntoIterator<Item = (StrikeKind, Timestamp)>,
        settings: &DeviceSettings,
        now: Timestamp,
    ) -> Self {
        let mut counted = Self::default();
        for (kind, at) in strikes {
            let (count, within) = match kind {
                StrikeKind::BadSignature => {
                    (&mut counted.bad_signatures, settings.bad_signatures_within)
                }
                StrikeKind::Gap => (&mut counted.gaps, settings.gaps_within),
                StrikeKind::Violation => (&mut counted.violations, settings.cooldown),
            };
            if elapsed(at, now) < within {
                *count = count.saturating_add(1);
            }
        }
        counted
    }

    /// The limit that they reach, the gravest first.
    pub fn limit(&self, settings: &DeviceSettings) -> Option<Cause> {
        if self.violations > 0 {
            return Some(Cause::Violation);
        }
        if self.bad_signatures >= settings.bad_signatures {
            return Some(Cause::BadSignatures {
                count: self.bad_signatures,
            });
        }
        (self.gaps >= settings.gaps).then_some(Cause::Gaps { count: self.gaps })
    }
}

/// What a gateway keeps of one device. Times are the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Whether it signed the server's challenge with the key it has.
    pub challenge_passed: bool,
    /// Since when heartbeats came without a gap, under this key and in good standing.
    pub continuous_since: Option<Timestamp>,
    /// When the last attestation that counted came.
    pub last_attested: Option<Timestamp>,
    /// When the last heartbeat came.
    pub last_heartbeat: Option<Timestamp>,
    /// How far it is trusted.
    pub level: DeviceLevel,
    /// Since when it stands there.
    pub level_since: Timestamp,
}

/// What a heartbeat made of a standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// The standing after it.
    pub standing: Standing,
    /// The gap that it ended, if it counts against the device.
    pub gap: Option<Duration>,
}

impl Standing {
    /// A device that is registered now.
    pub fn registered(actor: DeviceActor, now: Timestamp) -> Result<Self, TransitionRefused> {
        let level = step(None, DeviceEvent::Register, actor)?;
        Ok(Self {
            challenge_passed: false,
            continuous_since: None,
            last_attested: None,
            last_heartbeat: None,
            level,
            level_since: now,
        })
    }

    /// The standing after something happened, if it may.
    ///
    /// Beyond [`step`]: nothing leads to `approved` before the challenge was passed with the key that the
    /// device has. Approval, silence, recovery and a new key start continuity anew: trust is earned in the
    /// standing that it is given for.
    pub fn apply(
        &self,
        event: DeviceEvent,
        actor: DeviceActor,
        now: Timestamp,
    ) -> Result<Self, TransitionRefused> {
        let level = step(Some(self.level), event, actor)?;
        let needs_challenge = matches!(
            event,
            DeviceEvent::Approve | DeviceEvent::Return | DeviceEvent::Recover
        );
        if needs_challenge && !self.challenge_passed {
            return Err(TransitionRefused {
                level: Some(self.level),
                event,
                actor,
                reason: RefusalReason::ChallengeOpen,
            });
        }
        let mut after = *self;
        if level != self.level {
            after.level = level;
            after.level_since = now;
        }
        match event {
            DeviceEvent::Approve | DeviceEvent::GoOffline | DeviceEvent::Recover => {
                after.continuous_since = None;
            }
            DeviceEvent::RotateKey => {
                after.continuous_since = None;
                // INVARIANT: whoever is approved passed a challenge. With the old key that was, but the new
                // one signed the rotation; a device that was not in good standing has to answer anew.
                after.challenge_passed = level == DeviceLevel::Approved;
            }
            _ => {}
        }
        Ok(after)
    }

    /// The standing after the challenge was passed.
    #[must_use]
    pub fn passed(&self) -> Self {
        Self {
            challenge_passed: true,
            ..*self
        }
    }

    /// The standing after an attestation that counted.
    #[must_use]
    pub fn attested(&self, now: Timestamp) -> Self {
        Self {
            last_attested: self.last_attested.max(Some(now)),
            ..*self
        }
    }

    /// The standing after a heartbeat.
    pub fn beat(&self, settings: &DeviceSettings, now: Timestamp) -> Beat {
        let silence = self.last_heartbeat.map(|last| elapsed(last, now));
        let gap = silence.filter(|&silence| silence > settings.max_gap);
        let continuous_since = match gap {
            Some(_) => Some(now),
            None => self.continuous_since.or(Some(now)),
        };
        Beat {
            standing: Self {
                continuous_since,
                last_heartbeat: self.last_heartbeat.max(Some(now)),
                ..*self
            },
            gap: gap.filter(|_| self.level.gathers_strikes()),
        }
    }

    /// What the server has to do now, if anything, and why. After it is applied, there may be more.
    pub fn due(&self, strikes: &Strikes, settings: &DeviceSettings, now: Timestamp) -> Option<Due> {
        let due = |event, cause| Some(Due { event, cause });
        let limit = strikes.limit(settings);
        match self.level {
            DeviceLevel::Pending | DeviceLevel::Revoked | DeviceLevel::Blocked => None,
            DeviceLevel::Unhealthy => match (limit, self.may_recover(settings, now)) {
                (None, true) => due(DeviceEvent::Recover, Cause::Healthy),
                _ => None,
            },
            _ if limit.is_some() => due(DeviceEvent::GoUnhealthy, limit?),
            DeviceLevel::Offline => match self.last_heartbeat {
                Some(last) if self.challenge_passed && !self.is_silent(settings, now) => {
                    due(DeviceEvent::Return, Cause::Heard { at: last })
                }
                _ => None,
            },
            DeviceLevel::Approved | DeviceLevel::Trusted if self.is_silent(settings, now) => {
                let last = self.last_heartbeat;
                due(DeviceEvent::GoOffline, Cause::Silent { last })
            }
            DeviceLevel::Approved => match self.doubt(settings, now) {
                None => due(DeviceEvent::Promote, Cause::Earned),
                Some(_) => None,
            },
            DeviceLevel::Trusted => due(DeviceEvent::Demote, self.doubt(settings, now)?),
        }
    }

    /// Whether nothing was heard of it for so long that it counts as offline. One that never beat is silent
    /// since it stands where it stands.
    fn is_silent(&self, settings: &DeviceSettings, now: Timestamp) -> bool {
        let last = self.last_heartbeat.unwrap_or(self.level_since);
        elapsed(last, now) >= settings.offline_after
    }

    /// What speaks against trusting it, the first of it.
    pub fn doubt(&self, settings: &DeviceSettings, now: Timestamp) -> Option<Cause> {
        let beats = self
            .last_heartbeat
            .is_some_and(|last| elapsed(last, now) <= settings.max_gap);
        let continuous = self
            .continuous_since
            .is_some_and(|since| elapsed(since, now) >= settings.continuity);
        if !beats || !continuous {
            return Some(Cause::NotContinuous {
                since: self.continuous_since.filter(|_| beats),
            });
        }
        let attested = self
            .last_attested
            .is_some_and(|last| elapsed(last, now) <= settings.attested_within);
        (!attested).then_some(Cause::NotAttested {
            last: self.last_attested,
        })
    }

    fn may_recover(&self, settings: &DeviceSettings, now: Timestamp) -> bool {
        let cooled = elapsed(self.level_since, now) >= settings.cooldown;
        let beats = self
            .last_heartbeat
            .is_some_and(|last| elapsed(last, now) <= settings.max_gap);
        cooled && beats && self.challenge_passed
    }
}

/// What the server has to do with a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// What happens.
    pub event: DeviceEvent,
    /// Why.
    pub cause: Cause,
}

/// Why the server moves a device, or does not trust it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case", deny_unknown_fields)]
pub enum Cause {
    /// A run did not keep to its policy.
    Violation,
    /// Too many signatures did not verify.
    BadSignatures {
        /// How many, within their time.
        count: u32,
    },
    /// Too many gaps.
    Gaps {
        /// How many, within their time.
        count: u32,
    },
    /// Nothing was heard for too long.
    Silent {
        /// The last that was, if anything ever was.
        last: Option<Timestamp>,
    },
    /// It was heard again.
    Heard {
        /// When.
        at: Timestamp,
    },
    /// The cooldown is over, no limit is exceeded, and it beats.
    Healthy,
    /// Continuity holds, and so does an attestation.
    Earned,
    /// Heartbeats did not come without a gap for long enough.
    NotContinuous {
        /// Since when they have; never, if they do not come now.
        since: Option<Timestamp>,
    },
    /// No attestation that counted is young enough.
    NotAttested {
        /// The last, if there ever was one.
        last: Option<Timestamp>,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation => f.write_str("a run did not keep to its policy"),
            Self::BadSignatures { count } => write!(f, "{count} signatures did not verify"),
            Self::Gaps { count } => write!(f, "heartbeats stopped {count} times"),
            Self::Silent { last: Some(last) } => write!(f, "nothing was heard since {last}"),
            Self::Silent { last: None } => f.write_str("nothing was ever heard"),
            Self::Heard { at } => write!(f, "a heartbeat came at {at}"),
            Self::Healthy => f.write_str("the cooldown is over and the health check passed"),
            Self::Earned => f.write_str("heartbeats are continuous and an attestation counted"),
            Self::NotContinuous { since: Some(since) } => {
                write!(f, "heartbeats are continuous only since {since}")
            }
            Self::NotContinuous { since: None } => f.write_str("heartbeats do not come"),
            Self::NotAttested { last: Some(last) } => {
                write!(f, "the last attestation that counted came at {last}")
            }
            Self::NotAttested { last: None } => f.write_str("no attestation ever counted"),
        }
    }
}
