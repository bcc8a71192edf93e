//! What people were asked, what they said, and what only looked as if they had.

use lodestar_core::chain::ActionState;
use lodestar_core::event::EventType;
use lodestar_core::id::RequestId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::statement::Envelope;
use lodestar_core::time::Timestamp;
use lodestar_log::Event;
use lodestar_policy::confirmation::{Consumed, Refused, Unmatched};
use lodestar_policy::{Answer, Closed, Closing};
use serde::Deserialize;
use serde_json::Value;

use super::Fold;
use crate::bounded::{TEXT, bounded};
use crate::model::{AnswerKind, Answered, Forged, ForgedKind, Request, Said};

/// Who confirmed beforehand, and by which key.
pub(super) struct Confirmed {
    operator: String,
    key: Option<String>,
    statement: lodestar_core::digest::Digest,
}

/// As much of a request as is shown: its card repeats the proposal.
#[derive(Deserialize)]
struct RequestedLine {
    id: RequestId,
    expires_at: Timestamp,
    requirement: Needed,
    card: CardLine,
}

#[derive(Deserialize)]
struct Needed {
    quorum: u32,
}

#[derive(Deserialize)]
struct CardLine {
    action: CardAction,
}

#[derive(Deserialize)]
struct CardAction {
    id: lodestar_core::id::ActionId,
}

impl Fold<'_> {
    pub(super) fn requested(&mut self, event: &Event) {
        let Some(asked) = self.read_line::<RequestedLine>(event) else {
            return;
        };
        let proposed = self.action(asked.card.action.id).map(|action| {
            action.phase = ActionState::PendingApproval;
            action.request = Some(asked.id);
            action.seq
        });
        self.request_of.insert(asked.id, self.requests.len());
        self.requests.push(Request {
            id: asked.id,
            seq: event.seq,
            proposed,
            quorum: asked.requirement.quorum,
            expires_at: asked.expires_at,
            answers: Vec::new(),
            closed: None,
        });
    }

    pub(super) fn answered(&mut self, kind: EventType, event: &Event) {
        let Some(answer) = self.read::<Answer>(event) else {
            return;
        };
        let proposed = self.request(answer.request).and_then(|one| one.proposed);
        let sensitivity = self.level_of(proposed);
        let confirmed = answer.confirmation.map(|id| id.to_string());
        let confirmed = confirmed.and_then(|id| self.confirmed.get(&id));
        let kind = match (kind, confirmed.is_some()) {
            (EventType::APPROVAL_GRANTED, true) => AnswerKind::Confirmed,
            (EventType::APPROVAL_GRANTED, false) => AnswerKind::Granted,
            (EventType::APPROVAL_DENIED, _) => AnswerKind::Denied,
            _ => AnswerKind::Refused,
        };
        let said = answer.statement.as_ref().map(said).unwrap_or_default();
        let refusal = answer.reason.as_ref().map(ToString::to_string);
        let answered = Answered {
            seq: event.seq,
            kind,
            approver: confirmed.map(|one| one.operator.clone()).or(said.who),
            key: match (&answer.statement, confirmed) {
                (Some(statement), _) => key(statement),
                (None, one) => one.and_then(|one| one.key.clone()),
            },
            statement: match (&answer.statement, confirmed) {
                (Some(statement), _) => Some(statement.digest()),
                (None, one) => one.map(|one| one.statement),
            },
            reason: self.reason(&refusal.or(said.why).unwrap_or_default(), sensitivity),
        };
        if kind == AnswerKind::Refused {
            self.forged.push(Forged {
                seq: event.seq,
                what: ForgedKind::Approval,
                proposed,
                sensitivity,
                reason: answered.reason.clone(),
            });
        }
        if let Some(request) = self.request(answer.request) {
            request.answers.push(answered);
            if kind == AnswerKind::Denied {
                request.closed = Some(Said {
                    seq: event.seq,
                    text: "somebody said no".to_owned(),
                });
            }
        }
    }

    pub(super) fn request_closed(&mut self, event: &Event) {
        let Some(Closed { request, closing }) = self.read::<Closed>(event) else {
            return;
        };
        let text = match closing {
            Closing::Spent => "spent",
            Closing::Denied => "somebody said no",
            Closing::Expired => "its time was over",
            Closing::WorldMoved => "enough people agreed, and the world had moved",
            Closing::Abandoned => "its session could not be taken up again",
        };
        if let Some(request) = self.request(request) {
            request.closed = Some(Said {
                seq: event.seq,
                text: text.to_owned(),
            });
        }
    }

    pub(super) fn confirmation_consumed(&mut self, event: &Event) {
        let Some(consumed) = self.read::<Consumed>(event) else {
            return;
        };
        let details = consumed.evidence.details();
        self.confirmed.insert(
            consumed.id.to_string(),
            Confirmed {
                operator: consumed.operator.to_string(),
                key: key(details),
                statement: details.digest(),
            },
        );
    }

    pub(super) fn confirmation_refused(&mut self, event: &Event) {
        let Some(refused) = self.read::<Refused>(event) else {
            return;
        };
        let proposed = self.action(refused.action).map(|action| action.seq);
        let sensitivity = self.level_of(proposed);
        // Only what is not to be trusted is somebody else's word; the rest is genuine, and does not fit.
        let what = match refused.reason {
            Unmatched::Untrusted { .. } | Unmatched::Missing => ForgedKind::Confirmation,
            Unmatched::Declined { .. } => ForgedKind::Declined,
            Unmatched::Consumed
            | Unmatched::NotYetValid { .. }
            | Unmatched::Expired { .. }
            | Unmatched::Overlong { .. }
            | Unmatched::Mismatch { .. } => ForgedKind::Unfitting,
        };
        self.forged.push(Forged {
            seq: event.seq,
            what,
            proposed,
            sensitivity,
            reason: self.reason(&refused.reason.to_string(), sensitivity),
        });
    }

    /// How sensitive what was proposed is; of what is not there nobody knows.
    fn level_of(&self, proposed: Option<u64>) -> Sensitivity {
        let action = proposed.and_then(|seq| {
            let place = self.actions.binary_search_by_key(&seq, |one| one.seq);
            self.actions.get(place.ok()?)
        });
        action.map_or(Sensitivity::Secret, |one| one.sensitivity)
    }
}

#[derive(Default)]
struct Words {
    who: Option<String>,
    why: Option<String>,
}

/// What a statement says of itself. That it is so was settled when it was heard, and again by replay.
fn said(statement: &Envelope) -> Words {
    let payload = serde_json::from_slice::<Value>(statement.unverified_payload());
    let payload = payload.unwrap_or_default();
    let text = |at: &str| payload.pointer(at)?.as_str().map(|one| bounded(one, TEXT));
    Words {
        who: text("/subject/approver").or_else(|| text("/approver")),
        why: text("/subject/reason").or_else(|| text("/reason")),
    }
}

fn key(statement: &Envelope) -> Option<String> {
    let signature = statement.signatures().first()?;
    Some(signature.key_id.as_str().to_owned())
}
