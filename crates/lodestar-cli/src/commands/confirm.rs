//! `lodestar confirm`: an operator says of one act, before it is asked for, whether they want it.

mod act;
mod plan;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use lodestar_core::name::ActorId;
use lodestar_core::statement::confirmation::{ConfirmedAct, DEFAULT_TTL};
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Nonce,
};
use lodestar_core::time::Timestamp;
use lodestar_guard::config::Config;
use lodestar_guard::confirmations::DropFolder;
use lodestar_policy::confirmation::{ConfirmationKey, ENVELOPE_NAME, Evidence, Mode};
use lodestar_policy::parse_duration;
use serde_json::json;

use crate::cli::App;
use crate::configured::{ConfigArgs, Configured};
use crate::failure::{Exit, Failure};
use crate::inert;
use crate::installation::{self, Installation};
use crate::operator::{self, OperatorArgs};
use act::Named;

const AFTER_HELP: &str = "\
A confirmation is evidence and runs nothing. A session that holds exactly this act looks for it,
spends it once, and counts it as one approval by the operator, if `[confirmations]` in the
configuration says `mode = \"enforce\"` and names the key. With `report-only`, the default, the log
says what would have matched. It is bound to one session and lasts 30 s unless --ttl says
otherwise: 15 minutes at most, and 24 hours for a contract review of what stays below L4. That
session exists already, or the configuration names it with `session_id`.

With --decline, the word is recorded when the act is held, and stops nothing by itself: people are
asked as they would be without it. `lodestar approve deny` ends a request.

Examples:
  lodestar confirm --tool fs.write --args call.json
  lodestar confirm --tool fs.write --args call.json --ttl 5m --operator alice
  lodestar confirm --tool fs.write --args call.json --decline
  lodestar confirm plan --json";

#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct ConfirmArgs {
    #[command(subcommand)]
    command: Option<ConfirmCommand>,

    #[command(flatten)]
    config: ConfigArgs,

    /// The tool that is going to be called
    #[arg(long, value_name = "TOOL", required = true)]
    tool: Option<String>,

    /// A file with its arguments, a JSON object
    #[arg(long, value_name = "FILE", required = true)]
    args: Option<PathBuf>,

    /// The session that is going to call it, which exists: its id, the beginning of it, or `latest`
    /// [default: the one that the configuration names, or else `latest`]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// How long it is good for
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,

    /// How it came about: `runtime-ui-confirm` or `operator-contract-review`
    /// [default: the only one that the key may sign for, or else `operator-contract-review`]
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<ConfirmationOrigin>,

    /// Record that the act is not wanted; this stops nothing by itself
    #[arg(long)]
    decline: bool,

    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Subcommand)]
enum ConfirmCommand {
    /// Say which channel is in use and what it may do; changes nothing
    Plan(plan::PlanArgs),
}

pub(crate) fn run(args: &ConfirmArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        Some(ConfirmCommand::Plan(args)) => plan::run(args, app),
        None => confirm(args, app),
    }
}

/// The configuration; there is nothing to confirm without one.
fn configured(args: &ConfigArgs, app: &App) -> Result<Configured, Failure> {
    args.find(app)?.ok_or_else(|| {
        Failure::not_found("there is no `lodestar.toml` here")
            .help("change to the project's folder, or name the file with --config")
    })
}

fn confirm(args: &ConfirmArgs, app: &mut App) -> Result<Exit, Failure> {
    let chosen = args.operator.parse()?;
    let (Some(tool), Some(file)) = (&args.tool, &args.args) else {
        return Err(Failure::usage("--tool and --args say what is confirmed")
            .help("for example: lodestar confirm --tool fs.write --args call.json"));
    };
    let configured = configured(&args.config, app)?;
    let config = &configured.config;
    let named = Named::read(config, tool, file)?;
    let session = act::session(config, args.session.as_deref())?;

    let installation = Installation::locate()?;
    let sealed = chosen.sealed(&installation, "a confirmation")?;
    let keys = &config.confirmations.keys;
    let owner = match (
        args.operator.name(),
        installation::operator_keys(&installation)?.as_slice(),
    ) {
        (Some(name), _) => Some(name.to_owned()),
        (None, [only]) => Some(only.as_str().to_owned()),
        (None, _) => None,
    };
    let key = keys.with_key(&sealed.public()).ok_or_else(|| {
        Failure::not_authorised(
            "this key is not in `confirmations.keys`, so nobody would trust what it signs",
        )
        .help(format!(
            "an operator adds it to `{}`:\n  [[confirmations.keys]]\n  public_key = \"{}\"\n  origins = [\"operator-contract-review\"]\n  operators = [\"{}\"]",
            inert::path(&configured.file),
            sealed.public(),
            owner.as_deref().unwrap_or("NAME")
        ))
    })?;
    let origin = origin(key, args.origin)?;
    let operator = operator_of(key, args.operator.name())?;
    let doubts = doubts(config, key, &operator, args.decline)?;
    let ttl = ttl(args.ttl, origin, &named)?;

    show(&named, args.decline, app);
    let secret = operator::open_in_person(sealed)?;
    let now = crate::commands::now();
    let expires = now.checked_add(ttl);
    let expires = expires.ok_or_else(|| Failure::usage("it would last beyond the year 9999"))?;
    let id = ConfirmationId::from_bytes(random()?);
    let decision = match args.decline {
        true => ConfirmationDecision::Decline,
        false => ConfirmationDecision::Confirm,
    };
    let confirmation = Confirmation {
        act: ConfirmedAct::from(&named.fields),
        decision,
        id,
        operator: operator.clone(),
        origin,
        session: session.clone(),
    };
    let evidence = Evidence::sign(
        confirmation,
        &secret,
        Nonce::from_bytes(random()?),
        now,
        expires,
    )
    .map_err(|e| Failure::usage(format!("the confirmation cannot be signed: {e}")))?;

    let folder = DropFolder::of(config);
    let failed = |problem| Failure::io(folder.path())(problem);
    let path = folder.put(named.found_by, id, &evidence).map_err(failed)?;
    folder.remove_expired(now).map_err(failed)?;
    if app.json {
        app.out.json(&json!({
            "envelope": ENVELOPE_NAME,
            "id": id,
            "decision": decision,
            "operator": operator,
            "origin": origin,
            "session": session,
            "tool": named.fields.tool,
            "fingerprint": named.fingerprint,
            "created_at": now,
            "expires_at": expires,
            "mode": config.confirmations.mode,
            "file": path.to_string_lossy(),
            "doubts": doubts,
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let done = match decision {
        ConfirmationDecision::Confirm => "✓ confirmed",
        ConfirmationDecision::Decline => "✓ declined",
    };
    let tool = inert::line(named.fields.tool.as_str(), 80);
    writeln!(app.out, "{} {}", paint.good(done), paint.strong(tool))?;
    writeln!(app.out, "  by           {operator}, {origin}")?;
    writeln!(app.out, "  for session  {session}")?;
    writeln!(app.out, "  until        {expires}")?;
    writeln!(app.out, "  fingerprint  {}", named.fingerprint)?;
    writeln!(app.out, "  file         {}", inert::path(&path))?;
    if decision == ConfirmationDecision::Decline {
        writeln!(app.out, "  recorded; it stops nothing by itself")?;
    }
    for doubt in doubts {
        app.note(doubt);
    }
    Ok(Exit::Done)
}

/// Why it may count for less than it seems; refused where it cannot count at all.
fn doubts(
    config: &Config,
    key: &ConfirmationKey,
    operator: &ActorId,
    decline: bool,
) -> Result<Vec<String>, Failure> {
    let now = crate::commands::now();
    let is_over = |at: Option<Timestamp>| at.is_some_and(|at| now >= at);
    if let Some(at) = key.revoked_at.filter(|at| now >= *at) {
        return Err(Failure::not_authorised(format!(
            "this key was revoked at {at}, so nobody would trust what it signs"
        ))
        .help("sign with another key of `confirmations.keys`"));
    }
    let mut doubts = Vec::new();
    let mut own = config.approvals.authorized_keys.approvers().iter();
    let is_approver = own.any(|one| one.actor == *operator && !is_over(one.revoked_at));
    if !is_approver && !decline {
        let problem =
            format!("`{operator}` is no approver here, so their word would count for nothing");
        let help = "an operator adds them to `approvals.authorized_keys` in the configuration";
        match config.confirmations.mode {
            Mode::Enforce => return Err(Failure::not_authorised(problem).help(help)),
            Mode::ReportOnly => doubts.push(format!("{problem}; {help}")),
        }
    }
    if config.confirmations.mode == Mode::ReportOnly {
        let what =
            "`confirmations.mode` is report-only: what matches is recorded and grants nothing";
        doubts.push(what.to_owned());
    }
    if config.approvals.default.requirement().quorum > 1 && !decline {
        doubts.push("more than one approver is needed, and this is the word of one".to_owned());
    }
    Ok(doubts)
}

/// What is going to be signed, before a passphrase is asked for.
fn show(named: &Named, decline: bool, app: &App) {
    let what = if decline { "declines" } else { "confirms" };
    let fields = &named.fields;
    let arguments = serde_json::to_string(&fields.arguments).unwrap_or_default();
    app.note(format!(
        "this {what} {} on {}, {}, with {}",
        inert::line(fields.tool.as_str(), 80),
        named.rung,
        fields.kind,
        // All of it: nobody signs for what was cut off.
        inert::whole(&arguments)
    ));
}

fn origin(
    key: &ConfirmationKey,
    asked: Option<ConfirmationOrigin>,
) -> Result<ConfirmationOrigin, Failure> {
    let only = match key.origins.len() {
        1 => key.origins.first().copied(),
        _ => None,
    };
    let origin = asked.or(only);
    let origin = origin.unwrap_or(ConfirmationOrigin::OperatorContractReview);
    if key.origins.contains(&origin) {
        return Ok(origin);
    }
    Err(
        Failure::not_authorised(format!("this key may not sign for origin `{origin}`"))
            .help(format!("it may sign for {}", listed(&key.origins))),
    )
}

/// In whose name the key signs: the name it was chosen by, or the only one there is.
fn operator_of(key: &ConfirmationKey, chosen: Option<&str>) -> Result<ActorId, Failure> {
    let mut operators = key.operators.iter();
    let by_name = chosen.and_then(|name| operators.clone().find(|one| one.as_str() == name));
    match (by_name, operators.next(), key.operators.len()) {
        (Some(one), _, _) | (None, Some(one), 1) => Ok(one.clone()),
        _ => Err(
            Failure::usage("this key may sign for several operators").help(format!(
                "say for whom with --operator: {}",
                listed(&key.operators)
            )),
        ),
    }
}

fn listed<T: std::fmt::Display>(names: &BTreeSet<T>) -> String {
    let names: Vec<String> = names.iter().map(T::to_string).collect();
    names.join(", ")
}

fn ttl(
    asked: Option<Duration>,
    origin: ConfirmationOrigin,
    named: &Named,
) -> Result<Duration, Failure> {
    let (ttl, longest) = (asked.unwrap_or(DEFAULT_TTL), origin.longest_ttl(named.rung));
    if ttl > longest {
        return Err(Failure::usage(format!(
            "{} s are longer than a confirmation by `{origin}` may last on {}: {} s",
            ttl.as_secs(),
            named.rung,
            longest.as_secs()
        ))
        .help("give a shorter --ttl, or confirm again later"));
    }
    Ok(ttl)
}

fn random() -> Result<[u8; 16], Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    Ok(bytes)
}
