//! The actions of a session, derived again: proposals, verdicts, answers, clearances, ends.

use std::collections::BTreeMap;

use lodestar_core::contract::{Contract, arguments};
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::fingerprint::{Fingerprint, FingerprintFields, NormalPath};
use lodestar_core::id::ActionId;
use lodestar_core::ladder::{Rung, Verdict};
use lodestar_core::name::{SessionId, ToolName};
use lodestar_core::time::Timestamp;
use lodestar_kernel::HeldWorld;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Cleared, Finished, Proposal, Rejected, Rejection, Unknown};
use lodestar_kernel::registry::ToolRecord;
use lodestar_log::Event;
use lodestar_policy::confirmation::{Consumed, Mode, SpentBefore, Under};
use lodestar_policy::{
    Answer, ApprovalRequest, Closed, Closing, Counted, Gate, Judgement, Refusal, Requests, Standing,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Difference, Otherwise, SessionReplay};

pub(super) struct Actions {
    session: SessionId,
    opening: Opening,
    gate: Gate,
    other: Option<Gate>,
    tools: BTreeMap<ToolName, ToolRecord>,
    actions: BTreeMap<ActionId, Followed>,
    requests: Requests,
    confirmations: SpentBefore,
    halted: bool,
}

/// How far an action has come.
struct Followed {
    proposed: u64,
    proposal: Proposal,
    judged: Option<(u64, Judgement)>,
    cleared: bool,
    ended: bool,
    rejected: bool,
}

impl Actions {
    pub(super) fn new(
        session: SessionId,
        opening: Opening,
        gate: Gate,
        other: Option<Gate>,
    ) -> Self {
        let tools = opening.tools.iter();
        Self {
            tools: tools
                .map(|tool| (tool.shape.name.clone(), tool.clone()))
                .collect(),
            session,
            opening,
            gate,
            other,
            actions: BTreeMap::new(),
            requests: Requests::default(),
            confirmations: SpentBefore::default(),
            halted: false,
        }
    }

    /// Whether events of this type say something about actions.
    pub(super) fn concerns(kind: EventType) -> bool {
        [
            EventType::ACTION_PROPOSED,
            EventType::ACTION_JUDGED,
            EventType::ACTION_CLEARED,
            EventType::ACTION_REJECTED,
            EventType::ACTION_COMPLETED,
            EventType::ACTION_FAILED,
            EventType::ACTION_UNKNOWN,
            EventType::APPROVAL_REQUESTED,
            EventType::APPROVAL_GRANTED,
            EventType::APPROVAL_DENIED,
            EventType::APPROVAL_REFUSED,
            EventType::APPROVAL_EXPIRED,
            EventType::APPROVAL_CONSUMED,
            EventType::CONFIRMATION_CONSUMED,
            EventType::SESSION_HALTED,
        ]
        .contains(&kind)
    }

    /// What has to be so when the session is closed: whatever was cleared has an end.
    pub(super) fn closed(&self, seq: u64, replay: &mut SessionReplay) {
        let open = self
            .actions
            .values()
            .filter(|one| one.cleared && !one.ended);
        for action in open {
            replay.differences.push(Difference {
                seq,
                recorded: "that the session is closed".to_owned(),
                derived: format!("that action `{}` has no end", action.proposal.action.id),
            });
        }
    }

    /// Takes in one event and compares it with what follows.
    pub(super) fn follow(
        &mut self,
        kind: EventType,
        event: &Event,
        payload: Value,
        replay: &mut SessionReplay,
    ) {
        let mut notes = Notes {
            seq: event.seq,
            time: event.time,
            replay,
        };
        match kind {
            EventType::ACTION_PROPOSED => self.proposed(notes.read(payload), &mut notes),
            EventType::ACTION_JUDGED => self.judged(notes.read(payload), &mut notes),
            EventType::APPROVAL_REQUESTED => self.requested(notes.read(payload), &mut notes),
            EventType::APPROVAL_GRANTED
            | EventType::APPROVAL_DENIED
            | EventType::APPROVAL_REFUSED => self.answered(kind, notes.read(payload), &mut notes),
            EventType::APPROVAL_EXPIRED | EventType::APPROVAL_CONSUMED => {
                self.ended_request(kind, notes.read(payload), &mut notes);
            }
            EventType::CONFIRMATION_CONSUMED => self.confirmed(notes.read(payload), &mut notes),
            EventType::ACTION_CLEARED => self.cleared(notes.read(payload), &mut notes),
            EventType::ACTION_REJECTED => self.rejected(notes.read(payload), &mut notes),
            EventType::ACTION_COMPLETED | EventType::ACTION_FAILED => {
                let finished: Option<Finished> = notes.read(payload);
                self.ended(finished.map(|one| one.outcome.action), &mut notes);
            }
            EventType::ACTION_UNKNOWN => {
                let unknown: Option<Unknown> = notes.read(payload);
                self.ended(unknown.map(|one| one.action), &mut notes);
            }
            EventType::SESSION_HALTED => self.halted = true,
            _ => {}
        }
    }

    fn proposed(&mut self, proposal: Option<Proposal>, notes: &mut Notes<'_>) {
        let Some(proposal) = proposal else { return };
        let action = &proposal.action;
        match self.tools.get(&action.tool) {
            None => notes.differ(
                format!("that `{}` was proposed", action.tool.shown()),
                "that there is no such tool",
            ),
            Some(tool) => check_proposal(&proposal, tool, self.opening.root.as_ref(), notes),
        }
        let followed = Followed {
            proposed: notes.seq,
            proposal,
            judged: None,
            cleared: false,
            ended: false,
            rejected: false,
        };
        if self
            .actions
            .insert(followed.proposal.action.id, followed)
            .is_some()
        {
            notes.differ("a proposal", "that this action was proposed before");
        }
    }

    fn judged(&mut self, judgement: Option<Judgement>, notes: &mut Notes<'_>) {
        let Some(judgement) = judgement else { return };
        let Some(action) = self.actions.get_mut(&judgement.action) else {
            return notes.differ("a verdict", "that no such action was proposed");
        };
        if action.judged.is_some() {
            notes.differ("a verdict", "that there was one before");
        }
        // What the gate's own arbiters saw is derived; what others said was only heard.
        let derived = self.gate.judge(&action.proposal.facts(), &judgement.heard);
        notes.replay.verdicts += 1;
        if derived != judgement {
            notes.differ(told(&judgement), told(&derived));
        }
        let verdict = judgement.verdict;
        if let Some(other) = &self.other {
            let would_be = other.judge(&action.proposal.facts(), &judgement.heard);
            if would_be.verdict != verdict {
                notes
                    .replay
                    .otherwise
                    .get_or_insert_default()
                    .push(Otherwise {
                        seq: action.proposed,
                        tool: action.proposal.action.tool.as_str().to_owned(),
                        was: verdict,
                        would_be: would_be.verdict,
                        policies: would_be.policies,
                    });
            }
        }
        action.judged = Some((notes.seq, judgement));
    }

    fn requested(&mut self, request: Option<ApprovalRequest>, notes: &mut Notes<'_>) {
        let Some(request) = request else { return };
        let card = request.card.digest().ok();
        if card != Some(request.card_digest) {
            let derived = card.map_or_else(|| "none".to_owned(), |card| card.to_string());
            notes.differ(
                format!("the card's digest is {}", request.card_digest),
                derived,
            );
        }
        if let Err(derived) = self.check_request(&request) {
            notes.differ("a request", derived);
        }
        if request.card.fingerprint().ok() != Some(request.card.action.fingerprint) {
            notes.differ(
                "a card",
                "that it shows another act than its fingerprint says",
            );
        }
        if !self.requests.open(request) {
            notes.differ("a request", "that there was one of this id before");
        }
    }

    /// A request asks for exactly what the verdict says it needs, for as long as that says.
    fn check_request(&self, request: &ApprovalRequest) -> Result<(), &'static str> {
        let action = self.actions.get(&request.card.action.id);
        let action = action.ok_or("that no such action was proposed")?;
        if action.proposal.action != request.card.action {
            return Err("that its card shows another action than was proposed");
        }
        let (_, judgement) = action.judged.as_ref().ok_or("that there was no verdict")?;
        if judgement.verdict != Verdict::Hold {
            return Err("that the action was not held");
        }
        if judgement.requirement.as_ref() != Some(&request.requirement) {
            return Err("that the verdict asks for other approvals");
        }
        if judgement.policy != request.policy || request.session != self.session {
            return Err("that it names another policy or session");
        }
        let expires_at = request
            .created_at
            .checked_add(request.requirement.expires());
        if expires_at.unwrap_or(Timestamp::MAX) != request.expires_at {
            return Err("that it expires at another time");
        }
        Ok(())
    }

    fn answered(&mut self, kind: EventType, answer: Option<Answer>, notes: &mut Notes<'_>) {
        let Some(answer) = answer else { return };
        notes.replay.answers += 1;
        let asked = self.requests.get(answer.request);
        let created_at = asked.map(|hearing| hearing.request().created_at);
        let is_before = created_at.is_some_and(|created_at| answer.heard_at < created_at);
        if is_before || answer.heard_at > notes.time {
            notes.differ("an answer", "that it was heard at another time");
        }
        let Some(heard) = self.hear_again(&answer) else {
            let is_refused = kind == EventType::APPROVAL_REFUSED;
            let malformed = matches!(answer.reason, Some(Refusal::Malformed { .. }));
            if !is_refused || !malformed || answer.unreadable.is_none() {
                notes.differ("an answer", "that no word is there to be heard");
            }
            return;
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
            notes.differ(format!("{kind}"), derived);
        }
    }

    /// What an answer comes to: a statement, or a confirmation that was spent on this act.
    fn hear_again(&mut self, answer: &Answer) -> Option<Result<Counted, Refusal>> {
        let (request, at) = (answer.request, answer.heard_at);
        let opening = &self.opening;
        let requests = &mut self.requests;
        match (&answer.statement, answer.confirmation) {
            (Some(statement), None) => {
                Some(requests.hear(request, statement, &opening.approvers, at))
            }
            (None, Some(confirmation)) => {
                let under = Under {
                    keys: &opening.confirmations.keys,
                    approvers: &opening.approvers,
                    roles: &|tool| opening.roles(tool),
                };
                let spent = &mut self.confirmations;
                spent.count(confirmation, request, requests, &under, at)
            }
            _ => None,
        }
    }

    fn confirmed(&mut self, consumed: Option<Consumed>, notes: &mut Notes<'_>) {
        let Some(consumed) = consumed else { return };
        if self.opening.confirmations.mode == Mode::ReportOnly {
            notes.differ("a spent confirmation", "that the mode is report-only");
        }
        if !self.confirmations.take_in(consumed) {
            notes.differ("a spent confirmation", "that it was spent before");
        }
    }

    fn cleared(&mut self, cleared: Option<Cleared>, notes: &mut Notes<'_>) {
        let Some(cleared) = cleared else { return };
        notes.replay.clearances += 1;
        let halted = self.halted;
        let Some(action) = self.actions.get_mut(&cleared.action) else {
            return notes.differ("a clearance", "that no such action was proposed");
        };
        if std::mem::replace(&mut action.cleared, true) {
            notes.differ("a clearance", "that there was one before");
        }
        if halted {
            notes.differ("a clearance", "that the session was halted");
        }
        if action.rejected {
            notes.differ("a clearance", "that the action was rejected before");
        }
        let judged = action.judged.as_ref().map(|(seq, one)| (*seq, one.verdict));
        let ground = match judged {
            Some((seq, _)) if seq != cleared.judged => {
                Err("that it names another verdict".to_owned())
            }
            Some((_, Verdict::Allow)) => Ok(()),
            Some((_, Verdict::Hold)) => {
                let fingerprint = action.proposal.action.fingerprint;
                granted(&cleared, fingerprint, notes.time, &mut self.requests)
            }
            Some((_, Verdict::Deny)) => Err("that the action was denied".to_owned()),
            None => Err("that there was no verdict".to_owned()),
        };
        if let Err(derived) = ground {
            notes.differ("a clearance", derived);
        }
        let asked = cleared.request.and_then(|id| self.requests.get(id));
        let expected = match asked {
            Some(asked) => HeldWorld::shown_on(&asked.request().card).map(|world| world.measured),
            None => Some(action.proposal.preconditions.clone()),
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

    /// A request that is closed without a clearance: expired when its time was over, or spent in vain.
    fn ended_request(&mut self, kind: EventType, closed: Option<Closed>, notes: &mut Notes<'_>) {
        let Some(Closed { request, closing }) = closed else {
            return;
        };
        let standing = self.requests.standing(request);
        let expires_at = self
            .requests
            .get(request)
            .map(|one| one.request().expires_at);
        let derived = match (standing, closing) {
            (None, _) => Err("that there was no such request"),
            (Some(Standing::Over(_)), _) => Err("that the request was over before"),
            (Some(_), Closing::Expired) if expires_at > Some(notes.time) => {
                Err("that its time was not over")
            }
            (Some(Standing::Open), Closing::WorldMoved) => Err("that nobody had granted it"),
            _ if Closed::kind(closing) != Some(kind) => Err("that it ended otherwise"),
            _ => Ok(()),
        };
        if let Err(derived) = derived {
            notes.differ("the end of a request", derived);
        }
        self.requests.close(request, closing);
    }

    fn rejected(&mut self, rejected: Option<Rejected>, notes: &mut Notes<'_>) {
        // What did not become an action has nothing to follow from.
        let Some(Rejected {
            action: Some(action),
            why,
            ..
        }) = rejected
        else {
            return;
        };
        let followed = self.actions.get(&action);
        let verdict = followed.and_then(|one| Some(one.judged.as_ref()?.1.verdict));
        let is_denial = matches!(why, Rejection::PolicyDenied { .. });
        if is_denial != (verdict == Some(Verdict::Deny)) {
            let derived = verdict.map_or_else(|| "no verdict".to_owned(), |one| one.to_string());
            notes.differ(format!("`{}`", why.kind()), derived);
        }
        match self.actions.get_mut(&action) {
            Some(action) if action.cleared => {
                notes.differ("a rejection", "that the action was cleared before");
            }
            Some(action) => action.rejected = true,
            None => notes.differ("a rejection", "that no such action was proposed"),
        }
    }

    fn ended(&mut self, action: Option<ActionId>, notes: &mut Notes<'_>) {
        let Some(action) = action else { return };
        match self.actions.get_mut(&action) {
            Some(action) if !action.cleared => {
                notes.differ("an end", "that the action was never cleared");
            }
            Some(action) => {
                if std::mem::replace(&mut action.ended, true) {
                    notes.differ("an end", "that the action had ended before");
                }
            }
            None => notes.differ("an end", "that no such action was proposed"),
        }
    }
}

/// Whether enough people said yes to exactly this act, in time, and whether their word was unspent.
fn granted(
    cleared: &Cleared,
    fingerprint: Fingerprint,
    time: Timestamp,
    requests: &mut Requests,
) -> Result<(), String> {
    let request = cleared
        .request
        .ok_or("that the action was held, and no request of it granted")?;
    let taken_at = cleared.taken_at.filter(|taken_at| *taken_at <= time);
    let taken_at = taken_at.ok_or("that its grants were taken at another time")?;
    requests
        .spend(request, fingerprint, &cleared.grants, taken_at)
        .map_err(|problem| format!("that {problem}"))
}

fn check_proposal(
    proposal: &Proposal,
    tool: &ToolRecord,
    project_root: Option<&NormalPath>,
    notes: &mut Notes<'_>,
) {
    let action = &proposal.action;
    let mut contract: Contract = tool.contract.clone();
    if proposal.reaches.is_some() {
        contract.required_level = Rung::L5;
    }
    if action.contract != contract || action.server != tool.shape.server {
        notes.differ(
            format!("a contract at {}", action.contract.required_level),
            format!("one at {} from the tool's grade", contract.required_level),
        );
    }
    if proposal.definition != tool.definition {
        notes.differ(
            format!("definition {}", proposal.definition),
            format!("{}", tool.definition),
        );
    }
    let root = tool.root.as_ref().or(project_root);
    let paths = arguments::paths(&action.arguments, &tool.shape.roles, root);
    if paths.as_ref() != Ok(&proposal.paths) {
        notes.differ("other paths than", "those in the arguments");
    }
    let fingerprint: Option<Digest> = FingerprintFields::under(
        &contract,
        action.server.clone(),
        action.tool.clone(),
        tool.definition,
        action.arguments.clone(),
        proposal.paths.clone(),
    )
    .and_then(|fields| fields.fingerprint())
    .ok()
    .map(|fingerprint| *fingerprint.digest());
    if fingerprint != Some(*action.fingerprint.digest()) {
        let derived = fingerprint.map_or_else(|| "none".to_owned(), |one| one.to_string());
        notes.differ(format!("fingerprint {}", action.fingerprint), derived);
    }
}

fn told(judgement: &Judgement) -> String {
    let ids: Vec<_> = judgement.policies.iter().map(|id| id.as_str()).collect();
    let by = if ids.is_empty() {
        String::new()
    } else {
        format!(" by {}", ids.join(", "))
    };
    format!(
        "{}{by}, {} errors, {} signals",
        judgement.verdict,
        judgement.errors.len(),
        judgement.signals.len()
    )
}

/// What is noted about one event.
struct Notes<'a> {
    seq: u64,
    time: Timestamp,
    replay: &'a mut SessionReplay,
}

impl Notes<'_> {
    fn differ(&mut self, recorded: impl Into<String>, derived: impl Into<String>) {
        self.replay.differences.push(Difference {
            seq: self.seq,
            recorded: recorded.into(),
            derived: derived.into(),
        });
    }

    fn read<T: DeserializeOwned>(&mut self, payload: Value) -> Option<T> {
        match serde_json::from_value(payload) {
            Ok(read) => Some(read),
            Err(problem) => {
                self.differ(format!("what cannot be read: {problem}"), "nothing");
                None
            }
        }
    }
}
