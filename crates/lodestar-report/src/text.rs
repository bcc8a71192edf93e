//! Sentences that every form of a report has in common.

use lodestar_core::chain::{OutcomeResult, Truth};
use lodestar_core::ladder::Verdict;
use lodestar_kernel::contain::State;

use crate::model::{
    Action, Belief, CanUndo, Contained, Decision, Ended, ImageKept, Judged, Report, Request,
    Undoes, Wary,
};
use crate::words;

/// `confidence 0.95 · truth=supported · retrieval=normal · security=clean · freshness=fresh · authority observed`
pub(crate) fn belief(belief: &Belief) -> String {
    let axes = belief.axes;
    format!(
        "confidence {} · truth={} · retrieval={} · security={} · freshness={} · authority {}",
        belief.confidence,
        axes.truth,
        axes.retrieval,
        axes.security,
        axes.freshness,
        belief.authority
    )
}

/// `(L4, external, irreversible, final phase rejected)`
pub(crate) fn action(action: &Action) -> String {
    format!(
        "({}, {}, {}, final phase {})",
        action.level, action.blast_radius, action.reversibility, action.phase
    )
}

/// Whether an act can be undone, in words.
pub(crate) fn undo(image: &ImageKept) -> String {
    let paths = image.paths.map(|n| words::count(n, "path"));
    let paths = paths.unwrap_or_else(|| "its paths".to_owned());
    match (image.undo, &image.problem) {
        (CanUndo::Yes, _) => format!("can be undone: what stood at {paths} was kept"),
        (CanUndo::No, None) => "cannot be undone".to_owned(),
        (CanUndo::No, Some(problem)) => format!("cannot be undone: {problem}"),
        (CanUndo::Redacted, _) => "cannot be undone: what was kept of it was redacted".to_owned(),
    }
}

/// What an act undoes, in words.
pub(crate) fn undoes(undoes: &Undoes) -> String {
    format!("undoes {} of session {}", undoes.action, undoes.session)
}

/// The short ones of its arguments, for a line.
pub(crate) fn briefly(action: &Action) -> String {
    const SHORT: usize = 40;
    let values = action
        .arguments
        .iter()
        .filter_map(|one| one.value.as_deref());
    let short: Vec<&str> = values
        .filter(|value| value.len() <= SHORT)
        .take(3)
        .collect();
    short.join(" ")
}

/// `hold by policy:ask-push: to ask for it is permitted, to run it is not`; the reason is others' words
/// in part.
pub(crate) fn judged(judged: &Judged) -> (String, &str) {
    let ids: Vec<&str> = judged.policies.iter().map(|id| id.as_str()).collect();
    let by = match ids.is_empty() {
        true => "none".to_owned(),
        false => ids.join(","),
    };
    (format!("{} by policy:{by}", judged.verdict), &judged.reason)
}

/// `#1, #2`
pub(crate) fn cite(events: &[u64]) -> String {
    let events: Vec<String> = events.iter().map(|seq| format!("#{seq}")).collect();
    events.join(", ")
}

/// What became of an action, for those who look only at this.
pub(crate) fn fate(action: &Action) -> Fate {
    let verdict = action.judged.as_ref().map(|judged| judged.verdict);
    let saw_end = |ended: &Ended| ended.result != OutcomeResult::Unknown;
    match (&action.cleared, verdict) {
        (Some(_), _) if action.ended.as_ref().is_some_and(saw_end) => Fate::Ran,
        (Some(_), _) => Fate::MayHaveRun,
        (None, Some(Verdict::Hold)) => Fate::Held,
        (None, Some(Verdict::Deny)) => Fate::Refused,
        (None, _) if action.rejected.is_some() => Fate::Refused,
        // Where its clearance was redacted, its end is still there.
        (None, _) if action.ended.is_some() => Fate::MayHaveRun,
        (None, _) => Fate::Pending,
    }
}

/// What became of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its tool was called, and it ended.
    Ran,
    /// It was cleared, and nobody saw how it ended.
    MayHaveRun,
    /// It was neither cleared nor refused yet, or the log ends before.
    Pending,
    /// It waited for a person and did not run.
    Held,
    /// It did not run.
    Refused,
}

/// What became of all that was to be done: each call is in exactly one of these.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fates {
    pub(crate) ran_allowed: u64,
    pub(crate) ran_approved: u64,
    pub(crate) may_have_run: u64,
    pub(crate) held: u64,
    pub(crate) refused: u64,
    pub(crate) pending: u64,
    /// Proposals that were redacted, or that this version cannot read.
    pub(crate) untold: u64,
}

impl Fates {
    pub(crate) fn of(report: &Report) -> Self {
        let told = report.actions.len() as u64;
        let mut fates = Self {
            refused: report.refused_calls.len() as u64,
            untold: report.counts.proposed.saturating_sub(told),
            ..Self::default()
        };
        for action in &report.actions {
            let judged = action.judged.as_ref().map(|judged| judged.verdict);
            *match (fate(action), judged) {
                (Fate::Ran, Some(Verdict::Hold)) => &mut fates.ran_approved,
                (Fate::Ran, _) => &mut fates.ran_allowed,
                (Fate::MayHaveRun, _) => &mut fates.may_have_run,
                (Fate::Held, _) => &mut fates.held,
                (Fate::Refused, _) => &mut fates.refused,
                (Fate::Pending, _) => &mut fates.pending,
            } += 1;
        }
        fates
    }

    pub(crate) fn total(&self) -> u64 {
        let ran = self.ran_allowed + self.ran_approved + self.may_have_run;
        ran + self.held + self.refused + self.pending + self.untold
    }
}

pub(crate) fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

/// How a request stands, in words.
pub(crate) fn request(request: &Request) -> String {
    let people = match request.quorum {
        1 => "one approver".to_owned(),
        n => format!("{n} different approvers"),
    };
    format!(
        "asked {people} until {}",
        words::seconds(request.expires_at)
    )
}

/// What a decision stood on, counted; the JSON report and the page list each.
pub(crate) fn grounds(decision: &Decision) -> String {
    let all = &decision.rests_on;
    let supported = all.iter().filter(|one| one.truth == Some(Truth::Supported));
    let read = all.iter().filter(|one| one.rests_on_reading == Some(true));
    let mut adopted: Vec<u64> = all.iter().filter_map(|one| one.adopted).collect();
    adopted.sort_unstable();
    adopted.dedup();
    format!(
        "stood on {}, {} of them supported then, {} going back to something read ({})",
        words::count(all.len() as u64, "belief"),
        supported.count(),
        read.count(),
        match adopted.is_empty() {
            true => "none of this session".to_owned(),
            false => cite(&adopted),
        }
    )
}

/// Why content is to be wary of.
pub(crate) fn wary(wary: &Wary) -> (String, &[u64]) {
    match wary {
        Wary::FedCalls { events } => (
            "calls that were held or denied took values from it".to_owned(),
            events,
        ),
        Wary::HiddenCharacters { count } => {
            let characters = words::count(*count, "character");
            (
                format!("it has {characters} that act instead of being seen"),
                &[],
            )
        }
        Wary::SetApart { events } => ("what it says was set apart".to_owned(), events),
        Wary::Forges => ("it speaks in Lodestar's name".to_owned(), &[]),
        Wary::DriftedDefinition => (
            "it defines a tool otherwise than was pinned".to_owned(),
            &[],
        ),
    }
}

/// What was in force around a server and what was tried inside, list by list; without those that are empty.
pub(crate) fn confines(contained: &Contained) -> Vec<(&'static str, Vec<String>)> {
    let mut lists = Vec::new();
    if contained.state > State::Absent {
        let profiles = match contained.profiles.is_empty() {
            true => vec!["none, which is the tightest".to_owned()],
            false => contained.profiles.clone(),
        };
        lists.push(("profiles", profiles));
        lists.push(("enforced by", contained.layers.clone()));
        lists.push(("network", vec![contained.network.clone()]));
    }
    lists.push(("tried inside and refused", contained.refused.clone()));
    lists.push(("tried inside and not refused", contained.open.clone()));
    lists.retain(|(_, list)| !list.is_empty());
    lists
}

/// What of it does not hold, or holds less than one may think.
pub(crate) fn unconfined(contained: &Contained) -> [(&'static str, &[String]); 2] {
    [("gap", &contained.gaps), ("note", &contained.notes)]
}

/// Beliefs and decisions that a page lists; the JSON report has all of them.
pub(crate) const MOST_LISTED: usize = 500;
