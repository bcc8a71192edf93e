//! The limits a device is held to. Each default stands here with its reason; all can be set.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::time::Timestamp;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How often a device says that it is there: thirty of them fit into the longest gap, so that a restart or
/// a bad line costs nothing.
pub const HEARTBEAT: Duration = Duration::from_secs(30);
/// The longest silence that is not a gap: a reboot or an update takes less.
pub const MAX_GAP: Duration = Duration::from_secs(15 * MINUTE);
/// How long heartbeats have to come without a gap before they are continuous: a whole day, with whatever
/// happens on that machine every day.
pub const CONTINUITY: Duration = Duration::from_secs(DAY);
/// How many bad signatures make a device unhealthy: one is an accident, three are a wrong key or an attempt.
pub const BAD_SIGNATURES: u32 = 3;
/// The time within which bad signatures are counted together.
pub const BAD_SIGNATURES_WITHIN: Duration = Duration::from_secs(HOUR);
/// How many gaps make a device unhealthy: who is away more often cannot be said to be there.
pub const GAPS: u32 = 5;
/// The time within which gaps are counted together.
pub const GAPS_WITHIN: Duration = Duration::from_secs(DAY);
/// How long a device stays unhealthy at least, and for how long a policy violation counts.
pub const COOLDOWN: Duration = Duration::from_secs(HOUR);
/// How long a challenge can be answered: an owner who enrols a machine in the evening approves it the next day.
pub const CHALLENGE: Duration = Duration::from_secs(DAY);
/// How far a device's clock may be from the server's, either way: machines without a time service drift by minutes.
pub const ISSUED_AT_WINDOW: Duration = Duration::from_secs(300);
/// How long nonces are remembered: a statement can be taken for twice the window, once from the earliest
/// moment to the latest.
pub const NONCES_KEPT: Duration = Duration::from_secs(600);
/// The silence after which a device is offline.
pub const OFFLINE_AFTER: Duration = Duration::from_secs(DAY);
/// How old the last attestation that counted may be for trust to rest on it.
pub const ATTESTED_WITHIN: Duration = Duration::from_secs(30 * DAY);
/// How old a runner's last heartbeat may be for the runner to be there.
pub const RUNNER_FRESH: Duration = Duration::from_secs(5 * MINUTE);

/// The longest time that can be set: whatever is longer is a slip of the hand, and sums stay in range.
pub const LONGEST: Duration = Duration::from_secs(10 * 366 * DAY);

/// Writes the settings down once, for whoever uses them and whoever reads them: what is read becomes
/// settings only if it is valid.
macro_rules! settings {
    (
        times { $($time:ident as $seconds:literal = $time_default:ident;)+ }
        counts { $($count:ident = $count_default:ident;)+ }
    ) => {
        /// The limits in force at one gateway. Times are written in whole seconds.
        ///
        /// What is read is checked: see [`DeviceSettings::validate`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "Written")]
        pub struct DeviceSettings {
            $(
                #[doc = concat!("See [`", stringify!($time_default), "`].")]
                #[serde(rename = $seconds, serialize_with = "write_seconds")]
                pub $time: Duration,
            )+
            $(
                #[doc = concat!("See [`", stringify!($count_default), "`].")]
                pub $count: u32,
            )+
        }

        impl Default for DeviceSettings {
            fn default() -> Self {
                Self {
                    $($time: $time_default,)+
                    $($count: $count_default,)+
                }
            }
        }

        impl DeviceSettings {
            /// Every time, with the name it is set by.
            pub fn times(&self) -> impl Iterator<Item = (&'static str, Duration)> {
                [$(($seconds, self.$time)),+].into_iter()
            }

            /// Every count, with the name it is set by.
            pub fn counts(&self) -> impl Iterator<Item = (&'static str, u32)> {
                [$((stringify!($count), self.$count)),+].into_iter()
            }
        }

        /// The settings as they are written, with defaults for what is left out.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct Written {
            $(
                #[serde(rename = $seconds, deserialize_with = "read_seconds")]
                $time: Duration,
            )+
            $($count: u32,)+
        }

        impl Default for Written {
            fn default() -> Self {
                let DeviceSettings { $($time,)+ $($count,)+ } = DeviceSettings::default();
                Self { $($time,)+ $($count,)+ }
            }
        }

        impl TryFrom<Written> for DeviceSettings {
            type Error = SettingsError;

            fn try_from(written: Written) -> Result<Self, SettingsError> {
                let Written { $($time,)+ $($count,)+ } = written;
                let settings = Self { $($time,)+ $($count,)+ };
                settings.validate()?;
                Ok(settings)
            }
        }
    };
}

settings! {
    times {
        attested_within as "attested_within_seconds" = ATTESTED_WITHIN;
        bad_signatures_within as "bad_signatures_within_seconds" = BAD_SIGNATURES_WITHIN;
        challenge as "challenge_seconds" = CHALLENGE;
        continuity as "continuity_seconds" = CONTINUITY;
        cooldown as "cooldown_seconds" = COOLDOWN;
        gaps_within as "gaps_within_seconds" = GAPS_WITHIN;
        heartbeat as "heartbeat_seconds" = HEARTBEAT;
        issued_at_window as "issued_at_window_seconds" = ISSUED_AT_WINDOW;
        max_gap as "max_gap_seconds" = MAX_GAP;
        nonces_kept as "nonces_kept_seconds" = NONCES_KEPT;
        offline_after as "offline_after_seconds" = OFFLINE_AFTER;
        runner_fresh as "runner_fresh_seconds" = RUNNER_FRESH;
    }
    counts {
        bad_signatures = BAD_SIGNATURES;
        gaps = GAPS;
    }
}

fn write_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs())
}

fn read_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_secs)
}

/// Why settings are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A limit of nothing.
    #[error("`{0}` is 0; it has to be at least 1")]
    Zero(&'static str),
    /// A time beyond [`LONGEST`], or with a fraction of a second.
    #[error("`{0}` is not a whole number of seconds up to {max}", max = LONGEST.as_secs())]
    OutOfRange(&'static str),
    /// Two times in the wrong order.
    #[error("`{shorter}` is longer than `{longer}`")]
    Order {
        /// What has to be the shorter, or as long.
        shorter: &'static str,
        /// What has to be the longer.
        longer: &'static str,
    },
    /// A statement could be taken twice.
    #[error(
        "`nonces_kept_seconds` is less than twice `issued_at_window_seconds`: a statement could be taken twice"
    )]
    NoncesForgotten,
}

impl DeviceSettings {
    /// Whether the limits fit together: none is nothing, and none makes another impossible to keep.
    pub fn validate(&self) -> Result<(), SettingsError> {
        for (name, count) in self.counts() {
            if count == 0 {
                return Err(SettingsError::Zero(name));
            }
        }
        for (name, time) in self.times() {
            if time.is_zero() {
                return Err(SettingsError::Zero(name));
            }
            if time > LONGEST || time.subsec_nanos() != 0 {
                return Err(SettingsError::OutOfRange(name));
            }
        }
        let orders = [
            (
                "heartbeat_seconds",
                self.heartbeat,
                "max_gap_seconds",
                self.max_gap,
            ),
            (
                "heartbeat_seconds",
                self.heartbeat,
                "runner_fresh_seconds",
                self.runner_fresh,
            ),
            (
                "max_gap_seconds",
                self.max_gap,
                "continuity_seconds",
                self.continuity,
            ),
            (
                "max_gap_seconds",
                self.max_gap,
                "offline_after_seconds",
                self.offline_after,
            ),
        ];
        for (shorter, short, longer, long) in orders {
            if short > long {
                return Err(SettingsError::Order { shorter, longer });
            }
        }
        if self.nonces_kept < 2 * self.issued_at_window {
            return Err(SettingsError::NoncesForgotten);
        }
        Ok(())
    }

    /// Whether a runner that was last heard of then is there now.
    pub fn is_runner_fresh(&self, last_heartbeat: Option<Timestamp>, now: Timestamp) -> bool {
        last_heartbeat.is_some_and(|last| elapsed(last, now) <= self.runner_fresh)
    }

    /// Whether a nonce that was seen then may be forgotten: no statement that bears it can be taken any more.
    pub fn may_forget_nonce(&self, seen: Timestamp, now: Timestamp) -> bool {
        elapsed(seen, now) > self.nonces_kept
    }

    /// Until when a challenge that is issued now can be answered; at that moment it no longer can.
    pub fn challenge_expires(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.challenge).unwrap_or(Timestamp::MAX)
    }

    /// The longest time for which any strike is counted: older ones can be forgotten.
    pub fn strikes_kept(&self) -> Duration {
        self.bad_signatures_within
            .max(self.gaps_within)
            .max(self.cooldown)
    }
}

/// How long ago `then` is; nothing, if a clock was set back.
pub(super) fn elapsed(then: Timestamp, now: Timestamp) -> Duration {
    now.since(then).unwrap_or_default()
}
