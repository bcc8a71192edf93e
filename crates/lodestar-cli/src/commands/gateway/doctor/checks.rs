//! The six checks: clock, key, identity, daemon, bind and sync.

use std::time::Duration;

use lodestar_core::device::{DeviceLevel, HEARTBEAT, ISSUED_AT_WINDOW};
use lodestar_core::key::PublicKey;
use lodestar_core::time::Timestamp;
use lodestar_gateway::client::GatewayError;
use lodestar_gateway::device::{
    DeviceError, DeviceFolder, DeviceIdentity, FileError, State, Stopped, running,
};
use lodestar_gateway::run::{RunBook, RunRecord};
use lodestar_gateway::wire;

use super::Own;
use super::findings::Findings;
use crate::words;

/// How far clocks may be apart before it is worth saying, though nothing is refused yet.
const NOTICEABLE: Duration = Duration::from_secs(30);

/// What a heartbeat may be late by, however often they come.
const SLACK: Duration = Duration::from_secs(10);

/// Why who the device is cannot be read.
pub(super) fn no_identity(problem: &DeviceError, findings: &mut Findings) {
    let (code, remedy) = match problem {
        DeviceError::NotEnrolled(_) => (
            "not_enrolled",
            "lodestar device enroll NAME --gateway URL --token-file FILE",
        ),
        _ => (
            "identity_unreadable",
            "make the device's folder readable, or put its `device.json` back",
        ),
    };
    findings.broken("identity", code, problem.to_string(), remedy);
}

pub(super) fn key(
    folder: &DeviceFolder,
    identity: &DeviceIdentity,
    findings: &mut Findings,
) -> Option<PublicKey> {
    match folder.public_key() {
        Err(problem) => {
            let (code, remedy) = match &problem {
                DeviceError::File(FileError::OpenToOthers { .. }) => (
                    "key_open_to_others",
                    "if nobody can have read it, give it mode 600; otherwise rotate it",
                ),
                _ => (
                    "key_unreadable",
                    "a device without its key is revoked by its owner, and enrolled anew",
                ),
            };
            findings.broken("key", code, problem.to_string(), remedy);
            None
        }
        // Interrupted while it took up a rotation, the daemon does it again.
        Ok(key) if key != identity.key && !folder.is_rotating() => {
            findings.broken(
                "key",
                "key_mismatch",
                "the key is not the one that the device was enrolled with",
                "put the right key back; if it is lost, its owner revokes the device, and it is enrolled anew",
            );
            None
        }
        Ok(key) => Some(key),
    }
}

pub(super) fn clock(
    health: &Result<wire::Health, GatewayError>,
    asked_at: Timestamp,
    now: Timestamp,
    findings: &mut Findings,
) {
    let health = match health {
        Ok(health) => health,
        Err(problem) => {
            findings.broken(
                "clock",
                "gateway_unreached",
                format!("the gateway does not say what time it is: {problem}"),
                "see that the gateway runs, and that this machine reaches it",
            );
            return;
        }
    };
    // It was said somewhere between the question and now.
    let ahead = asked_at.since(health.time);
    let behind = health.time.since(now);
    let apart = ahead.into_iter().chain(behind).max().unwrap_or_default();
    let which = if ahead.is_some() {
        "ahead of"
    } else {
        "behind"
    };
    let said = format!("this clock is {} s {which} the gateway's", apart.as_secs());
    match apart {
        apart if apart > ISSUED_AT_WINDOW => findings.broken(
            "clock",
            "clock_skew",
            format!(
                "{said}; it refuses what is further off than {} s",
                ISSUED_AT_WINDOW.as_secs()
            ),
            "set this machine's clock, and keep it with a time service",
        ),
        apart if apart > NOTICEABLE => findings.attention(
            "clock",
            "clock_drifts",
            said,
            "keep this machine's clock with a time service",
        ),
        _ => findings.ok("clock", "this machine and the gateway agree on the time"),
    }
}

pub(super) fn standing(
    own: &Result<Own, DeviceError>,
    key: Option<PublicKey>,
    findings: &mut Findings,
) {
    let own = match own {
        Ok(own) => own,
        Err(problem) => {
            findings.broken(
                "identity",
                "token_unreadable",
                problem.to_string(),
                "its owner makes another with `lodestar token issue --kind device`; it goes into the device's folder as `token`, with mode 600",
            );
            return;
        }
    };
    let device = match &own.device {
        Ok(device) => device,
        Err(problem) => {
            let (code, remedy) = match problem.code() {
                Some(code) => (
                    code.as_str(),
                    "`lodestar token issue --kind device` makes a new token for it",
                ),
                None => (
                    "gateway_unreached",
                    "see that the gateway runs, and that this machine reaches it",
                ),
            };
            findings.broken("identity", code, problem.to_string(), remedy);
            return;
        }
    };
    match (key, device.key) {
        (Some(own), Some(key)) if own == key => {
            findings.ok(
                "key",
                "the key is here, private, and the one that the gateway has",
            );
        }
        (Some(_), _) => findings.broken(
            "key",
            "key_unknown_to_gateway",
            "the gateway has another key for this device",
            "lodestar device daemon takes up a rotation that is done",
        ),
        (None, _) => {}
    }
    let what = format!("{} is {}", device.name, device.level);
    match device.level {
        DeviceLevel::Trusted | DeviceLevel::Approved => findings.ok("identity", what),
        DeviceLevel::Pending => findings.broken(
            "identity",
            "device_not_approved",
            what,
            "its owner approves it: lodestar device approve",
        ),
        DeviceLevel::Offline => findings.attention(
            "identity",
            "device_offline",
            what,
            "the next heartbeat brings it back",
        ),
        DeviceLevel::Unhealthy => findings.broken(
            "identity",
            "device_unhealthy",
            what,
            "it comes back by itself once it was well for as long as the cooldown takes",
        ),
        DeviceLevel::Revoked => findings.broken(
            "identity",
            "device_revoked",
            what,
            "lodestar device enroll makes this machine another device",
        ),
        DeviceLevel::Blocked => findings.broken(
            "identity",
            "device_blocked",
            what,
            "ask whoever runs the gateway",
        ),
    }
}

pub(super) fn daemon(
    folder: &DeviceFolder,
    state: &State,
    now: Timestamp,
    findings: &mut Findings,
) {
    match running(folder) {
        Err(problem) => {
            findings.broken(
                "daemon",
                "daemon_unknown",
                problem.to_string(),
                "make the device's folder readable",
            );
            return;
        }
        Ok(None) => {
            findings.broken(
                "daemon",
                "daemon_not_running",
                "no daemon runs for this device",
                "lodestar device daemon",
            );
            return;
        }
        Ok(Some(_)) => {}
    }
    if state.stopped.is_some() {
        return findings.ok("daemon", "the daemon runs, and signs nothing now");
    }
    let since = state.beat_at.and_then(|at| now.since(at));
    let period = state.heartbeat_seconds.map(Duration::from_secs);
    // One that is late is no reason to worry; a look at a busy machine takes a while, too.
    let lately = 2 * period.unwrap_or(HEARTBEAT) + SLACK;
    match since {
        Some(age) if age <= lately => findings.ok(
            "daemon",
            format!(
                "the daemon runs; the gateway heard it {} s ago",
                age.as_secs()
            ),
        ),
        _ => {
            let problem = state.problem.clone();
            let problem = problem.unwrap_or_else(|| "no heartbeat was taken lately".to_owned());
            findings.broken(
                "daemon",
                "heartbeat_stale",
                format!("the daemon runs, and is not heard: {problem}"),
                "what the other checks say is mostly why",
            );
        }
    }
}

pub(super) fn bind(
    own: &Result<Own, DeviceError>,
    run: Option<&lodestar_guard::config::Run>,
    findings: &mut Findings,
) {
    let Ok(Own {
        device: Ok(device), ..
    }) = own
    else {
        return;
    };
    let bound = device.runners.len() as u64;
    match run {
        Some(run) if !device.runners.contains(&run.runner) => findings.broken(
            "bind",
            "not_bound",
            format!(
                "{}, which `[run]` names, is not bound to this device",
                run.runner
            ),
            "its owner binds it: lodestar runner bind",
        ),
        None if bound == 0 => findings.attention(
            "bind",
            "no_runner",
            "no runner is bound to this device, so its runs come no further than `device_verified`",
            "its owner binds one: lodestar runner bind",
        ),
        _ => findings.ok(
            "bind",
            format!("{} bound to this device", words::count(bound, "runner")),
        ),
    }
}

pub(super) fn sync(
    folder: &DeviceFolder,
    state: &State,
    own: &Result<Own, DeviceError>,
    findings: &mut Findings,
) {
    let stopped = match own.as_ref().map(|own| &own.directives) {
        Ok(Ok(directives)) => Stopped::by(directives),
        Ok(Err(problem)) => Stopped::of(problem).or(state.stopped),
        Err(_) => state.stopped,
    };
    if let Some(stopped) = stopped {
        findings.broken(
            "sync",
            "signing_stopped",
            format!("{stopped}: nothing is signed"),
            "it goes on when whoever stopped it says so",
        );
        return;
    }
    let records = match RunBook::of(folder).list() {
        Ok(records) => records,
        Err(problem) => {
            findings.broken(
                "sync",
                "runs_unreadable",
                problem.to_string(),
                "make the device's folder readable",
            );
            return;
        }
    };
    // Also those whose process was killed: nothing says what is wrong with them, and nobody attests them.
    let waiting = records.iter().filter(|it| RunRecord::is_waiting(it));
    match waiting.count() as u64 {
        0 => findings.ok(
            "sync",
            "the device may sign, and no run waits to be attested",
        ),
        n => findings.attention(
            "sync",
            "runs_waiting",
            format!("{} not attested", words::count(n, "run")),
            "lodestar run attest",
        ),
    }
}
