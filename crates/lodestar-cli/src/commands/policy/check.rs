//! `lodestar policy check`: what is wrong with a policy, with line, column and the line itself.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_policy::{Finding, Gravity, Policy, PolicyError, Unsigned, check, render};
use serde_json::json;

use crate::cli::App;
use crate::configured::{ConfigArgs, Tooling};
use crate::failure::{Exit, Failure};
use crate::refusals::policy_refused;
use crate::{inert, words};

const AFTER_HELP: &str = "\
The policy is checked against the arguments of the tools that the configuration asks for; without a
configuration, of those in the box. Errors keep a policy from loading and exit with 1. Warnings,
such as a policy that another one shadows, do not, unless --strict is given.

Examples:
  lodestar policy check
  lodestar policy check policy.cedar --strict
  lodestar policy check policy.cedar --config other/lodestar.toml --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CheckArgs {
    /// The policy [default: the one that the configuration names]
    file: Option<PathBuf>,

    #[command(flatten)]
    config: ConfigArgs,

    /// Let warnings fail, too
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &CheckArgs, app: &mut App) -> Result<Exit, Failure> {
    let tooling = Tooling::find(&args.config, app)?;
    let named = tooling.config().and_then(|config| {
        let policy = config.policy.as_ref()?;
        Some(config.path(&policy.file))
    });
    let (file, text) = match args.file.clone().or(named) {
        Some(file) => {
            let text = text(&file)?;
            (inert::path(&file), text)
        }
        None => preset(&tooling)?,
    };
    let findings = check(&text, &tooling.shapes());
    let of = |gravity| findings.iter().filter(|one| one.gravity == gravity).count();
    let (errors, warnings) = (of(Gravity::Error), of(Gravity::Warning));
    let passed = errors == 0 && !(args.strict && warnings > 0);
    if app.json {
        app.out.json(&json!({
            "file": file,
            "passed": passed,
            "errors": errors,
            "warnings": warnings,
            "findings": findings,
            "tools": tooling.json(),
        }))?;
    } else {
        tooling.note(app);
        let report = Report {
            findings: &findings,
            text: &text,
            file: &file,
            origin: tooling.origin(),
            passed,
        };
        report.print((errors, warnings), app)?;
    }
    Ok(if passed {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
}

/// Text that is too broken to be checked is refused; text that Cedar cannot read is what a check is
/// for.
fn text(file: &std::path::Path) -> Result<String, Failure> {
    let bytes = super::read(file)?;
    let now = crate::commands::now();
    match Policy::load(&bytes, None, &[], Unsigned::Allowed, now) {
        Ok(_) | Err(PolicyError::Unreadable(_)) => {}
        Err(problem) => return Err(policy_refused(&inert::path(file), &problem)),
    }
    Ok(String::from_utf8(bytes).expect("INVARIANT: what is not UTF-8 was refused above"))
}

fn preset(tooling: &Tooling) -> Result<(String, String), Failure> {
    let Some(config) = tooling.config() else {
        return Err(Failure::usage(
            "there is no policy to check: no file was named, and no configuration is here",
        )
        .help("name a file: `lodestar policy check policy.cedar`"));
    };
    let policy = config.policy_in_force(None)?;
    Ok(("preset".to_owned(), policy.source().to_owned()))
}

struct Report<'a> {
    findings: &'a [Finding],
    text: &'a str,
    file: &'a str,
    origin: String,
    passed: bool,
}

impl Report<'_> {
    fn print(&self, (errors, warnings): (usize, usize), app: &mut App) -> Result<(), Failure> {
        write!(app.out, "{}", render(self.findings, self.text, self.file))?;
        let found = match (errors, warnings) {
            (0, 0) => "nothing wrong".to_owned(),
            (errors, warnings) => format!(
                "{}, {}",
                words::count(errors as u64, "error"),
                words::count(warnings as u64, "warning")
            ),
        };
        let line = format!("{}: {found}, checked against {}", self.file, self.origin);
        let paint = app.out.paint;
        let line = match self.passed {
            true => paint.good(format!("✓ {line}")),
            false => paint.bad(format!("✗ {line}")),
        };
        Ok(writeln!(app.out, "{line}")?)
    }
}
