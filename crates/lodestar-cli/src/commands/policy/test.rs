//! `lodestar policy test`: unit tests for a policy.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use lodestar_guard::config::{Approvals, Ceiling};
use lodestar_policy::{CaseResult, Ending, Gate, Policy, Suite};
use serde_json::{Value, json};

use crate::cli::App;
use crate::configured::{ConfigArgs, Tooling};
use crate::failure::{Exit, Failure};
use crate::{files, inert};

/// A suite is written by people.
const MAX_SUITE: u64 = 4 << 20;

const AFTER_HELP: &str = "\
A test file lists calls and the verdicts that the policy has to give:

  [[case]]
  name = \"reading runs\"
  tool = \"fs.read\"
  args = { path = \"notes.md\" }
  expect = \"allow\"                 # or hold, deny
  decided_by = [\"preset-run\"]      # optional

`level`, `agent`, `untrusted` and `beliefs` say more about a call.

Examples:
  lodestar policy test policy-tests.toml
  lodestar policy test policy-tests.toml --policy draft.cedar";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TestArgs {
    /// The file with the cases
    file: PathBuf,

    #[command(flatten)]
    config: ConfigArgs,

    /// Test this policy instead of the one in force; it need not be signed
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

pub(crate) fn run(args: &TestArgs, app: &mut App) -> Result<Exit, Failure> {
    let suite = suite(&args.file)?;
    let tooling = Tooling::find(&args.config, app)?;
    let policy = match (&args.policy, tooling.config()) {
        (Some(file), _) => super::read_unsigned(file)?,
        (None, Some(config)) => config.policy_in_force(None)?,
        (None, None) => Policy::preset(Ceiling::DEFAULT.get())
            .map_err(|problem| Failure::usage(problem.to_string()))?,
    };
    let config = tooling.config();
    let sentinels = config.map(|config| config.sentinels.clone());
    let approvals = config.map_or_else(
        || Approvals::default().default.requirement(),
        |config| config.approvals.default.requirement(),
    );
    let gate = Gate::new(
        policy,
        tooling.shapes(),
        sentinels.unwrap_or_default(),
        approvals,
    )
    .map_err(lodestar_guard::OpenError::from)?;
    let records = tooling.registry.records().into_iter();
    let contracts: BTreeMap<_, _> = records
        .map(|record| (record.shape.name, record.contract))
        .collect();
    let result = suite.run(&gate, &contracts);
    let summary = result.summary();
    if app.json {
        app.out.json(&json!({
            "passed": summary.passed,
            "failed": summary.failed,
            "policy": gate.policy().digest(),
            "cases": result.cases.iter().map(case).collect::<Vec<_>>(),
            "tools": tooling.json(),
        }))?;
    } else {
        tooling.note(app);
        for case in &result.cases {
            let line = inert::whole(&case.to_string());
            let line = match case.ending {
                Ending::Passed => line,
                _ => app.out.paint.bad(line),
            };
            writeln!(app.out, "{line}")?;
        }
        let line = format!("{} passed, {} failed", summary.passed, summary.failed);
        writeln!(app.out, "{line}")?;
        if result.cases.is_empty() {
            app.note("there is no case in it, and that is no success");
        }
    }
    Ok(if result.passed() {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
}

fn suite(file: &std::path::Path) -> Result<Suite, Failure> {
    let bytes = files::read(file, MAX_SUITE)?;
    let shown = inert::path(file);
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("`{shown}` is not UTF-8 text")))?;
    Suite::parse(&text).map_err(|problem| {
        let (line, column) = (problem.line, problem.column);
        Failure::usage(format!("`{shown}`:{line}:{column}: {}", problem.problem))
            .help("`lodestar policy test --help` shows what a case looks like")
    })
}

fn case(result: &CaseResult) -> Value {
    let (ending, found) = match &result.ending {
        Ending::Passed => ("passed", Value::Null),
        Ending::OtherVerdict { found } => ("other_verdict", json!(found)),
        Ending::OtherPolicies { found } => ("other_policies", json!(found)),
        Ending::Broken(error) => ("broken", json!(error.to_string())),
    };
    json!({
        "name": result.name,
        "expected": result.expected,
        "ending": ending,
        "found": found,
        "judgement": result.judgement,
    })
}
