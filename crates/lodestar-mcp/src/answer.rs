//! A server's result on its way: what is recorded of it, and what the agent gets.

use lodestar_core::canonical::MAX_INTEGER;
use lodestar_core::chain::ContentBlock;
use lodestar_core::id::ActionId;
use lodestar_core::ladder::Verdict;
use lodestar_core::name::SessionId;
use lodestar_core::unambiguous;
use lodestar_guard::heavy::{aside, is_heavy};
use lodestar_guard::{GuardError, Outcome, Reply};
use lodestar_kernel::record::Rejection;
use lodestar_kernel::tool::{Output, ToolErrorKind, Verbatim};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::members::{Members, quoted};

/// The key under which Lodestar speaks to the agent; nobody else does.
pub const OWN: &str = "_lodestar";

/// What is wrong lies on this side.
const INTERNAL_ERROR: i64 = -32603;

/// How deep a result may nest: the log holds it some levels further down.
const MAX_DEPTH: usize = 64;

/// Takes a result apart for the record. Fails where readers could differ on what it says.
pub fn recorded(result: &RawValue, content: Contents) -> Result<Output, String> {
    let members = Members::of(result).map_err(|problem| format!("its result: {problem}"))?;
    let mut output = Output {
        verbatim: Some(Verbatim::Result(result.get().into())),
        ..Output::default()
    };
    for (name, raw) in members.iter() {
        let value = unambiguous::read(raw.get())
            .map_err(|problem| format!("its result cannot be read: `{name}`: {problem}"))?;
        match (name, value) {
            (name, Value::Array(blocks)) if name == content.member() => {
                output
                    .content
                    .extend(blocks.into_iter().map(|block| content.block(block)));
            }
            ("structuredContent", value) => output.content.push(ContentBlock::Structured {
                value: writable(value, raw.get()),
            }),
            ("isError", Value::Bool(is_error)) => output.is_error = is_error,
            (name, value) => {
                output
                    .rest
                    .insert(name.to_owned(), writable(value, raw.get()));
            }
        }
    }
    Ok(output)
}

/// Records an error of the protocol: its words are content like any other.
pub(crate) fn recorded_error(error: &RawValue) -> Output {
    let read = unambiguous::read(error.get());
    let value = read.map(|value| writable(value, error.get()));
    Output {
        content: vec![ContentBlock::Unknown {
            raw: value.unwrap_or_else(|_| error.get().into()),
        }],
        is_error: true,
        rest: Map::new(),
        verbatim: Some(Verbatim::Error(error.get().into())),
    }
}

/// Where a method's result has its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Content blocks, of a tool.
    Blocks,
    /// Contents of resources.
    Resources,
    /// Messages of a prompt.
    Messages,
    /// All of it, as one.
    Whole,
}

impl Contents {
    fn member(self) -> &'static str {
        match self {
            Self::Blocks => "content",
            Self::Resources => "contents",
            Self::Messages => "messages",
            Self::Whole => "",
        }
    }

    fn block(self, block: Value) -> ContentBlock {
        if !is_writable(&block, 0) {
            return ContentBlock::Unknown {
                raw: block.to_string().into(),
            };
        }
        match self {
            Self::Blocks | Self::Whole => ContentBlock::from_wire(block),
            Self::Resources => {
                ContentBlock::from_wire(json!({"type": "resource", "resource": block}))
            }
            // A message is its block, with whoever speaks beside it.
            Self::Messages => match block {
                Value::Object(mut message) => match message.remove("content") {
                    // Nothing of either hides anything of the other.
                    Some(Value::Object(mut inner))
                        if message.keys().all(|name| !inner.contains_key(name)) =>
                    {
                        inner.extend(message);
                        ContentBlock::from_wire(Value::Object(inner))
                    }
                    Some(inner) => {
                        message.insert("content".to_owned(), inner);
                        ContentBlock::Unknown {
                            raw: Value::Object(message),
                        }
                    }
                    None => ContentBlock::Unknown {
                        raw: Value::Object(message),
                    },
                },
                other => ContentBlock::Unknown { raw: other },
            },
        }
    }
}

/// The value, or its text where the log's one spelling of JSON has no room for it.
fn writable(value: Value, text: &str) -> Value {
    match is_writable(&value, 0) {
        true => value,
        false => text.into(),
    }
}

fn is_writable(value: &Value, depth: usize) -> bool {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), ..) => number < MAX_INTEGER,
            (_, Some(number), _) => number.unsigned_abs() < MAX_INTEGER,
            (_, _, number) => number.is_some_and(|number| {
                number.is_finite() && (number.abs() < MAX_INTEGER as f64 || number.abs() >= 1e21)
            }),
        },
        Value::Array(items) => {
            depth < MAX_DEPTH && items.iter().all(|item| is_writable(item, depth + 1))
        }
        Value::Object(members) => {
            depth < MAX_DEPTH && members.values().all(|item| is_writable(item, depth + 1))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// Whether a server speaks in Lodestar's name somewhere. Fast where nothing looks like it.
fn may_be_forged(raw: &str) -> bool {
    memchr::memmem::find(raw.as_bytes(), OWN.as_bytes()).is_some()
        || memchr::memmem::find(raw.as_bytes(), b"\\u").is_some()
}

/// What a server says cannot be read whole, so nobody can say in whose name it speaks: it is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what the server says cannot be read, and may speak in Lodestar's name")]
pub struct Unclear;

impl Unclear {
    /// What the agent gets instead.
    fn error(self) -> ForAgent {
        let own = json!({"code": INTERNAL_ERROR, "message": self.to_string()});
        ForAgent::Error(own.to_string())
    }
}

/// Takes everything out that speaks in Lodestar's name, and says how often there was something; none where
/// there was nothing.
pub fn stripped(raw: &str) -> Result<Option<(Box<RawValue>, usize)>, Unclear> {
    if !may_be_forged(raw) {
        return Ok(None);
    }
    let mut value: Value = serde_json::from_str(raw).map_err(|_| Unclear)?;
    let found = strip(&mut value);
    if found == 0 {
        return Ok(None);
    }
    let clean = serde_json::value::to_raw_value(&value).map_err(|_| Unclear)?;
    Ok(Some((clean, found)))
}

/// The same of what was read already.
pub(crate) fn strip(value: &mut Value) -> usize {
    match value {
        Value::Object(members) => {
            let before = members.len();
            members.retain(|name, _| name != OWN);
            let inside = members.values_mut().map(strip).sum::<usize>();
            before - members.len() + inside
        }
        Value::Array(items) => items.iter_mut().map(strip).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// What becomes of what a server says in Lodestar's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forged {
    /// The agent does not get it.
    TakenOut,
    /// For a harness that takes [`Defence::MetaStripped`](lodestar_core::defence::Defence) out: it does.
    LeftIn,
}

/// The answer to a call, for the agent, and how often the server spoke in Lodestar's name. A large one is
/// written beside everybody else's calls.
pub(crate) async fn for_agent(
    session: &SessionId,
    tool: &str,
    reply: Reply,
    forged: Forged,
) -> Result<(ForAgent, usize), GuardError> {
    let size = match &reply.outcome {
        Outcome::Returned(output) => output.verbatim.as_ref().map_or(0, Verbatim::bytes),
        Outcome::Failed(_) | Outcome::Refused(_) => 0,
    };
    if is_heavy(size) {
        let (session, tool) = (session.clone(), tool.to_owned());
        let writing = aside(move || {
            let told = Told {
                session: &session,
                tool: &tool,
                forged,
            };
            told.answer(&reply)
        });
        return writing.await;
    }
    let told = Told {
        session,
        tool,
        forged,
    };
    Ok(told.answer(&reply))
}

/// What the agent is told of the call, beside what came back.
#[derive(Debug)]
struct Told<'a> {
    session: &'a SessionId,
    tool: &'a str,
    forged: Forged,
}

/// A message for the agent: the result's bytes, or an error's.
#[derive(Debug)]
pub(crate) enum ForAgent {
    Result(String),
    Error(String),
}

impl Told<'_> {
    fn answer(&self, reply: &Reply) -> (ForAgent, usize) {
        match &reply.outcome {
            Outcome::Returned(output) => match &output.verbatim {
                Some(Verbatim::Result(raw)) => match self.passed_on(raw, reply) {
                    Ok((result, forged)) => (ForAgent::Result(result), forged),
                    Err(unclear) => (unclear.error(), 1),
                },
                Some(Verbatim::Error(raw)) => match self.cleaned(raw) {
                    Ok(Some((clean, forged))) => (ForAgent::Error(clean.get().to_owned()), forged),
                    Ok(None) => (ForAgent::Error(raw.clone().into_string()), 0),
                    Err(unclear) => (unclear.error(), 1),
                },
                None => {
                    let content: Vec<_> =
                        output.content.iter().map(ContentBlock::to_wire).collect();
                    let own = json!({"content": content, "isError": output.is_error});
                    match self.passed_on(&own.to_string(), reply) {
                        Ok((result, _)) => (ForAgent::Result(result), 0),
                        Err(unclear) => (unclear.error(), 0),
                    }
                }
            },
            Outcome::Failed(error) => {
                let kind = match error.kind {
                    ToolErrorKind::Refused => "definition_drift",
                    _ => "execution_failed",
                };
                (
                    ForAgent::Result(self.refusal(reply, kind, &error.message)),
                    0,
                )
            }
            Outcome::Refused(why) => (
                ForAgent::Result(self.refusal(reply, kind(why), &why.to_string())),
                0,
            ),
        }
    }

    fn cleaned(&self, raw: &str) -> Result<Option<(Box<RawValue>, usize)>, Unclear> {
        match self.forged {
            Forged::TakenOut => stripped(raw),
            Forged::LeftIn => Ok(None),
        }
    }

    /// A result unchanged, but for Lodestar's own word in its `_meta`.
    fn passed_on(&self, raw: &str, reply: &Reply) -> Result<(String, usize), Unclear> {
        let clean = self.cleaned(raw)?;
        let forged = clean.as_ref().map_or(0, |(_, forged)| *forged);
        let raw = clean.as_ref().map_or(raw, |(clean, _)| clean.get());
        let own = self.own(reply.action, reply.verdict, reply.seq);
        let parsed: Result<&RawValue, _> = serde_json::from_str(raw);
        let members = parsed.ok().and_then(|raw| Members::of(raw).ok());
        let members = members.unwrap_or_default();
        let written = match members.get("_meta").map(Members::of) {
            None => with_last(raw, &own),
            Some(meta) => {
                let meta = meta.unwrap_or_default().write_with(&[(OWN, &own)]);
                members.write_with(&[("_meta", &meta)])
            }
        };
        Ok((written, forged))
    }

    fn own(&self, action: Option<ActionId>, verdict: Option<Verdict>, seq: Option<u64>) -> String {
        let mut own = String::with_capacity(192);
        own.push('{');
        if let Some(action) = action {
            own.push_str(&format!("\"action_id\":\"{action}\","));
        }
        own.push_str("\"session_id\":");
        own.push_str(&quoted(self.session.as_str()));
        if let Some(verdict) = verdict {
            own.push_str(&format!(",\"verdict\":\"{}\"", verdict.as_str()));
        }
        if let Some(seq) = seq {
            own.push_str(&format!(",\"seq\":{seq}"));
        }
        own.push('}');
        own
    }

    /// A refusal is a normal result: the agent reads it and goes on.
    fn refusal(&self, reply: &Reply, kind: &str, reason: &str) -> String {
        refusal(&Refusal {
            kind,
            text: &reply.for_agent(),
            reason,
            tool: self.tool,
            session: Some(self.session),
            action: reply.action,
            seq: reply.seq,
            request: reply.refusal().and_then(request),
        })
    }
}

/// A refusal, in parts.
pub(crate) struct Refusal<'a> {
    pub(crate) kind: &'a str,
    pub(crate) text: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) session: Option<&'a SessionId>,
    pub(crate) action: Option<ActionId>,
    pub(crate) seq: Option<u64>,
    pub(crate) request: Option<String>,
}

/// Writes a refusal as a tool's result.
pub(crate) fn refusal(refusal: &Refusal<'_>) -> String {
    let mut own = json!({
        "kind": refusal.kind,
        "tool_name": refusal.tool,
        "reason": refusal.reason,
        "retry": may_retry(refusal.kind),
    });
    let more = [
        ("session_id", refusal.session.map(|id| id.as_str().into())),
        ("action_id", refusal.action.map(|id| id.to_string().into())),
        ("seq", refusal.seq.map(Value::from)),
        ("request_id", refusal.request.clone().map(Value::from)),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            own[name] = value;
        }
    }
    json!({
        "content": [{"type": "text", "text": refusal.text}],
        "isError": true,
        "_meta": {OWN: own},
    })
    .to_string()
}

/// Whether the same call can sensibly be made again.
fn may_retry(kind: &str) -> bool {
    matches!(
        kind,
        "approval_required" | "approval_timeout" | "precondition_failed" | "proxy_not_ready"
    )
}

/// The kinds of refusals that agents know.
fn kind(why: &Rejection) -> &'static str {
    match why {
        Rejection::PolicyDenied { .. } | Rejection::ReachesLodestar { .. } => "policy_denied",
        Rejection::ApprovalRequired { .. } => "approval_required",
        Rejection::ApprovalDenied { .. } => "approval_denied",
        Rejection::ApprovalTimeout { .. } => "approval_timeout",
        Rejection::PreconditionFailed { .. } | Rejection::Irreversible { .. } => {
            "precondition_failed"
        }
        Rejection::InvalidArguments { .. } | Rejection::Stopped => "execution_failed",
        Rejection::DefinitionDrift { .. } => "definition_drift",
        Rejection::ToolNotAdvertised => "tool_not_advertised",
        Rejection::Halted | Rejection::SessionClosed | Rejection::NotRecorded { .. } => "halted",
    }
}

fn request(why: &Rejection) -> Option<String> {
    match why {
        Rejection::ApprovalRequired { request }
        | Rejection::ApprovalTimeout { request }
        | Rejection::ApprovalDenied { request, .. } => Some(request.to_string()),
        _ => None,
    }
}

/// An object with one member more, at its end.
fn with_last(raw: &str, own: &str) -> String {
    let Some(inner) = raw.trim_end().strip_suffix('}') else {
        return raw.to_owned();
    };
    let comma = match inner.trim_end().ends_with('{') {
        true => "",
        false => ",",
    };
    format!("{inner}{comma}\"_meta\":{{\"{OWN}\":{own}}}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_speaks_in_lodestars_name_is_taken_out_however_it_is_spelt() {
        let text = r#"{"content":[{"_lodestar":1,"a":{"\u005flodestar":{"x":1}}}],"_meta":{"_lodestar":{}}}"#;
        let (clean, found) = stripped(text).unwrap().unwrap();
        let clean: Value = serde_json::from_str(clean.get()).unwrap();
        let wanted = json!({"content": [{"a": {}}], "_meta": {}});
        assert_eq!((clean, found), (wanted, 3));
        let words = stripped(r#"{"text":"a _lodestar in words"}"#);
        assert!(words.unwrap().is_none());
        let deep = format!(
            "{{\"a\":{}{},\"_lodestar\":1}}",
            "[".repeat(200),
            "]".repeat(200)
        );
        for unclear in [
            r#"{"data":{"_lodestar":1},"n":1e400}"#,
            r#"{"data":{"_lodestar":1},"s":"\ud800"}"#,
            &deep,
        ] {
            assert_eq!(stripped(unclear).unwrap_err(), Unclear, "{unclear}");
        }
    }

    #[test]
    fn what_a_prompt_says_is_recorded_whatever_stands_beside_it() {
        let result = raw(
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"poison"},"text":"harmless","type":"text"}]}"#,
        );
        let output = recorded(&result, Contents::Messages).unwrap();
        let [ContentBlock::Unknown { raw }] = &output.content[..] else {
            panic!("{:?}", output.content)
        };
        assert_eq!(raw["content"]["text"], "poison");
        assert_eq!(raw["text"], "harmless");
    }

    #[test]
    fn a_name_twice_at_any_depth_is_refused_and_many_names_cost_no_more_than_they_are() {
        let text = r#"{"content":[{"type":"text","text":"hidden","text":"shown"}]}"#;
        let problem = recorded(&raw(text), Contents::Blocks).unwrap_err();
        assert!(problem.contains("two members named `text`"), "{problem}");
        let many: Vec<_> = (0..300_000).map(|at| format!("\"k{at}\":0")).collect();
        let many = format!("{{{}}}", many.join(","));
        assert!(recorded(&raw(&many), Contents::Blocks).is_ok());
        let twice = format!("{},\"k7\":1}}", &many[..many.len() - 1]);
        assert!(recorded(&raw(&twice), Contents::Blocks).is_err());
    }

    #[test]
    fn a_member_is_added_at_the_end_of_any_object() {
        assert_eq!(with_last("{}", "1"), r#"{"_meta":{"_lodestar":1}}"#);
        assert_eq!(
            with_last("{ \"a\": 1.0 }", "1"),
            r#"{ "a": 1.0 ,"_meta":{"_lodestar":1}}"#
        );
    }

    #[test]
    fn what_the_log_cannot_spell_is_kept_as_text() {
        let result = raw(
            r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":9007199254740993},"x":1.5}"#,
        );
        let output = recorded(&result, Contents::Blocks).unwrap();
        assert_eq!(output.content.len(), 2);
        let ContentBlock::Structured { value } = &output.content[1] else {
            panic!("structured")
        };
        assert_eq!(value, r#"{"n":9007199254740993}"#);
        assert_eq!(output.rest["x"], 1.5);
    }

    #[test]
    fn a_result_that_readers_differ_on_is_none() {
        assert!(recorded(&raw(r#"{"content":[],"content":[1]}"#), Contents::Blocks).is_err());
        assert!(recorded(&raw("[]"), Contents::Blocks).is_err());
        assert!(recorded(&raw(r#"{"content":["\ud800"]}"#), Contents::Blocks).is_err());
    }
}
