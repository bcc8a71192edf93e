//! Runs probes, each with its contrast, and says what came of it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lodestar_core::defence::Defence;
use serde::Serialize;

use crate::header::{Header, Needs};
use crate::probe::{Broken, Outcome, Probe};
use crate::stage::Stage;

/// With what probes are run.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// The `lodestar` program, whose processes the scenarios start.
    pub program: &'a Path,
    /// Where a PostgreSQL server is.
    pub database: Option<&'a str>,
    /// How many run side by side.
    pub jobs: usize,
}

/// What came of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It held, and its contrast was breached.
    Pass,
    /// It was breached, or its contrast was not.
    Fail,
    /// It did not run.
    Skip,
    /// It could not be played to an end, so that nothing is known.
    Error,
}

impl Status {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What came of the contrast run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contrast {
    /// Without the defence the scenario was breached, as it must be.
    Breached,
    /// Without the defence nothing was missed: the probe shows nothing.
    Held,
    /// It could not be played to an end.
    Error,
    /// It did not run.
    NotRun,
}

impl Contrast {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Breached => "breached",
            Self::Held => "held",
            Self::Error => "error",
            Self::NotRun => "not_run",
        }
    }
}

/// One probe, and what came of it.
#[derive(Debug, Clone, Serialize)]
pub struct ProbeResult {
    /// What it says of itself.
    #[serde(flatten)]
    pub header: Header,
    /// What came of it.
    pub status: Status,
    /// What came of the contrast run.
    pub contrast: Contrast,
    /// How long both runs took.
    pub ms: u64,
    /// Why it is not a pass; of a pass, how the contrast run was breached.
    pub reason: Option<String>,
}

/// What came of a run of probes.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// Each, in the order in which they were named.
    pub probes: Vec<ProbeResult>,
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many did not run.
    pub skipped: usize,
    /// How many could not be played to an end.
    pub errors: usize,
}

impl RunReport {
    fn new(probes: Vec<ProbeResult>) -> Self {
        let count = |status| probes.iter().filter(|probe| probe.status == status).count();
        Self {
            passed: count(Status::Pass),
            failed: count(Status::Fail),
            skipped: count(Status::Skip),
            errors: count(Status::Error),
            probes,
        }
    }

    /// Whether something ran, and nothing of it failed or could not be played.
    pub fn is_clean(&self) -> bool {
        self.passed > 0 && self.failed == 0 && self.errors == 0
    }
}

/// Runs probes. `each` hears of every one as it ends.
pub fn run(
    probes: &[Probe],
    options: &Options<'_>,
    mut each: impl FnMut(&ProbeResult),
) -> RunReport {
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::channel();
    let mut found: Vec<Option<ProbeResult>> = vec![None; probes.len()];
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, probes.len().max(1)) {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(probe) = probes.get(at) else { return };
                    if done.send((at, examine(probe, options))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        for (at, result) in results {
            each(&result);
            found[at] = Some(result);
        }
    });
    RunReport::new(found.into_iter().flatten().collect())
}

/// The probes that are breached where this defence is taken out, whichever they are about.
pub fn missed<'p>(probes: &'p [Probe], options: &Options<'_>, defence: Defence) -> Vec<&'p Probe> {
    let next = AtomicUsize::new(0);
    let (done, found) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, probes.len().max(1)) {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                while let Some(probe) = probes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = play(probe, options, &[defence]);
                    if matches!(played, Err(Broken::Breached(_))) && done.send(probe).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
    });
    let mut missed: Vec<&Probe> = found.into_iter().collect();
    missed.sort_by_key(|probe| &probe.header.name);
    missed
}

/// Both runs of one probe.
fn examine(probe: &Probe, options: &Options<'_>) -> ProbeResult {
    let started = Instant::now();
    let (status, contrast, reason) = judge(probe, options);
    ProbeResult {
        header: probe.header.clone(),
        status,
        contrast,
        ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        reason,
    }
}

fn judge(probe: &Probe, options: &Options<'_>) -> (Status, Contrast, Option<String>) {
    if let Some(missing) = missing(probe.header.needs, options) {
        return (Status::Skip, Contrast::NotRun, Some(missing));
    }
    match play(probe, options, &[]) {
        Ok(()) => {}
        Err(Broken::Breached(how)) => return (Status::Fail, Contrast::NotRun, Some(how)),
        Err(Broken::Skipped(why)) => return (Status::Skip, Contrast::NotRun, Some(why)),
        Err(Broken::Failed(why)) => return (Status::Error, Contrast::NotRun, Some(why)),
    }
    let defence = probe.header.defence;
    match play(probe, options, &[defence]) {
        Err(Broken::Breached(how)) => (
            Status::Pass,
            Contrast::Breached,
            Some(format!("without `{defence}`: {how}")),
        ),
        Ok(()) => (
            Status::Fail,
            Contrast::Held,
            Some(format!(
                "without `{defence}` the scenario holds too: the probe does not show that it is needed"
            )),
        ),
        Err(Broken::Skipped(why) | Broken::Failed(why)) => (
            Status::Error,
            Contrast::Error,
            Some(format!("the run without `{defence}`: {why}")),
        ),
    }
}

fn missing(needs: Needs, options: &Options<'_>) -> Option<String> {
    match needs {
        Needs::Nothing => None,
        Needs::Postgres if options.database.is_some() => None,
        Needs::Postgres => Some("LODESTAR_TEST_DATABASE_URL names no PostgreSQL server".to_owned()),
        Needs::Git => {
            let git = std::process::Command::new("git")
                .arg("--version")
                .stdout(std::process::Stdio::null())
                .status();
            (!git.is_ok_and(|status| status.success())).then(|| "there is no `git`".to_owned())
        }
    }
}

/// One run, on a stage of its own, within its time. A scenario that is late is left to itself: its
/// processes are killed, and nobody listens to it any more.
pub(crate) fn play(probe: &Probe, options: &Options<'_>, without: &[Defence]) -> Outcome {
    let stage = Stage::new(options.program, options.database, without)?;
    let started = stage.started();
    let (tell, told) = mpsc::channel();
    let late = probe.clone();
    std::thread::Builder::new()
        .name(probe.header.name.to_string())
        .spawn(move || {
            let played = catch_unwind(AssertUnwindSafe(|| late.play(&stage)));
            let outcome = played.unwrap_or_else(|panic| Err(Broken::Failed(said(&*panic))));
            drop(stage);
            let _ = tell.send(outcome);
        })?;
    match told.recv_timeout(probe.header.deadline) {
        Ok(outcome) => outcome,
        Err(_) => {
            started.end();
            // What waited for a process that is gone now may still say more.
            let last = told.recv_timeout(Duration::from_secs(1));
            let seconds = probe.header.deadline.as_secs();
            Err(Broken::Failed(match last {
                Ok(Err(Broken::Failed(why))) => format!("not over after {seconds} s; then: {why}"),
                _ => format!("not over after {seconds} s"),
            }))
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!(
        "the scenario panicked: {}",
        text.unwrap_or("without a word")
    )
}
