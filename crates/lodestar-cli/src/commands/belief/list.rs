//! `lodestar belief list`: the default context, or with `--all` everything there is.

use std::io::Write as _;

use clap::Args;
use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};
use lodestar_core::scope::Scope;
use lodestar_firewall::row::keys::Standing;
use lodestar_firewall::store::ListQuery;
use lodestar_firewall::{Audit, AuditRow, Context, ContextPolicy, Left};
use serde_json::{Value, json};

use super::text;
use crate::beliefs::{Beliefs, BeliefsArgs, local_actor};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::{inert, words};

const AFTER_HELP: &str = "\
Shown is what a planner would get: supported, normal and clean, not older than 30 days, at most
internal; what speaks against it and what is not fresh any more stand below. --all shows every
belief there is, whatever it is worth; that it was read is recorded in the log, with the reason.

Examples:
  lodestar belief list
  lodestar belief list --text \"api host\" --limit 10
  lodestar belief list --all --security quarantined --reason \"weekly look\"
  lodestar belief list --all --containing DEVELOPMENT.md --json";

/// What goes on record where no reason is given.
const DEFAULT_REASON: &str = "belief list --all";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ListArgs {
    /// What holds there [default: the project, with --all everything]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<Scope>,

    /// Only beliefs that have all these words
    #[arg(long, value_name = "WORDS", conflicts_with = "all")]
    text: Option<String>,

    /// Show at most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    /// Read past the context policy: everything, for audits
    #[arg(long)]
    all: bool,

    /// Why, for the record
    #[arg(long, value_name = "TEXT", requires = "all")]
    reason: Option<String>,

    /// Only beliefs that stand so on truth
    #[arg(long, value_name = "STATE", requires = "all")]
    truth: Option<Truth>,

    /// Only beliefs that stand so on retrieval
    #[arg(long, value_name = "STATE", requires = "all")]
    retrieval: Option<Retrieval>,

    /// Only beliefs that stand so on security
    #[arg(long, value_name = "STATE", requires = "all")]
    security: Option<Security>,

    /// Only beliefs that stand so on freshness
    #[arg(long, value_name = "STATE", requires = "all")]
    freshness: Option<Freshness>,

    /// Only beliefs that this session adopted
    #[arg(long, value_name = "SESSION", requires = "all")]
    session: Option<String>,

    /// Only beliefs whose subject or statement has this text
    #[arg(long, value_name = "TEXT", requires = "all")]
    containing: Option<String>,
}

pub(crate) fn run(args: &ListArgs, beliefs: &BeliefsArgs, app: &mut App) -> Result<Exit, Failure> {
    let beliefs = Beliefs::find(beliefs, app)?;
    match args.all {
        true => everything(args, &beliefs, app),
        false => context(args, &beliefs, app),
    }
}

fn context(args: &ListArgs, beliefs: &Beliefs, app: &mut App) -> Result<Exit, Failure> {
    let scope = args.scope.clone().unwrap_or_else(|| beliefs.scope());
    let mut firewall = beliefs.reading(app)?;
    let policy = ContextPolicy::default();
    let text = args.text.as_deref();
    let context = firewall.context(&policy, &scope, text, args.limit)?;
    if app.json {
        app.out.json(&json!({
            "project": beliefs.log.project(),
            "scope": scope,
            "context": context,
        }))?;
    } else {
        print_context(&context, &scope, &mut app.out)?;
    }
    Ok(Exit::Done)
}

fn print_context(context: &Context, scope: &Scope, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let scope = inert::line(&scope.to_string(), 120);
    if context.beliefs.is_empty() {
        let nothing = format!("nothing is believed in `{scope}` that a planner may use");
        writeln!(out, "{}", paint.dim(nothing))?;
    } else {
        print_beliefs(context, out)?;
    }
    for dispute in &context.contradictions {
        let against: Vec<_> = dispute.against.iter().map(words::short_id).collect();
        let more = if dispute.more { " and more" } else { "" };
        writeln!(
            out,
            "{} {} is spoken against by {}{more}",
            paint.warn("contradicted:"),
            words::short_id(&dispute.belief),
            against.join(", ")
        )?;
    }
    for id in &context.uncertainties {
        let old = context.beliefs.iter().find(|belief| belief.id == *id);
        let freshness = old.map_or("old", |belief| belief.freshness.as_str());
        writeln!(
            out,
            "{} {} is {freshness}",
            paint.warn("uncertain:"),
            words::short_id(id)
        )?;
    }
    for Left { id, standing } in &context.left_out {
        let id = id.map_or_else(|| "a row without an id".to_owned(), |id| id.to_string());
        writeln!(
            out,
            "{} {id}, {}; see `lodestar store status`",
            paint.bad("left out:"),
            text::standing(*standing)
        )?;
    }
    Ok(())
}

fn print_beliefs(context: &Context, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let room = out.columns.saturating_sub(4);
    for belief in &context.beliefs {
        writeln!(
            out,
            "{}  {}  confidence {:.2} · freshness={}",
            paint.strong(words::short_id(&belief.id)),
            paint.accent(format!("{}#{}", inert::whole(&belief.session), belief.seq)),
            belief.confidence.get(),
            belief.freshness
        )?;
        writeln!(out, "    {}", inert::line(&belief.statement, room))?;
    }
    Ok(())
}

fn everything(args: &ListArgs, beliefs: &Beliefs, app: &mut App) -> Result<Exit, Failure> {
    let query = ListQuery {
        scopes: args.scope.as_ref().map(|scope| vec![scope.to_string()]),
        containing: args.containing.clone(),
        truth: args.truth,
        retrieval: args.retrieval,
        security: args.security,
        freshness: args.freshness,
        session: args.session.clone(),
        limit: args.limit,
    };
    let reason = args.reason.as_deref().unwrap_or(DEFAULT_REASON);
    let audit = beliefs.in_session("a privileged reading", local_actor(), app, |session| {
        let (firewall, _, recorder) = session.parts();
        Ok(firewall.audit(&query, reason, recorder)?)
    })?;
    app.note(format!(
        "this reads past the context policy; it is on record at {}",
        text::place(&audit.at)
    ));
    if app.json {
        let rows: Vec<_> = audit.rows.iter().map(row_json).collect();
        app.out.json(&json!({
            "project": beliefs.log.project(),
            "recorded": audit.at,
            "reason": reason,
            "rows": rows,
        }))?;
    } else {
        print_all(&audit, args.limit, &mut app.out)?;
    }
    Ok(Exit::Done)
}

fn row_json(row: &AuditRow) -> Value {
    match &row.belief {
        Ok(belief) => json!({
            "id": row.id,
            "standing": row.standing,
            "counts_as": row.counts_as(),
            "stored": text::json(belief),
        }),
        Err(error) => json!({
            "id": row.id,
            "standing": row.standing,
            "error": error.to_string(),
        }),
    }
}

fn print_all(audit: &Audit, limit: usize, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let room = out.columns.saturating_sub(4);
    for row in &audit.rows {
        let (Ok(belief), Some(counts_as)) = (&row.belief, row.counts_as()) else {
            let error = row.belief.as_ref().err().map(ToString::to_string);
            writeln!(
                out,
                "{}  {}",
                inert::line(&row.id, 60),
                paint.bad(inert::whole(&error.unwrap_or_default()))
            )?;
            continue;
        };
        writeln!(
            out,
            "{}  {}",
            paint.strong(words::short_id(&belief.record.id)),
            paint.accent(text::place(&belief.adopted))
        )?;
        let statement = inert::line(&belief.claim.statement, room);
        writeln!(out, "    {statement}")?;
        writeln!(out, "    {}", text::axes(&counts_as))?;
        if row.standing != Standing::Genuine {
            let worth = format!("row {}", text::standing(row.standing));
            writeln!(out, "    {}", paint.bad(worth))?;
        }
    }
    let shown = words::count(audit.rows.len() as u64, "belief");
    let end = match audit.rows.len() {
        rows if rows == limit => format!("{shown}; --limit may hide more"),
        _ => shown,
    };
    writeln!(out, "{}", paint.dim(end))?;
    Ok(())
}
