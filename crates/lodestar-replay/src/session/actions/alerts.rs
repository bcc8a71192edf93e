//! Alerts of sentinels, derived again: each that was recorded was to be raised, and each that was to be
//! raised was recorded, before the verdict, which names it.

use lodestar_log::Event;
use lodestar_policy::{Alert, Judgement};

use super::Actions;
use super::notes::Notes;

impl Actions {
    /// Notes an alert; whether it follows is said with the verdict on its action.
    pub(super) fn alerted(
        &mut self,
        alert: Option<Alert<'static>>,
        event: &Event,
        notes: &mut Notes<'_>,
    ) {
        let Some(alert) = alert else { return };
        let Some(action) = self.actions.get_mut(&alert.action) else {
            return notes.differ("an alert", "that no such action was proposed");
        };
        if action.judged.is_some() {
            return notes.differ("an alert", "that the verdict was given before");
        }
        if event.parents != [action.proposed] {
            notes.differ("an alert", "that it is of another proposal");
        }
        // Also where the session ended before the verdict.
        let derived = self.gate.judge(&action.facts(), &[]);
        if !Alert::of(&derived).any(|one| one == alert) {
            notes.differ(told(&alert), "that there was nothing to see");
        }
        action.alerts.push((event.seq, alert));
    }
}

/// Whether a verdict was preceded by the alerts that it follows from, and names them.
pub(super) fn check(
    derived: &Judgement,
    recorded: &[(u64, Alert<'_>)],
    (proposed, parents): (u64, &[u64]),
    notes: &mut Notes<'_>,
) {
    let expected: Vec<_> = Alert::of(derived).collect();
    for alert in &expected {
        if !recorded.iter().any(|(_, one)| one == alert) {
            notes.differ("no alert before the verdict", told(alert));
        }
    }
    if recorded.len() > expected.len() {
        notes.differ(
            format!("{} alerts", recorded.len()),
            format!("{}", expected.len()),
        );
    }
    let named = std::iter::once(proposed).chain(recorded.iter().map(|(seq, _)| *seq));
    if !named.eq(parents.iter().copied()) {
        notes.differ(
            "a verdict on other events",
            "that it names proposal and alerts",
        );
    }
}

fn told(alert: &Alert<'_>) -> String {
    format!("that `{}` saw: {}", alert.sentinel, alert.saw)
}
