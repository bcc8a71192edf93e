//! `lodestar undo`: puts back what an act wrote over, as an act of its own.
//!
//! The act is found in the log ([`find`]), the log is verified, what was kept is held against what stands there now
//! ([`plan`]), and the rest is a call of `fs.restore` in a governed session of the person's own.

mod find;
mod plan;
mod print;

use std::path::{Path, PathBuf};

use clap::Args;
use lodestar_guard::config::{Ceiling, Config, SessionName as ConfiguredName, Tools};
use lodestar_guard::{Holds, Outcome, Reply, Setup, WrapError, Wrapped, channel, wrap};
use lodestar_kernel::image::Imaged;
use lodestar_kernel::native::fs::{FsRestore, RESTORE};
use lodestar_kernel::record::Rejection;
use lodestar_log::Trust;

use self::find::{Act, Wanted};
use self::plan::Plan;
use super::guard::keys;
use super::replay;
use crate::beliefs::local_actor;
use crate::cli::App;
use crate::configured::{ConfigArgs, tools_of_servers};
use crate::failure::{Exit, Failure};
use crate::inert;
use crate::place::SessionName;
use crate::trust::{self, LogKeys};

/// How the names of sessions begin in which people undo acts.
pub(crate) const KIN: &str = "undo";

/// How a person is connected, as policies read it.
const EXECUTION: &str = "command-line";

/// Up to which rung a person's own command runs unasked where no policy says otherwise: undoing is of L3.
const CEILING: u8 = 3;

const AFTER_HELP: &str = "\
Before an act of L3 or above writes a file, what stands there is kept in the log. Undoing puts it back:
content, mode, links; what the act made is removed. The session is verified first. Undoing is an act of L3
itself, in a session of its own: judged, recorded, and can be undone.

A file that was changed since the act, or could have been, is left alone, and with it all others, unless
--force says so. What was not kept, or was redacted, is named, and the exit code is 1.

Examples:
  lodestar undo latest --dry-run
  lodestar undo act_019a8f3c
  lodestar undo act_019a8f3c --session s-0197 --force";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct UndoArgs {
    /// The act: its id, the beginning of it, or `latest`, which is the last that wrote and is no undoing
    #[arg(value_name = "ACTION")]
    action: String,

    /// Look only in this session: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// Show what would be put back, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Put back files that were, or may have been, changed since as well, and what can be where some cannot
    #[arg(long)]
    force: bool,

    /// Look only at this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    keys: LogKeys,
}

pub(crate) fn run(args: &UndoArgs, app: &mut App) -> Result<Exit, Failure> {
    let wanted = Wanted::parse(&args.action)?;
    let session = args.session.as_deref();
    let session = session.map(SessionName::parse).transpose()?;
    let place = app.place(args.project.as_deref())?;
    let sessions = match &session {
        Some(name) => vec![place.readable_session(name)?],
        None => place.sessions_latest_first()?,
    };
    let act = find::act(&sessions, &wanted)?;
    let proven = intact(&act, args, app)?;
    let kept = act.kept(proven)?;
    let config = match args.config.find(app)? {
        Some(configured) => configured.config,
        None => unconfigured(&act, &place.folder)?,
    };
    is_of_the_project(&kept.imaged, &config)?;
    let plan = Plan::of(&kept);
    if !args.dry_run && plan.is_to_be_done(args.force) {
        let done = put_back(&act, &kept.imaged, &plan, config, args.force)?;
        return print::done(&act, &plan, &done, args.force, app);
    }
    print::not_done(&act, &plan, args.dry_run, app)
}

/// Nothing is put back out of a log that was edited. Says how many events are proven.
fn intact(act: &Act, args: &UndoArgs, app: &App) -> Result<u64, Failure> {
    let (operators, witnesses) = trust::pinned()?;
    let trust = Trust {
        log_keys: args.keys.resolve()?,
        operators: operators.keys(),
        witnesses,
    };
    let dir = act.dir();
    let report = replay::verify(dir, &trust, app)?;
    if let Some(problem) = report.all_problems().next() {
        return Err(Failure::check(format!(
            "session `{}` is not intact, so nothing is put back out of it: {problem}",
            dir.session()
        ))
        .help("`lodestar log verify` names every problem"));
    }
    let session = report
        .sessions
        .iter()
        .find(|one| one.session == *dir.session());
    Ok(session.map_or(0, |session| session.proven))
}

/// A project that nobody configured, as a hook's may be: the preset, and nothing else.
fn unconfigured(act: &Act, folder: &Path) -> Result<Config, Failure> {
    let text = format!(
        "project_id = \"{}\"\nactor_id = \"{}\"\n",
        act.dir().project(),
        local_actor()
    );
    Ok(Config::parse(&text, folder)?)
}

/// An image may name any folder of its time; only what the configuration of today names is written to.
fn is_of_the_project(imaged: &Imaged, config: &Config) -> Result<(), Failure> {
    let root = imaged.root.as_path();
    let written = config.tools.fs_write.as_ref().map(|fs| fs.root.clone());
    let written = written.and_then(|root| root.canonicalize().ok());
    let is_there = root.canonicalize().is_ok_and(|real| real == root);
    let is_ours = root.starts_with(config.root()) || written.is_some_and(|one| one == root);
    match (is_there, is_ours) {
        (true, true) => Ok(()),
        (false, _) => Err(Failure::check(format!(
            "the act wrote below `{}`, which is no folder now, or lies elsewhere",
            inert::path(root)
        ))),
        (true, false) => Err(Failure::check(format!(
            "the act wrote below `{}`, outside of the project `{}`",
            inert::path(root),
            inert::path(config.root())
        ))),
    }
}

/// The session of a person's own, with the one tool in it.
fn put_back(
    act: &Act,
    imaged: &Imaged,
    plan: &Plan,
    mut config: Config,
    force: bool,
) -> Result<Wrapped<Reply>, Failure> {
    let keys = keys(&config)?;
    let root: PathBuf = imaged.root.as_path().to_owned();
    let scope = config
        .scope()
        .map_err(lodestar_guard::config::ConfigError::from)?;
    let tool = FsRestore::new(&root, plan.contents(), scope)
        .map_err(|problem| Failure::check(problem.to_string()))?;
    let people = channel::configured(&config).map_err(|e| Failure::usage(e.to_string()))?;
    config.actor_id = local_actor();
    config.session_id = ConfiguredName::Auto;
    (config.task, config.known_values, config.run) = (None, None, None);
    let setup = match config.policy {
        // It may name any tool of the project, and has to fit those of this session.
        Some(_) => {
            let servers = tools_of_servers(&config)?;
            let setup = Setup::new(config, keys).tools(servers);
            setup.absent("mcp.".to_owned())
        }
        None => {
            config.tools = Tools::default();
            config.tool_defaults.retain(|name, _| name == RESTORE);
            let ceiling = Ceiling::try_from(CEILING).map_err(Failure::usage)?;
            Setup::new(config, keys).ceiling(ceiling)
        }
    };
    let setup = setup
        .tool_graded(tool, FsRestore::grade())
        .holds(Holds::Tell(people))
        .execution(EXECUTION)
        .apart(KIN);
    let arguments = plan.restoration(act, force).arguments();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|problem| Failure::usage(format!("no threads can be started: {problem}")))?;
    let wrapped = runtime.block_on(wrap(
        |session| async move { session.call(RESTORE, arguments).await },
        setup,
    ));
    runtime.shutdown_timeout(super::guard::LEFT_BEHIND);
    wrapped.map_err(|error| match error {
        WrapError::Open(error) => Failure::from(error),
        WrapError::Loop(error)
        | WrapError::Close(error)
        | WrapError::LoopAndClose { problem: error, .. } => error.into(),
    })
}

/// Why a call of the tool did not put anything back.
fn refusal(reply: &Reply) -> Option<Failure> {
    match &reply.outcome {
        Outcome::Returned(_) => None,
        Outcome::Failed(error) => Some(Failure::check(format!("it failed: {error}"))),
        Outcome::Refused(why) => Some(match why {
            Rejection::ApprovalRequired { .. } | Rejection::ApprovalTimeout { .. } => {
                Failure::not_authorised(format!("nothing was put back yet: {why}"))
                    .help("`lodestar approve list` shows it; once it is granted, run the same command again")
            }
            Rejection::PolicyDenied { .. } => {
                Failure::check(format!("nothing was put back: {why}"))
                    .help("a policy of the project's own has to permit it: `docs/guides/undo.md` shows a rule that does")
            }
            why => Failure::check(format!("nothing was put back: {why}")),
        }),
    }
}
