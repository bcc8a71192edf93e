//! Beliefs outlive sessions: what other sessions did to those of the one that is reported on.
//!
//! Only sessions that were verified are read here. What does not verify, or is not there, ended the
//! examination before: a change that somebody took away would tell another story of this session.

use lodestar_core::chain::Truth;
use lodestar_core::chain::transition::State;
use lodestar_core::event::EventType;
use lodestar_core::merkle::Frontier;
use lodestar_core::name::SessionId;
use lodestar_firewall::event::FirewallEvent;
use lodestar_log::verify::{ProjectReport, SessionReport};
use lodestar_log::{ProjectLog, Reader, SessionDir};
use lodestar_replay::Defences;

use super::{Examination, ReportError};
use crate::fold::{Changed, Fold};
use crate::model::{Answer, Belief, Word};

/// Takes in what the other sessions of a project that verified did to beliefs of this one. What is left
/// out is said.
pub(super) fn moved(
    examination: &Examination<'_>,
    log: &ProjectLog,
    project: &ProjectReport,
    fold: &mut Fold<'_>,
) -> Result<Vec<String>, ReportError> {
    let mut left_out = Vec::new();
    let this = examination.dir.session();
    for verified in project.sessions.iter().filter(|one| one.session != *this) {
        // A session whose start was cut off has no events, and maybe no file for them.
        if verified.events == 0 {
            continue;
        }
        let dir = log.session(&verified.session);
        let found = changes_of(&dir, verified, fold)?;
        if found.says_nothing() {
            continue;
        }
        let other = &verified.session;
        if Defences::of(&dir)? != Defences::Whole {
            left_out.push(format!(
                "Session {other} changes beliefs of this one, but had defences taken out: what it says is left out."
            ));
            continue;
        }
        found.tell_limits(verified, &mut left_out);
        let lost = found.redacted.iter().chain(&found.unknown);
        fold.lost_elsewhere
            .extend(lost.map(|seq| (other.clone(), *seq)));
        let changes = found.changes.into_iter();
        changes.for_each(|(_, change)| fold.moved(change));
    }
    Ok(left_out)
}

/// Events of other sessions that an answer names; there can be more, and then it says how many.
const MOST_CITED: usize = 8;

/// Names the events of other sessions that raised what had only been read: an answer's own list holds only
/// numbers of this session.
pub(super) fn cite(answer: &mut Answer, beliefs: &[Belief]) {
    let supported = State::Truth(Truth::Supported);
    let read = beliefs.iter().filter(|belief| belief.was_read());
    let raised = read.flat_map(|belief| &belief.moves);
    let raised = raised.filter(|one| one.step.to() == supported);
    let mut places: Vec<(&SessionId, u64)> = raised
        .filter_map(|one| Some((one.session.as_ref()?, one.seq)))
        .collect();
    places.dedup();
    if places.is_empty() || answer.answer != Word::Yes {
        return;
    }
    answer.because = format!("{} ({})", answer.because, named(&places));
}

/// Events of other sessions in words.
pub(crate) fn named(places: &[(&SessionId, u64)]) -> String {
    let shown = places.iter().take(MOST_CITED);
    let shown: Vec<String> = shown
        .map(|(session, seq)| format!("event {seq} of session {session}"))
        .collect();
    let more = match places.len().saturating_sub(MOST_CITED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{}{more}", shown.join(", "))
}

/// What a session did to beliefs of the one that is reported on.
#[derive(Default)]
struct Found {
    changes: Vec<(u64, Changed)>,
    /// Events that change beliefs, and whose payload was taken away by an operator.
    redacted: Vec<u64>,
    /// Events that change beliefs in a way that this version does not know.
    unknown: Vec<u64>,
}

impl Found {
    fn says_nothing(&self) -> bool {
        self.changes.is_empty() && self.redacted.is_empty() && self.unknown.is_empty()
    }

    fn tell_limits(&self, verified: &SessionReport, limits: &mut Vec<String>) {
        let other = &verified.session;
        let unproven = self.changes.iter().map(|(seq, _)| *seq);
        let unproven: Vec<u64> = unproven.filter(|seq| *seq >= verified.proven).collect();
        for (seqs, what) in [
            (
                &self.redacted,
                "was redacted, and may have changed beliefs of this one",
            ),
            (
                &self.unknown,
                "cannot be read by this version of Lodestar, and may have changed beliefs of this one",
            ),
            (
                &unproven,
                "changes beliefs of this one and is unproven: no signed checkpoint covers it yet",
            ),
        ] {
            if let Some(first) = seqs.first() {
                let more = match seqs.len() {
                    1 => String::new(),
                    n => format!(" and {} after it", n - 1),
                };
                limits.push(format!("Event {first}{more} of session {other} {what}."));
            }
        }
    }
}

/// Reads a session that was verified, as far as it was. That it is the same still is checked again.
fn changes_of(
    dir: &SessionDir,
    verified: &SessionReport,
    fold: &Fold<'_>,
) -> Result<Found, ReportError> {
    let mut found = Found::default();
    let mut tree = Frontier::new();
    let mut reader = Reader::open(dir)?;
    while tree.size() < verified.events {
        let event = reader.next_event().map_err(|_| ReportError::Changed)?;
        let event = event.ok_or(ReportError::Changed)?;
        tree.push(event.leaf_hash);
        let kind = EventType::parse(event.kind.as_bytes());
        let Some(kind) = kind.filter(|kind| changes_others(*kind)) else {
            continue;
        };
        let payload = event.whole(dir).map_err(|_| ReportError::Changed)?;
        let Some(payload) = payload else {
            found.redacted.push(event.seq);
            continue;
        };
        let changes = match FirewallEvent::read(kind, payload) {
            Some(Ok(FirewallEvent::Adopted(adopted))) => adopted.changes,
            Some(Ok(FirewallEvent::Moved(moved))) => moved.changes,
            Some(Ok(FirewallEvent::Promoted(promoted))) => vec![promoted.change],
            _ => {
                found.unknown.push(event.seq);
                continue;
            }
        };
        let ours = changes.into_iter().filter(|one| fold.knows(one.belief));
        let ours = ours.map(|one| Changed::new(&one, event.seq, Some(dir.session())));
        found.changes.extend(ours.map(|one| (event.seq, one)));
    }
    match tree.root() == verified.root {
        true => Ok(found),
        false => Err(ReportError::Changed),
    }
}

/// Whether events of this type can change where a belief of another session stands.
fn changes_others(kind: EventType) -> bool {
    [
        EventType::BELIEF_ADOPTED,
        EventType::BELIEF_MOVED,
        EventType::BELIEF_PROMOTED,
    ]
    .contains(&kind)
}
