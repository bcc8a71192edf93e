//! The sections of a report, but for beliefs and decisions, and for what watches a session.

use std::io;

use super::Page;
use crate::model::{Action, AnswerKind, From, Report, Wary, in_words};
use crate::text::{self, Fate};
use crate::words;

/// A heading with a count; says so where there is nothing.
pub(super) fn begin(title: &'static str, many: usize, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<section>\n<h2>")?;
    page.raw(title)?;
    page.tagged(
        " <span class=\"dim\">",
        &words::number(many as u64),
        "</span></h2>\n",
    )?;
    match many {
        0 => page.raw("<p class=\"dim\">None.</p>\n"),
        _ => Ok(()),
    }
}

pub(super) fn tag(fate: Fate) -> &'static str {
    match fate {
        Fate::Ran => "<span class=\"tag good\">ran</span> ",
        Fate::MayHaveRun => "<span class=\"tag bad\">may have run</span> ",
        Fate::Pending => "<span class=\"tag open\">not settled</span> ",
        Fate::Held => "<span class=\"tag open\">held</span> ",
        Fate::Refused => "<span class=\"tag bad\">refused</span> ",
    }
}

pub(super) fn actions(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    begin("Actions", report.actions.len(), page)?;
    for action in &report.actions {
        one_action(action, page)?;
    }
    page.raw("</section>\n")
}

fn one_action(action: &Action, page: &mut Page<'_>) -> io::Result<()> {
    let fate = text::fate(action);
    page.raw("<details id=\"e")?;
    page.number(action.seq)?;
    // What is printed or skimmed must not hide what matters.
    page.raw(match fate {
        Fate::Ran if action.request.is_none() => "\"><summary>",
        _ => "\" open><summary>",
    })?;
    page.raw(tag(fate))?;
    page.raw("<span class=\"cite\">#")?;
    page.number(action.seq)?;
    page.tagged("</span> <code>", &action.tool, "</code> ")?;
    page.tagged("<code>", &text::briefly(action), "</code> ")?;
    page.raw("<span class=\"what\">")?;
    page.text(&text::action(action))?;
    page.raw("</span></summary>\n<div class=\"inside\">\n")?;
    if let Some(judged) = &action.judged {
        let (verdict, reason) = text::judged(judged);
        page.tagged("<p><b>", &verdict, "</b>: ")?;
        page.text(reason)?;
        page.raw(" ")?;
        page.cite(&[judged.seq])?;
        page.raw("</p>\n")?;
    }
    arguments(action, page)?;
    ended(action, page)?;
    page.raw("</div></details>\n")
}

fn arguments(action: &Action, page: &mut Page<'_>) -> io::Result<()> {
    if action.arguments.is_empty() {
        return Ok(());
    }
    page.raw("<table class=\"args\"><thead><tr><th>argument</th><th>value</th><th>where it came from</th></tr></thead><tbody>\n")?;
    for argument in &action.arguments {
        page.tagged("<tr><td><code>", &argument.pointer, "</code></td><td>")?;
        match &argument.value {
            Some(value) => page.tagged("<code>", value, "</code>")?,
            None => page.raw("<span class=\"dim\">not shown</span>")?,
        }
        page.raw("</td><td>")?;
        page.raw(match argument.from {
            From::Given | From::Measured => "<span class=\"tag good\">",
            From::Read => "<span class=\"tag open\">",
            From::Unknown | From::Untraced => "<span class=\"tag flat\">",
        })?;
        page.raw(argument.from.shown())?;
        page.raw("</span> ")?;
        page.cite(&argument.read_in)?;
        page.raw("</td></tr>\n")?;
    }
    page.raw("</tbody></table>\n")
}

fn ended(action: &Action, page: &mut Page<'_>) -> io::Result<()> {
    if let Some(cleared) = &action.cleared {
        page.raw("<p>Cleared ")?;
        page.cite(&[cleared.seq])?;
        if !cleared.grants.is_empty() {
            let grants = words::count(cleared.grants.len() as u64, "signed approval");
            page.tagged(", spending ", &grants, "")?;
        }
        page.raw("</p>\n")?;
    }
    if let Some(undoes) = &action.undoes {
        page.tagged("<p>", &text::undoes(undoes), "</p>\n")?;
    }
    if let Some(image) = &action.image {
        page.tagged("<p>", &text::undo(image), " ")?;
        page.cite(&[image.seq])?;
        page.raw("</p>\n")?;
    }
    if let Some(ended) = &action.ended {
        page.tagged("<p>", ended.result.as_str(), "")?;
        if let Some(took) = ended.micros {
            page.tagged(" after ", &text::micros(took), "")?;
        }
        page.raw(" ")?;
        page.cite(&[ended.seq])?;
        if let Some(returned) = ended.returned {
            page.raw(", returned ")?;
            page.cite(&[returned])?;
        }
        if let Some(contained) = ended.contained {
            page.tagged(", ", in_words(contained), "")?;
        }
        if let Some(problem) = &ended.problem {
            page.tagged(": <code>", problem, "</code>")?;
        }
        page.raw("</p>\n")?;
        for planted in &ended.planted {
            page.tagged("<p><strong>", planted, "</strong></p>\n")?;
        }
    }
    if let Some(rejected) = &action.rejected {
        page.tagged("<p>Did not run, <code>", &rejected.kind, "</code>: ")?;
        page.text(&rejected.reason)?;
        page.raw(" ")?;
        page.cite(&[rejected.seq])?;
        page.raw("</p>\n")?;
    }
    Ok(())
}

pub(super) fn requests(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    begin("What people were asked", report.requests.len(), page)?;
    for request in &report.requests {
        page.raw("<details open id=\"e")?;
        page.number(request.seq)?;
        page.raw("\"><summary><span class=\"cite\">#")?;
        page.number(request.seq)?;
        page.raw("</span> ")?;
        page.text(&text::request(request))?;
        if let Some(proposed) = request.proposed {
            page.raw(" for the action of ")?;
            page.cite(&[proposed])?;
        }
        page.tagged(
            "</summary>\n<div class=\"inside\"><p class=\"dim mono\">",
            &request.id.to_string(),
            "</p>\n<ul>\n",
        )?;
        for answer in &request.answers {
            page.raw(match answer.kind {
                AnswerKind::Granted | AnswerKind::Confirmed => "<li><span class=\"tag good\">",
                AnswerKind::Denied => "<li><span class=\"tag open\">",
                AnswerKind::Refused => "<li><span class=\"tag bad\">",
            })?;
            page.raw(answer.kind.shown())?;
            page.raw("</span> ")?;
            if let Some(approver) = &answer.approver {
                page.raw(match answer.kind {
                    AnswerKind::Refused => "as if by <code>",
                    _ => "by <code>",
                })?;
                page.tagged("", approver, "</code>")?;
            }
            if let Some(key) = &answer.key {
                page.tagged(", key <code>", key, "</code>")?;
            }
            page.tagged(": ", &answer.reason, " ")?;
            page.cite(&[answer.seq])?;
            page.raw("</li>\n")?;
        }
        match &request.closed {
            Some(closed) => {
                page.tagged("<li>over: ", &closed.text, " ")?;
                page.cite(&[closed.seq])?;
                page.raw("</li>\n")?;
            }
            None if request.answers.is_empty() => page.raw("<li>nobody has answered</li>\n")?,
            None => {}
        }
        page.raw("</ul></div></details>\n")?;
    }
    page.raw("</section>\n")
}

pub(super) fn refused(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    begin(
        "Calls that never became actions",
        report.refused_calls.len(),
        page,
    )?;
    page.raw("<ul class=\"plain\">\n")?;
    for call in &report.refused_calls {
        page.raw("<li>")?;
        page.cite(&[call.seq])?;
        let tool = call
            .tool
            .as_deref()
            .unwrap_or("something without a tool's name");
        page.tagged(" <code>", tool, "</code> ")?;
        page.tagged("<span class=\"tag bad\">", &call.kind, "</span> ")?;
        page.text(&call.reason)?;
        page.raw("</li>\n")?;
    }
    page.raw("</ul>\n</section>\n")
}

pub(super) fn forged(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    begin("Statements that did not count", report.forged.len(), page)?;
    page.raw("<ul class=\"plain\">\n")?;
    for one in &report.forged {
        page.raw(match one.what.is_forged() {
            true => "<li><span class=\"tag bad\">refused</span> ",
            false => "<li><span class=\"tag\">genuine</span> ",
        })?;
        page.cite(&[one.seq])?;
        page.raw(" ")?;
        page.raw(one.what.shown())?;
        if let Some(proposed) = one.proposed {
            page.raw(", meant for the action of ")?;
            page.cite(&[proposed])?;
        }
        page.tagged(": ", &one.reason, "</li>\n")?;
    }
    page.raw("</ul>\n</section>\n")
}

pub(super) fn hostile(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    begin("Hostile content retained", report.hostile.len(), page)?;
    if !report.hostile.is_empty() {
        page.raw("<p class=\"dim\">Kept in the log as it came, and shown here so that it cannot act.</p>\n")?;
    }
    for one in &report.hostile {
        page.raw("<details open")?;
        if page.anchors.get(&one.seq) == Some(&one.seq) {
            page.raw(" id=\"e")?;
            page.number(one.seq)?;
            page.raw("\"")?;
        }
        page.raw("><summary>")?;
        page.cite(&[one.seq])?;
        page.tagged(" <code>", &one.source, "</code> <span class=\"what\">")?;
        page.tagged(
            "",
            &words::bytes(one.bytes),
            "</span></summary>\n<div class=\"inside\"><ul>\n",
        )?;
        for wary in &one.because {
            because(wary, page)?;
        }
        page.raw("</ul>")?;
        match &one.begins {
            Some(begins) => page.tagged("<span class=\"quote\">", begins, "</span>")?,
            None => page.raw("<p class=\"dim\">not shown</p>")?,
        }
        if let Some(digest) = &one.sha256 {
            page.tagged("<p class=\"dim mono\">sha256 ", &digest.to_string(), "</p>")?;
        }
        page.raw("</div></details>\n")?;
    }
    page.raw("</section>\n")
}

fn because(wary: &Wary, page: &mut Page<'_>) -> io::Result<()> {
    let (why, events) = text::wary(wary);
    page.tagged("<li>", &why, " ")?;
    page.cite(events)?;
    page.raw("</li>\n")
}

/// What a gateway said, in its own section: nothing else in the report rests on it.
pub(super) fn execution(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    let Some(said) = &report.execution else {
        return Ok(());
    };
    page.raw("<section>\n<h2>Execution trust, by a gateway's word</h2>\n<dl class=\"facts\">\n")?;
    page.tagged("<dt>Level</dt><dd><b>", said.level.as_str(), "</b>, ")?;
    page.tagged("says <code>", &said.gateway, "</code>, ")?;
    page.tagged("", &words::seconds(said.evaluated_at), " UTC</dd>\n")?;
    page.tagged(
        "<dt>Run</dt><dd><code>",
        &said.run.to_string(),
        "</code></dd>\n",
    )?;
    page.tagged(
        "<dt>Device</dt><dd><code>",
        &said.device.to_string(),
        "</code></dd>\n",
    )?;
    page.tagged(
        "<dt>Attestation</dt><dd><code>",
        &said.attestation.to_string(),
        "</code></dd>\n",
    )?;
    for one in &said.facts {
        page.tagged("<dt><code>", one.fact.as_str(), "</code></dt>")?;
        page.raw(if one.held {
            "<dd>held: "
        } else {
            "<dd><b>did not hold</b>: "
        })?;
        page.tagged("", one.fact.phrase(), "</dd>\n")?;
    }
    if let Some(reason) = &said.reason {
        page.tagged("<dt>Reason</dt><dd>", reason, "</dd>\n")?;
    }
    page.raw("</dl>\n</section>\n")
}

pub(super) fn integrity(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    let integrity = &report.integrity;
    page.raw("<section>\n<h2>Integrity</h2>\n<dl class=\"facts\">\n")?;
    page.tagged(
        "<dt>Root</dt><dd><code>",
        &integrity.root.to_string(),
        "</code> over ",
    )?;
    page.tagged("", &words::count(integrity.events, "event"), ", ")?;
    page.tagged(
        "",
        &words::number(integrity.proven),
        " under a signed checkpoint</dd>\n",
    )?;
    if integrity.proven < integrity.events {
        page.tagged(
            "<dt>Unproven</dt><dd><b>the last ",
            &words::count(integrity.events - integrity.proven, "event"),
            "</b>, from ",
        )?;
        page.cite(&[integrity.proven])?;
        page.raw(" on</dd>\n")?;
    }
    for key in &integrity.keys {
        page.tagged("<dt>Key</dt><dd><code>", &key.key, "</code> ")?;
        page.tagged("<span class=\"dim\">", key.signs, "</span></dd>\n")?;
    }
    page.tagged(
        "<dt>Ledger</dt><dd>",
        &words::count(integrity.ledger_records, "record"),
        ", root ",
    )?;
    page.tagged(
        "<code>",
        &integrity.ledger_root.to_string(),
        "</code></dd>\n",
    )?;
    let again = [
        words::count(integrity.verdicts_again, "verdict"),
        words::count(integrity.answers_again, "answer"),
        words::count(integrity.clearances_again, "clearance"),
        words::count(integrity.beliefs_again, "belief event"),
    ];
    page.tagged(
        "<dt>Derived again</dt><dd>",
        &again.join(", "),
        "; all as the log says</dd>\n",
    )?;
    for one in &integrity.redactions {
        page.raw("<dt>Redacted</dt><dd>")?;
        page.cite(&one.events)?;
        page.tagged(" by <code>", &one.operator, "</code>: ")?;
        page.text(&one.reason)?;
        page.raw(" ")?;
        page.cite(&[one.seq])?;
        page.raw("</dd>\n")?;
    }
    for one in &integrity.recovered {
        page.tagged(
            "<dt>Crash</dt><dd>",
            &words::bytes(one.bytes),
            " cut off and kept aside ",
        )?;
        page.cite(&[one.seq])?;
        page.raw("</dd>\n")?;
    }
    for remark in &integrity.remarks {
        page.tagged("<dt>Remark</dt><dd>", remark, "</dd>\n")?;
    }
    page.raw("</dl>\n")?;
    if let Some(checkpoint) = &integrity.checkpoint {
        page.raw("<details><summary>The checkpoint</summary><span class=\"quote\">")?;
        for line in checkpoint.lines() {
            page.text(line)?;
            page.raw("\n")?;
        }
        page.raw("</span></details>\n")?;
    }
    page.raw("</section>\n")
}
