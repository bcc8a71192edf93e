//! The chain in words, one link a line, each with the event that says so.

use std::fmt::Display;
use std::io::Write as _;

use lodestar_core::chain::{Axes, Claim};
use lodestar_firewall::row::keys::Standing;

use super::chain::{Changed, Claimed, Decided, Evidence, LogCheck, Observed, Weighed, When, Why};
use super::trace::At;
use crate::commands::belief::one::One;
use crate::commands::belief::text;
use crate::failure::Failure;
use crate::output::Out;
use crate::{inert, words};

/// What a link is called, and what stands under it.
const NAME: usize = 9;

pub(super) fn print(why: &Why, one: &One, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let record = &one.belief.record;
    writeln!(out, "{}", paint.strong(record.id))?;
    writeln!(out, "  {}", inert::whole(&one.belief.claim.statement))?;
    writeln!(out, "  {}\n", text::axes(record))?;
    for seen in &why.observations {
        observed(seen, out)?;
    }
    if why.more_observations > 0 {
        let more = words::count(why.more_observations as u64, "observation");
        under(out, format!("and {more} more"))?;
    }
    for source in why.derived_from.iter().rev() {
        derived(source, out)?;
    }
    if why.more_claims > 0 {
        let more = words::count(why.more_claims as u64, "claim");
        under(out, format!("and {more} more"))?;
    }
    claimed(&why.claim, &one.belief.claim, out)?;
    let at_first = |item: &&Evidence| item.added.as_ref() == Some(&why.log.adopted);
    for item in why.evidence.iter().filter(at_first) {
        evidence(item, out)?;
    }
    for weighed in why.weighed.iter().filter(|w| w.when == When::Adopted) {
        weighing(weighed, out)?;
    }
    if let Some(record) = &why.adopted {
        let axes = axes(&record.axes);
        link(out, "adopted", Some(&why.log.adopted), axes)?;
    }
    for change in &why.changes {
        changed(change, out)?;
    }
    for item in why.evidence.iter().filter(|item| !at_first(item)) {
        evidence(item, out)?;
    }
    for weighed in why.weighed.iter().filter(|w| w.when == When::Now) {
        weighing(weighed, out)?;
    }
    for decision in &why.decisions {
        decided(decision, out)?;
    }
    check(&why.log, out)
}

/// `name      session#7  what`
fn link(out: &mut Out, name: &str, at: Option<&At>, what: impl Display) -> Result<(), Failure> {
    let paint = out.paint;
    let name = paint.dim(format!("{name:<NAME$}"));
    let at = paint.accent(at.map_or_else(|| "not in the log".to_owned(), cited));
    writeln!(out, "{name} {at}  {what}")?;
    Ok(())
}

fn under(out: &mut Out, what: impl Display) -> Result<(), Failure> {
    writeln!(out, "{:NAME$} {what}", "")?;
    Ok(())
}

fn cited(at: &At) -> String {
    format!("{}#{}", at.session, at.seq)
}

fn axes(axes: &Axes) -> String {
    format!(
        "truth={} · retrieval={} · security={} · freshness={}",
        axes.truth, axes.retrieval, axes.security, axes.freshness
    )
}

fn observed(seen: &Observed, out: &mut Out) -> Result<(), Failure> {
    let tool = seen.tool.as_deref().map_or("?", |tool| tool);
    let by = seen.actor.as_deref().unwrap_or("?");
    let time = seen.time.map_or_else(|| "?".to_owned(), words::seconds);
    let what = format!(
        "{} by {}, {time} UTC",
        inert::line(tool, 80),
        inert::line(by, 80)
    );
    link(out, "observed", seen.at.as_ref(), what)?;
    under(out, format!("{} as {}", seen.id, seen.quality))?;
    if let Some(by) = seen.redacted_by {
        under(out, out.paint.warn(format!("▒ redacted by #{by}")))?;
    }
    for block in &seen.blocks {
        let sum = words::short(&block.sha256);
        let about = format!(
            "{}, {}, sha256 {sum}",
            block.kind,
            words::bytes(block.bytes)
        );
        under(out, about)?;
        under(out, format!("  │ {}", out.paint.warn(&block.excerpt)))?;
    }
    if seen.more_blocks > 0 {
        let more = words::count(seen.more_blocks as u64, "block");
        under(out, format!("and {more} more"))?;
    }
    Ok(())
}

fn derived(source: &Claimed, out: &mut Out) -> Result<(), Failure> {
    let steps = words::count(source.depth as u64, "derivation");
    let what = format!("{}, {steps} back", source.id);
    link(out, "from", source.at.as_ref(), what)?;
    if let Some(claim) = &source.claim {
        under(out, inert::line(&claim.statement, room(out)))?;
    }
    if let Some(belief) = source.belief {
        under(out, format!("believed as {belief}"))?;
    }
    Ok(())
}

fn room(out: &Out) -> usize {
    out.columns.saturating_sub(NAME + 1)
}

fn claimed(seen: &Claimed, claim: &Claim, out: &mut Out) -> Result<(), Failure> {
    let what = format!("{} extracted by {}", claim.id, claim.extraction_method);
    link(out, "claimed", seen.at.as_ref(), what)?;
    let predicate = &claim.predicate;
    let said = format!(
        "{} · {} · {}",
        inert::line(&predicate.subject, 120),
        inert::line(&predicate.relation, 60),
        predicate.object
    );
    under(out, inert::line(&said, room(out).max(60)))
}

fn evidence(seen: &Evidence, out: &mut Out) -> Result<(), Failure> {
    link(
        out,
        "evidence",
        seen.added.as_ref(),
        text::evidence(&seen.item),
    )?;
    let source = text::source(&seen.item.source);
    let origin = seen.origin.as_ref().map(cited);
    let origin = origin.unwrap_or_else(|| "which is not in the log".to_owned());
    under(out, format!("from {source} at {origin}"))
}

fn weighing(weighed: &Weighed, out: &mut Out) -> Result<(), Failure> {
    let Weighed {
        when,
        threshold,
        weighing,
    } = weighed;
    let against = match weighing.strength >= *threshold {
        true => "≥",
        false => "<",
    };
    let name = out.paint.dim(format!("{:<NAME$}", "weighed"));
    let when = match when {
        When::Adopted => "when adopted",
        When::Now => "now",
    };
    writeln!(
        out,
        "{name} {when}: support {:.2} · contradiction {:.2} · strength {:.2} {against} {threshold:.2}: {}",
        weighing.support, weighing.contradiction, weighing.strength, weighing.truth
    )?;
    Ok(())
}

fn changed(seen: &Changed, out: &mut Out) -> Result<(), Failure> {
    let change = &seen.change;
    let what = format!("{} by {}", text::moves(&change.moves), change.authority);
    link(out, "moved", Some(&seen.at), what)?;
    let cause = text::cause(&change.cause);
    under(out, format!("{} UTC, {cause}", words::seconds(change.at)))?;
    let Some(signed) = &seen.signed else {
        return Ok(());
    };
    let by = inert::line(&signed.by, 128);
    match &signed.problem {
        None => under(
            out,
            format!("signed by `{by}`: {}", inert::line(&signed.reason, 200)),
        ),
        Some(problem) => {
            let bad = format!("by the key `{by}`, which does not count: {problem}");
            under(out, out.paint.bad(inert::whole(&bad)))
        }
    }
}

fn decided(seen: &Decided, out: &mut Out) -> Result<(), Failure> {
    let what = format!("{}, {}", seen.id, seen.origin);
    link(out, "decided", Some(&seen.at), what)?;
    let question = inert::line(&seen.question, 100);
    let chosen = inert::line(&seen.chosen, 60);
    under(out, format!("{question} → {chosen}"))?;
    match &seen.flagged {
        Some(at) => under(
            out,
            out.paint
                .warn(format!("to be looked at again: {}", cited(at))),
        ),
        None => Ok(()),
    }
}

fn check(log: &LogCheck, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let at = cited(&log.adopted);
    let leaf = words::short(&log.leaf_in_row);
    writeln!(out)?;
    let wrong = match log.leaf_in_log {
        None => Some(format!(
            "the row names {at}, and no session that the ledger knows has that event"
        )),
        Some(found) if found != log.leaf_in_row => Some(format!(
            "the row names {at} with leaf hash {leaf}, but in the log it has {}",
            words::short(&found)
        )),
        Some(_) if log.adopts_it && !log.stands_as_logged => Some(
            "the row stands elsewhere than the changes in the log lead: see `lodestar store status`"
                .to_owned(),
        ),
        Some(_) if !log.adopts_it => Some(format!(
            "the row names {at}, which does not adopt this belief with this claim"
        )),
        Some(_) => None,
    };
    match wrong {
        None => writeln!(
            out,
            "{} {at} is the event that the row names, leaf hash {leaf}",
            paint.good("✓")
        )?,
        Some(wrong) => writeln!(out, "{} {wrong}", paint.bad("✗"))?,
    }
    if log.standing != Standing::Genuine {
        let worth = text::standing(log.standing);
        writeln!(out, "{} the row is {worth}", paint.bad("✗"))?;
    }
    for session in &log.sessions {
        match &session.problem {
            None => writeln!(
                out,
                "{} session {} verifies",
                paint.good("✓"),
                session.session
            )?,
            Some(problem) => writeln!(
                out,
                "{} session {} does not count: {}",
                paint.bad("✗"),
                session.session,
                inert::whole(problem)
            )?,
        }
    }
    Ok(())
}
