//! `lodestar guard run`: a scripted agent, through the path that programs use.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lodestar_core::id::RunId;
use lodestar_guard::attend::Attendant;
use lodestar_guard::channel;
use lodestar_guard::config::{Ceiling, Config};
use lodestar_guard::script::{Done, Script, ScriptError, ScriptRun, StepRun};
use lodestar_guard::{Holds, Keys, Outcome, Setup, WrapError, Wrapped, wrap};
use lodestar_log::LogRoot;
use serde_json::{Value, json};

use super::waiting::Waiting;
use crate::bridge::{Became, Bridge};
use crate::cli::App;
use crate::commands::ceiling;
use crate::failure::{Exit, Failure};
use crate::gateway::DeviceDirArgs;
use crate::installation::Installation;
use crate::output::Out;
use crate::text::wrapped;
use crate::{files, inert, place, words};

/// Columns that the reason of a refusal may take, on as many rows as it needs.
const LONGEST_REASON: usize = 4000;
/// Room beside the name of a tool in which an id fits whole; else reasons start a row of their own.
const LEAST_ROOM: usize = 50;
const NARROW_INDENT: usize = 4;
/// A task is written by people.
const MAX_TASK: u64 = 1 << 20;

const AFTER_HELP: &str = "\
A script is TOML, or JSON with one step on each line (.jsonl):

  [[step]]
  call = \"fs.read\"
  args = { path = \"plan.md\" }
  expect = \"returned\"                 # or failed, refused; optional
  expect_kind = \"approval_required\"   # of what failed or was refused; optional
  note = \"why the step is there\"      # optional

  [[step]]
  observe = { source = \"mail\", text = \"content from elsewhere\" }

Held calls wait for people, who answer with `lodestar approve`, as long as `approval_timeout_ms`
says; stderr says which. Then, or at once where that is 0, they end, and their requests stay open.
A step that ends otherwise than expected exits with 1.

Before each step stands `ran`, or `hold` or `deny` where that is why it did not run; whether what
ran was asked for first, `lodestar policy explain` tells.

Examples:
  lodestar guard run --config lodestar.toml --script rehearsal.toml
  lodestar guard run --config lodestar.toml --script rehearsal.jsonl --auto-approve-up-to 3";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RunArgs {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The steps
    #[arg(long, value_name = "FILE")]
    script: PathBuf,

    /// Up to which rung calls run unasked, 0 to 3 [default: what the configuration says]
    #[arg(long, value_name = "RUNG", value_parser = ceiling)]
    auto_approve_up_to: Option<Ceiling>,

    #[command(flatten)]
    device: DeviceDirArgs,

    /// A file with the task: values in it count as given
    #[arg(long, value_name = "FILE")]
    task_file: Option<PathBuf>,

    /// The run that the session is, registered with `lodestar run start` [default: one is registered, if
    /// the configuration has `[run]`]
    #[arg(long, value_name = "RUN")]
    run: Option<RunId>,
}

pub(crate) fn run(args: &RunArgs, app: &mut App) -> Result<Exit, Failure> {
    let config = Config::read(&args.config)?;
    let script = Script::read(&args.script).map_err(|problem| refused(&args.script, problem))?;
    if args.auto_approve_up_to.is_some() && config.policy.is_some() {
        return Err(Failure::usage(
            "the configuration has a policy of its own, which --auto-approve-up-to would not change",
        )
        .help("leave the option out, or take `policy` out of the configuration"));
    }
    let task = args.task_file.as_deref().map(read_task).transpose()?;
    let root = config.root().to_owned();
    let keys = keys(&config)?;
    let bridge = Bridge::of(&config, &keys, args.run, &args.device)?;
    // People answer with `lodestar approve`, or through the server that the configuration names; how long a
    // call waits for them, the configuration says.
    let mut people = channel::configured(&config).map_err(|e| Failure::usage(e.to_string()))?;
    if config.approval_timeout_ms > 0 && !app.json {
        people.push(Arc::new(Waiting::default()));
    }
    let mut setup = Setup::new(config, keys).holds(Holds::Tell(people));
    if let Some(ceiling) = args.auto_approve_up_to {
        setup = setup.ceiling(ceiling);
    }
    if let Some(task) = task {
        setup = setup.task(task);
    }
    if let Some(bridge) = &bridge {
        setup = setup.attended(Arc::clone(bridge) as Arc<dyn Attendant>);
    }
    let wrapped = follow(&script, setup, app)?;
    let became = bridge.map(|bridge| bridge.became());
    let run = &wrapped.value;
    if app.json {
        let mut told = json!({
            "session": wrapped.session,
            "met": run.met(),
            "missed": run.missed(),
            "counts": wrapped.counts,
            "abandoned": wrapped.abandoned,
            "steps": run.steps.iter().map(step_json).collect::<Vec<_>>(),
        });
        if let Some(became) = became.iter().flatten().next() {
            told["run"] = json!(became);
        }
        app.out.json(&told)?;
    } else {
        print_end(&wrapped, &root, &mut app.out)?;
        for became in became.iter().flatten() {
            print_became(became, &mut app.out)?;
        }
    }
    Ok(if run.met() {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
}

fn follow(script: &Script, setup: Setup, app: &mut App) -> Result<Wrapped<ScriptRun>, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|problem| Failure::usage(format!("no threads can be started: {problem}")))?;
    let names = script.steps.len().to_string().len();
    let mut printed = Ok(());
    let (out, json) = (&mut app.out, app.json);
    let told = |step: &StepRun| {
        if !json && printed.is_ok() {
            // Whoever looks on sees it before the next one waits for somebody.
            printed = print_step(step, names, out).and_then(|()| Ok(out.flush()?));
        }
    };
    let wrapped = runtime.block_on(wrap(
        |session| async move { script.follow(&session, told).await },
        setup,
    ));
    runtime.shutdown_timeout(super::LEFT_BEHIND);
    let wrapped = wrapped.map_err(|error| match error {
        WrapError::Open(error) => Failure::from(error),
        WrapError::Loop(error) | WrapError::Close(error) => error.into(),
        WrapError::LoopAndClose { problem, unclosed } => {
            eprintln!("lodestar: the session could not be closed: {unclosed}");
            problem.into()
        }
    })?;
    printed?;
    Ok(wrapped)
}

/// A log that was begun is continued by the installation that began it, or not at all.
pub(crate) fn keys(config: &Config) -> Result<Keys, Failure> {
    let installation = Installation::locate()?;
    let dir = installation.dir();
    let real = std::path::absolute(dir).map_err(Failure::io(dir))?;
    let real = real.canonicalize().unwrap_or(real);
    if real.starts_with(config.root()) {
        return Err(Failure::usage(format!(
            "the keys would lie in the project (`{}`), where an agent's tools work",
            inert::path(dir)
        ))
        .help("let LODESTAR_CONFIG_DIR name a directory outside of it"));
    }
    let log = LogRoot::at(config.path(&config.log_root)).project(&config.project_id);
    if log.ledger_path().exists() {
        installation.log_secret()?;
    }
    Ok(Keys::at(dir)?)
}

pub(super) fn read_task(file: &Path) -> Result<String, Failure> {
    String::from_utf8(files::read(file, MAX_TASK)?)
        .map_err(|_| Failure::usage(format!("`{}` is not UTF-8 text", inert::path(file))))
}

fn refused(file: &Path, problem: ScriptError) -> Failure {
    match problem {
        ScriptError::Read { path, problem } => Failure::io(path)(problem),
        problem => Failure::usage(format!("`{}`: {problem}", inert::path(file)))
            .help("`lodestar guard run --help` shows what a script looks like"),
    }
}

/// What came of a step, in a few words.
fn outcome(step: &StepRun) -> String {
    let reply = match &step.done {
        Done::Observed { observation, .. } => return format!("observed as {observation}"),
        Done::Called { reply, .. } => reply,
    };
    match &reply.outcome {
        Outcome::Returned(output) if output.is_error => {
            format!("returned an error: {}", reply.for_agent())
        }
        Outcome::Returned(_) => format!("returned: {}", reply.for_agent()),
        Outcome::Failed(error) => format!("failed: {error}"),
        Outcome::Refused(why) => format!("refused ({}): {why}", why.kind()),
    }
}

fn name(step: &StepRun) -> &str {
    match &step.done {
        Done::Called { tool, .. } => tool,
        Done::Observed { source, .. } => source,
    }
}

fn print_step(step: &StepRun, digits: usize, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let verdict = step.verdict();
    let ran = step.was_run();
    let word = match (verdict, ran) {
        (Some(verdict), _) => verdict.as_str(),
        (None, true) => "ran",
        (None, false) => "-",
    };
    let word = format!("{word:<5}");
    let word = match (verdict, ran) {
        (Some(_), _) => paint.warn(word),
        (None, true) => paint.good(word),
        (None, false) => paint.dim(word),
    };
    let tool = format!("{:<14}", inert::line(name(step), 40));
    let text = outcome(step).replace('\n', " ");
    let lead = format!("{:>digits$}  {word}  {tool}", step.number);
    let indent = digits + 5 + 14 + 6;
    let room = out.columns.saturating_sub(indent);
    // What a tool returned is its own to tell at length; why something was refused is for people, who
    // copy ids out of it.
    let is_reason = matches!(&step.done, Done::Called { reply, .. } if !matches!(reply.outcome, Outcome::Returned(_)));
    if !is_reason {
        writeln!(out, "{lead}  {}", inert::line(&text, room))?;
    } else {
        let (lead, indent) = match room {
            ..LEAST_ROOM => (format!("{lead}\n"), NARROW_INDENT),
            _ => (format!("{lead}  "), indent),
        };
        let rows = wrapped(&inert::line(&text, LONGEST_REASON), out.columns - indent);
        let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
        let between = format!("\n{:indent$}", "");
        let first = if lead.ends_with('\n') {
            &between[1..]
        } else {
            ""
        };
        writeln!(out, "{lead}{first}{}", rows.join(&between))?;
    }
    if let Some(missed) = &step.missed {
        let line = format!("✗ line {} of the script: {missed}", step.line);
        writeln!(out, "{:>digits$}  {}", "", paint.bad(line))?;
    }
    Ok(())
}

fn print_end(wrapped: &Wrapped<ScriptRun>, root: &Path, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let counts = wrapped.counts;
    let line = format!(
        "session {}: {}, of these {} ran and {} did not; {} held",
        wrapped.session,
        words::count(counts.calls, "call"),
        counts.ran,
        counts.refused,
        match counts.held {
            1 => "1 was".to_owned(),
            held => format!("{held} were"),
        },
    );
    writeln!(out, "{}", paint.strong(line))?;
    let missed = wrapped.value.missed() as u64;
    if missed > 0 {
        let line = format!(
            "✗ {} ended otherwise than expected",
            words::count(missed, "step")
        );
        writeln!(out, "{}", paint.bad(line))?;
    }
    for abandoned in &wrapped.abandoned {
        let line = format!(
            "! session {} was opened under another configuration and is not taken up again: {} closed",
            abandoned.session,
            words::count(abandoned.requests as u64, "open request"),
        );
        writeln!(out, "{}", paint.warn(line))?;
    }
    for ignored in wrapped.calibration.iter().flat_map(|one| &one.ignored) {
        let line = format!(
            "! a calibration does not count: {}",
            inert::line(ignored, 300)
        );
        writeln!(out, "{}", paint.warn(line))?;
    }
    let at = match place::here().is_ok_and(|here| here.starts_with(root)) {
        true => String::new(),
        false => format!(" --root {}", inert::path(root)),
    };
    let session = &wrapped.session;
    let waits = (counts.held > 0).then(|| format!("lodestar approve list{at}"));
    let look = [
        format!("lodestar log show {session}{at}"),
        format!("lodestar replay {session}{at}"),
    ];
    for command in waits.into_iter().chain(look) {
        writeln!(out, "  {}", paint.dim(command))?;
    }
    let step = wrapped.value.steps.iter().find_map(StepRun::action);
    if let Some(action) = step {
        let command = format!("lodestar policy explain {session} {action}{at}");
        writeln!(out, "  {}", paint.dim(command))?;
    }
    Ok(())
}

fn print_became(became: &Became, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let run = became.run.map(|id| format!("{id}  "));
    let run = run.unwrap_or_default();
    let line = match &became.level {
        Some(level) => format!("{run}{}, the gateway says", paint.strong(level)),
        None => paint.warn(format!("! {run}not attested; stderr says why")),
    };
    writeln!(out, "{line}")?;
    Ok(())
}

fn step_json(step: &StepRun) -> Value {
    let mut json = json!({
        "number": step.number,
        "line": step.line,
        "note": step.note,
        "verdict": step.verdict(),
        "missed": step.missed.as_ref().map(ToString::to_string),
    });
    match &step.done {
        Done::Observed {
            source,
            observation,
        } => json["observed"] = json!({"source": source, "observation": observation}),
        Done::Called { tool, reply } => {
            let (ending, kind) = match &reply.outcome {
                Outcome::Returned(_) => ("returned", Value::Null),
                Outcome::Failed(error) => ("failed", json!(error.kind)),
                Outcome::Refused(why) => ("refused", json!(why.kind())),
            };
            json["called"] = json!({
                "tool": tool,
                "action": reply.action,
                "seq": reply.seq,
                "ending": ending,
                "kind": kind,
                "text": reply.for_agent(),
            });
        }
    }
    json
}
