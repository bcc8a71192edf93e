//! What was proposed, how it was judged, and what became of it.

use std::collections::BTreeMap;

use lodestar_core::chain::{ActionState, OutcomeResult};
use lodestar_core::digest::Digest;
use lodestar_core::id::{ActionId, DecisionId, ObservationId, RequestId};
use lodestar_core::ladder::{CedarAnswer, Rung, Say, Verdict};
use lodestar_core::name::{PolicyId, ToolName};
use lodestar_core::provenance::{ArgumentProvenance, Label};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::record::{Proposal, Rejected as Rejection, Rejection as Why, Unknown};
use lodestar_kernel::tool::ToolError;
use lodestar_log::Event;
use lodestar_policy::{EvaluationError, Signal, Tightened, Tightener};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Fold;
use super::images::undoes;
use crate::bounded::VALUE;
use crate::model::{
    Action, Argument, Decision, Ended, From, Ground, Judged, RefusedCall, Rejected, Spent,
};

/// More values than this of one call are counted, not listed.
const MOST_ARGUMENTS: usize = 64;

#[derive(Deserialize)]
struct ClearedLine {
    action: ActionId,
    #[serde(default)]
    request: Option<RequestId>,
    #[serde(default)]
    grants: Vec<Digest>,
}

#[derive(Deserialize)]
struct FinishedLine {
    action: ActionId,
    result: OutcomeResult,
    duration_micros: u64,
    #[serde(default)]
    effect_observations: Option<Vec<ObservationId>>,
    #[serde(default)]
    error: Option<ToolError>,
}

/// As much of a verdict as is shown; what is left out is what an allow usually says.
#[derive(Deserialize)]
struct JudgedLine {
    action: ActionId,
    verdict: Verdict,
    #[serde(default)]
    answer: Option<CedarAnswer>,
    policies: Vec<PolicyId>,
    #[serde(default)]
    errors: Vec<EvaluationError>,
    #[serde(default)]
    tightened: Vec<Tightened>,
    #[serde(default)]
    signals: Vec<Signal>,
    #[serde(default)]
    heard: Vec<Signal>,
}

impl Fold<'_> {
    pub(super) fn proposed(&mut self, event: &Event) {
        self.counts.proposed += 1;
        let Some(proposal) = self.read::<Proposal>(event) else {
            return;
        };
        let default = self.default_sensitivity();
        let action = &proposal.action;
        let sensitivity = default.under(action.contract.data_sensitivity);
        let arguments = self.arguments(&action.arguments, &proposal.provenance, sensitivity);
        self.action_of.insert(action.id, self.actions.len());
        self.actions.push(Action {
            id: action.id,
            seq: event.seq,
            at: event.time,
            tool: action.tool.as_str().to_owned(),
            server: action.server.as_str().to_owned(),
            level: action.contract.required_level,
            blast_radius: action.contract.blast_radius,
            reversibility: action.contract.reversibility,
            sensitivity,
            arguments,
            phase: ActionState::Proposed,
            judged: None,
            request: None,
            cleared: None,
            image: None,
            undoes: undoes(&action.tool, &action.arguments),
            ended: None,
            rejected: None,
        });
        self.carried_out(event, &proposal, sensitivity);
    }

    /// The decision that a proposal carries out.
    fn carried_out(&mut self, event: &Event, proposal: &Proposal, sensitivity: Sensitivity) {
        let action = &proposal.action;
        if let Some(at) = self.decision_of.get(&action.decision)
            && let Some(decision) = self.decisions.get_mut(*at)
        {
            decision.actions.push(event.seq);
            return;
        }
        let is_synthesised = action.decision == DecisionId::of_action(action.id);
        if is_synthesised && proposal.dependencies.is_empty() {
            self.counts.groundless_decisions += 1;
            return;
        }
        let grounds = proposal.dependencies.iter().map(|one| Ground {
            belief: one.belief,
            adopted: self.adopted(one.belief),
            truth: Some(one.truth),
            security: Some(one.security),
            rests_on_reading: Some(one.rests_on_reading),
        });
        let mut grounds: Vec<Ground> = grounds.collect();
        // In the log they stand by id, which is chance; a reader looks for what they rest on.
        let truth = |one: &Ground| one.truth.map(lodestar_core::chain::Truth::as_str);
        grounds.sort_by_key(|one| (one.adopted, truth(one), one.rests_on_reading, one.belief));
        let question = format!("call {}?", action.tool.as_str());
        let decision = Decision {
            id: action.decision,
            seq: event.seq,
            rests_on: grounds,
            question: self.shown(&question, VALUE, sensitivity),
            chosen: Some("call".to_owned()),
            origin: lodestar_core::chain::DecisionOrigin::Synthesised,
            made_by: event.actor.clone(),
            actions: vec![event.seq],
        };
        self.decision_of.insert(decision.id, self.decisions.len());
        self.decisions.push(decision);
    }

    fn arguments(
        &self,
        arguments: &Map<String, Value>,
        provenance: &[ArgumentProvenance],
        sensitivity: Sensitivity,
    ) -> Vec<Argument> {
        let mut found: BTreeMap<&str, Argument> = BTreeMap::new();
        for one in provenance.iter().take(MOST_ARGUMENTS) {
            let (from, observations) = match &one.label {
                Label::Given { .. } => (From::Given, &[][..]),
                Label::Measured { .. } => (From::Measured, &[][..]),
                Label::Read { observations, .. } => (From::Read, observations.as_slice()),
                Label::Unknown => (From::Unknown, &[][..]),
            };
            let read_in = observations.iter().filter_map(|id| self.observed.get(id));
            let mut read_in: Vec<u64> = read_in.copied().collect();
            for inside in &one.inside {
                if let Label::Read { observations, .. } = &inside.label {
                    read_in.extend(observations.iter().filter_map(|id| self.observed.get(id)));
                }
            }
            read_in.sort_unstable();
            read_in.dedup();
            found.entry(&one.pointer).or_insert_with(|| Argument {
                pointer: crate::bounded::bounded(&one.pointer, VALUE),
                value: self.value(arguments, &one.pointer, sensitivity),
                kind: Some(one.kind),
                from,
                read_in,
            });
        }
        let mut list: Vec<Argument> = found.into_values().collect();
        if provenance.is_empty() {
            let untraced = arguments.iter().take(MOST_ARGUMENTS);
            list.extend(untraced.map(|(name, value)| Argument {
                pointer: crate::bounded::bounded(&format!("/{name}"), VALUE),
                value: self.shown(&in_words(value), VALUE, sensitivity),
                kind: None,
                from: From::Untraced,
                read_in: Vec::new(),
            }));
        }
        let all = match provenance.is_empty() {
            true => arguments.len(),
            false => provenance.len(),
        };
        if all > MOST_ARGUMENTS {
            list.push(Argument {
                pointer: String::new(),
                value: Some(format!("… (+{} values)", all - MOST_ARGUMENTS)),
                kind: None,
                from: From::Untraced,
                read_in: Vec::new(),
            });
        }
        list
    }

    fn value(
        &self,
        arguments: &Map<String, Value>,
        pointer: &str,
        sensitivity: Sensitivity,
    ) -> Option<String> {
        let (first, rest) = match pointer.strip_prefix('/')?.split_once('/') {
            Some((first, rest)) => (first, Some(rest)),
            None => (&pointer[1..], None),
        };
        let value = arguments.get(&first.replace("~1", "/").replace("~0", "~"))?;
        let value = match rest {
            Some(rest) => value.pointer(&format!("/{rest}"))?,
            None => value,
        };
        self.shown(&in_words(value), VALUE, sensitivity)
    }

    /// How sensitive what a tool handles is, also where no action came of a call of it.
    fn level_of_tool(&self, name: Option<&ToolName>) -> Sensitivity {
        let default = self.default_sensitivity();
        let mut tools = self
            .opening()
            .into_iter()
            .flat_map(|opening| &opening.tools);
        let tool = tools.find(|tool| Some(&tool.shape.name) == name);
        tool.map_or(default, |tool| {
            default.under(tool.contract.data_sensitivity)
        })
    }

    pub(super) fn judged(&mut self, event: &Event) {
        let Some(judgement) = self.read_line::<JudgedLine>(event) else {
            return;
        };
        match judgement.verdict {
            Verdict::Allow => self.counts.allowed += 1,
            Verdict::Hold => self.counts.held += 1,
            Verdict::Deny => self.counts.denied += 1,
        }
        let known = self.action(judgement.action);
        let Some((sensitivity, level)) = known.map(|one| (one.sensitivity, one.level)) else {
            return;
        };
        let reason = self.reason(&why(&judgement, level), sensitivity);
        if let Some(action) = self.action(judgement.action) {
            action.phase = ActionState::Arbitrated;
            action.judged = Some(Judged {
                seq: event.seq,
                verdict: judgement.verdict,
                policies: judgement.policies,
                reason,
            });
        }
    }

    pub(super) fn cleared(&mut self, event: &Event) {
        let Some(cleared) = self.read_line::<ClearedLine>(event) else {
            return;
        };
        self.counts.cleared += 1;
        if let Some(at) = self.action_of.get(&cleared.action) {
            self.cleared_of.insert(event.seq, *at);
        }
        if let Some(action) = self.action(cleared.action) {
            action.phase = ActionState::Cleared;
            action.request = action.request.or(cleared.request);
            action.cleared = Some(Spent {
                seq: event.seq,
                request: cleared.request,
                grants: cleared.grants,
            });
        }
    }

    pub(super) fn finished(&mut self, event: &Event) {
        let Some(finished) = self.read_line::<FinishedLine>(event) else {
            return;
        };
        let is_completed = event.kind == "action.completed@1";
        match is_completed {
            true => self.counts.completed += 1,
            false => self.counts.failed += 1,
        }
        let observations = finished.effect_observations;
        let usual = || match is_completed {
            true => vec![ObservationId::of_action(finished.action)],
            false => Vec::new(),
        };
        let returned = observations.unwrap_or_else(usual);
        let returned = returned
            .iter()
            .find_map(|id| self.observed.get(id))
            .copied();
        let ran = returned.and_then(|seq| self.programs.remove(&seq));
        let (contained, planted) = match ran {
            Some(ran) => (Some(ran.state), ran.planted),
            None => (None, Vec::new()),
        };
        let Some(sensitivity) = self.action(finished.action).map(|one| one.sensitivity) else {
            return;
        };
        let problem = finished
            .error
            .map(|error| self.reason(&error.message, sensitivity));
        if let Some(action) = self.action(finished.action) {
            action.phase = match is_completed {
                true => ActionState::Completed,
                false => ActionState::Failed,
            };
            action.ended = Some(Ended {
                seq: event.seq,
                result: finished.result,
                micros: Some(finished.duration_micros),
                returned,
                contained,
                planted,
                problem,
            });
        }
    }

    pub(super) fn unknown(&mut self, event: &Event) {
        self.counts.unknown += 1;
        let Some(unknown) = self.read::<Unknown>(event) else {
            return;
        };
        let known = self.action(unknown.action).map(|one| one.sensitivity);
        let because = self.reason(&unknown.because, known.unwrap_or(Sensitivity::Secret));
        if let Some(action) = self.action(unknown.action) {
            action.phase = ActionState::Unknown;
            action.ended = Some(Ended {
                seq: event.seq,
                result: OutcomeResult::Unknown,
                micros: None,
                returned: None,
                contained: None,
                planted: Vec::new(),
                problem: Some(because),
            });
        }
    }

    pub(super) fn rejected(&mut self, event: &Event) {
        self.counts.rejected += 1;
        let Some(rejected) = self.read::<Rejection>(event) else {
            return;
        };
        let (kind, words) = (rejected.why.kind(), rejected.why.to_string());
        if let Why::DefinitionDrift { .. } = rejected.why {
            self.drift_refused(event.seq, rejected.tool.as_ref().map(|tool| tool.as_str()));
        }
        let action = rejected.action.and_then(|id| self.action(id));
        let Some((id, sensitivity)) = action.map(|one| (one.id, one.sensitivity)) else {
            let sensitivity = self.level_of_tool(rejected.tool.as_ref());
            let reason = self.reason(&words, sensitivity);
            self.refused_calls.push(RefusedCall {
                seq: event.seq,
                sensitivity,
                tool: rejected.tool.map(|tool| tool.as_str().to_owned()),
                kind: kind.to_owned(),
                reason,
            });
            return;
        };
        let reason = self.reason(&words, sensitivity);
        let asked = match &rejected.why {
            Why::ApprovalRequired { request }
            | Why::ApprovalDenied { request, .. }
            | Why::ApprovalTimeout { request } => Some(*request),
            _ => rejected.granted,
        };
        if let Some(action) = self.action(id) {
            action.phase = match rejected.why {
                Why::Halted => ActionState::Halted,
                _ => ActionState::Rejected,
            };
            action.request = action.request.or(asked);
            action.rejected = Some(Rejected {
                seq: event.seq,
                kind: kind.to_owned(),
                reason,
            });
        }
    }
}

/// A value as text: strings without their quotes.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Why the verdict is what it is, in one line.
fn why(judgement: &JudgedLine, level: Rung) -> String {
    let mut parts = Vec::new();
    let answer = judgement.answer.unwrap_or(CedarAnswer::PERMITTED);
    let said = (answer.run, answer.ask);
    parts.push(
        match said {
            (Say::Forbid, _) | (_, Say::Forbid) => "it is forbidden",
            (Say::Permit, _) => "to run it is permitted",
            (Say::Silent, Say::Permit) => "to ask for it is permitted, to run it is not",
            (Say::Silent, Say::Silent) => "no policy mentions it",
        }
        .to_owned(),
    );
    match (level, judgement.verdict) {
        (Rung::L5, Verdict::Deny) => parts.push("L5 never runs".to_owned()),
        (Rung::L4, Verdict::Hold) => parts.push("L4 always waits for a person".to_owned()),
        _ => {}
    }
    for error in &judgement.errors {
        parts.push(format!("could not be evaluated: {}", error.message));
    }
    for one in &judgement.tightened {
        let by = match &one.by {
            Tightener::EvaluationError => "what could not be evaluated".to_owned(),
            Tightener::Floor => "the ladder".to_owned(),
            Tightener::Arbiter(name) => format!("arbiter `{name}`"),
        };
        parts.push(format!("{by} made it {}, it was {}", one.to, one.from));
    }
    for signal in judgement.signals.iter().chain(&judgement.heard) {
        parts.push(format!(
            "{} ({}): {}",
            signal.arbiter, signal.severity, signal.reason
        ));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use lodestar_core::name::{ProjectId, SessionId};
    use lodestar_log::LogRoot;

    use super::*;

    #[test]
    fn values_that_are_not_listed_are_counted() {
        let project = ProjectId::new("p").expect("a name");
        let session = SessionId::new("s").expect("a name");
        let dir = LogRoot::at("nowhere").project(&project).session(&session);
        let fold = Fold::new(&dir, 0, Sensitivity::Internal);
        let given = |many: usize| -> Map<String, Value> {
            let all = (0..many).map(|one| (format!("{one:03}"), Value::from(one)));
            all.collect()
        };
        let shown = fold.arguments(&given(MOST_ARGUMENTS), &[], Sensitivity::Internal);
        assert_eq!(shown.len(), MOST_ARGUMENTS);
        let shown = fold.arguments(&given(70), &[], Sensitivity::Internal);
        let last = shown.last().and_then(|one| one.value.as_deref());
        assert_eq!(last, Some("… (+6 values)"));
    }
}
