//! The daemon of a device: it says that the device is there, and hears what it has to obey.
//!
//! Two clocks run in it. Every [`HEARTBEAT`](lodestar_core::device::HEARTBEAT) it signs that the device is there;
//! every [`POLL`] it asks what the device has to obey, without signing anything. A kill switch or a pause stops
//! every signature, heartbeats too: the daemon gets its [`Signer`] through the same door as everything else that
//! signs for the device. While the gateway is away it asks less often, and what it heard last stays in force.

mod standing;

use std::collections::BTreeSet;
use std::time::Duration;

use lodestar_core::device::DeviceLevel;
use lodestar_core::id::RunnerId;
use lodestar_core::statement::{DaemonVersion, GatewayStatus};
use lodestar_log::Clock;
use thiserror::Error;
use tokio::time::Instant;

use crate::client::{GatewayClient, GatewayError};
use crate::code::Code;
use crate::device::{
    AskError, DaemonLock, DeviceError, DeviceFolder, LockError, SignError, Signer, State, Stopped,
};
use crate::service::Report;

/// How often the gateway is asked what the device has to obey: three times within the ten seconds in which it
/// has to be obeyed.
pub const POLL: Duration = Duration::from_secs(3);

/// How long an answer may take. With [`POLL`] and [`FURTHEST`] it stays below ten seconds.
const WITHIN: Duration = Duration::from_secs(4);

/// The longest time between two attempts while the gateway is away.
const FURTHEST: Duration = Duration::from_secs(5);

/// How old what is kept of the last answer may be.
const KEPT: Duration = Duration::from_secs(10);

/// Why a daemon ended otherwise than by being told to.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// Another one runs, or the lock cannot be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The device's folder cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The key cannot sign.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The device is gone for good.
    #[error("{0}")]
    Gone(Stopped),
}

/// How a daemon works.
#[derive(Debug, Clone)]
pub struct DaemonSettings {
    /// How often it says that the device is there.
    pub heartbeat: Duration,
    /// How often it asks what the device has to obey.
    pub poll: Duration,
    /// The runners that are alive here; none said means those that are bound to the device.
    pub runners: Option<BTreeSet<RunnerId>>,
    /// Where it says what whoever runs it has to know.
    pub report: Report,
    /// The time.
    pub clock: Clock,
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self {
            heartbeat: lodestar_core::device::HEARTBEAT,
            poll: POLL,
            runners: None,
            report: Report::stderr(),
            clock: Clock::system(),
        }
    }
}

/// A device's daemon. There is one at a time.
#[derive(Debug)]
pub struct Daemon {
    folder: DeviceFolder,
    settings: DaemonSettings,
    state: State,
    /// The runners that the gateway says are bound to the device.
    bound: BTreeSet<RunnerId>,
    /// Whether the gateway has the key that is here, as far as is known.
    is_key_known: bool,
    /// Attempts in a row that nobody answered.
    failures: u32,
    _lock: DaemonLock,
}

/// What an attempt came to.
enum Heard {
    Answer,
    /// Nobody answered, or not now.
    Nothing(String),
    /// The gateway answered, and refused.
    Refused(Code, String),
}

impl Daemon {
    /// Takes the device, if no other daemon has it.
    pub fn start(folder: DeviceFolder, settings: DaemonSettings) -> Result<Self, DaemonError> {
        folder.identity()?;
        let lock = DaemonLock::take(&folder)?;
        // Once nobody else writes it: what the last one heard stays in force.
        let state = State {
            heartbeat_seconds: Some(settings.heartbeat.as_secs()),
            ..folder.state()?
        };
        Ok(Self {
            folder,
            settings,
            state,
            bound: BTreeSet::new(),
            is_key_known: false,
            failures: 0,
            _lock: lock,
        })
    }

    /// Works until it is told to end, or the device is gone for good.
    pub async fn run(mut self, until: impl Future<Output = ()>) -> Result<(), DaemonError> {
        tokio::pin!(until);
        let mut beat_at = Instant::now();
        loop {
            let is_due = Instant::now() >= beat_at;
            let round = self.round(is_due);
            let beaten = tokio::select! {
                () = &mut until => return Ok(()),
                round = round => round?,
            };
            if beaten {
                beat_at = Instant::now() + self.settings.heartbeat;
            }
            let mut pause = match self.failures {
                0 => self.settings.poll,
                n => backoff(n, self.settings.poll),
            };
            if self.failures == 0 && self.state.stopped.is_none() && self.is_key_known {
                pause = pause.min(beat_at.saturating_duration_since(Instant::now()));
            }
            tokio::select! {
                () = &mut until => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One round: what is to be obeyed, and a heartbeat if one is due. Says whether one was taken.
    async fn round(&mut self, is_due: bool) -> Result<bool, DaemonError> {
        // Read anew each time: a token or a key that was replaced is in force from then on.
        let folder = self.folder.clone();
        let client = folder.client()?.within(WITHIN);
        let permission = match folder.ask(&client).await {
            Ok(permission) => permission,
            Err(problem) => {
                let heard = self.unpermitted(problem)?;
                self.note(&heard)?;
                return Ok(false);
            }
        };
        self.obey(None)?;
        // Before every beat: runners are bound and keys rotated while it runs.
        if !is_due && self.is_key_known && !folder.is_rotating() {
            self.note(&Heard::Answer)?;
            return Ok(false);
        }
        let looked = match permission.look(&client).await {
            Ok(looked) => looked,
            Err(problem) => {
                let heard = self.unpermitted(problem)?;
                self.note(&heard)?;
                return Ok(false);
            }
        };
        self.seen(&looked);
        let signer = looked.signer.by(self.settings.clock.clone());
        let (heard, is_beat) = match looked.device.challenge_passed_at {
            // The beat is for the next round, which asks again.
            None => (self.answer(&client, &signer).await?, false),
            Some(_) if is_due => (self.beat(&client, &signer).await?, true),
            Some(_) => (Heard::Answer, false),
        };
        self.note(&heard)?;
        Ok(is_beat && matches!(heard, Heard::Answer))
    }

    /// Signs that the device is there.
    async fn beat(
        &mut self,
        client: &GatewayClient,
        signer: &Signer,
    ) -> Result<Heard, DaemonError> {
        let device = signer.identity().device;
        let runners = self.settings.runners.as_ref().unwrap_or(&self.bound);
        let version = DaemonVersion::new(concat!("lodestar ", env!("CARGO_PKG_VERSION")))
            .expect("INVARIANT: a version is short");
        // Whoever is heard is connected: a beat follows an answer.
        let status = GatewayStatus::connected();
        let envelope = match signer.heartbeat(status, version, runners.clone()) {
            Err(SignError::Stale) => return Ok(Heard::Nothing(SignError::Stale.to_string())),
            signed => signed?,
        };
        match client.heartbeat(device, &envelope).await {
            Ok(beaten) => {
                self.level(beaten.level);
                self.state.beat_at = Some(self.settings.clock.now());
                self.obey(Stopped::by(&beaten.directives))?;
                self.keep()?;
                Ok(Heard::Answer)
            }
            Err(problem) => self.failed(&problem),
        }
    }

    /// Notes that signing has to stop, or may go on.
    fn obey(&mut self, stopped: Option<Stopped>) -> Result<(), DaemonError> {
        // Somebody else who asked may have noted it, or something that does not hold any more.
        self.folder.change_state(|kept| {
            kept.stopped = stopped;
            Ok(())
        })?;
        if self.state.stopped == stopped {
            return Ok(());
        }
        self.state.stopped = stopped;
        self.settings.report.say(&match stopped {
            Some(stopped) => format!("{stopped}: nothing is signed from now on"),
            None => "signing goes on".to_owned(),
        });
        Ok(())
    }

    fn level(&mut self, level: DeviceLevel) {
        if self.state.level != Some(level) {
            self.settings.report.say(&format!("the device is {level}"));
            self.state.level = Some(level);
        }
    }

    /// What it comes to that nothing may be signed.
    fn unpermitted(&mut self, problem: AskError) -> Result<Heard, DaemonError> {
        match problem {
            AskError::Device(problem) => Err(problem.into()),
            AskError::Gateway(problem) | AskError::StoppedBefore { problem, .. } => {
                self.failed(&problem)
            }
            AskError::Stopped(stopped) => self.stopped(stopped),
            AskError::OtherKey => {
                self.is_key_known = false;
                Ok(Heard::Refused(
                    Code::SignatureInvalid,
                    AskError::OtherKey.to_string(),
                ))
            }
        }
    }

    /// The gateway answered that nothing may be signed.
    fn stopped(&mut self, stopped: Stopped) -> Result<Heard, DaemonError> {
        self.obey(Some(stopped))?;
        match stopped.is_for_good() {
            true => Err(DaemonError::Gone(stopped)),
            false => Ok(Heard::Answer),
        }
    }

    /// What an attempt that failed comes to.
    fn failed(&mut self, problem: &GatewayError) -> Result<Heard, DaemonError> {
        if let Some(stopped) = Stopped::of(problem) {
            return self.stopped(stopped);
        }
        let told = problem.to_string();
        Ok(match problem.code() {
            Some(code) if !problem.may_pass() => Heard::Refused(code, told),
            _ => Heard::Nothing(told),
        })
    }

    /// Keeps what an attempt came to, and says what is new.
    fn note(&mut self, heard: &Heard) -> Result<(), DaemonError> {
        let now = self.settings.clock.now();
        let problem = match heard {
            Heard::Answer => None,
            Heard::Nothing(why) => Some(why.clone()),
            Heard::Refused(code, why) => Some(format!("{code}: {why}")),
        };
        let is_news = self.state.problem.is_some() != problem.is_some();
        match &problem {
            None => {
                let is_old = |heard| now.since(heard).is_none_or(|age| age >= KEPT);
                let is_old = self.state.heard_at.is_none_or(is_old);
                if self.failures > 0 {
                    self.settings.report.say("the gateway answers again");
                }
                self.failures = 0;
                self.state.heard_at = Some(now);
                self.state.problem = None;
                if !is_old && !is_news {
                    return Ok(());
                }
            }
            Some(why) => {
                self.failures = self.failures.saturating_add(1);
                if is_news {
                    self.settings
                        .report
                        .say(&format!("{why}; it is tried again"));
                } else if self.state.problem == problem {
                    return Ok(());
                }
                self.state.problem = problem.clone();
            }
        }
        self.keep()
    }

    /// Keeps all but whether it has to stop, which is kept as soon as it is heard.
    fn keep(&self) -> Result<(), DaemonError> {
        Ok(self.folder.change_state(|kept| {
            let stopped = kept.stopped;
            *kept = State {
                stopped,
                ..self.state.clone()
            };
            Ok(())
        })?)
    }
}

/// How long to wait after so many failures: longer each time, and not all devices at once.
fn backoff(failures: u32, least: Duration) -> Duration {
    let doubled = least.saturating_mul(1 << failures.min(4));
    let mut random = [0];
    // Without randomness, all at once is still better than not at all.
    let _ = getrandom::fill(&mut random);
    let longest = FURTHEST.max(least);
    doubled
        .min(longest)
        .mul_f64(0.75 + f64::from(random[0]) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_happens_the_gateway_is_heard_within_ten_seconds() {
        for failures in 1..100 {
            let longest = (0..50).map(|_| backoff(failures, POLL)).max().unwrap();
            assert!(longest + WITHIN < Duration::from_secs(10), "{longest:?}");
        }
        assert!(POLL + WITHIN < Duration::from_secs(10));
        // A look and a challenge may both take as long as they may, and what was asked before them is still good.
        assert!(2 * WITHIN < crate::device::GOOD_FOR);
    }
}
