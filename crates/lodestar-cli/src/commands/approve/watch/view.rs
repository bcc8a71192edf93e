//! What stands on the screen, and what a key does to it. Nothing here touches a terminal or a file.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_core::statement::ApprovalDecision;
use lodestar_guard::channel::drop::Shown;
use zeroize::Zeroizing;

use super::super::{answer, card, list};
use super::looking::Look;
use crate::text::{Line, Tone, wrapped};
use crate::{inert, words};

/// Longest reason that can be typed.
const LONGEST_REASON: usize = 400;
const LONGEST_PASSPHRASE: usize = 1024;

/// What a key asks for.
pub(super) enum Deed {
    None,
    Leave,
    /// The fingerprint was typed, and a reason where one is needed.
    Answer {
        decision: ApprovalDecision,
        reason: String,
    },
    /// And the passphrase.
    Sign {
        decision: ApprovalDecision,
        reason: String,
        passphrase: Zeroizing<String>,
    },
}

#[derive(Default)]
enum Mode {
    #[default]
    Browse,
    Arguments,
    Fingerprint {
        decision: ApprovalDecision,
        typed: String,
    },
    Reason {
        typed: String,
    },
    Passphrase {
        name: String,
        decision: ApprovalDecision,
        reason: String,
        typed: Zeroizing<String>,
    },
}

#[derive(Default)]
pub(super) struct View {
    requests: Vec<Shown>,
    /// What lies there and is not shown, or cannot be looked at.
    problem: Option<String>,
    notice: Option<String>,
    /// Anybody can give a request of theirs the id of another one, but not its session's folder.
    selected: Option<(RequestId, SessionId)>,
    /// The request that is being answered, as it was shown; later changes do not slip under the hand.
    answering: Option<Shown>,
    scroll: usize,
    mode: Mode,
    said: Option<(Tone, String)>,
}

impl View {
    /// Takes over what lies there now; the selection stays with its request.
    pub(super) fn refresh(&mut self, look: Look) {
        let before = self.position();
        self.requests = look.requests;
        let not_shown = look.unusable.first().map(|(id, session, why)| {
            let more = match look.unusable.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let id = words::short_id(id);
            format!("{id} of {session} is not shown{more}: {why}")
        });
        self.problem = look.problem.or(not_shown);
        self.notice = look
            .notices
            .last()
            .map(|notice| format!("ran {}  {}", words::seconds(notice.at), notice.what));
        if self.position().is_none() {
            let at = before
                .unwrap_or(0)
                .min(self.requests.len().saturating_sub(1));
            self.select(at);
        }
    }

    fn position(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.requests
            .iter()
            .position(|shown| key(shown) == *selected)
    }

    fn select(&mut self, at: usize) {
        self.selected = self.requests.get(at).map(key);
        self.scroll = 0;
        if matches!(self.mode, Mode::Arguments) {
            self.mode = Mode::Browse;
        }
    }

    fn current(&self) -> Option<&Shown> {
        self.answering
            .as_ref()
            .or_else(|| self.requests.get(self.position()?))
    }

    /// The request that is being answered.
    pub(super) fn answering(&self) -> Option<&Shown> {
        self.answering.as_ref()
    }

    pub(super) fn say(&mut self, text: &str) {
        self.said = Some((Tone::Plain, inert::whole(text)));
    }

    /// Says why nothing was signed, and goes back.
    pub(super) fn say_problem(&mut self, text: &str) {
        self.back();
        self.said = Some((Tone::Bad, inert::whole(text)));
    }

    /// Says that something was signed, and goes back.
    pub(super) fn done(&mut self, text: &str) {
        self.back();
        self.said = Some((Tone::Good, text.to_owned()));
    }

    pub(super) fn ask_passphrase(
        &mut self,
        name: &str,
        decision: ApprovalDecision,
        reason: String,
    ) {
        self.mode = Mode::Passphrase {
            name: name.to_owned(),
            decision,
            reason,
            // Room for all of it at once: a text that grows leaves copies behind.
            typed: Zeroizing::new(String::with_capacity(LONGEST_PASSPHRASE)),
        };
    }

    fn back(&mut self) {
        self.mode = Mode::Browse;
        self.answering = None;
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Deed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c')) {
            return Deed::Leave;
        }
        self.said = None;
        match &mut self.mode {
            Mode::Browse | Mode::Arguments => self.browse(key.code),
            Mode::Fingerprint { .. } | Mode::Reason { .. } | Mode::Passphrase { .. }
                if key.code == KeyCode::Esc =>
            {
                self.back();
                Deed::None
            }
            Mode::Fingerprint { decision, typed } => {
                let decision = *decision;
                if !edit(typed, key.code, control, 8) {
                    return Deed::None;
                }
                let typed = std::mem::take(typed);
                self.fingerprint_typed(decision, &typed)
            }
            Mode::Reason { typed } => {
                if !edit(typed, key.code, control, LONGEST_REASON) {
                    return Deed::None;
                }
                let reason = std::mem::take(typed);
                if reason.trim().is_empty() {
                    self.say("a refusal needs a reason");
                    return Deed::None;
                }
                Deed::Answer {
                    decision: ApprovalDecision::Deny,
                    reason,
                }
            }
            Mode::Passphrase {
                decision,
                reason,
                typed,
                ..
            } => {
                if !edit(typed, key.code, control, LONGEST_PASSPHRASE) {
                    return Deed::None;
                }
                Deed::Sign {
                    decision: *decision,
                    reason: std::mem::take(reason),
                    passphrase: std::mem::take(typed),
                }
            }
        }
    }

    fn fingerprint_typed(&mut self, decision: ApprovalDecision, typed: &str) -> Deed {
        let right = self
            .answering
            .as_ref()
            .is_some_and(|shown| answer::is_last_four(shown, typed));
        if !right {
            self.say_problem("that is not the end of this fingerprint; nothing was signed");
            return Deed::None;
        }
        if decision == ApprovalDecision::Deny {
            self.mode = Mode::Reason {
                typed: String::new(),
            };
            return Deed::None;
        }
        Deed::Answer {
            decision,
            reason: String::new(),
        }
    }

    fn browse(&mut self, key: KeyCode) -> Deed {
        let at = self.position().unwrap_or(0);
        match key {
            KeyCode::Char('q') => return Deed::Leave,
            KeyCode::Esc if matches!(self.mode, Mode::Arguments) => self.leave_arguments(),
            KeyCode::Char('a') => match self.mode {
                Mode::Arguments => self.leave_arguments(),
                _ if self.current().is_some() => {
                    self.mode = Mode::Arguments;
                    self.scroll = 0;
                }
                _ => {}
            },
            KeyCode::Down | KeyCode::Char('j') if matches!(self.mode, Mode::Arguments) => {
                self.scroll += 1;
            }
            KeyCode::Up | KeyCode::Char('k') if matches!(self.mode, Mode::Arguments) => {
                self.scroll = self.scroll.saturating_sub(1);
            }
            KeyCode::Down | KeyCode::Char('j') if at + 1 < self.requests.len() => {
                self.select(at + 1);
            }
            KeyCode::Up | KeyCode::Char('k') if at > 0 => self.select(at - 1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += 5,
            KeyCode::PageUp | KeyCode::Char('b') => self.scroll = self.scroll.saturating_sub(5),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX / 2,
            KeyCode::Char('g') => self.start(ApprovalDecision::Grant),
            KeyCode::Char('d') => self.start(ApprovalDecision::Deny),
            _ => {}
        }
        Deed::None
    }

    fn leave_arguments(&mut self) {
        self.mode = Mode::Browse;
        self.scroll = 0;
    }

    fn start(&mut self, decision: ApprovalDecision) {
        let Some(shown) = self.current().cloned() else {
            return;
        };
        if let Err(failure) = answer::check_open(&shown) {
            self.say_problem(&failure.with_help());
            return;
        }
        self.answering = Some(shown);
        self.mode = Mode::Fingerprint {
            decision,
            typed: String::new(),
        };
    }

    /// The whole screen, row by row.
    pub(super) fn rows(&mut self, columns: usize, rows: usize) -> Vec<Line> {
        let queue = self.queue(columns, (rows / 4).clamp(1, 6));
        let prompt = self.prompt(columns, (rows / 3).max(1));
        let body = rows.saturating_sub(queue.len() + 3 + prompt.len()).max(1);
        let (card, more) = self.body(columns, body);
        let waiting = words::count(self.requests.len() as u64, "request");
        let mut lines = vec![
            Line::of(Tone::Strong, "lodestar").and(Tone::Plain, format!(" {waiting} waiting")),
        ];
        lines.extend(queue);
        let rule = match more {
            0 => "─".repeat(columns),
            more => {
                let text = format!("── {more} more below, PgDn ");
                let rest = columns.saturating_sub(text.chars().count());
                text + &"─".repeat(rest)
            }
        };
        lines.push(Line::of(Tone::Dim, rule));
        lines.extend(card);
        lines.push(self.foot(columns));
        lines.extend(prompt);
        lines.truncate(rows);
        lines
    }

    fn queue(&self, columns: usize, most: usize) -> Vec<Line> {
        let at = self.position().unwrap_or(0);
        let first = (at + 1).saturating_sub(most);
        let shown = self.requests.iter().enumerate().skip(first).take(most);
        let mut lines: Vec<Line> = shown
            .map(|(n, shown)| {
                let lead = if n == at { "> " } else { "  " };
                let request = list::row(shown, columns.saturating_sub(2));
                Line::of(Tone::Strong, lead).followed_by(request)
            })
            .collect();
        if lines.is_empty() {
            lines.push(Line::of(Tone::Dim, "  nothing waits for a person"));
        }
        lines
    }

    /// The card or the full arguments, and how many rows are below.
    fn body(&mut self, columns: usize, rows: usize) -> (Vec<Line>, usize) {
        let lines = match (self.current(), &self.mode) {
            (None, _) => Vec::new(),
            (Some(shown), Mode::Arguments) => card::full_arguments(shown, columns),
            (Some(shown), _) => card::lines(shown, answer::now(), columns),
        };
        let last = lines.len().saturating_sub(rows);
        self.scroll = self.scroll.min(last);
        let more = last - self.scroll;
        let mut seen: Vec<Line> = lines.into_iter().skip(self.scroll).take(rows).collect();
        seen.resize(rows, Line::default());
        (seen, more)
    }

    /// What ran lately, or what lies there and is not shown.
    fn foot(&self, columns: usize) -> Line {
        match (&self.problem, &self.notice) {
            (Some(problem), _) => Line::of(Tone::Bad, inert::line(problem, columns)),
            (None, Some(notice)) => Line::of(Tone::Dim, inert::line(notice, columns)),
            (None, None) => Line::default(),
        }
    }

    /// What is asked or was said; what was said gets as many rows as it needs, up to `most`.
    fn prompt(&self, columns: usize, most: usize) -> Vec<Line> {
        match &self.said {
            Some((tone, said)) => {
                let text = inert::line(said, columns * most);
                let rows = wrapped(&text, columns);
                rows.into_iter()
                    .take(most)
                    .map(|row| Line::of(*tone, row))
                    .collect()
            }
            None => vec![self.question(columns)],
        }
    }

    fn question(&self, columns: usize) -> Line {
        let asked = |question: &str, typed: &str| {
            let room = columns.saturating_sub(question.chars().count() + 1);
            let skipped = typed.chars().count().saturating_sub(room);
            let end: String = typed.chars().skip(skipped).collect();
            Line::of(Tone::Strong, question)
                .and(Tone::Plain, inert::whole(&end))
                .and(Tone::Dim, "_")
        };
        match &self.mode {
            Mode::Browse if columns < 60 => Line::of(Tone::Dim, "g grant d deny a args q quit"),
            Mode::Browse => Line::of(
                Tone::Dim,
                "↑↓ choose  PgDn scroll  a all arguments  g grant  d deny  q quit",
            ),
            Mode::Arguments => Line::of(Tone::Dim, "PgUp PgDn scroll  a back to the card"),
            Mode::Fingerprint { decision, typed } => {
                let what = match decision {
                    ApprovalDecision::Grant => "GRANT: last four: ",
                    ApprovalDecision::Deny => "DENY: last four: ",
                };
                asked(what, typed)
            }
            Mode::Reason { typed } => asked("reason: ", typed),
            Mode::Passphrase { name, .. } => asked(&format!("passphrase of {name}: "), ""),
        }
    }
}

fn key(shown: &Shown) -> (RequestId, SessionId) {
    let request = &shown.announcement().request;
    (request.id, request.session.clone())
}

/// Takes a key into a text; whether it was Enter.
fn edit(text: &mut String, key: KeyCode, control: bool, longest: usize) -> bool {
    match key {
        KeyCode::Enter => return true,
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char('u') if control => text.clear(),
        KeyCode::Char(c) if !control && text.len() + c.len_utf8() <= longest => text.push(c),
        _ => {}
    }
    false
}
