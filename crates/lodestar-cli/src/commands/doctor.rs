//! `lodestar doctor`: what is enforced, shown by canaries that went through the configured path, and what is not.

mod agent;
mod canary;
mod clients;
mod contained;
mod hooks;
mod path;
mod standing;

pub(crate) use self::clients::is_this_program;

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_kernel::contain::Containment;
use serde::Serialize;
use serde_json::json;

use crate::cli::App;
use crate::configured::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::inert;

const AFTER_HELP: &str = "\
Starts the real proxy with the real configuration, a session of its own and one server more, the
canary, and tries as an agent: a call that may run, one of a tool that is not there, one of a tool
that nobody graded, an approval that a stranger signed, a call that reaches for Lodestar itself. Then
it starts something harmless in the sandbox of each server and tells what was refused inside. What is
proven by that is marked ✓. What is not covered is marked !, with what to do about it. What is
plainly not enforced is marked ✗, and exits with 1.

Examples:
  lodestar doctor
  lodestar doctor --config lodestar.toml --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Be the canary: a server that notes in this file what reaches it
    #[arg(long, value_name = "FILE", hide = true)]
    canary: Option<PathBuf>,
}

/// What is known of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// It was tried, and held.
    Proven,
    /// It is not covered, or nobody can tell from here.
    Uncovered,
    /// It was tried or looked at, and is not enforced.
    Broken,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    what: String,
    /// What was found, for whoever wants to know more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// What was in force around a child, as a session would record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    containment: Option<Containment>,
}

impl Finding {
    fn proven(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Verdict::Proven, what)
    }

    fn uncovered(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Verdict::Uncovered, what)
    }

    fn broken(check: &'static str, what: impl Into<String>) -> Self {
        Self::new(check, Verdict::Broken, what)
    }

    fn new(check: &'static str, verdict: Verdict, what: impl Into<String>) -> Self {
        Self {
            check,
            verdict,
            what: what.into(),
            details: Vec::new(),
            remedy: None,
            containment: None,
        }
    }

    fn details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }

    fn of(mut self, containment: Containment) -> Self {
        self.containment = Some(containment);
        self
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

pub(crate) fn run(args: &DoctorArgs, app: &mut App) -> Result<Exit, Failure> {
    if let Some(notes) = &args.canary {
        return canary::serve(notes);
    }
    let configured = args.config.find(app)?.ok_or_else(|| {
        Failure::not_found("there is no `lodestar.toml` here, so nothing is configured")
            .help("`lodestar init` writes one from a client's configuration")
    })?;
    let config = &configured.config;
    let mut findings = Vec::new();
    match config.downstream_servers.is_empty() {
        true => findings.push(
            Finding::uncovered(
                "proxy",
                "the configuration names no servers, so no path was tried",
            )
            .remedy("`lodestar init` writes them from a client's configuration"),
        ),
        false => {
            if let Err(problem) = path::try_it(&configured, app, &mut findings) {
                findings.push(Finding::broken("proxy", problem.with_help()));
            }
        }
    }
    standing::look(config, &mut findings)?;
    contained::look(config, &mut findings)?;
    let hooked = hooks::look(config, &mut findings);
    clients::look(config, &configured.file, &hooked, &mut findings);
    let broken = findings.iter().any(|one| one.verdict == Verdict::Broken);
    print(&findings, app)?;
    Ok(if broken {
        Exit::CheckFailed
    } else {
        Exit::Done
    })
}

fn print(findings: &[Finding], app: &mut App) -> Result<(), Failure> {
    let count = |verdict| findings.iter().filter(|one| one.verdict == verdict).count();
    let (proven, uncovered, broken) = (
        count(Verdict::Proven),
        count(Verdict::Uncovered),
        count(Verdict::Broken),
    );
    if app.json {
        return Ok(app.out.json(&json!({
            "findings": findings,
            "proven": proven,
            "uncovered": uncovered,
            "broken": broken,
        }))?);
    }
    let paint = app.out.paint;
    for verdict in [Verdict::Proven, Verdict::Broken, Verdict::Uncovered] {
        for one in findings.iter().filter(|one| one.verdict == verdict) {
            let mark = match verdict {
                Verdict::Proven => paint.good("✓"),
                Verdict::Broken => paint.bad("✗"),
                Verdict::Uncovered => paint.warn("!"),
            };
            writeln!(app.out, "{mark} {}", inert::lines(&one.what))?;
            let remedy = one.remedy.iter().flat_map(|remedy| remedy.lines());
            for line in one.details.iter().map(String::as_str).chain(remedy) {
                writeln!(app.out, "    {}", paint.dim(inert::whole(line)))?;
            }
        }
    }
    let sum = format!("{proven} proven, {broken} not enforced, {uncovered} not covered");
    writeln!(app.out, "{}", paint.strong(sum))?;
    Ok(())
}
