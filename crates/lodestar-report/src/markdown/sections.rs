//! The sections of a report, in Markdown.

use std::io::{self, Write};

use super::{cited, code, prose};
use crate::model::{Action, Argument, From, Report, in_words};
use crate::text::{self, Fate, MOST_LISTED, cite};
use crate::words;

pub(super) type Out<'a> = &'a mut dyn Write;

pub(super) fn title(title: &str, many: usize, out: Out<'_>) -> io::Result<()> {
    writeln!(out, "## {title} ({})\n", words::number(many as u64))?;
    if many == 0 {
        writeln!(out, "None.\n")?;
    }
    Ok(())
}

pub(super) fn actions(report: &Report, out: Out<'_>) -> io::Result<()> {
    let counts = &report.counts;
    title("Actions", report.actions.len(), out)?;
    if !report.actions.is_empty() {
        writeln!(
            out,
            "Allowed {}, held {}, denied {}; cleared {}, completed {}, failed {}, unknown {}, did not run {}.\n",
            counts.allowed,
            counts.held,
            counts.denied,
            counts.cleared,
            counts.completed,
            counts.failed,
            counts.unknown,
            counts.rejected
        )?;
    }
    for action in &report.actions {
        one_action(action, out)?;
    }
    if !report.actions.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn one_action(action: &Action, out: Out<'_>) -> io::Result<()> {
    let mark = match text::fate(action) {
        Fate::Ran => "ran",
        Fate::MayHaveRun => "**may have run**",
        Fate::Pending => "**not settled**",
        Fate::Held => "**held**",
        Fate::Refused => "**did not run**",
    };
    writeln!(
        out,
        "- #{} {mark}: {} {}",
        action.seq,
        code(&action.tool),
        text::action(action)
    )?;
    if let Some(judged) = &action.judged {
        let (verdict, reason) = text::judged(judged);
        writeln!(
            out,
            "  - {}: {} (#{})",
            prose(&verdict),
            prose(reason),
            judged.seq
        )?;
    }
    for one in &action.arguments {
        writeln!(out, "  - {}", argument(one))?;
    }
    if let Some(request) = action.request {
        writeln!(out, "  - people were asked: {}", code(&request))?;
    }
    if let Some(cleared) = &action.cleared {
        let grants = match cleared.grants.len() {
            0 => String::new(),
            n => format!(", spending {}", words::count(n as u64, "signed approval")),
        };
        writeln!(out, "  - cleared (#{}){grants}", cleared.seq)?;
    }
    if let Some(undoes) = &action.undoes {
        writeln!(out, "  - {}", prose(&text::undoes(undoes)))?;
    }
    if let Some(image) = &action.image {
        writeln!(out, "  - {} (#{})", prose(&text::undo(image)), image.seq)?;
    }
    if let Some(ended) = &action.ended {
        let took = ended
            .micros
            .map(|took| format!(" after {}", text::micros(took)));
        let returned = ended.returned.map(|seq| format!(", returned #{seq}"));
        let contained = ended
            .contained
            .map(|state| format!(", {}", in_words(state)));
        let problem = ended.problem.as_ref().map(|one| format!(": {}", code(one)));
        writeln!(
            out,
            "  - {}{} (#{}){}{}{}",
            ended.result,
            took.unwrap_or_default(),
            ended.seq,
            returned.unwrap_or_default(),
            contained.unwrap_or_default(),
            problem.unwrap_or_default()
        )?;
        for planted in &ended.planted {
            writeln!(out, "  - {}", prose(planted))?;
        }
    }
    if let Some(rejected) = &action.rejected {
        writeln!(
            out,
            "  - did not run, {}: {} (#{})",
            code(&rejected.kind),
            prose(&rejected.reason),
            rejected.seq
        )?;
    }
    Ok(())
}

fn argument(argument: &Argument) -> String {
    let value = match &argument.value {
        Some(value) => code(value),
        None => "(not shown)".to_owned(),
    };
    let from = match (argument.from, argument.read_in.is_empty()) {
        (From::Read, _) => format!("read in {}", cited(&argument.read_in)),
        (from, true) => from.shown().to_owned(),
        (from, false) => format!(
            "{}, parts of it read in {}",
            from.shown(),
            cite(&argument.read_in)
        ),
    };
    format!("{} = {value}: {from}", code(&argument.pointer))
}

pub(super) fn requests(report: &Report, out: Out<'_>) -> io::Result<()> {
    title("What people were asked", report.requests.len(), out)?;
    for request in &report.requests {
        let of = request
            .proposed
            .map(|seq| format!(" for the action of #{seq}"));
        writeln!(
            out,
            "- #{} {}: {}{}",
            request.seq,
            code(&request.id),
            text::request(request),
            of.unwrap_or_default()
        )?;
        for answer in &request.answers {
            let who = answer
                .approver
                .as_deref()
                .unwrap_or("nobody who can be named");
            let key = answer
                .key
                .as_deref()
                .map(|key| format!(", key {}", code(&key)));
            writeln!(
                out,
                "  - {} by {}{}: {} (#{})",
                answer.kind.shown(),
                code(&who),
                key.unwrap_or_default(),
                code(&answer.reason),
                answer.seq
            )?;
        }
        if let Some(closed) = &request.closed {
            writeln!(out, "  - over: {} (#{})", closed.text, closed.seq)?;
        }
    }
    if !report.requests.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

pub(super) fn refused(report: &Report, out: Out<'_>) -> io::Result<()> {
    title(
        "Calls that never became actions",
        report.refused_calls.len(),
        out,
    )?;
    for call in &report.refused_calls {
        let tool = call
            .tool
            .as_deref()
            .unwrap_or("something without a tool's name");
        writeln!(
            out,
            "- #{} {}: {}, {}",
            call.seq,
            code(&tool),
            code(&call.kind),
            prose(&call.reason)
        )?;
    }
    end(report.refused_calls.len(), out)
}

pub(super) fn forged(report: &Report, out: Out<'_>) -> io::Result<()> {
    title("Statements that did not count", report.forged.len(), out)?;
    for one in &report.forged {
        let of = one.proposed.map(|seq| format!(" for the action of #{seq}"));
        writeln!(
            out,
            "- #{} {}{}: {}",
            one.seq,
            one.what.shown(),
            of.unwrap_or_default(),
            prose(&one.reason)
        )?;
    }
    end(report.forged.len(), out)
}

pub(super) fn beliefs(report: &Report, out: Out<'_>) -> io::Result<()> {
    let list = &report.beliefs.list;
    title("Beliefs", list.len(), out)?;
    for one in &report.beliefs.tally {
        writeln!(
            out,
            "- {}: truth={} · retrieval={} · security={} · freshness={}",
            words::number(one.beliefs),
            one.truth,
            one.retrieval,
            one.security,
            one.freshness
        )?;
    }
    end(list.len(), out)?;
    for belief in list.iter().take(MOST_LISTED) {
        let statement = match &belief.statement {
            Some(statement) => code(statement),
            None => format!("(not shown: {})", belief.sensitivity),
        };
        let sources = match belief.sources.is_empty() {
            true => String::new(),
            false => format!(", from {}", cite(&belief.sources)),
        };
        writeln!(out, "- #{} {statement}{sources}", belief.seq)?;
        writeln!(out, "  - {} · {}", text::belief(belief), belief.quality)?;
        for one in &belief.moves {
            let session = one
                .session
                .as_ref()
                .map(|id| format!(" of session {}", code(id)));
            writeln!(
                out,
                "  - moved {} → {} by {}: {} (#{}{})",
                one.step.from().word(),
                one.step.to().word(),
                one.authority,
                prose(&one.cause),
                one.seq,
                session.unwrap_or_default()
            )?;
        }
    }
    more(list.len(), out)?;
    end(list.len(), out)
}

pub(super) fn decisions(report: &Report, out: Out<'_>) -> io::Result<()> {
    let list = &report.decisions;
    title("Decisions, and what they stood on", list.len(), out)?;
    for decision in list.iter().take(MOST_LISTED) {
        let question = decision.question.as_deref().unwrap_or("(not shown)");
        let chosen = decision.chosen.as_deref().unwrap_or("(not shown)");
        writeln!(
            out,
            "- #{} {} by {}: {} → {}, proposed in {}",
            decision.seq,
            decision.origin,
            code(&decision.made_by),
            code(&question),
            code(&chosen),
            cited(&decision.actions)
        )?;
        writeln!(out, "  - {}", text::grounds(decision))?;
    }
    more(list.len(), out)?;
    if report.counts.groundless_decisions > 0 {
        writeln!(
            out,
            "- {} that nobody declared rest on nothing that is known.",
            words::count(report.counts.groundless_decisions, "decision")
        )?;
        return writeln!(out);
    }
    end(list.len(), out)
}

pub(super) fn hostile(report: &Report, out: Out<'_>) -> io::Result<()> {
    title("Hostile content retained", report.hostile.len(), out)?;
    for one in &report.hostile {
        writeln!(
            out,
            "- #{} {}, {}, as it came",
            one.seq,
            code(&one.source),
            words::bytes(one.bytes)
        )?;
        for wary in &one.because {
            let (why, events) = text::wary(wary);
            let events = match events.is_empty() {
                true => String::new(),
                false => format!(" ({})", cite(events)),
            };
            writeln!(out, "  - {why}{events}")?;
        }
        match &one.begins {
            Some(begins) => writeln!(out, "  - {}", code(begins))?,
            None => writeln!(out, "  - (not shown)")?,
        }
    }
    end(report.hostile.len(), out)
}

/// What a gateway said, in its own section: nothing else in the report rests on it.
pub(super) fn execution(report: &Report, out: Out<'_>) -> io::Result<()> {
    let Some(said) = &report.execution else {
        return Ok(());
    };
    writeln!(out, "## Execution trust, by a gateway's word\n")?;
    writeln!(
        out,
        "- {} is {}, says {}, {} UTC",
        code(&said.run),
        code(&said.level),
        code(&said.gateway),
        words::seconds(said.evaluated_at)
    )?;
    writeln!(
        out,
        "- attested by device {} of {}: {}, evaluated as {}",
        code(&said.device),
        code(&said.account),
        code(&said.attestation),
        code(&said.evaluation)
    )?;
    for one in &said.facts {
        let held = if one.held { "held" } else { "did not hold" };
        writeln!(out, "- {} {held}: {}", code(&one.fact), one.fact.phrase())?;
    }
    if let Some(reason) = &said.reason {
        writeln!(out, "- the gateway's reason: {}", prose(reason))?;
    }
    writeln!(out)
}

pub(super) fn integrity(report: &Report, out: Out<'_>) -> io::Result<()> {
    let integrity = &report.integrity;
    writeln!(out, "## Integrity\n")?;
    writeln!(
        out,
        "- root {} over {}, {} of them under a signed checkpoint (#{})",
        code(&integrity.root),
        words::count(integrity.events, "event"),
        words::number(integrity.proven),
        integrity.proven.saturating_sub(1)
    )?;
    if let Some(checkpoint) = &integrity.checkpoint {
        for line in checkpoint.lines().filter(|line| !line.is_empty()) {
            writeln!(out, "  - {}", code(&line))?;
        }
    }
    for key in &integrity.keys {
        writeln!(out, "- verified by key {} ({})", code(&key.key), key.signs)?;
    }
    writeln!(
        out,
        "- ledger: {}, root {}",
        words::count(integrity.ledger_records, "record"),
        code(&integrity.ledger_root)
    )?;
    writeln!(
        out,
        "- derived again: {}, {}, {}, {}; all as the log says",
        words::count(integrity.verdicts_again, "verdict"),
        words::count(integrity.answers_again, "answer"),
        words::count(integrity.clearances_again, "clearance"),
        words::count(integrity.beliefs_again, "belief event")
    )?;
    if integrity.proven < integrity.events {
        writeln!(
            out,
            "- **unproven tail: {}, from #{} on**",
            words::count(integrity.events - integrity.proven, "event"),
            integrity.proven
        )?;
    }
    for one in &integrity.redactions {
        writeln!(
            out,
            "- redacted by #{}: {} ({}), signed by {}: {}",
            one.seq,
            words::count(one.payloads, "payload"),
            cite(&one.events),
            code(&one.operator),
            code(&one.reason)
        )?;
    }
    for one in &integrity.recovered {
        let bytes = words::bytes(one.bytes);
        writeln!(
            out,
            "- #{}: after a crash {bytes} were cut off and kept aside",
            one.seq
        )?;
    }
    for remark in &integrity.remarks {
        writeln!(out, "- {}", prose(remark))?;
    }
    writeln!(out)
}

fn more(many: usize, out: Out<'_>) -> io::Result<()> {
    match many.saturating_sub(MOST_LISTED) {
        0 => Ok(()),
        rest => writeln!(
            out,
            "- … {} more, which the JSON report lists",
            words::number(rest as u64)
        ),
    }
}

pub(super) fn end(many: usize, out: Out<'_>) -> io::Result<()> {
    match many {
        0 => Ok(()),
        _ => writeln!(out),
    }
}
