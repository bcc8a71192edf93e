//! Pinned tools for whoever looks at them where no server runs: their definitions, grades and shapes. Nothing
//! here is ever called.

use std::collections::BTreeMap;
use std::sync::Arc;

use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_kernel::tool::{Call, Calling, Definition, Tool, ToolError};
use serde_json::{Value, json};

use crate::pins::Pins;
use crate::tool::nothing_promised;

/// A tool as it was pinned.
struct PinnedTool(Definition);

impl Tool for PinnedTool {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn call<'a>(&'a self, _: Call<'a>) -> Calling<'a> {
        Box::pin(async { Err(ToolError::refused("its server does not run here")) })
    }
}

impl Pins {
    /// The pinned tools of these servers, under their names in the log, as a session would have them.
    pub fn tools<'a>(
        &self,
        servers: impl IntoIterator<Item = &'a str>,
        scope: &Scope,
    ) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for server in servers {
            let Some(pinned) = self.servers.get(server) else {
                continue;
            };
            let Ok(identity) = ServerIdentity::new(&pinned.identity) else {
                continue;
            };
            for (name, pin) in &pinned.tools {
                let Ok(name) = ToolName::new(format!("mcp.{server}.{name}")) else {
                    continue;
                };
                let definition = &pin.definition;
                let schema = match &definition["inputSchema"] {
                    Value::Object(schema) => Value::Object(schema.clone()),
                    _ => json!({"type": "object"}),
                };
                let description = definition["description"].as_str().unwrap_or_default();
                tools.push(Arc::new(PinnedTool(Definition {
                    name,
                    server: identity.clone(),
                    description: description.to_owned(),
                    input_schema: schema,
                    roles: BTreeMap::new(),
                    declared: Some(pin.digest),
                    minimum: nothing_promised(scope),
                })));
            }
        }
        tools
    }
}
