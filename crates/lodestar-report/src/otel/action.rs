//! One action as a span: from its proposal to its end, with what the gate and people said on the way, and
//! with a child for the time in which the tool ran.

use lodestar_core::canonical;
use lodestar_core::chain::{ContentBlock, Observation, OutcomeResult};
use lodestar_core::id::ActionId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Finished as Outcome, Proposal, Rejected, Unknown};
use lodestar_log::Event;
use lodestar_policy::{Judgement, Tightener};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanId, Status};
use serde_json::{Map, Value, json};

use super::attributes::{Events, Finished, number, place, span_event, text, texts};
use super::content::{Ceiling, Outward, inert};
use super::names;

/// How an MCP server is reached, as its `server.started@1` says.
#[derive(Debug, Clone, Default)]
pub(super) struct Reached {
    pub(super) revision: Option<String>,
    pub(super) transport: Option<String>,
}

/// Where an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    Failed,
    Unknown,
    Rejected,
}

/// An action that is followed.
#[derive(Debug)]
pub(super) struct ActionSpan {
    pub(super) id: Option<ActionId>,
    pub(super) span: SpanId,
    pub(super) tool: String,
    /// Events that belong to it.
    pub(super) seqs: Vec<u64>,
    /// The event that recorded what it returned.
    pub(super) observed: Option<u64>,
    from: Timestamp,
    /// How sensitive its content is at least.
    pub(super) level: Sensitivity,
    attributes: Vec<KeyValue>,
    events: Events,
    execution: Option<Execution>,
    /// The hold whose grants opened it.
    opened_by: Option<SpanId>,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Execution {
    span: SpanId,
    from: Timestamp,
    attributes: Vec<KeyValue>,
}

#[derive(Debug)]
struct Ended {
    at: Timestamp,
    status: Status,
}

/// Name of a tool whose proposal was redacted.
const REDACTED: &str = "(redacted)";

impl ActionSpan {
    /// A proposal. One that was redacted, or cannot be read, is as sensitive as anything can be.
    pub(super) fn open(
        event: &Event,
        proposal: Option<&Proposal>,
        opening: Option<&Opening>,
        reached: Option<&Reached>,
        span: SpanId,
        ceiling: Ceiling,
    ) -> Self {
        let mut attributes = vec![text(names::GEN_AI_OPERATION_NAME, "execute_tool")];
        let level = level(proposal, opening);
        if let Some(proposal) = proposal {
            attributes.extend(described(proposal));
            // It is a digest without a salt of arguments among little else: as sensitive as they are.
            let fingerprint = proposal.action.fingerprint.to_string();
            let fingerprint = ceiling.words(names::FINGERPRINT, &fingerprint, level, event);
            attributes.push(fingerprint);
            let tool = proposal.action.tool.as_str();
            attributes.extend(reached.map(|it| mcp(tool, it)).unwrap_or_default());
            let content = json_text(&Value::Object(proposal.action.arguments.clone()));
            let outward = ceiling.outward(&content, level, event);
            let form = (names::ARGUMENTS_BYTES, names::ARGUMENTS_FORM);
            attributes.extend(content_of(names::GEN_AI_TOOL_CALL_ARGUMENTS, form, outward));
            attributes.push(text(names::SENSITIVITY, level));
        }
        attributes.extend(place(event));
        let tool = proposal.map(|proposal| proposal.action.tool.as_str());
        Self {
            id: proposal.map(|proposal| proposal.action.id),
            span,
            tool: inert(tool.unwrap_or(REDACTED)),
            seqs: vec![event.seq],
            observed: None,
            from: event.time,
            level,
            attributes,
            events: Events::default(),
            execution: None,
            opened_by: None,
            ended: None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Something happened to it.
    pub(super) fn note(&mut self, name: &'static str, event: &Event, attributes: Vec<KeyValue>) {
        self.events.push(span_event(name, event, attributes));
    }

    /// The gate answered.
    pub(super) fn judged(&mut self, event: &Event, judgement: Option<&Judgement>) {
        let mut said = Vec::new();
        if let Some(judgement) = judgement {
            said.push(text(names::VERDICT, judgement.verdict));
            let policies = judgement.policies.iter().map(|id| id.as_str().to_owned());
            said.push(texts(names::POLICIES, policies));
            let tightened = judgement.tightened.iter();
            let tightened: Vec<String> = tightened.map(|one| tightener(&one.by)).collect();
            if !tightened.is_empty() {
                said.push(texts(names::TIGHTENED_BY, tightened.into_iter()));
            }
            let signals = judgement.signals.iter().chain(&judgement.heard);
            let mut signals = signals.map(|signal| signal.arbiter.clone()).peekable();
            if signals.peek().is_some() {
                said.push(texts(names::SIGNALS, signals));
            }
            self.attributes.extend(said.iter().cloned());
        }
        self.note("lodestar.judged", event, said);
    }

    /// It may run, and the tool is called.
    pub(super) fn cleared(
        &mut self,
        event: &Event,
        request: Option<String>,
        (span, opened_by): (SpanId, Option<SpanId>),
    ) {
        self.opened_by = opened_by;
        let request = request.map(|request| text(names::REQUEST, request));
        self.execution = Some(Execution {
            span,
            from: event.time,
            attributes: place(event),
        });
        self.note("lodestar.cleared", event, request.into_iter().collect());
    }

    /// What came back.
    pub(super) fn observed(&mut self, event: &Event, payload: Option<Value>, ceiling: Ceiling) {
        self.observed = Some(event.seq);
        self.note("lodestar.observed", event, Vec::new());
        let observation = payload.map(serde_json::from_value::<Observation>);
        let Some(Ok(observation)) = observation else {
            return;
        };
        let level = self.level.stricter(observation.sensitivity);
        let content = json_text(&result(observation));
        let outward = ceiling.outward(&content, level, event);
        let form = (names::RESULT_BYTES, names::RESULT_FORM);
        let attributes = content_of(names::GEN_AI_TOOL_CALL_RESULT, form, outward);
        self.attributes.extend(attributes);
    }

    /// The tool returned, well or not, or was never heard of again.
    pub(super) fn finished(
        &mut self,
        end: End,
        event: &Event,
        payload: Option<Value>,
        ceiling: Ceiling,
    ) {
        let (name, usual) = match end {
            End::Completed => ("lodestar.completed", "success"),
            End::Failed => ("lodestar.failed", "failure"),
            End::Unknown => ("lodestar.unknown", "unknown"),
            End::Rejected => ("lodestar.rejected", "rejected"),
        };
        let mut said = Vec::new();
        let mut outcome = usual;
        let mut problem = match end {
            End::Completed | End::Rejected => None,
            End::Failed => Some("failed".to_owned()),
            End::Unknown => Some("unknown".to_owned()),
        };
        match (end, payload) {
            (_, None) => {}
            (End::Rejected, Some(payload)) => {
                said = rejected(payload, self.level, event, ceiling);
                self.attributes.extend(said.iter().cloned());
            }
            (End::Unknown, Some(payload)) => {
                if let Ok(unknown) = serde_json::from_value::<Unknown>(payload) {
                    said.push(ceiling.words(names::REASON, &unknown.because, self.level, event));
                }
            }
            (End::Completed | End::Failed, Some(payload)) => {
                let kind = payload["error"]["kind"].as_str().map(str::to_owned);
                if let Ok(finished) = serde_json::from_value::<Outcome>(payload) {
                    outcome = finished.outcome.result.as_str();
                    said.push(number(names::DURATION, finished.outcome.duration_micros));
                    if let Some(error) = &finished.error {
                        let message = &error.message;
                        said.push(ceiling.words(names::REASON, message, self.level, event));
                    }
                    problem = match finished.outcome.result {
                        OutcomeResult::Success | OutcomeResult::Partial => problem,
                        // What MCP's conventions say of a result that calls itself an error.
                        OutcomeResult::Failure => Some("tool_error".to_owned()),
                        OutcomeResult::Unknown => Some("unknown".to_owned()),
                    };
                    problem = kind.or(problem);
                }
            }
        }
        self.attributes.push(text(names::OUTCOME, outcome));
        let status = match problem {
            None => Status::Unset,
            Some(problem) => {
                self.attributes.push(text(names::ERROR_TYPE, &problem));
                Status::error(problem)
            }
        };
        self.note(name, event, said);
        let at = event.time;
        self.ended = Some(Ended { at, status });
    }

    /// The spans of it: its own, and that of its execution. Of one that is not over, they end with what is
    /// known.
    pub(super) fn spans(mut self, root: SpanId, known_until: Timestamp) -> Vec<Finished> {
        if self.ended.is_none() {
            self.attributes.push(text(names::OUTCOME, "pending"));
        }
        let (to, status) = match self.ended {
            Some(ended) => (ended.at, ended.status),
            None => (known_until, Status::Unset),
        };
        let execution = self.execution.map(|execution| Finished {
            span: execution.span,
            parent: self.span,
            name: format!("lodestar.execution {}", self.tool),
            from: execution.from,
            to,
            attributes: execution.attributes,
            events: Events::default(),
            link: None,
            status: status.clone(),
        });
        let own = Finished {
            span: self.span,
            parent: root,
            name: format!("execute_tool {}", self.tool),
            from: self.from,
            to,
            attributes: self.attributes,
            events: self.events,
            link: self.opened_by,
            status,
        };
        execution.into_iter().chain([own]).collect()
    }
}

/// How sensitive a call is at least: as its session, and as what its contract says it handles.
fn level(proposal: Option<&Proposal>, opening: Option<&Opening>) -> Sensitivity {
    let (Some(proposal), Some(opening)) = (proposal, opening) else {
        return Sensitivity::Secret;
    };
    let declared = proposal.action.contract.data_sensitivity;
    opening.sensitivity.under(declared)
}

fn described(proposal: &Proposal) -> Vec<KeyValue> {
    let action = &proposal.action;
    vec![
        text(names::GEN_AI_TOOL_NAME, action.tool.as_str()),
        text(names::GEN_AI_TOOL_TYPE, "function"),
        text(names::GEN_AI_TOOL_CALL_ID, action.id),
        text(names::SERVER, action.server.as_str()),
        text(names::RUNG, action.contract.required_level),
    ]
}

/// What the proxy offers as tools of a server although MCP has methods of their own for it.
const METHODS: [(&str, &str); 6] = [
    (".resources.read", "resources/read"),
    (".resources.templates.read", "resources/read"),
    (".resources.subscribe", "resources/subscribe"),
    (".resources.templates.subscribe", "resources/subscribe"),
    (".prompts.get", "prompts/get"),
    (".completion.complete", "completion/complete"),
];

/// MCP's attributes on the span of the tool's execution, as its conventions ask for where there is one.
fn mcp(tool: &str, reached: &Reached) -> Vec<KeyValue> {
    let method = METHODS.iter().find(|(tail, _)| tool.ends_with(tail));
    let method = method.map_or("tools/call", |(_, method)| method);
    let mut found = vec![text(names::MCP_METHOD_NAME, method)];
    let revision = reached.revision.as_deref();
    found.extend(revision.map(|revision| text(names::MCP_PROTOCOL_VERSION, revision)));
    match reached.transport.as_deref() {
        Some("stdio") => found.push(text(names::NETWORK_TRANSPORT, "pipe")),
        Some("http") => found.extend([
            text(names::NETWORK_TRANSPORT, "tcp"),
            text(names::NETWORK_PROTOCOL_NAME, "http"),
        ]),
        _ => {}
    }
    found
}

/// Why it did not run.
pub(super) fn rejected(
    payload: Value,
    level: Sensitivity,
    event: &Event,
    ceiling: Ceiling,
) -> Vec<KeyValue> {
    let Ok(rejected) = serde_json::from_value::<Rejected>(payload) else {
        return Vec::new();
    };
    let reason = rejected.why.to_string();
    vec![
        text(names::REJECTION, rejected.why.kind()),
        ceiling.words(names::REASON, &reason, level, event),
    ]
}

fn tightener(by: &Tightener) -> String {
    match by {
        Tightener::EvaluationError => "evaluation_error".to_owned(),
        Tightener::Floor => "floor".to_owned(),
        Tightener::Arbiter(name) => format!("arbiter:{name}"),
    }
}

fn content_of(
    name: &'static str,
    (bytes, form): (&'static str, &'static str),
    outward: Outward,
) -> [KeyValue; 3] {
    [
        text(name, outward.text),
        number(bytes, outward.bytes as u64),
        text(form, outward.form.as_str()),
    ]
}

/// What a tool returned, as MCP writes it.
fn result(observation: Observation) -> Value {
    let mut whole: Map<String, Value> = observation.rest;
    let (mut content, mut structured) = (Vec::new(), None);
    for block in observation.content {
        match block {
            ContentBlock::Structured { value } => structured = Some(value),
            block => content.push(block.to_wire()),
        }
    }
    whole.insert("content".to_owned(), Value::Array(content));
    if let Some(value) = structured {
        whole.insert("structuredContent".to_owned(), value);
    }
    json!(whole)
}

/// Canonical, so that a digest of it can be made again.
fn json_text(value: &Value) -> String {
    let canonical = canonical::to_vec(value).ok();
    let canonical = canonical.and_then(|bytes| String::from_utf8(bytes).ok());
    canonical.unwrap_or_else(|| value.to_string())
}
