//! `lodestar run terms`: what runs are judged by, out of a session that somebody looked at.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use lodestar_core::statement::{Envelope, Order};
use lodestar_gateway::run::opening_of;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::registry::GradedBy;
use lodestar_log::verify::verify_session;
use lodestar_log::{Ledger, SessionDir, Trust};
use lodestar_policy::SignatureState;
use lodestar_policy::confirmation::Mode;
use lodestar_replay::terms::{MAX_TERMS_LEN, Terms, TermsPolicy};
use serde_json::json;

use crate::cli::App;
use crate::configured::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::gateway::{GatewayArgs, all, wait};
use crate::owner::{Owner, SigningArgs};
use crate::place::SessionName;
use crate::trust::{self, LogKeys};
use crate::{files, inert, words};

const AFTER_HELP: &str = "\
Terms are what the gateway judges runs by: the policy with the keys that sign it, the approvers, and the
tools with their grades. They are taken from the opening of a session that you looked at (`lodestar
report`, `lodestar tools list`), and the owner signs them; what a run's own log says of them later counts
for nothing. A run that differs in any of it does not pass. The policy has to be signed, or one of
Lodestar's own.

With --out they are only written to a file, which the owner registers elsewhere with --file.

Examples:
  lodestar run terms latest
  lodestar run terms latest --out terms.json
  lodestar run terms --file terms.json
  lodestar run terms --list";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TermsArgs {
    /// The session that they are taken from: its id, the beginning of it, or `latest`
    #[arg(required_unless_present_any = ["file", "list"])]
    session: Option<String>,

    /// Write the terms to this file, and register nothing
    #[arg(long, value_name = "FILE", requires = "session")]
    out: Option<PathBuf>,

    /// Register the terms in this file
    #[arg(long, value_name = "FILE", conflicts_with = "session")]
    file: Option<PathBuf>,

    /// List the terms that the account registered
    #[arg(long, conflicts_with_all = ["session", "file"])]
    list: bool,

    #[command(flatten)]
    config: ConfigArgs,

    /// Look only at this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    #[command(flatten)]
    signing: SigningArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &TermsArgs, app: &mut App) -> Result<Exit, Failure> {
    if args.list {
        return list(args, app);
    }
    let terms = match (&args.file, &args.session) {
        (Some(file), _) => read(file)?,
        (None, Some(session)) => of_session(session, args, app)?,
        (None, None) => return Err(Failure::usage("name a session, or a file with --file")),
    };
    let refused = |problem: lodestar_replay::terms::TermsError| {
        Failure::check(format!("no run could be judged by these terms: {problem}"))
    };
    terms.check(crate::commands::now()).map_err(refused)?;
    match &args.out {
        Some(out) => write(&terms, out, app),
        None => register(&terms, args, app),
    }
}

fn of_session(session: &str, args: &TermsArgs, app: &App) -> Result<Terms, Failure> {
    let name = SessionName::parse(session)?;
    let dir = app
        .place(args.project.as_deref())?
        .readable_session(&name)?;
    let (operators, witnesses) = trust::pinned()?;
    let trust = Trust {
        log_keys: LogKeys::default().resolve()?,
        operators: operators.keys(),
        witnesses,
    };
    intact(&dir, &trust)?;
    let opening = opening_of(&dir).map_err(|problem| Failure::check(problem.to_string()))?;
    let signed = signed(&opening, args, app)?;
    Terms::of_opening(&opening, signed, operators.keys())
        .map_err(|problem| Failure::check(problem.to_string()))
}

/// Nothing is taken from a log that somebody changed.
fn intact(dir: &SessionDir, trust: &Trust) -> Result<(), Failure> {
    let log = dir.project_log();
    let (ledger, problems) =
        Ledger::read(&log, trust, &BTreeSet::new()).map_err(Failure::io(log.ledger_path()))?;
    let facts = ledger.session(dir.session());
    let report = verify_session(dir, facts, trust, &|_| {}).map_err(Failure::io(dir.dir()))?;
    match problems.first().or(report.problems.first()) {
        None => Ok(()),
        Some(problem) => Err(Failure::check(format!(
            "session `{}` is not as it was written: {problem}",
            dir.session()
        ))
        .help("`lodestar log verify` lists everything that is wrong")),
    }
}

/// The signature that puts the session's policy into force, and whose counts, out of the configuration.
fn signed(
    opening: &Opening,
    args: &TermsArgs,
    app: &App,
) -> Result<Option<(Envelope, Vec<lodestar_core::key::PublicKey>)>, Failure> {
    if !matches!(opening.policy.signature, SignatureState::Signed { .. }) {
        return Ok(None);
    }
    let missing = || {
        Failure::usage("the session's policy is signed, and no configuration here names it")
            .help("name the configuration with --config")
    };
    let configured = args.config.find(app)?.ok_or_else(missing)?;
    let policy = configured.config.policy.as_ref().ok_or_else(missing)?;
    let path = configured.config.path(&policy.signature());
    let bytes = files::read(&path, files::SMALL)?;
    let envelope = Envelope::from_json(&bytes).map_err(|problem| {
        Failure::usage(format!(
            "`{}` is no signature: {problem}",
            inert::path(&path)
        ))
    })?;
    Ok(Some((envelope, policy.keys.clone())))
}

fn read(file: &Path) -> Result<Terms, Failure> {
    let bytes = files::read(file, MAX_TERMS_LEN as u64)?;
    Terms::parse(&bytes)
        .map_err(|problem| Failure::usage(format!("`{}`: {problem}", inert::path(file))))
}

fn document(terms: &Terms) -> Result<Vec<u8>, Failure> {
    let document = terms.document();
    document.map_err(|problem| Failure::usage(format!("the terms have no form: {problem}")))
}

fn write(terms: &Terms, out: &Path, app: &mut App) -> Result<Exit, Failure> {
    let document = document(terms)?;
    let digest = lodestar_core::digest::sha256(&document);
    files::replace(out, |file| Ok(file.write_all(&document)?))?;
    if app.json {
        let file = out.to_string_lossy();
        app.out.json(&json!({"file": file, "digest": digest}))?;
        return Ok(Exit::Done);
    }
    let mark = app.out.paint.good("✓");
    writeln!(app.out, "{mark} {}", inert::path(out))?;
    write!(app.out, "{}", about(terms))?;
    writeln!(app.out, "  digest     {digest}")?;
    Ok(Exit::Done)
}

fn register(terms: &Terms, args: &TermsArgs, app: &mut App) -> Result<Exit, Failure> {
    let chosen = args.signing.operator.parse()?;
    let client = args.gateway.owner()?;
    let document = document(terms)?;
    let digest = lodestar_core::digest::sha256(&document);
    let value =
        serde_json::from_slice(&document).map_err(|problem| Failure::usage(problem.to_string()))?;
    let question = format!(
        "{}  digest     {digest}\nYou sign: later runs are judged by these terms",
        about(terms)
    );
    args.signing.confirm(&question)?;
    let done = wait(async {
        let owner = Owner::come(client, &chosen, "an order to a gateway").await?;
        let order = Order::RegisterTerms { terms: digest };
        owner.order(order, Some(value)).await
    })??;
    if app.json {
        app.out
            .json(&json!({"terms": done.terms, "digest": digest, "order": done.order}))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let id = done.terms.map(|id| id.to_string()).unwrap_or_default();
    writeln!(app.out, "{} {}", paint.good("✓"), paint.strong(id))?;
    write!(app.out, "{}", about(terms))?;
    writeln!(app.out, "  digest     {digest}")?;
    Ok(Exit::Done)
}

/// What somebody signs, in a few lines.
fn about(terms: &Terms) -> String {
    let policy = match &terms.policy {
        TermsPolicy::Preset { ceiling } => {
            format!("Lodestar's own: unasked up to L{ceiling}")
        }
        TermsPolicy::Signed { keys, .. } => {
            format!(
                "signed; {} may sign it",
                words::count(keys.len() as u64, "key")
            )
        }
    };
    let agents = terms
        .agents
        .iter()
        .map(|it| inert::line(it.actor.as_str(), 60));
    let tools = terms.tools.iter().map(|tool| {
        let level = tool.contract.required_level;
        let nobody = match tool.graded_by {
            GradedBy::Nobody => " (graded by nobody)",
            GradedBy::Operator | GradedBy::Box => "",
        };
        format!(
            "{} {level}{nobody}",
            inert::line(tool.shape.name.as_str(), 60)
        )
    });
    let tools: Vec<String> = tools.collect();
    let tools = match tools.is_empty() {
        true => "none".to_owned(),
        false => tools.join(", "),
    };
    let mut told = format!(
        "  policy     {policy}\n  agents     {}\n  tools      {tools}\n",
        agents.collect::<Vec<_>>().join(", "),
    );
    told += &approvers(terms);
    if !terms.operators.is_empty() {
        let keys = terms.operators.iter().map(|key| key.key_id().to_string());
        told += &format!("  operators  {}\n", keys.collect::<Vec<_>>().join(", "));
    }
    told
}

/// Whose word lets a run do what it may not do unasked: a file that came from a device could name anybody.
fn approvers(terms: &Terms) -> String {
    let mut told = String::new();
    for (n, approver) in terms.approvers.approvers().iter().enumerate() {
        let what = if n == 0 { "approvers" } else { "" };
        let roles = approver.roles.iter().map(|role| inert::line(role, 40));
        let roles = match approver.roles.is_empty() {
            true => String::new(),
            false => format!(" as {}", roles.collect::<Vec<_>>().join(", ")),
        };
        told += &format!(
            "  {what:<9}  {} up to {}{roles}, key {}\n",
            inert::line(approver.actor.as_str(), 60),
            approver.clearance,
            approver.public_key.key_id(),
        );
    }
    if told.is_empty() {
        told += "  approvers  nobody: what has to be asked for never runs\n";
    }
    told += &format!(
        "  quorum     {} of them, where no policy says otherwise\n",
        words::number(terms.approvals_default.quorum.into())
    );
    for key in terms.confirmations.keys.keys() {
        let names = key
            .operators
            .iter()
            .map(|name| inert::line(name.as_str(), 60));
        told += &format!(
            "  confirms   {}, key {}{}\n",
            names.collect::<Vec<_>>().join(", "),
            key.public_key.key_id(),
            match terms.confirmations.mode {
                Mode::Enforce => ", counted as an approval",
                Mode::ReportOnly => ", only recorded",
            }
        );
    }
    told
}

fn list(args: &TermsArgs, app: &mut App) -> Result<Exit, Failure> {
    let client = args.gateway.owner()?;
    let found = wait(all(
        |after| client.all_terms(after),
        |next| next.parse().ok(),
    ))??;
    for terms in &found {
        match app.json {
            true => app.out.json(terms)?,
            false => writeln!(
                app.out,
                "{}  {} UTC  {}",
                terms.id,
                words::seconds(terms.registered_at),
                terms.digest
            )?,
        }
    }
    Ok(Exit::Done)
}
