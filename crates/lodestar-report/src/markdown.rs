//! A report as Markdown. Whatever others wrote stands in code spans, which nothing in them can end.

mod sections;
mod signals;

use std::io::{self, Write};

use crate::examine::{Projection, Refusal};
use crate::model::{Report, Word};
use crate::text::cite;
use crate::{inert, words};

/// Writes a report, or why there is none.
pub fn write(projection: &Projection, out: &mut dyn Write) -> io::Result<()> {
    match projection {
        Projection::Report(report) => report_in(report, out),
        Projection::Refused(refused) => refusal(&refused.refused, out),
    }
}

fn refusal(refusal: &Refusal, out: &mut dyn Write) -> io::Result<()> {
    let (project, session) = (&refusal.project, &refusal.session);
    writeln!(
        out,
        "# NO REPORT: session {} of project {}\n",
        code(session),
        code(project)
    )?;
    writeln!(out, "**{}**\n", refusal.because.shown())?;
    for wrong in &refusal.problems {
        let mut place = Vec::new();
        place.extend(wrong.file.as_deref().map(code));
        place.extend(wrong.seq.map(|seq| format!("#{seq}")));
        place.extend(wrong.offset.map(|offset| format!("byte {offset}")));
        let place = match place.is_empty() {
            true => String::new(),
            false => format!("{}: ", place.join(", ")),
        };
        writeln!(out, "- {place}{}", prose(&wrong.problem))?;
    }
    Ok(())
}

/// Writes a report.
pub(crate) fn report_in(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    heading(report, out)?;
    writeln!(out, "## Answers\n")?;
    for answer in report.answers.all() {
        let word = match answer.answer {
            Word::None => "None",
            Word::Yes => "Yes",
            Word::No => "No",
            Word::CannotTell => "Cannot tell",
            Word::Level(level) => level.as_str(),
        };
        writeln!(
            out,
            "- **{} {word}:** {} ({})",
            answer.question,
            prose(&answer.because),
            cited(&answer.events)
        )?;
    }
    writeln!(out)?;
    sections::actions(report, out)?;
    sections::requests(report, out)?;
    sections::refused(report, out)?;
    sections::forged(report, out)?;
    sections::beliefs(report, out)?;
    sections::decisions(report, out)?;
    sections::hostile(report, out)?;
    signals::write(report, out)?;
    sections::execution(report, out)?;
    sections::integrity(report, out)?;
    writeln!(out, "## Limits of this report\n")?;
    for limit in &report.limits {
        let events = match limit.events.is_empty() {
            true => String::new(),
            false => format!(" ({})", cite(&limit.events)),
        };
        writeln!(out, "- {}{events}", prose(&limit.limit))?;
    }
    Ok(())
}

fn heading(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let session = &report.session;
    writeln!(out, "# Trust report: session {}\n", code(&session.id))?;
    writeln!(
        out,
        "Project {}, agent {}, {}. Opened {}, last event {}; {}. Content above {} is left out.\n",
        code(&session.project),
        code(&session.actor),
        session.state,
        words::seconds(session.opened_at),
        words::seconds(session.last_at),
        words::count(report.counts.events, "event"),
        code(&report.ceiling),
    )?;
    for task in &session.tasks {
        writeln!(out, "- Task (#{}): {}", task.seq, code(&task.text))?;
    }
    if let Some(policy) = &session.policy {
        let key = policy.key.as_ref().map(|key| format!(" by {}", code(key)));
        writeln!(
            out,
            "- Policy {} ({}{}), {}, {} (#{})",
            code(&words::short(&policy.digest)),
            policy.signature,
            key.unwrap_or_default(),
            words::count(policy.tools, "tool"),
            words::count(policy.approvers, "approver"),
            policy.seq
        )?;
    }
    for halted in &session.halted {
        writeln!(
            out,
            "- **Halted** (#{}): {}",
            halted.seq,
            prose(&halted.text)
        )?;
    }
    if let Some(closed) = &session.closed {
        writeln!(out, "- Closed (#{}): {}", closed.seq, code(&closed.text))?;
    }
    writeln!(out)
}

fn cited(events: &[u64]) -> String {
    match events.is_empty() {
        true => "no event".to_owned(),
        false => cite(events),
    }
}

/// A value that others wrote, in a code span: its fence is longer than any run of backticks in it, so that
/// nothing in it ends it.
fn code(text: &(impl ToString + ?Sized)) -> String {
    let shown = inert::whole(&text.to_string());
    let runs = shown.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    match shown.contains('`') || shown.trim().is_empty() {
        // One blank on each side belongs to the fence; a span of blanks alone would keep them.
        true if shown.trim().is_empty() => format!("`\"{shown}\"`"),
        true => format!("{fence} {shown} {fence}"),
        false => format!("{fence}{shown}{fence}"),
    }
}

/// Our words with others' among them: nothing in it is markup, and nothing becomes a link.
fn prose(text: &str) -> String {
    let mut shown = String::new();
    for c in inert::whole(text).chars() {
        if "\\`*_[]<>|&#~!$@{}".contains(c) {
            shown.push('\\');
        }
        shown.push(c);
    }
    // Numbers of events are ours to cite; bare addresses would become links.
    shown.replace("://", ":\\//").replace("www.", "www\\.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_others_wrote_is_markup() {
        assert_eq!(code(&"a `b` <c>"), "`` a `b` <c> ``");
        assert_eq!(code(&"```"), "```` ``` ````");
        assert_eq!(code(&"x\n# heading"), "`x␊# heading`");
        assert_eq!(code(&""), "`\"\"`");
        assert_eq!(code(&" "), "`\" \"`");
        assert_eq!(
            prose("[a](http://evil) <b> *c* www.d"),
            "\\[a\\](http:\\//evil) \\<b\\> \\*c\\* www\\.d"
        );
    }
}
