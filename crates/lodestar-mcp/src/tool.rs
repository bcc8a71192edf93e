//! A server's tool, and each of MCP's other methods, as something that the kernel can call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lodestar_core::contract::{ArgumentRole, Contract};
use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::name::ToolName;
use lodestar_core::scope::Scope;
use lodestar_guard::heavy::{aside, is_heavy};
use lodestar_kernel::stop::Stop;
use lodestar_kernel::tool::{Call, Calling, Definition, Effect, Output, Tool, ToolError};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::answer::{self, Contents};
use crate::beside::Beside;
use crate::inline::{self, INLINE};
use crate::members::{Members, quoted};
use crate::peer::{Answered, NoAnswer};
use crate::server::{Server, Up};

/// How often a server may want to know something before it answers.
const MAX_ROUNDS: usize = 10;

/// How often, and how long, a harness waits for a server that is started again.
const STARTED_AGAIN_LOOKS: usize = 400;
const STARTED_AGAIN_PAUSE: Duration = Duration::from_millis(20);

/// What is asked of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Method {
    /// A tool, by the server's own name for it.
    Tool(String),
    /// Any other method: the arguments are its parameters.
    Other {
        /// The method.
        name: &'static str,
        /// Where its result has its content.
        contents: Contents,
    },
}

/// One tool of a server.
#[derive(Debug)]
pub(crate) struct McpTool {
    definition: Definition,
    server: Arc<Server>,
    method: Method,
    drift: Arc<Drift>,
}

/// Whether a tool is still the one that was pinned.
#[derive(Debug, Default)]
pub(crate) struct Drift(AtomicBool);

impl Drift {
    /// From now on it is not.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it is not.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl McpTool {
    /// A tool that a server declares.
    pub(crate) fn declared(
        name: ToolName,
        own_name: String,
        declared: &Value,
        digest: Digest,
        server: Arc<Server>,
        scope: &Scope,
        drift: Arc<Drift>,
    ) -> Self {
        let schema = match &declared["inputSchema"] {
            Value::Object(schema) => Value::Object(schema.clone()),
            _ => json!({"type": "object"}),
        };
        let definition = Definition {
            name,
            server: server.identity.clone(),
            description: declared["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            input_schema: schema,
            roles: BTreeMap::new(),
            declared: Some(digest),
            minimum: nothing_promised(scope),
        };
        Self {
            definition,
            server,
            method: Method::Tool(own_name),
            drift,
        }
    }

    /// One of MCP's other methods at a server.
    pub(crate) fn other(
        name: ToolName,
        method: Method,
        arguments: &[(&str, ArgumentRole)],
        server: Arc<Server>,
        scope: &Scope,
    ) -> Self {
        let definition = of_method(name, &server, arguments, scope);
        Self {
            definition,
            server,
            method,
            drift: Arc::default(),
        }
    }

    async fn run(&self, call: Call<'_>) -> Result<Output, ToolError> {
        if self.drift.is_set() {
            return Err(ToolError::refused(
                "its definition has changed since it was pinned",
            ));
        }
        let up = self.server.up().map_err(|why| {
            let server = self.server.name();
            ToolError::failed(
                Effect::None,
                format!("server `{server}` is not there: {why}"),
            )
        })?;
        let unparsed = call.beside::<Beside>();
        let arguments = match unparsed.and_then(|beside| beside.unparsed.as_deref()) {
            Some(unparsed) => unparsed.to_owned(),
            None => serde_json::to_string(call.arguments())
                .map_err(|problem| ToolError::invalid(problem.to_string()))?,
        };
        let (method, params, contents) = match &self.method {
            Method::Tool(name) => {
                let params = format!("{{\"name\":{},\"arguments\":{arguments}}}", quoted(name));
                ("tools/call", params, Contents::Blocks)
            }
            Method::Other { name, contents } => (*name, arguments, *contents),
        };
        let params = RawValue::from_string(params)
            .map_err(|problem| ToolError::invalid(problem.to_string()))?;
        let result = match self.asked(&up, method, &params, &call).await {
            Err(lost) if lost.effect == Effect::Unknown && self.is_run_again() => {
                let up = self.started_again(&up).await.ok_or(lost)?;
                self.asked(&up, method, &params, &call).await?
            }
            answered => answered?,
        };
        match result {
            Answered::Result(result) if up.hello.revision == INLINE => {
                self.rounds(&up, method, &params, result, contents, &call)
                    .await
            }
            // To an agent of the newest revision this would be a question of the proxy's, which nobody judged.
            Answered::Result(result) if Wanted::of(&result).is_some() => {
                let why =
                    "it asks for input in a way that its revision of the protocol does not have";
                Err(ToolError::failed(Effect::Unknown, why))
            }
            Answered::Result(result) => self.recorded(result, contents, &call).await,
            Answered::Error(error) => Ok(answer::recorded_error(&error)),
        }
    }

    /// For a harness that takes [`Defence::UnknownStaysUnknown`] out: what nobody saw the end of is run
    /// once more.
    fn is_run_again(&self) -> bool {
        let conversation = self.server.conversation.get().and_then(Weak::upgrade);
        conversation.is_some_and(|all| all.lacks(Defence::UnknownStaysUnknown))
    }

    /// The server, once it is another process than this; none where that takes too long.
    async fn started_again(&self, before: &Arc<Up>) -> Option<Arc<Up>> {
        for _ in 0..STARTED_AGAIN_LOOKS {
            tokio::time::sleep(STARTED_AGAIN_PAUSE).await;
            let now = self.server.up().ok();
            let now = now.filter(|now| !Arc::ptr_eq(now, before));
            if now.is_some() {
                return now;
            }
        }
        None
    }

    /// Takes a result apart; a large one beside everybody else's calls, and one after the other.
    async fn recorded(
        &self,
        result: Box<RawValue>,
        contents: Contents,
        call: &Call<'_>,
    ) -> Result<Output, ToolError> {
        let unknown = |why: String| ToolError::failed(Effect::Unknown, why);
        if !is_heavy(result.get().len()) {
            return answer::recorded(&result, contents).map_err(unknown);
        }
        let conversation = self.server.conversation.get().and_then(Weak::upgrade);
        if let (Some(conversation), Some(beside)) = (conversation, call.beside::<Beside>())
            && let Ok(turn) = Arc::clone(&conversation.heavy).acquire_owned().await
        {
            let _ = beside.turn.set(turn);
        }
        let taken_apart = aside(move || answer::recorded(&result, contents)).await;
        let taken_apart = taken_apart.map_err(|problem| unknown(problem.to_string()))?;
        taken_apart.map_err(unknown)
    }

    async fn asked(
        &self,
        up: &Up,
        method: &str,
        params: &RawValue,
        call: &Call<'_>,
    ) -> Result<Answered, ToolError> {
        let level = call.beside::<Beside>().and_then(|beside| beside.level);
        let told = level.map(|level| inline::with_level(params, level));
        let params = told.as_deref().unwrap_or(params);
        let asked = up.peer.ask(method, Some(params), call.progress()).await;
        let mut asked = asked.map_err(failed)?;
        tokio::select! {
            answered = asked.answer() => answered.map_err(failed),
            () = call.stopped() => {
                asked.cancel("the call was told to stop").await;
                Err(ToolError::stopped(Effect::Unknown))
            }
        }
    }

    /// A server without a handshake may want to know something of the agent before it answers.
    async fn rounds(
        &self,
        up: &Up,
        method: &str,
        params: &RawValue,
        mut result: Box<RawValue>,
        contents: Contents,
        call: &Call<'_>,
    ) -> Result<Output, ToolError> {
        let unknown = |why: String| ToolError::failed(Effect::Unknown, why);
        for _ in 0..MAX_ROUNDS {
            let Some(wanted) = Wanted::of(&result) else {
                return self.recorded(result, contents, call).await;
            };
            let conversation = self.server.conversation.get().and_then(Weak::upgrade);
            let conversation =
                conversation.ok_or_else(|| unknown("the agent is not there".to_owned()))?;
            let stop = Stop::new();
            let rounds = call.beside::<Beside>().and_then(|beside| beside.rounds);
            let answers = conversation.provide(&self.server, &up.peer, &wanted, rounds, &stop);
            let stopping = async {
                call.stopped().await;
                stop.stop();
            };
            // Each is an action of its own, and is heard out even where the call is stopped.
            let answers = heard_out(answers, stopping).await;
            let answers = answers.ok_or_else(|| ToolError::stopped(Effect::Unknown))?;
            let answers = answers.map_err(unknown)?;
            let members = Members::of(params).unwrap_or_default();
            let mut more = vec![("inputResponses", answers.as_str())];
            more.extend(wanted.state.map(|state| ("requestState", state.get())));
            let next = RawValue::from_string(members.write_with(&more))
                .map_err(|problem| unknown(problem.to_string()))?;
            result = match self.asked(up, method, &next, call).await? {
                Answered::Result(result) => result,
                Answered::Error(error) => return Ok(answer::recorded_error(&error)),
            };
        }
        Err(unknown(format!(
            "the server wanted to know something of the agent more than {MAX_ROUNDS} times"
        )))
    }
}

/// What something comes to; none where it was stopped, but not before it is over.
async fn heard_out<T>(
    what: impl Future<Output = T>,
    stopping: impl Future<Output = ()>,
) -> Option<T> {
    let mut what = std::pin::pin!(what);
    tokio::select! {
        came = &mut what => Some(came),
        () = stopping => {
            what.await;
            None
        }
    }
}

/// What a server wants to know before it answers.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// Each under a name of the server's.
    pub(crate) requests: Members<'a>,
    state: Option<&'a RawValue>,
}

impl<'a> Wanted<'a> {
    fn of(result: &'a RawValue) -> Option<Self> {
        let members = Members::of(result).ok()?;
        if members.text("resultType")? != "input_required" {
            return None;
        }
        Some(Self {
            requests: Members::of_some(members.get("inputRequests")).unwrap_or_default(),
            state: members.get("requestState"),
        })
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(self.run(call))
    }
}

fn failed(problem: NoAnswer) -> ToolError {
    let effect = match &problem {
        NoAnswer::NotSent(_) => Effect::None,
        NoAnswer::Gone(_) | NoAnswer::Unreadable(_) => Effect::Unknown,
    };
    ToolError::failed(effect, problem.to_string())
}

/// What one of MCP's methods is as a tool: its parameters are its arguments, and nobody declared it.
pub(crate) fn of_method(
    name: ToolName,
    server: &Server,
    arguments: &[(&str, ArgumentRole)],
    scope: &Scope,
) -> Definition {
    let properties = arguments
        .iter()
        .map(|(name, _)| ((*name).to_owned(), json!({})));
    let properties: Map<String, Value> = properties.collect();
    let roles = arguments
        .iter()
        .map(|(name, role)| ((*name).to_owned(), *role));
    Definition {
        name,
        server: server.identity.clone(),
        description: String::new(),
        input_schema: json!({"type": "object", "properties": properties}),
        roles: roles.collect(),
        declared: None,
        minimum: nothing_promised(scope),
    }
}

/// Somebody else's tool promises nothing: the least floor there is, so that the operator's grade counts.
pub(crate) fn nothing_promised(scope: &Scope) -> Contract {
    use lodestar_core::contract::{BlastRadius, Permission, Reversibility, Sandbox};
    use lodestar_core::ladder::Rung;
    use lodestar_core::sensitivity::DataSensitivity;

    Contract {
        required_level: Rung::L0,
        blast_radius: BlastRadius::SelfOnly,
        reversibility: Reversibility::Reversible,
        scope: scope.clone(),
        data_sensitivity: DataSensitivity::Public,
        preconditions: lodestar_core::contract::Preconditions::default(),
        sandbox: Sandbox::ControlledNetwork,
        permissions: Permission::ALL.iter().copied().collect(),
    }
}
