//! What must hold, whatever happens.

use super::machine::Machine;
use super::state::{At, Closing, SLOTS, Said, Standing, State, TWO, Word};

/// A law of holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Law {
    /// A request's grants let the tool run at most once.
    AtMostOnce,
    /// Nothing runs without enough genuine grants for exactly this act.
    OnlyGranted,
    /// Grants are taken to be spent before they expire.
    OnlyInTime,
    /// What runs stands in the log as spent, where no crash can take it back.
    RecordedFirst,
    /// It runs in the world that people were shown.
    AsShown,
    /// Whoever says no before a grant is spent is heard.
    DenyWins,
    /// A request ends once, one way.
    OneEnding,
    /// A confirmation counts for one act, once.
    ConfirmedOnce,
    /// A word that no channel will bring again is in the log and at the desk.
    NoGrantLost,
    /// What a process knows is what its log says.
    DeskFollowsLog,
    /// When nothing can happen any more, every request is over and every call has ended.
    NoHoldForEver,
}

impl Law {
    pub(crate) const ALL: [Self; 11] = [
        Self::AtMostOnce,
        Self::OnlyGranted,
        Self::OnlyInTime,
        Self::RecordedFirst,
        Self::AsShown,
        Self::DenyWins,
        Self::OneEnding,
        Self::ConfirmedOnce,
        Self::NoGrantLost,
        Self::DeskFollowsLog,
        Self::NoHoldForEver,
    ];

    pub(crate) fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl Machine {
    /// The laws that do not hold in a state, one bit each; those about its end are not among them.
    pub(crate) fn broken(&self, state: &State) -> u16 {
        let mut broken = state.broken;
        let mut breaks = |law: Law, is_broken: bool| {
            if is_broken {
                broken |= law.bit();
            }
        };
        let whole = [self.whole(state, 0), self.whole(state, 1)];
        let confirmed = whole.iter().flat_map(|fold| fold.heard);
        let confirmed = confirmed.filter(|heard| heard.confirmed).count();
        breaks(Law::ConfirmedOnce, confirmed > 1);
        for process in state.processes.iter().flatten() {
            breaks(Law::DeskFollowsLog, process.desk != whole[process.log]);
        }
        for r in 0..SLOTS {
            let Some(asked) = state.asked[r] else {
                continue;
            };
            let desks = state.processes.iter().flatten();
            let desks = desks.filter(|process| process.log == asked.log);
            let safe = &state.logs[asked.log].safe;
            let folds = desks
                .map(|process| &process.desk)
                .chain(std::iter::once(safe));
            for fold in folds {
                for approver in 0..TWO {
                    let kept = |word: Word| {
                        state.words[r][approver][word as usize] == Said::Kept { counted: true }
                    };
                    let heard = fold.heard[r];
                    let has_grant = heard.answers & (1 << approver) != 0;
                    breaks(Law::NoGrantLost, kept(Word::Grant) && !has_grant);
                    let is_denied = heard.standing == Standing::Over(Closing::Denied);
                    breaks(Law::NoGrantLost, kept(Word::Deny) && !is_denied);
                }
            }
        }
        broken
    }

    /// Whether a state is one in which everything may rest.
    pub(crate) fn is_settled(&self, state: &State) -> bool {
        let calls = state.calls.iter().all(|call| call.at == At::Idle);
        let requests = state.logs.iter().enumerate().all(|(log, kept)| {
            let is_over = self.whole(state, log).live().next().is_none();
            is_over && self.whole(state, log).unended == 0 && kept.tail.is_empty()
        });
        calls && requests
    }
}
