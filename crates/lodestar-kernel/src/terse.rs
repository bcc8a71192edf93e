//! The lines of a call: what the log leaves out because it stands elsewhere in the same log, and how a
//! reader gets it back.
//!
//! A call that runs writes five lines, and every byte of them is there a hundred thousand times in a long
//! session. So a line does not repeat what its own head says (time, actor, session), what the session's
//! opening says (a tool's server and definition, the agent, the policy), or ids that follow from
//! the action's (see [`of_action`](lodestar_core::id::DecisionId::of_action)). Left out unless it is another are
//! the tool's contract, and three constants of the format: a result is `raw` and `internal`, and what is
//! allowed was permitted to run with nothing said of asking. Whoever reads a log asks [`whole`], and sees
//! none of this. The line of a verdict is written by the policy's room, and filled here.

use std::time::Duration;

use lodestar_core::chain::{
    Choice, Decision, DecisionOrigin, NonEmpty, Observation, ObservationTrust, OutcomeResult,
};
use lodestar_core::contract::Contract;
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::fingerprint::{Fingerprint, NormalPath};
use lodestar_core::id::{
    ActionId, ClearanceId, DecisionId, InvocationId, ObservationId, OutcomeId, RequestId,
};
use lodestar_core::ladder::{CedarAnswer, Verdict};
use lodestar_core::name::{ActorId, ToolName};
use lodestar_core::provenance::{ArgumentProvenance, Label, Place, ValueKind};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_log::{Event, RestoreError, SessionDir};
use lodestar_policy::Dependency;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::image::State;
use crate::measure::{Found, Measured};
use crate::opening::Opening;
use crate::protect::Reach;
use crate::record::{Cleared, Proposal};
use crate::tool::ToolError;

/// How sensitive a result is where its line does not say.
const USUAL_SENSITIVITY: Sensitivity = Sensitivity::Internal;

/// `action.proposed@1`, as it is written.
#[derive(Serialize)]
pub(crate) struct ProposedLine<'a> {
    id: ActionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionId>,
    tool: &'a ToolName,
    arguments: &'a Map<String, Value>,
    fingerprint: Fingerprint,
    /// Only where it is not the tool's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<&'a Contract>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    paths: &'a [NormalPath],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    preconditions: &'a [Measured],
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "explained")]
    provenance: &'a [ArgumentProvenance],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    dependencies: &'a [Dependency],
    #[serde(skip_serializing_if = "Option::is_none")]
    reaches: Option<&'a Reach>,
}

impl<'a> ProposedLine<'a> {
    pub(crate) fn of(proposal: &'a Proposal) -> Self {
        let action = &proposal.action;
        let usual = DecisionId::of_action(action.id);
        Self {
            id: action.id,
            decision: Some(action.decision).filter(|decision| *decision != usual),
            tool: &action.tool,
            arguments: &action.arguments,
            fingerprint: action.fingerprint,
            contract: proposal.reaches.is_some().then_some(&action.contract),
            paths: &proposal.paths,
            preconditions: &proposal.preconditions,
            provenance: &proposal.provenance,
            dependencies: &proposal.dependencies,
            reaches: proposal.reaches.as_ref(),
        }
    }
}

/// A value of which nothing is known is written as its pointer and its kind.
fn explained<S: Serializer>(all: &[ArgumentProvenance], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum One<'a> {
        Unknown(&'a str, ValueKind),
        Whole(&'a ArgumentProvenance),
    }
    to.collect_seq(all.iter().map(|one| match one {
        ArgumentProvenance {
            pointer,
            place: Place::Value,
            kind,
            label: Label::Unknown,
            resembles: None,
            inside,
            inside_omitted: 0,
        } if inside.is_empty() => One::Unknown(pointer, *kind),
        other => One::Whole(other),
    }))
}

/// `action.cleared@1`, as it is written: the verdict it stands on is its second parent.
#[derive(Serialize)]
pub(crate) struct ClearedLine<'a> {
    action: ActionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    clearance: Option<ClearanceId>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    measured: &'a [Found],
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestId>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    grants: &'a [Digest],
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_at: Option<Timestamp>,
}

impl<'a> ClearedLine<'a> {
    pub(crate) fn of(cleared: &'a Cleared) -> Self {
        let usual = ClearanceId::of_action(cleared.action);
        Self {
            action: cleared.action,
            clearance: Some(cleared.clearance).filter(|clearance| *clearance != usual),
            measured: &cleared.measured,
            request: cleared.request,
            grants: &cleared.grants,
            taken_at: cleared.taken_at,
        }
    }
}

/// `observation.recorded@1` of what a call returned, as it is written.
#[derive(Serialize)]
pub struct ObservedLine<'a> {
    action: ActionId,
    tool: &'a ToolName,
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<ObservationTrust>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<Sensitivity>,
    content: &'a [lodestar_core::chain::ContentBlock],
    #[serde(skip_serializing_if = "Map::is_empty")]
    rest: &'a Map<String, Value>,
}

impl<'a> ObservedLine<'a> {
    /// What this action returned. Its ids are the action's, and it is captured when its line is written.
    pub fn of(action: ActionId, observation: &'a Observation) -> Self {
        let (trust, sensitivity) = (observation.trust, observation.sensitivity);
        Self {
            action,
            tool: &observation.tool,
            trust: (trust != ObservationTrust::Raw).then_some(trust),
            sensitivity: (sensitivity != USUAL_SENSITIVITY).then_some(sensitivity),
            content: &observation.content,
            rest: &observation.rest,
        }
    }
}

/// `action.completed@1` and `action.failed@1`, as they are written.
#[derive(Serialize)]
pub(crate) struct FinishedLine<'a> {
    action: ActionId,
    result: OutcomeResult,
    duration_micros: u64,
    /// Only where it is not the one of its action for what completed, and none for what failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect_observations: Option<&'a [ObservationId]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ToolError>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left: &'a [State],
}

impl<'a> FinishedLine<'a> {
    pub(crate) fn new(
        kind: EventType,
        action: ActionId,
        result: OutcomeResult,
        duration: Duration,
        observations: &'a [ObservationId],
        error: Option<&'a ToolError>,
    ) -> Self {
        let own = [ObservationId::of_action(action)];
        let usual = match kind {
            EventType::ACTION_COMPLETED => &own[..],
            _ => &[],
        };
        Self {
            action,
            result,
            duration_micros: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            effect_observations: (observations != usual).then_some(observations),
            error,
            left: &[],
        }
    }

    /// With what stood at the paths of its image.
    pub(crate) fn leaving(self, left: &'a [State]) -> Self {
        Self { left, ..self }
    }
}

/// The payload of an event, with the values that lie in blobs in their places, and with what was left
/// out because the event's head or the session's opening says it; `None` where it was redacted.
///
/// Without the opening, what only the opening says stays out.
pub fn whole(
    event: &Event,
    dir: &SessionDir,
    opening: Option<&Opening>,
) -> Result<Option<Value>, RestoreError> {
    let mut payload = event.whole(dir)?;
    if let Some(Value::Object(payload)) = &mut payload {
        fill(event, dir, opening, payload);
    }
    Ok(payload)
}

/// The decision that a proposal carries out, where nobody declared one: to make this call, resting on the
/// beliefs that its arguments come from.
pub fn synthesised(event: &Event, dir: &SessionDir) -> Result<Option<Decision>, RestoreError> {
    #[derive(Deserialize)]
    struct Proposed {
        id: ActionId,
        decision: DecisionId,
        tool: ToolName,
        #[serde(default)]
        dependencies: Vec<Dependency>,
    }
    if EventType::parse(event.kind.as_bytes()) != Some(EventType::ACTION_PROPOSED) {
        return Ok(None);
    }
    let Some(proposed) = whole(event, dir, None)? else {
        return Ok(None);
    };
    let unreadable = |problem: String| RestoreError::Payload(problem);
    let proposed: Proposed =
        serde_json::from_value(proposed).map_err(|problem| unreadable(problem.to_string()))?;
    if proposed.decision != DecisionId::of_action(proposed.id) {
        return Ok(None);
    }
    let made_by = ActorId::new(&event.actor).map_err(|problem| unreadable(problem.to_string()))?;
    let choice = Choice::new(NonEmpty::one("call".to_owned()), "call".to_owned());
    let beliefs = proposed.dependencies.iter().map(|one| one.belief);
    Ok(Some(Decision {
        id: proposed.decision,
        question: format!("call {}?", proposed.tool.shown()),
        choice: choice.expect("INVARIANT: the only option is chosen"),
        belief_dependencies: beliefs.collect(),
        policy_dependencies: Vec::new(),
        made_by,
        made_at: event.time,
        origin: DecisionOrigin::Synthesised,
    }))
}

fn fill(
    event: &Event,
    dir: &SessionDir,
    opening: Option<&Opening>,
    payload: &mut Map<String, Value>,
) {
    match EventType::parse(event.kind.as_bytes()) {
        Some(EventType::ACTION_PROPOSED) => fill_proposed(event, opening, payload),
        Some(EventType::ACTION_JUDGED) => fill_judged(opening, payload),
        Some(EventType::ACTION_CLEARED) => fill_cleared(event, payload),
        Some(EventType::OBSERVATION_RECORDED) => fill_observed(event, dir, payload),
        Some(kind @ (EventType::ACTION_COMPLETED | EventType::ACTION_FAILED)) => {
            fill_finished(kind, event, payload);
        }
        _ => {}
    }
}

/// Puts in what is missing, and leaves what is there.
fn put<T: Serialize>(payload: &mut Map<String, Value>, name: &str, value: impl FnOnce() -> T) {
    if !payload.contains_key(name) {
        payload.insert(name.to_owned(), json!(value()));
    }
}

fn action(payload: &Map<String, Value>, name: &str) -> Option<ActionId> {
    payload.get(name)?.as_str()?.parse().ok()
}

fn fill_proposed(event: &Event, opening: Option<&Opening>, payload: &mut Map<String, Value>) {
    put(payload, "proposed_at", || event.time);
    if let Some(id) = action(payload, "id") {
        put(payload, "decision", || DecisionId::of_action(id));
    }
    if let Some(Value::Array(provenance)) = payload.get_mut("provenance") {
        for one in provenance {
            if let [pointer, kind] = one.as_array().map_or(&[][..], Vec::as_slice) {
                *one =
                    json!({"kind": kind, "label": "unknown", "place": "value", "pointer": pointer});
            }
        }
    }
    let Some(opening) = opening else { return };
    put(payload, "agent", || &opening.agent);
    let name = payload.get("tool").and_then(Value::as_str);
    let mut tools = opening.tools.iter();
    let tool = tools.find(|tool| Some(tool.shape.name.as_str()) == name);
    if let Some(tool) = tool {
        put(payload, "server", || &tool.shape.server);
        put(payload, "definition", || tool.definition);
        put(payload, "contract", || &tool.contract);
    }
}

fn fill_judged(opening: Option<&Opening>, payload: &mut Map<String, Value>) {
    if payload.get("verdict") == Some(&json!(Verdict::Allow)) {
        put(payload, "answer", || CedarAnswer::PERMITTED);
    }
    if let Some(opening) = opening {
        put(payload, "policy", || opening.policy.digest);
    }
}

fn fill_cleared(event: &Event, payload: &mut Map<String, Value>) {
    if let Some(action) = action(payload, "action") {
        put(payload, "clearance", || ClearanceId::of_action(action));
    }
    if let [_, judged] = event.parents[..] {
        put(payload, "judged", || judged);
    }
}

fn fill_observed(event: &Event, dir: &SessionDir, payload: &mut Map<String, Value>) {
    let Some(action) = action(payload, "action") else {
        return;
    };
    put(payload, "id", || ObservationId::of_action(action));
    put(payload, "invocation_id", || InvocationId::of_action(action));
    put(payload, "captured_at", || event.time);
    put(payload, "session", || dir.session());
    put(payload, "project", || dir.project());
    put(payload, "actor", || &event.actor);
    put(payload, "trust", || ObservationTrust::Raw);
    put(payload, "sensitivity", || USUAL_SENSITIVITY);
}

fn fill_finished(kind: EventType, event: &Event, payload: &mut Map<String, Value>) {
    let Some(action) = action(payload, "action") else {
        return;
    };
    put(payload, "id", || OutcomeId::of_action(action));
    put(payload, "ended_at", || event.time);
    put(payload, "effect_observations", || match kind {
        EventType::ACTION_COMPLETED => vec![ObservationId::of_action(action)],
        _ => Vec::new(),
    });
}

#[cfg(test)]
mod tests {
    use lodestar_core::canonical;
    use lodestar_core::chain::ContentBlock;
    use lodestar_core::name::{ProjectId, SessionId};
    use lodestar_log::{LogRoot, Payload};

    use super::*;
    use crate::record::Finished;

    fn dir() -> SessionDir {
        let project = ProjectId::new("web").unwrap();
        let log = LogRoot::at("log").project(&project);
        log.session(&SessionId::new("s-1").unwrap())
    }

    fn event(kind: EventType, parents: Vec<u64>, payload: &impl Serialize) -> Event {
        Event {
            seq: 9,
            time: Timestamp::from_unix_micros(1_700_000_000_000_001).unwrap(),
            kind: kind.to_string(),
            actor: "coder".to_owned(),
            parents,
            leaf_hash: lodestar_core::digest::sha256(b"leaf"),
            offset: 0,
            payload: Payload::Present(canonical::to_vec(payload).unwrap()),
            salt: None,
        }
    }

    fn filled<T: for<'de> Deserialize<'de>>(event: &Event) -> T {
        let payload = whole(event, &dir(), None).unwrap().unwrap();
        serde_json::from_value(payload).unwrap()
    }

    const RANDOM: [u8; 10] = [7; 10];

    #[test]
    fn a_clearance_reads_as_it_was_meant_with_and_without_its_own_id() {
        let action = ActionId::from_parts(5, RANDOM);
        for clearance in [
            ClearanceId::of_action(action),
            ClearanceId::from_parts(6, RANDOM),
        ] {
            let cleared = Cleared {
                action,
                clearance,
                judged: 8,
                measured: Vec::new(),
                request: None,
                grants: Vec::new(),
                taken_at: None,
            };
            let line = ClearedLine::of(&cleared);
            let event = event(EventType::ACTION_CLEARED, vec![7, 8], &line);
            assert_eq!(filled::<Cleared>(&event), cleared);
        }
    }

    #[test]
    fn what_a_call_returned_reads_as_it_was_captured() {
        let action = ActionId::from_parts(5, RANDOM);
        for sensitivity in [Sensitivity::Internal, Sensitivity::Secret] {
            let mut observation = Observation {
                id: ObservationId::of_action(action),
                tool: ToolName::new("mcp.files.read").unwrap(),
                invocation_id: InvocationId::of_action(action),
                captured_at: Timestamp::MIN,
                session: SessionId::new("s-1").unwrap(),
                project: ProjectId::new("web").unwrap(),
                actor: ActorId::new("coder").unwrap(),
                trust: ObservationTrust::Raw,
                sensitivity,
                content: vec![ContentBlock::Text {
                    text: "id of nobody".to_owned(),
                    rest: Map::new(),
                }],
                // What a server writes beside its content stays there.
                rest: Map::from_iter([("id".to_owned(), json!("obs_forged"))]),
            };
            let line = ObservedLine::of(action, &observation);
            let bytes = String::from_utf8(canonical::to_vec(&line).unwrap()).unwrap();
            let said = match sensitivity {
                Sensitivity::Internal => "",
                _ => r#""sensitivity":"secret","#,
            };
            let written = format!(
                r#"{{"action":"{action}","content":[{{"kind":"text","text":"id of nobody"}}],"rest":{{"id":"obs_forged"}},{said}"tool":"mcp.files.read"}}"#
            );
            assert_eq!(bytes, written, "the form on disk is fixed");
            let event = event(EventType::OBSERVATION_RECORDED, vec![7], &line);
            observation.captured_at = event.time;
            assert_eq!(filled::<Observation>(&event), observation);
        }
    }

    #[test]
    fn an_end_names_the_observation_of_its_action_unless_it_failed() {
        let action = ActionId::from_parts(5, RANDOM);
        let own = [ObservationId::of_action(action)];
        let other = [ObservationId::from_parts(6, RANDOM)];
        for kind in [EventType::ACTION_COMPLETED, EventType::ACTION_FAILED] {
            for observations in [&[][..], &own, &other] {
                let took = Duration::from_micros(3);
                let result = OutcomeResult::Success;
                let line = FinishedLine::new(kind, action, result, took, observations, None);
                let finished: Finished = filled(&event(kind, vec![7], &line));
                assert_eq!(finished.outcome.effect_observations, observations);
                assert_eq!(finished.outcome.id, OutcomeId::of_action(action));
                assert_eq!(finished.outcome.duration_micros, 3);
            }
        }
    }

    #[test]
    fn odd_payloads_are_given_back_as_they_are() {
        let odd = [
            json!({}),
            json!({"id": 5, "provenance": [[], ["/a"], [1, 2, 3], {}], "tool": []}),
            json!({"action": "act_nobody", "verdict": null}),
            json!({"action": {"action": []}}),
        ];
        for kind in [
            EventType::ACTION_PROPOSED,
            EventType::ACTION_JUDGED,
            EventType::ACTION_CLEARED,
            EventType::OBSERVATION_RECORDED,
            EventType::ACTION_COMPLETED,
        ] {
            for payload in &odd {
                let event = event(kind, Vec::new(), payload);
                let mut read = whole(&event, &dir(), None).unwrap().unwrap();
                let read = read.as_object_mut().unwrap();
                read.remove("proposed_at");
                assert_eq!(&Value::Object(read.clone()), payload, "{kind}");
                assert!(!matches!(synthesised(&event, &dir()), Ok(Some(_))));
            }
        }
    }
}
