//! Events whose payload was redacted. Their heads are there: of which type they are, and what they go back
//! to. What does not depend on the rest is still held against the log.

use lodestar_core::event::EventType;
use lodestar_log::Event;

use super::{Actions, Followed, Ruled};

impl Actions {
    /// Takes in an event of which only the head is left.
    pub(in crate::session) fn redacted(&mut self, kind: EventType, event: &Event) {
        let (seq, parents) = (event.seq, &event.parents);
        if kind == EventType::ACTION_PROPOSED {
            let followed = Followed::new(seq, None, self.steps.so_far());
            self.actions.insert(seq, followed);
            return;
        }
        let asked = parents.first().copied();
        match kind {
            EventType::APPROVAL_REQUESTED => return self.words.request_redacted(),
            EventType::APPROVAL_GRANTED
            | EventType::APPROVAL_DENIED
            | EventType::APPROVAL_REFUSED
            | EventType::APPROVAL_EXPIRED
            | EventType::APPROVAL_CONSUMED => return self.words.word_redacted(asked),
            EventType::CONFIRMATION_CONSUMED => return self.words.confirmation_redacted(seq),
            // That it was halted stands in the type.
            EventType::SESSION_HALTED => {
                self.halted = true;
                return;
            }
            _ => {}
        }
        let Some(place) = self.proposal_of(parents) else {
            return;
        };
        let Some(action) = self.actions.get_mut(&place) else {
            return;
        };
        let fingerprint = action.fingerprint();
        match kind {
            EventType::SENTINEL_ALERTED => action.alerts.push((seq, None)),
            EventType::ACTION_JUDGED => {
                action.judged = Some((seq, Ruled::Redacted));
                self.of.insert(seq, place);
            }
            EventType::ACTION_CLEARED => {
                let is_first = !std::mem::replace(&mut action.cleared, true);
                self.of.insert(seq, place);
                self.words.in_doubt(fingerprint);
                if is_first {
                    self.step(place);
                }
                self.runs(place);
            }
            EventType::ACTION_IMAGED => action.image_redacted = true,
            EventType::ACTION_REJECTED => {
                action.rejected = true;
                self.words.in_doubt(fingerprint);
            }
            EventType::ACTION_COMPLETED | EventType::ACTION_FAILED | EventType::ACTION_UNKNOWN => {
                action.ended = true;
                self.running.remove(&place);
            }
            _ => {}
        }
    }
}
