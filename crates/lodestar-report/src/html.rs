//! A report as one HTML file: nothing is loaded, nothing runs, and whatever others wrote is text.
//!
//! Markup can only be a literal of this code ([`Page::raw`]); everything else goes through
//! [`Page::text`], which makes it inert and escapes it, or is a number. No attribute, address or style ever
//! holds a word of others. A content security policy forbids the rest.

mod chain;
mod flow;
mod reliability;
mod sections;
mod signals;
mod timeline;

use std::collections::HashMap;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::digest::sha256;

use crate::examine::{Projection, Refusal};
use crate::model::{Answer, Report, Standing};
use crate::{inert, words};

const STYLE: &str = include_str!("html/style.css");

/// Writes a report, or why there is none.
pub fn write(projection: &Projection, out: &mut dyn Write) -> io::Result<()> {
    match projection {
        Projection::Report(report) => report_in(report, out),
        Projection::Refused(refused) => {
            let mut page = Page {
                out,
                anchors: HashMap::new(),
            };
            page.begin("No report", refused.refused.session.as_str())?;
            refusal(&refused.refused, &mut page)?;
            page.end()
        }
    }
}

/// Writes a report.
pub(crate) fn report_in(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page {
        out,
        anchors: anchors(report),
    };
    page.begin("Trust report", report.session.id.as_str())?;
    told(report, &mut page)?;
    page.end()
}

/// A page that is being written.
struct Page<'a> {
    out: &'a mut dyn Write,
    /// Where on the page an event is told: the event whose number its place is named after.
    anchors: HashMap<u64, u64>,
}

impl Page<'_> {
    /// Markup of ours.
    fn raw(&mut self, markup: &'static str) -> io::Result<()> {
        self.out.write_all(markup.as_bytes())
    }

    /// Text, whoever wrote it.
    fn text(&mut self, text: &str) -> io::Result<()> {
        escape(&inert::whole(text), self.out)
    }

    /// Text between two pieces of markup.
    fn tagged(&mut self, before: &'static str, text: &str, after: &'static str) -> io::Result<()> {
        self.raw(before)?;
        self.text(text)?;
        self.raw(after)
    }

    /// A number.
    fn number(&mut self, number: u64) -> io::Result<()> {
        write!(self.out, "{number}")
    }

    /// A length in a picture.
    fn length(&mut self, length: f64) -> io::Result<()> {
        write!(self.out, "{length:.1}")
    }

    /// Numbers of events, each leading to where it is told.
    fn cite(&mut self, events: &[u64]) -> io::Result<()> {
        self.raw("<span class=\"cite\">")?;
        for (at, seq) in events.iter().enumerate() {
            if at > 0 {
                self.raw(" ")?;
            }
            match self.anchors.get(seq).copied() {
                Some(anchor) => {
                    self.raw("<a href=\"#e")?;
                    self.number(anchor)?;
                    self.raw("\">#")?;
                    self.number(*seq)?;
                    self.raw("</a>")?;
                }
                None => {
                    self.raw("#")?;
                    self.number(*seq)?;
                }
            }
        }
        self.raw("</span>")
    }

    fn end(&mut self) -> io::Result<()> {
        self.raw("</main>\n</body>\n</html>\n")
    }

    fn begin(&mut self, what: &'static str, session: &str) -> io::Result<()> {
        self.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")?;
        self.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-")?;
        let digest = BASE64.encode(sha256(STYLE.as_bytes()).as_bytes());
        self.out.write_all(digest.as_bytes())?;
        self.raw("'; base-uri 'none'; form-action 'none'\">\n")?;
        self.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")?;
        self.raw("<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>")?;
        self.raw(what)?;
        self.tagged(": ", session, "</title>\n<style>")?;
        self.raw(STYLE)?;
        self.raw("</style>\n</head>\n<body>\n<main>\n")
    }
}

/// Escapes for text and for attributes alike.
fn escape(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.write_all(&text.as_bytes()[written..at])?;
        out.write_all(entity.as_bytes())?;
        written = at + 1;
    }
    out.write_all(&text.as_bytes()[written..])
}

/// Where each event is told.
fn anchors(report: &Report) -> HashMap<u64, u64> {
    let mut anchors = HashMap::new();
    for action in &report.actions {
        let ended = action.ended.as_ref();
        let told = [
            Some(action.seq),
            action.judged.as_ref().map(|one| one.seq),
            action.cleared.as_ref().map(|one| one.seq),
            ended.map(|one| one.seq),
            ended.and_then(|one| one.returned),
            action.rejected.as_ref().map(|one| one.seq),
        ];
        anchors.extend(told.into_iter().flatten().map(|seq| (seq, action.seq)));
    }
    for request in &report.requests {
        let answers = request.answers.iter().map(|answer| answer.seq);
        anchors.extend(answers.chain([request.seq]).map(|seq| (seq, request.seq)));
    }
    for hostile in &report.hostile {
        anchors.entry(hostile.seq).or_insert(hostile.seq);
    }
    anchors
}

fn refusal(refusal: &Refusal, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<header class=\"top bad\">\n<p class=\"kind\">No report</p>\n<h1>")?;
    page.tagged("Session ", refusal.session.as_str(), "</h1>\n")?;
    page.tagged(
        "<p class=\"lead\">",
        refusal.because.shown(),
        "</p>\n</header>\n",
    )?;
    page.raw("<section>\n<h2>What is wrong</h2>\n<ul class=\"plain\">\n")?;
    for wrong in &refusal.problems {
        page.raw("<li>")?;
        if let Some(file) = &wrong.file {
            page.tagged("<code>", file, "</code> ")?;
        }
        if let Some(seq) = wrong.seq {
            page.cite(&[seq])?;
            page.raw(" ")?;
        }
        if let Some(offset) = wrong.offset {
            page.raw("<span class=\"dim\">byte ")?;
            page.number(offset)?;
            page.raw("</span> ")?;
        }
        page.text(&wrong.problem)?;
        page.raw("</li>\n")?;
    }
    page.raw("</ul>\n</section>\n")
}

fn told(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    heading(report, page)?;
    page.raw("<section class=\"answers\" aria-label=\"Answers\">\n")?;
    for answer in report.answers.all() {
        answered(answer, page)?;
    }
    page.raw("</section>\n")?;
    flow::write(report, page)?;
    timeline::write(report, page)?;
    sections::actions(report, page)?;
    sections::requests(report, page)?;
    sections::refused(report, page)?;
    sections::forged(report, page)?;
    sections::hostile(report, page)?;
    chain::beliefs(report, page)?;
    chain::decisions(report, page)?;
    signals::write(report, page)?;
    sections::execution(report, page)?;
    sections::integrity(report, page)?;
    page.raw("<section>\n<h2>Limits of this report</h2>\n<ul>\n")?;
    for limit in &report.limits {
        page.tagged("<li>", &limit.limit, " ")?;
        page.cite(&limit.events)?;
        page.raw("</li>\n")?;
    }
    page.raw("</ul>\n</section>\n")
}

fn heading(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    let session = &report.session;
    let worst = report
        .answers
        .all()
        .iter()
        .any(|one| one.standing == Standing::Bad);
    page.raw(match worst {
        true => "<header class=\"top bad\">\n",
        false => "<header class=\"top\">\n",
    })?;
    page.raw("<p class=\"kind\">Lodestar trust report</p>\n")?;
    page.tagged("<h1>Session <code>", session.id.as_str(), "</code></h1>\n")?;
    page.tagged(
        "<p class=\"lead\">Project <code>",
        session.project.as_str(),
        "</code>, ",
    )?;
    page.tagged("agent <code>", &session.actor, "</code>, ")?;
    page.text(&session.state.to_string())?;
    page.tagged(". ", &words::seconds(session.opened_at), " to ")?;
    page.text(&words::seconds(session.last_at))?;
    page.tagged(
        " UTC, ",
        &words::count(report.counts.events, "event"),
        ".</p>\n",
    )?;
    page.raw("<dl class=\"facts\">\n")?;
    for task in &session.tasks {
        page.tagged("<dt>Task</dt><dd><q>", &task.text, "</q> ")?;
        page.cite(&[task.seq])?;
        page.raw("</dd>\n")?;
    }
    if let Some(policy) = &session.policy {
        page.tagged("<dt>Policy</dt><dd>", policy.signature, "")?;
        if let Some(key) = &policy.key {
            page.tagged(" by <code>", key, "</code>")?;
        }
        page.tagged(", <code>", &words::short(&policy.digest), "</code>, ")?;
        page.text(&words::count(policy.tools, "tool"))?;
        page.tagged(", ", &words::count(policy.approvers, "approver"), " ")?;
        page.cite(&[policy.seq])?;
        page.raw("</dd>\n")?;
    }
    for halted in &session.halted {
        page.tagged("<dt>Halted</dt><dd>", &halted.text, " ")?;
        page.cite(&[halted.seq])?;
        page.raw("</dd>\n")?;
    }
    if let Some(closed) = &session.closed {
        page.tagged("<dt>Closed</dt><dd>", &closed.text, " ")?;
        page.cite(&[closed.seq])?;
        page.raw("</dd>\n")?;
    }
    page.tagged(
        "<dt>Ceiling</dt><dd>content above <code>",
        report.ceiling.as_str(),
        "</code> is left out</dd>\n</dl>\n</header>\n",
    )
}

fn answered(answer: &Answer, page: &mut Page<'_>) -> io::Result<()> {
    page.raw(match answer.standing {
        Standing::Good => "<article class=\"answer good\">\n",
        Standing::Bad => "<article class=\"answer bad\">\n",
        Standing::Open => "<article class=\"answer open\">\n",
    })?;
    page.tagged("<h2>", answer.question, "</h2>\n")?;
    page.tagged("<p class=\"word\">", answer.answer.shown(), "</p>\n")?;
    page.tagged("<p>", &answer.because, "</p>\n<p>")?;
    page.cite(&answer.events)?;
    page.raw("</p>\n</article>\n")
}
