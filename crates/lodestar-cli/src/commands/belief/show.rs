//! `lodestar belief show`: everything that the store has of one belief.

use std::io::Write as _;

use clap::Args;
use lodestar_firewall::row::keys::Standing;
use serde_json::{Value, json};

use super::one::{self, One, Wanted};
use super::text;
use crate::beliefs::{Beliefs, BeliefsArgs};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::{inert, words};

const AFTER_HELP: &str = "\
A belief that the default context does not hold is shown too; that it was looked at is recorded.

Examples:
  lodestar belief show blf_019a8f3c-1234-7abc-89ab
  lodestar belief show 019a8f3c --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ShowArgs {
    /// The belief: its id, or the beginning of it
    belief: String,

    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "belief show")]
    reason: String,
}

pub(crate) fn run(args: &ShowArgs, beliefs: &BeliefsArgs, app: &mut App) -> Result<Exit, Failure> {
    let wanted = Wanted::parse(&args.belief)?;
    let beliefs = Beliefs::find(beliefs, app)?;
    let one = one::look(&beliefs, &wanted, &args.reason, app)?;
    if app.json {
        app.out.json(&as_json(&one))?;
    } else {
        print(&one, &mut app.out)?;
    }
    Ok(Exit::Done)
}

pub(super) fn as_json(one: &One) -> Value {
    let history = one.history.iter();
    let history = history.map(|row| json!({"change": row.change, "at": row.at}));
    let mut value = text::json(&one.belief);
    if let Value::Object(fields) = &mut value {
        fields.insert("standing".to_owned(), json!(one.standing));
        fields.insert("history".to_owned(), history.collect());
        fields.insert("disputes".to_owned(), json!(one.disputes));
        fields.insert("recorded".to_owned(), json!(one.recorded));
    }
    value
}

fn print(one: &One, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let belief = &one.belief;
    let (record, claim) = (&belief.record, &belief.claim);
    writeln!(out, "{}", paint.strong(record.id))?;
    writeln!(out, "  {}", inert::whole(&claim.statement))?;
    writeln!(out, "  {}", text::axes(record))?;
    let columns = out.columns.saturating_sub(16);
    let mut field = |name: &str, value: &str| {
        let name = paint.dim(format!("{name:<12}"));
        writeln!(out, "  {name}  {value}")
    };
    field("subject", &inert::line(&claim.predicate.subject, columns))?;
    field("relation", &inert::line(&claim.predicate.relation, columns))?;
    let object = claim.predicate.object.to_string();
    field("object", &inert::line(&object, columns))?;
    field("scope", &inert::line(&record.scope.to_string(), columns))?;
    field("sensitivity", record.sensitivity.as_str())?;
    let class = inert::line(record.calibration_class.as_str(), columns);
    field("class", &class)?;
    let tool = belief.source.as_ref().map(text::tool);
    field("source", &tool.unwrap_or_else(|| "no tool".to_owned()))?;
    let observed = format!("{} UTC", words::seconds(record.observed_at));
    field("observed", &observed)?;
    let adopted = format!(
        "{} UTC at {}",
        words::seconds(record.adopted_at),
        text::place(&belief.adopted)
    );
    field("adopted", &adopted)?;
    let row = match one.standing {
        Standing::Genuine => paint.good(text::standing(one.standing)),
        _ => paint.bad(text::standing(one.standing)),
    };
    field("row", &row)?;
    print_evidence(one, out)?;
    print_history(one, out)
}

fn print_evidence(one: &One, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let claim = &one.belief.claim;
    writeln!(out, "{}", paint.strong("evidence"))?;
    for item in &one.belief.evidence.items {
        writeln!(out, "  {}", text::evidence(item))?;
        let from = format!("from {}", text::source(&item.source));
        writeln!(out, "    {}", paint.dim(from))?;
    }
    writeln!(out, "{}", paint.strong("lineage"))?;
    writeln!(out, "  {} by {}", claim.id, claim.extraction_method)?;
    for source in &claim.lineage.derived_from {
        writeln!(out, "  derived from {source}")?;
    }
    for origin in &claim.lineage.origins {
        writeln!(
            out,
            "  goes back to {} ({})",
            origin.observation, origin.quality
        )?;
    }
    Ok(())
}

fn print_history(one: &One, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    writeln!(out, "{}", paint.strong("history"))?;
    if one.history.is_empty() {
        writeln!(out, "  {}", paint.dim("nothing changed since"))?;
    }
    for row in &one.history {
        writeln!(
            out,
            "  {}  {}  by {}",
            paint.accent(text::place(&row.at)),
            text::moves(&row.change.moves),
            row.change.authority
        )?;
        let cause = text::cause(&row.change.cause);
        let detail = format!("{} UTC, {cause}", words::seconds(row.change.at));
        writeln!(out, "    {}", paint.dim(detail))?;
    }
    if let Some(dispute) = &one.disputes {
        writeln!(out, "{}", paint.strong("spoken against by"))?;
        for against in &dispute.against {
            writeln!(out, "  {against}")?;
        }
        if dispute.more {
            writeln!(out, "  {}", paint.dim("and more"))?;
        }
    }
    Ok(())
}
