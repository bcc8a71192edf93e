//! The actions of a session, derived again: proposals, verdicts, answers, clearances, ends.

mod notes;
mod words;

use std::collections::BTreeMap;

use lodestar_core::contract::{Contract, arguments};
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::fingerprint::{FingerprintFields, NormalPath};
use lodestar_core::id::ActionId;
use lodestar_core::ladder::{Rung, Verdict};
use lodestar_core::name::ToolName;
use lodestar_firewall::event::LogName;
use lodestar_kernel::HeldWorld;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Cleared, Finished, Proposal, Rejected, Rejection, Unknown};
use lodestar_kernel::registry::ToolRecord;
use lodestar_log::Event;
use lodestar_policy::{ApprovalRequest, Gate, Judgement, explain};
use serde_json::{Map, Value};

use super::{Difference, Otherwise, SessionReplay};
use notes::Notes;
use words::Words;

pub(super) struct Actions {
    place: LogName,
    opening: Opening,
    gate: Gate,
    other: Option<Gate>,
    tools: BTreeMap<ToolName, ToolRecord>,
    actions: BTreeMap<ActionId, Followed>,
    words: Words,
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
    pub(super) fn new(place: LogName, opening: Opening, gate: Gate, other: Option<Gate>) -> Self {
        let tools = opening.tools.iter();
        Self {
            tools: tools
                .map(|tool| (tool.shape.name.clone(), tool.clone()))
                .collect(),
            place,
            opening,
            gate,
            other,
            actions: BTreeMap::new(),
            words: Words::default(),
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
            EventType::CONFIRMATION_MATCHED,
            EventType::CONFIRMATION_REFUSED,
            EventType::SESSION_HALTED,
        ]
        .contains(&kind)
    }

    /// The opening that everything follows from.
    pub(super) fn opening(&self) -> &Opening {
        &self.opening
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
            | EventType::APPROVAL_REFUSED => {
                if let Some(answer) = notes.read(payload) {
                    self.words
                        .answered(kind, &answer, &self.opening, &mut notes);
                }
            }
            EventType::APPROVAL_EXPIRED | EventType::APPROVAL_CONSUMED => {
                if let Some(closed) = notes.read(payload) {
                    self.words.ended(kind, &closed, &mut notes);
                }
            }
            EventType::CONFIRMATION_CONSUMED => {
                if let Some(consumed) = notes.read(payload) {
                    self.words.spent(consumed, &self.opening, &mut notes);
                }
            }
            EventType::CONFIRMATION_MATCHED => {
                if let Some(would) = notes.read(payload) {
                    self.words.would_match(&would, &self.opening, &mut notes);
                }
            }
            EventType::CONFIRMATION_REFUSED => {
                if let Some(refused) = notes.read(payload) {
                    self.words.refused(&refused, &self.opening, &mut notes);
                }
            }
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
        if let Err(derived) = self.check_request(&request) {
            notes.differ("a request", derived);
        }
        self.words.requested(request, notes);
    }

    /// A request asks for exactly what the verdict says it needs, for as long as that says, and its card
    /// shows what was proposed.
    fn check_request(&self, request: &ApprovalRequest) -> Result<(), String> {
        let (card, no) = (&request.card, |derived: &str| Err(derived.to_owned()));
        let action = self.actions.get(&card.action.id);
        let action = action.ok_or("that no such action was proposed")?;
        let proposal = &action.proposal;
        if proposal.action != card.action {
            return no("that its card shows another action than was proposed");
        }
        if proposal.provenance != card.provenance {
            return no("that its card shows values from elsewhere than they came from");
        }
        let (_, judgement) = action.judged.as_ref().ok_or("that there was no verdict")?;
        if judgement.verdict != Verdict::Hold {
            return no("that the action was not held");
        }
        if judgement.requirement.as_ref() != Some(&request.requirement) {
            return no("that the verdict asks for other approvals");
        }
        if explain(judgement) != card.why {
            return no("that its card gives another reason than the verdict");
        }
        if judgement.policy != request.policy {
            return no("that it names another policy");
        }
        if (&request.project, &request.session) != (&self.place.project, &self.place.session) {
            return no("that it is of another session");
        }
        if request.requirement.expires_from(request.created_at) != request.expires_at {
            return no("that it expires at another time");
        }
        let world = HeldWorld::shown_on(card);
        let world = world.ok_or("that its card shows what nobody measures")?;
        let tool = self.tools.get(&card.action.tool);
        let tool = tool.ok_or("that there is no such tool")?;
        let is_of_it = world.check_of(proposal, tool, judgement.policy);
        is_of_it.map_err(|derived| derived.to_string())
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
                self.words.cleared(&cleared, fingerprint, notes.time)
            }
            Some((_, Verdict::Deny)) => Err("that the action was denied".to_owned()),
            None => Err("that there was no verdict".to_owned()),
        };
        if let Err(derived) = ground {
            notes.differ("a clearance", derived);
        }
        let asked = cleared.request.and_then(|id| self.words.request(id));
        let expected = match asked {
            Some(asked) => HeldWorld::shown_on(&asked.card).map(|world| world.measured),
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

    fn rejected(&mut self, rejected: Option<Rejected>, notes: &mut Notes<'_>) {
        let Some(rejected) = rejected else { return };
        // What did not become an action has nothing to follow from.
        let Some(action) = rejected.action else {
            return;
        };
        let Some(followed) = self.actions.get_mut(&action) else {
            return notes.differ("a rejection", "that no such action was proposed");
        };
        let verdict = followed.judged.as_ref().map(|(_, one)| one.verdict);
        let is_denial = matches!(rejected.why, Rejection::PolicyDenied { .. });
        if is_denial != (verdict == Some(Verdict::Deny)) {
            let derived = verdict.map_or_else(|| "no verdict".to_owned(), |one| one.to_string());
            notes.differ(format!("`{}`", rejected.why.kind()), derived);
        }
        if followed.cleared {
            notes.differ("a rejection", "that the action was cleared before");
        } else {
            followed.rejected = true;
        }
        let held = followed.proposal.action.fingerprint;
        let held = (verdict == Some(Verdict::Hold)).then_some(held);
        if let Err(derived) = self.words.rejected(&rejected, held) {
            notes.differ("a rejection", derived);
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
                // Nothing that may still come is held against these, and a long session has many.
                action.proposal.action.arguments = Map::new();
                action.proposal.provenance = Vec::new();
                action.proposal.dependencies = Vec::new();
            }
            None => notes.differ("an end", "that no such action was proposed"),
        }
    }
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
