//! Alerts of sentinels, derived again: each that was recorded was to be raised, and each that was to be
//! raised was recorded, before the verdict, which names it.

use lodestar_policy::{Alert, Judgement};

use super::Actions;
use super::notes::Notes;

impl Actions {
    /// Notes an alert; whether it follows is said with the verdict on its action.
    pub(super) fn alerted(&mut self, alert: Option<Alert<'static>>, notes: &mut Notes<'_>) {
        let Some(alert) = alert else { return };
        let Some(action) = self.action(alert.action, notes.parents) else {
            return notes.differ("an alert", "that no such action was proposed");
        };
        let place = action.proposed;
        if action.judged.is_some() {
            return notes.differ("an alert", "that the verdict was given before");
        }
        if notes.parents != [place] {
            notes.differ("an alert", "that it is of another proposal");
        }
        // Also where the session ended before the verdict.
        match self.actions[&place].judgements(&self.gate, &[]) {
            Some(possible) => {
                let mut seen = possible.iter().flat_map(Alert::of);
                if !seen.any(|one| one == alert) {
                    notes.differ(told(&alert), "that there was nothing to see");
                } else if possible.len() > 1 {
                    notes.cannot_tell();
                }
            }
            None => notes.cannot_tell(),
        }
        if let Some(action) = self.actions.get_mut(&place) {
            action.alerts.push((notes.seq, Some(alert)));
        }
    }
}

/// Whether a verdict was preceded by the alerts that it follows from.
pub(super) fn check(
    derived: &Judgement,
    recorded: &[(u64, Option<Alert<'_>>)],
    notes: &mut Notes<'_>,
) {
    let expected: Vec<_> = Alert::of(derived).collect();
    // One that was redacted may have been any, but each only one.
    let mut redacted = recorded.iter().filter(|(_, one)| one.is_none()).count();
    for alert in &expected {
        if recorded.iter().any(|(_, one)| one.as_ref() == Some(alert)) {
            continue;
        }
        match redacted.checked_sub(1) {
            Some(fewer) => redacted = fewer,
            None => notes.differ("no alert before the verdict", told(alert)),
        }
    }
    if recorded.len() > expected.len() {
        notes.differ(
            format!("{} alerts", recorded.len()),
            format!("{}", expected.len()),
        );
    }
}

/// Whether a verdict names its proposal and what sentinels saw in it.
pub(super) fn check_parents(
    proposed: u64,
    recorded: &[(u64, Option<Alert<'_>>)],
    notes: &mut Notes<'_>,
) {
    let named = std::iter::once(proposed).chain(recorded.iter().map(|(seq, _)| *seq));
    if !named.eq(notes.parents.iter().copied()) {
        notes.differ(
            "a verdict on other events",
            "that it names proposal and alerts",
        );
    }
}

fn told(alert: &Alert<'_>) -> String {
    format!("that `{}` saw: {}", alert.sentinel, alert.saw)
}
