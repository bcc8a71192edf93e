//! Beliefs and decisions: what stands on what, to be opened step by step.

use std::io;

use lodestar_core::chain::{Security, Truth};

use super::Page;
use super::sections::begin;
use crate::model::{Belief, Decision, Report};
use crate::text::{self, MOST_LISTED};
use crate::words;

pub(super) fn beliefs(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    let list = &report.beliefs.list;
    begin("Beliefs", list.len(), page)?;
    page.raw("<ul class=\"tally\">\n")?;
    for one in &report.beliefs.tally {
        page.tagged("<li><b>", &words::number(one.beliefs), "</b> ")?;
        let axes = [
            one.truth.as_str(),
            one.retrieval.as_str(),
            one.security.as_str(),
            one.freshness.as_str(),
        ];
        page.text(&axes.join(" · "))?;
        page.raw("</li>\n")?;
    }
    page.raw("</ul>\n")?;
    for belief in list.iter().take(MOST_LISTED) {
        one_belief(belief, page)?;
    }
    more(list.len(), page)?;
    page.raw("</section>\n")
}

fn one_belief(belief: &Belief, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<details><summary>")?;
    page.raw(match (belief.axes.truth, belief.was_read()) {
        (Truth::Supported, false) => "<span class=\"tag good\">",
        (Truth::Supported, true) => "<span class=\"tag bad\">",
        (Truth::Unverified, _) => "<span class=\"tag open\">",
        _ => "<span class=\"tag flat\">",
    })?;
    page.raw(belief.axes.truth.as_str())?;
    page.raw("</span> ")?;
    if belief.axes.security != Security::Clean {
        page.raw("<span class=\"tag bad\">")?;
        page.raw(belief.axes.security.as_str())?;
        page.raw("</span> ")?;
    }
    page.cite(&[belief.seq])?;
    match &belief.statement {
        Some(statement) => page.tagged(" ", statement, "")?,
        None => page.raw(" <span class=\"dim\">not shown</span>")?,
    }
    page.tagged(
        "</summary>\n<div class=\"inside\"><p>",
        &text::belief(belief),
        "</p>\n",
    )?;
    page.tagged("<p class=\"dim\">", belief.quality.as_str(), ", from ")?;
    page.cite(&belief.sources)?;
    page.tagged(
        "</p><p class=\"dim mono\">",
        &belief.id.to_string(),
        "</p>\n<ul>\n",
    )?;
    for one in &belief.moves {
        page.tagged("<li>", one.step.from().word(), " → ")?;
        page.text(one.step.to().word())?;
        page.tagged(" by ", &one.authority, ": ")?;
        page.text(&one.cause)?;
        page.raw(" ")?;
        match &one.session {
            None => page.cite(&[one.seq])?,
            Some(session) => {
                page.raw("<span class=\"cite\">#")?;
                page.number(one.seq)?;
                page.tagged(" of session ", session.as_str(), "</span>")?;
            }
        }
        page.raw("</li>\n")?;
    }
    page.raw("</ul></div></details>\n")
}

pub(super) fn decisions(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    let list = &report.decisions;
    begin("Decisions, and what they stood on", list.len(), page)?;
    for decision in list.iter().take(MOST_LISTED) {
        one_decision(decision, page)?;
    }
    more(list.len(), page)?;
    if report.counts.groundless_decisions > 0 {
        let many = words::count(report.counts.groundless_decisions, "decision");
        page.tagged(
            "<p class=\"dim\">",
            &many,
            " that nobody declared rest on nothing that is known.</p>\n",
        )?;
    }
    page.raw("</section>\n")
}

fn one_decision(decision: &Decision, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<details><summary>")?;
    page.cite(&[decision.seq])?;
    let question = decision.question.as_deref().unwrap_or("not shown");
    page.tagged(" ", question, " <span class=\"what\">→ ")?;
    page.text(decision.chosen.as_deref().unwrap_or("not shown"))?;
    page.tagged(", ", decision.origin.as_str(), ", by ")?;
    page.tagged("", &decision.made_by, ", resting on ")?;
    page.text(&words::count(decision.rests_on.len() as u64, "belief"))?;
    page.raw("</span></summary>\n<div class=\"inside\"><ul>\n")?;
    for ground in &decision.rests_on {
        page.raw("<li>")?;
        if let Some(truth) = ground.truth {
            page.raw(match truth {
                Truth::Supported => "<span class=\"tag good\">",
                Truth::Unverified => "<span class=\"tag open\">",
                _ => "<span class=\"tag flat\">",
            })?;
            page.raw(truth.as_str())?;
            page.raw("</span> ")?;
        }
        if ground.rests_on_reading == Some(true) {
            page.raw("goes back to something read ")?;
        }
        page.tagged("<code>", &ground.belief.to_string(), "</code> ")?;
        let adopted: Vec<u64> = ground.adopted.into_iter().collect();
        page.cite(&adopted)?;
        page.raw("</li>\n")?;
    }
    page.raw("</ul><p>Proposed in ")?;
    page.cite(&decision.actions)?;
    page.raw("</p></div></details>\n")
}

fn more(many: usize, page: &mut Page<'_>) -> io::Result<()> {
    match many.saturating_sub(MOST_LISTED) {
        0 => Ok(()),
        rest => page.tagged(
            "<p class=\"dim\">… ",
            &words::number(rest as u64),
            " more, which the JSON report lists</p>\n",
        ),
    }
}
