//! What runs on a device: says that it is there, and obeys.
//!
//! It asks for directives more often than it beats, so that the kill switch and a pause stop its signing within
//! [`OBEYS_WITHIN`]; whoever else signs with the device's key asks [`Leave`] first. A service that is away is waited
//! for; one that says that the device is gone for good ends the daemon.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lodestar_core::device::DeviceLevel;
use lodestar_core::id::{AccountId, DeviceId, RunnerId};
use lodestar_core::key::SecretKey;
use lodestar_core::statement::{
    DaemonVersion, Envelope, GatewayStatus, Heartbeat, Issued, Nonce, StatementError,
};
use lodestar_core::time::Timestamp;
use lodestar_log::Clock;
use serde::Serialize;
use thiserror::Error;

use crate::client::{GatewayClient, GatewayError};
use crate::code::Code;
use crate::wire::{Beaten, Directives};

/// Within what time a directive is obeyed.
pub const OBEYS_WITHIN: Duration = Duration::from_secs(10);

/// How often directives are asked for: twice within that time, and once more.
pub const ASKS_EVERY: Duration = Duration::from_secs(3);

/// How long one question may take; a slow one leaves time for another.
const QUESTION: Duration = Duration::from_secs(3);

/// The longest that is waited between attempts while the service is away.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a daemon is made of.
pub struct Daemon {
    /// The service, under the device's token.
    pub client: GatewayClient,
    /// The account.
    pub account: AccountId,
    /// The device.
    pub device: DeviceId,
    /// The key that signs for it.
    pub key: SecretKey,
    /// How often it beats.
    pub every: Duration,
    /// Which runners are alive, asked before each beat.
    pub runners: Box<dyn Fn() -> BTreeSet<RunnerId> + Send + Sync>,
    /// The time that statements are dated by.
    pub clock: Clock,
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Why a daemon ends by itself.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The device is gone for good, or its token is.
    #[error("the gateway does not take this device any more: {message} ({code})")]
    Gone {
        /// Why.
        code: Code,
        /// Why, in the service's words.
        message: String,
    },
    /// There is no randomness to be had.
    #[error("the operating system gives no random bytes: {0}")]
    Random(String),
    /// A statement cannot be signed.
    #[error("a heartbeat cannot be signed: {0}")]
    Statement(#[from] StatementError),
}

/// How a daemon stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// When this was so, by the daemon's clock.
    pub at: Timestamp,
    /// What the service last said of the device.
    pub level: Option<DeviceLevel>,
    /// What it has to obey; none while that is not known.
    pub directives: Option<Directives>,
    /// When the service last took a heartbeat.
    pub last_heartbeat: Option<Timestamp>,
    /// The code that it was last refused with, if it was since.
    pub refused: Option<Code>,
    /// Why the service was last not reached, if it was not since.
    pub unreached: Option<String>,
}

/// Whether the device's key may sign now. It may while the service has lately said nothing against it.
#[derive(Debug, Clone, Default)]
pub struct Leave(Arc<Mutex<Option<(Instant, bool)>>>);

impl Leave {
    /// Whether it may. What nobody confirmed within [`OBEYS_WITHIN`] is not known, and then it may not.
    pub fn may_sign(&self) -> bool {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_some_and(|(at, may)| may && at.elapsed() < OBEYS_WITHIN)
    }

    fn set(&self, may: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), may));
    }
}

/// What the daemon knows between its questions.
struct State {
    status: Status,
    leave: Leave,
    /// How often in a row the service was away.
    away: u32,
}

impl Daemon {
    /// Runs until told to end, or until the service says that the device is gone. Whoever wants to know how it
    /// stands is told after every question.
    pub async fn run(
        self,
        leave: Leave,
        tell: impl Fn(&Status),
        until: impl Future<Output = ()>,
    ) -> Result<(), DaemonError> {
        let mut state = State {
            status: Status {
                at: self.clock.now(),
                level: None,
                directives: None,
                last_heartbeat: None,
                refused: None,
                unreached: None,
            },
            leave,
            away: 0,
        };
        let mut beat_at = Instant::now();
        tokio::pin!(until);
        loop {
            // What is to be obeyed is known before anything is signed.
            let asked = self.client.directives(self.device);
            let asked = tokio::time::timeout(QUESTION, asked).await;
            let directives = asked.unwrap_or_else(|_| Err(too_slow()));
            self.obey(&mut state, directives)?;
            if Instant::now() >= beat_at && state.leave.may_sign() {
                let beaten = self.beat(&state.status).await?;
                let taken = self.heard(&mut state, beaten)?;
                // A beat that came to nothing is tried again with the next question.
                if taken {
                    beat_at = Instant::now() + self.every;
                }
            }
            state.status.at = self.clock.now();
            tell(&state.status);
            let pause = pause(state.away);
            tokio::select! {
                () = &mut until => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Takes what the service says that is to be obeyed.
    fn obey(
        &self,
        state: &mut State,
        told: Result<Directives, GatewayError>,
    ) -> Result<(), DaemonError> {
        match told {
            Ok(directives) => {
                state.away = 0;
                state.status.unreached = None;
                state.take(directives);
                Ok(())
            }
            Err(problem) => state.problem(problem),
        }
    }

    async fn beat(&self, status: &Status) -> Result<Result<Beaten, GatewayError>, DaemonError> {
        let gateway_status = match (&status.unreached, status.refused) {
            (None, None) => GatewayStatus::connected(),
            (_, Some(code)) => GatewayStatus::error(code.as_str()),
            (Some(_), None) => GatewayStatus::degraded(),
        };
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|problem| DaemonError::Random(problem.to_string()))?;
        let version = concat!("lodestar ", env!("CARGO_PKG_VERSION"));
        let issued = Issued {
            expires_at: None,
            issued_at: self.clock.now(),
            key_id: self.key.public().key_id(),
            nonce: Nonce::from_bytes(nonce),
            subject: Heartbeat {
                account: self.account,
                daemon_version: DaemonVersion::new(version)
                    .expect("INVARIANT: a constant that is a short line"),
                device: self.device,
                gateway_status,
                runners: (self.runners)(),
            },
        };
        let envelope = Envelope::sign(&issued, &self.key)?;
        let sent = self.client.heartbeat(self.device, &envelope);
        let sent = tokio::time::timeout(QUESTION, sent).await;
        Ok(sent.unwrap_or_else(|_| Err(too_slow())))
    }

    /// Takes what the service says of a heartbeat; whether it took it.
    fn heard(
        &self,
        state: &mut State,
        beaten: Result<Beaten, GatewayError>,
    ) -> Result<bool, DaemonError> {
        match beaten {
            Ok(beaten) => {
                state.status.level = Some(beaten.level);
                state.status.last_heartbeat = Some(self.clock.now());
                state.status.refused = None;
                state.take(beaten.directives);
                Ok(true)
            }
            Err(problem) => state.problem(problem).map(|()| false),
        }
    }
}

impl State {
    fn take(&mut self, directives: Directives) {
        self.status.directives = Some(directives);
        self.leave
            .set(!directives.kill_switch && !directives.paused);
    }

    /// What is wrong, if the daemon can live with it.
    fn problem(&mut self, problem: GatewayError) -> Result<(), DaemonError> {
        match problem {
            GatewayError::Refused {
                code:
                    code @ (Code::DeviceRevoked
                    | Code::DeviceBlocked
                    | Code::DeviceUnknown
                    | Code::TokenInvalid
                    | Code::TokenKind
                    | Code::OtherDevice),
                message,
                ..
            } => {
                self.leave.set(false);
                Err(DaemonError::Gone { code, message })
            }
            GatewayError::Refused { code, .. } => {
                self.status.refused = Some(code);
                if matches!(code, Code::KillSwitch | Code::DevicePaused) {
                    self.leave.set(false);
                }
                Ok(())
            }
            other => {
                self.away = self.away.saturating_add(1);
                self.status.unreached = Some(other.to_string());
                Ok(())
            }
        }
    }
}

fn too_slow() -> GatewayError {
    GatewayError::Unreached("it did not answer in time".to_owned())
}

/// How long until the next question: a service that is away for long is asked less often, up to a bound.
fn pause(away: u32) -> Duration {
    let doubled = ASKS_EVERY.saturating_mul(1 << away.saturating_sub(2).min(5));
    doubled.min(PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_is_known_in_time_even_if_one_question_is_slow() {
        assert!(2 * (ASKS_EVERY + QUESTION) <= OBEYS_WITHIN + QUESTION);
        assert!(ASKS_EVERY + QUESTION < OBEYS_WITHIN);
    }

    #[test]
    fn a_service_that_is_away_is_asked_less_often_but_always_again() {
        assert_eq!(pause(0), ASKS_EVERY);
        assert_eq!(pause(2), ASKS_EVERY);
        assert_eq!(pause(3), 2 * ASKS_EVERY);
        assert_eq!(pause(u32::MAX), PATIENCE);
    }

    #[test]
    fn what_nobody_confirmed_may_not_sign() {
        let leave = Leave::default();
        assert!(!leave.may_sign());
        leave.set(true);
        assert!(leave.may_sign());
        leave.set(false);
        assert!(!leave.may_sign());
    }
}
