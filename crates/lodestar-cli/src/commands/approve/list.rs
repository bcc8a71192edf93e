//! `lodestar approve list`

use std::io::Write as _;

use clap::Args;
use lodestar_guard::channel::drop::Shown;
use serde_json::{Value, json};

use super::text::{Line, Tone};
use super::{answer, card, pile};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::{inert, words};

const AFTER_HELP: &str = "\
Examples:
  lodestar approve list
  lodestar approve list --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ListArgs {}

pub(crate) fn run(_: &ListArgs, app: &mut App) -> Result<Exit, Failure> {
    let pile = pile(app)?;
    if app.json {
        let requests: Vec<Value> = pile.requests().map(brief).collect();
        let unusable: Vec<Value> = pile
            .unusable()
            .map(|(id, session, why)| {
                json!({"request": id, "session": session, "problem": why.to_string()})
            })
            .collect();
        app.out
            .json(&json!({"requests": requests, "unusable": unusable}))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let columns = app.out.columns;
    let mut none = true;
    for shown in pile.requests() {
        none = false;
        let line = row(shown, columns).fitted(columns).painted(paint);
        writeln!(app.out, "{line}")?;
    }
    for (id, _, why) in pile.unusable() {
        none = false;
        let text = inert::line(&format!("not shown: {why}"), columns.saturating_sub(30));
        writeln!(app.out, "{}  {}", words::short_id(&id), paint.bad(text))?;
    }
    if none {
        writeln!(app.out, "nothing waits for a person here")?;
    }
    Ok(Exit::Done)
}

/// One request on one line: the parts that an agent chose stand last.
pub(crate) fn row(shown: &Shown, columns: usize) -> Line {
    let announcement = shown.announcement();
    let request = &announcement.request;
    let action = &request.card.action;
    let left = card::left(answer::now(), request.expires_at);
    let tone = match left == card::EXPIRED {
        true => Tone::Bad,
        false => Tone::Plain,
    };
    let tool = inert::line(action.tool.as_str(), columns.saturating_sub(56).max(20));
    Line::of(Tone::Strong, words::short_id(&request.id))
        .and(Tone::Plain, format!("  {}", action.contract.required_level))
        .and(tone, format!("  {left:<8}"))
        .and(
            Tone::Dim,
            format!(
                "  {} of {} missing",
                announcement.missing, request.requirement.quorum
            ),
        )
        .and(Tone::Plain, format!("  {tool}"))
}

pub(crate) fn brief(shown: &Shown) -> Value {
    let announcement = shown.announcement();
    let request = &announcement.request;
    let action = &request.card.action;
    json!({
        "request": request.id,
        "session": request.session,
        "project": announcement.project,
        "tool": action.tool,
        "server": action.server,
        "level": action.contract.required_level,
        "fingerprint": action.fingerprint,
        "requirement": request.requirement,
        "granted_by": announcement.granted_by,
        "missing": announcement.missing,
        "answers_sent": shown.answers(),
        "created_at": request.created_at,
        "expires_at": request.expires_at,
    })
}
