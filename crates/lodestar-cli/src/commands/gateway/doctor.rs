//! `lodestar gateway doctor`: can this device do its work? In less than five seconds, with codes.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use lodestar_core::device::{DeviceLevel, HEARTBEAT, ISSUED_AT_WINDOW};
use lodestar_core::time::Timestamp;
use lodestar_gateway::client::{GatewayClient, GatewayError};
use lodestar_gateway::device::{DeviceFolder, DeviceIdentity, State, Stopped, running};
use lodestar_gateway::run::{RunBook, Stage};
use lodestar_gateway::wire;
use serde::Serialize;
use serde_json::json;

use crate::cli::App;
use crate::configured::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, device_folder, wait};
use crate::{commands, inert, words};

/// How long the gateway may take: with two questions at once, all of it stays below five seconds.
const WITHIN: Duration = Duration::from_secs(3);

/// How far clocks may be apart before it is worth saying, though nothing is refused yet.
const NOTICEABLE: Duration = Duration::from_secs(30);

const AFTER_HELP: &str = "\
Looks at six things: clock (how far this machine's is from the gateway's), key (there, private, and the
one that the gateway has), identity (token, device and level), daemon (runs, and was heard), bind (the
runners that are bound here, the one of `[run]` among them) and sync (may it sign, does a run wait to be
attested). Each has a code; ✗ exits with 1, ! does not.

Examples:
  lodestar gateway doctor
  lodestar gateway doctor --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    dir: DeviceDirArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Attention,
    Broken,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    code: &'static str,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(
        &mut self,
        check: &'static str,
        verdict: Verdict,
        code: &'static str,
        what: impl Into<String>,
    ) -> &mut Finding {
        self.0.push(Finding {
            check,
            verdict,
            code,
            what: what.into(),
            remedy: None,
        });
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.add(check, Verdict::Ok, "ok", what);
    }

    fn broken(
        &mut self,
        check: &'static str,
        code: &'static str,
        what: impl Into<String>,
        remedy: &'static str,
    ) {
        self.add(check, Verdict::Broken, code, what).remedy = Some(remedy);
    }

    fn attention(
        &mut self,
        check: &'static str,
        code: &'static str,
        what: impl Into<String>,
        remedy: &'static str,
    ) {
        self.add(check, Verdict::Attention, code, what).remedy = Some(remedy);
    }
}

pub(crate) fn run(args: &DoctorArgs, app: &mut App) -> Result<Exit, Failure> {
    let configured = args.config.find(app)?;
    let configured = configured.and_then(|it| it.config.run);
    let folder = match (&args.dir.device_dir, &configured) {
        (Some(dir), _) => DeviceFolder::at(dir),
        (None, Some(run)) => device_folder(run.device_dir.as_deref())?,
        (None, None) => device_folder(None)?,
    };
    let mut findings = Findings::default();
    let identity = match folder.identity() {
        Ok(identity) => identity,
        Err(problem) => {
            findings.broken(
                "identity",
                "not_enrolled",
                problem.to_string(),
                "lodestar device enroll NAME --gateway URL --token-file FILE",
            );
            return print(&findings, app);
        }
    };
    let own = key(&folder, &identity, &mut findings);
    let answers = asked(&folder, &identity)?;
    let now = commands::now();
    clock(&answers.health, answers.asked_at, now, &mut findings);
    standing(&answers.device, own, &mut findings);
    let state = folder.state().unwrap_or_default();
    daemon(&folder, &state, now, &mut findings);
    bind(&answers.device, configured.as_ref(), &mut findings);
    sync(&folder, &state, &answers.directives, &mut findings);
    print(&findings, app)
}

/// What the gateway said, all of it asked at once.
struct Answers {
    asked_at: Timestamp,
    health: Result<wire::Health, GatewayError>,
    device: Result<wire::Device, GatewayError>,
    directives: Result<wire::Directives, GatewayError>,
}

fn asked(folder: &DeviceFolder, identity: &DeviceIdentity) -> Result<Answers, Failure> {
    let bare: GatewayClient = identity.gateway.client(None)?.within(WITHIN);
    let asked_at = commands::now();
    // Without a token there is still the clock to look at.
    let client = folder.client().map(|client| client.within(WITHIN));
    wait(async {
        match client {
            Ok(client) => {
                let (health, device, directives) = tokio::join!(
                    bare.health(),
                    client.device(identity.device),
                    client.directives(identity.device)
                );
                Answers {
                    asked_at,
                    health,
                    device,
                    directives,
                }
            }
            Err(problem) => {
                let unread = || GatewayError::Unreached(problem.to_string());
                Answers {
                    asked_at,
                    health: bare.health().await,
                    device: Err(unread()),
                    directives: Err(unread()),
                }
            }
        }
    })
}

fn key(
    folder: &DeviceFolder,
    identity: &DeviceIdentity,
    findings: &mut Findings,
) -> Option<lodestar_core::key::PublicKey> {
    match folder.key() {
        Err(problem) => {
            let text = problem.to_string();
            let (code, remedy) = match text.contains("open to others") {
                true => (
                    "key_open_to_others",
                    "if nobody can have read it, give it mode 600; otherwise rotate it",
                ),
                false => (
                    "key_unreadable",
                    "a device without its key is enrolled anew",
                ),
            };
            findings.broken("key", code, text, remedy);
            None
        }
        Ok(key) if key.public() != identity.key => {
            findings.broken(
                "key",
                "key_mismatch",
                "the key is not the one that the device was enrolled with",
                "put the right key back, or enrol the machine anew",
            );
            None
        }
        Ok(key) => Some(key.public()),
    }
}

fn clock(
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

fn standing(
    device: &Result<wire::Device, GatewayError>,
    own: Option<lodestar_core::key::PublicKey>,
    findings: &mut Findings,
) {
    let device = match device {
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
    match (own, device.key) {
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
        DeviceLevel::Revoked => {
            findings.broken("identity", "device_revoked", what, "enrol the machine anew")
        }
        DeviceLevel::Blocked => findings.broken(
            "identity",
            "device_blocked",
            what,
            "ask whoever runs the gateway",
        ),
    }
}

fn daemon(folder: &DeviceFolder, state: &State, now: Timestamp, findings: &mut Findings) {
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
    match since {
        Some(age) if age <= 2 * HEARTBEAT => findings.ok(
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

fn bind(
    device: &Result<wire::Device, GatewayError>,
    run: Option<&lodestar_guard::config::Run>,
    findings: &mut Findings,
) {
    let Ok(device) = device else {
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

fn sync(
    folder: &DeviceFolder,
    state: &State,
    directives: &Result<wire::Directives, GatewayError>,
    findings: &mut Findings,
) {
    let stopped = match directives {
        Ok(directives) => Stopped::by(directives),
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
    let waiting = records
        .iter()
        .filter(|it| it.stage == Stage::Opened && it.problem.is_some());
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

fn print(findings: &Findings, app: &mut App) -> Result<Exit, Failure> {
    let has = |verdict| findings.0.iter().any(|it| it.verdict == verdict);
    let exit = match has(Verdict::Broken) {
        true => Exit::CheckFailed,
        false => Exit::Done,
    };
    if app.json {
        app.out
            .json(&json!({"findings": findings.0, "ok": exit == Exit::Done}))?;
        return Ok(exit);
    }
    let paint = app.out.paint;
    for one in &findings.0 {
        let mark = match one.verdict {
            Verdict::Ok => paint.good("✓"),
            Verdict::Attention => paint.warn("!"),
            Verdict::Broken => paint.bad("✗"),
        };
        let code = match one.verdict {
            Verdict::Ok => String::new(),
            _ => format!(" ({})", one.code),
        };
        writeln!(
            app.out,
            "{mark} {:<8} {}{code}",
            one.check,
            inert::whole(&one.what)
        )?;
        if let Some(remedy) = one.remedy {
            writeln!(app.out, "    {}", paint.dim(remedy))?;
        }
    }
    Ok(exit)
}
