//! A request as people see it: the same lines for `show`, `grant` and `watch`.
//!
//! All that an agent, a tool or a repository wrote is made inert before it becomes part of a line, is
//! bounded with a count of what is left out, and starts at a column that only our own words leave free.
//! Every row starts with a mark: [`BAR`] where something of ours begins, which [`inert`] text never has,
//! and [`GOES_ON`] where what stands above goes on. A row that a terminal broke off has neither.

use lodestar_core::provenance::{
    ArgumentProvenance, GivenSource, Label, Likeness, Place, Resembled,
};
use lodestar_core::time::Timestamp;
use lodestar_guard::channel::drop::Shown;
use lodestar_guard::hook::Client;
use serde_json::Value;

use crate::text::{Line, Tone, wrapped};
use crate::{inert, json, words};

/// What a row starts with that begins something.
const BAR: &str = "▌ ";
/// What a row starts with that goes on.
const GOES_ON: &str = "┆ ";
/// The columns of either.
const MARK: usize = 2;
/// Where values start, behind their labels.
const INDENT: usize = 13;
/// With less room than this behind their labels, values start on a row of their own.
const LEAST_ROOM: usize = 16;
/// Rows that one value may take on the card.
const MOST_ROWS: usize = 4;
/// Values that are on the card; all of them are among the full arguments.
const MOST_VALUES: usize = 60;
/// Reasons, parts of one value and places one was read at that are on the card.
const MOST_REASONS: usize = 12;
const MOST_PARTS: usize = 5;
const MOST_SOURCES: usize = 3;
const FULL: &str = "`a` in `approve watch`, or `approve show --full`, shows all";
/// What is looked at of a text for its preview.
const PREVIEW: usize = 16 << 10;

struct Card {
    lines: Vec<Line>,
    columns: usize,
    others: Others,
}

/// How what others wrote comes onto a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// With its tricks made visible.
    Inert,
    /// For a harness that takes [`Defence::InertRendering`](lodestar_core::defence::Defence) out: as it is.
    Live,
}

impl Others {
    fn line(self, text: &str, columns: usize) -> String {
        self.beginning(text, 0, columns).0
    }

    fn beginning(self, text: &str, more: usize, columns: usize) -> (String, usize) {
        match self {
            Self::Inert => inert::beginning(text, more, columns),
            Self::Live => (text.to_owned(), more),
        }
    }

    /// The beginning of a value, and how many bytes of it follow.
    fn preview(self, value: &Value) -> (String, usize) {
        match (self, value) {
            (Self::Live, Value::String(text)) => (text.clone(), 0),
            (Self::Inert | Self::Live, value) => preview(value),
        }
    }
}

impl Card {
    /// Whether labels stand on rows of their own.
    fn is_narrow(&self) -> bool {
        self.columns < MARK + INDENT + LEAST_ROOM
    }

    fn room(&self) -> usize {
        match self.is_narrow() {
            true => self.columns.saturating_sub(MARK),
            false => self.columns - MARK - INDENT,
        }
    }

    /// A label and untrusted text behind it.
    fn field(&mut self, label: &str, tone: Tone, text: &str) {
        let text = self.others.line(text, self.room() * MOST_ROWS);
        self.rows(label, Tone::Dim, tone, &text);
    }

    fn rows(&mut self, label: &str, label_tone: Tone, tone: Tone, text: &str) {
        let is_narrow = self.is_narrow();
        let mut begins = true;
        if is_narrow && !label.is_empty() {
            let line = Line::of(Tone::Dim, BAR).and(label_tone, label);
            self.lines.push(line.fitted(self.columns));
            begins = false;
        }
        for text in wrapped(text, self.room()) {
            let (mark, label) = match begins {
                true => (BAR, label),
                false => (GOES_ON, ""),
            };
            let mut line = Line::of(Tone::Dim, mark);
            if !is_narrow {
                line = line.and(label_tone, format!("{label:<INDENT$}"));
            }
            self.lines.push(line.and(tone, text));
            begins = false;
        }
    }
}

/// The card, for a terminal of so many columns. The fingerprint comes last: whoever types its end has
/// come past the rest.
pub(crate) fn lines(shown: &Shown, now: Timestamp, columns: usize) -> Vec<Line> {
    lines_with(shown, now, columns, Others::Inert)
}

/// The same, with what others wrote on it so.
pub(crate) fn lines_with(
    shown: &Shown,
    now: Timestamp,
    columns: usize,
    others: Others,
) -> Vec<Line> {
    let announcement = shown.announcement();
    let request = &announcement.request;
    let action = &request.card.action;
    let mut card = Card {
        lines: Vec::new(),
        columns,
        others,
    };
    card.field("tool", Tone::Strong, action.tool.as_str());
    card.field("server", Tone::Plain, action.server.as_str());
    contract(&mut card, shown);
    why(&mut card, &request.card.why);
    arguments(&mut card, shown);
    for path in &request.card.paths {
        card.field("path", Tone::Plain, path.as_str());
    }
    for out in &request.card.going_out {
        card.field("goes out", Tone::Warn, out);
    }
    for measured in &request.card.measured {
        card.field("measured", Tone::Plain, &measurement(measured));
    }
    people(&mut card, shown, now);
    card.field("request", Tone::Plain, &request.id.to_string());
    card.field(
        "session",
        Tone::Plain,
        &format!("{} of project {}", request.session, announcement.project),
    );
    card.field(
        "definition",
        Tone::Dim,
        &request.card.definition.to_string(),
    );
    card.field("policy", Tone::Dim, &request.policy.to_string());
    fingerprint(&mut card, &action.fingerprint.to_string());
    card.lines
}

/// Each reason on a line of its own.
fn why(card: &mut Card, why: &str) {
    let mut lines = why.lines().filter(|line| !line.trim().is_empty());
    for (n, line) in lines.by_ref().take(MOST_REASONS).enumerate() {
        let label = if n == 0 { "why held" } else { "" };
        let lead = if n == 0 { "" } else { "· " };
        let room = card.room() * MOST_ROWS;
        card.rows(
            label,
            Tone::Dim,
            Tone::Plain,
            &format!("{lead}{}", card.others.line(line.trim(), room)),
        );
    }
    more(
        card,
        lines.count(),
        "reason",
        "`lodestar policy explain` has all",
    );
}

/// Says what is left out, and where it is.
fn more(card: &mut Card, count: usize, what: &str, place: &str) {
    if count > 0 {
        let plural = if count == 1 { "" } else { "s" };
        let text = format!(
            "… and {} more {what}{plural}; {place}",
            words::number(count as u64)
        );
        card.rows("", Tone::Dim, Tone::Warn, &text);
    }
}

fn contract(card: &mut Card, shown: &Shown) {
    let action = &shown.announcement().request.card.action;
    let contract = &action.contract;
    let words = format!(
        "{} · {} · {} · {} data · in {}",
        contract.required_level,
        contract.blast_radius,
        contract.reversibility,
        contract.data_sensitivity,
        contract.scope
    );
    card.field("contract", Tone::Plain, &words);
    let permissions: Vec<String> = contract
        .permissions
        .iter()
        .map(ToString::to_string)
        .collect();
    // A client runs its own tools itself: whatever their grade says, nothing holds it to that.
    let is_own = Client::ALL
        .iter()
        .any(|client| client.name() == action.server.as_str());
    let sandbox = match is_own {
        true => "none, the client runs it itself".to_owned(),
        false => contract.sandbox.to_string(),
    };
    let sandbox = format!("{sandbox}; may use: {}", or_nothing(&permissions));
    card.field("sandbox", Tone::Plain, &sandbox);
}

fn or_nothing(words: &[String]) -> String {
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => words.join(", "),
    }
}

fn people(card: &mut Card, shown: &Shown, now: Timestamp) {
    let announcement = shown.announcement();
    let requirement = &announcement.request.requirement;
    let mut needs = words::count(u64::from(requirement.quorum), "approver");
    if !requirement.roles.is_empty() {
        let roles: Vec<String> = requirement.roles.iter().cloned().collect();
        needs.push_str(&format!("; roles: {}", roles.join(", ")));
    }
    card.field("needs", Tone::Plain, &needs);
    let agreed: Vec<String> = announcement
        .granted_by
        .iter()
        .map(ToString::to_string)
        .collect();
    let agreed = match agreed.is_empty() {
        true => "nobody yet".to_owned(),
        false => agreed.join(", "),
    };
    card.field(
        "agreed",
        Tone::Plain,
        &format!("{agreed}; missing: {}", announcement.missing),
    );
    if shown.answers() > 0 {
        let sent = words::count(shown.answers() as u64, "answer");
        card.field(
            "sent",
            Tone::Plain,
            &format!("{sent} not taken up yet by the session"),
        );
    }
    let expires_at = announcement.request.expires_at;
    let left = left(now, expires_at);
    let tone = if left == EXPIRED {
        Tone::Bad
    } else {
        Tone::Plain
    };
    card.field(
        "time left",
        tone,
        &format!("{left} (until {} UTC)", words::seconds(expires_at)),
    );
}

fn fingerprint(card: &mut Card, fingerprint: &str) {
    let (start, last) = fingerprint.split_at(fingerprint.len().saturating_sub(4));
    card.rows("fingerprint", Tone::Dim, Tone::Dim, start);
    card.rows("last four", Tone::Dim, Tone::Strong, last);
}

pub(crate) const EXPIRED: &str = "expired";

/// `14m 10s`
pub(crate) fn left(now: Timestamp, until: Timestamp) -> String {
    let seconds = until.unix_micros().saturating_sub(now.unix_micros()) / 1_000_000;
    match seconds {
        ..=0 => EXPIRED.to_owned(),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

fn arguments(card: &mut Card, shown: &Shown) {
    let request = &shown.announcement().request;
    let arguments = &request.card.action.arguments;
    if arguments.is_empty() {
        card.field("arguments", Tone::Dim, "none");
        return;
    }
    let mut leaves = Vec::new();
    for (name, value) in arguments {
        gather(&format!("/{}", escaped(name)), value, &mut leaves);
    }
    for (pointer, value) in leaves.iter().take(MOST_VALUES) {
        let of_it = |p: &&ArgumentProvenance| p.pointer == *pointer && p.place == Place::Value;
        let known = request.card.provenance.iter().find(of_it);
        argument(card, pointer, value, known);
    }
    let names = request
        .card
        .provenance
        .iter()
        .filter(|p| p.place == Place::Name);
    let mut names = names.into_iter();
    for known in names.by_ref().take(MOST_VALUES) {
        let (mark, tone) = mark(&known.label);
        let name = card.others.line(&known.pointer, card.room());
        let text = format!("the name {name}");
        card.rows(mark, tone, tone, &text);
    }
    more(card, names.count(), "name", FULL);
    more(
        card,
        leaves.len().saturating_sub(MOST_VALUES),
        "value",
        FULL,
    );
}

fn argument(card: &mut Card, pointer: &str, value: &Value, known: Option<&ArgumentProvenance>) {
    let label = known.map_or(&Label::Unknown, |known| &known.label);
    let (mark, tone) = mark(label);
    let room = card.room();
    let others = card.others;
    let pointer = others.line(pointer.trim_start_matches('/'), room);
    card.rows(mark, tone, Tone::Strong, &pointer);
    let (text, following) = others.preview(value);
    let (text, hidden) = others.beginning(&text, following, room * MOST_ROWS);
    card.rows("", tone, tone, &text);
    if hidden > 0 {
        let text = format!(
            "… {} bytes are not shown; {FULL}",
            words::number(hidden as u64)
        );
        card.rows("", Tone::Dim, Tone::Warn, &text);
    }
    let origin_of_it = others.line(&origin(label), room * MOST_ROWS);
    card.rows("", Tone::Dim, Tone::Dim, &origin_of_it);
    let Some(known) = known else {
        return;
    };
    if let Some(like) = &known.resembles {
        let what = match like.to {
            Resembled::TrustedValue => "a trusted value",
            Resembled::WordOfTask => "a word of the task",
        };
        let text = format!("easily taken for {what}: {}", quoted(&like.text));
        card.rows(
            "! alike",
            Tone::Bad,
            Tone::Bad,
            &others.line(&text, room * MOST_ROWS),
        );
    }
    let mut inside = known.inside.iter().filter(|i| !i.label.is_trusted());
    for inside in inside.by_ref().take(MOST_PARTS) {
        let part = value
            .as_str()
            .and_then(|text| text.get(inside.range.clone()));
        let text = format!(
            "inside: {} ({})",
            quoted(part.unwrap_or("?")),
            origin(&inside.label)
        );
        card.rows(
            "",
            Tone::Dim,
            Tone::Warn,
            &others.line(&text, room * MOST_ROWS),
        );
    }
    let left_out = inside.count().saturating_add(known.inside_omitted);
    more(
        card,
        left_out,
        "part",
        "`approve show --json` has those that were kept",
    );
}

/// How provenance reads without colour, and its colour.
fn mark(label: &Label) -> (&'static str, Tone) {
    match label {
        Label::Given { .. } => ("+ given", Tone::Good),
        Label::Measured { .. } => ("+ measured", Tone::Accent),
        Label::Read { .. } => ("! read", Tone::Warn),
        Label::Unknown => ("? unknown", Tone::Bad),
    }
}

fn origin(label: &Label) -> String {
    match label {
        Label::Given { source } => match source {
            GivenSource::Task => "given in the task".to_owned(),
            GivenSource::Assertion { statement } => {
                format!("given in a signed assertion, {}", words::short(statement))
            }
            GivenSource::KnownValue { list } => format!("given in the list {}", quoted(list)),
        },
        Label::Measured { what } => format!("measured by Lodestar: {}", quoted(what)),
        Label::Read { observations, how } => {
            let how = match how {
                Likeness::Copy => "a copy",
                Likeness::NormalForm => "another spelling",
                Likeness::Loose => "the same letters and digits",
                Likeness::Part => "a part",
                Likeness::Pieces => "put together from pieces",
                Likeness::Decoded => "decoded",
            };
            let from = observations.iter().take(MOST_SOURCES);
            let from: Vec<String> = from.map(words::short_id).collect();
            let more = match observations.len().saturating_sub(MOST_SOURCES) {
                0 => String::new(),
                more => format!(" … and {more} more; `approve show --json` has all"),
            };
            format!("{how} of what was read: {}{more}", from.join(", "))
        }
        Label::Unknown => "nobody gave, measured or read this".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    match preview(&Value::String(text.to_owned())) {
        (text, 0) => text,
        (text, more) => format!("{text} … and {} more bytes", words::number(more as u64)),
    }
}

/// The beginning of a value as JSON, and how many bytes of it follow.
fn preview(value: &Value) -> (String, usize) {
    match value {
        Value::String(text) if text.len() > PREVIEW => {
            let end = (0..=PREVIEW).rev().find(|at| text.is_char_boundary(*at));
            let (start, rest) = text.split_at(end.unwrap_or(0));
            let mut start = json::compact(&start);
            start.pop(); // The quotation mark stands at the end of the rest.
            (start, rest.len() + 1)
        }
        value => (json::compact(value), 0),
    }
}

fn measurement(measured: &Value) -> String {
    let text = |key: &str| measured.get(key).map(json::compact).unwrap_or_default();
    let check = measured.get("check").and_then(Value::as_str);
    let of = measured
        .get("of")
        .map(|of| format!(" of {}", json::compact(of)));
    format!(
        "{}{}: {}",
        check.unwrap_or("?"),
        of.unwrap_or_default(),
        text("expected_at_approval")
    )
}

/// The values at the ends, with JSON pointers; a container without any is one itself.
fn gather<'a>(pointer: &str, value: &'a Value, leaves: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                gather(&format!("{pointer}/{}", escaped(name)), value, leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                gather(&format!("{pointer}/{at}"), value, leaves);
            }
        }
        value => leaves.push((pointer.to_owned(), value)),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A row of our own.
pub(crate) fn heading(text: &str) -> Line {
    Line::of(Tone::Dim, BAR).and(Tone::Strong, text)
}

/// All of the arguments, as rows of a screen.
pub(crate) fn full_arguments(shown: &Shown, columns: usize) -> Vec<Line> {
    let arguments = &shown.announcement().request.card.action.arguments;
    let mut lines = Vec::new();
    for line in json::pretty(arguments).split('\n') {
        for (row, text) in wrapped(&inert::whole(line), columns.saturating_sub(MARK))
            .into_iter()
            .enumerate()
        {
            let lead = if row == 0 { BAR } else { GOES_ON };
            lines.push(Line::of(Tone::Dim, lead).and(Tone::Plain, text));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_in_two_units() {
        let at = |seconds: i64| Timestamp::from_unix_micros(seconds * 1_000_000).expect("in range");
        for (seconds, text) in [
            (-1, EXPIRED),
            (0, EXPIRED),
            (59, "59s"),
            (61, "1m 01s"),
            (3661, "1h 01m"),
            (90_000, "1d 01h"),
        ] {
            assert_eq!(left(at(1000), at(1000 + seconds)), text);
        }
    }
}
