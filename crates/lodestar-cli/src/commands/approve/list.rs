//! `lodestar approve list`

use std::collections::BTreeMap;
use std::io::Write as _;

use clap::Args;
use lodestar_core::id::RequestId;
use lodestar_guard::channel::drop::Shown;
use serde_json::{Value, json};

use super::{answer, card, pile};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::text::{Line, Tone, wrapped};
use crate::{inert, words};

/// With fewer columns, a row has only what tells requests apart.
const WIDE: usize = 60;
/// Of an id, at least the moment stands there.
const SHORTEST_ID: usize = 13;
/// Most lines about what is not shown.
const MOST_UNUSABLE: usize = 20;

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
        app.out.json(&json!({
            "requests": requests,
            "unusable": unusable,
            "problems": pile.troubles(),
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let columns = app.out.list_columns();
    let mut ids: BTreeMap<RequestId, u32> = BTreeMap::new();
    for shown in pile.requests() {
        *ids.entry(shown.announcement().request.id).or_default() += 1;
    }
    for shown in pile.requests() {
        let request = &shown.announcement().request;
        let mut line = row(shown, columns);
        if ids.get(&request.id).is_some_and(|times| *times > 1) {
            let session = inert::line(request.session.as_str(), 40);
            line = line.and(Tone::Warn, format!("  of {session}, as others say too"));
        }
        writeln!(app.out, "{}", line.cut(columns).painted(paint))?;
    }
    let unusable = pile.unusable().count();
    for (id, _, why) in pile.unusable().take(MOST_UNUSABLE) {
        let lead = format!("{}  ", words::short_id(&id));
        let text = inert::line(&format!("not shown: {why}"), 400);
        for row in wrapped(&text, columns.saturating_sub(lead.len()).max(24)) {
            writeln!(app.out, "{lead}{}", paint.bad(row))?;
        }
    }
    if unusable > MOST_UNUSABLE {
        let more = words::number((unusable - MOST_UNUSABLE) as u64);
        let text = format!("… and {more} more that are not shown; --json tells all");
        writeln!(app.out, "{}", paint.bad(text))?;
    }
    for problem in pile.troubles() {
        app.note(inert::line(problem, 400));
    }
    let none = ids.is_empty() && unusable == 0;
    if none {
        writeln!(app.out, "nothing waits for a person here")?;
    }
    Ok(Exit::Done)
}

/// One request on one line: the parts that an agent chose stand last. Where there is little room, less of
/// the id stands there, which names it still, and then less of what the card has, too.
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
    let level = Line::of(Tone::Plain, format!("  {}", action.contract.required_level));
    let rest = match columns < WIDE {
        true => level.and(tone, format!("  {left}")),
        false => level
            .and(tone, format!("  {left:<8}"))
            .and(Tone::Dim, format!("  {}", waiting_for(shown))),
    };
    let rest = rest.and(Tone::Plain, format!("  {tool}"));
    let id = words::short_id(&request.id);
    let room = columns.saturating_sub(rest.columns()).max(SHORTEST_ID);
    let id = match columns < WIDE {
        true => id.split_once('_').map_or(&*id, |(_, uuid)| uuid),
        false => &id,
    };
    let id = id.get(..room).unwrap_or(id).trim_end_matches('-');
    Line::of(Tone::Strong, id).followed_by(rest).cut(columns)
}

/// Whom a request waits for: people, or a session that has not yet counted what they said.
fn waiting_for(shown: &Shown) -> String {
    let announcement = shown.announcement();
    let quorum = announcement.request.requirement.quorum;
    let missing = format!("{} of {quorum} missing", announcement.missing);
    match shown.answers() {
        0 => missing,
        sent => format!("{missing}, {sent} not counted yet"),
    }
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
