//! What people said in a session, heard again: requests, answers, confirmations.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::event::EventType;
use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Cleared, Rejected};
use lodestar_policy::confirmation::{
    Consumed, HeldAct, Mode, Operation, Refused, SpentBefore, Uncounted, Unmatched, WouldMatch,
};
use lodestar_policy::{
    Answer, ApprovalRequest, Closed, Closing, Counted, Refusal, Requests, Standing,
};

use super::notes::Notes;

/// The requests of a session, and what was said to them.
#[derive(Default)]
pub(super) struct Words {
    requests: Requests,
    /// The request that each action opened.
    asked: BTreeMap<ActionId, RequestId>,
    confirmations: SpentBefore,
    /// Requests that a rejection has ended, and that were not closed in words of their own yet.
    in_vain: BTreeSet<RequestId>,
    /// The events that recorded requests.
    recorded: BTreeMap<u64, RequestId>,
    /// Requests of which a word was redacted, so that nobody can tell how they stand.
    doubted: BTreeSet<RequestId>,
    /// Redacted events that said which confirmation was spent.
    confirmed: BTreeSet<u64>,
    /// How many requests were redacted themselves.
    redacted: usize,
    /// Requests that only words about them tell of: no more than were redacted.
    unseen: BTreeSet<RequestId>,
    /// Whose grants were spent.
    spent: BTreeSet<RequestId>,
    /// When the last of all that stands here was written: one thing is heard after the other.
    last: Option<Timestamp>,
}

impl Words {
    pub(super) fn request(&self, id: RequestId) -> Option<&ApprovalRequest> {
        self.requests.get(id).map(|hearing| hearing.request())
    }

    /// A request was redacted.
    pub(super) fn request_redacted(&mut self) {
        self.redacted += 1;
    }

    /// Something that was said to the request that this event recorded was redacted.
    pub(super) fn word_redacted(&mut self, recorded: Option<u64>) {
        let request = recorded.and_then(|seq| self.recorded.get(&seq));
        self.doubted.extend(request);
    }

    /// What a confirmation was spent on was redacted; the answer that counts it names this event.
    pub(super) fn confirmation_redacted(&mut self, seq: u64) {
        self.confirmed.insert(seq);
    }

    /// Something was redacted that may have ended requests of this act, or of any.
    pub(super) fn in_doubt(&mut self, fingerprint: Option<Fingerprint>) {
        let asked = self.recorded.values().filter(|id| {
            let request = self.requests.get(**id).map(|hearing| hearing.request());
            let act = request.map(|request| request.card.action.fingerprint);
            fingerprint.is_none() || act == fingerprint
        });
        self.doubted.extend(asked);
    }

    /// Whether a request is one of those that were redacted.
    pub(super) fn is_redacted(&self, id: RequestId) -> bool {
        self.unseen.contains(&id)
    }

    /// Whether everything is there that was said to a request.
    fn is_known(&mut self, id: RequestId) -> bool {
        if self.requests.get(id).is_some() {
            return !self.doubted.contains(&id);
        }
        if self.unseen.len() < self.redacted {
            self.unseen.insert(id);
        }
        !self.unseen.contains(&id)
    }

    pub(super) fn requested(&mut self, request: ApprovalRequest, notes: &mut Notes<'_>) {
        let digest = request.digest().ok();
        if digest != Some(request.card_digest) {
            let derived = digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
            notes.differ(
                format!("the card's digest is {}", request.card_digest),
                derived,
            );
        }
        if request.card.fingerprint().ok() != Some(request.card.action.fingerprint) {
            notes.differ(
                "a card",
                "that it shows another act than its fingerprint says",
            );
        }
        if request.created_at > notes.time {
            notes.differ("a request", "that it was opened at another time");
        }
        self.last = Some(notes.time);
        let (id, action) = (request.id, request.card.action.id);
        if !self.requests.open(request) {
            notes.differ("a request", "that there was one of this id before");
        }
        self.asked.insert(action, id);
        self.recorded.insert(notes.seq, id);
    }

    pub(super) fn answered(
        &mut self,
        kind: EventType,
        answer: &Answer,
        opening: &Opening,
        notes: &mut Notes<'_>,
    ) {
        notes.replay.answers += 1;
        // A confirmation is looked at some time before it is counted.
        let since = self.last.replace(notes.time);
        let is_late = answer.confirmation.is_none() && since > Some(answer.heard_at);
        if is_late || !self.is_in_time(answer.request, answer.heard_at, notes.time) {
            notes.differ("an answer", "that it was heard at another time");
        }
        let mut grounds = notes.parents.iter();
        if answer.confirmation.is_some() && grounds.any(|seq| self.confirmed.contains(seq)) {
            self.doubted.insert(answer.request);
        }
        let is_known = self.is_known(answer.request);
        let heard = match self.hear_again(answer, opening) {
            Ok(heard) => heard,
            Err(derived) => return notes.differ_if_known(is_known, "an answer", derived),
        };
        let (derived, same) = match &heard {
            Ok(Counted::Grant { missing }) => {
                let same = kind == EventType::APPROVAL_GRANTED && answer.missing == Some(*missing);
                (format!("a grant, with {missing} missing"), same)
            }
            Ok(Counted::Deny(_)) => ("a denial".to_owned(), kind == EventType::APPROVAL_DENIED),
            Err(refusal) => {
                let same = answer.reason.as_ref() == Some(refusal);
                let same = same && kind == EventType::APPROVAL_REFUSED;
                (format!("a refusal: {refusal}"), same)
            }
        };
        if !same {
            notes.differ_if_known(is_known, format!("{kind}"), derived);
        }
    }

    /// Not before it was asked for, and not after it was written down.
    fn is_in_time(&self, request: RequestId, heard_at: Timestamp, written_at: Timestamp) -> bool {
        let asked = self.request(request);
        let is_before = asked.is_some_and(|request| heard_at < request.created_at);
        !is_before && heard_at <= written_at
    }

    /// What an answer comes to: a statement, a confirmation that was spent on this act, or neither.
    fn hear_again(
        &mut self,
        answer: &Answer,
        opening: &Opening,
    ) -> Result<Result<Counted, Refusal>, String> {
        let (request, at) = (answer.request, answer.heard_at);
        match (&answer.statement, answer.confirmation, &answer.unreadable) {
            (Some(statement), None, None) => {
                let approvers = &opening.approvers;
                Ok(self.requests.hear(request, statement, approvers, at))
            }
            (None, Some(confirmation), None) => {
                let (requests, under) = (&mut self.requests, &opening.under());
                let counted = self
                    .confirmations
                    .count(confirmation, request, requests, under, at);
                counted.map_err(|why| format!("that {why}"))
            }
            (None, None, Some(_)) => {
                let malformed = answer.malformed();
                let malformed = malformed.ok_or("that a word is there to be heard")?;
                Ok(Err(malformed))
            }
            _ => Err("that no word is there to be heard, or more than one".to_owned()),
        }
    }

    pub(super) fn spent(&mut self, consumed: Consumed, opening: &Opening, notes: &mut Notes<'_>) {
        let what = "a spent confirmation";
        if opening.confirmations.mode == Mode::ReportOnly {
            notes.differ(what, "that the mode is report-only");
        }
        if consumed.operation != Operation::ConsumeEnvelope {
            notes.differ(what, "that it was only recorded");
        }
        let (action, at) = (consumed.action, consumed.heard_at);
        let is_known = self.is_asked(action);
        let again = self.act(action, at, notes.time, opening).and_then(|act| {
            let again = consumed.again(&act, &opening.confirmations.keys);
            again.map(|_| ()).map_err(|why| format!("that {why}"))
        });
        if let Err(derived) = again {
            notes.differ_if_known(is_known, what, derived);
        }
        if !self.confirmations.take_in(consumed) {
            notes.differ(what, "that it was spent before");
        }
    }

    pub(super) fn would_match(&self, would: &WouldMatch, opening: &Opening, notes: &mut Notes<'_>) {
        let what = "a confirmation that would have counted";
        if (would.mode, opening.confirmations.mode) != (Mode::ReportOnly, Mode::ReportOnly) {
            notes.differ(what, "that the mode is another");
        }
        let act = self.act(would.action, would.heard_at, notes.time, opening);
        let again = act.and_then(|act| {
            let again = would.again(&act, &opening.confirmations.keys);
            again.map_err(|why| format!("that {why}"))
        });
        if let Err(derived) = again {
            notes.differ_if_known(self.is_asked(would.action), what, derived);
        }
    }

    pub(super) fn refused(&self, refused: &Refused, opening: &Opening, notes: &mut Notes<'_>) {
        let what = "a refused confirmation";
        let act = match self.act(refused.action, refused.heard_at, notes.time, opening) {
            Ok(act) => act,
            Err(derived) => {
                let is_known = self.is_asked(refused.action);
                return notes.differ_if_known(is_known, what, derived);
            }
        };
        let again = refused.again(&act, &opening.confirmations.keys);
        if again.as_ref() != Some(&refused.reason) {
            let derived = again.as_ref().map(Unmatched::to_string);
            notes.differ(what, derived.unwrap_or_else(|| "that it counts".to_owned()));
        }
    }

    /// Whether the request of an action would be here if there had been one.
    fn is_asked(&self, action: ActionId) -> bool {
        self.asked.contains_key(&action) || self.redacted == 0
    }

    /// The act that a confirmation was laid beside at a moment.
    fn act(
        &self,
        action: ActionId,
        heard_at: Timestamp,
        written_at: Timestamp,
        opening: &Opening,
    ) -> Result<HeldAct, String> {
        let id = self.asked.get(&action).copied();
        let id = id.ok_or("that no request of this action was open")?;
        if !self.is_in_time(id, heard_at, written_at) {
            return Err("that it was looked at at another time".to_owned());
        }
        let request = self.request(id).ok_or(Uncounted::NoRequest);
        let act = request.and_then(|request| opening.under().act(request));
        act.map_err(|why| format!("that {why}"))
    }

    /// Whether enough people said yes to exactly this act, in time, and whether their word was unspent.
    pub(super) fn cleared(
        &mut self,
        cleared: &Cleared,
        fingerprint: Option<Fingerprint>,
        notes: &mut Notes<'_>,
    ) -> Result<(), String> {
        let request = cleared
            .request
            .ok_or("that the action was held, and no request of it granted")?;
        let taken_at = cleared.taken_at.filter(|taken_at| *taken_at <= notes.time);
        let taken_at = taken_at.ok_or("that its grants were taken at another time")?;
        let is_known = self.is_known(request);
        if !self.spent.insert(request) {
            return Err("that its grants were spent before".to_owned());
        }
        // Of a proposal that was redacted, the card shows the act.
        let asked = self.request(request);
        let act = fingerprint.or(asked.map(|asked| asked.card.action.fingerprint));
        let Some(act) = act else {
            notes.cannot_tell();
            return Ok(());
        };
        if fingerprint.is_none() {
            notes.cannot_tell();
        }
        let spent = self.requests.spend(request, act, &cleared.grants, taken_at);
        match spent {
            Err(_) if !is_known => {
                notes.cannot_tell();
                self.requests.close(request, Closing::Spent);
                Ok(())
            }
            spent => spent.map_err(|problem| format!("that {problem}")),
        }
    }

    /// Follows a rejection. One because the world had moved spends the grants that the call had leave
    /// by; `held` is the act, if it was held.
    pub(super) fn rejected(
        &mut self,
        rejected: &Rejected,
        held: Option<Fingerprint>,
        notes: &mut Notes<'_>,
    ) {
        let is_known = rejected.granted.is_none_or(|id| self.is_known(id));
        if let Err(derived) = self.check_rejected(rejected, held) {
            notes.differ_if_known(is_known, "a rejection", derived);
        }
    }

    fn check_rejected(
        &mut self,
        rejected: &Rejected,
        held: Option<Fingerprint>,
    ) -> Result<(), &'static str> {
        let Some(id) = rejected.granted else {
            return match held {
                Some(_) if rejected.why.is_of_the_world() => Err("that it had somebody's leave"),
                _ => Ok(()),
            };
        };
        let request = self.request(id).ok_or("that there was no such request")?;
        if held != Some(request.card.action.fingerprint) {
            return Err("that its leave was for another act");
        }
        match self.requests.standing(id) {
            Some(Standing::Granted) => {}
            Some(Standing::Over(Closing::Spent | Closing::WorldMoved)) => {
                return Err("that its leave was spent before");
            }
            // Somebody said no, or the request was closed, while the world was being measured.
            Some(Standing::Over(_)) => return Ok(()),
            Some(Standing::Open) | None => return Err("that nobody had granted it"),
        }
        if rejected.spent_in_vain().is_some() {
            self.requests.close(id, Closing::WorldMoved);
            self.in_vain.insert(id);
        }
        Ok(())
    }

    /// A request that is closed without a clearance: expired when its time was over, or spent in vain.
    pub(super) fn ended(&mut self, kind: EventType, closed: &Closed, notes: &mut Notes<'_>) {
        let Closed { request, closing } = *closed;
        let is_known = self.is_known(request);
        if let Err(derived) = self.check_end(kind, request, closing, notes.time) {
            notes.differ_if_known(is_known, "the end of a request", derived);
        }
        self.in_vain.remove(&request);
        self.requests.close(request, closing);
    }

    fn check_end(
        &self,
        kind: EventType,
        id: RequestId,
        closing: Closing,
        time: Timestamp,
    ) -> Result<(), &'static str> {
        let request = self.request(id).ok_or("that there was no such request")?;
        if Closed::kind(closing) != Some(kind) {
            return Err("that it ended otherwise");
        }
        if closing == Closing::WorldMoved {
            return match self.in_vain.contains(&id) {
                true => Ok(()),
                false => Err("that no call of it was rejected because the world had moved"),
            };
        }
        if let Some(Standing::Over(_)) = self.requests.standing(id) {
            return Err("that the request was over before");
        }
        if closing == Closing::Expired && request.expires_at > time {
            return Err("that its time was not over");
        }
        Ok(())
    }
}
