//! A server's tool, and each of MCP's other methods, as something that the kernel can call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lodestar_core::contract::{ArgumentRole, Contract};
use lodestar_core::digest::Digest;
use lodestar_core::name::ToolName;
use lodestar_core::scope::Scope;
use lodestar_kernel::tool::{Call, Calling, Definition, Effect, Output, Tool, ToolError};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::answer::{self, Contents};
use crate::members::quoted;
use crate::peer::{Answered, NoAnswer};
use crate::server::Server;

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
        let properties: Map<String, Value> = arguments
            .iter()
            .map(|(name, _)| ((*name).to_owned(), json!({})))
            .collect();
        let roles = arguments
            .iter()
            .map(|(name, role)| ((*name).to_owned(), *role));
        let definition = Definition {
            name,
            server: server.identity.clone(),
            description: String::new(),
            input_schema: json!({"type": "object", "properties": properties}),
            roles: roles.collect(),
            declared: None,
            minimum: nothing_promised(scope),
        };
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
        let arguments = serde_json::to_string(call.arguments())
            .map_err(|problem| ToolError::invalid(problem.to_string()))?;
        let (method, params, contents) = match &self.method {
            Method::Tool(name) => {
                let params = format!("{{\"name\":{},\"arguments\":{arguments}}}", quoted(name));
                ("tools/call", params, Contents::Blocks)
            }
            Method::Other { name, contents } => (*name, arguments, *contents),
        };
        let params = RawValue::from_string(params)
            .map_err(|problem| ToolError::invalid(problem.to_string()))?;
        let asked = up.peer.ask(method, Some(&params), call.progress()).await;
        let mut asked = asked.map_err(failed)?;
        let answered = tokio::select! {
            answered = asked.answer() => answered,
            () = call.stopped() => {
                asked.cancel("the call was told to stop").await;
                return Err(ToolError::stopped(Effect::Unknown));
            }
        };
        match answered.map_err(failed)? {
            Answered::Result(result) => answer::recorded(&result, contents)
                .map_err(|problem| ToolError::failed(Effect::Unknown, problem)),
            Answered::Error(error) => Ok(answer::recorded_error(&error)),
        }
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
