//! Clearances, rejections and ends, derived again.

use lodestar_core::id::ActionId;
use lodestar_core::ladder::Verdict;
use lodestar_kernel::HeldWorld;
use lodestar_kernel::record::{Cleared, Rejected, Rejection};
use lodestar_log::{Event, Payload};
use lodestar_policy::StepKind;
use serde::Deserialize;
use serde_json::Map;

use super::notes::Notes;
use super::{Actions, Ruled};
use crate::session::SessionReplay;

impl Actions {
    pub(super) fn cleared(&mut self, cleared: Option<Cleared>, notes: &mut Notes<'_>) {
        let Some(cleared) = cleared else { return };
        notes.replay.clearances += 1;
        let halted = self.halted;
        let Some(action) = self.action(cleared.action, notes.parents) else {
            return notes.differ("a clearance", "that no such action was proposed");
        };
        let place = action.proposed;
        if std::mem::replace(&mut action.cleared, true) {
            notes.differ("a clearance", "that there was one before");
        } else {
            self.step(place);
        }
        self.runs(place);
        self.of.insert(notes.seq, place);
        let action = &self.actions[&place];
        if halted {
            notes.differ("a clearance", "that the session was halted");
        }
        if action.rejected {
            notes.differ("a clearance", "that the action was rejected before");
        }
        let fingerprint = action.fingerprint();
        let ground = match &action.judged {
            Some((seq, _)) if *seq != cleared.judged => {
                Err("that it names another verdict".to_owned())
            }
            Some((_, Ruled::Known(judgement))) => match judgement.verdict {
                Verdict::Allow => Ok(()),
                Verdict::Hold => self.words.cleared(&cleared, fingerprint, notes),
                Verdict::Deny => Err("that the action was denied".to_owned()),
            },
            Some((_, Ruled::Redacted)) => {
                notes.cannot_tell();
                match cleared.request {
                    Some(_) => self.words.cleared(&cleared, fingerprint, notes),
                    None => Ok(()),
                }
            }
            None => Err("that there was no verdict".to_owned()),
        };
        if let Err(derived) = ground {
            notes.differ("a clearance", derived);
        }
        let asked = cleared.request.map(|id| (id, self.words.request(id)));
        let expected = match (asked, &action.proposal) {
            (Some((_, Some(asked))), _) => {
                HeldWorld::shown_on(&asked.card).map(|world| world.measured)
            }
            (Some((id, None)), _) if self.words.is_redacted(id) => return notes.cannot_tell(),
            (None, None) => return notes.cannot_tell(),
            (_, Some(proposal)) => Some(proposal.preconditions.clone()),
            (Some((_, None)), None) => None,
        };
        let expected = expected.map(|all| {
            let again = all
                .into_iter()
                .filter(|one| one.precondition.must_revalidate_at_execution);
            again
                .map(|one| one.expected_at_approval)
                .collect::<Vec<_>>()
        });
        if expected.as_ref() != Some(&cleared.measured) {
            notes.differ("a clearance", "that the world had moved");
        }
    }

    /// What was cleared runs until it ends.
    pub(super) fn runs(&mut self, place: u64) {
        if self.actions.get(&place).is_some_and(|one| !one.ended) {
            self.running.insert(place);
        }
    }

    /// A clearance is a step, whatever becomes of it.
    pub(super) fn step(&mut self, place: u64) {
        let action = self.actions.get(&place);
        let proposal = action.and_then(|action| action.proposal.as_ref());
        let kind = proposal.map(|proposal| StepKind::of(&proposal.action.contract));
        self.steps.step(kind);
    }

    pub(super) fn rejected(&mut self, rejected: Option<Rejected>, notes: &mut Notes<'_>) {
        let Some(rejected) = rejected else { return };
        // What did not become an action has nothing to follow from.
        let Some(action) = rejected.action else {
            return;
        };
        let Some(followed) = self.action(action, notes.parents) else {
            return notes.differ("a rejection", "that no such action was proposed");
        };
        if followed.cleared {
            notes.differ("a rejection", "that the action was cleared before");
        } else {
            followed.rejected = true;
        }
        let fingerprint = followed.fingerprint();
        let verdict = match &followed.judged {
            Some((_, Ruled::Known(judgement))) => Some(judgement.verdict),
            Some((_, Ruled::Redacted)) => {
                notes.cannot_tell();
                return self.words.in_doubt(fingerprint);
            }
            None => None,
        };
        let is_denial = matches!(rejected.why, Rejection::PolicyDenied { .. });
        if is_denial != (verdict == Some(Verdict::Deny)) {
            let derived = verdict.map_or_else(|| "no verdict".to_owned(), |one| one.to_string());
            notes.differ(format!("`{}`", rejected.why.kind()), derived);
        }
        let held = match (verdict, fingerprint) {
            (Some(Verdict::Hold), Some(fingerprint)) => Some(fingerprint),
            (Some(Verdict::Hold), None) => {
                notes.cannot_tell();
                return self.words.in_doubt(None);
            }
            _ => None,
        };
        self.words.rejected(&rejected, held, notes);
    }

    /// What a call returned came of a call that was cleared.
    pub(in crate::session) fn observed(&mut self, event: &Event, replay: &mut SessionReplay) {
        #[derive(Deserialize)]
        struct Observed {
            action: Option<ActionId>,
        }
        let Payload::Present(payload) = &event.payload else {
            return;
        };
        let mut notes = Notes {
            seq: event.seq,
            time: event.time,
            parents: &event.parents,
            replay,
        };
        let what = "what a call returned";
        match serde_json::from_slice(payload) {
            Ok(Observed { action: None }) => {}
            Ok(Observed { action: Some(id) }) => match self.action(id, &event.parents) {
                Some(action) if action.cleared => {}
                Some(_) => notes.differ(what, "that the action was never cleared"),
                None => notes.differ(what, "that no such action was proposed"),
            },
            Err(problem) => {
                notes.differ(format!("{what} that cannot be read: {problem}"), "nothing")
            }
        }
    }

    pub(super) fn ended(&mut self, action: Option<ActionId>, notes: &mut Notes<'_>) {
        let Some(action) = action else { return };
        match self.action(action, notes.parents) {
            Some(action) if !action.cleared => {
                notes.differ("an end", "that the action was never cleared");
            }
            Some(action) => {
                let place = action.proposed;
                if std::mem::replace(&mut action.ended, true) {
                    notes.differ("an end", "that the action had ended before");
                }
                // Nothing that may still come is held against these, and a long session has many.
                if let Some(proposal) = &mut action.proposal {
                    proposal.action.arguments = Map::new();
                    proposal.provenance = Vec::new();
                    proposal.dependencies = Vec::new();
                }
                self.running.remove(&place);
            }
            None => notes.differ("an end", "that no such action was proposed"),
        }
    }
}
